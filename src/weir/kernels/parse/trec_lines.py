"""Compiled inner loops for rankings in TREC files: from the lines of a block to rows.

A kernel works on one block: a writable uint8 buffer whose lines end in "\\n", and `words`, a view of the
same bytes as the little-endian eight-byte word that starts at each position (see `weir.io.storage.lines.LineBuffer`).
The slow references are `weir.io.runs.whitespace_columns` (numpy alone) and the tests.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = ["hash_bytes", "hash_short", "scan_rows"]

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Int: TypeAlias = Any  # numba takes a signed with an unsigned integer to be a float: int64 is spelled out

# The same constants as weir.core.hashing; a test holds the two equal.
_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_MIX_TAIL = np.uint64(0xFF51AFD7ED558CCD)

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_DOTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ZEROS = np.uint64(0x3030303030303030)
_OVER_9 = np.uint64(0x4646464646464646)
_MINUS = np.uint64(45)
_BELOW_33 = np.uint64(0x2121212121212121)
# Moves a lone bit 8k to the top three bits as the number k: field k stands at bit 61 - 8k.
_BYTE_NUMBER = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
_LAST = np.array([((1 << 64) - 1) >> 8 * (8 - n) << 8 * (8 - n) for n in range(9)], np.uint64)
_TENS = 10 ** np.arange(9, dtype=np.int64)
_POWERS = np.array([float(10**k) for k in range(23)], np.float64)  # exact
_0, _7, _8, _32, _61 = (np.uint64(n) for n in (0, 7, 8, 32, 61))


@jit
def _space_at(word: np.uint64) -> Int:
    """Which of eight bytes is the first below 33, a candidate for white space; 8: none."""
    low = ((word - _BELOW_33) & ~word & _HIGH) >> _7
    if low == _0:
        return 8
    return np.int64(((low & (_0 - low)) * _BYTE_NUMBER) >> _61)


@jit
def _mixed(state: np.uint64, word: np.uint64) -> np.uint64:
    state = (state ^ word) * _MIX
    return state ^ (state >> _32)


@jit
def hash_bytes(words: U64, start: int, length: int) -> np.uint64:
    """Hash bytes as `weir.core.hashing.hash_strings` does."""
    state, at, stop = _SEED, start, start + length
    while at + 8 <= stop:
        state = _mixed(state, words[at])
        at += 8
    if at < stop:
        state = _mixed(state, words[at] & _MASKS[stop - at])
    state = (state ^ np.uint64(length)) * _MIX_TAIL
    return state ^ (state >> _32)


@jit
def hash_short(first: np.uint64, second: np.uint64, length: int) -> np.uint64:
    """As `hash_bytes`, of up to sixteen bytes: their words are passed, as a call that takes arrays is dear."""
    state = _mixed(_SEED, first & _MASKS[min(length, 8)]) if length > 0 else _SEED
    if length > 8:
        state = _mixed(state, second & _MASKS[length - 8])
    state = (state ^ np.uint64(length)) * _MIX_TAIL
    return state ^ (state >> _32)


@jit
def _quotient(mantissa: np.uint64, divisor: float) -> float:
    """mantissa / divisor, a power of ten up to 1e22, correctly rounded; NaN where doubles cannot tell.

    The division is repeated on its own remainder (Dekker's exact products), which leaves the quotient as a
    sum of two doubles: good to about 100 bits, enough unless the true value lies next to a midpoint.
    """
    if mantissa <= np.uint64(1 << 53):
        return float(mantissa) / divisor
    top = mantissa >> np.uint64(11) << np.uint64(11)
    high, low = float(top), float(mantissa - top)
    first = high / divisor
    split = 134217729.0 * first
    a1 = split - (split - first)
    a2 = first - a1
    split = 134217729.0 * divisor
    b1 = split - (split - divisor)
    b2 = divisor - b1
    product = first * divisor
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    rest = (((high - product) - error) + low) / divisor
    above, below = first + rest * (1.0 + 2.0**-48), first + rest * (1.0 - 2.0**-48)
    return above if above == below else np.nan


@jit
def _decimal(word: np.uint64, second: np.uint64, third: np.uint64, length: int) -> float:
    """The value of a plain decimal of up to 24 bytes; NaN: not one, or not one of up to 19 figures."""
    mantissa, places, figures, dots, sign, digits = _0, 0, 0, 0, 1, 0
    for k in range(length):
        if k == 8:
            word = second
        elif k == 16:
            word = third
        byte: Int = np.int64(word & np.uint64(255))
        word >>= _8
        digit = byte - 48
        if digit >= 0 and digit <= 9:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
            figures += mantissa != _0
            places += dots
            digits += 1
        elif byte == 46 and dots == 0:
            dots = 1
        elif k == 0 and abs(byte - 44) == 1:
            sign = 44 - byte
        else:
            return np.nan
    if digits == 0 or figures > 19 or places > 22:
        return np.nan
    return sign * _quotient(mantissa, _POWERS[places])


@jit
def _eight_digits(word: np.uint64, count: int) -> Int:
    """The number in the last `count` (0..8) bytes of a word, or -1 where they are not all digits."""
    word = (word & _LAST[count]) | (_ZEROS & ~_LAST[count])
    if ((word + _OVER_9) | (word - _ZEROS)) & _HIGH != _0:
        return -1
    word -= _ZEROS
    # Neighbouring digits are joined to pairs, pairs to fours, fours to eight, all in one word.
    word = (word * np.uint64(10) + (word >> _8)) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return np.int64((word * np.uint64(10000) + (word >> _32)) & np.uint64(0xFFFFFFFF))


@jit
def _dot_at(word: np.uint64) -> Int:
    """Which of eight bytes is the first full stop; 8: none."""
    flat = word ^ _DOTS
    dot = ((flat - _ONES) & ~flat & _HIGH) >> _7
    if dot == _0:
        return 8
    return np.int64(((dot & (_0 - dot)) * _BYTE_NUMBER) >> _61)


@jit
def _two_parts(first: np.uint64, whole: np.uint64, dot: int, part: np.uint64, places: int) -> float:
    """The value of `[-]1234567.12345678`, up to 7 and 8 digits; NaN for anything else.

    first, dot: its first word and where the full stop is; whole, part: the words that end where its two parts
    do; places: digits after the full stop.
    """
    minus = first & np.uint64(255) == _MINUS
    digits = dot - minus
    if dot == 8 or places < 0 or places > 8 or digits + places == 0:
        return np.nan
    high, low = _eight_digits(whole, digits), _eight_digits(part, places)
    if high < 0 or low < 0:
        return np.nan
    value = np.float64(high * _TENS[places] + low) / _POWERS[places]
    return float(-value if minus else value)


@jit
def _begins(first: np.uint64, second: np.uint64, head_1: np.uint64, head_2: np.uint64, size: int) -> bool:
    """Whether two words start with the `size` bytes of two others; never for more than sixteen."""
    if size <= 8:
        return bool((first ^ head_1) & _MASKS[size] == _0)
    return bool(size <= 16 and first == head_1 and (second ^ head_2) & _MASKS[size - 8] == _0)


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
    edge[14] = at
    return 0 if columns and buf[edge[0]] == 35 else columns


@jit
def _equal(buf: U8, a: int, b: int, size: int) -> bool:
    k = 0
    while k < size and buf[a + k] == buf[b + k]:
        k += 1
    return k == size


@jit
def _shifted(rank: int, tag: int) -> bool:
    """Whether a line of more than six columns seems to have a blank inside an identifier.

    trec_eval takes anything after the tag; then the fourth column begins with a digit and the sixth does not.
    """
    return rank < 48 or rank > 57 or (tag >= 43 and tag <= 57)


@jit
def scan_rows(
    buf: U8,
    words: U64,
    stop: int,
    start: I64,
    length: I64,
    hashes: U64,
    score: F64,
    segment: I64,
    slow: I64,
    edge: I64,
) -> tuple[int, int, int, int]:
    """Split the lines of buf[:stop] (the last byte is "\\n") into rows of document and score.

    Fills, per row: start, length and hash of the document identifier, score. Per segment, a stretch of rows
    of one query: segment[3i] its first row, then start and length of the query identifier. slow: triples of
    row, start and length of scores that are left to a slower parser. Each array has room for one entry (or
    triple) per line. edge: int64[15], scratch, zero at first. Returns (rows, segments, slow scores, position of the
    first bad line or -1).

    A line mostly begins (query, Q0) and ends (tag) with the bytes of the line before: these are compared as
    words, and only what stands between is split.
    """
    at, rows, segments, slows = 0, 0, 0, 0
    query, query_length, head, tail = 0, -1, 0, 0
    head_1, head_2, tail_1, tail_2 = _0, _0, _0, _0
    while at < stop:
        begin = at
        same = head > 0 and tail > 0 and _begins(words[at], words[at + 8], head_1, head_2, head)
        if same:
            at += head
            for column in range(4, 10, 2):
                edge[column] = at
                while True:
                    step = _space_at(words[at])
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
            same = same and _begins(words[edge[9]], words[edge[9] + 8], tail_1, tail_2, tail)
            at = edge[9] + tail
        if not same:
            columns = _columns(buf, begin, edge)
            at = edge[14] + 1
            if columns == 0:
                continue
            if columns < 5 or (columns > 6 and _shifted(buf[edge[6]], buf[edge[10]])):
                return rows, segments, slows, edge[0]
            size = edge[1] - edge[0]
            if size != query_length or not _equal(buf, query, edge[0], size):
                segment[3 * segments], segment[3 * segments + 1] = rows, edge[0]
                segment[3 * segments + 2] = size
                segments += 1
            query, query_length = edge[0], size
            head, tail = edge[4] - begin if columns < 7 else 0, at - edge[9]
            head_1, head_2 = words[begin], words[begin + 8]
            tail_1, tail_2 = words[edge[9]], words[edge[9] + 8]
        start[rows], length[rows] = edge[4], edge[5] - edge[4]
        document, size = edge[4], edge[5] - edge[4]
        if size <= 16:
            hashes[rows] = hash_short(words[document], words[document + 8], size)
        else:
            hashes[rows] = hash_bytes(words, document, size)
        number, size = edge[8], edge[9] - edge[8]
        dot = _dot_at(words[number])
        places = size - dot - 1
        value = _two_parts(words[number], words[number + dot - 8], dot, words[number + size - 8], places)
        if np.isnan(value) and size <= 24:
            value = _decimal(words[number], words[number + 8], words[number + 16], size)
        if np.isnan(value):
            slow[3 * slows], slow[3 * slows + 1], slow[3 * slows + 2] = rows, number, size
            slows += 1
        score[rows] = value
        rows += 1
    return rows, segments, slows, -1
