"""Finished cells of a results folder, with their scores and costs."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from weir.core.origin import Origin
from weir.core.results import ResultKind
from weir.core.rounding import counted, one_or_more
from weir.core.scores import Note, Row, Scores
from weir.core.short_names import run_titles, systems_called
from weir.core.tables import Table, sentences
from weir.datasets import catalogue
from weir.datasets.load import Dataset, is_column, judged_or_not, load, load_here, without_documents
from weir.errors import BadValue, FormatError, StoreError, UnknownName, WeirError
from weir.experiment.stage_store import run_file
from weir.experiment.stages import (
    RECORD,
    SCORES,
    Record,
    Stage,
    flattened,
    read_record,
    record_of,
    setting_changes,
    stored_rows,
)
from weir.files.integrity import read_sealed, write_sealed
from weir.files.leases import locked
from weir.files.paths import path_of
from weir.files.score_files import read_scores
from weir.files.text_files import named_file
from weir.services.answers import SCORED_KINDS
from weir.stats.score_rows import (
    depth_notes,
    group_row,
    row_notes,
    shallow_notes,
    unanswered_note,
    wide_tie_notes,
)
from weir.systems.expression import parse_system, single_names
from weir.systems.protocol import DEPTH

# ----------
# The order in which datasets and systems were requested, in <results>/grid.json, and the judgments that count.


ORDER = "grid.json"
LAST = 1 << 30  # behind all that were asked for
_SHOWN_HASH = 6  # digits that tell collections of one name apart


@dataclass(frozen=True)
class GridOrder:
    """Requested datasets and systems in order, with the current judgments; empty if nothing is recorded."""

    datasets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    judgments: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint of the judgments that each split was last scored by, by `split_mark`; before 0.3 by dataset."""

    @staticmethod
    def read(root: Path) -> GridOrder:
        """Return the order of a results folder; empty if missing or damaged."""
        try:
            sealed = read_sealed(root / ORDER)
            judgments = {str(name): str(qrels) for name, qrels in sealed.get("judgments", {}).items()}
            datasets, systems = (tuple(map(str, sealed[name])) for name in ("datasets", "systems"))
            return GridOrder(datasets, systems, judgments)
        except (StoreError, KeyError, TypeError, AttributeError):
            return GridOrder()

    def counting(self, dataset: str, split: str, documents: object) -> str | None:
        """Return the fingerprint of the current judgments of a split, None if unknown."""
        return self.judgments.get(split_mark(dataset, split, documents), self.judgments.get(dataset))

    def place(self, dataset: str, system: str) -> tuple[int, int]:
        """Return the positions of a dataset and a system in the grid's order; LAST for one that was not requested."""
        places = [
            names.index(name) if name in names else LAST
            for names, name in ((self.datasets, dataset), (self.systems, system))
        ]
        return places[0], places[1]


def split_mark(dataset: str, split: str, documents: object) -> str:
    """Return a unique name of a split; `documents` is their fingerprint."""
    return f"{dataset}:{split} {documents}"


def keep_order(
    root: Path, datasets: Iterable[str], systems: Iterable[str], judgments: Mapping[str, str] | None = None
) -> None:
    """Append requested datasets and systems to the recorded order; raises StoreError.

    judgments: {split: fingerprint} of the judgments that count from now on, see `split_mark`.
    """
    with locked(root / f".{ORDER}.lock"):
        before = GridOrder.read(root)
        now = GridOrder(
            tuple(dict.fromkeys([*before.datasets, *datasets])),
            tuple(dict.fromkeys([*before.systems, *systems])),
            {**before.judgments, **(judgments or {})},
        )
        if now != before:
            write_sealed(root / ORDER, asdict(now))


# ----------
# Finished cells, each with the settings of its records.


EXPECTED = "the folder of a finished cell, such as results/scifact/bm25-0123456789"
OLD = "manifest.json"
AGAIN = "written by Weir 0.1, whose records this version does not read; run the same grid into another folder"


def rankings_file(folder: Path) -> Path:
    """Return the path of a cell's rankings, which may not exist; raises FormatError for a pipe or an outside link."""
    path = run_file(folder)
    return named_file(folder, path.name, path, "its rankings, in its own folder")


