"""Calibration, edges and bounds of the tests, intervals and corrections."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from weir.errors import BadValue, UnknownName
from weir.registry import Registry
from weir.stats import resampling
from weir.stats import significance as tukey
from weir.stats.compare import letters
from weir.stats.distributions import student_quantile
from weir.stats.order_agreement import kendall_tau, rbo
from weir.stats.permutation import exact_p, rejected_by_samples, rejected_by_signs
from weir.stats.power import (
    MOST_QUERIES,
    detectable,
    equivalence,
    excess_kurtosis,
    plan,
    power,
    queries_needed,
)
from weir.stats.resampling import INTERVALS, Draws, bounds, resampled, sign_sums
from weir.stats.significance import (
    CORRECTIONS,
    TESTS,
    adjusted,
    all_pairs,
    p_values,
    ranges,
    t_statistic,
    t_tail,
)


def fresh(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def null(seed: int, repetitions: int, n: int) -> np.ndarray:
    """Differences of two equal systems: symmetric, heavy in the middle, a fifth of them zero."""
    draw = fresh(seed)
    d = draw.beta(0.6, 1.2, (repetitions, n)) - draw.beta(0.6, 1.2, (repetitions, n))
    return np.where(draw.random((repetitions, n)) < 0.2, 0, d)


def against_zero(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row as a system, compared with one that is zero everywhere."""
    pairs = np.stack([np.arange(len(rows)), np.full(len(rows), len(rows))], axis=1)
    return np.vstack([rows, np.zeros(rows.shape[1])]), pairs


@pytest.mark.parametrize("test", ["t", "permutation"])
def test_without_a_difference_p_values_are_uniform(test):
    """10,000 repetitions: at 0.05 the share of false findings is within 0.045..0.055, and the deciles are even."""
    values, pairs = against_zero(null(1, 10_000, 50))
    p = p_values(test, values, pairs, Draws(2_000))
    assert 0.045 <= np.mean(p < 0.05) <= 0.055
    deciles = np.histogram(p, np.linspace(0, 1, 11))[0] / len(p)
    assert np.abs(deciles - 0.1).max() < 0.013  # four standard errors of a share of 10,000


def test_the_other_tests_are_near_their_level():
    """The bootstrap-shift test is somewhat too liberal, as published; the others keep the level here."""
    values, pairs = against_zero(null(2, 2_000, 50))
    found = {t: np.mean(p_values(t, values, pairs, Draws(1_000)) < 0.05) for t in ("wilcoxon", "sign")}
    assert found["wilcoxon"] == pytest.approx(0.05, abs=0.014)
    assert 0.02 < found["sign"] <= 0.055
    shift = np.mean(p_values("bootstrap-shift", values, pairs, Draws(1_000)) < 0.05)
    assert 0.045 < shift < 0.07


def test_tukeys_test_keeps_the_level_for_all_pairs_together():
    """1,000 repetitions of four equal systems: some pair is found in about 5% of them."""
    draw, found = fresh(3), 0
    for _ in range(1_000):
        values = draw.beta(1, 2, 20) + draw.normal(0, 0.1, (4, 20))
        found += p_values("tukey", values, draws=Draws(400)).min() < 0.05
    assert 0.03 <= found / 1_000 <= 0.072


def test_holm_keeps_the_level_for_all_pairs_together_where_no_correction_does_not():
    draw, holm, none = fresh(4), 0, 0
    for _ in range(1_000):
        p = p_values("t", draw.normal(0, 0.1, (4, 20)))
        holm += adjusted(p, "holm").min() < 0.05
        none += p.min() < 0.05
    assert holm / 1_000 <= 0.06
    assert none / 1_000 > 0.12


@pytest.mark.parametrize(
    ("how", "low", "high"), [("t", 0.92, 0.96), ("studentised", 0.93, 0.97), ("bca", 0.91, 0.96)]
)
def test_intervals_of_skewed_differences_cover_about_as_often_as_they_say(how, low, high):
    """1,500 samples of 60 skewed values: BCa and studentised repair what the percentile interval misses."""
    rows = fresh(5).gamma(2, 1, (1_500, 60))
    limits = bounds(rows, how, draws=Draws(1_000))
    covered = np.mean((limits[:, 0] <= 2) & (limits[:, 1] >= 2))
    assert low <= covered <= high
    plain = bounds(rows, "percentile", draws=Draws(1_000))
    above = np.mean(plain[:, 1] < 2)
    assert above > 0.035  # the percentile interval ends too low nearly twice as often as the 2.5% it says
    if how != "t":
        assert np.mean(limits[:, 1] < 2) < above


