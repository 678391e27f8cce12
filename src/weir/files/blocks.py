"""Rows of rankings and judgments in blocks, their identifiers numbered as they appear."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import (
    IDENTIFIER_BYTES,
    Bytes,
    Float64,
    Ids,
    Int32,
    Int64,
    Strings,
    hash_strings,
    load_words,
)
from weir.errors import FormatError
from weir.files.column_names import ColumnLayout
from weir.files.text_files import LineBuffer


def distinct(data: Bytes, start: Int64, length: Int64, hashes: NDArray[np.uint64]) -> tuple[Int64, Int64]:
    """Number texts by first appearance.

    data[start[i] : start[i] + length[i]] is text i, hashes[i] its hash. Returns codes int64[n] and, for each
    code, the position of its first text.
    """
    n = len(start)
    if n == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(hashes)
    ordered = hashes[order]
    opens = np.ones(n, np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    heads = np.flatnonzero(opens)
    first = np.minimum.reduceat(order, heads)
    group = np.empty(n, np.int64)
    group[order] = np.cumsum(opens) - 1
    if not _all_same(data, start, length, first[group]):  # two texts share a hash
        known: dict[bytes, int] = {}
        texts = [
            data[a : a + size].tobytes() for a, size in zip(start.tolist(), length.tolist(), strict=True)
        ]
        codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
        return codes, np.unique(codes, return_index=True)[1]
    by_appearance = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[by_appearance] = np.arange(len(first))
    return number[group], first[by_appearance]


def distinct_strings(strings: Strings) -> tuple[Int64, Strings]:
    """Number strings by first appearance: codes int64[n] and the distinct strings."""
    start, length = strings.ptr[:-1], strings.lengths()
    codes, first = distinct(strings.data, start, length, hash_strings(strings.data, start, length))
    return codes, strings.take(first)


def as_bytes(strings: Strings) -> list[bytes]:
    """The bytes of each string; unlike text they keep what is no valid UTF-8."""
    data, cuts = strings.data[strings.ptr[0] : strings.ptr[-1]].tobytes(), strings.ptr - strings.ptr[0]
    ends = cuts.tolist()
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def _all_same(data: Bytes, start: Int64, length: Int64, other: Int64) -> bool:
    """Whether every text i has the bytes of text other[i]: it may only fail when two texts share a hash."""
    rows = np.flatnonzero(other != np.arange(len(other)))
    a, b = start[rows], start[other[rows]]
    size = length[rows]
    if (size != length[other[rows]]).any():
        return False
    for at in range(int(size.max(initial=0))):
        inside = size > at
        a, b, size = a[inside], b[inside], size[inside]
        if (data[a + at] != data[b + at]).any():
            return False
    return True


def differs_from_previous(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.bool_]:
    """Whether each text differs from the one before it; the first does. start, length: int64[n]."""
    change = np.ones(len(start), np.bool_)
    change[1:] = length[1:] != length[:-1]
    longest = int(length.max(initial=0))
    for done in range(0, longest, 8):
        word = load_words(buf, start + done, length - done)
        change[1:] |= word[1:] != word[:-1]
    return change


# Rows of rankings and judgments in blocks of whole queries, with the bytes of their documents at hand, whatever they
# are stored as. `runs.py` ranks, joins and numbers them all.

EngineName: TypeAlias = Literal["auto", "numpy", "numba"]
ENGINES: tuple[EngineName, ...] = ("auto", "numpy", "numba")
BLOCK_ROWS = 1 << 16  # of a table, worked on together
_PAD_BYTES = 32  # bytes behind a block's text: whole words may be read from any position of it
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


@dataclass(frozen=True)
class Parser:
    """One way of doing it; block: bytes of text worked on at a time.

    scan: lines of TREC's columns; cells: lines of a layout; rank: order, duplicates, documents; hashes: of texts
    in a block that ends in eight bytes of padding.
    """

    name: str
    block: int
    scan: Callable[[LineBuffer, int], ParsedRows]
    cells: Callable[[LineBuffer, int, ColumnLayout], ParsedRows]
    rank: Callable[[Bytes, ParsedRows, Int64, Float64, Lookup], RankedRows]
    hashes: Callable[[Bytes, Int64, Int64], NDArray[np.uint64]]


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


class QuotedCellError(Exception):
    """A quoted cell holds separators, line ends or quotation marks, so that its text is not what stands there."""


def take_strings(buf: Bytes, start: Int64, length: Int64) -> Strings:
    """Copy the texts buf[start[i] : start[i] + length[i]] into a column of strings."""
    ptr = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=ptr[1:])
    where = np.repeat(start - ptr[:-1], length) + np.arange(ptr[-1])
    return Strings(buf[where], ptr)


@dataclass(frozen=True, eq=False)
class RankingBlock:
    """Rows of whole queries, and the bytes they point to.

    queries: the identifier of each segment of the rows; place: where a row stands in the file, as ", line 7".
    """

    buf: Bytes
    rows: ParsedRows
    queries: Strings
    place: Callable[[int], str]


@dataclass(frozen=True)
class RowScanner:
    """How lines become rows, what to say about a line that does not, and whether a header comes first."""

    scan: Callable[[LineBuffer, int], ParsedRows]
    describe: Callable[[LineBuffer, ParsedRows], FormatError]
    header: bool = False


def text_blocks(path: Path, scanner: RowScanner, size: int, whole: bool) -> Iterator[RankingBlock]:
    """Blocks of a text file; each is gone when the next is asked for.

    size: bytes of text worked on at a time; whole: all of it in one block. Raises FormatError for a line that is no
    row and for an identifier that is too long.
    """
    with LineBuffer(path, size) as buffer:
        if scanner.header:
            while buffer.fill() == 0 and not buffer.ended:
                buffer.grow()
            buffer.consume(buffer.end_of_line(0) + 1)
        while True:
            stop = buffer.fill()
            if stop == 0 and buffer.ended:
                return
            if stop == 0 or (whole and not buffer.ended):
                buffer.grow()
                continue
            try:
                rows = scanner.scan(buffer, stop)
            except LongIdentifierError as error:
                raise long_identifier(buffer, error) from None
            if rows.bad >= 0:
                raise scanner.describe(buffer, rows)
            if not buffer.ended and len(rows.first):
                if len(rows.first) == 1:  # the query may go on: see all of it
                    buffer.grow()
                    continue
                stop = buffer.begin_of_line(int(rows.query_start[-1]))
                rows = rows.head()

            def place(row: int, starts: Int64 = rows.start) -> str:
                return f", line {buffer.line_of(int(starts[row]))}"

            queries = take_strings(buffer.buf, rows.query_start, rows.query_length)
            yield RankingBlock(buffer.buf, rows, queries, place)
            buffer.consume(stop)


def long_identifier(buffer: LineBuffer, error: LongIdentifierError) -> FormatError:
    """What to say about an identifier that is too long."""
    expected = f"at most {IDENTIFIER_BYTES:,}"
    return FormatError(buffer.path, f"an identifier of {error}", expected, buffer.line_of(error.at))


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some consecutive rows of a table.

    queries: the identifier of each segment, a stretch of rows of one query; first: int64, its first row; docs: of
    each row; score: float64[rows].
    """

    queries: Strings
    first: Int64
    docs: Strings
    score: Float64

    def __len__(self) -> int:
        return len(self.score)

    @staticmethod
    def joined(chunks: list[TableChunk]) -> TableChunk:
        """Chunks as one, copied; a query that goes on in the next chunk is one segment."""
        begin = np.cumsum([0, *map(len, chunks)])
        queries = Strings.concatenated([c.queries for c in chunks])
        opens = differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths())
        first = np.concatenate([c.first + row for c, row in zip(chunks, begin, strict=False)])[opens]
        docs, score = (
            Strings.concatenated([c.docs for c in chunks]),
            np.concatenate([c.score for c in chunks]),
        )
        return TableChunk(queries.take(np.flatnonzero(opens)), first, docs, score)

    def split(self) -> tuple[TableChunk, TableChunk]:
        """All but the last segment, and the last."""
        cut, last = int(self.first[-1]), len(self.first) - 1
        docs = (self.docs.slice(0, cut), self.docs.slice(cut, len(self)))
        head = TableChunk(self.queries.slice(0, last), self.first[:-1], docs[0], self.score[:cut])
        return head, TableChunk(self.queries.slice(last, last + 1), self.first[:1], docs[1], self.score[cut:])

    def block(self, engine: Parser, place: Callable[[int], str]) -> RankingBlock:
        """The rows, with the bytes of their documents; see RankingBlock."""
        data = np.append(self.docs.data, np.zeros(_PAD_BYTES, np.uint8))
        start, length, queries = self.docs.ptr[:-1], self.docs.lengths(), self.queries
        hashes, at = engine.hashes(data, start, length), queries.ptr[:-1]
        rows = ParsedRows(start, length, hashes, self.score, self.first, at, queries.lengths())
        return RankingBlock(data, rows, queries, place)


def table_blocks(
    chunks: Iterable[TableChunk], engine: Parser, whole: bool, place: Callable[[int], str]
) -> Iterator[RankingBlock]:
    """Blocks of a table that comes in chunks; whole: all of it in one block.

    place: where a row, counted from 0, stands in the file.
    """
    held: list[TableChunk] = []
    count, done, limit = 0, 0, BLOCK_ROWS
    for chunk in chunks:
        held.append(chunk)
        count += len(chunk)
        if whole or count < limit:
            continue
        held = [TableChunk.joined(held)]
        if len(held[0].first) == 1:  # one query, which may go on
            limit *= 2
            continue
        head, rest = held[0].split()
        yield head.block(engine, lambda row, before=done: place(before + row))  # type: ignore[misc]  # an int
        done += len(head)
        held, count, limit = [rest], len(rest), BLOCK_ROWS
    if count:
        yield TableChunk.joined(held).block(engine, lambda row: place(done + row))
