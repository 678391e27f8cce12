"""Inference against SciPy and against published numbers.

The published ones are those of Urbano, Lima and Hanjalic (SIGIR 2019), computed from scores of TREC runs that are not
part of the project: tests/real/test_inference_real.py reads the scores and compares.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats
from scipy.integrate import quad

from weir.stats import compare  # noqa: F401  registers every test
from weir.stats.distributions import (
    binomial_tail,
    normal_quantile,
    normal_tail,
    student_quantile,
    student_tail,
)
from weir.stats.order_agreement import kendall_tau, rbo
from weir.stats.permutation import exact_p, exact_p_values, rejected_by_signs
from weir.stats.power import SOME_UNITS, detectable, equivalence, power, queries_needed
from weir.stats.resampling import INTERVALS, RESAMPLES, Draws, bounds, resampled, resampled_counts
from weir.stats.significance import adjusted, all_pairs, level_met, p_values, sign_p, t_statistic, wilcoxon_p

SMALL = np.array([0.1, 0.2, -0.05, 0.3])


def differences(seed: int, n: int) -> np.ndarray:
    """Skewed differences, some of them zero, as two retrieval systems have."""
    draw = np.random.default_rng(seed)
    d = draw.beta(0.5, 1.5, n) - draw.beta(0.5, 1.6, n)
    d[draw.random(n) < 0.2] = 0
    return d


def systems(seed: int, count: int, n: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.clip(
        draw.beta(1, 2, n) + draw.normal(0, 0.1, (count, n)) + 0.01 * np.arange(count)[:, None], 0, 1
    )


close = {"rel": 1e-9, "abs": 1e-300}


exact = {"rel": 1e-12, "abs": 1e-300}


@pytest.mark.parametrize("df", [1, 1.3, 2, 2.7, 4, 49, 299.5, 6979, 1e6, 1e7])
def test_students_distribution_is_scipys(df):
    for t in (-3, 0, 0.01, 0.1, 1, 2, 3.4, 8, 20, 1e4):
        assert student_tail(t, df) == pytest.approx(stats.t.sf(t, df), **exact)
    for p in (0.001, 0.025, 0.3, 0.5, 0.6, 0.8, 0.975, 0.9999, 1 - 1e-9):
        assert student_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), **exact)
    assert student_tail(math.inf, df) == 0
    assert student_tail(-math.inf, df) == 1


def test_students_tail_keeps_its_digits_near_zero():
    """Of one degree of freedom it is an arc tangent."""
    for t in (1e-300, 1e-9, 1e-5, 1e-3, 1.0, 1e9):
        assert student_tail(t, 1) == pytest.approx(math.atan2(1, t) / math.pi, **exact)
        assert student_quantile(1 - student_tail(t, 1), 1) == pytest.approx(t, rel=1e-6, abs=1e-15)


def test_the_normal_and_the_binomial_are_scipys():
    for z in (-8, -1.96, 0, 0.5, 3, 12):
        assert normal_tail(z) == pytest.approx(stats.norm.sf(z), **exact)
    for p in (1e-12, 0.025, 0.5, 0.8, 1 - 1e-9):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), **exact)
    for n, k in (
        (1, 1),
        (10, 8),
        (44, 31),
        (100, 60),
        (10_000, 5_100),
        (10_000, 100),
        (10_000, 9_900),
        (5, 0),
        (5, 6),
    ):
        for chance in (0.5, 1 / 3, 0.05, 0.99, 0.0, 1.0):
            assert binomial_tail(k, n, chance) == pytest.approx(stats.binom.sf(k - 1, n, chance), **close)
        ways, all_ways = math.comb(n, k), 0
        for heads in range(k, n + 1):
            all_ways += ways
            ways = ways * (n - heads) // (heads + 1)
        assert binomial_tail(k, n) == pytest.approx(all_ways / 2**n, **exact)


@pytest.mark.parametrize("n", [2, 5, 12, 30, 50, 200, 1000])
def test_the_classical_tests_are_scipys(n):
    for seed in range(5):
        d = differences(seed, n)
        if not d.any():
            continue
        theirs = stats.ttest_1samp(d, 0)
        assert t_statistic(d) == pytest.approx(theirs.statistic, rel=1e-9)
        pair = np.stack([d, np.zeros(n)])
        assert p_values("t", pair)[0] == pytest.approx(theirs.pvalue, **close)
        won, lost = int((d > 0).sum()), int((d < 0).sum())
        assert sign_p(d) == pytest.approx(stats.binomtest(won, won + lost).pvalue, **close)
        some = d[d != 0]
        how = "exact" if len(some) < 50 else "asymptotic"
        theirs = stats.wilcoxon(some, correction=True, method=how)
        assert wilcoxon_p(d) == pytest.approx(theirs.pvalue, **close)


def test_wilcoxons_test_with_ties_is_scipys():
    d = np.round(differences(3, 80), 1)
    theirs = stats.wilcoxon(d[d != 0], correction=True, method="asymptotic")
    assert wilcoxon_p(d) == pytest.approx(theirs.pvalue, **close)


@pytest.mark.parametrize("n", [2, 3, 8, 12])
def test_the_exact_permutation_test_is_scipys(n):
    d = differences(n, n)
    theirs = stats.permutation_test(
        (d, np.zeros(n)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    assert exact_p(d) == pytest.approx(theirs.pvalue, abs=1e-9)
    assert p_values("permutation", np.stack([d, np.zeros(n)]))[0] == pytest.approx(theirs.pvalue, abs=1e-9)


def test_the_sampled_permutation_test_is_scipys_within_monte_carlo_error():
    x, y = systems(4, 2, 60)
    y += 0.02
    theirs = stats.permutation_test(
        (x, y),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    ).pvalue
    ours = p_values("permutation", np.stack([x, y]))[0]
    assert ours == pytest.approx(theirs, abs=4 * math.sqrt(theirs * (1 - theirs) / 20_000))


def test_published_small_case():
    """Significance tests of the differences .1, .2, -.05, .3 (all 16 sign patterns by hand and by SciPy 1.17.1)."""
    pair = np.stack([SMALL, np.zeros(4)])
    found = {test: p_values(test, pair)[0] for test in ("permutation", "t", "wilcoxon", "sign")}
    assert found == pytest.approx(
        {"permutation": 0.25, "t": 0.1627331098242935, "wilcoxon": 0.25, "sign": 0.625}, rel=1e-9
    )


def test_published_corrections():
    p = np.array([0.001, 0.01, 0.02, 0.03, 0.2])
    assert adjusted(p, "bonferroni") == pytest.approx([0.005, 0.05, 0.1, 0.15, 1], rel=1e-12)
    assert adjusted(p, "holm") == pytest.approx([0.005, 0.04, 0.06, 0.06, 0.2], rel=1e-12)
    assert adjusted(p, "bh") == pytest.approx([0.005, 0.025, 1 / 30, 0.0375, 0.2], rel=1e-12)
    assert adjusted(p, "none") == pytest.approx(p)
    draw = np.random.default_rng(2).random(37) ** 3
    assert adjusted(draw, "bh") == pytest.approx(stats.false_discovery_control(draw), rel=1e-12)


@pytest.mark.parametrize(
    ("delta", "deviation", "n"),
    [
        (0.05, 0.2, 50),
        (0.05, 0.2, 100),
        (0.05, 0.2, 128),
        (0.02, 0.15, 300),
        (0.02, 0.15, 444),
        (0.01, 0.1, 50),
    ],
)
def test_power_is_that_of_scipys_noncentral_t(delta, deviation, n):
    shift, edge = delta * math.sqrt(n) / deviation, student_quantile(0.975, n - 1)
    # The deviation is an estimate: the mean over what it may have been, by SciPy's chi and nct.
    width = 10 / math.sqrt(2 * (n - 1))

    def weighed(s: float) -> float:
        tails = stats.nct.sf(edge, n - 1, shift * s) + stats.nct.cdf(-edge, n - 1, shift * s)
        return float(tails * stats.chi.pdf(s * math.sqrt(n - 1), n - 1) * math.sqrt(n - 1))

    mean, _ = quad(weighed, max(0, 1 - width), 1 + width, points=[1])
    assert power(delta, deviation, n, test="t") == pytest.approx(mean, rel=1e-8)
    assert power(-delta, deviation, n, test="t") == power(delta, deviation, n, test="t")
    assert n <= SOME_UNITS or power(delta, deviation, n) == power(delta, deviation, n, test="t")


def test_planning_inverts_power():
    assert queries_needed(0.05, 0.2) == 130
    assert queries_needed(0.02, 0.15) == 446
    assert power(0.05, 0.2, 129) < 0.8 <= power(0.05, 0.2, 130)
    for n in (2, 50, 300, 7405):
        least = detectable(0.3, n, test="t")
        assert power(least, 0.3, n, test="t") == pytest.approx(0.8, rel=1e-9)
    # Hand formula of the normal approximation: (1.96 + 0.8416) * 0.3 / sqrt(n); the exact one is a little more, for
    # both the estimate that is printed and the one of the test.
    assert detectable(0.3, 50) == pytest.approx(1.04 * 0.119, abs=1e-3)
    assert detectable(0.3, 300) == pytest.approx(0.049, abs=5e-4)
    assert detectable(0.3, 7405) == pytest.approx(0.0098, abs=1e-4)


@pytest.mark.parametrize("pilot", [2, 4, 8, 16, 43])
def test_queries_planned_from_a_pilot_find_a_difference_as_often_as_promised(pilot):
    """Over pilots whose deviations lie as the chi distribution has it, by SciPy's noncentral t."""
    ranks = (np.arange(50) + 0.5) / 50
    deviations = np.sqrt(stats.chi2.ppf(ranks, pilot - 1) / (pilot - 1))
    needed = np.array([queries_needed(0.2, float(one), test="t", pilot=pilot) for one in deviations])
    chance = special.nctdtr(needed - 1, 0.2 * np.sqrt(needed), stats.t.ppf(0.975, needed - 1))
    assert 0.795 < 1 - chance.mean() < 0.81
    assert queries_needed(detectable(1.0, pilot, test="t"), 1.0, test="t", pilot=pilot) in (pilot, pilot + 1)


