"""The formats of rankings and judgments, and the rows that a file or frame of each gives."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import cast

import numpy as np

from weir.core.qrels import LARGEST, Origins
from weir.core.strings import Strings
from weir.errors import FormatError
from weir.files.column_names import (
    SHEET_HEAD,
    WRITTEN,
    ColumnLayout,
    Kind,
    has_ranks,
    is_header,
    is_named,
    kind_of,
    origin_column,
    three_columns,
)
from weir.files.json_files import (
    first_json_row,
    json_row_chunks,
    json_row_origins,
    kind_of_pickle,
    line_of_row,
    read_nested,
)
from weir.files.parsers import (
    BLOCK_ROWS,
    ParsedRows,
    RankingBlock,
    ReadOptions,
    Source,
    TableChunk,
    differs_from_previous,
    parse_decimals,
    split_cells,
    split_columns,
    table_blocks,
    table_rows,
    text_blocks,
)
from weir.files.pickles import PICKLE_MAGIC, PICKLE_SUFFIXES, is_pickle
from weir.files.tables import table_chunks, table_columns, table_origins, whole_numbers
from weir.files.text_files import (
    DAMAGE,
    PACKED,
    LineBuffer,
    damaged,
    is_pipe,
    open_bytes,
    read_bytes,
    unpacked_name,
)
from weir.settings import IDENTIFIER_BYTES, LINE_BYTES, RECORD_BYTES

SEPARATORS = {"csv": ",", "tsv": "\t"}
SEMICOLON = ";"
"""Between the cells of a CSV from a spreadsheet that writes decimal commas."""
_DECIMAL = re.compile(r"\s*[-+]?\d*([.,])\d*(?:[eE][-+]?\d+)?\s*")
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
BY_SUFFIX = {suffix: f for f in FORMATS for suffix in f.suffixes}
NUGGETS = ("nuggets", "nugget_bank")
"""Keys of the nuggets on a line of a nugget bank."""
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
    return BY_SUFFIX.get(PurePath(unpacked_name(path).lower()).suffix)


def format_of(path: Path, kind: Kind) -> Format:
    """The format of an existing file: by its name, else by how it begins.

    Raises FormatError when it cannot be read, and for a file of another kind, naming what it is.
    """
    suffix = PurePath(unpacked_name(path).lower()).suffix
    certain = _CERTAIN.get(suffix)
    pipe = is_pipe(path)
    if pipe and certain is None:
        raise FormatError(
            path,
            "a pipe, whose beginning can be read once",
            "a file; compressed ones (.gz, .zst) are read as they are",
        )
    head = b"" if pipe else read_bytes(path, _HEAD_BYTES)
    for magic, data, expected in _FOREIGN:
        if head.startswith(magic):
            raise FormatError(path, data, expected)
    if head.startswith(b"BZh") and head[4:10] == b"1AY&SY":  # an identifier may begin with BZh
        raise FormatError(path, "bzip2 data", _UNPACKED)
    if head.startswith(bytes(4)):
        raise FormatError(path, "zero bytes", "text, or a table")
    if b"\0" in head[:4] and head[:1].isalnum():  # letters and zeros in turn
        raise FormatError(path, "text in UTF-16", _TEXT)
    if certain and certain.name != "pickle" and head.startswith(PICKLE_MAGIC):
        raise FormatError(path, "a Python pickle", f"its name to end in {PICKLE_SUFFIXES[0]}")
    line = head.partition(b"\n")[0].rstrip(b"\r").decode("utf-8", "replace")
    if certain is not None and certain.name == "tsv":
        # Between tabs may stand TREC's columns, or those of BEIR without their names.
        cells = cells_of(line, "\t")
        like_trec = not is_header(cells, kind) and (kind == "qrels" or len(cells) in (5, 6))
        return _BY_NAME["trec"] if like_trec else certain
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
    for name, separator in (("csv", csv_separator(line)), ("tsv", SEPARATORS["tsv"])):
        cells = cells_of(line, separator) if separator in line else []
        if len(cells) > 2 and is_header(cells, kind):
            return _BY_NAME[name]
    return _BY_NAME["trec"]


def holds_nuggets(path: Path) -> bool:
    """Whether a file's first line is an object with nuggets; what cannot be read has none."""
    if is_pipe(path):
        return False
    try:
        line = read_bytes(path, _HEAD_BYTES)
        if not line.lstrip().startswith(b"{"):
            return False
        if b"\n" not in line:
            line = read_bytes(path, RECORD_BYTES)
        if b"nugget" not in line:  # as judgments in one object, which may be large
            return False
        row = json.loads(line.partition(b"\n")[0])
    except (FormatError, ValueError, RecursionError):  # which reading it otherwise says
        return False
    return isinstance(row, dict) and not row.keys().isdisjoint(NUGGETS)


