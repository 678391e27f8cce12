"""Exact search over vectors, streamed in blocks: the k best documents of each query in trec order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.settings import settings

__all__ = ["Array", "Found", "Rows", "Similarity", "pair_scores", "search"]

Float32: TypeAlias = NDArray[np.float32]
Similarity: TypeAlias = Literal["dot", "cosine"]
Progress: TypeAlias = Callable[[int, int], None]

BLOCK = 3072
"""Documents packed at once: their bytes stay in the second or third cache while all queries pass."""
HELD = 1 << 28
"""Bytes of candidates held at once; more queries than that allows go through the documents in several passes."""
FEW = 3
"""Queries up to which reading the documents takes longer than scoring them."""
OFTEN = 0.12
"""Share of pairs looked at exactly beyond which a first pass in bytes does not pay."""
READ = 1 << 26
"""Bytes of vectors read until the memory of those before is given back."""
SAMPLE = 2048
"""Documents from which the centre is taken."""


class Rows(Protocol):
    """Vectors that can be read in blocks."""

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
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
class Array:
    """Vectors in memory or memory-mapped: any float array [N, d]."""

    values: NDArray[np.floating]

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
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
class Found:
    """Answers: ptr int64[Q + 1], doc int32[n], score float32[n], in trec order; exact: pairs scored in double."""

    ptr: Int64
    doc: Int32
    score: Float32
    exact: int


def search(
    rows: Rows,
    queries: Float32,
    k: int,
    similarity: Similarity = "dot",
    tie_rank: Int32 | None = None,
    first_pass: Literal["auto", "int8", "fp32"] = "auto",
) -> Found:
    """The k best documents for each query, fewer where there are fewer; exact, and the same bits everywhere.

    rows: N vectors; queries: float32[Q, d]; similarity: dot, or cosine (0 for a vector of length 0); tie_rank:
    int32[N], distinct, places of documents of equal score (Ids.tie_ranks; by default their numbers).
    first_pass: how candidates are found; it decides the time and never the answer. A score is the sum of
    products in double, rounded to float32. Memory: some blocks of documents and k candidates for each query.
    Raises BadValue for k below 1, other dimensions, and numbers that are not finite.
    """
    queries = np.ascontiguousarray(queries, np.float32)
    _check(rows, queries, k, similarity)
    count = min(k, len(rows))
    if count == 0 or len(queries) == 0:
        return Found(np.zeros(len(queries) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
    rank = np.arange(len(rows), dtype=np.int32) if tie_rank is None else tie_rank
    room = count + max(48, count // 2)
    step = max(64, HELD // (8 * room))
    centre = _centre(rows, similarity) if first_pass != "fp32" else np.zeros(rows.dimensions, np.float32)
    parts = [
        _pass(rows, _Asked.of(queries[at : at + step], similarity, centre), (count, room), rank, first_pass)
        for at in range(0, len(queries), step)
    ]
    ranks, scores = (np.concatenate([part[c] for part in parts]) for c in (0, 1))
    if not np.isfinite(scores).all():
        raise BadValue("a score is not finite: the vectors hold numbers that are not, or too large ones")
    by_rank = np.empty(len(rows), np.int32)
    by_rank[rank] = np.arange(len(rows), dtype=np.int32)
    ptr = np.arange(len(queries) + 1, dtype=np.int64) * count
    return Found(ptr, by_rank[ranks.ravel()], scores.ravel(), sum(part[2] for part in parts))


def pair_scores(documents: Float32, query: Float32) -> Float64:
    """The dot product of each document, float32[n, d], with one query, as `search` computes it."""
    from weir.kernels.dense import dots

    found = np.empty(len(documents), np.float32)
    dots(np.ascontiguousarray(documents), np.ascontiguousarray(query), found)
    return found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Queries as the kernels take them; see kernels.dense.scan."""

    queries: Float32
    length: Float64
    centre: Float32
    cosine: bool

    @staticmethod
    def of(queries: Float32, similarity: Similarity, centre: Float32) -> _Asked:
        from weir.kernels.panels import lengths

        cosine = similarity == "cosine"
        length = np.empty(len(queries) if cosine else 0)
        if cosine:
            lengths(queries, length)
        return _Asked(queries, length, centre, cosine)

    def packed(self, eight: bool) -> tuple[NDArray[np.uint8], Float32, Float64]:
        """(packed queries, facts, gauge) for a first pass in bytes or floats."""
        from weir.kernels.vector import ROWS

        q, d = self.queries.shape
        unit = self.queries.astype(np.float64)
        if self.cosine:
            unit = np.divide(
                unit, self.length[:, None], out=np.zeros_like(unit), where=self.length[:, None] > 0
            )
        centre = self.centre.astype(np.float64) if eight else np.zeros(d)
        facts, gauge = np.zeros((q + ROWS, 3), np.float32), np.zeros((q, 5))
        facts[:, 2] = np.inf
        shifted = unit - centre
        norm, middle = np.linalg.norm(shifted, axis=1), float(np.linalg.norm(centre))
        gauge[:, 0], gauge[:, 1], gauge[:, 4] = unit @ centre, norm, middle
        gauge[:, 3] = (d + 32) * 2.0**-22 * (norm + 2 * middle)
        if not eight:
            floats = np.zeros((q + ROWS, d), np.float32)
            floats[:q], facts[:q, 1] = unit, 1
            return floats.view(np.uint8), facts, gauge
        top = np.abs(shifted).max(axis=1)
        scale = (top / 127).astype(np.float32)
        inverse = np.divide(1, scale, out=np.zeros(q), where=scale > 1e-30)
        whole = np.rint(np.clip(shifted * inverse[:, None], -127, 127))
        gauge[:, 2] = np.linalg.norm(shifted - whole * scale[:, None].astype(np.float64), axis=1)
        bytes_ = np.zeros((q + ROWS, 4 * -(-d // 4)), np.int8)
        bytes_[:q, :d] = whole
        facts.view(np.int32)[:q, 0] = -128 * bytes_[:q].sum(axis=1, dtype=np.int32)
        facts[:q, 1] = scale
        return bytes_.view(np.uint8), facts, gauge


@dataclass(frozen=True, eq=False)
class _Best:
    """The best so far of each query; see kernels.dense."""

    keys: Int64
    held: Int64
    floor: Int64
    bar: Float64

    @staticmethod
    def none(queries: int, room: int) -> _Best:
        lowest = np.full(queries, np.iinfo(np.int64).min)
        held = np.zeros(queries, np.int64)
        return _Best(np.empty((queries, room), np.int64), held, lowest, np.full(queries, -np.inf))


def _pass(
    rows: Rows, asked: _Asked, sizes: tuple[int, int], rank: Int32, first_pass: str
) -> tuple[Int64, Float32, int]:
    """(ranks [Q, k], scores [Q, k], pairs scored exactly) from one reading of the documents."""
    from weir.kernels.dense import finish
    from weir.kernels.panels import lengths
    from weir.kernels.vector import HAS_INT8

    k, room = sizes
    count, best = len(asked.queries), _Best.none(len(asked.queries), room)
    threads = max(1, min(settings().threads, -(-count // 32)))
    few = count <= FEW
    eight = HAS_INT8 if first_pass == "auto" else first_pass == "int8"
    exact, pause = 0, max(1, READ // (4 * rows.dimensions * BLOCK))
    with ThreadPoolExecutor(threads) as pool:
        scanner = None if few else _Scanner.of(asked, eight, rows.dimensions, len(rows))
        for start in range(0, len(rows), BLOCK):
            block = rows.block(start, min(start + BLOCK, len(rows)))
            if start // BLOCK % pause == pause - 1:
                rows.release()
            length = np.empty(len(block) if asked.cosine else 0)
            if asked.cosine:
                lengths(block, length)
            piece = _Piece(block, length, rank[start : start + BLOCK])
            if scanner is None:
                exact += _few(piece, asked, k, best)
                continue
            scored = scanner.take(piece, best, k, pool, threads)
            exact += scored
            if (
                scanner.eight
                and first_pass == "auto"
                and start > room
                and scored > OFTEN * count * len(block)
            ):
                scanner = _Scanner.of(asked, False, rows.dimensions, len(rows))
    ranks, scores = np.zeros((count, k), np.int64), np.zeros((count, k), np.float32)
    finish(k, best.keys, best.held, ranks, scores)
    return ranks, scores, exact


@dataclass(frozen=True, eq=False)
class _Piece:
    """A block of documents: vectors, lengths (empty for dot), tie ranks."""

    rows: Float32
    length: Float64
    rank: Int32


def _few(piece: _Piece, asked: _Asked, k: int, best: _Best) -> int:
    from weir.kernels.dense import scan_few

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
    def of(asked: _Asked, eight: bool, d: int, documents: int) -> _Scanner:
        from weir.kernels.vector import WIDTH

        count = -(-min(BLOCK, documents) // WIDTH)
        shape = (count, -(-d // 4), WIDTH) if eight else (count, d, WIDTH)
        panels = np.zeros(shape, np.uint32 if eight else np.float32)
        lane, most = np.zeros((count, 2, WIDTH), np.float32), np.zeros((count, 2), np.float32)
        return _Scanner(asked, eight, asked.packed(eight), panels, lane, most)

    def take(self, piece: _Piece, best: _Best, k: int, pool: ThreadPoolExecutor, threads: int) -> int:
        """Score a block against every query; returns how many pairs were scored exactly."""
        from weir.kernels.vector import ROWS, WIDTH

        count = -(-len(piece.rows) // WIDTH)
        list(pool.map(partial(self._pack, piece), *_shares(count, threads, 1)))
        # What float sums of squares cannot see of very small numbers is added to the distances.
        self.most[:count] += np.float32(1e-18 * np.sqrt(piece.rows.shape[1]))
        scan = partial(self._scan, piece, best, k, count)
        return sum(pool.map(scan, *_shares(len(self.asked.queries), threads, ROWS)))

    def _pack(self, piece: _Piece, first: int, stop: int) -> None:
        from weir.kernels.panels import pack_bytes, pack_floats

        if self.eight:
            centre = self.asked.centre
            pack_bytes(piece.rows, piece.length, centre, first, stop, self.panels, self.lane, self.most)
        else:
            pack_floats(piece.rows, piece.length, first, stop, self.panels, self.lane, self.most)

    def _scan(self, piece: _Piece, best: _Best, k: int, count: int, first: int, stop: int) -> int:
        from weir.kernels.dense import scan

        packed, facts, gauge = self.packed
        panels = self.panels[:count].reshape(count, -1).view(np.uint8)
        return scan(
            self.eight, piece.rows, piece.length, piece.rank, panels, self.lane, self.most,
            self.asked.queries, self.asked.length, packed, facts, gauge, first, stop, k,
            best.keys, best.held, best.floor, best.bar,
        )  # fmt: skip


def _shares(count: int, threads: int, unit: int) -> tuple[list[int], list[int]]:
    """Firsts and stops of equal shares whose bounds are multiples of `unit`."""
    cuts = [min(count, -(-count * t // (threads * unit)) * unit) for t in range(threads + 1)]
    return cuts[:-1], cuts[1:]


def _centre(rows: Rows, similarity: Similarity) -> Float32:
    """A vector near the middle of the documents: any would do, this makes the bytes' error small."""
    spots = np.linspace(0, len(rows), min(len(rows), 32), endpoint=False).astype(np.int64)
    each = -(-SAMPLE // 32)
    total = np.zeros(rows.dimensions)
    for spot in spots.tolist():
        block = rows.block(spot, min(spot + each, len(rows))).astype(np.float64)
        if similarity == "cosine":
            length = np.linalg.norm(block, axis=1, keepdims=True)
            block = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
        total += block.mean(axis=0)
    return (total / len(spots)).astype(np.float32)


def _check(rows: Rows, queries: Float32, k: int, similarity: str) -> None:
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")
    if similarity not in ("dot", "cosine"):
        raise BadValue(f"similarity is '{similarity}'; expected dot or cosine")
    if queries.ndim != 2 or (len(rows) and queries.shape[1] != rows.dimensions):
        found = queries.shape[-1] if queries.ndim else 0
        raise BadValue(f"queries have {found} dimensions, documents {rows.dimensions}; expected the same")
    if not np.isfinite(queries).all():
        raise BadValue("a query's vector is not finite")
