"""Weir's measures equal the oracle's exact values, whatever the input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import fractions, measure_texts, trials

from weir.core.filters import DocumentLists
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import parse_measure, score_run
from weir.measures.evaluate import Conventions, parse_conventions
from weir.plugins.conform.oracle import DEFINITIONS, Answer, Case, OracleConventions, exact_answer

# Names that the oracle knows; others have their own tests.
known_texts = measure_texts().filter(lambda text: parse_measure(text).name in DEFINITIONS)


def exact(run, judged, text, lists=({}, {}), **conventions) -> Answer:
    case = Case(
        {q: list(row.items()) for q, row in judged.items()},
        {q: list(row.items()) for q, row in run.items()},
        OracleConventions(**conventions),
        *lists,
    )
    return exact_answer(case, text)


def close(value: float, true: float) -> bool:
    return math.isclose(value, true, rel_tol=1e-12, abs_tol=1e-12)


def agrees(scores, expected: Answer) -> bool:
    assert scores.queries.tolist() == list(expected.per_query)
    found = zip(scores.values[0].tolist(), expected.per_query.values(), strict=True)
    return all(close(value, float(true)) for value, true in found) and close(
        scores.mean_values()[0], float(expected.mean)
    )


@given(trials(fractions), known_texts, st.sampled_from(["trec", "trec9"]))
@settings(max_examples=200)
def test_every_measure_is_the_oracles(trial, text, ties):
    run, judged = trial
    scores = score_run(Qrels.of(judged), Run.of(run, ties=ties), [text])
    assert agrees(scores, exact(run, judged, text, ties=ties))


@given(trials(grade=st.integers(-3, 40)), st.sampled_from(["nDCG", "DCG", "NCG", "Q"]), st.integers(1, 12))
def test_steep_gains_are_the_oracles(trial, name, k):
    run, judged = trial
    text = f"{name}(gain='exp')@{k}"
    assert agrees(score_run(Qrels.of(judged), Run.of(run), [text]), exact(run, judged, text))


@given(trials(fractions), known_texts)
def test_queries_that_are_their_own_answer_leave(trial, text):
    run, judged = trial
    scores = score_run(Qrels.of(judged), Run.of(run).without_self(), [text])
    assert agrees(scores, exact(run, judged, text, self_matches="drop"))


@given(trials(fractions), known_texts, st.data())
def test_documents_that_may_not_be_ranked_leave(trial, text, data):
    run, judged = trial
    documents = sorted({d for row in run.values() for d in row} | {"absent"})
    lists = st.dictionaries(
        st.sampled_from([*run, "nobody"]), st.lists(st.sampled_from(documents), max_size=4)
    )
    candidates, excluded = data.draw(lists), data.draw(lists)
    held = Run.of(run)
    allowed = held.among(DocumentLists.of(candidates.get(q, ()) for q in held.queries))
    allowed = allowed.without(DocumentLists.of(excluded.get(q, ()) for q in held.queries))
    scores = score_run(Qrels.of(judged), allowed, [text])
    assert agrees(scores, exact(run, judged, text, lists=(candidates, excluded)))


def small(trial) -> bool:
    return all(len(row) <= 5 for row in trial[0].values())


@given(trials(fractions, st.sampled_from([0.0, 1.0, 2.0])).filter(small), known_texts)
@settings(max_examples=150)
def test_the_mean_over_orders_of_ties_is_the_oracles(trial, text):
    run, judged = trial
    scores = score_run(Qrels.of(judged), Run.of(run), [text], parse_conventions("ties=expected"))
    assert agrees(scores, exact(run, judged, text, ties="expected"))


@given(trials(fractions, st.sampled_from([0.0, 1.0, 2.0])).filter(small), known_texts)
@settings(max_examples=150)
def test_the_worst_and_the_best_order_are_the_oracles(trial, text):
    run, judged = trial
    scores = score_run(Qrels.of(judged), Run.of(run), [text], parse_conventions("ties=bounds"))
    for found, ties in ((scores.low, "worst"), (scores.high, "best")):
        expected = exact(run, judged, text, ties=ties).per_query.values()
        assert all(close(v, float(true)) for v, true in zip(found[0].tolist(), expected, strict=True))


@given(
    trials(fractions),
    known_texts,
    st.sampled_from(["answered-only", "zero"]),
    st.sampled_from(["left-out", "zero"]),
)
def test_the_queries_that_count_are_the_oracles(trial, text, missing, empty):
    run, judged = trial
    conventions = Conventions(missing=missing, empty=empty)
    try:
        scores = score_run(Qrels.of(judged), Run.of(run), [text], conventions)
    except BadValue:
        with pytest.raises(BadValue, match="no query counts"):
            exact(run, judged, text, missing=missing, empty=empty)
        return
    expected = exact(run, judged, text, missing=missing, empty=empty)
    named = zip(scores.queries.tolist(), scores.values[0].tolist(), strict=True)
    found = {q: v for q, v in named if not math.isnan(v)}
    assert list(found) == list(expected.per_query)
    assert all(close(v, float(expected.per_query[q])) for q, v in found.items())
    assert close(scores.mean_values()[0], float(expected.mean))
