"""Systems across datasets: the mean over datasets, and on how many of them each is better than a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.compare import compared
from weir.stats.comparison import Comparison, ComparisonMethod, DatasetCounts, ScoreTable

__all__ = ["across", "compared_across", "pooled"]


def across(datasets: Mapping[str, Sequence[ScoreTable]], name: str) -> ScoreTable:
    """The means of the systems on several datasets, as a table whose columns are datasets.

    datasets: the table of each, or those of its parts, whose means are averaged. What is compared then is the mean
    over datasets, with datasets as the random factor: would it be so on other datasets? Raises BadValue for fewer
    than two datasets, or where the systems or the measure are not the same.
    """
    if len(datasets) < 2:
        raise BadValue(f"a comparison across datasets needs at least two; found {len(datasets)}")
    first = _alike([t for tables in datasets.values() for t in tables])
    parts = [_by_name(datasets[dataset]) for dataset in sorted(datasets)]
    columns = [
        [_mean(np.array(of_system)) for of_system in zip(*map(_means, tables), strict=True)]
        for tables in parts
    ]
    values = tuple(tuple(t.values for t in tables) for tables in parts)
    return ScoreTable(
        name,
        first.measure,
        first.systems,
        np.array(columns).T,
        0,
        "datasets",
        span=first.span,
        geometric=first.geometric,
        parts=values,
    )


def compared_across(
    datasets: Mapping[str, Sequence[ScoreTable]],
    name: str,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
    known: Iterable[Comparison] = (),
) -> Comparison:
    """Compare the systems across datasets; with a baseline, also count the datasets on which each is better or worse.

    Arguments and errors as `across` and `compared`; known: comparisons of datasets with the baseline that are made
    already. A dataset counts as better or worse where its own comparison says so, which is corrected for the number
    of systems, not of datasets; that of several parts is of all their queries, each part weighing the same.
    """
    found = compared(across(datasets, name), baseline, method)
    if baseline is None:
        return found
    made = {c.dataset: c for c in known}
    verdicts: dict[str, list[str]] = {pair.second: [] for pair in found.pairs}
    for dataset, tables in datasets.items():
        own = made.get(dataset) or compared(pooled(tables, dataset), baseline, method)
        for pair in own.pairs:
            verdicts.get(pair.second, []).append(pair.verdict)
    tallies = [
        DatasetCounts(
            pair.second,
            baseline,
            found.count,
            pair.difference,
            *(pair.won, pair.lost, pair.tied),
            *(verdicts[pair.second].count(v) for v in ("better", "worse", "equivalent", "not separable")),
        )
        for pair in found.pairs
    ]
    return replace(found, tallies=tuple(tallies))


def pooled(tables: Sequence[ScoreTable], name: str) -> ScoreTable:
    """The parts of a dataset as one table over all their queries, in which every part weighs the same.

    Each value is scaled so that the mean over all queries is the mean of the parts' means. One part alone is that
    part. Raises BadValue for no parts, or where the systems or the measure are not the same.
    """
    if len(tables) == 1:
        return tables[0]
    first, parts = _alike(tables), _by_name(tables)
    total = sum(t.values.shape[1] for t in parts)
    values = np.concatenate([t.values * (total / (len(parts) * t.values.shape[1])) for t in parts], axis=1)
    return replace(first, dataset=name, values=values, left_out=sum(t.left_out for t in parts), queries=None)


def _alike(tables: Sequence[ScoreTable]) -> ScoreTable:
    """The first of tables that can be joined."""
    if len({(t.systems, t.measure) for t in tables}) != 1:
        raise BadValue("a comparison across datasets needs the same systems and measure on each")
    return tables[0]


def _by_name(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    return sorted(tables, key=lambda t: t.dataset)


def _means(table: ScoreTable) -> list[float]:
    return [_mean(row) for row in table.values]


def _mean(values: Float64) -> float:
    return math.fsum(values.tolist()) / len(values)
