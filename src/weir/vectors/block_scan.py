"""One reading of the documents, block by block, past a batch of queries; see kernels.dense for how."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.settings import settings
from weir.vectors.vector_source import Float32, SubsetSource, VectorSource, spread

__all__ = ["FEW_QUERIES", "BestSoFar", "ScannedVectors", "scan"]

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
MAX_BYTE_DIMENSIONS = 1 << 16
"""Dimensions beyond which sums of products of bytes might not fit 32 bits."""


@dataclass(frozen=True, eq=False)
class ScannedVectors:
    """What is searched. rank: int32[N], places among ties; centre: float32[d], a vector near the middle of the
    documents; eight: whether the first pass is in bytes; settled: whether it stays so, however little bytes tell."""

    rows: VectorSource
    rank: Int32
    cosine: bool
    eight: bool
    settled: bool
    centre: Float32

    @staticmethod
    def of(rows: VectorSource, rank: Int32, cosine: bool, first_pass: str) -> ScannedVectors:
        """Bytes where the processor multiplies them, unless floats are asked for; floats otherwise."""
        from weir.kernels.simd import HAS_INT8

        eight = HAS_INT8 and first_pass != "fp32" and rows.dimensions <= MAX_BYTE_DIMENSIONS
        centre = _centre(rows, cosine) if eight else np.zeros(rows.dimensions, np.float32)
        return ScannedVectors(rows, rank, cosine, eight, first_pass != "auto", centre)

    def room(self, k: int) -> int:
        """Candidates that a query may have before all but its k best are dropped."""
        return min(k + max(48, k // 2), len(self.rows) + 1)


@dataclass(frozen=True, eq=False)
class BestSoFar:
    """The best of each query in trec order: ranks int32[Q, k], scores float32[Q, k], how many of them there are,
    int64[Q], and pairs scored exactly."""

    ranks: Int32
    scores: Float32
    count: Int64
    exact: int


def scan(given: ScannedVectors, queries: Float32, k: int, bar: Float32 | None = None) -> BestSoFar:
    """The k best documents of each query among those that score its bar or more, float32[Q]; all without one.

    k is no more than there are documents. Raises BadValue for a vector that is not finite.
    """
    from weir.kernels.dot_product.packed_vectors import norms
    from weir.kernels.dot_product.scan import write_top_k

    rows, asked, best = given.rows, _Asked.of(queries, given), _Best.of(len(queries), given.room(k), bar)
    threads = max(1, min(settings().threads, -(-len(queries) // 32)))
    size = _documents(rows.dimensions)
    exact, pause = 0, max(1, RELEASE_BYTES // (4 * rows.dimensions * size))
    scanner = None if len(queries) <= FEW_QUERIES else _Scanner.of(asked, given.eight, size)
    with ThreadPoolExecutor(threads) as pool:
        for number, start in enumerate(range(0, len(rows), size)):
            block = _block(rows, start, size)
            if number % pause == pause - 1:
                rows.release()
            length = np.empty(len(block) if given.cosine else 0)
            if given.cosine:
                norms(block, length)
            piece = _Piece(block, length, given.rank[start : start + size])
            if scanner is None:
                exact += _few(piece, asked, k, best)
                continue
            scored = scanner.take(piece, best, k, pool, threads)
            exact += scored
            often = scored > MAX_RESCORED_SHARE * len(queries) * len(block)
            if often and scanner.eight and not given.settled and start > best.keys.shape[1]:
                scanner = _Scanner.of(asked, False, size)
    ranks, scores = np.zeros((len(queries), k), np.int32), np.zeros((len(queries), k), np.float32)
    write_top_k(k, best.keys, best.held, ranks, scores)
    return BestSoFar(ranks, scores, best.held, exact)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Queries as the kernels take them: packed, with their norms and error bounds."""

    queries: Float32
    length: Float64
    centre: Float32
    cosine: bool

    @staticmethod
    def of(queries: Float32, given: ScannedVectors) -> _Asked:
        from weir.kernels.dot_product.packed_vectors import norms

        length = np.empty(len(queries) if given.cosine else 0)
        if given.cosine:
            norms(queries, length)
        return _Asked(queries, length, given.centre, given.cosine)

    def packed(self, eight: bool) -> tuple[NDArray[np.uint8], Float32, Float64]:
        """(packed queries, facts, gauge) for a first pass in bytes or floats."""
        from weir.kernels.simd import ROWS

        q, d = self.queries.shape
        unit = self.queries.astype(np.float64)
        if self.cosine:
            unit = np.divide(
                unit, self.length[:, None], out=np.zeros_like(unit), where=self.length[:, None] > 0
            )
        centre = self.centre.astype(np.float64) if eight else np.zeros(d)
        facts, gauge = np.zeros((q + ROWS, 3), np.float32), np.zeros((q, 5))
        facts[:, 2] = np.inf
        centred = unit - centre
        norm, middle = np.linalg.norm(centred, axis=1), float(np.linalg.norm(centre))
        gauge[:, 0], gauge[:, 1], gauge[:, 4] = unit @ centre, norm, middle
        gauge[:, 3] = (d + 32) * 2.0**-22 * (norm + 2 * middle)
        if not eight:
            floats = np.zeros((q + ROWS, d), np.float32)
            floats[:q], facts[:q, 1] = unit, 1
            return floats.view(np.uint8), facts, gauge
        scale = (np.abs(centred).max(axis=1) / 127).astype(np.float32)
        inverse = np.divide(1, scale, out=np.zeros(q), where=scale > 1e-30)
        whole = np.rint(np.clip(centred * inverse[:, None], -127, 127))
        gauge[:, 2] = np.linalg.norm(centred - whole * scale[:, None].astype(np.float64), axis=1)
        bytes_ = np.zeros((q + ROWS, 4 * -(-d // 4)), np.int8)
        bytes_[:q, :d] = whole
        facts.view(np.int32)[:q, 0] = -128 * bytes_[:q].sum(axis=1, dtype=np.int32)
        facts[:q, 1] = scale
        return bytes_.view(np.uint8), facts, gauge


@dataclass(frozen=True, eq=False)
class _Best:
    """Top-k candidates of each query while blocks pass; see kernels.dot_product."""

    keys: Int64
    held: Int64
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
class _Piece:
    """A block of documents: vectors, lengths (empty for dot), tie ranks."""

    rows: Float32
    length: Float64
    rank: Int32


def _few(piece: _Piece, asked: _Asked, k: int, best: _Best) -> int:
    from weir.kernels.dot_product.scan import scan_few

    count = len(asked.queries)
    scan_few(
        piece.rows, piece.length, piece.rank, asked.queries, asked.length, 0, count, k,
        best.keys, best.held, best.floor, best.bar,
    )  # fmt: skip
    return count * len(piece.rows)


@dataclass(frozen=True, eq=False)
class _Scanner:
    """Packs blocks of documents and takes queries past them; the arrays are reused from block to block."""

    asked: _Asked
    eight: bool
    packed: tuple[NDArray[np.uint8], Float32, Float64]
    panels: NDArray[Any]
    lane: Float32
    most: Float32

    @staticmethod
    def of(asked: _Asked, eight: bool, size: int) -> _Scanner:
        from weir.kernels.simd import WIDTH

        d, count = asked.queries.shape[1], -(-size // WIDTH)
        shape = (count, -(-d // 4), WIDTH) if eight else (count, d, WIDTH)
        panels = np.zeros(shape, np.uint32 if eight else np.float32)
        lane, most = np.zeros((count, 2, WIDTH), np.float32), np.zeros((count, 2), np.float32)
        return _Scanner(asked, eight, asked.packed(eight), panels, lane, most)

    def take(self, piece: _Piece, best: _Best, k: int, pool: ThreadPoolExecutor, threads: int) -> int:
        """Score a block against every query; returns how many pairs were scored exactly."""
        from weir.kernels.simd import ROWS, WIDTH

        count = -(-len(piece.rows) // WIDTH)
        list(pool.map(partial(self._pack, piece), *_shares(count, threads, 1)))
        # What float sums of squares cannot see of very small numbers is added to the distances.
        self.most[:count] += np.float32(1e-18 * np.sqrt(piece.rows.shape[1]))
        scan = partial(self._scan, piece, best, k, count)
        return sum(pool.map(scan, *_shares(len(self.asked.queries), threads, ROWS)))

    def _pack(self, piece: _Piece, first: int, stop: int) -> None:
        from weir.kernels.dot_product.packed_vectors import pack_bytes, pack_floats

        if self.eight:
            centre = self.asked.centre
            pack_bytes(piece.rows, piece.length, centre, first, stop, self.panels, self.lane, self.most)
        else:
            pack_floats(piece.rows, piece.length, first, stop, self.panels, self.lane, self.most)

    def _scan(self, piece: _Piece, best: _Best, k: int, count: int, first: int, stop: int) -> int:
        from weir.kernels.dot_product.scan import scan

        packed, facts, gauge = self.packed
        panels = self.panels[:count].reshape(count, -1).view(np.uint8)
        return scan(
            self.eight, piece.rows, piece.length, piece.rank, panels, self.lane, self.most,
            self.asked.queries, self.asked.length, packed, facts, gauge, first, stop, k,
            best.keys, best.held, best.floor, best.bar,
        )  # fmt: skip


def _shares(count: int, threads: int, unit: int) -> tuple[list[int], list[int]]:
    """(starts, stops) of equal shares, for threads, with bounds at multiples of `unit`."""
    cuts = [min(count, -(-count * t // (threads * unit)) * unit) for t in range(threads + 1)]
    return cuts[:-1], cuts[1:]


def _block(rows: VectorSource, start: int, size: int) -> Float32:
    """A block of documents; raises BadValue, naming the document, for one that is not finite."""
    from weir.kernels.dot_product.packed_vectors import all_finite

    block = rows.block(start, min(start + size, len(rows)))
    if not all_finite(block):
        number = start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
        number = int(rows.numbers[number]) if isinstance(rows, SubsetSource) else number
        raise BadValue(f"the vector of document {number} is not finite")
    return block


def _documents(d: int) -> int:
    """How many documents are in a block: whole panels."""
    from weir.kernels.simd import WIDTH

    return max(1, BLOCK_BYTES // (4 * max(d, 1) * WIDTH)) * WIDTH


def _centre(rows: VectorSource, cosine: bool) -> Float32:
    """The mean of a sample of documents, subtracted before quantisation so that its errors are small."""
    from weir.kernels.dot_product.packed_vectors import all_finite

    block = rows.take(spread(len(rows), *CENTRE_SAMPLE)).astype(np.float64)
    rows.release()
    if cosine:
        length = np.linalg.norm(block, axis=1, keepdims=True)
        block = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
    centre: Float32 = block.mean(axis=0).astype(np.float32)
    return centre if all_finite(centre[None]) else np.zeros(rows.dimensions, np.float32)
