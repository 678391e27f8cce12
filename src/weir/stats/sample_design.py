"""How the judgments of people were drawn, and the mean that each way of drawing asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.query_groups import QueryGroups
from weir.core.query_weights import QueryWeights
from weir.core.strings import Float64, Int32
from weir.errors import BadValue
from weir.stats.drawn_means import LEAST_IN_STRATUM, partly_judged_mean, stratified_mean, weighted_mean
from weir.stats.prediction_powered import SampledMean, powered_mean

__all__ = ["AT_RANDOM", "DrawnQueries", "PairedValues", "SampleDesign", "numbered_strata"]


@dataclass(frozen=True, eq=False)
class SampleDesign:
    """How what people judged was drawn: queries at random, unless one of these says otherwise.

    strata: queries were drawn at random within each; weights: with these probabilities, one over them; pairs: of each
    query that people judged, a random part of the first documents. Raises BadValue for more than one of them.
    """

    strata: QueryGroups | None = None
    weights: QueryWeights | None = None
    pairs: bool = False

    def __post_init__(self) -> None:
        if (self.strata is not None) + (self.weights is not None) + self.pairs > 1:
            raise BadValue("queries were drawn by strata, by weights, or in parts (pairs): give one of them")

    def __str__(self) -> str:
        if self.strata is not None:
            return f"drawn within {len(self.strata)} strata ({self.strata.name})"
        if self.weights is not None:
            return "drawn with known probabilities"
        return "a random part of the documents of each" if self.pairs else "drawn at random"


AT_RANDOM = SampleDesign()


@dataclass(frozen=True, eq=False)
class PairedValues:
    """A system's values by query, or the differences of two systems'.

    human, model: float64[n], of the queries that people judged, both from what they judged; whole: float64[n], the
    model's from all it judged; alone: float64[N], the model's of the other queries.
    """

    human: Float64
    model: Float64
    whole: Float64
    alone: Float64

    def minus(self, other: PairedValues) -> PairedValues:
        """The differences to another system's values of the same queries."""
        return PairedValues(
            self.human - other.human,
            self.model - other.model,
            self.whole - other.whole,
            self.alone - other.alone,
        )

    @property
    def by_model(self) -> float:
        """The mean over all queries by the model."""
        return float(np.concatenate([self.whole, self.alone]).mean())


@dataclass(frozen=True, eq=False)
class DrawnQueries:
    """The queries of the model's judgments, as a design drew them.

    mine, alone: numbers of the model's queries that people judged, and of the others; strata: int[n] and int[N];
    weights: float64[n]; None where the design has none.
    """

    mine: NDArray[np.integer]
    alone: NDArray[np.integer]
    pairs: bool
    strata: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    weights: Float64 | None = None

    @staticmethod
    def of(design: SampleDesign, queries: Ids, mine: NDArray[np.integer]) -> DrawnQueries:
        """Of these of the queries, by their numbers, people judged documents.

        Raises BadValue for too few queries, of a stratum too, naming it, and for one without a stratum or weight.
        """
        alone = np.delete(np.arange(len(queries)), mine)
        if len(mine) < LEAST_IN_STRATUM or (
            len(alone) < LEAST_IN_STRATUM and design.strata is None and not design.pairs
        ):
            raise BadValue(
                f"{len(mine)} queries are judged by people and the model, {len(alone)} by the model alone; two of each "
                "are needed (if they judged a part of each query's documents: --pairs)"
            )
        strata = None if design.strata is None else _strata(design.strata, queries, mine, alone)
        weights = None if design.weights is None else design.weights.of_queries(queries.take(mine))
        return DrawnQueries(mine, alone, design.pairs, strata, weights)

    def mean(self, values: PairedValues, weight: float | None = None) -> SampledMean:
        """The mean that people would give; weight: of the model's values, 0 for people alone, None for the best."""
        if self.pairs:
            return partly_judged_mean(values.human, values.model, values.whole, values.alone, weight)
        if self.strata is not None:
            return stratified_mean(values.human, values.model, values.alone, self.strata, weight)
        if self.weights is not None:
            return weighted_mean(values.human, values.model, values.alone, self.weights, weight)
        return powered_mean(values.human, values.model, values.alone, weight)


def _strata(
    groups: QueryGroups, queries: Ids, mine: NDArray[np.integer], alone: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    stratum = numbered_strata(groups, queries)
    found = stratum[mine], stratum[alone]
    judged = np.bincount(found[0], minlength=len(groups))
    short = np.flatnonzero((judged < LEAST_IN_STRATUM) & (np.bincount(stratum, minlength=len(groups)) > 0))
    if len(short):
        raise BadValue(
            f"stratum '{groups.labels[int(short[0])]}' has {int(judged[short[0]])} queries that people judged; two at "
            "least are needed: judge more of it, or join it with another"
        )
    return found


def numbered_strata(groups: QueryGroups, queries: Ids) -> Int32:
    """The stratum of each of these queries, int32[Q]; raises BadValue for a query in none."""
    codes = groups.queries.codes(queries.strings)
    stratum = np.where(codes >= 0, groups.group[codes], -1).astype(np.int32)
    if (stratum < 0).any():
        missing = queries[int(np.flatnonzero(stratum < 0)[0])]
        raise BadValue(
            f"query '{missing}' is in no stratum of {groups.name}; every query that the model judged needs one"
        )
    return stratum
