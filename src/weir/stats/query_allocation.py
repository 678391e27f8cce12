"""How many more queries of each stratum people should judge, and how far that narrows intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.stats.distributions import normal_quantile
from weir.stats.prediction_powered import LEVEL
from weir.stats.sample_design import PairedValues

__all__ = ["QueryVariances", "allocated", "query_variances"]

LEAST_AFTER = 2
"""Queries of each stratum that people are to have judged, so that its variance is known."""
POOLED_QUERIES = 4
"""As how many queries of its own the variance of all strata counts in that of one."""


@dataclass(frozen=True, eq=False)
class QueryVariances:
    """What the variance of the corrected mean of each system is made of, by stratum.

    queries, judged: int64[H], queries of each stratum, and those that people judged; left: float64[S, H], the variance
    of people's values that the model does not explain; seen: float64[S, H], that which it does; apart: float64[S], that
    of the means of strata.
    """

    queries: Int64
    judged: Int64
    left: Float64
    seen: Float64
    apart: Float64

    def half_width(self, judged: Int64) -> float:
        """Half the 95% interval of the system whose is widest, with so many queries of each stratum judged.

        Infinite where a stratum has none.
        """
        here = self.queries > 0
        if (judged[here] < 1).any():
            return math.inf
        queries, count = self.queries[here], judged[here]
        share = queries / queries.sum()
        variance = (self.seen[:, here] / queries + self.left[:, here] / count) @ share**2
        variance += self.apart / queries.sum()
        return normal_quantile((1 + LEVEL) / 2) * math.sqrt(float(variance.max(initial=0.0)))


def query_variances(
    values: list[PairedValues], strata: tuple[NDArray[np.integer], NDArray[np.integer]], count: int
) -> QueryVariances:
    """The variances of systems' values; strata: int[n] and int[N], of the queries people judged and of the others.

    The variance within a stratum is pulled towards that of all strata together, as if of so many queries more. Raises
    BadValue for fewer than four queries that people judged.
    """
    mine, alone = strata
    if len(mine) < POOLED_QUERIES:
        raise BadValue(
            f"people judged {len(mine)} queries; {POOLED_QUERIES} at least say how far the model errs: judge some "
            "drawn at random first"
        )
    judged = np.bincount(mine, minlength=count)
    queries = judged + np.bincount(alone, minlength=count)
    left, seen, apart = np.zeros((len(values), count)), np.zeros((len(values), count)), np.zeros(len(values))
    for system, one in enumerate(values):
        spread = float(np.concatenate([one.whole, one.alone]).var(ddof=1))
        covariance = float(np.cov(one.human, one.whole)[0, 1])
        slope = min(1.0, max(0.0, covariance / spread)) if spread else 0.0
        left[system] = _within(one.human - slope * one.whole, mine, judged)
        seen[system] = np.maximum(_within(one.human, mine, judged) - left[system], 0.0)
        share = queries / queries.sum()
        mean = np.divide(np.bincount(mine, one.human, count), judged, out=np.zeros(count), where=judged > 0)
        known = np.where(judged > 0, share, 0.0)
        centre = float(known @ mean) / float(known.sum())
        apart[system] = float(known @ (mean - centre) ** 2)
    return QueryVariances(queries.astype(np.int64), judged.astype(np.int64), left, seen, apart)


def _within(values: Float64, stratum: NDArray[np.integer], judged: NDArray[np.integer]) -> Float64:
    """The variance of values within each stratum, drawn to that within all."""
    count = len(judged)
    mean = np.divide(np.bincount(stratum, values, count), judged, out=np.zeros(count), where=judged > 0)
    squares = np.bincount(stratum, (values - mean[stratum]) ** 2, count)
    together = float(squares.sum()) / max(1, len(values) - int((judged > 0).sum()))
    found: Float64 = (squares + POOLED_QUERIES * together) / (np.maximum(judged - 1, 0) + POOLED_QUERIES)
    return found


def allocated(found: QueryVariances, cost: Float64, more: int | None, width: float | None = None) -> Int64:
    """How many more queries of each stratum to judge, int64[H].

    cost: float64[H], pairs that a query of each takes; more: queries in all, or width: until half the interval of every
    system is so small or everything is judged. One query after another goes where it takes the most from the variance
    of the systems' mean for each pair that it costs, after two of each stratum. Source: Neyman 1934.
    """
    queries, judged = found.queries, found.judged.copy()
    share = queries / queries.sum()
    weight = share**2 * found.left.mean(axis=0) / np.maximum(cost, 1e-9)
    limit = int((queries - judged).sum()) if more is None else min(more, int((queries - judged).sum()))
    for _ in range(limit):
        if width is not None and more is None and found.half_width(judged) <= width:
            break
        gain = weight * (1 / np.maximum(judged, 0.5) - 1 / (judged + 1.0)) + 1e-300
        gain[judged < np.minimum(queries, LEAST_AFTER)] = np.inf
        gain[judged >= queries] = -1.0
        judged[int(np.argmax(gain))] += 1
    return judged - found.judged
