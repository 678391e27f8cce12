"""What a file holds before anybody knows whose it is: a JSON value, rows with named fields, or lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from weir.core.strings import first_repeated
from weir.errors import FormatError, require
from weir.io.storage.safe_pickle import is_pickle, read_pickle
from weir.io.storage.text_files import read_bytes, unpacked_name
from weir.plugins.importing.read_tables import TableRow, parsed_table

__all__ = ["Contents", "parquet_rows", "read_contents", "strict_json"]

LARGEST = 1 << 30  # bytes of a file, which is held as a whole
_MARKS = (
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
        pieces = {*_pieces(self.path.name.lower()), self.path.absolute().parent.name.lower()}
        return next((word for word in words if word in pieces), "")


def _pieces(part: str) -> list[str]:
    for mark in "-_ ":
        part = part.replace(mark, ".")
    return part.split(".")


def read_contents(path: Path, given: Mapping[str, str]) -> Contents:
    """Take a file apart; given: role -> column as the user says, a column by name or by number from 1.

    Raises FormatError, in one line, for what cannot be read: no such file, damage, packed or foreign data, another
    encoding, JSON or YAML that is broken or nested too deeply; MissingExtra for Parquet or YAML without its package.
    """
    begins = read_bytes(path, 16)
    if begins.startswith(b"PAR1"):
        return _given(_parquet(path), given)
    if is_pickle(path):
        return _given(_of_value(path, read_pickle(path)), given)
    _refuse_marks(path, begins)
    if path.stat().st_size > LARGEST:
        raise FormatError(path, f"{path.stat().st_size:,} bytes", f"at most {LARGEST:,}; cut it into parts")
    text = _decoded(path, read_bytes(path))
    if not text.strip():
        raise FormatError(path, "an empty file", "queries, documents, judgments or rankings")
    suffix = Path(unpacked_name(path)).suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _given(_of_value(path, _yaml(path, text)), given)
    begins_json = _without_comments(text).lstrip()[:1] in ("{", "[")
    if begins_json and suffix not in (".csv", ".tsv"):
        return _given(_json(path, text), given)
    return _table(path, text, suffix, given)


def _refuse_marks(path: Path, begins: bytes) -> None:
    for mark, found, expected in _MARKS:
        if begins.startswith(mark):
            raise FormatError(path, found, expected)


def _table(path: Path, text: str, suffix: str, given: Mapping[str, str]) -> Contents:
    table = parsed_table(path, text, suffix, frozenset(given.values()))
    if table.header:
        by_number = {str(n): name for n, name in enumerate(table.header, 1) if str(n) not in table.header}
        said = {role: by_number.get(column, column) for role, column in given.items()}
        return _given(Contents(path, "rows", rows=table.rows, columns=table.header), said)
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


def _yaml(path: Path, text: str) -> Any:  # noqa: ANN401  YAML holds anything
    """Parse YAML with every scalar as the text that stands there: `no`, `1.10` and `007` are identifiers."""
    yaml = require("yaml", "yaml")
    try:
        documents = [one for one in yaml.load_all(text, Loader=yaml.BaseLoader) if one]
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(path, f"no valid YAML ({reason})", "a YAML document") from None
    except (RecursionError, ValueError):
        raise FormatError(path, "YAML nested too deeply", f"at most some {_MOST_LEVELS} levels") from None
    _refuse_bombs(path, documents)
    return documents[0] if len(documents) == 1 else documents


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


def _parquet(path: Path) -> Contents:
    if path.stat().st_size > LARGEST:
        raise FormatError(path, f"{path.stat().st_size:,} bytes", f"at most {LARGEST:,}; cut it into parts")
    columns, rows = tuple[str, ...](), list[TableRow]()
    for columns, batch in parquet_rows(path):  # noqa: B007  the same in each
        rows += batch
    return Contents(path, "rows", rows=tuple(rows), columns=columns)


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
