"""The scores that Anserini writes: rounded, and tied ones lowered step by step, all in 32-bit floats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int64

__all__ = ["lowered"]

_F = np.float32
_ROUNDED = _F(1e4)
"""Scores are rounded to one part in this."""
_CLOSE = _F(1e-4)
"""Neighbours that differ by no more count as tied."""
_STEP = _F(1e-6)
"""What each further one of a tie loses; it vanishes in a float from about 32."""
_DECIMALS = 6
"""Of a score in the file."""


def lowered(ptr: Int64, score: Float64) -> Float64:
    """The scores as they stand in Anserini's run files, float64[n], read back as floats as trec_eval 9 does.

    Rows of query q stand from ptr[q] to ptr[q + 1], ties by ascending identifier as in Lucene. A score no more than
    1e-4 below the one before it, which may have been lowered itself, is lowered by 1e-6 more than that one was. Where
    a float is too coarse for such a step the scores stay tied, and trec_eval's descending identifiers decide.
    Source: Anserini's ScoreTiesAdjusterReranker at 0ac088a4c0.
    """
    with np.errstate(over="ignore"):
        steps = np.floor((score.astype(_F) * _ROUNDED).astype(np.float64) + 0.5)
        single = np.clip(steps, -(2.0**31), 2.0**31 - 1).astype(_F) / _ROUNDED
    # Only where rounded scores are this close can a chain of ties go on: it loses less than a step a row.
    longest = int(np.diff(ptr).max(initial=0))
    near = np.zeros(len(single) + 1, np.bool_)
    near[1:-1] = single[:-1].astype(np.float64) - single[1:] <= 2e-4 + 2e-6 * longest
    near[ptr] = False
    edges = np.flatnonzero(np.diff(near.astype(np.int8)))
    for before, last in edges.reshape(-1, 2).tolist():
        _lower(single[before : last + 1])
    return np.round(single.astype(np.float64), _DECIMALS).astype(_F).astype(np.float64)


def _lower(scores: NDArray[np.float32]) -> None:
    """Lower the tied ones of some scores of one query, in place."""
    tied = 0
    for row in range(1, len(scores)):
        tied = 0 if scores[row - 1] - scores[row] > _CLOSE else tied + 1
        if tied:
            scores[row] -= _STEP * _F(tied)
