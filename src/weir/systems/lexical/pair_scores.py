"""Scores of given documents from an impact index: the same bits as searching gives them."""

from __future__ import annotations

import numpy as np

from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64
from weir.systems.lexical.inverted_index import Float32, ImpactIndex

__all__ = ["best_field_scores", "pair_scores"]

Asked = tuple[Int64, Int32, Float32]
"""Queries as terms: ptr int64[Q + 1], term int32, weight float32, see query_terms."""


def pair_scores(index: ImpactIndex, asked: Asked, candidates: Run) -> Float64:
    """The score of every candidate, 0 for one that shares no term with its query.

    asked and candidates are aligned by query; the documents are numbered as the corpus numbers them.
    """
    ptr, term, weight = asked
    inside = np.empty(len(index.order), np.int32)
    inside[index.order] = np.arange(len(index.order), dtype=np.int32)
    impacts, total = index.impacts, np.zeros(len(candidates.doc))
    for q in np.flatnonzero(np.diff(candidates.ptr)):
        rows = slice(int(candidates.ptr[q]), int(candidates.ptr[q + 1]))
        docs, score = inside[candidates.doc[rows]], total[rows]
        for t in _by_bound(index, term, weight, int(ptr[q]), int(ptr[q + 1])):
            start, stop = int(impacts.ptr[term[t]]), int(impacts.ptr[term[t] + 1])
            postings = impacts.doc[start:stop]
            at = np.minimum(np.searchsorted(postings, docs), stop - start - 1)
            hit = postings[at] == docs
            score[hit] += np.float64(weight[t]) * impacts.impact[start:stop][at[hit]].astype(np.float64)
    return total.astype(np.float32).astype(np.float64)


def _by_bound(index: ImpactIndex, term: Int32, weight: Float32, first: int, last: int) -> list[int]:
    """The terms first..last-1 with postings, in the order in which a search adds them: see
    kernels/inverted/query_plan.py.

    A sum of doubles can depend on the order where weights are no whole numbers.
    """
    impacts, bounds = index.impacts, index.impacts.bounds
    found = []
    for i in range(first, last):
        t = int(term[i])
        if not (0 <= t < len(impacts.ptr) - 1 and weight[i] > 0 and impacts.ptr[t] < impacts.ptr[t + 1]):
            continue
        if bounds is not None and bounds.listed[t] >= 0:
            most = bounds.top[bounds.listed[t], 0]
        else:
            most = impacts.impact[impacts.ptr[t] : impacts.ptr[t + 1]].max()
        found.append((-np.float32(np.float64(weight[i]) * np.float64(most)), t, i))
    return [i for _, _, i in sorted(found)]


def best_field_scores(
    parts: tuple[ImpactIndex, ...], asked: list[Asked], share: float, candidates: Run
) -> Float64:
    """As `pair_scores` over several fields: the best field and a share of the others, see `best_field`."""
    fields = np.stack([pair_scores(part, one, candidates) for part, one in zip(parts, asked, strict=True)])
    best = fields.max(axis=0)
    score: Float64 = (best + share * (fields.sum(axis=0) - best)).astype(np.float32).astype(np.float64)
    return score
