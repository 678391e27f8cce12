"""Plan a query: its posting lists by decreasing bound, and their postings in a window of documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weir.kernels.arrays import Float32, Float64, Int32, Int64
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.packed import HALF, Lists, UInt16, first_at, starts_of
from weir.kernels.inverted.top_k import LOW, Selection, sort_descending
from weir.kernels.jit import jit


class Postings(NamedTuple):
    """An inverted index of few documents: term t has entries ptr[t]:ptr[t + 1] of doc (ascending) and impact."""

    ptr: Int64
    doc: Int32
    impact: Float32


class SparseQueries(NamedTuple):
    """Queries as weighted terms: query q has entries ptr[q]:ptr[q + 1] of term and weight."""

    ptr: Int64
    term: Int32
    weight: Float32


class QueryTerms(NamedTuple):
    """Scratch for a query's posting lists, by decreasing bound; arrays are as long as the longest query."""

    start: Int64
    """The list has the postings start..end-1."""
    end: Int64
    now: Int64
    """Its postings in the window are now..stop-1."""
    stop: Int64
    ranges: Int64
    """First range in `offset` and `peak` of the block bounds; -1 for none."""
    shift: Int64
    """As `BlockBounds.shift`."""
    levels: Int64
    """Number of its distinct impacts, 0 for a list without codes."""
    first: Int64
    """Posting p has its code, or the upper half of its document, at first + p."""
    table: Int64
    """Posting p has the impact value[table + its code], without codes value[table + p]."""
    order: Int64
    """Scratch, as are `number`, `column`, `merged_weight` and `merged_bound`; number[order[i] & LOW] is the
    i-th term."""
    number: Int64
    column: Int64
    weight: Float64
    bound: Float64
    """Largest contribution to a score."""
    merged_weight: Float64
    merged_bound: Float64

    @staticmethod
    def of(longest: int) -> QueryTerms:
        """Return unfilled arrays for queries of up to `longest` terms."""
        return QueryTerms(*np.empty((12, longest), np.int64), *np.empty((4, longest)))


@jit
def plan(
    lists: Lists,
    bounds: BlockBounds,
    queries: SparseQueries,
    q: int,
    rank: int,
    terms: QueryTerms,
    best: Selection,
) -> tuple[int, float]:
    """Write query q's posting lists to `terms`; return (number of lists, lower bound of the k-th best score).

    Unknown terms and weights of 0 are left out; repeated terms are merged.

    rank: column of `bounds.top` for this k, 0 for none.
    best: scratch.
    """
    first, ptr = queries.ptr[q], lists.ptr
    n = int(np.int64(0))  # a literal 0 would compile functions of n a second time
    for j in range(first, queries.ptr[q + 1]):
        t = queries.term[j]
        if 0 <= t < len(ptr) - 1 and queries.weight[j] > 0 and ptr[t] < ptr[t + 1]:
            terms.order[n] = (np.int64(t) << 32) | (j - first)
            n += 1
    sort_descending(terms.order, terms.number, n, best.counts)
    m, before = 0, np.int64(-1)
    for i in range(n):
        t, w = terms.order[i] >> 32, np.float64(queries.weight[first + (terms.order[i] & LOW)])
        if t == before:
            terms.merged_weight[m - 1] += w
        else:
            terms.number[m], terms.merged_weight[m] = t, w
            m += 1
        before = t
    limit = 0.0
    for i in range(m):
        t, w = terms.number[i], terms.merged_weight[i]
        row = np.int64(bounds.listed[t])
        if row >= 0:
            most = bounds.top[row, 0]
            if rank > 0:
                # k documents have at least this score, so a lower one cannot be among the best k.
                best.number[0] = np.float32(w * np.float64(bounds.top[row, rank]))
                if best.bits[0] > 0:
                    best.bits[0] -= np.uint32(1)
                    limit = max(limit, np.float64(best.number[0]))
        else:
            most = np.float32(0)
            for p in range(lists.table[t], lists.table[t] + ptr[t + 1] - ptr[t]):
                most = max(most, lists.value[p])  # such a short list has no codes
        terms.merged_bound[i] = w * np.float64(most)
        best.number[0] = np.float32(terms.merged_bound[i])
        terms.order[i] = (np.int64(best.bits[0]) << 32) | i
    # `order` now sorts by bound; `number` keeps the terms, so the sort takes an array not filled in yet.
    sort_descending(terms.order, terms.start, m, best.counts)
    for i in range(m):
        at = terms.order[i] & LOW
        t = terms.number[at]
        row = np.int64(bounds.listed[t])
        terms.start[i], terms.end[i], terms.now[i] = ptr[t], ptr[t + 1], ptr[t]
        terms.levels[i] = lists.levels[t]
        terms.first[i], terms.table[i] = starts_of(lists, t)
        terms.ranges[i], terms.shift[i] = -1, 0
        if row >= 0 and bounds.shift[row] != 255:
            terms.ranges[i], terms.shift[i] = bounds.base[row], np.int64(bounds.shift[row])
        terms.weight[i], terms.bound[i] = terms.merged_weight[at], terms.merged_bound[at]
    return m, limit


@jit
def stop_in_ranges(number: UInt16, offset: Int32, start: int, ranges: int, shift: int, finish: int) -> int:
    """Return the end of a list's postings of documents below `finish`, which is not the last.

    offset: see `BlockBounds`.
    start, ranges, shift: see `QueryTerms`.
    """
    r = ranges + (finish >> shift)
    stop = start + np.int64(offset[r])
    if finish >> shift << shift != finish:
        stop = first_at(number, stop, start + np.int64(offset[r + 1]), np.uint16(finish & HALF))
    return stop


@jit
def stop_in_whole(number: UInt16, upper: UInt16, first: int, p: int, end: int, finish: int) -> int:
    """Return the end of postings p..end-1 of documents below `finish`, in a list without ranges."""
    while p < end and (np.int64(upper[first + p]) << 16 | np.int64(number[p])) < finish:
        p += 1
    return p


@jit
def enter_window(
    lists: Lists, offset: Int32, terms: QueryTerms, n_terms: int, finish: int, n_docs: int, live: Int64
) -> tuple[int, float]:
    """Set `terms.stop` to each list's end before document `finish`; return (lists with postings before it, sum
    of their bounds).

    live: receives the numbers of these lists, by decreasing bound.
    """
    n_live, total = 0, 0.0
    for i in range(n_terms):
        if finish == n_docs or terms.now[i] == terms.end[i]:
            terms.stop[i] = terms.end[i]
        elif terms.ranges[i] >= 0:
            terms.stop[i] = stop_in_ranges(
                lists.low, offset, terms.start[i], terms.ranges[i], terms.shift[i], finish
            )
        else:
            terms.stop[i] = stop_in_whole(
                lists.low, lists.high, terms.first[i], terms.now[i], terms.end[i], finish
            )
        if terms.stop[i] > terms.now[i]:
            live[n_live] = i
            n_live += 1
            total += terms.bound[i]
    return n_live, total
