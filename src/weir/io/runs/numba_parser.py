"""The compiled engine for a block of a ranking file (see rows.py); importing it imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Float64, Int64, Strings
from weir.io.runs.parsed_rows import Lookup, ParsedRows, RankedRows, refuse_long, settle_slow
from weir.io.runs.whitespace_columns import ColumnLayout, QuotedCellError
from weir.io.storage.lines import LineBuffer
from weir.kernels.parse.delimited_lines import hash_texts, scan_cells
from weir.kernels.parse.rank_order import build_slots, order_rows
from weir.kernels.parse.trec_lines import scan_rows

__all__ = ["cells_compiled", "hashes_compiled", "rank_compiled", "scan_compiled"]

_SHORTEST = 10  # bytes of a row: five columns, four separators and the end of the line


def scan_compiled(buffer: LineBuffer, stop: int) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows."""
    space = _Space(stop // _SHORTEST + 1)
    arrays = (*space.arrays(), np.zeros(15, np.int64))
    *counts, bad = scan_rows(buffer.buf, buffer.words, stop, *arrays)
    return space.rows(buffer, counts, int(bad))


def cells_compiled(buffer: LineBuffer, stop: int, layout: ColumnLayout) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by a layout."""
    cells = len(layout.names)
    shape = np.array([ord(layout.separator), cells, layout.query, layout.doc, layout.number], np.int64)
    space = _Space(stop // cells + 1)
    *counts, bad, quoted = scan_cells(
        buffer.buf, buffer.words, stop, shape, *space.arrays(), *np.zeros((2, cells), np.int64)
    )
    if quoted:
        raise QuotedCellError
    return space.rows(buffer, counts, int(bad))


def hashes_compiled(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.uint64]:
    """Hash the texts of a block that ends in eight bytes of padding."""
    hashes = np.empty(len(start), np.uint64)
    words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
    hash_texts(words, start, length, hashes)
    return hashes


class _Space:
    """The arrays that a compiled scan fills."""

    def __init__(self, room: int) -> None:
        # Pages of these that no row reaches are never touched, so room for the worst case costs nothing.
        self._start, self._length, self._segment, self._slow = (
            np.empty(size, np.int64) for size in (room, room, 3 * room, 3 * room)
        )
        self._hashes, self._score = np.empty(room, np.uint64), np.empty(room, np.float64)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """In the order of the kernels' parameters."""
        return self._start, self._length, self._hashes, self._score, self._segment, self._slow

    def rows(self, buffer: LineBuffer, counts: list[int], bad: int) -> ParsedRows:
        """What was filled in; counts: rows, segments, scores left to the slow parser."""
        n, segments, slows = counts
        first, query_start, query_length = self._segment[: 3 * segments].reshape(-1, 3).T.copy()
        refuse_long(self._start[:n], self._length[:n])
        refuse_long(query_start, query_length)
        wrong = settle_slow(buffer, self._slow[: 3 * slows].reshape(-1, 3), self._score)
        if wrong >= 0:
            bad = buffer.begin_of_line(int(self._start[wrong]))
        columns = (self._start[:n], self._length[:n], self._hashes[:n], self._score[:n])
        return ParsedRows(*columns, first, query_start, query_length, bad, wrong >= 0)


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    # Read-only arrays have a type of their own: identifiers come memory-mapped or not, the kernel is one.
    view = values.view()
    view.flags.writeable = False
    return view


def rank_compiled(buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup) -> RankedRows:
    """Put the rows of each query in order."""
    n = len(rows.start)
    longest = int(np.diff(cuts).max(initial=0))
    seen = np.empty(1 << (4 * longest + 2).bit_length(), np.int32)
    order, spare, doc = np.empty(n, np.int64), np.empty(longest, np.int64), np.empty(n, np.int32)
    strings = lookup.ids.strings if lookup.ids is not None else Strings.of([])
    if len(lookup.slots) and len(strings) and lookup.slots.max() < 0:
        build_slots(lookup.hashes, lookup.slots)
    twice = order_rows(
        buf,
        rows.start,
        rows.length,
        rows.hashes,
        key,
        cuts,
        lookup.slots,
        lookup.hashes,
        _read_only(strings.data),
        _read_only(np.ascontiguousarray(strings.ptr, np.int64)),
        seen,
        order,
        spare,
        doc,
    )
    return RankedRows(order, doc, int(twice))
