"""Samples drawn with replacement: their distribution, and that nothing else moves a bit of their sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.stats import resampling
from weir.stats.compare import ComparisonMethod, ScoreTable, compared
from weir.stats.resampling import SEED, intervals, resampled_counts, resampled_means, resampled_sums, summable


def fresh(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def counts(queries: int, resamples: int, seed: int = 1, **how: int) -> np.ndarray:
    return np.concatenate(
        [block.copy() for block in resampled_counts(queries, resamples, fresh(seed), **how)]
    )


def occupied(n: int) -> list[float]:
    """P(k different ones among n draws from n), k = 1..n, in exact arithmetic: Stirling numbers of the second kind."""
    row = [1]
    for _ in range(n - 1):
        row = [
            (k + 1) * (row[k] if k < len(row) else 0) + (row[k - 1] if k else 0) for k in range(len(row) + 1)
        ]
    return [float(Fraction(s * math.perm(n, k), n**n)) for k, s in enumerate(row, 1)]


@pytest.mark.parametrize("n", [2, 3, 6, 7, 12, 40])
def test_how_many_queries_a_sample_holds_is_as_when_drawn_one_by_one(n):
    """Chi-square against exact probabilities, 60,000 samples; 2..6 are all single draws, 7 is the first that is not."""
    found = np.count_nonzero(counts(n, 60_000), axis=1)
    observed, expected = np.bincount(found, minlength=n + 1)[1:], 60_000 * np.array(occupied(n))
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("n", [5, 9, 100, 3000])
def test_a_query_occurs_as_often_as_the_binomial_distribution_says(n):
    """The common counts come from words of 16 bits, the rare ones from elsewhere: both must fit."""
    some = counts(n, max(2_000, 2_000_000 // n // 10))
    assert (some.sum(axis=1) == n).all()
    assert (some >= 0).all()
    observed = np.bincount(some.astype(np.int64).ravel(), minlength=12)[:12]
    expected = some.size * stats.binom.pmf(np.arange(12), n, 1 / n)
    # Counts of one sample add up to n, so shares vary a little less than independent ones would.
    assert (np.abs(observed - expected) <= 4.5 * np.sqrt(expected) + 1).all(), (observed, expected)
    each = some.mean(axis=0)
    assert np.abs(each - 1).max() < 5 / math.sqrt(len(some))


def test_two_queries_share_the_samples_as_they_should():
    """Counts of two queries have the covariance -1/n of the multinomial distribution, and the variance 1 - 1/n."""
    some = counts(20, 100_000)
    found = np.cov(some.T)
    assert found.diagonal() == pytest.approx(1 - 1 / 20, abs=0.03)
    assert found[~np.eye(20, dtype=bool)] == pytest.approx(-1 / 20, abs=0.02)


@pytest.mark.parametrize("n", [1, 3, 50, 700])
def test_samples_depend_on_nothing_but_the_seed(n):
    whole = counts(n, 333)
    assert whole.shape == (333, n)
    for cells in (1, 5 * n, 64 * n):
        assert (counts(n, 333, cells=cells) == whole).all()
    assert (counts(n, 100) == whole[:100]).all()
    assert n == 1 or (counts(n, 333, seed=2) != whole).any()


def test_sums_are_exact_and_no_bit_depends_on_anything_else(monkeypatch):
    values = fresh(3).random((5, 400)) ** 3
    whole = np.concatenate(list(resampled_sums(values, 200, fresh(1))))
    times = counts(400, 200)
    exact = summable(values)
    assert exact == pytest.approx(values, rel=1e-9, abs=400 * 2**-51)
    for row in (0, 199):
        for column in range(5):
            pairs = zip(times[row].tolist(), exact[column].tolist(), strict=True)
            assert Fraction(whole[row, column]) == sum(int(t) * Fraction(v) for t, v in pairs)
    alone = np.concatenate(list(resampled_sums(values[3:4], 200, fresh(1))))
    assert (alone[:, 0] == whole[:, 3]).all()
    assert (resampled_means(values[3], fresh(1), 200) == whole[:, 3] / 400).all()
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 40_000)
    assert (np.concatenate(list(resampled_sums(values, 200, fresh(1)))) == whole).all()


def test_values_that_add_up_exactly():
    rows = np.array([[0.0, 0.0, 0.0], [0.1, 0.2, 0.3], [1e-300, 3e-300, 0], [-1e300, 1e299, 5.0], [1, 2, 3]])
    found = summable(rows)
    assert (found[0] == 0).all()
    assert (found[4] == rows[4]).all()
    for given, row in zip(rows, found, strict=True):
        assert np.abs(given - row).max() <= np.abs(given).max() * 3 * 2**-51
        assert sum(map(Fraction, row.tolist())) == Fraction(float(row.sum()))


def test_intervals_are_the_same_bits_alone_beside_others_and_in_a_comparison():
    values = fresh(5).beta(1, 2, (6, 90))
    names = [f"q{n:02}" for n in range(90)]
    ids, answered = Ids.of(names), np.ones(90, bool)
    measures = tuple(f"m{k}" for k in range(6))
    together = intervals(Scores(measures, ids, values, answered))
    for k in range(6):
        assert intervals(Scores(measures[:1], ids, values[[k]], answered)) == [together[k]]
    # A table's columns are in the order in which `intervals` takes queries.
    order = Scores(measures, ids, values, answered).id_order()
    shown = compared(
        ScoreTable("d", "m", measures, values[:, order]), method=ComparisonMethod(test="t")
    ).standings
    assert {s.system: (s.low, s.high) for s in shown} == {
        m: (i.low, i.high) for m, i in zip(measures, together, strict=True)
    }


def test_measures_that_are_undefined_for_other_queries_have_their_own_samples():
    values = fresh(6).random((4, 30))
    values[1, 4] = values[2, 4] = np.nan
    values[3] = np.nan
    ids, answered = Ids.of([f"q{n:02}" for n in range(30)]), np.ones(30, bool)
    found = intervals(Scores(("a", "b", "c", "d"), ids, values, answered))
    for k in range(3):
        assert intervals(Scores(("x",), ids, values[[k]], answered)) == [found[k]]
    assert all(math.isnan(v) for v in (found[3].mean, found[3].low, found[3].high))
    assert intervals(Scores((), ids, values[:0], answered)) == []


def test_the_stream_is_pinned():
    """Stored intervals and the README's figures come from these samples: a change of the stream must be meant."""
    assert counts(10, 3, SEED).astype(int).tolist() == PINNED
    found = resampled_means(np.arange(100.0), fresh(SEED), 4)
    assert np.round(found * 100).tolist() == PINNED_SUMS


PINNED = [[1, 3, 1, 1, 0, 1, 0, 1, 1, 1], [0, 1, 1, 2, 0, 0, 2, 0, 3, 1], [1, 0, 3, 1, 0, 3, 1, 1, 0, 0]]
PINNED_SUMS = [4720, 4604, 4994, 5046]
