"""Comparisons of systems that end with a verdict: better, worse, equivalent, undecided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked_fields
from weir.core.frames import plain
from weir.core.origin import apart
from weir.core.query_metadata import QueryGroups
from weir.core.results import result
from weir.core.rounding import change, count, effect, probability, score, share
from weir.core.scores import JudgedScores, Note, Scores, averaged
from weir.core.short_names import short_names
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import STYLES, Cell, Table, sentences, table_of
from weir.errors import BadValue, UnknownName
from weir.measures.measure import direction, judged_by_default, no_direction_note, within_unit
from weir.stats.intervals import INTERVALS, bounds, two_level_means
from weir.stats.power import POWER, Family, Reach, detectable, equivalence, excess_kurtosis, reach, reach_note
from weir.stats.resampling import FEW_VALUES, LEVEL, RESAMPLES, SEED, few_bounds, fewest, mean_bounds
from weir.stats.significance import (
    CORRECTIONS,
    DRAWS,
    TEST,
    TESTS,
    Draws,
    Pairs,
    adjusted,
    all_pairs,
    deviation_of,
    exact_mean,
    p_values,
)

_NAMED = 3  # queries of a message


def on_same_queries(
    dataset: str, before: JudgedScores, after: JudgedScores, common: bool
) -> tuple[Scores, Scores, list[Note]]:
    """(both scores on the same queries, notes on the queries that were left out).

    common: keep the queries that both have with the same judgments. Raises BadValue, naming the queries, where queries,
    judgments or conventions differ without `common`, and where no query is left.
    """
    one, other = before.scores, after.scores
    if one.conventions != other.conventions:
        raise BadValue(
            f"{dataset}: the baseline was scored with the conventions {one.conventions}, the candidate with "
            f"{other.conventions}"
        )
    ours, theirs = one.queries.tolist(), other.queries.tolist()
    shared = set(ours) & set(theirs)
    marked = bool(before.marks and after.marks)
    # A query of stored scores may be one of no judgments.
    marks = {q: (before.marks.get(q), after.marks.get(q)) for q in shared} if marked else {}
    anew = sorted(q for q, (first, now) in marks.items() if first is None or first != now)
    differences = []
    for where, queries in (
        ("only in the baseline", [q for q in ours if q not in shared]),
        ("only in the candidate", [q for q in theirs if q not in shared]),
        ("judged otherwise since", anew),
    ):
        if queries:
            names = ", ".join(queries[:_NAMED]) + (", ..." if len(queries) > _NAMED else "")
            verb = "queries are" if len(queries) > 1 else "query is"
            differences.append(f"{len(queries)} {verb} {where} ({names})")
    if not marked and not (before.judgments and before.judgments == after.judgments):
        if before.judgments and after.judgments:
            raise BadValue(
                f"{dataset}: baseline and candidate are scores by different judgments, and of which queries is not "
                "seen here; the same weir run scores both again"
            )
        differences.append("whether the judgments are the same cannot be seen, as the collection is not here")
    if not differences:
        return one, other, []
    if not common:
        raise BadValue(
            f"{dataset}: baseline and candidate are not of the same judgments: {'; '.join(differences)}; save the "
            "baseline anew, or compare on the queries that both have (--common)"
        )
    same = [q for q in ours if q in shared and q not in set(anew)]
    if not same:
        raise BadValue(f"{dataset}: baseline and candidate share no query with the same judgments")
    note = Note(f"{dataset}: {len(same)} queries are compared; {'; '.join(differences)}")
    first, second = (scores.take(scores.queries.codes(same).astype(np.int64)) for scores in (one, other))
    return first, second, [note]


Verdict: TypeAlias = Literal["better", "worse", "equivalent", "not separable", "-"]
"""What a system is; "-" by a measure of which more is neither better nor worse."""


@checked_fields
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
        """The level of the tests, without the rounding of the subtraction: 0.05 is not below it."""
        return round(1 - self.level, 12)

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
    two values, infinite where the measure has no bounds; geometric: values on queries are logarithms, so that
    the means reported are exponentials of theirs, and differences are differences of logarithms; parts: where
    columns are datasets, which then hold means as they are reported, the values on the queries of each, float64[K, Q]
    for each of its parts; strata: where columns
    are the queries of several parts that weigh the same, the values of each, not scaled; queries: what the
    columns are, None where they are datasets; group: the group of queries that they are, "" for all; unit_of: what the
    dataset counts as in a mean over datasets, the collection whose split it is.
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
    strata: tuple[Float64, ...] = ()
    queries: Ids | None = None
    group: str = ""
    unit_of: str = ""

    @property
    def comparable(self) -> bool:
        """Whether it has two columns, which a comparison needs."""
        return int(self.values.shape[1]) > 1

    def take(self, columns: Int64) -> ScoreTable:
        """The table of these queries alone, by number; raises BadValue for a table whose columns are datasets."""
        if self.queries is None:
            raise BadValue(f"{self.dataset}: a comparison across datasets has no queries to take")
        queries = self.queries.take(columns)
        return replace(self, values=self.values[:, columns], left_out=0, queries=queries)

    def ordered(self, systems: Sequence[int]) -> ScoreTable:
        """The table with its systems in this order."""
        rows = list(systems)
        return replace(
            self,
            systems=tuple(self.systems[k] for k in rows),
            values=self.values[rows],
            parts=tuple(tuple(values[rows] for values in dataset) for dataset in self.parts),
            strata=tuple(values[rows] for values in self.strata),
        )

    @property
    def logarithms(self) -> bool:
        """Whether the values are logarithms: never of datasets, whose means are compared."""
        return self.geometric and not self.parts

    def means(self) -> list[float]:
        """What the mean of each system is reported as: over datasets or parts that of their means, as tables of scores
        have it, also where those are geometric."""
        if self.parts:
            return [exact_mean(row) for row in self.values]
        return means_of_parts(self.strata or (self.values,), self.geometric)


def means_of_parts(parts: Sequence[Float64], geometric: bool) -> list[float]:
    """The mean of each system over the means of parts, float64[K, Q] each; geometric: whether values are logarithms."""
    return [
        exact_mean(np.array([averaged(exact_mean(row), geometric) for row in rows]))
        for rows in zip(*parts, strict=True)
    ]


@dataclass(frozen=True)
class Standing:
    """A system in a comparison: its mean with the interval of `weir eval`, and its place.

    low, high: None where there is none, as for fewer queries than `fewest` and values that are all equal; best, worst:
    its rank by the verdicts, 1 + the systems that are better than it, and their number less the systems that are worse,
    None by a measure without a direction; letters: two systems share one exactly if neither is better; "" against a
    baseline, where not all pairs are compared, and where nothing could be found.
    """

    system: str
    mean: float
    low: float | None
    high: float | None
    best: int | None
    worst: int | None
    letters: str


@dataclass(frozen=True)
class Pair:
    """Two systems: the second against the first, which is the baseline or was given earlier.

    difference: second minus first, with its interval, whose bounds are None for fewer queries than `fewest` and where
    all differences are equal; p, adjusted: before and after the correction over so many `comparisons`; effect: Hedges'
    g, the mean difference over the standard deviation of the differences, corrected for few queries, None where there
    is no deviation and for two queries; won, lost, tied: queries on which the second is better, worse, equal;
    detectable: the smallest true difference that the test finds with the wanted power in new data, corrected as here,
    where one of the two differs so from all others and nothing else does; None where that is more than the measure's
    whole range, where the test finds none so often, where all differences are equal, and of a test of which none can be
    said; equivalence: corrected p-value of lying within the margin, None without one; verdict: what the second is.
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

    @property
    def reversed(self) -> Pair:
        """The same, said of the first against the second."""
        turned: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            low=None if self.high is None else -self.high,
            high=None if self.low is None else -self.low,
            effect=None if self.effect is None else -self.effect,
            won=self.lost,
            lost=self.won,
            verdict=turned.get(self.verdict, self.verdict),
        )


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

    def against(self, system: str, other: str) -> Pair | None:
        """A system against another one, whichever was given first; None where the two were not compared."""
        for pair in self.pairs:
            if (pair.second, pair.first) == (system, other):
                return pair
            if (pair.first, pair.second) == (system, other):
                return pair.reversed
        return None


