"""Recognise formats of rankings and judgments, and read their rows."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any, cast

import numpy as np

from weir.core.qrels import LARGEST, Origins
from weir.core.rank_order import HEAD_ROWS
from weir.core.roles import MANY_QUERIES, like_grades, refuse_grades_as_documents
from weir.core.rounding import counted
from weir.core.strings import Bytes, Float64, Int64, Strings, take_strings
from weir.errors import BadValue, FormatError, LossWarning, give_warning
from weir.files.column_names import (
    WRITTEN,
    ColumnLayout,
    Kind,
    has_ranks,
    is_header,
    is_named,
    is_sheet,
    kind_of,
    names_rows,
    origin_column,
    other_columns,
    part_columns,
    rank_column,
    row_columns,
    say_no_grades,
    say_unread,
)
from weir.files.json_files import (
    first_json_row,
    json_row_chunks,
    json_row_origins,
    json_rows,
    kind_of_pickle,
    line_of_row,
    read_nested,
)
from weir.files.one_system import REMEDIES, SystemRow, orders_apart, refuse_several_systems
from weir.files.parsers import (
    BLOCK_ROWS,
    ParsedRows,
    QuotedCellError,
    RankingBlock,
    ReadOptions,
    Source,
    TableChunk,
    differs_from_previous,
    distinct_strings,
    parse_decimals,
    parse_slowly,
    ranks_behind,
    ranks_in,
    split_cells,
    split_columns,
    table_blocks,
    table_rows,
    text_blocks,
)
from weir.files.pickles import PICKLE_MAGIC, PICKLE_SUFFIXES, is_pickle
from weir.files.tables import table_chunks, table_columns, table_origins, table_rows_by_system, whole_numbers
from weir.files.text_files import (
    BOM,
    DAMAGE,
    PACKED,
    LineBuffer,
    damaged,
    is_pipe,
    is_stream,
    joined_files,
    open_bytes,
    read_bytes,
    read_text,
    unpacked_name,
)
from weir.settings import IDENTIFIER_BYTES, LINE_BYTES, RECORD_BYTES, require_memory

SEPARATORS = {"csv": ",", "tsv": "\t"}
SEMICOLON = ";"
"""Separator in CSV files of spreadsheets that write decimal commas."""
_NAMED_SEPARATOR = re.compile(
    r'"?sep=(.)"?', re.IGNORECASE
)  # the first line that Excel takes a separator from
MISSING = {"", "nan", "none", "null", "n/a", "na"}
"""Lower-case words of a cell without a value."""
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")
_MARK_NAMES = {".": "point", ",": "comma"}
_DECIMAL = re.compile(r"\s*[-+]?\d*([.,])\d*(?:[eE][-+]?\d+)?\s*")
_HEAD_BYTES = 1 << 16  # bytes of a file that are looked at
_LINE_FEED, _ZERO = 10, 48


@dataclass(frozen=True)
class Format:
    """A file format of rankings and judgments, such as CSV."""

    name: str
    suffixes: tuple[str, ...]
    """Endings of its files; Weir writes the first."""
    packs: bool = True
    """True if .gz or .zst may follow."""
    rows: bool = True
    """True for rows, False for one value {query: {document: number}}."""
    head: bytes = field(default=b"", repr=False, compare=False)
    """The first bytes of the file, if `format_of` read them."""


HEADER_AGAIN = ("the header again", "it once; join tables without their headers")
"""What is found in a row that repeats a table's header, as where files were joined, and what was expected."""

FORMATS = (
    Format("trec", (".trec", ".txt", ".run", ".res", ".qrels", ".qrel")),
    Format("json", (".json",), rows=False),
    Format("jsonl", (".jsonl", ".ndjson")),
    Format("csv", (".csv",)),
    Format("tsv", (".tsv",)),
    Format("parquet", (".parquet", ".pq"), packs=False),
    Format("arrow", (".arrow", ".feather", ".ipc"), packs=False),
    Format("pickle", PICKLE_SUFFIXES, rows=False),
)
_CERTAIN = {suffix: f for f in FORMATS for suffix in f.suffixes[: 1 if f.name == "trec" else None]}
_TABLES = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"FEA1", "arrow"), (b"\xff\xff\xff\xff", "arrow"))
ARROW_TABLES = tuple(magic for magic, _ in _TABLES)
"""First bytes of tables that pyarrow reads."""
_MAGIC = (*_TABLES, *((magic, "pickle") for magic in PICKLE_MAGIC))
_BY_NAME = {f.name: f for f in FORMATS}
BY_SUFFIX = {suffix: f for f in FORMATS for suffix in f.suffixes}
NUGGETS = ("nuggets", "nugget_bank")
"""Keys of the nuggets in a line of a nugget bank."""


def named_format(path: Path) -> Format | None:
    """Return the format that a file's suffix names, ignoring .gz and .zst; None if unknown."""
    return BY_SUFFIX.get(PurePath(unpacked_name(path).lower()).suffix)


def head_of(path: Path) -> bytes:
    """Return the first 64 KiB of a file, decompressed; b"" for a named pipe."""
    return b"" if is_pipe(path) and not is_stream(path) else read_bytes(path, _HEAD_BYTES)


def format_of(path: Path, kind: Kind, head: bytes | None = None) -> Format:
    """Return the format of a file, by suffix, else by its first bytes; any other text counts as TREC's.

    head: first bytes of the file, if known.

    Raises FormatError for an unreadable file or unsupported format.
    """
    head = head_of(path) if head is None else head
    return replace(_recognised(path, kind, head), head=head)


