"""The parser of blocks of lines in numpy alone: TREC's columns, separated cells, their rows in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.ids import descending_bytes
from weir.core.order import by_score, settled
from weir.core.strings import Bytes, Float64, Int32, Int64
from weir.io.runs.blocks import (
    Lookup,
    ParsedRows,
    Parser,
    QuotedCellError,
    RankedRows,
    refuse_long,
    take_strings,
)
from weir.io.runs.column_names import ColumnLayout
from weir.io.runs.decimals import parse_decimals
from weir.io.runs.distinct_ids import differs_from_previous
from weir.io.storage.text_files import LineBuffer

__all__ = ["NUMPY_PARSER", "WhitespaceTable", "split_cells", "split_columns"]

_KIND = np.zeros(256, np.uint8)  # 1: between columns, 2: ends a line
_KIND[[9, 11, 12, 13, 32]] = 1
_KIND[10] = 2
_HASH = 35
_END, _RETURN, _QUOTE = 10, 13, 34
_DIGITS = (48, 57)


@dataclass(frozen=True, eq=False)
class WhitespaceTable:
    """Where the columns of each line stand.

    start, end: int64[rows, columns]; a line that lacks the last columns repeats its end there. bad: the
    position of the first line with too few or too many columns, or -1; rows stop before it. wide: the rows
    that have more columns than these.
    """

    start: Int64
    end: Int64
    bad: int = -1
    wide: Int64 = field(default_factory=lambda: np.empty(0, np.int64))


def split_columns(buf: Bytes, stop: int, fewest: int, most: int, more: bool = False) -> WhitespaceTable:
    """Split the lines of buf[:stop] into columns; blank lines and lines that start with `#` are no rows.

    fewest, most: accepted numbers of columns; more: a line may have more than `most`, which are then left out.

    buf[stop - 1] is a line end. Columns stand between blanks or tabs, however many; lines may end in CRLF.
    """
    space = np.flatnonzero(buf[:stop] <= 32)
    kind = _KIND[buf[space]]
    if not kind.all():  # control characters inside an identifier
        space, kind = space[kind > 0], kind[kind > 0]
    table = _regular(buf, space, kind, most)
    return table if table is not None else _irregular(buf, space, kind, (fewest, most, more))


def _regular(buf: Bytes, space: Int64, kind: NDArray[np.uint8], most: int) -> WhitespaceTable | None:
    """The table of lines that all have `most` columns with one separator between them; None otherwise."""
    if len(space) == 0 or len(space) % most:
        return None
    marks = kind.reshape(-1, most)
    if not (marks[:, -1] == 2).all() or (marks[:, :-1] == 2).any():
        return None
    start = np.empty(len(space), np.int64)
    start[0] = 0
    np.add(space[:-1], 1, out=start[1:])
    if not (start < space).all():
        return None
    rows = start.reshape(-1, most)
    if (buf[rows[:, 0]] == _HASH).any():
        return None
    return WhitespaceTable(rows, space.reshape(-1, most))


def _irregular(
    buf: Bytes, space: Int64, kind: NDArray[np.uint8], accepted: tuple[int, int, bool]
) -> WhitespaceTable:
    """The table of any lines."""
    fewest, most, more = accepted
    before = np.empty(len(space), np.int64)  # the first byte after the white space before
    before[:1] = 0
    np.add(space[:-1], 1, out=before[1:])
    filled = before < space
    line = np.cumsum(kind == 2) - (kind == 2)
    start, end, line = before[filled], space[filled], line[filled]
    if len(start) == 0:
        return WhitespaceTable(np.empty((0, most), np.int64), np.empty((0, most), np.int64))
    head = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    count = np.diff(np.append(head, len(line)))
    rows = buf[start[head]] != _HASH
    head, count = head[rows], count[rows]
    wrong = np.flatnonzero((count < fewest) | ((count > most) & (not more)))
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head, count = head[: wrong[0]], count[: wrong[0]]
    at = head[:, None] + np.minimum(np.arange(most), count[:, None] - 1)
    start, end = start[at], end[at]
    absent = np.arange(most) >= count[:, None]
    start[absent] = end[absent]
    return WhitespaceTable(start, end, bad, np.flatnonzero(count > most))


def split_cells(buf: Bytes, stop: int, columns: int) -> WhitespaceTable:
    """Split the lines of buf[:stop] at tabs; white space around cells is no part of them.

    buf[stop - 1] is a line end. Every line must have the given number of cells, of which some may be empty;
    blank lines and lines without a tab that start with `#` are no rows.
    """
    cut = np.flatnonzero((buf[:stop] == 9) | (buf[:stop] == 10))
    ends_line = buf[cut] == 10
    start = np.empty(len(cut), np.int64)
    start[:1] = 0
    np.add(cut[:-1], 1, out=start[1:])
    start, end = _trimmed(buf, start, cut.copy())
    last = np.flatnonzero(ends_line)
    count = np.diff(last, prepend=-1)
    head = last - count + 1
    # A line without a tab is no row when it is blank or a comment.
    filled = (count > 1) | ((start[head] < end[head]) & (buf[start[head]] != _HASH))
    head, count = head[filled], count[filled]
    wrong = np.flatnonzero(count != columns)
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head = head[: wrong[0]]
    at = head[:, None] + np.arange(columns)
    return WhitespaceTable(start[at], end[at], bad)


def split_named(buf: Bytes, stop: int, layout: ColumnLayout) -> WhitespaceTable:
    """Split the lines of buf[:stop] exactly at the separators of a layout; lines without a byte are no rows.

    buf[stop - 1] is a line end. Quotation marks around a cell are no part of it. Raises QuotedCellError where one of
    them may have to be read otherwise, which is then left to a slower parser.
    """
    cut = np.flatnonzero((buf[:stop] == ord(layout.separator)) | (buf[:stop] == _END))
    start = np.empty(len(cut), np.int64)
    start[:1] = 0
    np.add(cut[:-1], 1, out=start[1:])
    cells, ends = len(layout.names), buf[cut] == _END
    bad = -1
    if len(cut) % cells or not (ends.reshape(-1, cells) == (np.arange(cells) == cells - 1)).all():
        last = np.flatnonzero(ends)
        count = np.diff(last, prepend=-1)
        head = last - count + 1
        empty = start[head] == cut[head]
        empty |= (cut[head] - start[head] == 1) & (buf[start[head]] == _RETURN)
        filled = (count > 1) | ~empty
        head, count = head[filled], count[filled]
        wrong = np.flatnonzero(count != cells)
        if len(wrong):
            if (buf[start] == _QUOTE).any():  # which may be why
                raise QuotedCellError
            bad, head = int(start[head[wrong[0]]]), head[: wrong[0]]
        at = head[:, None] + np.arange(cells)
        start, cut = start[at].ravel(), cut[at].ravel()
    ends_of_lines = cut[cells - 1 :: cells]  # a view: carriage returns are no part of the last cells
    ends_of_lines -= (ends_of_lines > start[cells - 1 :: cells]) & (buf[ends_of_lines - 1] == _RETURN)
    _unquote(buf, stop, start, cut)
    return WhitespaceTable(start.reshape(-1, cells), cut.reshape(-1, cells), bad)


def _unquote(buf: Bytes, stop: int, start: Int64, end: Int64) -> None:
    """Leave out the quotation marks around cells, in place."""
    quoted = buf[start] == _QUOTE
    marks = int(np.count_nonzero(buf[:stop] == _QUOTE)) if quoted.any() else 0
    if marks:
        around = (end - start > 1) & (buf[end - 1] == _QUOTE)
        if marks != 2 * int(quoted.sum()) or not around[quoted].all():
            raise QuotedCellError
        start += quoted
        end -= quoted


def _trimmed(buf: Bytes, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Cells without the white space around them."""
    while (left := (start < end) & (_KIND[buf[start]] > 0)).any():
        start = start + left
    while (right := (start < end) & (_KIND[buf[end - 1]] > 0)).any():
        end = end - right
    return start, end


