"""The system `colbert` against brute force in double: search, candidates, compression, re-ranking, the store."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural import late_checkpoint  # noqa: E402 - behind the skip
from tests.neural.conftest import WORDS  # noqa: E402 - behind the skip
from tests.neural.late_checkpoint import NUMBER, D  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip
from weir.errors import BadValue, StoreError  # noqa: E402 - behind the skip
from weir.experiment.efficiency import efficiency  # noqa: E402 - behind the skip
from weir.experiment.experiment import Experiment  # noqa: E402 - behind the skip
from weir.experiment.results import finished_cells  # noqa: E402 - behind the skip
from weir.plugins.encoders.late import LoadedLate  # noqa: E402 - behind the skip
from weir.settings import settings  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip
from weir.systems.composite import rankings  # noqa: E402 - behind the skip
from weir.systems.protocol import Context  # noqa: E402 - behind the skip

colbert, made, one_thread = (getattr(late_checkpoint, name) for name in ("colbert", "made", "one_thread"))
pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend

DOCUMENTS = {f"d{i}": " ".join(np.random.default_rng(i).choice(WORDS, 1 + i % 37)) for i in range(120)} | {
    "empty": "",
    "twin": "red cat over the river",
    "twin too": "red cat over the river",
}
QUERIES = {"a": "red cat", "blank": " ", "b": "river under the bridge", "c": "two fish, three stone"}


@pytest.fixture
def corpus():
    return Corpus.of(DOCUMENTS)


@pytest.fixture
def queries():
    return Queries.of(QUERIES)


def brute(loaded, kept=np.float16):
    """MaxSim in double of the vectors as they are stored: float64[queries, documents]."""
    asked, documents = loaded.encode(list(QUERIES.values()), "query"), loaded.encode(list(DOCUMENTS.values()))
    tokens = documents.values.astype(kept).astype(np.float64)
    products = asked.values.astype(np.float64) @ tokens.T
    best = np.stack([products[:, a:b].max(1) for a, b in itertools.pairwise(documents.ptr)], 1)
    return np.stack([best[a:b].sum(0) for a, b in itertools.pairwise(asked.ptr)])


def test_candidates_are_scored_as_searching_scores_them(colbert, corpus, queries):
    folder, _, _ = colbert()
    system = parse_system(f'colbert("{folder}", engine="torch")')
    searcher = system.index(corpus)
    lists = {"a": ["twin too", "d7", "empty", "absent", "twin"], "blank": ["d1"], "b": [], "c": ["d3", "d9"]}
    said = {q: {"text": text, "candidates": lists[q], "excluded": ["d9"]} for q, text in QUERIES.items()}
    everything = searcher.search(queries, len(corpus)).allowed(Queries.of(said))
    for k in (2, 500):
        assert rankings(searcher, Queries.of(said), k, system).to_dict() == everything.top(k).to_dict()


def test_the_system_finds_what_brute_force_finds(colbert, corpus, queries, tmp_path):
    folder, _, _ = colbert()
    system = parse_system(f'colbert("{folder}", engine="torch")')
    assert parse_system(str(system)) == system
    told = []
    searcher = system.index(
        corpus, Context(tmp_path / "index", lambda done, total: told.append((done, total)))
    )
    assert told[0] == (2, 123)  # two texts are there twice
    expected = brute(searcher.loaded)
    for k in (1, 7, 500):
        run = searcher.search(queries, k)
        assert np.diff(run.ptr).tolist() == [min(k, 123), 0, min(k, 123), min(k, 123)]
        for q in (0, 2, 3):
            doc, score = (part[run.ptr[q] : run.ptr[q + 1]] for part in (run.doc, run.score))
            np.testing.assert_allclose(score, expected[q][doc], atol=2e-6)
            order = np.lexsort((corpus.ids.tie_ranks[doc], -score))
            assert order.tolist() == list(range(len(doc)))
            assert score.min() >= np.sort(expected[q])[::-1][: len(doc)].min() - 2e-6
    np.testing.assert_array_equal(searcher.scores(queries, run), run.score)
    opened = system.open(corpus, Context(tmp_path / "index"))
    assert opened.search(queries, 20).to_dict() == searcher.search(queries, 20).to_dict()
    assert searcher.costs().external_bytes == 2 * D * int(searcher.documents.stored.snapshot.ptr[-1])
    (tmp_path / "index" / "index.json").write_text("{")
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(corpus, Context(tmp_path / "index"))
    with pytest.raises(BadValue, match="searches exactly"):
        searcher.loss(queries, 5)


def test_no_score_depends_on_the_batch_or_on_how_many_candidates(colbert, corpus, queries):
    folder, _, _ = colbert()
    searcher = parse_system(f'colbert("{folder}", engine="torch")').index(corpus)
    whole = searcher.search(queries, 123).to_dict()
    for name in ("a", "b", "c"):
        few = searcher.search(Queries.of({name: QUERIES[name]}), 9).to_dict()[name]
        for document, score in few.items():
            assert score == pytest.approx(whole[name][document], abs=3e-6)  # the query alone is encoded alone
    run = searcher.search(queries, 30)
    part = run.top(4)
    np.testing.assert_array_equal(searcher.scores(queries, part), part.score)
    for docs in (
        DOCUMENTS,
        dict(reversed(DOCUMENTS.items())),
        {k: DOCUMENTS[k] for k in list(DOCUMENTS)[40:]},
    ):
        # The vectors come from the store: another corpus of the same texts gives the same bits.
        again = parse_system(f'colbert("{folder}", engine="torch")').index(Corpus.of(docs))
        found = again.search(queries, 123).to_dict()
        for name in ("a", "b", "c"):
            assert found[name] == {d: s for d, s in whole[name].items() if d in docs}


def test_a_document_with_a_vector_that_is_no_number_is_named(colbert, corpus):
    folder, _, _ = colbert()
    state = late_checkpoint.load(folder / "model.safetensors")
    state["bert.embeddings.word_embeddings.weight"][NUMBER["weir"]] = float("nan")
    late_checkpoint.save(state, folder / "model.safetensors", metadata={"format": "pt"})
    wrong = next(name for name, text in DOCUMENTS.items() if "weir" in text)
    with pytest.raises(BadValue, match=f"text '{wrong}': its vector is not finite"):
        parse_system(f'colbert("{folder}", engine="torch")').index(corpus)


def test_encoding_is_done_once(colbert, corpus, home):
    folder, _, _ = colbert()
    first = parse_system(f'colbert("{folder}", engine="torch")').index(corpus)
    assert first.costs().reused_documents == 0
    stamps = {p: p.stat().st_mtime_ns for p in home.rglob("*.bin")}
    assert len(stamps) == 3
    other = parse_system(f'colbert("{folder}", engine="torch", max_query=20, bits=2)').index(corpus)
    assert other.costs().reused_documents == 123
    assert {p: p.stat().st_mtime_ns for p in home.rglob("*.bin")} == stamps


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_candidates_and_compression_and_what_they_lose(colbert, corpus, queries, tmp_path, home, bits):
    folder, _, _ = colbert()
    text = f'colbert("{folder}", engine="torch", bits={bits}, candidates=40, probes=2)'
    system = parse_system(text)
    searcher = system.index(corpus, Context(tmp_path / "index"))
    run = searcher.search(queries, 10)
    assert np.diff(run.ptr).tolist() == [10, 0, 10, 10]
    np.testing.assert_array_equal(searcher.scores(queries, run), run.score)
    lost = searcher.loss(queries, 10)
    assert 0 <= lost.total <= 0.7
    assert (lost.quantisation > 0) <= (bits > 0)
    opened = system.open(corpus, Context(tmp_path / "index"))
    assert opened.search(queries, 10).to_dict() == run.to_dict()
    assert opened.loss(queries, 10) == lost
    if bits:
        error = json.loads((tmp_path / "index" / "index.json").read_text())
        assert 0 < error["error"] < error["largest"] < 1
        exact = parse_system(f'colbert("{folder}", engine="torch")').index(corpus)
        every = exact.search(queries, 123)
        off = np.abs(searcher.scores(queries, every) - every.score)
        assert 0 < off.max() <= 12 * error["largest"]  # 12 tokens of a query
    else:
        all_of_them = parse_system(text.replace("candidates=40, probes=2", "candidates=123, probes=99"))
        assert all_of_them.index(corpus).loss(queries, 10).total == 0
    for part in (home / "vectors").iterdir():
        part.rename(tmp_path / part.name)
    if bits:  # what is compressed stands alone
        assert searcher.costs().external_bytes == 0
        opened = system.open(corpus, Context(tmp_path / "index"))
        assert opened.search(queries, 10).to_dict() == run.to_dict()
        with pytest.raises(BadValue, match="the vectors it was made of are gone"):
            opened.loss(queries, 10)
    else:
        with pytest.raises(StoreError, match="they are encoded again"):
            system.open(corpus, Context(tmp_path / "index"))
    for part in tmp_path.glob("*-*"):
        if (part / "rows.bin").exists():
            part.rename(home / "vectors" / part.name)
    damaged = "packed" if bits else "clusters-code"
    (tmp_path / "index" / f"{damaged}.npy").write_bytes(b"half")
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(corpus, Context(tmp_path / "index"))


def test_as_a_re_ranker_only_candidates_are_encoded(colbert, corpus, queries, home):
    folder, _, _ = colbert()
    name = f'colbert("{folder}", engine="torch")'
    system = parse_system(f"bm25 >> score({name}, depth=5)")
    searcher = system.index(corpus)
    run = searcher.search(queries, 5)
    (store,) = (p.parent for p in (home / "vectors").rglob("rows.bin"))
    encoded = len(np.fromfile(store / "texts.bin", "<u8")) // 3
    assert encoded == len({DOCUMENTS[d] for ranking in run.to_dict().values() for d in ranking})
    assert searcher.costs().computed_pairs == searcher.costs().requested_pairs == len(run.doc)
    again = system.index(corpus)
    assert again.search(queries, 5).to_dict() == run.to_dict()
    assert again.costs().computed_pairs == 0
    whole = parse_system(name).index(
        corpus
    )  # what was stored is not encoded again, and the scores are the same bits
    assert whole.costs().reused_documents >= encoded
    np.testing.assert_array_equal(whole.scores(queries, run), run.score)
    timed = searcher.scorer.scores(queries, run, Context(reuse=False))
    np.testing.assert_allclose(timed, run.score, atol=2e-4)
    assert searcher.costs().requested_pairs == len(run.doc)


def test_a_store_that_is_gone_or_another_corpus(colbert, corpus, queries, tmp_path, home):
    folder, _, _ = colbert()
    system = parse_system(f'colbert("{folder}", engine="torch")')
    system.index(corpus, Context(tmp_path / "index"))
    other = Corpus.of({"x": "red cat"})
    with pytest.raises(BadValue, match="made from another corpus"):
        system.open(other, Context(tmp_path / "index"))
    store = next((home / "vectors").iterdir())
    store.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"not in .* any more; they are encoded again"):
        system.open(corpus, Context(tmp_path / "index"))
    assert system.index(other).search(queries, 3).to_dict()["blank"] == {}
    with pytest.raises(BadValue, match="k is 0"):
        system.index(other).search(queries, 0)
    nothing = system.index(Corpus.of({}))
    assert nothing.search(queries, 3).to_dict() == {"a": {}, "blank": {}, "b": {}, "c": {}}


def test_an_experiment_over_it_is_measured_and_continues(colbert, home):
    folder, _, _ = colbert()
    name = f'colbert("{folder}", engine="torch", bits=2, candidates=30)'
    pipeline = f'bm25 >> score(colbert("{folder}", engine="torch"), depth=5)'
    grid = Experiment(("brook-facts",), (name, pipeline), ("nDCG@10", "R@10"), k=10)
    rows = grid.execute(home / "results")
    assert [row.answered == row.queries for row in rows] == [True] * 4
    cells = finished_cells(home / "results")
    assert len(cells) == 2
    described = [cell.ranked.declared["system"].get("encoder") for cell in cells]
    assert any(d and d["filled"] == "[MASK] to 12, not attended" for d in described)
    for cell in cells:
        for path, _ in cell.scored:
            path.unlink()
    assert grid.execute(home / "results") == rows
    costs = {e.quality.system: e for e in efficiency(home / "results")}
    assert costs[name].index_bytes > 0
    assert costs[name].p50_ms > 0
    (mark,) = costs[name].search_marks
    assert re.fullmatch(
        r"finds \d+\.\d% of the exact 10 best; -?\d+\.\d% are lost by .* \(\d+ queries\)", mark
    )


@pytest.mark.parametrize("bits", [0, 2])
def test_machines_share_what_was_encoded(colbert, home, tmp_path, monkeypatch, bits):
    """Without compression the token vectors travel, with it the index; no document is encoded on the second machine."""
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec, as the `neural` extra brings it")
    folder, _, _ = colbert()
    name, address = f'colbert("{folder}", engine="torch", bits={bits})', "memory://late"
    Experiment(("brook-facts",), (name,), ("nDCG@10",), k=10, stages=address).execute(tmp_path / "one")
    monkeypatch.setenv("WEIR_HOME", str(home / "second"))
    settings.cache_clear()
    asked, encode = [], LoadedLate.encode

    def noted(self, texts, kind="document"):
        asked.append(kind)
        return encode(self, texts, kind)

    monkeypatch.setattr(LoadedLate, "encode", noted)
    Experiment(("brook-facts",), (name,), ("nDCG@10",), k=9, stages=address).execute(tmp_path / "two")
    assert set(asked) == {"query"}
    fsspec.filesystem("memory").store.clear()
    Experiment(("brook-facts",), (name,), ("nDCG@10",), k=9).execute(tmp_path / "one")
    runs = [(path.parent.name, path.read_bytes()) for path in (tmp_path / "one").rglob("run.trec")]
    (fetched,) = (tmp_path / "two").rglob("run.trec")
    assert (fetched.parent.name, fetched.read_bytes()) in runs