@pytest.mark.parametrize("test", sorted(TESTS))
def test_equal_systems_have_a_p_value_of_one(test):
    row = fresh(6).random(40)
    assert p_values(test, np.stack([row, row]), draws=Draws(500)).tolist() == [1.0]


@pytest.mark.parametrize("test", sorted(TESTS))
def test_a_difference_that_is_everywhere_is_found(test):
    row = fresh(7).random(60) / 2
    other = row + 0.1 + fresh(8).random(60) / 10
    p = p_values(test, np.stack([row, other]), draws=Draws(1_000))[0]
    assert 0 < p < 0.01


@pytest.mark.parametrize("test", [t for t in sorted(TESTS) if TESTS.get(t).drawn])
def test_no_drawn_p_value_is_zero_and_the_seed_decides(test):
    values = np.stack([fresh(9).random(50) + 5, fresh(10).random(50)])
    assert p_values(test, values, draws=Draws(999)).tolist() == [0.001]
    values = fresh(11).random((2, 50))
    first, second, other = (p_values(test, values, draws=Draws(500, s))[0] for s in (1, 1, 2))
    assert first == second
    assert first != other


def test_ties_of_the_permutation_statistic_count_whatever_the_rounding():
    """0.1 + 0.2 - 0.3 is not zero in floating point; the arrangements with that sum must tie with zero."""
    d = np.array([0.1, 0.2, -0.3] * 7)
    values = np.stack([d, np.zeros(21)])
    assert p_values("permutation", values, draws=Draws(1_000)).tolist() == [1.0]
    assert p_values("permutation", values[:, :12], draws=Draws(5_000)).tolist() == [1.0]


def test_signs_are_one_stream_whatever_the_blocks_and_the_other_systems(monkeypatch):
    values = fresh(12).random((3, 100))
    whole = np.concatenate(list(sign_sums(values, 500, fresh(1))))
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 5_000)
    blocks = list(sign_sums(values, 500, fresh(1)))
    assert len(blocks) > 5
    assert np.concatenate(blocks) == pytest.approx(whole, abs=1e-12)
    alone = np.concatenate(list(sign_sums(values[1:2], 500, fresh(1))))
    assert alone[:, 0] == pytest.approx(whole[:, 1], abs=1e-12)
    ones = np.concatenate(list(sign_sums(np.eye(100), 500, fresh(1))))
    assert set(np.unique(ones)) == {-1.0, 1.0}
    assert np.abs(ones.mean(axis=0)).max() < 4.5 / math.sqrt(500)


def test_each_deal_of_tukeys_test_is_uniform():
    """Four values, one query: every system gets every value equally often, and so the range is theirs."""
    found = np.concatenate(list(ranges(np.array([[0.0], [1.0], [2.0], [5.0]]), Draws(2_000))))
    assert found == pytest.approx(5.0)
    draws = Draws(40_000)
    two = np.concatenate(list(ranges(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 3.0]]), draws))).round(9)
    # Second query against the first: the six orders are equally likely.
    sums = {}
    for a in ((0, 1, 3), (0, 3, 1), (1, 0, 3), (1, 3, 0), (3, 0, 1), (3, 1, 0)):
        total = np.array([0.0, 1.0, 2.0]) + a
        key = float(np.ptp(total)) / 2
        sums[key] = sums.get(key, 0) + 1 / 6
    shares = {float(v): float(np.mean(two == v)) for v in np.unique(two)}
    assert shares == pytest.approx(sums, abs=0.012)


def test_deals_that_share_a_shuffle_do_not_widen_the_error_of_a_p_value():
    """The deviation of p over 100 seeds is that of as many independent draws, within its own error of 7%."""
    values = fresh(1).beta(0.5, 1.5, 30) + fresh(2).normal(0, 0.2, (5, 30))
    edge = np.quantile(np.concatenate(list(ranges(values, Draws(100_000)))), 0.95)
    p = [np.mean(np.concatenate(list(ranges(values, Draws(2_000, s)))) >= edge) for s in range(100)]
    assert np.mean(p) == pytest.approx(0.05, abs=0.003)
    assert np.std(p) == pytest.approx(math.sqrt(0.05 * 0.95 / 2_000), rel=0.25)


