"""What no reordering of queries or systems may change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import weir.api.comparison_tables  # by which comparisons are printed
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.stats.compare import Comparison, ComparisonMethod, compared, table
from weir.stats.distributions import student_quantile, student_tail
from weir.stats.order_agreement import rbo
from weir.stats.power import detectable, power
from weir.stats.resampling import Draws, fewest, percentiles, ratio_interval, share_bounds
from weir.stats.significance import CORRECTIONS, TESTS, adjusted, p_values

# Tenths, so that ties and equal values are common.
values = arrays(
    np.float64,
    st.tuples(st.integers(2, 4), st.integers(2, 25)),
    elements=st.integers(0, 10).map(lambda v: v / 10),
)


def comparison(rows: np.ndarray, order: np.ndarray, method: ComparisonMethod) -> Comparison:
    """The comparison of systems whose files list the queries in this order."""
    ids = Ids.of([f"q{n:02}" for n in order])
    answered = np.ones(len(order), bool)
    named = {f"s{k}": Scores(("m",), ids, row[None, order], answered) for k, row in enumerate(rows)}
    return compared(table("d", "m", named), method=method)


@settings(max_examples=25)
@given(values, st.sampled_from(sorted(TESTS)), st.randoms(use_true_random=False))
def test_the_order_of_queries_changes_nothing(rows, test, random):
    order = np.arange(rows.shape[1])
    shuffled = np.array(random.sample(order.tolist(), len(order)))
    method = ComparisonMethod(test, interval="bca", draws=200)
    assert repr(comparison(rows, shuffled, method)) == repr(comparison(rows, order, method))


@settings(max_examples=40)
@given(values, st.sampled_from(sorted(set(TESTS) - {"tukey"})))
def test_swapping_two_systems_keeps_p_and_flips_the_difference(rows, test):
    draws = Draws(200)
    ways = np.array([[0, 1], [1, 0]])
    p = p_values(test, rows, ways, draws)
    assert p[0] == p[1]
    assert 0 < p[0] <= 1 or (test == "t" and p[0] == 0)
    assert p_values(test, rows[[1, 0]], ways, draws) == pytest.approx(p, rel=1e-9)


@settings(max_examples=40)
@given(values, st.sampled_from(sorted(set(TESTS) - {"tukey"})))
def test_other_systems_do_not_change_a_pairs_p_value(rows, test):
    alone = p_values(test, rows[:2], draws=Draws(200))[0]
    assert p_values(test, rows, draws=Draws(200))[0] == alone


@settings(max_examples=30)
@given(values)
def test_a_comparison_holds_together(rows):
    found = comparison(rows, np.arange(rows.shape[1]), ComparisonMethod(draws=200))
    means = [s.mean for s in found.standings]
    assert means == sorted(means, reverse=True)
    letters = {s.system: set(s.letters) for s in found.standings}
    few = rows.shape[1] < fewest()
    for one in (*found.standings, *found.pairs):
        assert (one.low is None) == (one.high is None)
        assert not few or one.low is None
    for s in found.standings:
        equal = bool((np.ptp(rows, axis=1) < 1e-12).any())
        assert few or (equal if s.low is None else s.low - 1e-12 <= s.mean <= s.high + 1e-12)
        assert 1 <= s.best <= s.worst <= len(means)
    for pair in found.pairs:
        assert pair.won + pair.lost + pair.tied == rows.shape[1]
        assert pair.low is None or pair.low - 1e-12 <= pair.difference <= pair.high + 1e-12
        assert pair.p <= pair.adjusted <= 1
        shared = bool(letters[pair.first] & letters[pair.second])
        assert shared == (pair.verdict == "not separable" and found.reach.possible)
        assert not any(math.isnan(v) for v in (pair.p, pair.adjusted, pair.detectable or 0))
        assert found.reach.possible or (pair.detectable is None and pair.verdict == "not separable")
        assert pair.adjusted >= found.reach.smallest
        at = {s.system: s for s in found.standings}
        assert (pair.difference > 0) == (at[pair.second].mean > at[pair.first].mean)


@given(arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1)), st.sampled_from(sorted(CORRECTIONS)))
def test_corrections_keep_the_order_and_never_lower_a_p_value(p, name):
    found = adjusted(p, name)
    assert (found >= p).all()
    assert (found <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    assert (adjusted(p, "holm") <= adjusted(p, "bonferroni")).all()
    assert adjusted(p[::-1], name).tolist() == found[::-1].tolist()


@given(st.floats(0.001, 0.999), st.integers(1, 5000))
def test_quantiles_invert_tails(p, df):
    assert 1 - student_tail(student_quantile(p, df), df) == pytest.approx(p, abs=1e-9)


@settings(max_examples=40)
@given(st.floats(1e-3, 1), st.integers(2, 3000), st.floats(0.2, 0.95))
def test_the_detectable_difference_has_the_wanted_power(deviation, n, wanted):
    least = detectable(deviation, n, wanted, test="t")
    assert power(least, deviation, n, test="t") == pytest.approx(wanted, abs=1e-8)
    signs = detectable(deviation, n, wanted)
    assert math.isinf(signs) if n < 6 else signs >= 0.97 * least


@given(st.permutations("abcdefgh"), st.permutations("abcdefgh"), st.floats(0.05, 0.99))
def test_overlap_is_symmetric_and_within_bounds(a, b, p):
    assert 0 <= rbo(a, b, p) <= 1
    assert rbo(a, b, p) == pytest.approx(rbo(b, a, p), abs=1e-12)
    assert rbo(a, a, p) == pytest.approx(1, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(6, 12), st.integers(1, 4), st.sampled_from([0.0, 0.25, 1.0]))
def test_no_interval_of_resamples_is_without_width(queries, each, kept):
    """What no resample changes says nothing of chance: a share has Wilson's interval, all else has none."""
    of = np.full(queries, float(each))
    assert math.isnan(ratio_interval((kept * of, of))[0])
    assert np.isnan(percentiles(np.full((50, 2), kept))).all()
    share = ratio_interval((kept * of, of), share=True)
    if kept in (0.0, 1.0):
        assert share == share_bounds(kept * of.sum(), int(of.sum()))
        assert share[0] < share[1]
    grades = {f"q{q}": {f"d{d}": (q + d) % 2 for d in range(each)} for q in range(queries)}
    [same] = weir.labels.agree(grades, grades)
    for name, value, low, high in same.values:
        if name == "accuracy":
            assert (value, high) == (1.0, 1.0)
            assert low == share_bounds(queries * each, queries * each)[0]
        else:
            assert math.isnan(low)
            assert math.isnan(high)
    assert "no interval" in str(same)
