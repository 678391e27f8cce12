"""The compiled engine for a block of a ranking file (see rows.py); importing it imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Float64, Int64, Strings
from weir.io.lines import LineBuffer
from weir.io.rows import Lookup, Ranked, Rows, settle_slow
from weir.kernels.trec import scan_rows
from weir.kernels.trec_order import build_slots, order_rows

__all__ = ["rank_compiled", "scan_compiled"]

_SHORTEST = 10  # bytes of a row: five columns, four separators and the end of the line


def scan_compiled(buffer: LineBuffer, stop: int) -> Rows:
    """Split the lines of the first `stop` bytes into rows."""
    room = stop // _SHORTEST + 1
    # Pages of these that no row reaches are never touched, so room for the worst case costs nothing.
    start, length, segment, slow = (np.empty(size, np.int64) for size in (room, room, 3 * room, 3 * room))
    hashes, score = np.empty(room, np.uint64), np.empty(room, np.float64)
    n, segments, slows, bad = scan_rows(
        buffer.buf, buffer.words, stop, start, length, hashes, score, segment, slow
    )
    first, query_start, query_length = segment[: 3 * segments].reshape(-1, 3).T.copy()
    wrong = settle_slow(buffer, slow[: 3 * slows].reshape(-1, 3), score)
    if wrong >= 0:
        bad = buffer.begin_of_line(int(start[wrong]))
    return Rows(
        start[:n], length[:n], hashes[:n], score[:n], first, query_start, query_length, int(bad), wrong >= 0
    )


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    # Read-only arrays have a type of their own: identifiers come memory-mapped or not, the kernel is one.
    view = values.view()
    view.flags.writeable = False
    return view


def rank_compiled(buf: Bytes, rows: Rows, cuts: Int64, key: Float64, lookup: Lookup) -> Ranked:
    """Put the rows of each query in order."""
    n = len(rows.start)
    longest = int(np.diff(cuts).max(initial=0))
    seen = np.empty(1 << (2 * longest + 2).bit_length(), np.int32)
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
    return Ranked(order, doc, int(twice))
