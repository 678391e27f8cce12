"""Measures of diversity against plain loops, on whatever hypothesis draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import ranking
from tests.reference_more import INTENT_VALUES, ideal_of_intents
from tests.strategies import identifiers, scores

from weir.core.intents import IntentQrels
from weir.core.judged import joined
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.measures import MEASURES, parse_measure, score_run

MEASURES_OF_INTENTS = [
    *(
        "AP_IA",
        "AP_IA(rel=2)@3",
        "P_IA@1",
        "P_IA@4",
        "StRecall",
        "StRecall@2",
        "NRBP",
        "NRBP(alpha=0.75, beta=0.25)@3",
    ),
    *(
        "ERR_IA@1",
        "ERR_IA(alpha=0.25)@5",
        "alpha_DCG@1",
        "alpha_DCG@20",
        "alpha_nDCG",
        "alpha_nDCG@2",
        "nERR_IA",
    ),
    *(
        "alpha_nDCG(alpha=1.0)@3",
        "alpha_nDCG(alpha=0.0)",
        "nERR_IA(alpha=0.75, rel=2)@2",
        "nNRBP",
        "nNRBP(beta=0.25)@2",
    ),
]


@st.composite
def trials(draw):
    pool = draw(st.lists(identifiers, min_size=1, max_size=8, unique=True))
    documents, grades = st.sampled_from(pool), st.integers(-1, 3)
    one = st.dictionaries(documents, grades, min_size=1, max_size=6)
    asked = draw(st.lists(identifiers, min_size=1, max_size=4, unique=True))
    qrels = {q: draw(st.dictionaries(st.sampled_from("123"), one, min_size=1, max_size=3)) for q in asked}
    run = {q: draw(st.dictionaries(documents, scores, max_size=8)) for q in draw(st.permutations(asked))[:3]}
    return run, qrels


def expected(measure, run, qrels):
    settings = dict(measure.settings)
    rel, found = settings.pop("rel", 1), {}
    for q, intents in qrels.items():
        served = {i: {d for d, grade in row.items() if grade >= rel} for i, row in intents.items()}
        wanted = {i: documents for i, documents in served.items() if documents}
        found[q] = float(
            INTENT_VALUES[measure.name](ranking(run.get(q, {})), wanted, measure.cutoff, **settings)
        )
    return found


@given(trials())
def test_values_are_those_of_plain_loops(trial):
    run, qrels = trial
    scores = score_run(IntentQrels.of(qrels), Run.of(run), MEASURES_OF_INTENTS)
    assert scores.queries.tolist() == list(qrels)
    for measure in map(parse_measure, scores.measures):
        ours = dict(zip(scores.queries.tolist(), scores.of(str(measure)).tolist(), strict=True))
        assert ours == pytest.approx(expected(measure, run, qrels), rel=1e-13, abs=1e-15), str(measure)


def test_every_one_of_them_has_a_slow_reference_here():
    of_intents = {name for name in MEASURES.names() if MEASURES.get(name).of == "intents"}
    of_intents -= {"NuggetRecall"}  # counts nuggets that nothing supports: tests/property/test_contexts.py
    assert INTENT_VALUES.keys() == of_intents
    assert {parse_measure(measure).name for measure in MEASURES_OF_INTENTS} == of_intents


@given(trials())
def test_the_ideal_ranking_scores_one_and_condensing_changes_only_what_it_should(trial):
    run, qrels = trial
    ideal = {}
    for q, intents in qrels.items():
        wanted = {i: {d for d, grade in row.items() if grade >= 1} for i, row in intents.items()}
        wanted = {i: documents for i, documents in wanted.items() if documents}
        if wanted:
            ideal[q] = {d: -float(rank) for rank, d in enumerate(ideal_of_intents(wanted, 0.5))}
    best = score_run(IntentQrels.of(qrels), Run.of(ideal), ["alpha_nDCG", "nERR_IA@3", "nNRBP"])
    answered = [float(q in ideal) for q in best.queries]
    for row in best.values.tolist():
        assert row == pytest.approx(answered)
    judged = {
        q: {d for row in intents.values() for d, grade in row.items() if grade >= 0}
        for q, intents in qrels.items()
    }
    shorter = {q: {d: s for d, s in row.items() if d in judged[q]} for q, row in run.items()}
    for measure in ("alpha_nDCG@3", "StRecall@2", "AP_IA"):
        condensed = score_run(IntentQrels.of(qrels), Run.of(run), f"condensed({measure})").values
        assert (
            condensed.tolist() == score_run(IntentQrels.of(qrels), Run.of(shorter), measure).values.tolist()
        )


@given(trials())
def test_documents_are_as_good_as_for_their_best_intent(trial):
    run, qrels = trial
    best = {
        q: {d: max(row[d] for row in intents.values() if d in row) for row in intents.values() for d in row}
        for q, intents in qrels.items()
    }
    measures = ["nDCG@3", "AP", "bpref", "NumRel", "Judged@2", "condensed(P@2)"]
    ours, plain = score_run(IntentQrels.of(qrels), Run.of(run), measures), joined(Run.of(run), Qrels.of(best))
    for measure, row in zip(ours.measures, ours.values.tolist(), strict=True):
        theirs = dict(
            zip(plain.queries.tolist(), parse_measure(measure).per_query(plain).tolist(), strict=True)
        )
        assert dict(zip(ours.queries.tolist(), row, strict=True)) == theirs
