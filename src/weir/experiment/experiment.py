"""Datasets x systems x measures."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weir.core.row import Row
from weir.datasets.load import Dataset, load_group
from weir.errors import BadValue, FormatError, StoreError, UnknownName
from weir.experiment.cell import Cell, Watch
from weir.experiment.results import group_rows
from weir.io.atomic import storing, writable
from weir.measures import DEFAULT_MEASURES, Measure, measures_of

__all__ = ["Experiment"]

DEPTH = 1000


def _silent(stage: str, done: int, total: int) -> None:
    """Watch nothing."""


@dataclass(frozen=True)
class Experiment:
    """A grid: every system answers every dataset and every measure scores the answers.

    datasets: catalogue names, groups, or folders; systems and measures: their names; k: how many
    documents each query is answered with at most.
    """

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...] = DEFAULT_MEASURES
    k: int = DEPTH

    @staticmethod
    def read(path: Path) -> Experiment:
        """An experiment from a TOML file with the keys datasets, systems, measures and k.

        Raises FormatError for a file that is not such TOML, UnknownName for another key.
        """
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FormatError(path, "no such file", "an experiment file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FormatError(path, str(error), "TOML") from None
        known = ("datasets", "systems", "measures", "k")
        for key in given:
            if key not in known:
                raise UnknownName(f"key of an experiment file ({path})", key, known)
        lists = {key: _texts(path, key, given[key]) for key in known[:3] if key in given}
        return Experiment(
            lists.get("datasets", ()),
            lists.get("systems", ()),
            lists.get("measures", DEFAULT_MEASURES),
            given.get("k", DEPTH),
        )

    def execute(self, at: Path | str, watch: Watch = _silent) -> list[Row]:
        """Complete the grid in the folder `at` and return its rows, those of whole groups of datasets last.

        Finished cells are read, not repeated; killed at any moment, the same call continues; processes that are
        given the same grid and folder share its cells. Names are
        checked before anything starts. Raises the WeirErrors of the parts.
        """
        from weir.systems import parse_system  # it needs the `run` extra

        systems, measures = [parse_system(s) for s in self.systems], measures_of(self.measures)
        if not self.datasets or not systems:
            raise BadValue("an experiment needs at least one dataset and one system")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise BadValue(f"k is {self.k!r}; expected a whole number from 1")
        datasets = _distinct([d for name in self.datasets for d in load_group(name)])
        cells = [Cell(Path(at), dataset, system, self.k) for dataset in datasets for system in systems]
        with _folder(Path(at)):
            found = [
                (c.folder, rows) for c, rows in zip(cells, _completed(cells, measures, watch), strict=True)
            ]
        return [*(row for _, rows in found for row in rows), *group_rows(found)]


def _completed(cells: list[Cell], measures: tuple[Measure, ...], watch: Watch) -> list[list[Row]]:
    """The rows of each cell, in their order; cells that other processes are at work on are left for the end."""
    found: dict[int, list[Row]] = {}
    for wait in (False, True):
        for number, cell in enumerate(cells):
            if number not in found:
                rows = cell.complete(measures, _named(watch, cell), wait)
                if rows is not None:
                    found[number] = rows
    return [found[number] for number in range(len(cells))]


@contextmanager
def _folder(at: Path) -> Iterator[None]:
    """Make the results folder first: hours of indexing must not end at one that cannot be written.

    It goes again if nothing came of it.
    """
    fresh = not at.exists()
    with storing(at):
        at.mkdir(parents=True, exist_ok=True)
    if not writable(at):
        raise StoreError(f"cannot write {at}: no permission to write there")
    try:
        yield
    finally:
        if fresh:
            with suppress(OSError):  # it holds results
                at.rmdir()


def _distinct(datasets: list[Dataset]) -> list[Dataset]:
    """The datasets without repetition; two different ones of one name cannot be told apart in a table."""
    found: dict[str, Dataset] = {}
    for dataset in datasets:
        other = found.setdefault(dataset.name, dataset)
        if other.layout != dataset.layout:
            raise BadValue(f"two different datasets are named '{dataset.name}'; rename one of the folders")
    return list(found.values())


def _named(watch: Watch, cell: Cell) -> Watch:
    name = f"{cell.dataset.name}  {cell.system}"
    return lambda stage, done, total: watch(f"{name}  {stage}", done, total)


def _texts(path: Path, key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise FormatError(path, f"{key} = {value!r}", "a list of texts")
