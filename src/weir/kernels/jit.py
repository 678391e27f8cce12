"""One way to compile a kernel: cached on disk, without the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from weir.errors import require

__all__ = ["compiled_before", "jit"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled_before() -> bool:
    """Whether kernels of this installation lie compiled in the cache, so that they need not be compiled now."""
    places = [Path(__file__).parent / "__pycache__"]
    if "NUMBA_CACHE_DIR" in os.environ:
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    return any(next(place.rglob("*.nbi"), None) is not None for place in places)


def jit(function: F) -> F:
    """Compile a function of arrays with numba; raises MissingExtra without the `run` extra.

    The lock is released while it runs, so plain threads run kernels side by side.
    Arithmetic is IEEE double or single, never reordered: scores must not depend on the machine.
    """
    numba = require("numba", extra="run")
    return cast(F, numba.njit(function, nogil=True, cache=True, boundscheck=False, error_model="numpy"))
