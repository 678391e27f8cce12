"""What the measures say: one value for each measure and query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.strings import Float64, Int64
from weir.errors import UnknownName

__all__ = ["Scores", "averaged"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Values of measures on queries; nothing is rounded.

    measures: their names; queries: Ids[Q], all judged queries; values: float64[M, Q], NaN where a
    measure is undefined; answered: bool[Q], whether the run returned anything; tied: share of returned
    documents whose score is another's too; ignored: queries of the run that nobody judged; geometric: measures
    whose values are logarithms; conventions: those in force, as they print; low, high: float64[M, Q] the least and
    the greatest value that another order of tied documents gives, NaN where it is not known; None: not looked at;
    asked: other names by which measures were asked for, such as "AP(rel=1)", with those in `measures`; judged_at_10:
    the mean share of the first 10 documents returned that were judged, NaN where it is not known.
    """

    measures: tuple[str, ...]
    queries: Ids
    values: Float64
    answered: NDArray[np.bool_]
    tied: float = 0.0
    ignored: int = 0
    geometric: tuple[str, ...] = ()
    conventions: str = "default"
    low: Float64 | None = None
    high: Float64 | None = None
    asked: tuple[tuple[str, str], ...] = ()
    judged_at_10: float = math.nan

    def of(self, measure: str) -> Float64:
        """The values of one measure, by its name or as it was asked for, float64[Q]; raises UnknownName."""
        measure = dict(self.asked).get(measure, measure)
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
        """The mean of each measure over the queries where it is defined; NaN where there is none.

        Where the values are logarithms it is the geometric mean of what they are logarithms of.
        """
        return self._means(self.values)

    def counted(self) -> Int64:
        """How many queries the mean of each measure is over, int64[M]."""
        return _per_row(~np.isnan(self.values))

    def movable(self) -> Int64:
        """How many queries could have another value by the order of their tied documents, int64[M]."""
        if self.low is None or self.high is None:
            return np.zeros(len(self.measures), np.int64)
        changes = (self.low != self.high) & ~np.isnan(self.values)  # NaN differs from itself: it is not known
        return _per_row(changes)

    def corridor(self) -> Float64:
        """The least and the greatest mean that orders of ties give each measure, float64[M, 2]; NaN: not known."""
        if self.low is None or self.high is None:
            return np.full((len(self.measures), 2), np.nan)
        ends = np.stack(
            [self._means(np.where(np.isnan(self.values), np.nan, v)) for v in (self.low, self.high)]
        )
        unknown = _per_row(np.isnan(self.low) & ~np.isnan(self.values))
        return np.where(unknown[:, None] > 0, np.nan, ends.T)

    def _means(self, values: Float64) -> Float64:
        # fsum is exact, so the order of the queries in a file cannot move the last digit.
        rows = [row[~np.isnan(row)] for row in values]
        means = [math.fsum(row.tolist()) / len(row) if len(row) else math.nan for row in rows]
        pairs = zip(self.measures, means, strict=True)
        return np.array([averaged(mean, measure in self.geometric) for measure, mean in pairs])


def averaged(mean: float, geometric: bool) -> float:
    """What a mean of values is reported as, and a bound of it: the exponential where values are logarithms."""
    return math.exp(mean) if geometric else mean


def _per_row(cells: NDArray[np.bool_]) -> Int64:
    counts: Int64 = np.sum(cells, axis=1, dtype=np.int64)
    return counts
