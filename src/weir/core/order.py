"""The one order of results: score descending, then document id descending, as trec_eval.

Nothing else in Weir sorts or selects hits on its own; kernels follow this order and are tested against it.
Scores compare as doubles (trec_eval 10); `ties="trec9"` compares them as floats, as trec_eval 9 and
pytrec_eval do, so that scores which differ only beyond seven digits become ties.

What nothing has scored stands in a drawn order (`drawn_keys`), since identifiers may name what is relevant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import (
    MIX,
    MIX_TAIL,
    Float64,
    Int32,
    Int64,
    Strings,
    descending_bytes,
    hash_strings,
    stretches,
)
from weir.errors import BadValue

Ties: TypeAlias = Literal["trec", "trec9"]
TIES: tuple[Ties, ...] = ("trec", "trec9")
DRAW_SEED = 20_231_128
"""Seed of the order of what nothing has scored."""


def compared(score: Float64, ties: Ties = "trec") -> Float64:
    """Scores at the precision in which they are compared.

    Raises BadValue for a rule that does not exist.
    """
    if ties not in TIES:
        raise BadValue(f"ties is '{ties}'; expected one of {', '.join(TIES)}")
    if ties == "trec":
        return score
    with np.errstate(over="ignore"):  # beyond a float's range scores are infinite, as in trec_eval 9
        return score.astype(np.float32).astype(np.float64)


def ranked(query: NDArray[np.integer], score: Float64, tie_rank: NDArray[np.integer]) -> Int64:
    """The permutation that brings rows into result order within each query.

    query: int[n] query number of each row; score: float64[n]; tie_rank: int[n], see Ids.tie_ranks.
    """
    return settled(by_score(query, score), query, score, lambda rows: tie_rank[rows])


def by_score(query: NDArray[np.integer], score: Float64) -> Int64:
    """The permutation that brings rows into order of query and falling score; ties stay as they come."""
    if (query[1:] < query[:-1]).any():
        return np.lexsort((-score, query))
    order = np.arange(len(score))
    rising = (score[1:] > score[:-1]) & (query[1:] == query[:-1])
    if rising.any():  # most run files come in order: only queries that do not are sorted
        at = np.flatnonzero(np.isin(query, query[1:][rising]))
        order[at] = at[np.lexsort((-score[at], query[at]))]
    return order


def settled(
    order: Int64,
    query: NDArray[np.integer],
    score: Float64,
    tie_rank_of: Callable[[Int64], NDArray[np.integer]],
) -> Int64:
    """The permutation with rows of one query and equal score, adjacent in it, in the order of their documents.

    tie_rank_of: the tie ranks of some rows; ties are mostly few, and only tied rows are asked about.
    """
    query, score = query[order], score[order]
    same = np.zeros(len(order) + 1, np.bool_)
    same[1:-1] = (score[1:] == score[:-1]) & (query[1:] == query[:-1])
    at = np.flatnonzero(same[1:] | same[:-1])
    if len(at) == 0:
        return order
    group, rows = np.cumsum(~same[:-1])[at], order[at]
    order = order.copy()
    order[at] = rows[np.lexsort((tie_rank_of(rows), group))]
    return order


def arranged(
    query: NDArray[np.integer], score: Float64, tie_rank_of: Callable[[Int64], NDArray[np.integer]]
) -> Int64:
    """As settled(by_score(...)), for rows of ascending queries in no order within them: several times quicker."""
    order = np.argsort(-score)  # ties are settled below, so it need not be stable
    few = len(query) == 0 or int(query[-1]) < 2**16
    number = query.astype(np.uint16) if few else query
    return settled(order[np.argsort(number[order], kind="stable")], query, score, tie_rank_of)


def is_ordered(query: NDArray[np.integer], score: Float64, strictly: bool = True) -> bool:
    """Whether rows are already in result order; strictly: so that no tie has to be looked at."""
    falls = score[1:] < score[:-1] if strictly else score[1:] <= score[:-1]
    return bool(np.all((query[1:] > query[:-1]) | ((query[1:] == query[:-1]) & falls)))


def best_of(score: Float64, tie_rank: Int32, k: int) -> Int32:
    """The k documents with the best positive scores, in result order.

    score: float64[N] of every document; tie_rank: int32[N], see Ids.tie_ranks.
    """
    matching = np.flatnonzero(score > 0)
    if len(matching) > k:
        kth = np.partition(score[matching], len(matching) - k)[len(matching) - k]
        matching = matching[score[matching] >= kth]
    order = np.lexsort((tie_rank[matching], -score[matching]))[:k]
    return matching[order].astype(np.int32)


def drawn_keys(
    queries: Strings, documents: Strings, query: NDArray[np.integer], doc: NDArray[np.integer]
) -> NDArray[np.uint64]:
    """A number for each row, by which rows of a query stand in a drawn order: a hash of DRAW_SEED, query and document.

    queries, documents: identifiers, of which query and doc name one for each row. The same in every process, on every
    platform, and whatever other rows there are.
    """
    of_query, of_document = (
        hash_strings(names.data, names.ptr[:-1], names.lengths()) for names in (queries, documents)
    )
    with np.errstate(over="ignore"):
        key = _mixed(of_query + np.uint64(DRAW_SEED))[query] ^ of_document[doc]
        return _mixed(key)


def _mixed(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a number spread over all of them."""
    for factor in (MIX, MIX_TAIL):
        key = (key ^ (key >> np.uint64(33))) * np.uint64(factor)
    return key ^ (key >> np.uint64(33))


