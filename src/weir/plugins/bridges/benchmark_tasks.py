"""What others call a collection: its task in MTEB, its data set on the Hugging Face hub; the score both report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from weir.core.result_row import Row
from weir.errors import BadValue
from weir.experiment.finished import Finished, finished_cells
from weir.io.storage.toml_file import read_toml

__all__ = ["MAIN_MEASURE", "BenchmarkTask", "cells_in", "main_row", "task_of"]

MAIN_MEASURE = "nDCG@10"
"""What MTEB's retrieval tasks are reported by."""


@dataclass(frozen=True)
class BenchmarkTask:
    """A collection's name as MTEB's task, and its data set on the hub, "" where it is not known there."""

    name: str
    hub: str = ""


def cells_in(results: Path | str | Sequence[Finished]) -> Sequence[Finished]:
    """The finished cells of a results folder, or these; raises FormatError for a folder that holds none."""
    return finished_cells(results) if isinstance(results, (str, Path)) else results


def task_of(collection: str) -> BenchmarkTask:
    """The task of a collection; one of its own name where it is none of the catalogue's that MTEB has."""
    known = _known().get(collection)
    return BenchmarkTask(collection) if known is None else BenchmarkTask(known["task"], known["hub"])


def main_row(cell: Finished) -> Row:
    """The row of the measure that is reported; raises BadValue, saying how to get it, for a cell without."""
    found = next((row for row in cell.rows if row.measure == MAIN_MEASURE), None)
    if found is None:
        raise BadValue(
            f"{cell.dataset}, {cell.label or cell.system}: no {MAIN_MEASURE} among its measures, which MTEB and "
            f"the hub report; the same weir run with -m {MAIN_MEASURE} adds it"
        )
    return found


@cache
def _known() -> dict[str, dict[str, Any]]:
    return read_toml(Path(str(files("weir.plugins.bridges") / "benchmark_tasks.toml")), "names of tasks")
