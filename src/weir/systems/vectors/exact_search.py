"""Exact search over vectors: documents are read in blocks, and the results stand in trec order."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float32, Float64, Int32, Int64
from weir.errors import BadValue
from weir.settings import settings

# ----------
# Sources of vectors, read in blocks.


Progress: TypeAlias = Callable[[int, int], None]


class VectorSource(Protocol):
    """Vectors that can be read in blocks."""

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        ...

    def __len__(self) -> int: ...

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1, float32[n, d] in rows without gaps, valid until the next block is asked for."""
        ...

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers: float32[n, d], copied."""
        ...

    def release(self) -> None:
        """Give back what memory blocks read before still take."""
        ...


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Vectors in memory or memory-mapped: any float array [N, d]."""

    values: NDArray[np.floating]

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1; a view where they are float32 already."""
        return np.ascontiguousarray(self.values[start:stop], np.float32)

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers, copied."""
        return np.ascontiguousarray(self.values[numbers], np.float32)

    def release(self) -> None:
        """Nothing: the array is the caller's."""


@dataclass(frozen=True, eq=False)
class SubsetSource:
    """Some of other vectors. numbers: int64[n], which."""

    rows: VectorSource
    numbers: Int64

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return self.rows.dimensions

    def __len__(self) -> int:
        return len(self.numbers)

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1 of those chosen; what was read for them is given back at once, being copied."""
        vectors = self.rows.take(self.numbers[start:stop])
        self.rows.release()
        return vectors

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers among those chosen."""
        return self.rows.take(self.numbers[numbers])

    def release(self) -> None:
        """See VectorSource."""
        self.rows.release()


def spread(count: int, runs: int, each: int) -> Int64:
    """Numbers of documents, ascending: so many runs, evenly spread over `count` documents, of `each` side by side."""
    first = np.arange(runs, dtype=np.int64) * count // max(runs, 1)
    numbers = np.unique(first[:, None] + np.arange(each))
    return numbers[numbers < count]


# ----------
# One scan of the documents, block by block, with a batch of queries.


BLOCK_BYTES = 1 << 22
"""Bytes of vectors packed at once: they stay in the third cache while all queries pass."""
RELEASE_BYTES = 1 << 26
"""Bytes of vectors read until the memory of those before is given back."""
FEW_QUERIES = 3
"""Queries up to which reading the documents takes longer than scoring them."""
MAX_RESCORED_SHARE = 0.12
"""Share of pairs looked at exactly beyond which a first pass in bytes does not pay."""
CENTRE_SAMPLE = 64, 32
"""Runs of documents from which the centre is taken, and documents in a run."""
LARGEST_PRODUCTS = 4e18
"""A query's largest number times its dimensions beyond which a float might not hold a sum of its products."""
MAX_BYTE_DIMENSIONS = 1 << 16
"""Dimensions beyond which sums of products of bytes might not fit 32 bits."""