def first_cells(path: Path, separator: str) -> list[str]:
    """The cells of a file's first line."""
    return cells_of(first_line(path), separator)


def csv_separator(line: str) -> str:
    """What stands between the cells of a CSV with this first line: semicolons where they part usual names of columns.

    So they do where the line has no comma at all; else commas do.
    """
    if SEMICOLON not in line or is_named(cells_of(line, ",")):
        return ","
    return SEMICOLON if "," not in line or is_named(cells_of(line, SEMICOLON)) else ","


def _separator(path: Path, form: Format) -> str:
    """What stands between the cells of a table as text, "" for another format."""
    return csv_separator(first_line(path)) if form.name == "csv" else SEPARATORS.get(form.name, "")


def first_line(path: Path) -> str:
    """A file's first line."""
    return read_bytes(path, _HEAD_BYTES).partition(b"\n")[0].rstrip(b"\r").decode("utf-8", "replace")


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of a line; cut at the separators where its quoting cannot be read."""
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return within it, or a cell beyond the csv module's bound
        return line.split(separator)


def begins_as_sheet(path: Path) -> bool:
    """Whether a file begins with the columns of a sheet."""
    if path.suffix not in (".tsv", ".csv") or not path.is_file():
        return False
    line = first_line(path)
    cells = line.split("\t") if path.suffix == ".tsv" else cells_of(line, csv_separator(line))
    return tuple(cells[:3]) == SHEET_HEAD[:3]


def kind_of_file(path: Path) -> Kind:
    """Whether a file holds a run or judgments.

    Named columns say it, and so does the number of TREC's. An object with a fraction among its numbers is a run.
    Raises FormatError where that leaves it open, and as `read_run` does.
    """
    form = format_of(path, "run")
    if form.name == "trec":
        form = format_of(path, "qrels")  # a header may name a grade
    open_choice = "--kind run or --kind qrels, as these may be scores or grades"
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
        if len(line.strip().split("\t")) == 3 or len(line.split()) == 4:
            return "qrels"
        if len(line.split()) > 4:
            return "run"
        expected = "6 columns (a run) or 4 (judgments); or say which with --kind"
        raise FormatError(path, f"'{line[:80]}'" if line else "no line", expected)
    separator = _separator(path, form)
    if form.name == "jsonl":
        columns = list(first_json_row(path))
    elif not separator:
        columns = table_columns(path, form.name == "parquet")
    else:
        columns = first_cells(path, separator)
        if not (is_header(columns, "run") or is_header(columns, "qrels")):
            expected = "a header that names the columns, such as query_id, doc_id and score"
            raise FormatError(path, f"'{separator.join(columns)[:80]}'", expected, 1)
    kind = kind_of(columns, path)
    at = three_columns(columns, kind, path)[2]
    if kind == "run" and columns[at].strip().lower() == "score" and not has_ranks(columns):
        # Whole numbers may be scores or grades: by the type of the column, or as the first rows write them.
        if form.name == "jsonl":
            whole = type(first_json_row(path)[columns[at]]) is int
        elif not separator:
            whole = whole_numbers(path, columns[at], form.name == "parquet")
        else:
            lines = read_bytes(path, _HEAD_BYTES).decode("utf-8", "replace").split("\n")[1:]
            rows = [cells_of(line.rstrip("\r"), separator) for line in lines]
            numbers = [row[at].strip().lstrip("-") for row in rows if len(row) == len(columns)]
            whole = len(numbers) > 0 and all(number.isdigit() for number in numbers)
        if whole:
            raise FormatError(path, "whole numbers as scores", open_choice)
    return kind


# Rankings and judgments as blocks of rows, from a file of any format or a frame in memory.
#
# A table as text has its cells found by the parsers, quoted or not. One in which a quoted cell holds a quotation mark
# or a line end (or, with numpy alone, a separator) is read by Python's csv module instead.

# A file's text is about this much larger than the file itself.
_TEXT_TIMES = {"parquet": 3, "arrow": 1}
_PACKED_TEXT_TIMES = 5
CERTAIN_RANKS = 5
"""Documents of a query whose grades count up by one, from which on they are ranks."""
_JUDGMENT_COLUMNS = "4 columns (query 0 document grade), or query, document and grade between tabs"


def file_source(path: Path, form: Format, kind: Kind) -> Source:
    """The rows of a file of any format that holds rows; its blocks raise FormatError for a line that is no row."""
    parquet, separator = form.name == "parquet", _separator(path, form)
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # opening it will say what is wrong
    size *= _PACKED_TEXT_TIMES if path.suffix in PACKED else _TEXT_TIMES.get(form.name, 1)

    def blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        block = size + 64 if how.whole else min(size + 64, how.engine.block)
        if form.name == "trec" and kind == "qrels":
            return text_blocks(path, scan_judgments, block, how.whole)
        if form.name in ("parquet", "arrow"):
            chunks = table_chunks(path, kind, parquet)
            return table_blocks(chunks, how.engine, how.whole, lambda row: f", row {row + 1}")
        if form.name == "jsonl":
            chunks = json_row_chunks(path, kind)
            return table_blocks(chunks, how.engine, how.whole, lambda row: f", line {line_of_row(path, row)}")
        layout = None if form.name == "trec" else _read_layout(path, kind, separator)
        if layout is not None and (how.quoted or separator == SEMICOLON):

            def place(row: int) -> str:
                lines = (line for line, cells in table_records(path, separator) if cells)
                return f", line {next(itertools.islice(lines, row, None))}"

            return table_blocks(_csv_chunks(path, layout, kind), how.engine, how.whole, place)

        def scan(buffer: LineBuffer, stop: int) -> ParsedRows:
            rows = how.engine.scan(buffer, stop, layout)
            if rows.bad < 0:
                return rows
            text, line = buffer.line_text(rows.bad), buffer.line_of(rows.bad)
            if layout is None:
                raise _not_a_result(path, text.strip(), rows.bad_score, line)
            raise _not_a_row(path, cells_of(text.removesuffix("\r"), separator), layout, kind, line)

        return text_blocks(path, scan, block, how.whole, header=layout is not None)

    def origins() -> Origins | None:
        if form.name in ("parquet", "arrow"):
            return table_origins(path, kind, parquet)
        if form.name == "jsonl":
            return json_row_origins(path, kind)
        at = origin_column(first_cells(path, separator), kind) if separator else None
        if at is None:
            return None
        return Origins.of(cells[at] for _, cells in table_records(path, separator) if cells)

    return Source(path, size, blocks, None if form.name == "trec" else origins)


def _not_a_result(path: Path, text: str, bad_score: bool, line: int) -> FormatError:
    """What is wrong with a line of TREC's columns."""
    count, shown = len(text.split()), f"'{text[:80]}{'...' if len(text) > 80 else ''}'"
    if bad_score:
        return FormatError(path, shown, "a finite number as the score, in column 5", line)
    expected = "6 columns: query Q0 document rank score tag"
    if count == 4:
        expected += "; 4 are judgments, which stand before the run"
    if count == 3:
        expected += "; 3 are imported by weir data import --as run-scores, or --as run-ranks"
    return FormatError(path, f"{count} column{'s' if count > 1 else ''} in {shown}", expected, line)