@pytest.mark.parametrize("count", [1, 31, 33, 1_000, 1_025])
def test_there_are_as_many_deals_as_asked_for(count):
    assert len(np.concatenate(list(ranges(fresh(3).random((3, 7)), Draws(count))))) == count


def test_deals_do_not_depend_on_the_size_of_the_blocks(monkeypatch):
    values = fresh(4).random((4, 60))
    whole = np.concatenate(list(ranges(values, Draws(500))))
    monkeypatch.setattr(tukey, "BLOCK_CELLS", 4 * 32 * 16)  # all shuffles at once, a few queries at a time
    assert np.concatenate(list(ranges(values, Draws(500)))) == pytest.approx(whole, abs=1e-12)
    monkeypatch.setattr(tukey, "BLOCK_CELLS", 1)  # one shuffle at a time: other deals, as many
    assert len(np.concatenate(list(ranges(values, Draws(500))))) == 500


def test_memory_is_bounded():
    """10 systems, 10,000 queries: a few blocks of two million numbers, whatever the number of draws."""
    values = fresh(14).random((10, 10_000))
    for test, draws in (("permutation", 1_000), ("bootstrap-shift", 400), ("tukey", 2_000)):
        tracemalloc.start()
        p_values(test, values, draws=Draws(draws))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6


