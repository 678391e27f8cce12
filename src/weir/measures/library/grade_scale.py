"""The scale of grades that a measure is told of."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Int64
from weir.errors import BadValue

__all__ = ["SCALE", "best_grades", "refuse_beyond"]

SCALE = {"max_grade": (1.0, 100.0)}


def refuse_beyond(j: Judged, max_grade: int) -> None:
    """Raise BadValue where a judgment lies beyond the highest grade of the scale, found or not."""
    highest = int(j.ideal.max(initial=0))
    if highest > max_grade:
        raise BadValue(f"a grade of {highest} with max_grade={max_grade}; write max_grade={highest}")


def best_grades(j: Judged) -> Int64:
    """The highest grade among the judgments of each query, int64[Q]; 0 where none is above."""
    best = np.zeros(len(j), np.int64)
    some = np.flatnonzero(np.diff(j.ideal_ptr))
    best[some] = np.maximum(j.ideal[j.ideal_ptr[some]], 0)
    return best
