"""Search by postings, skipping terms that cannot lift a document into the top k."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weir.kernels.arrays import Float64, Int32, Int64
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.packed import HALF, ListImpacts, Lists, UInt16, first_at, impact_at, impacts_of
from weir.kernels.inverted.query_plan import (
    QueryTerms,
    SparseQueries,
    enter_window,
    plan,
)
from weir.kernels.inverted.top_k import LOW, Hits, Selection, keep_largest, sort_descending, write_hits
from weir.kernels.jit import jit

_LOOK_UP_POSTINGS = 16  # looking a term up in a document costs as much as adding this many postings
_SUMS_PER_POSTING = 4  # reading this many accumulators in order costs as much as one posting


# `limit` is the next float32 below the k-th best score: a sum at or below it cannot enter the top k after rounding to
# float32. That also absorbs rounding in sums of upper bounds.
class WindowSums(NamedTuple):
    """Scratch memory for the score sums and candidates of a window of documents."""

    acc: Float64
    """float64[documents + 1], zero before and after."""
    bits: Int64
    """`acc` as int64."""
    doc: Int32
    """int32[documents]: candidates; `value` has their sums."""
    value: Float64

    @staticmethod
    def of(documents: int) -> WindowSums:
        """Return zeroed scratch memory for windows of this many documents."""
        acc = np.zeros(documents + 1)
        return WindowSums(acc, acc.view(np.int64), np.empty(documents, np.int32), np.empty(documents))


@jit
def _add(
    number: UInt16, own: ListImpacts, low: int, high: int, weight: float, acc: Float64, origin: np.uint64
) -> None:
    for p in range(np.uint64(low), np.uint64(high)):
        acc[np.uint64(number[p]) - origin] += weight * np.float64(impact_at(own, p))


@jit
def _add_to_found(
    number: UInt16, own: ListImpacts, low: int, high: int, weight: float, sums: WindowSums, origin: np.uint64
) -> None:
    acc, bits = sums.acc, sums.bits
    for p in range(np.uint64(low), np.uint64(high)):
        at = np.uint64(number[p]) - origin
        # A product, not a choice of sums, which would become a branch and be mispredicted.
        acc[at] += weight * np.float64(impact_at(own, p)) * (1.0 if bits[at] != 0 else 0.0)


@jit
def _gather_one(
    number: UInt16,
    own: ListImpacts,
    low: int,
    high: int,
    weight: float,
    bar: float,
    sums: WindowSums,
    upper: int,
) -> int:
    n = 0
    for p in range(np.uint64(low), np.uint64(high)):
        v = weight * np.float64(impact_at(own, p))
        if v > bar:
            sums.doc[n] = upper | np.int64(number[p])
            sums.value[n] = v
            n += 1
    return n


@jit
def _near(number: UInt16, acc: Float64, low: int, high: int, origin: np.uint64, bar: float) -> float:
    step = max(1, (high - low) >> 6)
    seen, passed = 0, 0
    for p in range(low, high, step):
        seen += 1
        passed += acc[np.uint64(number[p]) - origin] > bar
    return passed / seen


@jit
def _gather_all(sums: WindowSums, width: int, begin: int, bar: float) -> int:
    acc, bits, cdoc, cval = sums.acc, sums.bits, sums.doc, sums.value
    # Non-negative doubles order as their bits do, and compilers vectorise comparisons of integers.
    acc[width] = bar  # one entry more than there are documents, to read the bar's bits from
    edge = bits[width]
    acc[width] = 0.0
    n = np.uint64(0)
    for b in range(0, width, 64):
        low, high = np.uint64(b), np.uint64(min(b + 64, width))
        some = 0
        for j in range(low, high):
            some |= np.int64(bits[j] > edge)
        if some != 0:
            for j in range(low, high):
                cdoc[n] = begin + np.int64(j)
                cval[n] = acc[j]
                # Adds 1 above the bar without a branch, which would be mispredicted half the time.
                n += np.uint64(edge - bits[j]) >> np.uint64(63)
    for j in range(np.uint64(width)):
        acc[j] = 0.0
    return np.int64(n)


@jit
def _gather_listed(
    number: UInt16, low: int, high: int, begin: int, bar: float, sums: WindowSums, n: int
) -> int:
    acc, cdoc, cval, origin, upper = sums.acc, sums.doc, sums.value, np.uint64(begin & HALF), begin & ~HALF
    for p in range(np.uint64(low), np.uint64(high)):
        at = np.uint64(number[p]) - origin
        v = acc[at]
        acc[at] = 0.0
        if v > bar:
            cdoc[n] = upper | np.int64(number[p])
            cval[n] = v
            n += 1
    return n


@jit
def _look_up(
    lists: Lists, bounds: BlockBounds, terms: QueryTerms, i: int, rest: float, limit: float, sums: WindowSums, n: int
) -> int:  # fmt: skip
    offset, peak, low, cdoc, cval = bounds.offset, bounds.peak, lists.low, sums.doc, sums.value
    start, now, stop, ranges, shift = (
        terms.start[i], terms.now[i], terms.stop[i], terms.ranges[i], terms.shift[i],
    )  # fmt: skip
    own = impacts_of(lists, terms.levels[i], terms.first[i], terms.table[i])
    weight, bound = terms.weight[i], terms.bound[i]
    m = 0
    for c in range(n):
        v = cval[c]
        if v + bound + rest <= limit:
            continue
        d = np.int64(cdoc[c])
        half = np.uint16(d & HALF)
        if ranges >= 0:
            r = ranges + (d >> shift)
            if v + weight * np.float64(peak[r]) + rest <= limit:
                continue
            p, end = start + np.int64(offset[r]), start + np.int64(offset[r + 1])
            while p < end and low[p] < half:
                p += 1
        else:
            p, end = first_at(low, now, stop, half), stop
        if p < end and low[p] == half:
            v += weight * np.float64(impact_at(own, np.uint64(p)))
        if v + rest > limit:
            cdoc[m] = d
            cval[m] = v
            m += 1
    return m


@jit
def _score_window(
    lists: Lists, bounds: BlockBounds, terms: QueryTerms, live: Int64, n_live: int, begin: int, width: int,
    limit: float, sums: WindowSums,
) -> int:  # fmt: skip
    low, now, stop, weight, origin = lists.low, terms.now, terms.stop, terms.weight, np.uint64(begin & HALF)
    needed, rest = n_live, 0.0
    while needed > 0 and rest + terms.bound[live[needed - 1]] <= limit:
        needed -= 1
        rest += terms.bound[live[needed]]
    if needed == 0:
        return 0
    touched = 0
    for x in range(needed):
        touched += stop[live[x]] - now[live[x]]
    # Reading the whole window in order beats reading the lists again once they are long.
    total = 0
    for x in range(n_live):
        size = stop[live[x]] - now[live[x]]
        total += size if x < needed or size <= _LOOK_UP_POSTINGS * touched else 0
    dense = total * _SUMS_PER_POSTING > width
    added = needed
    n = int(np.int64(0))  # a literal 0 would compile functions of n a second time
    if needed > 1 or (n_live > 1 and stop[live[1]] - now[live[1]] < _LOOK_UP_POSTINGS * touched):
        for x in range(needed):
            i = live[x]
            own = impacts_of(lists, terms.levels[i], terms.first[i], terms.table[i])
            _add(low, own, now[i], stop[i], weight[i], sums.acc, origin)
        # Other terms are added to the documents found when that is cheaper than looking them up.
        while added < n_live:
            i = live[added]
            size = stop[i] - now[i]
            if size > touched:
                share = _near(low, sums.acc, now[live[0]], stop[live[0]], origin, limit - rest)
                if size > _LOOK_UP_POSTINGS * share * touched:
                    break
            own = impacts_of(lists, terms.levels[i], terms.first[i], terms.table[i])
            if dense:
                _add(low, own, now[i], stop[i], weight[i], sums.acc, origin)
            else:
                _add_to_found(low, own, now[i], stop[i], weight[i], sums, origin)
            added += 1
            rest = max(rest - terms.bound[i], 0.0)
        if dense:
            n = _gather_all(sums, width, begin, limit - rest)
        else:
            for x in range(needed):
                i = live[x]
                n = _gather_listed(low, now[i], stop[i], begin, limit - rest, sums, n)
    else:
        i = live[0]
        own = impacts_of(lists, terms.levels[i], terms.first[i], terms.table[i])
        n = _gather_one(low, own, now[i], stop[i], weight[i], limit - rest, sums, begin & ~HALF)
    for x in range(added, n_live):
        if n > 0:
            rest = max(rest - terms.bound[live[x]], 0.0)
            n = _look_up(lists, bounds, terms, live[x], rest, limit, sums, n)
    return n


@jit
def search_by_postings(
    n_docs: int, lists: Lists, bounds: BlockBounds, queries: SparseQueries, k: int, rank: int, window: int,
    sums: WindowSums, best: Selection, terms: QueryTerms, live: Int64, hits: Hits,
) -> int:  # fmt: skip
    """Write each query's k best documents to `hits`; return 0, or 1 without searching if a weight is negative
    or not finite.

    rank: column of `bounds.top` for this k, 0 for none.
    window: binary logarithm of a window's documents.
    best: scratch for more than k keys.
    sums, terms, live: scratch.
    """
    for j in range(queries.ptr[0], queries.ptr[len(queries.ptr) - 1]):
        if not 0.0 <= queries.weight[j] < np.inf:
            return 1
    width, keys, spare = 1 << window, best.keys, best.spare
    for q in range(len(queries.ptr) - 1):
        n_terms, limit = plan(lists, bounds, queries, q, rank, terms, best)
        n_keys, least = int(np.int64(0)), np.int64(-1)
        for begin in range(0, n_docs if n_terms > 0 else 0, width):
            finish = min(begin + width, n_docs)
            n_live, total = enter_window(lists, bounds.offset, terms, n_terms, finish, n_docs, live)
            n = 0
            if total > limit:
                n = _score_window(
                    lists, bounds, terms, live, n_live, begin, finish - begin, limit, sums
                )  # fmt: skip
            for c in range(n):
                best.number[0] = np.float32(sums.value[c])
                key = (np.int64(best.bits[0]) << 32) | (LOW - np.int64(sums.doc[c]))
                if key > least and best.bits[0] > 0:
                    keys[n_keys] = key
                    n_keys += 1
                    if n_keys == len(keys):
                        least = keep_largest(keys, spare, n_keys, k, best.counts)
                        n_keys = k
            if n_keys > k + (k >> 3) and finish < n_docs:
                least = keep_largest(keys, spare, n_keys, k, best.counts)
                n_keys = k
            if least >= 0:
                best.bits[0] = np.uint32((least >> 32) - 1)
                limit = max(limit, np.float64(best.number[0]))
            for i in range(n_terms):
                terms.now[i] = terms.stop[i]
        if n_keys > k:
            keep_largest(keys, spare, n_keys, k, best.counts)
            n_keys = k
        sort_descending(keys, spare, n_keys, best.counts)
        write_hits(best, n_keys, q, hits)
    return 0
