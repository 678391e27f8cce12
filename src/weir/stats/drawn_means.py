"""Prediction-powered means of samples that were not drawn plainly: by strata, with known probabilities, in parts.

All are two draws: items from what they stand for, and of these the ones that people judged. An interval is about what
the items stand for, as that of plain prediction-powered inference. Samples within strata are small, so variances
divide by degrees of freedom, and quantiles are Student's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.prediction_powered import SampledMean

__all__ = ["partly_judged_mean", "stratified_mean", "weighted_mean"]

LEAST_IN_STRATUM = 2
"""Items that people judged in each stratum, so that its variance is known at all."""
LEAST_TUNED = 4
"""Items that people judged from which a weight is estimated."""


def stratified_mean(
    human: Float64,
    model: Float64,
    model_alone: Float64,
    strata: tuple[NDArray[np.integer], NDArray[np.integer]],
    weight: float | None = None,
) -> SampledMean:
    """The mean that people would give to all items, where those that they judged were drawn within strata.

    human, model: float64[n], model_alone: float64[N], as `powered_mean`; strata: int[n] and int[N], the stratum of
    each item of both; weight: None takes the narrowest within each stratum. A stratum counts by its share of all
    items, judged by people or not, and that it is a draw, too, adds to the variance. A stratum where the model has
    fewer than two items of its own counts by people alone. Raises BadValue for a stratum of which people judged fewer
    than two items, naming its number. Source: Fisch et al. 2024 (StratPPI), with the two draws of Neyman 1938.
    """
    total = len(human) + len(model_alone)
    found, sizes = [], []
    for number in np.unique(np.concatenate(strata)).tolist():
        mine, alone = strata[0] == number, strata[1] == number
        sizes.append(int(mine.sum()) + int(alone.sum()))
        if mine.sum() < LEAST_IN_STRATUM:
            raise BadValue(
                f"stratum number {number} has {int(mine.sum())} items that people judged; two at least are needed"
            )
        found.append(_within_stratum(human[mine], model[mine], model_alone[alone], weight))
    values = np.array([one.value for one in found])
    errors = np.array([one.error for one in found]) ** 2
    shares = np.array(sizes) / total
    value = float(shares @ values)
    within = float(shares**2 @ errors)
    # Strata differ from one another by chance, too: what that adds to their variance is known and left out.
    apart = float(shares @ (values - value) ** 2 - (shares * (1 - shares)) @ errors)
    by_stratum = float((shares**2 * errors) ** 2 @ np.array([1 / one.degrees for one in found]))
    degrees = max(1, math.floor(within**2 / by_stratum)) if by_stratum else math.inf
    error = math.sqrt(within + max(0.0, apart) / total)
    return SampledMean(value, error, degrees, float(shares @ np.array([one.weight for one in found])))


def _within_stratum(
    human: Float64, model: Float64, model_alone: Float64, weight: float | None
) -> SampledMean:
    """The mean of one stratum, never with a larger error than of people alone; its degrees of freedom."""
    n, alone = len(human), len(model_alone)
    plain = SampledMean(float(human.mean()), math.sqrt(float(human.var(ddof=1)) / n), n - 1, 0.0)
    if alone < LEAST_IN_STRATUM or weight == 0 or (weight is None and n < LEAST_TUNED):
        return plain
    tuned = weight is None
    if weight is None:
        spread = float(np.concatenate([model, model_alone]).var(ddof=1))
        covariance = float(((human - human.mean()) * (model - model.mean())).mean())  # as powered_mean
        weight = min(1.0, max(0.0, covariance / ((1 + n / alone) * spread))) if spread else 0.0
    rest = human - weight * model
    value = weight * float(model_alone.mean()) + float(rest.mean())
    left = float(((rest - rest.mean()) ** 2).sum()) / (n - 1 - tuned) / n
    error = math.sqrt(weight**2 * float(model_alone.var(ddof=1)) / alone + left)
    return plain if tuned and error >= plain.error else SampledMean(value, error, n - 1 - tuned, weight)


def weighted_mean(
    human: Float64,
    model: Float64,
    model_alone: Float64,
    weights: Float64,
    weight: float | None = None,
) -> SampledMean:
    """The mean that people would give to all items, where those that they judged were drawn with known probabilities.

    human, model, weights: float64[n], the weights one over the probability with which each was drawn, as far as their
    ratios go: they are scaled to sum to the number of all items; model_alone: float64[N], the model's values of those
    not drawn; weight: how much of the model's values is taken out of the human ones and put back as their mean over all
    items, None the one of least variance within 0..1. The estimate is Hajek's, its variance linearised, with
    independent draws. Raises BadValue for fewer than four items, or weights that are not above 0 and finite. Sources:
    Hajek 1971; Saerndal, Swensson and Wretman 1992, chapter 6; point estimates equal ppi-python's with its weights.
    """
    n, total = len(human), len(human) + len(model_alone)
    if n < LEAST_TUNED:
        raise BadValue(f"people judged {n} items; {LEAST_TUNED} at least are needed where weights differ")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise BadValue(
            "a weight is not a finite number above 0; it is one over the probability of being drawn"
        )
    scaled = weights * (total / float(weights.sum()))
    tuned = weight is None
    if weight is None:
        weight = _narrowest(human, model, scaled)
    rest = human - weight * model
    everywhere = (float(model.sum()) + float(model_alone.sum())) / total
    mean = float(scaled @ rest) / total
    value = weight * everywhere + mean
    spread = float(scaled @ (human - float(scaled @ human) / total) ** 2) / total * n / (n - 1)
    degrees = max(1, math.floor(float(scaled.sum()) ** 2 / float(scaled @ scaled)) - 1 - tuned)
    drawn = float(_thinned(scaled) @ (rest - mean) ** 2) / total**2 * n / (n - 1 - tuned)
    return SampledMean(value, math.sqrt(drawn + spread / total), degrees, weight)


def _thinned(scaled: Float64) -> Float64:
    """What the squared residual of each drawn item counts in the variance of independent draws."""
    return scaled * np.maximum(scaled - 1, 0.0)


def _narrowest(human: Float64, model: Float64, scaled: Float64) -> float:
    """The weight of the model's values within 0..1 that leaves the least variance of draws with these weights."""
    count, total = _thinned(scaled), float(scaled.sum())
    by_human, by_model = (values - float(scaled @ values) / total for values in (human, model))
    spread = float(count @ by_model**2)
    return min(1.0, max(0.0, float(count @ (by_human * by_model)) / spread)) if spread else 0.0


