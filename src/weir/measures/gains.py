"""Measures that weigh graded gains by rank."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int16
from weir.errors import BadValue
from weir.measures.measure import Setting, measure
from weir.measures.ratio import ratio

__all__ = ["DCG", "GAINS", "gain_of", "nDCG"]

_STEEPEST = 500  # a sum of gains 2**grade stays far inside the range of a double

GAINS: dict[str, tuple[Setting, ...]] = {"gain": ("linear", "exp")}


@measure("DCG", bounded=False, choices=GAINS)
def DCG(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Discounted cumulative gain: the grades found, each divided by log2(rank + 1).

    gain: "linear" takes the grade itself (trec_eval), "exp" takes 2^grade - 1 (gdeval, Burges 2005).
    Grades below 1 and unjudged documents gain nothing. Source: Järvelin and Kekäläinen 2002;
    trec_eval m_ndcg_cut.c.
    """
    return _dcg(j, k, gain)


@measure("nDCG", choices=GAINS)
def nDCG(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Discounted cumulative gain divided by that of the best possible ranking, cut at the same rank.

    The ideal ranking holds every judged document, found or not. gain: "linear" (trec_eval, BEIR) or
    "exp". A query without a relevant document scores 0. Source: Järvelin and Kekäläinen 2002;
    trec_eval m_ndcg_cut.c.
    """
    ideal_rank = j.ideal_rank()
    best = (j.ideal > 0) & ((ideal_rank <= k) if k is not None else True)
    ideal = j.total(j.ideal_query()[best], gain_of(j.ideal[best], gain) / np.log2(ideal_rank[best] + 1.0))
    return ratio(_dcg(j, k, gain), ideal)


def _dcg(j: Judged, k: int | None, gain: str) -> Float64:
    rows = j.found(k)
    return j.total(j.query[rows], gain_of(j.grade[rows], gain) / np.log2(j.rank[rows] + 1.0))


def gain_of(grade: Int16, gain: str) -> Float64:
    """What documents of these grades are worth: the grade itself, or 2^grade - 1 for "exp"."""
    if gain == "linear":
        return grade.astype(np.float64)
    if grade.max(initial=0) > _STEEPEST:
        raise BadValue(f"gain='exp' with a grade of {grade.max()}; expected grades up to {_STEEPEST}")
    return np.exp2(grade.astype(np.float64)) - 1.0
