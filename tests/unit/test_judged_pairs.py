"""Judgments of two columns, query and document, are read alike from every file and frame that names them."""

import json
import warnings

import pytest

import weir
from weir.errors import FormatError, RankingWarning, WeirError

PAIRS = [("q1", "d1"), ("q1", "d3"), ("q2", "d3")]
HEADS = [("query-id", "doc-id"), ("query_id", "corpus-id"), ("qid", "docno"), ("query", "product_id")]
RUN = {"q1": ["d2", "d1"], "q2": ["d3"]}


def separated(mark):
    return lambda head, rows: "".join(mark.join(row) + "\n" for row in (head, *rows))


def json_lines(head, rows):
    return "".join(json.dumps(dict(zip(head, row, strict=True))) + "\n" for row in rows)


FILES = {
    "two.csv": separated(","),
    "two.tsv": separated("\t"),
    "semicolon.csv": separated(";"),
    "two.qrels": separated("\t"),
    "blanks.txt": separated(" "),
    "commas.txt": separated(","),
    "marked.csv": lambda head, rows: "\ufeff" + separated(",")(head, rows),
    "two.jsonl": json_lines,
    "two": separated("  "),
    "remark.txt": lambda head, rows: f"# pairs of {len(rows)}\n\n" + separated(" ")(head, rows),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("turned", [False, True], ids=["query first", "document first"])
@pytest.mark.parametrize("head", HEADS, ids=",".join)
def test_a_file_of_pairs_is_judgments_of_grade_1_in_any_order_of_its_columns(tmp_path, name, head, turned):
    step = -1 if turned else 1
    path = tmp_path / name
    path.write_text(FILES[name](head[::step], [row[::step] for row in PAIRS]), encoding="utf-8")
    with pytest.warns(RankingWarning, match="no grades: each document counts as relevant, grade 1"):
        qrels = weir.Qrels.load(path)
    assert {q: dict(qrels[q]) for q in qrels} == {"q1": {"d1": 1, "d3": 1}, "q2": {"d3": 1}}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_table_of_pairs_is_judgments_of_grade_1(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"query-id": [q for q, _ in PAIRS], "doc-id": [d for _, d in PAIRS]})
    path = tmp_path / f"two.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with arrow.OSFile(str(path), "wb") as sink, arrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    with pytest.warns(RankingWarning, match="no grades"):
        assert weir.evaluate(path, RUN, "RR")["RR"].mean == 0.75


@pytest.mark.parametrize("count", [1, 20_000], ids=["few rows", "many rows"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "columns"])
def test_a_frame_of_pairs_is_judgments_of_grade_1(library, count):
    queries = [f"q{n}" for n in range(count)]
    columns = {"doc_id": ["d1"] * count, "query_id": queries}
    if library != "columns":
        module = pytest.importorskip(library)
        columns = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    with pytest.warns(RankingWarning, match="no grades"):
        scores = weir.evaluate(columns, {q: ["d0", "d1"] for q in queries}, "RR")
    assert set(scores["RR"].to_dict().values()) == {0.5}


@pytest.mark.filterwarnings("ignore:.*no grades")
def test_a_header_repeated_where_files_were_joined_is_no_judgment(tmp_path):
    for name in ("two.csv", "two.tsv", "blanks.txt"):
        text = FILES[name](HEADS[0], PAIRS)
        (tmp_path / name).write_text(text + text)
        with pytest.raises(FormatError, match=rf"{name}, line 5.*the header again"):
            weir.Qrels.load(tmp_path / name)


@pytest.mark.parametrize("head", [("a", "b"), ("q1", "d9"), ("query_id", "topic_id"), ("doc_id", "chunk_id")])
def test_columns_that_do_not_say_which_is_which_are_asked_about(tmp_path, head):
    (tmp_path / "two.csv").write_text(FILES["two.csv"](head, PAIRS))
    with pytest.raises(WeirError):
        weir.Qrels.load(tmp_path / "two.csv")
    with pytest.raises(WeirError):
        weir.import_files([str(tmp_path / "two.csv")], str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["two.qrels", "blanks.txt", "two"])
@pytest.mark.parametrize(
    "head", [("query-id", "grade"), ("query_id", "text"), ("doc", "doc_id"), ("label", "x")]
)
@pytest.mark.filterwarnings("ignore:.*no grades")
def test_a_header_between_blanks_that_lacks_a_column_is_no_judgment(tmp_path, name, head):
    (tmp_path / name).write_text(FILES[name](head, PAIRS))
    with pytest.raises(FormatError, match="the columns"):
        weir.Qrels.load(tmp_path / name)


def test_a_run_of_pairs_is_refused_still(tmp_path):
    (tmp_path / "run.csv").write_text(FILES["two.csv"](HEADS[0], PAIRS))
    with pytest.raises(FormatError, match="retrieved=doc-id"):
        weir.Run.load(tmp_path / "run.csv")


@pytest.mark.parametrize("name", ["two.csv", "two.tsv", "semicolon.csv", "two.jsonl"])
def test_an_import_reads_pairs_as_judgments_and_says_so(tmp_path, name):
    (tmp_path / name).write_text(FILES[name](HEADS[0], PAIRS))
    done = weir.import_files([str(tmp_path / name)], str(tmp_path / "out"))
    assert "every document counts as relevant, grade 1" in str(done)
    qrels = weir.Qrels.load(tmp_path / "out" / "qrels" / "test.tsv")
    assert {q: dict(qrels[q]) for q in qrels} == {"q1": {"d1": 1, "d3": 1}, "q2": {"d3": 1}}


def test_an_import_asks_about_pairs_in_a_file_called_results(tmp_path):
    (tmp_path / "results.csv").write_text(FILES["two.csv"](HEADS[0], PAIRS))
    with pytest.raises(WeirError, match="may be relevant or returned"):
        weir.import_files([str(tmp_path / "results.csv")], str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("names", "cells", "graded"),
    [
        ("anna,ben,comment", ["0,2,bla", "1,,bla", "0,0,x"], "anna, ben"),
        ("anna", ["0", "1", ""], "anna"),
        ("ok", ["yes", "no", "no"], "ok"),
        ("year,weight", ["2019,0.5", "2020,0.25", "2019,1"], ""),
        ("version", ["1", "1", "1"], ""),
    ],
)
def test_an_import_names_columns_of_few_small_numbers_as_grades_first(tmp_path, names, cells, graded):
    rows = [f"{query},{doc},{cell}" for (query, doc), cell in zip(PAIRS, cells, strict=True)]
    (tmp_path / "wide.csv").write_text("\n".join([f"query_id,doc_id,{names}", *rows]) + "\n")
    with pytest.raises(WeirError) as error:
        weir.import_files([tmp_path / "wide.csv"], tmp_path / "out")
    said = str(error.value)
    assert ("may be relevant or returned" in said) == (not graded)
    if graded:
        assert f"{graded} beside 'doc_id' may be grades; add `columns='grade={graded.split(',')[0]}'`" in said
        assert ("weir labels people" in said) == (", " in graded)
        done = weir.import_files([tmp_path / "wide.csv"], tmp_path / "out", f"grade={graded.split(',')[0]}")
        assert done.whole["judgments"]["test"] == sum(
            not cell.startswith(",") and cell != "" for cell in cells
        )


def test_pairs_with_a_grade_column_warn_of_nothing(tmp_path):
    (tmp_path / "three.csv").write_text("query_id,doc_id,relevance\nq1,d1,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dict(weir.Qrels.load(tmp_path / "three.csv")["q1"]) == {"d1": 2}
