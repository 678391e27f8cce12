"""Re-ranking: the first documents of each ranking in the order of new scores, the others behind them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.order import drawn_keys
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, RankingWarning
from weir.systems.composite import renumbered
from weir.systems.plugins import rankings, scores
from weir.systems.protocol import (
    DEPTH,
    IN_MEMORY,
    MAX_DEPTH,
    CandidateSource,
    Context,
    Costs,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
)
from weir.systems.rerank.kept_places import settled_by_place

__all__ = [
    "RerankingSearcher",
    "has_candidates",
    "rerank_depths",
    "rerank_room",
    "reranked_rows",
    "rows_of_run",
]

MIN_QUERIES_TO_WARN = 10
"""Queries below which an unchanged order says nothing."""
MIN_RELATIVE_STEP = 2.0**-20
"""Smallest step behind the depth, as a share of the score: large enough for floats to tell apart."""


class TwoStage(Protocol):
    """A system that finds documents, and a re-ranker that orders the first of them anew."""

    @property
    def first(self) -> Retriever:
        """What finds documents."""
        ...

    @property
    def reranker(self) -> Reranker:
        """What scores the first of each ranking, see `rerank_depths`."""
        ...


def has_candidates(system: TwoStage) -> bool:
    """Whether the answers of the first stage are candidates, all of which are scored unless a depth is named."""
    first = system.first
    return isinstance(first, CandidateSource) and first.pool_depth(1, 1) is not None


def rerank_depths(system: TwoStage, queries: Queries) -> Int64:
    """How many of the first documents of each query's ranking are scored: the depth that is named.

    Without one all candidates, be they those of the first stage or those that the collection names for the query, and
    DEPTH of other rankings.
    """
    named = system.reranker.depth
    if named is not None or has_candidates(system):
        return np.full(len(queries), MAX_DEPTH if named is None else named)
    return np.where(_listed(queries) > 0, MAX_DEPTH, DEPTH)


def rerank_room(system: TwoStage, queries: Queries, k: int, corpus: Corpus) -> int:
    """How many documents the first stage is asked for, where k are wanted of both stages."""
    named, first = system.reranker.depth, system.first
    if named is None and isinstance(first, CandidateSource):
        pool = first.pool_depth(k, len(corpus))
        if pool is not None:
            return pool
    room = (DEPTH if named is None else named) + int((corpus.ids.codes(queries.ids.strings) >= 0).any())
    longest = 0 if named is not None else int(_listed(queries).max(initial=0))
    return max(k, room, longest)


def reranked_rows(system: TwoStage, run: Run, queries: Queries, corpus: Corpus) -> Int64:
    """The rows of a first stage's rankings that are scored; the query's own document does not count to the depth."""
    own, depth = corpus.ids.codes(queries.ids.strings), rerank_depths(system, queries)
    rank, query = run.ranks(), run.query_of_row()
    place = np.full(len(run), np.iinfo(np.int64).max)
    itself = np.flatnonzero(run.doc == own[query])
    place[query[itself]] = rank[itself]
    return np.flatnonzero(rank - (rank > place[query]) <= depth[query])


def _listed(queries: Queries) -> Int64:
    """How many candidates the collection names for each query."""
    lists = None if queries.metadata is None else queries.metadata.candidates
    return np.zeros(len(queries), np.int64) if lists is None else lists.lengths()


@dataclass
class RerankCounts:
    """Documents that the first stage gave, and those of them behind the depth."""

    candidates: int = 0
    unscored: int = 0


@dataclass(frozen=True, eq=False)
class RerankingSearcher:
    """The searcher of the first system, and what scores its first documents anew."""

    system: TwoStage
    corpus: Corpus
    first: Searcher
    scorer: Scorer
    counts: RerankCounts = field(default_factory=RerankCounts)

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, the first of them in the re-ranker's order.

        Equal scores are in the order of identifiers, as everywhere; where the first stage ranks nothing they are in
        a drawn order, and documents that the re-ranker cannot score behind those that it can. It ranks nothing where it
        says so, and candidates of a query that all score the same are drawn here.

        Warns (RankingWarning) where the re-ranker cannot tell the candidates of a query apart, and where it leaves
        most rankings as they were. Raises BadRanking for scores that are missing or not finite, and for a first
        ranking that holds a document twice; BadValue for k below 1.
        """
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        room = rerank_room(self.system, queries, k, self.corpus)
        found = renumbered(
            rankings(self.first, queries, room, self.system.first, context=context), self.corpus
        )
        found, drawn = _drawn(self.system, found, queries)
        chosen = reranked_rows(self.system, found, queries, self.corpus)
        candidates = rows_of_run(found, chosen)
        new = scores(self.scorer, queries, candidates, self.system.reranker, context)
        if context.reuse:
            self.counts.candidates += len(found.doc)
            self.counts.unscored += len(found.doc) - len(chosen)
        if drawn.any():
            by_place = drawn[candidates.query_of_row()]
            score = _behind(found, chosen, np.where(by_place, settled_by_place(new, candidates.ptr), new))
        else:
            score = _behind(found, chosen, new)
        named = Named(str(self.system))
        run = Run.from_columns(found.queries, found.docs, found.query_of_row(), found.doc, score, named)
        for note in _notes(str(self.system.reranker), candidates, new, run, drawn):
            warnings.warn(RankingWarning(f"{self.system}: {note}"), stacklevel=2)
        return run.top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """As `search`: its parts rank only what may be ranked."""
        return self.search(queries, k, context)

    def costs(self) -> Costs:
        """Those of both parts, and how many documents were left unscored so far."""
        own = Costs(candidates=self.counts.candidates, unscored=self.counts.unscored, repeatable=True)
        return own + Costs.of((self.first, self.scorer))


