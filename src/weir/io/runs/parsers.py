"""The compiled parser of blocks of lines, and which parser reads a file; both give the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Float64, Int64, Strings
from weir.errors import BadValue
from weir.io.runs.blocks import (
    ENGINES,
    EngineName,
    Lookup,
    ParsedRows,
    Parser,
    QuotedCellError,
    RankedRows,
    refuse_long,
)
from weir.io.runs.column_names import ColumnLayout
from weir.io.runs.decimals import parse_slowly
from weir.io.runs.numpy_parser import NUMPY_PARSER
from weir.io.storage.text_files import LineBuffer
from weir.kernels.jit import available, check_available
from weir.kernels.jit.code_cache import kept
from weir.kernels.parse.fields import RowArrays, hash_texts
from weir.kernels.parse.rank_order import IdTable, build_slots, order_rows
from weir.kernels.parse.tokenize_lines import TREC, LineShape, scan_lines

__all__ = ["choose_engine", "filled_rows", "row_arrays"]

_WORTH_COMPILING, _WORTH_LOADING = 128 << 20, 4 << 20
"""Bytes of a file below which numpy is done before kernels are compiled (some seconds), or loaded (a tenth of one)."""

_LEAST_ROW_BYTES = 10  # bytes of a row of TREC's: five columns, four separators and the end of the line


def choose_engine(name: EngineName, size: int) -> Parser:
    """The engine of that name; for "auto" the faster one for `size` bytes of text that is installed.

    Raises BadValue for an unknown name, MissingExtra for "numba" without the `run` extra.
    """
    if name not in ENGINES:
        raise BadValue(f"engine is '{name}'; expected one of {', '.join(ENGINES)}")
    if name == "auto":
        worth = _WORTH_LOADING if kept("parse.rank_order") else _WORTH_COMPILING
        name = "numba" if size >= worth and available() else "numpy"
    if name == "numba":
        check_available()
        return _COMPILED
    return NUMPY_PARSER


def row_arrays(room: int) -> RowArrays:
    """Arrays for a compiled scan to fill in; pages that no row reaches are never touched, so the worst case is free."""
    start, length = np.empty((2, room), np.int64)
    segment, slow = np.empty((2, room, 3), np.int64)
    return RowArrays(start, length, np.empty(room, np.uint64), np.empty(room, np.float64), segment, slow)


def filled_rows(buf: Bytes, arrays: RowArrays, n: int, segments: int, slows: int) -> tuple[ParsedRows, int]:
    """The rows that a scan has filled in, and the first one whose score is no finite number, or -1.

    Raises LongIdentifierError.
    """
    first, query_start, query_length = arrays.segment[:segments].T.copy()
    refuse_long(arrays.start[:n], arrays.length[:n])
    refuse_long(query_start, query_length)
    wrong = -1
    for row, at, size in arrays.slow[:slows].tolist():
        arrays.score[row] = parse_slowly(buf[at : at + size].tobytes())
        if np.isnan(arrays.score[row]):
            wrong = row
            break
    start, length, hashes, score = (arrays.start[:n], arrays.length[:n], arrays.hashes[:n], arrays.score[:n])
    return ParsedRows(start, length, hashes, score, first, query_start, query_length), wrong


def _scan(buffer: LineBuffer, stop: int) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by TREC's columns."""
    return _rows(buffer, stop, TREC, stop // _LEAST_ROW_BYTES + 1)


def _cells(buffer: LineBuffer, stop: int, layout: ColumnLayout) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by a layout."""
    cells = len(layout.names)
    shape = LineShape(ord(layout.separator), cells, layout.query, layout.doc, layout.number)
    return _rows(buffer, stop, shape, stop // cells + 1)


def _rows(buffer: LineBuffer, stop: int, shape: LineShape, room: int) -> ParsedRows:
    arrays = row_arrays(room)
    edge = np.zeros(2 * shape.cells + 1, np.int64)
    *counts, bad, quoted = scan_lines(buffer.buf, buffer.words, stop, shape, arrays, edge)
    if quoted:
        raise QuotedCellError
    rows, wrong = filled_rows(buffer.buf, arrays, *counts)
    if wrong >= 0:
        bad = buffer.begin_of_line(int(rows.start[wrong]))
    return replace(rows, bad=int(bad), bad_score=wrong >= 0)


def _hashes(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.uint64]:
    """Hash the texts of a block that ends in eight bytes of padding."""
    hashes = np.empty(len(start), np.uint64)
    words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
    hash_texts(words, start, length, hashes)
    return hashes


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    # Read-only arrays have a type of their own: identifiers come memory-mapped or not, the kernel is one.
    view = values.view()
    view.flags.writeable = False
    return view


def _rank(buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup) -> RankedRows:
    """Put the rows of each query in order."""
    n = len(rows.start)
    longest = int(np.diff(cuts).max(initial=0))
    seen = np.empty(1 << (4 * longest + 2).bit_length(), np.int32)
    order, spare, doc = np.empty(n, np.int64), np.empty(longest, np.int64), np.empty(n, np.int32)
    strings = lookup.ids.strings if lookup.ids is not None else Strings.of([])
    if len(lookup.slots) and len(strings) and lookup.slots.max() < 0:
        build_slots(lookup.hashes, lookup.slots)
    data, ptr = _read_only(strings.data), _read_only(np.ascontiguousarray(strings.ptr, np.int64))
    table = IdTable(lookup.slots, lookup.hashes, data, ptr)
    twice = order_rows(buf, rows.start, rows.length, rows.hashes, key, cuts, table, seen, spare, order, doc)
    return RankedRows(order, doc, int(twice))


_COMPILED = Parser("numba", 2 << 20, _scan, _cells, _rank, _hashes)
