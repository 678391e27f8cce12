"""The compiled search of few documents: every posting of every term is added, which no plan would pay for there.

The terms are added in the order of `plan.py`, by decreasing bound, so that a score is the same bits as elsewhere.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.select import keep_largest, sort_descending

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
    qptr: Int64,
    qterm: Int32,
    qweight: Float32,
    k: int,
    acc: Float64,
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

    Arguments as in maxscore.py; acc: float64[documents], zero before and after; keys, spare: room for more than k
    keys and for a query's terms.
    """
    for j in range(qptr[0], qptr[len(qptr) - 1]):
        if not 0.0 <= qweight[j] < np.inf:
            return 1
    for q in range(len(qptr) - 1):
        first, n = qptr[q], np.int64(0)
        for j in range(first, qptr[q + 1]):
            t = qterm[j]
            if 0 <= t < len(ptr) - 1 and qweight[j] > 0:
                most = np.float32(0)
                for p in range(ptr[t], ptr[t + 1]):
                    if impact[p] > most:
                        most = impact[p]
                f32[0] = np.float32(np.float64(qweight[j]) * np.float64(most))
                keys[n] = (np.int64(u32[0]) << 32) | (_LOW - (j - first))
                n += 1
        sort_descending(keys, spare, n, counts)
        for i in range(n):
            j = first + (_LOW - (keys[i] & _LOW))
            t, weight = qterm[j], np.float64(qweight[j])
            for p in range(np.uint64(ptr[t]), np.uint64(ptr[t + 1])):
                acc[np.uint64(doc[p])] += weight * np.float64(impact[p])
        n, least = np.int64(0), np.int64(-1)
        for d in range(len(acc)):
            f32[0] = np.float32(acc[d])
            acc[d] = 0.0
            key = (np.int64(u32[0]) << 32) | (_LOW - d)
            if u32[0] > 0 and key > least:
                keys[n] = key
                n += 1
                if n == len(keys):
                    least = keep_largest(keys, spare, n, k, counts)
                    n = np.int64(k)
        if n > k:
            keep_largest(keys, spare, n, k, counts)
            n = np.int64(k)
        sort_descending(keys, spare, n, counts)
        out_count[q] = n
        for i in range(out_doc.shape[1]):
            u32[0] = np.uint32(keys[i] >> 32) if i < n else np.uint32(0)
            out_score[q, i] = f32[0]
            out_doc[q, i] = np.int32(_LOW - (keys[i] & _LOW)) if i < n else np.int32(-1)
    return 0
