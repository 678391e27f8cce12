"""Machine code of a kernel, loaded into this process and called, by LLVM's loader alone."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.errors import require

NUMPY_ARRAY = "numpy_array"
"""The symbol of the address of numpy's class of arrays, which an adapter compares with."""
NRT = "NRT_"
"""How the names of numba's memory functions begin."""
MATHEMATICS = {"linux": "libm.so.6", "win32": "ucrtbase"}
"""Where sqrt and its like are, by platform; elsewhere every process has them."""
LOWERED = ("fma", "fmaf", "fmin", "fminf", "fmax", "fmaxf", "rint", "rintf", "nearbyint", "nearbyintf")
"""Functions that code for processors without such an instruction calls though it does not name them."""
LAST_OWNER = "NRT_MemInfo_call_dtor"
"""Called by numba's code when nobody owns an array any more."""
WORDS, STATUS, OTHER_TYPES = 9, 8, -1
Out = ctypes.c_int64 * WORDS
TAKEN: dict[str, Any] = {
    "O": ctypes.py_object, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "d": ctypes.c_double, "?": ctypes.c_int64,
}  # fmt: skip
GIVEN: dict[str, Any] = {
    "q": ctypes.c_int64, "Q": ctypes.c_uint64, "d": ctypes.c_double, "?": ctypes.c_bool,
}  # fmt: skip


@dataclass(frozen=True)
class Code:
    """Machine code for arguments of some types.

    arguments: a letter for each, O an array, q and Q whole numbers, d a float, ? a truth value; result: likewise, "("
    first for a tuple, "" for nothing; outside: the functions it calls that it does not hold; parts: objects as the
    system's compiler would write them, the adapter of `compiler.py` first.
    """

    arguments: str
    result: str
    outside: tuple[str, ...]
    parts: tuple[bytes, ...]


def loaded(code: Code) -> Callable[..., Any]:
    """A function that runs the code; it returns NotImplemented where an argument is not of the types it is for.

    It raises RuntimeError where the code fails: no memory, or with bounds checked an index beyond them.
    """
    engine = _engine(code)
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *(TAKEN[a] for a in code.arguments))(
        engine.get_function_address("entry")
    )
    ctypes.c_int64.from_address(engine.get_global_value_address(NUMPY_ARRAY)).value = id(np.ndarray)
    read = _reader(code.result)

    def call(*arguments: object) -> Any:  # noqa: ANN401 - what the kernel returns
        out = Out()
        try:
            entry(out, *arguments)
        except ctypes.ArgumentError:
            return NotImplemented
        status = out[STATUS]
        if status:
            if status == OTHER_TYPES:
                return NotImplemented
            raise RuntimeError("compiled code failed: no memory, or an index out of bounds")
        return read(out)

    call.engine = engine  # type: ignore[attr-defined]  # the code lives as long as what calls it
    return call


def _reader(result: str) -> Callable[[Any], Any]:
    """How what a kernel returned is read from where it was written."""
    if not result:
        return lambda out: None
    if result == "q":
        return lambda out: out[0]
    if not result.startswith("("):
        return lambda out: GIVEN[result].from_buffer(out).value
    kinds = [(8 * i, GIVEN[letter]) for i, letter in enumerate(result[1:])]
    return lambda out: tuple(kind.from_buffer(out, at).value for at, kind in kinds)


@functools.cache
def _binding() -> Any:  # noqa: ANN401 - a module without types
    binding = require("llvmlite.binding", extra="run")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def _engine(code: Code) -> Any:  # noqa: ANN401  LLVM's bindings are untyped
    """LLVM's loader with the code in it; one for each, since inner functions of kernels bear the same names."""
    binding = _binding()
    memory = {name for name in code.outside if name.startswith(NRT)}
    if memory - {LAST_OWNER}:
        _numba_memory()
    elif memory and binding.address_of_symbol(LAST_OWNER) is None:
        # Arrays are passed without an owner, so code that makes none never comes to it: any address does.
        harmless = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
        binding.add_symbol(LAST_OWNER, harmless)
    missing = [name for name in code.outside if not _found(name)]
    for name in LOWERED:
        _found(name)
    if missing:
        raise RuntimeError(f"compiled code needs {missing[0]}, which this process does not have")
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    for part in code.parts:
        engine.add_object_file(binding.object_file.ObjectFileRef.from_data(part))
    engine.finalize_object()
    return engine


@functools.cache
def _found(name: str) -> bool:
    """Whether LLVM finds a function; one of C's mathematics, which not every process has at hand, is made known."""
    binding = _binding()
    if binding.address_of_symbol(name) is None:
        with suppress(AttributeError, OSError):
            library = ctypes.CDLL(MATHEMATICS.get(sys.platform))
            binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    return binding.address_of_symbol(name) is not None


@functools.cache
def _numba_memory() -> None:
    """Make known to LLVM the functions by which numba's code takes and returns memory."""
    memory = require("numba.core.runtime._nrt_python", extra="run")
    for name, address in memory.c_helpers.items():
        _binding().add_symbol(name if name.startswith("_") else NRT + name, address)
