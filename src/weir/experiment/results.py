"""The finished cells of a results folder, read back with their scores and costs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.origin import Origin
from weir.core.results import result
from weir.core.rounding import counted, one_or_more
from weir.core.scores import Note, Row, Scores
from weir.core.tables import Table, sentences
from weir.datasets import catalogue
from weir.datasets.load import Dataset, is_column, judged_or_not, load, load_here
from weir.errors import BadValue, FormatError, StoreError, UnknownName, WeirError
from weir.experiment.stage_store import run_file
from weir.experiment.stages import (
    RECORD,
    SCORES,
    Record,
    Stage,
    changes,
    flattened,
    read_record,
    record_of,
    records_in,
    rows_of,
)
from weir.files.integrity import read_sealed, write_sealed
from weir.files.leases import locked
from weir.files.paths import path_of
from weir.files.score_files import read_scores
from weir.files.text_files import named_file
from weir.models.verdicts import SCORED_KINDS
from weir.stats.score_rows import depth_notes, group_row, row_notes, shallow_notes, unanswered_note
from weir.systems.expression import parse_system, single_names

# ----------
# The order in which datasets and systems were requested, in <results>/grid.json, and the judgments that count.


ORDER = "grid.json"
LAST = 1 << 30  # behind all that were asked for
_SHOWN_HASH = 6  # digits that tell collections of one name apart


@dataclass(frozen=True)
class GridOrder:
    """Datasets and systems by name, as they were asked for; () where nothing says so.

    judgments: the fingerprint of those by which each split was last scored, by `split_mark`; by the dataset's name in
    folders of 0.2.
    """

    datasets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    judgments: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(root: Path) -> GridOrder:
        """The order that a results folder keeps; none where it keeps none, or it is damaged."""
        try:
            sealed = read_sealed(root / ORDER)
            judgments = {str(name): str(qrels) for name, qrels in sealed.get("judgments", {}).items()}
            datasets, systems = (tuple(map(str, sealed[name])) for name in ("datasets", "systems"))
            return GridOrder(datasets, systems, judgments)
        except (StoreError, KeyError, TypeError, AttributeError):
            return GridOrder()

    def counting(self, dataset: str, split: str, documents: object) -> str | None:
        """The judgments of a split that were last asked for, None where that is not known."""
        return self.judgments.get(split_mark(dataset, split, documents), self.judgments.get(dataset))

    def place(self, dataset: str, system: str) -> tuple[int, int]:
        """Where a cell stands: the places of its dataset and of its system, LAST for one that was not asked for."""
        places = [
            names.index(name) if name in names else LAST
            for names, name in ((self.datasets, dataset), (self.systems, system))
        ]
        return places[0], places[1]


def split_mark(dataset: str, split: str, documents: object) -> str:
    """What tells a split from others, of another collection of the same name too; documents: their fingerprint."""
    return f"{dataset}:{split} {documents}"


def keep_order(
    root: Path, datasets: Iterable[str], systems: Iterable[str], judgments: Mapping[str, str] | None = None
) -> None:
    """Note what is asked for; what was asked for before stays in front. Raises StoreError where the disk refuses.

    judgments: the fingerprint of those of each split by `split_mark`, which count from now on.
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
    """The file of a cell's rankings, which may be missing; raises FormatError for a pipe or a link to elsewhere."""
    path = run_file(folder)
    return named_file(folder, path.name, path, "its rankings, in its own folder")


