"""Comparisons of systems that end with a verdict: better, worse, equivalent, or not separable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue, UnknownName
from weir.stats import paired, permutation, tukey  # noqa: F401  each registers its tests
from weir.stats.bootstrap import LEVEL, RESAMPLES, SEED
from weir.stats.intervals import INTERVALS, bounds
from weir.stats.multiple import CORRECTIONS, adjusted
from weir.stats.order import letters, ranks_within
from weir.stats.power import POWER, detectable, equivalence
from weir.stats.resampling import resampled_sums
from weir.stats.significance import DRAWS, TESTS, Draws, Pairs, all_pairs, p_values

__all__ = [
    "Comparison",
    "Method",
    "Pair",
    "Standing",
    "Table",
    "Verdict",
    "across",
    "compare_scores",
    "compared",
    "shared_measures",
    "table",
]

Verdict: TypeAlias = Literal["better", "worse", "equivalent", "not separable"]


@dataclass(frozen=True)
class Method:
    """How systems are compared; every field is part of the result.

    test, correct, interval: names in TESTS, CORRECTIONS and INTERVALS; level: of the intervals, and 1 - level is
    that of the tests; power: of the minimum detectable effect; draws, seed: of a test that draws; margin: how large
    a difference still counts as none, to find systems equivalent. Raises BadValue or UnknownName.
    """

    test: str = "permutation"
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

    def strictest(self, tests: int) -> float:
        """The level of the strictest of so many tests made together."""
        together = self.correct != "none" or TESTS.get(self.test).familywise
        return self.alpha / tests if together else self.alpha


@dataclass(frozen=True, eq=False)
class Table:
    """Values of one measure that several systems have on the same queries.

    values: float64[K, Q], a row for each system, columns in the order of the identifiers, without NaN; left_out:
    queries that not all systems have a value for; unit: what a column is.
    """

    dataset: str
    measure: str
    systems: tuple[str, ...]
    values: Float64
    left_out: int = 0
    unit: str = "queries"


@dataclass(frozen=True)
class Standing:
    """A system in a comparison: its mean with the percentile bootstrap interval of `weir eval`, and its letters.

    best, worst: between which ranks it falls when queries are drawn anew; letters: two systems share one exactly
    if the test cannot tell them apart.
    """

    system: str
    mean: float
    low: float
    high: float
    best: int
    worst: int
    letters: str


@dataclass(frozen=True)
class Pair:
    """Two systems: the first against the second.

    difference: first minus second, with its interval; p, adjusted: before and after the correction; effect: the
    mean difference over the standard deviation of the differences, corrected for few queries (Hedges), None where
    there is no deviation; detectable: the smallest true difference that would be found here with the
    wanted power, at the level of the strictest of the corrected tests; equivalence: corrected p-value of lying
    within the margin, None without one.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    adjusted: float
    effect: float | None
    won: int
    lost: int
    tied: int
    detectable: float
    equivalence: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """What one measure on one dataset says about several systems, best mean first."""

    dataset: str
    measure: str
    count: int
    unit: str
    left_out: int
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    baseline: str | None
    method: Method


def table(dataset: str, measure: str, scores: Mapping[str, Scores]) -> Table:
    """The values of several systems on the queries for which all have one.

    Raises BadValue for fewer than two systems and where they share no query, or one only.
    """
    if len(scores) < 2:
        raise BadValue(f"{dataset}: a comparison needs at least two systems; found {len(scores)}")
    first, *others = scores.values()
    order = first.id_order()
    names = first.queries.strings.take(order)
    rows, shared = [], np.ones(len(order), np.bool_)
    for one in (first, *others):
        codes = one.queries.codes(names)
        row = np.where(codes >= 0, one.of(measure)[codes], np.nan)
        shared &= ~np.isnan(row)
        rows.append(row)
    known = set(first.queries.tolist()).union(*(o.queries.tolist() for o in others))
    count = int(shared.sum())
    if count < 2:
        found = "share no query" if count == 0 else "share one query only"
        raise BadValue(f"{dataset}, {measure}: the systems {found}; a comparison needs at least two")
    return Table(dataset, measure, tuple(scores), np.stack(rows)[:, shared], len(known) - count)


def across(datasets: Mapping[str, Sequence[Table]], name: str) -> Table:
    """The means of the systems on several datasets, as a table whose columns are datasets.

    datasets: the table of each, or those of its parts, whose means are averaged. What is compared then is the mean
    over datasets, with datasets as the random factor: would it be so on other datasets? Raises BadValue for fewer
    than two datasets, or where the systems or the measure are not the same.
    """
    if len(datasets) < 2:
        raise BadValue(f"a comparison across datasets needs at least two; found {len(datasets)}")
    parts = [t for tables in datasets.values() for t in tables]
    if len({(t.systems, t.measure) for t in parts}) > 1:
        raise BadValue("a comparison across datasets needs the same systems and measure on each")
    columns = []
    for dataset in sorted(datasets):
        means = [[_mean(row) for row in t.values] for t in sorted(datasets[dataset], key=lambda t: t.dataset)]
        columns.append([_mean(np.array(of_system)) for of_system in zip(*means, strict=True)])
    first = parts[0]
    return Table(name, first.measure, first.systems, np.array(columns).T, 0, "datasets")


