"""The compiled search: windows of documents, essential terms, a rising limit. See search.py for the whole.

Throughout, `limit` is a value at or under which no sum may stay if, rounded to float32, it is to be among
the best k: the next float32 below the k-th best score. That also absorbs rounding in sums of upper bounds.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.select import keep_largest, sort_descending

__all__ = ["search_chunk"]

Bytes: TypeAlias = NDArray[np.uint8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]

_LOOK_UP = 16  # looking a term up in a document costs as much as adding this many postings
_DENSE = 4  # reading this many accumulators in order costs as much as one posting
_LOW = 0xFFFFFFFF


@jit
def _first_at(doc: Int32, low: int, high: int, number: int) -> int:
    """First position in doc[low:high] holding at least `number`; doubles its steps, as it is usually near."""
    step = 1
    while low + step < high and doc[low + step] < number:
        low += step
        step += step
    if low + step < high:
        high = low + step
    while low < high:
        middle = (low + high) >> 1
        if doc[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _plan(
    ptr: Int64,
    impact: Float32,
    listed: Int32,
    top: Float32,
    shift: Bytes,
    base: Int64,
    qterm: Int32,
    qweight: Float32,
    first: int,
    last: int,
    rank: int,
    window: int,
    order: Int64,
    spare: Int64,
    counts: Int64,
    term: Int64,
    value: Float64,
    f32: Float32,
    u32: NDArray[np.uint32],
) -> tuple[int, float]:
    """The query's lists by decreasing largest contribution: (how many, first limit).

    Fills term (rows: start, end, now, stop, first range or -1, shift) and value (rows: weight, bound).
    """
    n = 0
    for j in range(first, last):
        t = qterm[j]
        if 0 <= t < len(ptr) - 1 and qweight[j] > 0 and ptr[t] < ptr[t + 1]:
            order[n] = (np.int64(t) << 32) | (j - first)
            n += 1
    sort_descending(order, spare, n, counts)
    m, before = 0, np.int64(-1)
    for i in range(n):
        t, w = order[i] >> 32, np.float64(qweight[first + (order[i] & _LOW)])
        if t == before:
            spare[m - 1] = t
            value[2, m - 1] += w
        else:
            spare[m] = t
            value[2, m] = w
            m += 1
        before = t
    limit = 0.0
    for i in range(m):
        t, w = spare[i], value[2, i]
        row = np.int64(listed[t])
        if row >= 0:
            most = top[row, 0]
            if rank > 0:
                # k documents have at least this score, so a lower one cannot be among the best k.
                f32[0] = np.float32(w * np.float64(top[row, rank]))
                if u32[0] > 0:
                    u32[0] -= np.uint32(1)
                    limit = max(limit, np.float64(f32[0]))
        else:
            most = np.float32(0)
            for p in range(ptr[t], ptr[t + 1]):
                most = max(most, impact[p])
        value[3, i] = w * np.float64(most)
        f32[0] = np.float32(value[3, i])
        order[i] = (np.int64(u32[0]) << 32) | i
    # `order` now sorts by bound; spare keeps the terms, so the sort needs scratch of its own: term's rows.
    sort_descending(order, term[0], m, counts)
    for i in range(m):
        at = order[i] & _LOW
        t = spare[at]
        row = np.int64(listed[t])
        term[0, i], term[1, i], term[2, i] = ptr[t], ptr[t + 1], ptr[t]
        term[4, i], term[5, i] = -1, 0
        if row >= 0 and shift[row] <= window:
            term[4, i], term[5, i] = base[row], np.int64(shift[row])
        value[0, i], value[1, i] = value[2, at], value[3, at]
    return m, limit


@jit
def _near(doc: Int32, acc: Float64, low: int, high: int, origin: np.uint64, bar: float) -> float:
    """Share of a list's documents whose sum passes the bar, from a sample of at most 64."""
    step = max(1, (high - low) >> 6)
    seen, passed = 0, 0
    for p in range(low, high, step):
        seen += 1
        passed += acc[np.uint64(doc[p]) - origin] > bar
    return passed / seen


@jit
def _gather_all(
    acc: Float64, bits: Int64, f64: Float64, i64: Int64, width: int, begin: int, bar: float, cdoc: Int32, cval: Float64
) -> int:
    """Collect the window's sums above the bar in order of documents, and clear it; how many."""
    # Non-negative doubles order as their bits do, and comparing integers is what compilers vectorise.
    f64[0] = bar
    edge = i64[0]
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
    acc[:width] = 0.0
    return np.int64(n)


