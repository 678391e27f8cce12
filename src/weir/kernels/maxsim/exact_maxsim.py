"""Late interaction, exactly: for each token of a query the best of a document's tokens, added up.

    scores = maxsim(query, query_ptr, tokens, ptr, docs=None, threads=1)

Tokens stand ragged, without padding, so that nothing but a document's own tokens can be its best. A product is one
chain of fused operations over the dimensions and the sum over a query's tokens is taken in double in their order:
the same bits alone or in a batch, whatever stands beside a document or a query. Source: Khattab and Zaharia 2020.

A tile is ROWS tokens of documents, wherever they lie, times WIDTH tokens of queries, packed side by side; its sums
stay in registers from the first dimension to the last, so documents are read where they are, memory-mapped too.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue
from weir.kernels.jit import jit
from weir.kernels.simd import (
    F32,
    I64,
    INT,
    LANES,
    V16F,
    WIDE,
    Value,
    _at,
    _call,
    _load,
    _loop,
    _single,
    _splat,
    _store,
    intrinsic,
    ir,
    numba,
)

__all__ = ["maxsim"]

Float32: TypeAlias = NDArray[np.float32]
Int64: TypeAlias = NDArray[np.int64]

VECTORS, ROWS = (2, 12) if WIDE else (1, 6)
"""Sums of a tile in vectors of 16: 24 of the 32 registers of AVX-512, 12 of the 16 half as wide of AVX2."""
WIDTH = LANES * VECTORS
V16S = ir.VectorType(ir.IntType(16), LANES)
TOKENS = 768
"""Tokens of documents that all queries pass before the next ones: they stay in the second cache."""


@intrinsic
def _best(context, rows, panel, dimensions, best):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - numba's own protocol
    """Raise best, float32[WIDTH], to the products of ROWS tokens with WIDTH tokens where these are greater.

    All arguments are addresses but dimensions. rows: int64[ROWS] addresses of float32[dimensions]; panel:
    float32[dimensions, WIDTH]. What is not a number stays, so that it is seen.
    """

    def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - numba's own protocol
        return _tile(b, arguments)

    return numba.types.void(INT, INT, INT, INT), generate


def _tile(b: Value, arguments: list[Value]) -> None:
    rows, panel, dimensions, best = arguments
    tokens = [_load(b, rows, 8 * r, I64) for r in range(ROWS)]
    zero = ir.Constant(V16F, [0.0] * LANES)

    def step(b: Value, k: Value, sums: list[Value]) -> list[Value]:
        base, at = b.mul(k, I64(4 * WIDTH)), b.mul(k, I64(4))
        asked = [_load(b, panel, b.add(base, I64(64 * v)), V16F) for v in range(VECTORS)]
        found = []
        for r in range(ROWS):
            value = _splat(b, _load(b, tokens[r], at, F32))
            for v in range(VECTORS):
                found.append(_call(b, "llvm.fma.v16f32", V16F, [asked[v], value, sums[r * VECTORS + v]]))
        return found

    sums = _loop(b, dimensions, [zero] * (ROWS * VECTORS), step)
    for v in range(VECTORS):
        top = _load(b, best, 64 * v, V16F)
        for found in sums[v::VECTORS]:
            top = _call(b, "llvm.maximum.v16f32", V16F, [top, found])
        _store(b, top, best, 64 * v)


def _widened(b: Value, arguments: list[Value]) -> None:
    row, dimensions, out = arguments

    def step(b: Value, i: Value, state: list[Value]) -> list[Value]:
        at = b.shl(i, I64(4))
        _store(b, floats(b, row, at, True), out, b.shl(at, I64(2)))
        return []

    _loop(b, b.lshr(dimensions, I64(4)), [], step)


def floats(b: Value, address: Value, offset: Value, half: bool) -> Value:
    """Sixteen numbers as floats, from floats or halves; offset: of the first, in numbers."""
    if not half:
        return _load(b, address, b.shl(offset, I64(2)), V16F)
    value = b.load(_at(b, address, b.shl(offset, I64(1)), V16S))
    value.align = 2
    return _single(b, value)


@intrinsic
def _widen(context, row, dimensions, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - numba's own protocol
    """A row of float16 as floats. dimensions: a multiple of 16."""

    def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - numba's own protocol
        return _widened(b, arguments)

    return numba.types.void(INT, INT, INT), generate


@jit
def pack(query: Float32, panels: Float32) -> None:
    """Query tokens float32[n, d] side by side: panels float32[ceil(n / WIDTH), d, WIDTH], filled up with zeros."""
    for p in range(len(panels)):
        for i in range(WIDTH):
            t = p * WIDTH + i
            for j in range(panels.shape[1]):
                panels[p, j, i] = query[t, j] if t < len(query) else np.float32(0)


@jit
def score(
    panels: Float32,
    query_ptr: Int64,
    tokens: NDArray[np.uint8],
    half: bool,
    starts: Int64,
    ends: Int64,
    out: Float32,
) -> None:
    """out float32[documents, queries]: the score of every document, whose tokens are starts[i]:ends[i], not none.

    tokens: the bytes of all tokens, one behind the other; half: whether they are float16, of a multiple of 16
    dimensions, and not float32.
    """
    dimensions, width = panels.shape[1], len(panels) * WIDTH
    stride = np.int64(dimensions * (2 if half else 4))
    longest = np.int64(0)
    for i in range(len(starts)):
        longest = max(longest, ends[i] - starts[i])
    rows = np.empty(TOKENS + longest + 2 * ROWS, np.int64)
    tile_ptr = np.zeros(TOKENS // ROWS + 2, np.int64)
    best = np.empty((len(tile_ptr), width), np.float32)
    wide = np.empty((len(rows) if half else 0, dimensions), np.float32)
    first = 0
    while first < len(starts):
        count, last = np.int64(0), first
        while last < len(starts) and count < TOKENS:
            for t in range(starts[last], ends[last]):
                rows[count] = tokens.ctypes.data + t * stride
                if half:
                    # Its address is asked for here and not before: numba frees an array behind its last use.
                    place = wide.ctypes.data + count * wide.strides[0]
                    _widen(rows[count], dimensions, place)
                    rows[count] = place
                count += 1
            while count % ROWS:  # filled up with the document's own last token, which changes no maximum
                rows[count] = rows[count - 1]
                count += 1
            last += 1
            tile_ptr[last - first] = count // ROWS
        best[: last - first] = -np.inf
        rows_at, best_at = rows.ctypes.data, best.ctypes.data
        for p in range(len(panels)):
            panel = panels.ctypes.data + p * panels.strides[0]
            for i in range(last - first):
                top = best_at + i * best.strides[0] + 4 * WIDTH * p
                for t in range(tile_ptr[i], tile_ptr[i + 1]):
                    _best(rows_at + 8 * ROWS * t, panel, dimensions, top)
        for i in range(last - first):
            for q in range(len(query_ptr) - 1):
                total = 0.0
                for t in range(query_ptr[q], query_ptr[q + 1]):
                    total += np.float64(best[i, t])
                out[first + i, q] = np.float32(total)
        first = last


def maxsim(
    query: NDArray[np.floating],
    query_ptr: Int64,
    tokens: NDArray[np.floating],
    ptr: Int64,
    docs: NDArray[np.integer] | None = None,
    threads: int = 1,
) -> Float32:
    """The score of every document for every query: float32[Q, n].

    query: float[any, d], the tokens of query q at query_ptr[q]:query_ptr[q + 1]; tokens: float[any, d], those of
    document i at ptr[i]:ptr[i + 1], memory-mapped too, float32 and float16 read in place, others copied by blocks;
    docs: int[n], the documents to score, by default all. A query without tokens scores 0. Raises BadValue for a
    document without tokens, other dimensions, and numbers that are not finite.
    """
    if query.ndim != 2 or tokens.ndim != 2 or query.shape[1] != tokens.shape[1]:
        raise BadValue(f"tokens of shapes {query.shape} and {tokens.shape}; expected two tables of one width")
    chosen = np.arange(len(ptr) - 1) if docs is None else np.asarray(docs, np.int64)
    starts, ends = np.asarray(ptr)[chosen].astype(np.int64), np.asarray(ptr)[chosen + 1].astype(np.int64)
    empty = np.flatnonzero(ends <= starts)
    if len(empty):
        raise BadValue(f"document {int(chosen[empty[0]])} has no tokens; expected at least one")
    place = np.asarray(query_ptr, np.int64)
    if not (_inside(starts, ends, len(tokens)) and _inside(place[:-1], place[1:], len(query))):
        raise BadValue("pointers lead out of the tokens; expected positions from 0 to their number, rising")
    given = np.ascontiguousarray(query, np.float32)
    panels = np.empty((-(-len(given) // WIDTH), given.shape[1], WIDTH), np.float32)
    pack(given, panels)
    out = np.empty((len(chosen), len(query_ptr) - 1), np.float32)
    half = tokens.dtype == np.float16 and tokens.shape[1] % LANES == 0
    in_place = tokens.flags.aligned and tokens.flags.c_contiguous
    in_place = in_place and (half or tokens.dtype == np.float32)
    cuts = _cuts(ends - starts, threads, in_place)

    def part(low: int, high: int) -> None:
        own = starts[low:high], ends[low:high]
        values, first, last = (np.asarray(tokens), *own) if in_place else _copied(tokens, *own)
        score(panels, place, flat(values), half and in_place, first, last, out[low:high])

    bounds = list(itertools.pairwise(cuts))
    if threads == 1 or len(bounds) == 1:
        for low, high in bounds:
            part(low, high)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda b: part(*b), bounds))
    if not np.isfinite(out).all():
        raise BadValue("a score is not finite: the vectors hold numbers that are not, or too large ones")
    return np.ascontiguousarray(out.T)


def _inside(starts: Int64, ends: Int64, count: int) -> bool:
    """Whether pieces start:end lie among so many tokens."""
    return len(starts) == 0 or bool(starts.min() >= 0 and ends.max() <= count and (starts <= ends).all())


def flat(tokens: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The bytes of a table whose rows follow each other: a read-only view, which keeps them in memory while in use."""
    view = tokens.reshape(-1).view(np.uint8)
    view.flags.writeable = False
    return view


def _cuts(lengths: Int64, threads: int, in_place: bool) -> list[int]:
    """Where the documents are cut: a part for each thread, and parts that fit the cache where they are widened."""
    total, ends = int(lengths.sum()), np.cumsum(lengths)
    size = max(1, -(-total // threads))
    if not in_place:
        size = min(size, TOKENS)
    inner = np.searchsorted(ends, np.arange(size, total, size), side="left") + 1
    return [0, *np.unique(inner[inner < len(lengths)]).tolist(), len(lengths)]


def _copied(tokens: NDArray[Any], starts: Int64, ends: Int64) -> tuple[Float32, Int64, Int64]:
    """The tokens of some documents as floats, and where the documents are among them."""
    if len(starts) and (starts[1:] == ends[:-1]).all():
        block = tokens[int(starts[0]) : int(ends[-1])]
    else:
        block = np.concatenate([tokens[a:b] for a, b in zip(starts, ends, strict=True)] or [tokens[:0]])
    lengths = ends - starts
    stop = np.cumsum(lengths)
    return np.ascontiguousarray(block, np.float32), stop - lengths, stop