def _recognised(path: Path, kind: Kind, head: bytes) -> Format:
    suffix = PurePath(unpacked_name(path).lower()).suffix
    certain = _CERTAIN.get(suffix)
    if certain is None and is_pipe(path) and not is_stream(path):
        raise FormatError(
            path,
            "a pipe, whose beginning can be read once",
            "a file; compressed ones (.gz, .zst) are read as they are",
        )
    if certain and certain.name != "pickle" and head.startswith(PICKLE_MAGIC):
        raise FormatError(path, "a Python pickle", f"its name to end in {PICKLE_SUFFIXES[0]}")
    if suffix in (".yaml", ".yml"):
        expected = "another format; golden sets in YAML are read by: weir data import FILE -o DIR"
        raise FormatError(path, "YAML", expected)
    line = head.partition(b"\n")[0].rstrip(b"\r").decode("utf-8", "replace")
    if certain is not None and certain.name == "tsv":
        # Between tabs may stand TREC's columns, or those of BEIR without their names; so may lines cut at blanks.
        cells = cells_of(line, "\t")
        if "\t" not in line and is_header(cells_of(line, csv_separator(line)), kind):
            return _BY_NAME["csv"]
        headless = kind == "qrels" or len(columns_of(line)) > 4 > len(cells) or any(map(_is_number, cells))
        return _BY_NAME["trec"] if headless and not is_header(cells, kind) else certain
    if certain is not None:
        return certain
    if head.lstrip().startswith(b"{"):
        try:
            row = json.loads(head.partition(b"\n")[0])
        except (ValueError, RecursionError):
            row = None
        # The first line may be an object of plain values, as a row of a table is.
        flat = isinstance(row, dict) and not any(isinstance(value, (dict, list)) for value in row.values())
        return _BY_NAME["jsonl" if flat and row else "json"]
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return _BY_NAME[name]
    if named_separator(line):
        return _BY_NAME["csv"]
    for name, separator in (("tsv", SEPARATORS["tsv"]), ("csv", csv_separator(line))):
        cells = cells_of(line, separator) if separator in line else []
        pair = len(cells) == 2 and kind == "qrels"
        if (len(cells) > 2 or pair) and is_header(cells, kind) and (not pair or names_rows(cells)):
            return _BY_NAME[name]
    return _BY_NAME["trec"]


def holds_nuggets(path: Path, head: bytes | None = None) -> bool:
    """Return True if a file's first line is a JSON object with nuggets; False if it cannot be read."""
    try:
        line = head_of(path) if head is None else head
        if not line.lstrip().startswith(b"{"):
            return False
        if b"\n" not in line and len(line) > _HEAD_BYTES - len(BOM):  # there is more of it
            line = read_bytes(path, RECORD_BYTES)
        if b"nugget" not in line:  # as judgments in one object, which may be large
            return False
        row = json.loads(line.partition(b"\n")[0])
    except (FormatError, ValueError, RecursionError):  # which reading it otherwise says
        return False
    return isinstance(row, dict) and not row.keys().isdisjoint(NUGGETS)


def _is_number(cell: str) -> bool:
    return not math.isnan(parse_slowly(cell.strip().encode("utf-8", "surrogatepass")))


@dataclass(frozen=True)
class TableHead:
    """The header line of a text table, split into cells; its first row if there is no header."""

    cells: list[str]
    """Cells of the first line, mostly column names."""
    separator: str
    """Character between cells."""
    lines: int = 1
    """Lines of the head: 2 if a line such as `sep=;` comes first."""


def table_head(path: Path, tabs: bool = False, head: bytes = b"") -> TableHead:
    """Return the header of a text table, split into cells.

    tabs: split at tabs, rather than guess the separator.
    head: the file's first bytes, if known.

    Raises FormatError for line ends without line feeds.
    """
    line, _, rest = (head or read_bytes(path, _HEAD_BYTES)).decode("utf-8", "replace").partition("\n")
    named = "" if tabs else named_separator(line)
    line = (rest.partition("\n")[0] if named else line).rstrip("\r")
    separator = named or "\t" if named or tabs else csv_separator(line)
    if "\r" in line:
        try:
            next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            raise _carriage_return(path, 1) from None
    return TableHead(cells_of(line, separator), separator, 2 if named else 1)


def _carriage_return(path: object, line: int) -> FormatError:
    expected = "line feeds, with or without carriage returns before them; save it with the line ends of Unix or Windows"
    return FormatError(path, "a carriage return without a line feed, outside quotation marks", expected, line)


def named_separator(line: str) -> str:
    """Return the separator that a line such as `sep=;` declares; "" for another line."""
    named = _NAMED_SEPARATOR.fullmatch(line.removeprefix("\ufeff").rstrip("\r"))
    return named[1] if named else ""


def csv_separator(line: str) -> str:
    """Return the separator of a CSV with this first line: comma, semicolon or tab."""
    # A semicolon if it separates usual names or there is no comma, a tab if there is neither, else a comma.
    if "\t" in line and "," not in line and SEMICOLON not in line:
        return "\t"
    if SEMICOLON not in line or is_named(cells_of(line, ",")):
        return ","
    return SEMICOLON if "," not in line or is_named(cells_of(line, SEMICOLON)) else ","


def _head(path: Path, form: Format) -> TableHead | None:
    return table_head(path, form.name == "tsv", form.head) if form.name in SEPARATORS else None


def cells_of(line: str, separator: str) -> list[str]:
    """Return the cells of a CSV line; with invalid quoting, split at every separator."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return within it, or a cell beyond the csv module's bound
        return line.split(separator)


def begins_as_sheet(path: Path, head: bytes = b"") -> bool:
    """Return True for a .tsv or .csv file whose header is a judging sheet's."""
    if path.suffix not in (".tsv", ".csv") or not path.is_file():
        return False
    return is_sheet(table_head(path, path.suffix == ".tsv", head).cells)


def names_of_columns(path: Path, form: Format) -> list[str]:
    """Return the cells of a table's first line, mostly column names; [] for TREC and nested formats and an empty
    file.
    """
    if form.name == "jsonl":
        return list(first_json_row(path))
    if form.name in ("parquet", "arrow"):
        return table_columns(path, form.name == "parquet")
    head = _head(path, form)
    return [] if head is None else head.cells


