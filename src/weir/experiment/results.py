"""Read the finished results of a folder, with scores and costs."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.origin import Origin, counted_once, other_algorithms, repeated_notes, shared_notes
from weir.core.results import ResultKind
from weir.core.rounding import counted, one_or_more, part_of
from weir.core.scores import Note, Row, Scores
from weir.core.short_names import look_alike_notes, run_titles, systems_called
from weir.core.tables import Table, sentences
from weir.datasets import catalogue
from weir.datasets.fetch import content_of
from weir.datasets.load import Dataset, is_column, judged_or_not, load, load_here, without_documents
from weir.datasets.names import catalogue_name, is_reference
from weir.errors import (
    BadValue,
    FormatError,
    LossWarning,
    StoreError,
    UnknownName,
    WeirError,
    give_warning,
    warn_of_ranking,
)
from weir.experiment.stage_store import IN_MEMORY_INDEXES, TIED_BEYOND_K, run_file, silent
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
from weir.files.formats import begins_as_run
from weir.files.integrity import read_sealed, write_sealed
from weir.files.leases import locked
from weir.files.paths import path_of
from weir.files.records import OWN_FOLDER
from weir.files.runs import read_run, run_name
from weir.files.score_files import read_scores, self_match_rule
from weir.files.text_files import named_file, refuse_pack
from weir.measures import parse_measure
from weir.registry import sessions
from weir.services.answers import SCORED_KINDS
from weir.stats.score_rows import (
    depth_notes,
    group_row,
    own_documents_said,
    reaches,
    row_notes,
    shallow_notes,
    tied_cut_note,
    unanswered_note,
    wide_tie_notes,
    without_relevant,
)
from weir.systems.composite import tells_of_removed
from weir.systems.expression import parse_system, single_names
from weir.systems.protocol import DEPTH

# ----------
# The order in which datasets and systems were requested, in <results>/grid.json, and the judgments that count.


ORDER = "grid.json"
LAST = 1 << 30  # behind all that were asked for
_NAMED = 3  # missing results that a sentence names
_SHOWN_HASH = 6  # digits that tell collections of one name apart


@dataclass(frozen=True)
class GridOrder:
    """Datasets and systems of a results folder in the order in which they were run."""

    datasets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    judgments: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint of the judgments that each split was last scored by, by `split_mark`; before 0.3 by dataset."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Label of each system that was given one when it was run."""
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the systems that were run on each split, as in {"scifact:test": ("bm25",)}; empty before 0.3."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Documents and queries that each split of each place was last run on, and under the split "" its documents, by
    `split_mark`; empty before 0.3."""

    @staticmethod
    def read(root: Path) -> GridOrder:
        """Return the recorded order; empty if missing or damaged."""
        return _read_order(root)[0]

    def counting(self, dataset: str, split: str, documents: object) -> str | None:
        """Return the fingerprint of a split's current judgments; None if unknown.

        documents: the collection's fingerprint.
        """
        return self.judgments.get(split_mark(dataset, split, documents), self.judgments.get(dataset))

    def place(self, dataset: str, system: str) -> tuple[int, int]:
        """Return the positions of a dataset and a system in the order; LAST for an unknown name."""
        places = [
            names.index(name) if name in names else LAST
            for names, name in ((self.datasets, dataset), (self.systems, system))
        ]
        return places[0], places[1]


def _read_order(root: Path) -> tuple[GridOrder, str]:
    try:
        sealed = read_sealed(root / ORDER)
        judgments, labels, versions = (
            {str(name): str(value) for name, value in sealed.get(of, {}).items()}
            for of in ("judgments", "labels", "versions")
        )
        datasets, systems = (tuple(map(str, sealed[name])) for name in ("datasets", "systems"))
        asked = {str(split): tuple(map(str, names)) for split, names in sealed.get("asked", {}).items()}
    except (StoreError, KeyError, TypeError, AttributeError) as error:
        if not os.path.lexists(root / ORDER):
            return GridOrder(), ""
        what = str(error) if isinstance(error, StoreError) else f"{root / ORDER}: another layout"
        lost = "the order of systems, their labels and what was asked for are unknown"
        return GridOrder(), f"{what}; {lost}; the same weir run writes it again"
    return GridOrder(datasets, systems, judgments, labels, asked, versions), ""


def order_damage(root: Path) -> str:
    """Return a sentence if a folder's recorded order cannot be read, else ""."""
    return _read_order(root)[1]


def split_mark(dataset: str, split: str, of: object) -> str:
    """Return "dataset:split of", a key that tells collections of one name apart.

    of: the fingerprint of its documents, or its path.
    """
    return f"{dataset}:{split} {of}"


def keep_order(
    root: Path,
    datasets: Iterable[str] = (),
    systems: Iterable[str] = (),
    judgments: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    asked: Iterable[tuple[str, str]] = (),
    versions: Mapping[str, str] | None = None,
) -> tuple[GridOrder, GridOrder]:
    """Append datasets and systems to the order file of a results folder; return the order before and after.

    judgments, versions: {`split_mark`: fingerprint} of judgments, and of documents and queries, that become
        current.
    labels: {system: label}, taken from other systems with the same label.
    asked: (dataset:split, system) of each requested result.
    """
    with locked(root / f".{ORDER}.lock"):
        before = GridOrder.read(root)
        given = (before.labels, labels or {})
        owners = {label: system for of in given for system, label in of.items()}
        wanted = {split: dict.fromkeys(names) for split, names in before.asked.items()}
        for split, system in asked:
            wanted.setdefault(split, {})[system] = None
        now = GridOrder(
            tuple(dict.fromkeys([*before.datasets, *datasets])),
            tuple(dict.fromkeys([*before.systems, *systems])),
            {**before.judgments, **(judgments or {})},
            {system: label for label, system in owners.items()},
            {split: tuple(names) for split, names in wanted.items()},
            {**before.versions, **(versions or {})},
        )
        if now != before:
            write_sealed(root / ORDER, asdict(now))
        return before, now


def take_back_order(root: Path, before: GridOrder, after: GridOrder) -> None:
    """Restore a results folder's order to `before`, if it still is `after`."""
    with locked(root / f".{ORDER}.lock"):
        if GridOrder.read(root) != after:
            return
        if before == GridOrder():
            (root / ORDER).unlink(missing_ok=True)
        else:
            write_sealed(root / ORDER, asdict(before))


# ----------
# Finished cells, each with the settings of its records.


EXPECTED = "the folder of a finished cell, such as results/scifact/bm25-0123456789"
OLD = "manifest.json"
AGAIN = "written by Weir 0.1, whose records this version does not read; run the same grid into another folder"


def rankings_file(folder: Path, record: Record | None) -> Path:
    """Return the path of a result's run file; raises FormatError for a pipe or a link out of the folder.

    Warns (RankingWarning) if the file is missing or has another size than recorded.
    """
    path = run_file(folder)
    named_file(folder, path.name, path, "its rankings, in its own folder")
    if record is not None and not path.exists():
        warn_of_ranking(f"{path}: missing, though it was scored; the same weir run makes it again")
    for said in () if record is None else _changed_files(folder, record):
        warn_of_ranking(said)
    return path


def check_files(record: Record, folder: Path) -> None:
    """Raise StoreError for a missing or changed file of a result."""
    try:
        record.verify(folder)
    except StoreError as error:
        by_hand = record.kind == "run" and record.is_whole(folder)  # a run looks at sizes alone
        without = "without the file " * by_hand
        raise StoreError(f"{error}; {without}the same weir run makes it again") from None


def _changed_files(folder: Path, record: Record) -> Iterator[str]:
    for name, checksum in record.files.items():
        with suppress(OSError):
            if (size := (folder / name).stat().st_size) != checksum.bytes:
                yield (
                    f"{folder / name}: changed since it was scored: {size:,} bytes, {checksum.bytes:,} recorded; "
                    "the same weir run makes it again"
                )


