"""Condensed lists: the ranking as if only judged documents had been returned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.core.judged import Judged

__all__ = ["without_unjudged"]


def without_unjudged(j: Judged) -> Judged:
    """The join without documents that nobody judged, those with a grade below 0 among them.

    The others close up, so that ranks count judged documents only. The ideal ranking stays as it is.
    """
    kept = j.grade >= 0
    query = j.query[kept]
    rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
    count = j.per_query(j.query, kept).astype(np.int32)
    return replace(
        j,
        retrieved=count,
        tied=np.minimum(j.tied, count),
        query=query,
        rank=rank.astype(np.int32),
        grade=j.grade[kept],
    )
