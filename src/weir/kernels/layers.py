"""The layers of a BERT-like encoder over packed tokens, from the first product to the last norm.

Rows go through what follows attention in chunks that stay in the cache; every text attends to itself alone. What a
text becomes depends on no other text: the same bits alone and in any batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.rows import (
    bytes_row,
    copy_row,
    float_powers,
    half_powers,
    half_row,
    norm_row,
    paired,
    turned,
)
from weir.kernels.tiles import ADD, BF16, FLOAT32, GELU, INT8, PANEL, ROWS, STORE, TANH, VECTORS, share, tile

__all__ = ["CHUNK", "MORE", "Shape", "Space", "embedded", "forward", "multiplied", "norms"]

Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]

MORE = 16
"""Rows behind the last token that may be read, and of which ROWS may be written."""
CHUNK = 16 * ROWS
"""Rows that go through a layer together."""


class Shape(NamedTuple):
    """Of a model: kind of its products (FLOAT32, BF16 or INT8); half: 1 where queries, keys, values and attention
    are bfloat16, else float32; tanh: 1 for that form of GELU; heads, the size of each, the width of the inner
    layer, eps of the norms.
    """

    kind: int
    half: int
    tanh: int
    heads: int
    size: int
    inner: int
    eps: float


class Space(NamedTuple):
    """Work space for T tokens, the longest text of L, in R = T + MORE rows; uint8 stands for bytes of other types.

    rows: [R, width], what the first product reads; qkv: int32[R, 3 * width], or half of that in bfloat16; context:
    [R, width]; chunk, wide, narrow: CHUNK rows between the other products, and facts of them, [CHUNK, 2]; keys,
    values: of one head, in panels; scores: [ROWS, L], shares: bytes of them; mask: [L]; powers: [ROWS]. L is
    rounded up to 64.
    """

    rows: NDArray[np.uint8]
    qkv: NDArray[np.int32]
    context: NDArray[np.float32]
    chunk: NDArray[np.uint8]
    wide: NDArray[np.uint8]
    narrow: NDArray[np.uint8]
    facts: NDArray[np.float32]
    keys: NDArray[np.int32]
    values: NDArray[np.int32]
    scores: NDArray[np.float32]
    shares: NDArray[np.uint8]
    mask: NDArray[np.float32]
    powers: NDArray[np.float32]


@jit
def forward(shape: Shape, layers: Int64, ptr: Int64, h: Float32, bias: Float32, space: Space) -> None:
    """The states h float32[R, width] of texts ptr[i]:ptr[i + 1] after all layers, in place.

    layers: int64[n, 20], for each of four matrices the addresses of its panels and of their facts, bytes of a
    row, number of panels; then the addresses of two norms' gains and shifts. bias: float32[heads, L + ROWS, L]
    added to the scores, or of no size.
    """
    width, kind = shape.heads * shape.size, BF16 if shape.half else FLOAT32
    for first in range(0, ptr[-1], CHUNK):
        _operands(kind, min(CHUNK, ptr[-1] - first), width, at(h, first), _read(shape, space, first), 0)
    for n in range(len(layers)):
        matrices, norms = layers[n, :16].reshape(4, 4), layers[n, 16:]
        for first in range(0, ptr[-1], CHUNK):
            out, stride = at(space.qkv, first), 4 * space.qkv.shape[1]
            given = (min(CHUNK, ptr[-1] - first), _read(shape, space, first), 0, 0, out, stride)
            multiplied(kind, STORE, shape.half, matrices[0], given)
        for text in range(len(ptr) - 1):
            if ptr[text + 1] > ptr[text]:
                _attend(shape, ptr[text], ptr[text + 1] - ptr[text], bias, space)
        for first in range(0, ptr[-1], CHUNK):
            _rest(shape, matrices, norms, first, min(CHUNK, ptr[-1] - first), h, space)


@jit
def multiplied(kind: int, finish: int, half: int, matrix: Int64, given: tuple[int, ...]) -> None:
    """Rows times a matrix, finished as `tile` says; given: rows, their address, their facts, what to add, where to
    write, and the stride of both in bytes.
    """
    rows, a, facts, other, out, out_stride = given
    panels, columns, stride, count = matrix[0], matrix[1], matrix[2], matrix[3]
    groups = stride >> 2
    width = 4 * PANEL * (3 if kind == INT8 else 1)
    item = 4 * PANEL
    if (finish == STORE and half) or (kind == BF16 and finish >= GELU):
        item = 2 * PANEL
    for p in range(count):
        panel = (panels + p * (groups * 4 * PANEL), 4 * PANEL, groups, columns + p * width)
        for i in range(0, rows, ROWS):
            to = i * out_stride + p * item
            tile(
                kind,
                finish,
                half,
                (a + i * stride, stride, *panel, facts + 8 * i, other + to, out + to, out_stride),
            )


@jit
def at(array: NDArray[Any], row: int) -> int:
    """The address of a row of an array."""
    return np.int64(array.ctypes.data) + np.int64(row) * np.int64(array.strides[0])


@jit
def _read(shape: Shape, space: Space, first: int) -> int:
    """The address of what the first product reads from this row on."""
    return at(space.rows, first * shape.heads * shape.size * (4 >> shape.half))


@jit
def _operands(kind: int, rows: int, width: int, x: int, out: int, facts: int) -> None:
    """Rows of floats as what products read."""
    for i in range(rows):
        if kind == BF16:
            half_row(x + 4 * width * i, width >> 6, out + 2 * width * i)
        elif kind == INT8:
            bytes_row(x + 4 * width * i, width >> 6, out + width * i, facts + 8 * i)
        else:
            copy_row(x + 4 * width * i, width >> 4, out + 4 * width * i)


@jit
def norms(x: Float32, rows: int, gain: Float32, shift: Float32, eps: float) -> None:
    """The first rows of a table float32[R, n], normalised in place."""
    _norms(rows, x.shape[1], at(x, 0), at(gain, 0), at(shift, 0), eps)


@jit
def _norms(rows: int, width: int, x: int, gain: int, shift: int, eps: float) -> None:
    part = np.float32(1) / np.float32(width)
    for i in range(rows):
        norm_row(x + 4 * width * i, width >> 6, gain, shift, part, np.float32(eps))


@jit
def _rest(
    shape: Shape, matrices: Int64, norms: Int64, first: int, rows: int, h: Float32, space: Space
) -> None:
    """What a layer does with the contexts of some rows: a product, and the two wide ones, each with sum and norm."""
    kind, width, inner = shape.kind, shape.heads * shape.size, shape.inner
    x, read, facts, stride = at(h, first), at(space.chunk, 0), at(space.facts, 0), 4 * width
    _operands(kind, rows, width, at(space.context, first), read, facts)
    multiplied(kind, ADD, 0, matrices[1], (rows, read, facts, x, x, stride))
    _norms(rows, width, x, norms[0], norms[1], shape.eps)
    _operands(kind, rows, width, x, read, facts)
    wide, finish = at(space.wide, 0), TANH if shape.tanh else GELU
    multiplied(kind, finish, 0, matrices[2], (rows, read, facts, 0, wide, inner * (2 if kind == BF16 else 4)))
    if kind == INT8:
        _operands(kind, rows, inner, wide, at(space.narrow, 0), facts)
        wide = at(space.narrow, 0)
    multiplied(kind, ADD, 0, matrices[3], (rows, wide, facts, x, x, stride))
    _norms(rows, width, x, norms[2], norms[3], shape.eps)
    _operands(BF16 if shape.half else FLOAT32, rows, width, x, _read(shape, space, first), 0)


@jit
def _attend(shape: Shape, begin: int, length: int, bias: Float32, space: Space) -> None:
    """The contexts of one text: for each head the shares that its tokens give each other, times their values."""
    space.mask[:length] = 0
    space.mask[length:] = np.float32(-1e30)
    for head in range(shape.heads):
        _lay_out(shape, head, begin, length, space)
        for i in range(0, length, ROWS):
            _shares(shape, head, begin, i, length, bias, space)
            _contexts(shape, head, begin + i, length, space)


@jit
def _lay_out(shape: Shape, head: int, begin: int, length: int, space: Space) -> None:
    """The keys and values of a text's head in panels."""
    heads, size = shape.heads, shape.size
    groups = size >> shape.half
    start, stride = at(space.qkv, begin), at(space.qkv, 1) - at(space.qkv, 0)
    key, value = start + 4 * (heads + head) * groups, start + 4 * (2 * heads + head) * groups
    for i in range(0, length, 16):
        out = at(space.keys, (i // PANEL) * groups * PANEL + i % PANEL)
        for g in range(0, groups, 16):
            turned(key + i * stride + 4 * g, stride, out + 4 * g * PANEL, 4 * PANEL)
    if shape.half:
        for i in range(0, length, 2):
            paired(value + i * stride, stride, size >> 4, at(space.values, (i >> 1) * size))
    else:
        for i in range(length):
            copy_row(value + i * stride, size >> 4, at(space.values, i * size))


@jit
def _shares(
    shape: Shape, head: int, begin: int, first: int, length: int, bias: Float32, space: Space
) -> None:
    """What each of ROWS tokens gives to all of its text, not yet divided by its sum."""
    groups, panels = shape.size >> shape.half, (length + PANEL - 1) // PANEL
    stride, wide = 4 * space.qkv.shape[1], at(space.scores, 1) - at(space.scores, 0)
    query = at(space.qkv, begin + first) + 4 * head * groups
    kind = BF16 if shape.half else FLOAT32
    for p in range(panels):
        panel = (at(space.keys, p * groups * PANEL), 4 * PANEL, groups, at(space.mask, p * PANEL))
        tile(kind, STORE, 0, (query, stride, *panel, 0, 0, at(space.scores, 0) + 4 * PANEL * p, wide))
    if bias.size:
        for r in range(ROWS):
            for j in range(length):
                space.scores[r, j] += bias[head, first + r, j]
    vectors = (length + 15) >> 4
    for r in range(ROWS):
        if shape.half:
            half_powers(at(space.scores, r), vectors, at(space.shares, r), at(space.powers, r))
        else:
            float_powers(at(space.scores, r), vectors, at(space.shares, r), at(space.powers, r))


@jit
def _contexts(shape: Shape, head: int, row: int, length: int, space: Space) -> None:
    """The shares of ROWS tokens times the values of their text."""
    size = shape.size
    vectors = VECTORS
    while (size >> 4) % vectors:
        vectors -= 1
    shares, stride = at(space.shares, 0), at(space.shares, 1) - at(space.shares, 0)
    kind, inner = (BF16, (length + 1) >> 1) if shape.half else (FLOAT32, length)
    for c in range(0, size, 16 * vectors):
        out = at(space.context, row) + 4 * (head * size + c)
        values = (at(space.values, c), 4 * size, inner)
        share(
            kind, vectors, (shares, stride, *values, 0, at(space.powers, 0), 0, out, 4 * shape.heads * size)
        )


@jit
def embedded(
    ids: NDArray[np.int32], places: Int64, words: Float32, positions: Float32, segments: Float32, out: Float32
) -> None:
    """The sums of a word's, a position's and a segment's row for each token; places: int64[T, 2] of the latter."""
    for i in range(len(ids)):
        word, position, segment = words[ids[i]], positions[places[i, 0]], segments[places[i, 1]]
        for j in range(out.shape[1]):
            out[i, j] = word[j] + position[j] + segment[j]