@dataclass(frozen=True, eq=False)
class ResultCell:
    """A finished cell: a system on a collection, with its records."""

    folder: Path
    dataset: str
    split: str
    system: str
    queries: int
    """Number of judged queries."""
    rows: tuple[Row, ...]
    """Means by measure; () for a collection without judgments."""
    settings: tuple[tuple[str, str], ...]
    """All settings of the records as (dotted name, text)."""
    ranked: Record
    """Record of the rankings."""
    scored: tuple[tuple[Path, Record], ...]
    """Path and record of each set of scores by the same judgments, latest last."""
    stages: tuple[tuple[Path, Record], ...] = ()
    """Folder and record of each stage that made its rankings, inputs first, the rankings last."""
    label: str = ""
    """The system's name, and what differs if several cells of the collection share it."""
    title: str = ""
    """Label as readers are shown it (`Row.called`); "" if equal."""
    superseded: int = 0
    """Number of other judgments by which the same rankings were scored."""
    outdated: bool = False
    """True if scored by other judgments than the current ones of its split."""
    unit: str = ""
    """Name of its dataset in a mean over datasets; "" for `collection`."""

    @property
    def called(self) -> str:
        """Name of the system in notes and tables."""
        return self.title or self.label or self.system

    @property
    def run(self) -> Path:
        """Path of its rankings; raises as `rankings_file`."""
        return rankings_file(self.folder)

    @property
    def collection(self) -> str:
        """Recorded name of its collection, which `dataset` may extend."""
        return str(self.scored[-1][1].facts["dataset"])

    @property
    def origin(self) -> Origin:
        """Origin of its scores: judgments, collection, split, system and depth."""
        return Origin(
            digest=self.judgments,
            collection=self.unit or self.collection,
            split=self.split,
            system=self.label or self.system,
            depth=self.longest,
        )

    @property
    def judgments(self) -> str:
        """Fingerprint of the judgments by which it was scored."""
        return str(self.scored[-1][1].declared["qrels"])

    @property
    def depth(self) -> int:
        """k, the most documents returned for a query."""
        return int(self.ranked.declared["k"])

    @property
    def grades(self) -> dict[float, int]:
        """{grade: judgments of the split}; {} if the record does not tell. Raises FormatError."""
        with as_weir_writes_it(self.folder):
            grades = self.scored[-1][1].facts.get("grades", {})
            return {float(grade): int(number) for grade, number in grades.items()}

    @property
    def documents(self) -> int | None:
        """Number of documents of its collection; None without a record of it. Raises FormatError."""
        with as_weir_writes_it(self.folder):
            documents = self.scored[-1][1].facts.get("documents")
            indexed = [
                r.facts["documents"] for _, r in self.stages if r.kind == "index"
            ]  # in a record before 0.3
            return documents or max(indexed, default=0) or None

    @property
    def longest(self) -> int:
        """Length of its longest ranking; `depth` for records before 0.3, which lack it."""
        return int(self.scored[-1][1].facts.get("longest") or self.depth)

    def mean(self, measure: str) -> float | None:
        """Return the stored mean of a measure, None if it was not computed."""
        return next((r.mean for r in self.rows if r.measure == measure), None)

    def named_rows(self) -> list[Row]:
        """Return the rows with the cell's label as system."""
        return [replace(row, system=self.label or self.system, title=self.title) for row in self.rows]

    def values(self) -> Scores:
        """Return the scores of all measures by query; raises StoreError if a file changed."""
        parts = []
        for path, record in self.scored:
            values = path.with_suffix(".jsonl")
            if [*record.files] != [values.name]:
                raise StoreError(
                    f"{path}: it speaks of {', '.join(record.files) or 'no file'}, not of {values.name}"
                )
            record.verify(self.folder)
            parts.append(read_scores(values))
            lost = [row.measure for row in stored_rows(record) if row.measure not in parts[-1].measures]
            if lost:
                raise StoreError(f"{path}: the row of {lost[0]} has no values in {values.name}")
        first = parts[0]
        values_of: dict[str, Any] = {}
        for part in parts:  # the same queries by different measures, the last of each kept
            at = part.queries.codes(first.queries.strings)
            if len(part.queries) != len(first.queries) or (at < 0).any():
                raise StoreError("the scores of a cell are of different queries; run the grid again")
            values_of |= {measure: row[at] for measure, row in zip(part.measures, part.values, strict=True)}
        names = tuple(row.measure for row in self.rows)
        columns = np.array([values_of[measure] for measure in names])
        geometric = tuple(dict.fromkeys(m for part in parts for m in part.geometric))
        scores = replace(first, measures=names, values=columns, geometric=geometric)
        last = self.rows[-1]
        missing = last.queries - last.answered
        note = unanswered_note(missing, last.queries, scores.conventions)
        return replace(
            scores,
            judged_at_10=math.nan if last.judged_at_10 is None else last.judged_at_10,
            remarks=tuple(
                dict.fromkeys([*[note] * bool(missing), *wide_tie_notes(self.rows), *said_of(self)])
            ),
            origin=self.origin,
        )


def shared_measures(first: ResultCell, second: ResultCell) -> list[str]:
    """Return the measures of both cells in the order of the first."""
    theirs = {row.measure for row in second.rows}
    return [row.measure for row in first.rows if row.measure in theirs]


def system_titles(cells: Sequence[ResultCell]) -> dict[str, str]:
    """Return {label: title} of the systems that have a title."""
    return {cell.label: cell.title for cell in cells if cell.title}


def of_systems(cells: Sequence[ResultCell], systems: Sequence[str]) -> list[ResultCell]:
    """Return the cells of these systems; all if none is named.

    A system is named as in `systems_called`, by equivalent text, a grid in braces, or a unique prefix. Raises
    UnknownName, BadValue for a text that fits several.
    """
    if not systems:
        return list(cells)
    titles = {cell.system: "" for cell in cells} | {cell.label: cell.title for cell in cells}
    names = set(titles)
    chosen: set[str] = set()
    for text in systems:
        exact = systems_called(text, titles)
        if len(exact) > 1:
            raise BadValue(
                f"{text} is the name of {len(exact)} systems: {', '.join(sorted(exact))}; name one"
            )
        if not exact:
            with suppress(WeirError):  # this machine may not know the system
                exact = {str(parse_system(one)) for one in single_names(text)} & names
        begun = {cell.system for cell in cells if cell.system.startswith(text)}
        if not exact and len(begun) > 1:
            raise BadValue(
                f"{text} is the beginning of {len(begun)} systems: {', '.join(sorted(begun))}; name one"
            )
        if not exact and not begun:
            raise UnknownName("system among these results", text, names)
        chosen |= exact or begun
    return [cell for cell in cells if cell.system in chosen or cell.label in chosen]


def chosen_cells(
    cells: Sequence[ResultCell], datasets: Sequence[str] = (), systems: Sequence[str] = ()
) -> list[ResultCell]:
    """Return the cells of these datasets and systems, renamed as in `by_split`.

    datasets: these datasets alone, by default all; a group means its members, NAME:SPLIT one split.
    systems: these systems alone; by default all.

    Raises UnknownName for a dataset without cells, and as `of_systems`.
    """
    cells = by_split(cells)
    if datasets:
        names = {
            id(cell): {cell.dataset, cell.collection, f"{cell.collection}:{cell.split}"} for cell in cells
        }
        available = set().union(*names.values())
        members = {name: catalogue.members(name) for name in datasets}
        for name, group in members.items():
            if not available.intersection(group):
                raise UnknownName("dataset among these results", name, {cell.dataset for cell in cells})
        chosen = {member for group in members.values() for member in group}
        cells = [cell for cell in cells if names[id(cell)] & chosen]
    return of_systems(cells, systems)


def by_split(cells: Sequence[ResultCell]) -> list[ResultCell]:
    """Return the cells, grouped by dataset, with datasets renamed as in `dataset_names`."""
    called = [_called(cell, *names) for cell, names in zip(cells, dataset_names(cells), strict=True)]
    places = list(dict.fromkeys(cell.dataset for cell in called))
    return _labelled(sorted(called, key=lambda cell: places.index(cell.dataset)))


