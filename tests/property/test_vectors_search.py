"""Exact search by vectors equals a plain computation in double, bit for bit, whatever the data and the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.order import ranked
from weir.errors import BadValue
from weir.vectors import exact as searching
from weir.vectors.exact import Array, pair_scores, search


def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of products along the last axis: 32 running sums, halves onto halves, then the rest."""
    products = a.astype(np.float64) * b.astype(np.float64)
    whole = products.shape[-1] // 32 * 32
    sums = np.zeros((*products.shape[:-1], 32))
    for start in range(0, whole, 32):
        sums = sums + products[..., start : start + 32]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    rest = np.zeros(products.shape[:-1])
    for j in range(whole, products.shape[-1]):
        rest = rest + products[..., j]
    return sums[..., 0] + rest


def naive(documents, queries, k, similarity, tie_rank):
    """(documents, scores) in the order that core/order.py defines."""
    score = np.stack([dots(documents, q[None]) for q in queries])
    if similarity == "cosine":
        length = np.sqrt(dots(queries, queries))[:, None] * np.sqrt(dots(documents, documents))
        score = np.divide(score, length, out=np.zeros_like(score), where=length > 0)
    score = score.astype(np.float32).astype(np.float64) + 0.0
    n = len(documents)
    query = np.repeat(np.arange(len(queries)), n)
    order = ranked(query, score.ravel(), np.tile(tie_rank, len(queries))).reshape(len(queries), n)[:, :k]
    return (order % n).ravel(), score.ravel()[order.ravel()].astype(np.float32)


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 700)), draw(st.sampled_from([1, 2, 3, 4, 7, 31, 32, 33, 64, 65, 130]))
    documents = rng.standard_normal((n, d)).astype(np.float32)
    queries = rng.standard_normal((draw(st.integers(1, 40)), d)).astype(np.float32)
    match draw(st.sampled_from(["plain", "grid", "equal", "scales", "narrow", "tiny", "huge"])):
        case "grid":  # many ties
            documents, queries = np.round(documents), np.round(queries)
        case "equal":
            documents = documents[rng.integers(0, max(1, n // 5), n)]
        case "scales":  # lengths of many magnitudes in one block
            documents *= np.float32(10) ** rng.integers(-20, 8, (n, 1)).astype(np.float32)
        case "narrow":  # all vectors about the same, as some encoders give them
            documents, queries = 5 + documents / 100, 5 + queries / 100
        case "tiny":
            documents *= np.float32(1e-30)
            queries *= np.float32(1e-10)
        case "huge":
            documents *= np.float32(1e12)
            queries *= np.float32(1e12)
    documents[rng.random(n) < draw(st.sampled_from([0, 0.1]))] = 0
    queries[rng.random(len(queries)) < 0.05] = 0
    return documents, queries, rng.permutation(n).astype(np.int32)


@given(cases(), st.sampled_from([1, 3, 10, 100, 1000]), st.sampled_from(["dot", "cosine"]))
@settings(max_examples=60, deadline=None)
def test_search_equals_a_plain_computation(case, k, similarity):
    documents, queries, tie_rank = case
    doc, score = naive(documents, queries, k, similarity, tie_rank)
    for way in ("auto", "int8", "fp32"):
        found = search(Array(documents), queries, k, similarity, tie_rank, way)
        np.testing.assert_array_equal(found.score, score, way)
        np.testing.assert_array_equal(found.doc, doc, way)
        assert np.diff(found.ptr).tolist() == [min(k, len(documents))] * len(queries)


@pytest.mark.parametrize("way", ["int8", "fp32"])
def test_neither_blocks_nor_batches_nor_threads_move_a_bit(monkeypatch, way):
    rng = np.random.default_rng(5)
    documents = rng.standard_normal((1000, 48)).astype(np.float32)
    queries = rng.standard_normal((100, 48)).astype(np.float32)
    whole = search(Array(documents), queries, 20, first_pass=way)
    monkeypatch.setattr(searching, "BLOCK", 96)
    monkeypatch.setattr(searching, "HELD", 1)
    monkeypatch.setenv("WEIR_THREADS", "3")
    searching.settings.cache_clear()
    parts = search(Array(documents), queries, 20, first_pass=way)
    searching.settings.cache_clear()
    alone = [search(Array(documents), q[None], 20, first_pass=way) for q in queries]
    for other in (parts.doc, np.concatenate([a.doc for a in alone])):
        np.testing.assert_array_equal(other, whole.doc)
    np.testing.assert_array_equal(parts.score, whole.score)


def test_where_bytes_tell_too_little_it_goes_over_to_floats(monkeypatch):
    """One dimension dwarfs the others, so that bytes see nothing but it: still exact."""
    monkeypatch.setattr(searching, "BLOCK", 96)
    rng = np.random.default_rng(1)
    documents = rng.standard_normal((2000, 40)).astype(np.float32) / 1000
    documents[:, 0] = rng.choice([-1000, 1000], 2000)
    queries = rng.standard_normal((30, 40)).astype(np.float32)
    queries[:, 0] = 0
    tie_rank = np.arange(2000, dtype=np.int32)
    found = search(Array(documents), queries, 10, "dot", tie_rank)
    doc, score = naive(documents, queries, 10, "dot", tie_rank)
    np.testing.assert_array_equal(found.doc, doc)
    np.testing.assert_array_equal(found.score, score)


def test_the_first_pass_leaves_out_nearly_everything():
    """What is scored exactly stays near what even a perfect first pass would have to look at."""
    rng = np.random.default_rng(2)
    documents = rng.standard_normal((20_000, 64)).astype(np.float32)
    queries = rng.standard_normal((40, 64)).astype(np.float32)
    assert search(Array(documents), queries, 10).exact < 0.05 * 20_000 * 40


def test_pairs_score_as_searching_scores_them():
    rng = np.random.default_rng(3)
    documents, query = rng.standard_normal((50, 70)).astype(np.float32), rng.standard_normal(70).astype("f4")
    found = search(Array(documents), query[None], 50)
    np.testing.assert_array_equal(pair_scores(documents[found.doc], query), found.score.astype(np.float64))


def test_halves_are_widened_and_nothing_is_found_among_nothing():
    halves = np.ones((3, 8), np.float16)
    assert search(Array(halves), np.ones((1, 8), np.float32), 5).score.tolist() == [8, 8, 8]
    assert len(search(Array(np.zeros((0, 8), np.float32)), np.ones((2, 8), np.float32), 5).doc) == 0
    assert search(Array(halves), np.ones((0, 8), np.float32), 5).ptr.tolist() == [0]


@pytest.mark.parametrize(
    ("documents", "queries", "k", "similarity", "said"),
    [
        (np.ones((3, 8)), np.ones((1, 8)), 0, "dot", "k is 0"),
        (np.ones((3, 8)), np.ones((1, 7)), 1, "dot", "queries have 7 dimensions, documents 8"),
        (np.ones((3, 8)), np.ones((1, 8)), 1, "cosin", "expected dot or cosine"),
        (np.ones((3, 8)), np.full((1, 8), np.nan), 1, "dot", "a query's vector is not finite"),
        (np.full((3, 8), np.nan), np.ones((1, 8)), 1, "dot", "a score is not finite"),
        (np.full((3, 8), 1e30), np.full((1, 8), 1e30), 1, "dot", "a score is not finite"),
    ],
)
def test_what_cannot_be_searched_is_refused(documents, queries, k, similarity, said):
    with pytest.raises(BadValue, match=said), np.errstate(over="ignore", invalid="ignore"):
        search(Array(documents.astype(np.float32)), queries.astype(np.float32), k, similarity)
