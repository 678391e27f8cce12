"""The rows of a block of a ranking file as columns, what a lookup of documents says of them, and their order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.ids import IDENTIFIER_BYTES, Ids
from weir.core.strings import Bytes, Float64, Int32, Int64, Strings
from weir.io.runs.decimals import parse_slowly
from weir.io.storage.lines import LineBuffer

__all__ = [
    "LongIdentifierError",
    "Lookup",
    "ParsedRows",
    "RankedRows",
    "refuse_long",
    "settle_slow",
    "take_strings",
]

_SPARSE_TABLE_SLOTS = 1 << 16  # a table of fewer stays in the cache even when it is mostly empty


@dataclass(frozen=True, eq=False)
class ParsedRows:
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

    def take(self, order: Int64) -> ParsedRows:
        """These rows in this order, whose segments are then void."""
        return replace(
            self,
            start=self.start[order],
            length=self.length[order],
            hashes=self.hashes[order],
            score=self.score[order],
        )

    def head(self) -> ParsedRows:
        """All but the last segment."""
        n = int(self.first[-1])
        return ParsedRows(
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
        sparse = 8 if len(strings) < _SPARSE_TABLE_SLOTS else 2
        room = 1 << (sparse * len(strings)).bit_length() if ids is not None else 0
        return Lookup(ids, hashes, np.full(room, -1, np.int32), present)


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows in result order, query after query, and what the lookup said about each.

    order: int64[n] rows; doc: int32[n] codes in rank order, -1 unknown; twice: the first row whose document
    an earlier row of its query has, or -1 (the others are then void).
    """

    order: Int64
    doc: Int32
    twice: int = -1


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


def take_strings(buf: Bytes, start: Int64, length: Int64) -> Strings:
    """Copy the texts buf[start[i] : start[i] + length[i]] into a column of strings."""
    ptr = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=ptr[1:])
    where = np.repeat(start - ptr[:-1], length) + np.arange(ptr[-1])
    return Strings(buf[where], ptr)
