"""Measures of agreement with the order of relevance. Relevant: the grade is `rel` or better."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Grades, Int32, Int64
from weir.measures.library.arithmetic import place_in_query, powers, ratio
from weir.measures.measure import measure

__all__ = ["Accuracy", "Compat"]

_OVER = {"over": ("ideal", "weights")}


@measure("Accuracy")
def Accuracy(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Share of returned pairs of a relevant and another document with the relevant one ranked higher.

    Within the first k; unjudged is not relevant. 0 if nothing relevant was returned, 1 if only relevant
    documents were.

    Source: ir-measures Accuracy.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    found = j.per_query(j.query, rows)
    others = (j.retrieved if k is None else np.minimum(j.retrieved, k)) - found
    wrong = j.total(query, (j.rank[rows] - 1 - place_in_query(query)).astype(np.float64))
    return np.where(found > 0, 1.0 - ratio(wrong, others * found), 0.0)


@measure("Compat", choices=_OVER, within={"p": (0.0, 0.9999)})
def Compat(j: Judged, *, k: int | None = None, p: float = 0.95, over: str = "ideal") -> Float64:
    """Compatibility: rank-biased overlap of the ranking with the ideal ranking that is nearest to it.

    The ideal ranking has the documents of a grade above 0, best grade first, then in the order returned; 0 if
    there are none. Overlaps are weighted by p^(depth - 1) to the end of the longer list.

    p: probability of going on to the next rank, 0 to 0.9999.
    over: the divisor: "ideal" is the ideal's overlap with itself, "weights" the sum of the weights
        (ir-measures' normalize=False).

    Source: Clarke et al. 2021; ir-measures Compat.
    """
    rows = j.found_above_zero(k)
    query, rank, count = j.query[rows], j.rank[rows], j.above_zero()
    depth = np.maximum(j.retrieved if k is None else np.minimum(j.retrieved, k), count)
    weights = powers(p, np.arange(int(depth.max(initial=0))))
    sums = np.append(0.0, np.cumsum(weights))
    shares = np.append(0.0, np.cumsum(weights / np.arange(1, len(weights) + 1)))
    both = np.maximum(rank, _ideal_rank(j, query, j.grade[rows], rank))
    overlap = j.total(query, shares[depth[query]] - shares[both - 1])
    if over == "weights":
        return ratio(overlap, sums[depth])
    return np.minimum(ratio(overlap, sums[count] + count * (shares[depth] - shares[count])), 1.0)


def _ideal_rank(j: Judged, query: Int32, grade: Grades, rank: Int32) -> Int64:
    best = j.ideal > 0
    scale = np.unique(j.ideal[best])
    key = _key(query, np.searchsorted(scale, grade))
    better = np.searchsorted(_key(j.ideal_query()[best], np.searchsorted(scale, j.ideal[best])), key)
    first = np.cumsum(j.above_zero()) - j.above_zero()
    order = np.lexsort((rank, key))
    ideal = np.empty(len(query), np.int64)
    ideal[order] = place_in_query(key[order])
    return ideal + better - first[query] + 1


def _key(query: Int32, level: Int64) -> Int64:
    return (query.astype(np.int64) << 32) - level
