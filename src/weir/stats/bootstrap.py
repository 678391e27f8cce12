"""Bootstrap intervals of means over queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue

__all__ = ["LEVEL", "RESAMPLES", "SEED", "Interval", "interval", "intervals"]

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
    """
    order = scores.id_order()
    means = scores.means()
    bounds = [interval(row[order], np.random.default_rng(SEED), level) for row in scores.values]
    return [Interval(float(m), *b) for m, b in zip(means, bounds, strict=True)]


def interval(
    values: Float64, generator: np.random.Generator, level: float = LEVEL, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Bounds of the percentile bootstrap interval of the mean of values; NaN values are left out.

    Raises BadValue for a level outside 0..1. NaN bounds where nothing is defined; bounds equal to the
    value where there is one. Source: Efron and Tibshirani 1993, section 13.3; equals
    scipy.stats.bootstrap(method="percentile").
    """
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return float("nan"), float("nan")
    if np.all(values == values[0]):
        mean = math.fsum(values.tolist()) / len(values)  # as Scores.means rounds it
        return mean, mean
    means = resampled_means(values, generator, resamples)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resampled_means(values: Float64, generator: np.random.Generator, resamples: int) -> Float64:
    """Means of samples drawn with replacement, float64[resamples], in bounded memory."""
    n = len(values)
    block = max(1, 2_000_000 // n)
    means = np.empty(resamples)
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        drawn: NDArray[np.int32] = generator.integers(0, n, (stop - start, n), np.int32)
        means[start:stop] = values[drawn].mean(axis=1)
    return means
