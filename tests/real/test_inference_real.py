"""Inference on the scores of real TREC runs: published p-values, calibration, coverage.

Scores: Urbano, Lima and Hanjalic, SIGIR 2019 (CC BY-SA 4.0); not part of the project.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest

from weir.stats.compare import ComparisonMethod, ScoreTable, compared
from weir.stats.distributions import normal_quantile, student_tail
from weir.stats.power import detectable
from weir.stats.resampling import INTERVALS, Draws, bounds
from weir.stats.significance import all_pairs, p_values, ranges, sign_p, t_statistic, wilcoxon_p

pytestmark = pytest.mark.real


def case(shared: Path, name: str) -> dict:
    text = (shared / "facts" / "significance-examples.json").read_text(encoding="utf-8")
    return {c["id"]: c for c in json.loads(text)["cases"]}[name]


def matrix(shared: Path, name: str) -> np.ndarray:
    """float64[K, Q] of a file whose rows are topics."""
    path = shared / "data" / "trec-score-matrices" / f"{name}.csv"
    return np.ascontiguousarray(np.genfromtxt(path, delimiter=",", skip_header=1).T)


def monte_carlo(p: float, draws: int) -> float:
    """Four standard errors of a share."""
    return 4 * math.sqrt(p * (1 - p) / draws)


def test_published_p_values_of_two_trec_8_runs(shared):
    """julian-urbano/sigir2019-statistical README: AP of run125 and run126 on 50 topics, [one-sided, two-sided]."""
    found = case(shared, "paired-tests")
    values = np.array([found["experimental"], found["baseline"]])
    d = values[0] - values[1]
    published = found["published"]
    one_sided = student_tail(t_statistic(d), 49)
    assert [one_sided, 2 * one_sided] == pytest.approx(published["t"], rel=1e-7)
    assert p_values("t", values)[0] == pytest.approx(found["computed_here"]["t"][1], rel=1e-9)
    assert t_statistic(d) == pytest.approx(found["computed_here"]["t_statistic"], rel=1e-9)
    expected = found["computed_here"]["wilcoxon scipy approx with continuity correction"][1]
    assert wilcoxon_p(d) == pytest.approx(published["wilcoxon"][1], rel=1e-6)
    assert wilcoxon_p(d) == pytest.approx(expected, rel=1e-9)
    assert sign_p(d, 0.01) == pytest.approx(published["sign (min_d .01)"][1], rel=1e-6)
    assert sign_p(d, 0.01) == pytest.approx(found["computed_here"]["sign"][1], rel=1e-9)
    for test, name in (
        ("permutation", "permutation (B=1e6)"),
        ("bootstrap-shift", "bootstrap-shift (B=1e6)"),
    ):
        p, theirs = p_values(test, values, draws=Draws(400_000))[0], published[name][1]
        assert p == pytest.approx(theirs, abs=1.3 * monte_carlo(theirs, 400_000))


def test_published_intervals_and_effects_of_two_trec_8_runs(shared):
    found = case(shared, "paired-tests")
    values = np.array([found["experimental"], found["baseline"]])
    here = found["computed_here"]
    pair = compared(ScoreTable("trec8", "AP", ("run126", "run125"), values), "run125").pairs[0]
    assert pair.difference == pytest.approx(here["mean_diff"], rel=1e-9)
    assert [pair.low, pair.high] == pytest.approx(here["t_ci95"], rel=1e-9)
    hedges = here["cohens_d_paired (mean/sd_diff)"] * here["hedges_correction J=1-3/(4*df-1)"]
    assert pair.effect == pytest.approx(hedges, rel=1e-9)
    percentile = bounds((values[0] - values[1])[None], "percentile")[0]
    assert percentile == pytest.approx(here["percentile_bootstrap_ci95 (B=1e5)"], abs=1.5e-3)
    deviation = here["sd_diff_ddof1"]
    by_normal = (normal_quantile(0.975) + normal_quantile(0.8)) * deviation / math.sqrt(50)
    assert by_normal == pytest.approx(here["mde_two_sided_alpha05_power80_normal (z)"], rel=1e-9)
    # The exact one allows for the deviation being estimated, by the test and beforehand.
    assert by_normal < detectable(deviation, 50) < 1.05 * by_normal
    assert pair.verdict == "better"


def test_randomised_tukey_of_five_web_runs(shared):
    found = case(shared, "tukey-hsd")
    values = np.array(found["scores"]).T
    p = p_values("tukey", values)
    t = p_values("t", values)
    for number, (i, j) in enumerate(all_pairs(5).tolist()):
        expected = found["computed_here"][f"{found['systems'][i]}-{found['systems'][j]}"]
        theirs = expected["p_tukey_randomised"]
        assert p[number] == pytest.approx(theirs, abs=2 * monte_carlo(max(theirs, 1e-4), 100_000))
        assert t[number] == pytest.approx(expected["p_t"], rel=1e-9)
    drawn = np.concatenate(list(ranges(values, Draws())))
    assert np.quantile(drawn, 0.95) == pytest.approx(found["q95_randomised"], abs=1e-3)


@pytest.mark.parametrize("name", ["adhoc8_ap", "adhoc8_p10", "web2013_ndcg20"])
def test_type_one_error_on_real_scores(shared, name):
    """10,000 times 50 real differences whose systems are swapped at random on each topic: no difference is there."""
    values = matrix(shared, name)
    draw = np.random.default_rng(1)
    first, second = draw.integers(0, len(values), (2, 10_000))
    topics = draw.integers(0, values.shape[1], (10_000, 50))
    d = values[first[:, None], topics] - values[second[:, None], topics]
    d *= draw.choice([-1.0, 1.0], d.shape)
    d = d[first != second]
    systems = np.vstack([d, np.zeros(50)])
    pairs = np.stack([np.arange(len(d)), np.full(len(d), len(d))], axis=1)
    for test in ("t", "permutation"):
        error = np.mean(p_values(test, systems, pairs, Draws(2_000)) < 0.05)
        assert 0.042 <= error <= 0.055, (test, error)


@pytest.mark.parametrize(
    ("how", "low"), [("t", 0.93), ("studentised", 0.925), ("bca", 0.905), ("percentile", 0.905)]
)
def test_coverage_on_resampled_real_scores(shared, how, low):
    """95% intervals of 50 differences drawn from real ones, 40 pairs of systems x 100 samples."""
    draw, covered = np.random.default_rng(7), []
    for name in ("adhoc8_ap", "web2013_ndcg20"):
        values = matrix(shared, name)
        for pair in range(20):
            i, j = draw.choice(len(values), 2, replace=False)
            d = values[i] - values[j]
            rows = d[draw.integers(0, len(d), (100, 50))]
            found = bounds(rows, how, draws=Draws(1_000, pair))
            covered.append(np.mean((found[:, 0] <= d.mean()) & (d.mean() <= found[:, 1])))
    assert how in INTERVALS
    assert low <= np.mean(covered) <= 0.97, np.mean(covered)


def test_all_systems_of_a_track_in_seconds(shared):
    """129 systems, 8,256 pairs: letters hold, and the best is not told apart from the next few."""
    values = matrix(shared, "adhoc8_ap")
    names = tuple(f"run{n}" for n in range(1, len(values) + 1))
    begun = time.process_time()
    table = ScoreTable("trec8", "AP", names, values)
    few = compared(table, method=ComparisonMethod(draws=10_000))  # a p-value of 1 / 10,001, times 8,256
    assert not few.reach.possible
    assert not any(s.letters for s in few.standings)
    found = compared(table, method=ComparisonMethod("t"))
    assert time.process_time() - begun < 120
    assert len(few.pairs) == len(found.pairs) == 8_256
    spaced = any(" " in s.letters for s in found.standings)  # more groups than letters: some have two
    letters = {s.system: set(s.letters.split() if spaced else s.letters) for s in found.standings}
    for pair in found.pairs:
        assert bool(letters[pair.first] & letters[pair.second]) == (pair.verdict == "not separable")
    assert found.standings[0].worst > 1
