"""One way to compile a kernel: once for each machine, without the interpreter lock, found again without the compiler.

A kernel is compiled by numba when it is first called with arguments of some types; its machine code is kept
(`code_cache.py`) and later processes load it (`loader.py`) without importing numba, whose import and set-up take
longer than most of what they would be for. Arithmetic is IEEE double or single, never reordered: scores must not
depend on the machine.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import numpy as np

from weir.errors import BadValue, MissingExtra

__all__ = ["Kernel", "available", "check_available", "jit", "listening", "spent"]

F = TypeVar("F", bound=Callable[..., Any])
Listener = Callable[[str], None]


def jit(function: F) -> F:
    """A function of arrays, compiled when it is first called, or loaded where that was done before; see `Kernel`."""
    return cast(F, Kernel(function))


def check_available() -> None:
    """Raises MissingExtra without the `run` extra, BadValue where NUMBA_DISABLE_JIT forbids compiled code."""
    if not installed():
        raise MissingExtra("numba", "run")
    if _forbidden():
        raise BadValue("NUMBA_DISABLE_JIT is set, and this needs compiled code; unset it")


def available() -> bool:
    """Whether kernels can be run here."""
    return installed() and not _forbidden()


def _forbidden() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


@functools.cache
def installed() -> bool:
    """Whether what compiles kernels is installed; it is not imported."""
    try:
        return all(find_spec(name) is not None for name in ("numba", "llvmlite"))
    except (ImportError, ValueError):
        return False


class Kernel:
    """A function that is compiled for the types of its arguments; other kernels may call it too.

    Calls from several threads run side by side; arrays are used in place. A whole number is an int64, another number
    a float64, and a named tuple holds some of them. A call raises what `check_available` raises, TypeError for an
    argument that is none of these, RuntimeError where the compiled code fails: no memory or, under
    NUMBA_BOUNDSCHECK=1, an index out of bounds.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._known: dict[str, Callable[..., Any]] = {}
        self._last: Callable[..., Any] = _none_yet
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the kernel takes and returns
        """Run it."""
        found = self._last(*_leaves(arguments))
        return self._other(arguments) if found is NotImplemented else found

    def _other(self, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401  whatever the kernel returns
        """The call where the code that was used last does not take these arguments as they are."""
        plain = tuple(_plain(a) for a in arguments)
        types = " ".join(_type(a) for a in plain)
        with self._lock:
            call = self._known.get(types)
            if call is None:
                with _clock():
                    call = self._known[types] = _prepared(self, plain, types)
            self._last = call
        found = call(*_leaves(plain))
        assert found is not NotImplemented  # it was made for these types
        return found

    @functools.cached_property
    def dispatcher(self) -> Any:  # noqa: ANN401 - numba's
        """What numba compiles this function by."""
        from weir.kernels.jit.compiler import dispatcher

        return dispatcher(self.py_func)

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - numba's own protocol, for kernels that call this one
        return self.dispatcher._numba_type_


def _leaves(arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments one by one, those that a named tuple holds in its place."""
    found: list[Any] = []
    for argument in arguments:
        if isinstance(argument, tuple):
            found += argument
        else:
            found.append(argument)
    return found


def _none_yet(*_: object) -> object:
    return NotImplemented


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever was passed
    """An argument as compiled code takes it: arrays of the plain class and numpy's usual types, Python's numbers."""
    if isinstance(value, np.ndarray):
        array = np.asarray(value)
        usual = np.dtype(array.dtype.str)
        return array if array.dtype.num == usual.num else array.view(usual)
    if isinstance(value, tuple):
        return type(value)(*map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def _type(value: object) -> str:
    """The type of an argument that `_plain` returned, in a word."""
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


def _prepared(kernel: Kernel, arguments: tuple[Any, ...], types: str) -> Callable[..., Any]:
    """The kernel's machine code for arguments of these types, loaded or made now."""
    check_available()
    from weir.kernels.jit.code_cache import CodeCache
    from weir.kernels.jit.loader import loaded

    cache = CodeCache.of(kernel.py_func, types)
    code = cache.read()
    if code is None:
        for told in _listeners:
            told(kernel.py_func.__name__)
        with _no_collection():
            from weir.kernels.jit.compiler import compiled

            code = compiled(kernel.dispatcher, arguments)
        cache.write(code)
    return loaded(code)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python from looking for garbage among the compiler's objects, then and when the process ends.

    There are some hundred thousand that live as long as the process; looking takes a fifth of the time of compiling.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


_listeners: list[Listener] = []
_spent = [0.0]


def spent() -> float:
    """Seconds for which this process has compiled and loaded kernels until now."""
    return _spent[0]


@contextmanager
def listening(told: Listener) -> Iterator[None]:
    """Have `told` called with the name of each kernel that is compiled meanwhile; loading one is not worth a word."""
    _listeners.append(told)
    try:
        yield
    finally:
        _listeners.remove(told)


@contextmanager
def _clock() -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        _spent[0] += time.perf_counter() - began
