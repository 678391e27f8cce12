"""Intervals and table rows: against scipy, against known coverage, and at the edges."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy.stats import bootstrap, kstest

from weir.core.scores import Row, Scores
from weir.core.strings import Ids
from weir.errors import BadValue
from weir.stats.resampling import RESAMPLES, SEED, Interval, interval, intervals, resampled_means
from weir.stats.score_rows import group_row, result_rows


def fresh(seed: int = SEED) -> np.random.Generator:
    return np.random.default_rng(seed)


def scores_of(*values, queries=None) -> Scores:
    table = np.array(values, np.float64)
    ids = Ids.of(queries if queries is not None else [f"q{i:03}" for i in range(table.shape[1])])
    return Scores(tuple(f"m{i}" for i in range(len(table))), ids, table, ~np.isnan(table[0]))


skewed = fresh(11).beta(0.4, 0.8, 50)


def test_percentiles_of_the_same_resampled_means_are_scipys():
    theirs = bootstrap((skewed,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=fresh(5))
    low, high = np.quantile(theirs.bootstrap_distribution, [0.025, 0.975])
    assert (low, high) == pytest.approx(theirs.confidence_interval, abs=1e-12)
    ours = resampled_means(np.sort(skewed), fresh(5), RESAMPLES)
    assert interval(skewed, fresh(5)) == tuple(np.quantile(ours, [0.025, 0.975]).tolist())
    # Another stream of the same distribution: Monte Carlo error only.
    assert interval(skewed, fresh(5)) == pytest.approx(theirs.confidence_interval, abs=5e-3)
    assert kstest(ours, theirs.bootstrap_distribution).pvalue > 1e-3


def test_an_interval_depends_on_the_values_and_not_on_their_order():
    for values in (skewed, np.round(skewed), skewed[:20]):
        assert {interval(fresh(n).permutation(values)) for n in range(4)} == {interval(values)}


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_it_agrees_with_scipy_at_every_level(level):
    theirs = bootstrap(
        (skewed,), np.mean, n_resamples=RESAMPLES, confidence_level=level, method="percentile", rng=fresh(1)
    ).confidence_interval
    ours = interval(skewed, fresh(2), level)
    error = skewed.std() / math.sqrt(len(skewed))
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.1 * error)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """400 samples of 60 from a known distribution: a 90% interval holds the mean about 9 times in 10."""
    draw, covered = fresh(2024), 0
    for _ in range(400):
        sample = draw.beta(2, 3, 60)
        low, high = interval(sample, draw, 0.9, 400)
        covered += low <= 0.4 <= high
    # Two standard errors of a share of 400 are 3 points; percentile intervals run a point or two short.
    assert 0.84 <= covered / 400 <= 0.94


def test_memory_is_bounded():
    """10,000 samples of 3,000 are 240 MB at once; blocks take a hundredth of that."""
    values = fresh(3).random(3000)
    tracemalloc.start()
    means = resampled_means(values, fresh(4), RESAMPLES)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6
    assert means.std() == pytest.approx(values.std() / math.sqrt(3000), rel=0.04)


def test_neither_the_order_of_queries_nor_of_measures_matters():
    values = fresh(9).random((3, 40))
    first = intervals(scores_of(*values))
    order = fresh(10).permutation(40)
    names = [f"q{i:03}" for i in order]
    assert intervals(scores_of(*values[:, order], queries=names)) == first
    assert intervals(scores_of(*values[::-1])) == first[::-1]
    assert intervals(scores_of(values[2]))[0] == first[2]


def test_the_same_seed_every_time():
    assert intervals(scores_of(skewed)) == intervals(scores_of(skewed))


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3, 5.7])
@pytest.mark.parametrize("count", [1, 3, 7, 10])
def test_constants_and_one_query_have_no_interval(value, count):
    found = intervals(scores_of([value] * count))[0]
    assert np.isnan([found.low, found.high]).all()
    assert found.mean == pytest.approx(value, rel=1e-15)


def test_undefined_values_are_left_out():
    values = np.array([0.2, np.nan, 0.4, 0.9, np.nan, 0.1, 0.5, 0.3])
    defined = values[~np.isnan(values)]
    assert interval(values, fresh()) == interval(defined, fresh())
    assert intervals(scores_of(values))[0].mean == math.fsum(defined) / 6
    nothing = intervals(scores_of([np.nan, np.nan]))[0]
    assert all(math.isnan(v) for v in (nothing.mean, nothing.low, nothing.high))
    assert interval(np.array([]), fresh()) == pytest.approx((math.nan, math.nan), nan_ok=True)


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, math.nan, 95])
def test_a_level_outside_zero_and_one_is_refused(level):
    with pytest.raises(BadValue, match="level"):
        interval(skewed, fresh(), level)


def test_a_wider_level_gives_a_wider_interval_around_the_mean():
    bounds = [interval(skewed, fresh(), level) for level in (0.5, 0.8, 0.95, 0.99)]
    widths = [high - low for low, high in bounds]
    assert widths == sorted(widths)
    assert all(low < skewed.mean() < high for low, high in bounds)


def test_rows_of_a_table():
    scores = scores_of([1.0, 0.0, 0.5, np.nan], [0.0, 0.0, 0.0, 0.0])
    first, second = result_rows(scores, "data", "bm25")
    none = {"low": None, "high": None}
    assert first.to_dict() == Row("data", "bm25", "m0", 0.5, 0, 0, 4, 3).to_dict() | none
    assert second.to_dict() == Row("data", "bm25", "m1", 0.0, 0, 0, 4, 3).to_dict() | none
    assert Row("d", "s", "m", math.nan, math.nan, 0.5, 2, 0).to_dict() == {
        "dataset": "d",
        "system": "s",
        "measure": "m",
        "mean": None,
        "low": None,
        "high": 0.5,
        "queries": 2,
        "answered": 0,
    }


def member(name: str, values) -> tuple[Row, np.ndarray]:
    """A row, and its values in the order of tie_ranks: the last identifier first."""
    found = intervals(scores_of(values[::-1]))[0]
    return Row(
        name, "bm25", "nDCG@10", found.mean, found.low, found.high, len(values), len(values) - 1
    ), values


def test_a_group_is_the_unweighted_mean_of_its_members():
    draw = fresh(8)
    made = [
        member("long", draw.random(200)),
        member("short", draw.random(5) / 4),
        member("flat", np.full(7, 0.25)),
    ]
    group = group_row("all", [r for r, _ in made], [v for _, v in made])
    means = [r.mean for r, _ in made]
    assert group.mean == math.fsum(means) / 3
    assert (group.dataset, group.system, group.measure) == ("all", "bm25", "nDCG@10")
    assert (group.queries, group.answered) == (212, 209)
    # The variance of a mean of independent means is the sum of theirs over the square of their number.
    # Equal values say nothing of theirs: it is taken to be that of all.
    pooled = sum(len(v) * v.var() for _, v in made) / (212 - 3)
    error = math.sqrt(sum((v.var() or pooled) / len(v) for _, v in made)) / 3
    assert group.mean - 3 * error < group.low < group.mean - 1.96 * error
    assert group.mean + 1.96 * error < group.high < group.mean + 3 * error
    again = group_row("all", [r for r, _ in made[::-1]], [v for _, v in made[::-1]])
    assert again == group


def test_a_group_of_one_is_its_member_and_an_undefined_member_makes_it_undefined():
    row, values = member("only", fresh(1).random(30))
    group = group_row("g", [row], [values])
    assert (group.mean, group.low, group.high) == (row.mean, row.low, row.high)
    nothing = Row("none", "bm25", "nDCG@10", math.nan, math.nan, math.nan, 2, 0)
    group = group_row("g", [row, nothing], [values, np.array([np.nan, np.nan])])
    assert all(math.isnan(v) for v in (group.mean, group.low, group.high))
    assert group.queries == 32


@pytest.mark.parametrize(("members", "values"), [(0, 0), (1, 0), (1, 2)])
def test_a_group_needs_members_with_their_values(members, values):
    row, some = member("a", np.array([0.5, 0.25]))
    with pytest.raises(BadValue, match="group 'g'"):
        group_row("g", [row] * members, [some] * values)


def test_an_interval_is_a_value():
    assert Interval(0.5, 0.25, 0.75) == Interval(0.5, 0.25, 0.75)
