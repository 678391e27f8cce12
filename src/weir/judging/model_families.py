"""Families of models: whether a judge and a system that it judges are made from the same language model."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from weir.io.storage.toml_file import read_toml

__all__ = ["families_of", "family_warnings"]

TABLE = Path(__file__).with_name("model_families.toml")
MAX_NAMED_SYSTEMS = 3


@cache
def _families() -> dict[str, dict[str, Any]]:
    return read_toml(TABLE, "families of models")


def families_of(name: str) -> frozenset[str]:
    """The families that the name of a model, or of a system made of several, tells of."""
    lowered = name.casefold()

    def is_member(marks: dict[str, Any]) -> bool:
        within = any(mark in lowered for mark in marks.get("within", ()))
        word = (rf"(?<![a-z0-9]){re.escape(mark)}(?![a-z])" for mark in marks.get("word", ()))
        return within or any(re.search(pattern, lowered) for pattern in word)

    return frozenset(family for family, marks in _families().items() if is_member(marks))


def family_warnings(judge: str, systems: tuple[str, ...]) -> list[str]:
    """A line for each family that the judge shares with systems; judge: the model's name; systems: names."""
    found = []
    for family in sorted(families_of(judge)):
        shared = [system for system in systems if family in families_of(system)]
        if shared:
            named = ", ".join(shared[:MAX_NAMED_SYSTEMS])
            more = f" and {len(shared) - MAX_NAMED_SYSTEMS} more" if len(shared) > MAX_NAMED_SYSTEMS else ""
            found.append(
                f"the judge {judge} is of the family {family}, and so is what it judges: {named}{more}; models favour "
                "their own family, so let people judge a part of these"
            )
    return found
