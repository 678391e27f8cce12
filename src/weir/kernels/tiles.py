"""Tiles of products of matrices in registers, and what follows a product, done before its sums leave them.

A tile is ROWS rows times up to PANEL columns. A row is read 4 bytes at a time: one float32, two bfloat16 or four
unsigned bytes; a matrix stands in panels of PANEL columns in which as many numbers of a column lie together, so
that one instruction multiplies and adds them all. Source of the shape: Goto and van de Geijn 2008, Anatomy of
high-performance matrix multiplication. Addresses are integers; every sum is taken in one order, whatever stands
in the other rows.
"""

from __future__ import annotations

from typing import Any

from weir.errors import require
from weir.kernels.jit import jit
from weir.kernels.lanes import F32, HAS_BF16, HAS_INT8, I32, I64, INT, V16F, V16I, WIDE, Lanes

__all__ = [
    "ADD",
    "BF16",
    "FLOAT32",
    "GELU",
    "INT8",
    "PANEL",
    "ROWS",
    "STORE",
    "TANH",
    "VECTORS",
    "share",
    "tile",
]

intrinsic = require("numba.extending", extra="run").intrinsic

ROWS = 6
VECTORS = 4 if WIDE else 1
"""Sums of a row in vectors of 16: 24 of the 32 registers of AVX-512, 12 of the 16 half as wide of AVX2."""
PANEL = 16 * VECTORS
FLOAT32, BF16, INT8 = 0, 1, 2
STORE, ADD, GELU, TANH = 0, 1, 2, 3
THERE = {"float": True, "bf16": HAS_BF16, "int8": HAS_INT8}
Value = Any


def _sums(x: Lanes, kind: str, vectors: int, arguments: list[Value], start: list[Value]) -> list[Value]:
    """The sums of a tile, row by row, begun at `start`, one for each vector of columns."""
    a, stride, panel, step, groups = arguments
    b = x.b
    rows = [b.add(a, b.mul(stride, I64(r))) for r in range(ROWS)]

    def body(i: Value, sums: list[Value]) -> list[Value]:
        at, base = b.shl(i, I64(2)), b.add(panel, b.mul(i, step))
        columns = [x.load(base, 64 * v, V16F if kind == "float" else V16I) for v in range(vectors)]
        found = []
        for r in range(ROWS):
            one = x.splat(x.load(b.add(rows[r], at), 0, F32 if kind == "float" else I32))
            held = sums[r * vectors : (r + 1) * vectors]
            found += [x.multiply_add(kind, one, c, s) for c, s in zip(columns, held, strict=True)]
        return found

    return x.loop(groups, start * ROWS, body)


def _tile(b: Value, kind: str, finish: str, vectors: int, arguments: list[Value]) -> Value:
    """A tile whose sums begin at the columns' facts, or are scaled by them (int8), finished and written."""
    x = Lanes(b)
    *product, columns, row, other, out, stride = arguments
    if kind == "int8":
        start = [x.whole(0)] * vectors
    elif finish == "share":
        start = [x.constant(0.0)] * vectors
    else:
        start = [x.load(columns, 64 * v, V16F) for v in range(vectors)]
    sums = _sums(x, kind, vectors, product, start)
    for r in range(ROWS):
        here = b.mul(stride, I64(r))
        scale, least = (x.splat(x.load(row, 8 * r + at, F32)) for at in (0, 4)) if kind == "int8" else (0, 0)
        for v in range(vectors):
            y = sums[r * vectors + v]
            if kind == "int8":
                worth, total, bias = (x.load(columns, 4 * PANEL * n + 64 * v, V16F) for n in range(3))
                y = x.fma(b.sitofp(y, V16F), b.fmul(scale, worth), x.fma(least, total, bias))
            if finish == "add":
                y = b.fadd(y, x.load(b.add(other, here), 64 * v, V16F))
            elif finish == "share":
                y = b.fmul(y, x.splat(x.load(row, 4 * r, F32)))
            elif finish == "tanh":
                y = x.gelu_tanh(y)
            elif finish.startswith("gelu"):
                y = x.gelu(y) if kind == "float" else x.gelu_short(y)
            if finish.endswith("half"):
                x.store_half(y, b.add(out, here), 32 * v)
            else:
                x.store(y, b.add(out, here), 64 * v)
    return I64(0)


def _made(kind: str, finish: str, vectors: int = VECTORS) -> Any:  # noqa: ANN401 - numba's own type
    there = THERE[kind] and (HAS_BF16 or not finish.endswith("half"))

    @intrinsic
    def made(context, a, stride, panel, step, groups, columns, row, other, out, out_stride):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - numba's own protocol
        def generate(context, b, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - numba's own protocol
            return _tile(b, kind, finish, vectors, arguments) if there else I64(0)  # elsewhere never called

        return INT(*[INT] * 10), generate

    return made


float_store, float_add, float_gelu, float_tanh = (_made("float", f) for f in ("store", "add", "gelu", "tanh"))
bf16_store, bf16_half, bf16_add, bf16_gelu = (_made("bf16", f) for f in ("store", "half", "add", "gelu half"))
int8_add, int8_gelu = (_made("int8", f) for f in ("add", "gelu"))
float_share1, float_share2, float_share3, float_share4 = (_made("float", "share", n) for n in (1, 2, 3, 4))
bf16_share1, bf16_share2, bf16_share3, bf16_share4 = (_made("bf16", "share", n) for n in (1, 2, 3, 4))


@jit
def tile(kind: int, finish: int, half: int, x: tuple[int, ...]) -> None:
    """One tile; x: address and stride of rows, address and step of a panel, how often to read 4 bytes of a row,
    facts of columns and rows, what to add, where to write, and the stride of both in bytes.

    kind: FLOAT32, BF16 or INT8; finish: STORE (not INT8), ADD, GELU, TANH; half: STORE writes bfloat16 (BF16).
    GELU writes what the next product reads, except for INT8, where a row's bytes need all of its columns. Facts:
    a bias for each column; INT8: worth of a step, worth of the column's sum, bias, and for each row worth of a
    step, least.
    """
    if kind == FLOAT32:
        if finish == STORE:
            float_store(*x)
        elif finish == ADD:
            float_add(*x)
        elif finish == GELU:
            float_gelu(*x)
        else:
            float_tanh(*x)
    elif kind == BF16:
        if finish == ADD:
            bf16_add(*x)
        elif finish != STORE:
            bf16_gelu(*x)
        elif half:
            bf16_half(*x)
        else:
            bf16_store(*x)
    elif finish == ADD:
        int8_add(*x)
    else:
        int8_gelu(*x)


@jit
def share(kind: int, vectors: int, x: tuple[int, ...]) -> None:
    """As `tile`, without facts of columns, 16 columns for each of `vectors`; each row is multiplied by its fact."""
    if kind == FLOAT32:
        if vectors == 1:
            float_share1(*x)
        elif vectors == 2:
            float_share2(*x)
        elif vectors == 3:
            float_share3(*x)
        else:
            float_share4(*x)
    elif vectors == 1:
        bf16_share1(*x)
    elif vectors == 2:
        bf16_share2(*x)
    elif vectors == 3:
        bf16_share3(*x)
    else:
        bf16_share4(*x)
