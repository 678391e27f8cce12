"""Intervals of means: over datasets, of differences by name, and of several means together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.registry import Registry
from weir.stats.distributions import normal_quantile, student_quantile
from weir.stats.resampling import LEVEL, RESAMPLES, resampled_counts, resampled_sums
from weir.stats.significance import Draws


def two_level_means(datasets: Sequence[Sequence[Float64]], draws: Draws, geometric: bool = False) -> Float64:
    """Means over datasets drawn with replacement, and queries with replacement within each, float64[B, K].

    datasets: for each its parts, float64[K, Q] with a row for each system; the means of the parts are averaged, as
    exponentials where `geometric`. All systems share the samples; a dataset that is drawn twice has its queries drawn
    twice. Somewhat wide, as the means of the datasets vary with their queries already. Source: Davison and Hinkley
    1997, section 3.8.
    """
    first, *others = draws.generator().spawn(1 + sum(map(len, datasets)))
    blocks = resampled_counts(len(datasets), draws.count, first)
    times = np.concatenate([block.astype(np.int64) for block in blocks])
    total = np.zeros((draws.count, len(datasets[0][0])))
    streams = iter(others)
    for number, parts in enumerate(datasets):
        sample = np.repeat(np.arange(draws.count), times[:, number])
        for part in parts:
            sums = np.concatenate(list(resampled_sums(part, len(sample), next(streams))))
            count = part.shape[1]
            means = np.exp(sums / count) / len(parts) if geometric else sums / (count * len(parts))
            np.add.at(total, sample, means)
    return total / len(datasets)


# Intervals by name.

_DIFFERENCES_TOGETHER = 200
_ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class Resampled:
    """Statistics of the samples drawn with replacement from one row of values.

    means: float64[B]; errors: float64[B], the standard error of the mean estimated within each sample.
    """

    means: Float64
    errors: Float64


Function: TypeAlias = Callable[[Float64, Resampled, float], tuple[float, float]]
INTERVALS: Registry[Function] = Registry("interval")


def bounds(rows: Float64, how: str, level: float = LEVEL, draws: Draws | None = None) -> Float64:
    """Lower and upper bound of the mean of each row, float64[P, 2].

    rows: float64[P, Q], such as the differences of P pairs of systems, without NaN; all rows share their samples.
    A row of one repeated value has none, but NaN. Raises BadValue for a level outside 0..1 and for fewer than two
    queries, UnknownName for an unknown kind of interval.
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
    ends = np.empty((len(rows), 2))
    for start in range(0, len(rows), _DIFFERENCES_TOGETHER):
        part = rows[start : start + _DIFFERENCES_TOGETHER]
        drawn = [] if how == "t" else resampled(part, draws)
        for number, values in enumerate(part):
            if np.all(values == values[0]):
                ends[start + number] = np.nan
            else:
                sample = drawn[number] if drawn else Resampled(values[:0], values[:0])
                ends[start + number] = function(values, sample, level)
    return np.asarray(np.ldexp(ends, power))


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
        shares.append(math.erfc(-(bias + z / (1 - acceleration * z)) / math.sqrt(2)) / 2)
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

    On one dataset, queries alone, as percentile; see `two_level_means`.
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


# Intervals of several means that hold together.

_DEVIATION_ROUNDING = 1e-12


def simultaneous_bounds(
    parts: Sequence[Float64], weights: Sequence[float], level: float = LEVEL, draws: Draws | None = None
) -> Float64:
    """Bounds of the weighted sum of the parts' means of each row that hold for all rows together, float64[E, 2].

    parts: float64[E, Q], the values of E effects on the queries of each collection, two or more. Queries are drawn
    with replacement within each collection, the same for all rows. A bound is as many standard errors off as the
    largest deviation of any row reaches with the probability `level`, which makes up for their number and their
    correlation; each sample is divided by the error of an estimated deviation, as Student's t is, so that one row of
    normal values has Student's interval. Errors estimated within each sample are not taken: they are next to nothing
    where few queries differ. A row without deviation has both bounds at its mean. Source: Hothorn, Bretz and Westfall
    2008 (the largest of correlated t); Davison and Hinkley 1997, chapter 2 (the bootstrap in the place of the normal).
    """
    draws = draws or Draws(RESAMPLES)
    chance, *streams = draws.generator().spawn(1 + len(parts))
    center, variances = np.zeros(len(parts[0])), np.zeros((len(parts), len(parts[0])))
    deviations = np.zeros((draws.count, len(parts[0])))
    for number, (weight, part) in enumerate(zip(weights, parts, strict=True)):
        count = part.shape[1]
        mean = part.mean(axis=1)
        center += weight * mean
        variances[number] = weight**2 * part.var(axis=1, ddof=1) / count
        sums = np.concatenate(list(resampled_sums(part - mean[:, None], draws.count, streams[number])))
        # Samples vary as the values do about their own mean, which is somewhat less than about the true one.
        deviations += weight * (count / (count - 1)) ** 0.5 * sums / count
    # The fewest degrees of freedom of any row. Source: Satterthwaite 1946; Welch 1947.
    counts, total = np.array([part.shape[1] for part in parts]), variances.sum(axis=0)
    degrees, varies = float(counts.sum() - len(counts)), total > 0
    if varies.any():
        below = (np.square(variances) / (counts[:, None] - 1)).sum(axis=0)
        degrees = float((np.square(total) / np.where(varies, below, np.inf))[varies].min())
    spread = _spread(chance, degrees, deviations.shape)
    return _within(center, np.sqrt(variances.sum(axis=0)), deviations, spread, level)


def two_level_bounds(parts: Sequence[Sequence[Float64]], level: float, draws: Draws) -> Float64:
    """As `simultaneous_bounds` of the mean over datasets, where datasets are drawn with replacement too.

    parts: of each dataset, whose means are averaged; the standard error is that of the samples' means.
    """
    means = two_level_means(parts, draws)
    center = np.mean([np.mean([p.mean(axis=1) for p in dataset], axis=0) for dataset in parts], axis=0)
    chance = draws.generator().spawn(1)[0]
    spread = _spread(chance, len(parts) - 1.0, means.shape)
    return _within(center, means.std(axis=0), means - center, spread, level)


def _spread(chance: np.random.Generator, degrees: float, shape: tuple[int, ...]) -> Float64:
    """An estimated deviation as a multiple of the true one, for each sample and row, whose deviations are their own."""
    return np.sqrt(chance.chisquare(degrees, shape) / degrees)


def _within(center: Float64, error: Float64, deviations: Float64, spread: Float64, level: float) -> Float64:
    """Center plus and minus as many errors as the largest deviation of the samples reaches."""
    varies = error > _DEVIATION_ROUNDING * np.abs(center)
    reach = np.zeros(len(center))
    if varies.any():
        largest = (np.abs(deviations[:, varies]) / (error[varies] * spread[:, varies])).max(axis=1)
        reach[varies] = np.quantile(largest, level) * error[varies]
    return np.stack([center - reach, center + reach], axis=1)