@dataclass(frozen=True, eq=False)
class ResultCell:
    """A finished result of a system on a collection."""

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
    scored: tuple[tuple[Path, Record], ...]
    """Path and record of each set of scores by the same judgments, latest last."""
    stages: tuple[tuple[Path, Record], ...] = ()
    """Folder and record of each stage that made its rankings, inputs first, the rankings last."""
    label: str = ""
    """The system's name, with the differing settings if several results on the collection share it."""
    title: str = ""
    """Label as readers are shown it (`Row.called`); "" if equal."""
    superseded: int = 0
    """Number of other judgments by which the same rankings were scored."""
    outdated: bool = False
    """True if scored by other judgments than the current ones of its split."""
    unit: str = ""
    """Name of its dataset in a mean over datasets; "" for `collection`."""
    newer: str = ""
    """`asked` of the newer version of its collection, if it was changed and run again; "" otherwise."""

    @property
    def called(self) -> str:
        """The system's name as notes and tables show it."""
        return self.title or self.label or self.system

    @property
    def run(self) -> Path:
        """Path of the rankings; raises FormatError for a pipe or a link out of the folder."""
        return rankings_file(self.folder, self.ranked)

    @property
    def collection(self) -> str:
        """The collection's recorded name, without split or hash."""
        return str(self.scored[-1][1].facts["dataset"])

    @property
    def origin(self) -> Origin:
        """Judgments, collection, split, system and depth of the scores."""
        return Origin(
            digest=self.judgments,
            collection=self.unit or self.collection,
            split=self.split,
            system=self.label or self.system,
            depth=self.longest,
            whole=self.whole,
            uncounted=any(row.uncounted for row in self.rows),
            texts=" ".join(map(str, answered_texts(self))),
            algorithms={
                measure: str(number)
                for _, record in self.scored
                for measure, number in record.declared["measures"].items()
            },
        )

    @property
    def asked(self) -> str:
        """Hashes of judgments and queries, equal for a collection under several names; "" without judgments."""
        return self.origin.asked if self.rows else ""

    @property
    def conventions(self) -> str:
        """The conventions of the scores, as text."""
        return self_match_rule(dict(self.settings).get("self_match", "keep"))

    @property
    def judgments(self) -> str:
        """The fingerprint of the judgments that gave the scores."""
        return str(self.scored[-1][1].declared["qrels"])

    @property
    def depth(self) -> int:
        return int(self.ranked.declared["k"])

    @property
    def grades(self) -> dict[float, int]:
        """{grade: number of judgments}; {} if not recorded. Raises FormatError for a damaged record."""
        with as_weir_writes_it(self.folder):
            grades = self.scored[-1][1].facts.get("grades", {})
            return {float(grade): int(number) for grade, number in grades.items()}

    @property
    def documents(self) -> int | None:
        """The collection's number of documents; None if not recorded. Raises FormatError for a damaged
        record.
        """
        with as_weir_writes_it(self.folder):
            documents = self.scored[-1][1].facts.get("documents")
            indexed = [
                r.facts["documents"] for _, r in self.stages if r.kind == "index"
            ]  # in a record before 0.3
            return documents or max(indexed, default=0) or None

    @property
    def longest(self) -> int:
        """Length of the longest ranking; `depth` if not recorded."""
        return int(self.scored[-1][1].facts.get("longest") or self.depth)

    @property
    def whole(self) -> bool:
        """True if the rankings are recorded to have all relevant documents."""
        return self.scored[-1][1].facts.get("whole") is True

    @property
    def query_marks(self) -> list[str]:
        """Hashes of the judged queries (`Dataset.query_marks`); [] if not recorded."""
        return str(self.scored[-1][1].facts.get("query_marks", "")).split()

    @property
    def cut(self) -> int | None:
        """Length of nearly all rankings if shorter than requested, else None."""
        cut = self.scored[-1][1].facts.get("cut")
        return None if cut is None else int(cut)

    @property
    def tied_beyond(self) -> int | None:
        """Number of queries in which documents beyond rank k tie with rank k; None if not recorded."""
        seen = self.ranked.facts.get(TIED_BEYOND_K)
        return seen if isinstance(seen, int) and not isinstance(seen, bool) else None

    def mean(self, measure: str) -> float | None:
        """Return the stored mean of a measure; None if it was not computed."""
        return next((r.mean for r in self.rows if r.measure == measure), None)

    def named_rows(self) -> list[Row]:
        """Return the means by measure, with the label as the system's name."""
        return [replace(row, system=self.label or self.system, title=self.title) for row in self.rows]

    def values(self) -> Scores:
        """Return the scores of all measures by query, with notes.

        Raises StoreError if a file changed, or measures are of different queries.
        """
        parts = []
        for path, record in self.scored:
            values = path.with_suffix(".jsonl")
            if [*record.files] != [values.name]:
                raise StoreError(
                    f"{path}: it speaks of {', '.join(record.files) or 'no file'}, not of {values.name}"
                )
            check_files(record, self.folder)
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
        scores = replace(
            first, measures=names, values=columns, geometric=geometric, conventions=self.conventions
        )
        last = self.rows[-1]
        missing = last.queries - last.answered
        note = unanswered_note(missing, last.queries, scores.conventions)
        own = [Note(said)] if (said := _own_said(self)) else []
        return replace(
            scores,
            judged_at_10=math.nan if last.judged_at_10 is None else last.judged_at_10,
            remarks=tuple(
                dict.fromkeys([*[note] * bool(missing), *wide_tie_notes(self.rows), *_said_of(self), *own])
            ),
            origin=self.origin,
        )


def shared_measures(first: ResultCell, second: ResultCell) -> list[str]:
    """Return the names of measures that both results have."""
    theirs = {row.measure for row in second.rows}
    return [row.measure for row in first.rows if row.measure in theirs]


def system_titles(cells: Sequence[ResultCell]) -> dict[str, str]:
    """Return {label: title} of systems that readers are shown under another name."""
    return {cell.label: cell.title for cell in cells if cell.title}


def of_systems(cells: Sequence[ResultCell], systems: Sequence[str]) -> list[ResultCell]:
    """Return the results of these systems, all for ().

    systems: names, titles, paths of stored rankings, equivalent texts, grids in braces, or unique prefixes.

    Raises UnknownName for an absent system, BadValue for an ambiguous text.
    """
    if not systems:
        return list(cells)
    titles = {cell.system: "" for cell in cells} | {cell.label: cell.title for cell in cells}
    names = set(titles)
    chosen: set[str] = set()
    for text in systems:
        called = systems_called(text, titles)
        if len(called) > 1:
            raise BadValue(
                f"{text} is the name of {len(called)} systems: {', '.join(sorted(called))}; name one"
            )
        exact = called or _equivalent(text, names)
        begun = {cell.system for cell in cells if cell.system.startswith(text)}
        if not exact and len(begun) > 1:
            raise BadValue(
                f"{text} is the beginning of {len(begun)} systems: {', '.join(sorted(begun))}; name one"
            )
        if not exact and not begun:
            raise UnknownName("system among these results", text, names)
        chosen |= exact or begun
    return [cell for cell in cells if cell.system in chosen or cell.label in chosen]


def _equivalent(text: str, names: Collection[str]) -> set[str]:
    with suppress(WeirError):  # this machine may not know the system
        return {str(parse_system(one)) for one in single_names(text)}.intersection(names)
    return set()


