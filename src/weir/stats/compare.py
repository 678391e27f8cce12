"""Comparisons of systems that end with a verdict: better, worse, equivalent, or not separable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.scores import Scores, averaged
from weir.core.strings import Float64
from weir.errors import BadValue, UnknownName
from weir.stats import paired, permutation, tukey  # noqa: F401  each registers its tests
from weir.stats.bootstrap import LEVEL, RESAMPLES, SEED
from weir.stats.intervals import INTERVALS, bounds
from weir.stats.levels import two_level_means
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
    "Tally",
    "Verdict",
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
    queries that not all systems have a value for; unit: what a column is; geometric: values are logarithms, so that
    the means reported are exponentials of theirs, and differences are differences of logarithms; parts: where
    columns are datasets, the values on the queries of each, float64[K, Q] for each of its parts.
    """

    dataset: str
    measure: str
    systems: tuple[str, ...]
    values: Float64
    left_out: int = 0
    unit: str = "queries"
    geometric: bool = False
    parts: tuple[tuple[Float64, ...], ...] = ()


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
    there is no deviation and for two queries; detectable: the smallest true difference that would be found here with
    the wanted power, at the level of the strictest of the corrected tests; equivalence: corrected p-value of lying
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
class Tally:
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

    tallies: of a comparison across datasets with a baseline.
    """

    dataset: str
    measure: str
    count: int
    unit: str
    left_out: int
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    baseline: str | None
    method: Method
    geometric: bool = False
    tallies: tuple[Tally, ...] = ()


def table(dataset: str, measure: str, scores: Mapping[str, Scores]) -> Table:
    """The values of several systems on the queries for which all have one.

    Raises BadValue for fewer than two systems, where they share no query, or one only, and where values are
    undefined on all queries but one.
    """
    if len(scores) < 2:
        raise BadValue(f"{dataset}: a comparison needs at least two systems; found {len(scores)}")
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
    known = set(first.queries.tolist()).union(*(o.queries.tolist() for o in others))
    count = int(shared.sum())
    if count < 2:
        if common.sum() < 2:
            found = f"the systems share {'one query only' if count else 'no query'}"
        else:
            found = f"{'only one' if count else 'no'} query has a value of every system"
        raise BadValue(f"{dataset}, {measure}: {found}; a comparison needs at least two")
    return Table(
        dataset,
        measure,
        tuple(scores),
        np.stack(rows)[:, shared],
        len(known) - count,
        geometric=measure in first.geometric,
    )


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
    levels = _levels(given, ranked, method)
    standings = _standings(replace(given, systems=tuple(names), values=values), groups, method.level, levels)
    if baseline is not None:
        pairs, p = _against(names.index(baseline), pairs, p)
    return Comparison(
        given.dataset,
        given.measure,
        values.shape[1],
        given.unit,
        given.left_out,
        standings,
        _pairs(names, values, pairs, p, method, levels),
        baseline,
        method,
        given.geometric,
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


def _levels(given: Table, ranked: list[int], method: Method) -> Float64 | None:
    """The means over datasets in samples of datasets and queries, float64[B, K], where those are asked for."""
    if method.interval != "two-level" or not given.parts:
        return None
    parts = [[values[ranked] for values in dataset] for dataset in given.parts]
    return two_level_means(parts, Draws(RESAMPLES, method.seed))


def _standings(given: Table, groups: list[str], level: float, levels: Float64 | None) -> tuple[Standing, ...]:
    values = given.values
    if levels is not None:
        sums = levels * values.shape[1]
    else:  # the samples are those of `weir eval`, so the intervals are too
        sums = np.concatenate(list(resampled_sums(values, RESAMPLES, np.random.default_rng(SEED))))
    ranks = ranks_within(sums, level)
    low, high = np.quantile(sums / values.shape[1], [(1 - level) / 2, (1 + level) / 2], axis=0)
    found = []
    for k, (name, row) in enumerate(zip(given.systems, values, strict=True)):
        mean = _mean(row)
        ends = (mean, mean) if levels is None and np.all(row == row[0]) else (float(low[k]), float(high[k]))
        mean, lowest, highest = (averaged(value, given.geometric) for value in (mean, *ends))
        found.append(Standing(name, mean, lowest, highest, int(ranks[k, 0]), int(ranks[k, 1]), groups[k]))
    return tuple(found)


def _pairs(
    names: list[str], values: Float64, pairs: Pairs, p: Float64, method: Method, levels: Float64 | None
) -> tuple[Pair, ...]:
    corrected = adjusted(p, method.correction)
    differences = values[pairs[:, 0]] - values[pairs[:, 1]]
    if levels is not None:
        ends = [(1 - method.level) / 2, (1 + method.level) / 2]
        limits = np.stack([np.quantile(levels[:, i] - levels[:, j], ends) for i, j in pairs.tolist()])
    else:
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
    if count < 3 or deviation <= 1e-12 * abs(mean):
        return None
    return mean / deviation * (1 - 3 / (4 * (count - 1) - 1))


def _verdict(mean: float, p: float, same: float, alpha: float) -> Verdict:
    """What the p-values of a difference and of equivalence say; equivalence first: a tiny difference is none."""
    if same < alpha:
        return "equivalent"
    if p < alpha and mean:
        return "better" if mean > 0 else "worse"
    return "not separable"
