"""One way to compile a kernel: cached on disk, without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from weir.errors import require

__all__ = ["jit"]

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile a function of arrays with numba; raises MissingExtra without the `run` extra.

    The lock is released while it runs, so plain threads run kernels side by side.
    Arithmetic is IEEE double or single, never reordered: scores must not depend on the machine.
    """
    numba = require("numba", extra="run")
    return cast(F, numba.njit(function, nogil=True, cache=True, boundscheck=False, error_model="numpy"))
