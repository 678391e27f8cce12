"""Two engines with one result for a block of a ranking file: numpy alone, and compiled.

`scan` splits the lines of a block into rows, `rank` puts the rows of each query into result order (score
descending, then document identifier descending), looks documents up and finds duplicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.ids import IDENTIFIER_BYTES, Ids, descending_bytes
from weir.core.order import by_score, settled
from weir.core.strings import Bytes, Float64, Int32, Int64, Strings
from weir.errors import BadValue
from weir.io.columns import Layout, Table, differs_from_previous, split_columns, split_named
from weir.io.decimals import parse_decimals, parse_slowly
from weir.io.lines import LineBuffer
from weir.kernels.code_cache import kept
from weir.kernels.jit import available, check_available

__all__ = [
    "ENGINES",
    "Engine",
    "EngineName",
    "LongIdentifierError",
    "Lookup",
    "Ranked",
    "Rows",
    "choose_engine",
    "refuse_long",
    "take_strings",
]

EngineName: TypeAlias = Literal["auto", "numpy", "numba"]
ENGINES: tuple[EngineName, ...] = ("auto", "numpy", "numba")

# Compiling the kernels takes some seconds, loading what was compiled a tenth of one; below these sizes of a file,
# in bytes, numpy is done by then.
_WORTH_COMPILING = 128 << 20
_WORTH_LOADING = 4 << 20
_DIGITS = (48, 57)
_SPARSE = 1 << 16  # identifiers: a table of fewer stays in the cache even when it is mostly empty


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a block, in file order.

    start, length, hashes: the document identifier of each row; score: float64; first: the first row of each
    segment (a stretch of rows of one query); query_start, query_length: its identifier, where that stands in the
    block too. bad: the position of
    the first line that is not a row, or -1; bad_score: it is only the score that is wrong.
    """

    start: Int64
    length: Int64
    hashes: NDArray[np.uint64]
    score: Float64
    first: Int64
    query_start: Int64
    query_length: Int64
    bad: int = -1
    bad_score: bool = False

    def segment_lengths(self) -> Int64:
        """How many rows each segment has."""
        return np.diff(np.append(self.first, len(self.start)))

    def take(self, order: Int64) -> Rows:
        """These rows in this order, whose segments are then void."""
        return replace(
            self,
            start=self.start[order],
            length=self.length[order],
            hashes=self.hashes[order],
            score=self.score[order],
        )

    def head(self) -> Rows:
        """All but the last segment."""
        n = int(self.first[-1])
        return Rows(
            self.start[:n],
            self.length[:n],
            self.hashes[:n],
            self.score[:n],
            self.first[:-1],
            self.query_start[:-1],
            self.query_length[:-1],
        )


