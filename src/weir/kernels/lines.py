"""Parse lines of rankings to columns, and sort rows in rank order."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weir.kernels.arrays import Bytes, Float64, Int32, Int64, UInt64
from weir.kernels.jit import jit

# Fields of a line, read as eight-byte words: where they end, their hashes, the numbers they hold.
#
# Words are a view of a block of text as the little-endian eight-byte word that starts at each position (see
# `weir.files.text_files.LineBuffer`). The slow references are `weir.core.strings`, `weir.files.parsers` and the
# tests.

Int: TypeAlias = Any  # numba takes a signed with an unsigned integer to be a float: int64 is spelled out

# The same constants as weir.core.strings; a test holds the two equal.
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
_0, _7, _8, _14, _32, _43, _61, _255 = (np.uint64(n) for n in (0, 7, 8, 14, 32, 43, 61, 255))


class RowArrays(NamedTuple):
    """Rows read from lines; each array has room for an entry per line."""

    start: Int64
    """Offset of each row's document identifier; `length` is its bytes, `hashes` its hash."""
    length: Int64
    hashes: UInt64
    score: Float64
    """NaN if left to the general parser."""
    segment: Int64
    """int64[n, 3]: first row of each range of rows with one query, offset and length of the query
    identifier."""
    slow: Int64
    """int64[n, 3]: row, offset and length of each score left to the general parser."""


@jit
def _zero_bytes(word: np.uint64) -> np.uint64:
    return (word - ONES) & ~word & _HIGH


@jit
def _first(flags: np.uint64) -> Int:
    if flags == _0:
        return 8
    return np.int64((((flags & (_0 - flags)) >> _7) * _BYTE_NUMBER) >> _61)


@jit
def first_below(word: np.uint64, bound: np.uint64) -> Int:
    """Return the index, 0 to 7, of the first byte of a word below `bound`; 8 for none.

    bound: a byte of at most 128, repeated eight times.
    """
    return _first((word - bound) & ~word & _HIGH)


@jit
def first_of(word: np.uint64, one: np.uint64, other: np.uint64, bound: np.uint64) -> Int:
    """Return the index, from the lowest, of the first byte of a word that equals `one` or `other` or is below
    `bound`; 8 for none.

    one, other, bound: a byte, repeated eight times; `bound` at most 128.
    """
    return _first(_zero_bytes(word ^ one) | _zero_bytes(word ^ other) | ((word - bound) & ~word & _HIGH))


@jit
def begins_with(first: np.uint64, second: np.uint64, head_1: np.uint64, head_2: np.uint64, size: int) -> bool:
    """Return True if the sixteen bytes (first, second) start with the first `size` bytes of (head_1, head_2);
    False for a size above 16.
    """
    if size <= 8:
        return bool((first ^ head_1) & _MASKS[size] == _0)
    return bool(size <= 16 and first == head_1 and (second ^ head_2) & _MASKS[size - 8] == _0)


@jit
def equal_bytes(buf: Bytes, a: int, b: int, size: int) -> bool:
    """Return True if the `size` bytes at position a equal those at b."""
    k = 0
    while k < size and buf[a + k] == buf[b + k]:
        k += 1
    return k == size


@jit
def _mixed(state: np.uint64, word: np.uint64) -> np.uint64:
    state = (state ^ word) * _MIX
    return state ^ (state >> _32)


@jit
def hash_bytes(words: UInt64, start: int, length: int) -> np.uint64:
    """Return the 64-bit hash of bytes, equal to that of `weir.core.strings.hash_strings`."""
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
    """Return the hash of `hash_bytes` for up to sixteen bytes, given as two words."""
    state = _mixed(_SEED, first & _MASKS[min(length, 8)]) if length > 0 else _SEED
    if length > 8:
        state = _mixed(state, second & _MASKS[length - 8])
    state = (state ^ np.uint64(length)) * _MIX_TAIL
    return state ^ (state >> _32)


