"""What a file holds before anybody knows whose it is: tables, rows, fields and their roles."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from weir.core.strings import first_repeated
from weir.errors import BadValue, FormatError, UnknownName, require
from weir.files.json_lines import read_blocks
from weir.files.pickles import is_pickle, read_pickle
from weir.files.text_files import DAMAGE, damaged, open_bytes, read_bytes, unpacked_name

# ----------
# Roles of fields, by the names in names.toml or as the user says.


ROLES = (
    "query_id",
    "query",
    "relevant",
    "doc",
    "retrieved",
    "grade",
    "score",
    "rank",
    "text",
    "title",
    "split",
    "origin",
    "excluded",
    "candidates",
    "answer",
    "clicks",
    "impressions",
    "clicked",
)


@dataclass(frozen=True)
class FieldNames:
    """The names of names.toml, folded: roles: tiers of names; words: within -> names; and the rest likewise."""

    roles: Mapping[str, tuple[frozenset[str], ...]]
    words: Mapping[str, frozenset[str]]
    containers: frozenset[str]
    inner: frozenset[str]
    clicks: Mapping[str, frozenset[str]]
    unanswerable: Mapping[str, frozenset[str]] = field(default_factory=dict)


@lru_cache(4096)
def fold(name: str) -> str:
    """A name as it is compared: without case, blanks and marks."""
    return re.sub(r"[\W_]+", "", name.casefold())


@cache
def names() -> FieldNames:
    """The names, read once."""
    table = tomllib.loads(files("weir.plugins.importing").joinpath("names.toml").read_text(encoding="utf-8"))
    return FieldNames(
        {role: tuple(_folded(tier) for tier in tiers) for role, tiers in table["roles"].items()},
        {within: _folded(listed) for within, listed in table["words"].items()},
        _folded(table["containers"]["names"]),
        _folded(table["containers"]["inner"]),
        {role: _folded(listed) for role, listed in table["clicks"].items()},
        {fold(name): frozenset(values) for name, values in table["unanswerable"].items()},
    )


def click_columns(columns: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Role -> column of what a log of clicks counts: clicks, impressions, or whether one was clicked.

    given: what the user said, which goes first.
    """
    listed, known = list(columns), names().clicks
    named = {role: [column for column in listed if fold(column) in known[role]] for role in known}
    roles = {role: columns[0] for role, columns in named.items() if columns}
    return roles | {role: column for role, column in given.items() if role in known and column in listed}


def _folded(listed: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold, listed))


def parse_columns(text: str) -> dict[str, str]:
    """Roles and columns from `query=q,doc=url,grade=ctr`; a column may be a number from 1.

    Raises BadValue for what is written otherwise, UnknownName for another role.
    """
    roles: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column:
            raise BadValue(
                f"--columns: found '{part}'; expected role=column, as in query=q,doc=url,grade=ctr"
            )
        roles[role] = column
    refuse_other_roles(roles)
    return roles


def refuse_other_roles(given: Mapping[str, str]) -> None:
    """Raise UnknownName for a role that there is not."""
    for role in given:
        if role not in ROLES:
            raise UnknownName("role of a column", role, ROLES)


def roles_of(columns: Iterable[str], given: Mapping[str, str], path: object) -> dict[str, str]:
    """Role -> column, for the roles that the columns play.

    given: what the user said, which goes first; a column that is not here is left out. Raises BadValue where two
    columns could play one role.
    """
    listed = list(columns)
    roles = {role: column for role, column in given.items() if column in listed}
    free = [column for column in listed if column not in roles.values() and not column.startswith("__")]
    for role, tiers in names().roles.items():
        if role in roles or (role in ("relevant", "doc") and ("relevant" in roles or "doc" in roles)):
            continue
        for tier in tiers:
            played = [column for column in free if fold(column) in tier]
            if len(played) > 1:
                one = "doc" if role == "relevant" else role
                raise BadValue(
                    f"{path}: {' and '.join(played[:4])} could each be the {one}; "
                    f"say which: --columns {one}={played[0]}"
                )
            if played:
                roles[role] = played[0]
                free.remove(played[0])
                break
    own = next((column for column in free if fold(column) == "id"), None)
    if own is not None and "query" in roles and "query_id" not in roles:
        roles["query_id"] = own
    elif own is not None and "query" not in roles and "doc" not in roles and "query_id" not in given:
        roles["id"] = own
    return roles


# ----------
# Tables as text: the separator and the header.


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
        twice = [name for at, name in enumerate(header) if name in header[:at]]
        if twice:
            raise FormatError(path, f"two columns named '{twice[0][:60]}'", "each name once", 1)
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