@jit
def _gather_listed(
    doc: Int32,
    acc: Float64,
    low: int,
    high: int,
    origin: np.uint64,
    bar: float,
    cdoc: Int32,
    cval: Float64,
    n: int,
) -> int:
    """Collect the sums above the bar of one list's documents, and clear them; how many by now."""
    for p in range(np.uint64(low), np.uint64(high)):
        at = np.uint64(doc[p]) - origin
        v = acc[at]
        acc[at] = 0.0
        if v > bar:
            cdoc[n] = doc[p]
            cval[n] = v
            n += 1
    return n


@jit
def _look_up(
    doc: Int32,
    impact: Float32,
    offset: Int32,
    peak: Float32,
    term: Int64,
    i: int,
    weight: float,
    bound: float,
    rest: float,
    limit: float,
    cdoc: Int32,
    cval: Float64,
    n: int,
) -> int:
    """Add term i to the candidates that can still pass the limit and drop the others; how many remain.

    bound: the term's largest contribution; rest: that of the terms after it.
    """
    start, now, stop, blocks, shift = term[0, i], term[2, i], term[3, i], term[4, i], term[5, i]
    m = 0
    for c in range(n):
        v = cval[c]
        if v + bound + rest <= limit:
            continue
        d = cdoc[c]
        if blocks >= 0:
            r = blocks + (np.int64(d) >> shift)
            if v + weight * np.float64(peak[r]) + rest <= limit:
                continue
            p, end = start + np.int64(offset[r]), start + np.int64(offset[r + 1])
            while p < end and doc[p] < d:
                p += 1
        else:
            p, end = _first_at(doc, now, stop, np.int64(d)), stop
        if p < end and doc[p] == d:
            v += weight * np.float64(impact[p])
        if v + rest > limit:
            cdoc[m] = d
            cval[m] = v
            m += 1
    return m


@jit
def _score_window(
    doc: Int32,
    impact: Float32,
    offset: Int32,
    peak: Float32,
    term: Int64,
    value: Float64,
    live: Int64,
    n_live: int,
    begin: int,
    width: int,
    limit: float,
    acc: Float64,
    bits: Int64,
    f64: Float64,
    i64: Int64,
    cdoc: Int32,
    cval: Float64,
) -> int:
    """Exact sums of every document of a window that can pass the limit, into cdoc and cval; how many.

    live[:n_live]: the terms with postings here, by decreasing bound.
    """
    needed, rest = n_live, 0.0
    while needed > 0 and rest + value[1, live[needed - 1]] <= limit:
        needed -= 1
        rest += value[1, live[needed]]
    if needed == 0:
        return 0
    origin = np.uint64(begin)
    touched = 0
    for x in range(needed):
        touched += term[3, live[x]] - term[2, live[x]]
    # Reading the whole window in order beats reading the lists again once they are long.
    total = 0
    for x in range(n_live):
        size = term[3, live[x]] - term[2, live[x]]
        total += size if x < needed or size <= _LOOK_UP * touched else 0
    dense = total * _DENSE > width
    n, added = 0, needed
    if needed > 1 or (n_live > 1 and term[3, live[1]] - term[2, live[1]] < _LOOK_UP * touched):
        for x in range(needed):
            i = live[x]
            w = value[0, i]
            for p in range(np.uint64(term[2, i]), np.uint64(term[3, i])):
                acc[np.uint64(doc[p]) - origin] += w * np.float64(impact[p])
        # Other terms are added to the documents found when that is cheaper than looking them up.
        while added < n_live:
            i = live[added]
            size = term[3, i] - term[2, i]
            if size > touched:
                share = _near(doc, acc, term[2, live[0]], term[3, live[0]], origin, limit - rest)
                if size > _LOOK_UP * share * touched:
                    break
            w = value[0, i]
            if dense:
                for p in range(np.uint64(term[2, i]), np.uint64(term[3, i])):
                    acc[np.uint64(doc[p]) - origin] += w * np.float64(impact[p])
            else:
                for p in range(np.uint64(term[2, i]), np.uint64(term[3, i])):
                    at = np.uint64(doc[p]) - origin
                    # A product, not a choice of sums, which would become a branch and be mispredicted.
                    acc[at] += w * np.float64(impact[p]) * (1.0 if bits[at] != 0 else 0.0)
            added += 1
            rest = max(rest - value[1, i], 0.0)
        if dense:
            n = _gather_all(acc, bits, f64, i64, width, begin, limit - rest, cdoc, cval)
        else:
            for x in range(needed):
                i = live[x]
                n = _gather_listed(doc, acc, term[2, i], term[3, i], origin, limit - rest, cdoc, cval, n)
    else:
        i = live[0]
        w, bar = value[0, i], limit - rest
        for p in range(np.uint64(term[2, i]), np.uint64(term[3, i])):
            v = w * np.float64(impact[p])
            if v > bar:
                cdoc[n] = doc[p]
                cval[n] = v
                n += 1
    for x in range(added, n_live):
        if n > 0:
            i = live[x]
            rest = max(rest - value[1, i], 0.0)
            n = _look_up(
                doc, impact, offset, peak, term, i, value[0, i], value[1, i], rest, limit, cdoc, cval, n
            )
    return n


