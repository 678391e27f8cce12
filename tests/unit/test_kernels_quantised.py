"""The kernels between int8 products, against plain numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weir.kernels.quantised import (
    gelu_rows,
    rows_to_bytes,
    rows_to_bytes_twice,
    scaled,
    scaled_twice,
    sum_and_norm,
)

SHAPES = [(1, 1), (3, 16), (5, 37), (2, 384)]


@pytest.fixture(params=SHAPES)
def x(request):
    rng = np.random.default_rng(sum(request.param))
    return (rng.normal(size=request.param) * rng.choice([1e-6, 1, 300], (request.param[0], 1))).astype(
        np.float32
    )


def test_bytes_are_within_half_a_step(x):
    out, scale = np.empty(x.shape, np.int8), np.empty(len(x), np.float32)
    rows_to_bytes(x, out, scale)
    np.testing.assert_allclose(scale, np.abs(x).max(1) / 127, rtol=1e-6)
    assert (np.abs(out * scale[:, None] - x) <= 0.501 * scale[:, None]).all()
    assert (np.abs(out).max(1) == 127).all()


def test_two_bytes_are_254_times_finer(x):
    out, scale = np.empty((2 * len(x), x.shape[1]), np.int8), np.empty(len(x), np.float32)
    rows_to_bytes_twice(x, out, scale)
    back = (out[: len(x)] + out[len(x) :] / 254) * scale[:, None]
    assert (np.abs(back - x) <= 0.51 / 254 * scale[:, None] + 1e-5 * np.abs(x)).all()


def test_a_row_of_zeros():
    out, scale = np.empty((2, 4), np.int8), np.empty(1, np.float32)
    rows_to_bytes_twice(np.zeros((1, 4), np.float32), out, scale)
    assert not out.any()
    assert np.isfinite(scale).all()


@pytest.fixture(params=SHAPES)
def product(request):
    rng = np.random.default_rng(1 + sum(request.param))
    rows, columns = request.param
    return (
        rng.integers(-40000, 40000, (rows, columns)).astype(np.int32),
        rng.uniform(1e-3, 1e-2, rows).astype(np.float32),
        rng.uniform(1e-3, 1e-2, columns).astype(np.float32),
        rng.normal(size=columns).astype(np.float32),
    )


def as_numbers(product, scale, weight, bias):
    return product * scale[:, None].astype(np.float64) * weight + bias


def test_products_as_numbers(product):
    out = np.empty(product[0].shape, np.float32)
    scaled(*product, out)
    np.testing.assert_allclose(out, as_numbers(*product), rtol=1e-5, atol=1e-6)


def test_products_of_rows_written_twice(product):
    first, scale, weight, bias = product
    second = first[::-1].copy()
    out = np.empty(first.shape, np.float32)
    scaled_twice(np.concatenate([first, second]), scale, weight, bias, out)
    np.testing.assert_allclose(
        out, as_numbers(first + second / 254, scale, weight, bias), rtol=1e-5, atol=1e-5
    )


def test_sum_and_norm(product):
    rng = np.random.default_rng(9)
    rows, columns = product[0].shape
    h, gain, shift = rng.normal(size=(rows, columns)), rng.normal(size=columns), rng.normal(size=columns)
    total = as_numbers(*product) + h
    away = total - total.mean(1, keepdims=True)
    expected = away / np.sqrt((away**2).mean(1, keepdims=True) + 1e-5) * gain + shift
    found = h.astype(np.float32)
    sum_and_norm(*product, found, gain.astype(np.float32), shift.astype(np.float32), 1e-5)
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_gelu(product):
    out, scale = np.empty(product[0].shape, np.int8), np.empty(len(product[0]), np.float32)
    gelu_rows(*product, out, scale)
    numbers = as_numbers(*product)
    expected = 0.5 * numbers * (1 + np.vectorize(math.erf)(numbers / math.sqrt(2)))
    assert (np.abs(out * scale[:, None] - expected) <= 0.51 * scale[:, None] + 1e-5).all()


def test_gelu_is_that_of_erf_everywhere():
    numbers = np.linspace(-9, 9, 4001, dtype=np.float32)
    for value in numbers[::37]:  # one to a row: a byte of its own scale says the sign and the scale the rest
        out, scale = np.empty((1, 1), np.int8), np.empty(1, np.float32)
        one = np.ones(1, np.float32)
        gelu_rows(np.zeros((1, 1), np.int32), one, one, np.array([value], np.float32), out, scale)
        expected = 0.5 * value * (1 + math.erf(value / math.sqrt(2)))
        assert abs(out[0, 0] * scale[0] - expected) < 2e-6 * max(1, abs(value))
