"""Weights of queries: one over the probability with which each was drawn to be judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weir.core.ids import Ids
from weir.core.strings import Float64
from weir.errors import BadValue

__all__ = ["QueryWeights"]


@dataclass(frozen=True, eq=False)
class QueryWeights:
    """A weight for each query; only their ratios count.

    queries: Ids[Q]; weight: float64[Q], one over the probability of being drawn, above 0 and finite.
    """

    queries: Ids
    weight: Float64

    @staticmethod
    def of(weights: Mapping[str, object]) -> QueryWeights:
        """Weights from {query: weight}; raises BadValue for one that is no finite number above 0, naming its query."""
        found = []
        for query, weight in weights.items():
            number = float(weight) if isinstance(weight, (int, float, np.number)) else math.nan
            if not (math.isfinite(number) and number > 0):
                raise BadValue(
                    f"query '{query}': the weight is {weight!r}; expected a number above 0, one over the probability "
                    "with which the query was drawn"
                )
            found.append(number)
        return QueryWeights(Ids.of(str(query) for query in weights), np.array(found, np.float64))

    def of_queries(self, queries: Ids) -> Float64:
        """The weight of each of these queries; raises BadValue for one that has none."""
        codes = self.queries.codes(queries.strings)
        if (codes < 0).any():
            missing = queries[int(np.flatnonzero(codes < 0)[0])]
            raise BadValue(f"query '{missing}' is judged by people and has no weight; give each of them one")
        return self.weight[codes]
