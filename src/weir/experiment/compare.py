"""Comparisons of the systems of a results folder, on each dataset and across datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weir.core.scores import Scores
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName
from weir.experiment.results import read_scores_of
from weir.measures import Measure, measures_of
from weir.stats.across import compared_across
from weir.stats.compare import compared, shared_measures, table
from weir.stats.comparison import Comparison, ComparisonMethod, ScoreTable

__all__ = ["compare_grid", "compare_results"]


def compare_results(
    root: Path,
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Compare the systems of a results folder, on each dataset and, where there are several, across them.

    measures: by default all that are in the folder. Datasets with one system are left out, and so are, across
    datasets, systems that some dataset lacks. A group whose members are all there, such as cqadupstack, counts as
    one dataset if there are others. Raises BadValue where no dataset has two systems and for a measure that some
    system lacks, naming it and its dataset, UnknownName for one that none has.
    """
    cells = read_scores_of(root)
    if len({dataset for dataset, _ in cells}) == len(cells):
        raise BadValue(f"{root}: no dataset has two systems, so there is nothing to compare")
    return compare_grid(cells, measures, baseline, method)


def compare_grid(
    cells: Mapping[tuple[str, str], Scores],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """As `compare_results`, of scores by dataset and system; raises BadValue as it does."""
    by_dataset: dict[str, dict[str, Scores]] = {}
    for (dataset, system), scores in cells.items():
        by_dataset.setdefault(dataset, {})[system] = scores
    several = {d: systems for d, systems in by_dataset.items() if len(systems) > 1}
    if not several:
        raise BadValue("no dataset has two systems, so there is nothing to compare")
    known = shared_measures(s for systems in several.values() for s in systems.values())
    wanted = [str(m) for m in measures_of(tuple(measures))] if measures else known
    found = []
    for measure in wanted:
        _refuse_lacking(measure, several)
        tables = [table(dataset, measure, systems) for dataset, systems in several.items()]
        each = [compared(t, baseline, method) for t in tables]
        found += each
        units = _units(tables)
        if len(units) > 1:
            found.append(compared_across(units, f"{len(units)} datasets", baseline, method, each))
    return found


def _refuse_lacking(measure: str, several: Mapping[str, Mapping[str, Scores]]) -> None:
    """Raise BadValue where some systems have a measure and others lack it; UnknownName where none has it."""
    lacking = [
        f"{system} on {dataset}"
        for dataset, systems in several.items()
        for system, scores in systems.items()
        if measure not in scores.measures
    ]
    known = sorted(
        {m for systems in several.values() for scores in systems.values() for m in scores.measures}
    )
    if lacking and measure not in known:
        raise UnknownName("measure among these scores", measure, known)
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise BadValue(
            f"{lacking[0]}{more} has no {measure}; weir run with -m '{measure}' adds it, searching nothing anew"
        )


def _units(tables: Sequence[ScoreTable]) -> dict[str, list[ScoreTable]]:
    """The datasets to compare across, each with the tables of its parts, for the systems that every one has.

    Empty where there are not two such systems.
    """
    shared = [s for s in tables[0].systems if all(s in t.systems for t in tables)]
    units: dict[str, list[ScoreTable]] = {}
    for one in tables if len(shared) > 1 else ():
        rows = [one.systems.index(s) for s in shared]
        part = replace(one, systems=tuple(shared), values=one.values[rows])
        units.setdefault(_unit(one.dataset, {t.dataset for t in tables}), []).append(part)
    return units


def _unit(dataset: str, datasets: set[str]) -> str:
    """The group that a dataset counts in, if it is there as a whole beside others; else the dataset."""
    for group in map(catalogue.group, catalogue.groups()):
        if dataset in group.members and datasets > set(group.members):
            return group.name
    return dataset
