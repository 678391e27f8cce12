"""Texts of documents without identifiers find the documents that they quote, and the report counts how."""

from __future__ import annotations

import pytest

from tests.unit.imports import lines, written
from weir.errors import BadValue
from weir.files.runs import read_run
from weir.plugins.importing import Choices, import_files

CHUNKS = {
    "a": "Boats are red.\nThey float well.",
    "b": "Shoes last for many years.",
    "c": "Socks wear out first.",
    "d": "Hats: no, as socks wear out first?",
}
WRITTEN_OTHERWISE = {
    "as it is": (CHUNKS["a"], ["a"], "the same text: 1"),
    "with the mark of a hop": (f"<1-hop>\n\n{CHUNKS['a']}", ["a"], "taken off reference texts: 1"),
    "in other white space": ("Boats are red. They  float well.", ["a"], "case and white space alone"),
    "in other case": (CHUNKS["a"].upper(), ["a"], "case and white space alone"),
    "cut": (
        "<2-hop>\n\nare red. They flo",
        ["a"],
        "stand within one document, which is taken for them: 1 of 1",
    ),
    "joined": (
        "<1-hop>\n\nShoes last for many years.\nSocks wear out first.",
        ["b", "c"],
        "consist of several documents, which are taken for them: 1 of 1",
    ),
}


def _imported(tmp_path, row, chunks=CHUNKS, **choices):
    (tmp_path / "golden.jsonl").write_text(lines({"user_input": "red shoes", **row}))
    files = [tmp_path / "golden.jsonl"]
    if chunks:
        (tmp_path / "chunks.jsonl").write_text(
            lines(*({"chunk_id": k, "text": text} for k, text in chunks.items()))
        )
        files.append(tmp_path / "chunks.jsonl")
    return import_files(files, tmp_path / "out", choices=Choices(**choices))


@pytest.mark.parametrize("how", WRITTEN_OTHERWISE)
def test_a_reference_finds_its_chunks_however_it_is_written(tmp_path, how):
    text, found, said = WRITTEN_OTHERWISE[how]
    report = _imported(tmp_path, {"reference_contexts": [text]})
    (judged,) = written(tmp_path / "out")[1].values()
    assert (sorted(judged), report.whole["documents"]) == (found, len(CHUNKS))
    assert any(said in note for note in report.whole["notes"]), report.whole["notes"]


@pytest.mark.parametrize("how", WRITTEN_OTHERWISE)
def test_a_reference_finds_the_texts_returned_however_it_is_written(tmp_path, how):
    text, found, _ = WRITTEN_OTHERWISE[how]
    returned = [CHUNKS[name] for name in ("d", *found)]
    report = _imported(tmp_path, {"reference_contexts": [text], "retrieved_contexts": returned}, {})
    (judged,) = written(tmp_path / "out")[1].values()
    (ranked,) = read_run(tmp_path / "out" / "runs" / "golden.trec").to_dict().values()
    assert sorted(judged) == sorted(list(ranked)[1:])
    assert report.whole["documents"] == len(returned)


def test_a_text_returned_cut_is_its_chunk(tmp_path):
    row = {
        "reference_contexts": [CHUNKS["b"]],
        "retrieved_contexts": ["hats: no, as socks", "Shoes last for many"],
    }
    _imported(tmp_path, row)
    (ranked,) = read_run(tmp_path / "out" / "runs" / "golden.trec").to_dict().values()
    assert list(ranked) == ["d", "b"]


def test_texts_that_nothing_holds_are_counted_and_refused_where_they_are_most(tmp_path):
    other = ["Gloves.", "Belts.", CHUNKS["c"]]
    with pytest.raises(
        BadValue, match=r"2 of 3 texts of documents, such as 'Gloves\.', stand in none of the 4"
    ):
        _imported(tmp_path, {"reference_contexts": other})
    report = _imported(tmp_path, {"reference_contexts": other}, allow_disjoint=True)
    assert "texts that stand in no document, and became documents themselves: 2 of 3" in report.whole["notes"]
    report = _imported(tmp_path, {"reference_contexts": other, "retrieved_contexts": other[1:]}, {})
    (note,) = (note for note in report.whole["notes"] if "not found" in note)
    assert note == "reference texts that stand in no text returned, and count as not found: 1 of 3"


def test_a_reference_that_no_document_holds_is_judged_and_never_found(tmp_path):
    references = [CHUNKS["b"], CHUNKS["c"], "Gloves, which nobody stores."]
    report = _imported(tmp_path, {"reference_contexts": references})
    (row,) = written(tmp_path / "out")[1].values()
    assert (len(row), report.whole["documents"]) == (3, len(CHUNKS))
    assert report.whole["notes"][0] == (
        "reference texts, such as 'Gloves, which nobody stores.', that stand in no document: judged, and never found: "
        "1 of 3"
    )
    assert "1 of 3 judged documents are not among the documents" in report.whole["notes"]
    # A text that was returned stands in somebody's index.
    report = _imported(tmp_path, {"reference_contexts": references, "retrieved_contexts": references[2:]})
    assert report.whole["documents"] == len(CHUNKS) + 1


def test_a_reference_that_several_chunks_hold_is_refused(tmp_path):
    with pytest.raises(BadValue, match="'Socks wear out first' stands in 2 documents, such as 'c' and 'd'"):
        _imported(tmp_path, {"reference_contexts": ["Socks wear out first", CHUNKS["b"]]})


def test_a_search_for_texts_that_would_take_hours_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("weir.plugins.importing.merge.LARGEST_SEARCH", 10)
    with pytest.raises(BadValue, match="looking for 1 texts in 112 characters of documents takes hours"):
        _imported(tmp_path, {"reference_contexts": ["Gloves"]})


def test_a_label_is_in_no_document_by_chance(tmp_path):
    row = {"reference_contexts": ["Shoes"], "retrieved_contexts": [CHUNKS["b"], CHUNKS["c"]]}
    report = _imported(tmp_path, row, {})
    assert (
        "reference texts that stand in no text returned, and count as not found: 1 of 1"
        in report.whole["notes"]
    )
