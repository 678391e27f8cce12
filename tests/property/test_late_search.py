"""MaxSim search against brute force, with and without a first pass in bytes, and what compression and candidates do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import BadValue, StoreError
from weir.kernels.simd import HAS_INT8
from weir.models.batching import Ragged
from weir.plugins.encoders import maxsim_search as grouping
from weir.plugins.encoders import maxsim_search as late
from weir.plugins.encoders.maxsim import bounds, maxsim
from weir.plugins.encoders.maxsim_search import (
    clustered,
    compressed,
    listed,
    near,
    pair_maxsim,
    read_clusters,
    search_chosen,
    search_tokens,
    write_clusters,
)

LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=40)
ASKED = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def ptr_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def drawn(seed, lengths, asked, d, dtype=np.float32, distinct=1000):
    """Documents about some topics, their tokens near them; queries likewise."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((8, d))

    def near_topics(sizes):
        owner = np.repeat(rng.integers(0, 8, len(sizes)), sizes)
        rows = topics[owner] + rng.integers(-distinct, distinct, (len(owner), d)) / distinct * 0.7
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    lengths = np.array(lengths, np.int64)
    rows = Ragged(ptr_of(lengths), near_topics(lengths).astype(dtype))
    return (
        rows,
        Ragged(ptr_of(asked), near_topics(asked).astype(np.float32)),
        rng.permutation(len(lengths)),
    )


def brute(rows, query, rank, k):
    """(documents, scores) of each query by definition: every score by itself, sorted."""
    some = np.flatnonzero(rows.lengths > 0)
    ptr, values = (whole := rows.rows(0, len(rows))).ptr, whole.values
    found = []
    for q in range(len(query)):
        own = query.of(q)
        score = np.array(
            [maxsim(own, ptr_of([len(own)]), values[ptr[i] : ptr[i + 1]], ptr_of([rows.lengths[i]]))[0, 0] for i in some],
            np.float32,
        )  # fmt: skip
        order = np.lexsort((rank[some], -score.astype(np.float64)))[:k]
        found.append((some[order], score[order]))
    return found