def chosen_cells(
    cells: Sequence[ResultCell], datasets: Sequence[str] = (), systems: Sequence[str] = ()
) -> list[ResultCell]:
    """Return the results of these datasets and systems, with unique dataset names.

    datasets: by default all; a group means its members, NAME:SPLIT one split.
    systems: names, labels or unique prefixes, by default all.

    Raises UnknownName for an absent dataset or system, BadValue for an ambiguous text.
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
    return with_repeats(of_systems(cells, systems))


def by_split(cells: Sequence[ResultCell]) -> list[ResultCell]:
    """Return the results sorted by dataset, with unique dataset names and labels of systems."""
    called = [_called(cell, *names) for cell, names in zip(cells, dataset_names(cells), strict=True)]
    called = with_repeats(called)
    places = list(dict.fromkeys(cell.dataset for cell in called))
    return _labelled(sorted(called, key=lambda cell: places.index(cell.dataset)))


def dataset_names(cells: Sequence[ResultCell]) -> list[tuple[str, str]]:
    """Return (unique dataset name, collection's name) of each result.

    If several occur, a name gets the split, as in scifact:dev, a hash, as in kb [1a2b3c], with "older" for an
    older version, or the rule for self-matches.
    """
    texts: dict[tuple[object, ...], dict[object, None]] = {}
    splits: dict[str, set[str]] = {}
    for cell in cells:
        documents, queries = answered_texts(cell)
        # An older version is told from all, the newest of a place from other newest ones.
        for with_older in (True,) if cell.newer else (True, False):
            texts.setdefault((cell.collection, with_older), {})[documents] = None
            texts.setdefault((cell.collection, documents, cell.judgments, with_older), {})[queries] = None

    def unit(cell: ResultCell) -> str:
        documents, queries = answered_texts(cell)
        older = bool(cell.newer)
        several = len(texts[cell.collection, older]) > 1
        more = len(texts[cell.collection, documents, cell.judgments, older]) > 1
        marks = ["older"] * (older and (several or more))
        marks += [str(documents)[:_SHOWN_HASH]] * several + [str(queries)[:_SHOWN_HASH]] * more
        return cell.collection + (f" [{' '.join(marks)}]" if marks else "")

    units = [unit(cell) for cell in cells]
    rules, current = dict[str, set[str]](), dict[str, str]()
    for name, cell in zip(units, cells, strict=True):
        for of in {name, recorded_place(cell) or name}:
            splits.setdefault(of, set()).add(cell.split)
        rules.setdefault(name, set()).add(cell.conventions)
        if not cell.newer:
            current.setdefault(recorded_place(cell) or name, name)

    def splits_beside(name: str, cell: ResultCell) -> bool:
        return any(len(splits[of]) > 1 for of in (name, recorded_place(cell) or name))

    # A name may tell a split's queries from older ones: the splits of a place are of one unit all the same.
    whole: dict[str, str] = {}
    for name, cell in zip(units, cells, strict=True):
        whole.setdefault(name, name if cell.newer else current[recorded_place(cell) or name])

    def rule(cell: ResultCell) -> str:
        return " [self-matches kept]" if cell.conventions == "default" else " [self-matches left out]"

    return [
        (
            name + f":{cell.split}" * splits_beside(name, cell) + rule(cell) * (len(rules[name]) > 1),
            whole[name],
        )
        for name, cell in zip(units, cells, strict=True)
    ]


def with_repeats(cells: Iterable[ResultCell]) -> list[ResultCell]:
    """Return the results with `repeats` in each row: the dataset that counts instead in means (newer, or of
    equal queries and judgments), else "".
    """
    # One choice for all that is shown of these results, whatever the measure: by systems, as depths do not add.
    cells = list(cells)
    counting = {(c.dataset, c.asked, c.newer, c.system): None for c in cells if not c.outdated}
    first = counted_once(of[:3] for of in counting)
    instead = {cell.dataset: "" for cell in cells} | {
        name: one * (one != name) for name, one in first.items()
    }
    return [
        replace(
            cell,
            rows=tuple(
                replace(row, repeats=instead[cell.dataset], older=bool(cell.newer)) for row in cell.rows
            ),
        )
        for cell in cells
    ]


def scored_measures(cells: Iterable[ResultCell]) -> tuple[str, ...]:
    """Return the names of all measures, in order of first occurrence."""
    return tuple(dict.fromkeys(row.measure for cell in cells for row in cell.rows))


def check_scored(measures: Iterable[str], scored: Iterable[str]) -> None:
    """Raise UnknownName for a measure that is not `scored` in a results folder."""
    known = tuple(scored)
    for name in measures:
        if name not in known:
            remedy = "the same weir run with this measure adds it"
            raise UnknownName("measure among these results", name, known, remedy=remedy)


def by_collection(cells: Sequence[ResultCell]) -> list[ResultCell]:
    """Return the results with datasets named by their recorded collection, which may not be unique."""
    return _labelled([_called(cell, cell.collection) for cell in cells])


def _called(cell: ResultCell, dataset: str, unit: str = "") -> ResultCell:
    of = "" if unit == dataset else unit
    rows = tuple(replace(row, dataset=dataset, unit=of) for row in cell.rows)
    return replace(cell, dataset=dataset, rows=rows, unit=unit)


def open_cell(folder: Path | str) -> ResultCell:
    """Return the finished result in a folder such as results/scifact/bm25-fa19b4d424, or in a folder that
    holds one.

    Raises FormatError if there is none, BadValue for several, or one scored on several splits.
    """
    folder = path_of(folder)
    if not folder.is_dir():
        refuse_pack(folder)
        raise FormatError(folder, "a file" if folder.exists() else "no such folder", EXPECTED)
    cells = [cell for cell in _cells_in(folder) if cell.rows]
    if cells:
        by_split = _of_splits(cells)
        if len(by_split) > 1:
            splits = ", ".join(f"{one[0].dataset}:{one[0].split}" for one in by_split)
            remedy = "name the results folder, and one split by `datasets`"
            raise BadValue(f"{folder} holds scores by the splits {splits}; {remedy}")
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


def run_files_of(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Return the run files in a folder, by file name; [] for a results folder, a file, or without any.

    names: files to return, without suffixes; () for all.

    Raises BadValue for two of one name, UnknownName for a missing one. Skips hidden files; warns
    (LossWarning) of others.
    """
    if not folder.is_dir() or any(next(folder.glob(f"{at}{RECORD}"), None) for at in ("", "*/", "*/*/")):
        return []
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[:1] != ".")
    runs = [path for path in files if begins_as_run(path)]
    if runs and (others := [path.name for path in files if path not in runs]):
        first = "its first line is" if len(others) == 1 else "their first lines are"
        give_warning(LossWarning(f"{folder}: left out {', '.join(others)}: {first} no ranking's"))
    by_name: dict[str, Path] = {}
    for path in runs:
        if (other := by_name.setdefault(run_name(path), path)) != path:
            raise BadValue(f"{other} and {path} are both called {run_name(path)}; keep one of them")
    for name in names:
        if by_name and name not in by_name:
            raise UnknownName(f"run file in {folder}", name, by_name)
    return [path for name, path in by_name.items() if not names or name in names]


def runs_in(folder: Path) -> list[Path]:
    """Return the run file of a result, or of each system on a collection; of any other folder its run files.

    Raises FormatError without either, BadValue for several collections or splits. Warns (RankingWarning) of
    results omitted for a smaller k, (LossWarning) of other files.
    """
    if (folder / RECORD).exists() or run_file(folder).exists():
        return [rankings_file(folder, record_of(folder))]
    if files := run_files_of(folder):
        return files
    cells = _cells_of(folder)
    places = list(dict.fromkeys(name for name, _ in dataset_names(cells)))
    if len(places) > 1:
        listed = ", ".join(places)
        raise BadValue(f"{folder} holds rankings of {listed}; name the folder of one system on one of them")
    largest, shallower = largest_k(cells)
    for text in shallower:
        warn_of_ranking(text)
    return [cell.run for cell in largest]