@pytest.mark.parametrize("n", [2, 5, 9, 12])
def test_p_values_of_many_rows_are_those_of_every_pattern(n):
    rows = np.random.default_rng(n).normal(0.5, 1, (60, n))
    assert exact_p_values(rows) == pytest.approx([exact_p(row) for row in rows], abs=1e-15)


@pytest.mark.parametrize("level", [0.05, 0.005])
def test_the_quantile_of_random_signs_is_that_of_every_pattern(level):
    """Of 16 differences, where all 2^16 patterns can be looked at; where the two disagree p is next to the level."""
    rows = np.random.default_rng(7).normal(0.6, 1, (2_000, 16))
    p = exact_p_values(rows)
    differ = rejected_by_signs(rows, level) != (p < level)
    assert differ.mean() < 0.01
    assert (np.abs(p[differ] / level - 1) < 0.12).all()


def test_levels_that_are_met_are_those_of_the_corrections():
    for correct, found, expected in (
        ("holm", 0, 0.05 / 10),
        ("holm", 3, 0.05 / 7),
        ("bonferroni", 3, 0.05 / 10),
        ("bh", 0, 0.05 / 10),
        ("bh", 3, 0.05 * 4 / 10),
        ("none", 3, 0.05),
    ):
        assert level_met(correct, 10, found, 0.05) == pytest.approx(expected, rel=1e-6)


