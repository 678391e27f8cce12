"""A compiled reader of {"query": {"document": number}}: from JSON text to rows, and silent about anything unusual.

Words are those of `trec.py`; the slow reference is `weir.io.runs.json_object.read_nested`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.parse.trec_lines import _decimal, _dot_at, _two_parts, hash_bytes, hash_short

__all__ = ["ENDED", "FULL", "MORE", "ODD", "scan_object"]

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Int: TypeAlias = Any

MORE, ENDED, FULL, ODD = 0, 1, 2, 3  # how a scan stops

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_BELOW_32 = np.uint64(0x2020202020202020)
_QUOTES = np.uint64(0x2222222222222222)
_ESCAPES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BYTE_NUMBER = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_0, _7, _61 = np.uint64(0), np.uint64(7), np.uint64(61)


@jit
def _stop_at(word: np.uint64) -> Int:
    """Which of eight bytes is the first that no plain text in quotation marks has; 8: none."""
    a, b = word ^ _QUOTES, word ^ _ESCAPES
    found = (((a - _ONES) & ~a) | ((b - _ONES) & ~b) | ((word - _BELOW_32) & ~word)) & _HIGH
    if found == _0:
        return 8
    return np.int64((((found & (_0 - found)) >> _7) * _BYTE_NUMBER) >> _61)


@jit
def _skip(buf: U8, at: int) -> Int:
    """Where the white space at a position ends."""
    while buf[at] == 32 or buf[at] == 10 or buf[at] == 13 or buf[at] == 9:
        at += 1
    return at


@jit
def _is_number(first: int, second: int, third: int, last: int) -> bool:
    """Whether bytes begin and end as a JSON number does: no plus, no leading zero, digits at both ends."""
    if first == 45:
        first, second = second, third
    digits = first >= 48 and first <= 57 and last >= 48 and last <= 57
    return digits and not (first == 48 and second >= 48 and second <= 57)


@jit
def _value(text: tuple[int, int, int], ends: tuple[int, int], dot: int, size: int) -> float:
    """The value of a decimal by its words and those that end where its two parts do; NaN: left to a slower parser."""
    value = _two_parts(text[0], ends[0], dot, ends[1], size - dot - 1)
    if np.isnan(value) and size <= 24:
        value = _decimal(text[0], text[1], text[2], size)
    return value


@jit
def scan_object(
    buf: U8,
    words: U64,
    at: int,
    stop: int,
    most: int,
    start: I64,
    length: I64,
    hashes: U64,
    score: F64,
    segment: I64,
    slow: I64,
) -> tuple[int, int, int, int, int]:
    """Read whole queries from position `at`, the start of a query's name, until more than `most` rows are read.

    Fills start, length, hashes, score, segment and slow as `weir.kernels.parse.trec_lines.scan_rows` does. Returns
    (rows,
    segments, slow scores, position, how it stopped). MORE: the next query starts at the position; ENDED: the object
    ended there; FULL: the arrays have no room for the query that starts there, which is left out; ODD: something
    other than plain names and numbers, or no valid JSON. buf[stop:] is zero.
    """
    rows, segments, slows, asked, query = 0, 0, 0, False, at
    kept, kept_slows = 0, 0  # as the query began
    while True:
        at = _skip(buf, at) if buf[at] <= 32 else at
        if buf[at] != 34:
            break
        name, at, step = at + 1, at + 1, 8
        while step == 8:
            step = _stop_at(words[at])
            at += step
        size = at - name
        if at >= stop or buf[at] != 34 or size == 0:
            break
        at += 1
        at = _skip(buf, at) if buf[at] <= 32 else at
        if buf[at] != 58:
            break
        at += 1 + (buf[at + 1] == 32)
        at = _skip(buf, at) if buf[at] <= 32 else at
        if not asked:
            if buf[at] != 123:
                break
            segment[3 * segments], segment[3 * segments + 1], segment[3 * segments + 2] = rows, name, size
            asked, at = True, at + 1
            continue
        if rows == len(start):
            return kept, segments, kept_slows, query, FULL
        start[rows], length[rows] = name, size
        hashes[rows] = hash_short(words[name], words[name + 8], min(size, 16))
        if size > 16:
            hashes[rows] = hash_bytes(words, name, size)
        number = at
        while buf[at] > 32 and buf[at] != 44 and buf[at] != 125:
            at += 1
        size = at - number
        if not _is_number(buf[number], buf[number + 1], buf[number + 2], buf[at - 1]):
            break
        dot = _dot_at(words[number])
        ends = words[number + dot - 8], words[number + size - 8]
        value = _value((words[number], words[number + 8], words[number + 16]), ends, dot, size)
        if np.isnan(value):
            slow[3 * slows], slow[3 * slows + 1], slow[3 * slows + 2] = rows, number, size
            slows += 1
        score[rows] = value
        rows += 1
        at = _skip(buf, at) if buf[at] <= 32 else at
        if buf[at] == 44:
            at += 1 + (buf[at + 1] == 32)
            continue
        if buf[at] != 125:
            break
        segments, asked, at = segments + 1, False, _skip(buf, at + 1)
        if buf[at] == 125:
            return rows, segments, slows, at + 1, ENDED
        if buf[at] != 44:
            break
        query, kept, kept_slows, at = at + 1, rows, slows, at + 1
        if rows > most:
            return rows, segments, slows, at, MORE
    return kept, segments, kept_slows, query, ODD
