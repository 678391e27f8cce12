"""The compiled search of few documents: every posting of every term is added, which no plan would pay for there.

The terms are added in the order of `plan.py`, by decreasing bound, so that a score is the same bits as elsewhere.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.inverted.top_k import keep_largest, sort_descending
from weir.kernels.jit import jit

__all__ = ["exhaust_chunk"]

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]

_LOW = 0xFFFFFFFF


@jit
def exhaust_chunk(
    ptr: Int64,
    doc: Int32,
    impact: Float32,
    most: Float32,
    qptr: Int64,
    qterm: Int32,
    qweight: Float32,
    k: int,
    acc: Float64,
    bits: Int64,
    keys: Int64,
    spare: Int64,
    counts: Int64,
    f32: Float32,
    u32: NDArray[np.uint32],
    out_count: Int32,
    out_doc: Int32,
    out_score: Float32,
) -> int:
    """Search a chunk of queries; 0, or 1 when a weight is negative or not finite (nothing is searched then).

    Arguments as in maxscore.py. most: float32[V], the largest impact of each term; acc: accumulators of all documents,
    a multiple of 64, and one more, zero before and after; keys, spare: room for 64 keys more than k, and for a
    query's terms.
    """
    for j in range(qptr[0], qptr[len(qptr) - 1]):
        if not 0.0 <= qweight[j] < np.inf:
            return 1
    width, room = len(acc) - 1, len(keys) - 64
    for q in range(len(qptr) - 1):
        first, n = qptr[q], np.int64(0)
        for j in range(first, qptr[q + 1]):
            t = qterm[j]
            if 0 <= t < len(most) and qweight[j] > 0:
                f32[0] = np.float32(np.float64(qweight[j]) * np.float64(most[t]))
                key, at = (np.int64(u32[0]) << 32) | (_LOW - (j - first)), n
                while at > 0 and keys[at - 1] < key:  # queries are short
                    keys[at] = keys[at - 1]
                    at -= 1
                keys[at] = key
                n += 1
        for i in range(n):
            j = first + (_LOW - (keys[i] & _LOW))
            t, weight = qterm[j], np.float64(qweight[j])
            for p in range(np.uint64(ptr[t]), np.uint64(ptr[t + 1])):
                acc[np.uint64(doc[p])] += weight * np.float64(impact[p])
        # Positive doubles order as their bits do, and comparing integers is what compilers vectorise.
        n, edge = np.int64(0), np.int64(0)
        for b in range(0, width + 1, 64):
            some = np.int64(0)
            if b < width:
                for d in range(np.uint64(b), np.uint64(b + 64)):
                    some |= np.int64(bits[d] > edge)
            if some != 0:
                for d in range(np.uint64(b), np.uint64(b + 64)):
                    # Written either way and kept by counting: a branch would be mispredicted every other time.
                    f32[0] = np.float32(acc[d])
                    keys[np.uint64(n)] = (np.int64(u32[0]) << 32) | (_LOW - np.int64(d))
                    n += np.int64(bits[d] > edge)
            if n >= room or (n > k and b == width):
                least = keep_largest(keys, spare, n, k, counts) >> 32
                n = np.int64(k)
                if least > 0:
                    # The next float below the k-th best: none that ties with it is left out.
                    u32[0] = np.uint32(least - 1)
                    acc[width] = np.float64(f32[0])
                    edge = bits[width]
        for d in range(np.uint64(len(acc))):
            acc[d] = 0.0
        sort_descending(keys, spare, n, counts)
        while n > 0 and keys[n - 1] >> 32 == 0:  # so small that a float does not hold it
            n -= 1
        out_count[q] = n
        for i in range(out_doc.shape[1]):
            u32[0] = np.uint32(keys[i] >> 32) if i < n else np.uint32(0)
            out_score[q, i] = f32[0]
            out_doc[q, i] = np.int32(_LOW - (keys[i] & _LOW)) if i < n else np.int32(-1)
    return 0
