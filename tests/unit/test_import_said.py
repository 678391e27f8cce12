"""An import says of what it read only what is true, and asks where a cell or column leaves open what it names."""

import json

import pytest

import weir
from weir.errors import WeirError


def imported(tmp_path, name, text, **options):
    (tmp_path / name).write_text(text, encoding="utf-8")
    report = weir.import_files([str(tmp_path / name)], str(tmp_path / "out"), **options)
    return "\n".join(report.lines())


@pytest.mark.parametrize("name", ["g.json", "g.csv"])
def test_a_map_of_grades_is_not_said_to_be_left_out(tmp_path, name):
    grades = {"egg.pdf": 1, "pan.md": 2}
    text = json.dumps([{"query_id": "q1", "query": "how to boil", "relevance_grades": grades}])
    if name == "g.csv":
        cell = json.dumps(grades).replace('"', '""')
        text = f'query_id,query,relevance_grades\nq1,how to boil,"{cell}"\n'
    assert "not imported" not in imported(tmp_path, name, text)
    assert dict(weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")["q1"]) == grades


@pytest.mark.parametrize("between", [" and ", " & ", "+", ",", "; "])
def test_names_of_files_in_one_cell_are_asked_about(tmp_path, between):
    rows = "".join(f'q{n},how {n},"a.pdf{between}b.md"\n' for n in range(3))
    with pytest.raises(WeirError, match="looks like several documents"):
        imported(tmp_path, "g.csv", f"query_id,query,relevant_doc\n{rows}")


@pytest.mark.parametrize(
    "one", ["Terms and conditions.pdf", "v1.2/intro.md", "C++.md", "AT&T.html", "1.5.txt"]
)
def test_a_name_with_such_marks_is_one_document(tmp_path, one):
    imported(tmp_path, "g.csv", f"query_id,query,relevant_doc\nq1,how,{one}\nq2,why,x.md\n")
    assert dict(weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")["q1"]) == {one: 1}


def test_documents_without_an_identifier_name_the_columns_that_may_hold_it(tmp_path):
    rows = [{"page_content": f"text {n}", "uuid": f"u{n}", "source": "a.pdf"} for n in range(3)]
    said = imported(tmp_path, "corpus.json", json.dumps(rows))
    assert "'uuid' may identify the documents" in said
    assert "'source' may" not in said
