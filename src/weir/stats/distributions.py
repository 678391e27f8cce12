"""Tail probabilities and quantiles of the normal, Student's and binomial distributions, without SciPy."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue

_SMALLEST_DENOMINATOR = 1e-300
_MOST_TERMS = 20_000


def normal_tail(z: float) -> float:
    """Probability that a standard normal variable exceeds z."""
    return math.erfc(z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """The value that a standard normal variable stays below with probability p, infinite for 0 and 1."""
    if p <= 0 or p >= 1:
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def student_tail(t: float, df: float) -> float:
    """Probability that Student's t with df degrees of freedom exceeds t."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2
    return tail if t >= 0 else 1 - tail


@lru_cache(maxsize=256)
def student_quantile(p: float, df: float) -> float:
    """The value that Student's t stays below with probability p; raises BadValue outside 0..1."""
    if not 0 < p < 1:
        raise BadValue(f"there is no quantile for the probability {p}; expected between 0 and 1")
    if p < 0.5:
        return -student_quantile(1 - p, df)
    low, high = 0.0, 1.0  # bisection to the last digit
    while student_tail(high, df) > 1 - p and high < 1e300:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        if student_tail(middle, df) > 1 - p:
            low = middle
        else:
            high = middle
    return middle


def binomial_tail(successes: int, trials: int) -> float:
    """Probability of at least so many heads in so many throws of a fair coin."""
    if successes <= 0:
        return 1.0
    if successes > trials:
        return 0.0
    return incomplete_beta(successes, trials - successes + 1, 0.5)


def foreseen_tail(t: float, df: float, shift: float, before: float) -> float:
    """Probability that the noncentral t exceeds t, its shift being so many times a deviation estimated beforehand.

    df, before: degrees of freedom of the estimates of the test and beforehand, which are of different samples, so that
    the one that is planned with may be too small or too large. They need not be whole; fewer than there are stand for
    values with heavy tails, whose deviation is known less well. The normal tail, averaged over both by Gauss-Legendre
    quadrature.
    """
    deviations, weights = _estimated_deviation(df, 64 if df < 10 else 40)
    planned, planned_weights = _estimated_deviation(before, 64 if before < 10 else 40)
    edges = t * deviations - shift * planned[:, None]
    tails = np.array([normal_tail(edge) for edge in edges.reshape(-1).tolist()]).reshape(edges.shape)
    return float(planned_weights @ tails @ weights)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b).

    By its continued fraction, evaluated from the front. Source: Abramowitz and Stegun 26.5.8; Lentz 1976.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    small, large = min(a, b), max(a, b)
    front = _log_gamma_step(large, small) - math.lgamma(small) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(a, b, x) / a


@lru_cache(maxsize=256)
def _estimated_deviation(df: float, points: int) -> tuple[Float64, Float64]:
    """Values of an estimated deviation, in units of the true one, and how much each weighs in a mean over them."""
    width = 10 / math.sqrt(2 * df)
    low, high = max(0.0, 1 - width), 1 + width
    nodes, weights = _legendre(points)
    s: Float64 = (high - low) / 2 * nodes + (high + low) / 2
    log_scale = (1 - df / 2) * math.log(2) + df / 2 * math.log(df) - math.lgamma(df / 2)
    return s, (high - low) / 2 * weights * np.exp(log_scale + (df - 1) * np.log(s) - df / 2 * s * s)


@cache
def _legendre(points: int) -> tuple[Float64, Float64]:
    """Nodes and weights of Gauss and Legendre; NumPy loads its polynomials, 25 ms, where they are first named."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def _log_gamma_step(a: float, b: float) -> float:
    """log gamma(a + b) - log gamma(a), without the cancellation of two large numbers."""
    if a < 1000:
        return math.lgamma(a + b) - math.lgamma(a)
    # Stirling's series, whose third term is below 1e-18 here.
    corrections = [1 / (12 * v) - 1 / (360 * v**3) for v in (a + b, a)]
    return (a - 0.5) * math.log1p(b / a) + b * math.log(a + b) - b + corrections[0] - corrections[1]


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return fraction


def _away(value: float) -> float:
    """The value, kept away from zero so that it can divide."""
    return value if abs(value) > _SMALLEST_DENOMINATOR else _SMALLEST_DENOMINATOR
