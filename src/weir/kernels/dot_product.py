"""Search vectors exactly by dot product: packed vectors select candidates, exact products in doubles rank them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Bytes, Float32, Float64, Int32, Int64
from weir.kernels.inverted.top_k import keep_largest, sort_descending
from weir.kernels.jit import jit
from weir.kernels.simd import ROWS, WIDTH, dot32, dot64, float_tile, int8_tile, lowest_bit

# Vectors of documents, packed for tiles: a panel holds WIDTH of them side by side, dimension after dimension.


class DocumentBlock(NamedTuple):
    """Vectors of documents that are searched together."""

    rows: Float32
    """float32[n, d]."""
    length: Float64
    """float64[n]: lengths that divide the rows for cosine; else empty."""
    rank: Int32
    """int32[n]: positions of the rows among ties."""


class QueryVectors(NamedTuple):
    """The vectors of queries."""

    rows: Float32
    """float32[Q, d]."""
    length: Float64
    """float64[Q] for cosine; else empty."""


class Panels(NamedTuple):
    """Document vectors packed in panels, padded with vectors that score minus infinity."""

    words: NDArray[Any]
    """uint32[panels, ceil(d / 4), WIDTH] of bytes u + 128, or float32[panels, d, WIDTH]."""
    lane: Float32
    """float32[panels, 2, WIDTH]: scale of each row, and product with the centre; 1 and 0 for floats."""
    most: Float32
    """float32[panels, 2]: largest distance of a row from its bytes and from the centre; 0 and the largest
    length for floats."""


class PackedQueries(NamedTuple):
    """Query vectors packed in rows; `rows` and `facts` end with ROWS rows of padding."""

    rows: Bytes
    """uint8[Q + ROWS, bytes]."""
    facts: Float32
    """float32[Q + ROWS, 3]: start, unit and bar of `int8_tile`; a search sets the bars."""
    gauge: Float64
    """float64[Q, 5]: offset of sums, distance from the centre, distance from the bytes, rounding error per
    unit of a document's length, length of the centre."""


class BestKeys(NamedTuple):
    """The best documents of each query so far, as keys of `top_k.py`."""

    keys: Int64
    """int64[Q, room]; when the room of a query is full, only its best k stay."""
    filled: Int64
    """int64[Q]: number of keys."""
    floor: Int64
    """int64[Q]: key of the worst document that stayed; only larger keys are added."""
    bar: Float64
    """float64[Q]: score of the floor."""


LEAST_LENGTH = np.float32(1e-30)
MAGNITUDE = np.int32(0x7FFFFFFF)
INFINITE = np.int32(0x7F800000)
ONE, TOP = np.float32(1), np.float32(127)
UNIT = np.float32(1.00001)
"""Upper bound of the squared length of a row divided by its length, with rounding."""
ROUND = np.float32(12582912.0)
"""1.5 * 2**23: added to a small float it leaves the nearest whole number in the lowest bits."""


@jit
def all_finite(rows: Float32) -> bool:
    """Return True if a float32[n, d] array has no NaN or infinity."""
    n, d = rows.shape
    for i in range(n):
        bits = rows[i].view(np.int32)
        top = np.int32(0)
        for j in range(d):
            top = max(top, bits[j] & MAGNITUDE)
        if top >= INFINITE:
            return False
    return True


@jit
def norms(rows: Float32, out: Float64) -> None:
    """Write the Euclidean norm of each row of `rows`, [n, d], to `out`, [n]."""
    n, d = rows.shape
    for i in range(n):
        at = rows.ctypes.data + i * rows.strides[0]
        out[i] = np.sqrt(dot64(at, at, d))


@jit
def _share(length: float) -> float:
    if length == 0:
        return np.float32(0)
    return np.float32(1 / length) if 1e-30 < length < 1e30 else np.float32(np.nan)


