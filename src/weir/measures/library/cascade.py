"""Measures of a reader who goes down the ranking and stops once satisfied."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Grades, Int32, Int64
from weir.measures.library.arithmetic import SCALE, product_before, ratio, refuse_beyond
from weir.measures.measure import measure

__all__ = ["ERR", "nERR"]


@measure("ERR", within=SCALE)
def ERR(j: Judged, *, k: int | None = None, max_grade: int = 4) -> Float64:
    """Expected reciprocal rank: the expected 1 / rank at which a reader stops, once satisfied.

    A document of grade g satisfies with probability (2^g - 1) / 2^max_grade, an unjudged one never; 0 if
    nothing relevant is among the first k.

    max_grade: highest grade of the scale, 1 to 100, not of the judgments: 4 in gdeval, so binary judgments
        give small values; a higher grade is refused.

    Source: Chapelle et al. 2009; gdeval.pl of TREC's Web track.
    """
    rows = j.found_above_zero(k)
    return stopped_at(j, j.query[rows], j.rank[rows], satisfies(j, j.grade[rows], max_grade))


@measure("nERR", within=SCALE)
def nERR(j: Judged, *, k: int | None = None, max_grade: int = 4) -> Float64:
    """Expected reciprocal rank divided by that of the best possible ranking, cut at the same rank.

    The best ranking has every judged document, by descending grade; 0 if nothing is relevant. NERR8 to NERR11
    are other measures.

    max_grade: highest grade of the scale, 1 to 100; a higher grade is refused.

    Source: Chapelle et al. 2009; normalised as nDCG is, and ERR-IA in ndeval.
    """
    rows = j.found_above_zero(k)
    found = stopped_at(j, j.query[rows], j.rank[rows], satisfies(j, j.grade[rows], max_grade))
    rank = j.ideal_rank()
    best = (j.ideal > 0) & ((rank <= k) if k is not None else True)
    ideal = satisfies(j, j.ideal[best], max_grade)
    return ratio(found, stopped_at(j, j.ideal_query()[best], rank[best], ideal))


def satisfies(j: Judged, grade: Grades, max_grade: int) -> Float64:
    """Return the probability (2^grade - 1) / 2^max_grade for each grade, float64[n].

    Raises BadValue for a grade above `max_grade`.
    """
    refuse_beyond(j, max_grade)
    return (np.exp2(grade.astype(np.float64)) - 1.0) / 2.0**max_grade


def stopped_at(j: Judged, query: Int32, rank: Int32 | Int64, stop: Float64) -> Float64:
    """Return each query's expected reciprocal rank at which a reader stops, float64[queries]; 0 without rows.

    stop: probability of stopping at each row; rows are sorted by query, then rank.
    """
    return j.total(query, stop * product_before(query, 1.0 - stop) / rank)