def refuse_apart(dataset: str, scores: Mapping[str, Scores]) -> None:
    """Raise BadValue for scores by name that do not belong together: of other judgments or other conventions."""
    (name, first), *others = scores.items()
    for other, one in others:
        reasons = apart(first.origin, one.origin)
        if one.conventions != first.conventions:
            reasons.append(f"by the conventions {first.conventions} and {one.conventions}")
        if reasons:
            raise BadValue(
                f"{dataset}: {name} and {other} do not compare, being scores {' and '.join(reasons)}; score both alike"
            )


def table(dataset: str, measure: str, scores: Mapping[str, Scores], least: int = 2) -> ScoreTable:
    """The values of several systems on the queries for which all have one.

    least: of how many queries at least; one alone counts in means over datasets. Raises BadValue for fewer than two
    systems, and where they share, or have values on, fewer queries.
    """
    if len(scores) < 2:
        raise BadValue(f"{dataset}: a comparison needs at least two systems; found {len(scores)}")
    refuse_apart(dataset, scores)
    first, *others = scores.values()
    order = first.id_order()
    names = first.queries.strings.take(order)
    rows, common, shared = [], np.ones(len(order), np.bool_), np.ones(len(order), np.bool_)
    for one in (first, *others):
        codes = one.queries.codes(names)
        has = codes >= 0
        row = np.full(len(order), np.nan)
        row[has] = one.of(measure)[codes[has]]
        common &= has
        shared &= ~np.isnan(row)
        rows.append(row)
    every = set(first.queries.tolist()).union(*(o.queries.tolist() for o in others))
    count = int(shared.sum())
    if count < least:
        if common.sum() < 2:
            problem = f"the systems share {'one query only' if count else 'no query'}"
        else:
            problem = f"{'only one' if count else 'no'} query has a value of every system"
        raise BadValue(f"{dataset}, {measure}: {problem}; a comparison needs at least two")
    return ScoreTable(
        dataset,
        measure,
        tuple(scores),
        np.stack(rows)[:, shared],
        len(every) - count,
        span=1.0 if within_unit(measure) else math.inf,
        geometric=measure in first.geometric,
        queries=Ids(names).take(np.flatnonzero(shared)),
        unit_of=first.origin.collection or dataset,
    )


def compared(
    scores: ScoreTable, baseline: str | None = None, method: ComparisonMethod | None = None
) -> Comparison:
    """Compare the systems of a table: each with each, or each with a baseline.

    The correction counts the tests that are made: all pairs, or all systems but the baseline. Ranks and letters
    follow from the verdicts. Raises UnknownName for a baseline that is not among the systems.
    """
    return compared_together([scores], baseline, method)[0]


