"""Re-order the first documents of each ranking by new scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.order import drawn_keys
from weir.core.run import Named, Run
from weir.core.strings import Float32, Float64, Int64
from weir.errors import BadRanking, warn_of_ranking
from weir.settings import settings
from weir.systems.composite import rankings, renumbered, scores
from weir.systems.protocol import (
    ANSWERS,
    DEPTH,
    IN_MEMORY,
    MAX_DEPTH,
    CandidateSource,
    Context,
    Costs,
    Progress,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    check_k,
    index_repr,
)
from weir.systems.restricted import LOWEST_SCORE
from weir.systems.vectors.journal import Hashes, hash_texts
from weir.systems.vectors.store import EncodingBlocks, RowStore, completed

if TYPE_CHECKING:
    from weir.models.tokens import Text

# ----------
# Missing and equal scores: the first stage's order decides.


SCORE_STEP = 2.0**-16
"""Decrease of a score from rank to rank; floats resolve it, and scores of models differ by more."""
RELATIVE_STEP = 2.0**-20
"""Distance between ties once broken, as a share of the query's largest score; floats resolve it."""


def fill_unscored(values: Float64, ptr: Int64) -> Float64:
    """Return finite, distinct scores, float64[candidates], that order scored candidates by `values` and keep
    unscored ones at their rank.

    values: float64[candidates] in the first stage's order, NaN if unscored.
    ptr: int64[queries + 1], offsets of each query.
    """
    score = np.empty(len(values))
    for start, stop in pairwise(ptr.tolist()):
        own = values[start:stop]
        scored = np.flatnonzero(~np.isnan(own))
        order = np.arange(stop - start)
        order[scored] = scored[np.argsort(-own[scored], kind="stable")]
        level = own[order]
        if len(scored):
            last = np.maximum.accumulate(np.where(np.isnan(level), -1, np.arange(len(level))))
            level = level[np.where(last < 0, scored[0], last)]
        else:
            level = np.zeros(len(level))
        score[start + order] = level - SCORE_STEP * np.arange(len(level))
    return score


def settled_by_place(values: Float64, ptr: Int64) -> Float64:
    """Return scores without ties, float64[candidates]; ties follow the first stage's order.

    values: float64[candidates] in that order; LOWEST_SCORE counts as the query's lowest score.
    ptr: int64[queries + 1], offsets of each query.

    Distinct scores keep their order; nearly equal ones may change.
    """
    score = np.empty(len(values))
    for start, stop in pairwise(ptr.tolist()):
        own = values[start:stop]
        order = np.argsort(-own, kind="stable")
        scored = own > LOWEST_SCORE
        level = np.where(scored, own, own[scored].min() if scored.any() else 0.0)[order]
        step = RELATIVE_STEP * (float(np.abs(level).max(initial=0.0)) or 1.0) * np.arange(len(level))
        least = np.minimum.accumulate(level + step)
        score[start + order] = np.where(least == level + step, level, least - step)
    return score


# ----------
# Scores of pairs, stored as they are computed: an interrupted re-ranking resumes, and no pair is scored twice.
#
# A pair is kept under the query's text and the document's, so that another pipeline, another depth or another
# collection that asks for it finds it. One store for each model with all its settings; see
# weir.systems.vectors.store.


VIEW = "title text"
BLOCK_PAIRS = {"cpu": 256, "cuda": 4096}
"""Pairs scored and stored together; a killed process loses no more."""
RENDERED_PAIRS = 4096


class PairModel(Protocol):
    """A loaded model that scores a query and a document read together."""

    @property
    def batch_independent(self) -> bool:
        """True if a pair's score has the same bits in any batch."""

    @property
    def device(self) -> str:
        """The device on which the model runs, such as "cpu" or "cuda:1"."""

    def scores(self, pairs: Iterable[Text], done: Callable[[int], None] | None = None) -> Iterator[Float32]:
        """Yield the scores of (query, document) texts in order, in blocks float32[n].

        done: called with the number of scored pairs.
        """


@dataclass
class Steps:
    """Reports progress in scored pairs, over all batches."""

    progress: Progress | None
    total: int
    before: int = 0
    """Pairs finished before the current batch."""

    def batch(self, done: int, _: int) -> None:
        """Report that `done` pairs were finished before a batch starts."""
        self.before = done
        self.within(0)

    def within(self, count: int) -> None:
        """Report that `count` pairs of the current batch are scored so far."""
        if self.progress is not None:
            self.progress(self.before + count, self.total)


@dataclass
class CacheCounts:
    """Number of requested pairs, and of those computed instead of read."""

    requested: int = 0
    computed: int = 0

    def costs(self) -> Costs:
        return Costs(requested_pairs=self.requested, computed_pairs=self.computed, repeatable=True)