@jit
def hash_texts(words: UInt64, start: Int64, length: Int64, hashes: UInt64) -> None:
    """Write each text's 64-bit hash to `hashes`, equal to that of `weir.core.strings.hash_strings`."""
    for i in range(len(start)):
        at, size = start[i], length[i]
        if size <= 16:
            hashes[i] = hash_short(words[at], words[at + 8], size)
        else:
            hashes[i] = hash_bytes(words, at, size)


@jit
def _quotient(mantissa: np.uint64, divisor: float) -> float:
    if mantissa <= np.uint64(1 << 53):
        return float(mantissa) / divisor
    # The division is repeated on its remainder (Dekker's exact products): the sum of two doubles is good to about 100
    # bits, enough unless the true value is next to a midpoint.
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
            figures += figures > 0 or digit > 0  # the mantissa may be 0 again, once it is too large
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
    """Return the value of a decimal of up to 24 bytes in three words; NaN for other text or if the nearest
    double is uncertain.

    ends: `dot_at` words that end before the point and at the end.
    """
    dot = dot_at(first)
    value = _two_parts(first, ends[0], dot, ends[1], size - dot - 1)
    if np.isnan(value) and size <= 24:
        value = _decimal(first, second, third, size)
    return value


@jit
def dot_at(word: np.uint64) -> Int:
    """Return the index of the first full stop among eight bytes, from the lowest; 8 for none."""
    return _first(_zero_bytes(word ^ _DOTS))


# The compiled tokenizer of lines: TREC's columns and separated cells to rows of query, document and score.
#
# It works on one block: a writable uint8 buffer whose lines end in "\n", and its words (see above). The slow
# references are `weir.files.parsers` and the tests.

_BELOW_33 = np.uint64(33) * ONES
_ENDS = np.uint64(10) * ONES
_LINE_END = 14  # of the edges of TREC's columns: where the line ends


class LineShape(NamedTuple):
    """Layout of a line: separator, number of cells, and the positions of query, document and number."""

    separator: int
    """A byte; 0 for any white space, as in TREC files."""
    cells: int
    query: int
    document: int
    number: int


TREC = LineShape(0, 7, 0, 2, 4)


@jit
def _columns(buf: Bytes, at: int, edge: Int64) -> int:
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
def _is_row(buf: Bytes, columns: int, edge: Int64) -> bool:
    if columns == 6 or columns < 5:
        return columns == 6
    if columns > 6 and buf[edge[12]] == 35:
        return True
    marked = edge[3] - edge[2] == 2 and buf[edge[2]] | 32 == 113 and buf[edge[2] + 1] == 48
    if columns == 5 or not marked:
        return marked
    if 43 <= buf[edge[10]] <= 57:
        return False
    # Text after the tag must not hold another row's Q0; white space, or the line's end, follows each column.
    for at in range(edge[3], edge[_LINE_END] - 2):
        if buf[at] <= 32 and buf[at + 1] | 32 == 113 and buf[at + 2] == 48 and buf[at + 3] <= 32:
            return False
    return True


@jit
def _closes(mark: int, after: int, next_after: int, separator: int) -> bool:
    ends_line = after == 10 or (after == 13 and next_after == 10)
    return mark == 34 and (ends_line or after == separator)


