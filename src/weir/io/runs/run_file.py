"""Rankings, block by block of whole queries, whatever they are stored as.

A block that holds several queries is parsed, its rankings are put in order and its documents are looked up
while their identifiers are still in the buffer; only codes and scores are kept. A file whose queries are
interleaved is the exception: it is read whole and sorted by query first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from weir.core.ids import Ids
from weir.core.judged import stretches
from weir.core.order import Ties, compared
from weir.core.strings import Bytes, Float64, Int32, Int64, Strings
from weir.errors import BadRanking
from weir.io.runs.blocks import (
    EngineName,
    Lookup,
    ParsedRows,
    Parser,
    QuotedCellError,
    RankingBlock,
    take_strings,
)
from weir.io.runs.distinct_ids import as_bytes, distinct, distinct_strings
from weir.io.runs.parsers import choose_engine
from weir.io.runs.sources import ReadOptions, Source

__all__ = ["IdentifierNumbers", "RankingPart", "RunFile", "read_parts"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RankingPart:
    """The rankings of some queries of a file, each complete and in result order.

    query: int64[q] codes; ptr: int64[q + 1]; doc: int32[n] codes, -1 outside the table; score: float64[n].
    """

    query: Int64
    ptr: Int64
    doc: Int32
    score: Float64


@dataclass(frozen=True, eq=False)
class RunFile:
    """What to read: a source, the identifiers to number by (None: as they appear), the tie rule, the engine."""

    source: Source
    queries: Ids | None = None
    docs: Ids | None = None
    ties: Ties = "trec"
    engine: EngineName = "auto"


class _InterleavedError(Exception):
    """A query came back after another one."""


class IdentifierNumbers:
    """Numbers queries and documents of one file."""

    def __init__(self, file: RunFile) -> None:
        """Start with nothing numbered."""
        self.queries = file.queries
        self.numbered: dict[bytes, int] = {}
        self.ignored: dict[bytes, int] = {}
        self.seen: set[int] = set()
        self.docs: list[Strings] = []
        self.doc_count = 0

    def query_codes(self, wanted: Strings) -> Int64:
        """Codes of the queries of segments; those outside the table are ignored, and numbered behind it."""
        which, strings = distinct_strings(wanted)
        if self.queries is not None:
            codes = self.queries.codes(strings).astype(np.int64)
            others = np.flatnonzero(codes < 0)
            number, known = self.ignored, len(self.queries)
            codes[others] = [
                known + number.setdefault(q, len(number)) for q in as_bytes(strings.take(others))
            ]
        else:
            number = self.numbered
            codes = np.array([number.setdefault(q, len(number)) for q in as_bytes(strings)], np.int64)
        return codes[which]

    def mark(self, codes: Int64) -> bool:
        """Remember queries as complete; whether one of them was already or occurs twice."""
        known = codes.tolist()
        again = len(set(known)) < len(known) or not self.seen.isdisjoint(known)
        self.seen.update(known)
        return again

    def query(self, code: int) -> str:
        """The identifier of a numbered query."""
        if self.queries is None:
            return self.all_queries()[code]
        known = len(self.queries)
        return (
            self.queries[code]
            if code < known
            else list(self.ignored)[code - known].decode("utf-8", "replace")
        )

    def doc_codes(self, buf: Bytes, rows: ParsedRows) -> Int32:
        """Codes of the documents of rows, numbered as they appear (with repetitions between blocks)."""
        codes, first = distinct(buf, rows.start, rows.length, rows.hashes)
        self.docs.append(take_strings(buf, rows.start[first], rows.length[first]))
        self.doc_count += len(first)
        return (codes + (self.doc_count - len(first))).astype(np.int32)

    def all_queries(self) -> Ids:
        """The queries numbered so far."""
        return Ids(Strings.packed(list(self.numbered)))

    def all_docs(self) -> tuple[Int64, Ids]:
        """The new code of each code given so far, and the distinct documents."""
        codes, strings = distinct_strings(Strings.concatenated(self.docs))
        return codes, Ids(strings)


def read_parts(file: RunFile, step: Callable[[RankingPart], T]) -> tuple[list[T], IdentifierNumbers]:
    """Read rankings and apply `step`, a pure function, to each part: the rankings of some of the queries.

    Memory: one block and what `step` keeps, unless the file's queries are interleaved; then the file is read
    whole. Raises FormatError for a line that is no row and BadRanking for a duplicate, with the line.
    """
    engine = choose_engine(file.engine, file.source.size)
    how = ReadOptions(engine)
    while True:  # twice or thrice at most: a way of reading that did not do is not tried again
        names = IdentifierNumbers(file)
        lookup = Lookup.of(file.docs)
        try:
            blocks = file.source.blocks(how)
            parts = (_part(block, file, names, (engine, lookup, how.whole)) for block in blocks)
            return [step(part) for part in parts if part is not None], names
        except _InterleavedError:
            how = replace(how, whole=True)
        except QuotedCellError:
            how = replace(how, quoted=True)


def _part(
    block: RankingBlock, file: RunFile, names: IdentifierNumbers, by: tuple[Parser, Lookup, bool]
) -> RankingPart | None:
    """The rankings of a block, None where none of its queries is known; ignored ones are checked all the same."""
    engine, lookup, whole = by
    codes = names.query_codes(block.queries)
    if names.mark(codes) and not whole:
        raise _InterleavedError
    query, cuts, order = _grouped(block.rows, codes)
    if len(query) == 0:
        return None
    rows = block.rows if order is None else block.rows.take(order)
    ranked = engine.rank(block.buf, rows, cuts, compared(rows.score, file.ties), lookup)
    if ranked.twice >= 0:
        row = ranked.twice
        document = take_strings(block.buf, rows.start[row : row + 1], rows.length[row : row + 1])[0]
        name = names.query(int(query[np.searchsorted(cuts, row, side="right") - 1]))
        where = f"{file.source.name}{block.place(row if order is None else int(order[row]))}"
        raise BadRanking(
            f"{where}: query '{name}' ranks document '{document}' twice; remove the duplicates first"
        )
    doc = ranked.doc if file.docs is not None else names.doc_codes(block.buf, rows)[ranked.order]
    return _of_known(RankingPart(query, cuts, doc, rows.score[ranked.order]), file.queries)


def _of_known(part: RankingPart, queries: Ids | None) -> RankingPart | None:
    """The part without queries that are ignored, None where no other is in it."""
    if queries is None or not (part.query >= len(queries)).any():
        return part
    kept = np.flatnonzero(part.query < len(queries))
    if not len(kept):
        return None
    rows, _ = stretches(part.ptr[kept], part.ptr[kept + 1])
    ptr = np.append(0, np.cumsum(np.diff(part.ptr)[kept]))
    return RankingPart(part.query[kept], ptr, part.doc[rows], part.score[rows])


def _grouped(rows: ParsedRows, codes: Int64) -> tuple[Int64, Int64, Int64 | None]:
    """The queries of a block: codes int64[q], the first row of each int64[q + 1], and the order of their rows (None:
    as they are).
    """
    lengths, order = rows.segment_lengths(), None
    if len(np.unique(codes)) < len(codes):
        of_row = np.repeat(codes, lengths)
        order = np.argsort(of_row, kind="stable")
        codes, lengths = np.unique(of_row[order], return_counts=True)
    cuts = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths, out=cuts[1:])
    return codes, cuts, order