def kind_of_file(path: Path) -> Kind:
    """Return "run" or "qrels", by the columns; nested JSON with a fraction is a run.

    Raises FormatError if unsure, as with whole numbers as scores.
    """
    form = format_of(path, "run")
    if form.name == "trec":
        form = format_of(path, "qrels")  # a header may name a grade
    open_choice = "`kind='run'` or `kind='qrels'`, as these may be scores or grades"
    if not form.rows:
        kind = kind_of_pickle(path) if is_pickle(path) else None
        if kind is not None:
            return kind
        if any(isinstance(value, float) for row in read_nested(path).values() for value in row.values()):
            return "run"
        raise FormatError(path, "whole numbers only", open_choice)
    if form.name == "trec":
        lines = read_bytes(path, _HEAD_BYTES).decode("utf-8", "replace").split("\n")
        line = next((line for line in lines if line.strip() and not line.startswith("#")), "")
        if len(line.strip().split("\t")) == 3 or len(columns_of(line)) == 4:
            return "qrels"
        if len(columns_of(line)) > 4:
            return "run"
        expected = "6 columns (a run) or 4 (judgments); or say which with `kind`"
        raise FormatError(path, f"'{line[:80]}'" if line else "no line", expected)
    head, columns = _head(path, form), names_of_columns(path, form)
    if head is not None and not (is_header(columns, "run") or is_header(columns, "qrels")):
        expected = "a header that names the columns, such as query_id, doc_id and score"
        raise FormatError(path, f"'{head.separator.join(columns)[:80]}'", expected, head.lines)
    kind = kind_of(columns, path)
    at = row_columns(columns, kind, path)[2]
    if kind == "run" and columns[at].strip().lower() == "score" and not has_ranks(columns):
        # Whole numbers may be scores or grades: by the type of the column, or as the first rows write them.
        if form.name == "jsonl":
            whole = type(first_json_row(path)[columns[at]]) is int
        elif head is None:
            whole = whole_numbers(path, columns[at], form.name == "parquet")
        else:
            lines = read_bytes(path, _HEAD_BYTES).decode("utf-8", "replace").split("\n")[head.lines :]
            rows = [cells_of(line.rstrip("\r"), head.separator) for line in lines]
            numbers = [row[at].strip().lstrip("-") for row in rows if len(row) == len(columns)]
            whole = len(numbers) > 0 and all(number.isdigit() for number in numbers)
        if whole:
            raise FormatError(path, "whole numbers as scores", open_choice)
    return kind


_NESTED_RUN = re.compile(r'\s*\{\s*("(\\.|[^"\\])*"\s*:\s*(\[|\{\s*("(\\.|[^"\\])*"\s*:\s*-?[\dNI]|\}))|\})')

_OF_RUNS = (".trec", ".run", ".res")  # suffixes of nothing else


def begins_as_run(path: Path) -> bool:
    """Return True if a file may be a ranking by its name, its first row or the names of its columns.

    Also of empty and unreadable files, which raise an error when they are read.
    """
    named = named_format(path)
    if not os.access(path, os.R_OK) or (named and PurePath(unpacked_name(path).lower()).suffix in _OF_RUNS):
        return True
    try:
        head = head_of(path)
    except FormatError:  # of a damaged file, or another kind of file, such as a picture
        return named is not None
    text = head.decode("utf-8", "replace")
    with suppress(FormatError):  # of another kind of file, such as YAML
        form = format_of(path, "run", head)
        if not head or form.name == "pickle":
            return True
        if form.name == "trec":
            lines = map(columns_of, text.split("\n"))
            cells = next((cells for cells in lines if cells and cells[0][:1] != "#"), [])
            return len(cells) > 4 and any(map(_is_number, cells[3:5]))
        if not form.rows:
            return _NESTED_RUN.match(text) is not None
        columns = names_of_columns(path, form)
        return is_header(columns, "run") and names_rows(columns)
    return False


# Rankings and judgments as blocks of rows, from a file of any format or a frame in memory.
#
# A table as text has its cells found by the parsers, quoted or not. One in which a quoted cell holds a quotation mark
# or a line end (or, with numpy alone, a separator) is read by Python's csv module instead.

# A file's text is about this much larger than the file itself.
_TEXT_TIMES = {"parquet": 3, "arrow": 1}
_PACKED_TEXT_TIMES = 5
_HELD_ROW_BYTES = 100  # of a row of judgments with short identifiers
CERTAIN_RANKS = 5
"""Documents of a query whose grades count up by one, from which on they are ranks."""
_JUDGMENT_COLUMNS = "4 columns (query 0 document grade), or query, document and grade between tabs"
_COUNTED_DOCUMENTS = 3
"""Rows of a query from which on documents 1, 2, 3 ... are ranks, if the second column varies."""


