"""weir data import: grades with fractions, judges who disagree, and where judgments come from."""

from __future__ import annotations

import pytest

import weir
from tests.unit.imports import Q, imported, report_of, written
from weir.plugins.importing import Choices


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("", {"a": 0.5, "b": 0.4, "c": 2.55}),
        ("round", {"a": 1, "b": 0, "c": 3}),
        ("scale=10", {"a": 5, "b": 4, "c": 26}),
        ("threshold=0.5", {"a": 1, "b": 0, "c": 1}),
    ],
)
def test_fractions_are_kept_or_become_whole_numbers_as_the_user_says(tmp_path, choice, expected):
    table = "query,doc_id,grade\nred shoes,a,0.5\nred shoes,b,0.4\nred shoes,c,2.55\n"
    imported(tmp_path, "j.csv", table, choices=Choices(grades=choice))
    assert written(tmp_path / "out")[1] == {Q: expected}
    said = f"{choice}, which changed 3 of 3" if choice else "3 of 3 have fractions and are kept"
    assert any(note.startswith(f"grades: {said}") for note in report_of(tmp_path)["notes"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.json", '{"q1": {"a": 0.5, "b": 1}}'),
        ("qrels.csv", "query_id,doc_id,score\nq1,a,0.5\nq1,b,1\n"),
        ("judged.txt", "q1 0 a 0.5\nq1 0 b 1\n"),
    ],
)
def test_judgments_by_name_or_layout_may_have_fractions(tmp_path, name, content):
    imported(tmp_path, name, content)
    assert written(tmp_path / "out")[1] == {"q1": {"a": 0.5, "b": 1}}


def test_judgments_keep_where_they_come_from(tmp_path):
    table = "query,doc_id,grade,origin\nred shoes,a,1,human\nred shoes,b,0.5,llm:judge\nred shoes,c,0,\n"
    imported(tmp_path, "j.csv", table)
    kept = weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")
    assert kept.to_frame("arrow")["origin"].to_pylist() == ["human", "llm:judge", ""]
    lines = "".join(
        f'{{"query": "red shoes", "relevant": ["{doc}"], "origin": "{of}"}}\n'
        for doc, of in (("a", "x"), ("b", "y"))
    )
    imported(tmp_path, "golden.jsonl", lines, columns={"origin": "origin"})
    assert weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv").origin.counts() == {"x": 1, "y": 1}


@pytest.mark.parametrize(("judges", "grade"), [("max", 3), ("min", 0), ("mean", 1), ("majority", 0)])
def test_judges_who_disagree(tmp_path, judges, grade):
    table = "query,doc_id,grade\nred shoes,a,0\nred shoes,a,3\nred shoes,a,0\nred shoes,b,1\n"
    report = imported(tmp_path, "j.csv", table)
    assert written(tmp_path / "out")[1] == {Q: {"b": 1}}
    assert report.files[0]["refused_rows"] == [
        {
            "where": "line 2",
            "reason": f"grades 0, 3, 0 for query '{Q[:40]}', document 'a'; --judges max, min, mean or majority",
        }
    ]
    imported(tmp_path, "j.csv", table, choices=Choices(judges=judges))
    assert written(tmp_path / "out")[1] == {Q: {"a": grade, "b": 1}}
