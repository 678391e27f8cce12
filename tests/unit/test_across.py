"""Comparisons across datasets: the two levels of chance, and on how many datasets a system is better."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.shown import shown
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.errors import BadValue, UnknownName
from weir.stats.compare import (
    ComparisonMethod,
    DatasetCounts,
    ScoreTable,
    across,
    compared,
    compared_across,
    pooled,
    tally,
    verdicts_across,
)
from weir.stats.resampling import Draws, bounds, resampled_counts, two_level_means

FAST = ComparisonMethod(draws=2_000)
TWO = replace(FAST, interval="two-level")


def drawn(dataset: str, steps: list[float], n: int = 40, seed: int = 1) -> ScoreTable:
    """Systems s0, s1 ... that differ from a common row by these steps and a little noise."""
    draw = np.random.default_rng([seed, *dataset.encode()])
    rows = draw.beta(1, 2, n) + draw.normal(0, 0.05, (len(steps), n)) + np.array(steps)[:, None]
    return ScoreTable(dataset, "m", tuple(f"s{k}" for k in range(len(steps))), rows)


UNITS = {
    "up": [drawn("up", [0, 0.2])],
    "down": [drawn("down", [0, -0.2])],
    "same": [drawn("same", [0, 0])],
    "group": [drawn("g1", [0, 0.3], 80), drawn("g2", [0, -0.05], 10)],
}
ENOUGH = UNITS | {"more": [drawn("more", [0, 0.1], 2)], "most": [drawn("most", [0, 0.05], 2)]}
"""As many datasets as an interval takes."""


def test_two_level_means_are_a_loop_written_out():
    """The same samples, one dataset and one query after the other."""
    parts = [[t.values for t in tables] for tables in UNITS.values()]
    found = two_level_means(parts, Draws(50, 4))
    first, *others = Draws(50, 4).generator().spawn(6)
    times = next(resampled_counts(4, 50, first)).astype(int)
    expected = np.zeros((50, 2))
    streams = iter(others)
    for number, dataset in enumerate(parts):
        for values in dataset:
            taken = iter(next(resampled_counts(values.shape[1], int(times[:, number].sum()), next(streams))))
            for sample in range(50):
                for _ in range(times[sample, number]):
                    expected[sample] += values @ next(taken) / values.shape[1] / len(dataset) / 4
    assert found == pytest.approx(expected, abs=1e-12)


def test_two_levels_add_the_chance_of_queries_to_that_of_datasets():
    """Variance: that of means over D datasets drawn anew, plus the average variance of a dataset's mean over D."""
    parts = [[drawn(f"d{k}", [0.02 * k], 15).values] for k in range(12)]
    means = np.array([v.mean() for (v,) in parts])
    within = np.mean([v.var() / 15 for (v,) in parts])
    found = two_level_means(parts, Draws(60_000))
    assert found.mean() == pytest.approx(means.mean(), abs=1e-3)
    assert found.var() == pytest.approx((means.var() + within) / 12, rel=0.04)
    without = two_level_means([[np.full((1, 9), m)] for m in means], Draws(60_000))
    assert without.var() == pytest.approx(means.var() / 12, rel=0.04)


def test_an_interval_of_two_levels():
    joined = across(ENOUGH, "6 datasets")
    plain, two = compared(joined, method=replace(FAST, interval="percentile")), compared(joined, method=TWO)
    assert (two.pairs[0].p, two.pairs[0].difference) == (plain.pairs[0].p, plain.pairs[0].difference)
    assert two.pairs[0].high - two.pairs[0].low > plain.pairs[0].high - plain.pairs[0].low
    parts = [[t.values for t in ENOUGH[dataset]] for dataset in sorted(ENOUGH)]
    means = two_level_means(parts, Draws(10_000))
    order = [joined.systems.index(s.system) for s in two.standings]
    by_name = {s.system: at for s, at in zip(two.standings, order, strict=True)}
    first, second = by_name[two.pairs[0].first], by_name[two.pairs[0].second]
    ends = np.quantile(means[:, second] - means[:, first], [0.025, 0.975])
    assert (two.pairs[0].low, two.pairs[0].high) == pytest.approx(tuple(ends), abs=1e-12)
    standing = two.standings[0]
    assert (standing.low, standing.high) == pytest.approx(
        np.quantile(means[:, order[0]], [0.025, 0.975]), abs=1e-12
    )
    assert "queries within each" in shown("compare", [two])
    few = compared(across(UNITS, "4 datasets"), method=TWO)
    assert (few.pairs[0].low, few.standings[0].low) == (None, None)
    assert "too few datasets for an interval: 4, at least 6 are needed" in shown("compare", [few])


def test_on_one_dataset_the_interval_of_two_levels_is_the_percentile_one():
    table = UNITS["up"][0]
    plain = compared(table, method=replace(FAST, interval="percentile")).pairs
    assert compared(table, method=TWO).pairs == plain
    row = np.linspace(0, 1, 9)[None]
    assert (bounds(row, "two-level") == bounds(row, "percentile")).all()


def test_the_order_of_datasets_and_parts_changes_nothing():
    turned = {dataset: UNITS[dataset][::-1] for dataset in reversed(UNITS)}
    for method in (FAST, TWO):
        assert compared_across(turned, "x", "s0", method) == compared_across(UNITS, "x", "s0", method)