def dataset_names(cells: Sequence[ResultCell]) -> list[tuple[str, str]]:
    """Return unique names of each cell's dataset and collection.

    Adds the split, as in scifact:dev, if a collection has several; a hash, as in kb [1a2b3c], if collections
    share a name.
    """
    texts: dict[str, dict[tuple[object, object], None]] = {}
    splits: dict[str, set[str]] = {}
    for cell in cells:
        documents, queries = answered_texts(cell)
        texts.setdefault(cell.collection, {})[documents, None] = None
        texts.setdefault(f"{cell.collection} {documents} {cell.judgments}", {})[documents, queries] = None

    def unit(cell: ResultCell) -> str:
        documents, queries = answered_texts(cell)
        several = len(texts[cell.collection]) > 1
        more = len(texts[f"{cell.collection} {documents} {cell.judgments}"]) > 1
        marks = [str(documents)[:_SHOWN_HASH]] * several + [str(queries)[:_SHOWN_HASH]] * more
        return cell.collection + (f" [{' '.join(marks)}]" if marks else "")

    units = [unit(cell) for cell in cells]
    for name, cell in zip(units, cells, strict=True):
        splits.setdefault(name, set()).add(cell.split)
    return [
        (name + f":{cell.split}" * (len(splits[name]) > 1), name)
        for name, cell in zip(units, cells, strict=True)
    ]


def by_collection(cells: Sequence[ResultCell]) -> list[ResultCell]:
    """Return the cells with datasets named as in the records."""
    return _labelled([_called(cell, cell.collection) for cell in cells])


def _called(cell: ResultCell, dataset: str, unit: str = "") -> ResultCell:
    of = "" if unit == dataset else unit
    rows = tuple(replace(row, dataset=dataset, unit=of) for row in cell.rows)
    return replace(cell, dataset=dataset, rows=rows, unit=unit)


def open_cell(folder: Path | str) -> ResultCell:
    """Return the finished cell in a folder such as results/scifact/bm25-fa19b4d424.

    Raises FormatError without one, BadValue for several.
    """
    folder = path_of(folder)
    if not folder.is_dir():
        raise FormatError(folder, "a file" if folder.exists() else "no such folder", EXPECTED)
    cells = [cell for cell in cells_in(folder) if cell.rows]
    if cells:
        return _labelled([_counting(cells, GridOrder.read(folder.parent.parent))])[0]
    if (folder / OLD).exists():
        raise FormatError(folder, f"a result {AGAIN}", EXPECTED)
    if (folder / RECORD).exists() or run_file(folder).exists():
        what = "rankings without scores: a part of another system, of no judgments, or a cell that is not finished"
        raise FormatError(folder, what, "a finished cell; the same weir run continues one")
    if any(folder.glob(f"*/{SCORES}")) or any(folder.glob(f"*/*/{SCORES}")):
        several = [cell for cell in _cells_of(folder) if cell.rows]
        if len(several) == 1:
            return several[0]
        names = ", ".join(f"{cell.folder.parent.name}/{cell.folder.name}" for cell in several)
        raise BadValue(f"{folder} holds {len(several)} results; name the folder of one: {names}")
    raise FormatError(folder, f"no {RECORD}", EXPECTED)


def runs_in(folder: Path) -> list[Path]:
    """Return the run file of a cell, or of each system in the results on one collection.

    Raises FormatError without results, BadValue for several collections or splits.
    """
    if (folder / RECORD).exists() or run_file(folder).exists():
        return [rankings_file(folder)]
    cells = _cells_of(folder)
    places = list(dict.fromkeys(name for name, _ in dataset_names(cells)))
    if len(places) > 1:
        listed = ", ".join(places)
        raise BadValue(f"{folder} holds rankings of {listed}; name the folder of one system on one of them")
    return [cell.run for cell in largest_k(cells)[0]]


def refuse_collections_apart(runs: Sequence[Path], dataset: Dataset | None = None) -> None:
    """Raise BadValue if records of run files name different documents and queries, or others than `dataset`."""
    first: tuple[Path, object, object] | None = None
    for run in runs:
        record = record_of(run.parent)
        if record is not None and {"corpus", "queries"} <= record.declared.keys():
            documents, queries = record.declared["corpus"], record.declared["queries"]
            first = first or (run, documents, queries)
            if documents != first[1] and queries != first[2]:
                what = "are rankings of two collections: other documents and other queries"
                raise BadValue(f"{first[0].parent} and {run.parent} {what}")
            if dataset is not None and dataset.layout.qrels and queries != dataset.queries_fingerprint:
                known = dataset.layout.documents is not None
                if known and documents != dataset.corpus.fingerprint:
                    what = (
                        f"is a ranking of another collection than {dataset.name}: other documents and queries"
                    )
                    raise BadValue(f"{run.parent} {what}; name its own")


def _cells_of(folder: Path) -> list[ResultCell]:
    inner = not any(folder.glob(f"*/*/{SCORES}")) and any(folder.glob(f"*/{SCORES}"))
    place = folder.resolve()
    cells = finished_cells(place.parent if inner else folder, unjudged=True)
    return [cell for cell in cells if not inner or cell.folder.parent == place]


def cell_of(folder: Path, rows: Sequence[Row]) -> ResultCell:
    """Return the finished cell with these rows; raises StoreError if it is gone."""
    wanted = [row.to_dict() for row in rows]  # NaN as None: from Python 3.13 on rows with NaN equal none
    alike = (cell for cell in cells_in(folder) if bool(rows) == bool(cell.rows))
    stored = ((cell, [row.to_dict() for row in cell.rows]) for cell in alike)
    cell = next((cell for cell, there in stored if all(row in there for row in wanted)), None)
    if cell is None:
        raise StoreError(f"{folder}: removed while the grid ran, by another process; run the grid again")
    return replace(cell, rows=tuple(rows))


def finished_cells(root: Path | str, unjudged: bool = False) -> list[ResultCell]:
    """Return every finished cell of a results folder in the order of requests, then by time.

    unjudged: include collections without judgments.

    Raises FormatError if there is no cell.
    """
    root = path_of(root)
    return _finished(root, _by_folder(root), unjudged)


