"""The order of results: descending score, then descending document id, as in trec_eval."""

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
"""Seed of the order of documents without scores."""


def compared(score: Float64, ties: Ties = "trec") -> Float64:
    """Return the scores to order by, float64[n]: unchanged, or rounded to 32-bit floats for "trec9". Raises BadValue
    for another rule.
    """
    if ties not in TIES:
        raise BadValue(f"ties is '{ties}'; expected one of {', '.join(TIES)}")
    if ties == "trec":
        return score
    with np.errstate(over="ignore"):  # beyond a float's range scores are infinite, as in trec_eval 9
        return score.astype(np.float32).astype(np.float64)


def ranked(query: NDArray[np.integer], score: Float64, tie_rank: NDArray[np.integer]) -> Int64:
    """Return row numbers sorted by query, descending score and tie rank, int64[n]."""
    return settled(by_score(query, score), query, score, lambda rows: tie_rank[rows])


def by_score(query: NDArray[np.integer], score: Float64) -> Int64:
    """Return row numbers sorted by query and descending score, int64[n]; ties stay in row order."""
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
    """Return row numbers with tied rows sorted by tie rank, int64[n].

    order: row numbers sorted by query and score.
    tie_rank_of: returns the tie ranks of row numbers.
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
    """Return row numbers sorted by query, descending score and tie rank, int64[n].

    query: of each row, ascending.
    tie_rank_of: returns the tie ranks of row numbers.
    """
    order = np.argsort(-score)  # ties are settled below, so it need not be stable
    few = len(query) == 0 or int(query[-1]) < 2**16
    number = query.astype(np.uint16) if few else query
    return settled(order[np.argsort(number[order], kind="stable")], query, score, tie_rank_of)


def is_ordered(query: NDArray[np.integer], score: Float64) -> bool:
    """Return True if rows are sorted by query, then strictly descending score."""
    falls = score[1:] < score[:-1]
    return bool(np.all((query[1:] > query[:-1]) | ((query[1:] == query[:-1]) & falls)))


def best_of(score: Float64, tie_rank: Int32, k: int) -> Int32:
    """Return the k documents of highest score above 0, best first, int32[at most k]; ties by ascending tie rank."""
    matching = np.flatnonzero(score > 0)
    if len(matching) > k:
        kth = np.partition(score[matching], len(matching) - k)[len(matching) - k]
        matching = matching[score[matching] >= kth]
    order = np.lexsort((tie_rank[matching], -score[matching]))[:k]
    return matching[order].astype(np.int32)


def drawn_keys(
    queries: Strings, documents: Strings, query: NDArray[np.integer], doc: NDArray[np.integer]
) -> NDArray[np.uint64]:
    """Return a reproducible pseudo-random sort key for each row, uint64[n].

    query, doc: positions of each row's identifiers in `queries` and `documents`.
    """
    of_query, of_document = (
        hash_strings(names.data, names.ptr[:-1], names.lengths()) for names in (queries, documents)
    )
    with np.errstate(over="ignore"):
        key = _mixed(of_query + np.uint64(DRAW_SEED))[query] ^ of_document[doc]
        return _mixed(key)


def _mixed(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for factor in (MIX, MIX_TAIL):
        key = (key ^ (key >> np.uint64(33))) * np.uint64(factor)
    return key ^ (key >> np.uint64(33))


def tie_groups(ptr: Int64, score: NDArray[np.floating]) -> tuple[Int64, Int64]:
    """Return (first, end) row of each group of adjacent equal scores within a query, int64 each; `ptr` has the
    queries' row offsets.
    """
    same = np.zeros(len(score) + 2, np.bool_)  # same[i + 1]: row i ties with the row before it
    if len(score) > 1:
        np.equal(score[1:], score[:-1], out=same[2:-1])
        same[ptr + 1] = False
    edges = (same[1:] != same[:-1]).nonzero()[0]
    return edges[0::2] - 1, edges[1::2]


def tied(ptr: Int64, groups: tuple[Int64, Int64]) -> Int32:
    """Return each query's number of tied rows, int32[Q]; `groups` is from `tie_groups`."""
    begin, end = groups
    owner = np.searchsorted(ptr, begin, side="right") - 1
    return np.bincount(owner, end - begin, len(ptr) - 1).astype(np.int32)


def tied_beyond(ptr: Int64, score: NDArray[np.floating], k: int) -> NDArray[np.bool_]:
    """Return True for each query whose ranks k and k + 1 are tied, bool[Q]; `score` is in rank order."""
    longer = np.flatnonzero(np.diff(ptr) > k)
    goes_on = np.zeros(len(ptr) - 1, np.bool_)
    last = ptr[longer] + k
    goes_on[longer] = score[last - 1] == score[last]
    return goes_on


def tied_at_end(ptr: Int64, groups: tuple[Int64, Int64]) -> NDArray[np.bool_]:
    """Return True for each query whose last two documents are tied, bool[Q]; `groups` is from `tie_groups`."""
    ends = np.zeros(int(ptr[-1]) + 1, np.bool_)
    ends[groups[1]] = True
    return ends[ptr[1:]] & (np.diff(ptr) > 0)


def cut_in_ties(length: NDArray[np.integer], tied_end: NDArray[np.bool_]) -> tuple[int, int]:
    """Return (k, number of rankings of length k that end within a tie), with k the greatest length.

    (0, 0) if none does, or fewer than two, or than half of the nonempty rankings, have length k.
    """
    if not np.count_nonzero(tied_end):
        return 0, 0
    k = int(length.max(initial=0))
    at_k = length == k
    if int(at_k.sum()) < max(2, np.count_nonzero(length) / 2):
        return 0, 0
    return k, int((at_k & tied_end).sum())


def ranks(ptr: Int64) -> Int64:
    """Return each row's rank within its query, from 1, int64[n]; `ptr` has the queries' row offsets."""
    return np.arange(1, int(ptr[-1]) + 1) - np.repeat(ptr[:-1], np.diff(ptr))


def close_as_floats(ptr: Int64, score: Float64) -> tuple[Int64, Int64]:
    """Return (row, tie group) of rows, in order "trec", whose scores tie as 32-bit floats but not as doubles, int64
    each.
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
    """Return each row's rank in order "trec9", int32[n]; None if equal to order "trec".

    ptr: row offsets of the queries.
    close: from `close_as_floats`.
    documents: identifiers of the rows in `close`.
    """
    row, group = close
    place = np.empty(len(row), np.int64)
    place[descending_bytes(documents)] = np.arange(len(row))
    rank = ranks(ptr).astype(np.int32)
    float_rank = rank.copy()
    float_rank[row[np.lexsort((place, group))]] = rank[row]
    return None if (float_rank == rank).all() else float_rank