def assert_same(found, expected):
    for q, (docs, scores) in enumerate(expected):
        rows = slice(found.ptr[q], found.ptr[q + 1])
        assert found.doc[rows].tolist() == docs.tolist()
        assert found.score[rows].tolist() == scores.tolist()
    assert found.ptr[-1] == sum(len(docs) for docs, _ in expected)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(late, "BLOCK_TOKENS", 64)
    monkeypatch.setattr(late, "QUERY_TOKENS", 50)


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1), LENGTHS, ASKED, st.integers(1, 45), st.sampled_from([np.float32, np.float16])
)
def test_search_finds_what_brute_force_finds_to_the_bit(seed, lengths, asked, k, dtype):
    rows, query, rank = drawn(seed, lengths, asked, 32, dtype, distinct=2)
    rank = rank.astype(np.int32)
    expected = brute(rows, query, rank, k)
    assert_same(search_tokens(rows, query, k, rank), expected)
    assert_same(search_tokens(rows, query, k, rank, first_pass=False), expected)
    every = [np.arange(len(rows))] * len(query)
    assert_same(search_chosen(rows, query, every, k, rank), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_first_pass_in_bytes_leaves_few_open_and_changes_nothing(dtype):
    rng = np.random.default_rng(0)
    rows, query, rank = drawn(3, rng.integers(0, 25, 1200), [32, 17], 64, dtype)
    rank = rank.astype(np.int32)
    assert_same(search_tokens(rows, query, 10, rank), brute(rows, query, rank, 10))
    found = search_tokens(rows, query, 10, rank)
    whole = search_tokens(rows, query, 10, rank, first_pass=False)
    assert whole.exact == 2 * np.count_nonzero(rows.lengths)
    if HAS_INT8:
        assert found.exact < 0.8 * whole.exact


@pytest.mark.parametrize("documents", [1e-38, 1e-30, 1e-21, 1e-15, 1, 1e12, 1e20, 1e30, "mixed"])
@pytest.mark.parametrize("queries", [1e-25, 1e-12, 1, 1e15])
def test_vectors_of_any_length_are_found(documents, queries):
    """Products of scales neither vanish nor overflow: the best are those of the naive score in double."""
    rng = np.random.default_rng(0)
    rows, query, rank = drawn(3, rng.integers(1, 25, 200), [32, 17], 64)
    scale = 10.0 ** rng.integers(-22, 2, len(rows.values))[:, None] if documents == "mixed" else documents
    rows = Ragged(rows.ptr, (rows.values * scale).astype(np.float32))
    query, rank = Ragged(query.ptr, (query.values * queries).astype(np.float32)), rank.astype(np.int32)
    largest = float(np.abs(rows.values).max()) * queries
    if largest > 1e36:
        with pytest.raises(BadValue, match="not finite"):
            search_tokens(rows, query, 10, rank)
        return
    found = search_tokens(rows, query, 10, rank)
    assert_same(found, brute(rows, query, rank, 10))
    if largest < 1e-32:
        return  # its products are denormal numbers: what the definition gives has few digits
    values, ptr = rows.values.astype(np.float64), ptr_of(rows.lengths)
    for q in range(2):
        best = np.maximum.reduceat(query.of(q).astype(np.float64) @ values.T, ptr[:-1], axis=1).sum(axis=0)
        kept = best[found.doc[found.ptr[q] : found.ptr[q + 1]]]
        np.testing.assert_allclose(kept, np.sort(best)[::-1][:10], rtol=2e-6)


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
    ASKED,
    st.sampled_from([16, 48, 128]),
    st.floats(-3, 3),
    st.sampled_from([np.float32, np.float16]),
)
def test_bounds_hold(seed, lengths, asked, d, scale, dtype):
    if not HAS_INT8:
        pytest.skip("this processor does not multiply bytes")
    rng = np.random.default_rng(seed)
    ptr, query_ptr = ptr_of(lengths), ptr_of(asked)
    tokens = (rng.standard_normal((ptr[-1], d)) * 10.0**scale).astype(dtype)
    tokens[rng.random(len(tokens)) < 0.1] = 0
    query = rng.standard_normal((query_ptr[-1], d)).astype(np.float32)
    about, off = bounds(query, query_ptr, tokens, ptr[:-1], ptr[1:])
    exact = maxsim(query, query_ptr, tokens, ptr)
    assert (np.abs(about - exact) <= off).all()
    two, its = bounds(query, query_ptr, tokens, ptr[:-1], ptr[1:], threads=3)
    assert np.array_equal(two, about)
    assert np.array_equal(its, off)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused_wherever_they_are(value):
    rng = np.random.default_rng(1)
    rows, query, rank = drawn(1, rng.integers(1, 25, 400), [8], 32)
    for at in (0, len(rows.values) // 2, len(rows.values) - 1):
        values = rows.values.copy()
        values[at, 3] = value * np.sign(query.values[0, 3])
        with pytest.raises(BadValue, match="not finite"):
            search_tokens(Ragged(rows.ptr, values), query, 3, rank.astype(np.int32))
    with pytest.raises(BadValue, match="queries have vectors of 31 numbers, documents of 32"):
        search_tokens(rows, Ragged(query.ptr, query.values[:, :31]), 3, rank.astype(np.int32))


def test_documents_without_tokens_are_never_found():
    rows, query, _ = drawn(0, [0, 3, 0, 2, 0], [4], 16)
    found = search_tokens(rows, query, 5, np.arange(5, dtype=np.int32))
    assert sorted(found.doc.tolist()) == [1, 3]
    nothing = Ragged(np.zeros(4, np.int64), np.zeros((0, 16), np.float32))
    assert len(search_tokens(nothing, query, 5, np.arange(3, dtype=np.int32)).doc) == 0
    made = clustered(nothing)
    assert near(made, listed(made), query, 4, 10)[0].tolist() == []
    assert len(compressed(nothing, made, 2)) == 3


@pytest.mark.parametrize("bits", [1, 2])
def test_compression_is_within_the_error_it_states(tmp_path, bits):
    rng = np.random.default_rng(2)
    rows, query, rank = drawn(5, rng.integers(0, 30, 300), [32, 4], 32)
    made = clustered(rows)
    assert np.array_equal(clustered(rows).code, made.code)
    small = compressed(rows, made, bits)
    kept, exact = small.rows(0, len(rows)).values, rows.values
    off = np.linalg.norm(kept - exact, axis=1)
    assert small.largest == pytest.approx(off.max(), rel=1e-5)
    assert small.error == pytest.approx(off.mean(), rel=1e-5)
    np.testing.assert_allclose(np.linalg.norm(kept, axis=1), 1, atol=1e-6)
    assert small.packed.nbytes == len(exact) * 32 * bits // 8
    plain = np.linalg.norm(made.centroids[made.code] - exact, axis=1).mean()
    assert small.error < plain
    some = np.flatnonzero(rows.lengths > 0)
    for q in range(2):
        gap = np.abs(pair_maxsim(small, query.of(q), some) - pair_maxsim(rows, query.of(q), some))
        assert 0 < gap.max() <= small.largest * len(query.of(q)) * (1 + 1e-5)
    picked = np.array([7, 3, 250])
    parts = [small.rows(i, i + 1).values for i in picked]
    assert np.array_equal(small.rows_of(picked).values, np.concatenate(parts))
    write_clusters(tmp_path, made, listed(made), small)
    again = read_clusters(tmp_path, bits)[2]
    assert np.array_equal(again.rows(0, len(rows)).values, kept)
    assert_same(search_tokens(again, query, 7, rank.astype(np.int32)), brute(small, query, rank, 7))
    (tmp_path / "packed.npy").write_bytes((tmp_path / "packed.npy").read_bytes()[:-1])
    with pytest.raises(StoreError, match="damaged"):
        read_clusters(tmp_path, bits)


def test_more_bits_lose_less_and_odd_widths_are_refused():
    rng = np.random.default_rng(2)
    rows, _, _ = drawn(5, rng.integers(0, 30, 300), [4], 32)
    made = clustered(rows)
    assert compressed(rows, made, 2).error < 0.8 * compressed(rows, made, 1).error
    odd, _, _ = drawn(5, [4, 5], [4], 31)
    with pytest.raises(BadValue, match="vectors of 31 numbers do not fill whole bytes"):
        compressed(odd, clustered(odd), 2)


def test_candidates_hold_nearly_all_of_the_best_and_all_of_them_when_all_are_looked_at(monkeypatch):
    monkeypatch.setattr(grouping, "BLOCK_VECTORS", 500)
    rng = np.random.default_rng(4)
    rows, query, rank = drawn(9, rng.integers(1, 30, 800), [32] * 10, 32)
    rank = rank.astype(np.int32)
    made = clustered(rows)
    lists = listed(made)
    for c in range(0, len(made.centroids), 17):
        holders = np.flatnonzero([(made.code[a:b] == c).any() for a, b in itertools.pairwise(made.ptr)])
        assert lists.doc[lists.ptr[c] : lists.ptr[c + 1]].tolist() == holders.tolist()
    exact = search_tokens(rows, query, 10, rank)
    chosen = near(made, lists, query, 2, 150)
    assert all(len(docs) <= 150 and (np.diff(docs) > 0).all() for docs in chosen)
    found = search_chosen(rows, query, chosen, 10, rank)
    shared = np.mean(
        [len(np.intersect1d(found.doc[s : s + 10], exact.doc[s : s + 10])) for s in range(0, 100, 10)]
    )
    assert shared >= 9
    every = near(made, lists, query, len(made.centroids), len(rows))
    found = search_chosen(rows, query, every, 10, rank)
    np.testing.assert_array_equal(found.doc, exact.doc)
    np.testing.assert_array_equal(found.score, exact.score)