@dataclass(frozen=True, eq=False)
class ResultCell:
    """A system on a collection, done and written.

    queries: how many are judged; rows: its means, none where nobody judged; settings:
    every setting of the records as (dotted name, text); ranked, scored: the records of the rankings and of each set of
    scores; label: the system's name, with its key where another cell of the collection bears the same one; superseded:
    how many other judgments the same rankings were scored by, whose scores no longer count; outdated: whether its own
    judgments are others than those that count in its folder; unit: what its dataset counts as in a mean over datasets,
    "" for the collection.
    """

    folder: Path
    dataset: str
    split: str
    system: str
    queries: int
    rows: tuple[Row, ...]
    settings: tuple[tuple[str, str], ...]
    ranked: Record
    scored: tuple[tuple[Path, Record], ...]
    label: str = ""
    superseded: int = 0
    outdated: bool = False
    unit: str = ""

    @property
    def run(self) -> Path:
        """The file of its rankings, which may be missing; raises FormatError for a pipe or a link to elsewhere."""
        return rankings_file(self.folder)

    @property
    def collection(self) -> str:
        """The name of its collection, which its dataset is too but where `by_split` tells splits apart."""
        return str(self.scored[-1][1].facts["dataset"])

    @property
    def origin(self) -> Origin:
        """Of what its scores are."""
        return Origin(
            digest=self.judgments,
            collection=self.unit or self.collection,
            split=self.split,
            system=self.label or self.system,
            depth=self.depth,
        )

    @property
    def judgments(self) -> str:
        """The fingerprint of the judgments it was scored by."""
        return str(self.scored[-1][1].declared["qrels"])

    @property
    def depth(self) -> int:
        """k: how many documents each query was answered with at most."""
        return int(self.ranked.declared["k"])

    def mean(self, measure: str) -> float | None:
        """The stored mean of a measure, None where it was not computed."""
        return next((r.mean for r in self.rows if r.measure == measure), None)

    def named_rows(self) -> list[Row]:
        """The rows under the cell's label."""
        label = self.label or self.system
        mark = label.removeprefix(self.system)
        return [replace(row, system=label, title=row.title and row.title + mark) for row in self.rows]

    def values(self) -> Scores:
        """The per-query scores of all measures; raises StoreError where a file is not as it was written."""
        parts = []
        for path, record in self.scored:
            values = path.with_suffix(".jsonl")
            if [*record.files] != [values.name]:
                raise StoreError(
                    f"{path}: it speaks of {', '.join(record.files) or 'no file'}, not of {values.name}"
                )
            record.verify(self.folder)
            parts.append(read_scores(values))
            lost = [row.measure for row in rows_of(record) if row.measure not in parts[-1].measures]
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
            remarks=(note,) * bool(missing),
            origin=self.origin,
        )


def shared_measures(first: ResultCell, second: ResultCell) -> list[str]:
    """The measures that both cells have, in the order of the first."""
    theirs = {row.measure for row in second.rows}
    return [row.measure for row in first.rows if row.measure in theirs]


def system_titles(cells: Sequence[ResultCell]) -> dict[str, str]:
    """What tables call a system whose settings file names it, by the label of its cell."""
    return {row.system: row.title for cell in cells for row in cell.named_rows() if row.title}


def of_systems(cells: Sequence[ResultCell], systems: Sequence[str]) -> list[ResultCell]:
    """The cells of these systems; all where none is named.

    A system goes by its name or its label, else by any text that prints as its name, a grid too, and by the beginning
    of its name where only one system's name begins so. Raises UnknownName for a system that no cell is of, BadValue for
    a beginning of several.
    """
    if not systems:
        return list(cells)
    names = {name for cell in cells for name in (cell.system, cell.label)}
    chosen: set[str] = set()
    for text in systems:
        exact = {text} & names
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
    """The cells of these datasets (a group stands for its members) and systems; all where none is named.

    They are named as `by_split` has it. A dataset goes by its name or with the split behind it, as in scifact:dev.
    Raises UnknownName for one that no cell is of, and as `of_systems`.
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
    """The cells, each dataset named so that it is one, as `dataset_names` has it; a dataset's stand together."""
    called = [_called(cell, *names) for cell, names in zip(cells, dataset_names(cells), strict=True)]
    places = list(dict.fromkeys(cell.dataset for cell in called))
    return _labelled(sorted(called, key=lambda cell: places.index(cell.dataset)))


