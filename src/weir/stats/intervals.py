"""Intervals of a mean difference over queries, by name: `--interval bca` finds them here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.registry import Registry
from weir.stats.bootstrap import LEVEL, RESAMPLES
from weir.stats.distributions import normal_quantile, student_quantile
from weir.stats.resampling import resampled_sums
from weir.stats.significance import Draws

__all__ = ["INTERVALS", "Resampled", "bounds", "fewest", "resampled"]

_DIFFERENCES_TOGETHER = 200
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Resampled:
    """What the samples drawn with replacement say about one row of values.

    means: float64[B]; errors: float64[B], the standard error of the mean estimated within each sample.
    """

    means: Float64
    errors: Float64


Function: TypeAlias = Callable[[Float64, Resampled, float], tuple[float, float]]
INTERVALS: Registry[Function] = Registry("interval")


def bounds(rows: Float64, how: str, level: float = LEVEL, draws: Draws | None = None) -> Float64:
    """Lower and upper bound of the mean of each row, float64[P, 2].

    rows: float64[P, Q], such as the differences of P pairs of systems, without NaN; all rows share their samples.
    A row of one value repeated has both bounds at it. Raises BadValue for a level outside 0..1 and for fewer than
    two queries, UnknownName for an unknown kind of interval.
    """
    function = INTERVALS.get(how)
    draws = draws or Draws(RESAMPLES)
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    if rows.shape[1] < 2:
        raise BadValue(f"an interval needs at least two queries; found {rows.shape[1]}")
    # Powers of two change no digit, and no square of a tiny difference is zero.
    power = np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1]
    rows = np.ldexp(rows, -power)
    found = np.empty((len(rows), 2))
    for start in range(0, len(rows), _DIFFERENCES_TOGETHER):
        part = rows[start : start + _DIFFERENCES_TOGETHER]
        drawn = [] if how == "t" else resampled(part, draws)
        for number, values in enumerate(part):
            if np.all(values == values[0]):
                found[start + number] = values[0]
            else:
                sample = drawn[number] if drawn else Resampled(values[:0], values[:0])
                found[start + number] = function(values, sample, level)
    return np.asarray(np.ldexp(found, power))


def fewest(level: float = LEVEL) -> int:
    """The fewest values for which an interval of their mean is given: 6 at a level of 0.95.

    The whole range of n values holds the median of what they are drawn from with probability 1 - 2^(1 - n); where
    that is below the level no interval of resampled means, which lies within the range, can keep it, and no
    permutation test can reach a p-value below 1 - level. Source: Thompson 1936 for the range.
    """
    count = 2
    while 1 - 2.0 ** (1 - count) < level:
        count += 1
    return count


def resampled(rows: Float64, draws: Draws) -> list[Resampled]:
    """Means and standard errors of samples of queries drawn with replacement, the same for each row."""
    count, n = rows.shape
    # Squares of deviations from the mean cancel less than squares of values.
    centred = rows - rows.mean(axis=1, keepdims=True)
    sums = np.empty((draws.count, 2 * count))
    start = 0
    for block in resampled_sums(np.concatenate([centred, centred**2]), draws.count, draws.generator()):
        sums[start : start + len(block)] = block
        start += len(block)
    means = sums[:, :count] / n
    errors = np.sqrt(np.maximum(sums[:, count:] / n - means**2, 0) / (n - 1))
    return [Resampled(means[:, i] + rows[i].mean(), errors[:, i]) for i in range(count)]


@INTERVALS.register("percentile")
def percentile(values: Float64, sample: Resampled, level: float) -> tuple[float, float]:
    """Percentiles of the resampled means. Source: Efron and Tibshirani 1993, section 13.3."""
    return _quantiles(sample.means, (1 - level) / 2, (1 + level) / 2)


@INTERVALS.register("bca")
def bca(values: Float64, sample: Resampled, level: float) -> tuple[float, float]:
    """Percentiles of the resampled means, corrected for bias and for skewness (BCa).

    Source: Efron 1987; equals scipy.stats.bootstrap(method="BCa") on the same samples.
    """
    mean = float(values.mean())
    rounding = _ROUNDING * float(np.abs(values).max())  # means that are equal but for it count half
    below = float(np.mean(sample.means < mean - rounding) + np.mean(sample.means <= mean + rounding)) / 2
    if not 0 < below < 1:  # differences that are nothing but rounding
        return percentile(values, sample, level)
    bias = normal_quantile(below)
    deviations = values - mean  # the jackknife's, but for a factor that cancels
    acceleration = float(np.sum(deviations**3)) / (6 * float(np.sum(deviations**2)) ** 1.5)
    shares = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + normal_quantile(tail)
        shares.append(_normal_share(bias + z / (1 - acceleration * z)))
    return _quantiles(sample.means, *shares)


@INTERVALS.register("studentised")
def studentised(values: Float64, sample: Resampled, level: float) -> tuple[float, float]:
    """Bootstrap-t: percentiles of resampled means in units of each sample's own standard error.

    Samples in which all values are equal have no standard error and are left out. Source: Efron and Tibshirani
    1993, section 12.5.
    """
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    spread = sample.errors > 1e-12 * error
    ratios = (sample.means[spread] - mean) / sample.errors[spread]
    low, high = _quantiles(ratios, (1 - level) / 2, (1 + level) / 2)
    return mean - high * error, mean - low * error


@INTERVALS.register("two-level")
def two_level(values: Float64, sample: Resampled, level: float) -> tuple[float, float]:
    """Across datasets: percentiles of means over resampled datasets, queries resampled within each.

    On one dataset, queries alone, as percentile: see levels.two_level_means.
    """
    return percentile(values, sample, level)


@INTERVALS.register("t")
def student(values: Float64, sample: Resampled, level: float) -> tuple[float, float]:
    """Student's interval: the mean plus and minus a quantile of t times its standard error; draws nothing."""
    n = len(values)
    mean = float(values.mean())
    error = math.sqrt(float(np.sum((values - mean) ** 2)) / (n - 1) / n)
    reach = student_quantile((1 + level) / 2, n - 1) * error
    return mean - reach, mean + reach


def _quantiles(values: Float64, *shares: float) -> tuple[float, float]:
    low, high = np.quantile(values, shares)
    return float(low), float(high)


def _normal_share(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2
