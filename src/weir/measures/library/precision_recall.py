"""Points of the precision-recall curve. Relevant: the grade is `rel` or better.

With a cut-off the curve is that of the first k documents, as with trec_eval's option -M.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int32, Int64
from weir.measures.library.ratio import ratio
from weir.measures.library.segment_sums import place
from weir.measures.measure import Setting, measure

__all__ = ["IAP", "POINTS", "IPrec", "Rprec", "needed_at"]

POINTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
_ROUNDING: dict[str, tuple[Setting, ...]] = {"rounding": ("up", "nearest")}


@measure("Rprec", within={"times": (0.0, 100.0)})
def Rprec(j: Judged, *, k: int | None = None, times: float = 1.0, rel: int = 1) -> Float64:
    """R-precision: precision after as many documents as are relevant to the query.

    The divisor is the number of relevant documents, also when fewer were returned or k is smaller;
    0 where nothing is relevant. times: precision after so many times as many, that number plus 0.9 and
    cut to a whole one. Source: trec_eval m_Rprec.c, m_Rprec_mult.c.
    """
    count = np.floor(times * j.relevant(rel) + 0.9)
    hits = j.found(k, rel) & (j.rank <= count[j.query])
    return ratio(j.per_query(j.query, hits), count)


@measure("IPrec", within={"recall": (0.0, 1.0)}, choices=_ROUNDING)
def IPrec(
    j: Judged, *, k: int | None = None, recall: float = 0.1, rounding: str = "up", rel: int = 1
) -> Float64:
    """Interpolated precision: the best precision at this recall or any higher one.

    recall: from 0 to 1; times the number of relevant documents it says how many of them must be found.
    rounding: where that is no whole number, "up" takes the next (trec_eval up to 9 and ir-measures, which
    add 0.9 and cut) and "nearest" the nearest (trec_eval 10). At 0 all ranks count.
    0 where so many are not found, and where nothing is relevant.
    Source: trec_eval m_iprec_at_recall.c; ir-measures' IPrec@recall.
    """
    return _interpolated(_Curve.of(j, k, rel), recall, rounding)


@measure("IAP", choices=_ROUNDING)
def IAP(j: Judged, *, k: int | None = None, rounding: str = "up", rel: int = 1) -> Float64:
    """Eleven-point average: the mean of interpolated precision at recall 0, 0.1, 0.2, ... and 1.

    The recall points are those of IPrec. rounding: as there, "up" (trec_eval up to 9) or "nearest"
    (trec_eval 10). 0 where nothing relevant was returned. Source: trec_eval m_11pt_avg.c.
    """
    curve = _Curve.of(j, k, rel)
    total = np.zeros(len(j))
    for point in POINTS:  # downwards, as trec_eval adds
        total += _interpolated(curve, point, rounding)
    return total / len(POINTS)


@dataclass(frozen=True)
class _Curve:
    """Precision where it can peak: at each relevant document found, the n-th of its query."""

    relevant: Int64
    query: Int32
    found: Int64
    precision: Float64

    @staticmethod
    def of(j: Judged, k: int | None, rel: int) -> _Curve:
        rows = j.found(k, rel)
        found = place(j.query[rows]) + 1
        return _Curve(j.relevant(rel), j.query[rows], found, found / j.rank[rows])


def needed_at(relevant: Int64, recall: float, rounding: str) -> Float64:
    """How many relevant documents must be found for this recall, float64[Q]; whole numbers."""
    exact = recall * relevant
    needed: Float64 = np.floor(exact + 0.9) if rounding == "up" else np.floor(exact) + (exact % 1.0 >= 0.5)
    return needed


def _interpolated(curve: _Curve, recall: float, rounding: str) -> Float64:
    needed = needed_at(curve.relevant, recall, rounding)
    best, reached = np.zeros(len(curve.relevant)), curve.found >= needed[curve.query]
    np.maximum.at(best, curve.query[reached], curve.precision[reached])
    return best