def file_source(path: Path, form: Format, kind: Kind) -> Source:
    """Return the rows of a file of rankings or judgments, to be read in blocks.

    Raises FormatError if a query has rows of several systems or collections; reading raises it for malformed rows.
    """
    parquet, head = form.name == "parquet", _head(path, form)
    if form.name != "trec" and not is_pipe(path):
        columns = names_of_columns(path, form)
        for at, part in part_columns(columns, kind):
            used = row_columns(columns, kind, path)[0], at, rank_column(columns, kind)
            rows = partial(_rows_by_part, path, form, head, used)
            refuse_several_systems(path, rows, REMEDIES[part], "system" if part == "system" else columns[at])
        if kind == "run":
            _refuse_orders_apart(path, form, head, columns)
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # opening it will say what is wrong
    size *= _PACKED_TEXT_TIMES if path.suffix in PACKED else _TEXT_TIMES.get(form.name, 1)
    # It says which columns are not read.
    layout_once = None if head is None else cache(partial(_read_layout, path, head, kind))

    def line_blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        block = size + 64 if how.whole else min(size + 64, how.engine.block)
        if layout_once is not None:
            return _separated_blocks(path, kind, layout_once(), block, how)
        if form.name in ("parquet", "arrow"):
            chunks = _held_rows(path, table_chunks(path, kind, parquet), how)
            return table_blocks(chunks, how.engine, how.whole, lambda row: f", row {row + 1}")
        if form.name == "jsonl":
            chunks = _held_rows(path, json_row_chunks(path, kind), how)
            return table_blocks(chunks, how.engine, how.whole, lambda row: f", line {line_of_row(path, row)}")
        if kind == "qrels":
            names, header = _header_of_pairs(form.head)
            scan = partial(_scan_judgments, names=names)
            return text_blocks(path, scan, block, how.whole, header=header)
        return _trec_run_blocks(path, block, how)

    def origins() -> Origins | None:
        if form.name in ("parquet", "arrow"):
            return table_origins(path, kind, parquet)
        if form.name == "jsonl":
            return json_row_origins(path, kind)
        at = origin_column(head.cells, kind) if head is not None else None
        if head is None or at is None:
            return None
        return Origins.of(cells[at] for _, cells in _table_records(path, head.separator) if cells)

    return Source(path, size, line_blocks, None if form.name == "trec" else origins)


def _held_rows(path: Path, chunks: Iterable[TableChunk], how: ReadOptions) -> Iterator[TableChunk]:
    # A small file may hold very many equal rows.
    count = 0
    for chunk in chunks:
        count += len(chunk) * how.whole
        require_memory(_HELD_ROW_BYTES * count, f"reading {path} whole")
        yield chunk


def _separated_blocks(
    path: Path, kind: Kind, layout: ColumnLayout, block: int, how: ReadOptions
) -> Iterator[RankingBlock]:
    def place_of_row(row: int) -> str:
        lines = (line for line, cells in _table_records(path, layout.separator) if cells)
        return f", line {next(itertools.islice(lines, row, None))}"

    def scan_rows(buffer: LineBuffer, stop: int) -> ParsedRows:
        _refuse_carriage_returns(buffer, stop)
        rows = how.engine.scan(buffer, stop, layout)
        if rows.bad < 0:
            return replace(rows, ranks=_ranks_of(buffer.buf, stop, rows, layout))
        cells = cells_of(buffer.line_text(rows.bad).removesuffix("\r"), layout.separator)
        whole = len(cells) == len(layout.names)
        # The general parser reads decimal commas, skips blank lines, and sees whether columns are exchanged.
        if (whole and not is_pipe(path)) or not any(map(str.strip, cells)):
            raise QuotedCellError
        raise _not_a_row(path, cells, layout, kind, buffer.line_of(rows.bad))

    if how.quoted or layout.separator == SEMICOLON or layout.number < 0:
        return table_blocks(_csv_chunks(path, layout, kind), how.engine, how.whole, place_of_row)
    return text_blocks(path, scan_rows, block, how.whole, header=layout.head_lines)


def _trec_run_blocks(path: Path, block: int, how: ReadOptions) -> Iterator[RankingBlock]:
    line_ends, remarked = list[bytes](), list[bool]()

    def scan_rows(buffer: LineBuffer, stop: int) -> ParsedRows:
        rows = how.engine.scan(buffer, stop, None)
        if rows.bad < 0:
            _refuse_exchanged_queries(buffer, stop, rows)
            remarked.append(_holds_remark(buffer, stop))
            _refuse_several_tags(buffer, stop, rows, line_ends)
            return replace(rows, ranks=_ranks_of(buffer.buf, stop, rows, None))
        line, number = buffer.line_text(rows.bad).strip(), buffer.line_of(rows.bad)
        raise _not_a_result(path, line, rows.bad_score, number)

    yield from text_blocks(path, scan_rows, block, how.whole)
    if any(remarked) and not (is_pipe(path) and not is_stream(path)):
        with io.BufferedReader(cast(io.RawIOBase, open_bytes(path)), 1 << 18) as lines:
            _say_remarks(path, lines, lambda cells: not trec_fault(cells))


def _refuse_orders_apart(path: Path, form: Format, head: TableHead | None, columns: list[str]) -> None:
    try:
        query, score, others = other_columns(columns)
    except BadValue:  # reading says so, where it needs names
        return
    for at in others:
        rows = _rows_by_part(path, form, head, (query, at, score))
        if found := orders_apart(columns[at], (row[1:] for row in rows)):
            raise FormatError(path, found, REMEDIES["order"])


def _rows_by_part(
    path: Path, form: Format, head: TableHead | None, used: tuple[int, int, int | None]
) -> Iterator[SystemRow]:
    columns = names_of_columns(path, form)
    names = [columns[one] for one in used if one is not None]
    if form.name in ("parquet", "arrow"):
        yield from table_rows_by_system(path, names, form.name == "parquet")
        return
    records: Iterator[tuple[int, dict[str, Any]]] = (
        json_rows(path)
        if head is None
        else (
            (n, dict(zip(columns, cells, strict=False))) for n, cells in _table_records(path, head.separator)
        )
    )
    for line, row in records:
        query, system, *rank = (str(row.get(name, "")) for name in names)
        yield f", line {line}", query, system, rank[0] if rank else ""


def say_remarks(path: object, count: int) -> None:
    """Warn (LossWarning) that `count` lines that begin with # were not read; do nothing for 0."""
    if count:
        lines = counted(count, "line that begins", "lines that begin")
        give_warning(LossWarning(f"{path}: not read: {lines} with #"))


def _holds_remark(buffer: LineBuffer, stop: int) -> bool:
    text = buffer.text
    if text.find(b"#", 0, stop) < 0:  # a byte alone is sought ten times as fast
        return False
    return text.startswith(b"#") or text.find(b"\n#", 0, stop) >= 0


