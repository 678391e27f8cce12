"""What a fusion method sees: every document that some run returns, with its place in each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int32, Int64

__all__ = ["Candidates", "ascending", "total"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The documents returned for some queries by R runs: n pairs of query and document.

    query: int64[n], ascending numbers below Q; rank: int32[R, n] from 1, 0 where the run does not return the
    document; score: float64[R, n] normalised, 0 where it does not; sizes: int64[R, Q], how many documents each
    run returns for each query. Methods that go by ranks get no scores: float64[R, 0].
    """

    query: Int64
    rank: Int32
    score: Float64
    sizes: Int64

    @property
    def runs(self) -> int:
        """How many runs are fused."""
        return len(self.rank)

    @property
    def returned(self) -> NDArray[np.bool_]:
        """bool[R, n]: whether the run returns the document."""
        return self.rank > 0

    def count(self) -> Int64:
        """int64[n]: how many runs return each document."""
        times: Int64 = np.count_nonzero(self.rank, axis=0)
        return times

    def pooled(self) -> Int64:
        """int64[Q]: how many documents all runs together return for each query."""
        return np.bincount(self.query, minlength=self.sizes.shape[1])

    def by_rank(self, worth: Callable[[Float64], Float64]) -> Float64:
        """float64[R, n]: what each place is worth, 0 where a run does not return the document.

        worth: from ranks 1.0, 2.0, ... to values, applied once to each rank.
        """
        table = np.zeros(int(self.rank.max(initial=0)) + 1)
        table[1:] = worth(np.arange(1.0, len(table)))
        return table[self.rank]


def total(values: Float64) -> Float64:
    """float64[n]: the sum over runs, the same bits in whatever order the runs come.

    values: float64[R, n]; the smallest are added first.
    """
    rows = ascending(values)
    found = rows[0].copy()
    for row in rows[1:]:
        found += row
    return found


def ascending(values: Float64) -> list[Float64]:
    """The values of each column in ascending order, as rows."""
    rows = list(values)
    for end in range(len(rows) - 1, 0, -1):  # whole rows at a time: far faster than sorting short columns
        for i in range(end):
            rows[i], rows[i + 1] = np.minimum(rows[i], rows[i + 1]), np.maximum(rows[i], rows[i + 1])
    return rows
