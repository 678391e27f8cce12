"""Exact search by vectors equals a plain computation in double, bit for bit, whatever the data and the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.order import ranked
from weir.errors import BadValue
from weir.systems.vectors import exact_search as scanning
from weir.systems.vectors import exact_search as searching
from weir.systems.vectors.exact_search import ArraySource, query_dot_products, search


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


def times(documents, queries, one, two=1):
    return documents * np.float32(one), queries * np.float32(two)


def close(rng, documents):
    """One vector many times, apart by what floats can just tell."""
    return documents[:1] * (1 + np.float32(1e-7) * rng.standard_normal(documents.shape).astype(np.float32))


SHAPES = {
    "plain": lambda rng, d, q: (d, q),
    "many ties": lambda rng, d, q: (np.round(d), np.round(q)),
    "repeated": lambda rng, d, q: (d[rng.integers(0, max(1, len(d) // 5), len(d))], q),
    "many lengths": lambda rng, d, q: (
        d * np.float32(10) ** rng.integers(-20, 8, (len(d), 1)).astype("f4"),
        q,
    ),
    "narrow": lambda rng, d, q: (5 + d / 100, 5 + q / 100),  # about the same, as some encoders give them
    "close": lambda rng, d, q: (close(rng, d), q),
    "close and short": lambda rng, d, q: times(close(rng, d), q, 1e-24),  # floats cannot hold their squares
    "short": lambda rng, d, q: times(d, q, 1e-25),
    "denormal": lambda rng, d, q: times(d, q, 1e-42),
    "tiny": lambda rng, d, q: times(d, q, 1e-30, 1e-10),
    "huge": lambda rng, d, q: times(d, q, 1e12, 1e12),
}


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 700)), draw(st.sampled_from([1, 2, 3, 4, 7, 31, 32, 33, 64, 65, 130]))
    documents = rng.standard_normal((n, d)).astype(np.float32)
    queries = rng.standard_normal((draw(st.integers(1, 40)), d)).astype(np.float32)
    documents, queries = SHAPES[draw(st.sampled_from(sorted(SHAPES)))](rng, documents, queries)
    documents[rng.random(n) < draw(st.sampled_from([0, 0.1]))] = 0
    queries[rng.random(len(queries)) < 0.05] = 0
    return documents, queries, rng.permutation(n).astype(np.int32)


@given(cases(), st.sampled_from([1, 3, 10, 100, 1000]), st.sampled_from(["dot", "cosine"]))
@settings(max_examples=60)
def test_search_equals_a_plain_computation(case, k, similarity):
    documents, queries, tie_rank = case
    doc, score = naive(documents, queries, k, similarity, tie_rank)
    for way in ("auto", "int8", "fp32"):
        found = search(ArraySource(documents), queries, k, similarity, tie_rank, way)
        np.testing.assert_array_equal(found.score, score, way)
        np.testing.assert_array_equal(found.doc, doc, way)
        assert np.diff(found.ptr).tolist() == [min(k, len(documents))] * len(queries)


@pytest.mark.parametrize("way", ["int8", "fp32"])
def test_neither_blocks_nor_batches_nor_threads_move_a_bit(monkeypatch, way):
    rng = np.random.default_rng(5)
    documents = rng.standard_normal((1000, 48)).astype(np.float32)
    queries = rng.standard_normal((100, 48)).astype(np.float32)
    whole = search(ArraySource(documents), queries, 20, first_pass=way)
    monkeypatch.setattr(scanning, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(searching, "CANDIDATE_BYTES", 1)
    monkeypatch.setenv("WEIR_THREADS", "3")
    scanning.settings.cache_clear()
    parts = search(ArraySource(documents), queries, 20, first_pass=way)
    scanning.settings.cache_clear()
    alone = [search(ArraySource(documents), q[None], 20, first_pass=way) for q in queries]
    for other in (parts.doc, np.concatenate([a.doc for a in alone])):
        np.testing.assert_array_equal(other, whole.doc)
    np.testing.assert_array_equal(parts.score, whole.score)


def test_where_bytes_tell_too_little_it_goes_over_to_floats(monkeypatch):
    """One dimension dwarfs the others, so that bytes see nothing but it: still exact."""
    monkeypatch.setattr(scanning, "BLOCK_BYTES", 20_000)
    rng = np.random.default_rng(1)
    documents = rng.standard_normal((2000, 40)).astype(np.float32) / 1000
    documents[:, 0] = rng.choice([-1000, 1000], 2000)
    queries = rng.standard_normal((30, 40)).astype(np.float32)
    queries[:, 0] = 0
    tie_rank = np.arange(2000, dtype=np.int32)
    found = search(ArraySource(documents), queries, 10, "dot", tie_rank)
    doc, score = naive(documents, queries, 10, "dot", tie_rank)
    np.testing.assert_array_equal(found.doc, doc)
    np.testing.assert_array_equal(found.score, score)


def test_what_bytes_lose_of_a_query_alone_is_bounded():
    """Documents that bytes hold exactly, and queries of which they hold nothing but one number that is in no product."""
    rng = np.random.default_rng(16)
    documents = rng.integers(-100, 101, (2000, 40)).astype(np.float32)
    documents[:, 0], documents[:, 1] = 0, 127
    documents[1000:] = -documents[:1000]  # so that the middle of all is zero
    queries = rng.uniform(-3, 3, (10, 40)).astype(np.float32)
    queries[:, 0] = 1000
    doc, score = naive(documents, queries, 20, "dot", np.arange(2000))
    found = search(ArraySource(documents), queries, 20, "dot", None, "int8")
    np.testing.assert_array_equal(found.doc, doc)
    np.testing.assert_array_equal(found.score, score)


@pytest.mark.parametrize("way", ["int8", "fp32"])
def test_vectors_too_short_for_floats_to_square_keep_their_order(way):
    """Nearly equal cosines of vectors whose squares underflow: what is bounded is the vector of length 1."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        noise = 1 + 3e-8 * rng.standard_normal((3000, 64))
        documents = (rng.standard_normal(64) * noise * 1e-24).astype(np.float32)
        queries = rng.standard_normal((8, 64)).astype(np.float32)
        doc, score = naive(documents, queries, 5, "cosine", np.arange(3000))
        found = search(ArraySource(documents), queries, 5, "cosine", None, way)
        np.testing.assert_array_equal(found.doc, doc)
        np.testing.assert_array_equal(found.score, score)


