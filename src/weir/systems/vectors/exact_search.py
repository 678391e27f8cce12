"""Exact nearest-neighbour search over vectors that are read in blocks."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir import kernels
from weir.core.strings import Float32, Float64, Int32, Int64
from weir.errors import BadValue
from weir.settings import settings
from weir.systems.protocol import Progress

if TYPE_CHECKING:
    from weir.kernels.dot_product import BestKeys, DocumentBlock, PackedQueries, Panels, QueryVectors

# ----------
# Sources of vectors, read in blocks.


class VectorSource(Protocol):
    """Float32 vectors, numbered from 0, that can be read in blocks or by number."""

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""

    def __len__(self) -> int: ...

    def block(self, start: int, stop: int) -> Float32:
        """Return vectors start..stop-1, contiguous float32[n, d]; valid until the next call."""

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """Return copies of the vectors with these numbers, float32[n, d]."""

    def release(self) -> None:
        """Free the memory of blocks already read."""


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Vectors in memory or memory-mapped: any float array [N, d]."""

    values: NDArray[np.floating]

    @property
    def dimensions(self) -> int:
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    def block(self, start: int, stop: int) -> Float32:
        return np.ascontiguousarray(self.values[start:stop], np.float32)

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        return np.ascontiguousarray(self.values[numbers], np.float32)

    def release(self) -> None: ...


@dataclass(frozen=True, eq=False)
class _SubsetSource:
    rows: VectorSource
    numbers: Int64
    """int64[n]: their numbers in `rows`."""

    @property
    def dimensions(self) -> int:
        return self.rows.dimensions

    def __len__(self) -> int:
        return len(self.numbers)

    def block(self, start: int, stop: int) -> Float32:
        vectors = self.rows.take(self.numbers[start:stop])
        self.rows.release()
        return vectors

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        return self.rows.take(self.numbers[numbers])

    def release(self) -> None:
        self.rows.release()


def spread(count: int, runs: int, each: int) -> Int64:
    """Return ascending document numbers, int64: `runs` groups of `each` neighbours, evenly spread over
    `count` documents."""
    first = np.arange(runs, dtype=np.int64) * count // max(runs, 1)
    numbers = np.unique(first[:, None] + np.arange(each))
    return numbers[numbers < count]


# ----------
# One scan of the documents, block by block, with a batch of queries.


BLOCK_BYTES = 1 << 22
"""Bytes of vectors packed at once, which stay in the L3 cache while all queries pass."""
RELEASE_BYTES = 1 << 26
"""Bytes of vectors read before the memory of earlier ones is released."""
FEW_QUERIES = 3
"""Number of queries up to which reading takes longer than scoring."""
MAX_RESCORED_SHARE = 0.12
"""Share of pairs scored exactly beyond which a first pass in bytes does not pay."""
CENTRE_SAMPLE = 64, 32
"""Number of runs, and of documents in each, from which the centre is computed."""
LARGEST_PRODUCTS = 4e18
"""A query's largest number times its dimensions, beyond which a float may overflow."""
MAX_BYTE_DIMENSIONS = 1 << 16
"""Dimensions beyond which sums of byte products may overflow 32 bits."""