def compared_together(
    tables: Sequence[ScoreTable], baseline: str | None = None, method: ComparisonMethod | None = None
) -> list[Comparison]:
    """Compare the systems of each table, as `compared`; the correction counts the tests of all tables together."""
    method = method or ComparisonMethod()
    tested = [_tested(table, baseline, method) for table in tables]
    return [_comparison(one, [other for other in tested if other is not one], baseline, method)
            for one in tested]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _TestedTable:
    """A table with its systems best first, the p-values of its pairs, and the smallest possible p-value.

    pairs: int64[P, 2], the second against the first, which is the baseline or was given earlier; p: of differences,
    same: of lying within the margin, NaN without one; means: of the values of the systems.
    """

    table: ScoreTable
    pairs: Pairs
    p: Float64
    same: Float64
    smallest: float
    means: list[float]


def _tested(table: ScoreTable, baseline: str | None, method: ComparisonMethod) -> _TestedTable:
    if baseline is not None and baseline not in table.systems:
        raise UnknownName("system to be the baseline", baseline, table.systems)
    means, reported = [exact_mean(row) for row in table.values], table.means()
    way = direction(table.measure) or 1
    ranked = sorted(range(len(means)), key=lambda k: (-way * reported[k], table.systems[k]))
    # Draws follow the systems in this order, so that p-values do not depend on the order of the arguments.
    best_first = table.ordered(ranked)
    names = best_first.systems
    if baseline is None:
        every = all_pairs(len(ranked)).tolist()
        chosen = [(i, j) if ranked[i] < ranked[j] else (j, i) for i, j in every]
    else:
        first = names.index(baseline)
        chosen = [(first, k) for k in range(len(ranked)) if k != first]
    pairs, draws = np.array(chosen, np.int64), Draws(method.draws, method.seed)
    p = p_values(method.test, best_first.values, pairs, draws)
    smallest = TESTS.get(method.test).smallest(table.values.shape[1], len(names), draws)
    same = equivalences(best_first.values[pairs[:, 1]] - best_first.values[pairs[:, 0]], method)
    return _TestedTable(best_first, pairs, p, same, smallest, [means[k] for k in ranked])


def _comparison(
    tested: _TestedTable, beside: Sequence[_TestedTable], baseline: str | None, method: ComparisonMethod
) -> Comparison:
    """The comparison of a table; beside: tables whose tests the correction counts too."""
    table, pairs, p, means = tested.table, tested.pairs, tested.p, tested.means
    values, names = table.values, table.systems
    systems, units = values.shape
    other_p = np.concatenate([np.empty(0), *(other.p for other in beside)])
    family = method.family(len(pairs) + len(other_p), systems, 1 if baseline is not None else systems - 1)
    smallest = [np.full(len(o.p), o.smallest) for o in beside] if family.correct != "none" else []
    others, draws = np.concatenate([np.empty(0), *smallest]), Draws(method.draws, method.seed)
    possible = reach(method.test, units, method.alpha, family, draws, systems, others)
    corrected = adjusted(np.concatenate([p, other_p]), method.correction)
    differences = values[pairs[:, 1]] - values[pairs[:, 0]]

    # Intervals of means and of differences.
    mean_ends: list[list[float | None]] = [[None, None]] * systems
    reported = table.means()
    pair_ends: list[list[float | None]] = [[None, None]] * len(pairs)
    if units >= fewest(method.level):
        ends, draws = [(1 - method.level) / 2, (1 + method.level) / 2], Draws(RESAMPLES, method.seed)
        if method.interval == "two-level" and table.parts:
            samples = two_level_means(table.parts, draws, table.geometric)
            of_means = np.quantile(samples, ends, axis=0).T
            of_pairs = np.stack([np.quantile(samples[:, j] - samples[:, i], ends) for i, j in pairs.tolist()])
        else:  # the samples of means are those of `weir eval`, so the intervals are too
            of_means = _mean_bounds(table, method.level)
            of_pairs = _difference_bounds(table, differences, pairs, method, draws)
        # An interval cut at the bounds of what it estimates covers it as often. Source: Mandelkern 2002.
        mean_ends, pair_ends = _or_none(of_means), _or_none(np.clip(of_pairs, -table.span, table.span))

    equal_p = adjusted(np.concatenate([tested.same, *(other.same for other in beside)]), method.correct)
    way = direction(table.measure)
    unit = math.inf  # what is detectable is a multiple of the deviation
    if possible.possible and TESTS.get(method.test).detection is not None:
        kurtosis = excess_kurtosis(differences)
        unit = detectable(1.0, units, method.power, method.alpha, method.test, family, kurtosis)
    compared_pairs = []
    better = np.zeros((systems, systems), np.bool_)
    for number, (i, j) in enumerate(pairs.tolist()):
        row, pair_p, same_p = differences[number], float(corrected[number]), float(equal_p[number])
        mean, deviation = means[j] - means[i], deviation_of(row)
        low, high = pair_ends[number]
        least = unit * deviation if deviation else math.inf
        outcome = verdict_of(mean, pair_p, same_p, method.alpha, way)
        better[j, i], better[i, j] = outcome == "better", outcome == "worse"
        compared_pairs.append(
            Pair(
                *(names[i], names[j], mean, low, high, float(p[number]), pair_p, family.tests),
                hedges_g(mean, deviation, units),
                *signs(row * (way or 1)),
                least if math.isfinite(least) and least <= table.span else None,
                None if method.margin is None else same_p,
                outcome,
            )
        )

    decided = possible.possible or any(pair.verdict != "not separable" for pair in compared_pairs)
    groups = letters(better | better.T) if baseline is None and decided and way else [""] * systems
    standings = []
    for k, name in enumerate(names):
        low, high = mean_ends[k]
        best, worst = 1 + int(better[:, k].sum()), systems - int(better[k].sum())
        place = (low, high, best if way else None, worst if way else None, groups[k])
        standings.append(Standing(name, reported[k], *place))
    return Comparison(
        *(table.dataset, table.measure, units, table.unit, table.left_out, tuple(standings)),
        tuple(compared_pairs),
        baseline,
        method,
        possible,
        table.logarithms,
        group=table.group,
    )


