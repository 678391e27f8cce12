"""MaxSim against its definition, and that no score depends on what stands beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import BadValue
from weir.plugins.encoders.maxsim import EXACT_BLOCK_TOKENS as TOKENS
from weir.plugins.encoders.maxsim import ROWS, WIDTH, maxsim

SIZES = st.lists(st.integers(1, 3 * ROWS), min_size=1, max_size=12)
ASKED = st.lists(st.integers(0, WIDTH + 3), min_size=1, max_size=5)


def ptr_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def drawn(seed, sizes, asked, d, dtype=np.float32):
    rng = np.random.default_rng(seed)
    ptr, query_ptr = ptr_of(sizes), ptr_of(asked)
    tokens, query = (rng.standard_normal((int(p[-1]), d)) for p in (ptr, query_ptr))
    return query.astype(np.float32), query_ptr, tokens.astype(dtype), ptr


def defined(query, query_ptr, tokens, ptr):
    """The definition, in double: float64[Q, n]."""
    products = query.astype(np.float64) @ tokens.astype(np.float64).T
    best = np.stack([products[:, a:b].max(axis=1) for a, b in zip(ptr[:-1], ptr[1:], strict=True)])
    spans = zip(query_ptr[:-1], query_ptr[1:], strict=True)
    return np.stack([best[:, a:b].sum(axis=1) for a, b in spans])


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), SIZES, ASKED, st.integers(1, 70))
def test_scores_are_those_of_the_definition(seed, sizes, asked, d):
    case = drawn(seed, sizes, asked, d)
    found = maxsim(*case)
    assert found.shape == (len(asked), len(sizes))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, defined(*case), rtol=1e-5, atol=1e-5 * d)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), SIZES, ASKED, st.sampled_from([np.float32, np.float16]))
def test_a_score_does_not_depend_on_the_batch(seed, sizes, asked, dtype):
    query, query_ptr, tokens, ptr = drawn(seed, sizes, asked, 24, dtype)
    together = maxsim(query, query_ptr, tokens, ptr)
    for q in range(len(asked)):
        own = query[query_ptr[q] : query_ptr[q + 1]]
        for i in range(len(sizes)):
            document = tokens[ptr[i] : ptr[i + 1]]
            alone = maxsim(own, ptr_of([len(own)]), document, ptr_of([len(document)]))
            assert alone[0, 0] == together[q, i]
    order = np.random.default_rng(seed).permutation(len(sizes))
    assert np.array_equal(maxsim(query, query_ptr, tokens, ptr, order), together[:, order])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("d", [48, 128])
def test_many_documents_long_and_short(tmp_path, dtype, threads, d):
    rng = np.random.default_rng(1)
    sizes = np.concatenate([rng.integers(1, 40, 300), [TOKENS - 1, TOKENS, TOKENS + 1, 3 * TOKENS]])
    query, query_ptr, tokens, ptr = drawn(3, sizes, [32, 7, 0, 33], d, dtype)
    np.save(tmp_path / "tokens.npy", tokens)
    mapped = np.load(tmp_path / "tokens.npy", mmap_mode="r")
    found = maxsim(query, query_ptr, mapped, ptr, threads=threads)
    kept = tokens.astype(np.float32)
    np.testing.assert_allclose(found, defined(query, query_ptr, kept, ptr), rtol=1e-5, atol=1e-4)
    assert np.array_equal(found, maxsim(query, query_ptr, kept, ptr))
    assert (found[2] == 0).all()


def test_negative_similarities_are_not_hidden_by_padding():
    query, tokens = (
        np.array([[1.0, 0.0]], np.float32),
        np.array([[-0.5, 1.0], [-0.25, 1.0], [3.0, 0.0]], np.float32),
    )
    found = maxsim(query, ptr_of([1]), tokens, ptr_of([2, 1]))
    assert found.tolist() == [[-0.25, 3.0]]


def test_rows_that_are_not_contiguous_are_read_as_they_are():
    query, query_ptr, tokens, ptr = drawn(0, [4, 5], [3], 10)
    wide = np.zeros((9, 25), np.float32)
    wide[:, 5:15] = tokens
    expected = maxsim(query, query_ptr, tokens, ptr)
    assert np.array_equal(maxsim(query, query_ptr, wide[:, 5:15], ptr), expected)
    assert np.array_equal(maxsim(query, query_ptr, np.asfortranarray(tokens), ptr), expected)


def test_what_cannot_be_scored_is_refused():
    query, query_ptr, tokens, ptr = drawn(0, [4, 5], [3], 10)
    with pytest.raises(BadValue, match="document 1 has no tokens"):
        maxsim(query, query_ptr, tokens, np.array([0, 4, 4, 9]))
    with pytest.raises(BadValue, match="two tables of one width"):
        maxsim(query[:, :9], query_ptr, tokens, ptr)
    for value in (np.nan, np.inf):
        for row in range(9):
            bad = tokens.copy()
            bad[row, 3] = value
            if value == np.inf:  # minus infinity is never the best: one sign of two has to show
                bad[row, 3] = np.inf * np.sign(query[0, 3])
            with pytest.raises(BadValue, match="not finite"):
                maxsim(query, query_ptr, bad, ptr)
    assert maxsim(query, query_ptr, tokens, ptr, np.zeros(0, np.int64)).shape == (1, 0)
