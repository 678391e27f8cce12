"""Runs and judgments from dicts, frames of three libraries, columns and files."""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import weir
from tests.strategies import judgments, rankings
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS
from weir.core import frames
from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import MeasureScores, Row, Scores
from weir.errors import BadRanking, BadValue, FormatError, LossWarning, WeirError
from weir.files.frames import qrels_from, run_from
from weir.files.write import write_qrels, write_run

RUN = {"q2": {"a": 1.5, "b": 2.5}, "q1": {"a": 0.25, "c": 0.25}}
QRELS = {"q2": {"a": 1, "z": 0}, "q1": {"c": -1, "a": 3}}
RUN_ROWS = {"query": ["q2", "q2", "q1", "q1"], "doc": ["a", "b", "a", "c"], "score": [1.5, 2.5, 0.25, 0.25]}
QRELS_ROWS = {"query": ["q2", "q2", "q1", "q1"], "doc": ["a", "z", "c", "a"], "grade": [1, 0, -1, 3]}
FRAMES = {
    "columns": lambda rows: rows,
    "arrays": lambda rows: {name: np.array(column) for name, column in rows.items()},
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": lambda rows: pl.DataFrame(rows).lazy(),
    "arrow": pa.table,
    "batch": pa.RecordBatch.from_pydict,
}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
NAMES = [
    ("query_id", "doc_id"),  # ir-measures
    ("q_id", "doc_id"),  # ranx
    ("qid", "docno"),  # PyTerrier
    ("query-id", "corpus-id"),  # BEIR
    ("query", "doc"),
    ("Query_ID", "DocID"),
]


def lists(columns):
    return {name: list(column) for name, column in columns.items()}


def renamed(rows, **names):
    return {names.get(name, name): column for name, column in rows.items()}


@each_frame
def test_a_frame_becomes_a_run_and_judgments(frame):
    run, qrels = run_from(frame(RUN_ROWS)), qrels_from(frame(QRELS_ROWS))
    assert run.to_dict() == RUN
    assert list(run.to_dict()) == list(RUN)
    assert list(run.to_dict()["q2"]) == ["b", "a"]
    assert list(run.to_dict()["q1"]) == ["c", "a"]
    assert qrels.to_dict() == QRELS


@each_frame
@pytest.mark.parametrize(("query", "doc"), NAMES)
def test_columns_are_recognised_by_their_usual_names(frame, query, doc):
    assert run_from(frame(renamed(RUN_ROWS, query=query, doc=doc))).to_dict() == RUN
    for grade in ("rel", "relevance", "label", "score"):
        assert qrels_from(frame(renamed(QRELS_ROWS, query=query, doc=doc, grade=grade))).to_dict() == QRELS


@each_frame
def test_values_come_back_as_columns(frame):
    run, qrels = Run.of(RUN), Qrels.of(QRELS)
    rows = lists(run.columns())
    assert rows == {
        "query": ["q2", "q2", "q1", "q1"],
        "doc": ["b", "a", "c", "a"],
        "rank": [1, 2, 1, 2],
        "score": [2.5, 1.5, 0.25, 0.25],
    }
    assert run_from(frame(rows)).to_dict() == RUN
    assert qrels_from(frame(lists(qrels.columns()))).to_dict() == QRELS


@given(rankings.map(lambda run: {q: row for q, row in run.items() if row}), judgments)
def test_any_run_and_judgments_survive_a_frame(run, qrels):
    for frame in (dict, pl.DataFrame):
        assert run_from(frame(lists(Run.of(run).columns()))).to_dict() == run
        assert qrels_from(frame(lists(Qrels.of(qrels).columns()))).to_dict() == qrels


def test_values_pass_through_and_dicts_are_copied():
    run, qrels = Run.of(RUN, name="mine"), Qrels.of(QRELS)
    assert run_from(run) is run
    assert qrels_from(qrels) is qrels
    assert run_from(run, name="yours").name == "yours"
    assert run.name == "mine"
    before = copy.deepcopy((RUN, QRELS, RUN_ROWS))
    assert run_from(RUN).to_dict() == RUN
    assert qrels_from(QRELS).to_dict() == QRELS
    run_from(RUN_ROWS)
    assert before == (RUN, QRELS, RUN_ROWS)