def _scan(buffer: LineBuffer, stop: int) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows with numpy alone."""
    buf = buffer.buf
    table = split_columns(buf, stop, 5, 6, more=True)
    bad = table.bad
    if len(table.wide):
        rank, tag = buf[table.start[table.wide, 3]], buf[table.start[table.wide, 5]]
        shifted = np.flatnonzero(
            (rank < _DIGITS[0]) | (rank > _DIGITS[1]) | ((tag >= 43) & (tag <= _DIGITS[1]))
        )
        if len(shifted):
            row = int(table.wide[shifted[0]])
            bad = int(table.start[row, 0])
            table = WhitespaceTable(table.start[:row], table.end[:row])
    return _rows(buf, replace(table, bad=bad), (0, 2, 4))


def _cells(buffer: LineBuffer, stop: int, layout: ColumnLayout) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by a layout, with numpy alone."""
    table = split_named(buffer.buf, stop, layout)
    ids = [layout.query, layout.doc]
    empty = np.flatnonzero((table.start[:, ids] == table.end[:, ids]).any(axis=1))
    if len(empty):
        row = int(empty[0])
        table = WhitespaceTable(table.start[:row], table.end[:row], int(table.start[row, 0]))
    return _rows(buffer.buf, table, (layout.query, layout.doc, layout.number))