@dataclass(frozen=True, eq=False)
class PairScorer:
    """Scores query-document pairs by a model that reads both together; stores the scores."""

    name: str
    """Name of the re-ranker in messages."""
    model: PairModel
    about: Mapping[str, object]
    """Everything that decides a pair's score, the key of the store."""
    corpus: Corpus
    counts: CacheCounts = field(default_factory=CacheCounts)

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return each candidate's score, float64[candidates]; scores are stored and reused unless
        `context.reuse` is False.

        Raises BadRanking for a score that is not finite.
        """
        pairs = Pairs(queries, candidates, self.corpus)
        if len(pairs) == 0:
            return np.empty(0)
        if not context.reuse:
            return self._computed(pairs, np.arange(len(pairs)), None).astype(np.float64)
        store, hashes = RowStore.of(settings().home / "scores", self.about), pairs.hashes()
        self.counts.requested += len(pairs)
        steps = Steps(context.progress, len(pairs))

        def add(numbers: Int64, lacking: NDArray[np.bool_]) -> None:
            scores = self._computed(pairs, numbers, steps.within)
            store.add(hashes[numbers[lacking]], scores[lacking][:, None])
            self.counts.computed += len(numbers)

        # The pairs of a query are a block where others of a batch move bits, so that another query changes nothing.
        block = BLOCK_PAIRS[self.model.device.partition(":")[0]]
        cut = EncodingBlocks(
            block, whole=not self.model.batch_independent, group=candidates.query_of_row().astype(np.int64)
        )
        snapshot = completed(store, hashes, add, steps.batch, cut)
        return snapshot.vectors(snapshot.texts.find(hashes))[:, 0].astype(np.float64)

    def costs(self) -> Costs:
        return self.counts.costs()

    def _computed(self, pairs: Pairs, numbers: Int64, done: Callable[[int], None] | None) -> Float32:
        scores = np.concatenate(list(self.model.scores(pairs.take(numbers), done)))
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            raise BadRanking(
                f"{self.name}: the score of {pairs._pair_name(int(numbers[bad[0]]))} is {scores[bad[0]]}"
            )
        return scores


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each query's text with the text of each of its candidates, read on demand."""

    queries: Queries
    candidates: Run
    corpus: Corpus

    def __len__(self) -> int:
        return len(self.candidates.doc)

    def _pair_name(self, number: int) -> str:
        query = int(self.candidates.query_of_row()[number])
        document = self.candidates.docs[int(self.candidates.doc[number])]
        return f"query '{self.queries.ids[query]}', document '{document}'"

    def take(self, numbers: Int64) -> Iterator[tuple[str, str]]:
        """Yield (query text, document text) of the pairs with these numbers."""
        queries, query = self.queries.text.tolist(), self.candidates.query_of_row()
        for start in range(0, len(numbers), RENDERED_PAIRS):
            some = numbers[start : start + RENDERED_PAIRS]
            texts = self.corpus.view_of(VIEW, self.candidates.doc[some])
            yield from zip([queries[q] for q in query[some]], texts.tolist(), strict=True)

    def hashes(self) -> Hashes:
        """Return a hash of each pair, uint64[pairs, 2]."""
        every = np.arange(len(self))
        blocks = [
            self.take(every[start : start + RENDERED_PAIRS]) for start in range(0, len(self), RENDERED_PAIRS)
        ]
        return np.concatenate([hash_texts([f"{len(q)} {q}{d}".encode() for q, d in b]) for b in blocks])


# ----------
# The searcher: the first documents of each ranking in the order of new scores, the others behind them.


MIN_QUERIES_TO_WARN = 10
"""Fewest queries for which unchanged rankings cause a warning."""
MIN_RELATIVE_STEP = 2.0**-20
"""Smallest step between scores below the re-ranking depth, as a share of the score; floats resolve it."""


class TwoStage(Protocol):
    """A pipeline: a first stage and a re-ranker of its results."""

    @property
    def first(self) -> Retriever:
        """The system whose results are re-ranked."""

    @property
    def reranker(self) -> Reranker:
        """The re-ranker of the first documents."""


def has_candidates(system: TwoStage) -> bool:
    """Return True if the first stage returns candidates, which are all re-ranked by default."""
    first = system.first
    return isinstance(first, CandidateSource) and first.pool_depth(1, 1) is not None


def rerank_depths(system: TwoStage, queries: Queries) -> Int64:
    """Return the number of documents to score for each query, int64[queries]: the re-ranker's depth, else
    100, or MAX_DEPTH for candidates."""
    depth = system.reranker.depth
    if depth is not None or has_candidates(system):
        return np.full(len(queries), MAX_DEPTH if depth is None else depth)
    return np.where(_listed(queries) > 0, MAX_DEPTH, DEPTH)


def rerank_room(system: TwoStage, queries: Queries, k: int, corpus: Corpus) -> int:
    """Return the number of documents that the first stage must return for k results."""
    depth, first = system.reranker.depth, system.first
    if depth is None and isinstance(first, CandidateSource):
        pool = first.pool_depth(k, len(corpus))
        if pool is not None:
            return pool
    room = (DEPTH if depth is None else depth) + int((corpus.ids.codes(queries.ids.strings) >= 0).any())
    longest = 0 if depth is not None else int(_listed(queries).max(initial=0))
    return max(k, room, longest)


