"""Pipelines: bm25 >> score(rm3, depth=50) finds documents with one system and orders the best of them anew."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue, RankingWarning
from weir.systems.composite import Folder, numbered, shifted
from weir.systems.plugins import rankings, scores
from weir.systems.protocol import (
    ExternalStorage,
    Progress,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    Shelf,
    fresh,
    watched,
)

__all__ = ["Pipeline", "PipelineSearcher", "check_depth"]

DEEPEST = 10_000_000
"""Documents of a ranking that may be scored anew."""
ENOUGH = 10
"""Queries below which an unchanged order says nothing."""
STEP = 2.0**-20
"""Smallest step behind the depth, as a share of the score: large enough for floats to tell apart."""


@dataclass(frozen=True)
class Pipeline:
    """A system whose first documents a re-ranker puts in another order.

    first: the system that finds them; reranker: what scores the first `reranker.depth` of each ranking anew. Those
    behind the depth keep their order behind the others: the i-th of them stands i steps below the lowest new score,
    a step being 1, or 2**-20 of that score where this is more. A document whose identifier is the query's own does
    not count towards the depth, so that taking it out changes nothing else. Raises BadValue for parts that are none.
    """

    first: Retriever
    reranker: Reranker

    def __post_init__(self) -> None:
        if not isinstance(self.first, Retriever):
            raise BadValue(f"a pipeline begins with a system, such as bm25; {self.first!r} is none")
        if not isinstance(self.reranker, Reranker):
            raise BadValue(f"behind >> stands a re-ranker, such as score(rm3); {self.reranker!r} is none")

    def __str__(self) -> str:
        return f"{self.first} >> {self.reranker}"

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        return {
            "system": str(self),
            "first": self.first.describe(),
            "reranker": self.reranker.describe(),
            "algorithm": algorithm("pipeline"),
            "behind the depth": "in the order of the first system, below the lowest new score",
        }

    def over(self, corpus: Corpus, shelf: Shelf, progress: Progress | None = None) -> PipelineSearcher:
        """The first system's answers, and what scores them anew."""
        shown = [None if progress is None else shifted(progress, number, 2) for number in (0, 1)]
        first = shelf.answers(self.first, corpus, shown[0])
        return PipelineSearcher(self, corpus, first, self.reranker.ready(corpus, shelf, shown[1]))

    def index(
        self, corpus: Corpus, at: Path | None = None, progress: Progress | None = None
    ) -> PipelineSearcher:
        """Index a corpus for both parts, in memory or each into a folder of its own in `at`."""
        return self.over(corpus, Folder(at), progress)

    def open(self, at: Path, corpus: Corpus) -> PipelineSearcher:
        """Open what `index` wrote for the same corpus; raises StoreError where a part is missing or damaged."""
        return self.over(corpus, Folder(at, build=False))


@dataclass(frozen=True, eq=False)
class PipelineSearcher:
    """A system that finds documents, and what scores them anew."""

    system: Pipeline
    corpus: Corpus
    first: Searcher
    scorer: Scorer

    def search(self, queries: Queries, k: int) -> Run:
        """The k best documents for each query, the first of them in the re-ranker's order.

        Warns (RankingWarning) where the re-ranker cannot tell the candidates of a query apart, and where it leaves
        most rankings as they were. Raises BadRanking for scores that are missing or not finite, and for a first
        ranking that holds a document twice; BadValue for k below 1.
        """
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        own = self.corpus.ids.codes(queries.ids.strings)
        room = max(k, self.system.reranker.depth + int((own >= 0).any()))
        found = numbered(rankings(self.first, queries, room, self.system.first), self.corpus)
        chosen = _first(found, own, self.system.reranker.depth)
        candidates = _rows(found, chosen)
        new = scores(self.scorer, queries, candidates, self.system.reranker)
        score = _behind(found, chosen, new)
        named = Named(str(self.system))
        run = Run.from_columns(found.queries, found.docs, found.query_of_row(), found.doc, score, named)
        for note in _notes(str(self.system.reranker), candidates, new, run):
            warnings.warn(RankingWarning(f"{self.system}: {note}"), stacklevel=2)
        return run.top(k)

    def outside(self) -> ExternalStorage:
        """What both parts keep outside the index."""
        return ExternalStorage.of(self.first, self.scorer)

    def watched(self, progress: Progress) -> PipelineSearcher:
        """The same, telling how far its parts are."""
        return replace(self, first=watched(self.first, progress), scorer=watched(self.scorer, progress))

    def fresh(self) -> PipelineSearcher | None:
        """The same, computing anew what its parts keep; None where a part may not be asked again."""
        first, scorer = fresh(self.first), fresh(self.scorer)
        return None if first is None or scorer is None else replace(self, first=first, scorer=scorer)


def check_depth(name: str, depth: object) -> None:
    """Raise BadValue for a depth that is not a whole number from 1 to DEEPEST."""
    if type(depth) is not int or not 1 <= depth <= DEEPEST:
        raise BadValue(f"{name}: depth is {depth!r}; expected a whole number from 1 to {DEEPEST:,}")


def _first(run: Run, own: Int32, depth: int) -> Int64:
    """The rows among the first `depth` of their ranking, the query's own document not counted."""
    rank, query = run.ranks(), run.query_of_row()
    place = np.full(len(run), np.iinfo(np.int64).max)
    itself = np.flatnonzero(run.doc == own[query])
    place[query[itself]] = rank[itself]
    return np.flatnonzero(rank - (rank > place[query]) <= depth)


def _rows(run: Run, rows: Int64) -> Run:
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
    score[behind] = lowest - steps * np.maximum(1.0, STEP * np.abs(lowest))
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
    if total >= ENOUGH and 2 * int(still.sum()) > total:
        found.append(f"{who} leaves the order of {int(still.sum())} of {total} queries as it was")
    return found
