"""Finished cells of a results folder, each with every setting that its records hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.ids import Ids
from weir.core.query_groups import QueryGroups
from weir.core.result_row import Row
from weir.core.scores import Scores
from weir.datasets.load import Dataset, load, load_here
from weir.datasets.query_grouping import is_column, query_groups
from weir.errors import BadValue, FormatError, StoreError, UnknownName, WeirError
from weir.experiment.grid_order import GridOrder
from weir.experiment.stage_store import run_file
from weir.experiment.task import SCORES, rows_of
from weir.io.runs.scores_file import read_scores
from weir.stages.stage import RECORD, Record, changes, flattened, read_record, records_in
from weir.stats.score_notes import unanswered_note
from weir.systems.expression import parse_system
from weir.systems.grid_expression import single_names

__all__ = [
    "Finished",
    "cell_collection",
    "cell_groups",
    "cell_of",
    "damaged_records",
    "dataset_of",
    "deepest",
    "finished_cells",
    "flattened",
    "given_or_own",
    "of_systems",
    "open_cell",
    "recorded_place",
    "system_titles",
]

EXPECTED = "the folder of a finished cell, such as results/scifact/bm25-0123456789"
OLD = "manifest.json"
AGAIN = "written by Weir 0.1, whose records this version does not read; run the same grid into another folder"


@dataclass(frozen=True, eq=False)
class Finished:
    """A system on a collection, done and written.

    queries: how many are judged; run: the file of its rankings; rows: its means; settings: every setting of the
    records as (dotted name, text); ranked, scored: the records of the rankings and of each set of scores; label: the
    system's name, with its key where another cell of the collection bears the same one.
    """

    folder: Path
    dataset: str
    split: str
    system: str
    queries: int
    run: Path
    rows: tuple[Row, ...]
    settings: tuple[tuple[str, str], ...]
    ranked: Record
    scored: tuple[tuple[Path, Record], ...]
    label: str = ""

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
        scores = _side_by_side(parts, [row.measure for row in self.rows])
        last = self.rows[-1]
        missing = last.queries - last.answered
        note = unanswered_note(missing, last.queries, scores.conventions)
        return replace(
            scores,
            judged_at_10=math.nan if last.judged_at_10 is None else last.judged_at_10,
            remarks=(note,) * bool(missing),
        )


def system_titles(cells: Sequence[Finished]) -> dict[str, str]:
    """What tables call a system whose settings file names it, by the label of its cell."""
    return {row.system: row.title for cell in cells for row in cell.named_rows() if row.title}


def of_systems(cells: Sequence[Finished], systems: Sequence[str]) -> list[Finished]:
    """The cells of these systems; all where none is named.

    A system goes by its name or its label, by any text that prints as its name, a grid too, and by the beginning of its
    name where only one system's name begins so. Raises UnknownName for a system that no cell is of, BadValue for a
    beginning of several.
    """
    if not systems:
        return list(cells)
    names = {name for cell in cells for name in (cell.system, cell.label)}
    wanted: set[str] = set()
    for text in systems:
        exact = {text, *_printed_systems(text)} & names
        begun = {cell.system for cell in cells if cell.system.startswith(text)}
        if not exact and len(begun) > 1:
            raise BadValue(
                f"{text} is the beginning of {len(begun)} systems: {', '.join(sorted(begun))}; name one"
            )
        if not exact and not begun:
            raise UnknownName("system among these results", text, names)
        wanted |= exact or begun
    return [cell for cell in cells if cell.system in wanted or cell.label in wanted]


def _printed_systems(text: str) -> list[str]:
    """The names of the systems that a text stands for; none where this machine does not know them."""
    try:
        return [str(parse_system(one)) for one in single_names(text)]
    except WeirError:
        return []


def open_cell(folder: Path | str) -> Finished:
    """The finished cell in a folder such as results/scifact/bm25-fa19b4d424.

    Raises FormatError for a folder that is none, or one that is not finished.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FormatError(folder, "a file" if folder.exists() else "no such folder", EXPECTED)
    found = list(_cells_in(folder))
    if found:
        return found[-1]
    if (folder / OLD).exists():
        raise FormatError(folder, f"a result {AGAIN}", EXPECTED)
    if (folder / RECORD).exists() or run_file(folder).exists():
        raise FormatError(folder, "an unfinished cell", "a finished one; the same weir run continues it")
    raise FormatError(folder, f"no {RECORD}", EXPECTED)


