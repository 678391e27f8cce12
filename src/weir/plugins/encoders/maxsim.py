"""Compiled kernels of late interaction: exact MaxSim, bounds from int8 vectors, the residual codec."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue
from weir.kernels.arrays import Bytes, Float32, Int32, Int64
from weir.kernels.jit import jit
from weir.kernels.simd import (
    F32,
    HAS_INT8,
    I32,
    I64,
    LANES,
    V16F,
    V16I,
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

# Residual codec of token vectors (ColBERTv2): decompression, and MaxSim over centroids alone.
#
# A vector is stored as the number of its centroid and, for each dimension, the bucket of its residual, the vector
# less its centroid. Source: Santhanam et al. 2022.


@jit
def decompress(code: Int32, packed: Bytes, centroids: Float32, table: Float32, out: Float32) -> None:
    """Write token vectors, centroid plus residual scaled to length 1 (zeros stay zero), into out,
    float32[tokens, dimensions].

    code: each token's centroid.
    packed: uint8[tokens, dimensions * bits / 8], bucket numbers, the first in the highest bits.
    table: float32[256, 8 / bits], the residuals packed in a byte.
    """
    each = table.shape[1]
    for t in range(len(code)):
        centroid = centroids[code[t]]
        length = 0.0
        for b in range(packed.shape[1]):
            part = table[packed[t, b]]
            for i in range(each):
                value = centroid[b * each + i] + part[i]
                out[t, b * each + i] = value
                length += np.float64(value) * np.float64(value)
        scale = np.float32(1.0 / np.sqrt(length)) if length > 0 else np.float32(0)
        for j in range(out.shape[1]):
            out[t, j] *= scale


@jit
def centroid_maxsim(score: Float32, code: Int32, starts: Int64, ends: Int64, out: Float32) -> None:
    """Write each document's MaxSim over its tokens' centroids into out, float32[documents]; -inf without
    tokens.

    score: float32[centroids, query tokens], products of centroids and query tokens.
    code: each token's centroid; document d has the tokens starts[d]:ends[d].
    """
    best = np.empty(score.shape[1], np.float32)
    for i in range(len(starts)):
        best[:] = -np.inf
        for t in range(starts[i], ends[i]):
            row = score[code[t]]
            for q in range(len(best)):
                best[q] = row[q] if row[q] > best[q] else best[q]
        total = 0.0
        for q in range(len(best)):
            total += np.float64(best[q])
        out[i] = np.float32(total)


# Exact MaxSim: for each token of a query the best of a document's tokens, added up.
#
#     scores = maxsim(query, query_ptr, tokens, ptr, docs=None, threads=1)
#
# Tokens stand ragged, without padding, so that nothing but a document's own tokens can be its best. A product is one
# chain of fused operations over the dimensions and the sum over a query's tokens is taken in double in their order:
# the same bits alone or in any batch. Source: Khattab and Zaharia 2020.
#
# A tile is ROWS tokens of documents, wherever they lie, times WIDTH tokens of queries, packed side by side; its sums
# stay in registers from the first dimension to the last, so documents are read where they are, memory-mapped too.

VECTORS, ROWS = (2, 12) if WIDE else (1, 6)
"""Sums of a tile in vectors of 16: 24 of the 32 registers of AVX-512, 12 of the 16 half as wide of AVX2."""
WIDTH = LANES * VECTORS
V16S = ir.VectorType(ir.IntType(16), LANES)
EXACT_BLOCK_TOKENS = 768
"""Document tokens in a block, by the size of the second-level cache."""


@intrinsic(numba.types.void)
def _best(b: Value, rows: Value, panel: Value, dimensions: Value, best: Value) -> None:
    tokens = [_load(b, rows, 8 * r, I64) for r in range(ROWS)]
    zero = ir.Constant(V16F, [0.0] * LANES)

    def step(b: Value, k: Value, sums: list[Value]) -> list[Value]:
        base, at = b.mul(k, I64(4 * WIDTH)), b.mul(k, I64(4))
        queries = [_load(b, panel, b.add(base, I64(64 * v)), V16F) for v in range(VECTORS)]
        products = []
        for r in range(ROWS):
            value = _splat(b, _load(b, tokens[r], at, F32))
            for v in range(VECTORS):
                factors = [queries[v], value, sums[r * VECTORS + v]]
                products.append(_call(b, "llvm.fma.v16f32", V16F, factors))
        return products

    sums = _loop(b, dimensions, [zero] * (ROWS * VECTORS), step)
    for v in range(VECTORS):
        top = _load(b, best, 64 * v, V16F)
        for product in sums[v::VECTORS]:
            top = _call(b, "llvm.maximum.v16f32", V16F, [top, product])
        _store(b, top, best, 64 * v)


def floats(b: Value, address: Value, offset: Value, half: bool) -> Value:
    """Emit code that loads sixteen float32 (converted from float16 if `half`) from the number `offset` on."""
    if not half:
        return _load(b, address, b.shl(offset, I64(2)), V16F)
    value = b.load(_at(b, address, b.shl(offset, I64(1)), V16S))
    value.align = 2
    return _single(b, value)


@intrinsic(numba.types.void)
def _widen(b: Value, row: Value, dimensions: Value, out: Value) -> None:

    def step(b: Value, i: Value, state: list[Value]) -> list[Value]:
        at = b.shl(i, I64(4))
        _store(b, floats(b, row, at, True), out, b.shl(at, I64(2)))
        return []

    _loop(b, b.lshr(dimensions, I64(4)), [], step)


@jit
def pack(query: Float32, panels: Float32) -> None:
    """Write query tokens, float32[n, d], into panels, float32[ceil(n / WIDTH), d, WIDTH], padded with zeros."""
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
    """Write the MaxSim of every document and query into out, float32[documents, queries].

    panels: query tokens as `pack` writes them. Query q has the tokens query_ptr[q]:query_ptr[q + 1].
    tokens: bytes of all tokens; document i has the tokens starts[i]:ends[i], at least one.
    half: tokens are float16, of a multiple of 16 dimensions, instead of float32.
    """
    dimensions, width = panels.shape[1], len(panels) * WIDTH
    stride = np.int64(dimensions * (2 if half else 4))
    longest = np.int64(0)
    for i in range(len(starts)):
        longest = max(longest, ends[i] - starts[i])
    rows = np.empty(EXACT_BLOCK_TOKENS + longest + 2 * ROWS, np.int64)
    tile_ptr = np.zeros(EXACT_BLOCK_TOKENS // ROWS + 2, np.int64)
    best = np.empty((len(tile_ptr), width), np.float32)
    wide = np.empty((len(rows) if half else 0, dimensions), np.float32)
    first = 0
    while first < len(starts):
        count, last = np.int64(0), first
        while last < len(starts) and count < EXACT_BLOCK_TOKENS:
            for t in range(starts[last], ends[last]):
                rows[count] = tokens.ctypes.data + t * stride
                if half:
                    # Its address is asked for here and not before: numba frees an array after its last use.
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
    """Return the MaxSim of every query and document, float32[queries, documents]: 0 for a query without tokens.

    query: float[tokens, d]. Query q has the rows query_ptr[q]:query_ptr[q + 1].
    tokens: float[tokens, d], perhaps memory-mapped. Document i has the rows ptr[i]:ptr[i + 1].
    docs: documents to score; None takes all.

    Raises BadValue for a document without tokens, other dimensions, and numbers that are not finite.
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
    queries = np.ascontiguousarray(query, np.float32)
    panels = np.empty((-(-len(queries) // WIDTH), queries.shape[1], WIDTH), np.float32)
    pack(queries, panels)
    out = np.empty((len(chosen), len(query_ptr) - 1), np.float32)
    half = tokens.dtype == np.float16 and tokens.shape[1] % LANES == 0
    in_place = tokens.flags.aligned and tokens.flags.c_contiguous
    in_place = in_place and (half or tokens.dtype == np.float32)
    # A part for each thread, or parts that fit the cache where tokens are widened.
    lengths = ends - starts
    total = int(lengths.sum())
    size = max(1, -(-total // threads))
    if not in_place:
        size = min(size, EXACT_BLOCK_TOKENS)
    inner = np.searchsorted(np.cumsum(lengths), np.arange(size, total, size), side="left") + 1
    cuts = [0, *np.unique(inner[inner < len(lengths)]).tolist(), len(lengths)]

    def part(span: tuple[int, int]) -> None:
        low, high = span
        first, last = starts[low:high], ends[low:high]
        if in_place:
            score(panels, place, flat(np.asarray(tokens)), half, first, last, out[low:high])
            return
        if len(first) and (first[1:] == last[:-1]).all():
            block = tokens[int(first[0]) : int(last[-1])]
        else:
            block = np.concatenate([tokens[a:b] for a, b in zip(first, last, strict=True)] or [tokens[:0]])
        stop = np.cumsum(last - first)
        copied = flat(np.ascontiguousarray(block, np.float32))
        score(panels, place, copied, False, stop - (last - first), stop, out[low:high])

    _each(part, cuts, threads)
    if not np.isfinite(out).all():
        raise BadValue("a score is not finite: the vectors hold numbers that are not, or too large ones")
    return np.ascontiguousarray(out.T)


def _inside(starts: Int64, ends: Int64, count: int) -> bool:
    return len(starts) == 0 or bool(starts.min() >= 0 and ends.max() <= count and (starts <= ends).all())


def flat(tokens: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous array as a read-only view."""
    view = tokens.reshape(-1).view(np.uint8)
    view.flags.writeable = False
    return view


def _each(part: Callable[[tuple[int, int]], None], cuts: list[int], threads: int) -> None:
    spans = list(itertools.pairwise(cuts))
    if threads == 1 or len(spans) == 1:
        for span in spans:
            part(span)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, spans))


# MaxSim of int8 quantised token vectors: approximate scores and a bound of their errors.
#
# A token vector becomes bytes and a step, its largest magnitude over 127. With q and d near their bytes q~ and d~,
# |q.d - q~.d~| <= |q~| |d - d~| + |q - q~| |d|, by Cauchy and Schwarz; what is best of a document's tokens is off by
# no more than the worst of them, and a score by no more than the sum over the query's tokens.

SHORTEST, LONGEST = 1e-10, 1e10
"""Norms of a longest vector within which float32 squares and products neither underflow nor overflow; shorter vectors
of its query or document are off by less than its rounding allows."""
BOUND_BLOCK_TOKENS = 1536
"""Document tokens in a block, by the size of the second-level cache."""

V16B = ir.VectorType(ir.IntType(8), LANES)


def _reduced(b: Value, vector: Value, join: str) -> Value:
    size = LANES
    while size > 1:
        size //= 2
        low, high = (ir.Constant(ir.VectorType(I32, size), list(range(s, s + size))) for s in (0, size))
        x, y = b.shuffle_vector(vector, vector, low), b.shuffle_vector(vector, vector, high)
        if join == "max":
            vector = _call(b, f"llvm.maximum.v{size}f32", x.type, [x, y])
        else:
            vector = b.fadd(x, y) if vector.type.element == F32 else b.add(x, y)
    return b.extract_element(vector, I32(0))


def _bytes(b: Value, arguments: list[Value], half: bool) -> None:
    row, dimensions, out, facts = arguments
    steps = b.lshr(dimensions, I64(4))
    zero, zeros = ir.Constant(V16F, [0.0] * LANES), ir.Constant(V16I, [0] * LANES)

    def greatest(b: Value, i: Value, state: list[Value]) -> list[Value]:
        x = floats(b, row, b.shl(i, I64(4)), half)
        size = _call(b, "llvm.fabs.v16f32", V16F, [x])
        return [
            _call(b, "llvm.maximum.v16f32", V16F, [state[0], size]),
            _call(b, "llvm.fma.v16f32", V16F, [x, x, state[1]]),
        ]

    tops, squares = _loop(b, steps, [zero, zero], greatest)
    top, square = _reduced(b, tops, "max"), _reduced(b, squares, "sum")
    some = b.fcmp_ordered(">", top, F32(0.0))
    step = b.fdiv(top, F32(127.0))
    inverse = b.select(some, b.fdiv(F32(127.0), top), F32(0.0))
    by, back = _splat(b, inverse), _splat(b, step)
    most, least = (ir.Constant(V16F, [v] * LANES) for v in (127.0, -127.0))

    def written(b: Value, i: Value, state: list[Value]) -> list[Value]:
        at = b.shl(i, I64(4))
        x = floats(b, row, at, half)
        whole = _call(b, "llvm.rint.v16f32", V16F, [b.fmul(x, by)])
        whole = _call(b, "llvm.minnum.v16f32", V16F, [whole, most])  # and what is no number becomes one
        whole = _call(b, "llvm.maxnum.v16f32", V16F, [whole, least])
        number = b.fptosi(whole, V16I)
        place = _at(b, out, at, V16B)
        b.store(b.trunc(number, V16B), place).align = 1
        off = b.fsub(x, b.fmul(whole, back))
        return [_call(b, "llvm.fma.v16f32", V16F, [off, off, state[0]]), b.add(state[1], number)]

    off, total = _loop(b, steps, [zero, zeros], written)
    _store(b, step, facts, 0)
    _store(b, square, facts, 4)
    _store(b, _reduced(b, off, "sum"), facts, 8)
    _store(b, _reduced(b, total, "sum"), facts, 12)


@intrinsic(numba.types.void)
def _from_floats(b: Value, row: Value, dimensions: Value, out: Value, facts: Value) -> None:
    return _bytes(b, [row, dimensions, out, facts], half=False)


@intrinsic(numba.types.void)
def _from_halves(b: Value, row: Value, dimensions: Value, out: Value, facts: Value) -> None:
    return _bytes(b, [row, dimensions, out, facts], half=True)


@intrinsic(numba.types.void)
def _best_bytes(b: Value, rows: Value, facts: Value, panel: Value, groups: Value, best: Value) -> None:
    if not HAS_INT8:
        return  # never called
    tokens = [_load(b, rows, 8 * r, I64) for r in range(ROWS)]
    about = [_load(b, facts, 8 * r, I64) for r in range(ROWS)]
    # The bytes of queries are unsigned, 128 too large: so much is taken off beforehand.
    start = [_splat(b, b.mul(_load(b, f, 12, I32), I32(-128))) for f in about]

    def step(b: Value, k: Value, sums: list[Value]) -> list[Value]:
        base, at = b.mul(k, I64(4 * WIDTH)), b.shl(k, I64(2))
        queries = [_load(b, panel, b.add(base, I64(64 * v)), V16I) for v in range(VECTORS)]
        products = []
        for r in range(ROWS):
            value = _splat(b, _load(b, tokens[r], at, I32))
            for v in range(VECTORS):
                terms = [sums[r * VECTORS + v], queries[v], value]
                products.append(_call(b, "llvm.x86.avx512.vpdpbusd.512", V16I, terms))
        return products

    sums = _loop(b, groups, [start[r] for r in range(ROWS) for _ in range(VECTORS)], step)
    steps = [_splat(b, _load(b, f, 0, F32)) for f in about]
    for v in range(VECTORS):
        top = _load(b, best, 64 * v, V16F)
        for r in range(ROWS):
            product = b.fmul(b.sitofp(sums[r * VECTORS + v], V16F), steps[r])
            top = _call(b, "llvm.maximum.v16f32", V16F, [top, product])
        _store(b, top, best, 64 * v)


@jit
def pack_bytes(query: Float32, panels: NDArray[np.uint8], facts: Float32) -> None:
    """Write query tokens, float32[n, d], as int8 steps + 128 into panels, uint8[ceil(n / WIDTH), d / 4, WIDTH,
    4], padded with 128.

    facts: float32[n, 4], receives step size, squared norm, squared rounding error, and the sum of the int8 as
        the bits of an int32.
    """
    d = query.shape[1]
    row = np.empty(d, np.int8)
    for t in range(len(panels) * WIDTH):
        if t < len(query):
            _from_floats(query.ctypes.data + t * query.strides[0], d, row.ctypes.data, facts[t].ctypes.data)
        else:
            row[:] = 0
        for g in range(d // 4):
            for j in range(4):
                panels[t // WIDTH, g, t % WIDTH, j] = np.uint8(np.int32(row[4 * g + j]) + 128)


@jit
def estimate(
    panels: NDArray[np.uint8],
    unit: Float32,
    query_ptr: Int64,
    tokens: NDArray[np.uint8],
    half: bool,
    starts: Int64,
    ends: Int64,
    out: Float32,
    off: Float32,
) -> None:
    """Write the approximate MaxSim of every document and query into out, float32[documents, queries].

    panels: query tokens as `pack_bytes` writes them. Query q has the tokens query_ptr[q]:query_ptr[q + 1].
    unit: step size of each query token.
    tokens: bytes of all tokens of documents, float16 if `half`, else float32. Document i has the tokens
        starts[i]:ends[i].
    off: float32[documents, 2], receives the largest error and norm of a document's tokens, inf if not finite.
    """
    groups, width = panels.shape[1], len(panels) * WIDTH
    dimensions = 4 * groups
    stride = np.int64(dimensions * (2 if half else 4))
    longest = np.int64(0)
    for i in range(len(starts)):
        longest = max(longest, ends[i] - starts[i])
    room = BOUND_BLOCK_TOKENS + longest + 2 * ROWS
    small, facts = np.empty((room, dimensions), np.int8), np.empty((room, 4), np.float32)
    rows, about = np.empty(room, np.int64), np.empty(room, np.int64)
    tile_ptr = np.zeros(BOUND_BLOCK_TOKENS // ROWS + 2, np.int64)
    best = np.empty((len(tile_ptr), width), np.float32)
    first = 0
    while first < len(starts):
        count, last = np.int64(0), first
        while last < len(starts) and count < BOUND_BLOCK_TOKENS:
            distance, length = np.float32(0), np.float32(0)
            for t in range(starts[last], ends[last]):
                rows[count] = small.ctypes.data + count * dimensions
                about[count] = facts.ctypes.data + count * 16
                token = tokens.ctypes.data + t * stride
                if half:
                    _from_halves(token, dimensions, rows[count], about[count])
                else:
                    _from_floats(token, dimensions, rows[count], about[count])
                length = max(length, facts[count, 1]) if facts[count, 1] < np.inf else np.float32(np.inf)
                distance = max(distance, facts[count, 2])
                count += 1
            off[last, 0], off[last, 1] = np.sqrt(distance), np.sqrt(length)
            while count % ROWS:  # filled up with the document's own last token, which changes no maximum
                rows[count], about[count] = rows[count - 1], about[count - 1]
                count += 1
            last += 1
            tile_ptr[last - first] = count // ROWS
        best[: last - first] = -np.inf
        rows_at, about_at, best_at = rows.ctypes.data, about.ctypes.data, best.ctypes.data
        for p in range(len(panels)):
            panel = panels.ctypes.data + p * panels.strides[0]
            for i in range(last - first):
                top = best_at + i * best.strides[0] + 4 * WIDTH * p
                for t in range(tile_ptr[i], tile_ptr[i + 1]):
                    _best_bytes(rows_at + 8 * ROWS * t, about_at + 8 * ROWS * t, panel, groups, top)
        for i in range(last - first):
            for q in range(len(query_ptr) - 1):
                total = 0.0
                for t in range(query_ptr[q], query_ptr[q + 1]):
                    total += np.float64(best[i, t]) * np.float64(unit[t])
                out[first + i, q] = np.float32(total)
        first = last


def can_quantise(tokens: NDArray[np.floating]) -> bool:
    """Return True if `bounds` can read these tokens: contiguous float16 or float32, on a CPU with AVX-512 and
    VNNI.
    """
    plain = tokens.dtype in (np.float16, np.float32) and tokens.shape[1] % LANES == 0
    return HAS_INT8 and plain and tokens.flags.aligned and tokens.flags.c_contiguous


def bounds(
    query: Float32,
    query_ptr: Int64,
    tokens: NDArray[np.floating],
    starts: Int64,
    ends: Int64,
    threads: int = 1,
) -> tuple[Float32, Float32]:
    """Return (approximate MaxSim by int8 vectors, bounds of its error against `maxsim`), float32[queries,
    documents] each.

    query: float[tokens, d]. Query q has the rows query_ptr[q]:query_ptr[q + 1].
    tokens: float[tokens, d]; document i has the rows starts[i]:ends[i].

    A bound is inf for norms outside SHORTEST and LONGEST.
    """
    d = tokens.shape[1]
    queries = np.ascontiguousarray(query, np.float32)
    panels = np.empty((-(-len(queries) // WIDTH), d // 4, WIDTH, 4), np.uint8)
    facts = np.empty((len(queries), 4), np.float32)
    pack_bytes(queries, panels, facts)
    out = np.empty((len(starts), len(query_ptr) - 1), np.float32)
    off = np.empty((len(starts), 2), np.float32)
    unit, place = np.ascontiguousarray(facts[:, 0]), np.asarray(query_ptr, np.int64)
    values, half = flat(tokens), tokens.dtype == np.float16

    def part(span: tuple[int, int]) -> None:
        low, high = span
        of_span = starts[low:high], ends[low:high], out[low:high], off[low:high]
        estimate(panels, unit, place, values, half, *of_span)

    _each(part, np.linspace(0, len(starts), threads + 1).astype(np.int64).tolist(), threads)
    length, distance = (np.sqrt(facts[:, c].astype(np.float64)) for c in (1, 2))
    some, open_docs = np.diff(place) > 0, _beyond(off[:, 1])
    open_queries = np.zeros(len(some), np.bool_)
    if some.any():
        open_queries[some] = _beyond(np.maximum.reduceat(length[: place[-1]], place[:-1][some]))
    length[_beyond(length)] = distance[_beyond(length)] = 0.0
    off[open_docs], out[open_docs], out[:, open_queries] = 0.0, 0.0, 0.0
    running = (np.concatenate([np.zeros(1), np.cumsum(v)]) for v in (length + distance, distance, length))
    near, far, whole = ((total[place[1:]] - total[place[:-1]])[:, None] for total in running)
    rounding = (d + 16) * 2.0**-23  # of the products here and there, and of the facts themselves
    most = near * off[:, 0] * (1 + 1e-4) + (far * (1 + 1e-4) + whole * rounding) * off[:, 1]
    most[open_queries], most[:, open_docs] = np.inf, np.inf
    return np.ascontiguousarray(out.T), most.astype(np.float32) * np.float32(1 + 1e-6)


def _beyond(longest: NDArray[np.floating]) -> NDArray[np.bool_]:
    return ~((longest >= SHORTEST) & (longest <= LONGEST))


def compile_all() -> None:
    """Compile every kernel, or load it from the cache."""
    tokens, cuts = np.linspace(-1, 1, 12 * 16, dtype=np.float32).reshape(12, 16), np.array([0, 4, 12])
    for values in (tokens, tokens.astype(np.float16)):
        maxsim(tokens[:4], np.array([0, 4]), values, cuts)
        if can_quantise(values):
            bounds(tokens[:4], np.array([0, 4]), values, cuts[:-1], cuts[1:])
    code, wide = np.zeros(12, np.int32), np.empty((12, 16), np.float32)
    decompress(code, np.zeros((12, 4), np.uint8), tokens, np.zeros((256, 4), np.float32), wide)
    centroid_maxsim(tokens, code, cuts[:-1], cuts[1:], np.empty(2, np.float32))