def reranked_rows(system: TwoStage, run: Run, queries: Queries, corpus: Corpus) -> Int64:
    """Return the rows of a run to score, int64: each ranking's documents down to the re-ranking depth, not
    counting one with the query's identifier."""
    own, depth = corpus.ids.codes(queries.ids.strings), rerank_depths(system, queries)
    rank, query = run.ranks(), run.query_of_row()
    place = np.full(len(run), np.iinfo(np.int64).max)
    itself = np.flatnonzero(run.doc == own[query])
    place[query[itself]] = rank[itself]
    return np.flatnonzero(rank - (rank > place[query]) <= depth[query])


def _listed(queries: Queries) -> Int64:
    lists = None if queries.metadata is None else queries.metadata.candidates
    return np.zeros(len(queries), np.int64) if lists is None else lists.lengths()


@dataclass
class RerankCounts:
    """Number of documents from the first stage, and of those left unscored."""

    candidates: int = 0
    unscored: int = 0


@dataclass(frozen=True, eq=False)
class RerankingSearcher:
    """Searches by a first stage and re-orders its first documents by a scorer; the rest follow unchanged."""

    system: TwoStage
    corpus: Corpus
    first: Searcher
    scorer: Scorer
    counts: RerankCounts = field(default_factory=RerankCounts)

    __repr__ = index_repr

    @checked
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        """Return the k best documents of each query after re-ranking.

        Ties are ordered by identifier, or, if the first stage's order is random, at random with a fixed seed
        and unscorable documents last. Warns (RankingWarning) of queries with equal scores, and if most
        rankings are unchanged. Raises BadRanking for scores missing or not finite and repeated documents,
        BadValue for k below 1.
        """
        check_k(k)
        room = rerank_room(self.system, queries, k, self.corpus)
        first = renumbered(
            rankings(self.first, queries, room, self.system.first, context=context), self.corpus
        )
        first, drawn = _drawn(self.system, first, queries)
        chosen = reranked_rows(self.system, first, queries, self.corpus)
        candidates = rows_of_run(first, chosen)
        new = scores(self.scorer, queries, candidates, self.system.reranker, context)
        if context.reuse:
            self.counts.candidates += len(first.doc)
            self.counts.unscored += len(first.doc) - len(chosen)
        if drawn.any():
            by_place = drawn[candidates.query_of_row()]
            score = _behind(first, chosen, np.where(by_place, settled_by_place(new, candidates.ptr), new))
        else:
            score = _behind(first, chosen, new)
        name = Named(str(self.system))
        run = Run.from_columns(first.queries, first.docs, first.query_of_row(), first.doc, score, name)
        for note in _notes(str(self.system.reranker), candidates, new, run, drawn):
            warn_of_ranking(f"{self.system}: {note}")
        return run.top(k)

    search_restricted = search

    def nested(self, queries: Queries, k: int) -> bool:
        room = (rerank_room(self.system, queries, depth, self.corpus) for depth in (k, k + 1))
        return next(room) == next(room)

    def costs(self) -> Costs:
        own = Costs(candidates=self.counts.candidates, unscored=self.counts.unscored, repeatable=True)
        return own + Costs.of((self.first, self.scorer))


def rows_of_run(run: Run, rows: Int64) -> Run:
    """Return the run with only these ascending rows, int64."""
    ptr = np.searchsorted(rows, run.ptr).astype(np.int64)
    return replace(run, ptr=ptr, doc=run.doc[rows], score=run.score[rows])


def _drawn(system: TwoStage, run: Run, queries: Queries) -> tuple[Run, NDArray[np.bool_]]:
    first = system.first
    if not has_candidates(system) or not isinstance(first, CandidateSource):
        return run, np.zeros(len(queries), np.bool_)
    if first.is_drawn():
        return run, np.ones(len(queries), np.bool_)
    query, count = run.query_of_row(), np.diff(run.ptr)
    alike = count > 1
    several = np.flatnonzero(count)
    if len(several):
        least, most = (f.reduceat(run.score, run.ptr[:-1][several]) for f in (np.minimum, np.maximum))
        alike[several] &= least == most
    if not alike.any():
        return run, alike
    key = drawn_keys(queries.ids.strings, run.docs.strings, query, run.doc)
    order = np.arange(len(run.doc))
    order[alike[query]] = np.flatnonzero(alike[query])[np.lexsort((key[alike[query]], query[alike[query]]))]
    score = np.where(alike[query], -run.ranks().astype(np.float64), run.score)
    return replace(run, doc=run.doc[order], score=score), alike


def _behind(run: Run, chosen: Int64, new: Float64) -> Float64:
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
    notes, total = [], len(several)
    if same.any():
        notes.append(
            f"{who} scores all candidates of {int(same.sum())} of {total} queries the same; "
            f"their order is {'drawn' if drawn.all() else 'that of identifiers'}"
        )
    if total >= MIN_QUERIES_TO_WARN and 2 * int(still.sum()) > total:
        notes.append(f"{who} leaves the order of {int(still.sum())} of {total} queries as it was")
    return notes
