"""Where rankings and judgments come from: a file of any format, or a frame in memory, as blocks of rows.

A table as text has its cells found by the parsers, quoted or not. One in which a quoted cell holds a quotation mark or
a line end (or, with numpy alone, a separator) is read by Python's csv module instead.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from weir.core.ids import IDENTIFIER_BYTES
from weir.core.origins import Origins
from weir.core.strings import Float64, Int64, Strings
from weir.errors import FormatError
from weir.io.runs.blocks import (
    BLOCK_ROWS,
    ParsedRows,
    Parser,
    RankingBlock,
    RowScanner,
    TableChunk,
    table_blocks,
    text_blocks,
)
from weir.io.runs.column_names import (
    WRITTEN,
    ColumnLayout,
    Kind,
    is_header,
    origin_column,
    three_columns,
)
from weir.io.runs.decimals import parse_decimals
from weir.io.runs.distinct_ids import differs_from_previous
from weir.io.runs.formats import SEPARATORS, Format, cells_of, first_cells
from weir.io.runs.json_rows import json_row_chunks, json_row_origins, line_of_row
from weir.io.runs.json_runs import is_large, large_json_blocks
from weir.io.runs.tables import frame_chunks, frame_origins, table_chunks, table_origins
from weir.io.storage.text_files import DAMAGE, LINE_BYTES, PACKED, LineBuffer, damaged, open_bytes

__all__ = ["ReadOptions", "Source", "file_source", "frame_source", "nested_source", "table_records"]

# A file's text is about this much larger than the file itself.
_TEXT_TIMES = {"parquet": 3, "arrow": 1}
_PACKED_TEXT_TIMES = 5


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read: with which engine, in one block, and with attention to quotation marks."""

    engine: Parser
    whole: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class Source:
    """Something that holds rows: its name for messages, about how many bytes as text, and its blocks.

    origins: where each of its judgments comes from, in the order of the rows; None where it does not say.
    """

    name: object
    size: int
    blocks: Callable[[ReadOptions], Iterator[RankingBlock]]
    origins: Callable[[], Origins | None] = lambda: None


def file_source(path: Path, form: Format, kind: Kind) -> Source:
    """The rows of a file of any format but JSON; of TREC's, a run's."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # opening it will say what is wrong
    size *= _PACKED_TEXT_TIMES if path.suffix in PACKED else _TEXT_TIMES.get(form.name, 1)
    blocks = {
        "jsonl": _json_row_blocks,
        "trec": _trec_blocks,
        "parquet": _table_blocks,
        "arrow": _table_blocks,
    }
    read = blocks.get(form.name, _delimited_blocks)
    return Source(path, size, partial(read, (path, form, kind), size), partial(_origins, path, form, kind))


def frame_source(frame: Any, kind: Kind) -> Source:  # noqa: ANN401  any library's frame
    """The rows of a frame that has Arrow's stream interface."""

    def blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        return table_blocks(frame_chunks(frame, kind), how.engine, how.whole, lambda row: f", row {row + 1}")

    rows = len(frame) if hasattr(frame, "__len__") else 0
    return Source("frame", 40 * rows, blocks, lambda: frame_origins(frame, kind))


def nested_source(path: Path, worth: int | None = None) -> Source | None:
    """A large JSON run as rows, read with numba; None for a small one, and where numba is not installed.

    worth: bytes from which a file is large, by default what the reader's loading, or compiling, takes to pay. Its
    blocks raise OddJsonError for anything unusual, before or after some blocks were read.
    """
    if not is_large(path, worth):
        return None
    return Source(path, 1 << 40, lambda how: large_json_blocks(path, how.whole))  # always worth compiled code


def _origins(path: Path, form: Format, kind: Kind) -> Origins | None:
    """What the column of origins of a file holds, None where it has none."""
    if form.name in ("parquet", "arrow"):
        return table_origins(path, kind, form.name == "parquet")
    if form.name == "jsonl":
        return json_row_origins(path, kind)
    if form.name not in SEPARATORS:
        return None
    at = origin_column(first_cells(path, SEPARATORS[form.name]), kind)
    if at is None:
        return None
    layout = _read_layout(path, kind, SEPARATORS[form.name])
    return Origins.of(cells[at] for _, cells in table_records(path, layout.separator) if cells)


def _trec_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    return text_blocks(file[0], RowScanner(how.engine.scan, _bad_line), _block(size, how), how.whole)


def _table_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    path, form, kind = file
    chunks = table_chunks(path, kind, form.name == "parquet")
    return table_blocks(chunks, how.engine, how.whole, lambda row: f", row {row + 1}")


