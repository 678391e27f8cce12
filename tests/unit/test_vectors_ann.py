"""Approximate indexes of FAISS, and what they lose: run where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("faiss", reason="needs faiss: pip install 'weir-ir[neural]'")

from weir.errors import BadValue, StoreError
from weir.plugins.encoders import ann
from weir.plugins.encoders.ann import FaissIndex
from weir.systems.vectors.approximate import index_loss, search_with
from weir.systems.vectors.exact_search import ArraySource, search

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
N, D, K = 3000, 32, 10


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, D))
    rows = centres[rng.integers(0, 40, N)] + 0.5 * rng.standard_normal((N, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    queries = rows[:50] + 0.1 * rng.standard_normal((50, D))
    return ArraySource(rows.astype(np.float32)), queries.astype(np.float32)


@pytest.mark.parametrize(
    ("name", "effort", "quantisation", "graph"),
    [
        ("Flat", 0, (0, 0), (0, 0)),
        ("IVF32,Flat", 1, (0, 0), (0, 0.5)),
        ("HNSW16", 20, (0, 0), (0, 0.1)),
        ("SQ8", 0, (0.001, 0.1), (0, 0)),
        ("IVF16,SQ4", 16, (0.05, 0.4), (-0.01, 0.01)),
        ("IVF16,PQ16x4", 16, (0.2, 0.95), (-0.01, 0.01)),
        ("PQ16x4", 0, (0.1, 0.95), (-0.01, 0.01)),
        ("HNSW16,SQ8", 50, (0.001, 0.1), (-0.05, 0.1)),
    ],
)
def test_what_an_index_loses_is_split(tmp_path, vectors, name, effort, quantisation, graph):
    rows, queries = vectors
    index = FaissIndex(name, effort).build(rows)
    found = index_loss(index, rows, queries, K)
    assert quantisation[0] - 1e-9 <= found.quantisation <= quantisation[1] + 1e-9
    assert graph[0] - 1e-9 <= found.graph <= graph[1] + 1e-9
    rank = np.arange(N, dtype=np.int32)[::-1].copy()
    answers = search_with(index, rows, queries, K, rank)
    exact = search(rows, queries, K, "dot", rank)
    pairs = zip(answers.doc.reshape(-1, K), exact.doc.reshape(-1, K), strict=True)
    shared = np.mean([len(np.intersect1d(a, e)) / K for a, e in pairs])
    assert 1 - shared == pytest.approx(found.total, abs=0.01)
    assert (np.diff(answers.score.reshape(-1, K)) <= 0).all()
    index.write(tmp_path / "index")
    again = search_with(FaissIndex(name, effort).open(tmp_path / "index", D), rows, queries, K, rank)
    np.testing.assert_array_equal(again.doc, answers.doc)
    np.testing.assert_array_equal(again.score, answers.score)


def test_wrong_names_and_damage_are_one_line(tmp_path, vectors):
    rows, _ = vectors
    for name, effort in (("HNSX", 0), ("Flat", 5)):
        with pytest.raises(BadValue) as refused:
            FaissIndex(name, effort).build(rows)
        assert "\n" not in str(refused.value)
    (tmp_path / "index").write_bytes(b"not an index")
    with pytest.raises(StoreError, match="the index is damaged"):
        FaissIndex("Flat").open(tmp_path / "index", D)


@pytest.mark.parametrize("name", ["Flat", "HNSW16"])
def test_an_index_that_memory_does_not_hold_is_refused_after_its_first_vectors(vectors, monkeypatch, name):
    rows, _ = vectors
    monkeypatch.setattr(ann, "BLOCK_VECTORS", 200)
    monkeypatch.setattr(ArraySource, "release", lambda self: released.append(len(self)))
    released: list[int] = []
    many = ArraySource(np.tile(rows.values, (4, 1)))
    monkeypatch.setenv("WEIR_MAX_RAM", "1M")
    with pytest.raises(
        BadValue, match=rf"the index {name} of 12,000 vectors needs about 0.0 GB .*exact search reads"
    ):
        FaissIndex(name).build(many)
    assert released == [12_000]
    monkeypatch.setenv("WEIR_MAX_RAM", "64M")
    built = FaissIndex(name).build(rows)
    assert built.size() > rows.values.nbytes
