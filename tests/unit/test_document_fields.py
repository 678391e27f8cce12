"""Fields of documents: what they are made of, how they are stored, searched and named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import weir
from weir.core.corpus import Corpus, Queries
from weir.core.filters import records
from weir.datasets.load import Dataset
from weir.errors import BadValue, StoreWarning, UnknownName
from weir.experiment.stage_store import StageCache, index_stage
from weir.files.corpus_store import open_store, source_fingerprint
from weir.files.integrity import read_sealed, write_sealed
from weir.files.layouts import CollectionPart
from weir.systems import BM25, BM25F, Sparse, parse_system
from weir.systems.protocol import Context

DOCUMENTS = {
    "d1": {"title": "Dam", "text": "A low dam", "lang": "en", "year": 1999, "tags": ["river", "old dam"]},
    "d2": {
        "text": "Ein Wehr",
        "metadata": {"lang": "de", "year": 2020.5, "by": {"name": "Ada"}},
        "tags": "bach",
    },
    "d3": {"text": "plain", "year": None, "tags": [], "draft": True},
    "d4": {
        "text": "two",
        "by": [{"name": "Bo"}, {"name": "Cy"}],
        "lang": "",
        "isbn": 2**60,
        "year": float("nan"),
    },
}
KINDS = {
    "by.name": "list",
    "draft": "number",
    "isbn": "text",
    "lang": "text",
    "tags": "list",
    "year": "number",
}


def written(folder: Path, documents: dict = DOCUMENTS) -> CollectionPart:
    folder.mkdir(exist_ok=True)
    lines = (json.dumps({"_id": name, **document}) for name, document in documents.items())
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return CollectionPart(folder / "corpus.jsonl")


def fields_of(corpus: Corpus) -> dict[str, tuple[str, list[str]]]:
    return {
        name: (corpus.field(name).kind, corpus.field(name).text.tolist()) for name in corpus.metadata.names()
    }


@pytest.mark.parametrize("stored", [False, True])
def test_a_field_is_a_key_of_a_document_or_of_its_metadata(stored, tmp_path):
    corpus = open_store(written(tmp_path / "c")).corpus if stored else Corpus.of(DOCUMENTS)
    assert corpus.field_names == ("title", "text", *KINDS)
    assert {name: kind for name, (kind, _) in fields_of(corpus).items()} == KINDS
    assert corpus.field("year").number.tolist()[:2] == [1999.0, 2020.5]
    assert corpus.field("draft").text.tolist() == ["", "", "true", ""]
    assert corpus.view("title text tags by.name year").tolist() == [
        "Dam A low dam river old dam 1999",
        "Ein Wehr bach Ada 2020.5",
        "plain",
        "two Bo Cy",
    ]
    assert corpus.view_of("tags lang", [1, 0]).tolist() == ["bach de", "river old dam en"]
    assert next(records(corpus.metadata, len(corpus))) == {
        "lang": "en",
        "tags": ["river", "old dam"],
        "year": 1999,
    }


def test_a_field_that_no_document_has_is_one_line_with_those_that_there_are(tmp_path):
    corpus = open_store(written(tmp_path / "c")).corpus
    known = "known: by.name, draft, isbn, lang, tags, text, title, year"
    with pytest.raises(UnknownName, match=rf"named 'tag'; did you mean tags.*\? {known}$"):
        BM25(fields=["tag", "text"]).index(corpus)
    with pytest.raises(UnknownName, match=r"known: text$"):
        BM25F({"url": 1}).index(Corpus.of({"a": "x"}))


def test_fields_are_read_once_and_stay(tmp_path, monkeypatch):
    part = written(tmp_path / "c")
    first = fields_of(open_store(part).corpus)
    monkeypatch.setattr("weir.files.corpus_store.flattened", None)  # nothing may be read again
    assert fields_of(open_store(part).corpus) == first
    monkeypatch.undo()
    written(tmp_path / "c", DOCUMENTS | {"d5": {"text": "new", "lang": "fr"}})
    assert open_store(part).corpus.field("lang").text.tolist() == ["en", "de", "", "", "fr"]


def test_damaged_fields_are_read_again(tmp_path):
    part = written(tmp_path / "c")
    first, folder = fields_of(open_store(part).corpus), tmp_path / "c" / "corpus.jsonl.fields.weir"
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")):
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 2], whole + b"x", bytes([whole[0] ^ 1]) + whole[1:]):
            path.write_bytes(damaged)
            with pytest.warns(StoreWarning, match="the field is read again"):
                assert fields_of(open_store(part).corpus) == first
            assert path.read_bytes() == whole
    shutil.rmtree(folder)
    assert fields_of(open_store(part).corpus) == first


def test_a_store_without_all_keys_is_built_again_when_a_field_is_asked_for(tmp_path):
    part = written(tmp_path / "c")
    store = open_store(part)
    record = store.path / "store.json"
    about = read_sealed(record)
    write_sealed(record, {key: value for key, value in about.items() if key != "all_keys"})
    before = record.stat().st_mtime_ns
    corpus = open_store(part).corpus
    corpus.view("title text")
    assert record.stat().st_mtime_ns == before  # who asks for no field keeps the store
    assert corpus.fingerprint == source_fingerprint(part)
    assert corpus.field("lang").text.tolist() == ["en", "de", "", ""]
    assert read_sealed(record) == about


def test_documents_without_metadata_have_no_fields_and_no_files(tmp_path):
    part = written(tmp_path / "c", {"d1": {"title": "a", "text": "b", "metadata": {}}})
    assert open_store(part).corpus.field_names == ("title", "text")
    assert not (tmp_path / "c" / "corpus.jsonl.fields.weir").exists()


def test_a_collection_from_memory_keeps_its_fields():
    dataset = Dataset.of(DOCUMENTS, {"q": "dam"}, {"q": {"d1": 1}})
    assert fields_of(dataset.corpus) == fields_of(Corpus.of(DOCUMENTS))


def test_metadata_is_in_the_keys_of_systems_that_read_it(tmp_path):
    plain, fielded = BM25(), BM25(fields=["tags", "text"])

    def keys(documents: dict) -> list[str]:
        corpus = open_store(written(tmp_path / "c", documents)).corpus
        return [index_stage(system, corpus).key for system in (plain, fielded, BM25F({"lang": 1}))]

    before = keys(DOCUMENTS)
    after = keys(DOCUMENTS | {"d1": DOCUMENTS["d1"] | {"tags": ["lake"]}})
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
    assert "metadata" not in index_stage(plain, open_store(written(tmp_path / "c")).corpus).declared


def test_vectors_are_of_the_fields_that_a_view_names():
    seen: list[str] = []

    def vectors(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.ones((len(texts), 2))

    corpus, system = Corpus.of(DOCUMENTS), weir.Dense(vectors, view="lang tags", separator=" | ")
    assert system.fields_read() == ("lang tags",)
    system.index(corpus)
    assert sorted(seen) == sorted({"en | river old dam", "de | bach", ""})


def test_an_index_of_other_metadata_is_refused(tmp_path):
    system = BM25F({"tags": 2, "text": 1})
    system.index(open_store(written(tmp_path / "c")).corpus, Context(tmp_path / "i"))
    other = open_store(written(tmp_path / "c", DOCUMENTS | {"d3": {"text": "plain", "tags": "x"}})).corpus
    with pytest.raises(BadValue, match="another corpus"):
        system.open(other, Context(tmp_path / "i"))


def test_searching_a_field_finds_what_stands_there():
    corpus = Corpus.of(DOCUMENTS)
    query = Queries.of({"q": "river"})
    assert BM25().index(corpus).search(query, 5).to_dict() == {"q": {}}
    for system in ('bm25(fields=["tags", "text"])', 'bm25f(fields=["tags"])', 'bm25(fields=["text tags"])'):
        assert list(parse_system(system).index(corpus).search(query, 5).to_dict()["q"]) == ["d1"], system


def test_equal_fields_are_equal_systems():
    assert parse_system('bm25(fields=["text", "title"])') == BM25(fields={"title": 1.0, "text": 1})
    assert str(BM25(fields=["title text"])) == "bm25"
    assert str(BM25("elastic", fields=["title", "text"])) == 'bm25("elastic")'
    assert str(BM25F({"title": 1, "text": 1}, b={"text": 0.5, "title": 0.5})) == "bm25f(b=0.5)"
    assert Sparse("a/b", view="text").fields_read() == ("text",)


def test_a_grid_says_so_before_it_starts(tmp_path):
    dataset = Dataset.of(DOCUMENTS, {"q": "dam"}, {"q": {"d1": 1}})
    shelf = StageCache(tmp_path, tmp_path, dataset, lambda *said: None)
    with pytest.raises(UnknownName, match="field of these documents named 'nope'"):
        shelf.run_stage(parse_system('bm25 >> score(bm25(fields=["nope"]))'), 10)


@pytest.mark.parametrize("kind", [Corpus, Queries])
@pytest.mark.parametrize("value", [None, 5, float("nan"), b"x", ["x"]])
def test_a_value_that_is_no_text_is_refused_and_nothing_within_a_row_is_an_empty_text(kind, value):
    with pytest.raises(BadValue, match=r"(document|query) 'a' is \w+; expected a text or a dict with"):
        kind.of({"a": value})
    for nothing in (None, float("nan")):
        assert kind.of({"a": {"text": nothing}}).text.tolist() == [""]
    assert kind.of({"a": {"text": 0}}).text.tolist() == ["0"]
