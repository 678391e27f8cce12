"""The grid of an experiment as a table: datasets x systems, one measure a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weir.core.rounding import score
from weir.core.scores import Row
from weir.core.tables import SIGNS, Cell, Table, html_page, layout_blocks, paragraph
from weir.datasets import catalogue
from weir.report.short_names import short_names
from weir.report.table import JUDGED, UNRANKED, label_notes, says_judged
from weir.stats.compare import Comparison
from weir.stats.score_rows import reach_note


@dataclass(frozen=True)
class GridCell:
    """A system on a dataset by one measure.

    mean: over queries, or over datasets; best: none of its dataset is higher; letters: of its tie groups there, ""
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

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """The table for a terminal of so many columns: a row for each system, or a column, whichever fits.

        * marks the best of a dataset, triangles what is better or worse than the baseline; full names stand below.
        """
        return replace(self.marked(width), notes=self.below()).text(width, colour)

    def markdown(self) -> str:
        """A Markdown table, a row for each system: the best in bold."""
        return replace(self.marked(), notes=self.below()).markdown()

    def latex(self) -> str:
        """A LaTeX tabular for booktabs (and amssymb for verdicts), a row for each system: the best in bold."""
        return replace(self.marked(), notes=self.below()).latex()

    def csv(self) -> str:
        """Comma-separated values at full precision: a line for each system, under its full name."""
        rows = tuple(
            (Cell(name), *(Cell(_exact(cell)) for cell in row))
            for name, row in zip(self.systems, self.cells, strict=True)
        )
        return Table("", (self.measure, *self.datasets), rows).csv()

    def html(self) -> str:
        """A table of HTML with its own style, for a notebook or a page."""
        return replace(self.marked(), notes=self.below()).html()

    def legend(self) -> tuple[str, ...]:
        """A line for each system that goes by a short name."""
        pairs = zip(self.labels, self.systems, strict=True)
        return tuple(f"{label}: {name}" for label, name in pairs if label != name)

    def below(self) -> tuple[str, ...]:
        """The sentences below the table: how the marks came about, then the legend."""
        return (*self.notes, *self.legend())

    def marked(self, width: int | None = None) -> Table:
        """The table without its notes: a row for each system, or for each dataset where that breaks into fewer
        tables below one another within the width.
        """
        by_system = self._turned("system", self.labels, self.datasets, self.cells)
        by_dataset = self._turned("dataset", self.datasets, self.labels, tuple(zip(*self.cells, strict=True)))
        blocks = [layout_blocks(table.lines(), width) for table in (by_system, by_dataset)]
        return by_dataset if blocks[1] < blocks[0] else by_system

    def _turned(
        self,
        corner: str,
        names: Sequence[str],
        header: Sequence[str],
        cells: Sequence[Sequence[GridCell | None]],
    ) -> Table:
        rows = tuple((Cell(n), *map(_shown, row)) for n, row in zip(names, cells, strict=True))
        return Table(self.measure, (corner, *header), rows)


def grid_tables(
    rows: Sequence[Row], comparisons: Iterable[Comparison] = (), labels: Mapping[str, str] | None = None
) -> tuple[GridTable, ...]:
    """A table for each measure of the rows, datasets and systems in the order in which they first occur.

    The last column is the mean over datasets where there are several, for systems that have all of them; a group of
    datasets that is there as a whole counts as one. comparisons: as `compare_cells` makes them; letters and verdicts
    come from these. labels: names to show for systems. The last table is Judged@10, where it is known and no measure of
    the rows.
    """
    systems = tuple(dict.fromkeys(r.system for r in rows))
    titles = {r.system: r.title for r in rows if r.title}
    chosen = {titles.get(name, name): label for name, label in (labels or {}).items()}
    shown = short_names([titles.get(name, name) for name in systems], chosen)
    compared = list(comparisons)
    means: dict[str, dict[tuple[str, str], float]] = {}
    for r in rows:
        means.setdefault(r.measure, {})[r.dataset, r.system] = r.mean
    if says_judged(rows):
        means[JUDGED] = {(r.dataset, r.system): r.judged_at_10 for r in rows if r.judged_at_10 is not None}
    said = label_notes(rows)
    tables = (
        _table(measure, of_one, (systems, shown), [c for c in compared if c.measure == measure])
        for measure, of_one in means.items()
    )
    return tuple(replace(one, notes=(*one.notes, *said)) for one in tables)


