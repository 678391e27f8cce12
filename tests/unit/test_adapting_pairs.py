"""Pairs to train on: crops, judged pairs, questions, negatives, and what must not be learned."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.unit.model_servers import PASSAGE, chat_serving
from weir.errors import BadValue, FormatError
from weir.files.integrity import write_sealed
from weir.models.checkpoints import TRAINING_RECORD, trained_on
from weir.plugins.report.paper import trained_on as of_system
from weir.plugins.training.pairs import (
    Crops,
    GivenPairs,
    WrittenQuestions,
    answers_of,
    known_pairs,
    pairs_of,
    with_negatives,
)

DOCUMENTS = {f"d{i}": " ".join(f"w{(i * 7 + j) % 40}" for j in range(10 + i)) for i in range(30)}


def silent(what, done, total):
    pass


@pytest.fixture
def collection(tmp_path):
    """A folder in BEIR's layout with the splits train and test, and one query in both."""
    lines = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in DOCUMENTS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    queries = {"a": "w1 w2", "b": "w3 w4 w5", "c": "W1  w2", "t": "w9 w8 w7"}
    lines = [json.dumps({"_id": name, "text": text}) for name, text in queries.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels").mkdir()
    head = "query-id\tcorpus-id\tscore\n"
    (tmp_path / "qrels" / "train.tsv").write_text(head + "a\td1\t1\na\td2\t0\nb\td3\t2\nb\td4\t1\n")
    (tmp_path / "qrels" / "test.tsv").write_text(head + "c\td1\t1\nt\td5\t1\n")
    return weir.load(tmp_path)


@given(seed=st.integers(0, 50), least=st.floats(0.05, 0.5), deleted=st.floats(0, 0.9))
def test_crops_are_spans_of_their_document(seed, least, deleted):
    dataset = weir.Dataset.of(DOCUMENTS, {"q": "w1"}, {"q": {"d1": 1}})
    crops = Crops(least, 0.5, words=3, deleted=deleted, each=2)
    pairs = crops.pairs(dataset, seed, silent)
    assert len(pairs) == 2 * len(DOCUMENTS)
    for texts in (pairs.queries, pairs.positives):
        for text, document in zip(texts, pairs.document.tolist(), strict=True):
            words = list(DOCUMENTS[dataset.corpus.ids[document]].split())
            most = max(3, round(len(words) * 0.5))
            assert 1 <= len(text.split()) <= most
            rest = iter(words)
            assert all(word in rest for word in text.split())  # in their order
    assert pairs.content_hash() == crops.pairs(dataset, seed, silent).content_hash()
    assert pairs.content_hash() != crops.pairs(dataset, seed + 1, silent).content_hash()


def test_judged_pairs_are_those_of_a_positive_grade(collection, tmp_path):
    pairs = GivenPairs("train").pairs(collection, 0, silent)
    names = [collection.corpus.ids[i] for i in pairs.document.tolist()]
    assert list(zip(pairs.queries, names, strict=True)) == [
        ("w1 w2", "d1"),
        ("w3 w4 w5", "d3"),
        ("w3 w4 w5", "d4"),
    ]
    assert pairs.positives[0] == DOCUMENTS["d1"]
    with pytest.raises(BadValue, match=r"no judgments of the split 'dev' \(found"):
        GivenPairs("dev").pairs(collection, 0, silent)
    lines = [{"query": "x", "positive": "y"}, {"query": "x", "positive": DOCUMENTS["d7"]}]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = GivenPairs(file=str(tmp_path / "own.jsonl")).pairs(collection, 0, silent)
    assert own.document.tolist() == [
        -1,
        collection.corpus.ids.codes(["d7"])[0],
    ]  # a document is known by its text
    (tmp_path / "own.jsonl").write_text('{"query": "x", "positive": "y"}\n{"query": "z"}\n')
    with pytest.raises(FormatError, match=r"line 2.*query and positive"):
        GivenPairs(file=str(tmp_path / "own.jsonl")).pairs(collection, 0, silent)


def test_what_is_evaluated_is_known(collection):
    pairs = GivenPairs("train").pairs(collection, 0, silent)
    assert known_pairs(pairs, collection) == ((0,), 1)  # the same but for case and spaces
    long = " ".join(f"v{i}" for i in range(20))
    dataset = weir.Dataset.of(DOCUMENTS, {"q": f"so {long}"}, {"q": {"d1": 1}})
    rows = [(f"but {long} then", "", 1), (" ".join(long.split()[:12]), "", 1)]
    assert known_pairs(pairs_of(rows), dataset) == ((0,), 1)  # 13 words in a row, not 12


@given(seed=st.integers(0, 20), count=st.integers(1, 5), depth=st.integers(1, 30))
def test_negatives_answer_nothing(seed, count, depth):
    dataset = weir.Dataset.of(DOCUMENTS, {"q": "w1"}, {"q": {"d1": 1}})
    rows = [("w1 w2", "", 1), ("w1 w2", "", 2), ("nothing of this", "", 3), ("w5", "", -1)]
    whole = pairs_of([*rows, ("w1 w2", "", 9)])
    pairs = with_negatives(whole.take(range(4)), answers_of(whole), dataset, count, depth, seed, silent)
    assert pairs.negatives.shape == (4, count)
    for row, (query, _, _) in enumerate(rows):
        positives = answers_of(whole)[query]
        own = pairs.negatives[row].tolist()
        assert len(set(own)) == count
        assert not positives & set(own)
    ranked = weir.systems.BM25().index(dataset.corpus).search(weir.Queries.of({"0": "w5"}), depth)
    if len(ranked.doc) >= count:
        assert set(pairs.negatives[3].tolist()) <= set(ranked.doc.tolist())
    small = weir.Dataset.of({"a": "x", "b": "y"}, {"q": "x"}, {"q": {"a": 1}})
    one = pairs_of([("x", "", 0)])
    with pytest.raises(BadValue, match="2 documents do not give 2 negatives a pair"):
        with_negatives(one, answers_of(one), small, 2, 10, 0, silent)


def test_questions_from_a_file_and_of_a_language_model(collection, tmp_path, home, monkeypatch):
    (tmp_path / "q.jsonl").write_text(
        '{"_id": "d3", "predicted_queries": ["who", "what", "who"]}\n{"_id": "d4", "query": "where"}\n'
    )
    pairs = WrittenQuestions(file=str(tmp_path / "q.jsonl")).pairs(collection, 0, silent)
    assert pairs.queries == ("who", "what", "where")
    assert [collection.corpus.ids[i] for i in pairs.document.tolist()] == ["d3", "d3", "d4"]
    with chat_serving() as (url, manners):
        manners.say = lambda system, user: f"what of {PASSAGE.findall(user)[-1].split()[0]}?"
        source = WrittenQuestions(llm=f"{url}#m", n=2, documents=4)
        pairs = source.pairs(collection, 3, silent)
        assert len(set(pairs.document.tolist())) == 4
        firsts = [pairs.positives[i].split()[0] for i in range(len(pairs))]
        assert list(pairs.queries) == [f"what of {word}?" for word in firsts]
        asked = len(manners.asked)
        assert source.pairs(collection, 3, silent).content_hash() == pairs.content_hash()
        assert len(manners.asked) == asked  # kept
        manners.finish = "length"
        source = WrittenQuestions(llm=f"{url}#m", n=1, documents=5)
        assert len(source.pairs(collection, 4, silent)) < 5  # what was cut is no question
    with pytest.raises(BadValue, match="model and llm do not go together"):
        WrittenQuestions(model="doc2query", llm="x:y")


def test_pairs_are_taken_by_their_rows():
    pairs = pairs_of([("a", "x", 0), ("b", "y", 1), ("c", "z", 2)])
    some = pairs.take([2, 0])
    assert (some.queries, some.document.tolist()) == (("c", "a"), [2, 0])
    assert some.content_hash() != pairs.content_hash()
    assert pairs.take([0, 1, 2]).content_hash() == pairs.content_hash()
    assert np.shape(some.negatives) == (2, 0)


def test_a_trained_folder_says_on_what(tmp_path):
    facts = {"trained_on": ["mine", "nq"], "base_known": True}
    write_sealed(tmp_path / TRAINING_RECORD, facts)
    assert trained_on(str(tmp_path)) == ("mine", "nq")
    assert of_system(f'rrf(bm25, dense("{tmp_path}", dtype="bf16"))') == {"mine", "nq"}
    write_sealed(tmp_path / TRAINING_RECORD, facts | {"base_known": False})
    assert trained_on(str(tmp_path)) is None  # nothing says on what its base was trained
    write_sealed(tmp_path / TRAINING_RECORD, facts)
    text = (tmp_path / TRAINING_RECORD).read_text()
    (tmp_path / TRAINING_RECORD).write_text(text.replace('"nq"', '"dev"'))
    assert trained_on(str(tmp_path)) is None  # changed by hand
    assert trained_on("minilm") == ("msmarco", "nq")
    assert trained_on(str(tmp_path / "nowhere")) is None