def refuse_collections_apart(runs: Sequence[Path], dataset: Dataset | None = None) -> None:
    """Raise BadValue if run files, by their records, rank other documents for other queries than each other
    or `dataset`.

    Warns (RankingWarning) if only documents, queries or the rule for self-matches differ.
    """
    first: tuple[Path, object, object] | None = None
    kept: dict[bool, Path] = {}
    others: dict[str, None] = {}
    for run in runs:
        record = record_of(run.parent)
        if record is not None and {"corpus", "queries"} <= record.declared.keys():
            documents, queries = record.declared["corpus"], record.declared["queries"]
            first = first or (run, documents, queries)
            kept.setdefault(record.declared.get("self_match") != "drop", run.parent)
            both = f"{first[0].parent} and {run.parent}"
            if documents != first[1] and queries != first[2]:
                what = "are rankings of two collections: other documents and other queries"
                raise BadValue(f"{both} {what}")
            if documents != first[1]:
                others[f"{both} ranked other documents for the same queries"] = None
            if queries != first[2]:
                others[
                    f"{both} ranked the same documents for other queries, as of two splits, or candidates"
                ] = None
            if dataset is not None:
                there = dataset.layout
                asked = there.queries is not None and there.qrels and queries != dataset.queries_fingerprint
                ranked = there.documents is not None and documents != dataset.corpus.fingerprint
                if asked and ranked:
                    what = "is a ranking of another collection than"
                    raise BadValue(
                        f"{run.parent} {what} {dataset.name}: other documents and queries; name its own"
                    )
                if asked or ranked:
                    what = (
                        "ranked other documents" if ranked else "was asked other queries, texts or candidates"
                    )
                    others[f"{run.parent} {what} than {dataset.name}:{dataset.split} has"] = None
    if len(kept) == 2:
        others[f"self-matches were left out of {kept[False]} when it was made, not of {kept[True]}"] = None
    for said in others:
        warn_of_ranking(said)


def _cells_of(folder: Path) -> list[ResultCell]:
    inner = not any(folder.glob(f"*/*/{SCORES}")) and any(folder.glob(f"*/{SCORES}"))
    place = folder.resolve()
    cells = finished_cells(place.parent if inner else folder, unjudged=True)
    return [cell for cell in cells if not inner or cell.folder.parent == place]


def cell_of(folder: Path, rows: Sequence[Row], split: str) -> ResultCell:
    """Return the finished result of a split in a folder, with these rows; raises StoreError if it was
    removed.
    """
    alike = (cell for cell in _cells_in(folder) if cell.split == split and bool(rows) == bool(cell.rows))
    cell = next((cell for cell in alike if all(row in cell.rows for row in rows)), None)
    if cell is None:
        raise StoreError(f"{folder}: removed while the grid ran, by another process; run the grid again")
    return replace(cell, rows=tuple(rows))


def each_result_once(cells: Iterable[ResultCell]) -> list[ResultCell]:
    """Return the results without repetition, as of a run file and its copy."""
    return list({(cell.folder, cell.split): cell for cell in cells}.values())


def finished_cells(root: Path | str, unjudged: bool = False) -> list[ResultCell]:
    """Return a folder's finished results, in the order of requests, then by time.

    unjudged: include collections without judgments.

    Warns (LossWarning) of unreadable records. Raises FormatError without a result.
    """
    root = path_of(root)
    groups, damaged = _by_folder(root)
    order, damage = _read_order(root)
    for text in (*damaged, *filter(None, [damage])):
        give_warning(LossWarning(text))
    return _finished(root, groups, order, unjudged)


def finished_and_lacking(
    root: Path, datasets: Sequence[str] = (), systems: Sequence[str] = ()
) -> tuple[list[ResultCell], list[str]]:
    """Return (finished results, sentences on missing results, unreadable records and unscored rankings).

    datasets, systems: mention only these, as by `chosen_cells`.

    Raises FormatError without a result.
    """
    groups, damaged = _by_folder(root)
    order, damage = _read_order(root)
    damaged += filter(None, [damage])
    cells = _finished(root, groups, order)
    scored = {(cell.dataset, cell.system) for cell in cells}
    lacking: dict[str, list[str]] = {}
    for group in groups:
        for cell in () if any(one.rows for one in group) else group:
            if (not datasets or cell.dataset in datasets) and (cell.dataset, cell.system) not in scored:
                lacking.setdefault(cell.dataset, []).append(cell.system)
    remedy = "weir labels pool writes what to judge, and the same weir run scores them by judgments"
    missing = _missing(order, groups, datasets, systems)
    return cells, damaged + missing + [
        f"{name}: rankings without scores of {', '.join(run_titles(of).values())}: {remedy}"
        for name, of in lacking.items()
    ]


def missing_results(root: Path, datasets: Sequence[str] = (), systems: Sequence[str] = ()) -> list[str]:
    """Return one sentence on the requested results that are missing; [] if none is.

    datasets, systems: as for `chosen_cells`.
    """
    return _missing(GridOrder.read(root), _by_folder(root)[0], datasets, systems)


def _missing(
    order: GridOrder, groups: Sequence[Sequence[ResultCell]], datasets: Sequence[str], systems: Sequence[str]
) -> list[str]:
    there = {(f"{cell.dataset}:{cell.split}", cell.system) for group in groups for cell in group}
    chosen = {member for name in datasets for member in catalogue.members(name)}
    every = dict.fromkeys(system for names in order.asked.values() for system in names)
    titles = run_titles(list(every)) | {name: title for name, title in order.labels.items() if name in every}
    meant = {name for text in systems for name in _meant(text, titles)} if systems else set(every)
    asked = [
        (split, system)
        for split, names in order.asked.items()
        for system in names
        if system in meant and (not datasets or chosen & {split, split.rpartition(":")[0]})
    ]
    missing = [(split, system) for split, system in asked if (split, system) not in there]
    if not missing:
        return []
    lack = part_of(len(missing), len(asked), "results asked for", "is missing", "are missing")
    named = _first_named([f"{titles[system]} on {split}" for split, system in missing])
    return [f"{lack}: {named}; the same weir run makes what is missing"]


def _first_named(names: Sequence[str]) -> str:
    shown = ", ".join(names if len(names) <= _NAMED + 1 else names[:_NAMED])
    return shown + ("" if len(names) <= _NAMED + 1 else f" and {len(names) - _NAMED:,} more")


def nothing_finished(root: Path, missing: Sequence[str]) -> FormatError:
    """Return the error that a run began in a folder and finished nothing; `missing` is from
    `missing_results`.
    """
    return FormatError(root, "no finished result of weir run", f"one or more: {missing[0]}")


def without_results(
    cells: Iterable[ResultCell], dataset: str, called: Callable[[str], str]
) -> tuple[str, ...]:
    """Return a sentence on the systems without results on a dataset; () if each has some.

    called: returns a system's short name for its label.
    """
    on = dict[str, bool]()
    for cell in cells:
        on[cell.label] = on.get(cell.label, False) or cell.dataset == dataset
    lacking = [called(label) for label, there in on.items() if not there]
    return (f"Without results on {dataset}: {_first_named(lacking)}.",) * bool(lacking)


def _meant(text: str, titles: Mapping[str, str]) -> set[str]:
    begun = {name for name in titles if name.startswith(text)}
    return systems_called(text, titles) or _equivalent(text, titles) or begun


def _by_folder(root: Path) -> tuple[list[list[ResultCell]], list[str]]:
    files: dict[Path, list[Path]] = {}
    for path in sorted(root.glob(f"*/*/{SCORES}")):
        files.setdefault(path.parent, []).append(path)
    records: dict[Path, Record | None] = {}
    groups = [_cells_in(folder, paths, records) for folder, paths in sorted(files.items())]
    # A record that is read alone is whole; which one is not is sought where fewer scores came out than lie there.
    suspect = [folder for folder, group in zip(sorted(files), groups, strict=True)
               if sum(len(cell.scored) for cell in group) < len(files[folder])]  # fmt: skip
    damaged = [
        text for folder in suspect for path in (folder / RECORD, *files[folder]) for text in _damage(path)
    ]
    return [group for group in groups if group], damaged


def _damage(path: Path) -> list[str]:
    try:
        read_record(path)
    except StoreError as error:
        return [f"left out: {error}"]
    return []


def no_folder(root: Path) -> str:
    """Return a phrase on why a path is no results folder; raises FormatError for a pack of results."""
    refuse_pack(root)
    return "a file" if root.exists() else "no such folder"


