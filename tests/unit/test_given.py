"""The shapes in which people hold rankings and judgments: all give the same values, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadRanking, BadValue, RankingWarning

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
