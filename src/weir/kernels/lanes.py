"""Sixteen float32 side by side, in LLVM's vector operations: the vocabulary of kernels that numba cannot say.

Everything but the products of bfloat16 and of bytes is plain LLVM, which compiles for any processor; those two
need instructions that `HAS_BF16` and `HAS_INT8` tell of. Addresses are integers, as `array.ctypes.data` gives them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from weir.errors import require
from weir.kernels import vector

__all__ = [
    "F32",
    "FAST",
    "FLOAT",
    "HAS_BF16",
    "HAS_INT8",
    "I32",
    "I64",
    "INT",
    "V16B",
    "V16F",
    "V16I",
    "V16S",
    "WIDE",
    "Lanes",
]

ir = require("llvmlite.ir", extra="run")
numba = require("numba", extra="run")

Value = Any
Body = Callable[[Value, list[Value]], list[Value]]


class _BFloat(ir.types.Type):  # type: ignore[misc, name-defined]  # llvmlite's own way to a type it lacks
    """LLVM's bfloat: the upper half of a float32."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


F32, I8, I16, I32, I64 = ir.FloatType(), *(ir.IntType(bits) for bits in (8, 16, 32, 64))
V16F, V16I, V16S, V16B = (ir.VectorType(kind, 16) for kind in (F32, I32, I16, I8))
V16H, V32H = (ir.VectorType(_BFloat(), size) for size in (16, 32))
INT, FLOAT = numba.types.int64, numba.types.float32


WIDE = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= vector.features()
FAST = bool({"fma", "neon", "asimd"} & vector.features())
"""Whether the processor multiplies and adds in one step; elsewhere that is a call into a library."""
HAS_BF16 = WIDE and "avx512bf16" in vector.features()
HAS_INT8 = WIDE and "avx512vnni" in vector.features()

# erf(x) = x * P(x * x) / Q(x * x) for magnitudes up to END; fitted by least squares, error below 4e-7.
END = 3.9
P = (1.1283788, 0.20427205, 0.0511551054, 0.00389810106, 0.000147503046, -1.99667423e-06, 2.01112919e-08)
Q = (1.0, 0.514360406, 0.116804939, 0.0147343981, 0.00100699242)
# t * Phi(-t), what GELU takes from max(x, 0) at t = |x| up to 4; fitted at Chebyshev's points, error below 1.4e-4.
SHORT_END = 4.0
SHORT = (
    0.000129802541,
    0.494544302,
    -0.361388369,
    -0.0984167405,
    0.192275641,
    -0.0845723414,
    0.0177062052,
    -0.00181780002,
    7.23323271e-05,
)
# 2 to the power of x, magnitudes up to 1/2: the first terms of its series; five of them err by 4e-5, seven by 1e-7.
POWER = (1.0, 0.69314718, 0.24022651, 0.0555041087, 0.00961812911, 0.00133335581, 0.000154035304)
LOG2E = 1.44269504


