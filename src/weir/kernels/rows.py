"""Rows of float32 between an encoder's products: norms, softmax, and rows as bfloat16 or bytes.

A row as bytes has a scale and a least value: x = least + scale * byte, bytes from 0 to 255. Sums run in four times
sixteen lanes, in one order whatever the other rows are. Addresses are integers.
"""

from __future__ import annotations

from typing import Any

from weir.errors import require
from weir.kernels.lanes import F32, FLOAT, HAS_BF16, I64, INT, V16B, V16F, V16I, V16S, Lanes

__all__ = ["bytes_row", "copy_row", "float_powers", "half_powers", "half_row", "norm_row", "paired", "turned"]

intrinsic = require("numba.extending", extra="run").intrinsic

SIDE = 4
"""Vectors of 16 that a step takes side by side."""
Value = Any


def _sum(x: Lanes, parts: list[Value]) -> Value:
    """Four vectors added up to one number."""
    b = x.b
    both = b.fadd(b.fadd(parts[0], parts[1]), b.fadd(parts[2], parts[3]))
    return x.across(both, b.fadd)


def _norm(b: Value, arguments: list[Value]) -> Value:
    x = Lanes(b)
    row, groups, gain, shift, share, eps = arguments
    none = [x.constant(0.0)] * SIDE

    def plain(i: Value, sums: list[Value]) -> list[Value]:
        at = b.add(row, b.shl(i, I64(8)))
        return [b.fadd(s, x.load(at, 64 * v, V16F)) for v, s in enumerate(sums)]

    mean = x.splat(b.fmul(_sum(x, x.loop(groups, none, plain)), share))

    def squares(i: Value, sums: list[Value]) -> list[Value]:
        at = b.add(row, b.shl(i, I64(8)))
        away = [b.fsub(x.load(at, 64 * v, V16F), mean) for v in range(SIDE)]
        return [x.fma(a, a, s) for a, s in zip(away, sums, strict=True)]

    spread = b.fadd(b.fmul(_sum(x, x.loop(groups, none, squares)), share), eps)
    scale = x.splat(b.fdiv(F32(1.0), x.root(spread)))

    def write(i: Value, _: list[Value]) -> list[Value]:
        step = b.shl(i, I64(8))
        at, up, down = (b.add(start, step) for start in (row, gain, shift))
        for v in range(SIDE):
            y = b.fmul(b.fsub(x.load(at, 64 * v, V16F), mean), scale)
            x.store(x.fma(y, x.load(up, 64 * v, V16F), x.load(down, 64 * v, V16F)), at, 64 * v)
        return []

    x.loop(groups, [], write)
    return I64(0)


def _half(b: Value, arguments: list[Value]) -> Value:
    x = Lanes(b)
    row, groups, out = arguments

    def body(i: Value, _: list[Value]) -> list[Value]:
        at, to = b.add(row, b.shl(i, I64(8))), b.add(out, b.shl(i, I64(7)))
        for v in range(SIDE):
            x.store_half(x.load(at, 64 * v, V16F), to, 32 * v)
        return []

    x.loop(groups, [], body)
    return I64(0)


def _copy(b: Value, arguments: list[Value]) -> Value:
    x = Lanes(b)
    row, vectors, out = arguments

    def body(i: Value, _: list[Value]) -> list[Value]:
        step = b.shl(i, I64(6))
        x.store(x.load(b.add(row, step), 0, V16F), b.add(out, step))
        return []

    x.loop(vectors, [], body)
    return I64(0)


def _bytes(b: Value, arguments: list[Value]) -> Value:
    x = Lanes(b)
    row, groups, out, facts = arguments

    def ends(i: Value, held: list[Value]) -> list[Value]:
        at = b.add(row, b.shl(i, I64(8)))
        loaded = [x.load(at, 64 * v, V16F) for v in range(SIDE)]
        low = [x.least(h, y) for h, y in zip(held[:SIDE], loaded, strict=True)]
        return low + [x.most(h, y) for h, y in zip(held[SIDE:], loaded, strict=True)]

    held = x.loop(groups, [x.load(row, 0, V16F)] * (2 * SIDE), ends)
    low, high = held[0], held[SIDE]
    for v in range(1, SIDE):
        low, high = x.least(low, held[v]), x.most(high, held[SIDE + v])
    least, most = x.across(low, x.least), x.across(high, x.most)
    span = x.most(b.fsub(most, least), F32(1e-30))
    x.store(b.fmul(span, F32(1 / 255)), facts)
    x.store(least, facts, 4)
    step = x.splat(b.fdiv(F32(255.0), span))
    # (x - least) * step + 1/2, cut to a whole number, is the nearest one.
    offset = x.fma(x.splat(b.fsub(F32(0.0), least)), step, x.constant(0.5))

    def write(i: Value, _: list[Value]) -> list[Value]:
        at, to = b.add(row, b.shl(i, I64(8))), b.add(out, b.shl(i, I64(6)))
        for v in range(SIDE):
            whole = b.fptosi(x.fma(x.load(at, 64 * v, V16F), step, offset), V16I)
            x.store(b.trunc(whole, V16B), to, 16 * v)
        return []

    x.loop(groups, [], write)
    return I64(0)


