"""Vectors of documents, packed for tiles: a panel holds WIDTH of them side by side, dimension after dimension."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.simd import WIDTH, dot32, dot64

__all__ = ["all_finite", "norms", "pack_bytes", "pack_floats"]

Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
Int32: TypeAlias = NDArray[np.int32]
Words: TypeAlias = NDArray[np.uint32]

LEAST_LENGTH = np.float32(1e-30)
MAGNITUDE = np.int32(0x7FFFFFFF)
INFINITE = np.int32(0x7F800000)
ONE, TOP = np.float32(1), np.float32(127)
UNIT = np.float32(1.00001)
"""The square of the length of a row divided by its length, with what rounding may add."""
ROUND = np.float32(12582912.0)
"""1.5 * 2**23: added to a small float it leaves the nearest whole number in the lowest bits."""


@jit
def all_finite(rows: Float32) -> bool:
    """Whether every number of rows, float32[n, d], is finite."""
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
def norms(rows: Float32, found: Float64) -> None:
    """Euclidean norm of each row, in double: found float64[n]."""
    n, d = rows.shape
    for i in range(n):
        at = rows.ctypes.data + i * rows.strides[0]
        found[i] = np.sqrt(dot64(at, at, d))


@jit
def _share(length: float) -> float:
    """One over a length; not a number beyond what floats can divide by, so that a row is looked at exactly."""
    if length == 0:
        return np.float32(0)
    return np.float32(1 / length) if 1e-30 < length < 1e30 else np.float32(np.nan)


@jit
def pack_bytes(
    rows: Float32, length: Float64, centre: Float32, first: int, stop: int, words: Words, lane: Float32,
    most: Float32,
) -> None:  # fmt: skip
    """Pack panels first..stop-1 of rows as bytes: u + 128, where scale * u is near row / length - centre.

    rows: float32[n, d]; length: float64[n] what each is divided by, or empty for nothing; centre: float32[d];
    words: uint32[panels, ceil(d / 4), WIDTH]; lane: float32[panels, 2, WIDTH], the scales and the products with
    the centre; most: float32[panels, 2], the largest distance of a row from its bytes and the largest length of a
    row from the centre, both rounded in float. A panel is filled up with rows that score minus infinity.
    """
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
def pack_floats(
    rows: Float32, length: Float64, first: int, stop: int, panels: Float32, lane: Float32, most: Float32
) -> None:
    """Pack panels first..stop-1 of rows as they are, divided by their lengths where these are given.

    panels: float32[panels, d, WIDTH]; the others as in `pack_bytes`, without a centre.
    """
    n, d = rows.shape
    for p in range(first, stop):
        largest = np.float32(0)
        for i in range(WIDTH):
            r = p * WIDTH + i
            lane[p, 0, i], lane[p, 1, i] = ONE, np.float32(0)
            if r >= n:
                lane[p, 1, i] = np.float32(-np.inf)
                for j in range(d):
                    panels[p, j, i] = np.float32(0)
                continue
            share = _share(length[r]) if len(length) else ONE
            for j in range(d):
                panels[p, j, i] = rows[r, j] * share
            if len(length):
                largest = max(largest, UNIT if length[r] > 0 else np.float32(0))
            else:
                at = rows.ctypes.data + r * rows.strides[0]
                largest = max(largest, dot32(at, at, d))
        most[p, 0], most[p, 1] = np.float32(0), np.sqrt(largest)
