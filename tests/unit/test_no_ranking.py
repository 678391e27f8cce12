"""Runs without a query, and truth values as scores, are refused in whatever form they are given."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from weir.errors import WeirError

QRELS = {"q1": {"d1": 1, "d3": 2}, "q2": {"d2": 1}}
NONE = {"query_id": [], "doc_id": [], "score": []}
TYPES = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
FLAGS = {"query_id": ["q1", "q1"], "doc_id": ["d1", "d3"], "score": [True, False]}


def written(name, text):
    def write(folder):
        (folder / name).write_text(text)
        return folder / name

    return write


def parquet(columns, schema):
    def write(folder):
        pq.write_table(pa.table(columns, schema), folder / "r.parquet")
        return folder / "r.parquet"

    return write


EMPTY = {
    "dict": lambda _: {},
    "Run": lambda _: weir.Run.of({}),
    "pandas": lambda _: pd.DataFrame(NONE),
    "polars": lambda _: pl.DataFrame(NONE, schema={name: pl.String for name in NONE} | {"score": pl.Float64}),
    "arrow": lambda _: pa.table(NONE, TYPES),
    "trec": written("r.trec", ""),
    "csv": written("r.csv", "query_id,doc_id,score\n"),
    "json": written("r.json", '{"q1": {}}'),
    "parquet": parquet(NONE, TYPES),
}
TRUTH = {
    "dict": lambda _: {"q1": {"d1": True, "d3": False}},
    "numpy": lambda _: {"q1": {"d1": np.True_, "d3": np.False_}},
    "pairs": lambda _: {"q1": [("d1", True), ("d3", False)]},
    "pandas": lambda _: pd.DataFrame(FLAGS),
    "polars": lambda _: pl.DataFrame(FLAGS),
    "arrow": lambda _: pa.table(FLAGS),
    "json": written("r.json", json.dumps({"q1": {"d1": True}})),
    "csv": written("r.csv", "query_id,doc_id,score\nq1,d1,True\n"),
    "parquet": parquet(FLAGS, None),
}


@pytest.mark.parametrize("form", EMPTY)
def test_a_run_without_a_query_is_refused(tmp_path, form):
    run = EMPTY[form](tmp_path)
    with pytest.raises(WeirError, match=r"no ranking; expected at least one document"):
        weir.evaluate(QRELS, run, "RR")


@pytest.mark.parametrize("run", [{"q1": {}}, {"q1": [], "q2": []}])
def test_a_query_answered_with_nothing_scores_0(run):
    assert weir.evaluate(QRELS, run, "RR").means()["RR"] == 0


@pytest.mark.parametrize("form", TRUTH)
def test_truth_values_are_no_scores(tmp_path, form):
    with pytest.raises(WeirError):
        weir.evaluate(QRELS, TRUTH[form](tmp_path), "RR")