def rows_of_run(run: Run, rows: Int64) -> Run:
    """The run with these rows only."""
    ptr = np.searchsorted(rows, run.ptr).astype(np.int64)
    return replace(run, ptr=ptr, doc=run.doc[rows], score=run.score[rows])


def _drawn(system: TwoStage, found: Run, queries: Queries) -> tuple[Run, NDArray[np.bool_]]:
    """(candidates in the order in which they are re-ranked, whether that of each query is drawn)."""
    first = system.first
    if not has_candidates(system) or not isinstance(first, CandidateSource):
        return found, np.zeros(len(queries), np.bool_)
    if first.is_drawn():
        return found, np.ones(len(queries), np.bool_)
    query, count = found.query_of_row(), np.diff(found.ptr)
    alike = count > 1
    several = np.flatnonzero(count)
    if len(several):
        least, most = (f.reduceat(found.score, found.ptr[:-1][several]) for f in (np.minimum, np.maximum))
        alike[several] &= least == most
    if not alike.any():
        return found, alike
    key = drawn_keys(queries.ids.strings, found.docs.strings, query, found.doc)
    order = np.arange(len(found.doc))
    order[alike[query]] = np.flatnonzero(alike[query])[np.lexsort((key[alike[query]], query[alike[query]]))]
    score = np.where(alike[query], -found.ranks().astype(np.float64), found.score)
    return replace(found, doc=found.doc[order], score=score), alike


def _behind(run: Run, chosen: Int64, new: Float64) -> Float64:
    """The new scores of the chosen rows, which are the first of each ranking, and lower ones for the others."""
    score = np.full(len(run.doc), np.inf)
    score[chosen] = new
    filled = np.flatnonzero(np.diff(run.ptr))
    low = np.zeros(len(run))
    low[filled] = np.minimum.reduceat(score, run.ptr[:-1][filled]) if len(filled) else 0.0
    query = run.query_of_row()
    behind = np.ones(len(score), np.bool_)
    behind[chosen] = False
    count = np.bincount(query[chosen], minlength=len(run))
    steps = run.ranks()[behind] - count[query[behind]]
    lowest = low[query[behind]]
    score[behind] = lowest - steps * np.maximum(1.0, MIN_RELATIVE_STEP * np.abs(lowest))
    return score


def _notes(who: str, candidates: Run, new: Float64, after: Run, drawn: NDArray[np.bool_]) -> list[str]:
    """What looks wrong: queries whose candidates all score the same, orders that stay as they were."""
    several = np.flatnonzero(np.diff(candidates.ptr) > 1)
    if len(several) == 0:
        return []
    # Rankings that are empty start where the next one does: only those of several documents are looked at.
    cuts = np.stack([candidates.ptr[:-1][several], candidates.ptr[1:][several]], axis=1).ravel()
    closed = np.append(new, 0.0)
    same = np.maximum.reduceat(closed, cuts)[::2] == np.minimum.reduceat(closed, cuts)[::2]
    start = np.repeat(after.ptr[:-1] - candidates.ptr[:-1], np.diff(candidates.ptr))
    moved = np.append(after.doc[np.arange(len(new)) + start] != candidates.doc, False)
    still = ~np.logical_or.reduceat(moved, cuts)[::2] & ~same
    found, total = [], len(several)
    if same.any():
        found.append(
            f"{who} scores all candidates of {int(same.sum())} of {total} queries the same; "
            f"their order is {'drawn' if drawn.all() else 'that of identifiers'}"
        )
    if total >= MIN_QUERIES_TO_WARN and 2 * int(still.sum()) > total:
        found.append(f"{who} leaves the order of {int(still.sum())} of {total} queries as it was")
    return found
