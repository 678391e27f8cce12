"""Reading a results folder back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from weir.core.row import Row
from weir.datasets import catalogue
from weir.errors import FormatError
from weir.experiment.cell import finished_rows, member_values
from weir.stats.summary import group_row

__all__ = ["group_rows", "read_results"]


def read_results(root: Path) -> list[Row]:
    """The rows of every finished cell of a results folder, groups of datasets after their members.

    Raises FormatError where the folder holds no finished cell.
    """
    cells = _cells(root)
    if not cells:
        raise FormatError(root, "no finished cell", "a folder written by weir run")
    twice = Counter((r.dataset, r.system) for _, rows in cells for r in rows[:1])
    found = []
    for folder, rows in cells:
        for row in rows:
            # The same system with another depth or another version of the data: its key tells them apart.
            key = folder.name.rpartition("-")[2]
            once = twice[row.dataset, row.system] == 1
            found.append(row if once else replace(row, system=f"{row.system} #{key}"))
    return [*found, *group_rows(root, {row.dataset for row in found})]


def group_rows(root: Path, datasets: set[str]) -> list[Row]:
    """The rows of every group all of whose members are among `datasets`, by system and measure."""
    whole = [g for g in map(catalogue.group, catalogue.groups()) if datasets.issuperset(g.members)]
    if not whole:
        return []
    cells = _cells(root)
    at = {(r.dataset, r.system, r.measure): (folder, r) for folder, rows in cells for r in rows}
    pairs = list(dict.fromkeys((system, measure) for _, system, measure in at))
    found = []
    for group in whole:
        for system, measure in pairs:
            parts = [at.get((member, system, measure)) for member in group.members]
            if all(parts):
                chosen = [part for part in parts if part is not None]
                values = [_in_id_order(folder, measure) for folder, _ in chosen]
                found.append(group_row(group.name, [row for _, row in chosen], values))
    return found


def _in_id_order(folder: Path, measure: str) -> np.ndarray:
    scores = member_values(folder)
    return scores.of(measure)[np.argsort(scores.queries.tie_ranks)]


def _cells(root: Path) -> list[tuple[Path, list[Row]]]:
    found = [(path.parent, finished_rows(path.parent)) for path in sorted(root.glob("*/*/manifest.json"))]
    return [(folder, rows) for folder, rows in found if rows is not None]
