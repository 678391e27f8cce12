"""Rankings and judgments as JSON lines: on each an object that names query, document and score or grade."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.ids import IDENTIFIER_BYTES
from weir.core.origins import Origins
from weir.core.strings import Strings
from weir.errors import FormatError
from weir.io.collections.json_lines import Records, read_records
from weir.io.runs.blocks import TableChunk
from weir.io.runs.column_names import Kind, origin_column, three_columns
from weir.io.runs.distinct_ids import differs_from_previous
from weir.io.storage.text_files import DAMAGE, damaged, open_bytes

__all__ = ["first_json_row", "json_records", "json_row_chunks", "json_row_origins", "line_of_row"]


def first_json_row(path: Path) -> dict[str, Any]:
    """The first object, {} for an empty file; raises FormatError for what is none."""
    return next((records.rows[0] for records in json_records(path) if records.rows), {})


def json_row_chunks(path: Path, kind: Kind) -> Iterator[TableChunk]:
    """The rows of a file, some hundred kilobytes of it at a time.

    Which name stands for what, the first object says. Raises FormatError, with the line, for an object without these
    names, an identifier that is no text or whole number, and a number that is none or not finite.
    """
    names: tuple[str, str, str] | None = None
    for records in json_records(path):
        if not records.rows:
            continue
        if names is None:
            columns = list(records.rows[0])
            query, doc, number = three_columns(columns, kind, path)
            names = columns[query], columns[doc], columns[number]
        lines = range(len(records.rows))
        query_ids, doc_ids = (
            Strings.of(_identifier(records, i, name, path) for i in lines) for name in names[:2]
        )
        score = np.array([_number(records, i, names[2], path) for i in lines], np.float64)
        first = np.flatnonzero(differs_from_previous(query_ids.data, query_ids.ptr[:-1], query_ids.lengths()))
        yield TableChunk(query_ids.take(first), first, doc_ids, score)


def json_row_origins(path: Path, kind: Kind) -> Origins | None:
    """Where each judgment comes from, None where the first object does not say."""
    columns = list(first_json_row(path))
    at = origin_column(columns, kind)
    if at is None:
        return None
    return Origins.of(
        str(row.get(columns[at]) or "") for records in json_records(path) for row in records.rows
    )


def line_of_row(path: Path, row: int) -> int:
    """The line, from 1, on which a row stands."""
    lines = (records.line(i) for records in json_records(path) for i in range(len(records.rows)))
    return next(itertools.islice(lines, row, None))


def json_records(path: Path) -> Iterator[Records]:
    """Objects on lines, some hundred kilobytes at a time; raises FormatError for a line that holds no object."""
    try:
        with open_bytes(path) as stream:
            yield from read_records(stream, path)
    except DAMAGE as error:
        raise damaged(path, error) from error


def _identifier(records: Records, i: int, name: str, path: Path) -> str:
    value = records.rows[i].get(name)
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not text:
        raise FormatError(path, _shown(records, i, name), "an identifier in every row", records.line(i))
    if len(text.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
        raise FormatError(
            path,
            f"an identifier of {len(text):,} characters",
            f"at most {IDENTIFIER_BYTES:,} bytes",
            records.line(i),
        )
    return text


def _number(records: Records, i: int, name: str, path: Path) -> float:
    value: Any = records.rows[i].get(name)
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(path, _shown(records, i, name), "a finite number", records.line(i))
    return number


def _shown(records: Records, i: int, name: str) -> str:
    row = records.rows[i]
    return f"{name} {str(row[name])[:80]!r}" if name in row else f"no '{name}'"