@pytest.mark.parametrize("way", ["auto", "int8", "fp32"])
@pytest.mark.parametrize("seed", [33, 48, 52])
def test_a_query_whose_products_floats_cannot_hold_is_answered_exactly(way, seed):
    """The sums of bytes, times the query's scale, are minus infinity long before a score is beyond a float."""
    rng = np.random.default_rng(seed)
    documents = (1e-3 * close(rng, rng.standard_normal((342, 32)))).astype(np.float32)
    queries = np.clip(1e38 * rng.standard_normal((12, 32)), -3e38, 3e38).astype(np.float32)
    doc, score = naive(documents, queries, 100, "dot", np.arange(342))
    found = search(ArraySource(documents), queries, 100, "dot", None, way)
    np.testing.assert_array_equal(found.score, score)
    np.testing.assert_array_equal(found.doc, doc)


@pytest.fixture
def readings(monkeypatch):
    """The arguments with which documents were read, a sample for one in 4 of them."""
    monkeypatch.setattr(searching, "SAMPLED_ONE_IN", 4)
    seen, real = [], searching.scan

    def spied(given, queries, k, bar=None):
        seen.append((len(given.rows), len(queries), bar is not None))
        return real(given, queries, k, bar)

    monkeypatch.setattr(searching, "scan", spied)
    return seen


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("way", ["int8", "fp32"])
def test_a_sample_sets_the_bar_and_saves_most_of_the_work(readings, monkeypatch, similarity, way):
    rng = np.random.default_rng(11)
    documents = rng.standard_normal((20_000, 40)).astype(np.float32)
    queries, tie_rank = rng.standard_normal((20, 40)).astype(np.float32), rng.permutation(20_000)
    found = search(ArraySource(documents), queries, 200, similarity, tie_rank, way)
    assert readings == [
        (1248, 20, False),
        (5000, 20, True),
        (20_000, 20, True),
    ]  # a sample of the sample, too
    doc, score = naive(documents, queries, 200, similarity, tie_rank)
    np.testing.assert_array_equal(found.doc, doc)
    np.testing.assert_array_equal(found.score, score)
    monkeypatch.setattr(searching, "BAR_DEVIATIONS", 1e9)
    plain = search(ArraySource(documents), queries, 200, similarity, tie_rank, way)
    assert readings[3:] == [(20_000, 20, False)]
    np.testing.assert_array_equal(plain.doc, found.doc)
    assert found.exact < 0.8 * plain.exact


