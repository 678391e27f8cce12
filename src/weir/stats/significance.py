"""Paired tests of differences between systems, and corrections of p-values for several tests."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.registry import Registry
from weir.stats.distributions import binomial_tail, normal_tail, student_tail
from weir.stats.resampling import BLOCK_CELLS, Draws

_NEAR_ZERO = 1e-9

Correction: TypeAlias = Callable[[Float64], Float64]
"""Maps ascending p-values to adjusted p-values in the same order, before they are cut at 1."""

CORRECTIONS: Registry[Correction] = Registry("correction")


def adjusted(p: Float64, correct: str = "holm") -> Float64:
    """Return the adjusted p-values in the order given, float64[tests]; NaN stays NaN and counts as no test.

    Raises UnknownName for a correction not in CORRECTIONS, BadValue for p-values outside 0..1.
    """
    correction = CORRECTIONS.get(correct)
    tested = np.flatnonzero(~np.isnan(p))
    corrected = np.full(len(p), np.nan)
    if len(tested) == 0:
        return corrected
    values = p[tested]
    if values.min() < 0 or values.max() > 1:
        raise BadValue("p-values lie between 0 and 1")
    order = np.argsort(values, kind="stable")
    # Rounding must not make a p-value smaller than it was.
    corrected[tested[order]] = np.clip(correction(values[order]), values[order], 1)
    return corrected


def level_met(correct: str, tests: int, others: int, alpha: float) -> float:
    """Return the level below which a p-value is significant if `others` of `tests` p-values are 0 and the
    rest 1.
    """
    p = np.concatenate([np.zeros(others), [_NEAR_ZERO], np.ones(tests - others - 1)])
    return alpha * _NEAR_ZERO / float(adjusted(p, correct)[others])


@CORRECTIONS.register("none")
def none(ascending: Float64) -> Float64:
    """Return the p-values unchanged."""
    return ascending


@CORRECTIONS.register("bonferroni")
def bonferroni(ascending: Float64) -> Float64:
    """Return ascending p-values times their number (family-wise error rate), not capped at 1."""
    # Dunn 1961.
    return ascending * len(ascending)


@CORRECTIONS.register("holm")
def holm(ascending: Float64) -> Float64:
    """Return ascending p-values adjusted by Holm's step-down method (family-wise error rate), not capped at 1."""
    # Holm 1979.
    m = len(ascending)
    return np.maximum.accumulate(ascending * (m - np.arange(m)))


@CORRECTIONS.register("bh")
def benjamini_hochberg(ascending: Float64) -> Float64:
    """Return ascending p-values adjusted by Benjamini and Hochberg (false discovery rate), not capped at 1."""
    # Benjamini and Hochberg 1995.
    m = len(ascending)
    return np.minimum.accumulate((ascending * m / np.arange(1, m + 1))[::-1])[::-1]


# Tests by name.

TEST = "permutation"
"""The default test."""

Pairs: TypeAlias = NDArray[np.int64]
"""int64[pairs, 2]: numbers of two systems; the difference is the first minus the second."""


Function: TypeAlias = Callable[[Float64, Pairs, Draws], Float64]


def _no_bound(units: int, systems: int, draws: Draws) -> float:
    return 0.0


@dataclass(frozen=True)
class Detection:
    """Functions that decide a test for many rows of differences, to simulate its power."""

    # Without them, and for many columns, the rows count as found that the paired t-test finds.
    p: Callable[[Float64], Float64] | None = None
    """p-value of each row, for few columns."""
    rejects: Callable[[Float64, float], NDArray[np.bool_]] | None = None
    """True for rows with a p-value below a level, for somewhat more columns."""


@dataclass(frozen=True)
class Significance:
    """A registered significance test of pairs of systems."""

    name: str
    function: Function
    """Maps values float64[systems, queries], pairs and draws to two-sided p-values float64[pairs]."""
    drawn: bool
    familywise: bool
    """True if the p-values hold for all pairs together and need no correction."""
    smallest: Callable[[int, int, Draws], float] = _no_bound
    """Lower bound of the p-values, from (queries or datasets, systems, draws)."""
    detection: Detection | None = None
    """None if no minimum detectable effect is known for the test."""

    @property
    def summary(self) -> str:
        """First line of the test's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


TESTS: Registry[Significance] = Registry("test")


def significance(
    name: str,
    *,
    drawn: bool = False,
    familywise: bool = False,
    smallest: Callable[[int, int, Draws], float] = _no_bound,
    detection: Detection | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as a test called `name`.

    drawn: the test draws at random.
    familywise: p-values hold for all pairs together.
    smallest: returns the smallest p-value possible with (units, systems, draws).
    detection: how the test's power is computed; None if unknown.
    """

    def register(function: Function) -> Function:
        TESTS.add(name, Significance(name, function, drawn, familywise, smallest, detection))
        return function

    return register


