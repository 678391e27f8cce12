"""Reading a results folder back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weir.core.row import Row
from weir.core.scores import Scores
from weir.datasets import catalogue
from weir.errors import FormatError
from weir.experiment.cell import finished_rows, member_values
from weir.stats.summary import group_row

__all__ = ["group_rows", "named_cells", "read_results", "read_scores_of"]


def read_results(root: Path) -> list[Row]:
    """The rows of every finished cell of a results folder, groups of datasets after their members.

    Raises FormatError where the folder holds no finished cell.
    """
    cells = [
        (folder, [replace(row, system=name) for row in rows]) for folder, name, rows in named_cells(root)
    ]
    return [*(row for _, rows in cells for row in rows), *group_rows(cells)]


def read_scores_of(root: Path) -> dict[tuple[str, str], Scores]:
    """The per-query scores of every finished cell, by dataset and system as `read_results` names them.

    Raises FormatError where the folder holds no finished cell.
    """
    return {
        (rows[0].dataset, name): member_values(folder) for folder, name, rows in named_cells(root) if rows
    }


def group_rows(cells: Sequence[tuple[Path, list[Row]]]) -> list[Row]:
    """The rows of every group all of whose members are among these cells, by system and measure.

    cells: folders with their rows, one for each dataset and system, so that a mean never mixes settings.
    """
    datasets = {row.dataset for _, rows in cells for row in rows}
    whole = [g for g in map(catalogue.group, catalogue.groups()) if datasets.issuperset(g.members)]
    at = {(r.dataset, r.system, r.measure): (folder, r) for folder, rows in cells for r in rows}
    pairs = list(dict.fromkeys((system, measure) for _, system, measure in at))
    found = []
    for group in whole:
        for system, measure in pairs:
            parts = [at.get((member, system, measure)) for member in group.members]
            if all(parts):
                chosen = [part for part in parts if part is not None]
                scores = [member_values(folder) for folder, _ in chosen]
                values = [one.in_id_order(measure) for one in scores]
                geometric = measure in scores[0].geometric
                found.append(group_row(group.name, [row for _, row in chosen], values, geometric))
    return found


def named_cells(root: Path) -> list[tuple[Path, str, list[Row]]]:
    """Every finished cell with a name of its system that is its own on that dataset."""
    cells = _cells(root)
    if not cells:
        raise FormatError(root, "no finished cell", "a folder written by weir run")
    twice = Counter((r.dataset, r.system) for _, rows in cells for r in rows[:1])
    found = []
    for folder, rows in cells:
        name = rows[0].system if rows else ""
        # The same system with another depth or another version of the data: its key tells them apart.
        once = not rows or twice[rows[0].dataset, name] == 1
        found.append((folder, name if once else f"{name} #{folder.name.rpartition('-')[2]}", rows))
    return found


def _cells(root: Path) -> list[tuple[Path, list[Row]]]:
    found = [(path.parent, finished_rows(path.parent)) for path in sorted(root.glob("*/*/manifest.json"))]
    return [(folder, rows) for folder, rows in found if rows is not None]
