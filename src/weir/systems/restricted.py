"""Search permitted documents only: each query's candidates, exclusions and filter apply before the cut at k."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentLists, DocumentMasks
from weir.core.order import drawn_keys
from weir.core.run import Named, Run
from weir.core.strings import Ids, Int64
from weir.errors import ServiceError, warn_of_ranking
from weir.systems.protocol import ANSWERS, IN_MEMORY, Context, Scorer, Searcher

CANDIDATE_DEPTH = 1 << 14
"""First depth of the search if queries list candidates."""
ASKED_DEPTH, MOST_ASKED = 1000, 10_000
"""First and largest depth of a restricted search whose calls are costly, such as a server's."""
GROWTH_FACTOR, ASKED_GROWTH = 8, 2
"""Growth of the depth while documents are lacking; the second for costly calls."""
LOWEST_SCORE = -float(np.finfo(np.float32).max)
"""Score of a pair that a scorer cannot score."""
BLOCK_ROWS = 1 << 24
"""Results held in memory at a time."""


S_contra = TypeVar("S_contra", bound=Searcher, contravariant=True)


class SearchMethod(Protocol[S_contra]):
    """The method `search` of a searcher."""

    def __call__(
        self, searcher: S_contra, /, queries: Queries, k: int = ..., context: Context = ...
    ) -> Run: ...


@runtime_checkable
class RestrictedSearcher(Protocol):
    """A searcher that applies the queries' candidates, exclusions and filters itself."""

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """Return the k best permitted documents of each query."""


def unrestricted(queries: Queries) -> Queries:
    """Return the queries without candidates, exclusions and filters; the same object if there are none."""
    metadata = queries.metadata
    if metadata is None:
        return queries
    restrictions = metadata.candidates, metadata.excluded, metadata.filter, metadata.permitted
    if all(restriction is None for restriction in restrictions):
        return queries
    free = replace(metadata, candidates=None, excluded=None, filter=None, permitted=None)
    return replace(queries, metadata=free)