@dataclass(frozen=True, eq=False)
class Lookup:
    """The identifiers that documents are looked up in; without `ids` nothing is, and every code is -1.

    hashes: of each identifier; slots: int32, an open-addressing table of them; filter: bool[2**bits], which
    top bits of a hash occur at all.
    """

    ids: Ids | None
    hashes: NDArray[np.uint64]
    slots: Int32
    filter: NDArray[np.bool_]

    @staticmethod
    def of(ids: Ids | None) -> Lookup:
        """Prepare a table; the engines fill in what they use."""
        strings = ids.strings if ids is not None else Strings.of([])
        hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
        bits = min(max(16, len(strings).bit_length() + 3), 24)
        present = np.zeros(1 << bits, np.bool_)
        present[(hashes >> np.uint64(64 - bits)).astype(np.int64)] = True
        # A small table is given room, so that most of what is not in it meets an empty slot at once.
        sparse = 8 if len(strings) < _SPARSE else 2
        room = 1 << (sparse * len(strings)).bit_length() if ids is not None else 0
        return Lookup(ids, hashes, np.full(room, -1, np.int32), present)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Rows in result order, query after query, and what the lookup said about each.

    order: int64[n] rows; doc: int32[n] codes in rank order, -1 unknown; twice: the first row whose document
    an earlier row of its query has, or -1 (the others are then void).
    """

    order: Int64
    doc: Int32
    twice: int = -1


@dataclass(frozen=True)
class Engine:
    """One way of doing it; block: bytes of text worked on at a time.

    scan: lines of TREC's columns; cells: lines of a layout; rank: order, duplicates, documents; hashes: of texts
    in a block that ends in eight bytes of padding.
    """

    name: str
    block: int
    scan: Callable[[LineBuffer, int], Rows]
    cells: Callable[[LineBuffer, int, Layout], Rows]
    rank: Callable[[Bytes, Rows, Int64, Float64, Lookup], Ranked]
    hashes: Callable[[Bytes, Int64, Int64], NDArray[np.uint64]]


def choose_engine(name: EngineName, size: int) -> Engine:
    """The engine of that name; for "auto" the faster one for `size` bytes of text that is installed.

    Raises BadValue for an unknown name, MissingExtra for "numba" without the `run` extra.
    """
    if name not in ENGINES:
        raise BadValue(f"engine is '{name}'; expected one of {', '.join(ENGINES)}")
    if name == "auto":
        worth = _WORTH_LOADING if kept("trec_order") else _WORTH_COMPILING
        name = "numba" if size >= worth and available() else "numpy"
    if name == "numba":
        check_available()
        from weir.io.rows_compiled import cells_compiled, hashes_compiled, rank_compiled, scan_compiled

        return Engine(name, 2 << 20, scan_compiled, cells_compiled, rank_compiled, hashes_compiled)
    return Engine(name, 2 << 20, scan_plain, cells_plain, rank_plain, hash_strings)


def scan_plain(buffer: LineBuffer, stop: int) -> Rows:
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
            table = Table(table.start[:row], table.end[:row])
    return _rows(buf, replace(table, bad=bad), (0, 2, 4))


def cells_plain(buffer: LineBuffer, stop: int, layout: Layout) -> Rows:
    """Split the lines of the first `stop` bytes into rows by a layout, with numpy alone."""
    table = split_named(buffer.buf, stop, layout)
    ids = [layout.query, layout.doc]
    empty = np.flatnonzero((table.start[:, ids] == table.end[:, ids]).any(axis=1))
    if len(empty):
        row = int(empty[0])
        table = Table(table.start[:row], table.end[:row], int(table.start[row, 0]))
    return _rows(buffer.buf, table, (layout.query, layout.doc, layout.number))


def _rows(buf: Bytes, table: Table, which: tuple[int, int, int]) -> Rows:
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
    return Rows(
        column[1], length[1], hashes, score, first, column[0][first], length[0][first], bad, bad_score
    )


class LongIdentifierError(Exception):
    """An identifier is too long; at: where in the block it stands, size: its bytes."""

    def __init__(self, at: int, size: int) -> None:
        super().__init__(f"{size:,} bytes")
        self.at, self.size = at, size


def refuse_long(start: Int64, length: Int64) -> None:
    """Raise LongIdentifierError where one of the texts has more than IDENTIFIER_BYTES."""
    if int(length.max(initial=0)) > IDENTIFIER_BYTES:
        row = int(length.argmax())
        raise LongIdentifierError(int(start[row]), int(length[row]))


def settle_slow(buffer: LineBuffer, slow: Int64, score: Float64) -> int:
    """Parse the scores a quick parser left; slow: int64[n, 3] row, start, length. Returns a bad row or -1."""
    for row, start, length in slow.tolist():
        score[row] = parse_slowly(buffer.buf[start : start + length].tobytes())
        if np.isnan(score[row]):
            return int(row)
    return -1


def rank_plain(buf: Bytes, rows: Rows, cuts: Int64, key: Float64, lookup: Lookup) -> Ranked:
    """Put the rows of each query in order with numpy alone.

    cuts: int64[queries + 1] first row of each query; key: scores at the precision in which they compare.
    """
    query = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    twice = _first_duplicate(buf, rows, query)
    if twice >= 0:
        return Ranked(np.empty(0, np.int64), np.empty(0, np.int32), twice)
    order = settled(by_score(query, key), query, key, lambda tied: _tie_ranks(buf, rows, tied))
    return Ranked(order, _find_plain(buf, rows, order, lookup))


def _tie_ranks(buf: Bytes, rows: Rows, tied: Int64) -> Int64:
    """The place of the documents of some rows in descending byte order."""
    place = np.empty(len(tied), np.int64)
    place[descending_bytes(take_strings(buf, rows.start[tied], rows.length[tied]))] = np.arange(len(tied))
    return place


def _first_duplicate(buf: Bytes, rows: Rows, query: Int64) -> int:
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


def _find_plain(buf: Bytes, rows: Rows, order: Int64, lookup: Lookup) -> Int32:
    doc = np.full(len(order), -1, np.int32)
    if lookup.ids is None or len(lookup.ids) == 0:
        return doc
    bits = len(lookup.filter).bit_length() - 1
    at = np.flatnonzero(lookup.filter[(rows.hashes >> np.uint64(64 - bits)).astype(np.int64)])
    found = np.full(len(order), -1, np.int32)
    found[at] = lookup.ids.codes(take_strings(buf, rows.start[at], rows.length[at]))
    np.take(found, order, out=doc)
    return doc


def take_strings(buf: Bytes, start: Int64, length: Int64) -> Strings:
    """Copy the texts buf[start[i] : start[i] + length[i]] into a column of strings."""
    ptr = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=ptr[1:])
    where = np.repeat(start - ptr[:-1], length) + np.arange(ptr[-1])
    return Strings(buf[where], ptr)