def test_equivalence_is_two_one_sided_tests_of_scipy():
    d = differences(9, 80) * 0.2
    low = stats.ttest_1samp(d, -0.05, alternative="greater").pvalue
    high = stats.ttest_1samp(d, 0.05, alternative="less").pvalue
    assert equivalence(d, 0.05) == pytest.approx(max(low, high), **close)


@pytest.mark.parametrize("how", ["percentile", "BCa"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_on_the_same_samples_bootstrap_intervals_are_scipys(how, level):
    d = differences(5, 60)
    theirs = stats.bootstrap(
        (d,), np.mean, confidence_level=level, method=how, n_resamples=4000, rng=np.random.default_rng(3)
    )
    ours = INTERVALS.get(how.lower())(d, theirs.bootstrap_distribution, np.ones(4000), level)
    assert ours == pytest.approx((theirs.confidence_interval.low, theirs.confidence_interval.high), abs=1e-9)


def test_students_interval_is_scipys():
    d = differences(6, 60)
    theirs = stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert bounds(d[None], "t")[0] == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_the_studentised_interval_follows_its_formula():
    """Against a loop over the same samples, written out."""
    d = differences(7, 40)
    ratios = []
    for counts in next(resampled_counts(40, RESAMPLES, np.random.default_rng(5)))[:2000]:
        sample = np.repeat(d, counts.astype(int))
        ratios.append((sample.mean() - d.mean()) / (sample.std(ddof=1) / math.sqrt(40)))
    low, high = np.quantile(ratios, [0.025, 0.975])
    error = d.std(ddof=1) / math.sqrt(40)
    means, errors = resampled(d[None], Draws(RESAMPLES, 5))
    found = INTERVALS.get("studentised")(d, means[:2000, 0], errors[:2000, 0], 0.95)
    assert found == pytest.approx((d.mean() - high * error, d.mean() - low * error), abs=1e-9)


def test_tukeys_randomised_test_is_a_loop_written_out():
    """20,000 deals by permuting each query's values one after the other."""
    values = systems(8, 4, 20)
    draw, ranges = np.random.default_rng(6), []
    for _ in range(20_000):
        means = draw.permuted(values, axis=0).mean(axis=1)
        ranges.append(means.max() - means.min())
    found = p_values("tukey", values)
    means = values.mean(axis=1)
    for (i, j), p in zip(all_pairs(4), found, strict=True):
        expected = np.mean(np.array(ranges) >= abs(means[i] - means[j]) - 1e-12)
        assert p == pytest.approx(expected, abs=4 * math.sqrt(max(p * (1 - p), 1e-5) / 20_000))


def test_two_systems_make_tukeys_test_the_permutation_test():
    values = systems(3, 2, 25)
    tukey, permutation = p_values("tukey", values)[0], p_values("permutation", values)[0]
    assert tukey == pytest.approx(permutation, abs=4 * math.sqrt(permutation * (1 - permutation) / 5e4))


@pytest.mark.parametrize("seed", range(4))
def test_kendalls_tau_is_scipys(seed):
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, 12, 25) / 4, draw.integers(0, 9, 25) / 4
    assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, rel=1e-9)


@pytest.mark.parametrize(
    ("a", "b", "p", "expected"),
    [
        ("abcdefg", "zcavwxy", 0.9, 0.28821728571428573),
        ("abcde", "edcba", 0.98, 0.9428887066666666),
        ("abc", "abcdefgh", 0.9, 1.0),
        ("abcdefgh", "hxbay", 0.8, 0.2839210666666667),
        ("ab", "cd", 0.9, 0.0),
        ("qwertyuiop", "wqtreyuixpz", 0.95, 0.8575305357981554),
    ],
)
def test_rank_biased_overlap_is_that_of_the_package_rbo(a, b, p, expected):
    """RankingSimilarity(list(a), list(b)).rbo_ext(p) of rbo 0.1.3."""
    assert rbo(a, b, p) == pytest.approx(expected, abs=1e-12)
    assert rbo(b, a, p) == pytest.approx(expected, abs=1e-12)
