"""Compiled inner loops for tables: lines of separated cells to rows, and hashes of many texts.

Blocks and words are those of `trec.py`; the slow references are `weir.io.runs.whitespace_columns.split_named` and
`weir.core.hashing`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.parse.trec_lines import (
    _begins,
    _decimal,
    _dot_at,
    _equal,
    _two_parts,
    hash_bytes,
    hash_short,
)

__all__ = ["hash_texts", "scan_cells"]

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Int: TypeAlias = Any

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_ENDS = np.uint64(0x0A0A0A0A0A0A0A0A)
_BYTE_NUMBER = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_0, _61 = np.uint64(0), np.uint64(61)


@jit
def _cut_at(word: np.uint64, separators: np.uint64) -> Int:
    """Which of eight bytes is the first separator or line end; 8: none."""
    a, b = word ^ separators, word ^ _ENDS
    found = (((a - _ONES) & ~a) | ((b - _ONES) & ~b)) & _HIGH
    if found == _0:
        return 8
    return np.int64((((found & (_0 - found)) >> np.uint64(7)) * _BYTE_NUMBER) >> _61)


@jit
def _closes(mark: int, after: int, next_after: int, separator: int) -> bool:
    """Whether a byte is the quotation mark that ends a cell."""
    ends_line = after == 10 or (after == 13 and next_after == 10)
    return mark == 34 and (ends_line or after == separator)


@jit
def scan_cells(
    buf: U8,
    words: U64,
    stop: int,
    shape: I64,
    start: I64,
    length: I64,
    hashes: U64,
    score: F64,
    segment: I64,
    slow: I64,
    begins: I64,
    ends: I64,
) -> tuple[int, int, int, int, bool]:
    """Split the lines of buf[:stop] (the last byte is "\\n") into rows of document and score.

    shape: the separator's byte, how many cells a line has, and which are the query, the document and the
    score. Fills start, length, hashes, score, segment and slow as `weir.kernels.parse.trec_lines.scan_rows` does; a
    line
    without a byte is no row. begins, ends: int64[cells], scratch. Returns (rows, segments, slow scores, position of
    the first bad line or -1, whether a quoted cell holds a quotation mark or a line end, which is left to a slower
    parser).
    """
    separator, cells, query_cell, doc_cell, score_cell = shape[0], shape[1], shape[2], shape[3], shape[4]
    separators = np.uint64(separator) * _ONES
    at, rows, segments, slows = 0, 0, 0, 0
    query, query_length, query_1, query_2 = 0, -1, _0, _0
    while at < stop:
        line = at
        if buf[at] == 10 or (buf[at] == 13 and buf[at + 1] == 10):
            at += 1 + (buf[at] == 13)
            continue
        for cell in range(cells):
            begins[cell] = at + (buf[at] == 34)
            if buf[at] == 34:
                at += 1
                while buf[at] != 34 and buf[at] != 10:
                    at += 1
                ends[cell] = at
                if not _closes(buf[at], buf[at + 1], buf[at + 2], separator):
                    return rows, segments, slows, -1, True
                at += 1 + (buf[at + 1] == 13)
            else:
                step = 8
                while step == 8:
                    step = _cut_at(words[at], separators)
                    at += step
                ends[cell] = at - (buf[at] == 10 and at > begins[cell] and buf[at - 1] == 13)
            if (buf[at] == 10) != (cell == cells - 1):
                return rows, segments, slows, line, False
            at += 1
        head, size = begins[query_cell], ends[query_cell] - begins[query_cell]
        doc, doc_length = begins[doc_cell], ends[doc_cell] - begins[doc_cell]
        if size == 0 or doc_length == 0:
            return rows, segments, slows, line, False
        same = size == query_length and _begins(words[head], words[head + 8], query_1, query_2, size)
        if not same and (size != query_length or size <= 16 or not _equal(buf, query, head, size)):
            segment[3 * segments], segment[3 * segments + 1] = rows, head
            segment[3 * segments + 2] = size
            segments += 1
            query_1, query_2 = words[head], words[head + 8]
        query, query_length = head, size
        start[rows], length[rows] = doc, doc_length
        if doc_length <= 16:
            hashes[rows] = hash_short(words[doc], words[doc + 8], doc_length)
        else:
            hashes[rows] = hash_bytes(words, doc, doc_length)
        number, size = begins[score_cell], ends[score_cell] - begins[score_cell]
        dot = _dot_at(words[number])
        value = np.nan
        if number + min(dot, size) >= 8:  # the words that end where the parts do lie within the block
            places = size - dot - 1
            value = _two_parts(words[number], words[number + dot - 8], dot, words[number + size - 8], places)
        if np.isnan(value) and size <= 24:
            value = _decimal(words[number], words[number + 8], words[number + 16], size)
        if np.isnan(value):
            slow[3 * slows], slow[3 * slows + 1], slow[3 * slows + 2] = rows, number, size
            slows += 1
        score[rows] = value
        rows += 1
    return rows, segments, slows, -1, False


@jit
def hash_texts(words: U64, start: I64, length: I64, hashes: U64) -> None:
    """Hash the texts at start, of length bytes, as `weir.core.hashing.hash_strings` does."""
    for i in range(len(start)):
        at, size = start[i], length[i]
        if size <= 16:
            hashes[i] = hash_short(words[at], words[at + 8], size)
        else:
            hashes[i] = hash_bytes(words, at, size)