@jit
def search_chunk(
    n_docs: int,
    ptr: Int64,
    doc: Int32,
    impact: Float32,
    listed: Int32,
    top: Float32,
    shift: Bytes,
    base: Int64,
    offset: Int32,
    peak: Float32,
    qptr: Int64,
    qterm: Int32,
    qweight: Float32,
    k: int,
    rank: int,
    window: int,
    room: int,
    acc: Float64,
    work: Float64,
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
) -> int:
    """Search a chunk of queries; 0, or 1 when a weight is negative or not finite (nothing is searched then).

    rank: the column of `top` for this k (0: none). 1 << window: documents of a window. room: keys collected
    before the best k are selected. acc: 1 << window accumulators, zero before and after. work: scratch, as
    many again, half as many for document numbers, and 2 * room for keys.
    """
    longest = 1
    for q in range(len(qptr) - 1):
        longest = max(longest, qptr[q + 1] - qptr[q])
        for j in range(qptr[q], qptr[q + 1]):
            if not 0.0 <= qweight[j] < np.inf:
                return 1
    width = 1 << window
    cval, cdoc = work[:width], work[width : width + width // 2].view(np.int32)
    tail = work[width + width // 2 :].view(np.int64)
    keys, spare = tail[:room], tail[room : 2 * room]
    bits = acc.view(np.int64)
    counts, live = np.empty(2048, np.int64), np.empty(longest, np.int64)
    order, other = np.empty(longest, np.int64), np.empty(longest, np.int64)
    term, value = np.empty((6, longest), np.int64), np.empty((4, longest), np.float64)
    f32, f64 = np.empty(1, np.float32), np.empty(1, np.float64)
    u32, i64 = f32.view(np.uint32), f64.view(np.int64)
    for q in range(len(qptr) - 1):
        n_terms, limit = _plan(
            ptr,
            impact,
            listed,
            top,
            shift,
            base,
            qterm,
            qweight,
            qptr[q],
            qptr[q + 1],
            rank,
            window,
            order,
            other,
            counts,
            term,
            value,
            f32,
            u32,
        )
        n_keys, least = 0, np.int64(-1)
        for begin in range(0, n_docs if n_terms > 0 else 0, width):
            finish = min(begin + width, n_docs)
            n_live, total = 0, 0.0
            for i in range(n_terms):
                p, end = term[2, i], term[1, i]
                if p == end or doc[p] >= finish:
                    term[3, i] = p
                    continue
                if finish == n_docs:
                    term[3, i] = end
                elif term[4, i] >= 0:
                    term[3, i] = term[0, i] + np.int64(offset[term[4, i] + (finish >> term[5, i])])
                else:
                    term[3, i] = _first_at(doc, p, end, finish)
                live[n_live] = i
                n_live += 1
                total += value[1, i]
            n = 0
            if total > limit:
                n = _score_window(
                    doc,
                    impact,
                    offset,
                    peak,
                    term,
                    value,
                    live,
                    n_live,
                    begin,
                    finish - begin,
                    limit,
                    acc,
                    bits,
                    f64,
                    i64,
                    cdoc,
                    cval,
                )
            for c in range(n):
                f32[0] = np.float32(cval[c])
                key = (np.int64(u32[0]) << 32) | (_LOW - np.int64(cdoc[c]))
                if key > least and u32[0] > 0:
                    keys[n_keys] = key
                    n_keys += 1
                    if n_keys == room:
                        least = keep_largest(keys, spare, n_keys, k, counts)
                        n_keys = k
            if n_keys > k + (k >> 3) and finish < n_docs:
                least = keep_largest(keys, spare, n_keys, k, counts)
                n_keys = k
            if least >= 0:
                u32[0] = np.uint32((least >> 32) - 1)
                limit = max(limit, np.float64(f32[0]))
            for i in range(n_terms):
                term[2, i] = term[3, i]
        if n_keys > k:
            keep_largest(keys, spare, n_keys, k, counts)
            n_keys = k
        sort_descending(keys, spare, n_keys, counts)
        out_count[q] = n_keys
        for i in range(n_keys):
            u32[0] = np.uint32(keys[i] >> 32)
            out_score[q, i] = f32[0]
            out_doc[q, i] = _LOW - (keys[i] & _LOW)
        for i in range(n_keys, out_doc.shape[1]):
            out_score[q, i] = 0.0
            out_doc[q, i] = -1
    return 0
