"""Estimators of large samples that the ones of `weir.plugins.labels.sampling` are compared with."""

from __future__ import annotations

import math

import numpy as np

from weir.plugins.labels.sampling import SampledMean, corrected_share
from weir.stats.distributions import normal_quantile
from weir.stats.resampling import LEVEL


def powered_mean(human, model, model_alone, weight=None) -> SampledMean:
    """Prediction-powered inference with the normal distribution, as ppi-python's ppi_mean_ci.

    Sources: Angelopoulos et al. 2023 (PPI), Angelopoulos, Duchi and Zrnic 2023 (PPI++).
    """
    n, alone = len(human), len(model_alone)
    if weight is None:
        spread = float(np.concatenate([model, model_alone]).var(ddof=1))
        covariance = float(((human - human.mean()) * (model - model.mean())).mean())
        weight = min(1.0, max(0.0, covariance / ((1 + n / alone) * spread))) if spread else 0.0
    rectifier = human - weight * model
    value = weight * float(model_alone.mean()) + float(rectifier.mean())
    error = math.sqrt(weight**2 * float(model_alone.var()) / alone + float(rectifier.var()) / n)
    return SampledMean(value, error, math.inf, weight)


def rogan_gladen(human, model, model_alone):
    """The share of items that people would call relevant, by the model's errors on the judged ones; all 0 or 1.

    Source: Rogan and Gladen 1978.
    """
    positive, negative = model[human == 1], model[human == 0]
    sensitivity, specificity = float(positive.mean()), 1 - float(negative.mean())
    apparent = float(model_alone.mean())
    by_share = apparent * (1 - apparent) / len(model_alone)
    by_positive = sensitivity * (1 - sensitivity) / len(positive)
    by_negative = specificity * (1 - specificity) / len(negative)
    errors = by_share + by_negative, by_negative, by_positive + by_negative
    times = normal_quantile((1 + LEVEL) / 2)
    return corrected_share(apparent + specificity - 1, sensitivity + specificity - 1, errors, times)