def restricted_search(searcher: Searcher, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
    """Return the k best permitted documents of each query; raises BadValue for filters that were not evaluated.

    Warns (RankingWarning) if searches of a costly system leave queries with fewer.
    """
    if unrestricted(queries) is queries:
        return searcher.search(queries, k, context)
    if isinstance(searcher, RestrictedSearcher):
        return searcher.search_restricted(queries, k, context)
    if searcher.costs().repeatable:
        return deepened(searcher, queries, k, context)
    return asked_further(searcher, queries, k, context)


def permitted_only(search: SearchMethod[S_contra]) -> SearchMethod[S_contra]:
    """Return a `search` that applies the queries' candidates, exclusions and filters, for one that ignores them."""

    @wraps(search)
    def within(self: S_contra, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        free = unrestricted(queries) is queries
        return search(self, queries, k, context) if free else restricted_search(self, queries, k, context)

    return within


def asked_further(
    searcher: Searcher,
    queries: Queries,
    k: int,
    context: Context = IN_MEMORY,
    depths: tuple[int, int] = (ASKED_DEPTH, MOST_ASKED),
) -> Run:
    """Return the k best permitted documents of each query from a system whose calls are costly.

    depths: smallest and largest search depth if queries have candidates or filters.

    Queries that lack documents are searched again at twice the depth. If the service fails after a first
    answer, the answers so far count. Warns (RankingWarning) of queries that still lack documents.
    """
    free, (candidates, excluded) = unrestricted(queries), _lists(queries)
    depth = k + _longest(excluded)
    if candidates is not None or _permitted(queries) is not None:
        depth = max(depth, depths[0])
    most, asked, waiting = max(depth, depths[1]), depth, np.arange(len(queries))
    length, round_taken = np.full((2, len(queries)), -1)  # of the longest answer to each query
    answers, wanted = list[tuple[Int64, Run]](), np.full(len(queries), k)
    while len(waiting):
        try:
            run = searcher.search(free.take(waiting), depth, context)
        except ServiceError:
            if not answers:
                raise
            break
        asked, filtered = depth, run.allowed(queries.take(waiting)).top(k)
        longer = np.diff(run.ptr) > length[waiting]
        length[waiting[longer]], round_taken[waiting[longer]] = np.diff(run.ptr)[longer], len(answers)
        answers.append((waiting, filtered))
        wanted = _wanted(queries, k, run.docs) if len(answers) == 1 else wanted
        lacking = np.diff(filtered.ptr) < wanted[waiting]
        depth = min(ASKED_GROWTH * depth, most)
        waiting = waiting[longer & lacking & (np.diff(run.ptr) >= asked) & (depth > asked)]
    parts = [(np.where(round_taken[at] == n, at, -1), one) for n, (at, one) in enumerate(answers)]
    whole = _joined(queries, parts)
    note_lacking(whole, queries, k - context.beyond, f"its rankings were seen to depth {asked:,} at most")
    return whole


def note_lacking(run: Run, queries: Queries, k: int, seen: str) -> None:
    """Warn (RankingWarning) of queries with fewer than k results although more documents are permitted.

    seen: depth of the search, as text.
    """
    lacking = int((np.diff(run.ptr) < _wanted(queries, k, run.docs)).sum())
    if lacking:
        few = f"fewer than {k:,} of the documents that may be ranked for {lacking:,} of {len(queries):,} queries"
        warn_of_ranking(f"{run.name}: found {few}; {seen}")


def _wanted(queries: Queries, k: int, docs: Ids) -> Int64:
    (candidates, excluded), permitted = _lists(queries), _permitted(queries)
    masks = DocumentMasks.every(docs, len(queries)) if permitted is None else permitted
    most = masks.lengths()
    for lists, sign in ((excluded, -1), (candidates, 1)):
        if lists is None:
            continue
        query, code = lists.query_of_row(), lists.codes_in(masks.docs)
        rows = (code >= 0) & masks.allow(query, code)
        if sign > 0 and excluded is not None:
            rows &= ~np.isin(
                _pairs(query, code), _pairs(excluded.query_of_row(), excluded.codes_in(masks.docs))
            )
        count = np.bincount(query[rows], minlength=len(queries))
        most = most - count if sign < 0 else np.where(lists.lengths() > 0, count, most)
    return np.minimum(most, k)


def _pairs(query: NDArray[np.integer], code: NDArray[np.integer]) -> Int64:
    return query.astype(np.int64) << 32 | code


def deepened(searcher: Searcher, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
    """Return the k best permitted documents of each query, searching deeper until k are found or no more come."""
    free_queries, (candidates, excluded) = unrestricted(queries), _lists(queries)
    depth = k + _longest(excluded)
    depth = depth if candidates is None else max(depth, CANDIDATE_DEPTH)
    depth = min(depth * _rarity(queries), max(depth, CANDIDATE_DEPTH))
    waiting, parts = np.arange(len(queries)), list[tuple[Int64, Run]]()
    while len(waiting):
        unsettled: list[Int64] = []
        size = max(1, BLOCK_ROWS // depth)  # queries whose answers are held together
        for block in (waiting[start : start + size] for start in range(0, len(waiting), size)):
            run = searcher.search(free_queries.take(block), depth, context)
            filtered = run.allowed(queries.take(block)).top(k)
            settled = (np.diff(filtered.ptr) == k) | (np.diff(run.ptr) < depth)
            parts.append((np.where(settled, block, -1), filtered))
            unsettled.append(block[~settled])
        waiting, depth = np.concatenate(unsettled), GROWTH_FACTOR * depth
    return _joined(queries, parts)


def scored_candidates(
    searcher: Searcher, scorer: Scorer, queries: Queries, corpus: Corpus, k: int, context: Context = IN_MEMORY
) -> Run:
    """Return the k best permitted documents of each query: among its listed candidates, or by a search if it
    lists none.

    scorer: scores as the searcher does; candidates with LOWEST_SCORE are left out.
    """
    candidates, _ = _lists(queries)
    if candidates is None:
        return deepened(searcher, queries, k, context)
    few, rest = np.flatnonzero(candidates.lengths() > 0), np.flatnonzero(candidates.lengths() == 0)
    with_candidates = queries.take(few)
    rows = candidate_rows(with_candidates, corpus).allowed(with_candidates)
    score = scorer.scores(with_candidates, rows, context)
    scored = score > LOWEST_SCORE
    columns = rows.query_of_row()[scored], rows.doc[scored], score[scored]
    ordered = Run.from_columns(with_candidates.ids, corpus.ids, *columns)
    parts = [(few, ordered.top(k))]
    if len(rest):
        parts.append((rest, deepened(searcher, queries.take(rest), k, context)))
    return _joined(queries, parts)


def candidate_rows(queries: Queries, corpus: Corpus, name: str = "run") -> Run:
    """Return each query's listed candidates in random order with a fixed seed and falling scores; documents
    missing in the corpus are left out."""
    candidates, _ = _lists(queries)
    if candidates is None:
        candidates = DocumentLists.of([[]] * len(queries))
    code = candidates.codes_in(corpus.ids)
    query, rows = candidates.query_of_row(), np.flatnonzero(code >= 0)
    key = drawn_keys(queries.ids.strings, candidates.docs.strings, query, candidates.doc)
    score, ends = np.empty(len(code)), np.repeat(candidates.ptr[1:], candidates.lengths())
    score[np.lexsort((key, query))] = ends - np.arange(len(code))
    return Run.from_columns(queries.ids, corpus.ids, query[rows], code[rows], score[rows], Named(name))


def _lists(queries: Queries) -> tuple[DocumentLists | None, DocumentLists | None]:
    lists = {} if queries.metadata is None else dict(queries.metadata.lists())
    return lists.get("candidates"), lists.get("excluded")


def _permitted(queries: Queries) -> DocumentMasks | None:
    return None if queries.metadata is None else queries.metadata.fitting()


def _rarity(queries: Queries) -> int:
    permitted = _permitted(queries)
    if permitted is None or not len(permitted):
        return 1
    return -(-len(permitted.docs) // max(int(permitted.lengths().min()), 1))


def _longest(excluded: DocumentLists | None) -> int:
    return 0 if excluded is None else int(excluded.lengths().max(initial=0))


def _joined(queries: Queries, parts: list[tuple[Int64, Run]]) -> Run:
    if not parts:
        return Run.of({})
    first = parts[0][1]
    docs = first.docs
    if any(run.docs is not docs for _, run in parts):  # a plug-in may number the documents of each answer
        docs = Ids.of(dict.fromkeys(name for _, run in parts for name in run.docs))
    query, doc, score = list[NDArray[np.int64]](), list[NDArray[np.int32]](), list[NDArray[np.float64]]()
    for numbers, run in parts:
        number = numbers[run.query_of_row()]
        rows = np.flatnonzero(number >= 0)
        codes = run.doc if run.docs is docs else docs.codes(run.docs.strings)[run.doc]
        query.append(number[rows])
        doc.append(codes[rows])
        score.append(run.score[rows])
    columns = np.concatenate(query), np.concatenate(doc), np.concatenate(score)
    return Run.from_columns(queries.ids, docs, *columns, Named(first.name, first.ties))
