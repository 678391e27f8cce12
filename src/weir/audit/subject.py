"""What an audit looks at: a collection, its judgments, and rankings of it, as far as each is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from weir.core.corpus import Corpus, Queries
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue

__all__ = ["Subject"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Subject:
    """A collection, judgments and rankings to be audited; what is None or empty is not there.

    queries: of every split, judged or not; runs: rankings by the name of their system.
    """

    name: str
    corpus: Corpus | None = None
    queries: Queries | None = None
    qrels: Qrels | None = None
    runs: Mapping[str, Run] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """What is there: of "corpus", "queries", "qrels", "runs"."""
        here = {"corpus": self.corpus, "queries": self.queries, "qrels": self.qrels}
        return frozenset(
            {n for n, part in here.items() if part is not None} | ({"runs"} if self.runs else set())
        )

    @cached_property
    def joins(self) -> dict[str, Judged]:
        """The join of each run with the judgments; raises BadValue without judgments."""
        return {name: Judged.of(run, self.need_qrels()) for name, run in self.runs.items()}

    def need_corpus(self) -> Corpus:
        """The documents; raises BadValue where they are not there."""
        return _there(self.corpus, "documents")

    def need_queries(self) -> Queries:
        """The queries; raises BadValue where they are not there."""
        return _there(self.queries, "queries")

    def need_qrels(self) -> Qrels:
        """The judgments; raises BadValue where they are not there."""
        return _there(self.qrels, "judgments")


def _there(part: T | None, what: str) -> T:
    if part is None:
        raise BadValue(f"the audit needs {what}, which are not there")
    return part
