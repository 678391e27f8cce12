"""A compiled reader of {"query": {"document": number}}: from JSON text to rows, and silent about anything unusual.

Words are those of `fields.py`; the slow reference is `weir.io.runs.json_runs.read_nested`.
"""

from __future__ import annotations

import numpy as np

from weir.kernels.jit import jit
from weir.kernels.parse.fields import (
    ONES,
    U8,
    U64,
    Int,
    RowArrays,
    dot_at,
    first_of,
    hash_bytes,
    hash_short,
    number_of,
)

__all__ = ["ENDED", "FULL", "MORE", "ODD", "scan_object"]

MORE, ENDED, FULL, ODD = 0, 1, 2, 3  # how a scan stops

_BELOW_32, _QUOTES, _ESCAPES = (np.uint64(byte) * ONES for byte in (32, 34, 92))


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
def scan_object(
    buf: U8, words: U64, at: int, stop: int, most: int, rows: RowArrays
) -> tuple[int, int, int, int, int]:
    """Read whole queries from position `at`, the start of a query's name, until more than `most` rows are read.

    rows: filled in. Returns (rows, segments, scores left to a slower parser, position, how
    it stopped). MORE: the next query starts at the position; ENDED: the object ended there; FULL: the arrays have no
    room for the query that starts there, which is left out; ODD: something other than plain names and numbers, or no
    valid JSON. buf[stop:] is zero.
    """
    start, length, hashes, score, segment, slow = (
        rows.start, rows.length, rows.hashes, rows.score, rows.segment, rows.slow,
    )  # fmt: skip
    n, segments, slows, asked, query, kept, kept_slows = 0, 0, 0, False, at, 0, 0  # kept: as the query began
    while True:
        at = _skip(buf, at) if buf[at] <= 32 else at
        if buf[at] != 34:
            break
        name, at, step = at + 1, at + 1, 8
        while step == 8:
            step = first_of(words[at], _QUOTES, _ESCAPES, _BELOW_32)
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
            segment[segments, 0], segment[segments, 1], segment[segments, 2] = n, name, size
            asked, at = True, at + 1
            continue
        if n == len(start):
            return kept, segments, kept_slows, query, FULL
        number = at
        while buf[at] > 32 and buf[at] != 44 and buf[at] != 125:
            at += 1
        if not _is_number(buf[number], buf[number + 1], buf[number + 2], buf[at - 1]):
            break
        start[n], length[n] = name, size
        hashes[n] = hash_short(words[name], words[name + 8], min(size, 16))
        if size > 16:
            hashes[n] = hash_bytes(words, name, size)
        ends = words[number + dot_at(words[number]) - 8], words[at - 8]
        value = number_of(words[number], words[number + 8], words[number + 16], ends, at - number)
        if np.isnan(value):
            slow[slows, 0], slow[slows, 1], slow[slows, 2] = n, number, at - number
            slows += 1
        score[n] = value
        n += 1
        at = _skip(buf, at) if buf[at] <= 32 else at
        if buf[at] == 44:
            at += 1 + (buf[at + 1] == 32)
            continue
        if buf[at] != 125:
            break
        segments, asked, at = segments + 1, False, _skip(buf, at + 1)
        if buf[at] == 125:
            return n, segments, slows, at + 1, ENDED
        if buf[at] != 44:
            break
        query, kept, kept_slows, at = at + 1, n, slows, at + 1
        if n > most:
            return n, segments, slows, at, MORE
    return kept, segments, kept_slows, query, ODD
