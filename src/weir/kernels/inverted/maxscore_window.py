"""Exact sums of the documents of one window that can be among the best k.

Throughout, `limit` is a value at or under which no sum may stay if, rounded to float32, it is to be among
the best k: the next float32 below the k-th best score. That also absorbs rounding in sums of upper bounds.
The rows of term and value are those of plan.py.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.inverted.query_plan import first_at
from weir.kernels.jit import jit

__all__ = ["look_up", "score_window"]

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]

_LOOK_UP = 16  # looking a term up in a document costs as much as adding this many postings
_DENSE = 4  # reading this many accumulators in order costs as much as one posting


@jit
def _add(
    doc: Int32, impact: Float32, low: int, high: int, weight: float, acc: Float64, origin: np.uint64
) -> None:
    """Add a list's contributions. Unsigned positions, here and below, spare numba's test for negative ones."""
    for p in range(np.uint64(low), np.uint64(high)):
        acc[np.uint64(doc[p]) - origin] += weight * np.float64(impact[p])


@jit
def _add_to_found(
    doc: Int32,
    impact: Float32,
    low: int,
    high: int,
    weight: float,
    acc: Float64,
    bits: Int64,
    origin: np.uint64,
) -> None:
    """Add a list's contributions to documents whose sum is not 0."""
    for p in range(np.uint64(low), np.uint64(high)):
        at = np.uint64(doc[p]) - origin
        # A product, not a choice of sums, which would become a branch and be mispredicted.
        acc[at] += weight * np.float64(impact[p]) * (1.0 if bits[at] != 0 else 0.0)


@jit
def _gather_one(
    doc: Int32, impact: Float32, low: int, high: int, weight: float, bar: float, cdoc: Int32, cval: Float64
) -> int:
    """Collect one list's contributions above the bar; how many."""
    n = 0
    for p in range(np.uint64(low), np.uint64(high)):
        v = weight * np.float64(impact[p])
        if v > bar:
            cdoc[n] = doc[p]
            cval[n] = v
            n += 1
    return n


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
    acc: Float64, bits: Int64, width: int, begin: int, bar: float, cdoc: Int32, cval: Float64
) -> int:
    """Collect the window's sums above the bar in order of documents, and clear it; how many."""
    # Non-negative doubles order as their bits do, and comparing integers is what compilers vectorise.
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
def look_up(
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
            p, end = first_at(doc, now, stop, np.int64(d)), stop
        if p < end and doc[p] == d:
            v += weight * np.float64(impact[p])
        if v + rest > limit:
            cdoc[m] = d
            cval[m] = v
            m += 1
    return m


@jit
def score_window(
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
    added = needed
    n = int(np.int64(0))  # a literal 0 would compile what takes n a second time
    if needed > 1 or (n_live > 1 and term[3, live[1]] - term[2, live[1]] < _LOOK_UP * touched):
        for x in range(needed):
            i = live[x]
            _add(doc, impact, term[2, i], term[3, i], value[0, i], acc, origin)
        # Other terms are added to the documents found when that is cheaper than looking them up.
        while added < n_live:
            i = live[added]
            size = term[3, i] - term[2, i]
            if size > touched:
                share = _near(doc, acc, term[2, live[0]], term[3, live[0]], origin, limit - rest)
                if size > _LOOK_UP * share * touched:
                    break
            if dense:
                _add(doc, impact, term[2, i], term[3, i], value[0, i], acc, origin)
            else:
                _add_to_found(doc, impact, term[2, i], term[3, i], value[0, i], acc, bits, origin)
            added += 1
            rest = max(rest - value[1, i], 0.0)
        if dense:
            n = _gather_all(acc, bits, width, begin, limit - rest, cdoc, cval)
        else:
            for x in range(needed):
                i = live[x]
                n = _gather_listed(doc, acc, term[2, i], term[3, i], origin, limit - rest, cdoc, cval, n)
    else:
        i = live[0]
        n = _gather_one(doc, impact, term[2, i], term[3, i], value[0, i], limit - rest, cdoc, cval)
    for x in range(added, n_live):
        if n > 0:
            i = live[x]
            rest = max(rest - value[1, i], 0.0)
            n = look_up(
                doc, impact, offset, peak, term, i, value[0, i], value[1, i], rest, limit, cdoc, cval, n
            )
    return n
