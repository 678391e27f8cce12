"""The classical tests of paired differences: Student's t, Wilcoxon's signed ranks, the sign test."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weir.core.strings import Float64
from weir.stats.distributions import binomial_tail, normal_tail, student_tail
from weir.stats.significance import Detection, Draws, Pairs, significance

__all__ = ["sign_p", "sign_test", "t_statistic", "t_test", "wilcoxon_p", "wilcoxon_test"]

EXACT_DIFFERENCES = 50


@significance("t", detection=Detection())
def t_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """The paired t-test: is the mean difference zero?

    The p-value is 1 where all differences are zero. Closest to its nominal level of all tests on retrieval
    data, with the permutation test. Source: Student 1908; Urbano, Lima and Hanjalic 2019.
    """
    return _each(values, pairs, lambda d: 2 * student_tail(abs(t_statistic(d)), len(d) - 1))


@significance("wilcoxon", smallest=lambda units, systems, draws: wilcoxon_p(np.arange(1.0, units + 1)))
def wilcoxon_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Wilcoxon's signed-rank test: are differences as often and as far above zero as below?

    It asks about the median, so with skewed differences it finds too much, more so with more queries; kept for
    comparison with older papers. Source: Wilcoxon 1945; as R's wilcox.test(paired=TRUE).
    """
    return _each(values, pairs, wilcoxon_p)


@significance("sign", smallest=lambda units, systems, draws: sign_p(np.ones(units)))
def sign_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """The sign test: are differences as often above zero as below?

    Equal values are left out; the binomial distribution is exact. It asks about the median, as Wilcoxon's.
    Source: Arbuthnott 1710; as scipy.stats.binomtest.
    """
    return _each(values, pairs, sign_p)


def t_statistic(differences: Float64) -> float:
    """The mean difference in units of its standard error; 0 where all differences are zero."""
    n = len(differences)
    mean = math.fsum(differences.tolist()) / n
    error = math.sqrt(math.fsum(((differences - mean) ** 2).tolist()) / (n - 1) / n)
    if error == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / error


def wilcoxon_p(differences: Float64) -> float:
    """Two-sided p-value of Wilcoxon's test of one row of differences.

    Zeros are left out. Exact for fewer than 50 differences of distinct sizes; otherwise normal, corrected for
    ties and continuity. Sizes are tied where they are equal as doubles, as R and SciPy have it.
    """
    found = differences[differences != 0]
    n = len(found)
    if n == 0:
        return 1.0
    _, at, ties = np.unique(np.abs(found), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[at]
    above = float(ranks[found > 0].sum())
    if n < EXACT_DIFFERENCES and len(ties) == n:
        return _exact_ranks(round(above), n)
    from_middle = above - n * (n + 1) / 4
    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(ties.astype(np.float64) ** 3 - ties)) / 48
    z = max(0.0, abs(from_middle) - 0.5) / math.sqrt(variance)
    return 2 * normal_tail(z)


def sign_p(differences: Float64, tie: float = 0.0) -> float:
    """Two-sided p-value of the sign test of one row of differences; those within ±tie are left out."""
    won, lost = int(np.sum(differences > tie)), int(np.sum(differences < -tie))
    return min(1.0, 2 * binomial_tail(max(won, lost), won + lost))


def _exact_ranks(above: int, n: int) -> float:
    """Two-sided tail of the sum of the ranks 1..n that a fair coin chooses."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    smaller = min(above, len(ways) - 1 - above)
    return min(1.0, 2 * float(ways[: smaller + 1].sum()) / 2.0**n)


def _each(values: Float64, pairs: Pairs, p: Callable[[Float64], float]) -> Float64:
    return np.array([p(values[i] - values[j]) for i, j in pairs.tolist()])
