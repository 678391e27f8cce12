"""Quotation marks, remarks, thousands, blanks and nothings: read as written by whoever reads, or refused, or told."""

from __future__ import annotations

import bz2
import csv
import io
import json
import lzma
import warnings
from contextlib import nullcontext, suppress

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, orc
from tests.unit.imports import imported, lines, written

import weir
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import FormatError, LossWarning, WeirError
from weir.files.label_files import read_raters
from weir.files.layouts import CollectionPart, find_layout, left_out
from weir.files.records import read_queries
from weir.files.runs import read_run
from weir.plugins.importing import Choices, import_files

EACH = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
ROWS = [{"query_id": "q1", "query": "a b", "doc_id": "d1", "grade": 1}]
TEXT = st.text('ab "\t\n', min_size=1, max_size=6).map(str.strip).filter(bool)


@EACH
@given(texts=st.lists(TEXT, min_size=1, max_size=5))
def test_texts_that_a_writer_quotes_between_tabs_are_those_that_it_was_given(texts, tmp_path):
    table = io.StringIO()
    out = csv.writer(table, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.writerow(["query_id", "query", "doc_id", "grade"])
    out.writerows([f"q{n}", text, "d", 1] for n, text in enumerate(texts))
    head, _, rows = table.getvalue().partition("\n")
    imported(tmp_path, "g.tsv", f"{head.replace(chr(34), '')}\n{rows}")
    assert written(tmp_path / "out")[0] == {f"q{n}": text for n, text in enumerate(texts)}


@EACH
@given(texts=st.lists(st.sampled_from(['5" disk', '"a b', 'c"', "d"]), min_size=1, max_size=5))
def test_a_stray_quotation_mark_between_tabs_is_a_sign_or_refused(texts, tmp_path):
    rows = "".join(f"q{n}\t{text}\td{n}\t1\n" for n, text in enumerate(texts))
    path = tmp_path / "g.tsv"
    imported(tmp_path, path.name, f"query_id\tquery\tdoc_id\tgrade\n{rows}")
    assert written(tmp_path / "out")[0] == {f"q{n}": text for n, text in enumerate(texts)}
    judged = {f"q{n}": {f"d{n}": 1} for n in range(len(texts))}
    closed = '"a b' not in texts
    with warnings.catch_warnings(), nullcontext() if closed else suppress(FormatError):
        warnings.simplefilter("ignore", LossWarning)
        assert Qrels.load(path).to_dict() == judged


KINDS = {
    "bz2": (bz2.compress, "bzip2 data; expected the file unpacked"),
    "xz": (lzma.compress, "xz data; expected the file unpacked"),
    "xls": (lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook; expected each sheet saved as CSV"),
    "avro": (lambda _: b"Obj\x01\x04", "an Avro file; expected a table written out of it"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_other_kinds_are_named_with_the_remedy_by_eval_and_import(kind, tmp_path):
    made, said = KINDS[kind]
    path = tmp_path / f"g.{kind}"
    path.write_bytes(made(b"query_id,doc_id,grade\nq,a,1\n"))
    for read in (Qrels.load, read_run, lambda path: import_files(path, tmp_path / "out")):
        with pytest.raises(FormatError, match=said):
            read(path)


def test_tables_of_arrow_are_read_by_import_as_by_eval_and_those_of_orc_are_named(tmp_path):
    table = pa.Table.from_pylist(ROWS)
    feather.write_feather(table, str(tmp_path / "g.feather"))
    orc.write_table(table, str(tmp_path / "g.orc"))
    import_files(tmp_path / "g.feather", tmp_path / "out")
    with pytest.warns(LossWarning, match="1 column, query"):
        assert (
            written(tmp_path / "out")[1] == Qrels.load(tmp_path / "g.feather").to_dict() == {"q1": {"d1": 1}}
        )
    with pytest.raises(FormatError, match="an ORC table; expected a table written out of it"):
        import_files(tmp_path / "g.orc", tmp_path / "out2")


REMARKED = {
    "run.trec": ("# weir 1\nq1 Q0 d#1 1 2.5 t\n#q2 Q0 d1 1 2 t\n", {"q1": {"d#1": 2.5}}),
    "j.qrels": ("# a b c\nq1 0 d1 1\n#q2 0 d2 1\n", {"q1": {"d1": 1}}),
    "j.tsv": ("#1\td1\t1\n", {}),
}


@pytest.mark.parametrize("name", REMARKED)
def test_a_line_behind_a_remark_sign_that_would_be_a_row_is_told(name, tmp_path):
    text, rows = REMARKED[name]
    (tmp_path / name).write_text(text)
    told = f"{tmp_path / name}: not read: 1 line that begins with #"
    with pytest.warns(LossWarning, match=told):
        assert (read_run if name == "run.trec" else Qrels.load)(tmp_path / name).to_dict() == rows
    if rows:
        with pytest.warns(LossWarning, match=told):
            imported(tmp_path, name, text)
        assert rows in (written(tmp_path / "out")[1], written(tmp_path / "out")[2].get("run"))


@pytest.mark.parametrize(("cell", "mark"), [("1,234", "comma"), ("1.234", "point")])
def test_a_mark_that_may_group_thousands_is_refused_by_eval_and_import(cell, mark, tmp_path):
    text = "query_id;doc_id;score\nq1;d1;{}\nq1;d2;999\n{}"
    (tmp_path / "r.csv").write_text(text.format(cell, ""))
    for read in (read_run, lambda path: import_files(path, tmp_path / "out")):
        with pytest.raises(
            FormatError, match=f"line 2: found '{cell}' among whole .* the {mark} may group thousands"
        ):
            read(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text(text.format(cell, f"q1;d3;0{cell[1]}5\n"))  # a fraction, by the same mark
    assert read_run(tmp_path / "r.csv").to_dict()["q1"]["d1"] == 1.234


NUMBERS = st.one_of(
    st.decimals(0, 20, places=1),
    st.decimals(0, 20, places=2),
    st.integers(0, 20),
    st.sampled_from(["1e-3", "2,5e1"]),
)


@EACH
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=5), separator=st.sampled_from(",;\t"))
def test_decimal_commas_are_read_alike_between_all_separators_by_eval_and_import(
    numbers, separator, tmp_path
):
    table = io.StringIO()
    out = csv.writer(table, delimiter=separator, lineterminator="\n")
    out.writerow(["query_id", "doc_id", "grade"])
    out.writerows(["q", f"d{n}", str(number).replace(".", ",")] for n, number in enumerate(numbers))
    path = tmp_path / ("g.tsv" if separator == "\t" else "g.csv")
    path.write_text(table.getvalue())
    rows = list(csv.reader(io.StringIO(table.getvalue()), delimiter=separator))[1:]
    given = {doc: float(number.replace(",", ".")) for _, doc, number in rows}
    assert Qrels.load(path).to_dict() == {"q": given}
    imported(tmp_path, path.name, table.getvalue())
    assert written(tmp_path / "out")[1] == {"q": given}


@pytest.mark.parametrize("name", ["relevant", "expected_ids"])
def test_identifiers_between_a_comma_are_never_a_decimal(name, tmp_path):
    path = tmp_path / "g.csv"
    path.write_text(f"question;{name}\nwhat is it;1,2\nand that;3\n")
    with pytest.raises(WeirError, match="1,2' looks like several documents"):
        import_files(path, tmp_path / "out")
    path.write_text('question,expected_ids,grade\nwhat is it,"d1,d2","1,0"\n')
    with pytest.raises(WeirError, match=r"'1\.0' beside several documents may be several grades"):
        import_files(path, tmp_path / "out", choices=Choices(between=","))


@pytest.mark.parametrize("word", ["Total", "Grand total", "Mean", "SUM:"])
def test_a_row_of_totals_is_no_query(word, tmp_path):
    rows = "".join(f"what is {n},d{n}\n" for n in range(20))
    (tmp_path / "g.csv").write_text(f"question,relevant_docs\n{rows}{word},20\n")
    report = import_files(tmp_path / "g.csv", tmp_path / "out")
    assert f"line 22, '{word}' with 20, is a row of totals" in report.lines()[0]
    assert len(written(tmp_path / "out")[1]) == 20
    (tmp_path / "queries.csv").write_text(
        "id,query\n" + "".join(f"q{n},what\n" for n in range(20)) + f"{word},20\n"
    )
    report = import_files(tmp_path / "queries.csv", tmp_path / "queries")
    assert f"'{word}' with 20, is a row of totals" in report.lines()[0]
    (tmp_path / "g.csv").write_text(f"question,relevant_docs\n{word},d1\n{rows}")  # a query like others
    import_files(tmp_path / "g.csv", tmp_path / "out2")
    assert len(written(tmp_path / "out2")[1]) == 21


_JUDGED = [("q1", "a", 1), ("q1", "b", 2), ("q2", "c", 1)]
_TOTALS = {
    "word": [("Total", None, 4)],
    "other language": [("Gesamtsumme", None, 4)],
    "several": [("Total", None, 4), ("Mean", None, 1.33)],
    "sum alone": [(None, None, 4)],
    "mean alone": [(None, None, 1.333)],
    "count": [(None, 3, 4)],
}


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize("case", _TOTALS)
def test_a_row_of_totals_is_no_loss_however_small_the_file(form, case, tmp_path):
    head, path = ("query_id", "doc_id", "relevance"), tmp_path / f"g.{form}"
    rows = [tuple(cell if cell is None else str(cell) for cell in row) for row in _JUDGED + _TOTALS[case]]
    objects = [dict(zip(head, row, strict=True)) for row in rows]
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(objects), path)
    elif form.startswith("json"):
        path.write_text(json.dumps(objects) if form == "json" else "\n".join(map(json.dumps, objects)))
    else:
        lines = [head, *([cell or "" for cell in row] for row in rows)]
        path.write_text("".join(("," if form == "csv" else "\t").join(line) + "\n" for line in lines))
    report = import_files(path, tmp_path / "out")
    assert written(tmp_path / "out")[1] == {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
    assert report.lines()[0].count("is a row of totals, which is left out") == len(_TOTALS[case])
    assert report.files[0]["left_out"] == {}
    assert report.files[0]["rows_refused"] == 0


@pytest.mark.parametrize("row", [",,9", ",d,4", "q3,,4", ",,4,x"])
def test_a_last_row_that_is_no_sum_is_refused_as_any_other(row, tmp_path):
    lines = "".join(f"{query},{doc},{grade}\n" for query, doc, grade in _JUDGED)
    (tmp_path / "g.csv").write_text(f"query_id,doc_id,relevance\n{lines}{row}\n")
    with pytest.raises(WeirError, match=r"1 of 4 rows cannot be imported, the first: line 5"):
        import_files(tmp_path / "g.csv", tmp_path / "out")


def test_rows_of_two_splits_are_no_ranking_for_import_as_for_eval(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("split,query_id,doc_id,score\ntrain,q,a,1.5\ntest,q,b,0.5\n")
    for read in (read_run, lambda path: import_files(path, tmp_path / "out")):
        with pytest.raises(WeirError, match=r"line 3: (found )?a row of split 'test'"):
            read(path)


@pytest.mark.parametrize("error", ["#N/A", "#REF!", "#VALUE!", "########"])
@pytest.mark.parametrize("column", ["doc_id", "relevant_docs"])
def test_an_error_of_a_spreadsheet_is_no_identifier(error, column, tmp_path):
    rows = "".join(f"what is {n},d{n}\n" for n in range(20))
    (tmp_path / "g.csv").write_text(f"question,{column}\n{rows}and that,{error}\n")
    report = import_files(
        tmp_path / "g.csv", tmp_path / "out", "relevant=doc_id" if column == "doc_id" else None
    )
    assert f"line 22: '{error}' of a spreadsheet as '{column}'" in report.lines()[0]
    assert len(written(tmp_path / "out")[1]) == 20


def test_long_numbers_that_a_spreadsheet_rounded_are_told(tmp_path):
    report = imported(tmp_path, "g.csv", "query_id,doc_id,grade\nq,1.23457E+17,1\nq,1e5,1\n")
    assert (
        "such as 1.23457E+17, as a spreadsheet rounds long numbers, kept as they are: 1" in report.lines()[0]
    )
    assert written(tmp_path / "out")[1] == {"q": {"1.23457E+17": 1, "1e5": 1}}


@pytest.mark.parametrize("names", ["grade,grade.1", "grade_1,grade_2", "judgment 1,judgment 2"])
def test_columns_of_several_grades_are_asked_about(names, tmp_path):
    (tmp_path / "g.csv").write_text(f"query_id,doc_id,{names}\nq,a,1,2\nq,b,0,0\n")
    first, second = names.split(",")
    with pytest.raises(WeirError, match=f"{first} and {second} could each be the grade"):
        import_files(tmp_path / "g.csv", tmp_path / "out")
    import_files(tmp_path / "g.csv", tmp_path / "out", {"grade": second})
    assert written(tmp_path / "out")[1] == {"q": {"a": 2, "b": 0}}


def test_nothing_in_a_column_of_grades_is_unjudged_in_whatever_word(tmp_path):
    rows = "".join(
        f"q,d{n},{word}\n" for n, word in enumerate(["1", "", "NaN", "n/a", "NA", "null", "None", "0"])
    )
    report = imported(tmp_path, "g.csv", f"query_id,doc_id,grade\n{rows}")
    assert written(tmp_path / "out")[1] == {"q": {"d0": 1, "d7": 0}}
    assert "rows without a grade, which are unjudged: 6" in report.lines()[0]


def test_whole_numbers_as_numpy_prints_floats_lose_their_point(tmp_path):
    imported(tmp_path, "g.csv", "question,expected_ids\nwhat is it,[3. 14.]\nand that,['3.' '1.10']\n")
    assert [*written(tmp_path / "out")[1].values()] == [{"3": 1, "14": 1}, {"3.": 1, "1.10": 1}]


def test_texts_of_deepeval_without_its_mark_are_told_and_another_mark_is_taken(tmp_path):
    rows = "input,expected_output,context\nwhat is it,a,one text;two texts\n"
    report = imported(tmp_path, "g.csv", rows)
    assert (
        "cells of one text, without '|' between several (`choices={'between': ';'}` names another mark): 1"
        in str(report.files)
    )
    (tmp_path / "g.csv").write_text(rows)
    report = import_files(tmp_path / "g.csv", tmp_path / "two", choices=Choices(between=";"))
    assert report.whole["documents"] == 2


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("g.csv", 'query,doc_id,grade\n" red  shoes ",d1,1\nblue,d1,1\n', 1),
        ("corpus.jsonl", lines({"_id": "a", "text": "a\n", "title": " t"}, {"_id": "b", "text": "b"}), 1),
        ("g.jsonl", lines({"query": "red shoes", "relevant": ["d1 "]}), 0),
    ],
)
def test_blanks_that_texts_lose_are_told_and_identifiers_keep_theirs(name, text, count, tmp_path):
    report = imported(tmp_path, name, text)
    assert ("texts lost blanks around them: 1" in report.lines()[0]) == bool(count)
    assert name != "g.jsonl" or [*written(tmp_path / "out")[1].values()] == [{"d1 ": 1}]


def test_nothing_in_yaml_is_what_it_is_in_json(tmp_path):
    rows = [
        {"query": None, "relevant": ["d"]},
        {"query": "a b", "relevant": None},
        {"query": "c", "relevant": {"null": 1}},
    ]
    texts = [
        "- query: ~\n  relevant: [d]\n- query: a b\n  relevant:\n- query: c\n  relevant: {null: 1}\n",
        json.dumps(rows),
    ]
    found = []
    for name, text in zip(("g.yaml", "g.json"), texts, strict=True):
        report = imported(tmp_path, name, text)
        assert "1 row refused, the first: entry 1: neither an identifier nor a text" in report.lines()[0]
        found.append(written(tmp_path / "out"))
    assert found[0] == found[1]


@pytest.mark.parametrize("cell", ['{"d1": 1, "d1": 0}', "{'d1': 1, 'd1': 0}", "[{'id': 'a', 'id': 'b'}]"])
def test_a_name_twice_in_a_cell_is_refused(cell, tmp_path):
    table = io.StringIO()
    csv.writer(table).writerows([["query", "relevant"], ["a b", cell]])
    with pytest.raises(WeirError, match=r"line 2: '\w+' twice in"):
        imported(tmp_path, "g.csv", table.getvalue())


DOCUMENTS = {
    "a mark": ("query,relevant\na b,d1 | d2\nc d,d3\n", {"choices": Choices(between="|")}),
    "numbers": ("query,relevant doc 2,relevant doc 1\na b,d2,d1\nc d,d3,\n", {}),
    "a name that pandas numbers": ("query,relevant,relevant.1\na b,d1,d2\nc d,d3,\n", {}),
    "a name and its number": ("query,relevant,relevant 1\na b,d1,d2\nc d,d3,\n", {}),
    "numbers of a name of grades too": ("query,relevant_1,relevant_2\na b,d1,d2\nc d,d3,\n", {}),
    "numbers of an open name": ("query,doc_1,doc_2\na b,d1,d2\nc d,d3,\n", {"columns": "relevant=doc"}),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_several_documents_of_a_row_are_read_where_it_is_said_how_they_stand(case, tmp_path):
    text, options = DOCUMENTS[case]
    imported(tmp_path, "g.csv", text, **options)
    assert [sorted(row) for row in written(tmp_path / "out")[1].values()] == [["d1", "d2"], ["d3"]]


def test_numbered_columns_of_returned_documents_are_in_the_order_of_their_numbers(tmp_path):
    imported(tmp_path, "g.csv", "query,doc10,doc9\na b,x,y\n", columns="retrieved=doc")
    assert [*written(tmp_path / "out")[2]["g"].values()] == [{"y": 2.0, "x": 1.0}]
    with pytest.raises(WeirError, match=r"numbered columns of documents \(doc ...\) and of score"):
        imported(tmp_path, "g.csv", "query,doc1,doc2,score1,score2\na b,x,y,1,2\n")
    with pytest.raises(WeirError, match=r"numbered columns of documents \(doc ...\) and of relevant"):
        imported(tmp_path, "g.csv", "query,doc,doc.1,relevant,relevant.1\na b,x,y,1,0\n")
    with pytest.raises(WeirError, match=r"name the mark between them, as in `choices={'between': '\|'}`"):
        imported(tmp_path, "g.csv", "query,relevant\na b,d1 | d2\n")


def test_identifiers_that_are_numbers_with_a_point_in_a_binary_table_are_told(tmp_path):
    table = pa.table({"query_id": [1.0, 2.0], "doc_id": ["a", "b"], "grade": [1, 0]})
    feather.write_feather(table, str(tmp_path / "g.feather"))
    report = import_files(tmp_path / "g.feather", tmp_path / "out")
    assert "identifiers that are numbers with a point, such as 7.0, are written as 7: 2" in report.lines()[0]
    assert written(tmp_path / "out")[1] == {"1": {"a": 1}, "2": {"b": 0}}


COMPOSED, ZEROS, POINT = "the composition of letters", "zeros before them", "a '.0' at the end"


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        ("caf\u00e9-1", "cafe\u0301-1", COMPOSED),
        ("cafe\u0301-1", "caf\u00e9-1", COMPOSED),
        ("caf\u00e9-1", "caf\u00e9-1", ""),
        ("007", "7", ZEROS),
        ("7", "007", ZEROS),
        ("7", "7.0", POINT),
        ("7.0", "7", POINT),
        ("MED-7", "med-7", "capital and small letters"),
        ("med-7", "MED-7", "capital and small letters"),
        ("Med-7.PDF", "med-7.pdf", "capital and small letters"),
        ("Med-7", "Med-8", ""),
        ("70", "7", ""),
    ],
)
@pytest.mark.parametrize("what", ["query", "document"])
def test_identifiers_that_meet_only_after_a_change_of_spelling_are_told_by_whatever_joins(
    ours, theirs, difference, what, tmp_path
):
    judged, found = (
        [(name, "d"), ("q", "d")] if what == "query" else [("q", name), ("q", "d")] for name in (ours, theirs)
    )
    (tmp_path / "j.qrels").write_text("".join(f"{query} 0 {doc} 1\n" for query, doc in judged))
    rows = {query: {doc: 9.5 - n} for n, (query, doc) in enumerate(found)}
    rows = rows if what == "query" else {"q": {doc: 9.5 - n for n, (_, doc) in enumerate(found)}}
    (tmp_path / "r.json").write_text(json.dumps(rows))
    (tmp_path / "r.trec").write_text(
        "".join(f"{query} Q0 {doc} {n} {9 - n} t\n" for n, (query, doc) in enumerate(found))
    )
    files = {str(path): (tmp_path / "j.qrels", path) for path in (tmp_path / "r.trec", tmp_path / "r.json")}
    grades = {query: dict.fromkeys([doc for one, doc in judged if one == query], 1) for query, _ in judged}
    columns = [(query, doc, score) for query, row in rows.items() for doc, score in row.items()]
    frame = pd.DataFrame(columns, columns=["query_id", "doc_id", "score"])
    held = [(grades, rows), (grades, frame), (grades, Run.of(rows)), (tmp_path / "j.qrels", rows)]
    for name, qrels, run in [*((n, *two) for n, two in files.items()), *(("the run", *two) for two in held)]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            weir.evaluate(qrels, run, ["RR"])
        told = [str(one.message) for one in said if " but for " in str(one.message)]
        of = "" if difference == COMPOSED else "at least "  # of a sample
        assert [one.partition(" that counts ")[0] for one in told] == [f"{name}: {of}1 identifier"] * bool(
            difference
        )
        assert all(f"but for {difference}" in one for one in told)


def test_yaml_is_no_table_of_pairs_and_is_named_with_the_way_to_read_it(tmp_path):
    (tmp_path / "g.yaml").write_text("q1: d1\n")
    with pytest.raises(FormatError, match=r"found YAML; .* weir data import FILE -o DIR"):
        Qrels.load(tmp_path / "g.yaml")


def test_rows_of_two_systems_whose_ranks_go_on_are_two_runs_where_a_document_returns(tmp_path):
    head, rows = "system,query_id,doc_id,rank\n", "x,q,a,1\nx,q,b,2\ny,q,c,3\ny,q,{},4\n"
    for last, runs in (
        ("a", {"x": {"q": {"a": 2.0, "b": 1.0}}, "y": {"q": {"c": 2.0, "a": 1.0}}}),
        ("d", None),
    ):
        imported(tmp_path, "r.csv", head + rows.format(last))
        assert written(tmp_path / "out")[2] == (
            runs or {"r": {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}}
        )


TEXTS = {
    "queries.jsonl": lines({"_id": "q1", "query": "red", "lang": "en"}, {"_id": "q2", "question": "blue"}),
    "queries.tsv": "qid\tquery\tlang\nq1\tred\ten\nq2\tblue\tde\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_queries_of_a_folder_have_their_texts_under_any_usual_name(name, tmp_path):
    (tmp_path / name).write_text(TEXTS[name])
    assert read_queries(CollectionPart(tmp_path / name)).to_dict() == {"q1": "red", "q2": "blue"}
    (tmp_path / "queries.jsonl").write_text(lines({"_id": "q1", "words": "red"}))
    with pytest.raises(
        FormatError, match="no query with a 'text'; expected texts under that key, or 'query'"
    ):
        read_queries(CollectionPart(tmp_path / "queries.jsonl"))


def test_judgments_beside_a_folder_of_judgments_are_told(tmp_path):
    (tmp_path / "qrels").mkdir()
    for name in ("qrels/test.tsv", "qrels.txt"):
        (tmp_path / name).write_text("q\td\t1\n")
    assert list(left_out(find_layout(tmp_path))) == [
        f"{tmp_path / 'qrels.txt'} is not read: {tmp_path / 'qrels' / 'test.tsv'} is"
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("l.csv", "query_id,doc_id,ann,ann\nq,d,1,0\n", "two columns named 'ann'"),
        (
            "l.json",
            '[{"query_id": "q", "doc_id": "d", "ann": 1, "ann": 0, "bob": 1}]',
            "'ann' twice in one object",
        ),
    ],
)
def test_no_rater_hides_another_of_the_same_name(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=said):
        read_raters(tmp_path / name)


def test_a_topic_counts_as_one_row_whatever_its_lines(tmp_path):
    topics = "<top>\n<num> 301\n<title>\n<desc> a\nb\nc\n</top>\n<top>\n<num> 302\n<title> a\n</top>\n"
    (tmp_path / "t.txt").write_text(topics)
    with pytest.raises(WeirError, match="1 of 2 rows cannot be imported, the first: topic 301"):
        import_files(tmp_path / "t.txt", tmp_path / "out")


def test_a_table_of_arrow_without_rows_is_refused_as_one_of_text(tmp_path):
    feather.write_feather(pa.Table.from_pylist(ROWS).slice(0, 0), str(tmp_path / "g.feather"))
    with pytest.raises(FormatError, match="the columns query_id, query, doc_id, grade and no row below them"):
        import_files(tmp_path / "g.feather", tmp_path / "out")