@jit
def scan_lines(
    buf: Bytes, words: UInt64, stop: int, shape: LineShape, rows: RowArrays, edge: Int64
) -> tuple[int, int, int, int, int, bool]:
    """Write the lines of buf[:stop], which ends in a line feed, to `rows`, without empty lines.

    edge: int64[2 * cells + 1], scratch, zero at first.

    Returns (rows, segments, scores left to the general parser, TREC lines that end unlike the row before,
    offset of the first bad line or -1, True if a quoted cell needs the general parser).
    """
    # All in one loop and by name: handing arrays to a function, even an inlined one, costs as much as a cell.
    start, length, hashes, score, segment, slow = (
        rows.start, rows.length, rows.hashes, rows.score, rows.segment, rows.slow,
    )  # fmt: skip
    trec, cells, separators = shape.separator == 0, shape.cells, np.uint64(shape.separator) * ONES
    query_cell, document_cell, number_cell = 2 * shape.query, 2 * shape.document, 2 * shape.number
    at, n, segments, slows, tails, tail_at = 0, 0, 0, 0, 0, 0
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
            if not _is_row(buf, columns, edge):
                return n, segments, slows, tails, edge[0], False
            if n > 0 and (at - edge[9] != tail or not equal_bytes(buf, tail_at, edge[9], tail)):
                tails += 1
            head, tail, tail_at = edge[4] - begin if columns < 7 else 0, at - edge[9], edge[9]
            head_1, head_2 = words[begin], words[begin + 8]
            tail_1, tail_2 = words[edge[9]], words[edge[9] + 8]
        if trec and (words[edge[6]] & _255) - _43 > _14:  # a rank begins with one of +,-./0123456789
            return n, segments, slows, tails, begin, False
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
                        return n, segments, slows, tails, -1, True
                    at += 1 + (buf[at + 1] == 13)
                else:
                    step = 8
                    while step == 8:
                        step = first_of(words[at], separators, _ENDS, _0)
                        at += step
                    edge[2 * cell + 1] = at - (buf[at] == 10 and at > edge[2 * cell] and buf[at - 1] == 13)
                if (buf[at] == 10) != (cell == cells - 1):
                    return n, segments, slows, tails, begin, False
                at += 1
        document, size = edge[document_cell], edge[document_cell + 1] - edge[document_cell]
        if not same:
            name, name_size = edge[query_cell], edge[query_cell + 1] - edge[query_cell]
            if size == 0 or name_size == 0:
                return n, segments, slows, tails, begin, False
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
        # The words that end where the parts do: a part that ends before the block's eighth byte has none.
        dot = dot_at(words[number])
        ends = words[max(number + dot - 8, 0)], words[max(number + size - 8, 0)]
        value = np.nan
        if number + min(dot, size) >= 8:
            value = number_of(words[number], words[number + 8], words[number + 16], ends, size)
        if np.isnan(value):
            slow[slows, 0], slow[slows, 1], slow[slows, 2] = n, number, size
            slows += 1
        score[n] = value
        n += 1
    return n, segments, slows, tails, -1, False


# Compiled sort of rankings: rows in rank order, duplicates found, documents looked up in a hash table.
#
# Identifiers are compared as the bytes of the block they stand in; the slow reference is `weir.files.parsers`.


_29 = np.uint64(29)


class IdTable(NamedTuple):
    """A hash table of identifiers; without slots every look-up fails."""

    slots: Int32
    """int32, open addressing; see `build_slots`."""
    keys: UInt64
    """uint64[n]: hash of each identifier."""
    data: Bytes
    """Identifier i is data[ptr[i]:ptr[i + 1]]."""
    ptr: Int64


@jit
def build_slots(hashes: UInt64, slots: Int32) -> None:
    """Write each hash's position into a hash table, at the first free slot from (hash >> 29) % len(slots).

    slots: all -1; its length is a power of two, at least twice the number of hashes.
    """
    mask = len(slots) - 1
    for i in range(len(hashes)):
        at = np.int64(hashes[i] >> _29) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@jit
def _find(
    buf: Bytes,
    start: int,
    length: int,
    hashed: np.uint64,
    slots: Int32,
    keys: UInt64,
    data: Bytes,
    ptr: Int64,
) -> Int:
    mask = len(slots) - 1
    at = np.int64(hashed >> _29) & mask
    while slots[at] >= 0:
        i = slots[at]
        if keys[i] == hashed and ptr[i + 1] - ptr[i] == length:
            k = 0
            while k < length and buf[start + k] == data[ptr[i] + k]:
                k += 1
            if k == length:
                return np.int64(i)
        at = (at + 1) & mask
    return -1


