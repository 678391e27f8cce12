"""Rows of results as tables: a line for each dataset and system, or a grid of datasets and systems for each measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from weir import systems
from weir.core.results import ResultKind
from weir.core.rounding import score
from weir.core.scores import Row
from weir.core.short_names import short_names, systems_called
from weir.core.tables import SIGNS, Cell, Table, sentences, table_of
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName, WeirError
from weir.measures.measure import best_of
from weir.stats.compare import (
    Comparison,
    briefly_named,
    compare_tables,
    families,
    method_notes,
    pair_records,
    pair_tables,
    relabelled,
    standings_table,
    tally,
)
from weir.stats.power import reach_note
from weir.stats.score_rows import BEST, JUDGED, label_notes, long_table, shows_judged


def labels_of(texts: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return {system: label} from texts such as "tuned=bm25(k1=1.2)".

    names: of all systems.

    Raises BadValue for a text without a label or a system, a label given twice, and a label that is the name
    of another system, UnknownName for an unknown system.
    """
    if not texts:
        return {}
    names, labels = tuple(dict.fromkeys(names)), dict[str, str]()
    for text in texts:
        label, equals, system = (part.strip() for part in text.partition("="))
        if not (equals and label and system):
            raise BadValue(f"the label '{text}': expected NAME=SYSTEM, such as 'tuned=bm25(k1=1.2)'")
        found = systems_called(system, dict.fromkeys(names, ""))
        system = found.pop() if len(found) == 1 else system
        if system not in names:
            with suppress(WeirError):  # a run file, or a system that this machine does not know
                system = str(systems.parse_system(system))
        if system not in names:
            raise UnknownName("system to be labelled", system, names)
        if label in labels.values() or label in names:
            raise BadValue(f"the label '{text}': another system goes by '{label}'")
        labels[system] = label
    return labels


# ----------
# Grids.


@dataclass(frozen=True)
class GridCell:
    """Mean of a system on a dataset by a measure."""

    mean: float
    """Over queries, or over datasets."""
    best: bool = False
    """True if no other of the dataset is better."""
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

    def legend(self) -> tuple[str, ...]:
        """Return a line for each system with a short name."""
        pairs = zip(self.labels, self.systems, strict=True)
        return tuple(f"{label}: {name}" for label, name in pairs if label != name)

    def marked(self) -> Table:
        """Return the table without its notes, a row for each system; on a narrow terminal a row for each dataset."""
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
        return replace(tables[0], turned=tables[1])


def grid_tables(rows: Sequence[Row], comparisons: Iterable[Comparison] = ()) -> tuple[GridTable, ...]:
    """Return a table for each measure of the rows, with datasets and systems in the order of their first row.

    comparisons: letters and verdicts come from them.

    The last column is the mean over datasets, for systems that have all; a whole group counts as one dataset,
    and so do the splits of a collection. The last table is Judged@10 if it is known and no measure of the
    rows.
    """
    systems = tuple(dict.fromkeys(r.system for r in rows))
    titles, unit_of = {r.system: r.title for r in rows if r.title}, {r.dataset: r.unit for r in rows}
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
        there = [cell for row in cells for cell in row if cell is not None]
        key = _marks_key(there, own, dict(zip(systems, short, strict=True)))
        notes = (*key, *_too_few_notes(own), *label_notes(rows))
        tables.append(GridTable(measure, tuple(datasets), systems, short, cells, notes))
    return tuple(tables)


def grids_marked(grids: Sequence[GridTable], legend: bool = True) -> tuple[Table, ...]:
    """Return several grids as tables; shared notes and full names appear once, at the end."""
    tables = [grid.marked() for grid in grids]
    notes = [n for grid in grids for n in grid.notes] + [n for grid in grids if legend for n in grid.legend()]
    if tables:
        tables[-1] = replace(tables[-1], notes=tuple(dict.fromkeys(notes)))
    return tuple(tables)


def row_tables(
    rows: Sequence[Row],
    compared: Callable[[], Sequence[Comparison]] | None = None,
    long: bool = False,
) -> tuple[Table, ...]:
    """Return a grid of datasets and systems for each measure; for one system, dataset or group, or if `long`,
    a line for each mean.

    compared: makes the comparisons that tie groups of a grid come from.
    """
    systems = {row.system for row in rows}
    if (
        len({row.dataset for row in rows}) > 1
        and len(systems) > 1
        and not long
        and not any(r.group for r in rows)
    ):
        return grids_marked(grid_tables(rows, compared() if compared else ()))
    table = long_table(rows)
    legend = dict.fromkeys(f"{row.title}: {row.system}" for row in rows if row.title)
    return (replace(table, notes=(*table.notes, *legend)),)


ROWS = ResultKind(
    "results",
    Row,
    row_tables,
    records=lambda row: [row.to_dict()],
    csv=lambda row: [row.to_dict()],
    columns=tuple(Row.__dataclass_fields__),
)


