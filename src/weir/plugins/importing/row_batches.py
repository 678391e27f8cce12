"""Large files row by row: JSON lines and Parquet in batches, for readers that read each row by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.io.collections.json_lines import read_blocks
from weir.io.storage.text_files import DAMAGE, damaged, open_bytes, read_bytes
from weir.plugins.importing.contents import Contents, parquet_rows, strict_json
from weir.plugins.importing.read_tables import TableRow

__all__ = ["HELD_BYTES", "row_batches"]

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
            rows.append(TableRow(f"line {number}", _object(path, data, number)))
    return rows, line + block.count(b"\n")


def _object(path: Path, data: bytes, line: int) -> dict[str, Any]:
    try:
        value = strict_json(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        found = f"bytes that are no UTF-8 (0x{data[error.start]:02x})"
        raise FormatError(path, found, "text in UTF-8; save it again in it", line) from None
    except json.JSONDecodeError as error:
        raise FormatError(path, f"no valid JSON ({error.msg})", "one object on each line", line) from None
    if not isinstance(value, dict):
        raise FormatError(path, f"a JSON {type(value).__name__}", "one object on each line", line)
    return value


def _of_parquet(path: Path, given: Mapping[str, str]) -> Iterator[Contents]:
    for columns, rows in parquet_rows(path):
        yield Contents(path, "rows", rows=tuple(rows), columns=columns, given=given)