def dataset_names(cells: Sequence[ResultCell]) -> list[tuple[str, str]]:
    """Of each cell the names of its dataset and its collection, such that each is one.

    A dataset is called as scifact:dev where there are several splits of a collection. Several collections of one name
    are told apart by a hash of their documents, as in kb [1a2b3c], or of their queries.
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
    """The cells, datasets named as their collections whatever the splits, as records name them."""
    return _labelled([_called(cell, cell.collection) for cell in cells])


def _called(cell: ResultCell, dataset: str, unit: str = "") -> ResultCell:
    of = "" if unit == dataset else unit
    rows = tuple(replace(row, dataset=dataset, unit=of) for row in cell.rows)
    return replace(cell, dataset=dataset, rows=rows, unit=unit)


def open_cell(folder: Path | str) -> ResultCell:
    """The finished cell in a folder such as results/scifact/bm25-fa19b4d424.

    Raises FormatError for a folder that is none, or one that is not finished.
    """
    folder = path_of(folder)
    if not folder.is_dir():
        raise FormatError(folder, "a file" if folder.exists() else "no such folder", EXPECTED)
    cells = [cell for cell in _cells_in(folder) if cell.rows]
    if cells:
        return _counting(cells, GridOrder.read(folder.parent.parent))
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
    """The run files of a folder: of a cell its own, of results on one collection those of each system.

    Raises FormatError for a folder without results, BadValue for several collections or splits.
    """
    if (folder / RECORD).exists() or run_file(folder).exists():
        return [rankings_file(folder)]
    cells = _cells_of(folder)
    places = list(dict.fromkeys(name for name, _ in dataset_names(cells)))
    if len(places) > 1:
        listed = ", ".join(places)
        raise BadValue(f"{folder} holds rankings of {listed}; name the folder of one system on one of them")
    return [cell.run for cell in largest_k(cells)[0]]


def refuse_collections_apart(runs: Sequence[Path]) -> None:
    """Raise BadValue for run files of cells of two collections: their records name other documents and queries."""
    first: tuple[Path, object, object] | None = None
    for run in runs:
        record = record_of(run.parent)
        if record is not None and {"corpus", "queries"} <= record.declared.keys():
            documents, queries = record.declared["corpus"], record.declared["queries"]
            first = first or (run, documents, queries)
            if documents != first[1] and queries != first[2]:
                what = "are rankings of two collections: other documents and other queries"
                raise BadValue(f"{first[0].parent} and {run.parent} {what}")


def _cells_of(folder: Path) -> list[ResultCell]:
    """The finished cells of a results folder, or of one collection in it; raises FormatError for another folder."""
    inner = not any(folder.glob(f"*/*/{SCORES}")) and any(folder.glob(f"*/{SCORES}"))
    place = folder.resolve()
    cells = finished_cells(place.parent if inner else folder, unjudged=True)
    return [cell for cell in cells if not inner or cell.folder.parent == place]


def cell_of(folder: Path, rows: Sequence[Row]) -> ResultCell:
    """The finished cell that these rows are of, with them alone; raises StoreError where it is there no more."""
    alike = (cell for cell in _cells_in(folder) if bool(rows) == bool(cell.rows))
    cell = next((cell for cell in alike if all(row in cell.rows for row in rows)), None)
    if cell is None:
        raise StoreError(f"{folder}: removed while the grid ran, by another process; run the grid again")
    return replace(cell, rows=tuple(rows))


def finished_cells(root: Path | str, unjudged: bool = False) -> list[ResultCell]:
    """Every finished cell of a results folder, datasets and systems in the order in which each was first asked for.

    Those of which that is not known come last, as they finished. unjudged: whether cells of collections that nobody has
    judged, which have no scores, are among them. Raises FormatError where there is none.
    """
    root = path_of(root)
    folders = sorted({path.parent for path in root.glob(f"*/*/{SCORES}")})
    order = GridOrder.read(root)
    by_folder = [list(_cells_in(folder)) for folder in folders]
    scored = {cell.dataset for group in by_folder for cell in group if cell.rows}

    def counts(cell: ResultCell) -> bool:
        """Whether it has scores, or it is of a collection that had no judgments when it was last asked for."""
        if cell.rows:
            return True
        last = _asked(cell, order)
        return unjudged and (cell.dataset not in scored or last == cell.judgments)

    kept = [[cell for cell in group if counts(cell)] for group in by_folder]
    cells = _marked_outdated([_counting(group, order) for group in kept if group], order)
    if not cells:
        if any(by_folder):
            remedy = "scores; weir labels pool FOLDER -o pool/ writes what to judge, and weir run scores by judgments"
            raise FormatError(root, "rankings of collections without judgments alone", remedy)
        if not root.is_dir():
            raise FormatError(
                root, "a file" if root.exists() else "no such folder", "a folder written by weir run"
            )
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
    """What is wrong with the records of a results folder that cannot be read, in sentences."""
    problems = []
    for pattern in (f"*/*/{RECORD}", f"*/*/{SCORES}"):
        for path in sorted(root.glob(pattern)):
            try:
                read_record(path)
            except StoreError as error:
                problems.append(f"left out: {error}")
    return problems


def systems_without_scores(
    root: Path, cells: Sequence[ResultCell], datasets: Sequence[str] = ()
) -> list[str]:
    """Sentences on systems whose rankings stand in a results folder, and that no judgments have scored.

    cells: those of the folder that have scores; datasets: the collections that are looked at, by default all.
    """
    scored = {(cell.dataset, cell.system) for cell in cells}
    lacking: dict[str, list[str]] = {}
    for folder in sorted(path.parent for path in root.glob(f"*/*/{RECORD}")):
        if next(folder.glob(SCORES), None) is not None and next(folder.glob(f"{SCORES}l"), None) is None:
            for cell in _cells_in(folder):
                if (not datasets or cell.dataset in datasets) and (cell.dataset, cell.system) not in scored:
                    lacking.setdefault(cell.dataset, []).append(cell.system)
    remedy = "weir labels pool writes what to judge, and the same weir run scores them by judgments"
    return [f"{name}: rankings without scores of {', '.join(of)}: {remedy}" for name, of in lacking.items()]


def dataset_of(cell: ResultCell, collection: str | Path | Dataset | None = None) -> Dataset | None:
    """The collection of a cell: the given one, or the one that its record names, or the catalogue's of that name.

    But for a given one it must be what was measured: its fingerprint is compared. Nothing is asked of the network; None
    where it is not here. Raises what `load` raises for a given one.
    """
    if collection is not None:
        return collection if isinstance(collection, Dataset) else judged_or_not(load(collection, cell.split))
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
    """Where the collection of a cell was when it was measured: a name of the catalogue, a path or a reference."""
    return str(cell.scored[-1][1].facts.get("collection", ""))


def cell_collection(cell: ResultCell, fetch: bool = False) -> Dataset | None:
    """The collection that a cell is of, where it is on this machine with the judgments that were used, else None.

    Its record, which may be somebody else's, says where it is. fetch: whether it may be brought here, else nothing is
    asked of the network and nothing is written.
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
    """(the cells, each with the collection whose column `by` may be, a sentence on each collection left out).

    Where `by` is a column, cells of collections that are not here are left out, unless none is; collections: see
    `collection_places`; fetch: as `cell_collection` takes it. Raises as `collection_places` and `load`.
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
    """Why the collection of a cell is not read, and what to do."""
    return (
        f"the collection is not at {recorded_place(cell)}, or not as it was measured; "
        f"say where it lies now with --collection {cell.collection}=PATH"
    )


def collection_of_cell(
    cell: ResultCell, places: Mapping[str, str | Path | Dataset], fetch: bool = False
) -> Dataset | None:
    """The collection of a cell from its place, see `collection_places`, where it has one; else as `cell_collection`."""
    place = places.get(cell.collection)
    if place is None:
        return cell_collection(cell, fetch)
    return place if isinstance(place, Dataset) else load(place, cell.split)


def collection_places(
    cells: Sequence[ResultCell], collections: Sequence[str | Path | Dataset]
) -> dict[str, str | Path | Dataset]:
    """Where collections of some cells lie now, by their names there.

    collections: each as NAME=PATH or, where that leaves no doubt, as a path, a name or itself. Raises UnknownName for
    a name that is none of theirs, BadValue where doubt is left, and the WeirErrors of loading.
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
    """(the name in NAME=PATH, "" for what is no such text; the path, or what was given)."""
    if isinstance(collection, Dataset) or Path(collection).exists():
        return "", collection
    name, equals, place = str(collection).partition("=")
    return (name, place) if equals else ("", collection)