def _marks_key(
    there: Sequence[GridCell], compared: Sequence[Comparison], labels: Mapping[str, str]
) -> list[str]:
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


def _too_few_notes(compared: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(
        (f"{c.dataset}: " if c.unit == "queries" else "")
        + reach_note(c.reach, c.method.test, c.count, c.unit, c.pairs[0].comparisons)
        for c in compared
        if c.pairs and not c.reach.possible
    ))  # fmt: skip


# ----------
# Comparisons.


def _comparison_grids(comparisons: Sequence[Comparison]) -> tuple[GridTable, ...]:
    systems = _in_given_order(comparisons)
    names = dict(zip(systems, short_names(systems), strict=True))
    grids = []
    for measure in dict.fromkeys(c.measure for c in comparisons):
        own = [c for c in comparisons if c.measure == measure]
        columns = [_means_column(c, systems) for c in own]
        heads = [f"mean of {c.dataset}" if c.unit == "datasets" else c.dataset for c in own]
        alone = len({c.dataset for c in own if c.unit == "queries"}) == 1  # its groups need no other name
        heads = [
            (c.group if alone else f"{head}, {c.group}") if c.group else head
            for head, c in zip(heads, own, strict=True)
        ]
        cells = tuple(zip(*columns, strict=True))
        there = [cell for column in columns for cell in column if cell is not None]
        notes = (*_marks_key(there, own, names), *_too_few_notes([c for c in own if c.unit == "queries"]))
        labels = tuple(names.values())
        grids.append(GridTable(measure, tuple(heads), systems, labels, cells, notes, own[0].baseline))
    return tuple(grids)


def _in_given_order(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    ordered = dict[str, None]()
    for c in comparisons:
        later = [pair.second for pair in c.pairs]
        ordered |= dict.fromkeys(sorted((s.system for s in c.standings), key=later.count))
    return tuple(ordered)


def _means_column(c: Comparison, systems: Sequence[str]) -> list[GridCell | None]:
    verdicts = {p.second: p.verdict for p in c.pairs} if c.baseline is not None else {}
    cells = {
        s.system: GridCell(
            s.mean,
            s.best is not None and s.mean == c.standings[0].mean,
            s.letters,
            verdicts.get(s.system, ""),
        )
        for s in c.standings
    }
    return [cells.get(system) for system in systems]


def _comparison_page(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """Return the marked means, then every pair: of several collections or groups a grid of means for each measure, of
    a single collection a table of its systems by measures.
    """
    means, pairs = pair_tables(comparisons)
    if len({(c.dataset, c.group) for c in comparisons}) > 1:
        return (*grids_marked(_comparison_grids(comparisons)), pairs)
    title = comparisons[0].dataset if comparisons else ""
    return replace(means.without(0), title=title), pairs.without(0)


def _comparison_html(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """Return the marked means with their key, then every pair and how the numbers were made, folded if many.

    Means on one collection have intervals; on several they make a grid.
    """
    pairs = pair_tables(comparisons)[1]
    tables = grids_marked(_comparison_grids(comparisons))
    if len({(c.dataset, c.group) for c in comparisons}) > 1:
        pairs = replace(pairs, folded=f"{len(pairs.rows)} pairs, each with its verdict")
    elif tables:
        pairs = pairs.without(0)  # the dataset, which titles name
        of_each = [standings_table(c, marked=True) for c in briefly_named(comparisons)[0]]
        tables = (*of_each[:-1], replace(of_each[-1], notes=tables[-1].notes))
    shown = tables[-1].notes if tables else ()
    tallies = [f"{c.measure}: {tally(one)}" for c in comparisons for one in c.tallies]
    how = [*families(comparisons), *method_notes(comparisons, explain=True, ranked=False)]
    notes = [note for note in (*tallies, *how) if note not in shown]
    return (*tables, replace(pairs, notes=()), replace(sentences(*notes), folded="how the numbers were made"))


def _comparison_tables(
    comparisons: Sequence[Comparison], long: bool = False, explain: bool = False
) -> tuple[Table, ...]:
    """Return a grid for each measure and the comparison across datasets; of one dataset, or if `long`, every
    pair.

    explain: add how the numbers were made.
    """
    across = [c for c in comparisons if c.unit == "datasets"]
    if long or not across:
        return compare_tables(comparisons, long, explain)
    systems = _in_given_order(comparisons)
    names = dict(zip(systems, short_names(systems), strict=True))
    grids = grids_marked(_comparison_grids(comparisons))
    return (*grids, *compare_tables(relabelled(across, names), long, explain))


COMPARISONS = ResultKind(
    "compare",
    Comparison,
    _comparison_tables,
    page=_comparison_page,
    html=_comparison_html,
    parts="pairs",
    csv=pair_records,
)