def compared(given: Table, baseline: str | None = None, method: Method | None = None) -> Comparison:
    """Compare the systems of a table: each with each, or each with a baseline.

    The correction counts the tests that are made: all pairs, or all systems but the baseline. Letters always come
    from all pairs. Raises UnknownName for a baseline that is not among the systems.
    """
    method = method or Method()
    if baseline is not None and baseline not in given.systems:
        raise UnknownName("system to be the baseline", baseline, given.systems)
    means = [_mean(row) for row in given.values]
    ranked = sorted(range(len(means)), key=lambda k: (-means[k], given.systems[k]))
    values, names = given.values[ranked], [given.systems[k] for k in ranked]
    pairs = all_pairs(len(names))
    p = p_values(method.test, values, pairs, Draws(method.draws, method.seed))
    groups = letters(_apart(pairs, adjusted(p, method.correction), method))
    standings = _standings(names, values, groups, method.level)
    if baseline is not None:
        pairs, p = _against(names.index(baseline), pairs, p)
    return Comparison(
        given.dataset,
        given.measure,
        values.shape[1],
        given.unit,
        given.left_out,
        standings,
        _pairs(names, values, pairs, p, method),
        baseline,
        method,
    )


def compare_scores(
    scores: Mapping[str, Scores], dataset: str, baseline: str | None = None, method: Method | None = None
) -> list[Comparison]:
    """One comparison for each measure that all systems have; errors as `table` and `compared`."""
    if len(scores) < 2:
        raise BadValue(f"a comparison needs at least two systems; found {len(scores)}")
    return [compared(table(dataset, m, scores), baseline, method) for m in shared_measures(scores.values())]


def shared_measures(scores: Iterable[Scores]) -> list[str]:
    """The measures that all have, in the order of the first; raises BadValue where there is none."""
    first, *others = [s.measures for s in scores]
    found = [m for m in first if all(m in o for o in others)]
    if not found:
        raise BadValue("the systems have no measure in common; score them with the same ones")
    return found


def _apart(pairs: Pairs, p: Float64, method: Method) -> NDArray[np.bool_]:
    """Which systems differ, bool[K, K]."""
    count = int(pairs.max()) + 1
    apart = np.zeros((count, count), np.bool_)
    apart[pairs[:, 0], pairs[:, 1]] = apart[pairs[:, 1], pairs[:, 0]] = p < method.alpha
    return apart


def _against(baseline: int, pairs: Pairs, p: Float64) -> tuple[Pairs, Float64]:
    """The pairs with the baseline, each as (other, baseline)."""
    with_it = (pairs == baseline).any(axis=1)
    others = pairs[with_it].sum(axis=1) - baseline
    return np.stack([others, np.full(len(others), baseline)], axis=1), p[with_it]


def _standings(names: list[str], values: Float64, groups: list[str], level: float) -> tuple[Standing, ...]:
    # The samples are those of `weir eval`, so the intervals are too.
    sums = np.concatenate(list(resampled_sums(values, RESAMPLES, np.random.default_rng(SEED))))
    ranks = ranks_within(sums, level)
    low, high = np.quantile(sums / values.shape[1], [(1 - level) / 2, (1 + level) / 2], axis=0)
    found = []
    for k, (name, row) in enumerate(zip(names, values, strict=True)):
        mean = _mean(row)
        ends = (mean, mean) if np.all(row == row[0]) else (float(low[k]), float(high[k]))
        found.append(Standing(name, mean, *ends, int(ranks[k, 0]), int(ranks[k, 1]), groups[k]))
    return tuple(found)


def _pairs(names: list[str], values: Float64, pairs: Pairs, p: Float64, method: Method) -> tuple[Pair, ...]:
    corrected = adjusted(p, method.correction)
    differences = values[pairs[:, 0]] - values[pairs[:, 1]]
    limits = bounds(differences, method.interval, method.level, Draws(RESAMPLES, method.seed))
    same = _equivalences(differences, method)
    # What is detectable is a multiple of the deviation.
    unit = detectable(1.0, values.shape[1], method.power, method.strictest(len(pairs)))
    means = [_mean(row) for row in values]
    found = []
    for number, (i, j) in enumerate(pairs.tolist()):
        row = differences[number]
        mean, deviation = means[i] - means[j], float(row.std(ddof=1))
        found.append(
            Pair(
                names[i],
                names[j],
                mean,
                float(limits[number, 0]),
                float(limits[number, 1]),
                float(p[number]),
                float(corrected[number]),
                _effect(mean, deviation, len(row)),
                *_counts(row),
                unit * deviation,
                None if method.margin is None else float(same[number]),
                _verdict(mean, float(corrected[number]), float(same[number]), method.alpha),
            )
        )
    return tuple(found)


def _mean(values: Float64) -> float:
    return math.fsum(values.tolist()) / len(values)


def _counts(differences: Float64) -> tuple[int, int, int]:
    """How many are above, below and at zero."""
    above, below = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return above, below, int(np.sum(differences == 0))


def _equivalences(differences: Float64, method: Method) -> Float64:
    if method.margin is None:
        return np.full(len(differences), np.nan)
    return adjusted(np.array([equivalence(d, method.margin) for d in differences]), method.correction)


def _effect(mean: float, deviation: float, count: int) -> float | None:
    if deviation <= 1e-12 * abs(mean):
        return None
    return mean / deviation * (1 - 3 / (4 * (count - 1) - 1))


def _verdict(mean: float, p: float, same: float, alpha: float) -> Verdict:
    """What the p-values of a difference and of equivalence say; equivalence first: a tiny difference is none."""
    if same < alpha:
        return "equivalent"
    if p < alpha and mean:
        return "better" if mean > 0 else "worse"
    return "not separable"
