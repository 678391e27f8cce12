"""Intervals of several means that hold together: the bootstrap of the largest deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.core.strings import Float64
from weir.stats.bootstrap import LEVEL, RESAMPLES
from weir.stats.resampling import resampled_sums
from weir.stats.significance import Draws
from weir.stats.two_level_bootstrap import two_level_means

__all__ = ["simultaneous_bounds", "two_level_bounds"]

_ROUNDING = 1e-12


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
    degrees = _degrees(variances, [part.shape[1] for part in parts])
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


def _degrees(variances: Float64, counts: Sequence[int]) -> float:
    """The fewest degrees of freedom of any row. Source: Satterthwaite 1946; Welch 1947."""
    below = np.square(variances) / (np.array(counts)[:, None] - 1)
    varies = variances.sum(axis=0) > 0
    if not varies.any():
        return float(sum(counts) - len(counts))
    return float(
        (np.square(variances.sum(axis=0)) / np.where(varies, below.sum(axis=0), np.inf))[varies].min()
    )


def _spread(chance: np.random.Generator, degrees: float, shape: tuple[int, ...]) -> Float64:
    """An estimated deviation as a multiple of the true one, for each sample and row, whose deviations are their own."""
    return np.sqrt(chance.chisquare(degrees, shape) / degrees)


def _within(center: Float64, error: Float64, deviations: Float64, spread: Float64, level: float) -> Float64:
    """Center plus and minus as many errors as the largest deviation of the samples reaches."""
    varies = error > _ROUNDING * np.abs(center)
    reach = np.zeros(len(center))
    if varies.any():
        largest = (np.abs(deviations[:, varies]) / (error[varies] * spread[:, varies])).max(axis=1)
        reach[varies] = np.quantile(largest, level) * error[varies]
    return np.stack([center - reach, center + reach], axis=1)
