"""Residual codec of token vectors (ColBERTv2): decompression, and MaxSim over centroids alone.

A vector is stored as the number of its centroid and, for each dimension, the bucket of its residual, the vector less
its centroid. Source: Santhanam et al. 2022.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = ["centroid_maxsim", "decompress"]

Float32: TypeAlias = NDArray[np.float32]
Int64: TypeAlias = NDArray[np.int64]
Int32: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.uint8]


@jit
def decompress(code: Int32, packed: Bytes, centroids: Float32, table: Float32, out: Float32) -> None:
    """Decompress vectors: out float32[n, d], centroid plus residuals, scaled to length 1.

    code: int32[n], the centroid; packed: uint8[n, d * bits / 8], buckets of residuals, the first in the highest bits;
    table: float32[256, 8 / bits], the codewords of the buckets that a byte packs.
    """
    each = table.shape[1]
    for t in range(len(code)):
        centroid = centroids[code[t]]
        length = 0.0
        for b in range(packed.shape[1]):
            part = table[packed[t, b]]
            for i in range(each):
                value = centroid[b * each + i] + part[i]
                out[t, b * each + i] = value
                length += np.float64(value) * np.float64(value)
        scale = np.float32(1.0 / np.sqrt(length)) if length > 0 else np.float32(0)
        for j in range(out.shape[1]):
            out[t, j] *= scale


@jit
def centroid_maxsim(score: Float32, code: Int32, starts: Int64, ends: Int64, out: Float32) -> None:
    """Approximate MaxSim: out float32[n], the score of each document as if each token were its centroid.

    score: float32[C, q], of each centroid for each token of the query; code: int32[T], the tokens' centroids;
    starts, ends: int64[n], where the documents' tokens are.
    """
    best = np.empty(score.shape[1], np.float32)
    for i in range(len(starts)):
        best[:] = -np.inf
        for t in range(starts[i], ends[i]):
            row = score[code[t]]
            for q in range(len(best)):
                best[q] = row[q] if row[q] > best[q] else best[q]
        total = 0.0
        for q in range(len(best)):
            total += np.float64(best[q])
        out[i] = np.float32(total)
