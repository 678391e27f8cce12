"""Tables as text: CSV and TSV whose first line names the columns.

Cells are found by the engines of `rows.py`, quoted or not. A file in which a quoted cell holds a quotation mark or
a line end (or, with numpy alone, a separator) is read by Python's csv module instead.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np

from weir.core.ids import IDENTIFIER_BYTES
from weir.core.strings import Float64, Int64, Strings
from weir.errors import FormatError
from weir.io.runs.block_parser import Parser
from weir.io.runs.blocks import (
    ROWS,
    BufferTexts,
    RankingBlock,
    RowScanner,
    TableChunk,
    table_blocks,
    text_blocks,
)
from weir.io.runs.column_names import WRITTEN, Kind, is_header, three_columns
from weir.io.runs.decimals import parse_decimals
from weir.io.runs.parsed_rows import ParsedRows
from weir.io.runs.whitespace_columns import ColumnLayout, differs_from_previous
from weir.io.storage.lines import DAMAGE, LINE_BYTES, LineBuffer, damaged, open_bytes, read_bytes

__all__ = ["SEPARATORS", "delimited_blocks", "first_cells", "quoted_blocks", "read_layout"]

SEPARATORS = {"csv": ",", "tsv": "\t"}
_HEAD = 1 << 16


def first_cells(path: Path, separator: str) -> list[str]:
    """The cells of a file's first line."""
    line = read_bytes(path, _HEAD).partition(b"\n")[0].rstrip(b"\r")
    return _cells(line.decode("utf-8", "replace"), separator)


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line; cut at the separators where its quoting cannot be read."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return within it, or a cell beyond the csv module's bound
        return line.split(separator)


def read_layout(path: Path, kind: Kind, separator: str) -> ColumnLayout:
    """Which columns of a file are which, by its header; raises FormatError where it has none or lacks one."""
    cells = first_cells(path, separator)
    if not is_header(cells, kind):
        line = separator.join(cells)
        expected = f"a header that names the columns, such as {separator.join(WRITTEN[kind])}"
        raise FormatError(path, f"'{line[:80]}'" if line else "no header", expected, 1)
    return ColumnLayout(separator, tuple(cells), *three_columns(cells, kind, path))


def delimited_blocks(
    path: Path, layout: ColumnLayout, kind: Kind, engine: Parser, whole: bool, size: int
) -> Iterator[RankingBlock]:
    """The rows of a table as text.

    size: bytes worked on at a time; whole: all rows in one block. Raises QuotedCellError where `quoted_blocks` has
    to read the file instead, and FormatError for a line that is no row.
    """

    def scan(buffer: LineBuffer, stop: int) -> ParsedRows:
        return engine.cells(buffer, stop, layout)

    def describe(buffer: LineBuffer, rows: ParsedRows) -> FormatError:
        begin = buffer.begin_of_line(rows.bad)
        line = buffer.text(begin, buffer.end_of_line(begin) - begin).removesuffix("\r")
        cells = _cells(line, layout.separator)
        return _not_a_row(path, cells, layout, kind, buffer.line_of(rows.bad))

    yield from text_blocks(path, RowScanner(scan, describe, header=True), size, whole)


def quoted_blocks(
    path: Path, layout: ColumnLayout, kind: Kind, engine: Parser, whole: bool
) -> Iterator[RankingBlock]:
    """The rows of a table as text in which cells are quoted; errors as `delimited_blocks`."""

    def place(row: int) -> str:
        lines = (line for line, cells in _records(path, layout) if cells)
        return f", line {next(itertools.islice(lines, row, None))}"

    yield from table_blocks(_chunks(path, layout, kind), engine, whole, place)


def _chunks(path: Path, layout: ColumnLayout, kind: Kind) -> Iterator[TableChunk]:
    records = ((line, cells) for line, cells in _records(path, layout) if cells)
    ids, cells = (layout.query, layout.doc), len(layout.names)
    while batch := list(itertools.islice(records, ROWS)):
        rows = [row for _, row in batch]
        odd = (i for i, row in enumerate(rows) if len(row) != cells or not all(row[c] for c in ids))
        stop = next(odd, len(rows))
        query, doc, number = (
            Strings.packed([row[c].encode("utf-8", "surrogateescape") for row in rows[:stop]])
            for c in (*ids, layout.number)
        )
        for column in (query, doc):
            long = np.flatnonzero(column.lengths() > IDENTIFIER_BYTES)
            if len(long):
                found, expected = (
                    f"an identifier of {column.lengths()[long[0]]:,} bytes",
                    f"at most {IDENTIFIER_BYTES:,}",
                )
                raise FormatError(path, found, expected, batch[int(long[0])][0])
        score, wrong = _numbers(number)
        stop = int(wrong[0]) if len(wrong) else stop
        if stop < len(rows):
            raise _not_a_row(path, rows[stop], layout, kind, batch[stop][0])
        first = np.flatnonzero(differs_from_previous(query.data, query.ptr[:-1], query.lengths()))
        yield TableChunk(query.take(first), first, BufferTexts.of(doc), score)


def _numbers(texts: Strings) -> tuple[Float64, Int64]:
    length = texts.lengths()
    data = np.concatenate([texts.data, np.full(8, 32, np.uint8)])  # an empty text is read too
    return parse_decimals(data, texts.ptr[:-1], length)


def _records(path: Path, layout: ColumnLayout) -> Iterator[tuple[int, list[str]]]:
    """The cells of each record below the header, and the line it ends on."""
    with open_bytes(path) as raw:
        text = io.TextIOWrapper(
            io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18),
            "utf-8-sig",
            errors="surrogateescape",
            newline="",
        )
        reader = csv.reader(_bounded(text, path), delimiter=layout.separator, strict=True)
        try:
            next(reader, None)
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as error:
            expected = 'quotation marks around whole cells, those inside doubled, as in "say ""a"""'
            if "field limit" in str(error):
                found, expected = (
                    f"a cell of more than {csv.field_size_limit():,} characters",
                    "shorter cells",
                )
                raise FormatError(path, found, expected, reader.line_num) from None
            raise FormatError(path, f"bad quoting ({error})", expected, reader.line_num) from None
        except DAMAGE as error:
            raise damaged(path, error) from error


def _bounded(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    """The lines of a text; raises FormatError for one of more than LINE_BYTES characters."""
    for number in itertools.count(1):
        line = text.readline(LINE_BYTES + 1)
        if len(line) > LINE_BYTES:
            raise FormatError(
                path, f"a line of more than {LINE_BYTES:,} bytes", "one row on each line", number
            )
        if not line:
            return
        yield line


def _not_a_row(path: Path, cells: list[str], layout: ColumnLayout, kind: Kind, line: int) -> FormatError:
    """What is wrong with a line."""
    names = layout.names
    if len(cells) != len(names):
        shown = layout.separator.join(cells)[:80]
        count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
        return FormatError(path, f"{count} in '{shown}'", f"{len(names)} cells: {', '.join(names)}", line)
    for at in (layout.query, layout.doc):
        if not cells[at]:
            return FormatError(path, f"an empty {names[at]}", "an identifier in every row", line)
    what = "a finite number as the score" if kind == "run" else "a whole number as the grade"
    return FormatError(
        path, f"'{cells[layout.number][:80]}'", f"{what}, in column {names[layout.number]}", line
    )
