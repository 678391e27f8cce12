"""Bounds of a mean and e-values that stay valid however often one looks at growing data in random order.

An e-value measures evidence: if the claim is true, it ever reaches 20 with a probability of at most 5%.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue

# Waudby-Smith and Ramdas 2024 (betting, with a mixture of fixed bets). Each gambler risks a fixed share of what the
# worst difference could cost, and begins with money in proportion to it. The interval of real differences (TREC-8, AP)
# is 0.19, 0.11, 0.068 and 0.040 wide after 50, 100, 200 and 500 queries; by their predictable bets it is 0.17, 0.11,
# 0.073 and 0.047, by their empirical Bernstein bounds 0.60, 0.31, 0.16 and 0.069, by Student's, of one look, 0.090,
# 0.063, 0.045 and 0.028.
BETS = 2.0 ** -np.arange(6)
"""Shares that the gamblers risk, float64[6]."""
LEVEL = 0.95
EACH_UP_TO = 100
"""Number of differences up to which bounds are computed anew after each; beyond, after each hundredth part more."""
_LOWEST = -1 + 1e-9  # of a mean that is not refuted yet
_STEPS, _SMALLEST_STEP = 100, 1e-12
_MOST_LOGARITHM = 690.0  # of an e-value that a float holds
_ROUNDING = 1e-9


def e_values(differences: Float64, bound: float = 0.0) -> Float64:
    """Return the e-value after each difference, float64[..., n], against the claim that the mean is at most
    `bound`.

    Raises BadValue for no differences or any outside -1..1, and unless -1 < bound <= 1.
    """
    if not -1 < bound <= 1:
        raise BadValue(f"the bound is {bound}; expected a number above -1, up to 1")
    returns = _log_returns(_checked(differences), bound)
    return np.asarray(np.exp(np.minimum(_mixed(np.cumsum(returns, axis=-1)), _MOST_LOGARITHM)))


def lower_bounds(differences: Float64, level: float = LEVEL) -> Float64:
    """Return a lower bound of the mean after each difference, float64[n], -1 if none; all hold together with
    probability `level`.

    Differences are in random order. Raises BadValue for none or any outside -1..1, and a level outside 0..1.
    """
    values = _checked(differences)
    if not 0 < level < 1:
        raise BadValue(f"the level is {level}; expected between 0 and 1")
    enough = -math.log1p(-level)
    bounds, low = np.empty(len(values)), _LOWEST
    for count in range(1, len(values) + 1):
        if count <= EACH_UP_TO or count % (count // EACH_UP_TO) == 0 or count == len(values):
            low = _raised(values[:count], low, enough)
        bounds[count - 1] = low
    return np.where(bounds > _LOWEST, bounds, -1.0)


def _raised(values: Float64, low: float, enough: float) -> float:
    # The logarithm of the money falls, and is convex, in that of 1 + mean: Newton's steps from below stay below the
    # root.
    at = math.log1p(low)
    for _ in range(_STEPS):
        shares = BETS[:, None] * (1 + values) * math.exp(-at)
        returns = 1 - BETS[:, None] + shares
        with np.errstate(divide="ignore", invalid="ignore"):
            money = np.log(returns).sum(axis=1) + np.log(BETS / BETS.sum())
            slopes = np.where(returns > 0, shares / returns, 0.0).sum(axis=1)
        total = np.logaddexp.reduce(money)
        if total < enough:
            break
        step = (total - enough) / float(np.exp(money - total) @ slopes)
        at += step
        if step < _SMALLEST_STEP:
            break
    return math.expm1(at)


def first_at(values: Float64, least: float) -> int | None:
    """Return the position, from 1, of the first value that reaches `least` (tolerance 1e-9 of it); None if
    none does.
    """
    reached = np.flatnonzero(values >= least * (1 - _ROUNDING))
    return int(reached[0]) + 1 if len(reached) else None


def by_lot(queries: Iterable[str], seed: int = 0) -> list[str]:
    """Return the distinct queries in a pseudo-random order that depends only on identifiers and seed."""

    def lot(query: str) -> bytes:
        return hashlib.blake2b(f"{seed}\x1f{query}".encode("utf-8", "replace"), digest_size=16).digest()

    return sorted(dict.fromkeys(queries), key=lot)


def _checked(differences: Float64) -> Float64:
    values = np.asarray(differences, np.float64)
    outside = values[~(np.abs(values) <= 1 + _ROUNDING)]
    if not values.size or len(outside):
        found = f"{outside[0]}" if len(outside) else "none"
        raise BadValue(f"found {found} among differences; expected numbers from -1 to 1, one at least")
    return np.clip(values, -1.0, 1.0)


def _log_returns(values: Float64, bound: float) -> Float64:
    with np.errstate(divide="ignore"):
        return np.log1p(BETS[:, None] * ((1 + values[..., None, :]) / (1 + bound) - 1))


def _mixed(logarithms: Float64) -> Float64:
    begun = np.log(BETS / BETS.sum())[:, None]
    return np.asarray(np.logaddexp.reduce(logarithms + begun, axis=-2))