def _finished(
    root: Path, groups: Sequence[Sequence[ResultCell]], order: GridOrder, unjudged: bool = False
) -> list[ResultCell]:
    scored = {cell.dataset for group in groups for cell in group if cell.rows}

    def counts(cell: ResultCell) -> bool:
        if cell.rows:
            return True
        last = _asked(cell, order)
        return unjudged and (cell.dataset not in scored or last == cell.judgments)

    kept = [[cell for cell in group if counts(cell)] for group in groups]
    counting = [_counting(of, order) for group in kept for of in _of_splits(group)]
    cells = _marked_older(_marked_outdated(_without_copies(counting), order), order)
    if not cells:
        if groups:
            remedy = "scores; weir labels pool FOLDER -o pool/ writes what to judge, and weir run scores by judgments"
            raise FormatError(root, "rankings of collections without judgments alone", remedy)
        if not root.is_dir():
            other = "; weir data import reads files of other tools" * root.is_file()
            raise FormatError(root, no_folder(root), f"a folder written by weir run{other}")
        if next(root.glob(f"*/*/{OLD}"), None) is not None:
            raise FormatError(root, f"results {AGAIN}", "a folder of this version")
        if next(root.glob(f"*/{SCORES}"), None) is not None:
            above = root.resolve().parent
            raise FormatError(root, "the results of one collection", f"the folder above, {above}")
        there = next(
            (one for one in (root / "runs", root) if one.is_dir()), root
        )  # an import writes runs there
        files = f", or run files by their own names, as in {there}/*" * any(
            map(Path.is_file, there.iterdir())
        )
        if missing := _missing(order, groups, (), ()):
            raise nothing_finished(root, missing)
        raise FormatError(root, "no result of weir run", f"a folder that it wrote{files}")
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


def _without_copies(cells: Sequence[ResultCell]) -> list[ResultCell]:
    # Of a folder that was copied within the results, the one with the last scores.
    kept: dict[tuple[object, ...], ResultCell] = {}
    for cell in sorted(cells, key=lambda cell: (_when(cell), cell.folder.parent.name == cell.dataset)):
        same = cell.dataset, cell.split, cell.system, *_marks(cell), tuple(cell.ranked.files.items())
        if same in kept:
            give_warning(LossWarning(f"left out: {kept[same].folder}: a copy of {cell.folder}"))
        kept[same] = cell
    return list(kept.values())


def damaged_records(root: Path) -> list[str]:
    """Return a sentence on each unreadable record of a results folder."""
    problems = []
    for pattern in (f"*/*/{RECORD}", f"*/*/{SCORES}"):
        problems += [text for path in sorted(root.glob(pattern)) for text in _damage(path)]
    return problems


def dataset_of(cell: ResultCell, collection: str | Path | Dataset | None = None) -> Dataset | None:
    """Return a result's collection, loaded: `collection`, unchecked, else from its recorded place or the
    catalogue.

    None if neither has the recorded content; downloads nothing. Raises the errors of `load` for `collection`.
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
    """Return the recorded name, path or reference of a result's collection; "" if unknown."""
    return str(cell.scored[-1][1].facts.get("collection", ""))


def place_to_name(cell: ResultCell) -> str:
    """Return a result's collection for a command on another machine: its catalogue name if of equal content,
    else as recorded.
    """
    place = recorded_place(cell) or cell.collection
    if is_reference(place) or catalogue_name(place) or cell.collection not in catalogue.collection_names():
        return place
    measured = dict(cell.settings).get("fingerprint")
    with suppress(WeirError, OSError):  # the catalogue's copy is not here
        if load_here(cell.collection, cell.split).fingerprint == measured:
            return cell.collection
    with suppress(WeirError, OSError):  # it is not where it was measured
        dataset, content = dataset_of(cell), catalogue.get(cell.collection).content
        if content and dataset is not None and content_of(dataset) == content:
            return cell.collection
    return place


UNKNOWN_PLACE = "PATH"
"""Stands in commands for the folder of a collection without a recorded path."""


def started_in(cell: ResultCell) -> str:
    """Return the folder where a result was scored, from which relative paths begin; "" if unknown."""
    return str(cell.scored[-1][1].facts.get("started_in", ""))


def whereabouts(cell: ResultCell) -> str:
    """Return where a missing collection was: "was in memory", or a phrase with its recorded place."""
    if was_in_memory(cell.scored[-1][1].facts):
        return "was in memory"
    return f"is not at {recorded_place(cell) or cell.collection}, or not as it was measured"


def was_in_memory(facts: Mapping[str, object]) -> bool:
    """Return True if recorded facts name a collection made in Python and deleted with the process."""
    name = Path(str(facts.get("collection", ""))).name
    return name.startswith(OWN_FOLDER) and not facts.get("started_in")


def name_given(cell: ResultCell, base: str | None = None) -> str:
    """Return the collection's name for `weir run -d`, with a split other than `test`.

    base: folder from which to write a local path, None for an absolute path; with "", or for results from
        elsewhere, a placeholder.
    """
    name = (recorded_place(cell) or cell.dataset) if base is None else place_to_name(cell)
    if base is not None and Path(name).is_absolute():
        name = _path_from(name, base) if base and started_in(cell) else f"{UNKNOWN_PLACE}/{cell.dataset}"
    unusual = cell.split not in ("", "test") and not name.endswith(f":{cell.split}")
    return f"{name}:{cell.split}" if unusual else name


def _path_from(place: str, base: str) -> str:
    try:
        if os.path.commonpath([place, base]) == Path(place).anchor:
            return place
        path = Path(os.path.relpath(place, base)).as_posix()
    except ValueError:  # on another drive
        return place
    return path if path.startswith("../") else f"./{path}"


def without_command(cell: ResultCell) -> str:
    """Return why no command here repeats a result, such as "mine (made in Python; ...)"; "" if one does."""
    if objects := given_objects(cell):
        return f"{cell.system} (made in Python; {'; '.join(map(str, objects))})"
    try:
        parse_system(cell.system)
    except UnknownName as error:
        return (
            f"{cell.system} ({str(error).partition(';')[0]}; a package that brings it is not installed here)"
        )
    except WeirError:  # a setting that only the machine of the results has
        pass
    return ""


@dataclass(frozen=True)
class GivenObject:
    """A user's Python function or object in a result's system."""

    name: str
    version: str | None
    """None for an object without a version."""
    made_of: str
    """Its function or class; "" if no record tells."""
    checkpoint: str
    """Checkpoint of its model; "" for none."""

    def __str__(self) -> str:
        of = f" of {self.checkpoint}" * (self.checkpoint not in ("", self.name))
        version = "without a version" if self.version is None else f"version {self.version}"
        return f"{self.name}: {self.made_of or 'an object'}{of}, {version}"


def given_objects(cell: ResultCell) -> list[GivenObject]:
    """Return the user's Python functions and objects in a result's system, each once."""
    made: dict[str, Any] = {}
    for _, record in cell.stages:
        made |= record.made.get("objects") or {}
    found = {str(one.get("name")): one.get("version") for one in _objects(cell.ranked.declared.get("system"))}
    return [
        GivenObject(
            name, version, *(str(made.get(name, {}).get(fact, "")) for fact in ("class", "checkpoint"))
        )
        for name, version in found.items()
    ]


def stages_of_object(cell: ResultCell, one: GivenObject) -> list[Record]:
    """Return the records of a result's stages that used a user's object, inputs first."""
    return [
        record
        for _, record in cell.stages
        if any(found.get("name") == one.name for found in _objects(record.declared))
    ]


