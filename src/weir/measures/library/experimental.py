"""trec_eval's experimental measures: gains relative to the possible gain. Relevant: the grade is `rel` or
better."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Int32
from weir.measures.library.arithmetic import (
    GAINS,
    TABLE,
    found_gains,
    ideal_gains,
    place_in_query,
    ratio,
    sum_until,
    sum_within,
)
from weir.measures.measure import measure

__all__ = ["G", "RnDCG", "binG", "nDCG_rel"]


@measure("G", choices=GAINS, within=TABLE)
def G(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Normalised gain: each gain divided by a logarithm of the possible gain that was missed up to its rank.

    A gain is divided by log2(2 + c - s): c is the best ranking's gain so far, at least 1 for each rank, s
    this one's. The sum is divided by all possible gain.

    gain: "linear", "exp" or a table such as "1=1,2=3", as in DCG.

    Source: trec_eval m_G.c.
    """
    query, rank, found = found_gains(j, k, gain)
    of, _, best = ideal_gains(j, None, gain)
    count = np.bincount(of, minlength=len(j))
    place_of = place_in_query(of) + 1
    cost = sum_within(of, place_of, np.maximum(best, 1.0), query, rank) + np.maximum(rank - count[query], 0)
    return ratio(j.total(query, found / np.log2(2.0 + cost - sum_until(query, found))), j.total(of, best))


@measure("binG")
def binG(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Mean over relevant documents of 1 / log2(2 + n), with n documents above it that are not relevant.

    A document that is not found adds 0. Source: trec_eval m_binG.c.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    return ratio(j.total(query, 1.0 / np.log2(j.rank[rows] - place_in_query(query) + 1.0)), j.relevant(rel))


@measure("nDCG_rel", choices=GAINS, within=TABLE)
def nDCG_rel(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Mean, over the relevant documents (of a gain above 0), of nDCG at the document's rank.

    A document that is not found has the nDCG of the whole ranking.

    k: documents below are not found; the ideal ranking is not cut.
    gain: "linear", "exp" or a table such as "1=1,2=3", as in DCG.

    Source: trec_eval m_ndcg_rel.c.
    """
    query, rank, found = found_gains(j, k, gain)
    found = found / np.log2(rank + 1.0)
    of, place_of, best = ideal_gains(j, None, gain)
    best = best / np.log2(place_of + 1.0)
    here = sum_until(query, found) / sum_within(of, place_of, best, query, rank)
    count = np.bincount(of, minlength=len(j))
    missing = count - np.bincount(query, minlength=len(j))
    whole = ratio(j.total(query, found), j.total(of, best))
    return ratio(j.total(query, here) + missing * whole, count)


@measure("RnDCG", choices=GAINS, within=TABLE, of="whole grades")
def RnDCG(j: Judged, *, k: int | None = None, gain: str = "linear") -> Float64:
    """Mean of nDCG at the last rank of each grade in the ideal ranking.

    5 documents of grade 2 and 3 of grade 1 give ranks 5 and 8; the end counts too in a ranking longer by two
    or more. Fractional grades are refused.

    gain: "linear", "exp" or a table such as "1=1,2=3", as in DCG.

    Source: trec_eval m_Rndcg.c (Rndcg).
    """
    query, rank, found = found_gains(j, k, gain)
    found = found / np.log2(rank + 1.0)
    of, place_of, worth = ideal_gains(j, None, gain)
    best = worth / np.log2(place_of + 1.0)
    at = np.flatnonzero(_last_of_level(of, worth))
    here = sum_within(query, rank, found, of[at], place_of[at]) / sum_until(of, best)[at]
    levels, count = np.bincount(of[at], minlength=len(j)), np.bincount(of, minlength=len(j))
    longer = (np.minimum(j.retrieved, k) if k is not None else j.retrieved) > count + 1
    whole = ratio(j.total(query, found), j.total(of, best))
    return ratio(j.total(of[at], here) + np.where(longer, whole, 0.0), levels + (longer & (levels > 0)))


def _last_of_level(query: Int32, gain: Float64) -> NDArray[np.bool_]:
    ends = np.ones(len(query), np.bool_)
    ends[:-1] = (query[1:] != query[:-1]) | (gain[1:] != gain[:-1])
    return ends
