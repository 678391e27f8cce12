"""Tests of whether two systems differ, and corrections for many of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.registry import Registry
from weir.stats.distributions import binomial_tail, normal_tail, student_tail
from weir.stats.resampling import BLOCK_CELLS, SEED

_NEAR_ZERO = 1e-9

Correction: TypeAlias = Callable[[Float64], Float64]
"""From p-values in ascending order to adjusted ones in the same order, not yet monotone or cut at 1."""

CORRECTIONS: Registry[Correction] = Registry("correction")


def adjusted(p: Float64, correct: str = "holm") -> Float64:
    """Adjusted p-values, float64 of the same shape; compare them with the level you would use for one test.

    NaN stands for what is not tested, such as a baseline against itself: it stays NaN and does not count.
    Raises BadValue for p-values outside 0..1, UnknownName for another correction.
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
    """The level that a p-value has to stay below to be found among so many tests, where so many others are found.

    Those others count as certain and the rest as not found, so that 0 others give the strictest level: alpha / tests
    by Bonferroni and Holm, alpha / (tests - others) by Holm where others are found.
    """
    p = np.concatenate([np.zeros(others), [_NEAR_ZERO], np.ones(tests - others - 1)])
    return alpha * _NEAR_ZERO / float(adjusted(p, correct)[others])


@CORRECTIONS.register("none")
def none(ascending: Float64) -> Float64:
    """No correction: each test on its own."""
    return ascending


@CORRECTIONS.register("bonferroni")
def bonferroni(ascending: Float64) -> Float64:
    """Bonferroni: each p-value times their number; bounds the chance of any false finding. Source: Dunn 1961."""
    return ascending * len(ascending)


@CORRECTIONS.register("holm")
def holm(ascending: Float64) -> Float64:
    """Holm: the smallest p-value times their number, the next times one fewer, and so on, never descending.

    Bounds the chance of any false finding, as Bonferroni does, and finds at least as much. Source: Holm 1979.
    """
    m = len(ascending)
    return np.maximum.accumulate(ascending * (m - np.arange(m)))


@CORRECTIONS.register("bh")
def benjamini_hochberg(ascending: Float64) -> Float64:
    """Benjamini and Hochberg: bounds the share of false findings among the findings. Source: 1995."""
    m = len(ascending)
    return np.minimum.accumulate((ascending * m / np.arange(1, m + 1))[::-1])[::-1]


# Tests by name.

TEST = "permutation"
"""The test that is made unless another is named."""

DRAWS = 100_000

Pairs: TypeAlias = NDArray[np.int64]
"""Numbers of two systems in each row, int64[P, 2]; the difference is the first minus the second."""


@dataclass(frozen=True)
class Draws:
    """How often a test draws, and from which seed; part of every result that comes from drawing."""

    count: int = DRAWS
    seed: int = SEED

    def generator(self) -> np.random.Generator:
        """The generator of these draws, from its beginning."""
        return np.random.default_rng(self.seed)


Function: TypeAlias = Callable[[Float64, Pairs, Draws], Float64]


def _no_bound(units: int, systems: int, draws: Draws) -> float:
    return 0.0


@dataclass(frozen=True)
class Detection:
    """How a test decides on many rows of differences at once, float64[R, n], as simulations of its power need it.

    p: the p-value of each row, for few columns; rejects: whether each row has a p-value below a level, for some more;
    None where the rows are found that the paired t-test finds. For many columns it finds what the t-test finds.
    """

    p: Callable[[Float64], Float64] | None = None
    rejects: Callable[[Float64, float], NDArray[np.bool_]] | None = None


@dataclass(frozen=True)
class Significance:
    """A test of many pairs at once.

    function: takes the values of the systems, float64[K, Q], the pairs and the draws, and gives the two-sided
    p-value of each pair; drawn: whether it draws; familywise: whether its p-values hold for all pairs together;
    smallest: no p-value is below this, by the number of queries or datasets, that of systems, and the draws;
    detection: None for a test of which no smallest mean difference can be said that it finds.
    """

    name: str
    function: Function
    drawn: bool
    familywise: bool
    smallest: Callable[[int, int, Draws], float] = _no_bound
    detection: Detection | None = None

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
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
    """Register the decorated function as a test of differences between systems; arguments as in `Significance`."""

    def register(function: Function) -> Function:
        TESTS.add(name, Significance(name, function, drawn, familywise, smallest, detection))
        return function

    return register


