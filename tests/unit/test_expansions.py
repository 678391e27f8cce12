from __future__ import annotations

import gzip
import json

import pytest

from weir.core.corpus import Corpus, Queries
from weir.errors import BadValue, FormatError, RankingWarning, StoreError
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells, index_cost
from weir.plugins.encoders.expansions import read_questions
from weir.systems import parse_system
from weir.systems.protocol import Context

DOCUMENTS = {"d1": "a low dam", "d2": "knead the dough", "d3": ""}


def test_published_files_are_read_whichever_form_they_have(tmp_path):
    corpus = Corpus.of(DOCUMENTS)
    forms = {
        "castorini": [
            {"id": "d1", "predicted_queries": ["what is a weir", "dams"]},
            {"id": "d2", "predicted_queries": []},
        ],
        "beir": [
            {"_id": "d1", "title": "", "text": "a low dam", "query": "what is a weir"},
            {"_id": "other", "title": "", "text": "", "query": "nothing"},
            {"_id": "d2", "title": "", "text": "", "query": "bread"},
            {"_id": "d1", "title": "", "text": "a low dam", "query": "dams"},
        ],
        "pyserini": [{"id": "d1", "contents": "a low dam", "queries": "what is a weir dams"}],
    }
    for name, lines in forms.items():
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        plain, packed = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.jsonl.gz"
        plain.write_bytes(text)
        packed.write_bytes(gzip.compress(text))
        for path in (plain, packed):
            found = read_questions(path, corpus, 40)
            assert found.block(0, 3).tolist()[0] == "what is a weir dams"
            assert found.block(2, 3).tolist() == [""]
    beir = read_questions(tmp_path / "beir.jsonl", corpus, 1)
    assert beir.block(0, 3).tolist() == ["what is a weir", "bread", ""]
    assert beir.without == 1
    assert read_questions(tmp_path / "castorini.jsonl", corpus, 1).block(0, 1).tolist() == ["what is a weir"]


def test_numbers_as_identifiers_are_read_as_text(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": 7, "predicted_queries": ["a river"]}\n')
    assert read_questions(path, Corpus.of({"7": "x"}), 5).block(0, 1).tolist() == ["a river"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": "d1", "predicted_queries": ["a"]}\n{"id": "d2"}\n', "line 2: found the keys id; expected"),
        (b'{"id": "d1", "predicted_queries": [1]}\n', "line 1: found the keys id, predicted_queries"),
        (b'{"predicted_queries": ["a"]}\n', "line 1: found the keys predicted_queries"),
        (b'{"id": "d1", "query": "a"}\n{"id"\n', "line 2"),
        (b'{"id": "x", "query": "a"}\n', "no line of a document of this collection"),
        (b"", "no line of a document of this collection"),
    ],
)
def test_a_file_of_another_form_is_one_line(tmp_path, content, message):
    path = tmp_path / "questions.jsonl"
    path.write_bytes(content)
    with pytest.raises(FormatError) as error:
        read_questions(path, Corpus.of(DOCUMENTS), 5)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_cut_off_or_missing_is_named(tmp_path):
    packed = tmp_path / "questions.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"id": "d1", "query": "a"}\n' * 999)[:-20])
    with pytest.raises(FormatError, match=r"questions.jsonl.gz: found a damaged file"):
        read_questions(packed, Corpus.of(DOCUMENTS), 5)
    for ask in (lambda s: s.describe(), lambda s: s.index(Corpus.of(DOCUMENTS))):
        with pytest.raises(FormatError, match=r"[Nn]o such file"):
            ask(parse_system(f'doc2query(expansions="{tmp_path / "none"}")'))


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "d1", "predicted_queries": ["what is a weir", "xylophone", "zither"]}\n')
    return path


def test_documents_are_found_by_their_questions(questions):
    corpus, asked = Corpus.of(DOCUMENTS), Queries.of({"q1": "xylophone", "q2": "dough", "q3": "zither"})
    system = parse_system(f'doc2query(expansions="{questions}", n=2)')
    with pytest.warns(RankingWarning, match="no questions for 2 of 3 documents"):
        index = system.index(corpus)
    run = index.search(asked, 10)
    assert {q: list(r) for q, r in run.to_dict().items()} == {"q1": ["d1"], "q2": ["d2"], "q3": []}
    assert run.name == str(system)
    enlarged = Corpus.of(DOCUMENTS | {"d1": "a low dam what is a weir xylophone", "d2": "knead the dough "})
    expected = parse_system("bm25").index(enlarged).search(asked, 10)
    assert run.to_dict() == expected.to_dict()
    assert (index.scores(asked, run) == run.score).all()
    with pytest.warns(RankingWarning):
        twice = parse_system(f'bm25 >> score(doc2query(expansions="{questions}", n=2))').index(corpus)
    assert list(twice.search(Queries.of({"q": "dam xylophone"}), 3).to_dict()["q"]) == ["d1"]


def test_another_file_is_another_index(questions, tmp_path):
    corpus = Corpus.of(DOCUMENTS)
    corpus = type(corpus)(corpus.ids, corpus.text, corpus.title, "fingerprint")
    system = parse_system(f'doc2query(expansions="{questions}", n=2)')
    with pytest.warns(RankingWarning):
        system.index(corpus, Context(tmp_path / "index"))
    asked = Queries.of({"q1": "xylophone"})
    opened = parse_system(str(system)).open(corpus, Context(tmp_path / "index"))
    assert list(opened.search(asked, 5).to_dict()["q1"]) == ["d1"]
    before = system.describe()
    questions.write_text('{"id": "d2", "predicted_queries": ["xylophone"]}\n')
    assert parse_system(str(system)).describe() != before
    with pytest.raises(BadValue, match="made from another corpus"):
        parse_system(str(system)).open(corpus, Context(tmp_path / "index"))
    with pytest.raises(StoreError, match="the index is damaged"):
        system.open(corpus, Context(tmp_path / "nothing"))


def test_in_an_experiment_what_is_missing_is_said(questions, tmp_path):
    from tests.unit.brooklet import write_collection

    folder = str(write_collection(tmp_path / "brooklet"))
    with pytest.warns(RankingWarning, match="no questions for 5 of 6 documents"):
        rows = Experiment((folder,), (f'doc2query(expansions="{questions}")',), ("nDCG@10",)).execute(
            tmp_path / "results"
        )
    assert rows[0].mean > 0
    [cell] = finished_cells(tmp_path / "results")
    assert index_cost(cell)["reused"] == 6