@pytest.mark.parametrize("equal", [False, True])
def test_a_sample_that_misleads_costs_time_and_no_answer(readings, equal):
    """Every document of the sample is better than all others for some queries: for these the bar is too high."""
    rng = np.random.default_rng(12)
    documents = rng.standard_normal((8000, 24)).astype(np.float32)
    sample = searching.spread(8000, 8000 // (4 * searching.SAMPLE_RUN), searching.SAMPLE_RUN)
    documents[:, 0] = 0
    documents[sample, 0] = 9
    queries = rng.standard_normal((12, 24)).astype(np.float32)
    queries[:, 0] = np.arange(12) % 2
    queries[queries[:, 0] > 0] *= np.array([1, *[0] * 23] if equal else [1, *[0.01] * 23], np.float32)
    tie_rank = rng.permutation(8000).astype(np.int32)
    found = search(ArraySource(documents), queries, 150, "dot", tie_rank)
    doc, score = naive(documents, queries, 150, "dot", tie_rank)
    np.testing.assert_array_equal(found.doc, doc)
    np.testing.assert_array_equal(found.score, score)
    # Only those whose bar was too high are asked again; where all of the sample is equal there are enough at it.
    assert readings[-1] == ((8000, 12, True) if equal else (8000, 6, False))


def test_more_are_asked_for_than_there_are_and_equals_are_cut_by_place():
    documents = np.zeros((1000, 8), np.float32)
    documents[::2] = 1
    queries = np.stack([np.ones(8), -np.ones(8), np.zeros(8), np.ones(8)]).astype(np.float32)
    tie_rank = np.random.default_rng(13).permutation(1000).astype(np.int32)
    for k in (1, 499, 500, 501, 1000, 5000):
        found = search(ArraySource(documents), queries, k, "dot", tie_rank)
        doc, score = naive(documents, queries, k, "dot", tie_rank)
        np.testing.assert_array_equal(found.doc, doc)
        np.testing.assert_array_equal(found.score, score)
        assert found.ptr.tolist() == [min(k, 1000) * q for q in range(5)]


def test_the_first_pass_leaves_out_nearly_everything():
    """What is scored exactly stays near what even a perfect first pass would have to look at."""
    rng = np.random.default_rng(2)
    documents = rng.standard_normal((20_000, 64)).astype(np.float32)
    queries = rng.standard_normal((40, 64)).astype(np.float32)
    assert search(ArraySource(documents), queries, 10).exact < 0.05 * 20_000 * 40


def test_pairs_score_as_searching_scores_them():
    rng = np.random.default_rng(3)
    documents, query = rng.standard_normal((50, 70)).astype(np.float32), rng.standard_normal(70).astype("f4")
    found = search(ArraySource(documents), query[None], 50)
    np.testing.assert_array_equal(
        query_dot_products(documents[found.doc], query), found.score.astype(np.float64)
    )


def test_halves_are_widened_and_nothing_is_found_among_nothing():
    halves = np.ones((3, 8), np.float16)
    assert search(ArraySource(halves), np.ones((1, 8), np.float32), 5).score.tolist() == [8, 8, 8]
    assert len(search(ArraySource(np.zeros((0, 8), np.float32)), np.ones((2, 8), np.float32), 5).doc) == 0
    assert search(ArraySource(halves), np.ones((0, 8), np.float32), 5).ptr.tolist() == [0]


@pytest.mark.parametrize(
    ("documents", "queries", "k", "similarity", "said"),
    [
        (np.ones((3, 8)), np.ones((1, 8)), 0, "dot", "k is 0"),
        (np.ones((3, 8)), np.ones((1, 7)), 1, "dot", "queries have 7 dimensions, documents 8"),
        (np.ones((3, 8)), np.ones((1, 8)), 1, "cosin", "expected dot or cosine"),
        (np.ones((3, 8)), np.ones(8), 1, "dot", "expected a row for each query"),
        (np.ones((3, 8)), np.full((1, 8), np.nan), 1, "dot", "the vector of query 0 is not finite"),
        (np.full((3, 8), np.nan), np.ones((1, 8)), 1, "dot", "the vector of document 0 is not finite"),
        (np.full((3, 8), 1e30), np.full((1, 8), 1e30), 1, "dot", "a score is not finite"),
    ],
)
def test_what_cannot_be_searched_is_refused(documents, queries, k, similarity, said):
    with pytest.raises(BadValue, match=said), np.errstate(over="ignore", invalid="ignore"):
        search(ArraySource(documents.astype(np.float32)), queries.astype(np.float32), k, similarity)


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("queries", [1, 20])
def test_a_document_that_is_not_finite_is_named_wherever_it_would_rank(readings, bad, queries):
    """Also where its score would be far from the best, and where the sample meets it first."""
    rng = np.random.default_rng(15)
    documents = rng.standard_normal((8000, 24)).astype(np.float32)
    asked = rng.standard_normal((queries, 24)).astype(np.float32)
    for at in (0, 4001, 7999):
        given = documents.copy()
        given[at, 3] = bad
        with pytest.raises(BadValue, match=f"^the vector of document {at} is not finite$"):
            search(ArraySource(given), asked, 150)


@pytest.mark.parametrize("tie_rank", [[0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [[0, 1, 2]]])
def test_an_order_of_ties_that_is_none_is_refused(tie_rank):
    with pytest.raises(BadValue, match="tie_rank is not an order of the 3 documents"):
        search(
            ArraySource(np.ones((3, 8), np.float32)),
            np.ones((1, 8), np.float32),
            2,
            "dot",
            np.array(tie_rank),
        )


def test_a_first_pass_that_does_not_exist_is_refused():
    with pytest.raises(BadValue, match="first_pass is 'int4'"):
        search(ArraySource(np.ones((3, 8), np.float32)), np.ones((1, 8), np.float32), 2, first_pass="int4")
