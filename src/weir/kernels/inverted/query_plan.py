"""What a query needs: its terms' lists, merged, bounded and in order, and where lists enter a window.

Rows of `term` (int64), a column per term: start, end, now, stop, first range in offset/peak or -1, shift of the
ranges. now:stop is the part of the list inside the window. Rows of `value` (float64): weight, largest contribution.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.inverted.top_k import sort_descending
from weir.kernels.jit import jit

__all__ = ["enter_window", "first_at", "plan"]

Bytes: TypeAlias = NDArray[np.uint8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]

_LOW = 0xFFFFFFFF


@jit
def first_at(doc: Int32, low: int, high: int, number: int) -> int:
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
def plan(
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
    n = int(np.int64(0))  # a literal 0 would compile what takes n a second time
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
def enter_window(
    doc: Int32,
    offset: Int32,
    term: Int64,
    value: Float64,
    n_terms: int,
    finish: int,
    n_docs: int,
    live: Int64,
) -> tuple[int, float]:
    """Find each list's part before document `finish`: (how many terms have one, sum of their bounds).

    live: those terms, by decreasing bound.
    """
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
            term[3, i] = first_at(doc, p, end, finish)
        live[n_live] = i
        n_live += 1
        total += value[1, i]
    return n_live, total
