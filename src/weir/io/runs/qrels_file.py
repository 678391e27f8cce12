"""Judgments from rows of any format, and TREC's files of them, parsed in whole columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weir.core.hashing import hash_strings
from weir.core.ids import Ids
from weir.core.origins import Origins
from weir.core.qrels import LARGEST, Qrels, grade_column, shown_number
from weir.core.strings import Float64, Grades, Int64, Strings
from weir.errors import FormatError
from weir.io.runs.blocks import (
    LongIdentifierError,
    ParsedRows,
    QuotedCellError,
    RankingBlock,
    long_identifier,
    refuse_long,
    take_strings,
)
from weir.io.runs.decimals import parse_decimals
from weir.io.runs.distinct_ids import differs_from_previous, distinct, distinct_strings
from weir.io.runs.numpy_parser import WhitespaceTable, split_cells, split_columns
from weir.io.runs.parsers import choose_engine
from weir.io.runs.sources import ReadOptions, Source
from weir.io.storage.text_files import LineBuffer

__all__ = ["judgments_of", "read_trec_qrels"]

CERTAIN_RANKS = 5
"""Documents of a query whose grades count up by one, from which on they are ranks."""
_COLUMNS = "4 columns (query 0 document grade), or query, document and grade between tabs"


def judgments_of(source: Source) -> tuple[Qrels, int]:
    """The judgments of a source, and how many rows only repeated an earlier one.

    Raises FormatError as `weir.io.runs.read.read_qrels` does.
    """
    how = ReadOptions(choose_engine("auto", source.size), whole=True)
    try:
        block = next(source.blocks(how), None)
    except QuotedCellError:
        block = next(source.blocks(ReadOptions(how.engine, whole=True, quoted=True)), None)
    if block is None:
        return Qrels.of({}), 0
    return _assembled(source.name, block, source.origins())


def _assembled(name: object, block: RankingBlock, origins: Origins | None) -> tuple[Qrels, int]:
    rows = block.rows
    grade = _within(name, block)
    segment, queries = distinct_strings(block.queries)
    query = np.repeat(segment, rows.segment_lengths())
    doc, first = distinct(block.buf, rows.start, rows.length, rows.hashes)
    docs = take_strings(block.buf, rows.start[first], rows.length[first])
    kept = _without_repetitions(name, query, doc, grade, block)
    codes = query[kept].astype(np.int32), doc[kept].astype(np.int32)
    named = None if origins is None else origins.take(kept)
    return Qrels.from_columns(Ids(queries), Ids(docs), *codes, grade[kept], named), len(grade) - len(kept)


def _within(name: object, block: RankingBlock) -> Grades:
    value = block.rows.score
    odd = np.flatnonzero(np.abs(value) > LARGEST)
    if len(odd):
        row = int(odd[0])
        raise _bad_grade(f"{name}{block.place(row)}", shown_number(value[row]).removesuffix(".0"))
    return grade_column(value)


def _bad_grade(where: str, shown: str) -> FormatError:
    return FormatError(where, f"the grade '{shown}'", f"a number within ±{LARGEST}; scale the grades first")


def read_trec_qrels(path: Path) -> tuple[Qrels, int]:
    """Read TREC's four columns, or tab-separated ones without a header; raises as `judgments_of`."""
    with LineBuffer(path, 1 << 16) as buffer:
        while not buffer.ended:
            buffer.grow()
            stop = buffer.fill()
        table = _table(buffer, stop)
        column = [np.ascontiguousarray(table.start[:, c]) for c in (0, -2, -1)]
        length = [np.ascontiguousarray(table.end[:, c]) - s for c, s in zip((0, -2, -1), column, strict=True)]
        _refuse_empty(buffer, column, length)
        try:
            refuse_long(column[0], length[0])
            refuse_long(column[1], length[1])
        except LongIdentifierError as error:
            raise long_identifier(buffer, error) from None
        grade = _grades(buffer, column[2], length[2])
        each = np.arange(len(grade))
        hashes = hash_strings(buffer.buf, column[1], length[1])
        rows = ParsedRows(column[1], length[1], hashes, grade, each, column[0], length[0])
        queries = take_strings(buffer.buf, column[0], length[0])
        if table.start.shape[1] == 3:
            _refuse_ranks(path, queries, grade)

        def place(row: int) -> str:
            return f", line {buffer.line_of(int(column[2][row]))}"

        return _assembled(path, RankingBlock(buffer.buf, rows, queries, place), None)


