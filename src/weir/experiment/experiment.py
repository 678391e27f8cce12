"""Datasets x systems x measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from weir.core.scores import Row
from weir.datasets.load import Dataset, load_group
from weir.errors import BadValue, FormatError, StoreError, UnknownName, require
from weir.experiment.cell import Cell
from weir.experiment.results import ResultCell, cell_of, keep_order, rows_with_groups
from weir.experiment.stage_store import StageCache, Watch
from weir.experiment.stages import slug
from weir.files.atomic import storing, writable
from weir.files.text_files import read_toml
from weir.kernels.jit import check_available
from weir.measures import DEFAULT_MEASURES, Measure, measures_of
from weir.systems.composite import one_session, parts_of
from weir.systems.expression import parse_systems
from weir.systems.expression import system as system_of
from weir.systems.protocol import Fetched, Retriever

DEPTH = 1000


def _silent(stage: str, done: int, total: int) -> None:
    """Watch nothing."""


@dataclass(frozen=True)
class Experiment:
    """A grid: every system answers every dataset and every measure scores the answers.

    datasets: catalogue names, groups, folders, or datasets; systems and measures: themselves, or their names; a name
    with values in braces, such as "bm25(k1={0.6, 0.9})", stands for a system of each value; a system may also be a
    function or an object of one's own, see weir.system; k: how many documents each query is answered with at most;
    stages: a folder in which indexes and rankings that others use are kept for other results folders too, None keeps
    them with the results; drop_self: leave out documents that are the query itself, also in collections that do not
    say so.
    """

    datasets: tuple[str | Path | Dataset, ...]
    systems: tuple[object, ...]
    measures: tuple[str | Measure, ...] = DEFAULT_MEASURES
    k: int = DEPTH
    stages: str | Path | None = None
    drop_self: bool = False

    def __post_init__(self) -> None:
        # Each adaptation of an object without a version is a stage of its own: it is adapted once.
        adapted = tuple(one if isinstance(one, str) else system_of(one) for one in self.systems)
        object.__setattr__(self, "systems", adapted)

    @staticmethod
    def read(path: Path | str) -> Experiment:
        """An experiment from a TOML file with the keys datasets, systems, measures and k.

        Raises FormatError for a file that is not such TOML, UnknownName for another key.
        """
        path = Path(path)
        table = read_toml(path, "an experiment file")
        known = ("datasets", "systems", "measures", "k")
        for key in table:
            if key not in known:
                raise UnknownName(f"key of an experiment file ({path})", key, known)
        lists = {key: _texts(path, key, table[key]) for key in known[:3] if key in table}
        return Experiment(
            lists.get("datasets", ()),
            lists.get("systems", ()),
            lists.get("measures", DEFAULT_MEASURES),
            table.get("k", DEPTH),
        )

    def execute(self, at: Path | str, watch: Watch = _silent) -> list[Row]:
        """Complete the grid in the folder `at` and return its rows, those of whole groups of datasets last.

        Finished stages are read, not repeated; killed at any moment, the same call continues; processes that are
        given the same grid and folder share its cells. Names, settings, judgments and what has to be installed are
        checked before anything starts. Raises the WeirErrors of the parts.
        """
        return rows_with_groups(self.complete(at, watch))

    def complete(self, at: Path | str, watch: Watch = _silent) -> list[ResultCell]:
        """As `execute`, but returns the cells of the grid, in its order, each with the rows of these measures."""
        at, measures = Path(at), measures_of(self.measures)
        with _folder(at):
            cells = self.cells(at, watch)
            unfinished = [cell for cell in cells if cell.finished(measures) is None]
            for cell in unfinished:
                _check(cell)
            done_cells: dict[int, tuple[Path, list[Row]]] = {}
            for wait in (False, True):
                for number, one in enumerate(cells):
                    if number not in done_cells:
                        done = one.complete(measures, wait)
                        if done is not None:
                            if not done_cells:
                                keep_order(
                                    at, (c.stages.dataset.name for c in cells), (str(c.system) for c in cells)
                                )
                            done_cells[number] = done
            return [
                cell_of(folder, rows) for folder, rows in [done_cells[number] for number in range(len(cells))]
            ]

    def finished(self, at: Path | str) -> list[ResultCell]:
        """The cells of the grid that are finished in the folder `at`; raises as `execute` does."""
        measures = measures_of(self.measures)
        cells = [cell.finished(measures) for cell in self.cells(Path(at), _silent)]
        return [cell_of(*one) for one in cells if one is not None]

    def loaded_datasets(self, watch: Watch = _silent) -> list[Dataset]:
        """The datasets, members of groups apart; raises what `load` raises, and FormatError for what they hold."""
        loaded: list[Dataset] = []
        for wanted in self.datasets:
            loaded += [wanted] if isinstance(wanted, Dataset) else load_group(wanted, None, watch)
        distinct: dict[str, Dataset] = {}
        for dataset in loaded:
            dataset.fingerprint  # noqa: B018  reads all parts, so that what is wrong with one is known at once
            if distinct.setdefault(dataset.name, dataset).layout != dataset.layout:
                raise BadValue(
                    f"two different datasets are named '{dataset.name}'; rename one of the folders"
                )
        datasets = list(distinct.values())
        if self.drop_self:
            return [replace(d, layout=replace(d.layout, self_match="drop")) for d in datasets]
        return datasets

    def parsed_systems(self) -> list[Retriever]:
        """The systems; raises UnknownName or BadValue for one that is none, and for two of one name."""
        by_name: dict[str, Retriever] = {}
        systems = one_session(
            one for s in self.systems for one in (parse_systems(s) if isinstance(s, str) else (system_of(s),))
        )
        for system in systems:
            other = by_name.setdefault(str(system), system)
            if other != system:
                raise BadValue(
                    f"two different systems are named '{system}'; give the object in one of them another name: "
                    'weir.encoder(..., name="other"), weir.reranker or weir.system'
                )
        return systems

    def cells(self, at: Path, watch: Watch = _silent) -> list[Cell]:
        """The cells of the grid, in its order: their keys need nothing but what is declared, and checkpoints here.

        Raises UnknownName, BadValue, FormatError or DownloadError for what is not there or not as it should be.
        """
        systems = self.parsed_systems()
        for part in (part for system in systems for part in parts_of(system)):
            if isinstance(part, Fetched):
                part.fetch()
        if not self.datasets or not systems:
            raise BadValue("an experiment needs at least one dataset and one system")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise BadValue(f"k is {self.k!r}; expected a whole number from 1")
        datasets = self.loaded_datasets(watch)
        store = at if self.stages is None else Path(self.stages)
        caches = [StageCache(at / slug(d.name), store / slug(d.name), d, watch) for d in datasets]
        return [Cell(cache.named(str(system)), system, self.k) for cache in caches for system in systems]


def _check(cell: Cell) -> None:
    """Raise what making the cell would raise in the end, before anything starts."""
    from weir.systems.dense import DenseRetriever

    check_available()  # kernels that are kept compiled need not have numba imported
    if None not in cell.stage.engines:
        return
    for part in parts_of(cell.system):
        if isinstance(part, DenseRetriever) and part.nearest is not None:
            part.nearest.require()
    require("torch", extra="neural")


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


def _texts(path: Path, key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise FormatError(path, f"{key} = {value!r}", "a list of texts")