def _json_row_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    path, _, kind = file

    def place(row: int) -> str:
        return f", line {line_of_row(path, row)}"

    return table_blocks(json_row_chunks(path, kind), how.engine, how.whole, place)


def _delimited_blocks(file: tuple[Path, Format, Kind], size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    path, form, kind = file
    layout = _read_layout(path, kind, SEPARATORS[form.name])
    read = _quoted_blocks if how.quoted else partial(_text_table_blocks, size=_block(size, how))
    return read(path, layout, kind, how.engine, how.whole)


def _block(size: int, how: ReadOptions) -> int:
    return size + 64 if how.whole else min(size + 64, how.engine.block)


def _bad_line(buffer: LineBuffer, rows: ParsedRows) -> FormatError:
    end = buffer.end_of_line(rows.bad)
    text = buffer.text(rows.bad, end - rows.bad).strip()
    shown = f"'{text[:80]}{'...' if len(text) > 80 else ''}'"
    line = buffer.line_of(rows.bad)
    if rows.bad_score:
        return FormatError(buffer.path, shown, "a finite number as the score, in column 5", line)
    columns = "column" if len(text.split()) == 1 else "columns"
    expected = "6 columns: query Q0 document rank score tag"
    if len(text.split()) == 4:
        expected += "; 4 are judgments, which stand before the run"
    return FormatError(buffer.path, f"{len(text.split())} {columns} in {shown}", expected, line)


def _read_layout(path: Path, kind: Kind, separator: str) -> ColumnLayout:
    """Which columns of a file are which, by its header; raises FormatError where it has none or lacks one."""
    cells = first_cells(path, separator)
    if not is_header(cells, kind):
        line = separator.join(cells)
        expected = f"a header that names the columns, such as {separator.join(WRITTEN[kind])}"
        raise FormatError(path, f"'{line[:80]}'" if line else "no header", expected, 1)
    return ColumnLayout(separator, tuple(cells), *three_columns(cells, kind, path))


def _text_table_blocks(
    path: Path, layout: ColumnLayout, kind: Kind, engine: Parser, whole: bool, size: int
) -> Iterator[RankingBlock]:
    """The rows of a table as text.

    size: bytes worked on at a time; whole: all rows in one block. Raises QuotedCellError where `_quoted_blocks` has
    to read the file instead, and FormatError for a line that is no row.
    """

    def scan(buffer: LineBuffer, stop: int) -> ParsedRows:
        return engine.cells(buffer, stop, layout)

    def describe(buffer: LineBuffer, rows: ParsedRows) -> FormatError:
        begin = buffer.begin_of_line(rows.bad)
        line = buffer.text(begin, buffer.end_of_line(begin) - begin).removesuffix("\r")
        cells = cells_of(line, layout.separator)
        return _not_a_row(path, cells, layout, kind, buffer.line_of(rows.bad))

    yield from text_blocks(path, RowScanner(scan, describe, header=True), size, whole)


def _quoted_blocks(
    path: Path, layout: ColumnLayout, kind: Kind, engine: Parser, whole: bool
) -> Iterator[RankingBlock]:
    """The rows of a table as text in which cells are quoted; errors as `_text_table_blocks`."""

    def place(row: int) -> str:
        lines = (line for line, cells in table_records(path, layout.separator) if cells)
        return f", line {next(itertools.islice(lines, row, None))}"

    yield from table_blocks(_csv_chunks(path, layout, kind), engine, whole, place)


def _csv_chunks(path: Path, layout: ColumnLayout, kind: Kind) -> Iterator[TableChunk]:
    records = ((line, cells) for line, cells in table_records(path, layout.separator) if cells)
    ids, cells = (layout.query, layout.doc), len(layout.names)
    while batch := list(itertools.islice(records, BLOCK_ROWS)):
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
        yield TableChunk(query.take(first), first, doc, score)


def _numbers(texts: Strings) -> tuple[Float64, Int64]:
    length = texts.lengths()
    data = np.concatenate([texts.data, np.full(8, 32, np.uint8)])  # an empty text is read too
    return parse_decimals(data, texts.ptr[:-1], length)


def table_records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line that each record below the header ends on, and its cells, none for an empty line.

    Raises FormatError for quoting that cannot be read, for a cell or a line that is too long, and for damage.
    """
    with open_bytes(path) as raw:
        text = io.TextIOWrapper(
            io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18),
            "utf-8-sig",
            errors="surrogateescape",
            newline="",
        )
        reader = csv.reader(_bounded(text, path), delimiter=separator, strict=True)
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
    what = "a finite number as the " + ("score" if kind == "run" else "grade")
    return FormatError(
        path, f"'{cells[layout.number][:80]}'", f"{what}, in column {names[layout.number]}", line
    )
