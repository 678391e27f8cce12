"""Measures of the share of a ranking that was judged."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import ratio
from weir.measures.measure import measure

__all__ = ["Hole", "Judged_at"]


@measure("Judged", cutoff="required", of="presence", better="neither")
def Judged_at(j: Judged, *, k: int) -> Float64:
    """Share of the first k documents returned that were judged for this query, with any grade.

    The divisor is the number returned, at most k; 0 if nothing was. A document judged for another query only is not
    judged. Source: ir-measures' Judged@k; Elastic's judge rate.
    """
    return ratio(_judged(j, k), np.minimum(j.retrieved, k))


@measure("Hole", cutoff="required", of="presence", better="less")
def Hole(j: Judged, *, k: int) -> Float64:
    """Share of the first k ranks that hold a document nobody judged for this query.

    The divisor is k. BEIR's code counts a document as judged if any query judged it, so its holes are smaller.
    Source: Thakur et al. 2021, section 6; trec_eval 10 `unj`.
    """
    return (np.minimum(j.retrieved, k) - _judged(j, k)) / k


def _judged(j: Judged, k: int) -> Int64:
    return j.per_query(j.query, j.rank <= k)
