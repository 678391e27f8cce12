"""Scores of which some are missing: a document without one keeps its place in the first stage's order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from weir.core.strings import Float64, Int64

__all__ = ["SCORE_STEP", "kept_places"]

SCORE_STEP = 2.0**-16
"""What each further place takes from a score: doubles and floats tell it apart, and scores differ by more."""


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