def _objects(described: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(described, Mapping):
        if "object" in described or "object" in (described.get("system"), described.get("reranker")):
            yield described
        described = tuple(described.values())
    if isinstance(described, Sequence) and not isinstance(described, str):
        for one in described:
            yield from _objects(one)


def cell_collection(cell: ResultCell, fetch: bool = False) -> Dataset | None:
    """Return a result's collection from its recorded place; None if it cannot be loaded or has other
    judgments.

    fetch: download it if necessary.
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
    """Return ((result, its collection or None) pairs, sentences on omitted results).

    by: groups of queries; collections are loaded only if it names a column.
    collections: each NAME=PATH or PATH.

    Omits results whose collection is not here, unless none is. Raises the errors of `collection_places`.
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
    """Return a sentence on why a result's collection was not read, and how to say where it is now."""
    return (
        f"the collection {whereabouts(cell)}; "
        f"say where it lies now with `collection={ {cell.collection: 'PATH'} }`"
    )


def collection_of_cell(
    cell: ResultCell, places: Mapping[str, str | Path | Dataset], fetch: bool = False
) -> Dataset | None:
    """Return a result's collection, loaded unchecked from {collection: name, path or Dataset}, else as by
    `cell_collection`.

    Raises the errors of `load` for `places`.
    """
    place = places.get(cell.collection)
    if place is None:
        return cell_collection(cell, fetch)
    return place if isinstance(place, Dataset) else load(place, cell.split)


def collection_places(
    cells: Sequence[ResultCell], collections: Sequence[str | Path | Dataset]
) -> dict[str, str | Path | Dataset]:
    """Return {recorded name: where it is now} of collections given as NAME=PATH, or PATH if unambiguous.

    Raises UnknownName for a name without results, BadValue for an ambiguous path.
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
    """Return (NAME, PATH) of a text NAME=PATH; ("", `collection`) for an existing path, a Dataset or another
    text.
    """
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


def _cells_in(
    folder: Path, scores: Sequence[Path] | None = None, records: dict[Path, Record | None] | None = None
) -> list[ResultCell]:
    records = {} if records is None else records
    stages = tuple(_stages(folder, records, set()))
    if not stages:
        return []
    ranked = stages[-1][1]
    by_qrels: dict[tuple[object, ...], list[tuple[Path, Record]]] = {}
    for path in sorted(folder.glob(SCORES)) if scores is None else scores:
        record = record_of(folder, path.name)
        if record is not None and record.declared.get("run") == ranked.stage.key:
            qrels, measures, interval = (record.declared.get(n) for n in ("qrels", "measures", "interval"))
            if not (isinstance(qrels, str) and isinstance(measures, dict) and isinstance(interval, dict)):
                raise FormatError(path, "another layout", "a record of weir run")
            of = qrels, record.facts.get("dataset"), record.facts.get("split")
            by_qrels.setdefault(of, []).append((path, record))
    return [_cell(folder, ranked, scored, stages) for scored in by_qrels.values()]


def _stages(
    folder: Path, records: dict[Path, Record | None], visited: set[Path]
) -> Iterator[tuple[Path, Record]]:
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


def _of_splits(cells: Sequence[ResultCell]) -> list[list[ResultCell]]:
    by_split: dict[tuple[str, str], list[ResultCell]] = {}
    for cell in cells:
        by_split.setdefault((cell.dataset, cell.split), []).append(cell)
    return list(by_split.values())


def _when(cell: ResultCell) -> str:
    return str(cell.scored[-1][1].made.get("when"))


def _counting(cells: Sequence[ResultCell], order: GridOrder) -> ResultCell:
    counting = _asked(cells[0], order)
    last = max(cells, key=lambda cell: (cell.judgments == counting, _when(cell)))
    return replace(last, superseded=len(cells) - 1, title=order.labels.get(last.system, ""))


def _marked_outdated(cells: Sequence[ResultCell], order: GridOrder) -> list[ResultCell]:
    # The current judgments of a split are the last requested, or, if no cell was scored by them, the last used.
    last: dict[tuple[object, ...], tuple[bool, str, str]] = {}
    for cell in cells:
        asked, when = (
            cell.judgments == _asked(cell, order),
            _when(cell),
        )
        split = answered_texts(cell)[0], cell.dataset, cell.split
        last[split] = max(last.get(split, (False, "", "")), (asked, when, cell.judgments))
    return [
        replace(cell, outdated=cell.judgments != last[answered_texts(cell)[0], cell.dataset, cell.split][-1])
        for cell in cells
    ]


def _marked_older(cells: Sequence[ResultCell], order: GridOrder) -> list[ResultCell]:
    # The current version of a place is the last asked for, or, if nothing was scored on it, the last scored.
    # Splits of a place share its documents.
    newest: dict[str, tuple[bool, bool, str, str, str]] = {}

    def keep_newest(mark: str, cell: ResultCell, asked: str, current: bool) -> None:
        last = (current, asked == order.versions.get(mark), _when(cell), asked, cell.asked)
        newest[mark] = max(newest.get(mark, last), last)

    placed = [(cell, place) for cell in cells if (place := recorded_place(cell))]
    for cell, place in placed:
        keep_newest(split_mark(cell.dataset, "", place), cell, cell.origin.texts.split(" ")[0], True)
    for cell, place in placed:
        documents = newest[split_mark(cell.dataset, "", place)][-2]
        current = cell.origin.texts.split(" ")[0] == documents
        keep_newest(split_mark(cell.dataset, cell.split, place), cell, cell.origin.texts, current)

    def newer(cell: ResultCell) -> str:
        if not (place := recorded_place(cell)):
            return ""
        of_place, of_split = (newest[split_mark(cell.dataset, of, place)] for of in ("", cell.split))
        if cell.origin.texts != of_split[-2]:
            return of_split[-1]
        return "" if of_split[0] else of_place[-1]

    return [replace(cell, newer=newer(cell)) for cell in cells]


def newest_cells(cells: Sequence[ResultCell]) -> tuple[list[ResultCell], list[str]]:
    """Return (results on the newest version of their collection, a sentence on each older version)."""
    older = [cell for cell in by_split(cells) if cell.newer]
    return [cell for cell in cells if not cell.newer], [
        f"{name} was measured before its documents or queries changed, and is left out"
        for name in dict.fromkeys(cell.dataset for cell in older)
    ]


def current_cells(cells: Sequence[ResultCell]) -> tuple[list[ResultCell], list[str]]:
    """Return (results scored by current judgments, a sentence on each other result)."""
    outdated = [cell for cell in cells if cell.outdated]
    problem = "was scored by other judgments than the last ones asked for, and does not compare"
    remedy = "left out; the same weir run scores it again"
    current = [cell for cell in cells if not cell.outdated] if outdated else list(cells)
    return _labelled(current), [f"{cell.called} on {cell.dataset} {problem}: {remedy}" for cell in outdated]


def _labelled(cells: list[ResultCell]) -> list[ResultCell]:
    groups, labelled = _of_one_name(cells), list[ResultCell]()
    titles = run_titles(list(dict.fromkeys(cell.system for cell in cells)))
    titles |= {cell.system: row.title for cell in cells for row in cell.rows if row.title}
    given = {
        cell.system: cell.title.removesuffix(cell.label.removeprefix(cell.system))
        for cell in cells
        if cell.title
    }
    taken = {*titles, *titles.values()}  # a label must not look like another system
    titles |= {system: title for system, title in given.items() if title not in taken}
    for cell in cells:
        group = groups[cell.dataset, cell.system]
        if _differ_in_depth(group):
            mark_texts = [] if cell.depth == max(one.depth for one in group) else [f"k={cell.depth}"]
        else:
            marks = [_marks(one) for one in group]
            varies = [len(set(column)) > 1 for column in zip(*marks, strict=True)]
            mark_texts = [mark for mark, differs in zip(_marks(cell), varies, strict=True) if differs]
            mark_texts += [cell.folder.parent.name] * (marks.count(_marks(cell)) > 1)
        end = f" #{' '.join(mark_texts)}" if mark_texts else ""
        title = titles[cell.system] + end if titles[cell.system] != cell.system else ""
        labelled.append(replace(cell, label=cell.system + end, title=title))
    shared = {(one.called, one.label) for one in labelled}
    times = Counter(called for called, _ in shared)
    return [replace(one, title="") if times[one.called] > 1 else one for one in labelled]


def largest_k(cells: Sequence[ResultCell]) -> tuple[list[ResultCell], list[str]]:
    """Return (results, sentences on omitted ones), keeping the largest k of results that differ only in k."""
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
    """Raise FormatError for wrong types in a result's records, within the block."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise FormatError(folder / RECORD, "another layout", "a record of weir run") from None


def index_cost(cell: ResultCell) -> dict[str, Any]:
    """Return a result's index costs: summed seconds, documents, peak memory, bytes; {} without an index.

    "in_memory" counts unstored indexes. Raises FormatError for damage.
    """
    with as_weir_writes_it(cell.folder):
        records = [record for _, record in cell.stages if record.kind == "index"]
        memory = _in_memory(cell)
        if not records and not memory:
            return {}
        costs = _summed([*(r.cost for r in records), *memory])
        costs |= {"bytes": sum(r.facts["bytes"] for r in records)}
        costs |= {"documents": max(one["documents"] for one in [*(r.facts for r in records), *memory])}
        costs |= {"reused": sum(r.facts.get("reused", 0) for r in records), "in_memory": len(memory)}
        return costs | {"cached_queries": any(r.facts.get("cached_queries") for r in records)}


def _in_memory(cell: ResultCell) -> list[Mapping[str, Any]]:
    found = [r.facts.get(IN_MEMORY_INDEXES, {}) for _, r in cell.stages if r.kind == "run"]
    return list({key: cost for of in found for key, cost in of.items()}.values())


def search_cost(cell: ResultCell) -> dict[str, Any]:
    """Return the summed costs of a result's rankings, with recorded facts; raises FormatError for damage.

    For rankings read from a file, "seconds" and "peak_mb" are None, "single_query_ms" is empty.
    """
    with as_weir_writes_it(cell.folder):
        records = [record for _, record in cell.stages if record.kind == "run"]
        # Rankings without self-matches are those of the stage before them, which was searched.
        searched = next((r for r in reversed(records) if "single_query_ms" in r.facts), cell.ranked)
        services = [use for record in records for use in record.facts.get("services", [])]
        found = {
            **searched.facts,
            **cell.ranked.facts,
            **_summed([r.cost for r in records]),
            "services": services,
        }
        if all(map(_measured, records)):
            return found
        lacking: dict[str, Any] = {"seconds": None, "peak_mb": None, "single_query_ms": {}, "measured": False}
        return {**found, **lacking}


def _measured(record: Record) -> bool:
    # Records before 0.3 tell only by the system that they declare.
    declared = record.declared.get("system")
    stored = isinstance(declared, Mapping) and declared.get("system") == "run"
    return record.facts.get("measured") is not False and not stored


def total_seconds(cell: ResultCell) -> float | None:
    """Return the seconds that a result's indexes and rankings took; None if some are unknown."""
    records = [record for _, record in cell.stages]
    costs = [*(r.cost for r in records), *_in_memory(cell)]
    return sum(float(one["seconds"]) for one in costs) if all(map(_measured, records)) else None


def search_seconds(cells: Iterable[ResultCell]) -> float | None:
    """Return the total seconds of these results' known searches, each counted once; None if all are unknown."""
    seconds: dict[Path, float] = {}
    for cell in cells:
        with as_weir_writes_it(cell.folder):
            for folder, record in cell.stages:
                if record.kind == "run" and _measured(record):
                    seconds[folder] = float(record.cost.get("seconds") or 0)
    return sum(seconds.values()) if seconds else None


def _said_of(cell: ResultCell) -> list[Note]:
    with as_weir_writes_it(cell.folder):
        texts = [str(t) for _, r in cell.stages if r.kind == "run" for t in r.facts.get("notes", ())]
        empty = int(cell.scored[-1][1].facts.get("without_relevant", 0)) if cell.rows else 0
    other = not_as_published(cell)
    said = [other] * bool(other)
    if empty:
        said.append(without_relevant(empty, cell.rows[0].queries))
    warned = [Note(text, decisive=tells_of_removed(text)) for text in texts]
    return list(dict.fromkeys([*map(Note, said), *warned]))


def removed_answers(cells: Iterable[ResultCell]) -> dict[tuple[str, str], str]:
    """Return {(dataset, system's title): sentence} of results without their answers outside the collection."""
    said = [(cell, note.text) for cell in cells for note in _said_of(cell)]
    return {(cell.dataset, cell.called): text for cell, text in said if tells_of_removed(text)}


def _own_said(cell: ResultCell) -> str:
    with as_weir_writes_it(cell.folder):
        facts = cell.scored[-1][1].facts
        first, near = map(int, facts.get("own", (0, 0)))
        rankings = int(facts.get("answered", 0)) + int(facts.get("unjudged_queries", 0))
    own = own_documents_said(first, near, rankings)
    return own and f"{own}; drop-self leaves it out"


def not_as_published(cell: ResultCell, called: str = "") -> str:
    """Return a sentence on how a result's collection differs from the catalogue's; "" if no score depends on
    it.

    called: published name of the collection, by default its own.
    """
    name = catalogue.original(called or cell.collection)
    if name not in catalogue.collection_names():
        return ""
    usual = catalogue.get(name).split == cell.split and bool(cell.rows)
    differences = catalogue.other_counts(
        name, cell.queries if usual else None, cell.documents, cell.grades if usual else None
    )
    decisive = tuple(one for one in differences if catalogue.changes_scores(one[0]))
    return catalogue.not_as_published(called or cell.collection, decisive) if decisive else ""


def unscored_notes(cells: Sequence[ResultCell]) -> list[str]:
    """Return a sentence for each collection and re-ranker that left candidates unscored at the default depth."""
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
    """Return (candidates left unscored, all candidates), summed over a result's re-rankers."""
    with as_weir_writes_it(cell.folder):
        reranked = [record.facts.get("reranked", {}) for _, record in cell.stages]
        unscored, candidates = (
            sum(int(one.get(name, 0)) for one in reranked) for name in ("unscored", "candidates")
        )
    return unscored, candidates


def unscored_note(system: str, unscored: int, candidates: int, bound: str = "") -> str:
    """Return a sentence on how many candidates a re-ranker left unscored; `bound`, such as "up to ", precedes
    the number.
    """
    return f"{system} leaves {bound}{unscored:,} of {candidates:,} candidates unscored, beyond its depth"


def _summed(of: list[Mapping[str, Any]]) -> dict[str, Any]:
    costs: dict[str, Any] = {
        "seconds": sum(one["seconds"] for one in of),
        "peak_mb": max(one["peak_mb"] for one in of),
        "compile_seconds": sum(one.get("compile_seconds", 0.0) for one in of),
    }
    api = [one["api"] for one in of if "api" in one]
    names = dict.fromkeys(name for one in api for name in one)
    return costs | ({"api": {name: sum(one.get(name, 0) for one in api) for name in names}} if api else {})


# ----------
# Rows and notes of a results folder.


def rows_with_groups(cells: Sequence[ResultCell]) -> list[Row]:
    """Return the means of all results by measure, then those over complete groups of datasets."""
    return [*(row for cell in cells for row in cell.named_rows()), *group_rows(cells)]


def group_rows(cells: Sequence[ResultCell]) -> list[Row]:
    """Return the means over groups whose members all count, by measure and system of equal k; [] without any."""
    whole = catalogue.whole_groups(cell.dataset for cell in cells if not cell.origin.uncounted)
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
    """Return the notes on provenance, rankings and judgments to print with scores by these measures, by
    default all.
    """
    scored = set(scored_measures(cells))
    shown = scored.intersection(measures) or scored
    rows = [row for cell in cells for row in cell.named_rows() if row.measure in shown]
    datasets, of_note = {cell.dataset for cell in cells}, dict[Note, dict[str, None]]()
    for cell in cells:
        for note in _said_of(cell):
            of_note.setdefault(note, {})[cell.dataset] = None
    said = [note if len(of) == len(datasets) else note.about(", ".join(of)) for note, of in of_note.items()]
    unscored = list[Note]()
    own = [f"{one.dataset}, {one.called}: {said_so}" for one in cells if (said_so := _own_said(one))]
    for sentences_of in (unscored_notes(cells), _unread_notes(cells), changed_rankings(cells), own):
        if sentences_of:
            first, *more = sentences_of
            so_do = f"; {len(more)} more alike" if more else ""
            unscored.append(Note(first + so_do, "; ".join(more)))
    changed = sum(cell.superseded > 0 for cell in cells)
    before = f"{counted(changed, 'ranking')} {one_or_more(changed, 'was', 'were')} scored by other judgments before"
    judgments = [Note(f"{before}; the last ones asked for count")] if changed else []
    alike = look_alike_notes(name for cell in cells for name in (cell.called, cell.dataset))
    alike += [*counted_notes(cells), *_same_rankings(cells)]
    made = [*map(Note, [*alike, *mixed_provenance(cells, shown)]), *judgments, *said]
    depths = dict.fromkeys([*_short_rankings(cells, shown), *unequal_depths(cells, shown)])
    return [*made, *depths, *unscored, *row_notes(rows), *_tied_cut_notes(cells, shown)]


def counted_notes(cells: Sequence[ResultCell]) -> list[str]:
    """Return sentences on datasets that a mean over datasets leaves out, or whose queries it counts twice."""
    counting = {c.dataset: row.repeats or c.dataset * (not row.older) for c in cells for row in c.rows[:1]}
    said = repeated_notes(counting, dict.fromkeys(cell.dataset for cell in cells if cell.newer))
    return said + shared_notes({c.dataset: c.query_marks for c in cells if not c.origin.uncounted})


def changed_rankings(cells: Iterable[ResultCell]) -> list[str]:
    """Return a sentence for each result whose run file has another size than recorded; missing files are
    skipped.
    """
    return [said for cell in cells for said in _changed_files(cell.folder, cell.ranked)]


def _same_rankings(cells: Iterable[ResultCell]) -> list[str]:
    alike, pairs = dict[object, list[ResultCell]](), dict[tuple[str, str], list[str]]()
    for cell in cells:
        if cell.rows and not search_cost(cell)["services"]:  # whose prompts are compared, too
            figures = cell.rows[0].answered, cell.rows[0].judged_at_10, cell.longest
            alike.setdefault((cell.dataset, *figures), []).append(cell)
    for one, other in (pair for of in alike.values() for pair in combinations(of, 2)):
        shared = shared_measures(one, other)
        if shared and all(str(one.mean(name)) == str(other.mean(name)) for name in shared):
            with suppress(WeirError, OSError), silent():  # a file is missing or damaged, of which others tell
                if read_run(one.run).to_dict() == read_run(other.run).to_dict():
                    pairs.setdefault((other.called, one.called), []).append(one.dataset)
    return [
        f"{other} has the rankings of {first}, score by score: one system counts as two on {', '.join(of)}"
        for (other, first), of in pairs.items()
    ]


def _tied_cut_notes(cells: Sequence[ResultCell], shown: set[str]) -> list[Note]:
    tied = [
        cell
        for cell in cells
        if cell.tied_beyond
        and any(reaches(parse_measure(r.measure), cell.depth) for r in cell.rows if r.measure in shown)
    ]
    if not tied:
        return []
    most = max(tied, key=lambda cell: cell.tied_beyond or 0)
    note = tied_cut_note(most.depth, most.tied_beyond or 0, known=True)
    more = f", {len(tied) - 1:,} more alike" if len(tied) > 1 else ""
    return [note if len(cells) == 1 else note.about(f"{most.called} on {most.dataset}{more}")]


def _short_rankings(cells: Sequence[ResultCell], shown: set[str]) -> list[Note]:
    by_depth: dict[int, set[str]] = {}
    for cell in cells:
        by_depth.setdefault(cell.depth, set()).update(
            row.measure for row in cell.rows if row.measure in shown
        )
    return [
        note if len(by_depth) == 1 else note.about(f"k={depth}")
        for depth, measures in sorted(by_depth.items())
        for note in shallow_notes(depth, measures)
    ] + _cut_notes(cells, shown)


def _cut_notes(cells: Sequence[ResultCell], shown: set[str]) -> list[Note]:
    by_cut: dict[tuple[str, int], set[str]] = {}
    for cell in cells:
        if cell.cut is not None:
            measures = {row.measure for row in cell.rows if row.measure in shown}
            by_cut.setdefault((cell.called, cell.cut), set()).update(measures)
    return [
        note.about(name)
        for (name, cut), measures in sorted(by_cut.items())
        for note in shallow_notes(cut, measures)
    ]


def unequal_depths(cells: Sequence[ResultCell], measures: Iterable[str]) -> list[Note]:
    """Return notes on systems with much longer rankings than others, and on measures whose cut-off exceeds a
    system's k.
    """
    of_dataset: dict[str, dict[str, int]] = {}
    whole: dict[str, set[str]] = {}
    names = set(measures)
    shown = [name for name in scored_measures(cells) if name in names]
    having: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        of_dataset.setdefault(cell.dataset, {})[cell.called] = cell.longest
        whole.setdefault(cell.dataset, set()).update([cell.called] * cell.whole)
        of_measure = having.setdefault(cell.dataset, {name: [] for name in shown})
        for name in shown:
            of_measure[name] += [cell.called] * (cell.mean(name) is not None)
    notes = [
        note.about(dataset)
        for dataset, of in of_dataset.items()
        for note in depth_notes(of, having[dataset], whole[dataset])
    ]
    return notes + (_short_rankings(cells, names) if len({cell.depth for cell in cells}) > 1 else [])


def mixed_provenance(cells: Sequence[ResultCell], measures: Collection[str] = ()) -> list[str]:
    """Return sentences on results of one name that differ in algorithms (of `measures`, by default all),
    settings, k or collections.
    """
    sentences = other_algorithms(
        {
            f"{cell.dataset} {cell.called}": {
                "bootstrap interval": str(cell.scored[-1][1].declared["interval"].get("algorithm")),
                **{
                    f"measure {measure}": number
                    for measure, number in cell.origin.algorithms.items()
                    if not measures or measure in measures
                },
            }
            for cell in cells
        }
    )
    depths: dict[str, dict[int, str]] = {}
    for cell in cells:
        depths.setdefault(cell.called, {}).setdefault(cell.depth, cell.dataset)
    sentences += [
        f"{name} answered with different k: {', '.join(f'{k} on {dataset}' for k, dataset in several.items())}"
        for name, several in depths.items()
        if len(several) > 1
    ]
    makers: dict[str, dict[tuple[object, ...], str]] = {}
    for cell in cells:
        if of := tuple(sessions(cell.ranked.declared)):
            makers.setdefault(cell.called, {}).setdefault(of, cell.dataset)
    sentences += [
        f"{name} has no version, and {len(several)} objects of that name answered ({', '.join(several.values())}): "
        "scores and means may mix models; a version, as in weir.encoder(model, version='2'), tells them apart"
        for name, several in makers.items()
        if len(several) > 1
    ]
    for one, other in pairwise(sorted(cells, key=lambda cell: (cell.dataset, cell.system))):
        if (one.dataset, one.system) == (other.dataset, other.system):
            names = [name for name, *_ in setting_changes(one.ranked.stage, other.ranked.stage)]
            what = ", ".join(names[:4]) or "rankings, of equal settings"
            sentences.append(f"{one.dataset}: {one.called} and {other.called} differ in {what}")
    places: dict[str, dict[str, str]] = {}
    for cell in cells:
        if cell.unit not in ("", cell.collection) and not cell.newer:
            places.setdefault(cell.collection, {}).setdefault(cell.unit, recorded_place(cell))
    sentences += [
        f"{name}: {len(of)} collections of this name, of other documents or queries: "
        + ", ".join(f"{unit} from {place}" if place else unit for unit, place in of.items())
        for name, of in places.items()
        if len(of) > 1
    ]
    return sentences


def answered_texts(cell: ResultCell) -> tuple[object, object]:
    """Return the recorded fingerprints of documents and queries, None if not recorded."""
    return cell.ranked.declared.get("corpus"), cell.ranked.declared.get("queries")


# ----------
# What made each cell, stage by stage.


@dataclass(frozen=True)
class Provenance:
    """The records of all stages (index, rankings, scores) that gave a result."""

    dataset: str
    system: str
    stages: tuple[Mapping[str, Any], ...]
    """The records in order, each with "folder" relative to the collection's."""


def provenance_of(cell: ResultCell) -> Provenance:
    """Return the records of all stages that gave a result, in order of computation."""
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
