"""Between the int8 products of an encoder's layers: rows to bytes and back, norms, GELU.

A row of numbers becomes bytes and one scale, its largest magnitude over 127; a product of bytes is exact in
int32 and times both scales it is a number again. Everything else stays float32.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = ["gelu_rows", "rows_to_bytes", "rows_to_bytes_twice", "scaled", "scaled_twice", "sum_and_norm"]

Int8: TypeAlias = NDArray[np.int8]
Int32: TypeAlias = NDArray[np.int32]
Float32: TypeAlias = NDArray[np.float32]

LANES = 16
MAGNITUDE = np.int32(0x7FFFFFFF)  # all bits of a float but its sign: magnitudes order as whole numbers do
TINY = np.float32(1e-30)
STEPS = np.float32(254)
"""Of the second byte within one step of the first."""

# erf(x) = x * P(x * x) / Q(x * x) for magnitudes up to END; fitted by least squares, error below 4e-7.
END = np.float32(3.9)
P = tuple(
    np.float32(c)
    for c in (
        1.1283788,
        0.20427205,
        0.0511551054,
        0.00389810106,
        0.000147503046,
        -1.99667423e-06,
        2.01112919e-08,
    )
)
Q = tuple(np.float32(c) for c in (1.0, 0.514360406, 0.116804939, 0.0147343981, 0.00100699242))
P0, P1, P2, P3, P4, P5, P6 = P
Q0, Q1, Q2, Q3, Q4 = Q
HALF, ONE, ROOT = np.float32(0.5), np.float32(1.0), np.float32(0.70710678)


@jit
def rows_to_bytes(x: Float32, out: Int8, scale: Float32) -> None:
    """Each row of x [T, n] as bytes, with its scale [T]."""
    bits = x.view(np.int32)
    for i in range(x.shape[0]):
        top = np.int32(0)
        for j in range(x.shape[1]):
            magnitude = bits[i, j] & MAGNITUDE
            if magnitude > top:
                top = magnitude
        _write_row(x[i], top, out[i], scale, i)


@jit
def rows_to_bytes_twice(x: Float32, out: Int8, scale: Float32) -> None:
    """Each row of x [T, n] as two rows of bytes: out[i], and out[T + i], what that leaves in 254ths of a step."""
    rows = x.shape[0]
    rows_to_bytes(x, out, scale)
    for i in range(rows):
        step = ONE / scale[i]
        for j in range(x.shape[1]):
            left = (x[i, j] * step - np.float32(out[i, j])) * STEPS
            left = min(max(left, np.float32(-127)), np.float32(127))
            out[rows + i, j] = np.int8(np.int32(left + HALF if left >= 0 else left - HALF))


@jit
def scaled(product: Int32, scale: Float32, weight: Float32, bias: Float32, out: Float32) -> None:
    """Products [T, n] as numbers: times the scales of row [T] and column [n], plus bias [n]."""
    for i in range(product.shape[0]):
        for j in range(product.shape[1]):
            out[i, j] = np.float32(product[i, j]) * (scale[i] * weight[j]) + bias[j]


@jit
def scaled_twice(product: Int32, scale: Float32, weight: Float32, bias: Float32, out: Float32) -> None:
    """As `scaled`, for rows that were written twice: product [2T, n]."""
    rows = out.shape[0]
    part = ONE / STEPS
    for i in range(rows):
        for j in range(out.shape[1]):
            whole = np.float32(product[i, j]) + np.float32(product[rows + i, j]) * part
            out[i, j] = whole * (scale[i] * weight[j]) + bias[j]


@jit
def sum_and_norm(
    product: Int32,
    scale: Float32,
    weight: Float32,
    bias: Float32,
    h: Float32,
    gain: Float32,
    shift: Float32,
    eps: float,
) -> None:
    """h [T, n] plus the products as numbers, each row then normalised with gain and shift; in place."""
    columns = h.shape[1]
    whole = columns - columns % LANES
    lanes = np.zeros(LANES, np.float32)
    for i in range(h.shape[0]):
        lanes[:] = 0
        for j in range(0, whole, LANES):
            for lane in range(LANES):
                at = j + lane
                value = np.float32(product[i, at]) * (scale[i] * weight[at]) + bias[at] + h[i, at]
                h[i, at] = value
                lanes[lane] += value
        for at in range(whole, columns):
            value = np.float32(product[i, at]) * (scale[i] * weight[at]) + bias[at] + h[i, at]
            h[i, at] = value
            lanes[0] += value
        mean = lanes.sum() / np.float32(columns)
        lanes[:] = 0
        for j in range(0, whole, LANES):
            for lane in range(LANES):
                away = h[i, j + lane] - mean
                lanes[lane] += away * away
        for at in range(whole, columns):
            away = h[i, at] - mean
            lanes[0] += away * away
        spread = ONE / np.sqrt(lanes.sum() / np.float32(columns) + np.float32(eps))
        for j in range(columns):
            h[i, j] = (h[i, j] - mean) * spread * gain[j] + shift[j]


@jit
def gelu_rows(
    product: Int32, scale: Float32, weight: Float32, bias: Float32, out: Int8, out_scale: Float32
) -> None:
    """GELU of the products as numbers, each row as bytes again with its scale.

    The form with erf serves models made with tanh too: the two differ by less than a step of a byte.
    """
    row = np.empty(product.shape[1], np.float32)
    bits = row.view(np.int32)
    for i in range(product.shape[0]):
        for j in range(product.shape[1]):
            x = np.float32(product[i, j]) * (scale[i] * weight[j]) + bias[j]
            z = min(max(x * ROOT, -END), END)
            t = z * z
            above = (((((P6 * t + P5) * t + P4) * t + P3) * t + P2) * t + P1) * t + P0
            below = (((Q4 * t + Q3) * t + Q2) * t + Q1) * t + Q0
            row[j] = HALF * x * (ONE + z * above / below)
        top = np.int32(0)
        for j in range(product.shape[1]):
            magnitude = bits[j] & MAGNITUDE
            if magnitude > top:
                top = magnitude
        _write_row(row, top, out[i], out_scale, i)


@jit
def _write_row(row: Float32, top: int, out: Int8, scale: Float32, i: int) -> None:
    """A row as bytes; top: the bits of its largest magnitude."""
    one = np.empty(1, np.int32)
    one[0] = top
    largest = max(one.view(np.float32)[0], TINY)
    scale[i] = largest / np.float32(127)
    step = np.float32(127) / largest
    for j in range(len(row)):
        x = row[j] * step
        out[j] = np.int8(np.int32(x + HALF if x >= 0 else x - HALF))
