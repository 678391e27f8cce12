"""Files of rankings as blocks: rows of whole queries, with the bytes of their documents at hand.

Whatever the format, a block looks alike, and so one path ranks, joins and numbers them all (`runfile.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import IDENTIFIER_BYTES
from weir.core.strings import Bytes, Float64, Int64, Strings
from weir.errors import FormatError
from weir.io.runs.block_parser import Parser
from weir.io.runs.parsed_rows import LongIdentifierError, ParsedRows, take_strings
from weir.io.runs.whitespace_columns import differs_from_previous
from weir.io.storage.lines import LineBuffer

__all__ = [
    "BufferTexts",
    "RankingBlock",
    "RowScanner",
    "TableChunk",
    "long_identifier",
    "table_blocks",
    "text_blocks",
]

ROWS = 1 << 16  # of a table, worked on together
_PAD = 32  # bytes behind a block's text: whole words may be read from any position of it


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

    size: bytes of text worked on at a time; whole: all of it in one block.
    """
    with LineBuffer(path, size) as buffer:
        if scanner.header:
            _skip_line(buffer)
        for rows in _scanned(buffer, scanner, whole):

            def place(row: int, starts: Int64 = rows.start) -> str:
                return f", line {buffer.line_of(int(starts[row]))}"

            queries = take_strings(buffer.buf, rows.query_start, rows.query_length)
            yield RankingBlock(buffer.buf, rows, queries, place)


def _skip_line(buffer: LineBuffer) -> None:
    while buffer.fill() == 0 and not buffer.ended:
        buffer.grow()
    buffer.consume(buffer.end_of_line(0) + 1)


def _scanned(buffer: LineBuffer, scanner: RowScanner, whole: bool) -> Iterator[ParsedRows]:
    """Rows of whole queries; the buffer holds their text until the next is asked for."""
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
        yield rows
        buffer.consume(stop)


def long_identifier(buffer: LineBuffer, error: LongIdentifierError) -> FormatError:
    """What to say about an identifier that is too long."""
    expected = f"at most {IDENTIFIER_BYTES:,}"
    return FormatError(buffer.path, f"an identifier of {error}", expected, buffer.line_of(error.at))


@dataclass(frozen=True, eq=False)
class BufferTexts:
    """Texts somewhere in a buffer: text i is the length[i] bytes of data from start[i] - base."""

    data: Bytes
    start: NDArray[np.integer]
    length: NDArray[np.integer]
    base: int = 0

    @staticmethod
    def of(strings: Strings) -> BufferTexts:
        """A column of strings, not copied."""
        return BufferTexts(strings.data, strings.ptr[:-1], strings.lengths())

    def __len__(self) -> int:
        return len(self.start)

    def strings(self, begin: int = 0) -> Strings:
        """Those from `begin` on, copied."""
        start, length = (column[begin:].astype(np.int64) for column in (self.start, self.length))
        return take_strings(self.data, start - self.base, length)


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some consecutive rows of a table.

    queries: the identifier of each segment, a stretch of rows of one query; first: int64, its first row; docs: of
    each row; score: float64[rows].
    """

    queries: Strings
    first: Int64
    docs: BufferTexts
    score: Float64

    def __len__(self) -> int:
        return len(self.score)


def table_blocks(
    chunks: Iterable[TableChunk], engine: Parser, whole: bool, place: Callable[[int], str]
) -> Iterator[RankingBlock]:
    """Blocks of a table that comes in chunks; whole: all of it in one block.

    place: where a row, counted from 0, stands in the file.
    """
    held: list[TableChunk] = []
    count, done, limit = 0, 0, ROWS
    for chunk in chunks:
        held.append(chunk)
        count += len(chunk)
        if whole or count < limit:
            continue
        joined = _joined(held)
        cut = int(joined.first[-1])
        if cut == 0:  # one query, which may go on
            held, limit = [joined], 2 * limit
            continue
        yield _block(joined, len(joined.first) - 1, engine, partial(_placed, place, done))
        done += cut
        held, count, limit = [_rest(joined, cut)], len(joined) - cut, ROWS
    if count:
        joined = _joined(held)
        yield _block(joined, len(joined.first), engine, partial(_placed, place, done))


def _placed(place: Callable[[int], str], done: int, row: int) -> str:
    return place(done + row)


def _joined(chunks: list[TableChunk]) -> TableChunk:
    """Chunks as one, whose texts lie in one buffer with some bytes behind them."""
    rows = sum(map(len, chunks))
    data = np.empty(sum(len(c.docs.data) for c in chunks) + _PAD, np.uint8)
    data[-_PAD:] = 0
    start, length = np.empty(rows, np.int64), np.empty(rows, np.int64)
    firsts, at, row = [], 0, 0
    for chunk in chunks:
        docs, stop = chunk.docs, row + len(chunk)
        data[at : at + len(docs.data)] = docs.data
        np.add(docs.start, at - docs.base, out=start[row:stop])
        length[row:stop] = docs.length
        firsts.append(chunk.first + row)
        at, row = at + len(docs.data), stop
    queries = Strings.concatenated([c.queries for c in chunks])
    opens = differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths())
    if not opens.all():  # a query that goes on in the next chunk
        queries = queries.take(np.flatnonzero(opens))
    first, score = np.concatenate(firsts)[opens], np.concatenate([c.score for c in chunks])
    return TableChunk(queries, first, BufferTexts(data, start, length), score)


def _rest(chunk: TableChunk, begin: int) -> TableChunk:
    """The last segment, copied, so that the chunk can go."""
    last = len(chunk.first) - 1
    queries = chunk.queries.take(np.arange(last, last + 1))
    docs = BufferTexts.of(chunk.docs.strings(begin))
    return TableChunk(queries, np.zeros(1, np.int64), docs, chunk.score[begin:].copy())


def _block(chunk: TableChunk, segments: int, engine: Parser, place: Callable[[int], str]) -> RankingBlock:
    """The first segments of a joined chunk."""
    stop = len(chunk) if segments == len(chunk.first) else int(chunk.first[segments])
    queries, data = chunk.queries.slice(0, segments), chunk.docs.data
    start, length = (c[:stop].astype(np.int64, copy=False) for c in (chunk.docs.start, chunk.docs.length))
    rows = ParsedRows(
        start,
        length,
        engine.hashes(data, start, length),
        chunk.score[:stop],
        chunk.first[:segments],
        queries.ptr[:-1],
        queries.lengths(),
    )
    return RankingBlock(data, rows, queries, place)
