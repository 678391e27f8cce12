"""Verdicts that hold however often one looks: bets and bounds, the gate's file, and systems decided while judging."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.test_gate import QUERIES, gate, qrels, run
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.errors import BadValue, FormatError
from weir.measures import parse_measure
from weir.plugins.questions.decision import decide, decision_of
from weir.plugins.questions.gate_looks import FORMAT, look, read_seen, seen_rules, sequential_gates
from weir.stats.compare import ScoreTable
from weir.stats.gate import GateRules
from weir.stats.sequential import BETS, by_lot, e_values, first_at, lower_bounds

DIFFERENCES = st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=30).map(np.array)


@given(DIFFERENCES, st.floats(-0.9, 0.9))
def test_an_e_value_is_the_money_of_six_gamblers(differences, bound):
    money = BETS / BETS.sum()
    for n, one in enumerate(differences):
        money = money * (1 - BETS + BETS * (1 + one) / (1 + bound))
        assert e_values(differences, bound)[n] == pytest.approx(money.sum(), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("mean", [-0.5, 0.0, 0.25])
def test_nobody_gains_by_betting_against_what_is_true(mean):
    rows = np.array(list(product([-1.0, 0.5, 1.0], repeat=6)))
    chances = np.array([0.0, 0.0, 0.0])
    chances[:2] = np.linalg.solve([[1, 1], [-1, 0.5]], [0.8, mean - 0.2])
    chances[2] = 0.2
    weights = np.prod(
        np.array([chances[{-1.0: 0, 0.5: 1, 1.0: 2}[x]] for x in rows.ravel()]).reshape(rows.shape), 1
    )
    assert weights.sum() == pytest.approx(1)
    assert weights @ e_values(rows, mean) == pytest.approx(np.ones(6))


@settings(max_examples=40)
@given(DIFFERENCES, st.sampled_from([0.5, 0.9, 0.975]))
def test_a_bound_is_the_largest_mean_that_was_ever_refuted(differences, level):
    bounds, enough = lower_bounds(differences, level), 1 / (1 - level)
    assert (np.diff(bounds) >= 0).all()
    for n, bound in enumerate(bounds, 1):
        assert bound <= 1
        if bound > -1:
            assert e_values(differences[:n], bound).max() >= enough * (1 - 1e-6)
        if -1 < bound + 1e-9 < 1:
            assert e_values(differences[:n], bound + 1e-9).max() < enough * (1 + 1e-6)


def test_bounds_of_many_queries_are_carried_and_the_last_is_exact():
    d = np.random.default_rng(0).normal(0.05, 0.2, 1000).clip(-1, 1)
    last = lower_bounds(d, 0.975)[-1]
    assert last == pytest.approx(max(lower_bounds(d[:n], 0.975)[-1] for n in (990, 1000)))
    assert last > 0
    assert first_at(e_values(d), 20) == 1 + int(np.flatnonzero(e_values(d) >= 20)[0])
    assert first_at(e_values(-d), 20) is first_at(e_values(np.zeros(50)), 20) is None


@pytest.mark.parametrize("values", [[], [1.1], [np.nan], [0.0, -2.0]])
def test_differences_outside_the_unit_are_refused(values):
    with pytest.raises(BadValue, match="expected numbers from -1 to 1"):
        e_values(np.array(values))
    with pytest.raises(BadValue):
        lower_bounds(np.array([0.5]), 1.0)
    with pytest.raises(BadValue):
        e_values(np.array([0.5]), -1.0)


@pytest.mark.parametrize(
    "equal", [lambda r, n: r.beta(1, 3, n) - r.beta(1, 3, n), lambda r, n: r.choice([-1, 0, 1], n)]
)
def test_equal_systems_are_rarely_told_apart_after_each_query(equal):
    rows = equal(np.random.default_rng(1), (2000, 300)).astype(float)
    ever = np.maximum(e_values(rows), e_values(-rows)).max(axis=1) / 2 >= 20
    assert ever.mean() <= 0.05
    assert ever.any()  # the level is used


def test_the_lot_depends_on_names_alone():
    names = [f"q{n}" for n in range(50)]
    order = by_lot(names)
    assert sorted(order) == sorted(names) != order
    assert by_lot(reversed(names)) == order
    assert [name for name in by_lot([*names, "new"]) if name != "new"] == order
    assert by_lot(names, seed=1) != order


# The gate.


def table(after, before=0.5, names=None, measure="nDCG@10"):
    after = np.asarray(after, float)
    queries = Ids.of(names or [f"q{n}" for n in range(len(after))])
    values = np.stack([np.full(len(after), before), after])
    return ScoreTable("d", measure, ("baseline", "candidate"), values, span=1.0, queries=queries)


def looked(tmp_path, *tables, rules=None):
    rules, path = rules or GateRules(), tmp_path / "state.json"
    seen: list = []
    for one in tables:
        seen = look(path, seen, [("", one)])
    return sequential_gates(seen, rules)[0]


def test_looks_add_what_is_new_and_keep_what_was_seen(tmp_path):
    values = np.random.default_rng(0).uniform(0.5, 0.9, 40)
    one = looked(tmp_path, table(values[:10]), table(values[:10]), table(values[:25]), table(values))
    assert (one.queries, one.looks, one.verdict) == (40, 3, "pass")
    d = values - 0.5
    names = [f"q{n}" for n in range(40)]
    order = [*by_lot(names[:10]), *by_lot(names[10:25]), *by_lot(names[25:])]
    in_order = d[[names.index(name) for name in order]]
    assert one.low == pytest.approx(lower_bounds(in_order, 0.95)[-1])
    assert one.e_allowed == pytest.approx(e_values(in_order, -0.01).max())
    assert one.decided == 1 + int(np.flatnonzero(e_values(in_order, -0.01) >= 20)[0])
    gone = looked(tmp_path, table(values[:10]), table(values[10:], names=names[10:]))
    assert gone.queries == 40


def test_verdicts_need_a_mean_beyond_the_drop_and_stand(tmp_path):
    assert looked(tmp_path, table([0.3] * 40)).verdict == "fail"
    assert looked(tmp_path, table([0.5] * 40)).verdict == "undecided"  # within, and not certain of it
    assert looked(tmp_path, table([0.5] * 600)).verdict == "pass"
    assert looked(tmp_path, table([0.45] * 200), rules=GateRules(max_drop=0.06)).verdict == "undecided"
    less = looked(tmp_path, table([0.9] * 40, measure="Hole@10"))
    assert (less.verdict, less.difference) == ("fail", pytest.approx(0.4))
    assert 0 < less.high <= less.low <= 1  # of a rise the worse side is the upper one
    first = looked(tmp_path, table([0.2] * 30))
    then = looked(tmp_path, table([0.2] * 30), table([0.2] * 30 + [1.0] * 70))
    assert (then.verdict, then.decided) == (first.verdict, first.decided)


def test_an_undecided_gate_says_how_many_queries_would_decide_it(tmp_path):
    draw = np.random.default_rng(3)
    one = looked(tmp_path, table(draw.uniform(0.3, 0.8, 30)))
    assert one.verdict == "undecided"
    assert one.needed is not None
    decided = 0
    for _ in range(40):
        more = draw.uniform(0.3, 0.8, one.needed)
        decided += looked(tmp_path, table(more)).verdict != "undecided"
    assert decided >= 24


def test_what_cannot_be_looked_at_again_is_refused(tmp_path):
    path = tmp_path / "state.json"
    [seen] = look(path, [], [("", table([0.5, 0.6]))])
    with pytest.raises(
        BadValue, match=r"nDCG@10 of query 'q1' was 0.6000 for the candidate .* and is 0.7000 now"
    ):
        look(path, [seen], [("", table([0.5, 0.7]))])
    with pytest.raises(BadValue, match="keeps no P@5 on d"):
        look(path, [seen], [("", table([0.5, 0.6])), ("", table([0.5, 0.6], measure="P@5"))])
    with pytest.raises(BadValue, match="keeps nDCG@10 on d, which is not gated now"):
        look(path, [seen], [])
    with pytest.raises(BadValue, match=r"within 0\.\.1"):
        look(path, [], [("", replace(table([0.5], measure="DCG@10"), span=np.inf))])


@pytest.mark.parametrize(
    "damage",
    [
        {"rules": None},
        {"rules": []},
        {"rules": {}},
        {"rules": {"max_drop": 0.01, "drops": [1], "confidence": 0.95}},
        {"cases": None},
        {"cases": [1]},
        {"cases": []},
        {"cases": [{"looks": [float("inf")]}]},
    ],
)
def test_a_damaged_file_of_looks_is_refused(tmp_path, damage):
    path = tmp_path / "state.json"
    case = {"dataset": "d", "group": "", "measure": "P@1", "queries": ["q"], "before": [0], "after": [1]}
    rules = {"max_drop": 0.01, "drops": {}, "confidence": 0.95}
    whole = {"format": FORMAT, "rules": rules, "cases": [{**case, "looks": [1]}]}
    path.write_text(json.dumps(whole))
    assert len(read_seen(path, GateRules())) == 1
    assert seen_rules(whole) == GateRules()
    if isinstance(damage.get("cases"), list):
        damage = {"cases": [{**case, **one} if isinstance(one, dict) else one for one in damage["cases"]]}
    path.write_text(json.dumps({**whole, **damage}))
    with pytest.raises((FormatError, BadValue), match=r"state\.json"):
        read_seen(path, GateRules())
    if "rules" in damage:
        with pytest.raises((KeyError, TypeError, ValueError)):
            seen_rules({**whole, **damage})


def test_the_command_looks_again_and_refuses_a_changed_past(tmp_path, capsys):
    state, judged = str(tmp_path / "state.json"), qrels(tmp_path)
    worse, same = run(tmp_path, "worse", *QUERIES), run(tmp_path, "same")
    old = run(tmp_path, "old")
    assert gate(judged, old, worse, "--sequential", state) == 1
    first = capsys.readouterr()
    assert first.out.startswith("FAIL  nDCG@10: candidate - baseline -0.3691 over 12 queries, at least ")
    assert "decided after 12 of 12 queries: e-value " in first.out
    assert "another candidate takes another file" in first.err
    assert gate(judged, old, worse, "--sequential", state, "--json") == 1
    [record] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (record["verdict"], record["queries"], record["looks"]) == ("fail", 12, 1)
    assert gate(judged, old, same, "--sequential", state) == 2
    assert "a changed past takes another file" in capsys.readouterr().err
    assert gate(judged, old, worse, "--sequential", state, "--max-drop", "0.02") == 2
    assert "was begun with max_drop 0.01, and now it is 0.02" in capsys.readouterr().err
    assert gate(judged, old, worse, "--sequential", state, "--junit", str(tmp_path / "x.xml")) == 2
    capsys.readouterr()
    other = str(tmp_path / "other.json")
    assert gate(judged, old, same, "--sequential", other) == 3
    assert gate(judged, old, same, "--sequential", other, "--allow-undecided", "--markdown") == 0
    assert "| nDCG@10 | UNDECIDED |" in capsys.readouterr().out


def test_groups_can_fail_and_need_not_pass(tmp_path):
    old, worse = run(tmp_path, "old"), run(tmp_path, "worse", *QUERIES[:6])
    found = weir.gate_sequentially(
        tmp_path / "state.json", qrels(tmp_path), old, worse, by="prefix:_", max_drop=0.5, confidence=0.6
    )
    assert [one.group for one in found] == ["", "pay", "ship"]
    assert found[0].tests == 3
    found.save(tmp_path / "found.json")
    assert weir.ResultSet.load(tmp_path / "found.json")[2] == found[2]


# Which system is best.


def test_a_system_is_best_once_it_beats_each_other():
    draw = np.random.default_rng(0)
    values = np.stack(
        [draw.beta(2, 2, 400) * 0.5, 0.4 + draw.beta(2, 2, 400) * 0.5, draw.beta(2, 2, 400) * 0.6]
    )
    found = decide(values, ("a", "b", "c"), "nDCG@10", 500)
    assert (found.best, found.judged, found.queries, found.enough) == ("b", 400, 500, pytest.approx(60))
    assert found.decided is not None
    assert all(lead.low > 0 and lead.e_value >= 60 for lead in found.leads)
    for n in (found.decided - 1, found.decided, 300):
        part = decide(values[:, :n], ("a", "b", "c"), "nDCG@10", 500)
        assert part.decided == (found.decided if n >= found.decided else None)
    assert f"decided after {found.decided} of 500 queries: b is best by nDCG@10" in str(found)
    less = decide(values, ("a", "b", "c"), "Hole@10", 500)
    assert less.best == "a"
    close = decide(np.stack([values[0], values[0]]), ("a", "b"), "nDCG@10", 500, margin=0.05)
    assert close.decided is not None
    with pytest.raises(BadValue, match="two systems or more"):
        decide(values[:1], ("a",), "nDCG@10", 5)


def test_equal_systems_are_rarely_called_best():
    wrong, draw = 0, np.random.default_rng(4)
    for _ in range(100):
        wrong += decide(draw.beta(1, 2, (3, 60)), "abc", "nDCG@10", 60, level=0.5).decided is not None
    assert 0 < wrong <= 50  # at a level of 0.95 few are ever called


def test_queries_count_in_drawn_order_up_to_the_first_that_is_open():
    names = by_lot(f"q{n}" for n in range(30))
    good, bad = ({name: docs for name in names} for docs in (["x", "y"], ["y", "x"]))
    subject = Subject(
        "s", qrels=Qrels.of({names[0]: {"x": 1}}), runs={"good": Run.of(good), "bad": Run.of(bad)}
    )
    new = Qrels.of({name: {"x": 1} for name in names[1:]})
    measure = parse_measure("nDCG@10")
    assert decision_of(subject, None, names[:1], measure) is None
    assert decision_of(subject, None, names[1:], measure).judged == 1
    assert decision_of(subject, new, names[7:8], measure).judged == 7
    found = decision_of(subject, new, (), measure)
    assert (found.judged, found.queries, found.best) == (30, 30, "good")
    assert found.decided is not None