def _mean_bounds(table: ScoreTable, level: float) -> Float64:
    """Bounds of the mean of each system as it is reported, float64[K, 2], those of `weir eval`."""
    unit = np.full(len(table.systems), within_unit(table.measure))
    if table.strata:
        return mean_bounds(table.strata, level=level, unit=unit, geometric=table.geometric)
    return mean_bounds([table.values], level=level, unit=unit, geometric=table.logarithms)


def _difference_bounds(
    table: ScoreTable, differences: Float64, pairs: Pairs, method: ComparisonMethod, draws: Draws
) -> Float64:
    """Bounds of the differences of pairs, float64[P, 2]; NaN where all are equal.

    Student's within small parts that weigh the same have the variances of these, not one of all their queries.
    """
    parts = table.strata
    if method.interval != "t" or not parts or min(part.shape[1] for part in parts) >= FEW_VALUES:
        return bounds(differences, method.interval, method.level, draws)
    if min(part.shape[1] for part in parts) < 2:
        return np.full((len(pairs), 2), np.nan)
    ends = [few_bounds([part[j] - part[i] for part in parts], method.level) for i, j in pairs.tolist()]
    return np.array(ends)


def _or_none(ends: Float64) -> list[list[float | None]]:
    """Bounds with None for those that there are none of."""
    return [[None if math.isnan(end) else end for end in row] for row in ends.tolist()]


def compare_scores(
    scores: Mapping[str, Scores],
    dataset: str,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
    groups: QueryGroups | None = None,
    measures: Sequence[str] = (),
) -> list[Comparison]:
    """One comparison for each measure that all systems have; with groups of queries, those of `compared_by_group`.

    measures: by default those of `judged_by_default`. Raises BadValue for fewer than two systems, and what
    `shared_measures`, `table` and these comparisons raise.
    """
    if len(scores) < 2:
        raise BadValue(f"a comparison needs at least two systems; found {len(scores)}")
    comparisons = []
    shared = shared_measures(scores.values())
    for measure in measures or judged_by_default(shared):
        values = table(dataset, measure, scores)
        if groups is None:
            comparisons.append(compared(values, baseline, method))
        else:
            comparisons += compared_by_group(values, groups, baseline, method)
    return comparisons


def shared_measures(scores: Iterable[Scores]) -> list[str]:
    """The measures that all have, in the order of the first; raises BadValue where there is none."""
    first, *others = [s.measures for s in scores]
    shared = [m for m in first if all(m in o for o in others)]
    if not shared:
        raise BadValue("the systems have no measure in common; score them with the same ones")
    return shared


def signs(differences: Float64) -> tuple[int, int, int]:
    """How many are above, below and at zero."""
    above, below = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return above, below, int(np.sum(differences == 0))


def equivalences(differences: Float64, method: ComparisonMethod) -> Float64:
    """p-values of lying within the method's margin, by row; NaN without one."""
    if method.margin is None:
        return np.full(len(differences), np.nan)
    return np.array([equivalence(d, method.margin) for d in differences])


def hedges_g(mean: float, deviation: float, count: int) -> float | None:
    """Hedges' g of a mean difference; None where there is no deviation and for two queries."""
    if count < 3 or not deviation:
        return None
    return mean / deviation * (1 - 3 / (4 * (count - 1) - 1))


def verdict_of(mean: float, p: float, same: float, alpha: float, way: int = 1) -> Verdict:
    """What the p-values of a difference and of equivalence say; equivalence first: a tiny difference is none.

    way: 1 where more is better, -1 where less is, 0 where neither is: then there is no verdict.
    """
    if not way:
        return "-"
    if same < alpha:
        return "equivalent"
    if p < alpha and mean:
        return "better" if way * mean > 0 else "worse"
    return "not separable"


def letters(apart: NDArray[np.bool_]) -> list[str]:
    """Letters of systems, best first: two systems share a letter exactly if they cannot be told apart.

    apart: bool[K, K], symmetric, whether two systems differ by the test. Groups are as large as can be. Letters go
    on with aa, ab after z. Raises BadValue for a matrix that is not symmetric. Source: Piepho 2004 (insert and absorb).
    """
    count = len(apart)
    if apart.shape != (count, count) or (apart != apart.T).any():
        raise BadValue("which systems are apart must be a symmetric square matrix")
    groups = [(1 << count) - 1] if count else []
    for i, j in zip(*np.nonzero(np.triu(apart, 1)), strict=True):
        both = 1 << int(i) | 1 << int(j)
        split = [g for g in groups if g & both == both]
        if not split:
            continue
        whole = [g for g in groups if g & both != both]
        halves = sorted({g & ~(1 << int(k)) for g in split for k in (i, j)}, key=int.bit_count, reverse=True)
        for half in halves:
            if not any(half & g == half for g in whole):
                whole.append(half)
        groups = whole
    members = sorted([k for k in range(count) if g >> k & 1] for g in groups)
    names = [""] * count
    for number, group in enumerate(members):
        letter, place = "", number + 1
        while place:
            place, digit = divmod(place - 1, 26)
            letter = chr(ord("a") + digit) + letter
        for k in group:
            names[k] += letter if len(members) <= 26 else f"{letter} "
    return [name.strip() for name in names]


# Comparisons across datasets.


