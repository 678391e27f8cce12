"""Compare systems by a measure, with a verdict on each pair: better, worse, equivalent or not separable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked_fields
from weir.core.colours import STYLES
from weir.core.frames import json_value
from weir.core.origin import apart
from weir.core.query_metadata import QueryGroups
from weir.core.results import member_html, member_text
from weir.core.rounding import change, count, counted, effect, percent, probability, score
from weir.core.scores import JudgedScores, Note, Scores, averaged
from weir.core.short_names import short_names
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Cell, Table, sentences, table_of
from weir.errors import BadValue, UnknownName
from weir.measures.measure import (
    all_within_unit,
    direction,
    direction_notes,
    is_best,
    judged_by_default,
    within_unit,
)
from weir.stats.power import POWER, Family, Reach, detectable, equivalence, excess_kurtosis, reach, reach_note
from weir.stats.resampling import (
    DRAWS,
    FEW_VALUES,
    INTERVALS,
    LEVEL,
    MEAN_INTERVALS,
    RESAMPLES,
    SEED,
    Draws,
    bounds,
    few_bounds,
    fewest,
    mean_bounds,
    percentiles,
    two_level_means,
)
from weir.stats.run_noise import RunNoise, noise_notes, noise_of
from weir.stats.score_rows import MANY_UNANSWERED
from weir.stats.significance import (
    CORRECTIONS,
    TEST,
    TESTS,
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
    """Return (baseline scores, candidate scores, notes) on the queries that both have.

    common: leave out queries with unequal judgments, which otherwise raise BadValue.

    Raises BadValue also for different conventions, no common query, or changes that cannot be told.
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
    splits = [scores.origin.split for scores in (one, other)]
    if differences and all(splits) and splits[0] != splits[1]:
        differences.append(f"they are of the splits {splits[0]} and {splits[1]}")
    same = [q for q in ours if q in shared and q not in set(anew)]
    if not same:
        of = [scores.origin.collection or "another collection" for scores in (one, other)]
        apart = f"; the baseline may be of {of[0]}, the candidate of {of[1]}" * (
            not shared and of[0] != of[1]
        )
        raise BadValue(
            f"{dataset}: baseline and candidate share no query with the same judgments: "
            f"{'; '.join(differences)}{apart}; save a baseline of what is gated"
        )
    if not common:
        raise BadValue(
            f"{dataset}: baseline and candidate are not of the same judgments: {'; '.join(differences)}; save the "
            "baseline anew, or compare on the queries that both have (`common=True`)"
        )
    note = Note(f"{dataset}: {len(same)} queries are compared; {'; '.join(differences)}")
    first, second = (scores.take(scores.queries.codes(same).astype(np.int64)) for scores in (one, other))
    return first, second, [note]


Verdict: TypeAlias = Literal["better", "worse", "equivalent", "not separable", "-"]
"""The outcome of comparing two systems; "-" if the measure has no better direction."""


def usual_correction(test: str, by_group: bool = False) -> str:
    """Return the default correction: "bh" if `by_group`, unless the test covers all pairs (tukey), else
    "holm".

    Raises UnknownName for an unknown test, if `by_group`.
    """
    return "bh" if by_group and not TESTS.get(test).familywise else "holm"


def refuse_correction(test: str, correct: str, margin: float | None = None) -> None:
    """Raise BadValue for correcting a test that corrects itself (tukey), unless a margin is given."""
    if TESTS.get(test).familywise and correct != "none" and margin is None:
        raise BadValue(
            f"{test} holds for all pairs together, so that {correct} would correct them twice; leave the correction out"
        )


