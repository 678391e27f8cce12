"""Comparisons of the systems of a results folder, on each dataset and across datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from weir.core.ids import Ids
from weir.core.query_groups import QueryGroups
from weir.core.scores import Scores
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName
from weir.experiment.finished import Finished
from weir.measures import Measure, measures_of
from weir.stats.across import compared_across
from weir.stats.compare import compared, table
from weir.stats.compare_groups import compared_by_group
from weir.stats.comparison import Comparison, ComparisonMethod, ScoreTable

__all__ = [
    "MOST_COMPARED",
    "compare_cells",
    "compare_cells_by_group",
    "compare_grid",
    "comparison_cost",
    "lacking_notes",
    "measures_wanted",
    "tie_groups",
    "units_across",
]

MOST_COMPARED = 500_000
"""Differences of two systems on a query that tie groups of a grid look at unasked: some seconds."""


def compare_cells(
    cells: Sequence[Finished],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Compare the systems of finished cells, on each dataset and, where there are several, across them.

    measures: by default all that the cells have. Datasets with one system are left out, and so are systems on a
    dataset where they lack the measure (`lacking_notes` names them) and, across datasets, systems that some dataset
    lacks. A group whose members are all there, such as cqadupstack, counts as one dataset if there are others. Raises
    BadValue where no dataset has two systems, UnknownName for a measure that none has.
    """
    return compare_grid(
        {(c.dataset, c.label or c.system): c.values() for c in cells}, measures, baseline, method
    )


def compare_grid(
    cells: Mapping[tuple[str, str], Scores],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """As `compare_cells`, of scores by dataset and system; raises as it does."""
    scores: dict[str, dict[str, Scores]] = {}
    for (dataset, system), values in cells.items():
        scores.setdefault(dataset, {})[system] = values
    if not any(len(systems) > 1 for systems in scores.values()):
        raise BadValue("no dataset has two systems, so there is nothing to compare")
    found = []
    for measure in measures_wanted([m for of in cells.values() for m in of.measures], measures):
        having = {d: {n: s for n, s in of.items() if measure in s.measures} for d, of in scores.items()}
        tables = [table(dataset, measure, of) for dataset, of in having.items() if len(of) > 1]
        if any(baseline in t.systems for t in tables):
            tables = [t for t in tables if baseline in t.systems]
        each = [compared(t, baseline, method) for t in tables]
        found += each
        units = units_across(tables)
        if len(units) > 1:
            found.append(compared_across(units, f"{len(units)} datasets", baseline, method, each))
    return found


def compare_cells_by_group(
    cells: Sequence[Finished],
    groups: Callable[[Finished, Ids], QueryGroups],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Compare the systems of finished cells on each dataset, by the macro mean over its groups, and on each group.

    groups: the groups of the queries of a cell. Raises BadValue where no dataset has two systems, and as
    `compare_cells` and `compared_by_group`.
    """
    found = []
    for measure in measures_wanted(_measured(cells), measures):
        for dataset, systems in _by_dataset(cells).items():
            having = {name: c for name, c in systems.items() if c.mean(measure) is not None}
            if len(having) < 2 or (baseline is not None and baseline not in having):
                continue
            whole = table(dataset, measure, {name: cell.values() for name, cell in having.items()})
            assert whole.queries is not None
            by = groups(next(iter(having.values())), whole.queries)
            found += compared_by_group(whole, by, baseline, method)
    if not found:
        raise BadValue("no dataset has two systems to compare")
    return found


def tie_groups(cells: Mapping[tuple[str, str], Scores]) -> list[Comparison]:
    """The comparisons that tie groups of a grid come from; [] where there are none, or they would take long.

    A dataset with one query has none.
    """
    cells = {cell: of for cell, of in cells.items() if len(of.queries) > 1}
    systems = [dataset for dataset, _ in cells]
    cost = sum((systems.count(dataset) - 1) * of.values.size / 2 for (dataset, _), of in cells.items())
    return compare_grid(cells) if len(set(systems)) < len(systems) and cost <= MOST_COMPARED else []


def lacking_notes(
    cells: Sequence[Finished], measures: Iterable[Measure | str] = (), baseline: str | None = None
) -> list[str]:
    """A sentence for each measure that some of these cells lack, so that they are left out of its comparison.

    measures: by default all that the cells have; baseline: datasets without it are named too, as they are left out.
    Raises UnknownName for a measure that none has.
    """
    found = []
    for measure in measures_wanted(_measured(cells), measures):
        lacking = [f"{cell.label} on {cell.dataset}" for cell in cells if cell.mean(measure) is None]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            verb = "are" if more else "is"
            found.append(
                f"{lacking[0]}{more} {verb} left out of {measure}, not having been scored by it; "
                f"weir run with -m '{measure}' adds it, searching nothing anew"
            )
    without = [d for d, systems in _by_dataset(cells).items() if baseline and baseline not in systems]
    return found + [f"{dataset} is left out: it has no {baseline}, the baseline" for dataset in without]


def comparison_cost(cells: Sequence[Finished], measures: Iterable[Measure | str] = ()) -> int:
    """How many differences of two systems on a query a comparison of each with each looks at."""
    pairs = [len(systems) * (len(systems) - 1) // 2 for systems in _by_dataset(cells).values()]
    queries = [max(cell.queries for cell in systems.values()) for systems in _by_dataset(cells).values()]
    return len(measures_wanted(_measured(cells), measures)) * sum(
        p * q for p, q in zip(pairs, queries, strict=True)
    )


def _by_dataset(cells: Sequence[Finished]) -> dict[str, dict[str, Finished]]:
    """The cells by dataset and by the name that tables show."""
    found: dict[str, dict[str, Finished]] = {}
    for cell in cells:
        found.setdefault(cell.dataset, {})[cell.label or cell.system] = cell
    return found


def _measured(cells: Sequence[Finished]) -> list[str]:
    return [row.measure for cell in cells for row in cell.rows]


def measures_wanted(measured: Iterable[str], measures: Iterable[Measure | str]) -> list[str]:
    """The names of the measures, by default all that were measured; raises UnknownName for one that was not."""
    known = list(dict.fromkeys(measured))
    wanted = [str(m) for m in measures_of(given)] if (given := tuple(measures)) else known
    for measure in wanted:
        if measure not in known:
            raise UnknownName("measure among these scores", measure, known)
    return wanted


def units_across(tables: Sequence[ScoreTable]) -> dict[str, list[ScoreTable]]:
    """The datasets to compare across, each with the tables of its parts, for the systems that every one has.

    Empty where there are not two such systems.
    """
    shared = [s for s in tables[0].systems if all(s in t.systems for t in tables)] if tables else []
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
