"""Compile kernels once for each machine, to run without Python's global lock.

Arithmetic is IEEE and never reordered: scores are equal on all machines.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import hashlib
import itertools
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from weir.errors import BadValue, MissingExtra, require
from weir.settings import settings

# Kernels: functions of arrays that are compiled for the types of their arguments.

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Return the function as a kernel, compiled or loaded on its first call."""
    return cast(F, Kernel(function))


def check_available() -> None:
    """Raise MissingExtra without numba (the `run` extra), BadValue if NUMBA_DISABLE_JIT forbids compiled code."""
    if not installed():
        raise MissingExtra("numba", "run")
    if _forbidden():
        raise BadValue("NUMBA_DISABLE_JIT is set, and this needs compiled code; unset it")


def available() -> bool:
    """Return True if numba is installed and NUMBA_DISABLE_JIT does not forbid compiled code."""
    return installed() and not _forbidden()


def _forbidden() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


@functools.cache
def installed() -> bool:
    """Return True if numba and llvmlite are installed, without importing them."""
    try:
        return all(find_spec(name) is not None for name in ("numba", "llvmlite"))
    except (ImportError, ValueError):
        return False


class Kernel:
    """A function compiled for each combination of argument types: arrays, int, float, bool, and named tuples of
    these.

    Calls are thread-safe. They raise as `check_available`, TypeError for other arguments, RuntimeError for lack
    of memory or, under NUMBA_BOUNDSCHECK=1, an index out of bounds.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._calls: dict[str, Callable[..., Any]] = {}
        self._last: Callable[..., Any] = lambda *_: NotImplemented
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the kernel takes and returns
        result = self._last(*_leaves(arguments))
        if result is not NotImplemented:
            return result
        plain = tuple(_plain(a) for a in arguments)
        types = " ".join(_type(a) for a in plain)
        with self._lock:
            if types not in self._calls:
                self._calls[types] = _prepared(self, plain, types)
            self._last = call = self._calls[types]
        result = call(*_leaves(plain))
        assert result is not NotImplemented  # it was made for these types
        return result

    @functools.cached_property
    def dispatcher(self) -> Any:  # noqa: ANN401 - numba's
        """numba's dispatcher, which compiles the function for new types."""
        from weir.kernels.compiler import dispatcher

        return dispatcher(self.py_func)

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - numba's own protocol, for kernels that call this one
        return self.dispatcher._numba_type_


