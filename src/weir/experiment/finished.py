"""Finished cells of a results folder, each with every setting that its manifest holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.core.row import Row
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load
from weir.errors import FormatError
from weir.experiment.cell import finished_rows

__all__ = ["Finished", "dataset_of", "finished_cells", "flattened", "open_cell"]

OUTCOMES = ("rows", "cost", "queries", "answered", "unjudged_queries", "tied_share")


@dataclass(frozen=True)
class Finished:
    """A system on a collection, done and written.

    queries: how many are judged; run: the file of its rankings; rows: its means; settings: every setting of the
    manifest as (dotted name, text), in its order.
    """

    folder: Path
    dataset: str
    split: str
    system: str
    queries: int
    run: Path
    rows: tuple[Row, ...]
    settings: tuple[tuple[str, str], ...]

    def mean(self, measure: str) -> float | None:
        """The stored mean of a measure, None where it was not computed."""
        return next((r.mean for r in self.rows if r.measure == measure), None)


def open_cell(folder: Path) -> Finished:
    """The finished cell in a folder such as results/scifact/bm25-fa19b4d424.

    Raises FormatError for a folder that is none, or one that is not finished.
    """
    expected = "the folder of a finished cell, such as results/scifact/bm25-0123456789"
    if not folder.is_dir():
        raise FormatError(folder, "a file" if folder.exists() else "no such folder", expected)
    rows = finished_rows(folder)
    if rows is None:
        begun = any((folder / name).exists() for name in ("index.json", "search.json", "manifest.json"))
        if begun:
            raise FormatError(folder, "an unfinished cell", "a finished one; the same weir run continues it")
        raise FormatError(folder, "no manifest.json", expected)
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        run = (manifest["cost"]["search"] or {}).get("run", "run.trec")
        return Finished(
            folder,
            str(manifest["dataset"]),
            str(manifest["split"]),
            str(manifest["system"]["system"]),
            int(manifest["queries"]),
            folder / str(run),
            tuple(rows),
            tuple(flattened("", {k: v for k, v in manifest.items() if k not in OUTCOMES})),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(folder / "manifest.json", "another layout", "a manifest of weir run") from None


def finished_cells(root: Path) -> list[Finished]:
    """Every finished cell of a results folder, by collection and name; raises FormatError where there is none."""
    found = [p.parent for p in sorted(root.glob("*/*/manifest.json")) if finished_rows(p.parent) is not None]
    if not found:
        raise FormatError(root, "no finished cell", "a folder written by weir run")
    return [open_cell(folder) for folder in found]


def dataset_of(cell: Finished, given: str | Path | None = None) -> Dataset | None:
    """The collection of a cell: the given one, or the catalogue's of that name if it is on this machine.

    The catalogue's must be what was measured: its fingerprint is compared. Nothing is downloaded; None where it is not
    here. Raises what `load` raises for a given one.
    """
    if given is not None:
        return load(given, cell.split)
    if cell.dataset in catalogue.names() and catalogue.get(cell.dataset).here:
        found = load(cell.dataset, cell.split)
        return found if found.fingerprint == dict(cell.settings).get("fingerprint") else None
    return None


def flattened(name: str, value: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - whatever JSON holds
    """The settings within a value as (dotted name, text)."""
    if isinstance(value, dict):
        return [
            pair
            for key, inner in value.items()
            for pair in flattened(f"{name}.{key}" if name else key, inner)
        ]
    if isinstance(value, (list, tuple)) and any(isinstance(v, dict) for v in value):
        return [pair for n, inner in enumerate(value, 1) for pair in flattened(f"{name}.{n}", inner)]
    if isinstance(value, (list, tuple)):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "none" if value is None else str(value))]
