"""Doors: the one place where methods of values name functions of higher rooms, which are imported when called.

A value of `core` prints, saves and turns into a frame by what `api` and `files` know; this table is all that `core`
knows of them. A test opens every door.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

DOORS = {
    "groups text": "weir.api.rows:groups_text",
    "measure name": "weir.measures.measure:canonical_name",
    "qrels of": "weir.files.runs:read_qrels",
    "qrels save": "weir.files.write:write_qrels",
    "intents of": "weir.files.intents:read_intents",
    "intents save": "weir.files.intents:write_intents",
    "run of": "weir.files.runs:read_run",
    "run save": "weir.files.write:write_run",
    "scores by": "weir.datasets.load:grouped_scores",
    "scores html": "weir.api.rows:scores_html",
    "scores notes": "weir.stats.score_rows:score_notes",
    "scores of": "weir.files.score_files:read_scores_value",
    "scores save": "weir.files.score_files:write_scores_value",
    "scores text": "weir.api.rows:scores_text",
}


def opened(door: str) -> Callable[..., Any]:
    """The function behind a door; imports its module."""
    module, _, name = DOORS[door].partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