def tie_groups(ptr: Int64, score: NDArray[np.floating]) -> tuple[Int64, Int64]:
    """Where two or more rows of a query share their score: the first row of each group and the row after its last.

    Rows are in result order, those of query q from ptr[q] to ptr[q + 1].
    """
    same = np.zeros(len(score) + 2, np.bool_)  # same[i + 1]: row i ties with the row before it
    if len(score) > 1:
        np.equal(score[1:], score[:-1], out=same[2:-1])
        same[ptr + 1] = False
    edges = np.flatnonzero(same[1:] != same[:-1])
    return edges[0::2] - 1, edges[1::2]


def tied(ptr: Int64, groups: tuple[Int64, Int64]) -> Int32:
    """How many rows of each query share their score with another row of it; groups: see tie_groups."""
    begin, end = groups
    owner = np.searchsorted(ptr, begin, side="right") - 1
    return np.bincount(owner, end - begin, len(ptr) - 1).astype(np.int32)


def tied_beyond(ptr: Int64, score: NDArray[np.floating], k: int) -> NDArray[np.bool_]:
    """Whether the k-th score of each query goes on beyond k: bool[Q]; rows in result order, q from ptr[q]."""
    longer = np.flatnonzero(np.diff(ptr) > k)
    goes_on = np.zeros(len(ptr) - 1, np.bool_)
    last = ptr[longer] + k
    goes_on[longer] = score[last - 1] == score[last]
    return goes_on


def tied_at_end(ptr: Int64, groups: tuple[Int64, Int64]) -> NDArray[np.bool_]:
    """Whether the last rows of each query share their score: bool[Q]; groups: see tie_groups."""
    ends = np.zeros(int(ptr[-1]) + 1, np.bool_)
    ends[groups[1]] = True
    return ends[ptr[1:]] & (np.diff(ptr) > 0)


def cut_in_ties(length: NDArray[np.integer], tied_end: NDArray[np.bool_]) -> tuple[int, int]:
    """(k, how many rankings of k documents end in a tie), where at least half of the rankings, and two, end at k, the
    longest of them; (0, 0) elsewhere. Whether equal scores follow is not seen.

    length: documents of each; tied_end: see tied_at_end.
    """
    k = int(length.max(initial=0))
    at_k = length == k
    if int(at_k.sum()) < max(2, np.count_nonzero(length) / 2):
        return 0, 0
    return k, int((at_k & tied_end).sum())


def ranks(ptr: Int64) -> Int64:
    """The rank of each row within its query, from 1; those of query q are the rows from ptr[q] to ptr[q + 1]."""
    return np.arange(1, int(ptr[-1]) + 1) - np.repeat(ptr[:-1], np.diff(ptr))


def close_as_floats(ptr: Int64, score: Float64) -> tuple[Int64, Int64]:
    """The rows with a score that is another's of their query as floats, but not as doubles, and the group of each.

    Rows are in the order "trec", those of query q from ptr[q] to ptr[q + 1]; rows of a group follow each other.
    """
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    neighbours = single[1:] == single[:-1]
    neighbours &= score[1:] != score[:-1]
    if not neighbours.any():  # as in most runs
        return np.empty(0, np.int64), np.empty(0, np.int64)
    begin, end = tie_groups(ptr, single)
    close = score[begin] != score[end - 1]
    return stretches(begin[close], end[close])


def float_ranks(ptr: Int64, close: tuple[Int64, Int64], documents: Strings) -> Int32 | None:
    """The rank of each row by the order "trec9"; None where it is that of "trec" throughout.

    close: see close_as_floats; documents: the identifiers of those rows.
    """
    row, group = close
    place = np.empty(len(row), np.int64)
    place[descending_bytes(documents)] = np.arange(len(row))
    rank = ranks(ptr).astype(np.int32)
    float_rank = rank.copy()
    float_rank[row[np.lexsort((place, group))]] = rank[row]
    return None if (float_rank == rank).all() else float_rank