def _turn(b: Value, arguments: list[Value]) -> Value:
    x = Lanes(b)
    source, stride, out, step = arguments
    rows = [x.load(b.add(source, b.mul(stride, I64(r))), 0, V16I) for r in range(16)]
    for size in (1, 2, 4, 8):  # blocks of this size off the diagonal change places
        first = [lane if not lane & size else 16 + lane - size for lane in range(16)]
        second = [lane + size if not lane & size else 16 + lane for lane in range(16)]
        for r in range(16):
            if not r & size:
                pair = rows[r], rows[r + size]
                rows[r], rows[r + size] = x.mixed(*pair, first), x.mixed(*pair, second)
    for r in range(16):
        x.store(rows[r], b.add(out, b.mul(step, I64(r))))
    return I64(0)


def _pair(b: Value, arguments: list[Value]) -> Value:
    x = Lanes(b)
    source, stride, vectors, out = arguments

    def body(i: Value, _: list[Value]) -> list[Value]:
        at = b.add(source, b.shl(i, I64(5)))
        upper, lower = x.load(at, 0, V16S), x.load(b.add(at, stride), 0, V16S)
        places = [lane // 2 + 16 * (lane % 2) for lane in range(32)]
        x.store(x.mixed(upper, lower, places), b.add(out, b.shl(i, I64(6))))
        return []

    x.loop(vectors, [], body)
    return I64(0)


def _powers(b: Value, half: bool, arguments: list[Value]) -> Value:
    x = Lanes(b)
    row, vectors, out, fact = arguments

    def top(i: Value, held: list[Value]) -> list[Value]:
        return [x.most(held[0], x.load(b.add(row, b.shl(i, I64(6))), 0, V16F))]

    (high,) = x.loop(vectors, [x.load(row, 0, V16F)], top)
    high = x.splat(x.across(high, x.most))

    def body(i: Value, held: list[Value]) -> list[Value]:
        y = x.power(b.fsub(x.load(b.add(row, b.shl(i, I64(6))), 0, V16F), high), exact=not half)
        if half:
            x.store_half(y, b.add(out, b.shl(i, I64(5))))
        else:
            x.store(y, b.add(out, b.shl(i, I64(6))))
        return [b.fadd(held[0], y)]

    (total,) = x.loop(vectors, [x.constant(0.0)], body)
    x.store(b.fdiv(F32(1.0), x.across(total, b.fadd)), fact)
    return I64(0)


@intrinsic
def norm_row(context, row, groups, gain, shift, share, eps):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """A row of 64 * groups floats, normalised in place with gain and shift; share: 1 over its length."""
    return INT(INT, INT, INT, INT, FLOAT, FLOAT), lambda context, b, signature, given: _norm(b, given)


@intrinsic
def half_row(context, row, groups, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """A row of 64 * groups floats as bfloat16; where HAS_BF16."""
    return INT(INT, INT, INT), lambda context, b, signature, given: _half(b, given) if HAS_BF16 else I64(0)


@intrinsic
def copy_row(context, row, vectors, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """A row of 16 * vectors floats, elsewhere."""
    return INT(INT, INT, INT), lambda context, b, signature, given: _copy(b, given)


@intrinsic
def bytes_row(context, row, groups, out, facts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """A row of 64 * groups floats as bytes; facts: receives its scale and its least value."""
    return INT(INT, INT, INT, INT), lambda context, b, signature, given: _bytes(b, given)


@intrinsic
def turned(context, source, stride, out, step):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """16 rows of 16 numbers, `stride` bytes apart, as 16 columns, `step` bytes apart."""
    return INT(INT, INT, INT, INT), lambda context, b, signature, given: _turn(b, given)


@intrinsic
def paired(context, source, stride, vectors, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """Two rows of 16 * vectors bfloat16 as one, number beside number."""
    return INT(INT, INT, INT, INT), lambda context, b, signature, given: _pair(b, given)


@intrinsic
def float_powers(context, row, vectors, out, fact):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """2 to the power of each of 16 * vectors numbers less the largest; fact: receives 1 over their sum."""
    return INT(INT, INT, INT, INT), lambda context, b, signature, given: _powers(b, False, given)


@intrinsic
def half_powers(context, row, vectors, out, fact):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - numba's own protocol
    """As float_powers, written as bfloat16; where HAS_BF16."""
    return INT(
        INT, INT, INT, INT
    ), lambda context, b, signature, given: _powers(b, True, given) if HAS_BF16 else I64(0)