@checked_fields
@dataclass(frozen=True)
class ComparisonMethod:
    """Settings of a comparison; raises BadValue for values out of range, UnknownName for unknown names."""

    test: str = TEST
    """One of permutation, t, tukey (randomised HSD), bootstrap-shift, wilcoxon and sign."""
    correct: str = "holm"
    """One of holm, bonferroni, bh and none."""
    interval: str = "t"
    """Kind of the interval of a difference: t, percentile, bca, studentised, or two-level (over datasets)."""
    level: float = LEVEL
    """Level of the intervals; tests use 1 minus it."""
    power: float = POWER
    """Power at which the minimum detectable effect is computed."""
    draws: int = DRAWS
    """Number of draws of a randomised test."""
    seed: int = SEED
    """Seed of the draws."""
    margin: float | None = None
    """Largest difference that counts as equivalent; by default equivalence is not tested."""
    noise: tuple[RunNoise, ...] = ()
    """How the systems' means vary between repeated runs, which intervals and tests on queries allow for."""

    def __post_init__(self) -> None:
        TESTS.get(self.test)
        CORRECTIONS.get(self.correct)
        if self.correct != "holm":  # the default, which says nothing of a test that needs none
            refuse_correction(self.test, self.correct, self.margin)
        INTERVALS.get(self.interval)
        if not 0.5 <= self.level < 1:
            other = f"; for tests at {self.level:g} the level is {1 - self.level:g}" * (0 < self.level < 0.5)
            raise BadValue(f"the level is {self.level}, a confidence; expected from 0.5 to below 1{other}")
        if not 1 - self.level < self.power < 1:
            raise BadValue(f"the power is {self.power}; expected between {1 - self.level:g} and 1")
        if self.draws < 1:
            raise BadValue(f"the number of draws is {self.draws}; expected at least 1")
        if self.margin is not None and not (self.margin > 0 and math.isfinite(self.margin)):
            raise BadValue(f"the margin is {self.margin}; expected a number above 0")

    @property
    def alpha(self) -> float:
        """1 - level, rounded so that 0.95 gives 0.05 exactly."""
        return round(1 - self.level, 12)

    @property
    def correction(self) -> str:
        """The correction applied: "none" if the test corrects itself."""
        return "none" if TESTS.get(self.test).familywise else self.correct

    def noise_of(self, table: ScoreTable) -> RunNoise | None:
        """Return the noise between repeated runs for a table's measure; None if unknown, or for columns of
        datasets or several parts.
        """
        return None if table.queries is None or table.strata else noise_of(self.noise, table.measure)

    def family(self, tests: int, systems: int, alike: int = 1) -> Family:
        """Return the tests corrected together: `tests`, or all pairs of `systems` for tukey.

        alike: number of tests with true differences of one size.
        """
        if TESTS.get(self.test).familywise:
            return Family(systems * (systems - 1) // 2, 1, "none")
        if self.correct == "none":
            return Family(1, 1, "none")
        return Family(tests, alike, self.correct)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Values of a measure: systems (rows) by queries or datasets (columns)."""

    dataset: str
    measure: str
    systems: tuple[str, ...]
    values: Float64
    """float64[systems, columns] without NaN; columns are queries (identifiers descending) or datasets (ascending)."""
    left_out: int = 0
    """Number of queries dropped because a system has no value."""
    unit: str = "queries"
    """Name of a column in messages: "queries" or "datasets"."""
    span: float = math.inf
    """Largest possible difference of two values; infinite for an unbounded measure."""
    geometric: bool = False
    """True if values on queries are logarithms, so that reported means are their exponentials."""
    parts: tuple[tuple[Float64, ...], ...] = ()
    """If columns are datasets: for each dataset, the values of each of its parts, float64[systems, queries]."""
    strata: tuple[Float64, ...] = ()
    """If columns pool several equally weighted parts (subsets of a dataset): the values of each part, not
    rescaled."""
    queries: Ids | None = None
    """Identifiers of the columns; None if columns are datasets or pool several parts."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """{query: text}, for queries of a known collection."""
    group: str = ""
    """Name of the query group; "" for all queries."""
    unit_of: str = ""
    """Collection of which the dataset is a split; splits of a collection count once in a mean over datasets."""
    uncounted: bool = False
    """True if means over datasets leave it out (`Origin.uncounted`)."""
    answered: NDArray[np.bool_] | None = None
    """bool[systems, columns]: whether a system answered a query; None like `queries`."""

    @property
    def comparable(self) -> bool:
        """True if there are at least two columns, as tests need."""
        return int(self.values.shape[1]) > 1

    def take(self, columns: Int64) -> ScoreTable:
        """Return the table of these columns; raises BadValue unless columns are queries of one part."""
        if self.queries is None:
            raise BadValue(f"{self.dataset}: a comparison across datasets has no queries to take")
        queries = self.queries.take(columns)
        answered = None if self.answered is None else self.answered[:, columns]
        return replace(self, values=self.values[:, columns], left_out=0, queries=queries, answered=answered)

    def ordered(self, systems: Sequence[int]) -> ScoreTable:
        """Return the table with the systems at these positions, in this order."""
        rows = list(systems)
        return replace(
            self,
            systems=tuple(self.systems[k] for k in rows),
            values=self.values[rows],
            parts=tuple(tuple(values[rows] for values in dataset) for dataset in self.parts),
            strata=tuple(values[rows] for values in self.strata),
            answered=None if self.answered is None else self.answered[rows],
        )

    @property
    def logarithms(self) -> bool:
        """True if `values` are logarithms."""
        return self.geometric and not self.parts

    def means(self) -> list[float]:
        """Return each system's mean as reported: geometric for a geometric measure."""
        if self.parts:
            return [exact_mean(row) for row in self.values]
        return _means_of_parts(self.strata or (self.values,), self.geometric)


def _means_of_parts(parts: Sequence[Float64], geometric: bool) -> list[float]:
    return [
        exact_mean(np.array([averaged(exact_mean(row), geometric) for row in rows]))
        for rows in zip(*parts, strict=True)
    ]


@dataclass(frozen=True)
class Standing:
    """A system's place in a comparison."""

    system: str
    mean: float
    low: float | None
    """The mean's interval is `low` to `high`, both None for fewer queries than `fewest` or if all values are equal."""
    high: float | None
    best: int | None
    """Best rank that the verdicts allow, 1 + the number of better systems; None if the measure has no direction."""
    worst: int | None
    """Worst rank that the verdicts allow: number of systems minus the number of worse ones; None like `best`."""
    letters: str
    """Two systems share a letter unless one of them is better. "" with a baseline, or if no difference could be
    found."""
    answered: int | None = None
    """Number of compared queries with an answer; None if datasets are compared."""


@dataclass(frozen=True)
class Pair:
    """The comparison of a second system with a first."""

    first: str
    second: str
    difference: float
    """Mean of second minus first."""
    low: float | None
    """The difference's interval is `low` to `high`, both None for fewer queries than `fewest` or equal differences."""
    high: float | None
    p: float
    adjusted: float
    """p after correction over `comparisons` tests."""
    comparisons: int
    """Number of tests over which p was corrected."""
    effect: float | None
    """Hedges' g; None for two queries or if the differences do not vary."""
    won: int
    """Queries (or datasets) on which the second is better; `lost`, on which it is worse; `tied`, equal."""
    lost: int
    tied: int
    detectable: float | None
    """Smallest true difference that the test would find in new data with the required power; None if there is none."""
    equivalence: float | None
    """Corrected p-value of lying within the margin; None without a margin."""
    verdict: Verdict
    """Outcome for the second system."""

    @property
    def reversed(self) -> Pair:
        """The same comparison with the systems exchanged."""
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
    """Numbers of datasets on which a system beats or trails the baseline, by mean and by verdict."""

    system: str
    baseline: str
    datasets: int
    difference: float
    """Difference of the means over datasets."""
    higher: int
    """Datasets with a higher mean; `lower` and `equal` likewise."""
    lower: int
    equal: int
    better: int
    """Datasets with the verdict "better"; the fields below likewise."""
    worse: int
    equivalent: int
    not_separable: int


@dataclass(frozen=True, repr=False)
class Comparison:
    """The comparison of systems by a measure on a dataset."""

    dataset: str
    measure: str
    count: int
    """Number of units (queries or datasets) that were compared."""
    unit: str
    left_out: int
    """Queries without a value of every system."""
    standings: tuple[Standing, ...]
    """Best mean first."""
    pairs: tuple[Pair, ...]
    """`first` is the baseline or, without one, the earlier system of the table; pairs of the best systems first."""
    baseline: str | None
    """None if all pairs are compared."""
    method: ComparisonMethod
    reach: Reach
    """The smallest p-value that is possible here, and whether it can be significant."""
    geometric: bool = False
    tallies: tuple[DatasetCounts, ...] = ()
    """With a baseline across datasets, the datasets won and lost; else ()."""
    group: str = ""
    """Name of the query group; "" for all queries."""

    __repr__ = member_text
    _repr_html_ = member_html

    @property
    def too_few(self) -> str:
        """Why so few queries or datasets cannot show a difference; "" if they can."""
        tests = self.pairs[0].comparisons if self.pairs else 0
        return (
            ""
            if self.reach.possible
            else reach_note(self.reach, self.method.test, self.count, self.unit, tests)
        )

    @property
    def every_pair(self) -> bool:
        """True if all pairs of systems were compared."""
        return self.baseline is None or len(self.standings) <= 2

    def against(self, system: str, other: str) -> Pair | None:
        """Return the pair in this order; None if not compared."""
        for pair in self.pairs:
            if (pair.second, pair.first) == (system, other):
                return pair
            if (pair.first, pair.second) == (system, other):
                return pair.reversed
        return None


def refuse_apart(dataset: str, scores: Mapping[str, Scores]) -> None:
    """Raise BadValue if systems' scores have different judgments or conventions."""
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
    """Return the systems' values of a measure on the queries for which all have a value.

    Raises BadValue for fewer systems than two or queries than `least`, different judgments or conventions, or
    values outside 0..1; UnknownName for an unscored measure.
    """
    if len(scores) < 2:
        raise BadValue(f"{dataset}: a comparison needs at least two systems; found {len(scores)}")
    refuse_apart(dataset, scores)
    first, *others = scores.values()
    order = first.id_order()
    names = first.queries.strings.take(order)
    rows, answered = [], []
    common, shared = np.ones(len(order), np.bool_), np.ones(len(order), np.bool_)
    for one in (first, *others):
        codes = order if one.queries is first.queries else one.queries.codes(names)
        has = codes >= 0
        row = np.full(len(order), np.nan)
        row[has] = one.of(measure)[codes[has]]
        answers = np.zeros(len(order), np.bool_)
        answers[has] = one.answered[codes[has]]
        answered.append(answers)
        common &= has
        shared &= ~np.isnan(row)
        rows.append(row)
    if within_unit(measure):
        for name, row in zip(scores, rows, strict=True):
            if not all_within_unit(row):
                found = row[np.nanargmax(np.abs(row - 0.5))]
                raise BadValue(
                    f"{dataset}: {name} has {measure} {found:g}; values lie within 0 to 1 (divide percentages by 100)"
                )
    unlike = [one.queries.tolist() for one in others if one.queries is not first.queries]
    every = len(set(first.queries.tolist()).union(*unlike)) if unlike else len(order)
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
        every - count,
        span=1.0 if within_unit(measure) else math.inf,
        geometric=measure in first.geometric,
        queries=Ids(names).take(np.flatnonzero(shared)),
        unit_of=first.origin.collection or dataset,
        uncounted=first.origin.uncounted,
        answered=np.stack(answered)[:, shared],
    )


