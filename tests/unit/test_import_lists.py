"""weir data import: judgments by words, and lists of documents by query."""

from __future__ import annotations

import json

import pytest

from tests.unit.imports import imported, lines, written
from weir.errors import BadValue
from weir.plugins.importing import import_files
from weir.plugins.importing import merge as answer_words


def test_answers_are_matched_as_whole_tokens_and_words_as_characters(tmp_path):
    """DPR's topics: NFD and lower case, the text alone; keywords: parts of words count, and the title."""
    topics = "who sings\t['Beyonce\u0301', 'AC/DC']\nwhat flows\t['the art']\nwhat is it\t['...']\n"
    rows = [
        {"_id": "d1", "title": "AC/DC", "text": "Songs of BEYONC\u00c9, live."},
        {"_id": "d2", "title": "", "text": "An ac / dc adapter; the  Art."},
        {"_id": "d3", "title": "the art", "text": "the artist"},
    ]
    (tmp_path / "docs.corpus.jsonl").write_text(lines(*rows))
    (tmp_path / "t.dpr").write_text(topics)
    report = import_files([tmp_path / "t.dpr", tmp_path / "docs.corpus.jsonl"], tmp_path / "out")
    judged = {query.rpartition("-")[0]: row for query, row in written(tmp_path / "out")[1].items()}
    assert judged == {"who-sings": {"d1": 1, "d2": 1}, "what-flows": {"d2": 1}}
    assert report.whole["notes"][0] == (
        "words: 2 documents match 2 of 3 judgments by words, as whole tokens of the text, after Unicode's NFD "
        "and in lower case, as DPR does"
    )
    golden = lines({"query": "fine art", "relevant_keywords": ["The  art"]})
    report = imported(tmp_path, "g.jsonl", golden, corpus=tmp_path / "out")
    assert list(written(tmp_path / "out")[1].values()) == [{"d2": 1, "d3": 1}]
    assert "as characters, whatever their case" in report.whole["notes"][0]


def test_a_search_for_words_that_would_take_hours_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_words, "LARGEST_SEARCH", 30)
    (tmp_path / "corpus.jsonl").write_text(lines({"_id": "d1", "text": "a long text about a weir"}))
    golden = lines({"query": "a b", "relevant_keywords": ["weir", "dam"]})
    with pytest.raises(BadValue, match="looking for 2 words in 24 characters of documents takes hours"):
        imported(tmp_path, "g.jsonl", golden, corpus=tmp_path)


def test_lists_of_documents_for_a_query_are_joined_over_files(tmp_path):
    golden = lines({"id": "1", "query": "a b", "relevant_ids": ["d1"], "excluded_ids": ["d2", "d3"]})
    (tmp_path / "g.jsonl").write_text(golden)
    (tmp_path / "exclude.txt").write_text("1 d3\n1 d4\n")
    import_files([tmp_path / "g.jsonl", tmp_path / "exclude.txt"], tmp_path / "out")
    [query] = map(json.loads, (tmp_path / "out" / "queries.jsonl").read_text().splitlines())
    assert query["metadata"]["excluded"] == ["d2", "d3", "d4"]
