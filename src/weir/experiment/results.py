"""Reading a results folder back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from weir.core.notes import Note
from weir.core.result_row import Row
from weir.datasets import catalogue
from weir.experiment.costs import unscored_notes
from weir.experiment.finished import Finished, finished_cells
from weir.stages.stage import changes
from weir.stats.score_notes import row_notes
from weir.stats.score_rows import group_row

__all__ = ["cell_notes", "group_rows", "mixed_worlds", "read_results", "rows_with_groups"]


def read_results(root: Path | str) -> list[Row]:
    """The rows of every finished cell of a results folder, groups of datasets after their members.

    Raises FormatError where the folder holds no finished cell.
    """
    return rows_with_groups(finished_cells(root))


def rows_with_groups(cells: Sequence[Finished]) -> list[Row]:
    """The rows of cells under their labels, then those of whole groups of datasets."""
    return [*(row for cell in cells for row in cell.named_rows()), *group_rows(cells)]


def group_rows(cells: Sequence[Finished]) -> list[Row]:
    """The rows of every group all of whose members are among these cells, to one depth, by system and measure.

    cells: one for each dataset and system, so that a mean never mixes settings.
    """
    datasets = {cell.dataset for cell in cells}
    whole = [g for g in map(catalogue.group, catalogue.groups()) if datasets.issuperset(g.members)]
    if not whole:
        return []
    at = {
        (cell.dataset, cell.label or cell.system, row.measure): (cell, row)
        for cell in cells
        for row in cell.rows
    }
    pairs = list(dict.fromkeys((system, measure) for _, system, measure in at))
    values = {id(cell): cell.values() for cell in cells}
    found = []
    for group in whole:
        for system, measure in pairs:
            parts = [at[key] for member in group.members if (key := (member, system, measure)) in at]
            if len(parts) == len(group.members) and len({cell.depth for cell, _ in parts}) == 1:
                scores = [values[id(cell)] for cell, _ in parts]
                columns = [one.in_id_order(measure) for one in scores]
                rows = [replace(row, system=system) for _, row in parts]
                found.append(group_row(group.name, rows, columns, measure in scores[0].geometric))
    return found


def cell_notes(cells: Sequence[Finished]) -> list[Note]:
    """What has to be said beside the scores of cells: mixed provenance, unscored candidates, queries not answered,
    documents not judged."""
    rows = [row for cell in cells for row in cell.named_rows()]
    first, *more = unscored_notes(cells) or [""]
    so_do = f"; {len(more)} more re-rankings leave some" if more else ""
    unscored = [Note(first + so_do, "; ".join(more))] if first else []
    return [*map(Note, mixed_worlds(cells)), *unscored, *row_notes(rows)]


def mixed_worlds(cells: Sequence[Finished]) -> list[str]:
    """What in a table bears one name and was made otherwise, in sentences: by other algorithms, versions or data."""
    seen: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        said = {"bootstrap interval": cell.scored[-1][1].declared["interval"].get("algorithm")}
        for _, record in cell.scored:
            said |= {f"measure {m}": number for m, number in record.declared["measures"].items()}
        for what, number in said.items():
            seen.setdefault(what, {}).setdefault(str(number), []).append(f"{cell.dataset} {cell.label}")
    found = [
        f"{what} was made by different algorithms and does not compare: "
        + "; ".join(f"number {number} in {', '.join(names)}" for number, names in sorted(numbers.items()))
        for what, numbers in seen.items()
        if len(numbers) > 1
    ]
    found += _mixed_depths(cells)
    for one, other in pairwise(sorted(cells, key=lambda cell: (cell.dataset, cell.system))):
        if (one.dataset, one.system) == (other.dataset, other.system):
            names = [name for name, *_ in changes(one.ranked.stage, other.ranked.stage)] or ["judgments"]
            found.append(f"{one.dataset}: {one.label} and {other.label} differ in {', '.join(names[:4])}")
    return found


def _mixed_depths(cells: Sequence[Finished]) -> list[str]:
    """A sentence for each system that answered some datasets with more documents than others."""
    depths: dict[str, dict[int, str]] = {}
    for cell in cells:
        depths.setdefault(cell.label, {}).setdefault(cell.depth, cell.dataset)
    where = {name: [f"{k} on {d}" for k, d in some.items()] for name, some in depths.items()}
    return [
        f"{name} answered with different k: {', '.join(one)}" for name, one in where.items() if len(one) > 1
    ]