def finished_and_lacking(root: Path, datasets: Sequence[str] = ()) -> tuple[list[ResultCell], list[str]]:
    """Return (cells of `finished_cells`, a sentence for each collection with rankings that no judgments have
    scored).

    datasets: of the sentences, () for all.
    """
    groups = _by_folder(root)
    cells = _finished(root, groups)
    scored = {(cell.dataset, cell.system) for cell in cells}
    lacking: dict[str, list[str]] = {}
    for group in groups:
        for cell in () if any(one.rows for one in group) else group:
            if (not datasets or cell.dataset in datasets) and (cell.dataset, cell.system) not in scored:
                lacking.setdefault(cell.dataset, []).append(cell.system)
    remedy = "weir labels pool writes what to judge, and the same weir run scores them by judgments"
    return cells, [
        f"{name}: rankings without scores of {', '.join(run_titles(of).values())}: {remedy}"
        for name, of in lacking.items()
    ]


def _by_folder(root: Path) -> list[list[ResultCell]]:
    """Return all cells of a results folder, grouped by folder of rankings, with a cell for each judgments."""
    files: dict[Path, list[Path]] = {}
    for path in sorted(root.glob(f"*/*/{SCORES}")):
        files.setdefault(path.parent, []).append(path)
    records: dict[Path, Record | None] = {}
    groups = [cells_in(folder, paths, records) for folder, paths in sorted(files.items())]
    return [group for group in groups if group]


def no_folder(root: Path) -> str:
    """Return what is at a path that should be a results folder and is none."""
    if not root.exists():
        return "no such folder"
    if is_zipfile(root):
        return "a zip, such as weir submit pack writes (weir submit verify checks one)"
    return "a file"


def _finished(root: Path, groups: Sequence[Sequence[ResultCell]], unjudged: bool = False) -> list[ResultCell]:
    order = GridOrder.read(root)
    scored = {cell.dataset for group in groups for cell in group if cell.rows}

    def counts(cell: ResultCell) -> bool:
        if cell.rows:
            return True
        last = _asked(cell, order)
        return unjudged and (cell.dataset not in scored or last == cell.judgments)

    kept = [[cell for cell in group if counts(cell)] for group in groups]
    cells = _marked_outdated([_counting(group, order) for group in kept if group], order)
    if not cells:
        if groups:
            remedy = "scores; weir labels pool FOLDER -o pool/ writes what to judge, and weir run scores by judgments"
            raise FormatError(root, "rankings of collections without judgments alone", remedy)
        if not root.is_dir():
            raise FormatError(root, no_folder(root), "a folder written by weir run")
        if next(root.glob(f"*/*/{OLD}"), None) is not None:
            raise FormatError(root, f"results {AGAIN}", "a folder of this version")
        raise FormatError(root, "no finished cell", "a folder written by weir run")
    first: dict[tuple[str, str], str] = {}
    when = {id(cell): min(str(record.made.get("when")) for _, record in cell.scored) for cell in cells}
    for cell in cells:
        for key in (("dataset", cell.dataset), ("system", cell.system)):
            first[key] = min(first.get(key, when[id(cell)]), when[id(cell)])

    def place(cell: ResultCell) -> tuple[object, ...]:
        dataset, system = order.place(cell.dataset, cell.system)
        of_dataset = (dataset, first["dataset", cell.dataset], cell.dataset)
        return (*of_dataset, system, first["system", cell.system], when[id(cell)], cell.folder.name)

    return _labelled(sorted(cells, key=place))


def damaged_records(root: Path) -> list[str]:
    """Return a sentence on each record of a results folder that cannot be read."""
    problems = []
    for pattern in (f"*/*/{RECORD}", f"*/*/{SCORES}"):
        for path in sorted(root.glob(pattern)):
            try:
                read_record(path)
            except StoreError as error:
                problems.append(f"left out: {error}")
    return problems


def dataset_of(cell: ResultCell, collection: str | Path | Dataset | None = None) -> Dataset | None:
    """Return the collection of a cell: the given one, else the recorded or the catalogue's if it has the
    measured fingerprint.

    None if neither has it; nothing is downloaded. Raises as `load` for a given collection.
    """
    if collection is not None:
        if isinstance(collection, Dataset):
            return collection
        return without_documents(judged_or_not(load(collection, cell.split)))
    measured = dict(cell.settings).get("fingerprint")
    for where in filter(None, dict.fromkeys((recorded_place(cell), cell.collection))):
        try:
            dataset = load_here(where, cell.split)
            if dataset.fingerprint == measured:
                return dataset
        except WeirError:  # it is not here, or a part of it is missing or damaged
            continue
    return None


def recorded_place(cell: ResultCell) -> str:
    """Return the name, path or reference of a cell's collection, as recorded; "" if unknown."""
    return str(cell.scored[-1][1].facts.get("collection", ""))


def cell_collection(cell: ResultCell, fetch: bool = False) -> Dataset | None:
    """Return a cell's collection from its recorded path; None unless it is there with the same judgments.

    fetch: allow its download; otherwise nothing is written.
    """
    where = recorded_place(cell)
    if not where:
        return None
    try:
        dataset = load(where, cell.split) if fetch else load_here(where, cell.split)
        same = dataset.qrels_fingerprint == cell.judgments
    except WeirError:
        return None
    return dataset if same else None


def with_collections(
    cells: Sequence[ResultCell],
    by: object,
    collections: Sequence[str | Path | Dataset] = (),
    fetch: bool = False,
) -> tuple[list[tuple[ResultCell, Dataset | None]], list[str]]:
    """Return ((cell, collection) pairs, sentences on cells left out); collections are only loaded if `by` is a column.

    Leaves out cells whose collection is missing here, unless all are. Raises as `collection_places` and
    `load`.
    """
    if not is_column(by):
        return [(cell, None) for cell in cells], []
    places = collection_places(cells, collections)
    datasets: dict[tuple[str, str, str], Dataset | None] = {}
    for cell in cells:
        if (cell.dataset, cell.split, cell.judgments) not in datasets:
            dataset = collection_of_cell(cell, places, fetch)
            datasets[cell.dataset, cell.split, cell.judgments] = dataset
    pairs = [(cell, datasets[cell.dataset, cell.split, cell.judgments]) for cell in cells]
    here = [pair for pair in pairs if pair[1] is not None]
    if not here:
        return pairs, []
    lacking = {cell.dataset: elsewhere(cell) for cell, dataset in pairs if dataset is None}
    return here, [f"left out: {name}: {reason}" for name, reason in lacking.items()]