def test_ties_are_as_asked_for_and_a_run_keeps_its_own():
    scores = {"q": {"a": 0.1234567891, "b": 0.123456789}}
    rows = lists(Run.of(scores).columns())
    for value in (scores, rows, Run.of(scores)):
        assert list(run_from(value).to_dict()["q"]) == ["a", "b"]
        again = run_from(value, ties="trec9")
        assert (list(again.to_dict()["q"]), again.ties) == (["b", "a"], "trec9")
        assert run_from(again).ties == "trec9"
        assert list(run_from(again, ties="trec").to_dict()["q"]) == ["a", "b"]
    with pytest.raises(BadValue, match="ties is 'random'"):
        run_from(scores, ties="random")


@each_frame
def test_whole_numbers_become_text(frame):
    rows = {"qid": [1, 1, 10], "docno": [7, 8, 7], "score": [3, 2, 1]}
    assert run_from(frame(rows)).to_dict() == {"1": {"7": 3.0, "8": 2.0}, "10": {"7": 1.0}}


def test_pyterriers_frame_with_its_texts_and_internal_numbers():
    frame = pd.DataFrame(
        {"qid": ["1"], "docid": [17], "docno": ["d"], "rank": [0], "score": [2.0], "query": ["two words"]}
    )
    assert run_from(frame).to_dict() == {"1": {"d": 2.0}}


def test_a_table_of_another_library_that_has_column_names():
    class Table:
        column_names = ("query-id", "corpus-id", "score")

        def __getitem__(self, name):
            return {"query-id": ["q"], "corpus-id": ["d"], "score": [2]}[name]

    assert qrels_from(Table()).to_dict() == {"q": {"d": 2}}


def test_odd_column_types_of_pandas():
    frame = pd.DataFrame(RUN_ROWS).astype({"query": "category", "doc": "string", "score": "float32"})
    assert run_from(frame).to_dict() == RUN
    frame = pd.DataFrame(QRELS_ROWS).astype({"grade": "Int16"})
    assert qrels_from(frame).to_dict() == QRELS
    assert qrels_from(frame.astype({"grade": "float64"})).to_dict() == QRELS


def test_named_levels_of_an_index_are_columns():
    for frame, read, expected in ((RUN_ROWS, run_from, RUN), (QRELS_ROWS, qrels_from, QRELS)):
        rows = pd.DataFrame(frame)
        query, doc, number = rows.columns
        assert read(rows.set_index(query)).to_dict() == expected
        assert read(rows.set_index([query, doc])).to_dict() == expected
        assert read(rows.set_index([query, doc])[number]).to_dict() == expected
        with pytest.raises(BadValue, match=f"two columns named '{number}'"):
            read(pd.concat([rows, rows[[number]]], axis=1))


MIXED = {"qid": [1, "1"], "docno": ["a", "b"], "score": [1.0, 2.0]}
BAD_RUNS = [
    (MIXED, BadValue, "column qid: identifier '1' occurs twice"),
    ({"qid": [1.0], "docno": ["a"], "score": [1.0]}, BadValue, "column qid holds float"),
    ({"qid": [None], "docno": ["a"], "score": [1.0]}, BadValue, "column qid holds NoneType"),
    ({"qid": [True], "docno": ["a"], "score": [1.0]}, BadValue, "column qid holds bool"),
    ({"qid": ["q"], "docno": [""], "score": [1.0]}, BadValue, "column docno: an identifier is empty"),
    ({"qid": ["q"], "docno": ["a"], "score": ["1"]}, BadRanking, "text"),
    ({"qid": ["q"], "docno": ["a"], "score": [None]}, BadRanking, "query 'q', document 'a': .*finite"),
    ({"qid": ["q"], "docno": ["a"], "score": [[1.0]]}, BadRanking, "document 'a': the score .* is list"),
    ({"qid": ["q"], "docno": ["a"], "score": [10**400]}, BadRanking, "the score 10{59} is int; .* double"),
    (
        {"qid": ["q", "q"], "docno": ["a", "a"], "score": [1.0, 2.0]},
        BadRanking,
        "'q' ranks document 'a' twice",
    ),
    ({"qid": ["q"], "docno": ["a", "b"], "score": [1.0]}, BadValue, "qid, docno, score hold 1, 2 and 1 rows"),
    ({"qid": ["q"], "docno": ["a"], "points": [1.0]}, BadValue, "columns: qid, docno, points; .*'score'"),
    ({"who": ["q"], "docno": ["a"], "score": [1.0]}, BadValue, "columns: who, .*'query_id'"),
    ({"qid": ["q"], "what": ["a"], "score": [1.0]}, BadValue, "columns: qid, what, .*'doc_id'"),
    (
        {"qid": ["q"], "query_id": ["q"], "docno": ["a"], "score": [1.0]},
        BadValue,
        "qid and query_id could both",
    ),
    ({"q": {"d"}}, BadRanking, "query 'q': found set, which has no order"),
    ({"q": ["d", "d"]}, BadRanking, "query 'q' ranks document 'd' twice"),
    ({"q": ["d", 2.5]}, BadRanking, "query 'q': found 2.5 among the documents; expected identifiers"),
    ({"q": "d"}, BadRanking, "query 'q': found str"),
    (17, BadValue, "a run cannot be made from int"),
    (None, BadValue, "a run cannot be made from NoneType"),
    ([("q", "d", 1.0)], BadValue, "a run cannot be made from list"),
    (np.zeros((2, 3)), BadValue, "a run cannot be made from ndarray"),
]