def _records(path: Path, text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The cells of each row that is neither blank nor a comment, and the line it ends on."""
    lines = io.StringIO(text, newline="")
    if separator == "\t" and '"' not in text.partition("\n")[0]:
        reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=separator, strict=True)
    records: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) and not (records == [] and cells[0].startswith("#")):
                records.append((reader.line_num, [cell.strip("\r") for cell in cells]))
    except csv.Error as error:
        reason = "shorter cells" if "field limit" in str(error) else "cells quoted as a whole"
        what = (
            f"a cell of more than {csv.field_size_limit():,} characters"
            if "limit" in str(error)
            else str(error)
        )
        raise FormatError(path, what, reason, reader.line_num) from None
    return records


# ----------
# A file as a JSON value, as rows with named fields, or as lines.


LARGEST = 1 << 30  # bytes of a file, which is held as a whole
_SHAPE_MARKS = (
    (b"PK\x03\x04", "a zip or an Excel workbook", "each sheet saved as CSV, or one file out of the zip"),
    (
        b"\x04\x22\x4d\x18",
        "LZ4 data",
        "the run or qrels saved as .json, .parquet or .trec (ranx: save('run.json'))",
    ),
    (b"\x1f\x8b", "gzip data", "its name to end in .gz"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "its name to end in .zst"),
    (b"SQLite format 3", "an SQLite database", "a table written out of it as CSV"),
    (b"%PDF", "a PDF", "text"),
    (b"\x89PNG", "a picture", "text"),
)
_MOST_LEVELS = 200
_MOST_NODES = 20_000_000
_BATCH_ROWS = 2048


@dataclass(frozen=True)
class Contents:
    """A file taken apart.

    shape: "json" (value, also of YAML or a pickle; an object is also the one row), "rows" (JSON lines, a list of
    objects, a table with a header, Parquet) or "lines" (text without a header; rows then hold the cells under "1", "2"
    ... where lines are cut at tabs or commas). columns: all names of fields in rows. text: of lines. given: role ->
    column, as the user says.
    """

    path: Path
    shape: Literal["json", "rows", "lines"]
    value: Any = None
    rows: tuple[TableRow, ...] = ()
    columns: tuple[str, ...] = ()
    text: str = ""
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The file's name without its endings."""
        name = unpacked_name(self.path)
        return Path(name).stem or name

    def says(self, *words: str) -> str:
        """The first of some words that the file's name holds, or that its folder is called; else ""."""
        part = self.path.name.lower()
        for mark in "-_ ":
            part = part.replace(mark, ".")
        pieces = {*part.split("."), self.path.absolute().parent.name.lower()}
        return next((word for word in words if word in pieces), "")


def read_contents(path: Path, given: Mapping[str, str]) -> Contents:
    """Take a file apart; given: role -> column as the user says, a column by name or by number from 1.

    Raises FormatError, in one line, for what cannot be read: no such file, damage, packed or foreign data, another
    encoding, JSON or YAML that is broken or nested too deeply; MissingExtra for Parquet or YAML without its package.
    """
    begins = read_bytes(path, 16)
    if begins.startswith(b"PAR1"):
        if path.stat().st_size > LARGEST:
            raise FormatError(
                path, f"{path.stat().st_size:,} bytes", f"at most {LARGEST:,}; cut it into parts"
            )
        columns, rows = tuple[str, ...](), list[TableRow]()
        for columns, batch in parquet_rows(path):  # noqa: B007  the same in each
            rows += batch
        return _given(Contents(path, "rows", rows=tuple(rows), columns=columns), given)
    if is_pickle(path):
        return _given(_of_value(path, read_pickle(path)), given)
    for mark, what, expected in _SHAPE_MARKS:
        if begins.startswith(mark):
            raise FormatError(path, what, expected)
    if path.stat().st_size > LARGEST:
        raise FormatError(path, f"{path.stat().st_size:,} bytes", f"at most {LARGEST:,}; cut it into parts")
    text = _decoded(path, read_bytes(path))
    if not text.strip():
        raise FormatError(path, "an empty file", "queries, documents, judgments or rankings")
    suffix = Path(unpacked_name(path)).suffix.lower()
    if suffix in (".yaml", ".yml"):
        yaml = require("yaml", "yaml")
        try:
            documents = [one for one in yaml.load_all(text, Loader=yaml.BaseLoader) if one]
        except yaml.YAMLError as error:
            reason = " ".join(str(error).split())[:200]
            raise FormatError(path, f"no valid YAML ({reason})", "a YAML document") from None
        except (RecursionError, ValueError):
            raise FormatError(path, "YAML nested too deeply", f"at most some {_MOST_LEVELS} levels") from None
        _refuse_bombs(path, documents)
        return _given(_of_value(path, documents[0] if len(documents) == 1 else documents), given)
    begins_json = _without_comments(text).lstrip()[:1] in ("{", "[")
    if begins_json and suffix not in (".csv", ".tsv"):
        return _given(_json(path, text), given)
    table = parsed_table(path, text, suffix, frozenset(given.values()))
    if table.header:
        by_number = {str(n): name for n, name in enumerate(table.header, 1) if str(n) not in table.header}
        named = {role: by_number.get(column, column) for role, column in given.items()}
        return _given(Contents(path, "rows", rows=table.rows, columns=table.header), named)
    numbered = _columns(list(table.rows))
    if given and set(given.values()) <= set(numbered):
        return _given(Contents(path, "rows", rows=table.rows, columns=numbered), given)
    return Contents(path, "lines", rows=table.rows, text=text)


def _given(contents: Contents, given: Mapping[str, str]) -> Contents:
    return replace(contents, given=given)


def _decoded(path: Path, data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            raise FormatError(path, "damaged text in UTF-16", "text in UTF-8; save it again in it") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            path,
            f"bytes that are no UTF-8 (0x{data[error.start]:02x})",
            "text in UTF-8; save it again in it",
            line,
        ) from None
    if "\0" in text[:4096]:
        raise FormatError(path, "binary data", "text, JSON, YAML, a table or Parquet")
    return text


def _without_comments(text: str) -> str:
    """The text from its first line that is neither blank nor a comment."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        line = text[at:end].strip()
        if line and not line.startswith("#"):
            return text[at:]
        at = end
    return ""


def _json(path: Path, text: str) -> Contents:
    """One value, an object on each line (comments between them), or one value after another."""
    try:
        return _of_value(path, strict_json(path, text))
    except json.JSONDecodeError as error:
        first = error
    rows, bad = _on_lines(path, text)
    if bad is None:
        return Contents(path, "rows", rows=tuple(rows), columns=_columns(rows))
    if first.msg != "Extra data" or len(rows) > 0:
        line, reason = bad if rows else (first.lineno, first.msg)
        raise FormatError(
            path, f"no valid JSON ({reason})", "one JSON value, or one object on each line", line
        )
    rows = [TableRow(f"object {n}", value) for n, value in enumerate(_concatenated(path, text), 1)]
    return Contents(path, "rows", rows=tuple(rows), columns=_columns(rows))


def _on_lines(path: Path, text: str) -> tuple[list[TableRow], tuple[int, str] | None]:
    """The objects of JSON lines up to the first line that is none, and that line with the reason."""
    rows: list[TableRow] = []
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip() or written.lstrip().startswith("#"):
            continue
        try:
            value = strict_json(path, written)
        except json.JSONDecodeError as error:
            return rows, (line, error.msg)
        if not isinstance(value, dict):
            return rows, (line, f"a JSON {type(value).__name__} instead of an object")
        rows.append(TableRow(f"line {line}", value))
    return rows, None


def _concatenated(path: Path, text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, at) + 1
            raise FormatError(
                path, f"no valid JSON ({error})", "JSON objects one after the other", line
            ) from None
        if not isinstance(value, dict):
            raise FormatError(path, f"a JSON {type(value).__name__} among objects", "JSON objects", None)
        yield value
        at = end + len(text[end:]) - len(text[end:].lstrip())


def strict_json(path: Path, text: str) -> Any:  # noqa: ANN401  JSON holds anything
    """Parse JSON; a name twice in an object is refused: readers usually keep one of the two in silence.

    Raises JSONDecodeError for what is no JSON, FormatError for what is nested too deeply or written twice.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = first_repeated(key for key, _ in pairs)
            raise FormatError(path, f"'{twice}' twice in one JSON object", "each name once")
        return row

    try:
        value = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise FormatError(path, "JSON nested too deeply", f"at most some {_MOST_LEVELS} levels") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise FormatError(path, f"no valid JSON ({error})", "numbers of usual size") from None
    _refuse_bombs(path, value)
    return value


def _refuse_bombs(path: Path, value: Any) -> None:  # noqa: ANN401  JSON holds anything
    """Refuse what is nested too deeply, or grows beyond all bounds through YAML's references."""
    level, depth, nodes = [value], 0, 0
    while level:
        nodes += len(level)
        depth += 1
        if depth > _MOST_LEVELS or nodes > _MOST_NODES:
            raise FormatError(path, "data nested too deeply or too often", f"at most {_MOST_LEVELS} levels")
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]


