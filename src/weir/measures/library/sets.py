"""Measures of what was returned as a set, and plain counts. Relevant: the grade is `rel` or better.

With a cut-off the set is the first k documents, as with trec_eval's option -M.
"""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import ratio
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
    """Share of the documents returned that are relevant.

    The divisor is what was returned, at most k, where that of P@k is k; 0 where nothing was returned.
    Source: trec_eval m_set_P.c.
    """
    return ratio(_hits(j, k, rel), _returned(j, k))


@measure("SetR")
def SetR(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of the relevant documents that were returned, wherever they stand.

    The same number as R, under the name of the other set measures; 0 where nothing is relevant.
    Source: trec_eval m_set_recall.c.
    """
    return ratio(_hits(j, k, rel), j.relevant(rel))


@measure("SetR_cap")
def SetR_cap(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Relevant documents returned, divided by the most that so many documents could hold.

    The divisor is the number returned or the number relevant, whichever is smaller; that of R_cap@k is k or the
    number relevant. 0 where nothing was returned or nothing is relevant. Source: trec_eval m_set_rel_P.c.
    """
    return ratio(_hits(j, k, rel), np.minimum(_returned(j, k), j.relevant(rel)))


@measure("SetF", within=_BETA)
def SetF(j: Judged, *, k: int | None = None, beta: float = 1.0, rel: float = 1) -> Float64:
    """Weighted harmonic mean of set precision and set recall: F1 of all that was returned.

    beta: how many times as much recall weighs as precision, 0 to 1000: (1 + beta²) P R / (beta² P + R).
    The parameter of trec_eval and ir-measures is beta², so SetF(beta=2.0) is trec_eval's set_F.4.
    0 where nothing relevant was returned. Source: van Rijsbergen 1979; trec_eval m_set_F.c.
    """
    hits = _hits(j, k, rel)
    return _weighted(ratio(hits, _returned(j, k)), ratio(hits, j.relevant(rel)), beta)


@measure("SetAP")
def SetAP(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Set precision times set recall: average precision where the order within the set is unknown.

    0 where nothing was returned or nothing is relevant. Source: trec_eval m_set_map.c.
    """
    hits = _hits(j, k, rel)
    return ratio(hits * hits, _returned(j, k) * j.relevant(rel))


@measure("F", cutoff="required", within=_BETA)
def F(j: Judged, *, k: int, beta: float = 1.0, rel: float = 1) -> Float64:
    """Weighted harmonic mean of P@k and R@k: F1 at k.

    The divisor of precision is k, also when fewer are returned: SetF@k divides by what was returned.
    beta: how many times as much recall weighs as precision, 0 to 1000: (1 + beta²) P R / (beta² P + R).
    0 where no relevant document is among the first k. Source: van Rijsbergen 1979; ranx f1@k.
    """
    hits = _hits(j, k, rel)
    return _weighted(hits / k, ratio(hits, j.relevant(rel)), beta)


@measure("NumRet", values="any", of="presence", better="neither")
def NumRet(j: Judged, *, k: int | None = None) -> Float64:
    """Number of documents returned, at most k.

    It says how long the rankings are, not how good. trec_eval prints the total over queries, Weir the
    mean. Source: trec_eval m_num_ret.c.
    """
    return _returned(j, k).astype(np.float64)


@measure("NumRel", values="any", better="neither")
def NumRel(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of relevant documents, returned or not, at most k.

    It describes the judgments: a query that the run does not answer has its number too. trec_eval
    prints the total over queries, Weir the mean. Source: trec_eval m_num_rel.c.
    """
    count = j.relevant(rel)
    return (count if k is None else np.minimum(count, k)).astype(np.float64)


@measure("NumRelRet", values="any")
def NumRelRet(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of relevant documents among the first k.

    trec_eval prints the total over queries, Weir the mean. Source: trec_eval m_num_rel_ret.c;
    ir-measures' NumRet(rel=1).
    """
    return _hits(j, k, rel).astype(np.float64)


@measure("NumNonrelRet", values="any", better="neither")
def NumNonrelRet(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Number of documents among the first k that are judged and not relevant, a grade below 0 being no judgment.

    trec_eval prints the total over queries, Weir the mean. Source: trec_eval m_num_nonrel_judged_ret.c.
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
    """Worth of the set returned: relevant documents times hit, others times noise, those missed times miss.

    hit: of a relevant document returned; noise: of any other one returned; miss: of a relevant one that was not
    returned. trec_eval has a fourth weight, for documents neither relevant nor returned, 0 unless told.
    Source: trec_eval m_utility.c.
    """
    hits = _hits(j, k, rel)
    worth: Float64 = hit * hits + noise * (_returned(j, k) - hits) + miss * (j.relevant(rel) - hits)
    return worth


def _hits(j: Judged, k: int | None, rel: float) -> Int64:
    return j.per_query(j.query, j.found(k, rel))


def _returned(j: Judged, k: int | None) -> Int64:
    returned = j.retrieved if k is None else np.minimum(j.retrieved, k)
    return returned.astype(np.int64)


def _weighted(precision: Float64, recall: Float64, beta: float) -> Float64:
    weight = beta * beta
    return ratio((weight + 1.0) * precision * recall, weight * precision + recall)
