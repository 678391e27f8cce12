"""Rows of results as tables: a line for each dataset and system, or a grid of datasets and systems for each measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from weir.core.results import json_lines, result
from weir.core.rounding import score
from weir.core.scores import Row
from weir.core.short_names import short_names
from weir.core.tables import SIGNS, Cell, Table, csv_text, layout_blocks, table_of, written
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName, WeirError
from weir.measures.measure import best_of
from weir.stats.compare import Comparison
from weir.stats.power import reach_note
from weir.stats.score_rows import BEST, JUDGED, label_notes, long_table, shows_judged


@dataclass(frozen=True)
class Display:
    """How rows are shown.

    form: text, json, csv, latex, markdown or html; long: a line for each dataset and system also where a grid would
    do; width: of the terminal in columns, None is boundless; colour: whether the terminal shows colours; labels: names
    to show for systems.
    """

    form: str = "text"
    long: bool = False
    width: int | None = None
    colour: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


def rows_shown(
    rows: Sequence[Row], display: Display, compared: Callable[[], Sequence[Comparison]] | None = None
) -> str:
    """The rows in the form of the display; JSON and CSV are in long form, at full precision and under full names.

    compared: makes the comparisons that tie groups of a grid come from, where they are wanted.
    """
    if display.form in ("json", "csv"):
        records = [row.to_dict() for row in rows]
        if display.form == "json":
            return json_lines(records)
        columns = [name for name in Row.__dataclass_fields__ if any(name in record for record in records)]
        return csv_text([columns, *([record.get(name) for name in columns] for record in records)])
    datasets, systems, groups = {}, {}, {}
    for row in rows:
        datasets[row.dataset], systems[row.system], groups[row.group] = row, row, row
    if len(datasets) > 1 and len(systems) > 1 and not display.long and not any(groups):
        grids = grid_tables(rows, compared() if compared else (), display.labels)
        tables = grids_marked(grids, display.width if display.form == "text" else None)
        return written(tables, display.form, display.width, display.colour)
    labels = {system: label for system, label in display.labels.items() if system in systems}
    if labels:
        rows = [replace(r, system=labels[r.system], title="") if r.system in labels else r for r in rows]
    table = long_table(rows)
    if labels:
        legend = [f"{label}: {system}" for system, label in labels.items()]
        table = replace(table, notes=(*table.notes, *legend))
    return written([table], display.form, display.width, display.colour)


def labels_of(texts: Sequence[str], systems: Iterable[str]) -> dict[str, str]:
    """The labels of systems, from texts such as "tuned=bm25(k1=1.2)"; systems: the names that there are.

    Raises BadValue for a text without a label or a system and for a label that is given twice or is the name of
    another system, UnknownName for a system that is not there.
    """
    if not texts:
        return {}
    from weir.systems import parse_system

    names, labels = tuple(dict.fromkeys(systems)), dict[str, str]()
    for text in texts:
        label, equals, system = (part.strip() for part in text.partition("="))
        if not (equals and label and system):
            raise BadValue(f"--label {text}: expected NAME=SYSTEM, such as --label 'tuned=bm25(k1=1.2)'")
        if system not in names:
            with suppress(WeirError):  # a run file, or a system that this machine does not know
                system = str(parse_system(system))
        if system not in names:
            raise UnknownName("system to be labelled", system, names)
        if label in labels.values() or label in names:
            raise BadValue(f"--label {text}: another system goes by '{label}'")
        labels[system] = label
    return labels


# ----------
# Grids.


@dataclass(frozen=True)
class GridCell:
    """A system on a dataset by one measure.

    mean: over queries, or over datasets; best: none of its dataset is better; letters: of its tie groups there, ""
    where they are not known; verdict: better or worse than the baseline, "" for neither.
    """

    mean: float
    best: bool = False
    letters: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class GridTable:
    """One measure on datasets x systems.

    datasets: their names, then that of the mean over them where there are several; systems: their full names; labels:
    a short name for each, all different; cells: a row for each system, a column for each dataset, None where a system
    has no result; notes: how the marks came about.
    """

    measure: str
    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    labels: tuple[str, ...]
    cells: tuple[tuple[GridCell | None, ...], ...]
    notes: tuple[str, ...] = ()

    def legend(self) -> tuple[str, ...]:
        """A line for each system that goes by a short name."""
        pairs = zip(self.labels, self.systems, strict=True)
        return tuple(f"{label}: {name}" for label, name in pairs if label != name)

    def marked(self, width: int | None = None) -> Table:
        """The table without its notes: a row for each system, or for each dataset where that breaks into fewer
        tables below one another within the width.
        """
        tables = []
        for corner, names, header, cells in (
            ("system", self.labels, self.datasets, self.cells),
            ("dataset", self.datasets, self.labels, tuple(zip(*self.cells, strict=True))),
        ):
            lines: list[list[str | Cell]] = [[corner, *header]]
            for name, row in zip(names, cells, strict=True):
                lines.append([name])
                for c in row:
                    lines[-1].append("-" if c is None else Cell(score(c.mean), c.best, c.letters, c.verdict))
            tables.append(table_of(lines, right=None, title=self.measure))
        return min(tables, key=lambda table: layout_blocks(table.lines(), width))


def grid_tables(
    rows: Sequence[Row], comparisons: Iterable[Comparison] = (), labels: Mapping[str, str] | None = None
) -> tuple[GridTable, ...]:
    """A table for each measure of the rows, datasets and systems in the order in which they first occur.

    The last column is the mean over datasets where there are several, for systems that have all of them; a group of
    datasets that is there as a whole counts as one, and so do the splits of a collection, whose means are averaged
    first. comparisons: as `compare_cells` makes them; letters and verdicts come from these. labels: names to show for
    systems. The last table is Judged@10, where it is known and no measure of the rows.
    """
    systems = tuple(dict.fromkeys(r.system for r in rows))
    titles, unit_of = {r.system: r.title for r in rows if r.title}, {r.dataset: r.unit for r in rows}
    chosen = {titles.get(name, name): label for name, label in (labels or {}).items()}
    short = short_names([titles.get(name, name) for name in systems], chosen)
    means: dict[str, dict[tuple[str, str], float]] = {}
    for r in rows:
        means.setdefault(r.measure, {})[r.dataset, r.system] = r.mean
    if shows_judged(rows):
        means[JUDGED] = {(r.dataset, r.system): r.judged_at_10 for r in rows if r.judged_at_10 is not None}
    compared, tables = list(comparisons), []
    for measure, of_measure in means.items():
        datasets = list(dict.fromkeys(dataset for dataset, _ in of_measure))
        # A mean over datasets is over these: a group that is there as a whole stands for its members.
        groups = [catalogue.group(name) for name in catalogue.groups() if name in datasets]
        members = {member for group in groups for member in group.members}
        units: dict[str, list[str]] = {}
        for name in datasets:
            if name not in members:
                units.setdefault(unit_of.get(name) or name, []).append(name)
        last = datasets[-1]
        if len(units) > 1:
            last = f"mean of {len(units)} datasets"
            datasets.append(last)
            for system in systems:
                parts = [[of_measure.get((d, system), math.nan) for d in of] for of in units.values()]
                mean = math.fsum(math.fsum(of) / len(of) for of in parts) / len(parts)
                if not math.isnan(mean):
                    of_measure[last, system] = mean
        own = [c for c in compared if c.measure == measure]
        by_column = {c.dataset: c for c in own if c.unit != "datasets"}
        across = next((c for c in own if c.unit == "datasets"), None)
        if across is not None and across.count == len(units):
            by_column[last] = across
        columns = []
        for dataset in datasets:
            column = [of_measure.get((dataset, system)) for system in systems]
            defined = [mean for mean in column if mean is not None and not math.isnan(mean)]
            best = best_of(measure, defined) if len(defined) > 1 else None
            letters, verdicts = dict[str, str](), dict[str, str]()
            if dataset in by_column:
                comparison = by_column[dataset]
                letters = {s.system: s.letters for s in comparison.standings}
                if comparison.baseline is not None:
                    verdicts = {p.second: p.verdict for p in comparison.pairs}
            columns.append(
                [
                    None
                    if mean is None
                    else GridCell(mean, mean == best, letters.get(s, ""), verdicts.get(s, ""))
                    for s, mean in zip(systems, column, strict=True)
                ]
            )
        cells = tuple(zip(*columns, strict=True))
        notes = (*_notes(cells, own, dict(zip(systems, short, strict=True))), *label_notes(rows))
        tables.append(GridTable(measure, tuple(datasets), systems, short, cells, notes))
    return tuple(tables)


def grids_marked(
    grids: Sequence[GridTable], width: int | None = None, legend: bool = True
) -> tuple[Table, ...]:
    """Several grids as tables, for a terminal of this width; shared notes and full names stand once, at the end."""
    tables = [grid.marked(width) for grid in grids]
    notes = [n for grid in grids for n in grid.notes] + [n for grid in grids if legend for n in grid.legend()]
    if tables:
        tables[-1] = replace(tables[-1], notes=tuple(dict.fromkeys(notes)))
    return tuple(tables)


@result("results", Row, records=lambda row: [row.to_dict()], csv=lambda row: [row.to_dict()])
def result_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """A grid of datasets and systems for each measure."""
    return grids_marked(grid_tables(rows))


def _notes(
    cells: Iterable[Sequence[GridCell | None]], compared: Sequence[Comparison], labels: Mapping[str, str]
) -> tuple[str, ...]:
    """How the marks came about, for those that occur."""
    there = [cell for row in cells for cell in row if cell is not None]
    notes = [BEST] if any(cell.best for cell in there) else []
    if compared:
        first = compared[0]
        how = f"{first.method.test}, {first.method.correction} for each dataset, level {first.method.alpha:g}"
        if any(cell.letters for cell in there):
            notes.append(f"systems that share a letter cannot be told apart there ({how})")
        notes += dict.fromkeys(
            (f"{c.dataset}: " if c.unit == "queries" else "")
            + reach_note(c.reach, c.method.test, c.count, c.unit, c.pairs[0].comparisons)
            for c in compared
            if c.pairs and not c.reach.possible
        )
        if first.baseline is not None:
            baseline = labels.get(first.baseline, first.baseline)
            notes.append(f"{SIGNS['better']} better, {SIGNS['worse']} worse than {baseline} ({how})")
    return tuple(notes)
