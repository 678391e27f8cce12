"""The largest logits of terms, whose bounds come from bytes, against all logits in double."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.models.term_maxima import TermMaxima

if TermMaxima.of(np.ones((1, 4)), np.zeros(1)) is None:
    pytest.skip("this processor has no products of bytes", allow_module_level=True)


def by_double(weight, bias, states, lengths):
    """The maxima, and the error that a logit in fp32 may have."""
    logits = states.astype(np.float64) @ weight.T.astype(np.float64) + bias
    best = np.zeros((len(lengths), len(weight)))
    for text, stop in enumerate(np.cumsum(lengths)):
        best[text] = logits[stop - lengths[text] : stop].max(0, initial=0)
    size = np.abs(states).astype(np.float64) @ np.abs(weight).T.astype(np.float64)
    return best, 1e-6 * (size.max(initial=0) + np.abs(bias).max()) + 1e-38  # floats end near there


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    terms=st.integers(1, 70),
    dimensions=st.integers(1, 70),
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    shape=st.sampled_from(["normal", "few large", "constant", "zeros", "tiny"]),
    bias=st.sampled_from([0.0, -3.0, 3.0, 1000.0]),
)
def test_no_maximum_is_passed_over(seed, terms, dimensions, lengths, shape, bias):
    draw = np.random.default_rng(seed)
    weight, states = draw.normal(size=(terms, dimensions)), draw.normal(size=(sum(lengths), dimensions))
    if shape == "few large":
        weight[:, 0], states[:, -1] = 100 * weight[:, 0], 100 * states[:, -1]
    elif shape == "constant":  # every byte is the largest: sums of 16 bits would overflow first
        weight, states = np.sign(weight[:, :1]) + 0 * weight, np.sign(states[:, :1]) + 0 * states
    elif shape in ("zeros", "tiny"):
        weight, states = weight * 1e-20, states * (0 if shape == "zeros" else 1e-20)
    weight, states = weight.astype(np.float32), states.astype(np.float32)
    added = (bias * np.abs(draw.normal(size=terms))).astype(np.float32)
    found = TermMaxima.of(weight, added).of_texts(states, np.array(lengths))
    expected, error = by_double(weight, added, states, lengths)
    np.testing.assert_allclose(found, expected, rtol=0, atol=error)


def test_a_state_that_is_no_number_stays_in_its_text():
    draw = np.random.default_rng(1)
    weight, states = draw.normal(size=(40, 8)).astype(np.float32), draw.normal(size=(9, 8)).astype(np.float32)
    maxima, lengths = TermMaxima.of(weight, np.zeros(40)), np.array([3, 3, 3])
    whole = maxima.of_texts(states, lengths)
    for value in (np.nan, np.inf, 1e30):
        states[4, 2] = value
        found = maxima.of_texts(states, lengths)
        assert not np.isfinite(found[1]).all() or value == 1e30
        assert (found[1] > 1e20).any() or value != 1e30
        np.testing.assert_array_equal(found[[0, 2]], whole[[0, 2]])


def test_weights_that_are_no_numbers_are_left_to_the_engine():
    weight = np.ones((3, 4))
    weight[1, 1] = np.nan
    assert TermMaxima.of(weight, np.zeros(3)) is None


def test_terms_without_a_bias_each_are_left_to_the_engine():
    assert TermMaxima.of(np.ones((3, 4)), np.zeros(2)) is None
