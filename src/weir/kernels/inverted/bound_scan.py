"""The compiled search by columns: upper bounds of all scores, added up fast, then the few exact scores they leave.

Learned weights leave MaxScore little to skip: most terms of a query occur in many documents, none decides alone. So
every document gets an upper bound of its score in float32: frequent terms add a column of bytes, document by document
as they stand in memory, the others their postings. A document is kept while its bound can still be that of one of
the best k: the k-th largest bound less what bounds can exceed scores by. The exact scores of those kept are then
computed as window.py computes them, in the same order, so that every bit is the same. See search.py for the whole.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.inverted.query_plan import first_at, plan
from weir.kernels.inverted.top_k import keep_largest, sort_descending
from weir.kernels.jit import jit

__all__ = ["tally_chunk"]

Bytes: TypeAlias = NDArray[np.uint8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]

_LOW = 0xFFFFFFFF
_LEAST, _MOST = 1e-25, 1e25  # bounds of a term beyond these are left to the search that computes in double


@jit
def _column(acc: Float32, one: Bytes, weight: np.float32) -> None:
    """Add a term's bounds over a window, document by document."""
    for j in range(np.uint64(len(one))):
        acc[j] += weight * np.float32(one[j])


@jit
def _columns(acc: Float32, one: Bytes, weight: np.float32, other: Bytes, also: np.float32) -> None:
    """Add two terms' bounds over a window: sums are read and written once for both."""
    for j in range(np.uint64(len(one))):
        acc[j] += weight * np.float32(one[j]) + also * np.float32(other[j])


@jit
def _postings(
    acc: Float32, doc: Int32, impact: Float32, low: int, high: int, weight: np.float32, origin: np.uint64
) -> None:
    """Add a list's contributions. Unsigned positions spare numba's test for negative ones."""
    for p in range(np.uint64(low), np.uint64(high)):
        acc[np.uint64(doc[p]) - origin] += weight * impact[p]


@jit
def _add_window(
    doc: Int32,
    impact: Float32,
    offset: Int32,
    values: NDArray[np.uint8],
    term: Int64,
    weight: Float32,
    n_terms: int,
    begin: int,
    finish: int,
    n_docs: int,
    acc: Float32,
) -> None:
    """Add all terms of a query over the documents begin..finish-1. weight: of a term's postings, or of its column.

    term: the rows of plan.py and, in row 6, the term's column, or -1; values: the columns over this window.
    """
    origin, waiting = np.uint64(begin), np.int64(-1)
    for i in range(n_terms):
        if term[6, i] >= 0:
            if waiting < 0:
                waiting = i
            else:
                one, other = values[term[6, waiting]], values[term[6, i]]
                _columns(acc, one, weight[waiting], other, weight[i])
                waiting = np.int64(-1)
            continue
        p, end = term[2, i], term[1, i]
        if p == end or doc[p] >= finish:
            continue
        if finish == n_docs:
            stop = end
        elif term[4, i] >= 0:
            stop = term[0, i] + np.int64(offset[term[4, i] + (finish >> term[5, i])])
        else:
            stop = first_at(doc, p, end, finish)
        _postings(acc, doc, impact, p, stop, weight[i], origin)
        term[2, i] = stop
    if waiting >= 0:
        _column(acc, values[term[6, waiting]], weight[waiting])


@jit
def _above(kth: float, gap: float, share: float) -> float:
    """The least bound of a document that can be among the best k, when k documents have bounds of `kth` or more.

    gap: what quantising adds to a bound at most; share: what rounding can move it by, as a share of it.
    """
    return (kth * (1.0 - share) - gap) * (1.0 - share)


