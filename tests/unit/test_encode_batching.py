"""The batching engine: order, budgets, bounded memory, halving, interrupts. No model is needed for any of it."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.errors import BadValue
from weir.models.batching import BatchPlan, Ragged, batches, gather_ragged, results
from weir.models.tokens import Tokens


def tokenize(texts):
    """A token for each letter."""
    lengths = np.array([len(t) for t in texts], np.int64)
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(np.array([ord(c) for t in texts for c in t], np.int32), ptr)


def sums(batch):
    """A stand-in for a model: of each text, the sum of its tokens and their number."""
    rows = [(batch.ids[a:b].sum(), b - a) for a, b in itertools.pairwise(batch.ptr)]
    return np.array(rows, np.float64).reshape(-1, 2)


def gather_rows(parts, count):
    """A row for each text, in their order."""
    whole = np.empty((count, 2))
    for positions, rows in parts:
        whole[positions] = rows
    return whole


def expected(texts):
    return np.array([(sum(map(ord, t)), len(t)) for t in texts], np.float64).reshape(-1, 2)


@given(st.lists(st.integers(0, 60)), st.integers(1, 200), st.booleans())
def test_batches_hold_every_text_once_within_the_budget(lengths, budget, padded):
    lengths = np.array(lengths, np.int64)
    found = batches(lengths, budget, padded)
    assert sorted(i for b in found for i in b.tolist()) == list(range(len(lengths)))
    for batch in found:
        sizes = np.maximum(lengths[batch], 1)
        cost = len(batch) * sizes.max() if padded else sizes.sum()
        assert cost <= budget or len(batch) == 1
    assert np.all(np.diff(np.concatenate([lengths[b] for b in found] or [lengths])) <= 0)


def test_full_batches_are_full():
    found = batches(np.full(100, 10, np.int64), 100, padded=False)
    assert [len(b) for b in found] == [10] * 10


@given(st.lists(st.text("abcdef", max_size=30), max_size=60), st.integers(1, 40), st.integers(1, 20))
def test_results_come_back_in_the_order_of_the_texts(texts, budget, window):
    told = []
    blocks = list(results(texts, tokenize, sums, gather_rows, BatchPlan(budget, window=window), told.append))
    assert all(len(b) <= window for b in blocks)
    np.testing.assert_array_equal(np.concatenate([*blocks, np.zeros((0, 2))]), expected(texts))
    assert told == sorted(told)
    assert not texts or told[-1] == len(texts)


@given(st.lists(st.text("abcdef", max_size=9), min_size=1, max_size=40), st.integers(1, 30))
def test_ragged_results(texts, budget):
    def letters(batch):
        return Ragged(batch.ptr, batch.ids[:, None])

    found = next(results(texts, tokenize, letters, gather_ragged, BatchPlan(budget)))
    whole = tokenize(texts)
    np.testing.assert_array_equal(found.ptr, whole.ptr)
    np.testing.assert_array_equal(found.values[:, 0], whole.ids)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        type("OutOfMemoryError", (RuntimeError,), {})("x"),
    ],
)
def test_out_of_memory_halves_the_batch_and_those_after_it(error):
    tried = []

    def small(batch):
        tried.append(int(batch.ptr[-1]))
        if batch.ptr[-1] > 30:
            raise error
        return sums(batch)

    texts = ["abcde"] * 100
    blocks = list(results(texts, tokenize, small, gather_rows, BatchPlan(100, window=20)))
    np.testing.assert_array_equal(np.concatenate(blocks), expected(texts))
    failed = [n for n in tried if n > 30]
    assert len(failed) <= 6  # the first window's batches; the next windows' are small from the start
    assert max(tried[-20:]) <= 30


def test_a_single_text_too_large_is_said_so():
    def never(batch):
        raise MemoryError

    with pytest.raises(BadValue, match="a text of 7 tokens does not fit into memory"):
        list(results(["abcdefg"], tokenize, never, gather_rows, BatchPlan(100)))


def test_other_errors_pass():
    def broken(batch):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        list(results(["abc"], tokenize, broken, gather_rows, BatchPlan(100)))


def test_a_stream_is_read_only_a_little_ahead():
    read = 0

    def source():
        nonlocal read
        for _ in range(100_000):
            read += 1
            yield "abc"

    stream = results(source(), tokenize, sums, gather_rows, BatchPlan(1000, window=64))
    next(stream)
    next(stream)
    assert read <= 6 * 64
    stream.close()
    assert read <= 8 * 64
    assert not [t for t in threading.enumerate() if t.name.startswith("weir-tokenize")]


def test_long_texts_make_small_windows():
    texts = ["x" * 1000] * 2000
    blocks = list(results(texts, tokenize, sums, gather_rows, BatchPlan(10_000, characters=100_000)))
    assert max(map(len, blocks)) <= 256  # one chunk: what goes to the tokenizer at once


def test_what_the_source_or_the_tokenizer_raises_arrives():
    def source():
        yield from ["abc"] * 300
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk is gone"):
        list(results(source(), tokenize, sums, gather_rows, BatchPlan(100)))

    def refuse(texts):
        raise ValueError("not a text")

    with pytest.raises(ValueError, match="not a text"):
        list(results(["abc"], refuse, sums, gather_rows, BatchPlan(100)))


def test_an_interrupt_ends_the_thread():
    def interrupted(batch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(results(["abc"] * 5000, tokenize, interrupted, gather_rows, BatchPlan(100, window=64)))
    assert not [t for t in threading.enumerate() if t.name.startswith("weir-tokenize")]


def test_tokens_taken_padded_and_placed():
    tokens = tokenize(["abc", "", "de"])
    assert tokens.lengths.tolist() == [3, 0, 2]
    assert tokens.positions.tolist() == [0, 1, 2, 0, 1]
    taken = tokens.take(np.array([2, 0, 2]))
    assert "".join(map(chr, taken.ids)) == "deabcde"
    assert taken.ptr.tolist() == [0, 2, 5, 7]
    assert tokens.padded(tokens.ids, 9).tolist() == [[97, 98, 99], [9, 9, 9], [100, 101, 9]]
    assert tokens.mask().tolist() == [[True] * 3, [False] * 3, [True, True, False]]