@jit
def pack_bytes(block: DocumentBlock, centre: Float32, first: int, stop: int, panels: Panels) -> None:
    """Write document vectors as bytes to panels first..stop-1: u + 128, where scale * u is near row / length -
    centre.
    """
    rows, length, _ = block
    words, lane, most = panels
    n, d = rows.shape
    shifted = np.empty(d, np.float32)
    magnitude = shifted.view(np.int32)
    rounded = np.zeros(4 * words.shape[1], np.float32)
    bits = rounded.view(np.int32)
    left = np.empty(d, np.float32)
    left_bits = left.view(np.int32)
    byte = np.zeros(4 * words.shape[1], np.uint8)
    word = byte.view(np.uint32)
    for p in range(first, stop):
        furthest, largest = np.float32(0), np.float32(0)
        for i in range(WIDTH):
            r = p * WIDTH + i
            if r >= n:
                lane[p, 0, i], lane[p, 1, i] = np.float32(0), np.float32(-np.inf)
                for g in range(words.shape[1]):
                    words[p, g, i] = np.uint32(0)
                continue
            share = _share(length[r]) if len(length) else ONE
            for j in range(d):
                shifted[j] = rows[r, j] * share - centre[j]
            top = np.int32(0)
            for j in range(d):
                top = max(top, magnitude[j] & MAGNITUDE)
            left_bits[0] = top
            peak = left[0]
            scale, inverse = np.float32(0), np.float32(0)
            if peak > LEAST_LENGTH:
                scale, inverse = peak / TOP, TOP / peak
            for j in range(d):
                rounded[j] = shifted[j] * inverse + ROUND
            for j in range(d):
                left[j] = shifted[j] - (rounded[j] - ROUND) * scale
            for j in range(len(byte)):
                byte[j] = np.uint8((bits[j] + 128) & 255)
            for g in range(len(word)):
                words[p, g, i] = word[g]
            at = shifted.ctypes.data
            lane[p, 0, i] = scale
            lane[p, 1, i] = dot32(at, centre.ctypes.data, d)
            furthest = max(furthest, dot32(left.ctypes.data, left.ctypes.data, d))
            largest = max(largest, dot32(at, at, d))
        most[p, 0], most[p, 1] = np.sqrt(furthest), np.sqrt(largest)


@jit
def pack_floats(block: DocumentBlock, first: int, stop: int, panels: Panels) -> None:
    """Write document vectors as floats to panels first..stop-1, divided by their lengths if the block has
    these.
    """
    rows, length, _ = block
    words, lane, most = panels
    n, d = rows.shape
    for p in range(first, stop):
        largest = np.float32(0)
        for i in range(WIDTH):
            r = p * WIDTH + i
            lane[p, 0, i], lane[p, 1, i] = ONE, np.float32(0)
            if r >= n:
                lane[p, 1, i] = np.float32(-np.inf)
                for j in range(d):
                    words[p, j, i] = np.float32(0)
                continue
            share = _share(length[r]) if len(length) else ONE
            for j in range(d):
                words[p, j, i] = rows[r, j] * share
            if len(length):
                largest = max(largest, UNIT if length[r] > 0 else np.float32(0))
            else:
                at = rows.ctypes.data + r * rows.strides[0]
                largest = max(largest, dot32(at, at, d))
        most[p, 0], most[p, 1] = np.float32(0), np.sqrt(largest)


# Exact search by dot product: bounds by tiles select candidates for the top k, doubles decide.
#
# A tile computes each score with a known error. A document that could reach the k-th best so far is scored again at
# once, while its vector is in the cache: in double, in one fixed order, rounded to float. So results depend on
# nothing but the vectors, and no matrix of scores ever exists.

LOW = 0xFFFFFFFF
FLIP = np.int32(0x7FFFFFFF)
DOCUMENTS, TOGETHER = 1 << 20, 4 * ROWS
"""Bytes of documents that all queries pass before the next, and queries that pass together, to fit into the
second-level cache."""


@jit
def _rescore(
    pairs: Int64, count: int, block: DocumentBlock, asked: QueryVectors, k: int, best: BestKeys, spare: Int64,
    counts: Int64,
) -> None:  # fmt: skip
    rows, length, rank = block
    queries, query_length = asked
    keys, filled, floor, bar = best
    d, room = rows.shape[1], keys.shape[1]
    rows_at, queries_at = rows.ctypes.data, queries.ctypes.data
    cell = np.zeros(1, np.float32)
    bits = cell.view(np.int32)
    for pair in range(count):
        q, i = pairs[pair] >> 32, pairs[pair] & LOW
        total = dot64(rows_at + i * rows.strides[0], queries_at + q * queries.strides[0], d)
        if len(length):
            both = length[i] * query_length[q]
            total = total / both if both > 0 else 0.0
        cell[0] = np.float32(total) + np.float32(0)  # minus zero becomes zero
        b = bits[0]
        if b < 0:
            b ^= FLIP
        key = (np.int64(b) << 32) | (LOW - np.int64(rank[i]))
        if key <= floor[q]:
            continue
        keys[q, filled[q]] = key
        filled[q] += 1
        if filled[q] == room:
            floor[q] = keep_largest(keys[q], spare, room, k, counts)
            filled[q] = k
            bar[q] = _score(floor[q], cell, bits)


@jit
def _score(key: int, cell: Float32, bits: Int32) -> float:
    b = np.int32(key >> 32)
    if b < 0:
        b ^= FLIP
    bits[0] = b
    return np.float64(cell[0])


