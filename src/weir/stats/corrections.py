"""Corrections for testing many differences at once, by name: `--correct holm` finds them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.registry import Registry

__all__ = ["CORRECTIONS", "Correction", "adjusted", "level_met"]

_NEAR_ZERO = 1e-9

Correction: TypeAlias = Callable[[Float64], Float64]
"""From p-values in ascending order to adjusted ones in the same order, not yet monotone or cut at 1."""

CORRECTIONS: Registry[Correction] = Registry("correction")


def adjusted(p: Float64, correct: str = "holm") -> Float64:
    """Adjusted p-values, float64 of the same shape; compare them with the level you would use for one test.

    NaN stands for what is not tested, such as a baseline against itself: it stays NaN and does not count.
    Raises BadValue for p-values outside 0..1, UnknownName for another correction.
    """
    correction = CORRECTIONS.get(correct)
    tested = np.flatnonzero(~np.isnan(p))
    found = np.full(len(p), np.nan)
    if len(tested) == 0:
        return found
    given = p[tested]
    if given.min() < 0 or given.max() > 1:
        raise BadValue("p-values lie between 0 and 1")
    order = np.argsort(given, kind="stable")
    # Rounding must not make a p-value smaller than it was.
    found[tested[order]] = np.clip(correction(given[order]), given[order], 1)
    return found


def level_met(correct: str, tests: int, found: int, alpha: float) -> float:
    """The level that a p-value has to stay below to be found among so many tests, where so many others are found.

    Those others count as certain and the rest as not found, so that 0 others give the strictest level: alpha / tests
    by Bonferroni and Holm, alpha / (tests - found) by Holm where others are found.
    """
    p = np.concatenate([np.zeros(found), [_NEAR_ZERO], np.ones(tests - found - 1)])
    return alpha * _NEAR_ZERO / float(adjusted(p, correct)[found])


@CORRECTIONS.register("none")
def none(ascending: Float64) -> Float64:
    """No correction: each test on its own."""
    return ascending


@CORRECTIONS.register("bonferroni")
def bonferroni(ascending: Float64) -> Float64:
    """Bonferroni: each p-value times their number; bounds the chance of any false finding. Source: Dunn 1961."""
    return ascending * len(ascending)


@CORRECTIONS.register("holm")
def holm(ascending: Float64) -> Float64:
    """Holm: the smallest p-value times their number, the next times one fewer, and so on, never descending.

    Bounds the chance of any false finding, as Bonferroni does, and finds at least as much. Source: Holm 1979.
    """
    m = len(ascending)
    return np.maximum.accumulate(ascending * (m - np.arange(m)))


@CORRECTIONS.register("bh")
def benjamini_hochberg(ascending: Float64) -> Float64:
    """Benjamini and Hochberg: bounds the share of false findings among the findings. Source: 1995."""
    m = len(ascending)
    return np.minimum.accumulate((ascending * m / np.arange(1, m + 1))[::-1])[::-1]