def _of_value(path: Path, value: Any) -> Contents:  # noqa: ANN401  JSON holds anything
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        rows = [TableRow(f"entry {n}", one) for n, one in enumerate(value, 1)]
        return Contents(path, "rows", value, tuple(rows), _columns(rows))
    if not isinstance(value, (dict, list)) or not value:
        raise FormatError(
            path, f"{json.dumps(value, default=repr)[:60]} and nothing else", "queries, judgments or rankings"
        )
    if isinstance(value, list):
        return Contents(path, "json", value)
    return Contents(path, "json", value, (TableRow("the object", value),), tuple(map(str, value)))


def _columns(rows: list[TableRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for row in rows for name in row.fields))


def parquet_rows(path: Path) -> Iterator[tuple[tuple[str, ...], list[TableRow]]]:
    """The columns of a table and its rows in batches; at least one, which may be without rows.

    Raises FormatError for a damaged file, MissingExtra without pyarrow.
    """
    arrow, parquet = require("pyarrow", "run"), require("pyarrow.parquet", "run")
    try:
        with parquet.ParquetFile(str(path)) as table:
            columns, done = tuple(table.schema_arrow.names), 0
            for batch in table.iter_batches(_BATCH_ROWS):
                rows = batch.to_pylist()
                yield columns, [TableRow(f"row {n}", one) for n, one in enumerate(rows, done + 1)]
                done += len(rows)
            if not done:
                yield columns, []
    except (arrow.ArrowException, OSError, ValueError, LookupError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0][:160]
        raise FormatError(path, f"a damaged table ({reason})", "a complete Parquet file") from None