def compared(
    scores: ScoreTable, baseline: str | None = None, method: ComparisonMethod | None = None
) -> Comparison:
    """Return the comparison of all pairs, or of each system with a baseline, p-values corrected over the
    pairs.

    Raises UnknownName for an unknown baseline, BadValue for fewer than two columns.
    """
    return compared_together([scores], baseline, method)[0]


def compared_together(
    tables: Sequence[ScoreTable], baseline: str | None = None, method: ComparisonMethod | None = None
) -> list[Comparison]:
    """Return a comparison of each table, p-values corrected over all tables; raises as `compared`."""
    method = method or ComparisonMethod()
    tested = [_tested(table, baseline, method) for table in tables]
    return [_comparison(one, [other for other in tested if other is not one], baseline, method)
            for one in tested]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _TestedTable:
    table: ScoreTable
    pairs: Pairs
    """int64[pairs, 2]: the second system is tested against the first."""
    p: Float64
    """p-values of the differences."""
    same: Float64
    """p-values of equivalence; NaN without a margin."""
    smallest: float
    """The smallest p-value that the test can give here."""
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
    if (noise := method.noise_of(best_first)) is not None:
        both = [best_first.values[j] - best_first.values[i] for i, j in pairs.tolist()]
        p = np.maximum(p, [min(1.0, 2 * min(noise.tail(d), noise.tail(-d))) for d in both])
    smallest = TESTS.get(method.test).smallest(table.values.shape[1], len(names), draws)
    same = equivalences(best_first.values[pairs[:, 1]] - best_first.values[pairs[:, 0]], method)
    return _TestedTable(best_first, pairs, p, same, smallest, [means[k] for k in ranked])


