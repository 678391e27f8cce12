"""The formats of rankings and judgments, and the rows that a file or frame of each gives."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, cast

import numpy as np

from weir.core.qrels import Origins
from weir.core.strings import IDENTIFIER_BYTES, Strings
from weir.errors import FormatError
from weir.files.blocks import (
    BLOCK_ROWS,
    ParsedRows,
    Parser,
    RankingBlock,
    RowScanner,
    TableChunk,
    differs_from_previous,
    table_blocks,
    text_blocks,
)
from weir.files.column_names import (
    WRITTEN,
    ColumnLayout,
    Kind,
    has_ranks,
    is_header,
    kind_of,
    origin_column,
    three_columns,
)
from weir.files.json_runs import (
    first_json_row,
    is_large,
    json_row_chunks,
    json_row_origins,
    kind_of_pickle,
    large_json_blocks,
    line_of_row,
    read_nested,
)
from weir.files.parsers import parse_decimals
from weir.files.pickles import PICKLE_MAGIC, PICKLE_SUFFIXES, is_pickle
from weir.files.tables import (
    frame_chunks,
    frame_origins,
    table_chunks,
    table_columns,
    table_origins,
    whole_numbers,
)
from weir.files.text_files import (
    DAMAGE,
    LINE_BYTES,
    PACKED,
    LineBuffer,
    damaged,
    open_bytes,
    read_bytes,
    unpacked_name,
)

SEPARATORS = {"csv": ",", "tsv": "\t"}
_HEAD_BYTES = 1 << 16  # bytes of a file that are looked at


@dataclass(frozen=True)
class Format:
    """A way of writing rankings and judgments.

    suffixes: the endings of its files, the one that Weir writes first; packs: whether .gz or .zst may follow;
    blanks: whether identifiers may have white space; library: what reading it needs beside numpy; rows: whether it
    holds rows, and not one value, {query: {document: number}}.
    """

    name: str
    suffixes: tuple[str, ...]
    packs: bool = True
    blanks: bool = True
    library: str | None = None
    rows: bool = True


FORMATS = (
    Format("trec", (".trec", ".txt", ".run", ".res", ".qrels", ".qrel"), blanks=False),
    Format("json", (".json",), rows=False),
    Format("jsonl", (".jsonl", ".ndjson")),
    Format("csv", (".csv",)),
    Format("tsv", (".tsv",)),
    Format("parquet", (".parquet", ".pq"), packs=False, library="pyarrow"),
    Format("arrow", (".arrow", ".feather", ".ipc"), packs=False, library="pyarrow"),
    Format("pickle", PICKLE_SUFFIXES, rows=False),
)
_CERTAIN = {suffix: f for f in FORMATS for suffix in f.suffixes[: 1 if f.name == "trec" else None]}
_TABLES = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"FEA1", "arrow"))
_MAGIC = (*_TABLES, *((magic, "pickle") for magic in PICKLE_MAGIC))
_BY_NAME = {f.name: f for f in FORMATS}
_UNPACKED = "the file unpacked, or as .gz or .zst"
_TEXT = "UTF-8; write the file again in it"
# How files begin that are none of these formats: what they are, and what to give instead.
_FOREIGN = (
    (b"\x1f\x8b", "gzip data", "its name to end in .gz"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "its name to end in .zst"),
    (b"\xfd7zXZ\x00", "xz data", _UNPACKED),
    (b"\x04\x22\x4d\x18", "lz4 data", _UNPACKED),
    (b"PK\x03\x04", "a zip", "one file out of it"),
    (b"7z\xbc\xaf", "a 7z archive", "one file out of it"),
    (b"\xff\xfe", "text in UTF-16", _TEXT),
    (b"\xfe\xff", "text in UTF-16", _TEXT),
    (b"\x93NUMPY", "a numpy array", "a table with identifiers"),
    (b"SQLite format 3", "an SQLite database", "a table written out of it"),
    (b"\x89HDF", "an HDF5 file", "a table written out of it"),
)


def named_format(path: Path) -> Format | None:
    """The format that a file's name says, None where it says none."""
    suffix = PurePath(unpacked_name(path).lower()).suffix
    return next((f for f in FORMATS if suffix in f.suffixes), None)