def _whose(cells: Sequence[ResultCell], collection: str | Path | Dataset) -> str:
    """The name of a collection among these cells: its own name, else by its content, documents or judgments.

    Where there is only one collection it is that. Raises BadValue where doubt is left, and the WeirErrors of loading.
    """
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
        f"--collection {place} is none of {', '.join(names)} by its name, documents or judgments; say which, as in "
        f"--collection {names[0]}={place}"
    )


def _cells_in(folder: Path) -> Iterator[ResultCell]:
    """The finished cells of a folder of rankings: one for each set of judgments they were scored by."""
    try:
        ranked = read_record(folder / RECORD)
    except StoreError:
        return
    by_qrels: dict[str, list[tuple[Path, Record]]] = {}
    for path, record in records_in(folder, SCORES):
        if record.declared.get("run") == ranked.stage.key:
            qrels, measures, interval = (record.declared.get(n) for n in ("qrels", "measures", "interval"))
            if not (isinstance(qrels, str) and isinstance(measures, dict) and isinstance(interval, dict)):
                raise FormatError(path, "another layout", "a record of weir run")
            by_qrels.setdefault(str(record.declared["qrels"]), []).append((path, record))
    for scored in by_qrels.values():
        scored.sort(key=lambda one: str(one[1].made.get("when")))
        last = scored[-1][1]
        try:
            rows = {
                row.measure: row for _, record in scored for row in rows_of(record)
            }  # the last made counts
            about = {name: last.facts[name] for name in ("dataset", "split", "fingerprint", "self_match")}
            about |= {"system": ranked.declared["system"], "k": last.facts["k"]}
            environment_made = {name: value for name, value in ranked.made.items() if name != "when"}
            environment = environment_made | {"interval": last.declared["interval"]}
            cell = ResultCell(
                folder,
                str(last.facts["dataset"]),
                str(last.facts["split"]),
                last.name,
                int(last.facts["queries"]),
                tuple(rows.values()),
                tuple(flattened("", about | {"environment": environment})),
                ranked,
                tuple(scored),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise FormatError(folder / RECORD, "another layout", "a record of weir run") from None
        yield cell


def _asked(cell: ResultCell, order: GridOrder) -> str | None:
    """The judgments of its split that were last asked for."""
    return order.counting(cell.dataset, cell.split, answered_texts(cell)[0])


def _counting(cells: Sequence[ResultCell], order: GridOrder) -> ResultCell:
    """The cell of one folder whose judgments count: those last asked for, else those it was last scored by."""
    counting = _asked(cells[0], order)
    last = max(cells, key=lambda cell: (cell.judgments == counting, str(cell.scored[-1][1].made.get("when"))))
    return replace(last, superseded=len(cells) - 1)


def _marked_outdated(cells: Sequence[ResultCell], order: GridOrder) -> list[ResultCell]:
    """The cells, marked where they were scored by other judgments than those of their collection and split that count.

    These are the ones last asked for, or, where no cell was scored by them, those of the cell scored last.
    """
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
    """(the cells that were scored by the judgments that count, a sentence on each that is left out).

    Scores by different judgments do not compare.
    """
    outdated = [cell for cell in cells if cell.outdated]
    remedy = "left out; the same weir run scores it again"
    current = [cell for cell in cells if not cell.outdated] if outdated else list(cells)
    return _labelled(current), [f"{_outdated_sentence(cell)}: {remedy}" for cell in outdated]


def _outdated_sentence(cell: ResultCell) -> str:
    name = cell.label or cell.system
    return f"{name} on {cell.dataset} was scored by other judgments than the last ones asked for, and does not compare"


def _labelled(cells: list[ResultCell]) -> list[ResultCell]:
    """The cells with names that are their own: what differs under one name is told, key or engine.

    Of cells that differ in k alone the deepest bears the name, and the others their k.
    """
    groups, labelled = _of_one_name(cells), []
    for cell in cells:
        group = groups[cell.dataset, cell.system]
        if _differ_in_depth(group):
            mark_texts = [] if cell.depth == max(one.depth for one in group) else [f"k={cell.depth}"]
        else:
            marks = [_marks(one) for one in group]
            varies = [len(set(column)) > 1 for column in zip(*marks, strict=True)]
            mark_texts = [mark for mark, differs in zip(_marks(cell), varies, strict=True) if differs]
        labelled.append(
            replace(cell, label=f"{cell.system} #{' '.join(mark_texts)}" if mark_texts else cell.system)
        )
    return labelled


def largest_k(cells: Sequence[ResultCell]) -> tuple[list[ResultCell], list[str]]:
    """(the cells without those that differ from a deeper one in k alone, a sentence for each dataset and system left).

    A system is compared with others once, by its longest rankings.
    """
    largest, sentences = list(cells), []
    for group in _of_one_name(cells).values():
        if len(group) > 1 and _differ_in_depth(group):
            best = max(group, key=lambda one: one.depth)
            depths = " and ".join(str(k) for k in sorted({one.depth for one in group if one is not best}))
            largest = [one for one in largest if one is best or one not in group]
            sentences.append(
                f"{best.system} on {best.dataset} is compared with k={best.depth} alone, not {depths}"
            )
    return _labelled(largest), sentences


def _of_one_name(cells: Sequence[ResultCell]) -> dict[tuple[str, str], list[ResultCell]]:
    groups: dict[tuple[str, str], list[ResultCell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.system), []).append(cell)
    return groups


def _differ_in_depth(group: Sequence[ResultCell]) -> bool:
    """Whether rankings of one system and collection differ in nothing but k."""
    first = group[0].ranked.stage
    return {name for one in group[1:] for name, *_ in changes(first, one.ranked.stage)} == {"k"}


def _marks(cell: ResultCell) -> tuple[str, str]:
    """What tells cells of one system and collection apart: key, engines."""
    return cell.ranked.stage.key, "+".join(str(engine) for engine in cell.ranked.engines)


# ----------
# The cost of a cell, summed over its stages.


def stages_of(cell: ResultCell) -> Iterator[tuple[Path, Record]]:
    """(folder, record) of every stage behind a cell, each once, the cell's own rankings last."""
    visited: set[Path] = set()

    def walk(folder: Path, record: Record) -> Iterator[tuple[Path, Record]]:
        visited.add(folder)
        collection = folder.parent.parent if record.kind == "index" else folder.parent
        for _, name in record.inputs:
            inner = Path(os.path.normpath(collection / name))
            stage = None if inner in visited else record_of(inner)
            if stage is not None:
                yield from walk(inner, stage)
        yield folder, record

    return walk(cell.folder, cell.ranked)


@contextmanager
def as_weir_writes_it(cell: ResultCell) -> Iterator[None]:
    """Raise FormatError where an entry of a cell's records, which may be somebody else's, is another value."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise FormatError(cell.folder / RECORD, "another layout", "a record of weir run") from None


def index_cost(cell: ResultCell) -> dict[str, Any]:
    """Seconds, bytes and documents of all indexes behind a cell; empty where it has none. Raises FormatError."""
    with as_weir_writes_it(cell):
        records = [record for _, record in stages_of(cell) if record.kind == "index"]
        if not records:
            return {}
        costs = _summed(records)
        costs |= {"bytes": sum(r.facts["bytes"] for r in records)}
        costs |= {"documents": max(r.facts["documents"] for r in records)}
        costs |= {"reused": sum(r.facts.get("reused", 0) for r in records)}
        return costs | {"cached_queries": any(r.facts.get("cached_queries") for r in records)}


def search_cost(cell: ResultCell) -> dict[str, Any]:
    """Seconds of all rankings behind a cell, and what its own rankings note; raises FormatError.

    Where the rankings of a file are among them nobody measured the time: no "seconds", "peak_mb", "single_query_ms".
    """
    with as_weir_writes_it(cell):
        records = [record for _, record in stages_of(cell) if record.kind == "run"]
        # Rankings without self-matches are those of the stage before them, which was searched.
        searched = next((r for r in reversed(records) if "single_query_ms" in r.facts), cell.ranked)
        services = [use for record in records for use in record.facts.get("services", [])]
        found = {**searched.facts, **cell.ranked.facts, **_summed(records), "services": services}
        if all(map(_measured, records)):
            return found
        lacking: dict[str, Any] = {"seconds": None, "peak_mb": None, "single_query_ms": {}, "measured": False}
        return {**found, **lacking}


def _measured(record: Record) -> bool:
    """Whether rankings were searched; records before 0.3 do not say it but for the system that they declare."""
    declared = record.declared.get("system")
    stored = isinstance(declared, Mapping) and declared.get("system") == "run"
    return record.facts.get("measured") is not False and not stored


def whole_seconds(cell: ResultCell) -> float | None:
    """Seconds of all stages behind a cell; None where nobody measured the time of one."""
    records = [record for _, record in stages_of(cell)]
    return sum(float(r.cost["seconds"]) for r in records) if all(map(_measured, records)) else None


def search_seconds(cells: Iterable[ResultCell]) -> float | None:
    """Seconds in which the rankings of some cells were searched, each stage once; None where nobody measured any."""
    seconds: dict[Path, float] = {}
    for cell in cells:
        with as_weir_writes_it(cell):
            for folder, record in stages_of(cell):
                if record.kind == "run" and _measured(record):
                    seconds[folder] = float(record.cost.get("seconds") or 0)
    return sum(seconds.values()) if seconds else None


def unscored_notes(cells: Sequence[ResultCell]) -> list[str]:
    """A sentence on each re-ranker behind some cells that left documents of its first stage unscored, once for each
    collection."""
    sentences: dict[str, None] = {}
    for cell in cells:
        with as_weir_writes_it(cell):
            for _, record in stages_of(cell):
                reranked = record.facts.get("reranked", {})
                if reranked.get("unscored"):
                    note = unscored_note(record.name, int(reranked["unscored"]), int(reranked["candidates"]))
                    sentences[f"{cell.dataset}: {note}"] = None
    return list(sentences)


PARSE_FAILURES = 0.01
"""Share of a model's answers without a verdict above which it is said."""


def unread_notes(cells: Sequence[ResultCell]) -> list[str]:
    """A sentence on each cell whose language model gave more than PARSE_FAILURES of answers that cannot be read."""
    sentences: dict[str, None] = {}
    for cell in cells:
        for use in search_cost(cell)["services"]:
            with as_weir_writes_it(cell):
                verdicts = {str(kind): int(n) for kind, n in use.get("verdicts", {}).items()}
            total, read = sum(verdicts.values()), sum(verdicts.get(kind, 0) for kind in SCORED_KINDS)
            if total - read > PARSE_FAILURES * total:
                kinds = ", ".join(f"{n:,} {kind}" for kind, n in verdicts.items() if kind not in SCORED_KINDS)
                answers = f"{total - read:,} of {total:,} answers of a language model have no whole verdict ({kinds})"
                sentences[
                    f"{cell.dataset}, {cell.label or cell.system}: {answers}; weir study llm shows them"
                ] = None
    return list(sentences)


def unscored_candidates(cell: ResultCell) -> tuple[int, int]:
    """(candidates that re-rankers behind a cell left unscored, candidates that they were given)."""
    with as_weir_writes_it(cell):
        reranked = [record.facts.get("reranked", {}) for _, record in stages_of(cell)]
        unscored, candidates = (
            sum(int(one.get(name, 0)) for one in reranked) for name in ("unscored", "candidates")
        )
    return unscored, candidates


def unscored_note(system: str, unscored: int, candidates: int, bound: str = "") -> str:
    """A sentence on a re-ranking that does not score all documents of its first stage."""
    return f"{system} leaves {bound}{unscored:,} of {candidates:,} candidates unscored, behind its depth"


def _summed(records: list[Record]) -> dict[str, Any]:
    """The costs of some stages together: times and requests add up, of memory the most counts."""
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
    """The rows of cells under their labels, then those of whole groups of datasets."""
    return [*(row for cell in cells for row in cell.named_rows()), *group_rows(cells)]


def group_rows(cells: Sequence[ResultCell]) -> list[Row]:
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
    group_means = []
    for group in whole:
        for system, measure in pairs:
            parts = [at[key] for member in group.members if (key := (member, system, measure)) in at]
            if len(parts) == len(group.members) and len({cell.depth for cell, _ in parts}) == 1:
                scores = [values[id(cell)] for cell, _ in parts]
                columns = [one.in_id_order(measure) for one in scores]
                rows = [replace(row, system=system) for _, row in parts]
                group_means.append(group_row(group.name, rows, columns, measure in scores[0].geometric))
    return group_means


def cell_notes(cells: Sequence[ResultCell]) -> list[Note]:
    """What has to be said beside the scores of cells: mixed provenance, judgments that changed, shallow rankings,
    unscored candidates, answers that cannot be read, queries not answered, documents not judged."""
    rows = [row for cell in cells for row in cell.named_rows()]
    unscored = list[Note]()
    for said, others in (
        (unscored_notes(cells), "re-rankings leave some"),
        (unread_notes(cells), "cells have such"),
    ):
        if said:
            first, *more = said
            so_do = f"; {len(more)} more {others}" if more else ""
            unscored.append(Note(first + so_do, "; ".join(more)))
    changed = sum(cell.superseded > 0 for cell in cells)
    before = f"{counted(changed, 'ranking')} {one_or_more(changed, 'was', 'were')} scored by other judgments before"
    judgments = [Note(f"{before}; the last ones asked for count")] if changed else []
    by_depth: dict[int, set[str]] = {}
    for cell in cells:
        by_depth.setdefault(cell.depth, set()).update(row.measure for row in cell.rows)
    shallow = [
        note if len(by_depth) == 1 else note.about(f"k={depth}")
        for depth, measures in sorted(by_depth.items())
        for note in shallow_notes(depth, measures)
    ]
    of_dataset: dict[str, dict[str, int]] = {}
    for cell in cells:
        of_dataset.setdefault(cell.dataset, {})[cell.label or cell.system] = cell.depth
    measures = list(dict.fromkeys(row.measure for row in rows))
    deep = [note.about(dataset) for dataset, of in of_dataset.items() for note in depth_notes(of, measures)]
    return [*map(Note, mixed_provenance(cells)), *judgments, *shallow, *deep, *unscored, *row_notes(rows)]


def mixed_provenance(cells: Sequence[ResultCell]) -> list[str]:
    """What in a table bears one name and was made otherwise, in sentences: by other algorithms, versions or data."""
    numbers_by_name: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        numbers_of = {"bootstrap interval": cell.scored[-1][1].declared["interval"].get("algorithm")}
        for _, record in cell.scored:
            numbers_of |= {f"measure {m}": number for m, number in record.declared["measures"].items()}
        for what, number in numbers_of.items():
            numbers_by_name.setdefault(what, {}).setdefault(str(number), []).append(
                f"{cell.dataset} {cell.label}"
            )
    sentences = [
        f"{what} was made by different algorithms and does not compare: "
        + "; ".join(f"number {number} in {', '.join(names)}" for number, names in sorted(numbers.items()))
        for what, numbers in numbers_by_name.items()
        if len(numbers) > 1
    ]
    depths: dict[str, dict[int, str]] = {}
    for cell in cells:
        depths.setdefault(cell.label, {}).setdefault(cell.depth, cell.dataset)
    sentences += [
        f"{name} answered with different k: {', '.join(f'{k} on {dataset}' for k, dataset in several.items())}"
        for name, several in depths.items()
        if len(several) > 1
    ]
    for one, other in pairwise(sorted(cells, key=lambda cell: (cell.dataset, cell.system))):
        if (one.dataset, one.system) == (other.dataset, other.system):
            names = [name for name, *_ in changes(one.ranked.stage, other.ranked.stage)]
            sentences.append(f"{one.dataset}: {one.label} and {other.label} differ in {', '.join(names[:4])}")
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
    """What identifies the documents and the queries of the rankings."""
    return cell.ranked.declared.get("corpus"), cell.ranked.declared.get("queries")


# ----------
# What made each cell, stage by stage.


@dataclass(frozen=True)
class Provenance:
    """What made a cell: of each stage its whole record, and its folder as seen from that of the collection."""

    dataset: str
    system: str
    stages: tuple[Mapping[str, Any], ...]


def provenance_of(cell: ResultCell) -> Provenance:
    """The stages behind a cell in the order they were made."""
    stages = tuple(
        {"folder": Path(os.path.relpath(folder, cell.folder.parent)).as_posix(), **record.to_json()}
        for folder, record in (*stages_of(cell), *cell.scored)
    )
    return Provenance(cell.dataset, cell.label, stages)


@result("provenance", Provenance)
def provenance_tables(results: Sequence[Provenance]) -> tuple[Table, ...]:
    """A paragraph for each cell: its stages in the order they were made, what was declared and what made them."""
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