def _comparison(
    tested: _TestedTable, beside: Sequence[_TestedTable], baseline: str | None, method: ComparisonMethod
) -> Comparison:
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
    mean_ends, pair_ends = _interval_ends(table, differences, pairs, method)
    equal_p = adjusted(np.concatenate([tested.same, *(other.same for other in beside)]), method.correct)
    way = direction(table.measure)
    unit = math.inf  # what is detectable is a multiple of the deviation
    if possible.possible and TESTS.get(method.test).detection is not None:
        kurtosis = excess_kurtosis(differences)
        unit = detectable(1.0, units, method.power, method.alpha, method.test, family, kurtosis)
    noise = method.noise_of(table)
    compared_pairs = []
    better = np.zeros((systems, systems), np.bool_)
    for number, (i, j) in enumerate(pairs.tolist()):
        row, pair_p, same_p = differences[number], float(corrected[number]), float(equal_p[number])
        mean, deviation = means[j] - means[i], deviation_of(row)
        low, high = pair_ends[number]
        least = unit * deviation if deviation else math.inf
        if noise is not None and deviation:  # as much larger as the standard error
            least *= noise.error(row)[0] * math.sqrt(units) / deviation
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

    if baseline is not None:  # what beats the baseline beats what the baseline beats
        better |= (better.astype(np.int64) @ better.astype(np.int64)) > 0
    decided = possible.possible or any(pair.verdict != "not separable" for pair in compared_pairs)
    groups = letters(better | better.T) if baseline is None and decided and way else [""] * systems
    reported, standings = table.means(), []
    for k, name in enumerate(names):
        low, high = mean_ends[k]
        best, worst = 1 + int(better[:, k].sum()), systems - int(better[k].sum())
        place = (low, high, best if way else None, worst if way else None, groups[k])
        answered = None if table.answered is None else int(table.answered[k].sum())
        standings.append(Standing(name, reported[k], *place, answered))
    return Comparison(
        *(table.dataset, table.measure, units, table.unit, table.left_out, tuple(standings)),
        tuple(compared_pairs),
        baseline,
        method,
        possible,
        table.logarithms,
        group=table.group,
    )


_Ends: TypeAlias = list[tuple[float | None, float | None]]


def _interval_ends(
    table: ScoreTable, differences: Float64, pairs: Pairs, method: ComparisonMethod
) -> tuple[_Ends, _Ends]:
    systems, units = table.values.shape
    if units < fewest(method.level):
        return [(None, None)] * systems, [(None, None)] * len(pairs)
    if method.interval == "two-level" and table.parts:
        samples = two_level_means(table.parts, Draws(RESAMPLES, method.seed), table.geometric)
        of_means = percentiles(samples, method.level)
        of_pairs = np.stack([percentiles(samples[:, j] - samples[:, i], method.level) for i, j in pairs])
        return _or_none(of_means), _within_span(of_pairs, table)
    # The samples of means are those of `weir eval`, so the intervals are too.
    unit = np.full(systems, within_unit(table.measure))
    geometric = table.geometric if table.strata else table.logarithms
    of_means = mean_bounds(
        table.strata or (table.values,), level=method.level, unit=unit, geometric=geometric
    )
    return _or_none(of_means), _pair_ends(table, differences, pairs, method)


def _pair_ends(table: ScoreTable, differences: Float64, pairs: Pairs, method: ComparisonMethod) -> _Ends:
    of_pairs = _difference_bounds(table, differences, pairs, method, Draws(RESAMPLES, method.seed))
    if (noise := method.noise_of(table)) is not None:
        of_pairs = _with_noise(of_pairs, differences, noise, method.level)
    return _within_span(of_pairs, table)


def _within_span(ends: Float64, table: ScoreTable) -> _Ends:
    # An interval cut at the bounds of what it estimates covers it as often. Source: Mandelkern 2002.
    return _or_none(np.clip(ends, -table.span, table.span))


def _difference_bounds(
    table: ScoreTable, differences: Float64, pairs: Pairs, method: ComparisonMethod, draws: Draws
) -> Float64:
    # Student's interval within small, equally weighted parts uses the variance of each part, not one of all
    # queries.
    parts = table.strata
    if method.interval != "t" or not parts or min(part.shape[1] for part in parts) >= FEW_VALUES:
        return bounds(differences, method.interval, method.level, draws)
    if min(part.shape[1] for part in parts) < 2:
        return np.full((len(pairs), 2), np.nan)
    ends = [few_bounds([part[j] - part[i] for part in parts], method.level) for i, j in pairs.tolist()]
    return np.array(ends)


def _with_noise(ends: Float64, differences: Float64, noise: RunNoise, level: float) -> Float64:
    one_sided = (1 + level) / 2
    noisy = [(noise.bound(d, one_sided), -noise.bound(-d, one_sided)) for d in differences]
    lows, highs = np.array(noisy).T
    return np.stack([np.fmin(ends[:, 0], lows), np.fmax(ends[:, 1], highs)], axis=1)


def _or_none(ends: Float64) -> _Ends:
    return [(None, None) if math.isnan(low) else (low, high) for low, high in ends.tolist()]


def with_wider_pairs(comparison: Comparison, table: ScoreTable, level: float) -> Comparison:
    """Return the comparison of `table` with intervals of differences at another level; None as ends for too
    few queries.
    """
    method, number = replace(comparison.method, level=level), {n: k for k, n in enumerate(table.systems)}
    pairs = np.array([(number[one.first], number[one.second]) for one in comparison.pairs], np.int64)
    ends: _Ends = [(None, None)] * len(pairs)
    if table.values.shape[1] >= fewest(level):
        ends = _pair_ends(table, table.values[pairs[:, 1]] - table.values[pairs[:, 0]], pairs, method)
    wider = (
        replace(one, low=low, high=high) for one, (low, high) in zip(comparison.pairs, ends, strict=True)
    )
    return replace(comparison, pairs=tuple(wider), method=method)


