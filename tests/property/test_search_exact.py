"""The search kernel against a scorer that adds everything up and sorts everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.kernels.inverted import byte_bounds as columns_module
from weir.kernels.inverted import search as module
from weir.kernels.inverted.packed import PlainLists, packed
from weir.kernels.inverted.search import Impacts, search


def impact_index(lists, n_docs):
    """Impacts from [(documents, impacts), ...], one pair per term."""
    ptr = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(d) for d, _ in lists], out=ptr[1:])
    doc = np.concatenate([np.zeros(0, np.int32), *[np.asarray(d, np.int32) for d, _ in lists]])
    impact = np.concatenate([np.zeros(0, np.float32), *[np.asarray(v, np.float32) for _, v in lists]])
    return Impacts(n_docs, ptr, packed(ptr, doc, impact, n_docs))


def pack(queries):
    """(qptr, qterm, qweight) from [[(term, weight), ...], ...]."""
    qptr = np.zeros(len(queries) + 1, np.int64)
    np.cumsum([len(q) for q in queries], out=qptr[1:])
    flat = [pair for q in queries for pair in q]
    return qptr, np.array([t for t, _ in flat], np.int32), np.array([w for _, w in flat], np.float32)


def naive(index, query, k):
    total = np.zeros(index.n_docs, np.float64)
    for term, weight in query:
        if 0 <= term < len(index.ptr) - 1:
            # Documents are distinct within a term, so plain indexing adds each posting once.
            doc, impact = index.list_of(term)
            total[doc] += np.float64(np.float32(weight)) * impact.astype(np.float64)
    score = total.astype(np.float32)
    best = np.lexsort((np.arange(index.n_docs), -score))[:k]
    best = best[score[best] > 0]
    return best, score[best]


def exhaustive(index):
    """The same index without bounds: every posting is added."""
    lists = [index.list_of(t) for t in range(len(index.ptr) - 1)]
    return Impacts(index.n_docs, index.ptr, PlainLists(*map(np.concatenate, zip(*lists, strict=True))))


def check(index, queries, k, threads=1):
    check_one(index, queries, k, threads)
    check_one(exhaustive(index), queries, k, threads)


def check_one(index, queries, k, threads):
    count, doc, score = search(index, *pack(queries), k, threads)
    assert doc.shape == score.shape == (len(queries), k)
    for i, query in enumerate(queries):
        want_doc, want_score = naive(index, query, k)
        assert count[i] == len(want_doc)
        np.testing.assert_array_equal(doc[i, : count[i]], want_doc)
        np.testing.assert_array_equal(score[i, : count[i]], want_score)
        assert (doc[i, count[i] :] == -1).all()
        assert (score[i, count[i] :] == 0).all()


def random_lists(rng, n_docs, n_terms, levels):
    """Lists from one posting to every document; few impact levels force ties."""
    lists = []
    for _ in range(n_terms):
        size = min(n_docs, int(n_docs ** rng.random()) + 1)
        docs = np.sort(rng.choice(n_docs, size, replace=False))
        scale = 2.0 ** rng.integers(-6, 3)
        values = rng.integers(1, levels + 1, size) / levels if levels else rng.random(size) + 1e-3
        lists.append((docs, scale * values))
    return lists


def random_queries(rng, n_terms, number, longest, real_weights):
    out = []
    for _ in range(number):
        size = int(rng.integers(0, longest + 1))
        terms = rng.integers(-1, n_terms + 1, size)  # one unknown number below and one above
        weights = rng.random(size) * 3 if real_weights else np.ones(size)
        out.append(list(zip(terms.tolist(), weights.tolist(), strict=True)))
    return out


# Weights that are powers of two or small integers keep float64 sums exact, so that the order of addition,
# which differs between the two scorers, cannot show even at a rounding boundary.
@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_docs=st.sampled_from([1, 2, 7, 63, 64, 500, 4095, 4096, 4097, 9000, 20000]),
    levels=st.sampled_from([0, 1, 2, 5, 100]),
    k=st.sampled_from([1, 2, 3, 10, 11, 100, 101, 1000, 1001, 30000]),
    longest=st.sampled_from([1, 4, 9, 60]),
)
def test_matches_the_naive_scorer(seed, n_docs, levels, k, longest):
    rng = np.random.default_rng(seed)
    index = impact_index(random_lists(rng, n_docs, 12, levels), n_docs)
    check(index, random_queries(rng, 12, 6, longest, real_weights=False), k)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1), window=st.sampled_from([4, 6, 9]), k=st.sampled_from([1, 10, 100, 1000])
)
def test_many_narrow_windows(seed, window, k):
    rng = np.random.default_rng(seed)
    n_docs = int(rng.integers(1, 6000))
    index = impact_index(random_lists(rng, n_docs, 15, int(rng.integers(0, 4))), n_docs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_window", lambda n: window)
        check(index, random_queries(rng, 15, 6, 8, real_weights=False), k)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 10, 100]))
def test_real_weights_agree_to_rounding(seed, k):
    rng = np.random.default_rng(seed)
    index = impact_index(random_lists(rng, 8000, 12, 0), 8000)
    queries = random_queries(rng, 12, 5, 9, real_weights=True)
    count, _, score = search(index, *pack(queries), k)
    for i, query in enumerate(queries):
        _, want = naive(index, query, k)
        assert count[i] == len(want)
        np.testing.assert_allclose(score[i, : count[i]], want, rtol=2e-7)
    for one, other in zip(
        search(index, *pack(queries), k), search(exhaustive(index), *pack(queries), k), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("k", [1, 5, 10, 100])
def test_every_document_ties(k):
    index = impact_index([(np.arange(10000), np.ones(10000)), (np.arange(0, 10000, 3), np.ones(3334))], 10000)
    _, doc, _ = search(index, *pack([[(0, 1.0)], [(0, 1.0), (1, 1.0)]]), k)
    assert doc[0].tolist() == list(range(k))
    assert doc[1].tolist() == list(range(0, 3 * k, 3))


def test_ties_made_by_rounding_to_single_precision():
    # In float64 the later document is larger; as float32 they are equal, so the earlier one wins.
    index = impact_index([([0, 5000], [1.0, 1.0]), ([5000], [2.0**-40])], 6000)
    _, doc, score = search(index, *pack([[(0, 1.0), (1, 1.0)]]), 1)
    assert doc[0, 0] == 0
    assert score[0, 0] == np.float32(1.0)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_batches_change_nothing(threads):
    rng = np.random.default_rng(7)
    index = impact_index(random_lists(rng, 30000, 40, 0), 30000)
    queries = random_queries(rng, 40, 41, 12, real_weights=True)
    together = search(index, *pack(queries), 50, threads)
    for i, query in enumerate(queries):
        alone = search(index, *pack([query]), 50)
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_array_equal(a[i], b[0])


def test_bounds_hold_for_every_list():
    rng = np.random.default_rng(11)
    n_docs = 50000
    index = impact_index(random_lists(rng, n_docs, 60, 0), n_docs)
    b = index.bounds
    cut = 0
    for t in range(60):
        docs, impact = index.list_of(t)
        values = np.sort(impact)[::-1]
        row = b.listed[t]
        assert (row >= 0) == (len(docs) >= 10)
        if row < 0:
            continue
        assert b.top[row, 0] == values[0]
        for column, rank in ((1, 10), (2, 100), (3, 1000)):
            true = values[rank - 1] if len(values) >= rank else np.float32(0)
            assert b.top[row, column] <= true
            assert b.top[row, column] >= 0.98 * true or true < values[0] / 200
        if b.shift[row] == 255:
            continue
        cut += 1
        ranges = docs >> int(b.shift[row])
        first = b.base[row]
        for r in range(b.base[row + 1] - first - 1):
            inside = impact[ranges == r]
            assert b.offset[first + r + 1] - b.offset[first + r] == len(inside)
            assert b.peak[first + r] == inside.max(initial=0)
    assert cut > 5


def test_memory_reused_between_indexes_of_different_sizes_is_clean():
    rng = np.random.default_rng(23)
    indexes = [impact_index(random_lists(rng, n, 12, 3), n) for n in (200_000, 50, 9_000)]
    for k in (1000, 3, 100):
        for index in (*indexes, *reversed(indexes)):
            check(index, random_queries(rng, 12, 4, 6, real_weights=False), k)


def with_columns(index):
    """The same index with columns, however few documents it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "_LEAST_DOCUMENTS", 1)
        return index.with_columns()


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_docs=st.sampled_from([1, 7, 64, 500, 16383, 16384, 16385, 40000]),
    levels=st.sampled_from([0, 1, 2, 5, 100]),
    k=st.sampled_from([1, 3, 10, 100, 1000, 1001]),
    longest=st.sampled_from([1, 4, 9, 60]),
)
def test_columns_match_the_naive_scorer(seed, n_docs, levels, k, longest):
    rng = np.random.default_rng(seed)
    index = with_columns(impact_index(random_lists(rng, n_docs, 12, levels), n_docs))
    check(index, random_queries(rng, 12, 6, longest, real_weights=False), k)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 10, 100, 1000]))
