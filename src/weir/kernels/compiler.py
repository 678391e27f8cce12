"""Compile kernels by numba to machine code that runs without numba."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from weir.errors import require
from weir.settings import require_addresses

ADDRESSES = 400_000_000
"""Bytes of addresses for numba and its imports: LLVM, and scipy's OpenBLAS if installed."""
if "numba" not in sys.modules:
    require_addresses(ADDRESSES, "compiling", "compile before, by weir doctor --compile")

ir = require("llvmlite.ir", extra="run")
binding = require("llvmlite.binding", extra="run")
numba = require("numba", extra="run")

I8, I32, I64, F64 = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType()
POINTER = I8.as_pointer()
Value = Any

HEAD = object.__basicsize__
"""Bytes of the header of Python objects; the last eight are the address of the class."""
DATA, NDIM, SHAPE, STRIDES, DTYPE, FLAGS = (HEAD + at for at in (0, 8, 16, 24, 40, 48))
ORDER, NUMBER = HEAD + 10, HEAD + 12
"""Offsets in a dtype of its byte order, one letter, and its number."""
C_ORDER, F_ORDER, ALIGNED, WRITEABLE = 1, 2, 0x100, 0x400
FOREIGN = ord("<" if np.dtype(">i4").isnative else ">")
SCALARS = {"int64": "q", "float64": "d", "bool": "?", "uint64": "Q"}


# numba's functions take an array as seven or more numbers: owner, parent, count, item size, address, lengths and
# strides. An adapter in LLVM IR takes the numpy array, checks its type and passes these on; it reads numpy's public
# struct PyArrayObject_fields.
def dispatcher(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba's
    """Return numba's dispatcher of a function that only compiled code calls."""
    return numba.njit(
        nogil=True, error_model="numpy", boundscheck=None, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)


def compiled(
    kernel: Any,  # noqa: ANN401  numba's objects are untyped
    arguments: tuple[Any, ...],
    array_class: str,
) -> tuple[str, str, tuple[str, ...], tuple[bytes, ...]]:
    """Return a kernel's machine code for arguments of these types, as the fields of `weir.kernels.jit.Code`.

    array_class: symbol for the address of numpy's array class.
    """
    from numba.core.registry import cpu_target

    types = tuple(numba.typeof(a) for a in arguments)
    kernel.compile(types)
    overload = kernel.overloads[types]
    module = overload.library._final_module
    leaves = tuple(leaf for a in arguments for leaf in (a if isinstance(a, tuple) else (a,)))
    kinds = tuple(leaf for t in types for leaf in (t.types if isinstance(t, numba.types.BaseTuple) else (t,)))
    adapter = binding.parse_assembly(
        str(_adapter(overload.fndesc.llvm_func_name, leaves, kinds, array_class))
    )
    adapter.verify()
    machine = cpu_target.target_context.codegen()._tm  # numba's own: the same processor
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    return (
        "".join("O" if isinstance(t, numba.types.Array) else SCALARS[str(t)] for t in kinds),
        _result(overload.signature.return_type),
        tuple(outside),
        (machine.emit_object(adapter), overload.library._get_compiled_object()),
    )


def _result(kind: Any) -> str:  # noqa: ANN401  numba's objects are untyped
    if isinstance(kind, numba.types.NoneType):
        return ""
    if isinstance(kind, numba.types.BaseTuple):
        return "(" + "".join(_result(k) for k in kind)
    return SCALARS[str(kind)]


def _adapter(symbol: str, arguments: tuple[Any, ...], types: tuple[Any, ...], class_symbol: str) -> Any:  # noqa: ANN401  numba's objects are untyped
    module = ir.Module(name="adapter")
    module.triple = binding.get_process_triple()
    array_class_at = ir.GlobalVariable(module, I64, class_symbol)
    array_class_at.initializer = I64(0)
    takes = [
        POINTER if isinstance(t, numba.types.Array) else F64 if t == numba.types.float64 else I64
        for t in types
    ]
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, *takes]), "entry")
    b = ir.IRBuilder(entry.append_basic_block())
    out, *parameters = entry.args
    out = b.bitcast(out, I64.as_pointer())
    status = b.gep(out, [I64(8)])
    b.store(I64(-1), status)
    passed: list[Value] = []
    array_class = b.load(array_class_at)
    for value, kind, example in zip(parameters, types, arguments, strict=True):
        if isinstance(kind, numba.types.Array):
            # Arrays that are only read may be writable too.
            flags = {"C": C_ORDER, "F": F_ORDER, "A": 0}[kind.layout] | (WRITEABLE if kind.mutable else 0)
            _guard(b, value, kind, flags | (ALIGNED if example.flags.aligned else 0), array_class)
            passed += _unpacked(b, value, kind)
        else:
            passed.append(b.trunc(value, I8) if kind == numba.types.boolean else value)
    error = b.alloca(POINTER)
    places = [b.bitcast(out, POINTER), b.bitcast(error, POINTER)]
    signature = ir.FunctionType(I32, [v.type for v in (*places, *passed)])
    code = b.call(ir.Function(module, signature, symbol), [*places, *passed])
    b.store(b.sext(code, I64), status)
    b.ret_void()
    return module


def _field(b: Value, at: Value, offset: int, kind: Value) -> Value:
    return b.load(b.bitcast(b.gep(at, [I64(offset)]), kind.as_pointer()))


def _guard(b: Value, array: Value, kind: Any, needed: int, array_class: Value) -> None:  # noqa: ANN401  numba's objects are untyped
    _unless(b, b.icmp_unsigned("==", _field(b, array, HEAD - 8, I64), array_class))
    dtype = _field(b, array, DTYPE, POINTER)
    number = numba.np.numpy_support.as_dtype(kind.dtype).num
    tests = (
        b.icmp_signed("==", _field(b, array, NDIM, I32), I32(kind.ndim)),
        b.icmp_signed("==", _field(b, dtype, NUMBER, I32), I32(number)),
        b.icmp_signed("!=", _field(b, dtype, ORDER, I8), I8(FOREIGN)),
        b.icmp_signed("==", b.and_(_field(b, array, FLAGS, I32), I32(needed)), I32(needed)),
    )
    _unless(b, functools.reduce(b.and_, tests))


def _unless(b: Value, condition: Value) -> None:
    after, refused = b.append_basic_block(), b.append_basic_block()
    b.cbranch(condition, after, refused)
    b.position_at_end(refused)
    b.ret_void()
    b.position_at_end(after)


def _unpacked(b: Value, array: Value, kind: Any) -> list[Value]:  # noqa: ANN401  numba's objects are untyped
    lengths, steps = (_field(b, array, at, POINTER) for at in (SHAPE, STRIDES))
    shape = [_field(b, lengths, 8 * i, I64) for i in range(kind.ndim)]
    strides = [_field(b, steps, 8 * i, I64) for i in range(kind.ndim)]
    count = I64(1)
    for length in shape:
        count = b.mul(count, length)
    nobody = ir.Constant(POINTER, None)
    size = numba.np.numpy_support.as_dtype(kind.dtype).itemsize
    return [nobody, nobody, count, I64(size), _field(b, array, DATA, POINTER), *shape, *strides]
