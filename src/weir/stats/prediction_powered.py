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

__all__ = ["Estimate", "SampledMean", "powered_mean", "prediction_powered", "rogan_gladen"]

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
    judged items; the interval is by the delta method, all cut at 0 and 1. Raises BadValue for other values, where
    people gave one label alone, and where the model is no better than chance, so that nothing can be corrected.
    Source: Rogan and Gladen 1978.
    """
    columns = (human, model, model_alone)
    if not all(np.isin(values, (0.0, 1.0)).all() for values in columns) or not len(model_alone):
        raise BadValue("Rogan and Gladen's correction is of labels that are 0 or 1")
    positive, negative = model[human == 1], model[human == 0]
    if not len(positive) or not len(negative):
        raise BadValue("people gave one label alone, so that the model's errors are not known; judge more")
    sensitivity, specificity = float(positive.mean()), 1 - float(negative.mean())
    slope = sensitivity + specificity - 1
    if slope <= 0:
        raise BadValue(
            f"the model's labels are no better than chance (sensitivity {sensitivity:.3f}, specificity "
            f"{specificity:.3f}); they cannot be corrected"
        )
    apparent = float(model_alone.mean())
    value = (apparent + specificity - 1) / slope
    parts = (
        apparent * (1 - apparent) / len(model_alone),
        value**2 * sensitivity * (1 - sensitivity) / len(positive),
        (1 - value) ** 2 * specificity * (1 - specificity) / len(negative),
    )
    margin = normal_quantile((1 + level) / 2) * math.sqrt(sum(parts)) / slope
    low, high = (min(1.0, max(0.0, bound)) for bound in (value - margin, value + margin))
    return Estimate(min(1.0, max(0.0, value)), low, high, 1.0)
