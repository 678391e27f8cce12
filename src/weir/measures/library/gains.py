"""Measures of cumulative gain, with and without a discount by rank."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Int32, Int64
from weir.measures.library.arithmetic import (
    GAINS,
    SCALE,
    TABLE,
    found_gains,
    gain_of,
    ideal_gains,
    place_in_query,
    ratio,
    refuse_beyond,
    sum_until,
    sum_within,
)
from weir.measures.measure import Form, measure

__all__ = ["DCG", "IDCG", "NCG", "SDCG", "Q", "nDCG"]
_CHOICES = GAINS | {"discount": ("trec", "original")}
_WITHIN: dict[str, tuple[float, float] | Form] = {**TABLE, "base": (1.01, 1000.0)}


@measure("DCG", values="any", choices=_CHOICES, within=_WITHIN)
def DCG(
    j: Judged, *, k: int | None = None, gain: str = "linear", base: float = 2.0, discount: str = "trec"
) -> Float64:
    """Discounted cumulative gain: the sum of gains, each divided by the logarithm of its rank + 1.

    Grades below 0 and unjudged documents gain nothing.

    gain: "linear" is the grade (trec_eval), "exp" is 2^grade - 1 (gdeval, Burges 2005), a table such as
        "1=1,2=3" gives the gain of its grades, others gaining themselves.
    base: base of the logarithm, 1.01 to 1000.
    discount: "trec" divides by log(rank + 1), "original" by log(rank) from rank = base on, by 1 before.

    Source: Järvelin and Kekäläinen 2002; trec_eval m_ndcg_cut.c.
    """
    return _total(j, found_gains(j, k, gain), base, discount)


@measure("IDCG", values="any", choices=_CHOICES, within=_WITHIN, better="neither")
def IDCG(
    j: Judged, *, k: int | None = None, gain: str = "linear", base: float = 2.0, discount: str = "trec"
) -> Float64:
    """Discounted cumulative gain of the best possible ranking of the first k: the divisor of nDCG.

    gain: "linear", "exp" or a table, as in DCG.
    base: base of the logarithm.
    discount: "trec" or "original", as in DCG.

    Source: Järvelin and Kekäläinen 2002; trec_eval 10 m_ideal_dcg.c.
    """
    return _total(j, ideal_gains(j, k, gain), base, discount)


@measure("nDCG", choices=_CHOICES, within=_WITHIN)
def nDCG(
    j: Judged, *, k: int | None = None, gain: str = "linear", base: float = 2.0, discount: str = "trec"
) -> Float64:
    """Discounted cumulative gain divided by that of the best possible ranking, cut at the same rank.

    The ideal ranking has every judged document, found or not. 0 if nothing is relevant.

    gain: "linear" (trec_eval, BEIR), "exp" (gdeval) or a table such as "1=1,2=3", as in DCG.
    base: base of the logarithm, without effect with discount "trec".
    discount: "trec" or "original", as in DCG.

    Source: Järvelin and Kekäläinen 2002; trec_eval m_ndcg_cut.c.
    """
    ideal = _total(j, ideal_gains(j, k, gain), base, discount)
    return ratio(_total(j, found_gains(j, k, gain), base, discount), ideal)


@measure("SDCG", cutoff="required", within=SCALE)
def SDCG(j: Judged, *, k: int, max_grade: int = 4) -> Float64:
    """Scaled discounted cumulative gain: divided by that of k documents of the highest grade.

    A query with fewer such documents cannot reach 1.

    max_grade: highest grade of the scale, 1 to 100; a higher grade is refused.

    Source: ir-measures SDCG; cwl_eval cwl_dcg.py.
    """
    refuse_beyond(j, max_grade)
    best = math.fsum((1.0 / np.log2(np.arange(k) + 2.0)).tolist())
    query, rank, gain = found_gains(j, k, "linear")
    return _total(j, (query, rank, gain / max_grade), 2.0, "trec") / best


def _total(j: Judged, gains: tuple[Int32, Int32 | Int64, Float64], base: float, discount: str) -> Float64:
    query, rank, gain = gains
    return j.total(query, gain / divisor_at(rank, base, discount))


def divisor_at(rank: NDArray[np.integer], base: float, discount: str) -> Float64:
    """Return the divisor of a gain at each rank, float64[n].

    base: of the logarithm.
    discount: "trec" gives log(rank + 1), "original" log(rank) from rank = base on, 1 before.
    """
    divisor: Float64 = np.log2(rank + (1.0 if discount == "trec" else 0.0)) / math.log2(base)
    return divisor if discount == "trec" else np.where(rank < base, 1.0, divisor)


@measure("NCG", choices=GAINS, within=TABLE)
def NCG(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Normalised cumulative gain: the gain of the first k, divided by that of the k best judged documents.

    0 if nothing is relevant. With binary judgments it is R_cap@k.

    gain: "linear", "exp" or a table such as "1=1,2=3", as in DCG.

    Source: Järvelin and Kekäläinen 2002; TREC's Deep Learning track 2019 (NCG@1000).
    """
    (query, _, found), (ideal_query, _, ideal) = found_gains(j, k, gain), ideal_gains(j, k, gain)
    return ratio(j.total(query, found), j.total(ideal_query, ideal))


@measure("Q", choices=GAINS, within={"beta": (0.0, 1000.0)})
def Q(j: Judged, *, k: int | None = None, beta: float = 1.0, gain: str = "linear") -> Float64:
    """Q-measure: average precision whose precision is blended with the gain so far.

    A document of a grade above 0 at rank i adds (c + beta g) / (i + beta g*): c such documents and gain g so
    far, g* the largest gain of i documents. The sum is divided by the number of such documents; 0 without
    any.

    beta: weight of gains, 0 to 1000; 0 gives AP.
    gain: "linear" or "exp", as in DCG.

    Source: Sakai 2004; Sakai and Kando 2008.
    """
    rows, count = j.found_above_zero(k), j.above_zero()
    query, rank = j.query[rows], j.rank[rows]
    gained = sum_until(query, gain_of(j.grade[rows], gain))
    most = sum_within(*ideal_gains(j, None, gain), query, rank)
    blended = (place_in_query(query) + 1 + beta * gained) / (rank + beta * most)
    return ratio(j.total(query, blended), count)
