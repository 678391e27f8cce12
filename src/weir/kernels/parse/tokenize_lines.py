"""The compiled tokenizer of lines: TREC's columns and separated cells to rows of query, document and score.

It works on one block: a writable uint8 buffer whose lines end in "\\n", and its words (see fields.py). The slow
references are `weir.io.runs.numpy_parser` and the tests.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weir.kernels.jit import jit
from weir.kernels.parse.fields import (
    I64,
    ONES,
    U8,
    U64,
    RowArrays,
    begins_with,
    dot_at,
    equal_bytes,
    first_below,
    first_of,
    hash_bytes,
    hash_short,
    number_of,
)

__all__ = ["TREC", "LineShape", "scan_lines"]

_BELOW_33 = np.uint64(33) * ONES
_ENDS = np.uint64(10) * ONES
_0 = np.uint64(0)
_LINE_END = 14  # of the edges of TREC's columns: where the line ends


class LineShape(NamedTuple):
    """What a line holds: the byte between its cells, how many cells, and which are query, document and number.

    separator: 0 is white space, as much as there is, between TREC's columns.
    """

    separator: int
    cells: int
    query: int
    document: int
    number: int


TREC = LineShape(0, 7, 0, 2, 4)


@jit
def _columns(buf: U8, at: int, edge: I64) -> int:
    """Find start and end of each column of the line at `at`; the rest into edge[14]: where the line ends.

    Returns how many columns there are, 7 for more than six, 0 for a blank line or a comment.
    """
    columns, first = 0, True
    while buf[at] != 10:
        space = buf[at] == 32 or (buf[at] >= 9 and buf[at] <= 13)
        if not space and first:
            if columns < 7:
                edge[2 * columns] = at
                columns += 1
        elif space and not first:
            edge[2 * columns - 1] = at
        first = space
        at += 1
    if not first:
        edge[2 * columns - 1] = at
    edge[_LINE_END] = at
    return 0 if columns and buf[edge[0]] == 35 else columns


@jit
def _shifted(rank: int, tag: int) -> bool:
    """Whether a line of more than six columns seems to have a blank inside an identifier.

    trec_eval takes anything after the tag; then the fourth column begins with a digit and the sixth does not.
    """
    return rank < 48 or rank > 57 or (tag >= 43 and tag <= 57)


@jit
def _closes(mark: int, after: int, next_after: int, separator: int) -> bool:
    """Whether a byte is the quotation mark that ends a cell."""
    ends_line = after == 10 or (after == 13 and next_after == 10)
    return mark == 34 and (ends_line or after == separator)


@jit
def scan_lines(
    buf: U8, words: U64, stop: int, shape: LineShape, rows: RowArrays, edge: I64
) -> tuple[int, int, int, int, bool]:
    """Split the lines of buf[:stop] (the last byte is "\\n") into rows; a line without a byte is none.

    rows: filled in; edge: int64[2 * cells + 1], scratch, zero at first. Returns (rows, segments, scores left to a
    slower parser, position of the first bad line or -1, whether a quoted cell holds a quotation mark or a line end,
    which is left to a slower parser).

    A line of TREC's mostly begins (query, Q0) and ends (tag) with the bytes of the line before: these are compared as
    words, and only what stands between is split.
    """
    # All in one loop and by name: handing arrays to a function, even an inlined one, costs as much as a cell.
    start, length, hashes, score, segment, slow = (
        rows.start, rows.length, rows.hashes, rows.score, rows.segment, rows.slow,
    )  # fmt: skip
    trec, cells, separators = shape.separator == 0, shape.cells, np.uint64(shape.separator) * ONES
    query_cell, document_cell, number_cell = 2 * shape.query, 2 * shape.document, 2 * shape.number
    at, n, segments, slows = 0, 0, 0, 0
    query, query_length, query_1, query_2 = 0, -1, _0, _0
    head, tail, head_1, head_2, tail_1, tail_2 = 0, 0, _0, _0, _0, _0
    while at < stop:
        begin = at
        same = head > 0 and tail > 0 and begins_with(words[at], words[at + 8], head_1, head_2, head)
        if same:
            at += head
            for column in range(4, 10, 2):
                edge[column] = at
                while True:
                    step = first_below(words[at], _BELOW_33)
                    at += step
                    if step < 8:
                        if buf[at] == 32 or (buf[at] >= 9 and buf[at] <= 13):
                            break
                        at += 1  # a control character inside an identifier
                edge[column + 1] = at
                if at == edge[column] or (buf[at] == 10 and column < 8):
                    same = False
                    break
                at += 1
            same = same and begins_with(words[edge[9]], words[edge[9] + 8], tail_1, tail_2, tail)
            at = edge[9] + tail
        if trec and not same:
            columns = _columns(buf, begin, edge)
            at = edge[_LINE_END] + 1
            if columns == 0:
                continue
            if columns < 5 or (columns > 6 and _shifted(buf[edge[6]], buf[edge[10]])):
                return n, segments, slows, edge[0], False
            head, tail = edge[4] - begin if columns < 7 else 0, at - edge[9]
            head_1, head_2 = words[begin], words[begin + 8]
            tail_1, tail_2 = words[edge[9]], words[edge[9] + 8]
        if not trec:
            if buf[at] == 10 or (buf[at] == 13 and buf[at + 1] == 10):
                at += 1 + (buf[at] == 13)
                continue
            for cell in range(cells):
                edge[2 * cell] = at + (buf[at] == 34)
                if buf[at] == 34:
                    at += 1
                    while buf[at] != 34 and buf[at] != 10:
                        at += 1
                    edge[2 * cell + 1] = at
                    if not _closes(buf[at], buf[at + 1], buf[at + 2], shape.separator):
                        return n, segments, slows, -1, True
                    at += 1 + (buf[at + 1] == 13)
                else:
                    step = 8
                    while step == 8:
                        step = first_of(words[at], separators, _ENDS, _0)
                        at += step
                    edge[2 * cell + 1] = at - (buf[at] == 10 and at > edge[2 * cell] and buf[at - 1] == 13)
                if (buf[at] == 10) != (cell == cells - 1):
                    return n, segments, slows, begin, False
                at += 1
        document, size = edge[document_cell], edge[document_cell + 1] - edge[document_cell]
        if not same:
            name, name_size = edge[query_cell], edge[query_cell + 1] - edge[query_cell]
            if size == 0 or name_size == 0:
                return n, segments, slows, begin, False
            known = name_size == query_length and (
                begins_with(words[name], words[name + 8], query_1, query_2, name_size)
                or (name_size > 16 and equal_bytes(buf, query, name, name_size))
            )
            if not known:
                segment[segments, 0], segment[segments, 1], segment[segments, 2] = n, name, name_size
                segments += 1
                query_1, query_2 = words[name], words[name + 8]
            query, query_length = name, name_size
        start[n], length[n] = document, size
        if size <= 16:
            hashes[n] = hash_short(words[document], words[document + 8], size)
        else:
            hashes[n] = hash_bytes(words, document, size)
        number, size = edge[number_cell], edge[number_cell + 1] - edge[number_cell]
        # The words that end where the parts do; those before the block's first byte are of no number.
        ends = words[max(number + dot_at(words[number]) - 8, 0)], words[max(number + size - 8, 0)]
        value = np.nan
        if number + size >= 8:
            value = number_of(words[number], words[number + 8], words[number + 16], ends, size)
        if np.isnan(value):
            slow[slows, 0], slow[slows, 1], slow[slows, 2] = n, number, size
            slows += 1
        score[n] = value
        n += 1
    return n, segments, slows, -1, False