# ----------
# Large files in batches of rows.


HELD_BYTES = 1 << 24
"""Bytes of a file that is held as a whole; a larger one is read in batches where its format allows."""
_PACKED_BYTES = 1 << 22  # likewise, of a packed one
_BLOCK_BYTES = 1 << 21


def row_batches(path: Path, given: Mapping[str, str]) -> Iterator[Contents] | None:
    """The rows of a large file in batches, each with the columns of the first.

    given: role -> column, as the user says. None for a file that is small, or holds no rows that can be cut apart.
    Raises FormatError, also while rows are taken, as `read_contents`.
    """
    begins = read_bytes(path, 4)
    if begins.startswith(b"PAR1"):
        return _of_parquet(path, given) if path.stat().st_size > HELD_BYTES else None
    limit = _PACKED_BYTES if path.suffix in (".gz", ".zst") else HELD_BYTES
    if path.stat().st_size <= limit or not begins.startswith(b"{") or not _is_json_lines(path):
        return None
    return _of_json_lines(path, given)


def _is_json_lines(path: Path) -> bool:
    """Whether the first line is a JSON object and another line follows."""
    first, newline, rest = read_bytes(path, _BLOCK_BYTES).partition(b"\n")
    try:
        return bool(newline and rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _of_json_lines(path: Path, given: Mapping[str, str]) -> Iterator[Contents]:
    line, columns = 1, tuple[str, ...]()
    with open_bytes(path) as file:
        try:
            for block in read_blocks(file, _BLOCK_BYTES, path):
                rows, line = _rows(path, block, line)
                columns = columns or tuple(dict.fromkeys(str(name) for row in rows for name in row.fields))
                yield Contents(path, "rows", rows=tuple(rows), columns=columns, given=given)
        except DAMAGE as error:
            raise damaged(path, error) from error


def _rows(path: Path, block: bytes, line: int) -> tuple[list[TableRow], int]:
    """The objects of whole lines, and the number of the line behind them."""
    rows: list[TableRow] = []
    written = block.split(b"\n")
    for number, data in enumerate(written if written[-1] else written[:-1], line):
        if data.strip() and not data.lstrip().startswith(b"#"):
            try:
                value = strict_json(path, data.decode("utf-8"))
            except UnicodeDecodeError as error:
                what = f"bytes that are no UTF-8 (0x{data[error.start]:02x})"
                raise FormatError(path, what, "text in UTF-8; save it again in it", number) from None
            except json.JSONDecodeError as error:
                raise FormatError(
                    path, f"no valid JSON ({error.msg})", "one object on each line", number
                ) from None
            if not isinstance(value, dict):
                raise FormatError(path, f"a JSON {type(value).__name__}", "one object on each line", number)
            rows.append(TableRow(f"line {number}", value))
    return rows, line + block.count(b"\n")


def _of_parquet(path: Path, given: Mapping[str, str]) -> Iterator[Contents]:
    for columns, rows in parquet_rows(path):
        yield Contents(path, "rows", rows=tuple(rows), columns=columns, given=given)
