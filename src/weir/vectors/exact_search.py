"""Exact search over vectors, streamed in blocks: the k best documents of each query in trec order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.vectors.block_scan import FEW_QUERIES, BestSoFar, ScannedVectors, scan
from weir.vectors.vector_source import ArraySource, Float32, SubsetSource, VectorSource, spread

__all__ = [
    "ArraySource",
    "Float32",
    "Found",
    "Similarity",
    "VectorSource",
    "checked",
    "pair_scores",
    "places",
    "search",
]

Similarity: TypeAlias = Literal["dot", "cosine"]

CANDIDATE_BYTES = 1 << 28
"""Bytes of candidates held at once; more queries than that allows go through the documents in several passes."""
SAMPLED_ONE_IN, SAMPLE_RUN = 32, 8
"""One document of so many is in the sample, in runs of so many that lie side by side and are read together."""
BAR_DEVIATIONS = 5
"""Standard deviations by which the sample's bar stays below what is expected of it."""


@dataclass(frozen=True, eq=False)
class Found:
    """Answers: ptr int64[Q + 1], doc int32[n], score float32[n], in trec order; exact: pairs scored in double."""

    ptr: Int64
    doc: Int32
    score: Float32
    exact: int


def search(
    rows: VectorSource,
    queries: Float32,
    k: int,
    similarity: Similarity = "dot",
    tie_rank: Int32 | None = None,
    first_pass: Literal["auto", "int8", "fp32"] = "auto",
) -> Found:
    """The k best documents for each query, fewer where there are fewer; exact, and the same bits everywhere.

    rows: N vectors; queries: float32[Q, d]; similarity: dot, or cosine (0 for a vector of length 0); tie_rank:
    int32[N], the numbers 0..N-1, places of documents of equal score (Ids.tie_ranks; by default their numbers).
    first_pass: how candidates are found; it decides the time and never the answer. A score is the sum of
    products in double, rounded to float32. Memory: some blocks of documents and 1.5 k candidates for each query.
    Raises BadValue for k below 1, other dimensions, and numbers that are not finite.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    if similarity not in ("dot", "cosine"):
        raise BadValue(f"similarity is '{similarity}'; expected dot or cosine")
    if first_pass not in ("auto", "int8", "fp32"):
        raise BadValue(f"first_pass is '{first_pass}'; expected auto, int8 or fp32")
    checked(rows, queries, k)
    rank, by_rank = places(tie_rank, len(rows))
    count = min(k, len(rows))
    if count == 0 or len(queries) == 0:
        return Found(np.zeros(len(queries) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
    given = ScannedVectors.of(rows, rank, similarity == "cosine", first_pass)
    step = max(64, CANDIDATE_BYTES // (8 * given.room(count)))
    parts = [_answers(given, queries[at : at + step], count) for at in range(0, len(queries), step)]
    ranks, scores = np.concatenate([p.ranks for p in parts]), np.concatenate([p.scores for p in parts])
    if not np.isfinite(scores).all():
        raise BadValue("a score is not finite: the vectors hold numbers that are too large")
    ptr = np.arange(len(queries) + 1, dtype=np.int64) * count
    return Found(ptr, by_rank[ranks.ravel()], scores.ravel(), sum(p.exact for p in parts))


def pair_scores(documents: Float32, query: Float32) -> Float64:
    """The dot product of each document, float32[n, d], with one query, as `search` computes it."""
    from weir.kernels.dot_product.scan import dot_products

    found = np.empty(len(documents), np.float32)
    dot_products(np.ascontiguousarray(documents), np.ascontiguousarray(query), found)
    return found.astype(np.float64)


def places(tie_rank: Int32 | None, count: int) -> tuple[Int32, Int32]:
    """(place of each document among ties, document of each place); raises BadValue where these are not 0..N-1."""
    numbers = np.arange(count, dtype=np.int32)
    if tie_rank is None:
        return numbers, numbers
    rank = np.ascontiguousarray(tie_rank, np.int32)
    by_rank = np.full(count, -1, np.int32)
    if rank.shape == (count,) and rank.min(initial=0) >= 0 and rank.max(initial=0) < max(count, 1):
        by_rank[rank] = numbers
    if (by_rank < 0).any() or rank.shape != (count,):
        raise BadValue(
            f"tie_rank is not an order of the {count} documents; expected each of 0..{count - 1} once"
        )
    return rank, by_rank


def _answers(given: ScannedVectors, queries: Float32, k: int) -> BestSoFar:
    """Top-k with a threshold that a sample suggests; queries for which it was too high are searched again without."""
    sample, place = _sample(given, len(queries), k)
    if place == 0:
        return scan(given, queries, k)
    seen = _answers(sample, queries, place)
    found = scan(given, queries, k, seen.scores[:, -1].copy())
    exact, again = seen.exact + found.exact, np.flatnonzero(found.count < k)
    if len(again):
        full = scan(given, queries[again], k)
        found.ranks[again], found.scores[again] = full.ranks, full.scores
        exact += full.exact
    return replace(found, exact=exact)


def _sample(given: ScannedVectors, queries: int, k: int) -> tuple[ScannedVectors, int]:
    """Some of the documents, and the place among them whose score at least k of all will hardly fail to reach.

    Place 0 where a sample would not pay. Without one the k best so far stand in for the k best of all, and about
    k (1 + ln(N / k)) documents are among them at some time.
    """
    n, expected = len(given.rows), k / SAMPLED_ONE_IN
    place = int(expected + BAR_DEVIATIONS * math.sqrt(expected) + 3)
    if queries <= FEW_QUERIES or 2 * SAMPLED_ONE_IN * place > k * (1 + math.log(n / k)):
        return given, 0
    numbers = spread(n, n // (SAMPLED_ONE_IN * SAMPLE_RUN), SAMPLE_RUN)
    return replace(given, rows=SubsetSource(given.rows, numbers), rank=given.rank[numbers]), place


def checked(rows: VectorSource, queries: Float32, k: int) -> None:
    """Raises BadValue where k, the shape of the queries, or a number of them is not what a search takes."""
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")
    if queries.ndim != 2:
        raise BadValue(f"queries have the shape {queries.shape}; expected a row for each query")
    if len(rows) and queries.shape[1] != rows.dimensions:
        raise BadValue(
            f"queries have {queries.shape[1]} dimensions, documents {rows.dimensions}; expected the same"
        )
    bad = np.flatnonzero(~np.isfinite(queries).all(axis=1))
    if len(bad):
        raise BadValue(f"the vector of query {bad[0]} is not finite")
