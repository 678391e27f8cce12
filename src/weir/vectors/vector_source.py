"""Vectors that a search can read in blocks, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64

__all__ = ["ArraySource", "Float32", "Progress", "ReportingSource", "SubsetSource", "VectorSource", "spread"]

Float32: TypeAlias = NDArray[np.float32]


Progress: TypeAlias = Callable[[int, int], None]


class VectorSource(Protocol):
    """Vectors that can be read in blocks."""

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        ...

    def __len__(self) -> int: ...

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1, float32[n, d] in rows without gaps, valid until the next block is asked for."""
        ...

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers: float32[n, d], copied."""
        ...

    def release(self) -> None:
        """Give back what memory blocks read before still take."""
        ...


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Vectors in memory or memory-mapped: any float array [N, d]."""

    values: NDArray[np.floating]

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1; a view where they are float32 already."""
        return np.ascontiguousarray(self.values[start:stop], np.float32)

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers, copied."""
        return np.ascontiguousarray(self.values[numbers], np.float32)

    def release(self) -> None:
        """Nothing: the array is the caller's."""


@dataclass(frozen=True, eq=False)
class SubsetSource:
    """Some of other vectors. numbers: int64[n], which."""

    rows: VectorSource
    numbers: Int64

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return self.rows.dimensions

    def __len__(self) -> int:
        return len(self.numbers)

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1 of those chosen; what was read for them is given back at once, being copied."""
        found = self.rows.take(self.numbers[start:stop])
        self.rows.release()
        return found

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers among those chosen."""
        return self.rows.take(self.numbers[numbers])

    def release(self) -> None:
        """See VectorSource."""
        self.rows.release()


@dataclass(frozen=True, eq=False)
class ReportingSource:
    """Vectors that tell how far a search has read them. progress: told (vectors read, all)."""

    rows: VectorSource
    progress: Progress

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return self.rows.dimensions

    def __len__(self) -> int:
        return len(self.rows)

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1, told before they are read."""
        self.progress(start, len(self.rows))
        return self.rows.block(start, stop)

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """See VectorSource."""
        return self.rows.take(numbers)

    def release(self) -> None:
        """See VectorSource."""
        self.rows.release()


def spread(count: int, runs: int, each: int) -> Int64:
    """Numbers of documents, ascending: so many runs, evenly spread over `count` documents, of `each` side by side."""
    first = np.arange(runs, dtype=np.int64) * count // max(runs, 1)
    numbers = np.unique(first[:, None] + np.arange(each))
    return numbers[numbers < count]