def p_values(test: str, values: Float64, pairs: Pairs | None = None, draws: Draws | None = None) -> Float64:
    """Return two-sided p-values of the differences between systems, float64[pairs].

    test: a name in TESTS.
    values: finite, float64[systems, queries].
    pairs: rows of `values` to compare, int64[pairs, 2], by default all.
    draws: for tests that draw.

    Raises UnknownName for another test, BadValue for fewer than two systems or queries, no draws, NaN or
    infinity.
    """
    function = TESTS.get(test).function
    draws = draws or Draws()
    if values.ndim != 2 or values.shape[0] < 2:
        raise BadValue("a test needs the values of at least two systems")
    if values.shape[1] < 2:
        raise BadValue(f"a test needs at least two queries that all systems share; found {values.shape[1]}")
    if not np.isfinite(values).all():
        raise BadValue("a test needs a number for each system and query; some are undefined or infinite")
    if draws.count < 1:
        raise BadValue(f"the number of draws is {draws.count}; expected at least 1")
    pairs = all_pairs(len(values)) if pairs is None else np.asarray(pairs, np.int64).reshape(-1, 2)
    return function(values, pairs, draws)


def all_pairs(systems: int) -> Pairs:
    """Return all pairs (i, j) of system numbers with i < j, int64[pairs, 2]."""
    return np.stack(np.triu_indices(systems, 1), axis=1).astype(np.int64)


# Student's t, Wilcoxon's signed ranks, the sign test.

EXACT_DIFFERENCES = 50
ROUNDING = 1e-12
"""Deviations of at most this share of the mean count as 0."""


@significance("t", detection=Detection())
def t_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Return two-sided p-values of the paired t-test, float64[pairs]; 1 if all differences are zero.

    Parameters: see `p_values`.
    """
    # Student 1908; Urbano, Lima and Hanjalic 2019.
    return _each(values, pairs, lambda d: 2 * min(t_tail(d), t_tail(-d)))


@significance("wilcoxon", smallest=lambda units, systems, draws: wilcoxon_p(np.arange(1.0, units + 1)))
def wilcoxon_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Return two-sided p-values of Wilcoxon's signed-rank test of differences, float64[pairs].

    It tests the median, so it finds too much in skewed differences. Parameters: see `p_values`.
    """
    # Wilcoxon 1945; as R's wilcox.test(paired=TRUE).
    return _each(values, pairs, wilcoxon_p)