class Lanes:
    """Vector operations at the place where a builder of LLVM's stands."""

    def __init__(self, b: Value) -> None:
        self.b = b

    def load(self, address: Value, offset: int, kind: Value) -> Value:
        """What stands at an address."""
        value = self.b.load(self._at(address, offset, kind), typ=kind)
        value.align = 4
        return value

    def store(self, value: Value, address: Value, offset: int = 0) -> None:
        """Write a value at an address."""
        self.b.store(value, self._at(address, offset, value.type)).align = 1

    def store_half(self, x: Value, address: Value, offset: int = 0) -> None:
        """Write floats as bfloat16, to the nearest; where HAS_BF16."""
        self.store(self._call("llvm.x86.avx512bf16.cvtneps2bf16.512", V16H, [x]), address, offset)

    def loop(self, count: Value, state: list[Value], body: Body) -> list[Value]:
        """Emit `for i in range(count): state = body(i, state)`, the state in registers."""
        return vector._loop(self.b, count, state, lambda _, i, held: body(i, held))

    def splat(self, value: Value) -> Value:
        """One number in all lanes."""
        return vector._splat(self.b, value)

    def constant(self, number: float) -> Value:
        """A number, rounded to float32, in all lanes."""
        return ir.Constant(V16F, [struct.unpack("f", struct.pack("f", number))[0]] * 16)

    def whole(self, number: int) -> Value:
        """A whole number in all lanes."""
        return ir.Constant(V16I, [number] * 16)

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, rounded once."""
        return self._call("llvm.fma.v16f32", V16F, [x, y, z])

    def root(self, x: Value) -> Value:
        """The square root of a single number."""
        return self._call("llvm.sqrt.f32", F32, [x])

    def most(self, x: Value, y: Value) -> Value:
        """The larger of two; works on single numbers too."""
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def least(self, x: Value, y: Value) -> Value:
        """The smaller of two; works on single numbers too."""
        return self.b.select(self.b.fcmp_ordered("<", x, y), x, y)

    def magnitude(self, x: Value) -> Value:
        """Without the sign."""
        bits = self.b.and_(self.b.bitcast(x, V16I), self.whole(0x7FFFFFFF))
        return self.b.bitcast(bits, V16F)

    def across(self, x: Value, join: Callable[[Value, Value], Value]) -> Value:
        """The lanes joined to one number, halves with halves."""
        size = 16
        while size > 1:
            size //= 2
            low, high = (ir.Constant(ir.VectorType(I32, size), list(range(s, s + size))) for s in (0, size))
            x = join(self.b.shuffle_vector(x, x, low), self.b.shuffle_vector(x, x, high))
        return self.b.extract_element(x, I32(0))

    def mixed(self, x: Value, y: Value, places: list[int]) -> Value:
        """Lanes of two vectors: those of x are counted from 0, those of y from behind."""
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(places)), places))

    def multiply_add(self, kind: str, one: Value, columns: Value, held: Value) -> Value:
        """held + one * columns: of floats, of pairs of bfloat16, or of four unsigned with four signed bytes."""
        if kind == "float":
            return self.fma(one, columns, held)
        if kind == "bf16":
            pairs = [self.b.bitcast(v, V32H) for v in (one, columns)]
            return self._call("llvm.x86.avx512bf16.dpbf16ps.512", V16F, [held, *pairs])
        return self._call("llvm.x86.avx512.vpdpbusd.512", V16I, [held, one, columns])

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """The polynomial with these coefficients, the constant first."""
        y = self.constant(coefficients[-1])
        for c in coefficients[-2::-1]:
            y = self.fma(y, x, self.constant(c))
        return y

    def power(self, x: Value, exact: bool) -> Value:
        """2 to the power of x; what is below 2^-126 becomes that."""
        x = self.most(x, self.constant(-126.0))
        whole = self._call("llvm.nearbyint.v16f32", V16F, [x])
        part = self.polynomial(self.b.fsub(x, whole), POWER if exact else POWER[:5])
        exponent = self.b.shl(self.b.fptosi(whole, V16I), self.whole(23))
        return self.b.bitcast(self.b.add(self.b.bitcast(part, V16I), exponent), V16F)

    def gelu(self, x: Value) -> Value:
        """x * Phi(x)."""
        z = self.b.fmul(x, self.constant(0.70710678))
        z = self.most(self.least(z, self.constant(END)), self.constant(-END))
        t = self.b.fmul(z, z)
        ratio = self.b.fdiv(self.b.fmul(z, self.polynomial(t, P)), self.polynomial(t, Q))
        half = self.b.fmul(x, self.constant(0.5))
        return self.fma(half, ratio, half)

    def gelu_tanh(self, x: Value) -> Value:
        """The form of GELU with tanh(u), as x / (1 + exp(-2u))."""
        u = self.b.fmul(
            x, self.fma(self.b.fmul(x, x), self.constant(0.0356774081), self.constant(0.797884561))
        )
        power = self.power(
            self.least(self.b.fmul(u, self.constant(-2 * LOG2E)), self.constant(126.0)), exact=True
        )
        return self.b.fdiv(x, self.b.fadd(self.constant(1.0), power))

    def gelu_short(self, x: Value) -> Value:
        """Either form of GELU, to about 1e-4: what bfloat16 and bytes hold is coarser."""
        t = self.least(self.magnitude(x), self.constant(SHORT_END))
        return self.b.fsub(self.most(x, self.constant(0.0)), self.polynomial(t, SHORT))

    def _at(self, address: Value, offset: int, kind: Value) -> Value:
        return vector._at(self.b, address, offset, kind)

    def _call(self, name: str, kind: Value, arguments: list[Value]) -> Value:
        return vector._call(self.b, name, kind, arguments)