@pytest.mark.parametrize(("value", "error", "message"), BAD_RUNS, ids=lambda v: str(v)[:40])
def test_what_is_no_run_is_refused_in_one_line(value, error, message):
    with pytest.raises(error, match=message) as refusal:
        run_from(value)
    assert "\n" not in str(refusal.value)


BAD_QRELS = [
    (
        {"qid": ["q"], "docno": ["a"], "rel": ["0.5"]},
        "query 'q', document 'a': grade '0.5' is not a finite number",
    ),
    ({"qid": ["q"], "docno": ["a"], "rel": [float("nan")]}, "grade nan is not a finite number"),
    ({"qid": ["q"], "docno": ["a"], "rel": [10**30]}, "beyond"),
    ({"qid": ["q"], "docno": ["a"], "rel": [1], "label": [2]}, "rel and label could both"),
    ({"qid": ["q", "q"], "docno": ["a", "a"], "rel": [1, 1]}, "query 'q' judges document 'a' twice"),
    (3.5, "judgments cannot be made from float"),
]


@pytest.mark.parametrize(("value", "message"), BAD_QRELS, ids=lambda v: str(v)[:40])
def test_what_are_no_judgments_is_refused_in_one_line(value, message):
    with pytest.raises(BadValue, match=message):
        qrels_from(value)


def test_a_missing_value_of_pandas_is_no_identifier():
    with pytest.raises(BadValue, match="column qid holds"):
        run_from(
            pd.DataFrame({"qid": pd.array(["q", None], "string"), "docno": ["a", "b"], "score": [1.0, 2.0]})
        )


def test_paths_of_files(tmp_path):
    run, qrels = Run.of(RUN), Qrels.of(QRELS)
    for name in ("mine.trec", "mine.json", "mine.trec.gz"):
        write_run(run, tmp_path / name)
        for path in (tmp_path / name, str(tmp_path / name)):
            assert run_from(path).to_dict() == RUN
            assert run_from(path).name == "mine"
            assert run_from(path, name="other", ties="trec9").ties == "trec9"
    for name in ("qrels.txt", "qrels.tsv"):
        write_qrels(qrels, tmp_path / name)
        assert qrels_from(tmp_path / name).to_dict() == QRELS
    (tmp_path / "qrels.json").write_text(json.dumps(QRELS), encoding="utf-8")
    assert qrels_from(str(tmp_path / "qrels.json")).to_dict() == QRELS
    with pytest.raises(FormatError, match="no such file"):
        run_from(tmp_path / "absent.trec")


def test_a_run_of_judged_documents_only_has_no_rows():
    run = Run.of({"q": {"a": 1.0}})
    part = Run(run.queries, run.docs, run.ptr, np.array([-1], np.int32), run.score)
    for use in (part.columns, lambda: run_from(part, ties="trec9")):
        with pytest.raises(BadValue, match="read the whole run"):
            use()


def test_no_frame_library_is_imported():
    code = (
        "import sys; from weir.files.frames import run_from; "
        "run_from({'qid': ['q'], 'docno': ['d'], 'score': [1.0]}).columns(); "
        "assert not {'pandas', 'polars', 'pyarrow', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "holder", [weir.Run, weir.Qrels, IntentQrels, Scores, MeasureScores, weir.ResultSet, weir.Benchmark]
)
def test_the_type_of_a_frame_follows_from_the_library_that_is_named(holder):
    stubs = typing.get_overloads(holder.to_frame)
    named = [stub.__annotations__["library"] for stub in stubs]
    assert named == [f"Literal['{library}']" for library in frames.FRAMES]
    assert [stub.__annotations__["return"] for stub in stubs] == ["PandasFrame", "PolarsFrame", "ArrowTable"]