def _table(buffer: LineBuffer, stop: int) -> WhitespaceTable:
    """The columns of the file: cut at tabs when the first line has some (identifiers may hold blanks)."""
    first = _first_line(buffer, stop)
    cells = first.split("\t")
    tabbed = len(cells) in (3, 4)
    table = split_cells(buffer.buf, stop, len(cells)) if tabbed else split_columns(buffer.buf, stop, 4, 4)
    if table.bad >= 0:
        line = buffer.line_text(table.bad)
        run = "; this looks like a run, and judgments come first" if len(line.split()) == 6 else ""
        raise FormatError(buffer.path, f"'{line[:80]}'", _COLUMNS + run, buffer.line_of(table.bad))
    return table


def _refuse_ranks(path: Path, queries: Strings, grade: Float64) -> None:
    """Raise FormatError where three columns without a header hold ranks, as PyTerrier writes results."""
    first = np.flatnonzero(differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths()))
    count = np.diff(np.append(first, len(grade)))
    if count.max(initial=0) < CERTAIN_RANKS or grade[0] not in (0, 1):
        return
    if (grade == grade[0] + np.arange(len(grade)) - np.repeat(first, count)).all():
        found = f"numbers that count up from {grade[0]:g} for each query, as ranks do"
        raise FormatError(
            path, found, "grades; a run of ranks is read by: weir import FILE -o DIR --as run-ranks"
        )


def _first_line(buffer: LineBuffer, stop: int) -> str:
    """The first line that is neither blank nor a comment."""
    at = 0
    while at < stop:
        text = buffer.line_text(at)
        if text and not text.startswith("#"):
            return text
        at = buffer.end_of_line(at) + 1
    return ""


def _refuse_empty(buffer: LineBuffer, column: list[Int64], length: list[Int64]) -> None:
    for start, size in zip(column, length, strict=True):
        empty = np.flatnonzero(size == 0)
        if len(empty):
            at = int(start[empty[0]])
            raise FormatError(buffer.path, "an empty column", _COLUMNS, buffer.line_of(at))


def _grades(buffer: LineBuffer, start: Int64, length: Int64) -> Float64:
    if length.max(initial=0) == 1:  # as nearly always: one digit
        digit = buffer.buf[start] - np.uint8(48)
        if digit.max(initial=0) < 10:
            return digit.astype(np.float64)
    value, wrong = parse_decimals(buffer.buf, start, length)
    odd = np.union1d(wrong, np.flatnonzero(np.abs(value) > LARGEST))
    if len(odd):
        at = int(start[odd[0]])
        shown = buffer.text(at, int(length[odd[0]]))
        raise _bad_grade(f"{buffer.path}, line {buffer.line_of(at)}", shown)
    return value


def _without_repetitions(name: object, query: Int64, doc: Int64, grade: Grades, block: RankingBlock) -> Int64:
    """Rows to keep, the first of each pair; raises FormatError where a pair has two grades."""
    pair = query * (int(doc.max(initial=0)) + 1) + doc
    order = np.argsort(pair, kind="stable")
    again = np.zeros(len(pair), np.bool_)
    again[1:] = pair[order][1:] == pair[order][:-1]
    later = np.flatnonzero(again)
    clash = later[grade[order[later]] != grade[order[later - 1]]]
    if len(clash):
        at = clash[np.argmin(order[clash])]
        first, second = int(order[at - 1]), int(order[at])
        one = block.place(first).removeprefix(", ")
        raise FormatError(
            f"{name}{block.place(second)}",
            f"grade {grade[second]} for a pair that {one} gives grade {grade[first]}",
            "one grade for each query and document; remove one of the two lines",
        )
    return np.sort(order[~again])