def test_corrections_leave_out_what_is_not_tested():
    """A baseline's own row is NaN: it stays NaN and counts for nothing (pyterrier#440)."""
    p = np.array([0.01, np.nan, 0.04, 0.03])
    for name in CORRECTIONS:
        found = adjusted(p, name)
        assert math.isnan(found[1])
        assert found[[0, 2, 3]].tolist() == adjusted(p[[0, 2, 3]], name).tolist()
    assert adjusted(p, "holm")[[0, 2, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(adjusted(np.array([np.nan]), "bh")).all()
    assert adjusted(np.array([]), "holm").tolist() == []
    with pytest.raises(BadValue, match="between 0 and 1"):
        adjusted(np.array([0.5, 1.5]))
    with pytest.raises(UnknownName, match="holm"):
        adjusted(p, "hol")


def test_letters():
    apart = np.zeros((4, 4), bool)
    assert letters(apart) == ["a"] * 4
    assert letters(~np.eye(4, dtype=bool)) == ["a", "b", "c", "d"]
    apart[0, 3] = apart[3, 0] = True
    assert letters(apart) == ["a", "ab", "ab", "b"]
    assert letters(np.zeros((0, 0), bool)) == []
    with pytest.raises(BadValue, match="symmetric"):
        letters(np.triu(np.ones((3, 3), bool), 1))


def test_two_systems_share_a_letter_exactly_if_they_are_not_apart():
    for seed in range(40):
        count = 2 + seed % 8
        apart = np.triu(fresh(seed).random((count, count)) < 0.4, 1)
        apart |= apart.T
        found = [set(x.split() if " " in x else x) for x in letters(apart)]
        for i in range(count):
            for j in range(count):
                if i != j:
                    assert bool(found[i] & found[j]) != apart[i, j]


def test_letters_of_many_systems():
    """60 systems, each apart from all but its nearest: more groups than letters."""
    at = np.arange(60)
    apart = np.abs(at[:, None] - at) > 1
    found = letters(apart)
    assert found[0] == "a"
    assert found[1] == "a b"
    assert found[27] == "aa ab"
    assert found[-1] == "bg"


def test_agreement_of_orders_at_the_edges():
    assert kendall_tau(np.arange(5.0), np.arange(5.0)) == 1
    assert kendall_tau(np.arange(5.0), -np.arange(5.0)) == -1
    assert math.isnan(kendall_tau(np.ones(3), np.arange(3.0)))
    assert rbo("abc", "abc") == pytest.approx(1)
    for a, b, p in (("", "a", 0.9), ("aa", "ab", 0.9), ("ab", "ab", 1), ("ab", "ab", 0)):
        with pytest.raises(BadValue):
            rbo(a, b, p)
    with pytest.raises(BadValue, match="same systems"):
        kendall_tau(np.ones(3), np.ones(4))


@pytest.mark.parametrize("how", sorted(INTERVALS))
def test_intervals_at_the_edges(how):
    rows = np.stack([np.full(10, 0.25), fresh(1).normal(0.3, 1, 10), np.array([0.0] * 9 + [1.0])])
    found = bounds(rows, how)
    assert np.isnan(found[0]).all()
    assert (found[1:, 0] <= rows[1:].mean(axis=1)).all()
    assert (rows[1:].mean(axis=1) <= found[1:, 1]).all()
    wide = bounds(rows[1:2], how, 0.99)[0]
    assert wide[0] < found[1, 0] < found[1, 1] < wide[1]
    rounded = bounds(np.array([[0.3 - 0.2, 0.1, 0.4 - 0.3, 0.1, 0.1]]), how)  # equal but for rounding
    assert np.isnan(rounded).all() or rounded == pytest.approx(0.1, abs=1e-12)
    for level in (0, 1, 95):
        with pytest.raises(BadValue, match="level"):
            bounds(rows, how, level)
    with pytest.raises(BadValue, match="at least two queries"):
        bounds(rows[:, :1], how)


def test_rows_share_their_samples():
    rows = fresh(3).random((3, 25))
    together, alone = resampled(rows, Draws(300)), resampled(rows[2:], Draws(300))
    for of_three, of_one in zip(together, alone, strict=True):
        assert of_three[:, 2:] == pytest.approx(of_one, abs=1e-12)


def test_what_cannot_be_tested_is_said():
    row = np.array([0.1, 0.2, 0.3])
    for values, message in (
        (row[None], "two systems"),
        (np.ones((2, 1)), "at least two queries that all systems share; found 1"),
        (np.ones((2, 0)), "found 0"),
        (np.stack([row, row * np.nan]), "undefined"),
    ):
        with pytest.raises(BadValue, match=message):
            p_values("t", values)
    with pytest.raises(BadValue, match="draws"):
        p_values("permutation", np.stack([row, row]), draws=Draws(0))
    with pytest.raises(UnknownName, match="permutation"):
        p_values("permutations", np.stack([row, row]))
    with pytest.raises(BadValue, match="quantile"):
        student_quantile(1, 5)


def test_power_at_the_edges():
    assert power(0, 0.2, 50) == pytest.approx(0.05)
    assert power(0.1, 0, 50) == 1
    assert power(0, 0, 50) == 0.05
    assert detectable(0, 50) == 0
    assert (queries_needed(0.1, 0), queries_needed(0.1, 0, test="t")) == (6, 2)
    assert (power(0.1, 0, 5), power(0.1, 0, 5, test="t")) == (0, 1)
    assert queries_needed(1e-6, 1) is None
    assert power(1e-3, 1, MOST_QUERIES) > 0.8
    for bad in (
        lambda: power(0.1, 0.1, 1),
        lambda: power(0.1, -1, 9),
        lambda: power(0.1, math.nan, 9),
        lambda: power(0.1, 1, 9, 0),
        lambda: detectable(0.1, 9, 0.05),
        lambda: detectable(0.1, 9, 1),
        lambda: detectable(0.1, 9, test="sign"),
        lambda: power(0.1, 0.1, 9, test="tukey"),
        lambda: queries_needed(0, 1),
        lambda: queries_needed(0.1, 1, 1.5),
        lambda: queries_needed(0.1, 1, pilot=1),
        lambda: equivalence(np.ones(5), 0),
        lambda: equivalence(np.ones(1), 0.1),
        lambda: plan("x", np.ones(1), (0.1,)),
    ):
        with pytest.raises(BadValue):
            bad()


def test_equivalence_says_so_only_within_the_margin():
    d = fresh(20).normal(0.002, 0.05, 500)
    assert equivalence(d, 0.02) < 0.001
    assert equivalence(d + 0.03, 0.02) > 0.5
    assert equivalence(np.full(10, 0.5), 0.01) == 1


@pytest.mark.parametrize("margin", [0.01, 0.05])
@pytest.mark.parametrize("queries", [2, 5, 20, 58, 298, 299])
def test_equal_differences_are_equivalent_only_where_a_rare_one_would_have_been_met(queries, margin):
    """With probability `margin` a difference is 1, else 0: the mean is the margin, and all are 0 that often."""
    p = equivalence(np.zeros(queries), margin)
    assert p == pytest.approx((1 - margin) ** queries, rel=1e-12)
    assert (p <= 0.05) == (queries >= math.log(0.05) / math.log(1 - margin))
    assert equivalence(np.full(queries, margin / 2), margin) > p


@pytest.mark.parametrize("queries", [30, 100, 300])
@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("size", [1.0, 0.3])
def test_few_differing_queries_do_not_make_systems_equivalent(queries, margin, size):
    """The true mean is the margin; t-tests alone say so in up to 20% of such draws."""
    stats = pytest.importorskip("scipy.stats")
    draws = size * (fresh(22).random((500, queries)) < margin / size)
    assert np.mean([equivalence(one, margin) <= 0.05 for one in draws]) <= 0.08
    # As exact as SciPy's binomial: all differences are 0 or of one size.
    few = np.repeat([size, 0.0], [2, queries - 2])
    exact = stats.binom.cdf(2, queries, margin / size)
    tests = [
        stats.ttest_1samp(few, sign * margin, alternative=side).pvalue
        for sign, side in ((1, "less"), (-1, "greater"))
    ]
    assert equivalence(few, margin) == pytest.approx(max(exact, *tests), rel=1e-9)


@pytest.mark.parametrize("queries", [30, 100])
@pytest.mark.parametrize(
    ("share", "large", "others"), [(0.2, 0.5, -0.02), (0.1, 1.0, -0.05), (0.1, 1.0, 0.02)]
)
def test_few_large_differences_beside_small_ones_do_not_make_systems_equivalent(
    queries, share, large, others
):
    """The true mean is the margin; t-tests alone say so in up to 18% of such draws, of either sign."""
    margin = share * large + (1 - share) * others
    draws = np.where(fresh(23).random((500, queries)) < share, large, others)
    for sign in (1, -1):
        assert np.mean([equivalence(sign * one, margin) <= 0.05 for one in draws]) <= 0.07


def test_a_plan_says_what_the_parts_say():
    d = fresh(21).normal(0.01, 0.2, 50)
    found = plan("nDCG@10", d, (0.05, 1e-6))
    deviation, tails = float(d.std(ddof=1)), excess_kurtosis(d[None])
    assert found.detectable == detectable(deviation, 50, kurtosis=tails)
    assert found.needs[0].queries == queries_needed(0.05, deviation, kurtosis=tails, pilot=50)
    assert found.needs[1].queries is None
    assert found.to_dict()["needs"][0]["power"] == power(0.05, deviation, 50, kurtosis=tails)


def test_registries_say_what_they_hold():
    assert sorted(TESTS) == ["bootstrap-shift", "permutation", "sign", "t", "tukey", "wilcoxon"]
    assert sorted(CORRECTIONS) == ["bh", "bonferroni", "holm", "none"]
    assert sorted(INTERVALS) == ["bca", "percentile", "studentised", "t", "two-level"]
    assert isinstance(TESTS, Registry)
    for name in TESTS:
        assert len(TESTS.get(name).summary) > 20
    assert all_pairs(3).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert t_statistic(np.full(4, 0.5)) == math.inf
    assert [t_tail(np.full(4, one)) for one in (1 / 3, -1 / 3, 0.0)] == [0.5**4, 1, 0.5]


@pytest.mark.parametrize("name", ["permutation", "bootstrap-shift"])
def test_the_smallest_p_value_of_drawn_tests_is_reached_and_named(name):
    kind, draws = TESTS.get(name), Draws(999, 1)
    values = np.stack([np.zeros(60), np.linspace(1.0, 2.0, 60)])  # no draw gives as large a mean
    [p] = p_values(name, values, np.array([[0, 1]]), draws)
    assert kind.drawn
    assert p == kind.smallest(60, 2, draws) == 1 / 1000


@pytest.mark.parametrize("level", [0.01, 0.05])
def test_quantiles_by_expansion_reject_as_the_tests_do(level):
    rows = np.random.default_rng(3).normal(0.6, 1.0, (200, 15))
    signs = np.array([exact_p(row) for row in rows])
    assert np.mean(rejected_by_signs(rows, level) == (signs < level)) > 0.97
    pair, draws = np.array([[0, 1]]), Draws(4_999, 5)
    samples = [p_values("bootstrap-shift", np.stack([row * 0, row]), pair, draws)[0] for row in rows[:60]]
    assert np.mean(rejected_by_samples(rows[:60], level) == (np.array(samples) < level)) > 0.93
