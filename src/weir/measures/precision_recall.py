"""Points of the precision-recall curve. Relevant: the grade is `rel` or better.

With a cut-off the curve is that of the first k documents, as with trec_eval's option -M.
"""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.measures.measure import measure
from weir.measures.ratio import ratio
from weir.measures.running import place

__all__ = ["IAP", "IPrec", "Rprec"]

_POINTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)


@measure("Rprec")
def Rprec(j: Judged, *, k: int | None = None, rel: int = 1) -> Float64:
    """R-precision: precision after as many documents as are relevant to the query.

    The divisor is the number of relevant documents, also when fewer were returned or k is smaller;
    0 where nothing is relevant. Source: trec_eval m_Rprec.c.
    """
    count = j.relevant(rel)
    hits = j.found(k, rel) & (j.rank <= count[j.query])
    return ratio(j.per_query(j.query, hits), count)


@measure("IPrec", within={"recall": (0.0, 1.0)})
def IPrec(j: Judged, *, k: int | None = None, recall: float = 0.1, rel: int = 1) -> Float64:
    """Interpolated precision: the best precision at this recall or any higher one.

    recall: from 0 to 1. It stands for the first int(recall * R + 0.9) of the R relevant documents, for
    all ranks where that is none. 0 where the run never reaches it, and where nothing is relevant.
    Source: trec_eval m_iprec_at_recall.c; ir-measures' IPrec@recall.
    """
    return _interpolated(j, k, rel, recall)


@measure("IAP")
def IAP(j: Judged, *, k: int | None = None, rel: int = 1) -> Float64:
    """Eleven-point average: the mean of interpolated precision at recall 0, 0.1, 0.2, ... and 1.

    The recall points are those of IPrec, conventions included. Source: trec_eval m_11pt_avg.c.
    """
    total = np.zeros(len(j))
    for point in _POINTS:  # downwards, as trec_eval adds
        total += _interpolated(j, k, rel, point)
    return total / len(_POINTS)


def _interpolated(j: Judged, k: int | None, rel: int, recall: float) -> Float64:
    rows = j.found(k, rel)
    query, best = j.query[rows], np.zeros(len(j))
    # Precision never peaks between relevant documents, so the ranks that hold one are enough.
    found = place(query) + 1
    needed = (recall * j.relevant(rel) + 0.9).astype(np.int64)
    reached = found >= needed[query]
    np.maximum.at(best, query[reached], (found / j.rank[rows])[reached])
    return best
