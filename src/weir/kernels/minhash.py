"""Find near-duplicate texts by MinHash of word sequences, verified by the exact Jaccard index."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Int32, Int64, UInt64
from weir.kernels.inverted.top_k import sort_descending
from weir.kernels.jit import jit

UInt32: TypeAlias = NDArray[np.uint32]

# The finaliser of MurmurHash3 (public domain): every bit of a number changes half of the bits of its hash.
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT, _HALF = np.uint64(33), np.uint64(32)


@jit
def _mixed(x: np.uint64) -> np.uint64:
    x ^= x >> _SHIFT
    x *= _FIRST
    x ^= x >> _SHIFT
    x *= _SECOND
    return x ^ (x >> _SHIFT)


@jit
def _shingle(term: Int32, start: int, stop: int) -> np.uint64:
    key = np.uint64(stop - start)
    for i in range(start, stop):
        key = _mixed(key ^ np.uint64(term[i]))
    return key


@jit
def band_keys(ptr: Int64, term: Int32, width: int, multiplier: UInt32, keys: UInt64) -> None:
    """Write a 64-bit key for each band of each text's MinHash signature: texts that share a key may be
    near-duplicates.

    ptr, term: the terms of each text, int64[n + 1] and int32.
    width: terms of a sequence (shingle); a shorter text is one shingle.
    multiplier: uint32[bands * rows], odd, one for each permutation.
    keys: uint64[n, bands], 0 for a text without terms.
    """
    permutations, bands = len(multiplier), keys.shape[1]
    rows = permutations // bands
    least = np.empty(permutations, np.uint32)
    for d in range(len(ptr) - 1):
        begin, end = ptr[d], ptr[d + 1]
        if begin == end:
            keys[d] = 0
            continue
        least[:] = np.uint32(0xFFFFFFFF)
        last = max(begin, end - width)
        for i in range(begin, last + 1):
            high = np.uint32(_shingle(term, i, min(i + width, end)) >> _HALF)
            for j in range(permutations):
                least[j] = min(least[j], np.uint32(high * multiplier[j]))
        for b in range(bands):
            key = np.uint64(b + 1)
            for j in range(b * rows, (b + 1) * rows):
                key = _mixed(key ^ np.uint64(least[j]))
            keys[d, b] = max(key, np.uint64(1))


@jit
def shingle_sets(
    ptr: Int64, term: Int32, width: int, count: Int64, shingle: Int64, spare: Int64, counts: Int64
) -> None:
    """Write the hashes of each text's distinct shingles, descending, to shingle[ptr[d] : ptr[d] + count[d]].

    ptr, term, width: as for `band_keys`.
    count: filled with each text's number of shingles, int64[n].
    spare, counts: scratch, int64 of the longest text and int64[2048].
    """
    for d in range(len(ptr) - 1):
        begin, end = ptr[d], ptr[d + 1]
        if begin == end:
            count[d] = 0
            continue
        last = max(begin, end - width)
        for i in range(begin, last + 1):
            shingle[i] = np.int64(_shingle(term, i, min(i + width, end)) >> np.uint64(1))
        sort_descending(shingle[begin : last + 1], spare, last + 1 - begin, counts)
        end_of_set = begin + 1
        for i in range(begin + 1, last + 1):
            if shingle[i] != shingle[end_of_set - 1]:
                shingle[end_of_set] = shingle[i]
                end_of_set += 1
        count[d] = end_of_set - begin


@jit
def _jaccard(a: Int64, b: Int64) -> float:
    i, j, shared = 0, 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            shared += 1
            i += 1
            j += 1
        elif a[i] > b[j]:
            i += 1
        else:
            j += 1
    return shared / (len(a) + len(b) - shared)


@jit
def leaders(
    ptr: Int64, count: Int64, shingle: Int64, bucket: Int32, room: Int32, least: float, leader: Int64
) -> int:
    """Write each text's leader, the most similar earlier near-duplicate in its buckets, or itself; return how
    often a bucket was too full for a new leader.

    ptr, count, shingle: from `shingle_sets`.
    bucket: int32[n, bands], -1 for a bucket of one text.
    room: how many more leaders each bucket may have, int32[buckets], counted down.
    least: smallest Jaccard index of near-duplicates.
    leader: filled, int64[n].
    """
    n, bands = bucket.shape
    head = np.full(len(room), -1, np.int64)
    following = np.full(n * bands, -1, np.int64)
    compared_with = np.full(n, -1, np.int64)
    skipped = 0
    for d in range(n):
        mine = shingle[ptr[d] : ptr[d] + count[d]]
        best, chosen = least, np.int64(-1)
        for b in range(bands):
            at = head[bucket[d, b]] if bucket[d, b] >= 0 else np.int64(-1)
            while at >= 0:
                other = at // bands
                at = following[at]
                if compared_with[other] == d:
                    continue
                compared_with[other] = d
                alike = _jaccard(mine, shingle[ptr[other] : ptr[other] + count[other]])
                if alike > best or (alike == best and (chosen < 0 or other < chosen)):
                    best, chosen = alike, other
        # Two followers of one leader have an index of at least 2 * least - 1, since one minus the index is a metric.
        leader[d] = d if chosen < 0 else chosen
        for b in range(bands):
            place = bucket[d, b]
            if chosen >= 0 or place < 0:
                continue
            if room[place] == 0:
                skipped += 1
                continue
            following[d * bands + b] = head[place]
            head[place] = d * bands + b
            room[place] -= 1
    return skipped