def _say_remarks(path: Path, lines: Iterable[bytes], is_row: Callable[[list[str]], bool]) -> None:
    remarks = (columns_of(line.decode("utf-8", "replace")) for line in lines if line.startswith(b"#"))
    say_remarks(path, sum(map(is_row, remarks)))


def _refuse_several_tags(buffer: LineBuffer, stop: int, rows: ParsedRows, first: list[bytes]) -> None:
    if not len(rows.start):
        return
    text, begin = buffer.text, buffer.begin_of_line(int(rows.start[0]))
    end = re.sub(rb"^\s*(\S+\s+){4}\S+", b"", bytes(text[begin : text.find(b"\n", begin) + 1]))
    if not first:
        first.append(end)
    if first[0] == end and (rows.end_alike or text.count(end, begin, stop) == len(rows.start)):
        return  # nearly always; else each line is looked at
    lines = bytes(text[begin:stop]).decode("utf-8", "replace").split("\n")
    number = buffer.line_of(begin)

    def rows_by_system() -> Iterator[SystemRow]:
        yield "", "", [*columns_of(first[0].decode("utf-8", "replace")), ""][0], ""
        for n, line in enumerate(lines, number):
            cells = [*columns_of(line), ""]
            if len(cells) > 5 and not cells[0].startswith("#"):  # neither blank nor a remark
                yield f", line {n}", cells[0], cells[5], cells[3]

    refuse_several_systems(buffer.path, rows_by_system)


def _refuse_exchanged_queries(buffer: LineBuffer, stop: int, rows: ParsedRows) -> None:
    # The queries of a block's first rows against their second column and their ranks.
    if not len(rows.start):
        return
    begin, count = buffer.begin_of_line(int(rows.start[0])), min(len(rows.start), HEAD_ROWS)
    marked = bytes(buffer.text[begin : begin + 3]).upper() in (b"Q0 ", b"Q0\t")
    alone = (
        rows.first[:count] == np.arange(count)[: len(rows.first)]
    ).all()  # rarely: a query has several rows
    counting = rows.query_length[0] == 1 and buffer.text[rows.query_start[0]] in b"01" and alone
    if not marked and not counting:
        return
    end = stop if count == len(rows.start) else buffer.begin_of_line(int(rows.start[count]))
    lines = (
        columns_of(line) for line in bytes(buffer.text[begin:end]).decode("utf-8", "replace").split("\n")
    )
    query, second, _, rank = zip(*(row[:4] for row in lines if row and row[0][0] != "#"), strict=True)
    other = ""
    if marked and len({*query}) == 1 < len({*second}):
        other = f"the query '{query[0]}' in every line, beside a second column that varies"
    elif _rounds(query) > 1 and not _rounds([*dict.fromkeys(rank)]):
        other = (
            f"queries that count up from '{query[0]}' again and again, as ranks do, beside ranks that do not"
        )
    if other:
        raise FormatError(buffer.path, other, f"{TREC_COLUMNS}; two columns look exchanged")


def _rounds(names: Sequence[str]) -> int:
    """Return how many times "0", 1, 2 ... (or from "1") is counted through, such as 2 for 0 1 2 0 1; 0 for anything
    else.
    """
    at, rounds = 0, 0
    for name in names if names[0] in ("0", "1") else ():
        at, rounds = (int(name), rounds + 1) if name == names[0] else (at + 1, rounds)
        if name != str(at):
            return 0
    return rounds


def _refuse_carriage_returns(buffer: LineBuffer, stop: int) -> None:
    text = buffer.text
    if text.find(b"\r", 0, stop) < 0 or text.count(b"\r", 0, stop) == text.count(b"\r\n", 0, stop):
        return
    if text.find(b'"', 0, stop) >= 0:
        raise QuotedCellError
    at = text.find(b"\r", 0, stop)
    while text[at + 1] == _LINE_FEED:
        at = text.find(b"\r", at + 2, stop)
    raise _carriage_return(buffer.path, buffer.line_of(at))


def _ranks_of(
    buf: Bytes, stop: int, rows: ParsedRows, layout: ColumnLayout | None
) -> Callable[[int], Float64] | None:
    if layout is None:
        return lambda count: ranks_behind(buf, rows.start[:count], rows.length[:count])
    if layout.rank is None:
        return None
    at, separator, cells = layout.rank, layout.separator, len(layout.names)

    def ranks(count: int) -> Float64:
        table = split_cells(buf, stop, separator, cells, exact=True)
        start = np.ascontiguousarray(table.start[:count, at])
        return ranks_in(buf, start, table.end[:count, at] - start)

    return ranks


BLANKS = " \t\n\v\f\r"
"""Separators between columns of TREC files; other Unicode white space belongs to identifiers."""
TREC_COLUMNS = "query Q0 document rank score tag"
_AS_COLBERT = "weir data import FILE -o DIR --as colbert"
_ONLY_RANKS = "3 columns without names are imported by weir data import --as run-scores, or --as run-ranks"


def columns_of(line: str) -> list[str]:
    """Return the columns of a TREC line, split at ASCII white space."""
    return re.findall(f"[^{BLANKS}]+", line)


def trec_fault(cells: Sequence[str]) -> str:
    """Return why these columns are no row of a TREC run; "" if they are one."""
    # A row is `query Q0 document rank score tag`. With Q0 the tag may be missing, or followed by any text
    # without another
    # Q0 if it does not begin like a number; elsewhere only by a remark from `#`. The score must be a
    # number, the rank
    # begin like one.
    count, marked = len(cells), [cell.upper() for cell in cells[1:]]
    marks = marked.count("Q0") if marked[:1] == ["Q0"] else 0
    text = count > 6 and marks == 1 and not "+" <= cells[5][0] <= "9"
    if count < 5 or (count == 5 and not marks) or (count > 6 and not text and cells[6][0] != "#"):
        return f"{count} column{'s' if count > 1 else ''}"
    if not "+" <= cells[3][0] <= "9":
        return f"'{cells[3][:40]}' as the rank"
    return "" if _is_number(cells[4]) else f"'{cells[4][:40]}' as the score"


