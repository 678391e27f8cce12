"""Scores that do not order every document: those without one, and equal ones, stand by the first stage's order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from weir.core.strings import Float64, Int64
from weir.systems.restricted import LOWEST_SCORE

__all__ = ["SCORE_STEP", "kept_places", "settled_by_place"]

SCORE_STEP = 2.0**-16
"""What each further place takes from a score: doubles and floats tell it apart, and scores differ by more."""
RELATIVE_STEP = 2.0**-20
"""What equal scores differ by afterwards, as a share of the query's largest: floats tell it apart."""


def kept_places(values: Float64, ptr: Int64) -> Float64:
    """A finite score for each candidate, lower from place to place of the order that `values` makes.

    values: float64 aligned with the candidates in the first stage's order, NaN where there is none; ptr: where each
    query's begin. A candidate without a value stays at its place, the others fill the other places by value, equal ones
    in the first stage's order. The score is the value, or that of the place before (at the first, of the next) where
    there is none, less SCORE_STEP for each place from the top.
    """
    score = np.empty(len(values))
    for start, stop in pairwise(ptr.tolist()):
        own = values[start:stop]
        known = np.flatnonzero(~np.isnan(own))
        order = np.arange(stop - start)
        order[known] = known[np.argsort(-own[known], kind="stable")]
        level = own[order]
        if len(known):
            last = np.maximum.accumulate(np.where(np.isnan(level), -1, np.arange(len(level))))
            level = level[np.where(last < 0, known[0], last)]
        else:
            level = np.zeros(len(level))
        score[start + order] = level - SCORE_STEP * np.arange(len(level))
    return score


def settled_by_place(values: Float64, ptr: Int64) -> Float64:
    """The scores with equal ones made to fall in the first stage's order, and lower ones where room is needed.

    values: float64 aligned with the candidates in the first stage's order; ptr: where each query's begin. The order of
    different scores stays, and a score that equals no other keeps its value where RELATIVE_STEP apart is room enough.
    LOWEST_SCORE, which says that there is none, becomes a score below the others.
    """
    score = np.empty(len(values))
    for start, stop in pairwise(ptr.tolist()):
        own = values[start:stop]
        order = np.argsort(-own, kind="stable")
        known = own > LOWEST_SCORE
        level = np.where(known, own, own[known].min() if known.any() else 0.0)[order]
        step = RELATIVE_STEP * (float(np.abs(level).max(initial=0.0)) or 1.0) * np.arange(len(level))
        least = np.minimum.accumulate(level + step)
        score[start + order] = np.where(least == level + step, level, least - step)
    return score