def across(datasets: Mapping[str, Sequence[ScoreTable]], name: str) -> ScoreTable:
    """The means of the systems on several datasets, as a table whose columns are datasets.

    datasets: the table of each, or those of its parts, whose means are averaged, geometric ones too. What is compared
    then is the mean over datasets, with datasets as the random factor: would it be so on other datasets? Raises
    BadValue for fewer than two datasets, or where the systems or the measure are not the same.
    """
    if len(datasets) < 2:
        raise BadValue(f"a comparison across datasets needs at least two; found {len(datasets)}")
    first = _alike([t for tables in datasets.values() for t in tables])
    parts = [sorted(datasets[name], key=lambda t: t.dataset) for name in sorted(datasets)]
    of_parts = tuple(tuple(t.values for t in tables) for tables in parts)
    return replace(
        first,
        dataset=name,
        values=np.array([means_of_parts(each, first.geometric) for each in of_parts]).T,
        left_out=0,
        unit="datasets",
        parts=of_parts,
        queries=None,
        group="",
    )


def compared_across(
    datasets: Mapping[str, Sequence[ScoreTable]],
    name: str,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
    each: Iterable[Comparison] = (),
) -> Comparison:
    """Compare the systems across datasets; with a baseline, also count the datasets on which each is better or worse.

    Arguments and errors as `across` and `compared`; each: comparisons of datasets with the baseline that are made
    already. A dataset counts as better or worse where its own comparison says so, which is corrected for the number
    of systems, not of datasets; that of several parts is of all their queries, each part weighing the same; one of a
    single query counts as not separable.
    """
    comparison = compared(across(datasets, name), baseline, method)
    if baseline is None:
        return comparison
    by_dataset = {c.dataset: c for c in each}
    verdicts: dict[str, list[str]] = {pair.second: [] for pair in comparison.pairs}
    for dataset, tables in datasets.items():
        whole = pooled(tables, dataset)
        own = by_dataset.get(dataset) or (compared(whole, baseline, method) if whole.comparable else None)
        by_system = {} if own is None else {pair.second: pair.verdict for pair in own.pairs}
        for system, of_system in verdicts.items():
            of_system.append(by_system.get(system, "not separable"))
    less = direction(comparison.measure) < 0
    tallies = [
        DatasetCounts(
            *(
                pair.second,
                baseline,
                comparison.count,
                pair.difference,
                *((pair.lost, pair.won) if less else (pair.won, pair.lost)),
                pair.tied,
            ),
            *(verdicts[pair.second].count(v) for v in ("better", "worse", "equivalent", "not separable")),
        )
        for pair in comparison.pairs
    ]
    return replace(comparison, tallies=tuple(tallies))


def verdicts_across(
    datasets: Mapping[str, Sequence[ScoreTable]], method: ComparisonMethod | None = None
) -> dict[tuple[str, str], Verdict]:
    """What is said of the first of each two systems against the second, over the datasets that both have.

    Arguments as of `across`, but that systems may lack datasets. One dataset alone is compared on its queries, several
    by their means, corrected over all pairs together: where no system lacks any, the verdicts are those of
    `compared_across`. Two systems that share fewer than two of several datasets have none.
    """
    method = method or ComparisonMethod()
    if len(datasets) == 1:
        [tables] = datasets.values()
        whole = pooled(tables, tables[0].dataset)
        pairs = compared(whole, None, method).pairs if whole.comparable else ()
        second = {(p.second, p.first): p.verdict for p in pairs}
        return second | {(p.first, p.second): p.reversed.verdict for p in pairs}
    names = tuple(dict.fromkeys(s for tables in datasets.values() for t in tables for s in t.systems))
    values = np.full((len(names), len(datasets)), np.nan)
    for column, (_, tables) in enumerate(sorted(datasets.items())):
        parts = sorted(tables, key=lambda t: t.dataset)
        for row, name in enumerate(names):
            if all(name in t.systems for t in parts):
                own = [t.values[[t.systems.index(name)]] for t in parts]
                [values[row, column]] = means_of_parts(own, parts[0].geometric)
    every = all_pairs(len(names))
    shared = ~np.isnan(values[every[:, 0]] + values[every[:, 1]])
    p, means = np.full(len(every), np.nan), np.zeros(len(every))
    for columns in np.unique(shared, axis=0):
        if columns.sum() > 1:
            here = np.flatnonzero((shared == columns).all(axis=1))
            of = np.nan_to_num(values[:, columns])
            p[here] = p_values(method.test, of, every[here], Draws(method.draws, method.seed))
            means[here] = [exact_mean(of[i]) - exact_mean(of[j]) for i, j in every[here].tolist()]
    way = direction(next(iter(datasets.values()))[0].measure)
    verdicts = dict[tuple[str, str], Verdict]()
    for (i, j), mean, value in zip(
        every.tolist(), means.tolist(), adjusted(p, method.correction), strict=True
    ):
        if not math.isnan(value):
            verdicts[names[i], names[j]] = verdict_of(mean, value, math.nan, method.alpha, way)
            verdicts[names[j], names[i]] = verdict_of(-mean, value, math.nan, method.alpha, way)
    return verdicts


def pooled(tables: Sequence[ScoreTable], name: str) -> ScoreTable:
    """The parts of a dataset as one table over all their queries, in which every part weighs the same.

    Each value is scaled so that the mean over all queries is the mean of the parts' means. One part alone is that
    part. Raises BadValue for no parts, or where the systems or the measure are not the same.
    """
    if len(tables) == 1:
        return tables[0]
    first, parts = _alike(tables), sorted(tables, key=lambda t: t.dataset)
    total = sum(t.values.shape[1] for t in parts)
    values = np.concatenate([t.values * (total / (len(parts) * t.values.shape[1])) for t in parts], axis=1)
    strata, left_out = tuple(t.values for t in parts), sum(t.left_out for t in parts)
    return replace(first, dataset=name, values=values, left_out=left_out, strata=strata, queries=None)