def _not_a_result(path: Path, text: str, bad_score: bool, line: int) -> FormatError:
    cells, shown = columns_of(text), f"'{text[:80]}{'...' if len(text) > 80 else ''}'"
    if bad_score:
        return FormatError(path, shown, "a finite number as the score, in column 5", line)
    if "\r" in text:
        return _carriage_return(path, line)
    count, expected = len(cells), f"6 columns: {TREC_COLUMNS}"
    if count == 3:
        expected += f"; {_ONLY_RANKS}"
    elif count in (4, 5) and cells[2].isdigit() and _is_number(cells[3]):
        expected += f"; ColBERT's query, document, rank and score: {_AS_COLBERT}"
    elif count == 1 and re.search("[,;]", text):
        expected += ", between blanks or tabs"
    elif count == 4:
        expected += "; 4 are judgments, which stand before the run"
    elif count == 5:
        expected += ", the tag absent only after Q0"
    elif count > 6:
        expected += ", then nothing or a remark that begins with #"
        expected += "; are these two rows on one line?" if count > 8 else ""
    return FormatError(path, f"{trec_fault(cells)} in {shown}", expected, line)


def _header_of_pairs(head: bytes) -> tuple[list[str], int]:
    """Return (the two cells of a header of judgments between blanks, lines up to it); ([], 0) without one."""
    lines = map(columns_of, head.decode("utf-8-sig", "replace").split("\n"))
    number, cells = next((one for one in enumerate(lines, 1) if one[1] and one[1][0][0] != "#"), (0, []))
    named = len(cells) == 2 and (names_rows(cells) or is_named(cells))
    return (cells, number) if named else ([], 0)


def _scan_judgments(buffer: LineBuffer, stop: int, names: Sequence[str]) -> ParsedRows:
    path, line, at = buffer.path, "", 0  # the first line that is neither blank nor a comment
    while at < stop and (not line or line.startswith("#")):
        end = buffer.text.find(b"\n", at)
        line, at = bytes(buffer.text[at:end]).decode("utf-8", "replace").strip(), end + 1
    if _holds_remark(buffer, stop):
        lines = bytes(buffer.text[:stop]).split(b"\n")
        _say_remarks(path, lines, lambda cells: len(cells) in (3, 4) and _is_number(cells[-1]))
    cells = len(line.split("\t"))
    pairs = len(columns_of(line)) == 2
    # Cut at tabs where the first line has some: identifiers may hold blanks.
    tabs = cells in (3, 4) and not line.startswith("#")
    buf, width = buffer.buf, cells if tabs else 2 if pairs else 4
    table = (
        split_cells(buf, stop, "\t", cells, exact=False) if tabs else split_columns(buf, stop, width, width)
    )
    if table.bad >= 0:
        raise _not_a_judgment(buffer, table.bad, pairs)
    if pairs:
        say_no_grades(path)
        if not names:
            return table_rows(buf, table, (0, 1))
        header = rb"(?m)^\s*" + rb"\s+".join(re.escape(name.encode()) for name in names) + rb"\s*$"
        if again := re.compile(header).search(buffer.text, 0, stop):
            raise FormatError(path, *HEADER_AGAIN, buffer.line_of(again.end() - 1))
        return table_rows(buf, table, row_columns(names, "qrels", path))
    empty = np.flatnonzero((table.start == table.end)[:, [0, width - 2, width - 1]].any(axis=1))
    if len(empty):
        raise FormatError(
            path, "an empty column", _JUDGMENT_COLUMNS, buffer.line_of(int(table.start[empty[0], 0]))
        )
    rows = table_rows(buf, table, (0, width - 2, width - 1))
    odd = np.isnan(rows.score) | (np.abs(rows.score) > LARGEST)
    if odd.any():
        start, end = int(table.start[odd.argmax(), -1]), int(table.end[odd.argmax(), -1])
        text = bytes(buffer.text[start:end]).decode("utf-8", "replace")
        docs = take_strings(buf, rows.start, rows.length)
        grades = take_strings(buf, table.start[:, -1], table.end[:, -1] - table.start[:, -1])
        refuse_grades_as_documents(docs, grades.tolist(), path)
        raise bad_grade(f"{path}, line {buffer.line_of(start)}", text)
    if width == 3:
        _refuse_ranks_as_grades(path, rows)
        return rows
    second = table.start[:, 1], table.end[:, 1] - table.start[:, 1]
    if len(rows.first) >= MANY_QUERIES and not rows.score.any():
        grades = take_strings(buf, *second)
        if like_grades(grades) and (above := [one for one in grades.tolist() if one > "0"]):
            found = f"the grade 0 in every line, beside a second column of grades such as '{above[0]}'"
            raise FormatError(path, found, "query, iteration, document and grade; two columns look exchanged")
    if not differs_from_previous(buf, *second)[1:].any():
        return rows
    _refuse_exchanged_columns(path, buf, rows)
    return replace(rows, unread=second_column(distinct_strings(take_strings(buf, *second))[1].tolist()))


def _not_a_judgment(buffer: LineBuffer, bad: int, pairs: bool) -> FormatError:
    line, number = buffer.line_text(bad).strip(), buffer.line_of(bad)
    if "\r" in line:
        return _carriage_return(buffer.path, number)
    run = "; this looks like a run, and judgments come first" if not trec_fault(columns_of(line)) else ""
    expected = "2 columns as before (query and document)" if pairs else _JUDGMENT_COLUMNS + run
    return FormatError(buffer.path, f"'{line[:80]}'", expected, number)