def compare_scores(
    scores: Mapping[str, Scores],
    dataset: str,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
    groups: QueryGroups | None = None,
    measures: Sequence[str] = (),
) -> list[Comparison]:
    """Return a comparison for each measure on all queries and, with `groups`, on the groups' mean and each
    group of two or more queries.

    scores: {system: its scores}.
    method: by default ComparisonMethod(), with `groups` BY_GROUP.
    measures: by default all shared ones with a better direction.

    Raises BadValue for fewer than two systems, no shared measure or no group of two queries, UnknownName for
    an unknown baseline or measure.
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
    """Return the measures in all scores, in the order of the first; raises BadValue if there are none."""
    first, *others = [s.measures for s in scores]
    shared = [m for m in first if all(m in o for o in others)]
    if not shared:
        raise BadValue("the systems have no measure in common; score them with the same ones")
    return shared


def signs(differences: Float64) -> tuple[int, int, int]:
    """Return the numbers of differences (above, below, equal to) zero."""
    above, below = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return above, below, int(np.sum(differences == 0))


def equivalences(differences: Float64, method: ComparisonMethod) -> Float64:
    """Return each row's p-value of equivalence within the method's margin; NaN without one."""
    if method.margin is None:
        return np.full(len(differences), np.nan)
    return np.array([equivalence(d, method.margin) for d in differences])


def hedges_g(mean: float, deviation: float, count: int) -> float | None:
    """Return Hedges' g; None for fewer than three queries or a deviation of 0."""
    if count < 3 or not deviation:
        return None
    return mean / deviation * (1 - 3 / (4 * (count - 1) - 1))


def verdict_of(mean: float, p: float, same: float, alpha: float, way: int = 1) -> Verdict:
    """Return the verdict on a mean difference; significant equivalence comes first.

    p, same: p-values of difference and equivalence, NaN if not tested.
    way: 1 if more is better, -1 if less, 0 if neither, which gives "-".
    """
    if not way:
        return "-"
    if same < alpha:
        return "equivalent"
    if p < alpha and mean:
        return "better" if way * mean > 0 else "worse"
    return "not separable"


