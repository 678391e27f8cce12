"""Fields of a line, read as eight-byte words: where they end, their hashes, the numbers they hold.

Words are a view of a block of text as the little-endian eight-byte word that starts at each position (see
`weir.io.storage.text_files.LineBuffer`). The slow references are `weir.core.hashing`, `weir.io.runs.decimals` and the
tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = [
    "RowArrays",
    "begins_with",
    "dot_at",
    "equal_bytes",
    "first_below",
    "first_of",
    "hash_bytes",
    "hash_short",
    "hash_texts",
    "number_of",
]

U8: TypeAlias = NDArray[np.uint8]
U64: TypeAlias = NDArray[np.uint64]
I64: TypeAlias = NDArray[np.int64]
F64: TypeAlias = NDArray[np.float64]
Int: TypeAlias = Any  # numba takes a signed with an unsigned integer to be a float: int64 is spelled out

# The same constants as weir.core.hashing; a test holds the two equal.
_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_MIX_TAIL = np.uint64(0xFF51AFD7ED558CCD)

ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_DOTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ZEROS = np.uint64(0x3030303030303030)
_OVER_9 = np.uint64(0x4646464646464646)
_MINUS = np.uint64(45)
# Moves a lone bit 8k to the top three bits as the number k: field k stands at bit 61 - 8k.
_BYTE_NUMBER = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
_LAST = np.array([((1 << 64) - 1) >> 8 * (8 - n) << 8 * (8 - n) for n in range(9)], np.uint64)
_TENS = 10 ** np.arange(9, dtype=np.int64)
_POWERS = np.array([float(10**k) for k in range(23)], np.float64)  # exact
_0, _7, _8, _32, _61 = (np.uint64(n) for n in (0, 7, 8, 32, 61))


class RowArrays(NamedTuple):
    """What a scan fills in; each array has room for one entry a line.

    start, length, hashes: the document identifier of each row; score: NaN where it is left to a slower parser; segment:
    int64[n, 3], of each stretch of rows of one query its first row, and start and length of the query identifier; slow:
    int64[n, 3], row, start and length of the scores that are left.
    """

    start: I64
    length: I64
    hashes: U64
    score: F64
    segment: I64
    slow: I64


@jit
def _zero_bytes(word: np.uint64) -> np.uint64:
    """The top bit of each byte that is zero; those above the first may be wrong."""
    return (word - ONES) & ~word & _HIGH


@jit
def _first(found: np.uint64) -> Int:
    """Which of eight bytes is the first whose top bit is set; 8: none."""
    if found == _0:
        return 8
    return np.int64((((found & (_0 - found)) >> _7) * _BYTE_NUMBER) >> _61)


@jit
def first_below(word: np.uint64, bound: np.uint64) -> Int:
    """Which of eight bytes is the first below a bound of at most 128, eight times in `bound`; 8: none."""
    return _first((word - bound) & ~word & _HIGH)


@jit
def first_of(word: np.uint64, one: np.uint64, other: np.uint64, bound: np.uint64) -> Int:
    """Which of eight bytes is the first that equals one of two or is below a bound, each eight times; 8: none."""
    return _first(_zero_bytes(word ^ one) | _zero_bytes(word ^ other) | ((word - bound) & ~word & _HIGH))


@jit
def begins_with(first: np.uint64, second: np.uint64, head_1: np.uint64, head_2: np.uint64, size: int) -> bool:
    """Whether two words start with the `size` bytes of two others; never for more than sixteen."""
    if size <= 8:
        return bool((first ^ head_1) & _MASKS[size] == _0)
    return bool(size <= 16 and first == head_1 and (second ^ head_2) & _MASKS[size - 8] == _0)


@jit
def equal_bytes(buf: U8, a: int, b: int, size: int) -> bool:
    """Whether `size` bytes from two positions on are the same."""
    k = 0
    while k < size and buf[a + k] == buf[b + k]:
        k += 1
    return k == size


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
def hash_texts(words: U64, start: I64, length: I64, hashes: U64) -> None:
    """Hash the texts at start, of length bytes, as `weir.core.hashing.hash_strings` does."""
    for i in range(len(start)):
        at, size = start[i], length[i]
        if size <= 16:
            hashes[i] = hash_short(words[at], words[at + 8], size)
        else:
            hashes[i] = hash_bytes(words, at, size)


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
def number_of(
    first: np.uint64, second: np.uint64, third: np.uint64, ends: tuple[int, int], size: int
) -> float:
    """The value of a decimal by its words; NaN: left to a slower parser.

    ends: the words that end where its two parts do, before the full stop and at its end; see `dot_at`.
    """
    dot = dot_at(first)
    value = _two_parts(first, ends[0], dot, ends[1], size - dot - 1)
    if np.isnan(value) and size <= 24:
        value = _decimal(first, second, third, size)
    return value


@jit
def dot_at(word: np.uint64) -> Int:
    """Which of eight bytes is the first full stop; 8: none."""
    return _first(_zero_bytes(word ^ _DOTS))