def counting_up(rows: ParsedRows) -> tuple[Int64, int]:
    """Return (position of each row in its query's segment, from 0; rows of the longest segment, 0 without rows)."""
    count = np.diff(rows.first, append=len(rows.score))
    return np.arange(len(rows.score)) - np.repeat(rows.first, count), int(count.max(initial=0))


def _refuse_ranks_as_grades(path: Path, rows: ParsedRows) -> None:
    # Three columns may be a run's ranks, as PyTerrier writes results.
    steps, most = counting_up(rows)
    if most >= CERTAIN_RANKS and rows.score[0] in (0, 1) and (rows.score == rows.score[0] + steps).all():
        ranks = f"numbers that count up from {rows.score[0]:g} for each query, as ranks do"
        expected = "grades; a run of ranks is read by: weir data import FILE -o DIR --as run-ranks"
        raise FormatError(path, ranks, expected)


def _refuse_exchanged_columns(path: Path, buf: Bytes, rows: ParsedRows) -> None:
    steps, most = counting_up(rows)
    if most >= _COUNTED_DOCUMENTS and buf[rows.start[0]] in (_ZERO, _ZERO + 1):
        documents = ranks_in(buf, rows.start, rows.length)
        if (documents == documents[0] + steps).all():
            ranks = "documents that count up for each query, as ranks do in the third column"
            expected = f"judgments; ColBERT's query, document, rank and score: {_AS_COLBERT}"
            raise FormatError(path, ranks, expected)
    document = bytes(buf[rows.start[0] : rows.start[0] + rows.length[0]])
    if document in (b"0", b"Q0") and not differs_from_previous(buf, rows.start, rows.length)[1:].any():
        found = f"the document '{document.decode()}' in every line, beside a second column that varies"
        raise FormatError(path, found, "query, iteration, document and grade; two columns look exchanged")


def second_column(values: Iterable[str]) -> str:
    """Return a description of the values in the second column of TREC judgments; "" unless they vary (0
    equals Q0).
    """
    several = sorted(dict.fromkeys("0" if value in ("Q0", "q0") else value for value in values))
    shown = ", ".join(several[:4]) + ", ..." * (len(several) > 4)
    return f"column 2, of {len(several):,} intents or rounds ({shown})" if len(several) > 1 else ""


def bad_grade(where: str, text: str) -> FormatError:
    """Return the FormatError for a grade that is no number within ±16384."""
    expected = f"a number within ±{LARGEST}"
    if not math.isnan(parse_slowly(text.encode("utf-8", "surrogatepass"))):
        expected += "; scale the grades first"
    return FormatError(where, f"the grade '{text}'", expected)


def _read_layout(path: Path, head: TableHead, kind: Kind) -> ColumnLayout:
    cells, separator = head.cells, head.separator
    if not is_header(cells, kind):
        line = separator.join(cells)
        expected = f"a header that names the columns, such as {separator.join(WRITTEN[kind])}"
        if kind == "run" and len(cells) == 3 and _is_number(cells[2]):
            expected += f"; {_ONLY_RANKS}"
        elif kind == "run" and not trec_fault(cells):
            expected += "; TREC's columns stand between blanks or tabs"
        raise FormatError(path, f"'{line[:80]}'" if line else _no_header(path), expected, head.lines)
    (query, doc, *number), rank = row_columns(cells, kind, path), rank_column(cells, kind)
    say_unread(path, cells, kind)
    return ColumnLayout(separator, tuple(cells), query, doc, number[0] if number else -1, rank, head.lines)


def _no_header(path: Path) -> str:
    return "a blank line in the place of the header" if read_bytes(path, _HEAD_BYTES).strip() else "no header"


def _csv_chunks(path: Path, layout: ColumnLayout, kind: Kind) -> Iterator[TableChunk]:
    numbers = (layout.number,) * (layout.number >= 0)
    records = (one for one in number_records(path, layout.separator, numbers) if one[1])
    ids, cells = (layout.query, layout.doc), len(layout.names)
    damage: FormatError | None = None
    while damage is None:
        batch: list[tuple[int, list[str]]] = []
        try:
            batch.extend(itertools.islice(records, BLOCK_ROWS))
        except FormatError as error:  # raised once the rows before it are known to be sound
            damage = error
        if not batch:
            break
        rows = [row for _, row in batch]
        odd = (i for i, row in enumerate(rows) if len(row) != cells or not all(row[c] for c in ids))
        stop = next(odd, len(rows))
        query, doc, *number = (
            Strings.packed([row[c].encode() for row in rows[:stop]]) for c in (*ids, *numbers)
        )
        for column in (query, doc):
            long = np.flatnonzero(column.lengths() > IDENTIFIER_BYTES)
            if len(long):
                size = f"an identifier of {column.lengths()[long[0]]:,} bytes"
                raise FormatError(path, size, f"at most {IDENTIFIER_BYTES:,}", batch[int(long[0])][0])
        score = np.ones(stop)
        for texts in number:
            padded = np.concatenate([texts.data, np.full(8, 32, np.uint8)])  # an empty text is read too
            score, wrong = parse_decimals(padded, texts.ptr[:-1], texts.lengths())
            stop = int(wrong[0]) if len(wrong) else stop
        if not numbers and list(layout.names) in rows:
            raise FormatError(path, *HEADER_AGAIN, batch[rows.index(list(layout.names))][0])
        if stop < len(rows):
            if kind == "qrels" and numbers:
                grades = [row[layout.number] for row in rows if len(row) == cells]
                docs = [row[layout.doc].encode() for row in rows if len(row) == cells]
                refuse_grades_as_documents(Strings.packed(docs), grades, path)
            raise _not_a_row(path, rows[stop], layout, kind, batch[stop][0])
        first = np.flatnonzero(differs_from_previous(query.data, query.ptr[:-1], query.lengths()))
        rank = None
        if layout.rank is not None:
            rank = np.array([parse_slowly(row[layout.rank].encode("utf-8", "replace")) for row in rows])
        yield TableChunk(query.take(first), first, doc, score, rank)
    if damage is not None:
        raise damage


