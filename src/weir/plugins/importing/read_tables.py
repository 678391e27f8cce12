"""Tables as text: which mark separates cells, and whether the first line names the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.plugins.importing.names import fold, names

__all__ = ["Table", "TableRow", "parsed_table"]

_MARKS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class TableRow:
    """One record, and where it stands: "line 3", "entry 2"."""

    where: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """header: the names of the columns, () where the first line is data; then cells are called "1", "2" ..."""

    header: tuple[str, ...]
    rows: tuple[TableRow, ...]
    separator: str


def parsed_table(path: Path, text: str, suffix: str, expected: frozenset[str]) -> Table:
    """The cells of a text.

    suffix: of the file's name; expected: names that the user expects in the header. Text that is cut at blanks alone
    has no rows and no separator. Raises FormatError for bad quoting and for a cell of more than 131,072 characters.
    """
    lines = [line for line in text.split("\n", 50)[:50] if line.strip() and not line.startswith("#")]
    separator = _separator(lines, suffix)
    if not separator:
        return Table((), (), "")
    records = _records(path, text, separator)
    if not records:
        raise FormatError(path, "no row", "a table of queries, judgments or rankings")
    first = [cell.strip().removeprefix("\ufeff") for cell in records[0][1]]
    if _is_header(first, expected):
        header = tuple(name or f"column {n}" for n, name in enumerate(first, 1))
        _refuse_twice(path, header)
        if len(records) == 1:
            raise FormatError(
                path, f"the header {', '.join(header)[:80]} and no row below it", "a row for each record"
            )
        return Table(header, tuple(_row(line, header, cells) for line, cells in records[1:]), separator)
    width = max(len(cells) for _, cells in records)
    numbered = tuple(str(n) for n in range(1, width + 1))
    return Table((), tuple(_row(line, numbered, cells) for line, cells in records), separator)


def _row(line: int, header: tuple[str, ...], cells: list[str]) -> TableRow:
    fields: dict[str, Any] = dict(zip(header, cells, strict=False))
    extra = [cell for cell in cells[len(header) :] if cell.strip()]
    if extra:
        fields[""] = extra  # more cells than columns: the readers refuse the row
    return TableRow(f"line {line}", fields)


def _separator(lines: list[str], suffix: str) -> str:
    first = lines[0] if lines else ""
    if suffix == ".csv":
        return (
            ";" if ";" in first and "," not in first else "\t" if "\t" in first and "," not in first else ","
        )
    if suffix == ".tsv" or "\t" in first:
        return "\t" if any("\t" in line for line in lines) else ""
    return ""


def _is_header(cells: list[str], expected: frozenset[str]) -> bool:
    """Whether cells name columns: no number among them, and a known or an expected name."""
    if expected and expected <= set(cells):
        return True
    known = {name for tiers in names().roles.values() for tier in tiers for name in tier}
    known |= {name for listed in names().words.values() for name in listed} | _MORE
    if any(_is_number(cell) or cell[:1] in ("[", "{") for cell in cells):
        return False
    named = [cell for cell in cells if fold(cell) in known]
    return len(named) >= 1 and all(len(cell) <= 80 for cell in cells)


# First cells of tables that are no collection, and are refused by name.
_MORE = frozenset(
    map(fold, ("measure", "input", "scenario", "document_position", "_id", "id", "value", "event_id"))
)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _refuse_twice(path: Path, header: tuple[str, ...]) -> None:
    twice = [name for at, name in enumerate(header) if name in header[:at]]
    if twice:
        raise FormatError(path, f"two columns named '{twice[0][:60]}'", "each name once", 1)


def _records(path: Path, text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The cells of each row that is neither blank nor a comment, and the line it ends on."""
    lines = io.StringIO(text, newline="")
    if separator == "\t" and '"' not in text.partition("\n")[0]:
        reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=separator, strict=True)
    found: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) and not (found == [] and cells[0].startswith("#")):
                found.append((reader.line_num, [cell.strip("\r") for cell in cells]))
    except csv.Error as error:
        reason = "shorter cells" if "field limit" in str(error) else "cells quoted as a whole"
        what = (
            f"a cell of more than {csv.field_size_limit():,} characters"
            if "limit" in str(error)
            else str(error)
        )
        raise FormatError(path, what, reason, reader.line_num) from None
    return found
