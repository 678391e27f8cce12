"""Search among the documents that may be ranked: by a query's candidates, exclusions and filter.

The result is the ranking of all documents, from which the others are removed before the cut at k. The parts of a system
are restricted too, so that a re-ranker sees only documents that may be ranked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentLists, DocumentMasks
from weir.core.order import drawn_keys
from weir.core.run import Named, Run
from weir.core.strings import Ids, Int64
from weir.systems.protocol import IN_MEMORY, Context, Scorer, Searcher

CANDIDATE_DEPTH = 1 << 14
"""The first depth where only candidates count."""
ONCE_DEPTH = 1000
"""The least depth of a system that is called once, such as a server of others."""
GROWTH_FACTOR = 8
"""The depth grows by this factor where too few documents may be ranked."""
LOWEST_SCORE = -float(np.finfo(np.float32).max)
"""The score of a pair that a scorer cannot score."""
BLOCK_ROWS = 1 << 24
"""Results in memory at a time."""


@runtime_checkable
class RestrictedSearcher(Protocol):
    """A searcher that restricts itself: by its parts, or cheaper than by ranking all documents."""

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best of the documents that may be ranked."""
        ...


def unrestricted(queries: Queries) -> Queries:
    """The queries without their candidates, exclusions and filters."""
    metadata = queries.metadata
    if metadata is None:
        return queries
    restrictions = metadata.candidates, metadata.excluded, metadata.filter, metadata.permitted
    if all(restriction is None for restriction in restrictions):
        return queries
    free = replace(metadata, candidates=None, excluded=None, filter=None, permitted=None)
    return replace(queries, metadata=free)


def restricted_search(searcher: Searcher, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
    """The k best documents for each query among those that may be ranked, fewer where fewer match.

    A searcher that may be called again is called as in `deepened`. Any other is called once: for k and as many more as
    are excluded, and for ONCE_DEPTH at least where there are candidates or filters. Raises BadValue for filters that
    were not matched with the documents.
    """
    free_queries = unrestricted(queries)
    if free_queries is queries:
        return searcher.search(queries, k, context)
    if isinstance(searcher, RestrictedSearcher):
        return searcher.search_restricted(queries, k, context)
    if searcher.costs().repeatable:
        return deepened(searcher, queries, k, context)
    candidates, excluded = _lists(queries)
    depth, free = k + _longest(excluded), candidates is None and _permitted(queries) is None
    depth = depth if free else max(depth, ONCE_DEPTH)
    return searcher.search(free_queries, depth, context).allowed(queries).top(k)


def sufficient_depth(queries: Queries, k: int, documents: int) -> int:
    """How many of all documents have to be ranked so that k are left of those that may be."""
    candidates, excluded = _lists(queries)
    free = candidates is None and _permitted(queries) is None
    return k + _longest(excluded) if free else max(k, documents)


def deepened(searcher: Searcher, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
    """The k best documents that may be ranked: the depth grows until k are left or no more documents come."""
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
    """The k best documents that may be ranked, where a scorer gives the scores that the searcher finds: candidates are
    scored alone, and only queries without any are searched.

    The lowest score there is stands for what searching would not find, such as a query without text.
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
    """The candidates of each query that the corpus holds, in a drawn order (core/order.py), scores falling by 1."""
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
    """(candidates, excluded) of queries; None where no query has any."""
    lists = {} if queries.metadata is None else dict(queries.metadata.lists())
    return lists.get("candidates"), lists.get("excluded")


def _permitted(queries: Queries) -> DocumentMasks | None:
    return None if queries.metadata is None else queries.metadata.fitting()


def _rarity(queries: Queries) -> int:
    """How many documents there are, at most, for each that fits the filter of a query; 1 without filters."""
    permitted = _permitted(queries)
    if permitted is None or not len(permitted):
        return 1
    return -(-len(permitted.docs) // max(int(permitted.lengths().min()), 1))


def _longest(excluded: DocumentLists | None) -> int:
    return 0 if excluded is None else int(excluded.lengths().max(initial=0))


def _joined(queries: Queries, parts: list[tuple[Int64, Run]]) -> Run:
    """One run of several, each with the numbers of its queries, -1 for a query that is left out."""
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
