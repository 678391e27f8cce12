"""A search that reads vectors from a store in small blocks gives the bits of one among vectors in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.strings import offsets
from weir.models.batching import Ragged
from weir.plugins.encoders import maxsim_search
from weir.plugins.encoders.maxsim_search import search_tokens
from weir.systems.vectors import exact_search
from weir.systems.vectors import store as stores
from weir.systems.vectors.exact_search import ArraySource, search
from weir.systems.vectors.journal import locked_store
from weir.systems.vectors.store import (
    CODECS,
    RowStore,
    StoredRows,
)

pytest.importorskip("numba", reason="needs numba: pip install 'weir-ir[run]'")


def hashes(count: int) -> np.ndarray:
    return np.stack([np.arange(count, dtype=np.uint64)] * 2, axis=1)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(CODECS),
    size=st.integers(1, 700),
    d=st.integers(1, 70),
    k=st.integers(1, 30),
    asked=st.integers(1, 9),
    order=st.sampled_from(["in file", "shuffled", "repeated"]),
    ahead=st.sampled_from([1, 4096, 1 << 24]),
)
def test_vectors_of_a_store(seed, dtype, size, d, k, asked, order, ahead):
    rng = np.random.default_rng(seed)
    documents = rng.integers(-9, 9, (size, d)).astype(np.float32) + rng.standard_normal((size, 1), np.float32)
    queries = rng.standard_normal((asked, d), dtype=np.float32)
    rows = np.arange(size)
    if order != "in file":
        rows = rng.permutation(size) if order == "shuffled" else np.sort(rng.integers(0, size, size))
    rank = rng.permutation(size).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "BLOCK_BYTES", 64 * d)
        patch.setattr(exact_search, "RELEASE_BYTES", 256 * d)
        patch.setattr(exact_search, "SAMPLED_ONE_IN", 2)
        patch.setattr(stores, "READ_AHEAD_BYTES", ahead)
        store = RowStore.of(Path(folder), {"model": "m"}, dtype)
        with locked_store(store.folder):
            store.add(hashes(size)[: size // 2], documents[: size // 2]) if size > 1 else None
            store.add(hashes(size)[size // 2 if size > 1 else 0 :], documents[size // 2 if size > 1 else 0 :])
        vectors = StoredRows(store.snapshot(), rows)
        held = stores.codec(dtype).read(stores.codec(dtype).write(documents), d)[rows]
        streamed = search(vectors, queries, k, tie_rank=rank)
        patch.undo()
        in_memory = search(ArraySource(held), queries, k, tie_rank=rank)
    np.testing.assert_array_equal(streamed.doc, in_memory.doc)
    np.testing.assert_array_equal(streamed.score.view(np.uint32), in_memory.score.view(np.uint32))
    np.testing.assert_array_equal(streamed.ptr, in_memory.ptr)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 90),
    k=st.integers(1, 12),
    dtype=st.sampled_from(["fp16", "fp32"]),
)
def test_token_vectors_of_a_store(seed, size, k, dtype):
    rng = np.random.default_rng(seed)
    lengths, d = rng.integers(0, 9, size), 16
    values = rng.standard_normal((int(lengths.sum()), d)).astype(stores.FLOATS[dtype])
    query = Ragged(np.array([0, 3, 5]), rng.standard_normal((5, d), dtype=np.float32))
    rank = rng.permutation(size).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(maxsim_search, "BLOCK_TOKENS", 7)
        store = RowStore.of(Path(folder), {"model": "m"}, dtype, d * values.itemsize)
        with locked_store(store.folder):
            store.add(hashes(size), values, lengths)
        rows = StoredRows(store.snapshot(), np.arange(size))
        streamed = search_tokens(rows, query, k, rank)
        patch.undo()
        in_memory = search_tokens(Ragged(offsets(lengths), values), query, k, rank)
    np.testing.assert_array_equal(streamed.doc, in_memory.doc)
    np.testing.assert_array_equal(streamed.score.view(np.uint32), in_memory.score.view(np.uint32))
