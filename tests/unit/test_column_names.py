"""One table of column names: files, frames and imports know a column by the same names, however they are spelled."""

from __future__ import annotations

import json

import pytest

import weir
from tests.unit.brooklet import write_collection, written_files
from tests.unit.imports import imported, written
from weir.errors import FormatError, RankingWarning
from weir.files.column_names import field_names, of_role
from weir.files.runs import read_qrels

QUERY = ["Query ID", "query-id", "QUERYID", "qid", "Topic_Id", "question id"]
DOC = ["Doc ID", "docno", "corpus-id", "chunk_id", "Passage Id", "documentId", "pid"]
GRADE = ["rating", "Relevance", "label", "Grade", "is_relevant", "judgement"]
HEADERS = [
    *((query, "doc_id", "relevance") for query in QUERY),
    *(("query_id", doc, "relevance") for doc in DOC),
    *(("query_id", "doc_id", grade) for grade in GRADE),
]
JUDGED = {"q1": {"a": 1, "b": 0}}


@pytest.mark.parametrize("header", HEADERS)
def test_files_frames_and_imports_know_a_column_by_the_same_names(tmp_path, header):
    rows = [("q1", "a", 1), ("q1", "b", 0)]
    table = "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])
    (tmp_path / "j.csv").write_text(table)
    assert weir.Qrels.load(tmp_path / "j.csv").to_dict() == JUDGED
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    assert weir.evaluate(columns, {"q1": {"a": 1.0}}, ["RR"]).means() == {"RR": 1.0}
    imported(tmp_path, "j.csv", table)
    assert written(tmp_path / "out")[1] == JUDGED


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("query_id,chunk_id,doc_id,grade", "chunk_id and doc_id could both be the document"),
        ("query_id,doc_id,docno,grade", "doc_id and docno could both be the document"),
        (
            "query_id,dok_id,grade",
            r"none of them is the document; expected one called 'doc_id' \(rename 'dok_id'",
        ),
    ],
)
def test_columns_that_could_both_be_one_are_asked_about(tmp_path, header, said):
    (tmp_path / "j.csv").write_text(f"{header}\n" + ",".join("x" for _ in header.split(",")) + "\n")
    with pytest.raises(FormatError, match=said):
        weir.Qrels.load(tmp_path / "j.csv")


def test_no_name_stands_in_two_tiers_of_a_role():
    tiers = field_names().roles.values()
    assert all(len(frozenset().union(*role)) == sum(map(len, role)) for role in tiers)


def test_texts_stand_under_contents_too(tmp_path):
    rows = [{"id": "d1", "contents": "a low dam", "url": "http://x"}, {"id": "d2", "contents": "river"}]
    (path,) = written_files(tmp_path, corpus__jsonl="".join(json.dumps(row) + "\n" for row in rows))
    write_collection(tmp_path / "c")
    path.replace(tmp_path / "c" / "corpus.jsonl")
    corpus = weir.load(tmp_path / "c").corpus
    assert corpus.text.tolist() == ["a low dam", "river"]
    assert corpus.field_names == ("text", "url")


def test_a_remark_in_parentheses_is_no_part_of_a_name_unless_another_column_has_it(tmp_path):
    (tmp_path / "q.csv").write_text("Query (text),Doc ID (sku),Relevance\nq,d,1\n")
    said = r"without its remark: 'Query \(text\)' as query_id, 'Doc ID \(sku\)' as doc_id"
    with pytest.warns(RankingWarning, match=said):
        found = read_qrels(tmp_path / "q.csv").to_dict()
    assert found == {"q": {"d": 1}}
    assert of_role(["doc_id", "Doc ID (sku)"], "doc") == ["doc_id"]
    assert of_role(["Doc ID (a)", "Doc ID (b)"], "doc") == []
