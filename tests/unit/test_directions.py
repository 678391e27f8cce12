"""More is not better by every measure: verdicts, stars, ranks and gates ask which way it goes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.errors import BadValue
from weir.measures.measure import MEASURES, direction, measure, parse_measure
from weir.plugins.labels.pools import relabelled
from weir.plugins.llm.reordering import reorderings
from weir.stats.compare import ComparisonMethod
from weir.stats.order_agreement import STATISTICS_OF_ORDERS, order_agreement, order_tables
from weir.stats.score_rows import long_table, result_rows

NEITHER = ["Judged@10", "NumRet", "NumRel", "NumNonrelRet", "IDCG@10"]
LESS = ["Hole@10", "RBP_residual"]
FAST = ComparisonMethod("t")


def scored(values, name="Hole@10"):
    queries = Ids.of([f"q{n}" for n in range(len(values))])
    return Scores((name,), queries, np.array([values], float), np.ones(len(values), bool))


@pytest.mark.parametrize(("name", "said"), [("Hole@10", True), ("nDCG@10", False), ("Judged@10", False)])
def test_a_star_on_the_least_says_that_less_is_better(name, said):
    rows = [
        row
        for system, values in (("a", [0.2] * 8), ("b", [0.4] * 8))
        for row in result_rows(scored(values, name), "mine", system)
    ]
    assert (f"by {name} less is better" in long_table(rows).notes) == said


def test_every_measure_says_which_way_it_goes():
    others = [name for name in MEASURES.names() if MEASURES.get(name).better != "more"]
    less = [*LESS, "Leak", "Stale", "Superseded"]  # the last three need rules of documents
    assert sorted(others) == sorted(name.partition("@")[0] for name in NEITHER + less)
    assert [direction(name) for name in ("p-MRR", "somebody's measure")] == [1, 1]
    assert direction("condensed(Judged@10)") == 0
    assert direction("judged_10") == direction("Judged@10")


@settings(max_examples=30)
@given(
    st.sets(
        st.sampled_from(["latency_ms", "cost", "nDCG@10", "Hole@10", "map", "p-MRR", "faithfulness"]),
        min_size=1,
    )
)
def test_a_direction_that_is_assumed_is_said(names):
    values = {name: {f"q{n}": n / 8 for n in range(8)} for name in names}
    text = str(weir.compare({"a": weir.Scores.from_dict(values), "b": weir.Scores.from_dict(values)}))
    said = [line for line in text.splitlines() if "more is taken as better" in line]
    assert len(said) == bool(names & {"latency_ms", "cost", "faithfulness"})
    assert all(
        (name in said[0]) == (name in {"latency_ms", "cost", "faithfulness"}) for name in names if said
    )


def test_a_measure_of_a_plugin_is_better_where_more_unless_it_says_otherwise():
    for better, way in (("more", 1), ("less", -1), ("neither", 0)):
        name = f"Own{better}"
        measure(name, **({} if better == "more" else {"better": better}))(
            lambda j, *, k=None: np.zeros(len(j))
        )
        assert direction(name) == way
        del MEASURES._known[name]  # so that no test leaves a measure to the next


unit = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=6, max_size=12)


@settings(max_examples=40)
@given(unit, st.randoms(use_true_random=False))
def test_less_is_better_is_more_is_better_of_the_complement(values, random):
    """Verdicts, ranks, letters, stars, wins and gates of Hole are those of 1 - Hole as a measure of quality."""
    other = [min(1, max(0, v + random.choice((-0.2, 0, 0.1, 0.3)))) for v in values]
    systems = {"a": values, "b": other}
    less = {name: scored(v) for name, v in systems.items()}
    more = {name: scored([1 - x for x in v], "P@10") for name, v in systems.items()}
    [one], [two] = weir.compare(less, method=FAST), weir.compare(more, method=FAST)
    assert [(s.system, s.best, s.worst, s.letters) for s in one.standings] == [
        (s.system, s.best, s.worst, s.letters) for s in two.standings
    ]
    for left, right in zip(one.pairs, two.pairs, strict=True):
        assert (left.verdict, left.won, left.lost) == (right.verdict, right.won, right.lost)
        assert left.difference == pytest.approx(-right.difference, abs=1e-12)
    gates = [weir.gate({}, by["a"], by["b"])[0] for by in (less, more)]
    assert gates[0].verdict == gates[1].verdict
    assert gates[0].lost == gates[1].lost
    assert gates[0].low == pytest.approx(-gates[1].low, abs=1e-12, nan_ok=True)
    starred = [
        [
            cell.best
            for line in long_table([r for n, s in by.items() for r in result_rows(s, "d", n)]).rows
            for cell in line
        ]
        for by in (less, more)
    ]
    assert starred[0] == starred[1]


@pytest.mark.parametrize("name", NEITHER)
def test_a_measure_without_a_direction_has_no_verdict_rank_or_star(name):
    by = {"a": scored([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], name), "b": scored([0.9] * 6, name)}
    [one] = weir.compare(by)
    assert {p.verdict for p in one.pairs} == {"-"}
    assert {(s.best, s.worst, s.letters) for s in one.standings} == {(None, None, "")}
    shown = repr(weir.compare(by))
    assert f"{name}: more is neither better nor worse" in shown
    table = long_table([row for n, s in by.items() for row in result_rows(s, "d", n)])
    assert not any(cell.best for line in table.rows for cell in line)
    with pytest.raises(BadValue, match="neither better nor worse"):
        weir.gate({}, by["a"], by["b"])


def test_a_dataset_without_a_value_of_a_measure_is_left_out_of_it_by_name(tmp_path):
    @measure("Graded")
    def graded(j, *, k=None):
        return np.where(np.diff(j.ideal_ptr) > 1, 1.0, np.nan)

    documents, queries = {f"d{n}": f"weir w{n}" for n in range(9)}, {f"q{n}": f"w{n}" for n in range(6)}
    datasets = [
        weir.Dataset.of(documents, queries, {q: {f"d{q[1]}": 1} | more for q in queries}, name=name)
        for name, more in (("some", {"d8": 0}), ("none", {}))
    ]
    try:
        weir.benchmark(datasets, ["bm25", "rm3"], ["Graded", "RR"], out=tmp_path)
        found = weir.compare(tmp_path)
        assert [(c.dataset, c.measure) for c in found] == [
            ("some", "Graded"), ("some", "RR"), ("none", "RR"), ("2 datasets", "RR")
        ]  # fmt: skip
        assert "rm3 on none is left out of Graded, which has no value there" in str(found)
    finally:
        del MEASURES._known["Graded"]


QRELS = {f"q{n}": {"a": 1, "b": 0} for n in range(8)}
FEW = {q: {"a": 1.0, "x": 0.5} for q in QRELS}
MANY = {q: {"b": 2.0, "a": 1.0, "y": 0.5} for q in QRELS}


def test_comparisons_that_name_no_measure_have_verdicts_of_quality_alone():
    assert [c.measure for c in weir.compare(QRELS, FEW, MANY)] == ["nDCG@10", "R@100"]
    [asked] = weir.compare(QRELS, FEW, MANY, measures="Judged@10")
    assert {p.verdict for p in asked.pairs} == {"-"}


def test_fewer_holes_pass_a_gate_and_more_fail():
    holes = {q: {"a": 3.0, "x": 2.0, "y": 1.0, "z": 0.5} for q in QRELS}
    none = {q: {"a": 3.0, "b": 2.0} for q in QRELS}
    [better], [worse] = (weir.gate(QRELS, *pair, "Hole@10") for pair in ((holes, none), (none, holes)))
    assert (better.verdict, worse.verdict) == ("pass", "fail")
    assert "upper bound" in repr(weir.gate(QRELS, none, holes, "Hole@10"))
    with pytest.raises(BadValue, match=r"max_drop names AP, and what is gated is nDCG@10"):
        weir.gate(QRELS, holes, none, max_drop={"AP": 0.02})
    [moves] = weir.diff(QRELS, holes, none, measure="Hole@10")
    assert (len(moves.won), len(moves.lost)) == (8, 0)


MIXED = {q: MANY[q] if n < 4 else {"x": 2.0, "a": 1.0} for n, q in enumerate(QRELS)}
HOLES = {q: {"x": 3.0, "y": 2.0, "a": 1.0} for q in QRELS}
ANEW = {q: row | {"x": 1} for q, row in QRELS.items()}


def test_orders_and_gains_of_less_is_better_are_those_of_the_complement():
    """What systems are ordered by, and what a re-ranking gains: holes are the complement of what is judged."""
    runs = {name: weir.Run.of(of) for name, of in (("holes", HOLES), ("mixed", MIXED), ("many", MANY))}
    first, second = weir.Qrels.of(QRELS), weir.Qrels.of(ANEW)
    less, more = (order_agreement(runs, first, second, parse_measure(m)) for m in ("Hole@2", "P(rel=0)@2"))
    assert less.first == pytest.approx([1 - mean for mean in more.first])
    assert tuple(name for name, *_ in less.intervals) == STATISTICS_OF_ORDERS
    assert [getattr(less, name) for name in STATISTICS_OF_ORDERS] == [
        getattr(more, name) for name in STATISTICS_OF_ORDERS
    ]
    best_first = [line[0].text for line in order_tables([less])[0].rows[1:]]
    assert best_first == [line[0].text for line in order_tables([more])[0].rows[1:]]
    by_draws = order_agreement(runs, first, second, parse_measure("P(rel=0)@2"), test="permutation")
    assert "(paired permutation-test, Holm)" in str(order_tables([by_draws])[2])
    assert "(paired t-test, Holm)" in str(order_tables([more])[2])
    with pytest.raises(BadValue, match="order systems by another measure"):
        order_agreement(runs, first, second, parse_measure("Judged@2"))
    gains = {
        name: reorderings(runs["holes"], {"many": runs["many"]}, first, parse_measure(name))[0].gain
        for name in ("Hole@2", "P(rel=0)@2", "NumRet")
    }
    assert [(one.hurt, one.helped) for one in gains.values()] == [(0, 1), (0, 1), (0, 0)]


def test_geometric_means_are_no_logarithms_wherever_systems_are_scored_again():
    runs = {name: weir.Run.of(of) for name, of in (("few", FEW), ("many", MANY))}
    first, second, measure = weir.Qrels.of(QRELS), weir.Qrels.of(ANEW), parse_measure("gmAP")
    means = [[weir.evaluate(q, run, "gmAP").means()["gmAP"] for run in runs.values()] for q in (QRELS, ANEW)]
    orders = order_agreement(runs, first, second, measure)
    assert [*orders.first, *orders.second] == pytest.approx([*means[0], *means[1]])
    gain = reorderings(runs["many"], {"few": runs["few"]}, first, measure)[0].gain
    assert [gain.after, gain.before] == pytest.approx(means[0])
    assert gain.change == pytest.approx(means[0][0] - means[0][1])
    rows, _ = relabelled(Subject("s", qrels=first, runs=runs), second, measure)
    assert all(math.isnan(row.low) and row.change == row.after - row.before for row in rows)


def test_a_report_counts_no_verdicts_of_a_measure_without_a_direction(tmp_path):
    weir.benchmark("brook-news", ["bm25", "rm3"], "Judged@10", out=tmp_path)
    text = weir.report(tmp_path, audit=False).to_markdown()
    assert "| 0/0/0 |" in text
    assert "| baseline |" in text