def letters(apart: NDArray[np.bool_]) -> list[str]:
    """Return each system's letters; two systems share a letter unless one is better.

    apart: True if one of two systems is better, bool[systems, systems], best first; raises BadValue if not
        symmetric.
    """
    count = len(apart)
    if apart.shape != (count, count) or (apart != apart.T).any():
        raise BadValue("which systems are apart must be a symmetric square matrix")
    # Insert and absorb: Piepho 2004.
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
    """Return a table with a column of the systems' means for each dataset, called `name`.

    datasets: {dataset: its table, or tables of its parts, whose means are averaged}.

    Raises BadValue for fewer than two datasets, or if systems or measure differ.
    """
    if len(datasets) < 2:
        raise BadValue(f"a comparison across datasets needs at least two; found {len(datasets)}")
    # Datasets are the random factor: would it be so on other datasets?
    first = _alike([t for tables in datasets.values() for t in tables])
    parts = [sorted(datasets[name], key=lambda t: t.dataset) for name in sorted(datasets)]
    of_parts = tuple(tuple(t.values for t in tables) for tables in parts)
    return replace(
        first,
        dataset=name,
        values=np.array([_means_of_parts(each, first.geometric) for each in of_parts]).T,
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
    """Return the comparison of systems by their means on datasets; with a baseline, also datasets won and
    lost.

    datasets: {dataset: tables of its parts}.
    each: comparisons with the baseline on single datasets, if already made.

    Raises as `across`, UnknownName for an unknown baseline.
    """
    comparison = compared(across(datasets, name), baseline, method)
    if baseline is None:
        return comparison
    # Verdicts on a dataset are corrected for the number of systems, not of datasets; a single query is not
    # separable.
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
    """Return {(system, other): verdict on `system`} for pairs that share two datasets, or two queries of the
    only dataset.
    """
    # Corrected over all pairs: without gaps the verdicts equal those of `compared_across`.
    method = method or ComparisonMethod()
    if len(datasets) == 1:
        [parts] = datasets.values()
        shared = [one for one in parts[0].systems if all(one in part.systems for part in parts)]
        if len(shared) < 2:
            return {}
        whole = pooled(
            [part.ordered([part.systems.index(one) for one in shared]) for part in parts], parts[0].dataset
        )
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
                [values[row, column]] = _means_of_parts(own, parts[0].geometric)
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
    """Return a dataset's parts as one table, scaled so that parts weigh the same; a single part unchanged.

    Raises BadValue if systems or measure differ, or without parts.
    """
    if len(tables) == 1:
        return tables[0]
    # Scaled so that the mean over all queries is the mean of the parts' means.
    first, parts = _alike(tables), sorted(tables, key=lambda t: t.dataset)
    total = sum(t.values.shape[1] for t in parts)
    values = np.concatenate([t.values * (total / (len(parts) * t.values.shape[1])) for t in parts], axis=1)
    strata, left_out = tuple(t.values for t in parts), sum(t.left_out for t in parts)
    return replace(
        first, dataset=name, values=values, left_out=left_out, strata=strata, queries=None, answered=None
    )


def _alike(tables: Sequence[ScoreTable]) -> ScoreTable:
    if len({(t.systems, t.measure) for t in tables}) != 1:
        raise BadValue("a comparison across datasets needs the same systems and measure on each")
    return tables[0]


# Comparisons by group of queries.

BY_GROUP = ComparisonMethod(correct="bh")
"""Default method for groups of queries, with Benjamini and Hochberg's correction."""


def compared_by_group(
    scores: ScoreTable,
    groups: QueryGroups,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Return comparisons on all queries, on the mean over groups, then on each group of two or more queries.

    method: by default BY_GROUP, which corrects all groups' p-values together.

    Raises UnknownName for an unknown baseline, BadValue for tests such as tukey or if no group has two
    queries.
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
    name = f"macro mean of {counted(len(parts), 'group')}{without}"
    macro = replace(pooled(tables, ""), dataset=scores.dataset, group=name)  # one alone keeps its own name
    each = compared_together(parts, baseline, method)
    return [compared(scores, baseline, method), compared(macro, baseline, method), *each]


# Tables.

EFFECT = (
    "Hedges' g: the mean difference over the standard deviation of the differences, corrected for few queries"
)
_PAIR_HEAD = ("pair", "difference", "p", "adjusted", "Hedges' g", "won/lost/tied")
ALONE = "an interval is of one difference alone, a verdict of all comparisons together"
"""Explains why an interval may exclude 0 although the verdict is not separable."""
FEW_SYSTEMS = 3
"""Largest number of systems for which a sentence tells how each does across datasets."""
SEVERAL = 6
"""Largest number of systems for which every pair is listed by default."""


def disagrees(pair: Pair) -> bool:
    """Return True if only one of interval and verdict shows a difference; False without an interval."""
    if pair.low is None or pair.high is None:
        return False
    return (pair.low > 0 or pair.high < 0) != (pair.verdict in ("better", "worse"))


def rank_text(standing: Standing, to: str = "-") -> str:
    """Return a rank, or a range joined by `to`; `to` alone if unranked."""
    if standing.best is None:
        return to
    return str(standing.best) if standing.best == standing.worst else f"{standing.best}{to}{standing.worst}"


def verdict(pair: Pair, c: Comparison) -> str:
    """Return the verdict in words, with the reason or detectable effect if not separable, and unanswered
    queries that may explain it.
    """
    sides = [(one.answered, one.system) for one in c.standings if one.system in (pair.first, pair.second)]
    (fewer, system), (more, _) = sorted((c.count if n is None else n, name) for n, name in sides)
    explains = many_unanswered(c.count - more + fewer, c.count, pair.difference)
    return _verdict(pair, c) + f"; {answers_said(system, fewer, c.count)}" * explains


def many_unanswered(answered: int, queries: int, difference: float) -> bool:
    """Return True if unanswered queries alone may explain a difference of means."""
    return 1 - answered / queries >= min(MANY_UNANSWERED, abs(difference)) if answered < queries else False


def answers_said(system: str, answered: int, queries: int) -> str:
    """Return a clause on how many queries a system answered."""
    return f"{system} answered {answered:,} of {counted(queries, 'query', 'queries')}"


def _verdict(pair: Pair, c: Comparison) -> str:
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
    """Return the correction as text: "holm, adjusted over 3 comparisons"."""
    tests = c.pairs[0].comparisons if c.pairs else 0
    if TESTS.get(c.method.test).familywise:
        return f"{c.method.test} over all {tests} pairs"
    if c.method.correct == "none":
        return "not adjusted"
    return f"{c.method.correct}, adjusted over {tests} comparison{'s' * (tests != 1)}"


def families(comparisons: Sequence[Comparison]) -> list[str]:
    """Return sentences on how p-values are corrected; [] without pairs."""
    made = dict.fromkeys(family(c) for c in comparisons if c.pairs)
    return [f"verdicts: {'; '.join(made)}", *_correction_scope(comparisons)] if made else []


def _correction_scope(comparisons: Sequence[Comparison]) -> list[str]:
    places = {c.dataset for c in comparisons}, {c.measure for c in comparisons}
    what = " of ".join(name for name, of in zip(("dataset", "measure"), places, strict=True) if len(of) > 1)
    corrected = any(c.method.family(len(c.pairs), len(c.standings)).tests > 1 for c in comparisons)
    grouped = any(c.group for c in comparisons)
    return (
        [f"each {what} is corrected alone, not all of them together"]
        if what and corrected and not grouped
        else []
    )


def tally(counts: DatasetCounts) -> str:
    """Return a sentence on the datasets won and lost against the baseline."""
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
    """Return the comparisons with systems renamed by {system: label}."""

    def renamed(system: str) -> str:
        return labels.get(system, system)

    return [
        replace(
            c,
            standings=tuple(replace(s, system=renamed(s.system)) for s in c.standings),
            pairs=tuple(replace(p, first=renamed(p.first), second=renamed(p.second)) for p in c.pairs),
            tallies=tuple(
                replace(t, system=renamed(t.system), baseline=renamed(t.baseline)) for t in c.tallies
            ),
            baseline=None if c.baseline is None else renamed(c.baseline),
        )
        for c in comparisons
    ]


def pair_records(c: Comparison) -> list[dict[str, object]]:
    """Return a record for each pair, with dataset, measure, means and method."""
    about = {"dataset": c.dataset, "group": c.group, "measure": c.measure, "count": c.count, "unit": c.unit}
    settings = {"test": c.method.test, "correction": c.method.correction, "level": c.method.level}
    mean = {standing.system: standing.mean for standing in c.standings}
    return [
        json_value(about | vars(p) | {"first_mean": mean[p.first], "second_mean": mean[p.second]} | settings)
        for p in c.pairs
    ]


def briefly_named(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], list[str]]:
    """Return (comparisons with short system names, a line "short: full" for each shortened name)."""
    systems = tuple(dict.fromkeys(s.system for c in comparisons for s in c.standings))
    names = dict(zip(systems, short_names(systems), strict=True))
    return relabelled(comparisons, names), [f"{n}: {system}" for system, n in names.items() if n != system]


def pair_tables(comparisons: Sequence[Comparison], every: bool = True) -> tuple[Table, ...]:
    """Return a table of means with marks of significance, and one of all pairs or `shown_pairs`."""
    comparisons, legend = briefly_named(comparisons)
    lines = [
        [f"{c.dataset}, {c.group}" if c.group else c.dataset, c.measure, *_pair(p, c)]
        for c in comparisons
        for p in (c.pairs if every else shown_pairs(c))
    ]
    head = ["dataset", "measure", *_PAIR_HEAD, "verdict"]
    [means] = _marked_means(comparisons)
    whole = sum(len(c.pairs) for c in comparisons)
    partly = (
        f"{len(lines)} of {whole} pairs are listed, those with the best system or the baseline; JSON has all"
    )
    notes = (*[partly] * (len(lines) < whole), *means.notes)
    pairs = table_of([head, *lines], right=5, keys=3, tail=1, notes=notes)
    baselines = {c.baseline for c in comparisons if c.baseline is not None}
    marked = [f"triangles: better or worse than {name}, by the verdicts below" for name in baselines]
    lettered = any(s.letters for c in comparisons for s in c.standings)
    return replace(means, notes=(*marked, *[SHARED_LETTER] * lettered, *legend)), pairs


def _marked_cells(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], dict[str, Cell]]:
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    narrow = len({c.measure for c in comparisons}) <= _WITH_INTERVALS
    for c in comparisons:
        marks = {p.second: p.verdict for p in c.pairs} if c.baseline is not None else {}
        for s in c.standings:
            best = marked_best(s, c)
            where = f"{c.dataset}, {c.group}" if c.group else c.dataset
            of = cells.setdefault((where, s.system), {})
            interval = _interval(score, s.low, s.high).strip() if narrow else ""
            of[c.measure] = Cell(score(s.mean), best, s.letters, marks.get(s.system, ""), interval)
    return cells