def format_of(path: Path, kind: Kind) -> Format:
    """The format of an existing file: by its name, else by how it begins.

    Raises FormatError when it cannot be read, and for a file of another kind, naming what it is.
    """
    suffix = PurePath(unpacked_name(path).lower()).suffix
    certain = _CERTAIN.get(suffix)
    head = b"" if certain and path.is_fifo() else read_bytes(path, 64)  # what is read of a pipe is gone
    for magic, data, expected in _FOREIGN:
        if head.startswith(magic):
            raise FormatError(path, data, expected)
    if head.startswith(b"BZh") and head[4:10] == b"1AY&SY":  # an identifier may begin with BZh
        raise FormatError(path, "bzip2 data", _UNPACKED)
    if b"\0" in head[:4] and head[:1].isalnum():  # letters and zeros in turn
        raise FormatError(path, "text in UTF-16", _TEXT)
    if certain and certain.name != "pickle" and head.startswith(PICKLE_MAGIC):
        raise FormatError(path, "a Python pickle", f"its name to end in {PICKLE_SUFFIXES[0]}")
    if certain is not None and certain.name == "tsv":
        # Between tabs may stand TREC's columns, or those of BEIR without their names.
        cells = first_cells(path, "\t")
        like_trec = not is_header(cells, kind) and (kind == "qrels" or len(cells) in (5, 6))
        return _BY_NAME["trec"] if like_trec else certain
    if certain is not None:
        return certain
    if head.lstrip().startswith(b"{"):
        try:
            row = json.loads(read_bytes(path, _HEAD_BYTES).partition(b"\n")[0])
        except (ValueError, RecursionError):
            row = None
        # The first line may be an object of plain values, as a row of a table is.
        flat = isinstance(row, dict) and not any(isinstance(value, (dict, list)) for value in row.values())
        return _BY_NAME["jsonl" if flat and row else "json"]
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return _BY_NAME[name]
    for name, separator in SEPARATORS.items():
        cells = first_cells(path, separator)
        if len(cells) > 2 and is_header(cells, kind):
            return _BY_NAME[name]
    return _BY_NAME["trec"]


def first_cells(path: Path, separator: str) -> list[str]:
    """The cells of a file's first line."""
    line = read_bytes(path, _HEAD_BYTES).partition(b"\n")[0].rstrip(b"\r")
    return cells_of(line.decode("utf-8", "replace"), separator)


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of a line; cut at the separators where its quoting cannot be read."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return within it, or a cell beyond the csv module's bound
        return line.split(separator)


def kind_of_file(path: Path) -> Kind:
    """Whether a file holds a run or judgments.

    Named columns say it, and so does the number of TREC's. An object with a fraction among its numbers is a run.
    Raises FormatError where that leaves it open, and as `read_run` does.
    """
    form = format_of(path, "run")
    if form.name == "trec":
        form = format_of(path, "qrels")  # a header may name a grade
    if not form.rows:
        kind_said = kind_of_pickle(path) if is_pickle(path) else None
        if kind_said is not None:
            return kind_said
        if any(isinstance(value, float) for row in read_nested(path).values() for value in row.values()):
            return "run"
        expected = "--kind run or --kind qrels, as these may be scores or grades"
        raise FormatError(path, "whole numbers only", expected)
    if form.name == "trec":
        lines = read_bytes(path, _HEAD_BYTES).decode("utf-8", "replace").split("\n")
        line = next((line for line in lines if line.strip() and not line.startswith("#")), "")
        if len(line.strip().split("\t")) == 3 or len(line.split()) == 4:
            return "qrels"
        if len(line.split()) > 4:
            return "run"
        expected = "6 columns (a run) or 4 (judgments); or say which with --kind"
        raise FormatError(path, f"'{line[:80]}'" if line else "no line", expected)
    if form.name == "jsonl":
        columns = list(first_json_row(path))
    elif form.name not in SEPARATORS:
        columns = table_columns(path, form.name == "parquet")
    else:
        columns = first_cells(path, SEPARATORS[form.name])
        if not (is_header(columns, "run") or is_header(columns, "qrels")):
            expected = "a header that names the columns, such as query_id, doc_id and score"
            raise FormatError(path, f"'{SEPARATORS[form.name].join(columns)[:80]}'", expected, 1)
    kind = kind_of(columns, path)
    at = three_columns(columns, kind, path)[2]
    open_ = kind == "run" and columns[at].strip().lower() == "score" and not has_ranks(columns)
    if open_ and _whole(path, form, columns, at):
        raise FormatError(
            path, "whole numbers as scores", "--kind run or --kind qrels, as these may be scores or grades"
        )
    return kind


