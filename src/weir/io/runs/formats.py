"""The formats of rankings and judgments: how a file's is known, what each can hold, whether it is a run."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path, PurePath

from weir.errors import FormatError
from weir.io.runs.column_names import Kind, has_ranks, is_header, kind_of, three_columns
from weir.io.runs.json_rows import first_json_row
from weir.io.runs.json_runs import read_nested
from weir.io.runs.pickled_runs import kind_of_pickle
from weir.io.runs.tables import table_columns, whole_numbers
from weir.io.storage.safe_pickle import PICKLE_MAGIC, PICKLE_SUFFIXES, is_pickle
from weir.io.storage.text_files import read_bytes, unpacked_name

__all__ = [
    "FORMATS",
    "SEPARATORS",
    "Format",
    "cells_of",
    "first_cells",
    "format_of",
    "kind_of_file",
    "named_format",
]


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
    _refuse_foreign(path, head)
    if certain and certain.name != "pickle" and head.startswith(PICKLE_MAGIC):
        raise FormatError(path, "a Python pickle", f"its name to end in {PICKLE_SUFFIXES[0]}")
    if certain is None:
        return _BY_NAME[_sniffed(path, head, kind)]
    if certain.name == "tsv" and _like_trec(first_cells(path, "\t"), kind):
        return _BY_NAME["trec"]
    return certain


def _refuse_foreign(path: Path, head: bytes) -> None:
    for magic, found, expected in _FOREIGN:
        if head.startswith(magic):
            raise FormatError(path, found, expected)
    if head.startswith(b"BZh") and head[4:10] == b"1AY&SY":  # an identifier may begin with BZh
        raise FormatError(path, "bzip2 data", _UNPACKED)
    if b"\0" in head[:4] and head[:1].isalnum():  # letters and zeros in turn
        raise FormatError(path, "text in UTF-16", _TEXT)


def _sniffed(path: Path, head: bytes, kind: Kind) -> str:
    if head.lstrip().startswith(b"{"):
        return "jsonl" if _an_object_on_a_line(path) else "json"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    for name, separator in SEPARATORS.items():
        cells = first_cells(path, separator)
        if len(cells) > 2 and is_header(cells, kind):
            return name
    return "trec"


def _an_object_on_a_line(path: Path) -> bool:
    """Whether the first line is an object of plain values, as a row of a table is."""
    try:
        row = json.loads(read_bytes(path, _HEAD_BYTES).partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    plain = isinstance(row, dict) and not any(isinstance(value, (dict, list)) for value in row.values())
    return plain and len(row) > 0


def _like_trec(cells: list[str], kind: Kind) -> bool:
    """Whether a first line between tabs has no header but TREC's columns, or those of BEIR without their names."""
    return not is_header(cells, kind) and (kind == "qrels" or len(cells) in (5, 6))


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
        return _of_nested(path)
    if form.name == "trec":
        return _of_trec(path)
    columns = _columns(path, form)
    kind = kind_of(columns, path)
    at = three_columns(columns, kind, path)[2]
    open_ = kind == "run" and columns[at].strip().lower() == "score" and not has_ranks(columns)
    if open_ and _whole(path, form, columns, at):
        raise FormatError(
            path, "whole numbers as scores", "--kind run or --kind qrels, as these may be scores or grades"
        )
    return kind


def _columns(path: Path, form: Format) -> list[str]:
    """The names of the columns of a table; raises FormatError for one without a header."""
    if form.name == "jsonl":
        return list(first_json_row(path))
    if form.name not in SEPARATORS:
        return table_columns(path, form.name == "parquet")
    cells = first_cells(path, SEPARATORS[form.name])
    if not (is_header(cells, "run") or is_header(cells, "qrels")):
        expected = "a header that names the columns, such as query_id, doc_id and score"
        raise FormatError(path, f"'{SEPARATORS[form.name].join(cells)[:80]}'", expected, 1)
    return cells


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


def _of_trec(path: Path) -> Kind:
    lines = read_bytes(path, _HEAD_BYTES).decode("utf-8", "replace").split("\n")
    line = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if len(line.strip().split("\t")) == 3 or len(line.split()) == 4:
        return "qrels"
    if len(line.split()) > 4:
        return "run"
    expected = "6 columns (a run) or 4 (judgments); or say which with --kind"
    raise FormatError(path, f"'{line[:80]}'" if line else "no line", expected)


def _of_nested(path: Path) -> Kind:
    """Whether an object holds a run or judgments; raises FormatError, asking, where it could be either."""
    said = kind_of_pickle(path) if is_pickle(path) else None
    if said is not None:
        return said
    if any(isinstance(value, float) for row in read_nested(path).values() for value in row.values()):
        return "run"
    raise FormatError(
        path, "whole numbers only", "--kind run or --kind qrels, as these may be scores or grades"
    )