def _marked(system: str, comparisons: Sequence[Comparison]) -> str:
    return f"{system} (baseline)" if any(c.baseline == system for c in comparisons) else system


def _marked_means(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    measures = list(dict.fromkeys(c.measure for c in comparisons))
    cells = _marked_cells(comparisons)
    rows = [
        [Cell(dataset), Cell(_marked(system, comparisons)), *(of.get(m, Cell("")) for m in measures)]
        for (dataset, system), of in cells.items()
    ]
    tallies = [f"{c.measure}: {tally(t)}" for c in comparisons for t in c.tallies]
    notes = [*tallies, *families(comparisons), *method_notes(comparisons, explain=True, ranked=False)]
    return (table_of([["dataset", "system", *measures], *rows], right=None, keys=2, notes=notes),)


def compare_tables(
    comparisons: Sequence[Comparison], long: bool = False, explain: bool = False
) -> tuple[Table, ...]:
    """Return tables of systems and pairs for each comparison (of groups: for each dataset and measure), then
    notes.

    long: list all pairs, not only `shown_pairs`.
    explain: say how the numbers were made.
    """
    comparisons, legend = briefly_named(comparisons)
    tables = []
    grouped = [c for c in comparisons if c.group]
    for dataset, measure in dict.fromkeys((c.dataset, c.measure) for c in grouped):
        tables.append(
            _by_group([c for c in comparisons if (c.dataset, c.measure) == (dataset, measure)], long)
        )
    for c in [] if grouped else comparisons:
        tables.append(standings_table(c))
        listed = c.pairs if long else shown_pairs(c)
        head = [*_PAIR_HEAD, f"verdict ({family(c)})"]
        pairs = table_of([head, *(_pair(p, c) for p in listed)], right=5, tail=1)
        tables.append(replace(pairs, narrow=(1, 6)))
        if len(listed) < len(c.pairs):
            separable = sum(p.verdict in ("better", "worse") for p in c.pairs)
            tables.append(
                sentences(
                    f"{len(listed)} of {len(c.pairs)} pairs are listed, those with the best system (`long=True` lists "
                    f"all); {separable} of all are separable, which letters tell"
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
    return (*tables, sentences(*method_notes(comparisons, explain), *legend))


def marked_best(standing: Standing, c: Comparison) -> bool:
    """Return True if a mean, as printed, is the best of two or more; False without a direction."""
    return standing.best is not None and is_best(c.measure, standing.mean, [s.mean for s in c.standings])


def standings_table(c: Comparison, marked: bool = False) -> Table:
    """Return a table of systems with mean, interval, rank and letters.

    marked: mark the best mean, the baseline and verdicts.
    """
    left_out = f", {c.left_out} left out that not all systems have" if c.left_out else ""
    lettered = any(s.letters for s in c.standings)
    verdicts = {p.second: p.verdict for p in c.pairs} if marked and c.baseline is not None else {}
    ranked = c.every_pair
    lines: list[list[str | Cell]] = [["system", "mean", *["rank"] * ranked, *["group"] * lettered]]
    for s in c.standings:
        best = marked and marked_best(s, c)
        interval = _interval(score, s.low, s.high).strip()
        mean = Cell(score(s.mean), best, verdict=verdicts.get(s.system, ""), more=interval)
        name = f"{s.system} (baseline)" if marked and s.system == c.baseline else s.system
        lines.append([name, mean, *[rank_text(s)] * ranked, *[s.letters] * lettered])
    size = f"{count(c.count)} {c.unit}"
    title = f"{c.measure} on {c.dataset}" + f" ({size}{left_out})" * (c.dataset != size or bool(left_out))
    return table_of(lines, title=title)


def _by_group(comparisons: Sequence[Comparison], long: bool) -> Table:
    first, last = comparisons[0], comparisons[-1]
    head = ["group", "pair", "queries", "first", "second", "difference", "adjusted"]
    lines: list[Sequence[str | Cell]] = [[*head, "won/lost/tied", "verdict"]]
    for c in comparisons:
        means = {s.system: score(s.mean) for s in c.standings}
        for p in c.pairs if long else shown_pairs(c):
            pair, difference, _, adjusted_p, _, outcomes, _ = _pair(p, c)
            names = (c.group or "all queries", pair, count(c.count), means[p.first], means[p.second])
            certain = c.reach.possible or p.verdict != "not separable"
            lines.append([*names, difference, adjusted_p, outcomes, p.verdict if certain else verdict(p, c)])
    title = f"{first.measure} on {first.dataset}, by group; verdicts on groups: {family(last)}"
    return table_of(lines, right=6, keys=2, tail=1, title=title)


def shown_pairs(c: Comparison) -> tuple[Pair, ...]:
    """Return the pairs listed by default: all of up to six systems, else with the best system or baseline."""
    return c.pairs if len(c.standings) <= SEVERAL else _with_best(c)


def _with_best(c: Comparison) -> tuple[Pair, ...]:
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


_WITH_INTERVALS = 3  # measures; intervals of more do not fit on a page
SHARED_LETTER = "systems that share a letter cannot be told apart"


def method_notes(comparisons: Sequence[Comparison], explain: bool = False, ranked: bool = True) -> list[str]:
    """Return sentences on test, correction and limits; [] without comparisons.

    explain: also say how each number was made.
    ranked: include the scope of the correction, and ranks.
    """
    if not comparisons:
        return []
    m = comparisons[0].method
    lines = _how_made(comparisons, ranked) if explain else [f"{_test_text(m.test)} test at level {m.alpha:g}"]
    lines += [] if not ranked else _correction_scope(comparisons)
    lines += direction_notes(c.measure for c in comparisons)
    lines += noise_notes(m.noise, dict.fromkeys(c.measure for c in comparisons))
    lines += dict.fromkeys(c.too_few for c in comparisons if c.too_few)
    if any(disagrees(p) for c in comparisons for p in c.pairs if p.verdict not in ("equivalent", "-")):
        lines.append(f"{ALONE}, so that an interval may leave out 0 where the verdict is not separable")
    lines += _lacking_intervals(comparisons, fewest(m.level))
    geometric = [c for c in comparisons if c.geometric]
    if geometric:
        names = ", ".join(sorted({c.measure for c in geometric}))
        lines.append(f"{names}: means are geometric; differences are those of logarithms")
    for c in geometric:
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
        found = any(p.verdict == "equivalent" for c in comparisons for p in c.pairs)
        lines.append(
            f"{'equivalent:' if found else 'no pair is equivalent, which would say that'} the difference lies within "
            f"±{m.margin:g} (two one-sided t-tests, and exact ones for few large differences)"
        )
        if m.margin < 1 and any(p.low is None for c in comparisons for p in c.pairs):
            needed = math.ceil(math.log(m.alpha) / math.log1p(-m.margin))
            lines.append(
                f"differences that are all 0 show so from {needed:,} queries on, as rare ones may be missing"
            )
    return lines


def _test_text(test: str) -> str:
    return f"{test} (randomised HSD)" if test == "tukey" else test


def _how_made(comparisons: Sequence[Comparison], ranked: bool) -> list[str]:
    first = comparisons[0]
    m, kind = first.method, TESTS.get(first.method.test)
    drawn = f", {m.draws:,} draws, seed {m.seed}" if kind.drawn else ""
    pairs = "each minus the baseline" if first.baseline is not None else "the later given minus the earlier"
    interval = f"its {100 * m.level:g}% interval ({m.interval})"
    lines = [f"difference: {pairs}, with {interval}; p: {_test_text(m.test)}{drawn}; level {m.alpha:g}"]
    if any(c.unit == "queries" for c in comparisons):
        lines.append(MEAN_INTERVALS)
    lines += [EFFECT] * any(p.effect is not None for c in comparisons for p in c.pairs)
    if ranked and any(c.every_pair for c in comparisons):
        groups = (
            f"; group: {SHARED_LETTER}" if any(s.letters for c in comparisons for s in c.standings) else ""
        )
        lines.append(
            f"rank, by the verdicts: 1 + the systems that are better, to all less those that are worse{groups}"
        )
    if kind.detection is None:
        lines.append(f"minimum detectable effect: none is known of {m.test}; permutation and t have one")
    elif any(c.reach.possible for c in comparisons):
        corrected = "" if m.correction == "none" else f" with {m.correction}"
        lines.append(
            f"minimum detectable effect: a true difference that {m.test}{corrected} finds {100 * m.power:g} times "
            "in 100 in new data (weir power: of one test alone)"
        )
    return lines


def _lacking_intervals(comparisons: Sequence[Comparison], least: int) -> list[str]:
    lines = [
        f"too few {unit} for an interval: {n}, at least {least} are needed; even the whole range of {n} holds the "
        f"median {percent(1 - 2.0 ** (1 - n))} of the time only"
        for n, unit in dict.fromkeys((c.count, c.unit) for c in comparisons if c.count < least)
    ]
    enough = [c for c in comparisons if c.count >= least]
    lacking = [s.system for c in enough for s in c.standings if s.low is None]
    lacking += [f"{p.second} - {p.first}" for c in enough for p in c.pairs if p.low is None]
    if lacking:
        more = f" and {len(lacking) - 1:,} more" * (len(lacking) > 1)
        lines.append(
            f"no interval of {lacking[0]}{more}: values that are all equal, or parts of a single query"
        )
    return lines


def _interval(shown: Callable[[float], str], low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{shown(low)}, {shown(high)}]"