@jit
def _raise(
    keys: Int64,
    spare: Int64,
    other: Int64,
    n: int,
    k: int,
    gap: float,
    share: float,
    edge: int,
    counts: Int64,
    f32: Float32,
    u32: NDArray[np.uint32],
) -> tuple[int, int]:
    """Drop the keys that cannot be among the best k any more: (how many remain, the new edge)."""
    for i in range(n):
        spare[i] = keys[i]
    u32[0] = np.uint32(keep_largest(spare, other, n, k, counts) >> 32)
    least = _above(np.float64(f32[0]), gap, share)
    if least > 0.0:
        f32[0] = np.float32(least)
        edge = max(edge, np.int64(u32[0]) - 2)
    m = np.int64(0)
    for i in range(n):
        v = keys[np.uint64(i)]
        keys[np.uint64(m)] = v
        m += np.int64((v >> 32) > edge)
    return m, edge


@jit
def _prepare(
    column: Int32,
    step: Float32,
    term: Int64,
    value: Float64,
    order: Int64,
    terms: Int64,
    n_terms: int,
    weight: Float32,
) -> float:
    """Find each term's column and what its bounds weigh; what quantising adds to a document's bound at most, or -1.

    order, terms: as `plan` leaves them; -1: the numbers are beyond what float32 can bound.
    """
    gap = 0.0
    for i in range(n_terms):
        if not _LEAST < value[1, i] < _MOST:
            return -1.0
        c = np.int64(column[terms[order[i] & _LOW]])
        term[6, i] = c
        weight[i] = np.float32(value[0, i])
        if c >= 0:
            weight[i] = np.float32(value[0, i] * np.float64(step[c]))
            gap += value[0, i] * np.float64(step[c])
    return gap