def _leaves(arguments: tuple[Any, ...]) -> list[Any]:
    leaves: list[Any] = []
    for argument in arguments:
        if isinstance(argument, tuple):
            leaves += argument
        else:
            leaves.append(argument)
    return leaves


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever was passed
    if isinstance(value, np.ndarray):
        array = np.asarray(value)
        usual = np.dtype(array.dtype.str)
        return array if array.dtype.num == usual.num else array.view(usual)
    if isinstance(value, tuple):
        return type(value)(*map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _type(value: object) -> str:
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{value.dtype.str}{value.ndim}{layout}{'' if flags.aligned else 'u'}{'' if flags.writeable else 'r'}"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({' '.join(map(_type, value))})"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return type(value).__name__
    raise TypeError(f"a kernel takes arrays and numbers, not {type(value).__name__}")


_listeners: list[Callable[[str], None]] = []
_spent = [0.0]


def _prepared(kernel: Kernel, arguments: tuple[Any, ...], types: str) -> Callable[..., Any]:
    started = time.perf_counter()
    try:
        check_available()
        cache = CodeCache.of(kernel.py_func, types)
        code = cache.read()
        if code is None:
            for listener in _listeners:
                listener(kernel.py_func.__name__)
            # The compiler's objects, some hundred thousand, live as long as the process: Python does not look for
            # garbage among them, now and when the process ends, which took a fifth of the time of compiling.
            enabled = gc.isenabled()
            gc.disable()
            try:
                from weir.kernels.compiler import compiled

                code = Code(*compiled(kernel.dispatcher, arguments, NUMPY_ARRAY))
            finally:
                gc.freeze()
                if enabled:
                    gc.enable()
            cache.store(code)
        return _runnable(code)
    finally:
        _spent[0] += time.perf_counter() - started


def spent() -> float:
    """Return the seconds that this process has spent compiling and loading kernels."""
    return _spent[0]


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Within the block, call `listener` with the name of each kernel that is compiled, not loaded."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


# Stored machine code.
#
# A file name consists of the kernel, a digest of the sources that can change its result (its own file and the kernels
# it imports, directly or not) and a digest of the target: argument types, processor, compiler versions. Files with an
# outdated digest of sources are removed.

ENDING = ".kernel"
SILENT = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
"""Environment variables of numba that do not change the code."""
KERNELS = Path(__file__).parent
IMPORTED = re.compile(rb"^\s*from weir\.kernels\.([\w.]+) import ([\w, ]*)", re.MULTILINE)


# numba compiles a kernel on its first call with arguments of some types (compiler.py). Later processes load the
# stored code by LLVM without importing numba, which would often take longer than the work.
@dataclass(frozen=True)
class Code:
    """A kernel's machine code for one combination of argument types."""

    arguments: str
    """A letter for each argument: O an array, q a signed and Q an unsigned integer, d a float, ? a bool."""
    result: str
    """The same letters; "(" first for a tuple, "" for None."""
    outside: tuple[str, ...]
    """Names of the external functions that it calls."""
    parts: tuple[bytes, ...]
    """Object files, the adapter of `compiler.py` first."""


@dataclass(frozen=True)
class CodeCache:
    """Cache file of a kernel's machine code for some argument types."""

    kernel: str
    sources: str
    target: str

    @staticmethod
    def of(function: Callable[..., Any], types: str) -> CodeCache:
        """Return the cache file of a function for arguments of these types."""
        module = function.__module__.rpartition(".")[2]
        return CodeCache(
            f"{module}.{function.__name__}",
            _sources(Path(function.__code__.co_filename)),
            _digest([_target().encode(), types.encode()]),
        )

    @property
    def file_name(self) -> str:
        """Name of the cache file."""
        return f"{self.kernel}-{self.target}-{self.sources}{ENDING}"

    def read(self) -> Code | None:
        """Return the stored code; None if missing or damaged."""
        for place in cache_folders():
            with suppress(OSError, ValueError, KeyError, TypeError):
                digest, _, body = (place / self.file_name).read_bytes().partition(b"\n")
                if digest != _digest([body]).encode():
                    continue
                line, _, rest = body.partition(b"\n")
                head = json.loads(line)
                cuts = np.cumsum([0, *head["sizes"]]).tolist()
                parts = tuple(rest[a:b] for a, b in itertools.pairwise(cuts))
                return Code(head["arguments"], head["result"], tuple(head["outside"]), parts)
        return None

    def store(self, code: Code) -> None:
        """Write code to the first writable cache folder and delete the kernel's older code there; do nothing if
        none is writable.
        """
        sizes = [len(part) for part in code.parts]
        head = {"arguments": code.arguments, "result": code.result, "outside": code.outside, "sizes": sizes}
        body = json.dumps(head).encode() + b"\n" + b"".join(code.parts)
        # The digest stands first, since damaged code would end the process.
        data = _digest([body]).encode() + b"\n" + body
        for place in cache_folders():
            with suppress(OSError):
                place.mkdir(parents=True, exist_ok=True)
                handle, temporary = tempfile.mkstemp(prefix=".", suffix=ENDING, dir=place)
                try:
                    with os.fdopen(handle, "wb") as file:
                        file.write(data)
                    Path(temporary).replace(place / self.file_name)
                except OSError:
                    Path(temporary).unlink(missing_ok=True)
                    raise
                for old in place.glob(f"{self.kernel}-{self.target}-*{ENDING}"):
                    if old.name != self.file_name:
                        old.unlink(missing_ok=True)
                return


def cache_folders() -> tuple[Path, ...]:
    """Return the cache folders in the order tried: `weir` in NUMBA_CACHE_DIR if set, else the package's
    __pycache__ and WEIR_HOME's.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return (Path(os.environ["NUMBA_CACHE_DIR"]) / "weir",)
    return KERNELS / "__pycache__", settings().home / "kernels"


def is_compiled(module: str) -> bool:
    """Return True if current machine code of a kernel in this module is cached.

    module: name below `weir.kernels`; raises FileNotFoundError for another.
    """
    path = _source(module)
    if not path.is_file():
        raise FileNotFoundError(path)
    ending = f"-{_sources(path)}{ENDING}"
    return any(next(place.glob(f"{path.stem}.*{ending}"), None) is not None for place in cache_folders())


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _source(module: str) -> Path:
    return KERNELS / f"{module.replace('.', '/')}.py"


@functools.cache
def _sources(path: Path) -> str:
    return _digest([file.name.encode() + text for file, text in sorted(source_files(path).items())])


def source_files(path: Path) -> dict[Path, bytes]:
    """Return {path: content} of a kernel's file, the kernel files that it imports, and the compiler's files."""
    files: dict[Path, bytes] = {}
    waiting = [path, _source("jit"), _source("compiler")]
    while waiting:
        file = waiting.pop()
        if file not in files and file.is_file():
            files[file] = file.read_bytes()
            for module, names in IMPORTED.findall(files[file]):
                modules = [module, *(module + b"." + name.strip() for name in names.split(b","))]
                waiting += [_source(name.decode()) for name in modules]
    return files


@functools.cache
def _target() -> str:
    llvm = require("llvmlite.binding", extra="run")
    variables = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in SILENT}
    spec = find_spec("numba")
    version = Path(spec.origin or "").with_name("_version.py") if spec is not None else Path()
    files = [f.read_text(encoding="utf-8") for f in (version, Path(".numba_config.yaml")) if f.is_file()]
    processor = [llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    versions = [llvm.__name__, require("llvmlite", extra="run").__version__, np.__version__.partition(".")[0]]
    return json.dumps(
        [sys.implementation.cache_tag, *processor, *versions, *files, sorted(variables.items())]
    )


# Machine code, loaded into this process and called.

NUMPY_ARRAY = "numpy_array"
"""Symbol for the address of numpy's array class, with which adapters compare."""
NRT = "NRT_"
"""Prefix of the names of numba's memory functions."""
MATHEMATICS = {"linux": "libm.so.6", "win32": "ucrtbase"}
"""Library of sqrt and other functions, by platform; elsewhere every process has them."""
LOWERED = ("fma", "fmaf", "fmin", "fminf", "fmax", "fmaxf", "rint", "rintf", "nearbyint", "nearbyintf")
"""Functions that code calls, without naming them, if the processor has no such instruction."""
LAST_OWNER = "NRT_MemInfo_call_dtor"
"""Called by numba's code when an array has no owner left."""
WORDS, STATUS, OTHER_TYPES = 9, 8, -1
Out = ctypes.c_int64 * WORDS
TAKEN: dict[str, Any] = {
    "O": ctypes.py_object, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "d": ctypes.c_double, "?": ctypes.c_int64,
}  # fmt: skip
GIVEN: dict[str, Any] = {
    "q": ctypes.c_int64, "Q": ctypes.c_uint64, "d": ctypes.c_double, "?": ctypes.c_bool,
}  # fmt: skip


def _runnable(code: Code) -> Callable[..., Any]:
    binding = _binding()
    memory = {name for name in code.outside if name.startswith(NRT)}
    if memory - {LAST_OWNER}:
        _add_numba_memory()
    elif memory and binding.address_of_symbol(LAST_OWNER) is None:
        # Arrays are passed without an owner, so code that makes none never comes to it: any address does.
        harmless = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
        binding.add_symbol(LAST_OWNER, harmless)
    missing = [name for name in code.outside if not _has_symbol(name)]
    for name in LOWERED:
        _has_symbol(name)
    if missing:
        raise RuntimeError(f"compiled code needs {missing[0]}, which this process does not have")
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    # One engine for each, since inner functions of kernels bear the same names.
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    for part in code.parts:
        engine.add_object_file(binding.object_file.ObjectFileRef.from_data(part))
    engine.finalize_object()
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *(TAKEN[a] for a in code.arguments))(
        engine.get_function_address("entry")
    )
    ctypes.c_int64.from_address(engine.get_global_value_address(NUMPY_ARRAY)).value = id(np.ndarray)
    result, is_tuple = code.result, code.result.startswith("(")
    kinds = [(8 * i, GIVEN[letter]) for i, letter in enumerate(result.removeprefix("("))]

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
        if not result:
            return None
        if result == "q":
            return out[0]
        values = tuple(kind.from_buffer(out, at).value for at, kind in kinds)
        return values if is_tuple else values[0]

    call.engine = engine  # type: ignore[attr-defined]  # the code lives as long as what calls it
    return call


@functools.cache
def _binding() -> Any:  # noqa: ANN401 - a module without types
    binding = require("llvmlite.binding", extra="run")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def _has_symbol(name: str) -> bool:
    binding = _binding()
    if binding.address_of_symbol(name) is None:
        with suppress(AttributeError, OSError):
            library = ctypes.CDLL(MATHEMATICS.get(sys.platform))
            binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    return binding.address_of_symbol(name) is not None


@functools.cache
def _add_numba_memory() -> None:
    memory = require("numba.core.runtime._nrt_python", extra="run")
    for name, address in memory.c_helpers.items():
        _binding().add_symbol(name if name.startswith("_") else NRT + name, address)
