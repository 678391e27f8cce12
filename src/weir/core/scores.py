"""What the measures say: one value for each measure and query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.strings import Float64, Int64
from weir.errors import UnknownName

__all__ = ["Scores"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Values of measures on queries; nothing is rounded.

    measures: their names; queries: Ids[Q], all judged queries; values: float64[M, Q], NaN where a
    measure is undefined; answered: bool[Q], whether the run returned anything; tied: share of returned
    documents whose score is another's too; ignored: queries of the run that nobody judged.
    """

    measures: tuple[str, ...]
    queries: Ids
    values: Float64
    answered: NDArray[np.bool_]
    tied: float = 0.0
    ignored: int = 0

    def of(self, measure: str) -> Float64:
        """The values of one measure, float64[Q]; raises UnknownName."""
        if measure not in self.measures:
            raise UnknownName("measure among these scores", measure, self.measures)
        values: Float64 = self.values[self.measures.index(measure)]
        return values

    def id_order(self) -> Int64:
        """The queries by identifier: the order in which they are resampled, whatever order a file lists them in."""
        return np.argsort(self.queries.tie_ranks)

    def in_id_order(self, measure: str) -> Float64:
        """The values of one measure by query identifier, float64[Q]; raises UnknownName."""
        return self.of(measure)[self.id_order()]

    def means(self) -> Float64:
        """The mean of each measure over the queries where it is defined; NaN where there is none."""
        # fsum is exact, so the order of the queries in a file cannot move the last digit.
        rows = [row[~np.isnan(row)] for row in self.values]
        return np.array([math.fsum(row.tolist()) / len(row) if len(row) else math.nan for row in rows])
