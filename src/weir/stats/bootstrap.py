"""Bootstrap intervals of means over queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weir.core.scores import Scores, averaged
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.resampling import resampled_sums

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "SEED",
    "Interval",
    "interval",
    "intervals",
    "ratio_interval",
    "resampled_means",
]

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 20_210_427


@dataclass(frozen=True)
class Interval:
    """A mean over queries and the bounds between which it would fall with other queries."""

    mean: float
    low: float
    high: float


def intervals(scores: Scores, level: float = LEVEL) -> list[Interval]:
    """The mean of each measure with its percentile bootstrap interval.

    Queries are resampled in the order of their identifiers and from the same seed for each measure, so
    the same values give the same interval in whatever order a file lists them and whatever else is measured.
    Where values are logarithms the bounds are of the geometric mean. Raises BadValue for a level outside 0..1.
    """
    values = scores.values[:, scores.id_order()]
    defined = ~np.isnan(values)
    bounds = np.full((len(values), 2), np.nan)
    # Measures that are defined for the same queries share the samples.
    for queries in np.unique(defined, axis=0) if len(values) else defined:
        rows = np.flatnonzero((defined == queries).all(axis=1))
        bounds[rows] = _bounds(values[rows][:, queries], np.random.default_rng(SEED), level, RESAMPLES)
    found = []
    for measure, mean, ends in zip(
        scores.measures, scores.mean_values().tolist(), bounds.tolist(), strict=True
    ):
        low, high = (averaged(end, measure in scores.geometric) for end in ends)
        found.append(Interval(mean, low, high))
    return found


def interval(
    values: Float64, generator: np.random.Generator, level: float = LEVEL, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Bounds of the percentile bootstrap interval of the mean of values; NaN values are left out.

    Raises BadValue for a level outside 0..1. NaN bounds where nothing is defined; bounds equal to the
    value where there is one. Source: Efron and Tibshirani 1993, section 13.3; as
    scipy.stats.bootstrap(method="percentile").
    """
    low, high = _bounds(values[None, ~np.isnan(values)], generator, level, resamples)[0]
    return float(low), float(high)


def ratio_interval(
    parts: tuple[Float64, Float64],
    generator: np.random.Generator,
    less: tuple[Float64, Float64] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Bounds of the percentile bootstrap interval of a ratio of two sums over queries, or of two ratios' difference.

    parts, less: (numerator, denominator) by query, float64[Q] each; with `less`, the interval is of the ratio of
    `parts` minus that of `less`, on the same samples. Samples with a denominator of 0 are left out; NaN bounds where
    all are. Raises BadValue for a level outside 0..1. Source: Efron and Tibshirani 1993, section 13.3.
    """
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    columns = np.stack([*parts, *(less or ())])
    sums = np.concatenate(list(resampled_sums(columns, resamples, generator)))
    sums = sums[(sums[:, 1::2] > 0).all(axis=1)]
    if not len(sums):
        return math.nan, math.nan
    ratios = sums[:, 0::2] / sums[:, 1::2]
    found = ratios[:, 0] - (ratios[:, 1] if less else 0.0)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high


def resampled_means(values: Float64, generator: np.random.Generator, resamples: int) -> Float64:
    """Means of samples drawn with replacement, float64[resamples], in bounded memory."""
    sums = np.concatenate(list(resampled_sums(values[None], resamples, generator)))
    return np.asarray(sums[:, 0] / len(values))


def _bounds(rows: Float64, generator: np.random.Generator, level: float, resamples: int) -> Float64:
    """Percentiles of the resampled means of each row, float64[P, 2]; a row of one value has both bounds at it."""
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    found = np.full((len(rows), 2), np.nan)
    count = rows.shape[1]
    if count == 0:
        return found
    constant = (rows == rows[:, :1]).all(axis=1)
    for number in np.flatnonzero(constant):
        found[number] = math.fsum(rows[number].tolist()) / count  # as Scores.mean_values rounds it
    if not constant.all():
        sums = np.concatenate(list(resampled_sums(rows[~constant], resamples, generator)))
        found[~constant] = np.quantile(sums / count, [(1 - level) / 2, (1 + level) / 2], axis=0).T
    return found
