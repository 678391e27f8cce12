"""The scores of one system on several collections, with what identifies the judgments they were made by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.scores import Scores

__all__ = ["JudgedScores", "SystemScores", "judgment_marks"]

_MARK_DIGITS = 8  # hexadecimal


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Scores on a collection and what tells its judgments apart.

    marks: for each query a hash of its judgments, as `judgment_marks`, empty where they are not known; judgments: a
    hash of all of them as records of stages have it, "" where that is not known.
    """

    scores: Scores
    marks: Mapping[str, str] = field(default_factory=dict)
    judgments: str = ""

    @property
    def fingerprint(self) -> str:
        """A hash of the marks of all queries, whatever their order."""
        text = json.dumps(sorted(self.marks.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class SystemScores:
    """The scores of a system by the name of the collection.

    version: of the Weir that saved them, "" if just made; notes: what has to be said of how its rankings were made.
    """

    system: str
    datasets: Mapping[str, JudgedScores]
    version: str = ""
    notes: tuple[str, ...] = ()


def judgment_marks(qrels: Qrels | IntentQrels) -> dict[str, str]:
    """{query: a hash of its judgments}, whatever the order of documents; eight hexadecimal digits."""
    return {query: _mark(grades) for query, grades in qrels.to_dict().items()}


def _mark(grades: Mapping[str, object]) -> str:
    text = json.dumps(_as_floats(grades), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_MARK_DIGITS]


def _as_floats(grades: Mapping[str, Any]) -> dict[str, object]:
    """Grades as floats, so that 1 and 1.0 are one grade."""
    return {name: _as_floats(one) if isinstance(one, Mapping) else float(one) for name, one in grades.items()}