@dataclass(frozen=True, eq=False)
class ScannedVectors:
    """What is searched. rank: int32[N], places among ties; centre: float32[d], a vector near the middle of the
    documents; eight: whether the first pass is in bytes; settled: whether it stays so, however little bytes tell;
    progress: called with (documents read, all)."""

    rows: VectorSource
    rank: Int32
    cosine: bool
    eight: bool
    settled: bool
    centre: Float32
    progress: Progress | None

    @staticmethod
    def of(
        rows: VectorSource, rank: Int32, cosine: bool, first_pass: str, progress: Progress | None = None
    ) -> ScannedVectors:
        """Bytes where the processor multiplies them, unless floats are asked for; floats otherwise."""
        from weir.kernels.simd import HAS_INT8

        eight = HAS_INT8 and first_pass != "fp32" and rows.dimensions <= MAX_BYTE_DIMENSIONS
        centre = _centre(rows, cosine) if eight else np.zeros(rows.dimensions, np.float32)
        return ScannedVectors(rows, rank, cosine, eight, first_pass != "auto", centre, progress)

    def room(self, k: int) -> int:
        """Candidates that a query may have before all but its k best are dropped."""
        return min(k + max(48, k // 2), len(self.rows) + 1)


@dataclass(frozen=True, eq=False)
class BestSoFar:
    """The best of each query in trec order. ranks: int32[Q, k]; scores: float32[Q, k]; count: int64[Q], how many of
    them there are; exact: pairs scored exactly."""

    ranks: Int32
    scores: Float32
    count: Int64
    exact: int


def scan(vectors: ScannedVectors, queries: Float32, k: int, bar: Float32 | None = None) -> BestSoFar:
    """The k best documents of each query among those that score its bar or more, float32[Q]; all without one.

    k is no more than there are documents. Raises BadValue for a vector that is not finite.
    """
    from weir.kernels.dot_product import all_finite, norms, scan_few, write_top_k
    from weir.kernels.simd import WIDTH

    rows, length = vectors.rows, np.empty(len(queries) if vectors.cosine else 0)
    if vectors.cosine:
        norms(queries, length)
    best = _Best.of(len(queries), vectors.room(k), bar)
    threads = max(1, min(settings().threads, -(-len(queries) // 32)))
    size = max(1, BLOCK_BYTES // (4 * max(rows.dimensions, 1) * WIDTH)) * WIDTH
    exact, pause = 0, max(1, RELEASE_BYTES // (4 * rows.dimensions * size))
    scanner = None
    if len(queries) > FEW_QUERIES:
        scanner = _Scanner.of(vectors, queries, length, vectors.eight, size)
    with ThreadPoolExecutor(threads) as pool:
        for number, start in enumerate(range(0, len(rows), size)):
            if vectors.progress is not None:
                vectors.progress(start, len(rows))
            block = rows.block(start, min(start + size, len(rows)))
            if not all_finite(block):
                bad = start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
                bad = int(rows.numbers[bad]) if isinstance(rows, SubsetSource) else bad
                raise BadValue(f"the vector of document {bad} is not finite")
            if number % pause == pause - 1:
                rows.release()
            lengths, rank = np.empty(len(block) if vectors.cosine else 0), vectors.rank[start : start + size]
            if vectors.cosine:
                norms(block, lengths)
            if scanner is None:
                scan_few(
                    block, lengths, rank, queries, length, 0, len(queries), k,
                    best.keys, best.count, best.floor, best.bar,
                )  # fmt: skip
                exact += len(queries) * len(block)
                continue
            scored = scanner.take(block, lengths, rank, best, k, pool, threads)
            exact += scored
            often = scored > MAX_RESCORED_SHARE * len(queries) * len(block)
            if often and scanner.eight and not vectors.settled and start > best.keys.shape[1]:
                scanner = _Scanner.of(vectors, queries, length, False, size)
    ranks, scores = np.zeros((len(queries), k), np.int32), np.zeros((len(queries), k), np.float32)
    write_top_k(k, best.keys, best.count, ranks, scores)
    return BestSoFar(ranks, scores, best.count, exact)


@dataclass(frozen=True, eq=False)
class _Best:
    """Top-k candidates of each query while blocks pass; see kernels.dot_product."""

    keys: Int64
    count: Int64
    floor: Int64
    bar: Float64

    @staticmethod
    def of(queries: int, room: int, bar: Float32 | None) -> _Best:
        """Empty top-k lists, whose thresholds are the bars of their queries: lower scores are not collected."""
        floor, least = np.full(queries, np.iinfo(np.int64).min), np.full(queries, -np.inf)
        if bar is not None:
            bits = bar.view(np.int32).astype(np.int64)
            floor, least = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits) << 32, bar.astype(np.float64)
        return _Best(np.empty((queries, room), np.int64), np.zeros(queries, np.int64), floor, least)


@dataclass(frozen=True, eq=False)
class _Scanner:
    """Packs blocks of documents and takes queries past them; the arrays are reused from block to block.

    length: of each query, empty for dot; packed, facts, gauge: the queries and their error bounds, see `_packed`.
    """

    queries: Float32
    length: Float64
    centre: Float32
    eight: bool
    packed: NDArray[np.uint8]
    facts: Float32
    gauge: Float64
    panels: NDArray[Any]
    lane: Float32
    most: Float32

    @staticmethod
    def of(vectors: ScannedVectors, queries: Float32, length: Float64, eight: bool, size: int) -> _Scanner:
        from weir.kernels.simd import WIDTH

        d, count = queries.shape[1], -(-size // WIDTH)
        shape = (count, -(-d // 4), WIDTH) if eight else (count, d, WIDTH)
        panels = np.zeros(shape, np.uint32 if eight else np.float32)
        lane, most = np.zeros((count, 2, WIDTH), np.float32), np.zeros((count, 2), np.float32)
        unit = queries.astype(np.float64)
        if vectors.cosine:
            unit = np.divide(unit, length[:, None], out=np.zeros_like(unit), where=length[:, None] > 0)
        packed = _packed(unit, vectors.centre, eight)
        return _Scanner(queries, length, vectors.centre, eight, *packed, panels, lane, most)

    def take(
        self,
        block: Float32,
        lengths: Float64,
        rank: Int32,
        best: _Best,
        k: int,
        pool: ThreadPoolExecutor,
        threads: int,
    ) -> int:
        """Score a block against every query; returns how many pairs were scored exactly.

        lengths: of the documents, empty for dot; rank: their places among ties.
        """
        from weir.kernels.dot_product import pack_bytes, pack_floats, scan
        from weir.kernels.simd import ROWS, WIDTH

        count = -(-len(block) // WIDTH)
        panels = self.panels[:count].reshape(count, -1).view(np.uint8)

        def pack(first: int, stop: int) -> None:
            if self.eight:
                pack_bytes(block, lengths, self.centre, first, stop, self.panels, self.lane, self.most)
            else:
                pack_floats(block, lengths, first, stop, self.panels, self.lane, self.most)

        def score(first: int, stop: int) -> int:
            return scan(
                self.eight, block, lengths, rank, panels, self.lane, self.most,
                self.queries, self.length, self.packed, self.facts, self.gauge, first, stop, k,
                best.keys, best.count, best.floor, best.bar,
            )  # fmt: skip

        list(pool.map(pack, *_shares(count, threads, 1)))
        # What float sums of squares cannot see of very small numbers is added to the distances.
        self.most[:count] += np.float32(1e-18 * np.sqrt(block.shape[1]))
        return sum(pool.map(score, *_shares(len(self.queries), threads, ROWS)))


def _packed(unit: Float64, centre: Float32, eight: bool) -> tuple[NDArray[np.uint8], Float32, Float64]:
    """(packed queries, facts, gauge) for a first pass in bytes or floats; unit: float64[Q, d], see kernels."""
    from weir.kernels.simd import ROWS

    q, d = unit.shape
    middle = centre.astype(np.float64) if eight else np.zeros(d)
    facts, gauge = np.zeros((q + ROWS, 3), np.float32), np.zeros((q, 5))
    facts[:, 2] = np.inf
    centred = unit - middle
    norm, far = np.linalg.norm(centred, axis=1), float(np.linalg.norm(middle))
    gauge[:, 0], gauge[:, 1], gauge[:, 4] = unit @ middle, norm, far
    gauge[:, 3] = (d + 32) * 2.0**-22 * (norm + 2 * far)
    beyond = np.abs(unit).max(axis=1) * d > LARGEST_PRODUCTS  # a unit that is not a number: looked at exactly
    if not eight:
        floats = np.zeros((q + ROWS, d), np.float32)
        floats[:q], facts[:q, 1] = unit, np.where(beyond, np.nan, 1)
        return floats.view(np.uint8), facts, gauge
    scale = (np.abs(centred).max(axis=1) / 127).astype(np.float32)
    inverse = np.divide(1, scale, out=np.zeros(q), where=scale > 1e-30)
    whole = np.rint(np.clip(centred * inverse[:, None], -127, 127))
    gauge[:, 2] = np.linalg.norm(centred - whole * scale[:, None].astype(np.float64), axis=1)
    bytes_ = np.zeros((q + ROWS, 4 * -(-d // 4)), np.int8)
    bytes_[:q, :d] = whole
    facts.view(np.int32)[:q, 0] = -128 * bytes_[:q].sum(axis=1, dtype=np.int32)
    facts[:q, 1] = np.where(beyond, np.nan, scale)
    return bytes_.view(np.uint8), facts, gauge


def _shares(count: int, threads: int, unit: int) -> tuple[list[int], list[int]]:
    """(starts, stops) of equal shares, for threads, with bounds at multiples of `unit`."""
    cuts = [min(count, -(-count * t // (threads * unit)) * unit) for t in range(threads + 1)]
    return cuts[:-1], cuts[1:]


def _centre(rows: VectorSource, cosine: bool) -> Float32:
    """The mean of a sample of documents, subtracted before quantisation so that its errors are small."""
    from weir.kernels.dot_product import all_finite

    block = rows.take(spread(len(rows), *CENTRE_SAMPLE)).astype(np.float64)
    rows.release()
    if cosine:
        length = np.linalg.norm(block, axis=1, keepdims=True)
        block = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
    centre: Float32 = block.mean(axis=0).astype(np.float32)
    return centre if all_finite(centre[None]) else np.zeros(rows.dimensions, np.float32)


# ----------
# The k best documents of each query.


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
    progress: Progress | None = None,
) -> Found:
    """The k best documents for each query, fewer where there are fewer; exact, and the same bits everywhere.

    rows: N vectors; queries: float32[Q, d]; similarity: dot, or cosine (0 for a vector of length 0); tie_rank:
    int32[N], the numbers 0..N-1, places of documents of equal score (Ids.tie_ranks; by default their numbers).
    first_pass: how candidates are found; it decides the time and never the answer; progress: called with (documents
    read, all) before each block. A score is the sum of
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
    vectors = ScannedVectors.of(rows, rank, similarity == "cosine", first_pass, progress)
    step = max(64, CANDIDATE_BYTES // (8 * vectors.room(count)))
    parts = [_search_sampled(vectors, queries[at : at + step], count) for at in range(0, len(queries), step)]
    ranks, scores = np.concatenate([p.ranks for p in parts]), np.concatenate([p.scores for p in parts])
    if not np.isfinite(scores).all():
        raise BadValue("a score is not finite: the vectors hold numbers that are too large")
    ptr = np.arange(len(queries) + 1, dtype=np.int64) * count
    return Found(ptr, by_rank[ranks.ravel()], scores.ravel(), sum(p.exact for p in parts))


def pair_scores(documents: Float32, query: Float32) -> Float64:
    """The dot product of each document, float32[n, d], with one query, as `search` computes it."""
    from weir.kernels.dot_product import dot_products

    score = np.empty(len(documents), np.float32)
    dot_products(np.ascontiguousarray(documents), np.ascontiguousarray(query), score)
    return score.astype(np.float64)


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


def _search_sampled(vectors: ScannedVectors, queries: Float32, k: int) -> BestSoFar:
    """Top-k with a threshold that a sample suggests; queries for which it was too high are searched again without."""
    sample, place = _sample(vectors, len(queries), k)
    if place == 0:
        return scan(vectors, queries, k)
    sampled = _search_sampled(sample, queries, place)
    best = scan(vectors, queries, k, sampled.scores[:, -1].copy())
    exact, again = sampled.exact + best.exact, np.flatnonzero(best.count < k)
    if len(again):
        full = scan(vectors, queries[again], k)
        best.ranks[again], best.scores[again] = full.ranks, full.scores
        exact += full.exact
    return replace(best, exact=exact)


def _sample(vectors: ScannedVectors, queries: int, k: int) -> tuple[ScannedVectors, int]:
    """Some of the documents, and the place among them whose score at least k of all will hardly fail to reach.

    Place 0 where a sample would not pay. Without one the k best so far stand in for the k best of all, and about
    k (1 + ln(N / k)) documents are among them at some time.
    """
    n, expected = len(vectors.rows), k / SAMPLED_ONE_IN
    place = int(expected + BAR_DEVIATIONS * math.sqrt(expected) + 3)
    if queries <= FEW_QUERIES or 2 * SAMPLED_ONE_IN * place > k * (1 + math.log(n / k)):
        return vectors, 0
    numbers = spread(n, n // (SAMPLED_ONE_IN * SAMPLE_RUN), SAMPLE_RUN)
    rows = SubsetSource(vectors.rows, numbers)
    return replace(vectors, rows=rows, rank=vectors.rank[numbers], progress=None), place


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