@jit
def _larger(buf: Bytes, a: int, a_length: int, b: int, b_length: int) -> bool:
    k = 0
    while k < a_length and k < b_length and buf[a + k] == buf[b + k]:
        k += 1
    if k < a_length and k < b_length:
        return bool(buf[a + k] > buf[b + k])
    return a_length > b_length


@jit
def _sort(buf: Bytes, start: Int64, length: Int64, score: Float64, order: Int64, spare: Int64) -> None:
    n, moves = len(order), 0
    for i in range(1, n):
        row, j = order[i], i
        while j > 0:
            other = order[j - 1]
            if score[row] < score[other]:
                break
            # Only ties call `_larger`: a call that takes arrays costs tens of comparisons.
            if score[row] == score[other] and _larger(
                buf, start[other], length[other], start[row], length[row]
            ):
                break
            order[j] = other
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
            a, middle, high = low, min(low + width, n), min(low + 2 * width, n)
            b = middle
            for k in range(low, high):
                first = b >= high
                if not first and a < middle:
                    x, y = order[a], order[b]
                    first = score[x] > score[y]
                    if score[x] == score[y]:
                        first = _larger(buf, start[x], length[x], start[y], length[y])
                if first:
                    spare[k] = order[a]
                    a += 1
                else:
                    spare[k] = order[b]
                    b += 1
        order[:] = spare[:n]
        width *= 2


@jit
def _duplicate(
    buf: Bytes, start: Int64, length: Int64, hashes: UInt64, a: int, b: int, scratch: Int32
) -> int:
    scratch[:] = -1
    mask = len(scratch) - 1
    for row in range(a, b):
        at = np.int64(hashes[row] >> _29) & mask
        while scratch[at] >= 0:
            other = a + scratch[at]
            if hashes[other] == hashes[row] and length[other] == length[row]:
                k = 0
                while k < length[row] and buf[start[other] + k] == buf[start[row] + k]:
                    k += 1
                if k == length[row]:
                    return row
            at = (at + 1) & mask
        scratch[at] = row - a
    return -1


@jit
def order_rows(
    buf: Bytes, start: Int64, length: Int64, hashes: UInt64, score: Float64, cuts: Int64, table: IdTable,
    scratch: Int32, spare: Int64, order: Int64, doc: Int32,
) -> int:  # fmt: skip
    """Rank the rows of each query and look up their documents; return the first row that repeats a document of
    its query, or -1.

    cuts: first row of each query, int64[queries + 1].
    score: in the precision in which scores are compared.
    scratch: int32, a power of two, at least four times the longest ranking.
    spare: int64, as long as the longest ranking.
    order, doc: filled in rank order with row numbers and positions in `table`, -1 for none.
    """
    slots, keys, data, ptr = table.slots, table.keys, table.data, table.ptr
    mask = len(slots) - 1
    for q in range(len(cuts) - 1):
        a, b = cuts[q], cuts[q + 1]
        room = 2
        while room < 4 * (b - a):
            room *= 2
        twice = _duplicate(buf, start, length, hashes, a, b, scratch[:room])
        if twice >= 0:
            return twice
        ranked = True
        for row in range(a, b):
            order[row] = row
            if row > a and not score[row - 1] > score[row]:
                ranked = False
        if not ranked:
            _sort(buf, start, length, score, order[a:b], spare)
        for row in range(a, b):
            at, doc[row] = order[row], -1
            if len(slots):
                # Few documents are in the table, and a call that takes arrays costs more than the walk to know it.
                slot = np.int64(hashes[at] >> _29) & mask
                while slots[slot] >= 0 and keys[slots[slot]] != hashes[at]:
                    slot = (slot + 1) & mask
                if slots[slot] >= 0:
                    doc[row] = _find(buf, start[at], length[at], hashes[at], slots, keys, data, ptr)
    return -1