def _alike(tables: Sequence[ScoreTable]) -> ScoreTable:
    """The first of tables that can be joined."""
    if len({(t.systems, t.measure) for t in tables}) != 1:
        raise BadValue("a comparison across datasets needs the same systems and measure on each")
    return tables[0]


# Comparisons by group of queries.

BY_GROUP = ComparisonMethod(correct="bh")
"""The default for groups: the correction of Benjamini and Hochberg."""


def compared_by_group(
    scores: ScoreTable,
    groups: QueryGroups,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Compare the systems on all queries, by the macro mean over groups, and on each group of at least two queries.

    The correction of a group counts the tests of all groups. In the macro mean every group weighs the same, whatever
    its queries. method: by default BY_GROUP. Raises BadValue where no group has two queries, and for a test whose
    p-values hold for one table only.
    """
    method = method or BY_GROUP
    if TESTS.get(method.test).familywise:
        raise BadValue(
            f"{method.test} holds for the pairs of one group alone; take another test for several groups"
        )
    assert scores.queries is not None
    rows = groups.rows(scores.queries)
    parts = [replace(scores.take(at), group=label) for label, at in rows.items() if len(at) > 1]
    if not parts:
        raise BadValue(f"{scores.dataset}, {groups.name}: no group has two queries, which a comparison needs")
    tables = [replace(part, dataset=part.group) for part in parts]  # in one order whatever the dataset
    single = len(rows) - len(parts)
    without = f" ({single} of one query left out)" if single else ""
    macro = replace(pooled(tables, scores.dataset), group=f"macro mean of {len(parts)} groups{without}")
    each = compared_together(parts, baseline, method)
    return [compared(scores, baseline, method), compared(macro, baseline, method), *each]


# Tables.

_PAIR_HEAD = ("pair", "difference", "p", "adjusted", "Hedges' g", "won/lost/tied")
ALONE = "an interval is of one difference alone, a verdict of all comparisons together"
"""Why an interval may leave out 0 where nothing is separable."""
FEW_SYSTEMS = 3
"""Systems up to which a sentence says of each how it fares across datasets."""
SEVERAL = 6
"""Systems up to which every pair is listed unasked."""


def disagrees(pair: Pair) -> bool:
    """Whether the interval of a difference and its verdict seem to say other things of 0."""
    if pair.low is None or pair.high is None:
        return False
    return (pair.low > 0 or pair.high < 0) != (pair.verdict in ("better", "worse"))


def rank_text(standing: Standing, to: str = "-") -> str:
    """A rank, or a range of ranks with a dash of this kind; a dash alone where there is none."""
    if standing.best is None:
        return to
    return str(standing.best) if standing.best == standing.worst else f"{standing.best}{to}{standing.worst}"


def verdict(pair: Pair, c: Comparison) -> str:
    """What can be said of the second system against the first, in their comparison."""
    if pair.verdict != "not separable":
        return pair.verdict
    if pair.tied and not pair.won and not pair.lost:
        return "not separable (equal throughout)"
    if not c.reach.possible:
        return f"not separable (too few {c.unit if c.reach.fewest is not None else 'draws'})"
    if TESTS.get(c.method.test).detection is None:
        return "not separable"
    if pair.effect is None and c.count > 2:
        return "not separable (all differences are equal)"
    if pair.detectable is None:
        return "not separable (not even the largest difference would be found)"
    return f"not separable (minimum detectable effect {score(pair.detectable)})"


def family(c: Comparison) -> str:
    """Over which comparisons the verdicts of a table hold together."""
    tests = c.pairs[0].comparisons if c.pairs else 0
    if TESTS.get(c.method.test).familywise:
        return f"{c.method.test} over all {tests} pairs"
    if c.method.correct == "none":
        return "not adjusted"
    return f"{c.method.correct}, adjusted over {tests} comparison{'s' * (tests != 1)}"


def tally(counts: DatasetCounts) -> str:
    """On how many datasets a system is higher than the baseline by its mean, and on how many by the verdict."""
    by_mean = [("higher", counts.higher), ("lower", counts.lower), ("equal", counts.equal)]
    verdicts = [("better", counts.better), ("worse", counts.worse), ("equivalent", counts.equivalent)]
    always = {"higher", "lower", "better", "worse"}
    means = ", ".join(f"{what} on {n}" for what, n in by_mean if n or what in always)
    certain = ", ".join(f"{what} on {n}" for what, n in verdicts if n or what in always)
    return (
        f"{counts.system} against {counts.baseline} on {counts.datasets} datasets, by mean: {means} "
        f"({change(counts.difference)} over all); by verdict: {certain}, not separable on {counts.not_separable}"
    )


def relabelled(comparisons: Sequence[Comparison], labels: Mapping[str, str]) -> list[Comparison]:
    """The comparisons with labels in the place of names; no number depends on a label."""

    def label(system: str) -> str:
        return labels.get(system, system)

    return [
        replace(
            c,
            standings=tuple(replace(s, system=label(s.system)) for s in c.standings),
            pairs=tuple(replace(p, first=label(p.first), second=label(p.second)) for p in c.pairs),
            tallies=tuple(replace(t, system=label(t.system), baseline=label(t.baseline)) for t in c.tallies),
            baseline=None if c.baseline is None else label(c.baseline),
        )
        for c in comparisons
    ]


def _csv(c: Comparison) -> list[dict[str, object]]:
    about = {"dataset": c.dataset, "group": c.group, "measure": c.measure, "count": c.count, "unit": c.unit}
    return [about | plain(pair) for pair in c.pairs]


def _pages(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """The means with the marks that papers use, and below them every pair with its verdict."""
    lines = [
        [f"{c.dataset}, {c.group}" if c.group else c.dataset, c.measure, *_pair(p, c)]
        for c in comparisons
        for p in c.pairs
    ]
    head = ["dataset", "measure", *_PAIR_HEAD, "verdict"]
    [means] = marked_means(comparisons)
    pairs = table_of([head, *lines], right=5, keys=3, tail=1, notes=means.notes)
    return replace(means, notes=()), pairs


def _notebook(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """Of several datasets the means of each measure as a grid, and every pair folded; of one as `_pages`."""
    means, pairs = _pages(comparisons)
    cells = _marked_cells(comparisons)
    if len({where for where, _ in cells}) < 2:
        return means, pairs
    systems = tuple(dict.fromkeys(system for _, system in cells))
    labels, grids = short_names(systems), []
    for measure in dict.fromkeys(c.measure for c in comparisons):
        lines: list[list[str | Cell]] = [["dataset", *labels]]
        for where in dict.fromkeys(where for where, _ in cells):
            row = [cells.get((where, system), {}).get(measure) for system in systems]
            if any(row):
                lines.append([where, *(cell or "-" for cell in row)])
        grids.append(table_of(lines, right=None, title=measure))
    legend = [f"{label}: {system}" for label, system in zip(labels, systems, strict=True) if label != system]
    grids[-1] = replace(grids[-1], notes=(*pairs.notes, *legend))
    return *grids, replace(pairs, notes=(), folded=f"{len(pairs.rows)} pairs, each with its verdict")


def _marked_cells(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], dict[str, Cell]]:
    """Of each dataset and system the marked mean by each measure."""
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for c in comparisons:
        marks = {p.second: p.verdict for p in c.pairs} if c.baseline is not None else {}
        for s in c.standings:
            best = s.best is not None and s.mean == c.standings[0].mean
            where = f"{c.dataset}, {c.group}" if c.group else c.dataset
            of = cells.setdefault((where, s.system), {})
            of[c.measure] = Cell(score(s.mean), best, s.letters, marks.get(s.system, ""))
    return cells


def marked_means(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """A line for each dataset and system, a column for each measure, with the markers that papers use.

    The best mean is bold; letters are groups: systems that share one cannot be told apart. Against a baseline triangles
    mark better and worse instead.
    """
    measures = list(dict.fromkeys(c.measure for c in comparisons))
    cells = _marked_cells(comparisons)
    rows = [
        [Cell(dataset), Cell(system), *(of.get(m, Cell("")) for m in measures)]
        for (dataset, system), of in cells.items()
    ]
    tallies = [f"{c.measure}: {tally(t)}" for c in comparisons for t in c.tallies]
    notes = [*tallies, *_notes(comparisons, explain=True)]
    return (table_of([["dataset", "system", *measures], *rows], right=None, keys=2, notes=notes),)


@result("compare", Comparison, page=_pages, html=_notebook, parts="pairs", csv=_csv)
def compare_tables(
    comparisons: Sequence[Comparison], long: bool = False, explain: bool = False
) -> tuple[Table, ...]:
    """Of each comparison the systems by value with their groups, then the verdict on each pair.

    Of more than six systems only the pairs with the best are listed, unless `long`; letters tell of the others. Systems
    go by short names, which are explained below; explain: how the numbers were made, too.
    """
    systems = tuple(dict.fromkeys(s.system for c in comparisons for s in c.standings))
    labels = dict(zip(systems, short_names(systems), strict=True))
    comparisons = relabelled(comparisons, labels)
    tables = []
    grouped = [c for c in comparisons if c.group]
    for dataset, measure in dict.fromkeys((c.dataset, c.measure) for c in grouped):
        tables.append(
            _by_group([c for c in comparisons if (c.dataset, c.measure) == (dataset, measure)], long)
        )
    for c in [] if grouped else comparisons:
        left_out = f", {c.left_out} left out that not all systems have" if c.left_out else ""
        lettered = any(s.letters for s in c.standings)
        lines = [["system", "mean", "rank", *["group"] * lettered]]
        for s in c.standings:
            mean = score(s.mean) + _interval(score, s.low, s.high)
            lines.append([s.system, mean, rank_text(s), *[s.letters] * lettered])
        title = f"{c.measure} on {c.dataset} ({count(c.count)} {c.unit}{left_out})"
        tables.append(table_of(lines, title=title))
        listed = c.pairs if long or len(c.standings) <= SEVERAL else _with_best(c)
        head = [*_PAIR_HEAD, f"verdict ({family(c)})"]
        pairs = table_of([head, *(_pair(p, c) for p in listed)], right=5, tail=1)
        tables.append(replace(pairs, narrow=(1, 6)))
        if len(listed) < len(c.pairs):
            separable = sum(p.verdict in ("better", "worse") for p in c.pairs)
            tables.append(
                sentences(
                    f"{len(listed)} of {len(c.pairs)} pairs are listed, those with the best system; {separable} of all "
                    "are separable, which letters tell; --long lists them all"
                )
            )
        if 0 < len(c.tallies) <= FEW_SYSTEMS:
            tables.append(sentences(*map(tally, c.tallies)))
        elif c.tallies:
            head = ["system", "difference", "higher", "lower", "equal", "better", "worse", "equivalent"]
            rows = [
                [t.system, change(t.difference), *map(str, (t.higher, t.lower, t.equal, t.better, t.worse)),
                 *map(str, (t.equivalent, t.not_separable))]
                for t in c.tallies
            ]  # fmt: skip
            datasets = f"against {c.tallies[0].baseline} on {c.tallies[0].datasets} datasets"
            title = f"{datasets}: on how many by mean, and by verdict"
            tables.append(table_of([[*head, "not separable"], *rows], right=len(head), title=title))
    legend = [f"{label}: {system}" for system, label in labels.items() if label != system]
    return (*tables, sentences(*_notes(comparisons, explain), *legend))


def _by_group(comparisons: Sequence[Comparison], long: bool) -> Table:
    """A line for each group and pair: all queries first, then the macro mean, then the groups."""
    first, last = comparisons[0], comparisons[-1]
    head = ["group", "pair", "queries", "first", "second", "difference", "adjusted"]
    lines: list[Sequence[str | Cell]] = [[*head, "won/lost/tied", "verdict"]]
    for c in comparisons:
        means = {s.system: score(s.mean) for s in c.standings}
        for p in c.pairs if long or len(c.standings) <= SEVERAL else _with_best(c):
            pair, difference, _, adjusted_p, _, outcomes, _ = _pair(p, c)
            names = (c.group or "all queries", pair, count(c.count), means[p.first], means[p.second])
            certain = c.reach.possible or p.verdict != "not separable"
            lines.append([*names, difference, adjusted_p, outcomes, p.verdict if certain else verdict(p, c)])
    title = f"{first.measure} on {first.dataset}, by group; verdicts on groups: {family(last)}"
    return table_of(lines, right=6, keys=2, tail=1, title=title)


def _with_best(c: Comparison) -> tuple[Pair, ...]:
    """The pairs of a comparison that the best system is in; all of those with a baseline."""
    best = c.standings[0].system
    return c.pairs if c.baseline is not None else tuple(p for p in c.pairs if best in (p.first, p.second))


def _pair(p: Pair, c: Comparison) -> list[str | Cell]:
    text = verdict(p, c)
    return [
        f"{p.second} - {p.first}",
        change(p.difference) + _interval(change, p.low, p.high),
        probability(p.p),
        probability(p.adjusted),
        effect(p.effect),
        f"{p.won}/{p.lost}/{p.tied}",
        Cell(text, style=p.verdict) if p.verdict in STYLES else text,
    ]


def _notes(comparisons: Sequence[Comparison], explain: bool = False) -> list[str]:
    """What has to be known of the numbers; explain: how each was made."""
    if not comparisons:
        return ["nothing to compare"]
    first = comparisons[0]
    m = first.method
    kind = TESTS.get(m.test)
    drawn = f", {m.draws:,} draws, seed {m.seed}" if kind.drawn else ""
    test = f"{m.test} (randomised HSD)" if m.test == "tukey" else m.test
    lines = [f"{test} test at level {m.alpha:g}; --explain says how the numbers were made"]
    if explain:
        pairs = (
            "each minus the baseline" if first.baseline is not None else "the later given minus the earlier"
        )
        groups = "; group: systems that share a letter cannot be told apart"
        interval = f"its {100 * m.level:g}% interval ({m.interval})"
        lines = [
            f"difference: {pairs}, with {interval}; p: {test}{drawn}; level {m.alpha:g}",
            "rank, by the verdicts: 1 + the systems that are better, to all less those that are worse"
            + (groups if any(s.letters for c in comparisons for s in c.standings) else ""),
        ]
        if kind.detection is None:
            lines.append(f"minimum detectable effect: none is known of {m.test}; permutation and t have one")
        elif any(c.reach.possible for c in comparisons):
            corrected = "" if m.correction == "none" else f" with {m.correction}"
            lines.append(
                f"minimum detectable effect: a true difference that {m.test}{corrected} finds {100 * m.power:g} times "
                "in 100 in new data (weir power: of one test alone)"
            )
    lines += no_direction_note(c.measure for c in comparisons)
    lines += dict.fromkeys(
        reach_note(c.reach, m.test, c.count, c.unit, c.pairs[0].comparisons if c.pairs else 0)
        for c in comparisons
        if not c.reach.possible
    )
    if any(
        disagrees(p)
        for c in comparisons
        for p in c.pairs
        if p.verdict in ("not separable", "better", "worse")
    ):
        lines.append(f"{ALONE}, so that an interval may leave out 0 where the verdict is not separable")
    least = fewest(m.level)
    lines += [
        f"too few {unit} for an interval: {n}, at least {least} are needed; even the whole range of {n} holds the "
        f"median {share(1 - 2.0 ** (1 - n))} of the time only"
        for n, unit in dict.fromkeys((c.count, c.unit) for c in comparisons if c.count < least)
    ]
    enough = [c for c in comparisons if c.count >= least]
    if any(s.low is None for c in enough for s in c.standings) or any(
        p.low is None for c in enough for p in c.pairs
    ):
        lines.append("no interval: values that are all equal, or parts of a single query")
    if any(c.geometric for c in comparisons):
        names = ", ".join(sorted({c.measure for c in comparisons if c.geometric}))
        lines.append(f"{names}: means are geometric; differences are those of logarithms")
        for c in (c for c in comparisons if c.geometric):
            mean = {standing.system: standing.mean for standing in c.standings}
            lines += [
                f"{c.measure}, {c.group or c.dataset}: {pair.first} and {pair.second} are ordered otherwise by their "
                "means than by their logarithms, of which the verdict is"
                for pair in c.pairs
                if (mean[pair.second] - mean[pair.first]) * pair.difference < 0
            ]
    if m.interval == "two-level":
        lines.append(
            "two-level: datasets drawn with replacement, and queries within each; on one dataset, queries"
        )
    if m.margin is not None:
        lines.append(f"equivalent: the difference lies within ±{m.margin:g} (two one-sided t-tests)")
    return lines


def _interval(shown: Callable[[float], str], low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{shown(low)}, {shown(high)}]"
