"""Whether arrays of positions say what a loop without bounds checks may rely on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["below", "cuts", "permutes"]

Int64: TypeAlias = NDArray[np.int64]


def cuts(ptr: Int64, total: int) -> bool:
    """Whether pointers cut an array of so many entries into pieces: from 0 to its end, never falling."""
    return bool(len(ptr) and ptr[0] == 0 and ptr[-1] == total and (ptr[1:] >= ptr[:-1]).all())


def permutes(order: NDArray[np.integer]) -> bool:
    """Whether an array holds each number below its length once."""
    n = len(order)
    if not below(order, n):
        return False
    seen = np.zeros(n, np.bool_)
    seen[order] = True
    return bool(seen.all())


def below(values: NDArray[np.integer], count: int) -> bool:
    """Whether all numbers are from 0 to count - 1."""
    return values.size == 0 or 0 <= int(values.min()) <= int(values.max()) < count
