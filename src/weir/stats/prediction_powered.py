"""Means of human values from few of them and many of a model: prediction-powered inference, and Rogan and Gladen's.

How the few were drawn (by strata, with known probabilities, in parts) is said to `stats/drawn_means.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.distributions import normal_quantile, normal_tail, student_quantile, student_tail

__all__ = ["Estimate", "SampledMean", "corrected_share", "powered_mean", "prediction_powered", "rogan_gladen"]

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """An estimated mean with its interval.

    weight: how much the model's values count, 0 for none (human values alone), 1 for plain PPI.
    """

    value: float
    low: float
    high: float
    weight: float

    def within(self, least: float, most: float) -> Estimate:
        """The same, cut at the limits of what the mean can be: the interval holds the truth as often as before."""
        value, low, high = (min(most, max(least, one)) for one in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.weight)


@dataclass(frozen=True)
class SampledMean:
    """An estimated mean with its standard error.

    degrees: of freedom of Student's t, infinite for the normal distribution; weight: as of `Estimate`.
    """

    value: float
    error: float
    degrees: float
    weight: float

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The mean with its interval of this level; raises BadValue for a level outside 0..1."""
        if not 0 < level < 1:
            raise BadValue(f"the level is {level}; expected between 0 and 1")
        upper = (1 + level) / 2
        normal = math.isinf(self.degrees)
        margin = self.error * (normal_quantile(upper) if normal else student_quantile(upper, self.degrees))
        return Estimate(self.value, self.value - margin, self.value + margin, self.weight)

    @property
    def p(self) -> float:
        """The two-sided p-value of a mean of 0, of the same distribution as the interval; 1 for 0 without error."""
        if not self.error:
            return 0.0 if self.value else 1.0
        far = abs(self.value) / self.error
        return 2 * (normal_tail(far) if math.isinf(self.degrees) else student_tail(far, self.degrees))


def prediction_powered(
    human: Float64, model: Float64, model_alone: Float64, weight: float | None = None, level: float = LEVEL
) -> Estimate:
    """The mean that people would give to all items, of which they judged some, with its interval.

    Arguments, errors and sources as `powered_mean`; raises BadValue for a level outside 0..1, too.
    """
    return powered_mean(human, model, model_alone, weight).estimate(level)


def powered_mean(
    human: Float64, model: Float64, model_alone: Float64, weight: float | None = None
) -> SampledMean:
    """The mean that people would give to all items, of which they judged some drawn at random.

    human, model: float64[n], both values of the same items; model_alone: float64[N], the model's of the others, drawn
    as those were; weight: None takes the one that makes the interval narrowest (PPI++), within 0..1. An item is what
    was drawn independently: a query, not a pair. The distribution is the normal one. Raises BadValue for fewer than two
    items of a kind and values that are not finite. Sources: Angelopoulos et al. 2023 (PPI), Angelopoulos, Duchi and
    Zrnic 2023 (PPI++); equals ppi-python's ppi_mean_ci.
    """
    n, alone = len(human), len(model_alone)
    if n != len(model) or n < 2 or alone < 2:
        raise BadValue(
            f"{n} human values, {len(model)} of the model beside them and {alone} alone; expected as many of the first "
            "two, and two at least of each"
        )
    if not all(np.isfinite(values).all() for values in (human, model, model_alone)):
        raise BadValue("a value is not finite; leave its item out of all of them")
    if weight is None:
        spread = float(np.concatenate([model, model_alone]).var(ddof=1))
        covariance = float(((human - human.mean()) * (model - model.mean())).mean())
        weight = min(1.0, max(0.0, covariance / ((1 + n / alone) * spread))) if spread else 0.0
    rectifier = human - weight * model
    value = weight * float(model_alone.mean()) + float(rectifier.mean())
    error = math.sqrt(weight**2 * float(model_alone.var()) / alone + float(rectifier.var()) / n)
    return SampledMean(value, error, math.inf, weight)


def rogan_gladen(human: Float64, model: Float64, model_alone: Float64, level: float = LEVEL) -> Estimate:
    """The share of items that people would call relevant, from the model's share and its errors on judged items.

    Arguments as `prediction_powered`, of values that are 0 or 1. The model's sensitivity and specificity come from the
    judged items; the interval as of `corrected_share`. Raises BadValue for other values, where people gave one label
    alone, and as `corrected_share`. Source: Rogan and Gladen 1978.
    """
    columns = (human, model, model_alone)
    if not all(np.isin(values, (0.0, 1.0)).all() for values in columns) or not len(model_alone):
        raise BadValue("Rogan and Gladen's correction is of labels that are 0 or 1")
    positive, negative = model[human == 1], model[human == 0]
    if not len(positive) or not len(negative):
        raise BadValue("people gave one label alone, so that the model's errors are not known; judge more")
    sensitivity, specificity = float(positive.mean()), 1 - float(negative.mean())
    apparent = float(model_alone.mean())
    by_share = apparent * (1 - apparent) / len(model_alone)
    by_positive = sensitivity * (1 - sensitivity) / len(positive)
    by_negative = specificity * (1 - specificity) / len(negative)
    errors = by_share + by_negative, by_negative, by_positive + by_negative
    times = normal_quantile((1 + level) / 2)
    return corrected_share(apparent + specificity - 1, sensitivity + specificity - 1, errors, times)


def corrected_share(above: float, slope: float, errors: tuple[float, float, float], times: float) -> Estimate:
    """The share above / slope with Fieller's interval, both cut at 0 and 1.

    slope: the model's sensitivity + specificity - 1, 0 for one that guesses; errors: the variances of `above`, of both
    together and of `slope`; times: the quantile. The interval holds each share s for which above - s * slope is within
    `times` its error of 0, so that it keeps its coverage however small the slope is. Raises BadValue where a slope of 0
    is as near as that, for any share is possible then, and where no share from 0 to 1 is within. Source: Fieller 1954.
    """
    of_above, of_both, of_slope = errors
    if slope <= times * math.sqrt(of_slope):
        raise BadValue(
            "the model's labels cannot be told from chance (sensitivity + specificity - 1 is "
            f"{slope:.3f}, ± {times * math.sqrt(of_slope):.3f}), so that they cannot be corrected"
        )
    square = slope**2 - times**2 * of_slope
    middle = (above * slope - times**2 * of_both) / square
    half = math.sqrt(max(0.0, middle**2 - (above**2 - times**2 * of_above) / square))
    if middle - half > 1 or middle + half < 0:
        raise BadValue(
            "the model calls another share relevant than its errors allow, so that it errs otherwise where people "
            "judged than elsewhere"
        )
    return Estimate(above / slope, middle - half, middle + half, 1.0).within(0.0, 1.0)