def test_a_missing_identifier_has_its_row():
    frame = pytest.importorskip("pandas").DataFrame(
        {"query_id": ["q1", None], "doc_id": ["a", "b"], "relevance": [1, 1]}
    )
    with pytest.raises(
        WeirError, match=r"column query_id holds \w+, first (nan|None) in row 2; expected text"
    ):
        weir.evaluate(frame, {"q1": {"a": 1.0}})


def test_a_frame_is_no_dict_of_rankings():
    frame = pytest.importorskip("pandas").DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.0]})
    with pytest.raises(WeirError, match=r"found DataFrame as the rankings; expected \{query: "):
        weir.Run.of(frame)
    with pytest.raises(WeirError, match="found DataFrame as the judgments"):
        weir.Qrels.of(frame)
    with pytest.raises(WeirError, match="scores is of type Run; expected a Scores"):
        weir.abstention({"q1": {"d1": 1}}, weir.Run.of({"q1": {"d1": 1.0}}))


SOURCE = Path(weir.__file__).parent


def test_every_result_with_rows_becomes_a_frame():
    """A class that shows tables and notes; what was converted is one sentence."""
    lacking = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "tables" in text and "notes" in text else ():
            body = node.body if isinstance(node, ast.ClassDef) and not node.bases else []
            names = {getattr(one, "name", "") for one in body}
            names |= {ast.unparse(one.targets[0]) for one in body if isinstance(one, ast.Assign)}
            if {"tables", "notes"} <= names and "to_frame" not in names:
                lacking.add(node.name)
    assert lacking == {"Conversion"}


def test_reports_citations_and_groups_are_frames_of_their_rows(tmp_path):
    weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10", "RR"], out=tmp_path)
    rows = weir.results(tmp_path).to_frame()
    for library in ("pandas", "polars", "arrow"):
        assert len(weir.report(tmp_path, audit=False).to_frame(library)) == len(rows) == 4
    cited = weir.cite(tmp_path).to_frame()
    assert {"key", "cited_for", "title", "year"} <= set(cited.columns)
    assert len(cited) == len(weir.cite(tmp_path).works)
    scores = weir.evaluate(QRELS, RUN, "RR")
    grouped = scores.by({"q1": "odd", "q2": "even"}).to_frame()
    assert grouped.to_dict("list") == {"group": ["even", "odd"], "query": ["q2", "q1"], "RR": [0.5, 0.5]}


def test_every_column_is_explained(tmp_path):
    """On the page for Python, as a frame and CSV have them."""
    page = (SOURCE.parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`(\w+)`", page.partition("## Columns")[2].partition("\n## ")[0]))
    weir.benchmark(["brook-news", "brook-facts"], ["bm25", "rm3"], ["nDCG@10"], out=tmp_path)
    news = sorted((tmp_path / "brook-news").glob("*-*"))
    for result in (
        *(weir.results(tmp_path), weir.compare(tmp_path), weir.gate(tmp_path, tmp_path), weir.diff(*news)),
        ResultSet(ROWS, (Row(**dict.fromkeys(Row.__dataclass_fields__, 1)),)),
    ):
        assert set(result.columns()) - explained == set(), result.kind


@pytest.mark.parametrize("column", RUN_ROWS)
def test_an_index_that_is_a_column_too_counts_once_or_is_refused(column):
    frame = pd.DataFrame(RUN_ROWS).set_index(column, drop=False)
    assert run_from(frame).to_dict() == RUN
    frame.index = pd.Index(frame.index[::-1], name=column)
    with pytest.raises(BadValue, match=f"the index and a column are both named '{column}' and differ"):
        run_from(frame)


def test_a_column_without_a_name_is_told_by_its_place(tmp_path):
    (tmp_path / "run.csv").write_text("query_id,doc_id,score,\nq1,d1,2,keep?\nq1,d2,1,no\n")
    with pytest.warns(LossWarning, match="not read: 1 column, column 4"):
        assert run_from(tmp_path / "run.csv").to_dict() == {"q1": {"d1": 2.0, "d2": 1.0}}


@pytest.mark.parametrize("kind", ["Float64", "object"])
def test_a_score_that_is_no_number_is_named_with_its_row(kind):
    scores = pd.Series([1.5, pd.NA], dtype=kind)
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": scores})
    columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.5, pd.NA]}
    for run in (frame, columns, {"q": {"a": 1.5, "b": pd.NA}}):
        with pytest.raises(BadRanking, match="query 'q', document 'b': the score <NA> is NAType"):
            weir.evaluate({"q": {"a": 1}}, run)
