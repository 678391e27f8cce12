"""The subject of an audit: a collection with judgments and runs."""

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
from weir.core.roles import judged_run
from weir.core.run import Run
from weir.core.strings import Int64
from weir.errors import BadValue

T = TypeVar("T")
TextEncoder: TypeAlias = Callable[[Queries], NDArray[np.float32]]
"""A function that returns the vectors of queries, float32[n, d]."""


@dataclass(frozen=True, eq=False)
class TokenLimit:
    """An encoder's limit on document tokens, and a function that measures texts."""

    model: str
    tokens: int
    """Most tokens of a document."""
    extents: Callable[[Sequence[str]], tuple[Int64, Int64]]
    """Returns (tokens without truncation, characters read) of each text, int64[n] each."""


@dataclass(frozen=True, eq=False)
class Training:
    """Queries, and perhaps judgments, that systems may have been trained on."""

    name: str
    queries: Queries
    qrels: Qrels | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """The collection, judgments, runs, training data and encoder to audit; missing parts are None or empty."""

    name: str
    corpus: Corpus | None = None
    queries: Queries | None = None
    """Queries of every split, judged or not."""
    qrels: Qrels | None = None
    """Judgments of the queries that count."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """By system name."""
    training: tuple[Training, ...] = ()
    """Other splits and data that systems may have been trained on."""
    encoder: TextEncoder | None = None
    limit: TokenLimit | None = None
    instruction: str = ""
    """Used for queries without their own."""
    self_match: str = "keep"
    """"drop" removes documents with the identifier of their query from rankings, "keep" does not."""
    asked: Queries | None = None
    """Queries of the split, with the documents that may be ranked for them."""
    unscored: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """(candidates that re-rankers left unscored, candidates) by run, from its record."""
    fused_by_ranks: frozenset[str] = frozenset()
    """Names of runs that are fusions by ranks, whose equal scores are exact."""
    uneven_depths: tuple[str, ...] | None = None
    """Sentences on rankings too different in length for the measures of their scores; None if they have no scores."""
    all_qrels: Qrels | None = None
    """Judgments also of queries that the collection lacks; None if `qrels` has them."""
    versions: tuple[str, ...] = ()
    """Names of further subjects of the same results folder, collection and split, with other documents or judgments."""

    @property
    def parts(self) -> frozenset[str]:
        """Names of the parts present, such as "corpus"; "qrels" only if not empty."""
        judged = self.qrels if self.qrels is not None and len(self.qrels) else None
        here = {"corpus": self.corpus, "queries": self.queries, "qrels": judged, "encoder": self.encoder}
        several = {"runs": self.runs, "training": self.training}
        return frozenset(
            {n for n, part in here.items() if part is not None} | {n for n, parts in several.items() if parts}
        )

    @cached_property
    def judged_queries(self) -> Queries:
        """The judged queries; all without judgments. Raises BadValue without queries."""
        queries = self.need_queries()
        if self.qrels is None or not len(self.qrels):
            return queries
        return queries.take(np.flatnonzero(self.qrels.queries.codes(queries.ids.strings) >= 0))

    @property
    def queries_called(self) -> str:
        """ "judged queries", or "queries" without judgments: the noun for `judged_queries`."""
        return "queries" if self.qrels is None or not len(self.qrels) else "judged queries"

    @cached_property
    def joins(self) -> dict[str, Judged]:
        """{run name: run matched with the judgments}. Raises BadValue without judgments."""
        return {name: judged_run(run, self.need_qrels()) for name, run in self.runs.items()}

    @cached_property
    def best(self) -> Run:
        """The best ranking of each judged query that a system can return. Raises BadValue without judgments.

        Omits absent documents, queries not asked, and documents that a query may not rank.
        """
        qrels, judged = self.need_qrels(), np.ones(len(self.need_qrels().doc), np.bool_)
        query, asked = qrels.query_of_row(), self.queries
        if self.corpus is not None:
            judged &= (self.corpus.ids.codes(qrels.docs.strings) >= 0)[qrels.doc]
        if asked is not None:
            judged &= (asked.ids.codes(qrels.queries.strings) >= 0)[query]
        columns = query[judged], qrels.doc[judged], qrels.grade[judged].astype(np.float64)
        best = Run.from_columns(qrels.queries, qrels.docs, *columns)
        best = best.without_self() if self.self_match == "drop" else best
        return best if self.asked is None else best.allowed(self.asked)

    def need_corpus(self) -> Corpus:
        """Return the documents. Raises BadValue if missing."""
        return _there(self.corpus, "documents")

    def need_queries(self) -> Queries:
        """Return the queries. Raises BadValue if missing."""
        return _there(self.queries, "queries")

    def need_encoder(self) -> TextEncoder:
        """Return the encoder. Raises BadValue if missing."""
        return _there(self.encoder, "encoders")

    def need_qrels(self) -> Qrels:
        """Return the judgments. Raises BadValue if missing."""
        return _there(self.qrels, "judgments")


def _there(part: T | None, what: str) -> T:
    if part is None:
        raise BadValue(f"there are no {what}, which this needs; name a collection that has them")
    return part
