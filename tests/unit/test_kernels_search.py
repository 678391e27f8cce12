"""Counting, inversion, Lucene's arithmetic, key selection, and what search refuses."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from weir.errors import BadValue
from weir.kernels.inverted.packed import packed
from weir.kernels.inverted.postings import (
    DECODED_LENGTHS,
    LUCENE,
    RATIO,
    VALUE,
    ForwardBuilder,
    average_length,
    document_frequencies,
    invert,
    length_codes,
    lucene_idf,
    lucene_inverse_norms,
)
from weir.kernels.inverted.search import Impacts, search
from weir.kernels.inverted.top_k import keep_largest, sort_descending


def forward(docs, n_terms, batch=2):
    collector = ForwardBuilder()
    lengths = []
    for a in range(0, len(docs), batch):
        part = docs[a : a + batch]
        dptr = np.zeros(len(part) + 1, np.int64)
        np.cumsum([len(d) for d in part], out=dptr[1:])
        lengths.append(collector.add(dptr, np.array([t for d in part for t in d], np.int32), n_terms))
    return collector.finish(), np.concatenate(lengths)


def pairs(fptr, fterm, ftf):
    return [
        dict(zip(fterm[a:b].tolist(), ftf[a:b].tolist(), strict=True))
        for a, b in zip(fptr[:-1], fptr[1:], strict=True)
    ]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_counting_matches_counter(batch):
    rng = np.random.default_rng(3)
    docs = [rng.integers(-1, 30, int(n)).tolist() for n in rng.integers(0, 80, 23)]
    arrays, lengths = forward(docs, 30, batch)
    kept = [[t for t in d if t >= 0] for d in docs]
    assert pairs(*arrays) == [dict(collections.Counter(d)) for d in kept]
    assert lengths.tolist() == [len(d) for d in kept]
    assert arrays[2].dtype == np.uint16


def test_vocabulary_may_grow_between_batches():
    collector = ForwardBuilder()
    collector.add(np.array([0, 2], np.int64), np.array([0, 0], np.int32), 1)
    collector.add(np.array([0, 3], np.int64), np.array([9999, 0, 9999], np.int32), 10000)
    assert pairs(*collector.finish()) == [{0: 2}, {9999: 2, 0: 1}]


def test_counts_beyond_sixteen_bits():
    arrays, lengths = forward([[1, 2], [5] * 70000 + [1]], 6)
    assert pairs(*arrays) == [{1: 1, 2: 1}, {5: 70000, 1: 1}]
    assert lengths.tolist() == [2, 70001]


def test_an_empty_collection():
    fptr, fterm, ftf = ForwardBuilder().finish()
    none = np.zeros(0, np.float32)
    ptr, doc, impact = invert((fptr, fterm, ftf), np.zeros(0, np.int32), (none, none))
    index = Impacts(0, ptr, packed(ptr, doc, impact, 0))
    count, docs, _ = search(index, np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32), 3)
    assert count.tolist() == [0]
    assert docs.tolist() == [[-1, -1, -1]]


def lucene_byte(length):
    """SmallFloat.intToByte4, spelled out bit by bit."""
    if length < 24:
        return length
    rest = length - 24
    bits = rest.bit_length()
    if bits < 4:
        return 24 + rest
    shift = bits - 4
    return 24 + (((rest >> shift) & 7) | ((shift + 1) << 3))


def test_length_codes_are_lucenes():
    lengths = np.unique(np.concatenate([np.arange(5000), (1.05 ** np.arange(100, 440)).astype(np.int64)]))
    assert length_codes(lengths).tolist() == [lucene_byte(int(n)) for n in lengths]
    # Known points: 0..39 are exact, then steps of 2, 4, 8 ...
    assert DECODED_LENGTHS[:40].tolist() == list(range(40))
    assert [int(DECODED_LENGTHS[lucene_byte(n)]) for n in (41, 57, 100, 1000)] == [40, 56, 96, 984]
    assert lucene_byte(2**31 - 1) == 255


def test_idf_and_norms_are_computed_as_lucene_does():
    assert lucene_idf(np.array([1, 10]), 100).tolist() == [
        float(np.float32(np.log(1 + 99.5 / 1.5))),
        float(np.float32(np.log(1 + 90.5 / 10.5))),
    ]
    assert average_length(np.array([3, 0, 4])) == 3.5
    assert average_length(np.array([0, 0])) == 0.0
    f = np.float32
    for exact, used in ((False, 96), (True, 100)):
        got = lucene_inverse_norms(np.array([100]), 50.0, 0.9, 0.4, exact=exact)
        want = f(1) / (f(0.9) * ((f(1) - f(0.4)) + f(0.4) * f(used) / f(50)))
        assert got.dtype == np.float32
        assert got[0] == want


@pytest.mark.parametrize("formula", [LUCENE, RATIO, VALUE])
def test_inversion_matches_a_loop(formula):
    rng = np.random.default_rng(5)
    docs = [rng.integers(0, 40, int(n)).tolist() for n in rng.integers(0, 60, 37)]
    (fptr, fterm, ftf), _ = forward(docs, 41)
    order = rng.permutation(37).astype(np.int32)
    weight = rng.random(41).astype(np.float32)
    norm = (rng.random(37) + 0.5).astype(np.float32)
    ptr, doc, impact = invert((fptr, fterm, ftf), order, (weight, norm), formula)
    one = np.float32(1)
    counted = [collections.Counter(docs[d]) for d in order]
    assert document_frequencies(fterm, 41).tolist() == [sum(t in c for c in counted) for t in range(41)]
    for t in range(41):
        want = [(i, c[t]) for i, c in enumerate(counted) if c[t]]
        assert doc[ptr[t] : ptr[t + 1]].tolist() == [i for i, _ in want]
        for (i, tf), got in zip(want, impact[ptr[t] : ptr[t + 1]], strict=True):
            w, n = weight[t], norm[i]
            expected = {
                LUCENE: w - w / (one + np.float32(tf) * n),
                RATIO: np.float32(float(w) * tf / (tf + float(n))),
                VALUE: np.float32(float(w) * tf),
            }[formula]
            assert got == expected


def test_inversion_refuses_contradictory_arrays():
    (fptr, fterm, ftf), _ = forward([[0], [1]], 2)
    ones, order = np.ones(2, np.float32), np.arange(2, dtype=np.int32)
    with pytest.raises(BadValue):
        invert((fptr, fterm, ftf), order, (ones, np.ones(3, np.float32)))
    with pytest.raises(BadValue):
        invert((fptr, fterm, ftf), order, (ones, ones), formula=9)


@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 1000, 5000])
def test_keys_are_selected_and_sorted(n):
    rng = np.random.default_rng(n)
    keys = np.unique(rng.integers(0, 2**62, n) >> int(rng.integers(0, 40)))
    keys = rng.permutation(keys)
    want = np.sort(keys)[::-1]
    spare, counts = np.empty_like(keys), np.empty(2048, np.int64)
    for k in {1, len(keys), len(keys) // 2 + 1}:
        work = keys.copy()
        assert keep_largest(work, spare, len(work), k, counts) == want[k - 1]
        assert sorted(work[:k].tolist(), reverse=True) == want[:k].tolist()
    sort_descending(keys, spare, len(keys), counts)
    np.testing.assert_array_equal(keys, want)


def tiny():
    ptr, doc, impact = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32)
    return Impacts(1, ptr, packed(ptr, doc, impact, 1))


def test_one_document():
    count, doc, score = search(tiny(), np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32), 5)
    assert count.tolist() == [1]
    assert doc.tolist() == [[0, -1, -1, -1, -1]]
    assert score.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]


def test_no_queries():
    count, doc, _ = search(tiny(), np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.float32), 5)
    assert count.shape == (0,)
    assert doc.shape == (0, 5)


@pytest.mark.parametrize(
    ("k", "weight"), [(0, 1.0), (-1, 1.0), (1, -1.0), (1, float("nan")), (1, float("inf"))]
)
def test_search_refuses(k, weight):
    with pytest.raises(BadValue):
        search(tiny(), np.array([0, 1]), np.array([0], np.int32), np.array([weight], np.float32), k)


def test_search_refuses_missing_weights():
    with pytest.raises(BadValue):
        search(tiny(), np.array([0, 2]), np.array([0, 0], np.int32), np.ones(1, np.float32), 1)
