"""Recognise families of language models by name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from weir.files.text_files import read_toml

TABLE = Path(__file__).with_name("model_families.toml")


@cache
def _model_families() -> dict[str, dict[str, Any]]:
    return read_toml(TABLE, "families of models")


def families_of(name: str) -> frozenset[str]:
    """Return the language-model families, such as "GPT", that a name mentions; may be empty."""
    lowered = name.casefold()

    def is_member(marks: dict[str, Any]) -> bool:
        within = any(mark in lowered for mark in marks.get("within", ()))
        word = (rf"(?<![a-z0-9]){re.escape(mark)}(?![a-z])" for mark in marks.get("word", ()))
        return within or any(re.search(pattern, lowered) for pattern in word)

    return frozenset(family for family, marks in _model_families().items() if is_member(marks))