def scan_judgments(buffer: LineBuffer, stop: int) -> ParsedRows:
    """The rows of TREC's four columns, or of tab-separated ones without a header, in a whole file.

    Raises FormatError for another number of columns, an empty one, a grade that is no number within the range of
    grades, and for ranks in the place of grades.
    """
    path, line, at = buffer.path, "", 0  # the first line that is neither blank nor a comment
    while at < stop and (not line or line.startswith("#")):
        end = buffer.text.find(b"\n", at)
        line, at = bytes(buffer.text[at:end]).decode("utf-8", "replace").strip(), end + 1
    cells = len(line.split("\t"))
    # Cut at tabs where the first line has some: identifiers may hold blanks.
    tabs = cells in (3, 4) and not line.startswith("#")
    buf = buffer.buf
    table = split_cells(buf, stop, "\t", cells, exact=False) if tabs else split_columns(buf, stop, 4, 4)
    if table.bad >= 0:
        line = buffer.line_text(table.bad).strip()
        run = "; this looks like a run, and judgments come first" if len(line.split()) == 6 else ""
        raise FormatError(path, f"'{line[:80]}'", _JUDGMENT_COLUMNS + run, buffer.line_of(table.bad))
    width = table.start.shape[1]
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
        raise bad_grade(f"{path}, line {buffer.line_of(start)}", text)
    if width == 3:  # such columns may be a run's ranks, as PyTerrier writes results
        count = np.diff(rows.first, append=len(rows.score))
        counted_up = np.arange(len(rows.score)) - np.repeat(rows.first, count)
        first = rows.score[0] if len(count) else -1
        if (
            count.max(initial=0) >= CERTAIN_RANKS
            and first in (0, 1)
            and (rows.score == first + counted_up).all()
        ):
            ranks = f"numbers that count up from {first:g} for each query, as ranks do"
            expected = "grades; a run of ranks is read by: weir data import FILE -o DIR --as run-ranks"
            raise FormatError(path, ranks, expected)
    return rows


def bad_grade(where: str, text: str) -> FormatError:
    """The error for a grade that is no number within the range of grades."""
    expected = f"a number within ±{LARGEST}"
    if any(character.isdecimal() for character in text):
        expected += "; scale the grades first"
    return FormatError(where, f"the grade '{text}'", expected)


