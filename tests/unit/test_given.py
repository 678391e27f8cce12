"""The shapes in which people hold rankings and judgments: all give the same values, bit for bit."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.api.given import all_rankings
from weir.cli import main
from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids
from weir.errors import BadRanking, BadValue, LossWarning, RankingWarning, WeirError
from weir.measures import score_run

QRELS = {"q1": {"d2": 1, "d4": 1}, "q2": {"d1": 1}}
RANKED = {"q1": ["d1", "d2", "d3"], "q2": ["d3", "d1"]}
AS_DICT = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d3": 2.0, "d1": 1.0}}
MEASURES = ["nDCG@10", "RR", "AP", "R@2", "Judged@2"]


def rows(scores):
    return scores.measures, scores.values.tobytes(), scores.tied


@pytest.mark.parametrize(
    "run",
    [
        RANKED,
        {q: tuple(row) for q, row in RANKED.items()},
        {q: np.array(row) for q, row in RANKED.items()},
        {q: pd.Series(row) for q, row in RANKED.items()},
        {q: pl.Series(row) for q, row in RANKED.items()},
        {q: list(row.items()) for q, row in AS_DICT.items()},
        {q: [[d, np.float32(s)] for d, s in row.items()] for q, row in AS_DICT.items()},
        {q: pd.Series(row) for q, row in AS_DICT.items()},
    ],
    ids=["list", "tuple", "array", "Series", "polars", "pairs", "lists", "scores"],
)
def test_a_ranking_in_any_shape_is_the_dict(run):
    assert Run.of(run).to_dict() == AS_DICT
    assert rows(weir.evaluate(QRELS, run, MEASURES)) == rows(weir.evaluate(QRELS, AS_DICT, MEASURES))


@pytest.mark.parametrize(
    "shape",
    [
        list,
        tuple,
        set,
        frozenset,
        np.array,
        pd.Series,
        lambda row: list(row.items()),
        lambda row: pd.Series(dict(row)),
    ],
    ids=["list", "tuple", "set", "frozenset", "array", "Series", "pairs", "grades"],
)
def test_judgments_in_any_shape_are_the_dict(shape):
    given_ones = {
        q: shape(row if shape in (list, tuple, set, frozenset) or "lambda" in str(shape) else list(row))
        for q, row in QRELS.items()
    }
    assert Qrels.of(given_ones).to_dict() == QRELS
    assert rows(weir.evaluate(given_ones, AS_DICT, MEASURES)) == rows(weir.evaluate(QRELS, AS_DICT, MEASURES))


IDENTIFIERS = st.text("abc1", min_size=1, max_size=3)


@given(
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]), st.lists(IDENTIFIERS, unique=True, max_size=6), min_size=1
    ),
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]), st.sets(IDENTIFIERS, min_size=1, max_size=4), min_size=1
    ),
)
def test_lists_equal_dicts(run, qrels):
    scored = {q: {d: float(len(row) - n) for n, d in enumerate(row)} for q, row in run.items()}
    graded = {q: dict.fromkeys(row, 1) for q, row in qrels.items()}
    assert Run.of(run).to_dict() == scored
    assert not Run.of(run).tied().any()
    assert Qrels.of(qrels).to_dict() == graded
    if any(run.get(q) for q in qrels):
        assert rows(weir.evaluate(qrels, run, MEASURES)) == rows(weir.evaluate(graded, scored, MEASURES))


def test_grades_given_as_pairs_and_intents_given_as_lists():
    assert Qrels.of({"q": [("a", 2), ("b", 0)]}).to_dict() == {"q": {"a": 2, "b": 0}}
    assert IntentQrels.of({"q": {"i": ["a", "b"], "j": {"b"}}}).to_dict() == {
        "q": {"i": {"a": 1, "b": 1}, "j": {"b": 1}}
    }
    assert weir.evaluate({"q": {"i": ["a"], "j": ["b"]}}, {"q": ["b", "a"]}, "alpha_nDCG@2").of(
        "alpha_nDCG@2"
    ).tolist() == [1.0]


@pytest.mark.parametrize(
    ("qrels", "run", "error", "said"),
    [
        ({"q1": [1, 2]}, {"q1": ["1", "2"]}, BadValue, "document identifiers are int (2) in the judgments and str ('2') in the run"),
        ({1: {"a"}}, {"1": ["a"]}, BadValue, "query identifiers are int (1) in the judgments and str ('1') in the run"),
        ({"q1": ["a", "b"]}, {"q1": {"a"}}, BadRanking, "query 'q1': found set, which has no order"),
        ({"q1": {"a": "2.5"}}, {"q1": ["a"]}, BadValue, "grade '2.5' is not a finite number"),
        ({"q1": {"a"}}, {"x": ["a"]}, BadValue, "no query in common"),
        ({"q1": [("a", 1), ("a", 2)]}, {"q1": ["a"]}, BadValue, "judges document 'a' twice, with two grades"),
        ({"q1": ["a"]}, {"q1": ["a", "a"]}, BadRanking, "ranks document 'a' twice"),
        ({"q1": [True]}, {"q1": ["a"]}, BadValue, "found True among the documents"),
        ({"q1": ["a"]}, {"q1": "a"}, BadRanking, "found str; expected {document: score}, or documents in rank order"),
    ],
)  # fmt: skip
def test_mistakes_are_said(qrels, run, error, said):
    with pytest.raises(error) as found:
        weir.evaluate(qrels, run, ["RR"])
    assert said in str(found.value)


def test_judgments_as_scores_behind_rankings_as_lists_are_said():
    with pytest.warns(
        RankingWarning, match="the judgments are lists and the scores of the run look like grades"
    ):
        weir.evaluate({"q1": ["a", "b"]}, {"q1": {"a": 1, "b": 0}}, ["RR"])


@pytest.mark.parametrize("documents", [["d1"], "d1"])
def test_documents_and_queries_of_another_shape_are_one_line(documents):
    with pytest.raises(WeirError, match=r"found (list|str) as the documents; expected \{identifier: text"):
        weir.Dataset.of(corpus=documents, queries={"q": "a"}, qrels={"q": ["d1"]}, name="mine")
    with pytest.raises(WeirError, match="as the queries; expected"):
        weir.Dataset.of(corpus={"d1": "a"}, queries=documents, qrels={"q": ["d1"]}, name="mine")


GRADES = [
    (0, None),
    (-1, None),
    (-(2**14), None),
    (2**14, None),
    (2.0, None),
    (np.float32(3), None),
    (np.int64(3), None),
    (True, None),
    (np.bool_(False), None),
    (0.5, None),
    (1e-3, None),
    (float("nan"), "finite number"),
    (float("inf"), "finite number"),
    ("1", "finite number"),
    ("relevant", "finite number"),
    (None, "finite number"),
    ([1], "finite number"),
    (2**14 + 1, "beyond"),
    (1e300, "beyond"),
    (10**400, "beyond"),
    (-(10**400), "beyond"),
]


@pytest.mark.parametrize(("grade", "refused"), GRADES, ids=lambda v: repr(v)[:20])
def test_every_grade_is_taken_or_refused_by_name(grade, refused):
    if refused:
        with pytest.raises(BadValue, match=f"query 'q', document 'd': .*{refused}"):
            Qrels.of({"q": {"d": grade}})
        return
    qrels = Qrels.of({"q": {"d": grade, "e": 1, "dangling": 1}})
    assert qrels.to_dict()["q"]["d"] == grade
    scores = score_run(qrels, Run.of({"q": {"d": 2.0, "e": 1.0}}), ["nDCG@10", "AP", "RR", "P@3", "Judged@5"])
    assert np.isfinite(scores.values).all()


SCORES = [
    (float("nan"), "finite"),
    (float("inf"), "finite"),
    (float("-inf"), "finite"),
    (None, "finite"),
    ("1.5", "number"),
    (b"1", "number"),
    ([1.0], "number"),
    ({}, "number"),
    (1j, "number"),
    (True, "number"),
    (np.False_, "number"),
    (10**400, "number"),
]


@pytest.mark.parametrize(("score", "message"), SCORES, ids=lambda v: repr(v)[:20])
def test_scores_that_are_no_finite_numbers_are_refused(score, message):
    with pytest.raises(BadRanking, match=message):
        Run.of({"q": {"d": score}})


@pytest.mark.parametrize("score", [1, np.float32(1), np.int8(1), -0.0, 1e308, 5e-324, 2**70])
def test_scores_that_are_numbers_are_taken(score):
    assert Run.of({"q": {"d": score}}).to_dict() == {"q": {"d": float(score)}}


def test_a_duplicate_document_is_refused_by_name():
    queries, docs = Ids.of(["first", "second"]), Ids.of(["a", "b"])
    with pytest.raises(BadRanking, match="query 'second' ranks document 'a' twice"):
        Run.from_columns(
            queries,
            docs,
            np.array([0, 1, 1, 1]),
            np.array([0, 0, 1, 0], np.int32),
            np.array([1.0, 3.0, 2.0, 1.0]),
        )
    with pytest.raises(BadRanking, match="query 'q' ranks document '1' twice"):
        Run.of({"q": {1: 1.0, "1": 2.0}})  # two keys of a dict, one identifier


def test_what_is_empty_or_of_another_shape():
    for nothing in ({}, {"q": {}}):
        with pytest.raises(BadValue, match="no query"):
            score_run(Qrels.of(nothing), Run.of({"q": {"d": 1.0}}))
    for none in ({}, {"q": {}}, {"other": {"d": 1.0}}):
        scores = score_run(
            Qrels.of({"q": {"d": 1}}), Run.of(none), ["nDCG@10", "AP", "RR", "P@3", "Judged@5"]
        )
        assert not scores.values.any()
        assert not scores.answered.any()
        assert scores.tied == 0.0
    with pytest.raises(BadRanking, match="query 'q': found str"):
        Run.of({"q": "d"})
    with pytest.raises(BadValue, match="query 'q': found str"):
        Qrels.of({"q": "d"})
    with pytest.raises(BadValue, match="no measure"):
        score_run(Qrels.of({"q": {"d": 1}}), Run.of({}), [])
    with pytest.raises(BadValue, match="gain='exp' with a grade of 501"):
        score_run(Qrels.of({"q": {"d": 501}}), Run.of({"q": {"d": 1.0}}), ["nDCG(gain='exp')"])


ODD = [
    "1",
    "01",
    "1.0",
    "-5",
    "a b",
    "é",
    "http://example.org/a?b=c#d",
    "a\tb",
    " ",
    "\u2028",
    "'",
    '"',
    "\\n",
]


def test_odd_identifiers_stay_apart_and_come_back():
    run = {q: {d: float(i) for i, d in enumerate(ODD)} for q in ODD}
    qrels = {q: {d: 1 if d == q else 0 for d in ODD} for q in ODD}
    made = Run.of(run)
    assert made.to_dict() == run
    assert Qrels.of(qrels).to_dict() == qrels
    assert json.loads(json.dumps(made.to_dict())) == run
    values = score_run(Qrels.of(qrels), made, ["RR"]).values[0]
    assert values.tolist() == [1 / (len(ODD) - i) for i in range(len(ODD))]
    assert all(q not in row for q, row in made.without_self().to_dict().items())


@pytest.mark.parametrize("kind", [Decimal, Fraction, np.float32, np.int8])
def test_numbers_of_other_types_are_grades_and_scores(kind):
    given = {"q": {"a": kind(2), "b": kind(1)}}
    assert weir.evaluate(given, given, ["nDCG"]).means() == {"nDCG": 1.0}


@pytest.mark.filterwarnings("default")
def test_a_folder_of_run_files_serves_wherever_runs_do(tmp_path, capsys, monkeypatch):
    """What else lies in it is named, and damaged run files are refused as ever."""
    monkeypatch.chdir(tmp_path)
    brook = weir.load("brook-facts")
    Path("runs").mkdir()
    for name, system in (
        ("first.trec", weir.BM25()),
        ("second.run", weir.RM3()),
        ("third.json", weir.BM25(b=0.1)),
    ):
        system.index(brook.corpus).search(brook.queries, 20).save(f"runs/{name}")
    Path("runs/bare").write_text(Path("runs/first.trec").read_text())
    files = sorted(map(str, Path("runs").iterdir()))
    for name, text in (("README.md", "runs of the first day, by us\n"), ("notes.csv", "day,by\n1,me\n"),
                       ("run.yaml", "k: 20\n"), ("q.qrels", "q1 0 d1 1\n"), ("settings.json", '{"k": 20}'),
                       ("packed.zip", "PK\x03\x04"), ("plot.png", "\x89PNG\r\n\x1a\n")):  # fmt: skip
        Path("runs", name).write_text(text, encoding="latin-1", newline="")
    left_out = "runs: left out README.md, notes.csv, packed.zip, plot.png, q.qrels, run.yaml, settings.json: their first lines are no ranking's"
    for command in (
        ["eval", "brook-facts", "runs"],
        ["compare", "brook-facts", "runs"],
        ["gate", "brook-facts", "runs", "runs"],
        ["fuse", "rrf", "runs", "-o", "fused.trec"],
        ["audit", "brook-facts", "runs"],
        ["labels", "pool", "brook-facts", "runs", "-o", "pool.tsv"],
    ):
        main(command)
        said = capsys.readouterr()
        assert left_out in said.err, command
        assert "weir: " not in said.err, (command, said.err)
    with pytest.warns(LossWarning, match="left out README.md"):
        assert all_rankings(["runs"]) == list(map(Path, files))
    with (
        pytest.warns(LossWarning),
        pytest.raises(BadValue, match=r"holds 4 rankings; name one of them: bare, first"),
    ):
        weir.evaluate("brook-facts", "runs")
    Path("runs/second.run").write_text("q1 Q0 d1 1 nan x\n")
    assert main(["eval", "brook-facts", "runs"]) == 2
    assert "left out: runs/second.run, line 1" in capsys.readouterr().err
    for one in files:
        Path(one).unlink()
    assert main(["eval", "brook-facts", "runs"]) == 2
    assert "runs: found no result of weir run" in capsys.readouterr().err
