"""Re-ranking: the first documents of each ranking in the order of new scores, the others behind them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue, RankingWarning
from weir.systems.composite import renumbered
from weir.systems.plugins import rankings, scores
from weir.systems.protocol import IN_MEMORY, Context, Costs, Reranker, Retriever, Scorer, Searcher

__all__ = ["RerankingSearcher", "first_rows", "rows_of_run"]

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
        """What scores the first `reranker.depth` of each ranking."""
        ...


@dataclass(frozen=True, eq=False)
class RerankingSearcher:
    """The searcher of the first system, and what scores its first documents anew."""

    system: TwoStage
    corpus: Corpus
    first: Searcher
    scorer: Scorer

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, the first of them in the re-ranker's order.

        Warns (RankingWarning) where the re-ranker cannot tell the candidates of a query apart, and where it leaves
        most rankings as they were. Raises BadRanking for scores that are missing or not finite, and for a first
        ranking that holds a document twice; BadValue for k below 1.
        """
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        own = self.corpus.ids.codes(queries.ids.strings)
        room = max(k, self.system.reranker.depth + int((own >= 0).any()))
        found = renumbered(
            rankings(self.first, queries, room, self.system.first, context=context), self.corpus
        )
        chosen = first_rows(found, own, self.system.reranker.depth)
        candidates = rows_of_run(found, chosen)
        new = scores(self.scorer, queries, candidates, self.system.reranker, context)
        score = _behind(found, chosen, new)
        named = Named(str(self.system))
        run = Run.from_columns(found.queries, found.docs, found.query_of_row(), found.doc, score, named)
        for note in _notes(str(self.system.reranker), candidates, new, run):
            warnings.warn(RankingWarning(f"{self.system}: {note}"), stacklevel=2)
        return run.top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """As `search`: its parts rank only what may be ranked."""
        return self.search(queries, k, context)

    def costs(self) -> Costs:
        """Those of both parts."""
        return Costs.of((self.first, self.scorer))


def first_rows(run: Run, own: Int32, depth: int) -> Int64:
    """The rows among the first `depth` of their ranking, the query's own document not counted."""
    rank, query = run.ranks(), run.query_of_row()
    place = np.full(len(run), np.iinfo(np.int64).max)
    itself = np.flatnonzero(run.doc == own[query])
    place[query[itself]] = rank[itself]
    return np.flatnonzero(rank - (rank > place[query]) <= depth)


def rows_of_run(run: Run, rows: Int64) -> Run:
    """The run with these rows only."""
    ptr = np.searchsorted(rows, run.ptr).astype(np.int64)
    return replace(run, ptr=ptr, doc=run.doc[rows], score=run.score[rows])


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


def _notes(who: str, candidates: Run, new: Float64, after: Run) -> list[str]:
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
            "their order is that of identifiers"
        )
    if total >= MIN_QUERIES_TO_WARN and 2 * int(still.sum()) > total:
        found.append(f"{who} leaves the order of {int(still.sum())} of {total} queries as it was")
    return found