@dataclass(frozen=True, eq=False)
class ScannedVectors:
    """Document vectors prepared for a search."""

    rows: VectorSource
    rank: Int32
    """int32[N], order of ties."""
    cosine: bool
    eight: bool
    """True if the first pass is in bytes."""
    settled: bool
    """True if the first pass stays in bytes, even if it leaves many pairs to exact scoring."""
    centre: Float32
    """float32[d]: near the documents' mean."""
    progress: Progress | None
    """Called with (documents read, all)."""

    @staticmethod
    def of(
        rows: VectorSource, rank: Int32, cosine: bool, first_pass: str, progress: Progress | None = None
    ) -> ScannedVectors:
        """Return document vectors prepared for a search.

        rank: int32[N], order of ties.
        first_pass: "fp32"; "int8" if processor and dimensions allow; "auto" for int8 unless it proves slower.
        """
        eight = kernels.simd.HAS_INT8 and first_pass != "fp32" and rows.dimensions <= MAX_BYTE_DIMENSIONS
        centre = _centre(rows, cosine) if eight else np.zeros(rows.dimensions, np.float32)
        return ScannedVectors(rows, rank, cosine, eight, first_pass != "auto", centre, progress)

    def room(self, k: int) -> int:
        """Return how many candidates per query the first pass keeps for k results."""
        return min(k + max(48, k // 2), len(self.rows) + 1)


def scan(
    vectors: ScannedVectors, queries: Float32, k: int, bar: Float32 | None = None
) -> tuple[Int32, Float32, Int64, int]:
    """Return the k best documents of each query: (tie ranks int32[Q, k], scores float32[Q, k], numbers of
    results int64[Q], number of pairs scored exactly), best first.

    bar: float32[Q], lowest score of a result.

    Raises BadValue for a document vector that is not finite.
    """
    rows, length = vectors.rows, np.empty(len(queries) if vectors.cosine else 0)
    asked = kernels.dot_product.QueryVectors(queries, length)
    if vectors.cosine:
        kernels.dot_product.norms(queries, length)
    best = _nothing_found(len(queries), vectors.room(k), bar)
    threads = max(1, min(settings().threads, -(-len(queries) // 32)))
    width = kernels.simd.WIDTH
    size = max(1, BLOCK_BYTES // (4 * max(rows.dimensions, 1) * width)) * width
    exact, pause = 0, max(1, RELEASE_BYTES // (4 * rows.dimensions * size))
    scanner = None
    if len(queries) > FEW_QUERIES:
        scanner = _Scanner.of(vectors, asked, vectors.eight, size, threads)
    with ThreadPoolExecutor(threads) as pool:
        for number, start in enumerate(range(0, len(rows), size)):
            if vectors.progress is not None:
                vectors.progress(start, len(rows))
            read = rows.block(start, min(start + size, len(rows)))
            if not kernels.dot_product.all_finite(read):
                bad = start + int(np.flatnonzero(~np.isfinite(read).all(axis=1))[0])
                bad = int(rows.numbers[bad]) if isinstance(rows, _SubsetSource) else bad
                raise BadValue(f"the vector of document {bad} is not finite")
            if number % pause == pause - 1:
                rows.release()
            lengths = np.empty(len(read) if vectors.cosine else 0)
            if vectors.cosine:
                kernels.dot_product.norms(read, lengths)
            block = kernels.dot_product.DocumentBlock(read, lengths, vectors.rank[start : start + size])
            if scanner is None:
                kernels.dot_product.scan_few(block, asked, k, best)
                exact += len(queries) * len(read)
                continue
            scored = scanner.take(block, best, k, pool)
            exact += scored
            often = scored > MAX_RESCORED_SHARE * len(queries) * len(read)
            if often and scanner.eight and not vectors.settled and start > best.keys.shape[1]:
                scanner = _Scanner.of(vectors, asked, False, size, threads)
    ranks, scores = np.zeros((len(queries), k), np.int32), np.zeros((len(queries), k), np.float32)
    kernels.dot_product.write_top_k(k, best.keys, best.filled, ranks, scores)
    return ranks, scores, best.filled, exact


def _nothing_found(queries: int, room: int, bar: Float32 | None) -> BestKeys:
    floor, least = np.full(queries, np.iinfo(np.int64).min), np.full(queries, -np.inf)
    if bar is not None:
        bits = bar.view(np.int32).astype(np.int64)
        floor, least = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits) << 32, bar.astype(np.float64)
    return kernels.dot_product.BestKeys(
        np.empty((queries, room), np.int64), np.zeros(queries, np.int64), floor, least
    )


@dataclass(frozen=True, eq=False)
class _Scanner:
    asked: QueryVectors
    packed: PackedQueries
    centre: Float32
    eight: bool
    panels: Panels
    """Room for the documents of a block."""
    threads: int

    @staticmethod
    def of(vectors: ScannedVectors, asked: QueryVectors, eight: bool, size: int, threads: int) -> _Scanner:
        d, width = asked.rows.shape[1], kernels.simd.WIDTH
        count = -(-size // width)
        shape = (count, -(-d // 4), width) if eight else (count, d, width)
        words = np.zeros(shape, np.uint32 if eight else np.float32)
        panels = kernels.dot_product.Panels(
            words, np.zeros((count, 2, width), np.float32), np.zeros((count, 2), np.float32)
        )
        unit = asked.rows.astype(np.float64)
        if vectors.cosine:
            length = asked.length[:, None]
            unit = np.divide(unit, length, out=np.zeros_like(unit), where=length > 0)
        return _Scanner(asked, _packed(unit, vectors.centre, eight), vectors.centre, eight, panels, threads)

    def take(self, block: DocumentBlock, best: BestKeys, k: int, pool: ThreadPoolExecutor) -> int:
        count, panels = -(-len(block.rows) // kernels.simd.WIDTH), self.panels
        as_bytes = panels._replace(words=panels.words[:count].reshape(count, -1).view(np.uint8))

        def pack(first: int, stop: int) -> None:
            if self.eight:
                kernels.dot_product.pack_bytes(block, self.centre, first, stop, panels)
            else:
                kernels.dot_product.pack_floats(block, first, stop, panels)

        def score(first: int, stop: int) -> int:
            return kernels.dot_product.scan(
                self.eight, block, as_bytes, self.asked, self.packed, first, stop, k, best
            )

        list(pool.map(pack, *_shares(count, self.threads, 1)))
        # What float sums of squares cannot see of very small numbers is added to the distances.
        panels.most[:count] += np.float32(1e-18 * np.sqrt(block.rows.shape[1]))
        return sum(pool.map(score, *_shares(len(self.asked.rows), self.threads, kernels.simd.ROWS)))


def _packed(unit: Float64, centre: Float32, eight: bool) -> PackedQueries:
    q, d = unit.shape
    middle = centre.astype(np.float64) if eight else np.zeros(d)
    rows = q + kernels.simd.ROWS
    facts, gauge = np.zeros((rows, 3), np.float32), np.zeros((q, 5))
    facts[:, 2] = np.inf
    centred = unit - middle
    norm, far = np.linalg.norm(centred, axis=1), float(np.linalg.norm(middle))
    gauge[:, 0], gauge[:, 1], gauge[:, 4] = unit @ middle, norm, far
    gauge[:, 3] = (d + 32) * 2.0**-22 * (norm + 2 * far)
    beyond = np.abs(unit).max(axis=1) * d > LARGEST_PRODUCTS  # a unit that is not a number: looked at exactly
    if not eight:
        floats = np.zeros((rows, d), np.float32)
        floats[:q], facts[:q, 1] = unit, np.where(beyond, np.nan, 1)
        return kernels.dot_product.PackedQueries(floats.view(np.uint8), facts, gauge)
    scale = (np.abs(centred).max(axis=1) / 127).astype(np.float32)
    inverse = np.divide(1, scale, out=np.zeros(q), where=scale > 1e-30)
    whole = np.rint(np.clip(centred * inverse[:, None], -127, 127))
    gauge[:, 2] = np.linalg.norm(centred - whole * scale[:, None].astype(np.float64), axis=1)
    bytes_ = np.zeros((rows, 4 * -(-d // 4)), np.int8)
    bytes_[:q, :d] = whole
    facts.view(np.int32)[:q, 0] = -128 * bytes_[:q].sum(axis=1, dtype=np.int32)
    facts[:q, 1] = np.where(beyond, np.nan, scale)
    return kernels.dot_product.PackedQueries(bytes_.view(np.uint8), facts, gauge)


def _shares(count: int, threads: int, unit: int) -> tuple[list[int], list[int]]:
    cuts = [min(count, -(-count * t // (threads * unit)) * unit) for t in range(threads + 1)]
    return cuts[:-1], cuts[1:]


def _centre(rows: VectorSource, cosine: bool) -> Float32:
    block = rows.take(spread(len(rows), *CENTRE_SAMPLE)).astype(np.float64)
    rows.release()
    if cosine:
        length = np.linalg.norm(block, axis=1, keepdims=True)
        block = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
    centre: Float32 = block.mean(axis=0).astype(np.float32)
    return centre if kernels.dot_product.all_finite(centre[None]) else np.zeros(rows.dimensions, np.float32)


# ----------
# The k best documents of each query.


Similarity: TypeAlias = Literal["dot", "cosine"]

CANDIDATE_BYTES = 1 << 28
"""Bytes of candidates held at once; more queries take several passes."""
SAMPLED_ONE_IN, SAMPLE_RUN = 32, 8
"""The sample has one document in 32, in runs of 8 neighbours."""
BAR_DEVIATIONS = 5
"""Standard deviations by which the bar from the sample lies below its expectation."""


@dataclass(frozen=True, eq=False)
class Found:
    """The k best documents of each query, or all if fewer, by descending score, then ascending tie rank."""

    ptr: Int64
    """int64[Q + 1]."""
    doc: Int32
    score: Float32
    exact: int
    """Number of pairs scored in double."""


def search(
    rows: VectorSource,
    queries: Float32,
    k: int,
    similarity: Similarity = "dot",
    tie_rank: Int32 | None = None,
    first_pass: Literal["auto", "int8", "fp32"] = "auto",
    progress: Progress | None = None,
) -> Found:
    """Return the exact k best documents of each query, bit-equal on every machine.

    queries: float32[Q, d].
    similarity: dot, or cosine, which is 0 for a vector of length 0.
    tie_rank: int32[N], a permutation that orders equal scores, ascending. None takes document numbers.
    first_pass: changes only the time.

    Scores are summed in double and rounded to float32. Raises BadValue for k below 1, unequal dimensions, and
    numbers that are not finite.
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
    ranks, scores = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
    if not np.isfinite(scores).all():
        raise BadValue("a score is not finite: the vectors hold numbers that are too large")
    ptr = np.arange(len(queries) + 1, dtype=np.int64) * count
    return Found(ptr, by_rank[ranks.ravel()], scores.ravel(), sum(exact for *_, exact in parts))


def query_dot_products(documents: Float32, query: Float32) -> Float64:
    """Return the dot products of documents, float32[n, d], with a query, float64[n], bit-equal to `search`."""
    score = np.empty(len(documents), np.float32)
    kernels.dot_product.dot_products(np.ascontiguousarray(documents), np.ascontiguousarray(query), score)
    return score.astype(np.float64)


def places(tie_rank: Int32 | None, count: int) -> tuple[Int32, Int32]:
    """Return (tie rank of each document, document at each rank), int32[count] each.

    tie_rank: None for the order of numbers.

    Raises BadValue unless tie_rank is a permutation of 0..count-1.
    """
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


def _search_sampled(vectors: ScannedVectors, queries: Float32, k: int) -> tuple[Int32, Float32, Int64, int]:
    sample, place = _sample(vectors, len(queries), k)
    if place == 0:
        return scan(vectors, queries, k)
    _, sampled_scores, _, exact_of_sample = _search_sampled(sample, queries, place)
    ranks, scores, count, exact = scan(vectors, queries, k, sampled_scores[:, -1].copy())
    exact, again = exact + exact_of_sample, np.flatnonzero(count < k)
    if len(again):
        ranks[again], scores[again], _, exact_again = scan(vectors, queries[again], k)
        exact += exact_again
    return ranks, scores, count, exact


def _sample(vectors: ScannedVectors, queries: int, k: int) -> tuple[ScannedVectors, int]:
    n, expected = len(vectors.rows), k / SAMPLED_ONE_IN
    place = int(expected + BAR_DEVIATIONS * math.sqrt(expected) + 3)
    if queries <= FEW_QUERIES or 2 * SAMPLED_ONE_IN * place > k * (1 + math.log(n / k)):
        return vectors, 0
    numbers = spread(n, n // (SAMPLED_ONE_IN * SAMPLE_RUN), SAMPLE_RUN)
    rows = _SubsetSource(vectors.rows, numbers)
    return replace(vectors, rows=rows, rank=vectors.rank[numbers], progress=None), place


def checked(rows: VectorSource, queries: Float32, k: int) -> None:
    """Raise BadValue for k below 1, and queries of a wrong shape or not finite."""
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