def elsewhere(cell: ResultCell) -> str:
    """Return why a cell's collection was not read, with the remedy."""
    return (
        f"the collection is not at {recorded_place(cell)}, or not as it was measured; "
        f"say where it lies now with `collection={ {cell.collection: 'PATH'} }`"
    )


def collection_of_cell(
    cell: ResultCell, places: Mapping[str, str | Path | Dataset], fetch: bool = False
) -> Dataset | None:
    """Return a cell's collection from the given places, else as `cell_collection`."""
    place = places.get(cell.collection)
    if place is None:
        return cell_collection(cell, fetch)
    return place if isinstance(place, Dataset) else load(place, cell.split)


def collection_places(
    cells: Sequence[ResultCell], collections: Sequence[str | Path | Dataset]
) -> dict[str, str | Path | Dataset]:
    """Return {recorded name: current place} of collections.

    collections: NAME=PATH, or just PATH if unambiguous.

    Raises UnknownName, BadValue for an ambiguous one, and the WeirErrors of loading.
    """
    names = list(dict.fromkeys(cell.collection for cell in cells))
    places: dict[str, str | Path | Dataset] = {}
    for collection in collections:
        name, place = named_place(collection)
        name = name or _whose(cells, place)
        if name not in names:
            raise UnknownName("collection of these results", name, names, all_known=True)
        places[name] = place
    return places


def named_place(collection: str | Path | Dataset) -> tuple[str, str | Path | Dataset]:
    """Return (NAME, PATH) of NAME=PATH; ("", argument) for an existing path or another argument."""
    if isinstance(collection, Dataset) or Path(collection).exists():
        return "", collection
    name, equals, place = str(collection).partition("=")
    return (name, place) if equals else ("", collection)


def _whose(cells: Sequence[ResultCell], collection: str | Path | Dataset) -> str:
    # The only recorded name, else its own name, else that with equal content, documents or judgments.
    names, splits = sorted({cell.collection for cell in cells}), {cell.split for cell in cells}
    if len(names) == 1:
        return names[0]
    place = collection.name if isinstance(collection, Dataset) else collection
    split = min(splits) if len(splits) == 1 else None
    dataset = collection if isinstance(collection, Dataset) else load(collection, split)
    if dataset.name in names:
        return dataset.name
    documents = "" if dataset.layout.documents is None else dataset.corpus.fingerprint
    judgments = dataset.qrels_fingerprint if dataset.layout.qrels else ""
    whole = dataset.fingerprint if documents and judgments and dataset.layout.queries is not None else ""
    marks: list[tuple[str, list[object]]] = [
        (whole, [dict(cell.settings).get("fingerprint") for cell in cells]),
        (documents, [cell.ranked.declared["corpus"] for cell in cells]),
        (judgments, [cell.judgments for cell in cells]),
    ]
    for own, theirs in marks:
        alike = {cell.collection for cell, mark in zip(cells, theirs, strict=True) if mark == own}
        if len(alike) == 1:
            return alike.pop()
    raise BadValue(
        f"the collection {place} is none of {', '.join(names)} by its name, documents or judgments; say which, as in "
        f"`collection={ {names[0]: str(place)} }`"
    )


def cells_in(
    folder: Path, scores: Sequence[Path] | None = None, records: dict[Path, Record | None] | None = None
) -> list[ResultCell]:
    """Return the cells of the rankings in a folder, one for each judgments that scored them; [] without any.

    scores: paths of its records of scores, by default all in the folder.
    records: {folder: record of a stage} read so far; more are added.

    Raises FormatError for records of another layout.
    """
    records = {} if records is None else records
    stages = tuple(_stages(folder, records, set()))
    if not stages:
        return []
    ranked = stages[-1][1]
    by_qrels: dict[str, list[tuple[Path, Record]]] = {}
    for path in sorted(folder.glob(SCORES)) if scores is None else scores:
        record = record_of(folder, path.name)
        if record is not None and record.declared.get("run") == ranked.stage.key:
            qrels, measures, interval = (record.declared.get(n) for n in ("qrels", "measures", "interval"))
            if not (isinstance(qrels, str) and isinstance(measures, dict) and isinstance(interval, dict)):
                raise FormatError(path, "another layout", "a record of weir run")
            by_qrels.setdefault(qrels, []).append((path, record))
    return [_cell(folder, ranked, scored, stages) for scored in by_qrels.values()]


def _stages(
    folder: Path, records: dict[Path, Record | None], visited: set[Path]
) -> Iterator[tuple[Path, Record]]:
    """Yield (folder, record) of a stage's inputs, each once, and then of the stage; unreadable records are left out."""
    visited.add(folder)
    if folder not in records:
        records[folder] = record_of(folder)
    record = records[folder]
    if record is not None:
        collection = folder.parent.parent if record.kind == "index" else folder.parent
        for _, name in record.inputs:
            inner = Path(os.path.normpath(collection / name))
            if inner not in visited:
                yield from _stages(inner, records, visited)
        yield folder, record


def _cell(
    folder: Path, ranked: Record, scored: list[tuple[Path, Record]], stages: tuple[tuple[Path, Record], ...]
) -> ResultCell:
    scored.sort(key=lambda one: str(one[1].made.get("when")))
    last = scored[-1][1]
    with as_weir_writes_it(folder):
        rows = {
            row.measure: row for _, record in scored for row in stored_rows(record)
        }  # the last made counts
        about = {name: last.facts[name] for name in ("dataset", "split", "fingerprint", "self_match")}
        about |= {"system": ranked.declared["system"], "k": last.facts["k"]}
        environment_made = {name: value for name, value in ranked.made.items() if name != "when"}
        environment = environment_made | {"interval": last.declared["interval"]}
        return ResultCell(
            folder,
            str(last.facts["dataset"]),
            str(last.facts["split"]),
            last.name,
            int(last.facts["queries"]),
            tuple(rows.values()),
            tuple(flattened("", about | {"environment": environment})),
            ranked,
            tuple(scored),
            stages,
        )


def _asked(cell: ResultCell, order: GridOrder) -> str | None:
    return order.counting(cell.dataset, cell.split, answered_texts(cell)[0])


def _counting(cells: Sequence[ResultCell], order: GridOrder) -> ResultCell:
    counting = _asked(cells[0], order)
    last = max(cells, key=lambda cell: (cell.judgments == counting, str(cell.scored[-1][1].made.get("when"))))
    return replace(last, superseded=len(cells) - 1)


