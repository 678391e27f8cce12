"""Comparisons of systems that end with a verdict: better, worse, equivalent, or not separable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.scores import Scores, averaged
from weir.core.strings import Float64
from weir.errors import BadValue, UnknownName
from weir.measures.measure import within_unit
from weir.stats.bootstrap import RESAMPLES, SEED
from weir.stats.comparison import Comparison, ComparisonMethod, Pair, ScoreTable, Standing, Verdict
from weir.stats.corrections import adjusted
from weir.stats.intervals import bounds, fewest
from weir.stats.power import Family, Reach, detectable, equivalence, excess_kurtosis, reach
from weir.stats.rank_stability import letters
from weir.stats.resampling import resampled_sums
from weir.stats.significance import TESTS, Draws, Pairs, all_pairs, p_values
from weir.stats.two_level_bootstrap import two_level_means

__all__ = [
    "compare_scores",
    "compared",
    "compared_together",
    "equivalences",
    "hedges_g",
    "shared_measures",
    "signs",
    "table",
    "verdict_of",
]


def table(dataset: str, measure: str, scores: Mapping[str, Scores]) -> ScoreTable:
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
    return ScoreTable(
        dataset,
        measure,
        tuple(scores),
        np.stack(rows)[:, shared],
        len(known) - count,
        span=1.0 if within_unit(measure) else math.inf,
        geometric=measure in first.geometric,
        queries=Ids(names).take(np.flatnonzero(shared)),
    )


def compared(
    given: ScoreTable, baseline: str | None = None, method: ComparisonMethod | None = None
) -> Comparison:
    """Compare the systems of a table: each with each, or each with a baseline.

    The correction counts the tests that are made: all pairs, or all systems but the baseline. Ranks and letters
    follow from the verdicts. Raises UnknownName for a baseline that is not among the systems.
    """
    return compared_together([given], baseline, method)[0]


def compared_together(
    tables: Sequence[ScoreTable], baseline: str | None = None, method: ComparisonMethod | None = None
) -> list[Comparison]:
    """Compare the systems of each table, as `compared`; the correction counts the tests of all tables together."""
    method = method or ComparisonMethod()
    tested = [_tested_table(table, baseline, method) for table in tables]
    return [_concluded(one, [o for o in tested if o is not one], baseline, method) for one in tested]


@dataclass(frozen=True, eq=False)
class _TestedTable:
    """A table, its systems best first, the p-values of its pairs, and what none of them could be below."""

    table: ScoreTable
    pairs: Pairs
    p: Float64
    smallest: float


def _tested_table(given: ScoreTable, baseline: str | None, method: ComparisonMethod) -> _TestedTable:
    if baseline is not None and baseline not in given.systems:
        raise UnknownName("system to be the baseline", baseline, given.systems)
    means = [_mean(row) for row in given.values]
    ranked = sorted(range(len(means)), key=lambda k: (-means[k], given.systems[k]))
    names = tuple(given.systems[k] for k in ranked)
    # Draws follow the systems in this order, so that the order they are given in moves no p-value.
    parts = tuple(tuple(values[ranked] for values in dataset) for dataset in given.parts)
    best_first = replace(given, systems=names, values=given.values[ranked], parts=parts)
    pairs = _tested(ranked, None if baseline is None else names.index(baseline))
    p = p_values(method.test, best_first.values, pairs, _draws(method))
    smallest = TESTS.get(method.test).smallest(given.values.shape[1], len(names), _draws(method))
    return _TestedTable(best_first, pairs, p, smallest)


def _draws(method: ComparisonMethod) -> Draws:
    return Draws(method.draws, method.seed)


def _concluded(
    one: _TestedTable, beside: Sequence[_TestedTable], baseline: str | None, method: ComparisonMethod
) -> Comparison:
    """The comparison of a tested table; beside: those whose tests its correction counts besides its own."""
    table = one.table
    systems, units = len(table.systems), table.values.shape[1]
    levels = _levels(table, method)
    others = np.concatenate([np.empty(0), *(o.p for o in beside)])
    family = method.family(len(one.pairs) + len(others), systems, 1 if baseline is not None else systems - 1)
    smallest = [np.full(len(o.p), o.smallest) for o in beside] if family.correct != "none" else []
    possible = reach(
        method.test,
        units,
        method.alpha,
        family,
        _draws(method),
        systems,
        np.concatenate([np.empty(0), *smallest]),
    )
    found = _pairs(one, others, method, levels, family, possible)
    return Comparison(
        table.dataset,
        table.measure,
        table.values.shape[1],
        table.unit,
        table.left_out,
        _standings(
            table,
            _better(table.systems, found),
            method,
            levels,
            letter=baseline is None
            and (possible.possible or any(p.verdict != "not separable" for p in found)),
        ),
        found,
        baseline,
        method,
        possible,
        table.geometric,
        group=table.group,
    )


def compare_scores(
    scores: Mapping[str, Scores],
    dataset: str,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """One comparison for each measure that all systems have.

    Raises BadValue for fewer than two systems, and what `shared_measures`, `table` and `compared` raise.
    """
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


def _tested(ranked: list[int], baseline: int | None) -> Pairs:
    """Which systems are compared, by their places in `ranked`, int64[P, 2]: the second against the first.

    The first of two was given earlier, or is the baseline.
    """
    if baseline is not None:
        return np.array([(baseline, k) for k in range(len(ranked)) if k != baseline], np.int64)
    return np.array(
        [(i, j) if ranked[i] < ranked[j] else (j, i) for i, j in all_pairs(len(ranked)).tolist()], np.int64
    )


def _better(names: tuple[str, ...], pairs: Iterable[Pair]) -> NDArray[np.bool_]:
    """Which systems are better than which by the verdicts, bool[K, K]."""
    at = {name: k for k, name in enumerate(names)}
    found = np.zeros((len(names), len(names)), np.bool_)
    for pair in pairs:
        first, second = at[pair.first], at[pair.second]
        found[second, first] = pair.verdict == "better"
        found[first, second] = pair.verdict == "worse"
    return found


def _levels(given: ScoreTable, method: ComparisonMethod) -> Float64 | None:
    """The means over datasets in samples of datasets and queries, float64[B, K], where those are asked for."""
    if method.interval != "two-level" or not given.parts:
        return None
    return two_level_means([list(dataset) for dataset in given.parts], Draws(RESAMPLES, method.seed))


def _standings(
    given: ScoreTable,
    better: NDArray[np.bool_],
    method: ComparisonMethod,
    levels: Float64 | None,
    *,
    letter: bool,
) -> tuple[Standing, ...]:
    values, count = given.values, len(given.systems)
    groups = letters(better | better.T) if letter else [""] * count
    ends = _mean_bounds(values, method.level, levels)
    found = []
    for k, (name, row) in enumerate(zip(given.systems, values, strict=True)):
        mean, low, high = (
            None if v is None else averaged(v, given.geometric) for v in (_mean(row), *ends[k])
        )
        best, worst = 1 + int(better[:, k].sum()), count - int(better[k].sum())
        assert mean is not None
        found.append(Standing(name, mean, low, high, best, worst, groups[k]))
    return tuple(found)


def _mean_bounds(
    values: Float64, level: float, levels: Float64 | None
) -> list[tuple[float | None, float | None]]:
    """The percentile bootstrap interval of each mean; None for too few columns."""
    if values.shape[1] < fewest(level):
        return [(None, None)] * len(values)
    if levels is not None:
        means = levels
    else:  # the samples are those of `weir eval`, so the intervals are too
        sums = np.concatenate(list(resampled_sums(values, RESAMPLES, np.random.default_rng(SEED))))
        means = sums / values.shape[1]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    found: list[tuple[float | None, float | None]] = list(zip(low.tolist(), high.tolist(), strict=True))
    if levels is None:
        for k in np.flatnonzero((values == values[:, :1]).all(axis=1)).tolist():
            found[k] = (_mean(values[k]),) * 2
    return found


def _pairs(
    one: _TestedTable,
    beside: Float64,
    method: ComparisonMethod,
    levels: Float64 | None,
    family: Family,
    possible: Reach,
) -> tuple[Pair, ...]:
    given, pairs, p = one.table, one.pairs, one.p
    values, queries = given.values, given.values.shape[1]
    corrected = adjusted(np.concatenate([p, beside]), method.correction)
    differences = values[pairs[:, 1]] - values[pairs[:, 0]]
    limits = _difference_bounds(given, differences, pairs, method, levels)
    same = equivalences(differences, method)
    # What is detectable is a multiple of the deviation.
    unit = math.inf
    if possible.possible and TESTS.get(method.test).detection is not None:
        kurtosis = excess_kurtosis(differences)
        unit = detectable(1.0, queries, method.power, method.alpha, method.test, family, kurtosis)
    means = [_mean(row) for row in values]
    found = []
    for number, (i, j) in enumerate(pairs.tolist()):
        row = differences[number]
        mean, deviation = means[j] - means[i], float(row.std(ddof=1))
        found.append(
            Pair(
                given.systems[i],
                given.systems[j],
                mean,
                *limits[number],
                float(p[number]),
                float(corrected[number]),
                family.tests,
                hedges_g(mean, deviation, len(row)),
                *signs(row),
                unit * deviation if math.isfinite(unit) and unit * deviation <= given.span else None,
                None if method.margin is None else float(same[number]),
                verdict_of(mean, float(corrected[number]), float(same[number]), method.alpha),
            )
        )
    return tuple(found)


def _difference_bounds(
    given: ScoreTable, differences: Float64, pairs: Pairs, method: ComparisonMethod, levels: Float64 | None
) -> list[tuple[float | None, float | None]]:
    """The interval of each mean difference, within what is possible; None for too few columns.

    An interval cut at the bounds of what it estimates covers it as often as before. Source: Mandelkern 2002.
    """
    if differences.shape[1] < fewest(method.level):
        return [(None, None)] * len(differences)
    if levels is not None:
        ends = [(1 - method.level) / 2, (1 + method.level) / 2]
        limits = np.stack([np.quantile(levels[:, j] - levels[:, i], ends) for i, j in pairs.tolist()])
    else:
        limits = bounds(differences, method.interval, method.level, Draws(RESAMPLES, method.seed))
    return [(low, high) for low, high in np.clip(limits, -given.span, given.span).tolist()]


def _mean(values: Float64) -> float:
    return math.fsum(values.tolist()) / len(values)


def signs(differences: Float64) -> tuple[int, int, int]:
    """How many are above, below and at zero."""
    above, below = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return above, below, int(np.sum(differences == 0))


def equivalences(differences: Float64, method: ComparisonMethod) -> Float64:
    """Corrected p-values of lying within the method's margin, by row; NaN without one."""
    if method.margin is None:
        return np.full(len(differences), np.nan)
    return adjusted(np.array([equivalence(d, method.margin) for d in differences]), method.correction)


def hedges_g(mean: float, deviation: float, count: int) -> float | None:
    """Hedges' g of a mean difference; None where there is no deviation and for two queries."""
    if count < 3 or deviation <= 1e-12 * abs(mean):
        return None
    return mean / deviation * (1 - 3 / (4 * (count - 1) - 1))


def verdict_of(mean: float, p: float, same: float, alpha: float) -> Verdict:
    """What the p-values of a difference and of equivalence say; equivalence first: a tiny difference is none."""
    if same < alpha:
        return "equivalent"
    if p < alpha and mean:
        return "better" if mean > 0 else "worse"
    return "not separable"
