"""Packed posting lists are the lists given, bit for bit, whatever they take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.strings import offsets
from weir.kernels.inverted.packed import flaw, joined, packed
from weir.kernels.inverted.postings import LUCENE, RATIO, VALUE, invert, inverted, term_groups, weighed_groups
from weir.kernels.inverted.search import Impacts


def drawn_lists(rng, n_docs):
    """(ptr, doc, impact) of lists of all lengths; their impacts have one to as many values as postings."""
    docs, impacts = [], []
    for _ in range(12):
        size = min(n_docs, int(n_docs ** rng.random()))
        near = rng.integers(0, n_docs - size + 1) if rng.random() < 0.3 else -1  # one after the other
        docs.append(near + np.arange(size) if near >= 0 else np.sort(rng.choice(n_docs, size, replace=False)))
        levels = int((2 * size + 1) ** rng.random())
        impacts.append(rng.random(levels)[rng.integers(0, levels, size)])
    return offsets(np.array([len(d) for d in docs])), np.concatenate(docs), np.concatenate(impacts)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n_docs=st.sampled_from([1, 130, 9000, 65536, 65537, 300_000]))
def test_lists_are_those_given(seed, n_docs):
    rng = np.random.default_rng(seed)
    ptr, doc, impact = drawn_lists(rng, n_docs)
    doc, impact = doc.astype(np.int32), impact.astype(np.float32)
    index = Impacts(n_docs, ptr, packed(ptr, doc, impact, n_docs))
    assert flaw(*index.arrays[:2], n_docs) == 0
    asked = rng.integers(0, n_docs, 200).astype(np.int32)
    for t in range(len(ptr) - 1):
        part = slice(ptr[t], ptr[t + 1])
        found = index.list_of(t)
        np.testing.assert_array_equal(found[0], doc[part])
        np.testing.assert_array_equal(found[1].view(np.int32), impact[part].view(np.int32))
        every = np.zeros(n_docs, np.float32)
        every[doc[part]] = impact[part]
        np.testing.assert_array_equal(index.impacts_in(t, asked), every[asked])
        if ptr[t] < ptr[t + 1]:
            assert index.largest_of(t) == every.max()
    cut = int(rng.integers(0, len(ptr)))
    groups = [(ptr[: cut + 1], slice(0, ptr[cut])), (ptr[cut:] - ptr[cut], slice(ptr[cut], None))]
    together = joined([packed(own, doc[part], impact[part], n_docs) for own, part in groups])
    for one, other in zip(together, index.stored, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("postings", "levels", "coded"),
    [(128, 32, True), (128, 33, False), (100_000, 1, True), (100_000, 256, True), (100_000, 257, False)],
)
def test_codes_are_kept_where_they_halve_the_bytes(postings, levels, coded):
    impact = np.arange(1, levels + 1, dtype=np.float32)[np.arange(postings) % levels]
    lists = packed(np.array([0, postings]), np.arange(postings, dtype=np.int32), impact, postings)
    assert (lists.levels[0], len(lists.code)) == (levels * coded, postings * coded)
    assert len(lists.value) == (levels if coded else postings)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    room=st.integers(1, 500),
    formula=st.sampled_from([LUCENE, RATIO, VALUE]),
    most=st.sampled_from([3, 300]),
)
def test_groups_of_terms_are_the_lists_inverted_at_once(seed, room, formula, most):
    rng = np.random.default_rng(seed)
    n_docs, n_terms = int(rng.integers(1, 60)), int(rng.integers(1, 30))
    rows = [np.sort(rng.choice(n_terms, rng.integers(0, n_terms + 1), replace=False)) for _ in range(n_docs)]
    pairs = (
        offsets(np.array([len(row) for row in rows])),
        np.concatenate(rows).astype(np.int32),
        rng.integers(1, most, sum(map(len, rows))).astype(np.uint16),
    )
    order = rng.permutation(n_docs).astype(np.int32)
    weights = rng.random(n_terms, np.float32), rng.random(n_docs, np.float32)
    whole = invert(pairs, order, weights, formula)
    groups = list(weighed_groups(inverted(pairs, order, n_terms), weights, formula, room))
    assert len(groups) == len(term_groups(whole[0], room)) - 1
    np.testing.assert_array_equal(offsets(np.concatenate([np.diff(ptr) for ptr, _, _ in groups])), whole[0])
    for place in (1, 2):
        np.testing.assert_array_equal(np.concatenate([group[place] for group in groups]), whole[place])
