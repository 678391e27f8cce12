"""Ranking files in TREC format, block by block of whole queries.

A block that holds several queries is parsed, its rankings are put in order and its documents are looked up
while their identifiers are still in the buffer; only codes and scores are kept. A file whose queries are
interleaved is the exception: it is read whole and sorted by query first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.core.ids import Ids
from weir.core.order import Ties, compared
from weir.core.strings import Float64, Int32, Int64, Strings
from weir.errors import BadRanking, FormatError
from weir.io.intern import as_bytes, distinct, distinct_strings
from weir.io.lines import LineBuffer
from weir.io.rows import Engine, EngineName, Lookup, Rows, choose_engine, take_strings

__all__ = ["Names", "Part", "RunFile", "read_parts"]

T = TypeVar("T")

_PACKED = 5  # text is about this much larger than its packed form


@dataclass(frozen=True, eq=False)
class Part:
    """The rankings of some queries of a file, each complete and in result order.

    query: int64[q] codes; ptr: int64[q + 1]; doc: int32[n] codes, -1 outside the table; score: float64[n].
    """

    query: Int64
    ptr: Int64
    doc: Int32
    score: Float64


@dataclass(frozen=True, eq=False)
class RunFile:
    """What to read: a file, the identifiers to number by (None: as they appear), the tie rule, the engine."""

    path: Path
    queries: Ids | None = None
    docs: Ids | None = None
    ties: Ties = "trec"
    engine: EngineName = "auto"


class _InterleavedError(Exception):
    """A query came back after another one."""


class Names:
    """Numbers queries and documents of one file."""

    def __init__(self, file: RunFile) -> None:
        """Start with nothing numbered."""
        self.queries = file.queries
        self.numbered: dict[bytes, int] = {}
        self.ignored: set[bytes] = set()
        self.seen: set[int] = set()
        self.docs: list[Strings] = []
        self.doc_count = 0

    def query_codes(self, wanted: Strings) -> Int64:
        """Codes of the queries of segments, -1: not in the table, and then remembered as ignored."""
        which, strings = distinct_strings(wanted)
        if self.queries is not None:
            codes = self.queries.codes(strings).astype(np.int64)
            self.ignored.update(as_bytes(strings.take(np.flatnonzero(codes < 0))))
        else:
            number = self.numbered
            codes = np.array([number.setdefault(q, len(number)) for q in as_bytes(strings)], np.int64)
        return codes[which]

    def mark(self, codes: Int64) -> bool:
        """Remember queries as complete; whether one of them was already or occurs twice."""
        known = codes[codes >= 0].tolist()
        again = len(set(known)) < len(known) or not self.seen.isdisjoint(known)
        self.seen.update(known)
        return again

    def doc_codes(self, buffer: LineBuffer, rows: Rows) -> Int32:
        """Codes of the documents of rows, numbered as they appear (with repetitions between blocks)."""
        codes, first = distinct(buffer.buf, rows.start, rows.length, rows.hashes)
        self.docs.append(take_strings(buffer.buf, rows.start[first], rows.length[first]))
        self.doc_count += len(first)
        return (codes + (self.doc_count - len(first))).astype(np.int32)

    def all_queries(self) -> Ids:
        """The queries numbered so far."""
        return Ids(Strings.packed(list(self.numbered)))

    def all_docs(self) -> tuple[Int64, Ids]:
        """The new code of each code given so far, and the distinct documents."""
        codes, strings = distinct_strings(Strings.concatenated(self.docs))
        return codes, Ids(strings)


def read_parts(file: RunFile, step: Callable[[Part], T]) -> tuple[list[T], Names]:
    """Read a file and apply `step`, a pure function, to each part: the rankings of some of its queries.

    Memory: one block of text and what `step` keeps, unless the file's queries are interleaved; then the file
    is read whole. Raises FormatError for a line that is no row and BadRanking for a duplicate, with the line.
    """
    for whole in (False, True):
        names = Names(file)
        try:
            return [step(part) for part in _parts(file, names, whole)], names
        except _InterleavedError:
            continue
    raise AssertionError("a file read whole has no interleaved queries")


def _parts(file: RunFile, names: Names, whole: bool) -> Iterator[Part]:
    size = _text_size(file.path)
    engine = choose_engine(file.engine, size)
    lookup = Lookup.of(file.docs)
    with LineBuffer(file.path, size + 64 if whole else min(size + 64, engine.block)) as buffer:
        for rows in _blocks(buffer, engine, whole):
            segments = take_strings(buffer.buf, rows.query_start, rows.query_length)
            codes = names.query_codes(segments)
            if names.mark(codes) and not whole:
                raise _InterleavedError
            query, cuts, kept = _grouped(rows, codes)
            if len(query) == 0:
                continue
            ranked = engine.rank(buffer.buf, kept, cuts, compared(kept.score, file.ties), lookup)
            if ranked.twice >= 0:
                raise _duplicate(buffer, kept, ranked.twice)
            doc = ranked.doc if file.docs is not None else names.doc_codes(buffer, kept)[ranked.order]
            yield Part(query, cuts, doc, kept.score[ranked.order])


def _text_size(path: Path) -> int:
    try:
        size = path.stat().st_size
    except OSError:
        return 0  # opening it will say what is wrong
    return size * _PACKED if path.suffix in (".gz", ".zst") else size


def _blocks(buffer: LineBuffer, engine: Engine, whole: bool) -> Iterator[Rows]:
    """Rows of whole queries; the buffer holds their text until the next is asked for."""
    while True:
        stop = buffer.fill()
        if stop == 0 and buffer.ended:
            return
        if stop == 0 or (whole and not buffer.ended):
            buffer.grow()
            continue
        rows = engine.scan(buffer, stop)
        if rows.bad >= 0:
            raise _bad_line(buffer, rows)
        if not buffer.ended and len(rows.first):
            if len(rows.first) == 1:  # the query may go on: see all of it
                buffer.grow()
                continue
            stop = int(rows.query_start[-1])
            rows = rows.head()
        yield rows
        buffer.consume(stop)


def _grouped(rows: Rows, codes: Int64) -> tuple[Int64, Int64, Rows]:
    """The rows of known queries, one stretch per query: codes int64[q], cuts int64[q + 1] and the rows."""
    lengths = rows.segment_lengths()
    if len(codes) and (codes.min() < 0 or len(np.unique(codes)) < len(codes)):
        of_row = np.repeat(codes, lengths)
        order = np.argsort(of_row, kind="stable")
        order = order[np.searchsorted(of_row[order], 0) :]
        rows = replace(
            rows,
            start=rows.start[order],
            length=rows.length[order],
            hashes=rows.hashes[order],
            score=rows.score[order],
        )
        codes, lengths = np.unique(of_row[order], return_counts=True)
    cuts = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths, out=cuts[1:])
    return codes, cuts, rows


def _bad_line(buffer: LineBuffer, rows: Rows) -> FormatError:
    end = int(np.flatnonzero(buffer.buf[rows.bad :] == 10)[0])
    text = buffer.text(rows.bad, end).strip()
    shown = f"'{text[:80]}{'...' if len(text) > 80 else ''}'"
    line = buffer.line_of(rows.bad)
    if rows.bad_score:
        return FormatError(buffer.path, shown, "a finite number as the score, in column 5", line)
    columns = "column" if len(text.split()) == 1 else "columns"
    expected = "6 columns: query Q0 document rank score tag"
    return FormatError(buffer.path, f"{len(text.split())} {columns} in {shown}", expected, line)


def _duplicate(buffer: LineBuffer, rows: Rows, row: int) -> BadRanking:
    start = int(rows.start[row])
    begin = buffer.begin_of_line(start)
    query = buffer.text(begin, start - begin).split(maxsplit=1)[0]
    document = buffer.text(start, int(rows.length[row]))
    return BadRanking(
        f"{buffer.path}, line {buffer.line_of(start)}: query '{query}' ranks document '{document}' twice; "
        "remove the duplicates first"
    )