_QUOTING = 'quotation marks around whole cells, those inside doubled, as in "say ""a"""'


def _table_records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    number, last = 0, ""  # the line that was read last: it ends at "\n", or at "\r" within a cell
    record = list[str]()  # its lines

    def decoded_lines(text: io.TextIOWrapper) -> Iterator[str]:
        nonlocal number, last
        line = text.readline(LINE_BYTES + 1)
        while line:
            number += not last.endswith("\r")
            if line.startswith("\ufeff"):
                raise joined_files(path, number)
            if len(line) > LINE_BYTES:
                raise FormatError(
                    path, f"a line of more than {LINE_BYTES:,} bytes", "one row on each line", number
                )
            following = text.readline(LINE_BYTES + 1)
            last = line if following else line.removesuffix("\r")  # the end of the file ends its last line
            record.append(line)
            yield line
            line = following

    with open_bytes(path) as raw:
        buffered = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18)
        text = io.TextIOWrapper(buffered, "utf-8-sig", newline="")
        reader = csv.reader(decoded_lines(text), delimiter=separator, strict=True)
        try:
            if named_separator(separator.join(next(reader, []))):
                next(reader, None)
            record.clear()
            for cells in reader:
                if last.endswith("\r"):
                    raise _carriage_return(path, number)
                if (
                    separator == "\t"
                    and len(record) > 1
                    and {len(one.split("\t")) for one in record} == {len(cells)}
                ):
                    found = "a quotation mark that ends on a later line, where each line is a row"
                    raise FormatError(path, found, _QUOTING, number + 1 - len(record))
                record.clear()
                yield number, cells if any(map(str.strip, cells)) else []
        except csv.Error as error:
            if "field limit" in str(error):
                long_cell = f"a cell of more than {csv.field_size_limit():,} characters"
                raise FormatError(
                    path, long_cell, "shorter cells, or the rows as JSON lines", number
                ) from None
            raise FormatError(path, f"bad quoting ({error})", _QUOTING, number) from None
        except UnicodeDecodeError:
            read_text(path)  # raises with the line
            raise
        except DAMAGE as error:
            raise damaged(path, error) from error


def number_records(
    path: Path, separator: str, columns: Collection[int], remedy: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each row below a table's header; no cells for a blank row.

    columns: positions of number columns, in which decimal commas become points.
    remedy: end of error messages.

    Raises the errors of `decimal_points`.
    """
    return decimal_points(path, _table_records(path, separator), columns, separator, remedy)


def decimal_points(
    path: Path,
    records: Iterator[tuple[int, list[str]]],
    columns: Collection[int],
    separator: str,
    remedy: str = "",
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each record, with decimal commas in number columns replaced by points.

    columns: positions of number columns.
    separator: between cells; with semicolons, points may group thousands.
    remedy: end of error messages.

    Raises FormatError for mixed decimal marks and, after the last record, for numbers such as 1,234 that may be
    grouped.
    """
    marks: dict[int, str] = {}
    whole, grouped, fractions = set[int](), dict[int, tuple[int, str]](), set[int]()
    for line, cells in records:
        for at in columns:
            cell = cells[at].strip() if at < len(cells) else ""
            if cell.isdecimal():
                whole.add(at)
            if number := _DECIMAL.fullmatch(cell):
                if not _THOUSANDS.fullmatch(cell):
                    fractions.add(at)
                elif separator == SEMICOLON or number[1] == ",":
                    grouped.setdefault(at, (line, cell))
                if marks.setdefault(at, number[1]) != number[1]:
                    found = f"'{cells[at]}' below numbers with '{marks[at]}'"
                    raise FormatError(path, found, f"one decimal mark, a point or a comma{remedy}", line)
                cells[at] = cells[at].replace(",", ".")
        yield line, cells
    for at in grouped.keys() - fractions:
        line, cell = grouped[at]
        if at in whole or separator != SEMICOLON:
            beside = " among whole numbers" * (at in whole)
            found = f"'{cell}'{beside}, where the {_MARK_NAMES[marks[at]]} may group thousands"
            raise FormatError(path, found, f"numbers without marks between thousands{remedy}", line)


def _not_a_row(path: Path, cells: list[str], layout: ColumnLayout, kind: Kind, line: int) -> FormatError:
    names = layout.names
    if len(cells) != len(names):
        shown = layout.separator.join(cells)[:80]
        count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
        return FormatError(path, f"{count} in '{shown}'", f"{len(names)} cells: {', '.join(names)}", line)
    for at in (layout.query, layout.doc):
        if not cells[at]:
            return FormatError(path, f"an empty {names[at]}", "an identifier in every row", line)
    what = "a finite number as the " + ("score" if kind == "run" else "grade")
    expected = f"{what}, in column {names[layout.number]}"
    if cells[layout.number] != cells[layout.number].strip():
        expected += ", without blanks around it"
    if kind == "qrels" and cells[layout.number].isalpha() and cells[layout.number].casefold() not in MISSING:
        expected += "; words are read by: weir data import FILE -o DIR --grades WORD=N,..."
    if re.search(r"\d[,' ]\d|\d\s*%", cells[layout.number]):
        expected += ", in digits with one decimal mark"
    if kind == "qrels" and cells[layout.number].casefold() in MISSING:
        expected += (
            "; of a sheet of weir labels pool that is not filled in whole, weir labels relabel -o FILE makes "
            "judgments; of another file, weir data import FILE -o DIR"
        )
    return FormatError(path, f"'{cells[layout.number][:80]}'", expected, line)
