"""Tail probabilities and quantiles of the normal, Student's and binomial distributions."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue

# Every install prints the same digits, so SciPy is the oracle of the tests and not a second way to compute:
# docs/decisions/025-numbers-without-scipy.md.

# The double exponential rule for integrals of e^-w over w > 0, which may be singular at 0: Takahasi and Mori 1974.
_STEP = 1 / 24
_AT = np.arange(-4.5, 4, _STEP)
_NODES = np.exp(_AT - np.exp(-_AT))
_WEIGHTS = _STEP * np.exp(-_NODES) * _NODES * (1 + np.exp(-_AT))

_ERFC = np.frompyfunc(math.erfc, 1, 1)


def normal_tail(z: float) -> float:
    """Return the probability that a standard normal variable exceeds z."""
    return math.erfc(z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return the standard normal's p-quantile; infinite for p <= 0 or p >= 1."""
    if p <= 0 or p >= 1:
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def student_tail(t: float, df: float) -> float:
    """Return the probability that Student's t with `df` degrees of freedom exceeds t."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = math.exp(_log_tail(abs(t), df))
    return tail if t >= 0 else 1 - tail


@lru_cache(maxsize=256)
def student_quantile(p: float, df: float) -> float:
    """Return the p-quantile of Student's t; raises BadValue unless 0 < p < 1."""
    if not 0 < p < 1:
        raise BadValue(f"there is no quantile for the probability {p}; expected between 0 and 1")
    if p <= 0.5:
        return 0.0 if p == 0.5 else -student_quantile(1 - p, df)
    # Newton's method: the logarithm of the tail is concave in the logarithm of t. A step doubles the digits.
    t = normal_quantile(p)
    for _ in range(20):
        slope = t * math.sqrt(df) / (1 + t * t / df) / _tail_integral(t, df)
        step = (_log_tail(t, df) - math.log(1 - p)) / slope
        t *= math.exp(step)
        if abs(step) < 1e-9:
            break
    return t


def binomial_tail(successes: int, trials: int, chance: float = 0.5) -> float:
    """Return the probability of at least `successes` in `trials` independent trials of probability `chance`."""
    if not 0 < successes <= trials:
        return float(successes <= 0)
    # Each term is a multiple of its neighbour; sums beyond the range of doubles are shares of 0 or 1.
    above, below = np.arange(successes, trials), np.arange(successes, 0, -1)
    with np.errstate(over="ignore", divide="ignore"):
        upper = np.cumprod((trials - above) * chance / ((above + 1) * (1 - chance))).sum()
        lower = np.cumprod(below * (1 - chance) / ((trials - below + 1) * chance)).sum()
    return float(1 / (1 + lower / (1 + upper)))


def foreseen_tail(t: float, df: float, shift: float, before: float) -> float:
    """Return the probability that a t statistic of new data exceeds t, if the true effect is `shift`.

    `shift` is in units of an earlier estimate of the standard deviation, with `before` degrees of freedom.
    """
    # The normal tail, averaged over both estimates by Gauss-Legendre quadrature.
    deviations, weights = _estimated_deviation(df, 64 if df < 10 else 40)
    planned, planned_weights = _estimated_deviation(before, 64 if before < 10 else 40)
    edges = t * deviations - shift * planned[:, None]
    tails = np.asarray(_ERFC(edges / math.sqrt(2)), np.float64) / 2
    return float(planned_weights @ tails @ weights)


def _log_tail(t: float, df: float) -> float:
    # With x = df / (df + t^2) the tail is the integral of e^-w (1 - x e^(-2w / df))^-0.5 times x^(df / 2), over
    # twice the same for t = 0.
    share = _tail_integral(t, df) / _tail_integral(0.0, df) / 2
    return (1 - df) / 2 * math.log1p(t * t / df) + math.log(share)


def _tail_integral(t: float, df: float) -> float:
    return float(_WEIGHTS @ (t * t / df - np.expm1(-2 * _NODES / df)) ** -0.5)


@lru_cache(maxsize=256)
def _estimated_deviation(df: float, points: int) -> tuple[Float64, Float64]:
    width = 10 / math.sqrt(2 * df)
    low, high = max(0.0, 1 - width), 1 + width
    nodes, weights = _legendre(points)
    s: Float64 = (high - low) / 2 * nodes + (high + low) / 2
    log_scale = (1 - df / 2) * math.log(2) + df / 2 * math.log(df) - math.lgamma(df / 2)
    return s, (high - low) / 2 * weights * np.exp(log_scale + (df - 1) * np.log(s) - df / 2 * s * s)


@cache
def _legendre(points: int) -> tuple[Float64, Float64]:
    # NumPy loads its polynomials (25 ms) on first use.
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights
