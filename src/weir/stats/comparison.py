"""What a comparison of systems is and how it is made, as values: method, table, standings, pairs, verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from weir.core.ids import Ids
from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.stats import paired, permutation, tukey  # noqa: F401  each registers its tests
from weir.stats.bootstrap import LEVEL, SEED
from weir.stats.corrections import CORRECTIONS
from weir.stats.intervals import INTERVALS
from weir.stats.power import POWER, Family, Reach
from weir.stats.significance import DRAWS, TEST, TESTS

__all__ = ["Comparison", "ComparisonMethod", "DatasetCounts", "Pair", "ScoreTable", "Standing", "Verdict"]

Verdict: TypeAlias = Literal["better", "worse", "equivalent", "not separable"]


@dataclass(frozen=True)
class ComparisonMethod:
    """How systems are compared; every field is part of the result.

    test, correct, interval: names in TESTS, CORRECTIONS and INTERVALS; level: of the intervals, and 1 - level is
    that of the tests; power: of the minimum detectable effect; draws, seed: of a test that draws; margin: how large
    a difference still counts as none, to find systems equivalent. Raises BadValue or UnknownName.
    """

    test: str = TEST
    correct: str = "holm"
    interval: str = "t"
    level: float = LEVEL
    power: float = POWER
    draws: int = DRAWS
    seed: int = SEED
    margin: float | None = None

    def __post_init__(self) -> None:
        TESTS.get(self.test)
        CORRECTIONS.get(self.correct)
        INTERVALS.get(self.interval)
        if not 0 < self.level < 1:
            raise BadValue(f"the level is {self.level}; expected between 0 and 1")
        if not 1 - self.level < self.power < 1:
            raise BadValue(f"the power is {self.power}; expected between {1 - self.level:g} and 1")
        if self.draws < 1:
            raise BadValue(f"the number of draws is {self.draws}; expected at least 1")
        if self.margin is not None and not (self.margin > 0 and math.isfinite(self.margin)):
            raise BadValue(f"the margin is {self.margin}; expected a number above 0")

    @property
    def alpha(self) -> float:
        """The level of the tests."""
        return 1 - self.level

    @property
    def correction(self) -> str:
        """The correction that is made: none where the test's p-values hold for all pairs together already."""
        return "none" if TESTS.get(self.test).familywise else self.correct

    def family(self, tests: int, systems: int, alike: int = 1) -> Family:
        """The tests that are adjusted together, of so many tests of so many systems; alike as in `Family`."""
        if TESTS.get(self.test).familywise:
            return Family(systems * (systems - 1) // 2, 1, "none")
        if self.correct == "none":
            return Family(1, 1, "none")
        return Family(tests, alike, self.correct)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Values of one measure that several systems have on the same queries.

    values: float64[K, Q], a row for each system, columns in the order of the identifiers, without NaN; left_out:
    queries that not all systems have a value for; unit: what a column is; span: the largest possible difference of
    two values, infinite where the measure has no bounds; geometric: values are logarithms, so that
    the means reported are exponentials of theirs, and differences are differences of logarithms; parts: where
    columns are datasets, the values on the queries of each, float64[K, Q] for each of its parts; queries: what the
    columns are, None where they are datasets; group: the group of queries that they are, "" for all.
    """

    dataset: str
    measure: str
    systems: tuple[str, ...]
    values: Float64
    left_out: int = 0
    unit: str = "queries"
    span: float = math.inf
    geometric: bool = False
    parts: tuple[tuple[Float64, ...], ...] = ()
    queries: Ids | None = None
    group: str = ""

    def take(self, columns: Int64) -> ScoreTable:
        """The table of these queries alone, by number; raises BadValue for a table whose columns are datasets."""
        if self.queries is None:
            raise BadValue(f"{self.dataset}: a comparison across datasets has no queries to take")
        queries = self.queries.take(columns)
        return replace(self, values=self.values[:, columns], left_out=0, queries=queries)


@dataclass(frozen=True)
class Standing:
    """A system in a comparison: its mean with the percentile bootstrap interval of `weir eval`, and its place.

    low, high: None for fewer queries than `fewest`; best, worst: its rank by the verdicts, 1 + the systems that are
    better than it, and their number less the systems that are worse; letters: two systems share one exactly if
    neither is better; "" against a baseline, where not all pairs are compared, and where nothing could be found.
    """

    system: str
    mean: float
    low: float | None
    high: float | None
    best: int
    worst: int
    letters: str


@dataclass(frozen=True)
class Pair:
    """Two systems: the second against the first, which is the baseline or was given earlier.

    difference: second minus first, with its interval, whose bounds are None for fewer queries than `fewest`; p,
    adjusted: before and after the correction over so many `comparisons`; effect: Hedges' g, the mean difference over
    the standard deviation of the differences, corrected for few queries, None where there is no deviation and for two
    queries; won, lost, tied: queries on which the second is higher, lower, equal; detectable: the smallest true
    difference that the test finds with the wanted power in new data, corrected as here, where one of the two differs so
    from all others and nothing else does; None where that is more than the measure's whole range, where the test finds
    none so often, and of a test of which none can be said; equivalence: corrected p-value of lying within the margin,
    None without one; verdict: what the second is.
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float
    adjusted: float
    comparisons: int
    effect: float | None
    won: int
    lost: int
    tied: int
    detectable: float | None
    equivalence: float | None
    verdict: Verdict


@dataclass(frozen=True)
class DatasetCounts:
    """On how many datasets a system is better than a baseline.

    difference: of the means over datasets; higher, lower, equal: by the mean on each dataset alone, as papers count;
    better, worse, equivalent, not_separable: by the verdict on each dataset.
    """

    system: str
    baseline: str
    datasets: int
    difference: float
    higher: int
    lower: int
    equal: int
    better: int
    worse: int
    equivalent: int
    not_separable: int


@dataclass(frozen=True)
class Comparison:
    """What one measure on one dataset says about several systems, best mean first.

    reach: whether the test can find anything here; tallies: of a comparison across datasets with a baseline; group: the
    group of queries it is on, "" for all.
    """

    dataset: str
    measure: str
    count: int
    unit: str
    left_out: int
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    baseline: str | None
    method: ComparisonMethod
    reach: Reach
    geometric: bool = False
    tallies: tuple[DatasetCounts, ...] = ()
    group: str = ""
