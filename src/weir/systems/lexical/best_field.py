"""Elasticsearch's best_fields: the best field of a document, and a share of the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.order import best_of
from weir.core.strings import Float64, Int32, Int64
from weir.systems.lexical.inverted_index import Hits, ImpactIndex, top

__all__ = ["best_field"]

BLOCK_SCORES = 1 << 23
"""Scores held at once, in (query, document) pairs."""

Asked = tuple[Int64, Int32, NDArray[np.float32]]


def best_field(parts: tuple[ImpactIndex, ...], asked: list[Asked], share: float, k: int) -> Hits:
    """The k best documents by best + share * (sum of the others), for queries asked of each field.

    Every field is scored exhaustively, since the best field of a sum is not a sum: exact, and slower than
    one index. parts and asked are aligned. Source: Lucene, DisjunctionMaxQuery.
    """
    count, documents = len(asked[0][0]) - 1, len(parts[0].order)
    rank = np.empty(documents, np.int32)
    rank[parts[0].order] = np.arange(documents, dtype=np.int32)
    block = max(1, BLOCK_SCORES // max(documents, 1))
    ptr, docs, scores = [0], [], []
    for start in range(0, count, block):
        stop = min(start + block, count)
        total, best = _dense(parts, asked, start, stop)
        score = (best + share * (total - best)).astype(np.float32)
        for row in score:
            doc = best_of(row.astype(np.float64), rank, k)
            docs.append(doc)
            scores.append(row[doc].astype(np.float64))
            ptr.append(ptr[-1] + len(doc))
    none: tuple[Int32, Float64] = np.empty(0, np.int32), np.empty(0, np.float64)
    return Hits(np.array(ptr, np.int64), np.concatenate([none[0], *docs]), np.concatenate([none[1], *scores]))


def _dense(
    parts: tuple[ImpactIndex, ...], asked: list[Asked], start: int, stop: int
) -> tuple[Float64, Float64]:
    """Sum and maximum over the fields of every document's score, float64[queries, documents]."""
    documents = len(parts[0].order)
    total, best = np.zeros((stop - start, documents)), np.zeros((stop - start, documents))
    for part, (ptr, term, weight) in zip(parts, asked, strict=True):
        span = slice(int(ptr[start]), int(ptr[stop]))
        hits = top(part, ptr[start : stop + 1] - ptr[start], term[span], weight[span], documents)
        row = np.repeat(np.arange(stop - start), np.diff(hits.ptr))
        total[row, hits.doc] += hits.score
        best[row, hits.doc] = np.maximum(best[row, hits.doc], hits.score)
    return total, best
