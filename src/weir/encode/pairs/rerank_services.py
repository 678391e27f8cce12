"""What differs from one re-ranking service to the next, as data: how it is asked and how it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import UnknownName
from weir.io.storage.toml_file import read_toml

__all__ = ["RerankService", "ScoreAnswer", "UnusableScoresError", "rerank_service", "rerank_services"]

Json: TypeAlias = Any
"""Whatever a server sent: nothing about it is known before it is looked at."""
DATA = Path(__file__).with_name("rerank_services.toml")


class UnusableScoresError(Exception):
    """An answer does not hold a score for each document; the next may."""


@dataclass(frozen=True)
class ScoreAnswer:
    """Scores in the order of the documents, float32[n], and the tokens that the service counted, None where none."""

    scores: NDArray[np.float32]
    tokens: int | None


@dataclass(frozen=True)
class RerankService:
    """A re-ranking service; rerank_services.toml says what each entry means."""

    base: str
    path: str
    key: str
    documents: int
    tokens: int
    texts: str
    names_model: bool
    results: str
    score: str
    sent: Mapping[str, Json] = field(default_factory=dict)
    counted: Sequence[str] = ()
    together: Sequence[str] = ()

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Json]:
        """A request, as JSON."""
        named = {"model": model} if self.names_model else {}
        return {**named, "query": query, self.texts: list(documents), **self.sent}

    def read(self, answer: Json, count: int) -> ScoreAnswer:
        """The scores of an answer to a request of so many documents; raises UnusableScoresError."""
        found = answer.get(self.results) if self.results and isinstance(answer, dict) else answer
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            where = f"'{self.results}'" if self.results else "of results"
            raise UnusableScoresError(f"the answer has no list {where}")
        places, values = [one.get("index") for one in found], [one.get(self.score) for one in found]
        if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
            raise UnusableScoresError(f"the answer's 'index' does not name each of {count} documents once")
        if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
            raise UnusableScoresError(f"'{self.score}' of the answer is not a number for each document")
        scores = np.empty(count, np.float32)
        with np.errstate(over="ignore"):
            scores[np.array(places, np.int64)] = np.array(values, np.float64)
        if not np.isfinite(scores).all():
            raise UnusableScoresError(f"'{self.score}' of the answer is out of range")
        return ScoreAnswer(scores, self._tokens(answer))

    def _tokens(self, answer: Json) -> int | None:
        for name in self.counted:
            answer = answer.get(name) if isinstance(answer, dict) else None
        return answer if self.counted and type(answer) is int and answer >= 0 else None


@cache
def rerank_services() -> dict[str, RerankService]:
    """The services by name."""
    return {name: RerankService(**facts) for name, facts in read_toml(DATA, "re-ranking services").items()}


def rerank_service(name: str) -> RerankService:
    """The service of that name; raises UnknownName."""
    try:
        return rerank_services()[name]
    except KeyError:
        raise UnknownName("re-ranking service", name, rerank_services()) from None
