"""Show mean scores as tables and grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weir import systems
from weir.core.results import ResultKind
from weir.core.rounding import score
from weir.core.scores import Row
from weir.core.short_names import short_legend, short_names, systems_called
from weir.core.tables import SIGNS, Cell, Table, sentences, table_of
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName, WeirError
from weir.measures.measure import is_best, less_note
from weir.stats.score_rows import BEST, JUDGED, label_notes, long_table, shows_judged

if TYPE_CHECKING:
    from weir.stats.compare import Comparison


def labels_of(given: Sequence[str] | Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return {system: label} of a user's labels; {} for none.

    given: texts such as "tuned=bm25(k1=1.2)", or {label: system}.
    names: all systems.

    Raises BadValue for an invalid or ambiguous label, UnknownName for an unknown system.
    """
    if not given:
        return {}
    names, labels = tuple(dict.fromkeys(names)), dict[str, str]()
    pairs = given.items() if isinstance(given, Mapping) else [one.partition("=")[::2] for one in given]
    for label, named in ((one.strip(), other.strip()) for one, other in pairs):
        text = f"{label}={named}"
        if not (label and named):
            raise BadValue(f"the label '{text}': expected NAME=SYSTEM, such as 'tuned=bm25(k1=1.2)'")
        found = systems_called(named, dict.fromkeys(names, ""))
        system = found.pop() if len(found) == 1 else named
        if system not in names:
            with suppress(WeirError):  # a run file, or a system that this machine does not know
                system = str(systems.parse_system(named))
        if system not in names:
            raise UnknownName("system to be labelled", named, names)
        if label in labels.values() or label in names:
            raise BadValue(f"the label '{text}': another system goes by '{label}'")
        labels[system] = label
    return labels


# ----------
# Grids.


@dataclass(frozen=True)
class GridCell:
    """A mean in a grid of results, with its marks."""

    mean: float
    """The mean over queries, or over datasets."""
    best: bool = False
    """True if the best of several means of the dataset."""
    letters: str = ""
    """Letters of its tie groups; "" if unknown."""
    verdict: str = ""
    """Better or worse than the baseline; "" for neither."""


@dataclass(frozen=True)
class GridTable:
    """Means of a measure, with a row for each system and a column for each dataset."""

    measure: str
    datasets: tuple[str, ...]
    """Names of the datasets, then of the mean over them if there are several."""
    systems: tuple[str, ...]
    """Full names."""
    labels: tuple[str, ...]
    """Short names, all different."""
    cells: tuple[tuple[GridCell | None, ...], ...]
    """A row for each system, a column for each dataset; None if a system has no result."""
    notes: tuple[str, ...] = ()
    """The key of the marks."""
    baseline: str | None = None
    averaged: bool = False
    """True if the last of `datasets` is a mean over the others."""

    def legend(self) -> tuple[str, ...]:
        """Return a line "label: name" for each system with a short name."""
        return tuple(short_legend(dict(zip(self.systems, self.labels, strict=True))))

    def marked(self) -> Table:
        """Return the table with marks, without notes, and its transpose for narrow terminals."""
        pairs, tables = zip(self.labels, self.systems, strict=True), list[Table]()
        systems = [f"{label} (baseline)" if name == self.baseline else label for label, name in pairs]
        for corner, names, header, cells in (
            ("system", systems, self.datasets, self.cells),
            ("dataset", self.datasets, systems, tuple(zip(*self.cells, strict=True))),
        ):
            lines: list[list[str | Cell]] = [[corner, *header]]
            for name, row in zip(names, cells, strict=True):
                lines.append([name])
                for c in row:
                    lines[-1].append("-" if c is None else Cell(score(c.mean), c.best, c.letters, c.verdict))
            tables.append(table_of(lines, right=None, title=self.measure))
        mean = len(self.datasets) if self.averaged else None
        return replace(tables[0], turned=tables[1], leading=mean)


def _means_over(
    of_measure: Mapping[tuple[str, str], float], systems: Iterable[str], units: Collection[Sequence[str]]
) -> Iterator[tuple[str, float]]:
    for system in systems:
        parts = [[of_measure.get((d, system), math.nan) for d in of] for of in units]
        mean = math.fsum(math.fsum(of) / len(of) for of in parts) / len(parts)
        if not math.isnan(mean):
            yield system, mean


def _alike(comparison: Comparison, of_measure: Mapping[tuple[str, str], float], column: str) -> bool:
    shown = [(of_measure.get((column, one.system)), one.mean) for one in comparison.standings]
    return all(mean is not None and math.isclose(mean, other, abs_tol=1e-12) for mean, other in shown)


