from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import trials

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.experiment.why import (
    ComparedResult,
    Scoring,
    defined_mean,
    differences,
    explained,
    other_measures,
    other_rules,
    rescored,
)
from weir.measures import parse_measure, score_run
from weir.stats.query_differences import query_differences, with_documents

MEASURES = st.sampled_from(["nDCG@10", "AP", "RR", "R@10", "P@5", "gmAP"])
NAMES = st.text(st.sampled_from("abk."), min_size=1, max_size=6).filter(
    lambda t: ".." not in t and t[0] != "."
)
SETTINGS = st.dictionaries(
    NAMES.map(lambda n: f"system.{n.strip('.')}x"), st.text(max_size=3), min_size=1, max_size=8
)


@given(SETTINGS, st.data())
def test_of_manifests_that_differ_in_one_setting_it_alone_is_named(one, data):
    name = data.draw(st.sampled_from(sorted(one)))
    one["system.system"] = "bm25"
    other = one | {name: one[name] + "!"}
    found = differences(one.items(), other.items())
    assert [d.setting for d in found] == [name]
    assert differences(one.items(), one.items()) == ()


@given(trials(), MEASURES)
def test_the_usual_scoring_is_that_of_evaluate(trial, measure):
    run, qrels = Run.of(trial[0]), Qrels.of(trial[1])
    scores = score_run(qrels, run, [measure])
    values = rescored(run, qrels, Scoring(parse_measure(measure)))
    assert np.array_equal(values, scores.values[0])
    assert defined_mean(values, parse_measure(measure)) == scores.mean_values()[0]


@given(trials(), MEASURES)
def test_the_best_order_of_ties_is_best_and_the_worst_is_worst(trial, measure):
    run, qrels = Run.of(trial[0]), Qrels.of(trial[1])
    values = {
        t: rescored(run, qrels, Scoring(parse_measure(measure), ties=t))
        for t in ("best", "trec", "ascending", "expected", "worst")
    }
    for order in ("trec", "ascending", "expected"):
        assert (values["best"] >= values[order] - 1e-12).all()
        assert (values["worst"] <= values[order] + 1e-12).all()


@given(trials(), MEASURES)
def test_every_other_scoring_keeps_the_queries_and_stays_within_its_bounds(trial, measure):
    run, qrels = Run.of(trial[0]), Qrels.of(trial[1])
    one = parse_measure(measure)
    for other in (*other_rules(one), *other_measures(one, qrels)):
        values = rescored(run, qrels, other.scoring)
        assert len(values) == len(qrels)
        known = values[~np.isnan(values)]
        if not one.geometric:
            assert ((known >= 0) & (known <= 1 + 1e-12)).all()


@settings(max_examples=25)  # each scores a run some thirty times
@given(trials(), trials(), MEASURES)
def test_an_explanation_turns_round_with_its_sides(trial, another, measure):
    qrels = Qrels.of(trial[1])
    sides = [
        ComparedResult(name, (), run=Run.of(t[0]), qrels=qrels) for name, t in (("a", trial), ("b", another))
    ]
    there = explained(sides[0], sides[1], parse_measure(measure))
    back = explained(sides[1], sides[0], parse_measure(measure))
    assert there.gap == -back.gap
    assert sorted((e.kind, e.change, abs(e.gap)) for e in there.effects) == sorted(
        (e.kind, e.change, abs(e.gap)) for e in back.effects
    )
    assert abs(there.unexplained) <= abs(there.gap)
    for e in there.effects:
        if not math.isnan(e.explains):
            assert math.isclose(e.gap, there.gap * (1 - e.explains), abs_tol=1e-9)


@given(trials(), trials())
def test_every_judged_query_is_won_lost_or_tied_and_ranks_are_those_of_the_runs(trial, another):
    first, second, qrels = Run.of(trial[0]), Run.of(another[0]), Qrels.of(trial[1])
    scores = [score_run(qrels, r, ["nDCG@10"]) for r in (first, second)]
    if not all(s.answered.any() for s in scores):
        return
    found = with_documents(query_differences("nDCG@10", ("a", "b"), *scores), qrels, first, second)
    assert sorted((*found.won, *found.lost, *found.tied)) == sorted(trial[1])
    assert {m.query for m in found.up} <= set(found.won)
    assert {m.query for m in found.down} <= set(found.lost)
    sizes = [m.difference for m in found.up]
    assert sizes == sorted(sizes, reverse=True)
    orders = [{q: list(r) for q, r in run.to_dict().items()} for run in (first, second)]
    for m in (*found.up, *found.down):
        assert m.documents  # a value that changed has a relevant document that moved
        for d in m.documents:
            for order, rank in zip(orders, (d.before, d.after), strict=True):
                ranking = order.get(m.query, [])
                assert rank == (ranking.index(d.document) + 1 if d.document in ranking else None)
            assert d.grade == trial[1][m.query][d.document]