def test_columns_change_no_bit_of_learned_weights(seed, k):
    rng = np.random.default_rng(seed)
    n_docs, n_terms = 40000, 40
    lists = []
    for share in rng.random(n_terms) ** 3 / 3:
        docs = np.flatnonzero(rng.random(n_docs) < share)
        lists.append((docs, rng.gamma(1.2, 0.5, len(docs)) + 0.01))
    plain = impact_index(lists, n_docs)
    index = with_columns(plain)
    assert index.columns is not None
    queries = random_queries(rng, n_terms, 9, 30, real_weights=True)
    for one, other in zip(search(plain, *pack(queries), k), search(index, *pack(queries), k, 2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_columns_bound_every_impact_by_less_than_a_step():
    rng = np.random.default_rng(3)
    plain = impact_index(random_lists(rng, 40000, 30, 0), 40000)
    columns = with_columns(plain).columns
    used = np.flatnonzero(columns.number >= 0)
    assert len(used) > 1
    for t in used:
        docs, impact = plain.list_of(t)
        impact = impact.astype(np.float64)
        steps = np.zeros(40000, np.int64)
        steps[: columns.values.shape[0] * columns.values.shape[2]] = columns.values[
            :, columns.number[t]
        ].ravel()[:40000]
        bound = steps * np.float64(columns.step[columns.number[t]])
        assert (bound[docs] >= impact).all()
        assert (bound[docs] - impact < columns.step[columns.number[t]]).all()
        assert np.count_nonzero(bound) == len(docs)


def test_many_documents_of_one_score_are_left_to_the_postings():
    every = np.arange(40000)
    index = with_columns(impact_index([(every, np.ones(40000)), (every[::2], np.ones(20000))], 40000))
    check(index, [[(0, 1.0)], [(0, 1.0), (1, 1.0)], [(1, 1e-30)]], 10)


def test_scores_too_small_for_a_float_leave_the_others_where_they_are():
    n = 4000
    values = np.full(n, 1e-30)
    values[n - 1] = 1.0
    index = impact_index([(np.arange(n), values)], n)
    for one in (index, exhaustive(index)):
        count, doc, score = search(one, *pack([[(0, 1e-25)]]), 3)
        assert (count[0], doc[0, 0], score[0, 0]) == (1, n - 1, np.float32(1e-25))