def scores_rise(path: Path) -> bool:
    """Whether ranks in TREC's columns count up while the scores rise, as distances do.

    The beginning of the file decides, with CERTAIN_RANKS rows of one query at least. False for a pipe, which is read
    only once, and for rows that are none.
    """
    if is_pipe(path) or format_of(path, "run").name != "trec":
        return False
    rows = [line.split() for line in read_bytes(path, _HEAD_BYTES).split(b"\n")[:-1]]
    most = 0
    for _, group in itertools.groupby((row for row in rows if row), key=lambda row: row[0]):
        try:
            ranks, scores = zip(*((int(row[3]), float(row[4])) for row in group), strict=True)
        except (IndexError, ValueError):
            return False
        rises = scores[0] < scores[-1] and all(a <= b for a, b in itertools.pairwise(scores))
        if (len(scores) > 1 and not rises) or ranks != tuple(range(ranks[0], ranks[0] + len(ranks))):
            return False
        most = max(most, len(ranks))
    return most >= CERTAIN_RANKS


def _read_layout(path: Path, kind: Kind, separator: str) -> ColumnLayout:
    """Which columns of a file are which, by its header; raises FormatError where it has none or lacks one."""
    cells = first_cells(path, separator)
    if not is_header(cells, kind):
        line = separator.join(cells)
        expected = f"a header that names the columns, such as {separator.join(WRITTEN[kind])}"
        raise FormatError(path, f"'{line[:80]}'" if line else "no header", expected, 1)
    return ColumnLayout(separator, tuple(cells), *three_columns(cells, kind, path))


def _csv_chunks(path: Path, layout: ColumnLayout, kind: Kind) -> Iterator[TableChunk]:
    records = (one for one in number_records(path, layout.separator, (layout.number,)) if one[1])
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
            shown = [
                cell.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for cell in rows[stop]
            ]
            raise _not_a_row(path, shown, layout, kind, batch[stop][0])
        first = np.flatnonzero(differs_from_previous(query.data, query.ptr[:-1], query.lengths()))
        yield TableChunk(query.take(first), first, doc, score)
    if damage is not None:
        raise damage


def table_records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line that each record below the header ends on, and its cells, none for an empty line.

    Raises FormatError for quoting that cannot be read, for a cell or a line that is too long, and for damage.
    """

    def lines(text: io.TextIOWrapper) -> Iterator[str]:
        number = 1
        while line := text.readline(LINE_BYTES + 1):
            if len(line) > LINE_BYTES:
                raise FormatError(
                    path, f"a line of more than {LINE_BYTES:,} bytes", "one row on each line", number
                )
            yield line
            number += 1

    with open_bytes(path) as raw:
        buffered = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 18)
        text = io.TextIOWrapper(buffered, "utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(lines(text), delimiter=separator, strict=True)
        try:
            next(reader, None)
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as error:
            if "field limit" in str(error):
                long_cell = f"a cell of more than {csv.field_size_limit():,} characters"
                raise FormatError(path, long_cell, "shorter cells", reader.line_num) from None
            expected = 'quotation marks around whole cells, those inside doubled, as in "say ""a"""'
            raise FormatError(path, f"bad quoting ({error})", expected, reader.line_num) from None
        except DAMAGE as error:
            raise damaged(path, error) from error


def number_records(path: Path, separator: str, columns: Collection[int]) -> Iterator[tuple[int, list[str]]]:
    """`table_records`, the numbers in some columns with a decimal point, as `decimal_points` has it."""
    records = table_records(path, separator)
    return decimal_points(path, records, columns) if separator == SEMICOLON else records


def decimal_points(
    path: Path, records: Iterator[tuple[int, list[str]]], columns: Collection[int]
) -> Iterator[tuple[int, list[str]]]:
    """Records between semicolons, the numbers in some columns with a point where a spreadsheet writes a comma.

    Raises FormatError for a column that has both, since 1.500 beside 0,5 would be fifteen hundred.
    """
    marks: dict[int, str] = {}
    for line, cells in records:
        for at in columns:
            if number := _DECIMAL.fullmatch(cells[at] if at < len(cells) else ""):
                if marks.setdefault(at, number[1]) != number[1]:
                    found = f"'{cells[at]}' below numbers with '{marks[at]}'"
                    raise FormatError(path, found, "one decimal mark, a point or a comma", line)
                cells[at] = cells[at].replace(",", ".")
        yield line, cells


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
    expected = f"{what}, in column {names[layout.number]}"
    if cells[layout.number] != cells[layout.number].strip():
        expected += ", without blanks around it"
    if kind == "qrels" and not cells[layout.number]:
        expected += "; of a sheet that is not filled in whole, weir labels relabel -o FILE makes judgments"
    return FormatError(path, f"'{cells[layout.number][:80]}'", expected, line)
