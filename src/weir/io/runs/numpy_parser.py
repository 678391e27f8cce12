"""The parser of blocks of ranking files in numpy alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.core.hashing import hash_strings
from weir.core.ids import descending_bytes
from weir.core.order import by_score, settled
from weir.core.strings import Bytes, Float64, Int32, Int64
from weir.io.runs.decimals import parse_decimals
from weir.io.runs.parsed_rows import Lookup, ParsedRows, RankedRows, refuse_long, take_strings
from weir.io.runs.whitespace_columns import (
    ColumnLayout,
    WhitespaceTable,
    differs_from_previous,
    split_columns,
    split_named,
)
from weir.io.storage.lines import LineBuffer

__all__ = ["cells_plain", "rank_plain", "scan_plain"]

_DIGITS = (48, 57)


def scan_plain(buffer: LineBuffer, stop: int) -> ParsedRows:
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


def cells_plain(buffer: LineBuffer, stop: int, layout: ColumnLayout) -> ParsedRows:
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


def rank_plain(buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup) -> RankedRows:
    """Put the rows of each query in order with numpy alone.

    cuts: int64[queries + 1] first row of each query; key: scores at the precision in which they compare.
    """
    query = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    twice = _first_duplicate(buf, rows, query)
    if twice >= 0:
        return RankedRows(np.empty(0, np.int64), np.empty(0, np.int32), twice)
    order = settled(by_score(query, key), query, key, lambda tied: _tie_ranks(buf, rows, tied))
    return RankedRows(order, _find_plain(buf, rows, order, lookup))


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


def _find_plain(buf: Bytes, rows: ParsedRows, order: Int64, lookup: Lookup) -> Int32:
    doc = np.full(len(order), -1, np.int32)
    if lookup.ids is None or len(lookup.ids) == 0:
        return doc
    bits = len(lookup.filter).bit_length() - 1
    at = np.flatnonzero(lookup.filter[(rows.hashes >> np.uint64(64 - bits)).astype(np.int64)])
    found = np.full(len(order), -1, np.int32)
    found[at] = lookup.ids.codes(take_strings(buf, rows.start[at], rows.length[at]))
    np.take(found, order, out=doc)
    return doc
