"""Decimal numbers in a text buffer to correctly rounded doubles, many at once with numpy alone; and back."""

from __future__ import annotations

import re
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import load_words
from weir.core.strings import Bytes, Float64, Int64

__all__ = ["NUMBER", "parse_decimals", "parse_slowly", "written"]

# What counts as a score: no "nan", "inf", hexadecimal or digit-group underscores, which float() would take.
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_POWERS = np.array([float(10**k) for k in range(23)], np.float64)  # exact
_PLAIN = (1e-4, 1e15)
"""Magnitudes that are written without an exponent."""
_BLOCK_NUMBERS = 1 << 15
_MINUS, _PLUS = 45, 43
_SPLIT = 134217729.0  # 2**27 + 1 halves a double's figures
_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_DOTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ZEROS = np.uint64(0x3030303030303030)
_OVER_9 = np.uint64(0x4646464646464646)
# Moves a lone bit 8k to the top three bits as the number k: field k stands at bit 61 - 8k.
_BYTE_NUMBER = np.uint64(sum(k << (61 - 8 * k) for k in range(8)))
_TENS = np.array([10**k for k in range(9)], np.uint64)
_LAST = np.array([((1 << 64) - 1) >> 8 * (8 - n) << 8 * (8 - n) for n in range(9)], np.uint64)


def parse_slowly(text: bytes) -> float:
    """The value of one number; NaN when the text is not a finite decimal number."""
    if NUMBER.fullmatch(text) is None:
        return np.nan
    value = float(text)
    return value if np.isfinite(value) else np.nan


def parse_decimals(buf: Bytes, start: Int64, length: Int64) -> tuple[Float64, Int64]:
    """Parse the numbers buf[start[i] : start[i] + length[i]].

    start, length: int64[n], length >= 1. Returns float64[n], the double nearest to each text as Python's
    float() gives it, and the positions, ascending, of texts that are no finite number.
    """
    value = np.empty(len(start), np.float64)
    for at in range(0, len(start), _BLOCK_NUMBERS):
        stop = at + _BLOCK_NUMBERS
        value[at:stop] = _parse_block(buf, start[at:stop], length[at:stop])
    bad = []
    for i in np.flatnonzero(np.isnan(value)).tolist():
        value[i] = parse_slowly(buf[start[i] : start[i] + length[i]].tobytes())
        if np.isnan(value[i]):
            bad.append(i)
    return value, np.array(bad, np.int64)


def _parse_block(buf: Bytes, start: Int64, length: Int64) -> Float64:
    """Plain decimals of up to 8 digits before the full stop and 19 altogether; NaN for everything else."""
    lead = buf[start]
    negative = lead == _MINUS
    signed = negative | (lead == _PLUS)
    start, length = start + signed, length - signed
    value, good = _by_words(buf, start, length)
    value[~good] = np.nan
    return np.negative(value, out=value, where=negative)


def _by_words(buf: Bytes, start: Int64, length: Int64) -> tuple[Float64, NDArray[np.bool_]]:
    """Values of the shape `12345678.1234567812345678`, up to 19 digits, and which texts have it."""
    word = load_words(buf, start, length)
    flat = word ^ _DOTS
    dot = ((flat - _ONES) & ~flat & _HIGHS) >> np.uint64(7)
    dot &= np.uint64(0) - dot  # the lowest bit: the first dot
    whole = np.where(dot > 0, ((dot * _BYTE_NUMBER) >> np.uint64(61)).astype(np.int64), length)
    places = np.maximum(length - whole - 1, 0)
    # Digits are read as the eight bytes before their end, so there must be eight.
    good = (whole <= 8) & (places <= 16) & (whole + places > 0) & (whole + places <= 19) & (start >= 8)
    end = start + length
    mantissa = np.zeros(len(start), np.uint64)
    late = np.minimum(places, 8)
    for stop, wanted in ((start + whole, whole), (end - 8, places - 8), (end, late)):
        count = np.clip(wanted, 0, 8)
        if count.any():
            number, digits = _eight_digits(buf, np.maximum(stop - 8, 0), count)
            mantissa = mantissa * _TENS[count] + number
            good &= digits
    return _quotients(mantissa, np.where(good, places, 0)), good


def _eight_digits(buf: Bytes, at: Int64, count: Int64) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The number in the last `count` of the eight bytes at each position, and whether these are digits."""
    word = load_words(buf, at, np.full(len(at), 8))
    keep = _LAST[count]
    word = (word & keep) | (_ZEROS & ~keep)
    digits = (((word + _OVER_9) | (word - _ZEROS)) & _HIGHS) == 0
    word -= _ZEROS
    # Neighbouring digits are joined to pairs, pairs to fours, fours to eight, all in one word.
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return word, digits


def _quotients(mantissa: NDArray[np.uint64], scale: NDArray[np.integer]) -> Float64:
    """mantissa / 10**scale correctly rounded, or NaN where double arithmetic cannot tell; scale 0..22.

    Up to 2**53 both are exact doubles and one division rounds once (Clinger). Beyond, the division is
    repeated on its own remainder (Dekker's exact products): the quotient is then a sum of two doubles, good
    to about 100 bits, enough unless the true value lies next to a midpoint.
    """
    high = mantissa.astype(np.float64)
    divisor = _POWERS[scale]
    value: Float64 = high / divisor
    wide = np.flatnonzero(mantissa > np.uint64(1 << 53))
    if len(wide) == 0:
        return value
    m, divisor = mantissa[wide], divisor[wide]
    top = m >> np.uint64(11) << np.uint64(11)
    high, low = top.astype(np.float64), (m - top).astype(np.float64)
    first = high / divisor
    split = _SPLIT * first
    a1 = split - (split - first)
    a2 = first - a1
    split = _SPLIT * divisor
    b1 = split - (split - divisor)
    b2 = divisor - b1
    product = first * divisor
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    rest = (((high - product) - error) + low) / divisor
    above, below = first + rest * (1.0 + 2.0**-48), first + rest * (1.0 - 2.0**-48)
    value[wide] = np.where(above == below, above, np.nan)
    return value


def written(numbers: NDArray[np.float64 | np.integer]) -> list[str]:
    """Each number as Python writes it, which reads back to the same: float64[n] or whole numbers."""
    if numbers.dtype != np.float64 or find_spec("orjson") is None:
        return [repr(number) for number in numbers.tolist()]
    import orjson

    if not np.isfinite(numbers).all():
        return [repr(number) for number in numbers.tolist()]
    text = orjson.dumps(np.ascontiguousarray(numbers), option=orjson.OPT_SERIALIZE_NUMPY).decode("ascii")
    texts = text[1:-1].split(",") if len(numbers) else []
    size = np.abs(numbers)
    for at in np.flatnonzero((size > 0) & ((size < _PLAIN[0]) | (size >= _PLAIN[1]))).tolist():
        texts[at] = repr(float(numbers[at]))  # the two write exponents differently
    return texts
