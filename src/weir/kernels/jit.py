"""One way to compile a kernel: cached on disk, without the interpreter lock."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from weir.errors import require

__all__ = ["compiled_before", "jit"]

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _sources() -> str:
    """A short hash of the source of every kernel."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.blake2b(b"".join(texts), digest_size=6).hexdigest()


def compiled_before() -> bool:
    """Whether kernels of this installation lie compiled in the cache, so that they need not be compiled now."""
    places = [Path(__file__).parent / "__pycache__"]
    if "NUMBA_CACHE_DIR" in os.environ:
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    return any(next(place.rglob(f"*{_sources()}*.nbi"), None) is not None for place in places)


def jit(function: F) -> F:
    """Compile a function of arrays with numba; raises MissingExtra without the `run` extra.

    The lock is released while it runs, so plain threads run kernels side by side.
    Arithmetic is IEEE double or single, never reordered: scores must not depend on the machine.
    """
    numba = require("numba", extra="run")
    # The cache looks at the function's own file only; a kernel it calls may have changed in another. The name
    # is part of the cache's key, so it bears the state of all kernels.
    function.__qualname__ = f"{function.__name__}_{_sources()}"
    return cast(F, numba.njit(function, nogil=True, cache=True, boundscheck=False, error_model="numpy"))
