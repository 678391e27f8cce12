"""Weir measures how well retrieval systems find what people need.

    ds = weir.load("scifact")
    run = weir.BM25().index(ds.corpus).search(ds.queries, k=1000)
    scores = weir.evaluate(ds.qrels, run, ["nDCG@10", "R@100"])

Names are imported when they are first used: scoring a run needs numpy alone, and indexing the `run` extra.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.api import compare, evaluate, fuse, read_results
    from weir.core.corpus import Corpus, Queries
    from weir.core.intents import IntentQrels
    from weir.core.judged import Judged
    from weir.core.qrels import Qrels
    from weir.core.result_row import Row
    from weir.core.run import Run
    from weir.core.scores import Scores
    from weir.datasets.load import Dataset, fetch, load
    from weir.errors import WeirError
    from weir.experiment import Experiment
    from weir.experiment.published.published_scores import published
    from weir.measures import Measure, measure, parse_measure
    from weir.measures.conventions import Conventions, parse_conventions
    from weir.stats.score_rows import rows
    from weir.systems import BM25, RM3, parse_system

__all__ = [
    "BM25",
    "RM3",
    "Conventions",
    "Corpus",
    "Dataset",
    "Experiment",
    "IntentQrels",
    "Judged",
    "Measure",
    "Qrels",
    "Queries",
    "Row",
    "Run",
    "Scores",
    "WeirError",
    "compare",
    "evaluate",
    "fetch",
    "fuse",
    "load",
    "measure",
    "parse_conventions",
    "parse_measure",
    "parse_system",
    "published",
    "read_results",
    "rows",
]

_HOMES = {
    "BM25": "systems",
    "RM3": "systems",
    "Conventions": "measures.conventions",
    "Corpus": "core.corpus",
    "Dataset": "datasets.load",
    "Experiment": "experiment",
    "IntentQrels": "core.intents",
    "Judged": "core.judged",
    "Measure": "measures",
    "Qrels": "core.qrels",
    "Queries": "core.corpus",
    "Row": "core.result_row",
    "Run": "core.run",
    "Scores": "core.scores",
    "WeirError": "errors",
    "compare": "api",
    "evaluate": "api",
    "fetch": "datasets.load",
    "fuse": "api",
    "load": "datasets.load",
    "measure": "measures",
    "parse_conventions": "measures.conventions",
    "parse_measure": "measures",
    "parse_system": "systems",
    "published": "experiment.published.published_scores",
    "read_results": "api",
    "rows": "stats.score_rows",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weir' has no attribute '{name}'")
    return getattr(importlib.import_module(f"weir.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
