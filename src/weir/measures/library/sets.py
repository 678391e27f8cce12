"""Measures of the returned documents (the first k) as a set. Relevant: the grade is `rel` or better."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.measures.library.arithmetic import hit_counts, ratio, returned_counts
from weir.measures.measure import measure

__all__ = [
    "F",
    "NumNonrelRet",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetR_cap",
    "Utility",
]

_BETA = {"beta": (0.0, 1000.0)}


@measure("SetP")
def SetP(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of the returned documents that are relevant.

    The divisor is the number returned, at most k; that of P@k is k. 0 if nothing was returned. Source: trec_eval
    m_set_P.c.
    """
    return ratio(hit_counts(j, k, rel), returned_counts(j, k))


@measure("SetR")
def SetR(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of the relevant documents that were returned.

    Equal to R; 0 if nothing is relevant. Source: trec_eval m_set_recall.c.
    """
    return ratio(hit_counts(j, k, rel), j.relevant(rel))


@measure("SetR_cap")
def SetR_cap(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of relevant documents returned, divided by the maximum for a set of that size.

    The divisor is the smaller of the numbers returned and relevant; 0 if either is 0. Source: trec_eval
    m_set_rel_P.c.
    """
    return ratio(hit_counts(j, k, rel), np.minimum(returned_counts(j, k), j.relevant(rel)))


@measure("SetF", within=_BETA)
def SetF(j: Judged, *, k: int | None = None, beta: float = 1.0, rel: float = 1) -> Float64:
    """Weighted harmonic mean of set precision and set recall: F1 of all that was returned.

    0 if nothing relevant was returned.

    beta: weight of recall, 0 to 1000: (1 + beta²) P R / (beta² P + R); trec_eval and ir-measures take beta².

    Source: van Rijsbergen 1979; trec_eval m_set_F.c.
    """
    hits = hit_counts(j, k, rel)
    return _weighted(ratio(hits, returned_counts(j, k)), ratio(hits, j.relevant(rel)), beta)


@measure("SetAP")
def SetAP(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Set precision times set recall: average precision if the order within the set is unknown.

    0 if nothing was returned or is relevant. Source: trec_eval m_set_map.c.
    """
    hits = hit_counts(j, k, rel)
    return ratio(hits * hits, returned_counts(j, k) * j.relevant(rel))


@measure("F", cutoff="required", within=_BETA)
def F(j: Judged, *, k: int, beta: float = 1.0, rel: float = 1) -> Float64:
    """Weighted harmonic mean of P@k and R@k: F1 at k.

    Precision divides by k even if fewer are returned, unlike SetF@k; 0 if nothing relevant is among the first
    k.

    beta: weight of recall, 0 to 1000: (1 + beta²) P R / (beta² P + R).

    Source: van Rijsbergen 1979; ranx f1@k.
    """
    hits = hit_counts(j, k, rel)
    return _weighted(hits / k, ratio(hits, j.relevant(rel)), beta)


@measure("NumRet", values="any", of="presence", better="neither")
def NumRet(j: Judged, *, k: int | None = None) -> Float64:
    """Number of documents returned, at most k.

    trec_eval prints the total over queries, not the mean. Source: trec_eval m_num_ret.c.
    """
    return returned_counts(j, k).astype(np.float64)


@measure("NumRel", values="any", better="neither")
def NumRel(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of relevant documents, returned or not, at most k.

    trec_eval prints the total over queries, not the mean. Source: trec_eval m_num_rel.c.
    """
    count = j.relevant(rel)
    return (count if k is None else np.minimum(count, k)).astype(np.float64)


@measure("NumRelRet", values="any")
def NumRelRet(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of relevant documents among the first k.

    trec_eval prints the total over queries, not the mean. Source: trec_eval m_num_rel_ret.c; ir-measures'
    NumRet(rel=1).
    """
    return hit_counts(j, k, rel).astype(np.float64)


@measure("NumNonrelRet", values="any", better="neither")
def NumNonrelRet(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of documents among the first k judged not relevant; a grade below 0 is no judgment.

    trec_eval prints the total over queries, not the mean. Source: trec_eval m_num_nonrel_judged_ret.c.
    """
    rows = j.found(k, 0) & (j.grade < rel)
    return j.per_query(j.query, rows).astype(np.float64)


@measure("Utility", values="any", within={name: (-1000.0, 1000.0) for name in ("hit", "noise", "miss")})
def Utility(
    j: Judged,
    *,
    k: int | None = None,
    hit: float = 1.0,
    noise: float = -1.0,
    miss: float = 0.0,
    rel: float = 1,
) -> Float64:
    """Utility of the returned set: a weight for each document returned and each relevant one missed, summed.

    hit: weight of a relevant document returned.
    noise: weight of any other document returned.
    miss: weight of a relevant document not returned.

    Source: trec_eval m_utility.c, without its fourth weight.
    """
    hits = hit_counts(j, k, rel)
    worth: Float64 = hit * hits + noise * (returned_counts(j, k) - hits) + miss * (j.relevant(rel) - hits)
    return worth


def _weighted(precision: Float64, recall: Float64, beta: float) -> Float64:
    weight = beta * beta
    return ratio((weight + 1.0) * precision * recall, weight * precision + recall)
