"""Vector instructions that numba lacks; addresses are integers, as in `array.ctypes.data`."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from weir.errors import require

ir = require("llvmlite.ir", extra="run")
numba = require("numba", extra="run")


def features() -> set[str]:
    """Return the instruction sets that numba names to LLVM, such as "avx2"."""
    # Further ones of a processor named by NUMBA_CPU_NAME are ignored; LLVM uses them anyway.
    named = numba.config.CPU_FEATURES
    if named is None:
        named = require("numba.core.codegen", extra="run").get_host_cpu_features()
    return {feature[1:] for feature in named.split(",") if feature.startswith("+")}


WIDE = {"avx512f", "avx512bw", "avx512dq"} <= features()
HAS_INT8 = WIDE and "avx512vnni" in features()
BYTE_PRODUCTS = HAS_INT8 or (not WIDE and "avx2" in features())
"""True if `int8_tile` can be called: with AVX2 alone it takes half the time of `float_tile`."""
LARGEST_BYTE = 127 if HAS_INT8 else 64
"""Largest magnitude of a query's bytes in `int8_tile`: AVX2 adds two products with unsigned bytes in 16 bits."""
HALVES = bool({"f16c", "neon", "fullfp16"} & features())
"""True if the processor converts half precision; elsewhere LLVM would call a missing function."""
LANES = 16
VECTORS, ROWS = (3, 8) if WIDE else (1, 6)
"""Sums of a tile in vectors of 16: 24 of the 32 registers of AVX-512 and NEON, 12 of the 16 half as wide of AVX2."""
WIDTH = LANES * VECTORS

F32, F64, I32, I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
V16F, V16I, V8F, V8D = (
    ir.VectorType(kind, size) for kind, size in ((F32, 16), (I32, 16), (F32, 8), (F64, 8))
)
INT = numba.types.int64
Value = Any
Body = Callable[[Value, Value, list[Value]], list[Value]]


def intrinsic(returned: Value) -> Callable[[Callable[..., Value]], Any]:
    """Return a decorator that makes kernels' calls of a function emit the LLVM code that it builds.

    returned: numba's type of the result. The function takes LLVM's builder, then a value for each int64
        argument.
    """

    def decorated(emit: Callable[..., Value]) -> Any:  # noqa: ANN401 - an object of numba
        names = list(signature(emit).parameters)[1:]

        def typed(context: Value, *arguments: Value) -> Value:
            return returned(*[INT] * len(names)), lambda _, b, __, values: emit(b, *values)

        typed.__name__ = emit.__name__
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("context", *names)]
        typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # numba reads it
        return require("numba.extending", extra="run").intrinsic(typed)

    return decorated


def _at(b: Value, address: Value, offset: Value | int, kind: Value) -> Value:
    step = I64(offset) if isinstance(offset, int) else offset
    return b.inttoptr(b.add(address, step), kind.as_pointer())


def _load(b: Value, address: Value, offset: Value | int, kind: Value) -> Value:
    value = b.load(_at(b, address, offset, kind))
    value.align = 4
    return value


def _store(b: Value, value: Value, address: Value, offset: Value | int) -> None:
    b.store(value, _at(b, address, offset, value.type)).align = 4


def _single(b: Value, halves: Value) -> Value:
    if HALVES:
        return b.fpext(b.bitcast(halves, ir.VectorType(ir.HalfType(), LANES)), V16F)

    def int_constant(number: int) -> Value:
        return ir.Constant(V16I, [number] * LANES)

    bits = b.zext(halves, V16I)
    size = b.shl(b.and_(bits, int_constant(0x7FFF)), int_constant(13))
    # The exponents differ by 112, which a product adds exactly, to subnormal numbers too; the greatest means infinity.
    number = b.bitcast(b.fmul(b.bitcast(size, V16F), ir.Constant(V16F, [2.0**112] * LANES)), V16I)
    endless = b.icmp_unsigned(">=", size, int_constant(31 << 23))
    number = b.select(endless, b.add(size, int_constant((255 - 31) << 23)), number)
    return b.bitcast(b.or_(number, b.shl(b.and_(bits, int_constant(0x8000)), int_constant(16))), V16F)


def _splat(b: Value, value: Value) -> Value:
    kind = ir.VectorType(value.type, LANES)
    one = b.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    return b.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


def _call(b: Value, name: str, kind: Value, arguments: list[Value]) -> Value:
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(kind, [a.type for a in arguments]), name)
    return b.call(function, arguments)


