"""Measures of cumulative gain without a discount by rank."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int32
from weir.measures.gains import GAINS, gain_of
from weir.measures.measure import measure
from weir.measures.ratio import ratio
from weir.measures.running import place, sum_until

__all__ = ["NCG", "Q"]


@measure("NCG", choices=GAINS)
def NCG(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Normalised cumulative gain: recall that counts grades, of the best that k documents could hold.

    The sum of the gains of the first k, divided by that of the k best judged documents. gain: "linear"
    takes the grade itself, "exp" takes 2^grade - 1; grades below 1 gain nothing. With binary judgments
    it is R_cap@k. 0 where nothing is relevant. Source: Järvelin and Kekäläinen 2002; TREC's Deep
    Learning track 2019 (NCG@1000).
    """
    rows = j.found(k)
    best = (j.ideal > 0) & ((j.ideal_rank() <= k) if k is not None else True)
    ideal = j.total(j.ideal_query()[best], gain_of(j.ideal[best], gain))
    return ratio(j.total(j.query[rows], gain_of(j.grade[rows], gain)), ideal)


@measure("Q", choices=GAINS, within={"beta": (0.0, 1000.0)})
def Q(j: Judged, *, k: int | None = None, beta: float = 1.0, gain: str = "linear") -> Float64:
    """Q-measure: average precision whose precision is blended with the gain so far.

    A document of grade 1 or better at rank i adds (c + beta g) / (i + beta g*): c such documents and gain
    g so far, and g* the most that i documents can gain; the sum is divided by all documents of grade 1
    or better, also where they are more than k. beta: the weight of gains, 0 to 1000; 0 gives AP.
    gain: "linear" takes the grade itself, "exp" takes 2^grade - 1. 0 where nothing is relevant.
    Source: Sakai 2004; Sakai and Kando 2008.
    """
    rows, count = j.found(k), j.relevant()
    query, rank = j.query[rows], j.rank[rows]
    gained = sum_until(query, gain_of(j.grade[rows], gain))
    blended = (place(query) + 1 + beta * gained) / (rank + beta * _most(j, query, rank, gain))
    return ratio(j.total(query, blended), count)


def _most(j: Judged, query: Int32, rank: Int32, gain: str) -> Float64:
    """The gain of the best `rank` documents of these queries."""
    best = j.ideal > 0
    sums = sum_until(j.ideal_query()[best], gain_of(j.ideal[best], gain))
    count = j.relevant()
    end = np.cumsum(count)
    most: Float64 = sums[(end - count)[query] + np.minimum(rank, count[query]) - 1]
    return most
