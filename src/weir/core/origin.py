"""Of what scores are: the collection, the judgments, the depth; and what keeps two of them out of one statement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

_MARK_DIGITS = 8  # hexadecimal
_NAMED = 3  # queries of a sentence


class Grades(Protocol):
    """Judgments of any kind: they say the grade of each document, or of each document for each intent."""

    def to_dict(self) -> Mapping[str, Mapping[str, Any]]:
        """{query: {document: grade}}, or {query: {intent: {document: grade}}}."""


@dataclass(frozen=True, eq=False)
class Origin:
    """Say of what scores are, as far as that is known; "" and None where it is not."""

    judgments: Grades | None = None
    """By which they were computed."""
    digest: str = ""
    """Hash of the judgments, as records of stages have it."""
    saved: Mapping[str, str] = field(default_factory=dict)
    """Marks of the queries, where a file has them."""
    collection: str = ""
    split: str = ""
    system: str = ""
    depth: int | None = None
    """Documents that each query was answered with, at most."""

    @cached_property
    def marks(self) -> Mapping[str, str]:
        """{query: a hash of its judgments}, empty where they are not known."""
        return self.saved if self.judgments is None else judgment_marks(self.judgments)


def apart(first: Origin, second: Origin, paired: bool = True) -> list[str]:
    """Why two scores belong in no statement together, in words that follow "they are"; [] as far as is known.

    The one guard of comparisons, gates and explanations. paired: whether only queries that both have are looked at, as
    pairs of values are; else all have to be the same, as for two means.
    """
    if first.judgments is not None and first.judgments == second.judgments:
        return []
    if first.digest and first.digest == second.digest:
        return []
    if first.marks and second.marks:
        common = first.marks.keys() & second.marks.keys()
        anew = sorted(q for q in common if first.marks[q] != second.marks[q])
        names = ", ".join(anew[:_NAMED]) + (", ..." if len(anew) > _NAMED else "")
        count = f"{len(anew):,} quer{'y' if len(anew) == 1 else 'ies'}"
        if anew:
            return [f"by other judgments of {count} ({names})"]
        if paired or len(common) == len(first.marks) == len(second.marks):
            return []
    places = [f"{one.collection}:{one.split}" for one in (first, second)]
    if first.collection and second.collection and places[0] != places[1]:
        return [f"of {places[0]} and of {places[1]}"]
    if first.marks and second.marks:
        return ["of other queries"]
    return ["by other judgments"] if first.digest and second.digest else []


def judgment_marks(judgments: Grades) -> dict[str, str]:
    """{query: a hash of its judgments}, whatever the order of documents; eight hexadecimal digits."""
    return {query: _mark(grades) for query, grades in judgments.to_dict().items()}


def _mark(grades: Mapping[str, object]) -> str:
    text = json.dumps(_as_floats(grades), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_DIGITS]


def _as_floats(grades: Mapping[str, Any]) -> dict[str, object]:
    """Grades as floats, so that 1 and 1.0 are one grade."""
    return {name: _as_floats(one) if isinstance(one, Mapping) else float(one) for name, one in grades.items()}