def _marked_outdated(cells: Sequence[ResultCell], order: GridOrder) -> list[ResultCell]:
    # The current judgments of a split are the last requested, or, if no cell was scored by them, the last used.
    last: dict[tuple[object, ...], tuple[bool, str, str]] = {}
    for cell in cells:
        asked, when = (
            cell.judgments == _asked(cell, order),
            str(cell.scored[-1][1].made.get("when")),
        )
        split = answered_texts(cell)[0], cell.dataset, cell.split
        last[split] = max(last.get(split, (False, "", "")), (asked, when, cell.judgments))
    return [
        replace(cell, outdated=cell.judgments != last[answered_texts(cell)[0], cell.dataset, cell.split][-1])
        for cell in cells
    ]


def current_cells(cells: Sequence[ResultCell]) -> tuple[list[ResultCell], list[str]]:
    """Return (cells scored by the current judgments, a sentence on each cell left out)."""
    outdated = [cell for cell in cells if cell.outdated]
    remedy = "left out; the same weir run scores it again"
    current = [cell for cell in cells if not cell.outdated] if outdated else list(cells)
    return _labelled(current), [f"{_outdated_sentence(cell)}: {remedy}" for cell in outdated]


def _outdated_sentence(cell: ResultCell) -> str:
    where = f"{cell.called} on {cell.dataset}"
    return f"{where} was scored by other judgments than the last ones asked for, and does not compare"


def _labelled(cells: list[ResultCell]) -> list[ResultCell]:
    groups, labelled = _of_one_name(cells), list[ResultCell]()
    titles = run_titles(list(dict.fromkeys(cell.system for cell in cells)))
    titles |= {cell.system: row.title for cell in cells for row in cell.rows if row.title}
    for cell in cells:
        group = groups[cell.dataset, cell.system]
        if _differ_in_depth(group):
            mark_texts = [] if cell.depth == max(one.depth for one in group) else [f"k={cell.depth}"]
        else:
            marks = [_marks(one) for one in group]
            varies = [len(set(column)) > 1 for column in zip(*marks, strict=True)]
            mark_texts = [mark for mark, differs in zip(_marks(cell), varies, strict=True) if differs]
        end = f" #{' '.join(mark_texts)}" if mark_texts else ""
        title = titles[cell.system] + end if titles[cell.system] != cell.system else ""
        labelled.append(replace(cell, label=cell.system + end, title=title))
    shared = {(one.called, one.label) for one in labelled}
    times = Counter(called for called, _ in shared)
    return [replace(one, title="") if times[one.called] > 1 else one for one in labelled]


def largest_k(cells: Sequence[ResultCell]) -> tuple[list[ResultCell], list[str]]:
    """Return (cells that differ from every deeper cell in more than k, a sentence for each other cell)."""
    largest, sentences = list(cells), []
    for group in _of_one_name(cells).values():
        if len(group) > 1 and _differ_in_depth(group):
            best = max(group, key=lambda one: one.depth)
            depths = " and ".join(str(k) for k in sorted({one.depth for one in group if one is not best}))
            largest = [one for one in largest if one is best or one not in group]
            sentences.append(
                f"{best.called} on {best.dataset} is compared with k={best.depth} alone, not {depths}"
            )
    return _labelled(largest), sentences


def _of_one_name(cells: Sequence[ResultCell]) -> dict[tuple[str, str], list[ResultCell]]:
    groups: dict[tuple[str, str], list[ResultCell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.system), []).append(cell)
    return groups


def _differ_in_depth(group: Sequence[ResultCell]) -> bool:
    first = group[0].ranked.stage
    return {name for one in group[1:] for name, *_ in setting_changes(first, one.ranked.stage)} == {"k"}


def _marks(cell: ResultCell) -> tuple[str, str]:
    return cell.ranked.stage.key, "+".join(str(engine) for engine in cell.ranked.engines)


# ----------
# The cost of a cell, summed over its stages.


@contextmanager
def as_weir_writes_it(folder: Path) -> Iterator[None]:
    """Within the block, raise FormatError for an unexpected type in a cell's records."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise FormatError(folder / RECORD, "another layout", "a record of weir run") from None


def index_cost(cell: ResultCell) -> dict[str, Any]:
    """Return the summed seconds, bytes and documents of a cell's indexes; {} without one. Raises FormatError."""
    with as_weir_writes_it(cell.folder):
        records = [record for _, record in cell.stages if record.kind == "index"]
        if not records:
            return {}
        costs = _summed(records)
        costs |= {"bytes": sum(r.facts["bytes"] for r in records)}
        costs |= {"documents": max(r.facts["documents"] for r in records)}
        costs |= {"reused": sum(r.facts.get("reused", 0) for r in records)}
        return costs | {"cached_queries": any(r.facts.get("cached_queries") for r in records)}


def search_cost(cell: ResultCell) -> dict[str, Any]:
    """Return the summed cost of a cell's rankings, with the facts of its own record; raises FormatError.

    For rankings read from a file, "seconds" and "peak_mb" are None and "single_query_ms" is empty.
    """
    with as_weir_writes_it(cell.folder):
        records = [record for _, record in cell.stages if record.kind == "run"]
        # Rankings without self-matches are those of the stage before them, which was searched.
        searched = next((r for r in reversed(records) if "single_query_ms" in r.facts), cell.ranked)
        services = [use for record in records for use in record.facts.get("services", [])]
        found = {**searched.facts, **cell.ranked.facts, **_summed(records), "services": services}
        if all(map(_measured, records)):
            return found
        lacking: dict[str, Any] = {"seconds": None, "peak_mb": None, "single_query_ms": {}, "measured": False}
        return {**found, **lacking}


def _measured(record: Record) -> bool:
    # Records before 0.3 tell only by the system that they declare.
    declared = record.declared.get("system")
    stored = isinstance(declared, Mapping) and declared.get("system") == "run"
    return record.facts.get("measured") is not False and not stored


def whole_seconds(cell: ResultCell) -> float | None:
    """Return the seconds of all stages of a cell, None if one was not measured."""
    records = [record for _, record in cell.stages]
    return sum(float(r.cost["seconds"]) for r in records) if all(map(_measured, records)) else None