def _whole(path: Path, form: Format, columns: list[str], at: int) -> bool:
    """Whether the numbers of a column are whole: by its type, or as the first rows write them."""
    if form.name == "jsonl":
        return type(first_json_row(path)[columns[at]]) is int
    if form.name not in SEPARATORS:
        return whole_numbers(path, columns[at], form.name == "parquet")
    lines = read_bytes(path, _HEAD_BYTES).decode("utf-8", "replace").split("\n")[1:]
    rows = [cells_of(line.rstrip("\r"), SEPARATORS[form.name]) for line in lines]
    numbers = [row[at].strip().lstrip("-") for row in rows if len(row) == len(columns)]
    return len(numbers) > 0 and all(number.isdigit() for number in numbers)


# Rankings and judgments as blocks of rows, from a file of any format or a frame in memory.
#
# A table as text has its cells found by the parsers, quoted or not. One in which a quoted cell holds a quotation mark
# or a line end (or, with numpy alone, a separator) is read by Python's csv module instead.

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
    how_read = partial(_file_blocks, path, form, kind, size)
    return Source(path, size, how_read, partial(_origins, path, form, kind))


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


def _file_blocks(path: Path, form: Format, kind: Kind, size: int, how: ReadOptions) -> Iterator[RankingBlock]:
    """The rows of a file, about `size` bytes of text; raises FormatError for a line that is no row."""
    block = size + 64 if how.whole else min(size + 64, how.engine.block)
    if form.name == "trec":
        return text_blocks(path, RowScanner(how.engine.scan, _bad_line), block, how.whole)
    if form.name in ("parquet", "arrow"):
        chunks = table_chunks(path, kind, form.name == "parquet")
        return table_blocks(chunks, how.engine, how.whole, lambda row: f", row {row + 1}")
    if form.name == "jsonl":
        chunks = json_row_chunks(path, kind)
        return table_blocks(chunks, how.engine, how.whole, lambda row: f", line {line_of_row(path, row)}")
    layout = _read_layout(path, kind, SEPARATORS[form.name])
    if how.quoted:

        def place(row: int) -> str:
            lines = (line for line, cells in table_records(path, layout.separator) if cells)
            return f", line {next(itertools.islice(lines, row, None))}"

        return table_blocks(_csv_chunks(path, layout, kind), how.engine, how.whole, place)

    def scan(buffer: LineBuffer, stop: int) -> ParsedRows:
        return how.engine.cells(buffer, stop, layout)

    def describe(buffer: LineBuffer, rows: ParsedRows) -> FormatError:
        begin = buffer.begin_of_line(rows.bad)
        line = buffer.text(begin, buffer.end_of_line(begin) - begin).removesuffix("\r")
        cells = cells_of(line, layout.separator)
        return _not_a_row(path, cells, layout, kind, buffer.line_of(rows.bad))

    return text_blocks(path, RowScanner(scan, describe, header=True), block, how.whole)


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
                size = f"an identifier of {column.lengths()[long[0]]:,} bytes"
                raise FormatError(path, size, f"at most {IDENTIFIER_BYTES:,}", batch[int(long[0])][0])
        padded = np.concatenate([number.data, np.full(8, 32, np.uint8)])  # an empty text is read too
        score, wrong = parse_decimals(padded, number.ptr[:-1], number.lengths())
        stop = int(wrong[0]) if len(wrong) else stop
        if stop < len(rows):
            raise _not_a_row(path, rows[stop], layout, kind, batch[stop][0])
        first = np.flatnonzero(differs_from_previous(query.data, query.ptr[:-1], query.lengths()))
        yield TableChunk(query.take(first), first, doc, score)


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
