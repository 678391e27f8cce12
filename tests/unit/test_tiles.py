"""Products in tiles against numpy's, of every kind and with every way to finish; norms, bytes, sums of embeddings."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from weir.kernels.lanes import FAST, HAS_BF16, HAS_INT8
from weir.kernels.layers import embedded, multiplied, norms
from weir.kernels.tiles import ADD, BF16, FLOAT32, GELU, INT8, PANEL, STORE, TANH

pytestmark = pytest.mark.skipif(not FAST, reason="this processor has no fused multiply-add")

ROWS, INNER, COLUMNS = 13, 64, 128
KINDS = [
    FLOAT32,
    pytest.param(BF16, marks=pytest.mark.skipif(not HAS_BF16, reason="no bfloat16 instructions here")),
    pytest.param(INT8, marks=pytest.mark.skipif(not HAS_INT8, reason="no int8 instructions here")),
]


def halves(x):
    """float32 as bfloat16, to the nearest."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def floats(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


def panels(weight, together, dtype):
    """[n, m] as the kernels read it: panel, group of `together` rows, column, place in the group."""
    n, m = weight.shape
    return np.ascontiguousarray(
        weight.reshape(n // PANEL, PANEL, m // together, together).transpose(0, 2, 1, 3).astype(dtype)
    )


def problem(kind):
    """(rows, their facts, panels, facts of columns, the exact product with its bias)."""
    rng = np.random.default_rng(kind)
    x, w = rng.standard_normal((ROWS + 6, INNER)), rng.standard_normal((COLUMNS, INNER)) / 8
    bias, facts = rng.standard_normal(COLUMNS).astype(np.float32), np.ones((ROWS + 6, 2), np.float32)
    if kind == INT8:
        bytes_, small = rng.integers(0, 256, x.shape, np.uint8), rng.integers(-127, 128, w.shape, np.int8)
        worth = rng.uniform(0.001, 0.002, COLUMNS).astype(np.float32)
        facts = rng.uniform(-0.01, 0.02, facts.shape).astype(np.float32)
        total = (worth * small.sum(1)).astype(np.float32)
        numbers = facts[:, :1].astype(np.float64) * bytes_ + facts[:, 1:]
        columns = np.stack([c.reshape(-1, PANEL) for c in (worth, total, bias)], 1).copy()
        exact = numbers @ (small * worth[:, None].astype(np.float64)).T + bias
        return bytes_, facts, panels(small, 4, np.int8), columns, exact
    if kind == BF16:
        x, w = halves(x), halves(w)
        exact = floats(x).astype(np.float64) @ floats(w).T.astype(np.float64) + bias
        return x, facts, panels(w, 2, np.uint16), bias, exact
    x, w = x.astype(np.float32), w.astype(np.float32)
    return x, facts, panels(w, 1, np.float32), bias, x.astype(np.float64) @ w.T.astype(np.float64) + bias


def product(kind, finish, half=0):
    """What `multiplied` writes, and what it should; guards stand behind the last row that may be written."""
    x, facts, values, columns, exact = problem(kind)
    other = np.random.default_rng(9).standard_normal(exact.shape).astype(np.float32)
    short = half or (kind == BF16 and finish >= GELU)
    out = np.full((ROWS + 6, COLUMNS * (2 if short else 4)), 7, np.uint8)
    matrix = np.array([values.ctypes.data, columns.ctypes.data, x.strides[0], len(values)], np.int64)
    given = (ROWS, x.ctypes.data, facts.ctypes.data, other.ctypes.data, out.ctypes.data, out.strides[0])
    multiplied(kind, finish, half, matrix, given)
    assert (out[18:] == 7).all()
    found = floats(out.view(np.uint16)) if short else out.view(np.float32)
    return found[:ROWS], exact[:ROWS], other[:ROWS]


@pytest.mark.parametrize("kind", KINDS)
def test_products_equal_those_of_numpy(kind):
    if kind != INT8:  # whose products are always added or go through GELU
        found, exact, _ = product(kind, STORE)
        np.testing.assert_allclose(found, exact, atol=1e-5)
    found, exact, other = product(kind, ADD)
    np.testing.assert_allclose(found, exact + other, atol=1e-5)


@pytest.mark.skipif(not HAS_BF16, reason="no bfloat16 instructions here")
def test_products_written_as_bfloat16():
    found, exact, _ = product(BF16, STORE, half=1)
    np.testing.assert_allclose(found, exact, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_behind_products(kind):
    found, exact, _ = product(kind, GELU)
    gelu = exact * (1 + np.vectorize(erf)(exact / 2**0.5)) / 2
    np.testing.assert_allclose(
        found, gelu, atol=2e-6 if kind == FLOAT32 else 2e-4, rtol=2**-8 * (kind == BF16)
    )
    found, exact, _ = product(kind, TANH)
    gelu = exact * (1 + np.tanh((2 / np.pi) ** 0.5 * (exact + 0.044715 * exact**3))) / 2
    np.testing.assert_allclose(
        found, gelu, atol=2e-6 if kind == FLOAT32 else 1e-3, rtol=2**-8 * (kind == BF16)
    )


def test_norms_equal_those_of_numpy():
    rng = np.random.default_rng(2)
    x = (rng.standard_normal((5, 192)) * [[1], [1e-3], [1e3], [1], [0]] + 3).astype(np.float32)
    gain, shift = rng.standard_normal((2, 192)).astype(np.float32)
    wide = x.astype(np.float64)
    spread = np.sqrt(wide.var(1, keepdims=True) + 1e-12)
    expected = (wide - wide.mean(1, keepdims=True)) / spread * gain + shift
    untouched = x[4].copy()
    norms(x, 4, gain, shift, 1e-12)
    np.testing.assert_allclose(x[[0, 2, 3]], expected[[0, 2, 3]], atol=2e-5)
    np.testing.assert_allclose(x[1], expected[1], atol=2e-3)  # 3 in float32 leaves four digits of 0.001
    np.testing.assert_array_equal(x[4], untouched)


def test_sums_of_embeddings():
    rng = np.random.default_rng(3)
    words, positions, segments = (rng.standard_normal((n, 64)).astype(np.float32) for n in (30, 9, 2))
    ids = rng.integers(0, 30, 7).astype(np.int32)
    places = np.stack([rng.integers(0, 9, 7), rng.integers(0, 2, 7)], 1)
    out = np.zeros((7, 64), np.float32)
    embedded(ids, places, words, positions, segments, out)
    np.testing.assert_array_equal(out, words[ids] + positions[places[:, 0]] + segments[places[:, 1]])
