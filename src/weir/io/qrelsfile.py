"""Judgment files: TREC's four columns and BEIR's tab-separated three, parsed in whole columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weir.core.hashing import hash_strings
from weir.core.ids import Ids
from weir.core.qrels import Qrels
from weir.core.strings import Bytes, Int64
from weir.errors import FormatError
from weir.io.columns import Table, split_cells, split_columns
from weir.io.decimals import parse_decimals
from weir.io.intern import distinct
from weir.io.lines import LineBuffer
from weir.io.rows import take_strings

__all__ = ["read_trec_qrels"]

_HEADS = {"query-id", "query_id", "queryid", "query", "qid", "q_id", "topic", "topic-id", "topic_id"}
_COLUMNS = "4 columns (query 0 document grade), or query, document and grade between tabs"
_LARGEST = 2**14


def read_trec_qrels(path: Path) -> tuple[Qrels, int]:
    """Read a judgment file; returns the judgments and how many repeated ones were dropped.

    Raises FormatError as `weir.io.trec.read_qrels` does.
    """
    with LineBuffer(path, 1 << 16) as buffer:
        while not buffer.ended:
            buffer.grow()
            stop = buffer.fill()
        table = _table(buffer, stop)
        column = [np.ascontiguousarray(table.start[:, c]) for c in (0, -2, -1)]
        length = [np.ascontiguousarray(table.end[:, c]) - s for c, s in zip((0, -2, -1), column, strict=True)]
        _refuse_empty(buffer, column, length)
        grade = _grades(buffer, column[2], length[2])
        query, query_first = _numbered(buffer.buf, column[0], length[0])
        doc, doc_first = _numbered(buffer.buf, column[1], length[1])
        kept = _without_repetitions(buffer, query, doc, grade, column)
        queries = take_strings(buffer.buf, column[0][query_first], length[0][query_first])
        docs = take_strings(buffer.buf, column[1][doc_first], length[1][doc_first])
    qrels = Qrels.from_columns(
        Ids(queries), Ids(docs), query[kept].astype(np.int32), doc[kept].astype(np.int32), grade[kept]
    )
    return qrels, len(grade) - len(kept)


def _numbered(buf: Bytes, start: Int64, length: Int64) -> tuple[Int64, Int64]:
    return distinct(buf, start, length, hash_strings(buf, start, length))


def _table(buffer: LineBuffer, stop: int) -> Table:
    """The columns of the file: cut at tabs when the first line has some (identifiers may hold blanks)."""
    first = _first_line(buffer, stop)
    cells = first.split("\t")
    if len(cells) in (3, 4):
        table = split_cells(buffer.buf, stop, len(cells))
        header = cells[0].strip().lower() in _HEADS and not cells[-1].strip().lstrip("+-").isdigit()
        if header and len(table.start):
            table = Table(table.start[1:], table.end[1:], table.bad)
    else:
        table = split_columns(buffer.buf, stop, 4, 4)
    if table.bad >= 0:
        line = buffer.line_text(table.bad)
        raise FormatError(buffer.path, f"'{line[:80]}'", _COLUMNS, buffer.line_of(table.bad))
    return table


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


def _grades(buffer: LineBuffer, start: Int64, length: Int64) -> Int64:
    if length.max(initial=0) == 1:  # as nearly always: one digit
        digit = buffer.buf[start] - np.uint8(48)
        if digit.max(initial=0) < 10:
            return digit.astype(np.int64)
    value, wrong = parse_decimals(buffer.buf, start, length)
    value[wrong] = 0.5
    odd = np.flatnonzero((value != np.rint(value)) | (np.abs(value) > _LARGEST))
    if len(odd):
        at = int(start[odd[0]])
        shown = buffer.text(at, int(length[odd[0]]))
        expected = f"a whole number within ±{_LARGEST}; scale or round the grades first"
        raise FormatError(buffer.path, f"the grade '{shown}'", expected, buffer.line_of(at))
    return value.astype(np.int64)


def _without_repetitions(
    buffer: LineBuffer, query: Int64, doc: Int64, grade: Int64, column: list[Int64]
) -> Int64:
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
        one, two = (buffer.line_of(int(column[2][row])) for row in (first, second))
        raise FormatError(
            buffer.path,
            f"grade {grade[second]} for a pair that line {one} gives grade {grade[first]}",
            "one grade for each query and document; remove one of the two lines",
            two,
        )
    return np.sort(order[~again])