def grid_tables(rows: Sequence[Row], comparisons: Iterable[Comparison] = ()) -> tuple[GridTable, ...]:
    """Return a grid for each measure, datasets and systems in the order of their first row; the last is Judged@10 if
    known.

    comparisons: give letters and verdicts.

    The last column is the mean over datasets, for systems that have all; splits, complete groups and repeated
    datasets count once.
    """
    systems = tuple(dict.fromkeys(r.system for r in rows))
    titles, unit_of = {r.system: r.title for r in rows if r.title}, {r.dataset: r.unit for r in rows}
    uncounted = {r.dataset for r in rows if r.uncounted}
    short = short_names(systems, titles)
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
            if name not in members and name not in uncounted:
                units.setdefault(unit_of.get(name) or name, []).append(name)
        last = datasets[-1]
        if len(units) > 1:
            last = f"mean of {len(units)} datasets"
            datasets.append(last)
            of_measure |= {
                (last, system): mean for system, mean in _means_over(of_measure, systems, units.values())
            }
        own = [c for c in compared if c.measure == measure]
        by_column = {c.dataset: c for c in own if c.unit != "datasets"}
        across = next((c for c in own if c.unit == "datasets"), None)
        # Of the same parts: a comparison lacks datasets of one system.
        if across is not None and across.count == len(units) and _alike(across, of_measure, last):
            by_column[last] = across
        columns = []
        for dataset in datasets:
            column = [of_measure.get((dataset, system)) for system in systems]
            defined = [mean for mean in column if mean is not None and not math.isnan(mean)]
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
                    else GridCell(
                        mean, is_best(measure, mean, defined), letters.get(s, ""), verdicts.get(s, "")
                    )
                    for s, mean in zip(systems, column, strict=True)
                ]
            )
        cells = tuple(zip(*columns, strict=True))
        there = [cell for row in cells for cell in row if cell is not None]
        key = marks_key(there, own, dict(zip(systems, short, strict=True)))
        key += less_note([measure]) if any(cell.best for cell in there) else []
        notes = (*key, *too_few_notes(own), *label_notes(rows))
        averaged = len(units) > 1 or last in [group.name for group in groups]
        tables.append(GridTable(measure, tuple(datasets), systems, short, cells, notes, averaged=averaged))
    return tuple(tables)


def grids_marked(grids: Sequence[GridTable], legend: bool = True) -> tuple[Table, ...]:
    """Return grids as tables with marks of the best and verdicts, and all notes, each once, below the last.

    legend: add a table of full names of systems with short names.
    """
    tables = [replace(grid.marked(), own=grid.notes) for grid in grids]
    if tables:
        tables[-1] = replace(tables[-1], notes=tuple(dict.fromkeys(n for grid in grids for n in grid.notes)))
    names = dict.fromkeys(n for grid in grids if legend for n in grid.legend())
    if names:
        tables.append(replace(sentences(*names), folded="systems by their full names", follows=True))
    return tuple(tables)


def row_tables(
    rows: Sequence[Row],
    compared: Callable[[], Sequence[Comparison]] | None = None,
    long: bool = False,
    explain: bool = False,
) -> tuple[Table, ...]:
    """Return a grid for each measure if there are several systems and datasets, else a line for each mean.

    compared: returns the comparisons that give letters.
    long: always lines.
    explain: say how intervals were computed, and use short names of systems.
    """
    systems = {row.system for row in rows}
    if (
        len({row.dataset for row in rows}) > 1
        and len(systems) > 1
        and not long
        and not any(r.group for r in rows)
    ):
        return grids_marked(grid_tables(rows, compared() if compared else ()))
    if explain:  # as the grid of other pages and the comparison call them
        names = tuple(dict.fromkeys(row.system for row in rows))
        short = dict(
            zip(names, short_names(names, {r.system: r.title for r in rows if r.title}), strict=True)
        )
        rows = [replace(r, title="" if short[r.system] == r.system else short[r.system]) for r in rows]
    table = long_table(rows, explain)
    legend = dict.fromkeys(f"{row.title}: {row.system}" for row in rows if row.title)
    return (replace(table, notes=(*table.notes, *legend)),)


ROWS = ResultKind(
    "results",
    Row,
    row_tables,
    explained=True,
    records=lambda row: [row.to_dict()],
    csv=lambda row: [row.to_dict()],
    columns=tuple(Row.__dataclass_fields__),
)


def marks_key(
    there: Sequence[GridCell], compared: Sequence[Comparison], labels: Mapping[str, str]
) -> list[str]:
    """Return sentences that explain the marks in a grid: best, letters, better or worse."""
    key = [BEST] if any(cell.best for cell in there) else []
    if compared:
        first = compared[0]
        how = f"{first.method.test}, {first.method.correction} for each dataset, level {first.method.alpha:g}"
        if any(cell.letters for cell in there):
            key.append(f"systems that share a letter cannot be told apart there ({how})")
        if first.baseline is not None:
            baseline = labels.get(first.baseline, first.baseline)
            key.append(f"{SIGNS['better']} better, {SIGNS['worse']} worse than {baseline} ({how})")
    return key


def too_few_notes(compared: Sequence[Comparison]) -> list[str]:
    """Return a sentence on each dataset with too few queries to show a difference."""
    return list(dict.fromkeys(
        (f"{c.dataset}: " if c.unit == "queries" else "")
        + c.too_few
        for c in compared
        if c.pairs and c.too_few
    ))  # fmt: skip