def p_values(test: str, values: Float64, pairs: Pairs | None = None, draws: Draws | None = None) -> Float64:
    """Two-sided p-values of the differences between systems, float64[P].

    values: float64[K, Q], a row for each system and a column for each query, without NaN; pairs: which rows to
    compare, by default each with each later one. Raises BadValue for fewer than two systems or two queries,
    for values that are not numbers and for fewer than one draw, UnknownName for another test.
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
    """Each system with each later one, int64[P, 2]."""
    return np.stack(np.triu_indices(systems, 1), axis=1).astype(np.int64)


# Student's t, Wilcoxon's signed ranks, the sign test.

EXACT_DIFFERENCES = 50
ROUNDING = 1e-12
"""The deviation of equal differences, at most, in parts of their mean."""


@significance("t", detection=Detection())
def t_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """The paired t-test: is the mean difference zero?

    The p-value is 1 where all differences are zero. Closest to its nominal level of all tests on retrieval
    data, with the permutation test. Source: Student 1908; Urbano, Lima and Hanjalic 2019.
    """
    return _each(values, pairs, lambda d: 2 * min(t_tail(d), t_tail(-d)))


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


def exact_mean(values: Float64) -> float:
    """The mean by a sum that is rounded once, so that the order of the values changes nothing."""
    return math.fsum(values.tolist()) / len(values)


def defined_mean(values: Float64) -> float:
    """The mean of those that are not NaN, by a sum that is rounded once; NaN where none is."""
    defined = values[~np.isnan(values)]
    return exact_mean(defined) if len(defined) else math.nan


def deviation_of(differences: Float64) -> float:
    """The standard deviation of differences, 0 where they are all equal but for rounding."""
    mean = exact_mean(differences)
    deviation = math.sqrt(math.fsum(((differences - mean) ** 2).tolist()) / (len(differences) - 1))
    return 0.0 if deviation <= ROUNDING * abs(mean) else deviation


def t_statistic(differences: Float64) -> float:
    """The mean difference in units of its standard error; 0 where all differences are zero."""
    deviation, mean = deviation_of(differences), exact_mean(differences)
    if deviation == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / (deviation / math.sqrt(len(differences)))


def t_tail(differences: Float64) -> float:
    """The p-value of the one-sided paired t-test that the true mean difference is not above zero.

    Of differences that are all equal, whose deviation is not known, it is the chance that so many signs are alike.
    """
    t = t_statistic(differences)
    return 0.5 ** len(differences) if t == math.inf else student_tail(t, len(differences) - 1)


def wilcoxon_p(differences: Float64) -> float:
    """Two-sided p-value of Wilcoxon's test of one row of differences.

    Zeros are left out. Exact for fewer than 50 differences of distinct sizes; otherwise normal, corrected for
    ties and continuity. Sizes are tied where they are equal as doubles, as R and SciPy have it.
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
    """Two-sided p-value of the sign test of one row of differences; those within ±tie are left out."""
    won, lost = int(np.sum(differences > tie)), int(np.sum(differences < -tie))
    return min(1.0, 2 * binomial_tail(max(won, lost), won + lost))


def _each(values: Float64, pairs: Pairs, p: Callable[[Float64], float]) -> Float64:
    return np.array([p(values[i] - values[j]) for i, j in pairs.tolist()])


# Randomised Tukey HSD.

_LEAST_SHUFFLES = 32
_ROUNDING = 1e-11


def _smallest(units: int, systems: int, draws: Draws) -> float:
    """The chance that deals give all values of one system to one, and all of another to one other."""
    return max((systems * (systems - 1.0)) ** (1 - units), 1 / (draws.count + 1))


@significance("tukey", drawn=True, familywise=True, smallest=_smallest)
def tukey_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Randomised Tukey HSD: is a difference larger than the largest one among exchangeable systems?

    The values of each query are dealt to the systems at random; the p-value of a pair is (b + 1) / (B + 1) for b
    of B deals in which the range of the means reaches the pair's difference. It holds for all pairs together,
    under the hypothesis that all systems are equal: one system far from the rest widens the range for every
    pair, and then Holm's correction of another test finds more. Source: Carterette 2012.
    """
    means = values.mean(axis=1)
    observed = np.abs(means[pairs[:, 0]] - means[pairs[:, 1]])
    tolerance = _ROUNDING * float(np.abs(means).max())
    drawn = np.sort(np.concatenate(list(ranges(values, draws))))
    larger = len(drawn) - np.searchsorted(drawn, observed - tolerance)
    p: Float64 = (larger + 1) / (draws.count + 1)
    return p


def ranges(values: Float64, draws: Draws) -> Iterator[Float64]:
    """Largest minus smallest mean in each deal, in blocks.

    A deal shuffles the values of each query and then turns them by a random number of places; every shuffle of a
    block meets every turn of it. Each deal alone is uniform over all ways to deal. Deals of different shuffles are
    independent; those that share one, at most 32 or a tenth of the queries, have uncorrelated means. To turn values is
    to multiply their Fourier coefficients by roots of unity, so the sums over queries are products of matrices.
    """
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