def search_seconds(cells: Iterable[ResultCell]) -> float | None:
    """Return the seconds of searching for cells, each stage once; None if none was measured."""
    seconds: dict[Path, float] = {}
    for cell in cells:
        with as_weir_writes_it(cell.folder):
            for folder, record in cell.stages:
                if record.kind == "run" and _measured(record):
                    seconds[folder] = float(record.cost.get("seconds") or 0)
    return sum(seconds.values()) if seconds else None


def said_of(cell: ResultCell) -> list[Note]:
    """Return the warnings issued while a cell's rankings were made, and the note of `not_as_published`."""
    with as_weir_writes_it(cell.folder):
        warned = [Note(str(t)) for _, r in cell.stages if r.kind == "run" for t in r.facts.get("notes", ())]
    other = not_as_published(cell)
    return list(dict.fromkeys([*[Note(other)] * bool(other), *warned]))


def not_as_published(cell: ResultCell) -> str:
    """Return in words how a cell's collection differs from the catalogue's, by recorded counts; "" if no score depends
    on it."""
    name = catalogue.original(cell.collection)
    if name not in catalogue.collection_names():
        return ""
    usual = catalogue.get(name).split == cell.split and bool(cell.rows)
    differences = catalogue.other_counts(
        name, cell.queries if usual else None, cell.documents, cell.grades if usual else None
    )
    decisive = tuple(one for one in differences if catalogue.changes_scores(one[0]))
    return catalogue.not_as_published(cell.collection, decisive) if decisive else ""


def unscored_notes(cells: Sequence[ResultCell]) -> list[str]:
    """Return a sentence for each collection and re-ranker with unscored candidates.

    Nothing is said of a search that is re-ranked to another depth than the usual, which somebody asked for.
    """
    sentences: dict[str, None] = {}
    for cell in cells:
        with as_weir_writes_it(cell.folder):
            for _, record in cell.stages:
                reranked, system = record.facts.get("reranked", {}), record.declared.get("system", {})
                depth = system.get("reranker", {}).get("depth", DEPTH)
                named = "candidates" not in system and depth != DEPTH
                if reranked.get("unscored") and not named:
                    note = unscored_note(record.name, int(reranked["unscored"]), int(reranked["candidates"]))
                    sentences[f"{cell.dataset}: {note}"] = None
    return list(sentences)


PARSE_FAILURES = 0.01
"""Share of unreadable answers of a language model above which a note is given."""


def _unread_notes(cells: Sequence[ResultCell]) -> list[str]:
    sentences: dict[str, None] = {}
    for cell in cells:
        for use in search_cost(cell)["services"]:
            with as_weir_writes_it(cell.folder):
                verdicts = {str(kind): int(n) for kind, n in use.get("verdicts", {}).items()}
            total, read = sum(verdicts.values()), sum(verdicts.get(kind, 0) for kind in SCORED_KINDS)
            if total - read > PARSE_FAILURES * total:
                kinds = ", ".join(f"{n:,} {kind}" for kind, n in verdicts.items() if kind not in SCORED_KINDS)
                answers = f"{total - read:,} of {total:,} answers of a language model have no whole verdict ({kinds})"
                sentences[f"{cell.dataset}, {cell.called}: {answers}; weir study llm shows them"] = None
    return list(sentences)


def unscored_candidates(cell: ResultCell) -> tuple[int, int]:
    """Return (candidates left unscored, candidates given) of the re-rankers in a cell."""
    with as_weir_writes_it(cell.folder):
        reranked = [record.facts.get("reranked", {}) for _, record in cell.stages]
        unscored, candidates = (
            sum(int(one.get(name, 0)) for one in reranked) for name in ("unscored", "candidates")
        )
    return unscored, candidates


def unscored_note(system: str, unscored: int, candidates: int, bound: str = "") -> str:
    """Return a sentence on the number of candidates that a re-ranker left unscored, which `bound` qualifies."""
    return f"{system} leaves {bound}{unscored:,} of {candidates:,} candidates unscored, beyond its depth"


def _summed(records: list[Record]) -> dict[str, Any]:
    costs: dict[str, Any] = {
        "seconds": sum(r.cost["seconds"] for r in records),
        "peak_mb": max(r.cost["peak_mb"] for r in records),
        "compile_seconds": sum(r.cost.get("compile_seconds", 0.0) for r in records),
    }
    api = [r.cost["api"] for r in records if "api" in r.cost]
    names = dict.fromkeys(name for one in api for name in one)
    return costs | ({"api": {name: sum(one.get(name, 0) for one in api) for name in names}} if api else {})


# ----------
# Rows and notes of a results folder.


def rows_with_groups(cells: Sequence[ResultCell]) -> list[Row]:
    """Return the rows of cells under their labels, then the rows of complete groups of datasets."""
    return [*(row for cell in cells for row in cell.named_rows()), *group_rows(cells)]


