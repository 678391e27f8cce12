"""Factorial studies: effects, joint intervals, tests and shares of variance, against plain counting and formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weir.errors import BadValue
from weir.stats.compare import ComparisonMethod, ScoreTable
from weir.stats.factors import (
    Factor,
    FactorialDesign,
    factor_study,
    factor_study_across,
    randomised_p,
    variance_shares,
)
from weir.stats.resampling import Draws, bounds, simultaneous_bounds, two_level_bounds

FAST = ComparisonMethod(draws=2_000)


def design(*sizes):
    factors = tuple(
        Factor("abc"[n], tuple(f"{n}{level}" for level in range(size))) for n, size in enumerate(sizes)
    )
    cells = itertools.product(*(f.levels for f in factors))
    return FactorialDesign(factors, tuple("-".join(cell) for cell in cells))


def drawn(sizes, queries, seed=0, **effects):
    """Values of a design: queries differ, noise, and effects such as a=0.2 or ab=0.1 of the last levels."""
    draw = np.random.default_rng([7, seed])
    values = draw.beta(1, 2, queries) + draw.normal(0, 0.1, (*sizes, queries))
    for names, effect in effects.items():
        at = tuple(-1 if "abc"[n] in names else slice(None) for n in range(len(sizes)))
        values[at] += effect
    return values.reshape(-1, queries)


def table(sizes, values, name="set"):
    return ScoreTable(name, "m", design(*sizes).systems, values)


def test_effects_are_differences_of_means_counted_one_by_one():
    sizes, values = (2, 3, 2), drawn((2, 3, 2), 9)
    cells = dict(zip(itertools.product(*map(range, sizes)), values, strict=True))

    def mean(**levels):
        return np.mean(
            [
                v.mean()
                for cell, v in cells.items()
                if all(cell["abc".index(f)] in of for f, of in levels.items())
            ]
        )

    found = {
        (e.factors, e.levels): e for e in factor_study(table(sizes, values), design(*sizes), (), FAST).effects
    }
    assert len(found) == 1 + 3 + 1 + 3 + 1 + 3
    assert found[("a",), ("01",)].difference == pytest.approx(mean(a=[1]) - mean(a=[0]))
    assert found[("a",), ("01",)].against == ("00",)
    for level in range(3):
        others = [other for other in range(3) if other != level]
        one = found[("b",), (f"1{level}",)]
        assert (one.mean, one.other) == pytest.approx((mean(b=[level]), mean(b=others)))
        assert one.difference == pytest.approx(one.mean - one.other)
        assert one.against == ("others",)
        twice = found[("a", "b"), ("01", f"1{level}")]
        by_loops = (
            mean(a=[1], b=[level]) - mean(a=[0], b=[level]) - mean(a=[1], b=others) + mean(a=[0], b=others)
        )
        assert twice.difference == pytest.approx(by_loops)
        assert (twice.mean, twice.other) == (None, None)
        assert (one.won, one.lost) == tuple(
            sum(
                sign * (sum(cells[c][q] * (1 if c[1] == level else -0.5) for c in cells)) > 1e-12
                for q in range(9)
            )
            for sign in (1, -1)
        )
    corner = mean(a=[1], c=[1]) - mean(a=[0], c=[1]) - mean(a=[1], c=[0]) + mean(a=[0], c=[0])
    assert found[("a", "c"), ("01", "21")].difference == pytest.approx(corner)


def test_p_values_are_those_of_all_sign_patterns():
    values = drawn((2, 2), 8, seed=3, a=0.08)
    effects = factor_study(table((2, 2), values), design(2, 2), (), FAST).effects
    rows = [values[2:].sum(0) - values[:2].sum(0), values[[1, 3]].sum(0) - values[[0, 2]].sum(0),
            values[3] - values[2] - values[1] + values[0]]  # fmt: skip
    for one, row in zip(effects, rows, strict=True):
        patterns = [abs(np.dot(signs, row)) for signs in itertools.product((-1, 1), repeat=8)]
        assert one.p == np.mean([p >= abs(row.sum()) - 1e-12 for p in patterns])
    smallest, *_ = sorted(e.p for e in effects)
    assert min(e.adjusted for e in effects) == pytest.approx(min(1, 3 * smallest))


def squares_by_regression(values, sizes):
    """Sums of squares as what each group of dummy variables takes off the residual of a regression, one by one."""
    queries = values.shape[1]
    rows = [(*cell, q) for cell in itertools.product(*map(range, sizes)) for q in range(queries)]
    seen, before, found = [np.ones(len(rows))], None, []
    axes = range(len(sizes))
    groups = [(len(sizes),), *((a,) for a in axes), *itertools.combinations(axes, 2)]
    groups += [tuple(axes)] if len(sizes) > 2 else []
    y = values.reshape(-1)
    for group in [(), *groups]:
        kinds = sorted({tuple(row[a] for a in group) for row in rows})
        seen += [np.array([tuple(row[a] for a in group) == kind for row in rows], float) for kind in kinds]
        x = np.stack(seen, axis=1)
        left = float(np.sum((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2))
        if before is not None:
            found.append(before - left)
        before = left
    return [*found, before]


@pytest.mark.parametrize("sizes", [(2, 3), (2, 2, 2), (4,), (3, 2, 2)])
def test_sums_of_squares_are_those_of_nested_regressions(sizes):
    values = drawn(sizes, 7, a=0.2, ab=0.1) if len(sizes) > 1 else drawn(sizes, 7, a=0.2)
    found = variance_shares([values], design(*sizes).factors, FAST)
    assert [one.squares for one in found] == pytest.approx(squares_by_regression(values, sizes), abs=1e-9)
    total = float(np.square(values - values.mean()).sum())
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.df for one in found) == values.size - 1
    assert found[1].eta == pytest.approx(
        found[1].squares / (found[1].squares + found[0].squares + found[-1].squares)
    )
    assert found[0].share == pytest.approx(found[0].squares / total)


def test_of_two_levels_the_f_of_the_sums_is_the_square_of_paired_t():
    stats = pytest.importorskip("scipy.stats", reason="an oracle of the tests")
    values = drawn((2,), 30, a=0.05)
    queries, factor, rest = variance_shares([values], design(2).factors, FAST)
    f = factor.squares / (rest.squares / rest.df)
    t, p = stats.ttest_rel(values[1], values[0])
    assert f == pytest.approx(t**2)
    assert (queries.df, factor.df, rest.df) == (29, 1, 29)
    one = factor_study(table((2,), values), design(2), (), ComparisonMethod("t")).effects[0]
    assert one.p == pytest.approx(p)


def test_sums_over_collections_count_each_value_once():
    parts = [drawn((2, 3), n, seed=n, a=0.1 * n / 10) for n in (6, 9)]
    found = {s.source: s for s in variance_shares(parts, design(2, 3).factors, FAST)}
    whole = np.concatenate(parts, axis=1)
    grand = whole.mean()
    by_loops = dict.fromkeys(("collections", "queries", "systems × collections", "systems"), 0.0)
    for part in parts:
        for system, of in enumerate(part):
            for q in range(part.shape[1]):
                by_loops["collections"] += (part.mean() - grand) ** 2
                by_loops["queries"] += (part[:, q].mean() - part.mean()) ** 2
                by_loops["systems"] += (whole[system].mean() - grand) ** 2
                gap = of.mean() - part.mean() - (whole[system].mean() - grand)
                by_loops["systems × collections"] += gap**2
    for name in ("collections", "queries", "systems × collections"):
        assert found[name].squares == pytest.approx(by_loops[name], rel=1e-6)
    assert sum(found[n].squares for n in ("a", "b", "a × b")) == pytest.approx(by_loops["systems"])
    assert sum(s.squares for s in found.values()) == pytest.approx(float(np.square(whole - grand).sum()))
    assert sum(s.df for s in found.values()) == whole.size - 1
    assert (found["collections"].df, found["systems × collections"].df) == (1, 5)


def test_dealing_levels_is_counted_over_all_deals():
    values = drawn((3,), 4, seed=5, a=0.15)
    deals = list(itertools.permutations(range(3)))
    observed = np.square(values.sum(1) - values.sum() / 3).sum()
    larger = 0
    for dealt in itertools.product(deals, repeat=4):
        sums = np.sum([values[list(order), q] for q, order in enumerate(dealt)], axis=0)
        larger += np.square(sums - sums.mean()).sum() >= observed - 1e-12
    found = randomised_p(values, (3,), (0,), ComparisonMethod(draws=10_000))
    assert found == pytest.approx(larger / 6**4, abs=0.015)
    crossed = drawn((2, 3), 3, seed=6, ab=0.2).reshape(2, 3, 3)
    left = crossed - crossed.mean(0) - crossed.mean(1)[:, None] + crossed.mean((0, 1))
    each = [
        [left[np.ix_(rows, cols)][..., q] for rows in ((0, 1), (1, 0)) for cols in deals] for q in range(3)
    ]
    sums = [np.square(sum(one)).sum() for one in itertools.product(*each)]
    share = np.mean(np.array(sums) >= np.square(left.sum(-1)).sum() - 1e-12)
    found = randomised_p(crossed.reshape(6, 3), (2, 3), (0, 1), ComparisonMethod(draws=10_000))
    assert found == pytest.approx(share, abs=0.015)
    assert randomised_p(drawn((8,), 20, a=0.3), (8,), (0,), FAST) == 1 / 2_001
    assert 0.05 < randomised_p(drawn((8,), 20), (8,), (0,), FAST) < 1
    two = drawn((2, 2), 9, a=0.05)
    assert (
        randomised_p(two, (2, 2), (0, 1), FAST)
        == factor_study(table((2, 2), two), design(2, 2), (), FAST).effects[2].p
    )


def test_one_interval_alone_is_students():
    rows = np.random.default_rng(5).normal(0.1, 1, (1, 25))
    found = simultaneous_bounds([rows], [1.0], 0.95, Draws(40_000, 3))
    assert found == pytest.approx(bounds(rows, "t"), abs=0.03)
    assert simultaneous_bounds([np.full((2, 9), 0.3)], [1.0]) == pytest.approx(np.full((2, 2), 0.3))
    both = simultaneous_bounds([np.concatenate([rows, -rows])], [1.0], 0.95, Draws(4_000, 3))
    assert both[1] == pytest.approx(-both[0][::-1])
    weighted = simultaneous_bounds([rows, rows + 1], [0.5, 0.5], 0.95, Draws(40_000, 3))[0]
    assert weighted.mean() == pytest.approx(rows.mean() + 0.5)
    assert np.ptp(weighted) == pytest.approx(np.ptp(bounds(rows, "t")) / 2**0.5, rel=0.04)


def test_intervals_hold_together_and_null_effects_are_not_found(monkeypatch):
    """Of 200 studies without any effect about 95% hold all seven effects, and about 5% find anything at all."""
    monkeypatch.setattr("weir.stats.factors.RESAMPLES", 200)
    held, false, how = 0, 0, ComparisonMethod("t", draws=200)
    for seed in range(200):
        found = factor_study(table((2, 3), drawn((2, 3), 15, seed=seed)), design(2, 3), (), how).effects
        held += all(one.low <= 0 <= one.high for one in found)
        false += any(one.verdict != "not separable" for one in found)
    assert 0.92 <= held / 200 <= 0.98
    assert 0 < false / 200 <= 0.08


def test_planted_effects_are_found_and_others_are_not():
    values = drawn((2, 2, 2), 40, seed=1, a=0.1, bc=0.12)
    study = factor_study(table((2, 2, 2), values), design(2, 2, 2), (), FAST)
    verdicts = {e.factors: e.verdict for e in study.effects}
    assert verdicts == {("a",): "better", ("b",): "better", ("c",): "better", ("b", "c"): "better",
                        ("a", "b"): "not separable", ("a", "c"): "not separable"}  # fmt: skip
    effects = {e.factors: e for e in study.effects}
    assert effects["a",].low < 0.1 < effects["a",].high
    assert effects["b", "c"].low < 0.12 < effects["b", "c"].high
    only = factor_study(table((2, 2, 2), values), design(2, 2, 2), ["a", "c"], FAST)
    assert [e.factors for e in only.effects] == [("a",), ("c",), ("a", "c")]
    assert np.ptp([only.effects[0].low, only.effects[0].high]) < np.ptp(
        [effects["a",].low, effects["a",].high]
    )
    assert only.sources == study.sources
    same = factor_study(table((2,), drawn((2,), 60)), design(2), (), ComparisonMethod(margin=0.2))
    assert same.effects[0].verdict == "equivalent"


def test_collections_weigh_the_same_and_keep_their_queries():
    sets = {
        name: [table((2, 2), drawn((2, 2), n, seed=n, a=step), name)]
        for name, n, step in (("x", 10, 0.3), ("y", 40, 0.0))
    }
    each = {name: factor_study(t, design(2, 2), (), FAST) for name, (t,) in sets.items()}
    both = factor_study_across(sets, "both", design(2, 2), (), FAST)
    for number, one in enumerate(both.effects):
        alone = [study.effects[number] for study in each.values()]
        assert one.difference == pytest.approx(np.mean([a.difference for a in alone]))
        if one.mean is not None:
            assert one.mean == pytest.approx(np.mean([a.mean for a in alone]))
        assert (one.won, one.lost) == tuple(sum(getattr(a, s) for a in alone) for s in ("won", "lost"))
        assert one.effect is None
    assert (both.count, both.collections) == (50, ("x", "y"))
    assert both.effects[0].verdict == "better"
    back = factor_study_across(dict(reversed(sets.items())), "both", design(2, 2), (), FAST)
    assert back.effects == both.effects
    parts = {"xy": [*sets["x"], *sets["y"]], "y": sets["y"]}
    found = factor_study_across(parts, "parts", design(2, 2), (), FAST).effects[0].difference
    x, y = (study.effects[0].difference for study in each.values())
    assert found == pytest.approx(((x + y) / 2 + y) / 2)


def test_collections_may_be_a_sample_themselves():
    two = ComparisonMethod("t", interval="two-level")
    sets = {
        f"s{n}": [table((2,), drawn((2,), 12, seed=n, a=0.1 + 0.05 * (n % 3)), f"s{n}")] for n in range(7)
    }
    within = factor_study_across(sets, "7", design(2), (), ComparisonMethod("t")).effects[0]
    found = factor_study_across(sets, "7", design(2), (), two).effects[0]
    assert found.difference == pytest.approx(within.difference)
    assert found.high - found.low > within.high - within.low
    assert found.won + found.lost == 7
    few = factor_study_across(dict(list(sets.items())[:3]), "3", design(2), (), two).effects[0]
    assert (few.low, few.high) == (None, None)
    parts = [[np.random.default_rng(n).normal(n, 1, (2, 200))] for n in range(8)]
    limits = two_level_bounds(parts, 0.95, Draws(4_000, 1))
    assert limits.mean(axis=1) == pytest.approx(
        [np.mean([p[0][row].mean() for p in parts]) for row in (0, 1)]
    )


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (ComparisonMethod("tukey"), "all pairs of systems together"),
        (ComparisonMethod(interval="bca"), "hold together"),
    ],
)
def test_what_effects_do_not_take_is_refused(method, message):
    with pytest.raises(BadValue, match=message):
        factor_study(table((2,), drawn((2,), 9)), design(2), (), method)


def test_systems_stand_as_the_design_has_them():
    with pytest.raises(BadValue, match="in its order"):
        factor_study(ScoreTable("d", "m", ("b", "a"), drawn((2,), 9)), design(2), (), FAST)
