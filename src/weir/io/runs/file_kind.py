"""Whether a file holds a run or judgments, by its columns."""

from __future__ import annotations

from pathlib import Path

from weir.errors import FormatError
from weir.io.runs.column_names import Kind, is_header, kind_of
from weir.io.runs.delimited import SEPARATORS, first_cells
from weir.io.runs.formats import format_of
from weir.io.runs.json_object import read_nested
from weir.io.runs.tables import table_columns
from weir.io.storage.lines import read_bytes

__all__ = ["kind_of_file"]

_HEAD = 1 << 16


def kind_of_file(path: Path) -> Kind:
    """Whether a file holds a run or judgments.

    Named columns say it, and so does the number of TREC's. A JSON file with a fraction among its numbers is a run.
    Raises FormatError where that leaves it open, and as `read_run` does.
    """
    form = format_of(path, "run")
    if form.name == "trec":
        form = format_of(path, "qrels")  # a header may name a grade
    if form.name == "json":
        return _of_json(path)
    if form.name in SEPARATORS:
        cells = first_cells(path, SEPARATORS[form.name])
        if is_header(cells, "run") or is_header(cells, "qrels"):
            return kind_of(cells, path)
        expected = "a header that names the columns, such as query_id, doc_id and score"
        raise FormatError(path, f"'{SEPARATORS[form.name].join(cells)[:80]}'", expected, 1)
    if form.name == "trec":
        return _of_trec(path)
    return kind_of(table_columns(path, form.name == "parquet"), path)


def _of_trec(path: Path) -> Kind:
    lines = read_bytes(path, _HEAD).decode("utf-8", "replace").split("\n")
    line = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    if len(line.strip().split("\t")) == 3 or len(line.split()) == 4:
        return "qrels"
    if len(line.split()) > 4:
        return "run"
    expected = "6 columns (a run) or 4 (judgments); or say which with --kind"
    raise FormatError(path, f"'{line[:80]}'" if line else "no line", expected)


def _of_json(path: Path) -> Kind:
    if any(isinstance(value, float) for row in read_nested(path).values() for value in row.values()):
        return "run"
    raise FormatError(
        path, "whole numbers only", "--kind run or --kind qrels, as these may be scores or grades"
    )
