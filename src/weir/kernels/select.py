"""Selecting and sorting packed (score, document) keys.

A key is uint64: the bits of a positive float32 score above, the complement of the internal number below;
larger keys rank first: score descending, then internal number ascending.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = ["keep_largest", "sort_descending"]

Keys: TypeAlias = NDArray[np.uint64]


@jit
def keep_largest(keys: Keys, n: int, k: int) -> np.uint64:
    """Move the k largest of keys[:n] (n >= k >= 1, all distinct) to the front; returns the smallest of them."""
    low, high, rank = np.int64(0), np.int64(n - 1), np.int64(k - 1)
    while low < high:
        a, b, c = keys[low], keys[(low + high) >> 1], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] > pivot:
                i += 1
            while keys[j] < pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return keys[rank]


@jit
def sort_descending(keys: Keys, spare: Keys, n: int, counts: NDArray[np.int64]) -> None:
    """Sort keys[:n] in place; spare as long as keys, counts int64[8 * 256] are scratch."""
    if n <= 48:
        for i in range(1, n):
            v, j = keys[i], i - 1
            while j >= 0 and keys[j] < v:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = v
        return
    counts[:] = 0
    for i in range(n):
        v = keys[i]
        for b in range(8):
            counts[np.uint64(b * 256) + (np.uint64(255) - ((v >> np.uint64(8 * b)) & np.uint64(255)))] += 1
    source, target, swapped = keys, spare, False
    for b in range(8):
        shift = np.uint64(8 * b)
        row = np.uint64(b * 256)
        if counts[row + (np.uint64(255) - ((source[0] >> shift) & np.uint64(255)))] == n:
            continue
        total = np.int64(0)
        for d in range(256):
            c = counts[row + np.uint64(d)]
            counts[row + np.uint64(d)] = total
            total += c
        for i in range(n):
            v = source[i]
            at = row + (np.uint64(255) - ((v >> shift) & np.uint64(255)))
            target[np.uint64(counts[at])] = v
            counts[at] += 1
        source, target = target, source
        swapped = not swapped
    if swapped:
        for i in range(n):
            keys[i] = spare[i]