def write_grids(
    tables: Sequence[GridTable],
    form: str = "text",
    width: int | None = None,
    colour: bool = False,
    legend: bool = True,
) -> str:
    """Several tables one below another, as text, markdown, latex or a page of html; shared notes and full names
    stand once, at the end.
    """
    notes = [n for t in tables for n in t.notes] + [n for t in tables if legend for n in t.legend()]
    shared = tuple(dict.fromkeys(notes))
    if form == "text":
        below = "\n".join(paragraph(note, width) for note in shared)
        parts = [t.marked(width).text(width, colour) for t in tables]
        return "\n\n".join([*parts, *([below] if below else [])])
    marked = [t.marked() for t in tables]
    if marked:
        marked[-1] = replace(marked[-1], notes=shared)
    if form == "html":
        return html_page("results", marked)
    return "\n\n".join(t.markdown() if form == "markdown" else t.latex() for t in marked)


def _table(
    measure: str,
    means: dict[tuple[str, str], float],
    named: tuple[tuple[str, ...], tuple[str, ...]],
    compared: Sequence[Comparison],
) -> GridTable:
    systems, labels = named
    by_column = {c.dataset: c for c in compared if c.unit != "datasets"}
    datasets = list(dict.fromkeys(dataset for dataset, _ in means))
    units = _units(datasets)
    last = units[0]
    if len(units) > 1:
        last = f"mean of {len(units)} datasets"
        datasets.append(last)
        for system in systems:
            parts = [means[unit, system] for unit in units if (unit, system) in means]
            if len(parts) == len(units):
                means[last, system] = math.fsum(parts) / len(parts)
    across = next((c for c in compared if c.unit == "datasets"), None)
    if across is not None:
        by_column[last] = across
    columns = []
    for dataset in datasets:
        column = [means.get((dataset, system)) for system in systems]
        columns.append(_cells(column, systems, by_column.get(dataset), _ranked(measure)))
    cells = tuple(zip(*columns, strict=True))
    notes = _notes(cells, compared, dict(zip(systems, labels, strict=True)))
    return GridTable(measure, tuple(datasets), systems, labels, cells, notes)


def _units(datasets: Sequence[str]) -> list[str]:
    """What a mean over datasets is over: a group that is there as a whole stands for its members."""
    groups = [catalogue.group(name) for name in catalogue.groups() if name in datasets]
    members = {member for group in groups for member in group.members}
    return [name for name in datasets if name not in members]


def _ranked(measure: str) -> bool:
    return not measure.startswith(UNRANKED)


def _cells(
    means: Sequence[float | None], systems: Sequence[str], comparison: Comparison | None, ranked: bool
) -> list[GridCell | None]:
    """A column: the best marked, letters and verdicts as its comparison has them."""
    there = [m for m in means if m is not None and not math.isnan(m)]
    best = max(there) if ranked and len(there) > 1 else None
    letters = {s.system: s.letters for s in comparison.standings} if comparison and ranked else {}
    verdicts: dict[str, str] = {}
    if comparison and comparison.baseline is not None and ranked:
        verdicts = {p.second: p.verdict for p in comparison.pairs}
    return [
        None if mean is None else GridCell(mean, mean == best, letters.get(name, ""), verdicts.get(name, ""))
        for name, mean in zip(systems, means, strict=True)
    ]


def _notes(
    cells: Iterable[Sequence[GridCell | None]], compared: Sequence[Comparison], labels: Mapping[str, str]
) -> tuple[str, ...]:
    """How the marks came about, for those that occur."""
    there = [cell for row in cells for cell in row if cell is not None]
    notes = ["* the best of its dataset"] if any(cell.best for cell in there) else []
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


def _shown(cell: GridCell | None) -> Cell:
    if cell is None:
        return Cell("-")
    return Cell(score(cell.mean), cell.best, cell.letters, cell.verdict)


def _exact(cell: GridCell | None) -> str:
    return "" if cell is None or math.isnan(cell.mean) else repr(cell.mean)
