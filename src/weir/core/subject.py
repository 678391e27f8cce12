"""What an audit looks at: a collection, its judgments, and rankings of it, as far as each is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Int64
from weir.errors import BadValue

T = TypeVar("T")
TextEncoder: TypeAlias = Callable[[Queries], NDArray[np.float32]]
"""Queries to their vectors, float32[n, d]."""


@dataclass(frozen=True, eq=False)
class TokenLimit:
    """Where an encoder cuts documents.

    model: its name; tokens: that it reads of a document at most; extents: of some texts the tokens of each if none were
    cut, and the characters of each that are read, both int64[n].
    """

    model: str
    tokens: int
    extents: Callable[[Sequence[str]], tuple[Int64, Int64]]


@dataclass(frozen=True, eq=False)
class Training:
    """Queries, and their judgments where there are any, that systems may have been trained on."""

    name: str
    queries: Queries
    qrels: Qrels | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """A collection, judgments and rankings to be audited; what is None or empty is not there.

    queries: of every split, judged or not; runs: rankings by the name of their system; training: the other splits, and
    other data that systems may have been trained on; encoder: what gives queries vectors; limit: where it cuts
    documents, None where that is not known; instruction: what queries without one of their own are told to look for;
    self_match: "drop" where documents with the identifier of their query are left out of the rankings, else "keep";
    asked: the queries of the split with what may be ranked for them; unscored: by the name of a run (candidates that
    re-rankers left unscored, candidates), as its record has it.
    """

    name: str
    corpus: Corpus | None = None
    queries: Queries | None = None
    qrels: Qrels | None = None
    runs: Mapping[str, Run] = field(default_factory=dict)
    training: tuple[Training, ...] = ()
    encoder: TextEncoder | None = None
    limit: TokenLimit | None = None
    instruction: str = ""
    self_match: str = "keep"
    asked: Queries | None = None
    unscored: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """What is there: of "corpus", "queries", "qrels", "runs", "training", "encoder"; judgments of no query no."""
        judged = self.qrels if self.qrels is not None and len(self.qrels) else None
        here = {"corpus": self.corpus, "queries": self.queries, "qrels": judged, "encoder": self.encoder}
        several = {"runs": self.runs, "training": self.training}
        return frozenset(
            {n for n, part in here.items() if part is not None} | {n for n, parts in several.items() if parts}
        )

    @cached_property
    def judged_queries(self) -> Queries:
        """The queries of the split that is evaluated, all of them where there are no judgments; raises BadValue."""
        queries = self.need_queries()
        if self.qrels is None or not len(self.qrels):
            return queries
        return queries.take(np.flatnonzero(self.qrels.queries.codes(queries.ids.strings) >= 0))

    @property
    def queries_called(self) -> str:
        """What a sentence calls `judged_queries`."""
        return "queries" if self.qrels is None or not len(self.qrels) else "judged queries"

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

    def need_encoder(self) -> TextEncoder:
        """What gives queries vectors; raises BadValue where there is none."""
        return _there(self.encoder, "encoders")

    def need_qrels(self) -> Qrels:
        """The judgments; raises BadValue where they are not there."""
        return _there(self.qrels, "judgments")


def _there(part: T | None, what: str) -> T:
    if part is None:
        raise BadValue(f"there are no {what}, which this needs; name a collection that has them")
    return part
