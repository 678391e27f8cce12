"""Measures of binary relevance (the grade is `rel` or better)."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int32, Int64
from weir.measures.library.arithmetic import best_grades, hit_counts, place_in_query, ratio
from weir.measures.measure import Setting, measure

__all__ = ["AP", "IAP", "RR", "IPrec", "P", "R", "R_cap", "Rprec", "Success"]


@measure("P", cutoff="required")
def P(j: Judged, *, k: int, rel: float = 1) -> Float64:
    """Share of the first k ranks that hold a relevant document.

    The divisor is k, even if fewer are returned. Source: trec_eval m_P.c.
    """
    return hit_counts(j, k, rel) / k


@measure("R")
def R(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of the relevant documents found within the first k.

    The divisor is all relevant documents, even if there are more than k. Source: trec_eval m_recall.c.
    """
    return ratio(hit_counts(j, k, rel), j.relevant(rel))


@measure("R_cap", cutoff="required")
def R_cap(j: Judged, *, k: int, rel: float = 1) -> Float64:
    """Recall whose divisor is capped at k, so that a full list of relevant documents scores 1.

    Source: Thakur et al. 2021, appendix; beir custom metrics.
    """
    return ratio(hit_counts(j, k, rel), np.minimum(j.relevant(rel), k))


@measure("Success", cutoff="required")
def Success(j: Judged, *, k: int, rel: float = 1) -> Float64:
    """1 if a relevant document is among the first k, else 0; also called hit rate or accuracy@k.

    Source: trec_eval m_success.c.
    """
    return (hit_counts(j, k, rel) > 0).astype(np.float64)


@measure("AP")
def AP(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Average precision: the mean, over all relevant documents, of the precision at the rank of each.

    Those not within the first k count 0. Its mean over queries is MAP. Source: trec_eval m_map.c,
    m_map_cut.c.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    # The number of relevant documents so far: position among the query's hits, from 1.
    first = np.searchsorted(query, query, side="left")
    precision = (np.arange(len(query)) - first + 1) / j.rank[rows]
    return ratio(j.total(query, precision), j.relevant(rel))


@measure("RR", choices={"of": ("relevant", "best")})
def RR(j: Judged, *, k: int | None = None, of: str = "relevant", rel: float = 1) -> Float64:
    """Reciprocal rank: 1 / rank of the first relevant document within the first k, else 0.

    Its mean over queries is MRR.

    of: "relevant", or "best" for only relevant documents of the query's highest grade, as in BIRCO.

    Source: trec_eval m_recip_rank.c; BIRCO rank2metric.py.
    """
    rows = j.found(k, rel)
    if of == "best":
        rows &= j.grade == best_grades(j)[j.query]
    values = np.zeros(len(j))
    # Assigned in reverse, so that the first hit of each query stands in the end.
    values[j.query[rows][::-1]] = 1.0 / j.rank[rows][::-1]
    return values


POINTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
_ROUNDING: dict[str, tuple[Setting, ...]] = {"rounding": ("up", "nearest")}


@measure("Rprec", within={"times": (0.0, 100.0)})
def Rprec(j: Judged, *, k: int | None = None, times: float = 1.0, rel: float = 1) -> Float64:
    """R-precision: precision at rank R, the number of documents relevant to the query.

    The divisor is R, even if fewer were returned or k is smaller; 0 if nothing is relevant.

    times: multiple of R, rounded down after adding 0.9.

    Source: trec_eval m_Rprec.c, m_Rprec_mult.c.
    """
    count = np.floor(times * j.relevant(rel) + 0.9)
    hits = j.found(k, rel) & (j.rank <= count[j.query])
    return ratio(j.per_query(j.query, hits), count)


@measure("IPrec", within={"recall": (0.0, 1.0)}, choices=_ROUNDING)
def IPrec(
    j: Judged, *, k: int | None = None, recall: float = 0.1, rounding: str = "up", rel: float = 1
) -> Float64:
    """Interpolated precision: the best precision at this recall or any higher one.

    recall: share of the relevant documents that must be found, 0 to 1. At 0 all ranks count.
    rounding: rounding of their number, "up" (trec_eval up to 9, ir-measures) or "nearest" (trec_eval 10).
    0 if too few are found or nothing is relevant. Source: trec_eval m_iprec_at_recall.c; ir-measures'
    IPrec@recall.
    """
    return _interpolated(_curve(j, k, rel), recall, rounding)


@measure("IAP", choices=_ROUNDING)
def IAP(j: Judged, *, k: int | None = None, rounding: str = "up", rel: float = 1) -> Float64:
    """Eleven-point average: the mean of interpolated precision at recall 0, 0.1, 0.2, ... and 1.

    rounding: "up" (trec_eval up to 9) or "nearest" (trec_eval 10).

    0 if nothing relevant was returned. Source: trec_eval m_11pt_avg.c.
    """
    curve = _curve(j, k, rel)
    total = np.zeros(len(j))
    for point in POINTS:  # downwards, as trec_eval adds
        total += _interpolated(curve, point, rounding)
    return total / len(POINTS)


def _curve(j: Judged, k: int | None, rel: float) -> tuple[Int64, Int32, Int64, Float64]:
    rows = j.found(k, rel)
    found = place_in_query(j.query[rows]) + 1
    return j.relevant(rel), j.query[rows], found, found / j.rank[rows]


def needed_at(relevant: Int64, recall: float, rounding: str) -> Float64:
    """Return the number of relevant documents that a recall requires, whole float64[queries].

    relevant: number of relevant documents, int64[queries].
    rounding: "up" rounds up but drops a fraction below 0.1, "nearest" rounds halves up.
    """
    exact = recall * relevant
    needed: Float64 = np.floor(exact + 0.9) if rounding == "up" else np.floor(exact) + (exact % 1.0 >= 0.5)
    return needed


def _interpolated(curve: tuple[Int64, Int32, Int64, Float64], recall: float, rounding: str) -> Float64:
    relevant, query, found, precision = curve
    best, reached = np.zeros(len(relevant)), found >= needed_at(relevant, recall, rounding)[query]
    np.maximum.at(best, query[reached], precision[reached])
    return best
