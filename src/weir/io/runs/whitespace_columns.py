"""Columns separated by white space, found with numpy alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import load_words
from weir.core.strings import Bytes, Int64

__all__ = [
    "ColumnLayout",
    "QuotedCellError",
    "WhitespaceTable",
    "differs_from_previous",
    "split_cells",
    "split_columns",
    "split_named",
]

_KIND = np.zeros(256, np.uint8)  # 1: between columns, 2: ends a line
_KIND[[9, 11, 12, 13, 32]] = 1
_KIND[10] = 2
_HASH = 35
_END, _RETURN, _QUOTE = 10, 13, 34


@dataclass(frozen=True, eq=False)
class WhitespaceTable:
    """Where the columns of each line stand.

    start, end: int64[rows, columns]; a line that lacks the last columns repeats its end there. bad: the
    position of the first line with too few or too many columns, or -1; rows stop before it. wide: the rows
    that have more columns than these.
    """

    start: Int64
    end: Int64
    bad: int = -1
    wide: Int64 = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class ColumnLayout:
    """What the lines of a table with a header hold: names of the cells, the byte between them, where to look.

    query, doc, number: which cells hold the query, the document, and the score or grade.
    """

    separator: str
    names: tuple[str, ...]
    query: int
    doc: int
    number: int


class QuotedCellError(Exception):
    """A quoted cell holds separators, line ends or quotation marks, so that its text is not what stands there."""


def split_columns(buf: Bytes, stop: int, fewest: int, most: int, more: bool = False) -> WhitespaceTable:
    """Split the lines of buf[:stop] into columns; blank lines and lines that start with `#` are no rows.

    fewest, most: accepted numbers of columns; more: a line may have more than `most`, which are then left out.

    buf[stop - 1] is a line end. Columns stand between blanks or tabs, however many; lines may end in CRLF.
    """
    space = np.flatnonzero(buf[:stop] <= 32)
    kind = _KIND[buf[space]]
    if not kind.all():  # control characters inside an identifier
        space, kind = space[kind > 0], kind[kind > 0]
    table = _regular(buf, space, kind, most)
    return table if table is not None else _irregular(buf, space, kind, (fewest, most, more))


def _regular(buf: Bytes, space: Int64, kind: NDArray[np.uint8], most: int) -> WhitespaceTable | None:
    """The table of lines that all have `most` columns with one separator between them; None otherwise."""
    if len(space) == 0 or len(space) % most:
        return None
    marks = kind.reshape(-1, most)
    if not (marks[:, -1] == 2).all() or (marks[:, :-1] == 2).any():
        return None
    start = np.empty(len(space), np.int64)
    start[0] = 0
    np.add(space[:-1], 1, out=start[1:])
    if not (start < space).all():
        return None
    rows = start.reshape(-1, most)
    if (buf[rows[:, 0]] == _HASH).any():
        return None
    return WhitespaceTable(rows, space.reshape(-1, most))


def _irregular(
    buf: Bytes, space: Int64, kind: NDArray[np.uint8], accepted: tuple[int, int, bool]
) -> WhitespaceTable:
    """The table of any lines."""
    fewest, most, more = accepted
    before = np.empty(len(space), np.int64)  # the first byte after the white space before
    before[:1] = 0
    np.add(space[:-1], 1, out=before[1:])
    filled = before < space
    line = np.cumsum(kind == 2) - (kind == 2)
    start, end, line = before[filled], space[filled], line[filled]
    if len(start) == 0:
        return WhitespaceTable(np.empty((0, most), np.int64), np.empty((0, most), np.int64))
    head = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    count = np.diff(np.append(head, len(line)))
    rows = buf[start[head]] != _HASH
    head, count = head[rows], count[rows]
    wrong = np.flatnonzero((count < fewest) | ((count > most) & (not more)))
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head, count = head[: wrong[0]], count[: wrong[0]]
    at = head[:, None] + np.minimum(np.arange(most), count[:, None] - 1)
    start, end = start[at], end[at]
    absent = np.arange(most) >= count[:, None]
    start[absent] = end[absent]
    return WhitespaceTable(start, end, bad, np.flatnonzero(count > most))


def split_cells(buf: Bytes, stop: int, columns: int) -> WhitespaceTable:
    """Split the lines of buf[:stop] at tabs; white space around cells is no part of them.

    buf[stop - 1] is a line end. Every line must have the given number of cells, of which some may be empty;
    blank lines and lines without a tab that start with `#` are no rows.
    """
    cut = np.flatnonzero((buf[:stop] == 9) | (buf[:stop] == 10))
    ends_line = buf[cut] == 10
    start = np.empty(len(cut), np.int64)
    start[:1] = 0
    np.add(cut[:-1], 1, out=start[1:])
    start, end = _trimmed(buf, start, cut.copy())
    last = np.flatnonzero(ends_line)
    count = np.diff(last, prepend=-1)
    head = last - count + 1
    # A line without a tab is no row when it is blank or a comment.
    filled = (count > 1) | ((start[head] < end[head]) & (buf[start[head]] != _HASH))
    head, count = head[filled], count[filled]
    wrong = np.flatnonzero(count != columns)
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head = head[: wrong[0]]
    at = head[:, None] + np.arange(columns)
    return WhitespaceTable(start[at], end[at], bad)


def split_named(buf: Bytes, stop: int, layout: ColumnLayout) -> WhitespaceTable:
    """Split the lines of buf[:stop] exactly at the separators of a layout; lines without a byte are no rows.

    buf[stop - 1] is a line end. Quotation marks around a cell are no part of it. Raises QuotedCellError where one of
    them may have to be read otherwise, which is then left to a slower parser.
    """
    cut = np.flatnonzero((buf[:stop] == ord(layout.separator)) | (buf[:stop] == _END))
    start = np.empty(len(cut), np.int64)
    start[:1] = 0
    np.add(cut[:-1], 1, out=start[1:])
    cells, ends = len(layout.names), buf[cut] == _END
    bad = -1
    if len(cut) % cells or not (ends.reshape(-1, cells) == (np.arange(cells) == cells - 1)).all():
        last = np.flatnonzero(ends)
        count = np.diff(last, prepend=-1)
        head = last - count + 1
        empty = start[head] == cut[head]
        empty |= (cut[head] - start[head] == 1) & (buf[start[head]] == _RETURN)
        filled = (count > 1) | ~empty
        head, count = head[filled], count[filled]
        wrong = np.flatnonzero(count != cells)
        if len(wrong):
            if (buf[start] == _QUOTE).any():  # which may be why
                raise QuotedCellError
            bad, head = int(start[head[wrong[0]]]), head[: wrong[0]]
        at = head[:, None] + np.arange(cells)
        start, cut = start[at].ravel(), cut[at].ravel()
    ends_of_lines = cut[cells - 1 :: cells]  # a view: carriage returns are no part of the last cells
    ends_of_lines -= (ends_of_lines > start[cells - 1 :: cells]) & (buf[ends_of_lines - 1] == _RETURN)
    _unquote(buf, stop, start, cut)
    return WhitespaceTable(start.reshape(-1, cells), cut.reshape(-1, cells), bad)


def _unquote(buf: Bytes, stop: int, start: Int64, end: Int64) -> None:
    """Leave out the quotation marks around cells, in place."""
    quoted = buf[start] == _QUOTE
    marks = int(np.count_nonzero(buf[:stop] == _QUOTE)) if quoted.any() else 0
    if marks:
        around = (end - start > 1) & (buf[end - 1] == _QUOTE)
        if marks != 2 * int(quoted.sum()) or not around[quoted].all():
            raise QuotedCellError
        start += quoted
        end -= quoted


def _trimmed(buf: Bytes, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Cells without the white space around them."""
    while (left := (start < end) & (_KIND[buf[start]] > 0)).any():
        start = start + left
    while (right := (start < end) & (_KIND[buf[end - 1]] > 0)).any():
        end = end - right
    return start, end


def differs_from_previous(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.bool_]:
    """Whether each text differs from the one before it; the first does. start, length: int64[n]."""
    change = np.ones(len(start), np.bool_)
    change[1:] = length[1:] != length[:-1]
    longest = int(length.max(initial=0))
    for done in range(0, longest, 8):
        word = load_words(buf, start + done, length - done)
        change[1:] |= word[1:] != word[:-1]
    return change
