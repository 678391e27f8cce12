"""Select and sort the best (score, document) pairs, packed as int64 keys.

A key holds a float32 score's bits above the complement of the internal document number, so that larger keys
rank first: score descending, then number ascending.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

Keys: TypeAlias = NDArray[np.int64]

LOW = 0xFFFFFFFF
"""Mask of the complement of the internal number."""
_INSERTION_SORT_KEYS = 48  # keys that are sorted by insertion


class Selection(NamedTuple):
    """Scratch memory to select a query's best keys."""

    keys: Keys
    """int64[room], like `spare`."""
    spare: Keys
    counts: Keys
    """int64[2048]."""
    number: NDArray[np.float32]
    """float32[1], the same memory as `bits`, uint32[1]; converts scores to parts of keys and back."""
    bits: NDArray[np.uint32]

    @staticmethod
    def of(room: int) -> Selection:
        """Return scratch memory for up to `room` keys."""
        number = np.empty(1, np.float32)
        return Selection(
            *np.empty((2, room), np.int64), np.empty(2048, np.int64), number, number.view(np.uint32)
        )


class Hits(NamedTuple):
    """Each query's best documents: count int32[Q], doc int32[Q, k] (-1 beyond count), score float32[Q, k]."""

    count: NDArray[np.int32]
    doc: NDArray[np.int32]
    score: NDArray[np.float32]


@jit
def _partial_sort(keys: Keys, low: int, high: int, rank: int) -> None:
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
            return


@jit
def keep_largest(keys: Keys, spare: Keys, n: int, k: int, counts: Keys) -> int:
    """Move the k largest of keys[:n] to the front, unsorted; return the smallest of them.

    Needs n >= k >= 1 and distinct keys. `spare`, as long as keys, and `counts`, int64[2048], are scratch.
    """
    if n <= 128:
        _partial_sort(keys, 0, n - 1, k - 1)
        return int(keys[k - 1])
    # One pass into 256 equal ranges of scores leaves only the range that holds rank k to be ordered.
    most, least = keys[0] >> 32, keys[0] >> 32
    for i in range(n):
        s = keys[i] >> 32
        if s > most:
            most = s
        if s < least:
            least = s
    shift = 0
    while (most - least) >> shift > 255:
        shift += 1
    for i in range(256):
        counts[i] = 0
    for i in range(n):
        counts[np.uint64(((keys[i] >> 32) - least) >> shift)] += 1
    cut, above = 255, 0
    while above + counts[cut] < k:
        above += counts[cut]
        cut -= 1
    m, edge = np.int64(0), np.int64(0)
    for i in range(n):
        v = keys[np.uint64(i)]
        r = ((v >> 32) - least) >> shift
        # Written either way and kept by counting: a branch would be mispredicted every other time.
        keys[np.uint64(m)] = v
        m += np.int64(r > cut)
        spare[np.uint64(edge)] = v
        edge += np.int64(r == cut)
    _partial_sort(spare, 0, edge - 1, k - above - 1)
    for i in range(k - above):
        keys[above + i] = spare[i]
    return int(spare[k - above - 1])


@jit
def sort_descending(keys: Keys, spare: Keys, n: int, counts: Keys) -> None:
    """Sort keys[:n] in place, largest first; `spare`, as long as keys, and `counts`, int64[2048], are scratch."""
    if n <= _INSERTION_SORT_KEYS:
        for i in range(1, n):
            v, j = keys[i], i - 1
            while j >= 0 and keys[j] < v:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = v
        return
    # Bytes, least significant first; the scores' own range rarely needs all four of theirs.
    least, most, low, high = keys[0] >> 32, keys[0] >> 32, keys[0] & 0xFFFFFFFF, keys[0] & 0xFFFFFFFF
    for i in range(n):
        v = keys[i]
        s, d = v >> 32, v & 0xFFFFFFFF
        if s > most:
            most = s
        if s < least:
            least = s
        if d > high:
            high = d
        if d < low:
            low = d
    for i in range(2048):
        counts[i] = 0
    source, target, swapped = keys, spare, False
    for step in range(8):
        base, span, down = (low, high - low, 0) if step < 4 else (least, most - least, 32)
        shift = 8 * (step & 3)
        if span >> shift == 0:
            continue
        row = 256 * step
        for i in range(n):
            b = 255 - (((((source[i] >> down) & 0xFFFFFFFF) - base) >> shift) & 255)
            counts[np.uint64(row + b)] += 1
        total = 0
        for b in range(256):
            c = counts[row + b]
            counts[row + b] = total
            total += c
        for i in range(n):
            v = source[i]
            b = 255 - (((((v >> down) & 0xFFFFFFFF) - base) >> shift) & 255)
            target[np.uint64(counts[np.uint64(row + b)])] = v
            counts[np.uint64(row + b)] += 1
        source, target, swapped = target, source, not swapped
    if swapped:
        for i in range(n):
            keys[i] = spare[i]


@jit
def write_hits(best: Selection, n: int, q: int, hits: Hits) -> None:
    """Write the first n keys, sorted, as documents and scores to row q of `hits`, and -1 and 0 after them."""
    hits.count[q] = n
    for i in range(hits.doc.shape[1]):
        best.bits[0] = np.uint32(best.keys[i] >> 32) if i < n else np.uint32(0)
        hits.score[q, i] = best.number[0]
        hits.doc[q, i] = np.int32(LOW - (best.keys[i] & LOW)) if i < n else np.int32(-1)