def _loop(b: Value, count: Value, state: list[Value], body: Body) -> list[Value]:
    before = b.block
    head, inside, after = (b.append_basic_block(name) for name in ("head", "inside", "after"))
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(I64)
    i.add_incoming(I64(0), before)
    phis = []
    for value in state:
        phis.append(b.phi(value.type))
        phis[-1].add_incoming(value, before)
    b.cbranch(b.icmp_signed("<", i, count), inside, after)
    b.position_at_end(inside)
    following = body(b, i, phis)
    i.add_incoming(b.add(i, I64(1)), b.block)
    for phi, new in zip(phis, following, strict=True):
        phi.add_incoming(new, b.block)
    b.branch(head)
    b.position_at_end(after)
    return phis


def _add_byte_products(b: Value, total: Value, unsigned: Value, signed: Value) -> Value:
    if HAS_INT8:
        return _call(b, "llvm.x86.avx512.vpdpbusd.512", V16I, [total, unsigned, signed])
    bytes_, shorts, ints = (ir.VectorType(ir.IntType(bits), 256 // bits) for bits in (8, 16, 32))
    ones, halves = ir.Constant(shorts, [1] * 16), []
    for first in (0, 8):
        lanes = ir.Constant(ir.VectorType(I32, 8), list(range(first, first + 8)))
        x, y = (b.bitcast(b.shuffle_vector(v, v, lanes), bytes_) for v in (unsigned, signed))
        pairs = _call(b, "llvm.x86.avx2.pmadd.ub.sw", shorts, [x, y])
        halves.append(_call(b, "llvm.x86.avx2.pmadd.wd", ints, [pairs, ones]))
    whole = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
    return b.add(total, b.shuffle_vector(*halves, whole))


# A tile is ROWS queries times WIDTH documents, whose sums stay in registers over all dimensions; its result is one
# bit for each score that reaches its query's bar. Shape: Goto and van de Geijn 2008, Anatomy of high-performance
# matrix multiplication, with a comparison instead of the store.
def _tile(b: Value, arguments: list[Value], eight: bool) -> Value:
    panel, query, groups, stride, row, lane, masks = arguments
    kind = V16I if eight else V16F
    queries = [b.add(query, b.mul(stride, I64(r))) for r in range(ROWS)]
    # A row's facts, 4 bytes each: start of its sum, value of a unit of the sum, bar.
    start = [_splat(b, _load(b, row, 12 * r, I32)) for r in range(ROWS)]
    zero = ir.Constant(V16F, [0.0] * LANES)

    def tile_step(b: Value, group: Value, sums: list[Value]) -> list[Value]:
        base, at = b.mul(group, I64(4 * WIDTH)), b.mul(group, I64(4))
        documents = [_load(b, panel, b.add(base, I64(64 * v)), kind) for v in range(VECTORS)]
        products = []
        for r in range(ROWS):
            value = _splat(b, _load(b, queries[r], at, I32 if eight else F32))
            for v in range(VECTORS):
                total = sums[r * VECTORS + v]
                if eight:
                    products.append(_add_byte_products(b, total, documents[v], value))
                else:
                    products.append(_call(b, "llvm.fma.v16f32", kind, [documents[v], value, total]))
        return products

    sums = _loop(
        b, groups, [start[r] if eight else zero for r in range(ROWS) for _ in range(VECTORS)], tile_step
    )
    # A document's facts: value of a unit of the sum, and an addend.
    worth = [_load(b, lane, 64 * v, V16F) for v in range(VECTORS)]
    added = [_load(b, lane, 4 * WIDTH + 64 * v, V16F) for v in range(VECTORS)]
    hits = I64(0)
    for r in range(ROWS):
        unit, bar = (_splat(b, _load(b, row, 12 * r + at, F32)) for at in (4, 8))
        mask = I64(0)
        for v in range(VECTORS):
            total = sums[r * VECTORS + v]
            total = b.sitofp(total, V16F) if eight else total
            score = _call(b, "llvm.fma.v16f32", V16F, [b.fmul(total, unit), worth[v], added[v]])
            # Unordered: NaN counts as reaching the bar, and is scored exactly.
            bits = b.zext(b.bitcast(b.fcmp_unordered(">=", score, bar), ir.IntType(LANES)), I64)
            mask = b.or_(mask, b.shl(bits, I64(LANES * v)))
        _store(b, mask, masks, 8 * r)
        some = b.zext(b.icmp_unsigned("!=", mask, I64(0)), I64)
        hits = b.or_(hits, b.shl(some, I64(r)))
    return hits


@intrinsic(INT)
def int8_tile(
    b: Value, panel: Value, query: Value, groups: Value, stride: Value, row: Value, lane: Value, masks: Value
) -> Value:
    """Return, as bits, which of ROWS queries have a score of at least their bar in a tile of 8-bit products.

    Score: (start + products) * unit * worth + added; NaN counts as above the bar.

    panel: uint8[groups, WIDTH, 4].
    query: first of ROWS rows of int8[4 * groups], `stride` bytes apart, of magnitudes to LARGEST_BYTE.
    row: [ROWS, 3] of int32 start, float32 unit, float32 bar.
    lane: float32[2, WIDTH], worth and added.
    masks: int64[ROWS], receives the lanes of each row as bits.
    """
    if not BYTE_PRODUCTS:
        return I64(0)  # never called
    return _tile(b, [panel, query, groups, stride, row, lane, masks], eight=True)


@intrinsic(INT)
def float_tile(
    b: Value, panel: Value, query: Value, groups: Value, stride: Value, row: Value, lane: Value, masks: Value
) -> Value:
    """Return, as bits, which of ROWS queries have a score of at least their bar in a tile of float products.

    Score: products * unit * worth + added; NaN counts as above the bar.

    panel: float32[groups, WIDTH].
    query: first of ROWS rows of float32[groups], `stride` bytes apart.
    row, lane, masks: as in `int8_tile`, without the start.
    """
    return _tile(b, [panel, query, groups, stride, row, lane, masks], eight=False)


def _dot(b: Value, arguments: list[Value], double: bool) -> Value:
    left, right, count = arguments
    loaded, lanes = (V8F, V8D) if double else (V16F, V16F)
    number, size = (F64, 8) if double else (F32, 16)
    name = f"llvm.fma.v{size}f{64 if double else 32}"
    parts = 32 // size

    def wide(value: Value) -> Value:
        return b.fpext(value, V8D) if double else value

    def product_step(b: Value, group: Value, sums: list[Value]) -> list[Value]:
        base = b.mul(group, I64(128))
        products = []
        for p in range(parts):
            at = b.add(base, I64(4 * size * p))
            x, y = (wide(_load(b, a, at, loaded)) for a in (left, right))
            products.append(_call(b, name, lanes, [x, y, sums[p]]))
        return products

    zero = ir.Constant(lanes, [0.0] * size)
    whole = b.lshr(count, I64(5))
    sums = _loop(b, whole, [zero] * parts, product_step)
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [b.fadd(x, y) for x, y in zip(sums[:half], sums[half:], strict=True)]
    vector = sums[0]
    while size > 1:
        size //= 2
        low, high = (ir.Constant(ir.VectorType(I32, size), list(range(s, s + size))) for s in (0, size))
        vector = b.fadd(b.shuffle_vector(vector, vector, low), b.shuffle_vector(vector, vector, high))
    total = b.extract_element(vector, I32(0))
    done = b.shl(whole, I64(5))

    def rest(b: Value, i: Value, sums: list[Value]) -> list[Value]:
        at = b.mul(b.add(done, i), I64(4))
        x, y = (_load(b, a, at, F32) for a in (left, right))
        if double:
            x, y = b.fpext(x, F64), b.fpext(y, F64)
        return [b.fadd(sums[0], b.fmul(x, y))]

    return _loop(b, b.sub(count, done), [number(0.0)], rest)[0], total


@intrinsic(numba.types.float64)
def dot64(b: Value, left: Value, right: Value, count: Value) -> Value:
    """Return the dot product of `count` float32 numbers at two addresses, in double, with the same bits on
    every machine.
    """
    tail, total = _dot(b, [left, right, count], double=True)
    return b.fadd(total, tail)


@intrinsic(numba.types.float32)
def dot32(b: Value, left: Value, right: Value, count: Value) -> Value:
    """Return the dot product of `count` float32 numbers at two addresses, in single precision."""
    tail, total = _dot(b, [left, right, count], double=False)
    return b.fadd(total, tail)


@intrinsic(INT)
def lowest_bit(b: Value, value: Value) -> Value:
    """Return the position of an integer's lowest set bit, from 0; undefined for 0."""
    return _call(b, "llvm.cttz.i64", I64, [value, ir.IntType(1)(1)])
