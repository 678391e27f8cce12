"""The dataset card: counted, not quoted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weir
from tests.unit.brooklet import SMALL_QRELS, written_files
from weir.cli import main
from weir.datasets import card
from weir.datasets import card as same_text
from weir.datasets.card import CollectionCard
from weir.datasets.load import load

DOCUMENTS = [
    ("a", "Title", "three words here"),
    ("b", "Title", "three words here"),  # a copy of a
    ("c", "Other", "three words here"),  # the same text, another title
    ("d", "", "five words with a\u2003wide blank"),
    ("e", "", " \t"),  # empty
    ("f", "only a title", ""),
    ("g", "Titlethree", "words here"),  # the same characters as a, cut elsewhere
    ("h", "Title", "three words here"),  # another copy of a
]
QUERIES = [("q1", "two words"), ("q2", "four words in here"), ("q3", "not judged at all")]
TEST = [
    ("q1", "a", 2),
    ("q1", "b", 0),
    ("q1", "gone", 1),
    ("q2", "c", -1),
    ("q2", "d", 1),
    ("away", "a", 1),
    ("away", "gone", 0),
]


@pytest.fixture
def counted(tmp_path: Path) -> CollectionCard:
    def write(name: str, rows: list[dict]) -> None:
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")

    write("corpus.jsonl", [{"_id": i, "title": t, "text": x} for i, t, x in DOCUMENTS])
    write("queries.jsonl", [{"_id": i, "text": x} for i, x in QUERIES])
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text(
        "".join(f"{q}\t{d}\t{g}\n" for q, d, g in TEST), encoding="utf-8"
    )
    (tmp_path / "qrels/dev.tsv").write_text("q3\ta\t1\n", encoding="utf-8")
    return load(tmp_path).card


@pytest.mark.parametrize(
    "lacks", [("documents",), ("documents", "queries"), ("judgments",), ("queries", "judgments")]
)
def test_a_card_of_the_parts_that_are_there(
    counted: CollectionCard, tmp_path: Path, lacks: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    """Queries and judgments without documents were refused; what is counted is what the whole counts of them."""
    files = {"documents": "corpus.jsonl", "queries": "queries.jsonl", "judgments": "qrels"}
    for part in lacks:
        (tmp_path / files[part]).rename(tmp_path / f"away-{files[part]}")
    found = load(tmp_path).card
    assert found.lacks == lacks
    of = {
        "documents": ("documents", "words_per_document", "copies", "empty"),
        "queries": ("words_per_query",) if "judgments" not in lacks else (),
        "judgments": ("queries", "pairs", "positive", "judged_per_query", "relevance"),
    }
    for part, names in of.items():
        for name in names if part not in lacks else ():
            assert getattr(found, name) == getattr(counted, name), name
    assert found.absent_queries == (
        counted.absent_queries if not {"queries", "judgments"} & set(lacks) else 0
    )
    assert found.queries == (
        counted.queries if "judgments" not in lacks else {} if "queries" in lacks else {"not judged": 3}
    )
    assert main(["data", "stats", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.rstrip().splitlines()[-1].split(maxsplit=2) == ["not", "there", ", ".join(lacks)]
    assert ("empty documents" in said) == ("documents" not in lacks)
    assert ("mean per query" in said) == ("judgments" not in lacks)
    assert weir.describe(tmp_path)[0] == found


def test_judgments(counted: CollectionCard):
    assert counted.queries == {"dev": 1, "test": 3}
    assert counted.pairs == {-1: 1, 0: 2, 1: 3, 2: 1}
    assert (counted.positive, counted.zero, counted.negative) == (4, 2, 1)
    assert counted.judged_per_query == 7 / 3
    assert counted.relevant_per_query == 4 / 3
    assert counted.relevance == "3-level"
    assert counted.absent_documents == 2
    assert counted.absent_queries == 2


def test_queries_that_no_split_judges_are_counted_and_said(
    counted: CollectionCard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with (tmp_path / "queries.jsonl").open("a") as file:
        file.write('{"_id": "q4", "text": "of no split"}\n')
    assert load(tmp_path).card.queries == {**counted.queries, "not judged": 1}
    assert main(["run", "-q", "-d", str(tmp_path), "-s", "bm25", "-o", str(tmp_path / "out")]) == 0
    assert "1 of 4 queries has no judgment and is not asked" in capsys.readouterr().err


def test_texts(counted: CollectionCard):
    assert counted.documents == 8
    assert counted.words_per_query == 3.0  # q1 and q2: q3 is not judged, `away` is not there
    words = [4, 4, 4, 6, 0, 3, 3, 4]
    assert counted.words_per_document == sum(words) / 8
    assert counted.empty == 1
    assert counted.without_text == 2
    assert counted.without_title == 2


def test_copies(counted: CollectionCard):
    assert counted.copies_of_text == 3  # a, b, c, h
    assert counted.copies == 2  # a, b, h
    assert counted.having_copies == 3


def test_copies_are_told_by_the_texts_not_by_their_hashes(
    counted: CollectionCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(same_text, "hash_strings", lambda data, start, length: length.astype("u8") * 0)
    again = load(tmp_path).card
    assert again == counted


def test_batches_do_not_matter(counted: CollectionCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for size in (1, 3):
        monkeypatch.setattr(card, "BATCH_ROWS", size)
        monkeypatch.setattr(same_text, "BATCH_ROWS", size)
        assert load(tmp_path).card == counted


def test_no_judgment_is_no_division_by_zero(tmp_path: Path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": ""}\n', encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "?"}\n', encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n", encoding="utf-8")
    empty = load(tmp_path).card
    assert (empty.documents, empty.words_per_document, empty.judged_per_query, empty.relevance) == (
        1,
        0.0,
        0.0,
        "none",
    )


def test_the_catalogues_facts_are_on_the_card():
    shown = load("brook-facts").card
    assert (shown.title, shown.task, shown.licence) == ("Brook facts", "Fact Checking", "Apache 2.0")


def test_stats_takes_judgments_alone(tmp_path, capsys):
    (qrels,) = written_files(tmp_path, q__txt=SMALL_QRELS)
    assert main(["data", "stats", str(qrels)]) == 0
    assert "judg" in capsys.readouterr().out
