from __future__ import annotations

import gzip
import json

import pytest

from weir.core.corpus import Corpus, Queries
from weir.encode.pairs.t5_ranker import MonoT5
from weir.encode.question_writer import QuestionWriter
from weir.errors import BadValue, FormatError, RankingWarning, StoreError, UnknownName
from weir.experiment.costs import index_cost
from weir.experiment.experiment import Experiment
from weir.experiment.finished import finished_cells
from weir.systems import parse_system, usage
from weir.systems.lexical.expansions import read_questions
from weir.systems.protocol import Context

NAMES = [
    'bm25 >> monot5("castorini/monot5-base-msmarco")',
    'bm25 >> monot5("monot5", depth=50, max_length=256, dtype="bf16")',
    'bm25 >> score(rm3) >> monot5("x", token_false="▁no", token_true="▁yes", batch_tokens=4000)',
    "doc2query",
    'doc2query(bm25("lucene-multifield"), n=5, seed=3)',
    'doc2query(rm3(terms=20), model="folder", top_k=25, max_length=64, max_words=32, dtype="bf16")',
    'doc2query(n=20, expansions="train.jsonl.gz") >> monot5("y")',
    "rrf(doc2query, bm25)",
]
DOCUMENTS = {"d1": "a low dam", "d2": "knead the dough", "d3": ""}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_and_parses_back(name):
    system = parse_system(name)
    assert str(system) == name
    assert parse_system(str(system)) == system
    assert hash(parse_system(name)) == hash(system)


def test_settings_equal_to_the_default_are_the_default():
    assert parse_system('bm25 >> monot5("monot5", None, 512)') == parse_system("bm25 >> monot5")
    assert parse_system('doc2query(bm25, "doc2query", 40)') == parse_system("doc2query")
    assert usage("monot5").startswith('monot5(model="monot5", depth=None, max_length=512')
    assert usage("doc2query").startswith('doc2query(system=bm25, model="doc2query", n=40, expansions=None')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("monot5", "write such as bm25 >> monot5(...)"),
        ("bm25 >> doc2query", "doc2query is a system"),
        ('bm25 >> monot5("x", depth=0)', "whole number from 1"),
        ('bm25 >> monot5("x", dtype="fp16")', "expected fp32, bf16"),
        ('bm25 >> monot5("x", max_length=15)', "whole number from 16"),
        ('bm25 >> monot5("x", token_true="▁yes")', "expected two words, or neither"),
        ("bm25 >> monot5(3)", "a hub name or a folder"),
        ('bm25 >> monot5(" ")', "a hub name or a folder"),
        ('bm25 >> monot5("x", engine="torch")', "no setting of monot5 named 'engine'"),
        ("doc2query(dense)", "for bm25 or rm3, not for dense"),
        ("doc2query(3)", "for bm25 or rm3, not for 3"),
        ("doc2query(n=0)", "n is 0; expected a whole number from 1"),
        ("doc2query(top_k=0)", "top_k is 0"),
        ("doc2query(seed=-1)", "seed is -1"),
        ('doc2query(dtype="int8")', "expected fp32, bf16"),
        ('doc2query(model="")', "a hub name or a folder"),
        ('doc2query(expansions="")', "expected a file"),
        ('doc2query(expansions="x", seed=1)', "seed means nothing beside expansions"),
        ('doc2query(expansions="x", model="y")', "model means nothing beside expansions"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(text, message):
    with pytest.raises((BadValue, UnknownName)) as error:
        parse_system(text)
    assert message in str(error.value)


def test_words_for_yes_and_no_are_those_of_the_checkpoint():
    assert MonoT5().words == MonoT5("castorini/monot5-3b-msmarco").words == ("▁false", "▁true")
    assert MonoT5("unicamp-dl/mt5-base-mmarco-v2").words == ("▁no", "▁yes")
    assert MonoT5("unicamp-dl/mt5-3B-mmarco-en-pt").words == ("▁", "▁true")
    assert MonoT5("unicamp-dl/ptt5-base-pt-msmarco-10k-v1").words == ("▁não", "▁sim")
    assert MonoT5("unicamp-dl/mt5-base-mmarco-v2", token_false="a", token_true="b").words == ("a", "b")


def test_a_model_of_another_kind_is_refused_by_its_card():
    with pytest.raises(BadValue, match="of the kind 'dense', and no T5 such as"):
        QuestionWriter("minilm").checkpoint()


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
    with pytest.raises(FormatError, match=r"questions.jsonl.gz: found damage"):
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