def _rows(buf: Bytes, table: WhitespaceTable, which: tuple[int, int, int]) -> ParsedRows:
    """Rows from the columns of query, document and score."""
    bad, bad_score = table.bad, False
    column = [np.ascontiguousarray(table.start[:, c]) for c in which]
    length = [table.end[:, c] - s for c, s in zip(which, column, strict=True)]
    refuse_long(column[0], length[0])
    refuse_long(column[1], length[1])
    score, wrong = parse_decimals(buf, column[2], length[2])
    if len(wrong):
        bad, bad_score = int(table.start[wrong[0], 0]), True
    first = np.flatnonzero(differs_from_previous(buf, column[0], length[0]))
    hashes = hash_strings(buf, column[1], length[1])
    return ParsedRows(
        column[1], length[1], hashes, score, first, column[0][first], length[0][first], bad, bad_score
    )


def _rank(buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup) -> RankedRows:
    """Put the rows of each query in order with numpy alone.

    cuts: int64[queries + 1] first row of each query; key: scores at the precision in which they compare.
    """
    query = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    twice = _first_duplicate(buf, rows, query)
    if twice >= 0:
        return RankedRows(np.empty(0, np.int64), np.empty(0, np.int32), twice)
    order = settled(by_score(query, key), query, key, lambda tied: _tie_ranks(buf, rows, tied))
    return RankedRows(order, _looked_up(buf, rows, order, lookup))


def _tie_ranks(buf: Bytes, rows: ParsedRows, tied: Int64) -> Int64:
    """The place of the documents of some rows in descending byte order."""
    place = np.empty(len(tied), np.int64)
    place[descending_bytes(take_strings(buf, rows.start[tied], rows.length[tied]))] = np.arange(len(tied))
    return place


def _first_duplicate(buf: Bytes, rows: ParsedRows, query: Int64) -> int:
    """The first row whose document an earlier row of its query has, or -1."""
    key = rows.hashes ^ (query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    sorted_key = np.sort(key)
    repeated = sorted_key[1:][sorted_key[1:] == sorted_key[:-1]]
    if len(repeated) == 0:
        return -1
    # Equal keys are nearly always equal documents of one query; look at the bytes of those few rows.
    seen = set()
    for row in np.flatnonzero(np.isin(key, repeated)).tolist():
        start, length = int(rows.start[row]), int(rows.length[row])
        pair = (int(query[row]), buf[start : start + length].tobytes())
        if pair in seen:
            return int(row)
        seen.add(pair)
    return -1


def _looked_up(buf: Bytes, rows: ParsedRows, order: Int64, lookup: Lookup) -> Int32:
    doc = np.full(len(order), -1, np.int32)
    if lookup.ids is None or len(lookup.ids) == 0:
        return doc
    bits = len(lookup.filter).bit_length() - 1
    at = np.flatnonzero(lookup.filter[(rows.hashes >> np.uint64(64 - bits)).astype(np.int64)])
    found = np.full(len(order), -1, np.int32)
    found[at] = lookup.ids.codes(take_strings(buf, rows.start[at], rows.length[at]))
    np.take(found, order, out=doc)
    return doc


NUMPY_PARSER = Parser("numpy", 2 << 20, _scan, _cells, _rank, hash_strings)
