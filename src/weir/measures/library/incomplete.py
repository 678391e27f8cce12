"""Measures for incomplete judgments. Relevant: the grade is `rel` or better.

A grade below 0 means pooled but not judged, as in trec_eval; k cuts the ranking first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import place_in_query, ratio
from weir.measures.measure import measure

__all__ = ["Hole", "Judged_at", "bpref", "infAP"]

EPSILON = 0.00001  # of infAP, where nothing judged stands above


@measure("Judged", cutoff="required", of="presence", better="neither")
def Judged_at(j: Judged, *, k: int) -> Float64:
    """Share of the first k documents returned that were judged for this query, with any grade.

    The divisor is the number returned, at most k; 0 if nothing was. Source: ir-measures' Judged@k; Elastic's
    judge rate.
    """
    return ratio(_judged(j, k), np.minimum(j.retrieved, k))


@measure("Hole", cutoff="required", of="presence", better="less")
def Hole(j: Judged, *, k: int) -> Float64:
    """Share of the first k ranks that hold a document nobody judged for this query.

    The divisor is k. BEIR's own holes are documents that no query judged. Source: Thakur et al. 2021, section
    6; trec_eval 10 `unj`.
    """
    return (np.minimum(j.retrieved, k) - _judged(j, k)) / k


def _judged(j: Judged, k: int) -> Int64:
    return j.per_query(j.query, j.rank <= k)


@measure("bpref")
def bpref(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of preferences kept: how few judged non-relevant documents rank above relevant ones.

    With R relevant and N judged non-relevant documents, each returned relevant one adds 1 - min(n, R) /
    min(N, R), with n judged non-relevant above it; the sum is divided by R.

    Source: Buckley and Voorhees 2004; trec_eval m_bpref.c.
    """
    rows, count = j.found(k, rel), j.relevant(rel)
    query = j.query[rows]
    above = _before(j, ~j.found(rel=rel) & (j.grade >= 0))[rows]
    wrong = j.per_query(j.ideal_query(), (j.ideal < rel) & (j.ideal >= 0))
    lost = ratio(np.minimum(above, count[query]), np.minimum(wrong, count)[query])
    return ratio(j.total(query, 1.0 - lost), count)


@measure("infAP")
def infAP(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Inferred average precision: AP estimated from judgments of a random part of the pool.

    A relevant document at rank i adds 1/i + (i-1)/i * p/(i-1) * (r + e) / (r + n + 2e): above it are r
    relevant, n judged non-relevant and p pooled documents; e = 0.00001. The sum is divided by the number of
    relevant documents. A grade below 0 means pooled but not judged.

    Source: Yilmaz and Aslam 2006; trec_eval m_infap.c.
    """
    rows = j.found(k, rel)
    query, rank = j.query[rows], j.rank[rows].astype(np.float64)
    pooled, right = place_in_query(j.query)[rows], place_in_query(query)
    wrong = _before(j, ~j.found(rel=rel) & (j.grade >= 0))[rows]
    higher = rank - 1.0
    share = (right + EPSILON) / (right + wrong + 2 * EPSILON)
    expected = 1.0 / rank + (higher / rank) * ratio(pooled, higher) * share
    return ratio(j.total(query, np.where(higher == 0, 1.0, expected)), j.relevant(rel))


def _before(j: Judged, rows: NDArray[np.bool_]) -> Int64:
    so_far = np.cumsum(rows, dtype=np.int64) - rows
    first = np.searchsorted(j.query, j.query, side="left")
    above: Int64 = so_far - so_far[first]
    return above
