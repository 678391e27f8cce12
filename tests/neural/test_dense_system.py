"""The system `dense` with its real encoder, and search on torch's side: the same bits as on the processor's."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")

from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.experiment.experiment import Experiment  # noqa: E402 - behind the skip
from weir.experiment.results import finished_cells  # noqa: E402 - behind the skip
from weir.models import cards  # noqa: E402 - behind the skip
from weir.settings import settings  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip
from weir.systems.protocol import Context  # noqa: E402 - behind the skip
from weir.systems.vectors import gpu_search as gpu  # noqa: E402 - behind the skip
from weir.systems.vectors.exact_search import ArraySource, search  # noqa: E402 - behind the skip

MINILM = next(card for card in cards() if card.name == "minilm")
carried = pytest.mark.skipif(not MINILM.packaged, reason=f"needs the package {MINILM.package}")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@carried
def test_brook_is_encoded_once_and_answered_from_the_store(home):
    told: list[tuple[str, int, int]] = []
    grid = Experiment(
        ("brook-facts",), ('dense("minilm", max_length=64, engine="torch")',), ("nDCG@10",), k=10
    )
    (row,) = grid.execute(home / "one", lambda *event: told.append(event))
    assert row.mean > 0.8
    assert row.answered == row.queries
    assert any(event[0].endswith("index") and event[2] == 97 for event in told)
    (rows,) = home.rglob("rows.npy")
    stamps = {p: p.stat().st_mtime_ns for p in (home / "home").rglob("*.bin")}
    assert len(stamps) == 3
    (again,) = grid.execute(home / "two")
    assert again == row
    assert {p: p.stat().st_mtime_ns for p in (home / "home").rglob("*.bin")} == stamps
    [cell] = finished_cells(home / "one")
    assert cell.ranked.declared["system"]["encoder"]["pooling"] == "mean"
    assert len(np.load(rows)) == 97


@carried
def test_an_index_whose_vectors_are_gone_says_so_and_is_made_again(home):
    grid = Experiment(
        ("brook-facts",), ('dense("minilm", max_length=32, engine="torch")',), ("nDCG@10",), k=10
    )
    whole = grid.execute(home / "one")
    [cell] = finished_cells(home / "one")
    for path in (cell.folder / "stage.json", *(path for path, _ in cell.scored)):
        path.unlink()
    store = next((home / "home" / "vectors").iterdir())
    store.rename(home / "elsewhere")
    stages: list[str] = []
    assert grid.execute(home / "one", lambda stage, *_: stages.append(stage)) == whole
    assert any("is damaged, building it again" in stage for stage in stages)


@carried
def test_pairs_are_scored_as_searching_scores_them(home):
    from weir.core.corpus import Corpus, Queries

    system = parse_system('dense("minilm", max_length=32, engine="torch")')
    corpus = Corpus.of({f"d{i}": f"a river and {i} dams" for i in range(12)})
    queries = Queries.of({"a": "how many dams", "empty": " ", "b": "which river"})
    searcher = system.index(corpus, Context(home / "index"))
    run = searcher.search(queries, 5)
    assert np.diff(run.ptr).tolist() == [5, 0, 5]
    np.testing.assert_array_equal(searcher.scores(queries, run), run.score)
    opened = system.open(corpus, Context(home / "index"))
    assert opened.search(queries, 5).to_dict() == run.to_dict()
    (home / "index" / "index.json").write_text("{")
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(corpus, Context(home / "index"))


@pytest.mark.parametrize("repeated", [1, 40])
def test_a_first_pass_on_torch_gives_the_same_bits(monkeypatch, repeated):
    """repeated: copies of each document; then floats cannot tell which are taken, and the query is asked again."""
    monkeypatch.setattr(gpu, "BLOCK_DOCUMENTS", 300)
    monkeypatch.setattr(gpu, "BLOCK_QUERIES", 7)
    rng = np.random.default_rng(0)
    documents = np.repeat(rng.standard_normal((2000 // repeated, 70)), repeated, axis=0).astype(np.float32)
    queries = rng.standard_normal((20, 70)).astype(np.float32)
    tie_rank = rng.permutation(len(documents)).astype(np.int32)
    for k in (1, 30, 5000):
        found = gpu.search_on("cpu", ArraySource(documents), queries, k, tie_rank)
        expected = search(ArraySource(documents), queries, k, "dot", tie_rank)
        np.testing.assert_array_equal(found.doc, expected.doc)
        np.testing.assert_array_equal(found.score, expected.score)


@pytest.mark.parametrize("size", [1e-25, 1e-42, 1, 1e15])
def test_no_size_of_numbers_misleads_the_first_pass_on_torch(size):
    rng = np.random.default_rng(1)
    documents = rng.standard_normal((1500, 40)).astype(np.float32)
    documents *= np.float32(size) * np.float32(10) ** rng.integers(-2, 3, (1500, 1)).astype(np.float32)
    queries = rng.standard_normal((6, 40)).astype(np.float32)
    found, expected = (
        gpu.search_on("cpu", ArraySource(documents), queries, 20),
        search(ArraySource(documents), queries, 20),
    )
    np.testing.assert_array_equal(found.doc, expected.doc)
    np.testing.assert_array_equal(found.score, expected.score)


@pytest.mark.parametrize("k", [5, 500])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_as_on_the_processor(k, bad):
    documents = np.random.default_rng(2).standard_normal((500, 16)).astype(np.float32)
    documents[321, 3] = bad
    with pytest.raises(BadValue, match=r"^the vector of document 321 is not finite$"):
        gpu.search_on("cpu", ArraySource(documents), np.ones((4, 16), np.float32), k)
    with pytest.raises(BadValue, match="queries have 15 dimensions, documents 16"):
        gpu.search_on("cpu", ArraySource(documents), np.ones((4, 15), np.float32), k)
    with pytest.raises(BadValue, match="a score is not finite"):
        gpu.search_on("cpu", ArraySource(np.full((500, 16), 1e30, "f4")), np.full((4, 16), 1e30, "f4"), k)


def test_a_search_reports_how_many_documents_it_has_read(home):
    told: list[tuple[int, int]] = []
    documents = np.random.default_rng(3).standard_normal((40_000, 64)).astype(np.float32)
    rows = ArraySource(documents)
    for find in (search, lambda *rest, **named: gpu.search_on("cpu", *rest, **named)):
        told.clear()
        reported = find(rows, documents[:5], 3, progress=lambda done, total: told.append((done, total)))
        np.testing.assert_array_equal(reported.doc, search(rows, documents[:5], 3).doc)
        assert told == sorted(told)
        assert {total for _, total in told} == {40_000}