def test_datasets_won_and_lost_against_a_baseline():
    found = compared_across(UNITS, "4 datasets", "s0", FAST)
    (counted,) = found.tallies
    assert counted.system == "s1"
    assert (counted.better, counted.worse, counted.equivalent, counted.not_separable) == (2, 1, 0, 1)
    assert (counted.higher, counted.lower, counted.equal) == (found.pairs[0].won, found.pairs[0].lost, 0)
    assert counted.difference == found.pairs[0].difference
    assert compared_across(UNITS, "4 datasets", None, FAST).tallies == ()
    known = [compared(t, "s0", FAST) for tables in UNITS.values() for t in tables]
    assert compared_across(UNITS, "4 datasets", "s0", FAST, known) == found
    text = tally(counted)
    assert re.fullmatch(
        r"s1 against s0 on 4 datasets, by mean: higher on \d, lower on \d \([+-]0\.\d{4} over all\); "
        r"by verdict: better on 2, worse on 1, not separable on 1",
        text,
    )
    assert f"\n{text}\n" in shown("compare", [found])
    assert f"\nm: {text}\\par\n" in shown("compare", [found], "latex")
    assert f"m: {text}\n" in shown("compare", [found], "markdown")
    close = compared_across(
        {"a": UNITS["same"], "b": UNITS["same"]}, "x", "s0", replace(FAST, margin=0.1)
    ).tallies[0]
    assert "equivalent on 2, not separable on 0" in tally(close)
    assert "equal on 1 (+0.0000" in tally(DatasetCounts("a", "b", 1, 0.0, 0, 0, 1, 0, 0, 0, 1))


def test_the_parts_of_a_group_weigh_the_same_in_its_verdict():
    group = pooled(UNITS["group"], "group")
    means = [np.mean([t.values[k].mean() for t in UNITS["group"]]) for k in (0, 1)]
    assert group.values.mean(axis=1) == pytest.approx(means, abs=1e-12)
    assert (group.values.shape, group.dataset) == ((2, 90), "group")
    assert pooled(UNITS["up"], "any") is UNITS["up"][0]
    for tables in ([], [UNITS["up"][0], replace(UNITS["down"][0], measure="n")]):
        with pytest.raises(BadValue, match="same systems"):
            pooled(tables, "g")


def test_a_baseline_that_is_not_there():
    with pytest.raises(UnknownName, match="baseline named 's9'; did you mean"):
        compared_across(UNITS, "x", "s9", FAST)


def test_a_results_folder_across_datasets(tmp_path, capsys):
    collections = [
        str(write_collection(tmp_path / n, mark=m))
        for n, m in (("first", ""), ("second", "?"), ("third", "!"))
    ]
    results = str(tmp_path / "results")
    wanted = [a for c in collections for a in ("-d", c)]
    assert main(["run", *wanted, "-s", "bm25", "-s", "rm3", "-m", "AP", "-o", results, "-q"]) == 0
    capsys.readouterr()
    assert main(["compare", results, "--baseline", "bm25", "--interval", "two-level"]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"\nrm3 against bm25 on 3 datasets, by mean: higher on \d, lower on \d.*not separable on \d\n", out
    )
    assert out.count("against bm25 on") == 1
    assert main(["compare", results, "--baseline", "bm25", "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    (counted,) = last["tallies"]
    assert counted["better"] + counted["worse"] + counted["equivalent"] + counted["not_separable"] == 3
    assert (counted["system"], counted["baseline"], counted["datasets"]) == ("rm3", "bm25", 3)


def tables_of(values, systems="abcde"):
    """A table of each dataset, of values float64[D, K, Q]."""
    return {f"d{d}": [ScoreTable(f"d{d}", "nDCG@10", tuple(systems), of)] for d, of in enumerate(values)}


def test_verdicts_across_are_those_of_compare_and_pairs_with_few_collections_in_common_have_none():
    draw = np.random.default_rng(5)
    level = np.array([0, 0, 0.1, 0.2, 0.4])[:, None]
    values = draw.normal(level, 0.1, (12, 5, 12)) + draw.normal(0, 0.2, (12, 1, 12))
    datasets = tables_of(values)
    found = verdicts_across(datasets)
    whole = compared(across(datasets, "12 datasets"))
    assert found == {(p.second, p.first): p.verdict for p in whole.pairs} | {
        (p.first, p.second): p.reversed.verdict for p in whole.pairs
    }
    assert {"better", "worse", "not separable"} <= set(found.values())
    for d in list(datasets)[1:]:  # e has one collection, and the verdicts of the others know nothing of it
        datasets[d] = [datasets[d][0].ordered([0, 1, 2, 3])]
    assert {pair for pair in found if "e" in pair} & verdicts_across(datasets).keys() == set()


@pytest.mark.parametrize(("here", "there"), [([0, 1, 2], [2, 0, 3]), ([0, 1], [2, 3]), ([3, 1], [1, 3])])
def test_splits_of_one_collection_compare_the_systems_that_have_both(here, there):
    first, second = drawn("dev", [0, 0.2, 0.3, -0.2]), drawn("test", [0, 0.2, 0.3, -0.2])
    both = [one for one in here if one in there]
    found = verdicts_across({"one": [first.ordered(here), second.ordered(there)]})
    alone = verdicts_across({"one": [first.ordered(both), second.ordered(both)]}) if len(both) > 1 else {}
    assert found == alone
    assert bool(found) == (len(both) > 1)


def test_equal_systems_on_nine_collections_get_a_narrower_range_on_at_most_one_board_in_twenty():
    """300 boards of five equal systems; verdicts within each collection alone err on 29%."""
    narrower = 0
    for seed in range(300):
        draw = np.random.default_rng([7, seed])
        values = draw.beta(1, 2, (9, 1, 50)) + draw.normal(0, 0.1, (9, 5, 50))
        narrower += "better" in verdicts_across(tables_of(values), ComparisonMethod(draws=1_000)).values()
    assert narrower <= 0.05 * 300 + 2 * 3.8
