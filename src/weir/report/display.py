"""Rows of results in the form that was asked for: a grid of several datasets and systems, else a long table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weir.core.scores import Row
from weir.core.tables import html_page
from weir.errors import BadValue, UnknownName, WeirError
from weir.report.grid_table import grid_tables, write_grids
from weir.report.table import csv_table, json_lines, long_table
from weir.stats.compare import Comparison


@dataclass(frozen=True)
class Display:
    """How results are shown.

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
    if display.form == "json":
        return json_lines(rows)
    if display.form == "csv":
        return csv_table(rows)
    if not display.long and is_grid(rows):
        grid = grid_tables(rows, compared() if compared else (), display.labels)
        return write_grids(grid, display.form, display.width, display.colour)
    named = [
        replace(r, system=display.labels[r.system], title="") if r.system in display.labels else r
        for r in rows
    ]
    used = {r.system for r in rows}
    notes = tuple(f"{label}: {system}" for system, label in display.labels.items() if system in used)
    table = long_table(named)
    table = replace(table, notes=(*table.notes, *notes))
    if display.form == "html":
        return html_page("results", [table])
    if display.form == "text":
        return table.text(display.width, display.colour)
    return table.markdown() if display.form == "markdown" else table.latex()


def is_grid(rows: Sequence[Row]) -> bool:
    """Whether the rows are of several datasets and several systems, and of all queries."""
    if any(r.group for r in rows):
        return False
    return len({r.dataset for r in rows}) > 1 and len({r.system for r in rows}) > 1


def labels_of(
    given: Sequence[str], systems: Sequence[str], canonical: Callable[[str], str] | None = None
) -> dict[str, str]:
    """The labels of systems, from texts such as "tuned=bm25(k1=1.2)".

    systems: the names that there are; canonical: how a system that is written otherwise prints. Raises BadValue for a
    text without a label or a system and for a label that is given twice or is the name of another system, UnknownName
    for a system that is not there.
    """
    found: dict[str, str] = {}
    for text in given:
        label, equals, system = (part.strip() for part in text.partition("="))
        if not (equals and label and system):
            raise BadValue(f"--label {text}: expected NAME=SYSTEM, such as --label 'tuned=bm25(k1=1.2)'")
        if system not in systems and canonical is not None:
            system = _canonical(system, canonical)
        if system not in systems:
            raise UnknownName("system to be labelled", system, systems)
        if label in found.values() or label in systems:
            raise BadValue(f"--label {text}: another system goes by '{label}'")
        found[system] = label
    return found


def _canonical(system: str, canonical: Callable[[str], str]) -> str:
    try:
        return canonical(system)
    except WeirError:
        return system  # a run file, or a system that this machine does not know
