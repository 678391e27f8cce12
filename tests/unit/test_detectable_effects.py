"""The meeting of tests and their minimum detectable effects: what is printed is found, where nothing can be found it is said."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstat

import weir
from tests.shown import shown
from weir.api.rows import grid_tables, grids_marked
from weir.cli import main
from weir.core.query_metadata import QueryGroups
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.core.tables import tables_as_text
from weir.experiment.comparing import compare_grid
from weir.stats.compare import ComparisonMethod, ScoreTable, compared, compared_by_group
from weir.stats.factors import FactorStudy
from weir.stats.gate import GateRules, gates
from weir.stats.power import POWER, Family, detectable, excess_kurtosis, plan, queries_needed, reach
from weir.stats.resampling import Draws
from weir.stats.score_rows import result_rows
from weir.stats.significance import TESTS, adjusted, all_pairs, p_values

FAST = ComparisonMethod(draws=4_000)


def table(values: np.ndarray, **settings) -> ScoreTable:
    names = tuple(f"s{k}" for k in range(len(values)))
    return ScoreTable("data", "nDCG@10", names, values, span=1.0, queries=None, **settings)


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.05, shape)


def worse_on_all(datasets: int, systems: int) -> dict[tuple[str, str], Scores]:
    """Systems each of which is worse than the one before on every dataset, by more each time."""
    base = 0.5 + noise(3, 40)
    ids = Ids.of([f"q{n:02}" for n in range(40)])
    return {
        (f"d{d:02}", f"s{k}"): Scores(
            ("nDCG@10",), ids, (base - 0.003 * k * (1 + d))[None], np.ones(40, bool), np.ones(40, bool)
        )
        for d in range(datasets)
        for k in range(systems)
    }


@pytest.mark.parametrize(
    ("datasets", "systems", "fewest"), [(2, 2, 6), (3, 3, 7), (5, 5, 9), (10, 8, 11), (3, 8, 11)]
)
def test_too_few_datasets_have_neither_effects_nor_letters_but_a_sentence(datasets, systems, fewest):
    found = compare_grid(worse_on_all(datasets, systems), method=FAST)[-1]
    assert (found.unit, found.count) == ("datasets", datasets)
    assert {s.letters for s in found.standings} == {""}
    assert {(p.verdict, p.detectable) for p in found.pairs} == {("not separable", None)}
    assert found.reach.smallest == min(1, 2.0 ** (1 - datasets) * len(found.pairs)) >= 0.05
    assert (
        min(p.adjusted for p in found.pairs) == found.reach.smallest
    )  # all signs are equal: none could be smaller
    text = shown("compare", [found])
    assert "not separable (too few datasets)" in text
    assert f"{fewest} datasets could bring it below" in text
    assert "largest difference" not in text
    assert "minimum detectable effect" not in text
    assert "group" not in text
    for form in ("markdown", "latex"):
        assert f"{fewest} datasets could bring it below" in shown("compare", [found], form)
        assert "share a letter" not in shown("compare", [found], form)
    assert json.loads(shown("compare", [found], "json"))["reach"]["fewest"] == fewest
    assert shown("compare", [found], "csv").splitlines()[1].split(",")[0] == f"{datasets} datasets"
    # With as many as the sentence says, and the same signs, all are told apart and each has its letter.
    enough = compare_grid(worse_on_all(fewest, systems), method=FAST)[-1]
    assert {p.verdict for p in enough.pairs} == {"worse"}
    assert len({s.letters for s in enough.standings}) == systems


@pytest.mark.parametrize(("queries", "systems", "fewest"), [(2, 2, 6), (5, 2, 6), (5, 4, 8), (10, 8, 11)])
def test_so_it_is_with_few_queries(queries, systems, fewest):
    found = compared(table(noise(5, systems, queries) - 0.2 * np.arange(systems)[:, None]), method=FAST)
    assert {(p.detectable, p.verdict) for p in found.pairs} == {(None, "not separable")}
    assert {s.letters for s in found.standings} == {""}
    assert f"{fewest} queries could bring it below" in shown("compare", [found])


@pytest.mark.parametrize("test", sorted(TESTS))
@pytest.mark.parametrize("correct", ["holm", "bonferroni", "bh", "none"])
def test_no_p_value_is_below_what_is_said_to_be_the_smallest(test, correct):
    for units in (2, 3, 6, 19):
        values = np.arange(3.0)[:, None] + noise(units, 3, units) / 10
        margin = 0.1 if TESTS.get(test).familywise else None  # whose p-values alone a correction is of then
        found = compared(table(values), method=replace(FAST, test=test, correct=correct, margin=margin))
        drawn = 0.75 if test == "tukey" else 1  # whose smallest p-value is drawn, from 4,000
        assert min(p.adjusted for p in found.pairs) >= drawn * found.reach.smallest
        apart = any(p.verdict in ("better", "worse") for p in found.pairs)
        assert found.reach.possible or not apart
        if test in ("permutation", "sign", "wilcoxon") and units < 19:  # all signs are equal: attained
            assert min(p.adjusted for p in found.pairs) == pytest.approx(found.reach.smallest)


def test_too_few_draws_are_said_to_be_too_few():
    few = compared(table(noise(1, 6, 40)), method=ComparisonMethod(draws=200))
    assert (few.reach.possible, few.reach.fewest, few.reach.draws) == (False, None, 300)
    assert "not separable (too few draws)" in shown("compare", [few])
    assert "draws are too few for a test: however large the difference, p (permutation) is" in shown(
        "compare", [few]
    )
    assert compared(table(noise(1, 6, 40)), method=ComparisonMethod(draws=300)).reach.possible


@pytest.mark.parametrize(
    ("units", "systems", "baseline", "test"),
    [
        (7, 2, None, "permutation"),
        (10, 5, "s0", "permutation"),
        (10, 5, None, "permutation"),
        (11, 8, None, "permutation"),
        (19, 5, None, "permutation"),
        (40, 3, None, "permutation"),
        (10, 3, None, "t"),
        (12, 2, None, "bootstrap-shift"),
    ],
)
def test_a_printed_effect_is_found_80_times_in_100(units, systems, baseline, test):
    """Printed from one sample, sought in another in which one system is better by it than all others."""
    repetitions, method = 2_000, ComparisonMethod(test, draws=4_000)
    before, after = noise(units + systems, 2, repetitions, systems, units)
    printed = compared(table(before[0]), baseline, method)
    one = next(p for p in printed.pairs if {p.first, p.second} == {"s0", "s1"})
    shift = one.detectable / (before[0, 1] - before[0, 0]).std(ddof=1)
    # Other samples have other tails: what is printed of each, by the formula of which this one is printed.
    pairs = all_pairs(systems) if baseline is None else np.array([(0, k) for k in range(1, systems)])
    family = method.family(len(pairs), systems, 1 if baseline else systems - 1)
    differences = before[:, pairs[:, 1]] - before[:, pairs[:, 0]]
    effects = np.array(
        [
            detectable(float(d[0].std(ddof=1)), units, 0.8, 0.05, test, family, excess_kurtosis(d))
            for d in differences
        ]
    )
    assert shift * differences[0, 0].std(ddof=1) == pytest.approx(effects[0], rel=1e-12)
    after[:, 1] += effects[:, None]
    each = (np.arange(repetitions)[:, None, None] * systems + pairs).reshape(-1, 2)
    p = p_values(test, after.reshape(-1, units), each, Draws(4_000)).reshape(repetitions, -1)
    found = np.mean([adjusted(row, method.correction)[0] < 0.05 for row in p])
    # Effects of fewer than ten values reckon with heavier tails than these have.
    assert 0.78 <= found <= (0.84 if units < 10 else 0.82)


def test_the_kurtosis_is_scipys_and_moves_effects():
    heavy = np.random.default_rng(2).standard_t(4, (6, 50))
    fourth, second = (np.array([kstat(row, n) for row in heavy]) for n in (4, 2))
    expected = fourth.sum() / (49 / 51 * (second**2 - fourth / 50)).sum()
    assert excess_kurtosis(heavy) == excess_kurtosis(1e-90 * heavy) == pytest.approx(expected, abs=0.125)
    many = np.random.default_rng(3).laplace(size=(4_000, 10))
    # That of Laplace's distribution, where the mean of single estimates is 1.5.
    assert excess_kurtosis(many) == pytest.approx(3, abs=0.25)
    assert excess_kurtosis(heavy[:, :3]) == excess_kurtosis(np.ones((2, 20))) == 0
    assert excess_kurtosis(np.tile(np.arange(2.0), (3, 20))) == -1.2
    for n in (10, 25, 200):
        light, normal, tailed = (detectable(1.0, n, kurtosis=k) for k in (-1.2, 0.0, 4.0))
        assert light < normal < tailed < 1.6 * normal


def test_tests_of_the_median_and_of_ranges_name_no_mean_difference():
    for test in ("sign", "wilcoxon", "tukey"):
        found = compared(table(noise(8, 2, 30)), method=replace(FAST, test=test))
        assert (found.pairs[0].detectable, found.pairs[0].verdict) == (None, "not separable")
        text = shown("compare", [found], explain=True)
        assert f"minimum detectable effect: none is known of {test}" in text
        assert "largest difference" not in text
        assert found.standings[0].letters == "a"


def test_power_compare_and_gate_have_one_home(tmp_path, capsys):
    values = 0.4 + noise(11, 2, 40) * [[1], [3]]
    d = values[1] - values[0]
    found, planned = compared(table(values), method=FAST).pairs[0], plan("nDCG@10", d, (0.05,))
    assert found.detectable == planned.detectable
    assert planned.needs[0].queries == queries_needed(
        0.05, float(d.std(ddof=1)), kurtosis=excess_kurtosis(d[None]), pilot=40
    )
    [gate] = gates([("", replace(table(values), queries=Ids.of([f"q{n}" for n in range(40)])))], GateRules())
    assert gate.needed is not None
    effect = gate.difference + gate.max_drop if gate.within else gate.difference
    assert gate.needed == queries_needed(
        effect, gate.deviation, POWER, 2 * (1 - gate.confidence), "t", pilot=40
    )


def test_weir_power_says_how_many_queries_it_takes(tmp_path, capsys):
    for name, lines in (
        ("qrels", [f"q{n} 0 d{n} 1" for n in range(4)]),
        ("one", [f"q{n} Q0 d{n} 1 1.0 x" for n in range(4)]),
        ("two", [f"q{n} Q0 d{n if n else 9} 1 1.0 x" for n in range(4)]),
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / name) for name in ("qrels", "one", "two")]
    main(["power", *files, "-m", "nDCG@10"])
    said = capsys.readouterr().out
    assert "6 queries could bring it below 0.05" in said
    assert "minimum detectable effect" not in said
    assert "found 80 times in 100" not in said
    main(["power", *files, "-m", "nDCG@10", "--test", "t"])
    assert "by one t test at level 0.05" in capsys.readouterr().out
    [planned] = weir.power(*files, "nDCG@10")
    assert planned.detectable is None
    assert planned.to_dict()["reach"]["fewest"] == 6
    assert "4 queries are too few for a test" in shown("power", [planned])
    main(["compare", *files, "-m", "nDCG@10"])
    assert "6 queries could bring it below" in capsys.readouterr().out


@pytest.mark.parametrize("change", [0.0, -0.5, 1 / 3])
def test_nothing_is_planned_from_differences_that_are_all_equal(change):
    """They say nothing of how others vary; rounding makes no deviation of them."""
    values = np.stack([np.linspace(0, 0.3, 8), np.linspace(0, 0.3, 8) + change])
    found = plan("nDCG@10", values[1] - values[0], (0.01, 0.05))
    assert (found.detectable, found.needs, found.deviation) == (None, (), 0.0)
    assert "no effect can be planned for" in shown("power", [found])
    seven = np.concatenate([values, values[:1] + noise(3, 5, 8)])
    [pair] = [p for p in compared(table(seven), None, FAST).pairs if (p.first, p.second) == ("s0", "s1")]
    assert pair.detectable is None
    assert pair.effect is None


def test_grids_and_groups_say_it_too():
    cells = worse_on_all(2, 2)
    comparisons = compare_grid(cells, method=FAST)
    [grid, *_] = grid_tables(
        [row for (d, s), one in cells.items() for row in result_rows(one, d, s)], comparisons
    )
    assert "\n2 datasets are too few for a test" in tables_as_text(grids_marked([grid]), "text")
    few = [replace(c, reach=reach("permutation", 5), count=5) for c in comparisons[:1]]
    [grid, *_] = grid_tables([row for (d, s), one in cells.items() for row in result_rows(one, d, s)], few)
    assert "d00: 5 queries are too few for a test" in tables_as_text(grids_marked([grid]), "text")
    names = [f"q{n:02}" for n in range(24)]
    groups = QueryGroups.of({name: "few" if n < 3 else "many" for n, name in enumerate(names)}, "kind")
    given = replace(table(noise(2, 2, 24)), queries=Ids.of(names))
    found = compared_by_group(given, groups, method=replace(FAST, correct="holm"))
    few, many = found[-2:]
    assert (few.reach.possible, many.reach.possible) == (False, True)
    assert (few.pairs[0].detectable is None, many.pairs[0].detectable is None) == (True, False)
    assert many.pairs[0].detectable / detectable(
        1.0, 21, family=Family(2), kurtosis=excess_kurtosis(np.diff(many_values(given), axis=0))
    ) == pytest.approx(float(np.diff(many_values(given), axis=0).std(ddof=1)))
    text = shown("compare", found)
    assert "not separable (too few queries)" in text
    assert "3 queries are too few for a test" in text


def many_values(given: ScoreTable) -> np.ndarray:
    return given.values[:, 3:]


def test_a_factor_study_over_few_collections_knows_what_its_tests_swap():
    method = ComparisonMethod(interval="two-level")
    study = FactorStudy("3 collections", "m", 900, ("a", "b", "c"), 0, (), 4, (None,) * 3, (), method)
    assert (study.unit, study.reach.possible, study.reach.fewest) == ("collections", False, 7)
    assert replace(study, method=ComparisonMethod()).reach.possible


def test_families_that_are_larger_take_more():
    least = [
        detectable(1.0, 30, family=Family(m, a)) for m, a in ((1, 1), (3, 2), (10, 4), (28, 7), (190, 19))
    ]
    assert least == sorted(least)
    assert detectable(1.0, 30, family=Family(10, 4, "bonferroni")) > least[2]
    assert detectable(1.0, 30, family=Family(10, 4, "none")) == pytest.approx(least[0], rel=0.01)
    assert detectable(1.0, 30, family=Family(10, 4, "bh")) < least[2]
    assert reach("permutation", 10, family=Family(100, 1, "bh")).possible  # were all found
    assert math.isclose(reach("permutation", 10, family=Family(28, 7)).smallest, 28 / 512)