def partly_judged_mean(
    human: Float64,
    model: Float64,
    whole: Float64,
    model_alone: Float64,
    weight: float | None = None,
) -> SampledMean:
    """The mean over queries that people would give, of which they judged a part of the documents of some.

    human, model: float64[n], for each query of which people judged some documents, unbiased estimates of its value by
    either's labels from those documents alone (Horvitz and Thompson's: each counts one over its probability); whole:
    float64[n], the model's values of these queries from all their documents; model_alone: float64[N], of the other
    queries, N from 0; weight: None takes the one of least variance within 0..1. The variance is that between queries,
    so it holds the draw of documents, whatever it was. Raises BadValue for fewer than four such queries. Source:
    Saerndal, Swensson and Wretman 1992, chapters 4 and 8 (two-stage difference estimator).
    """
    n, alone = len(human), len(model_alone)
    if n < LEAST_TUNED:
        raise BadValue(f"people judged documents of {n} queries; {LEAST_TUNED} at least are needed")
    share = n / (n + alone)
    # theta = weight * (mean of whole over all queries) + mean(human - weight * model), split into independent parts.
    against = model - share * whole
    elsewhere = float(model_alone.var(ddof=1)) * (1 - share) ** 2 / alone if alone > 1 else 0.0
    tuned = weight is None
    if weight is None:
        spread = elsewhere + float(against.var(ddof=1)) / n
        weight = min(1.0, max(0.0, float(np.cov(human, against)[0, 1]) / n / spread)) if spread else 0.0
    rest = human - weight * against
    value = float(rest.mean()) + weight * (1 - share) * (float(model_alone.mean()) if alone else 0.0)
    left = float(((rest - rest.mean()) ** 2).sum()) / (n - 1 - tuned) / n
    return SampledMean(value, math.sqrt(weight**2 * elsewhere + left), n - 1 - tuned, weight)
