"""Measures of a reader who goes down the ranking and stops once satisfied."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int16, Int32, Int64
from weir.errors import BadValue
from weir.measures.measure import measure
from weir.measures.ratio import ratio
from weir.measures.running import product_before

__all__ = ["ERR", "nERR"]

_GRADE = {"max_grade": (1.0, 100.0)}


@measure("ERR", within=_GRADE)
def ERR(j: Judged, *, k: int | None = None, max_grade: int = 4) -> Float64:
    """Expected reciprocal rank: 1 / rank at which a reader who stops once satisfied is expected to stop.

    A document of grade g satisfies with probability (2^g - 1) / 2^max_grade; one that is unjudged or
    below grade 1 never does. max_grade: the highest grade of the scale, from 1 to 100, not of the
    judgments: 4 in gdeval, whatever the judgments hold, so that binary judgments give small values; a
    higher grade is refused. 0 where nothing relevant is among the first k. gdeval prints five decimals
    and leaves queries without a relevant document out, which count 0 here.
    Source: Chapelle et al. 2009; gdeval.pl of TREC's Web track.
    """
    rows = j.found(k)
    return _expected(j, j.query[rows], j.rank[rows], _satisfies(j, j.grade[rows], max_grade))


@measure("nERR", within=_GRADE)
def nERR(j: Judged, *, k: int | None = None, max_grade: int = 4) -> Float64:
    """Expected reciprocal rank divided by that of the best possible ranking, cut at the same rank.

    The best ranking holds every judged document, by descending grade. max_grade: as in ERR. 0 where
    nothing is relevant. ir-measures' NERR8 to NERR11 are other measures ("nearly" ERR).
    Source: Chapelle et al. 2009; the normalisation is that of nDCG, and of ndeval for ERR-IA.
    """
    rows = j.found(k)
    found = _expected(j, j.query[rows], j.rank[rows], _satisfies(j, j.grade[rows], max_grade))
    rank = j.ideal_rank()
    best = (j.ideal > 0) & ((rank <= k) if k is not None else True)
    ideal = _satisfies(j, j.ideal[best], max_grade)
    return ratio(found, _expected(j, j.ideal_query()[best], rank[best], ideal))


def _satisfies(j: Judged, grade: Int16, max_grade: int) -> Float64:
    highest = int(j.ideal.max(initial=0))
    if highest > max_grade:
        raise BadValue(f"a grade of {highest} with max_grade={max_grade}; write ERR(max_grade={highest})")
    return (np.exp2(grade.astype(np.float64)) - 1.0) / 2.0**max_grade


def _expected(j: Judged, query: Int32, rank: Int32 | Int64, stop: Float64) -> Float64:
    return j.total(query, stop * product_before(query, 1.0 - stop) / rank)