def group_rows(cells: Sequence[ResultCell]) -> list[Row]:
    """Return the means over each complete group with the same k, by system and measure.

    cells: one for each dataset and system.
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
    group_means = []
    for group in whole:
        for system, measure in pairs:
            parts = [at[key] for member in group.members if (key := (member, system, measure)) in at]
            if len(parts) == len(group.members) and len({cell.depth for cell, _ in parts}) == 1:
                scores = [values[id(cell)] for cell, _ in parts]
                columns = [one.in_id_order(measure) for one in scores]
                rows = [replace(row, system=system, title=cell.title) for cell, row in parts]
                group_means.append(group_row(group.name, rows, columns, measure in scores[0].geometric))
    return group_means


def cell_notes(cells: Sequence[ResultCell], measures: Iterable[str] = ()) -> list[Note]:
    """Return the notes to print with scores of cells, on their provenance, rankings and judgments.

    measures: those that are shown, by default all of the cells.
    """
    scored = {row.measure for cell in cells for row in cell.rows}
    shown = scored.intersection(measures) or scored
    rows = [row for cell in cells for row in cell.named_rows() if row.measure in shown]
    datasets, of_note = {cell.dataset for cell in cells}, dict[Note, dict[str, None]]()
    for cell in cells:
        for note in said_of(cell):
            of_note.setdefault(note, {})[cell.dataset] = None
    said = [note if len(of) == len(datasets) else note.about(", ".join(of)) for note, of in of_note.items()]
    unscored = list[Note]()
    for sentences_of, others in (
        (unscored_notes(cells), "re-rankings leave some"),
        (_unread_notes(cells), "cells have such"),
    ):
        if sentences_of:
            first, *more = sentences_of
            so_do = f"; {len(more)} more {others}" if more else ""
            unscored.append(Note(first + so_do, "; ".join(more)))
    changed = sum(cell.superseded > 0 for cell in cells)
    before = f"{counted(changed, 'ranking')} {one_or_more(changed, 'was', 'were')} scored by other judgments before"
    judgments = [Note(f"{before}; the last ones asked for count")] if changed else []
    by_depth: dict[int, set[str]] = {}
    for cell in cells:
        by_depth.setdefault(cell.depth, set()).update(
            row.measure for row in cell.rows if row.measure in shown
        )
    shallow = [
        note if len(by_depth) == 1 else note.about(f"k={depth}")
        for depth, measures in sorted(by_depth.items())
        for note in shallow_notes(depth, measures)
    ]
    made = [*map(Note, mixed_provenance(cells)), *judgments, *said]
    return [*made, *shallow, *unequal_depths(cells, shown), *unscored, *row_notes(rows)]


def unequal_depths(cells: Sequence[ResultCell], measures: Iterable[str]) -> list[Note]:
    """Return a note for each dataset on which some systems return much longer rankings than others (`depth_notes`)."""
    of_dataset: dict[str, dict[str, int]] = {}
    for cell in cells:
        of_dataset.setdefault(cell.dataset, {})[cell.called] = cell.longest
    names = set(measures)
    shown = dict.fromkeys(row.measure for cell in cells for row in cell.rows if row.measure in names)
    return [note.about(dataset) for dataset, of in of_dataset.items() for note in depth_notes(of, shown)]


def mixed_provenance(cells: Sequence[ResultCell]) -> list[str]:
    """Return sentences on equal names with unequal algorithms, settings, k or collections."""
    numbers_by_name: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        numbers_of = {"bootstrap interval": cell.scored[-1][1].declared["interval"].get("algorithm")}
        for _, record in cell.scored:
            numbers_of |= {f"measure {m}": number for m, number in record.declared["measures"].items()}
        for what, number in numbers_of.items():
            numbers_by_name.setdefault(what, {}).setdefault(str(number), []).append(
                f"{cell.dataset} {cell.called}"
            )
    sentences = [
        f"{what} was made by different algorithms and does not compare: "
        + "; ".join(f"number {number} in {', '.join(names)}" for number, names in sorted(numbers.items()))
        for what, numbers in numbers_by_name.items()
        if len(numbers) > 1
    ]
    depths: dict[str, dict[int, str]] = {}
    for cell in cells:
        depths.setdefault(cell.called, {}).setdefault(cell.depth, cell.dataset)
    sentences += [
        f"{name} answered with different k: {', '.join(f'{k} on {dataset}' for k, dataset in several.items())}"
        for name, several in depths.items()
        if len(several) > 1
    ]
    for one, other in pairwise(sorted(cells, key=lambda cell: (cell.dataset, cell.system))):
        if (one.dataset, one.system) == (other.dataset, other.system):
            names = [name for name, *_ in setting_changes(one.ranked.stage, other.ranked.stage)]
            sentences.append(
                f"{one.dataset}: {one.called} and {other.called} differ in {', '.join(names[:4])}"
            )
    places: dict[str, dict[str, str]] = {}
    for cell in cells:
        if cell.unit not in ("", cell.collection):
            places.setdefault(cell.collection, {}).setdefault(cell.unit, recorded_place(cell))
    sentences += [
        f"{name}: {len(of)} collections of this name, of other documents or queries: "
        + ", ".join(f"{unit} from {place}" if place else unit for unit, place in of.items())
        for name, of in places.items()
        if len(of) > 1
    ]
    return sentences


def answered_texts(cell: ResultCell) -> tuple[object, object]:
    """Return the fingerprints of the documents and the queries of the rankings."""
    return cell.ranked.declared.get("corpus"), cell.ranked.declared.get("queries")


# ----------
# What made each cell, stage by stage.


@dataclass(frozen=True)
class Provenance:
    """The complete records of the stages that made a cell."""

    dataset: str
    system: str
    stages: tuple[Mapping[str, Any], ...]
    """With "folder" relative to the collection's."""


def provenance_of(cell: ResultCell) -> Provenance:
    """Return the stages of a cell in the order they were made."""
    stages = tuple(
        {"folder": Path(os.path.relpath(folder, cell.folder.parent)).as_posix(), **record.to_json()}
        for folder, record in (*cell.stages, *cell.scored)
    )
    return Provenance(cell.dataset, cell.label, stages)


def _provenance_tables(results: Sequence[Provenance]) -> tuple[Table, ...]:
    tables = []
    for cell in results:
        lines = [f"{cell.dataset}  {cell.system}"]
        for stage in cell.stages:
            environment, seconds = stage["made"], stage["cost"].get("seconds")
            engines = Stage(stage["stage"], stage["name"], stage["declared"]).engines
            facts = [
                str(environment.get("when", "")),
                f"weir {environment.get('weir')} (code {environment.get('code')})",
                ", ".join(map(str, engines)),
                f"{seconds:.3g} s" if isinstance(seconds, (int, float)) else "",
            ]
            machine = [
                *(f"{name} {version}" for name, version in (environment.get("packages") or {}).items()),
                f"Python {environment.get('python')}",
                f"Unicode {environment.get('unicode')}",
                str(environment.get("system")),
                f"{environment.get('processor')} ({environment.get('instructions') or 'no vector instructions told'})",
                f"{environment.get('threads')} threads",
            ]
            declared = [f"{name}={value}" for name, value in flattened("", dict(stage["declared"]))]
            lines += [
                f"  {stage['stage']}  {stage['folder']}",
                f"    made: {', '.join(fact for fact in facts if fact)}",
                f"    by: {', '.join(machine)}",
                f"    declared: {'; '.join(declared)}",
            ]
        tables.append(sentences(*lines))
    return tuple(tables)


PROVENANCES = ResultKind("provenance", Provenance, _provenance_tables)
