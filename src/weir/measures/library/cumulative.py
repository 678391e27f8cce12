"""Measures of cumulative gain without a discount by rank."""

from __future__ import annotations

from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.measures.library.gain_functions import GAINS, TABLE, found_gains, gain_of, ideal_gains
from weir.measures.library.ratio import ratio
from weir.measures.library.segment_sums import place, sum_until, sum_within
from weir.measures.measure import measure

__all__ = ["NCG", "Q"]


@measure("NCG", choices=GAINS, within=TABLE)
def NCG(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Normalised cumulative gain: recall that counts grades, of the best that k documents could hold.

    The sum of the gains of the first k, divided by that of the k best judged documents. gain: "linear"
    takes the grade itself, "exp" takes 2^grade - 1, a table such as "1=1,2=3" says what each is worth.
    With binary judgments it is R_cap@k. 0 where nothing is relevant.
    Source: Järvelin and Kekäläinen 2002; TREC's Deep Learning track 2019 (NCG@1000).
    """
    (query, _, found), (ideal_query, _, ideal) = found_gains(j, k, gain), ideal_gains(j, k, gain)
    return ratio(j.total(query, found), j.total(ideal_query, ideal))


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
    most = sum_within(*ideal_gains(j, None, gain), query, rank)
    blended = (place(query) + 1 + beta * gained) / (rank + beta * most)
    return ratio(j.total(query, blended), count)