def cell_of(folder: Path, rows: Sequence[Row]) -> Finished:
    """The finished cell that these rows are of, with them alone; raises StoreError where it is there no more."""
    cell = next((cell for cell in _cells_in(folder) if all(row in cell.rows for row in rows)), None)
    if cell is None:
        raise StoreError(f"{folder}: removed while the grid ran, by another process; run the grid again")
    return replace(cell, rows=tuple(rows))


def finished_cells(root: Path | str) -> list[Finished]:
    """Every finished cell of a results folder, datasets and systems in the order in which each was first asked for.

    Those of which that is not known come last, as they finished. Raises FormatError where there is none.
    """
    root = Path(root)
    folders = sorted({path.parent for path in root.glob(f"*/*/{SCORES}")})
    found = [cell for folder in folders for cell in _cells_in(folder)]
    if not found:
        if not root.is_dir():
            raise FormatError(
                root, "a file" if root.exists() else "no such folder", "a folder written by weir run"
            )
        if next(root.glob(f"*/*/{OLD}"), None) is not None:
            raise FormatError(root, f"results {AGAIN}", "a folder of this version")
        raise FormatError(root, "no finished cell", "a folder written by weir run")
    return _labelled(_in_order(found, GridOrder.read(root)))


def _in_order(cells: Sequence[Finished], order: GridOrder) -> list[Finished]:
    """The cells as they were asked for, then by when the first cell of their dataset, and system, was scored."""
    first: dict[tuple[str, str], str] = {}
    when = {id(cell): min(str(record.made.get("when")) for _, record in cell.scored) for cell in cells}
    for cell in cells:
        for key in (("dataset", cell.dataset), ("system", cell.system)):
            first[key] = min(first.get(key, when[id(cell)]), when[id(cell)])

    def place(cell: Finished) -> tuple[object, ...]:
        dataset, system = order.place(cell.dataset, cell.system)
        of_dataset = (dataset, first["dataset", cell.dataset], cell.dataset)
        return (*of_dataset, system, first["system", cell.system], when[id(cell)], cell.folder.name)

    return sorted(cells, key=place)


def damaged_records(root: Path) -> list[str]:
    """What is wrong with the records of a results folder that cannot be read, in sentences."""
    found = []
    for pattern in (f"*/*/{RECORD}", f"*/*/{SCORES}"):
        for path in sorted(root.glob(pattern)):
            try:
                read_record(path)
            except StoreError as error:
                found.append(f"left out: {error}")
    return found


def dataset_of(cell: Finished, given: str | Path | Dataset | None = None) -> Dataset | None:
    """The collection of a cell: the given one, or the one that its record names, or the catalogue's of that name.

    But for a given one it must be what was measured: its fingerprint is compared. Nothing is asked of the network; None
    where it is not here. Raises what `load` raises for a given one.
    """
    if given is not None:
        return given if isinstance(given, Dataset) else load(given, cell.split)
    measured = dict(cell.settings).get("fingerprint")
    for where in filter(None, dict.fromkeys((recorded_place(cell), cell.dataset))):
        try:
            known = load_here(where, cell.split)
            if known.fingerprint == measured:
                return known
        except WeirError:  # it is not here, or a part of it is missing or damaged
            continue
    return None


def recorded_place(cell: Finished) -> str:
    """Where the collection of a cell was when it was measured: a name of the catalogue, a path or a reference."""
    return str(cell.scored[-1][1].facts.get("collection", ""))


def cell_collection(cell: Finished, fetch: bool = False) -> Dataset | None:
    """The collection that a cell is of, where it is on this machine with the judgments that were used, else None.

    Its record, which may be somebody else's, says where it is. fetch: whether it may be brought here, else nothing is
    asked of the network and nothing is written.
    """
    where = recorded_place(cell)
    if not where:
        return None
    try:
        dataset = load(where, cell.split) if fetch else load_here(where, cell.split)
        same = dataset.qrels_fingerprint == cell.scored[-1][1].declared["qrels"]
    except WeirError:
        return None
    return dataset if same else None


def cell_groups(
    cell: Finished, by: object, queries: Ids, collection: str | None = None, fetch: bool = False
) -> QueryGroups:
    """The groups that `by` names among the queries of a cell.

    collection: whose column it may be, see `given_or_own`; fetch: as `cell_collection` takes it. Raises as
    `query_groups` and `load`.
    """
    if not is_column(by):
        return query_groups(by, queries)
    return query_groups(by, queries, given_or_own(cell, collection, fetch))