@significance("sign", smallest=lambda units, systems, draws: sign_p(np.ones(units)))
def sign_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Return exact two-sided p-values of the sign test of differences, float64[pairs].

    It tests the median; equal values are left out. Parameters: see `p_values`.
    """
    # Arbuthnott 1710; as scipy.stats.binomtest.
    return _each(values, pairs, sign_p)


def p_of_draws(larger: Int64, draws: int) -> Float64:
    """Return (larger + 1) / (draws + 1), float64[pairs].

    larger: number of draws with a difference at least as large as observed, int64[pairs].
    """
    # Phipson and Smyth 2010.
    return (larger + 1) / (draws + 1)


def exact_mean(values: Float64) -> float:
    """Return the mean by an exact sum, independent of order; `values` must not be empty."""
    return math.fsum(values.tolist()) / len(values)


def defined_mean(values: Float64) -> float:
    """Return the exact mean of the values that are not NaN; NaN if none."""
    defined = values[~np.isnan(values)]
    return exact_mean(defined) if len(defined) else math.nan


def deviation_of(differences: Float64) -> float:
    """Return the sample standard deviation of two or more differences; 0 if equal up to rounding."""
    mean = exact_mean(differences)
    deviation = math.sqrt(math.fsum(((differences - mean) ** 2).tolist()) / (len(differences) - 1))
    return 0.0 if deviation <= ROUNDING * abs(mean) else deviation


def t_statistic(differences: Float64) -> float:
    """Return the mean difference divided by its standard error; 0 if all are zero, infinite if otherwise
    equal.
    """
    deviation, mean = deviation_of(differences), exact_mean(differences)
    if deviation == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / (deviation / math.sqrt(len(differences)))


def t_tail(differences: Float64) -> float:
    """Return the paired t-test's one-sided p-value of a mean above 0; 0.5^n if all n differences are equal
    and above 0.
    """
    t = t_statistic(differences)
    # Equal differences have no known deviation: the probability that all signs are alike.
    return 0.5 ** len(differences) if t == math.inf else student_tail(t, len(differences) - 1)


def wilcoxon_p(differences: Float64) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of the nonzero differences; 1 if there are
    none.

    Exact for fewer than 50 differences of distinct sizes, else normal with corrections.
    """
    nonzero = differences[differences != 0]
    n = len(nonzero)
    if n == 0:
        return 1.0
    _, at, ties = np.unique(np.abs(nonzero), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[at]
    above = float(ranks[nonzero > 0].sum())
    if (
        n < EXACT_DIFFERENCES and len(ties) == n
    ):  # the tail of the sum of the ranks 1..n that a fair coin chooses
        ways = np.zeros(n * (n + 1) // 2 + 1)
        ways[0] = 1
        for rank in range(1, n + 1):
            ways[rank:] += ways[:-rank].copy()
        smaller = min(round(above), len(ways) - 1 - round(above))
        return min(1.0, 2 * float(ways[: smaller + 1].sum()) / 2.0**n)
    from_middle = above - n * (n + 1) / 4
    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(ties.astype(np.float64) ** 3 - ties)) / 48
    z = max(0.0, abs(from_middle) - 0.5) / math.sqrt(variance)
    return 2 * normal_tail(z)


def sign_p(differences: Float64, tie: float = 0.0) -> float:
    """Return the two-sided p-value of the sign test of differences beyond ±`tie`; 1 if there are none."""
    won, lost = int(np.sum(differences > tie)), int(np.sum(differences < -tie))
    return min(1.0, 2 * binomial_tail(max(won, lost), won + lost))


def _each(values: Float64, pairs: Pairs, p: Callable[[Float64], float]) -> Float64:
    return np.array([p(values[i] - values[j]) for i, j in pairs.tolist()])


# Randomised Tukey HSD.

_LEAST_SHUFFLES = 32
_ROUNDING = 1e-11


def _smallest(units: int, systems: int, draws: Draws) -> float:
    # The probability that deals give all values of one system to one, and all of another to one other.
    return max((systems * (systems - 1.0)) ** (1 - units), 1 / (draws.count + 1))


@significance("tukey", drawn=True, familywise=True, smallest=_smallest)
def tukey_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Return familywise p-values of the randomised Tukey HSD test of mean differences, float64[pairs].

    A system far from the rest makes it miss differences among the rest. Parameters: see `p_values`.
    """
    # Carterette 2012.
    means = values.mean(axis=1)
    observed = np.abs(means[pairs[:, 0]] - means[pairs[:, 1]])
    tolerance = _ROUNDING * float(np.abs(means).max())
    # The values of each query are dealt to the systems at random.
    drawn = np.sort(np.concatenate(list(ranges(values, draws))))
    larger = len(drawn) - np.searchsorted(drawn, observed - tolerance)
    return p_of_draws(larger, draws.count)


def ranges(values: Float64, draws: Draws) -> Iterator[Float64]:
    """Yield the range of the systems' means in each random permutation within queries, in blocks
    float64[permutations].

    values: float64[systems, queries].
    """
    # A deal shuffles the values of each query, then rotates them by a random number of places; every shuffle of
    # a block meets every rotation of it. Each deal is uniform over all ways to deal. Deals of different
    # shuffles are independent; those that share one (at most 32 or a tenth of the queries) have uncorrelated
    # means. A rotation multiplies Fourier coefficients by roots of unity, so sums over queries are matrix
    # products.
    systems, queries = values.shape
    first, second = draws.generator().spawn(2)
    centred = np.ascontiguousarray((values - values.mean(axis=0)).T)
    roots = np.exp(2j * np.pi * np.outer(np.arange(1, systems // 2 + 1), np.arange(systems)) / systems)
    turns = max(_LEAST_SHUFFLES, min(queries // 10, math.isqrt(draws.count)))
    shuffles = min(-(-draws.count // turns), max(1, BLOCK_CELLS // (turns * systems)))
    together = max(1, BLOCK_CELLS // (systems * (turns + shuffles)))
    done = 0
    while done < draws.count:
        sums = np.zeros((len(roots), turns, shuffles), np.complex128)
        for start in range(0, queries, together):
            rows = centred[start : start + together]
            shape = (len(rows), shuffles, systems)
            shuffled = first.permuted(np.broadcast_to(rows[:, None], shape), axis=2)
            parts = np.fft.rfft(shuffled)[..., 1:].transpose(2, 0, 1)  # the first is the mean, which is zero
            places: NDArray[np.int32] = second.integers(0, systems, (len(rows), turns), np.int32)
            sums += roots[:, places.T] @ np.ascontiguousarray(parts)
        mean_zero = np.concatenate([np.zeros((1, turns, shuffles)), sums])
        dealt = np.fft.irfft(mean_zero, systems, axis=0) / queries
        block = np.ptp(dealt, axis=0).T.reshape(-1)[: draws.count - done]
        done += len(block)
        yield block
