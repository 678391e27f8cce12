"""Measures that ask only whether a document is relevant: its grade is `rel` or better."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.grade_scale import best_grades
from weir.measures.library.ratio import ratio
from weir.measures.measure import measure

__all__ = ["AP", "RR", "P", "R", "R_cap", "Success"]


@measure("P", cutoff="required")
def P(j: Judged, *, k: int, rel: int = 1) -> Float64:
    """Share of the first k places that hold a relevant document.

    The divisor is k, also when fewer are returned. Source: trec_eval m_P.c.
    """
    return _hits(j, k, rel) / k


@measure("R")
def R(j: Judged, *, k: int | None = None, rel: int = 1) -> Float64:
    """Share of the relevant documents found within the first k.

    The divisor is all relevant documents, also when there are more than k. Source: trec_eval m_recall.c.
    """
    return ratio(_hits(j, k, rel), j.relevant(rel))


@measure("R_cap", cutoff="required")
def R_cap(j: Judged, *, k: int, rel: int = 1) -> Float64:
    """Recall whose divisor is capped at k, so that a full list of relevant documents scores 1.

    The BEIR paper reports it for TREC-COVID only. Source: Thakur et al. 2021, appendix; beir custom metrics.
    """
    return ratio(_hits(j, k, rel), np.minimum(j.relevant(rel), k))


@measure("Success", cutoff="required")
def Success(j: Judged, *, k: int, rel: int = 1) -> Float64:
    """1 where a relevant document is among the first k, else 0; also called hit rate or accuracy@k.

    Source: trec_eval m_success.c.
    """
    return (_hits(j, k, rel) > 0).astype(np.float64)


@measure("AP")
def AP(j: Judged, *, k: int | None = None, rel: int = 1) -> Float64:
    """Average precision: the mean, over all relevant documents, of the precision where each was found.

    Relevant documents that are not found within the first k count 0; the divisor stays all of them.
    Its mean over queries is MAP. Source: trec_eval m_map.c, m_map_cut.c.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    # The number of relevant documents so far: position among the query's hits, from 1.
    first = np.searchsorted(query, query, side="left")
    precision = (np.arange(len(query)) - first + 1) / j.rank[rows]
    return ratio(j.total(query, precision), j.relevant(rel))


@measure("RR", choices={"of": ("relevant", "best")})
def RR(j: Judged, *, k: int | None = None, of: str = "relevant", rel: int = 1) -> Float64:
    """Reciprocal rank: 1 / rank of the first relevant document within the first k, else 0.

    Its mean over queries is MRR. of: "best" looks for a relevant document of the query's highest grade only,
    as BIRCO does. Source: trec_eval m_recip_rank.c; BIRCO rank2metric.py.
    """
    rows = j.found(k, rel)
    if of == "best":
        rows &= j.grade == best_grades(j)[j.query]
    values = np.zeros(len(j))
    # Assigned in reverse, so that the first hit of each query stands in the end.
    values[j.query[rows][::-1]] = 1.0 / j.rank[rows][::-1]
    return values


def _hits(j: Judged, k: int | None, rel: int) -> Int64:
    return j.per_query(j.query, j.found(k, rel))
