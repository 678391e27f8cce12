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
    query, place = j.query[kept], j.first[kept]
    start = np.searchsorted(query, query)
    # Groups close up too: first and last count the documents kept up to and within each.
    opens = np.ones(len(query), np.bool_)
    opens[1:] = (query[1:] != query[:-1]) | (place[1:] != place[:-1])
    begin = np.flatnonzero(opens)
    size = np.diff(np.append(begin, len(query)))
    return replace(
        j,
        retrieved=j.per_query(j.query, kept).astype(np.int32),
        tied=np.bincount(query[begin], size * (size > 1), len(j)).astype(np.int32),
        query=query,
        rank=(np.arange(len(query)) - start + 1).astype(np.int32),
        grade=j.grade[kept],
        first=(np.repeat(begin, size) - start + 1).astype(np.int32),
        last=(np.repeat(begin + size, size) - start).astype(np.int32),
    )
