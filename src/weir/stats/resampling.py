"""Random signs and random samples of queries, shared by all systems, in bounded memory.

A sum under random signs is linear, so one product of a block of signs with the values of K systems serves all
K(K-1)/2 pairs; so it is with counts of samples drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64

__all__ = ["BLOCK", "resampled_sums", "sign_sums"]

BLOCK = 2_000_000

_SIGNS = np.where(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) > 0, 1.0, -1.0)


def sign_sums(values: Float64, draws: int, generator: np.random.Generator) -> Iterator[Float64]:
    """Sums over queries under random signs, in blocks of shape [draws of the block, K].

    values: float64[K, Q]. Each draw takes whole 64-bit words of the stream, so it depends neither on the other
    systems nor on the size of the blocks.
    """
    systems, queries = values.shape
    words = -(-queries // 64)
    padded = np.zeros((64 * words, systems))
    padded[:queries] = values.T
    rows = max(1, BLOCK // 4 // max(64 * words, systems))  # a quarter stays nearer to the core
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        drawn = generator.integers(0, 2**64, (count, words), np.uint64)
        signs = _SIGNS.take(drawn.astype("<u8", copy=False).view(np.uint8), axis=0)
        yield signs.reshape(count, -1) @ padded


def resampled_sums(columns: Float64, resamples: int, generator: np.random.Generator) -> Iterator[Float64]:
    """Sums over samples of queries drawn with replacement, in blocks of shape [samples of the block, C].

    columns: float64[C, Q]. The samples are those of bootstrap.resampled_means for the same generator.
    """
    queries = columns.shape[1]
    rows = max(1, BLOCK // queries)
    by_query = np.ascontiguousarray(columns.T)
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        drawn: NDArray[np.int32] = generator.integers(0, queries, (count, queries), np.int32)
        drawn += (np.arange(count, dtype=np.int32) * queries)[:, None]
        times = np.bincount(drawn.ravel(), minlength=count * queries).reshape(count, queries)
        yield times.astype(np.float64) @ by_query