@jit
def _exact(
    doc: Int32,
    impact: Float32,
    offset: Int32,
    values: NDArray[np.uint8],
    term: Int64,
    value: Float64,
    n_terms: int,
    keys: Int64,
    n: int,
    spare: Int64,
    counts: Int64,
    cdoc: Int32,
    cval: Float64,
) -> None:
    """The exact scores of the documents of some keys, in order of documents: into cdoc and cval."""
    window = np.int64(values.shape[2])
    for i in range(n):
        keys[i] &= _LOW
    sort_descending(keys, spare, n, counts)
    for c in range(n):
        cdoc[c], cval[c] = _LOW - keys[c], 0.0
    for i in range(n_terms):
        start, stop, blocks, shift = term[0, i], term[1, i], term[4, i], term[5, i]
        column, weight = term[6, i], value[0, i]
        for c in range(n):
            d = np.int64(cdoc[c])
            if column >= 0 and values[d // window, column, d % window] == 0:
                continue
            if blocks >= 0:
                r = blocks + (d >> shift)
                p, end = start + np.int64(offset[r]), start + np.int64(offset[r + 1])
                while p < end and doc[p] < d:
                    p += 1
            else:
                p, end = first_at(doc, start, stop, d), stop
            if p < end and doc[p] == d:
                cval[c] += weight * np.float64(impact[p])


@jit
def _gather(
    acc: Float32,
    bits: Int32,
    begin: int,
    finish: int,
    keys: Int64,
    spare: Int64,
    other: Int64,
    n: int,
    k: int,
    gap: float,
    share: float,
    edge: int,
    counts: Int64,
    f32: Float32,
    u32: NDArray[np.uint32],
) -> tuple[int, int]:
    """Collect the window's bounds above the edge as keys, and clear it: (keys by now, edge), -1 keys: no room."""
    e = np.int32(edge)
    for block in range(0, finish - begin, 64):
        low, high = np.uint64(block), np.uint64(min(block + 64, finish - begin))
        # Positive floats order as their bits do, and comparing integers is what compilers vectorise.
        some = np.int32(0)
        for j in range(low, high):
            some = np.int32(some | np.int32(bits[j] > e))
        if some == 0:
            continue
        if n + 64 > len(keys):
            n, edge = _raise(keys, spare, other, n, k, gap, share, edge, counts, f32, u32)
            e = np.int32(edge)
            if n + 64 > len(keys):
                n = np.int64(-1)
                break
        for j in range(low, high):
            # Written either way and kept by counting: a branch would be mispredicted every other time.
            keys[np.uint64(n)] = (np.int64(bits[j]) << 32) | (_LOW - (begin + np.int64(j)))
            n += np.int64(bits[j] > e)
    for j in range(np.uint64(len(acc))):
        acc[j] = np.float32(0.0)
    return n, edge


@jit
def _write(
    keys: Int64,
    spare: Int64,
    n: int,
    k: int,
    counts: Int64,
    cdoc: Int32,
    cval: Float64,
    q: int,
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
    f32: Float32,
    u32: NDArray[np.uint32],
) -> None:
    """Put the best k of some documents with exact scores into a query's row of the results."""
    m = np.int64(0)
    for i in range(n):
        f32[0] = np.float32(cval[i])
        keys[m] = (np.int64(u32[0]) << 32) | (_LOW - np.int64(cdoc[i]))
        m += np.int64(u32[0] > 0)
    if m > k:
        keep_largest(keys, spare, m, k, counts)
        m = np.int64(k)
    sort_descending(keys, spare, m, counts)
    out_count[q] = m
    for i in range(out_doc.shape[1]):
        u32[0] = np.uint32(keys[i] >> 32) if i < m else np.uint32(0)
        out_score[q, i] = f32[0]
        out_doc[q, i] = np.int32(_LOW - (keys[i] & _LOW)) if i < m else np.int32(-1)


@jit
def tally_chunk(
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
    column: Int32,
    step: Float32,
    values: Bytes,
    qptr: Int64,
    qterm: Int32,
    qweight: Float32,
    k: int,
    rank: int,
    window: int,
    acc: Float32,
    bits: Int32,
    own: Int64,
    spare: Int64,
    other: Int64,
    counts: Int64,
    order: Int64,
    terms: Int64,
    term: Int64,
    value: Float64,
    weight: Float32,
    cdoc: Int32,
    cval: Float64,
    f32: Float32,
    u32: NDArray[np.uint32],
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
    left: NDArray[np.bool_],
) -> int:
    """Search a chunk of queries; 0, or 1 when a weight is negative or not finite (nothing is searched then).

    Arguments as in maxscore.py and, column, step, values: see columns.py. acc: zero before and after, as long as a
    window; bits: the same memory. Scratch: own, spare, other, cdoc, cval as long as the documents that are kept at
    most, more than k; order, terms, weight and the rows of term (7) and value (4) as long as the longest query.
    left: set for a query that is left to the other search, since the bounds of more documents are near the k-th.
    """
    for j in range(qptr[0], qptr[len(qptr) - 1]):
        if not 0.0 <= qweight[j] < np.inf:
            return 1
    for q in range(len(qptr) - 1):
        n_terms, limit = plan(
            ptr, impact, listed, top, shift, base, qterm, qweight, qptr[q], qptr[q + 1],
            rank, window, order, terms, counts, term, value, f32, u32,
        )  # fmt: skip
        gap = _prepare(column, step, term, value, order, terms, n_terms, weight)
        share = (n_terms + 8) * 2.0**-21  # far more than so many sums and products round
        f32[0] = np.float32(max(0.0, limit * (1.0 - share)))
        n, edge, enough = np.int64(0), max(np.int64(0), np.int64(u32[0]) - 2), np.int64(2 * k + 32)
        if gap < 0.0:
            n = np.int64(-1)
        for begin in range(0, n_docs if n_terms > 0 else 0, 1 << window):
            if n < 0:
                break
            finish = min(begin + (1 << window), n_docs)
            _add_window(
                doc, impact, offset, values[begin >> window], term, weight, n_terms, begin, finish, n_docs, acc
            )  # fmt: skip
            n, edge = _gather(
                acc, bits, begin, finish, own, spare, other, n, k, gap, share, edge, counts, f32, u32
            )
            if n > enough:
                n, edge = _raise(own, spare, other, n, k, gap, share, edge, counts, f32, u32)
                enough = n + (n >> 1) + 32
        left[q] = n < 0
        if n > k:
            n, edge = _raise(own, spare, other, n, k, gap, share, edge, counts, f32, u32)
        if n >= 0:
            _exact(doc, impact, offset, values, term, value, n_terms, own, n, spare, counts, cdoc, cval)
            _write(own, spare, n, k, counts, cdoc, cval, q, out_count, out_doc, out_score, f32, u32)
    return 0
