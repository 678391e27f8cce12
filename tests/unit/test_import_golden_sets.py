"""Golden sets as people write them: lists in cells, in objects, as pairs and as texts are judgments and rankings."""

from __future__ import annotations

import json

import pytest

from tests.unit.imports import Q, R, imported, lines, report_of, written
from weir.errors import BadValue, WeirError
from weir.files.column_names import field_names, fold
from weir.plugins.importing import Choices, import_files

HEAD = "query,relevant_ids,{}\n"
TABLE = HEAD + "red shoes,a; b,b; c\nwool socks,,a\n"


@pytest.mark.parametrize("columns", ["", "retrieved={0}", "relevant=relevant_ids,retrieved={0}"])
@pytest.mark.parametrize("name", ["retrieved_ids", "retrieved_chunk_ids", "retrieved_chunks", "mine"])
def test_cells_of_several_documents_are_a_ranking_whoever_names_the_column(tmp_path, name, columns):
    if name == "mine" and not columns:
        columns = "retrieved=mine"
    options = {"columns": columns.format(name), "choices": Choices(between=";")}
    imported(tmp_path, "t.csv", TABLE.format(name), **options)
    _, judged, runs = written(tmp_path / "out")
    assert judged == {Q: {"a": 1, "b": 1}}
    assert runs == {"t": {Q: {"b": 2.0, "c": 1.0}, R: {"a": 1.0}}}
    assert report_of(tmp_path)["unanswerable"] == 1


@pytest.mark.parametrize("columns", ["", "retrieved=retrieved_ids"])
def test_cells_of_several_documents_without_a_mark_are_refused(tmp_path, columns):
    (tmp_path / "t.csv").write_text(TABLE.format("retrieved_ids"))
    with pytest.raises(WeirError, match="name the mark between them"):
        import_files(tmp_path / "t.csv", tmp_path / "out", columns=columns)


def test_rankings_alone_may_be_lists_in_cells(tmp_path):
    text = "query,mine\nred shoes,b; c\nwool socks,a\n"
    imported(tmp_path, "t.csv", text, columns="retrieved=mine", choices=Choices(between=";"))
    assert written(tmp_path / "out")[2] == {"t": {Q: {"b": 2.0, "c": 1.0}, R: {"a": 1.0}}}


def test_what_may_be_relevant_may_be_retrieved():
    roles = {role: field_names().every(role) for role in ("relevant", "retrieved")}
    things = (
        "ids",
        "doc_ids",
        "document_ids",
        "chunk_ids",
        "passage_ids",
        "chunks",
        "passages",
        "docs",
        "documents",
    )
    for role, words in {"relevant": ("relevant", "gold"), "retrieved": ("retrieved",)}.items():
        assert not [
            f"{word}_{one}" for word in words for one in things if fold(word + one) not in roles[role]
        ]


@pytest.mark.parametrize("group", ["gold", "expected", "ground_truth"])
@pytest.mark.parametrize("inner", ["chunks", "chunk_ids", "doc_ids", "sources"])
def test_documents_within_what_is_expected_are_relevant(tmp_path, group, inner):
    rows = [
        {"question": "red shoes", group: {inner: ["a", "b"]}},
        {"question": "wool socks", group: {inner: []}},
    ]
    imported(tmp_path, "t.json", json.dumps({"questions": rows}))
    assert written(tmp_path / "out")[1] == {Q: {"a": 1, "b": 1}}
    report = report_of(tmp_path)
    assert (report["unanswerable"], report["files"][0]["left_out"]) == (1, {})


@pytest.mark.parametrize(
    "facts", [[["a", 0], ["b", 3], ["a", 2]], {"title": ["a", "b", "a"], "sent_id": [0, 3, 2]}]
)
def test_supporting_facts_name_documents_by_title(tmp_path, facts):
    report = imported(tmp_path, "t.jsonl", lines({"question": "red shoes", "supporting_facts": facts}))
    assert written(tmp_path / "out")[1] == {Q: {"a": 1, "b": 1}}
    assert report.files[0]["left_out"] == {"numbers of sentences in supporting_facts": 1}


def test_rows_that_are_refused_are_no_template(tmp_path):
    rows = [
        {"query": "red shoes", "relevant_ids": [["a", 1]]},
        {"query": "wool socks", "relevant_ids": []},
    ]
    (tmp_path / "t.jsonl").write_text(lines(*rows))
    with pytest.raises(BadValue, match="a list within the list of relevant documents"):
        import_files(tmp_path / "t.jsonl", tmp_path / "out")


@pytest.mark.parametrize("as_table", [True, False])
def test_texts_returned_are_the_references_that_they_equal(tmp_path, as_table):
    one, other = "Boats are red and float.", "Shoes last for many years."
    fields = {"reference_contexts": [f"<1-hop>\n\n{one}"], "retrieved_contexts": [other, one]}
    if as_table:
        cells = ",".join(f'"{json.dumps(value)}"'.replace('"', '""')[1:-1] for value in fields.values())
        content = f"question,{','.join(fields)}\nred shoes,{cells}\n"
    else:
        content = lines({"question": "red shoes", **fields})
    imported(tmp_path, "t.csv" if as_table else "t.jsonl", content)
    _, judged, runs = written(tmp_path / "out")
    assert list(runs["t"][Q])[1:] == list(judged[Q])


@pytest.mark.parametrize("spans", [[], [{"input": "red shoes", "output": ["c"]}]])
def test_a_test_run_of_deepeval_has_contexts_unless_it_has_a_trace(tmp_path, spans):
    case = {
        "name": "n",
        "input": "red shoes",
        "expectedOutput": "e",
        "context": ["a"],
        "retrievalContext": ["b", "a"],
    }
    content = json.dumps({"testCases": [case], "retrieverSpans": spans, "testPassed": 1})
    report = imported(tmp_path, "t.json", content)
    counts = report.files[0]["counts"]
    assert (counts.get("judgments", 0), counts["rankings"]) == ((0, 1) if spans else (1, 1))
    assert report.files[0]["kind"] == ("deepeval-trace" if spans else "deepeval-goldens")
    if not spans:
        _, judged, runs = written(tmp_path / "out")
        assert list(runs["t"][Q])[1:] == list(judged[Q])
