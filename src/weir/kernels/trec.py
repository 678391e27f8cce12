"""Compiled inner loops for rankings in TREC files: split lines, parse scores, find documents, put rows in order.

Every kernel works on one block: a writable uint8 buffer whose lines end in "\\n", and `words`, a view of the
same bytes as the little-endian eight-byte word that starts at each position (see `weir.io.lines.Buffer`).
The slow references are `weir.io.columns` (numpy alone) and the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
import numba
import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = ["BAD_COLUMNS", "BAD_SCORE", "DONE", "build_slots", "hash_bytes", "order_rows", "scan_rows"]

F = TypeVar("F", bound=Callable[..., Any])


def inlined(function: F) -> F:
    return numba.njit(function, inline="always", nogil=True, error_model="numpy")


U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

DONE, BAD_COLUMNS, BAD_SCORE = 0, 1, 2

# The same constants as weir.core.hashing; a test holds the two equal.
_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_MIX_TAIL = np.uint64(0xFF51AFD7ED558CCD)

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_BELOW_33 = np.uint64(0x2121212121212121)
# Moves a lone bit 8k to the top three bits as the number k: field k stands at bit 61 - 8k.
_BYTE_NUMBER = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(8)], np.uint64)
_POWERS = np.array([10.0**k for k in range(23)], np.float64)
_0, _3, _7, _29, _32, _61 = (np.uint64(n) for n in (0, 3, 7, 29, 32, 61))

TAB, LF, CR, BLANK, HASH = 9, 10, 13, 32, 35


@inlined
def _is_space(byte: int) -> bool:
    return byte == BLANK or (byte >= TAB and byte <= CR)


@jit
def hash_bytes(words: U64, start: int, length: int) -> int:
    """Hash bytes as `weir.core.hashing.hash_strings` does."""
    state = _SEED
    at, stop = start, start + length
    while at + 8 <= stop:
        state = (state ^ words[at]) * _MIX
        state ^= state >> _32
        at += 8
    if at < stop:
        state = (state ^ (words[at] & _MASKS[stop - at])) * _MIX
        state ^= state >> _32
    state = (state ^ np.uint64(length)) * _MIX_TAIL
    return state ^ (state >> _32)


@inlined
def _token_end(buf: U8, words: U64, at: int) -> int:
    """The first white space at or after `at`; the block ends in "\\n", so there is one."""
    while True:
        word = words[at]
        low = ((word - _BELOW_33) & ~word & _HIGH) >> _7
        if low == _0:
            at += 8
            continue
        at += np.int64(((low & (_0 - low)) * _BYTE_NUMBER) >> _61)
        if _is_space(buf[at]):
            return at
        at += 1  # a control character inside an identifier


@inlined
def _skip_blanks(buf: U8, at: int) -> int:
    while buf[at] != LF and _is_space(buf[at]):
        at += 1
    return at


@inlined
def _line_end(buf: U8, at: int) -> int:
    while buf[at] != LF:
        at += 1
    return at


@inlined
def _same(buf: U8, a: int, b: int, length: int) -> bool:
    for k in range(length):
        if buf[a + k] != buf[b + k]:
            return False
    return True


@inlined
def _quotient(mantissa: np.uint64, scale: int) -> float:
    """mantissa / 10**scale correctly rounded, or NaN where double arithmetic cannot tell; scale 0..22.

    The division is repeated on its own remainder (Dekker's exact products), which leaves the quotient as a sum
    of two doubles: good to about 100 bits, enough unless the true value lies next to a midpoint.
    """
    high = np.float64(mantissa)
    if mantissa <= np.uint64(1 << 53):
        return high / _POWERS[scale]
    top = mantissa >> np.uint64(11) << np.uint64(11)
    high, low = np.float64(top), np.float64(mantissa - top)
    divisor = _POWERS[scale]
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


@inlined
def _score(buf: U8, at: int, stop: int) -> tuple[float, bool]:
    """A decimal number: its value (NaN: well formed, but left to a slower parser), and whether it is one."""
    negative = buf[at] == 45
    if negative or buf[at] == 43:
        at += 1
    mantissa, digits, figures, scale, dot = _0, 0, 0, 0, False
    while at < stop:
        digit = buf[at] - 48
        if digit >= 0 and digit <= 9:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
            digits += 1
            figures += mantissa > _0
            scale += dot
        elif buf[at] == 46 and not dot:
            dot = True
        else:
            break
        at += 1
    if digits == 0:
        return np.nan, False
    if at < stop:
        if buf[at] | 32 != 101:
            return np.nan, False
        at += 1
        lower = buf[at] == 45
        if lower or buf[at] == 43:
            at += 1
        if at == stop:
            return np.nan, False
        exponent = 0
        while at < stop:
            digit = buf[at] - 48
            if digit < 0 or digit > 9:
                return np.nan, False
            exponent = min(exponent * 10 + digit, 9999)
            at += 1
        scale += exponent if lower else -exponent
    if figures > 19 or scale < 0 or scale > 22:
        return np.nan, True
    value = _quotient(mantissa, scale)
    return (-value if negative else value), True


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
) -> tuple[int, int, int, int, int]:
    """Split the lines of buf[:stop] (the last byte is "\\n") into rows of document and score.

    Fills, per row: start, length and hash of the document identifier, score. Per segment, a stretch of rows of
    one query: segment[3i] its first row, then start and length of the query identifier. slow: triples of row,
    start and length of scores for a slower parser. Each array has room for one entry per line (triples: three).
    Returns (rows, segments, slow scores, status, position of the bad line's first column).
    """
    at, rows, segments, slows = 0, 0, 0, 0
    query, query_length = 0, -1
    while at < stop:
        first = _skip_blanks(buf, at)
        if buf[first] == LF:
            at = first + 1
            continue
        if buf[first] == HASH:
            at = _line_end(buf, first) + 1
            continue
        end = _token_end(buf, words, first)
        if end - first != query_length or not _same(buf, first, query, query_length):
            query, query_length = first, end - first
            segment[3 * segments] = rows
            segment[3 * segments + 1] = query
            segment[3 * segments + 2] = query_length
            segments += 1
        end = _token_end(buf, words, _skip_blanks(buf, end))
        doc = _skip_blanks(buf, end)
        doc_end = _token_end(buf, words, doc)
        end = _token_end(buf, words, _skip_blanks(buf, doc_end))
        number = _skip_blanks(buf, end)
        end = _token_end(buf, words, number)
        at = _skip_blanks(buf, end)
        if buf[at] != LF:
            at = _skip_blanks(buf, _token_end(buf, words, at))
        if end == number or buf[at] != LF:
            return rows, segments, slows, BAD_COLUMNS, first
        value, good = _score(buf, number, end)
        if not good:
            return rows, segments, slows, BAD_SCORE, first
        if value != value:
            slow[3 * slows] = rows
            slow[3 * slows + 1] = number
            slow[3 * slows + 2] = end - number
            slows += 1
        start[rows] = doc
        length[rows] = doc_end - doc
        hashes[rows] = hash_bytes(words, doc, doc_end - doc)
        score[rows] = value
        rows += 1
        at += 1
    return rows, segments, slows, DONE, 0


@jit
def build_slots(hashes: U64, slots: I32) -> None:
    """Fill an open-addressing table (slots: all -1, a power of two at least twice as long) with positions."""
    mask = len(slots) - 1
    for i in range(len(hashes)):
        at = np.int64(hashes[i] >> _29) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@inlined
def _find(
    buf: U8, start: int, length: int, hashed: int, slots: I32, keys: U64, data: U8, ptr: I64
) -> int:
    """The position of an identifier in the table whose strings are data[ptr[i]:ptr[i + 1]], or -1."""
    mask = len(slots) - 1
    at = np.int64(hashed >> _29) & mask
    while slots[at] >= 0:
        i = slots[at]
        if keys[i] == hashed and ptr[i + 1] - ptr[i] == length:
            k = 0
            while k < length and buf[start + k] == data[ptr[i] + k]:
                k += 1
            if k == length:
                return i
        at = (at + 1) & mask
    return -1


@inlined
def _larger(buf: U8, a: int, a_length: int, b: int, b_length: int) -> bool:
    """Whether the bytes at a are the larger, compared one by one (strcmp)."""
    k = 0
    while k < a_length and k < b_length and buf[a + k] == buf[b + k]:
        k += 1
    if k < a_length and k < b_length:
        return buf[a + k] > buf[b + k]
    return a_length > b_length


@inlined
def _precedes(buf: U8, start: I64, length: I64, score: F64, a: int, b: int) -> bool:
    """Whether row a comes before row b: higher score, then the larger identifier."""
    x, y = score[a], score[b]
    return x > y or (x == y and _larger(buf, start[a], length[a], start[b], length[b]))


@jit
def _sort(buf: U8, start: I64, length: I64, score: F64, order: I64, spare: I64) -> None:
    """Put `order` (rows) into rank order: insertion while rows are nearly in place, else a merge sort."""
    n, moves = len(order), 0
    for i in range(1, n):
        row, j = order[i], i
        while j > 0 and _precedes(buf, start, length, score, row, order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = row
        moves += i - j
        if moves > 4 * n + 16:
            break
    else:
        return
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            a, b = low, middle
            for k in range(low, high):
                if a < middle and (b >= high or not _precedes(buf, start, length, score, order[b], order[a])):
                    spare[k] = order[a]
                    a += 1
                else:
                    spare[k] = order[b]
                    b += 1
        order[:] = spare[:n]
        width *= 2


@inlined
def _duplicate(buf: U8, start: I64, length: I64, hashes: U64, a: int, b: int, seen: I32) -> int:
    """The first row of a..b-1 whose document an earlier one of them has, or -1; seen: a power of two >= 2(b-a)."""
    seen[:] = -1
    mask = len(seen) - 1
    for row in range(a, b):
        at = np.int64(hashes[row] >> _29) & mask
        while seen[at] >= 0:
            other = a + seen[at]
            same = hashes[other] == hashes[row] and length[other] == length[row]
            if same and _same(buf, start[other], start[row], length[row]):
                return row
            at = (at + 1) & mask
        seen[at] = row - a
    return -1


@jit
def order_rows(
    buf: U8,
    start: I64,
    length: I64,
    hashes: U64,
    score: F64,
    cuts: I64,
    slots: I32,
    keys: U64,
    data: U8,
    ptr: I64,
    seen: I32,
    order: I64,
    spare: I64,
    doc: I32,
) -> int:
    """Rank the rows of each query and look their documents up in a table of identifiers.

    cuts: int64[queries + 1] first row of each; score: at the precision in which scores compare. slots, keys,
    data, ptr: the table (see build_slots), empty slots: nothing is looked up. seen: scratch, a power of two at
    least twice the longest ranking. Fills order (rows in rank order) and doc (position in the table or -1, in
    rank order). Returns the first row whose document occurs twice in its ranking, or -1.
    """
    for q in range(len(cuts) - 1):
        a, b = cuts[q], cuts[q + 1]
        room = 2
        while room < 2 * (b - a):
            room *= 2
        twice = _duplicate(buf, start, length, hashes, a, b, seen[:room])
        if twice >= 0:
            return twice
        ranked = True
        for row in range(a, b):
            order[row] = row
            if row > a and not _precedes(buf, start, length, score, row - 1, row):
                ranked = False
        if not ranked:
            _sort(buf, start, length, score, order[a:b], spare)
        for row in range(a, b):
            at = order[row]
            doc[row] = _find(buf, start[at], length[at], hashes[at], slots, keys, data, ptr) if len(slots) else -1
    return -1