@jit
def scan(
    eight: bool, block: DocumentBlock, panels: Panels, asked: QueryVectors, query_rows: PackedQueries,
    first: int, stop: int, k: int, best: BestKeys,
) -> int:  # fmt: skip
    """Add a block's best documents for queries first..stop-1 to `best`; return the number of pairs scored
    exactly.

    eight: panels and packed queries are bytes, not floats.
    query_rows: the queries packed, whose thresholds are overwritten.
    first: a multiple of ROWS.
    """
    words, lane, most = panels
    packed, facts, gauge = query_rows
    keys, bar = best.keys, best.bar
    n, d = block.rows.shape
    groups, stride = packed.shape[1] // 4, packed.strides[0]
    near = max(1, DOCUMENTS // (4 * d * WIDTH))
    spare, counts = np.empty(keys.shape[1], np.int64), np.empty(2048, np.int64)
    masks, pairs = np.zeros(ROWS, np.int64), np.empty(TOGETHER * WIDTH + 1, np.int64)
    panels_at, lane_at, facts_at = words.ctypes.data, lane.ctypes.data, facts.ctypes.data
    packed_at, masks_at = packed.ctypes.data, masks.ctypes.data
    scored = 0
    for low in range(0, words.shape[0], near):
        high = min(low + near, words.shape[0])
        for begin in range(first, stop, TOGETHER):
            end = min(begin + TOGETHER, stop)
            for p in range(low, high):
                panel, about = panels_at + p * words.strides[0], lane_at + p * lane.strides[0]
                away, size = np.float64(most[p, 0]), np.float64(most[p, 1])
                for q in range(begin, end):
                    error = gauge[q, 1] * away + gauge[q, 2] * (size + away)
                    error += gauge[q, 3] * (size + gauge[q, 4])
                    least = bar[q] - gauge[q, 0] - error
                    facts[q, 2] = np.float32(least - 1e-6 * abs(least) - 1e-37)
                count = 0
                for q in range(begin, end, ROWS):
                    query, row = packed_at + q * stride, facts_at + q * facts.strides[0]
                    if eight:
                        hits = int8_tile(panel, query, groups, stride, row, about, masks_at)
                    else:
                        hits = float_tile(panel, query, groups, stride, row, about, masks_at)
                    while hits:
                        r = lowest_bit(hits)
                        hits &= hits - 1
                        mask = masks[r]
                        while mask:
                            i = p * WIDTH + lowest_bit(mask)
                            mask &= mask - 1
                            # Beyond the last query and the last document there is only filling.
                            pairs[count] = ((q + r) << 32) | i
                            count += q + r < end and i < n
                if count:
                    scored += count
                    _rescore(pairs, count, block, asked, k, best, spare, counts)
    return scored


@jit
def scan_few(block: DocumentBlock, asked: QueryVectors, k: int, best: BestKeys) -> None:
    """Add a block's best documents for each query to `best` by scoring every pair."""
    n, count = len(block.rows), 0
    spare, counts = np.empty(best.keys.shape[1], np.int64), np.empty(2048, np.int64)
    pairs = np.empty(n * len(asked.rows), np.int64)
    for i in range(n):
        for q in range(len(asked.rows)):
            pairs[count] = (np.int64(q) << 32) | i
            count += 1
    _rescore(pairs, count, block, asked, k, best, spare, counts)


@jit
def dot_products(rows: Float32, query: Float32, out: Float32) -> None:
    """Write the dot product of each row of `rows`, [n, d], with `query`, [d], to `out`, [n]."""
    rows_at, query_at = rows.ctypes.data, query.ctypes.data
    for i in range(len(rows)):
        total = dot64(rows_at + i * rows.strides[0], query_at, len(query))
        out[i] = np.float32(total) + np.float32(0)


@jit
def write_top_k(k: int, keys: Int64, filled: Int64, rank: Int32, score: Float32) -> None:
    """Write each query's k best documents, best first, to `rank` and `score`, both [Q, k].

    keys: int64[Q, room], reordered.
    filled: number of keys of each query, lowered to at most k; entries beyond it are not written.
    """
    spare, counts = np.empty(keys.shape[1], np.int64), np.empty(2048, np.int64)
    cell = np.zeros(1, np.float32)
    bits = cell.view(np.int32)
    for q in range(len(filled)):
        if filled[q] > k:
            keep_largest(keys[q], spare, filled[q], k, counts)
            filled[q] = k
        sort_descending(keys[q], spare, filled[q], counts)
        for i in range(filled[q]):
            rank[q, i] = np.int32(LOW - (keys[q, i] & LOW))
            score[q, i] = np.float32(_score(keys[q, i], cell, bits))