def given_or_own(cell: Finished, given: str | None, fetch: bool = False) -> Dataset | None:
    """The given collection where it is the cell's by its name or judgments, or where the cell's own is not here.

    Else the cell's own, so that one collection is never taken for all of a folder; fetch: as `cell_collection` takes
    it. Raises what `load` raises.
    """
    own = cell_collection(cell, fetch)
    if given is None:
        return own
    try:
        known = load(given, cell.split)
    except FormatError:
        if own is None:
            raise
        load(given)  # it is there, without the split of this cell
        return own
    alike = own is None or known.name == cell.dataset or known.qrels_fingerprint == own.qrels_fingerprint
    return known if alike else own


def _cells_in(folder: Path) -> Iterator[Finished]:
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
        yield _finished(folder, ranked, tuple(scored))


def _finished(folder: Path, ranked: Record, scored: tuple[tuple[Path, Record], ...]) -> Finished:
    try:
        rows = {row.measure: row for _, record in scored for row in rows_of(record)}  # the last made counts
        facts = scored[-1][1].facts
        about = {name: facts[name] for name in ("dataset", "split", "fingerprint", "self_match")}
        about |= {"system": ranked.declared["system"], "k": facts["k"]}
        interval = scored[-1][1].declared["interval"]
        made = {name: value for name, value in ranked.made.items() if name != "when"}
        return Finished(
            folder,
            str(facts["dataset"]),
            str(facts["split"]),
            scored[-1][1].name,
            int(facts["queries"]),
            run_file(folder),
            tuple(rows.values()),
            tuple(flattened("", about | {"environment": made | {"interval": interval}})),
            ranked,
            scored,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(folder / RECORD, "another layout", "a record of weir run") from None


def _labelled(cells: list[Finished]) -> list[Finished]:
    """The cells with names that are their own: what differs under one name is told, key, engine or judgments.

    Of cells that differ in k alone the deepest bears the name, and the others their k.
    """
    groups, found = _of_one_name(cells), []
    for cell in cells:
        group = groups[cell.dataset, cell.system]
        if _differ_in_depth(group):
            told = [] if cell.depth == max(one.depth for one in group) else [f"k={cell.depth}"]
        else:
            marks = [_marks(one) for one in group]
            varies = [len(set(column)) > 1 for column in zip(*marks, strict=True)]
            told = [mark for mark, differs in zip(_marks(cell), varies, strict=True) if differs]
        found.append(replace(cell, label=f"{cell.system} #{' '.join(told)}" if told else cell.system))
    return found


def deepest(cells: Sequence[Finished]) -> tuple[list[Finished], list[str]]:
    """(the cells without those that differ from a deeper one in k alone, a sentence for each dataset and system left).

    A system is compared with others once, by its longest rankings.
    """
    kept, said = list(cells), []
    for group in _of_one_name(cells).values():
        if len(group) > 1 and _differ_in_depth(group):
            best = max(group, key=lambda one: one.depth)
            depths = " and ".join(str(k) for k in sorted({one.depth for one in group if one is not best}))
            kept = [one for one in kept if one is best or one not in group]
            said.append(
                f"{best.system} on {best.dataset} is compared with k={best.depth} alone, not {depths}"
            )
    return _labelled(kept), said


def _of_one_name(cells: Sequence[Finished]) -> dict[tuple[str, str], list[Finished]]:
    groups: dict[tuple[str, str], list[Finished]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.system), []).append(cell)
    return groups


def _differ_in_depth(group: Sequence[Finished]) -> bool:
    """Whether rankings of one system and collection differ in nothing but k."""
    first = group[0].ranked.stage
    return {name for one in group[1:] for name, *_ in changes(first, one.ranked.stage)} == {"k"}


def _marks(cell: Finished) -> tuple[str, str, str]:
    """What tells cells of one system and collection apart: key, engines, judgments."""
    engines = "+".join(str(engine) for engine in cell.ranked.engines)
    return cell.ranked.stage.key, engines, f"judgments {cell.scored[0][1].declared['qrels'][:6]}"


def _side_by_side(parts: Sequence[Scores], wanted: Sequence[str]) -> Scores:
    """Scores of the same queries by different measures, the last of each kept, in the order that is wanted."""
    first = parts[0]
    values: dict[str, Any] = {}
    for part in parts:
        at = part.queries.codes(first.queries.strings)
        if len(part.queries) != len(first.queries) or (at < 0).any():
            raise StoreError("the scores of a cell are of different queries; run the grid again")
        values |= {measure: row[at] for measure, row in zip(part.measures, part.values, strict=True)}
    geometric = tuple(dict.fromkeys(m for part in parts for m in part.geometric))
    columns = np.array([values[measure] for measure in wanted])
    return replace(first, measures=tuple(wanted), values=columns, geometric=geometric)
