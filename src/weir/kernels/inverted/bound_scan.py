"""Search by upper bounds of all scores, then exact scores of the few candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Bytes, Float32, Float64, Int32, Int64
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.packed import HALF, ListImpacts, Lists, UInt16, first_whole, impact_at, impacts_of
from weir.kernels.inverted.query_plan import QueryTerms, SparseQueries, plan, stop_in_ranges, stop_in_whole
from weir.kernels.inverted.top_k import LOW, Hits, Selection, keep_largest, sort_descending, write_hits
from weir.kernels.jit import jit

_LEAST_BOUND, _LARGEST_BOUND = (
    1e-25,
    1e25,
)  # bounds of a term beyond these are left to the search that computes in double


# Learned weights leave MaxScore little to skip, since most query terms are frequent and none decides alone. So every
# document gets an upper bound of its score in float32: frequent terms add a column of bytes in document order, the
# others their postings. Documents stay if their bound exceeds the k-th largest bound minus the maximal excess of
# bounds over scores. Exact scores of these are computed in the order of maxscore.py, so that every bit is equal.
class BoundSums(NamedTuple):
    """Scratch memory for the bounds of a window of documents and for candidates."""

    acc: Float32
    """float32[window], zero before and after."""
    bits: Int32
    """`acc` as int32."""
    weight: Float32
    """float32[longest query]: factor of a list's impacts or of its column's bytes."""
    other: Int64
    """int64[room], room above k; `doc` int32 and `value` float64 are as long."""
    doc: Int32
    value: Float64

    @staticmethod
    def of(documents: int, longest: int, room: int) -> BoundSums:
        """Return scratch memory for windows of `documents`, queries of `longest` terms, and `room` candidates."""
        acc = np.zeros(documents, np.float32)
        weight, other = np.empty(longest, np.float32), np.empty(room, np.int64)
        return BoundSums(acc, acc.view(np.int32), weight, other, np.empty(room, np.int32), np.empty(room))


@jit
def _column(acc: Float32, one: Bytes, weight: np.float32) -> None:
    for j in range(np.uint64(len(one))):
        acc[j] += weight * np.float32(one[j])


@jit
def _columns(acc: Float32, one: Bytes, weight: np.float32, other: Bytes, also: np.float32) -> None:
    for j in range(np.uint64(len(one))):
        acc[j] += weight * np.float32(one[j]) + also * np.float32(other[j])


@jit
def _postings(
    acc: Float32, number: UInt16, own: ListImpacts, low: int, high: int, weight: np.float32, origin: np.uint64
) -> None:
    for p in range(np.uint64(low), np.uint64(high)):
        acc[np.uint64(number[p]) - origin] += weight * impact_at(own, p)


@jit
def _add_window(
    lists: Lists, offset: Int32, values: Bytes, terms: QueryTerms, n_terms: int, begin: int, finish: int, n_docs: int,
    sums: BoundSums,
) -> None:  # fmt: skip
    acc, weight, waiting, origin = sums.acc, sums.weight, np.int64(-1), np.uint64(begin & HALF)
    for i in range(n_terms):
        if terms.column[i] >= 0:
            if waiting < 0:
                waiting = i
            else:
                one, other = values[terms.column[waiting]], values[terms.column[i]]
                _columns(acc, one, weight[waiting], other, weight[i])
                waiting = np.int64(-1)
            continue
        p, end = terms.now[i], terms.end[i]
        if finish == n_docs or p == end:
            stop = end
        elif terms.ranges[i] >= 0:
            stop = stop_in_ranges(lists.low, offset, terms.start[i], terms.ranges[i], terms.shift[i], finish)
        else:
            stop = stop_in_whole(lists.low, lists.high, terms.first[i], p, end, finish)
        own = impacts_of(lists, terms.levels[i], terms.first[i], terms.table[i])
        _postings(acc, lists.low, own, terms.now[i], stop, weight[i], origin)
        terms.now[i] = stop
    if waiting >= 0:
        _column(acc, values[terms.column[waiting]], weight[waiting])


@jit
def _above(kth: float, gap: float, share: float) -> float:
    return (kth * (1.0 - share) - gap) * (1.0 - share)


@jit
def _raise(
    best: Selection, other: Int64, n: int, k: int, gap: float, share: float, edge: int
) -> tuple[int, int]:
    keys, spare, number, bits = best.keys, best.spare, best.number, best.bits
    for i in range(n):
        spare[i] = keys[i]
    bits[0] = np.uint32(keep_largest(spare, other, n, k, best.counts) >> 32)
    least = _above(np.float64(number[0]), gap, share)
    if least > 0.0:
        number[0] = np.float32(least)
        edge = max(edge, np.int64(bits[0]) - 2)
    m = np.int64(0)
    for i in range(n):
        v = keys[np.uint64(i)]
        keys[np.uint64(m)] = v
        m += np.int64((v >> 32) > edge)
    return m, edge


@jit
def _prepare(columns: ByteBounds, terms: QueryTerms, n_terms: int, weight: Float32) -> float:
    gap = 0.0
    for i in range(n_terms):
        if not _LEAST_BOUND < terms.bound[i] < _LARGEST_BOUND:
            return -1.0
        c = np.int64(columns.number[terms.number[terms.order[i] & LOW]])
        terms.column[i] = c
        weight[i] = np.float32(terms.weight[i])
        if c >= 0:
            weight[i] = np.float32(terms.weight[i] * np.float64(columns.step[c]))
            gap += terms.weight[i] * np.float64(columns.step[c])
    return gap


@jit
def _exact(
    lists: Lists, offset: Int32, values: Bytes, terms: QueryTerms, n_terms: int, best: Selection, n: int,
    sums: BoundSums,
) -> None:  # fmt: skip
    low, keys, cdoc, cval = lists.low, best.keys, sums.doc, sums.value
    window = np.int64(values.shape[2])
    for i in range(n):
        keys[i] &= LOW
    sort_descending(keys, best.spare, n, best.counts)
    for c in range(n):
        cdoc[c], cval[c] = LOW - keys[c], 0.0
    for i in range(n_terms):
        start, stop, ranges, shift = terms.start[i], terms.end[i], terms.ranges[i], terms.shift[i]
        first = terms.first[i]
        own = impacts_of(lists, terms.levels[i], first, terms.table[i])
        column, weight = terms.column[i], terms.weight[i]
        for c in range(n):
            d = np.int64(cdoc[c])
            half = np.uint16(d & HALF)
            if column >= 0 and values[d // window, column, d % window] == 0:
                continue
            if ranges >= 0:
                r = ranges + (d >> shift)
                p, end = start + np.int64(offset[r]), start + np.int64(offset[r + 1])
                while p < end and low[p] < half:
                    p += 1
            else:
                p = first_whole(low, lists.high, first, start, stop, d)
                end = stop if p < stop and np.int64(lists.high[first + p]) == d >> 16 else p
            if p < end and low[p] == half:
                cval[c] += weight * np.float64(impact_at(own, np.uint64(p)))


@jit
def _gather(
    sums: BoundSums,
    best: Selection,
    begin: int,
    finish: int,
    n: int,
    k: int,
    gap: float,
    share: float,
    edge: int,
) -> tuple[int, int]:
    acc, bits, keys = sums.acc, sums.bits, best.keys
    e = np.int32(edge)
    for block in range(0, finish - begin, 64):
        low, high = np.uint64(block), np.uint64(min(block + 64, finish - begin))
        # Positive floats order as their bits do, and compilers vectorise comparisons of integers.
        some = np.int32(0)
        for j in range(low, high):
            some = np.int32(some | np.int32(bits[j] > e))
        if some == 0:
            continue
        if n + 64 > len(keys):
            n, edge = _raise(best, sums.other, n, k, gap, share, edge)
            e = np.int32(edge)
            if n + 64 > len(keys):
                n = np.int64(-1)
                break
        for j in range(low, high):
            # Written either way and kept by counting: a branch would be mispredicted every other time.
            keys[np.uint64(n)] = (np.int64(bits[j]) << 32) | (LOW - (begin + np.int64(j)))
            n += np.int64(bits[j] > e)
    for j in range(np.uint64(len(acc))):
        acc[j] = np.float32(0.0)
    return n, edge


@jit
def _write(best: Selection, sums: BoundSums, n: int, k: int, q: int, hits: Hits) -> None:
    keys, m = best.keys, np.int64(0)
    for i in range(n):
        best.number[0] = np.float32(sums.value[i])
        keys[m] = (np.int64(best.bits[0]) << 32) | (LOW - np.int64(sums.doc[i]))
        m += np.int64(best.bits[0] > 0)
    if m > k:
        keep_largest(keys, best.spare, m, k, best.counts)
        m = np.int64(k)
    sort_descending(keys, best.spare, m, best.counts)
    write_hits(best, m, q, hits)


@jit
def search_by_bounds(
    n_docs: int, lists: Lists, bounds: BlockBounds, columns: ByteBounds, queries: SparseQueries, k: int,
    rank: int, window: int, sums: BoundSums, best: Selection, terms: QueryTerms, hits: Hits, left: NDArray[np.bool_],
) -> int:  # fmt: skip
    """Write each query's k best documents to `hits`; return 0, or 1 without searching if a weight is negative
    or not finite.

    rank: column of `bounds.top` for this k, 0 for none.
    window: binary logarithm of a window's documents.
    sums, best, terms: scratch.
    left: filled with True for queries that were not searched: too many candidates, or no bounds.
    """
    for j in range(queries.ptr[0], queries.ptr[len(queries.ptr) - 1]):
        if not 0.0 <= queries.weight[j] < np.inf:
            return 1
    offset, values = bounds.offset, columns.values
    for q in range(len(queries.ptr) - 1):
        n_terms, limit = plan(lists, bounds, queries, q, rank, terms, best)
        gap = _prepare(columns, terms, n_terms, sums.weight)
        share = (n_terms + 8) * 2.0**-21  # far more than so many sums and products round
        best.number[0] = np.float32(max(0.0, limit * (1.0 - share)))
        n, edge, enough = np.int64(0), max(np.int64(0), np.int64(best.bits[0]) - 2), np.int64(2 * k + 32)
        if gap < 0.0:
            n = np.int64(-1)
        for begin in range(0, n_docs if n_terms > 0 else 0, 1 << window):
            if n < 0:
                break
            finish = min(begin + (1 << window), n_docs)
            _add_window(lists, offset, values[begin >> window], terms, n_terms, begin, finish, n_docs, sums)
            n, edge = _gather(sums, best, begin, finish, n, k, gap, share, edge)
            if n > enough:
                n, edge = _raise(best, sums.other, n, k, gap, share, edge)
                enough = n + (n >> 1) + 32
        left[q] = n < 0
        if n > k:
            n, edge = _raise(best, sums.other, n, k, gap, share, edge)
        if n >= 0:
            _exact(lists, offset, values, terms, n_terms, best, n, sums)
            _write(best, sums, n, k, q, hits)
    return 0
