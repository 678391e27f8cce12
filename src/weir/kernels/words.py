"""Split UTF-8 text into words and number the distinct ones."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Bytes, Int32, Int64
from weir.kernels.jit import jit

Words: TypeAlias = NDArray[np.uint64]

SIMPLE, BEGINS, STOP, MIDDLE = 1, 2, 4, 8
"""Classes of bytes, as bits: in plain words; begins a word; ends a plain word; ends it if such a byte follows."""
LONGEST = 128  # bytes of a word that the plain path takes
EMPTY = -1
DROPPED = -2
MULTIPLIER = -7046029254386353131  # 2^64 / golden ratio, as int64
LOW = 0xFFFFFFFF

# Eight bytes at once: each constant is one byte eight times; adding 0x80 - c sets the top bit where a byte is >= c.
ZERO, ONE, SEVEN, FIFTYSIX, ALL = (np.uint64(v) for v in (0, 1, 7, 56, 2**64 - 1))
ONES, SPACES, SEVENS, TOPS = (np.uint64(v * 0x0101010101010101) for v in (0x01, 0x20, 0x7F, 0x80))
BELOW_A, BELOW_BRACE, BELOW_0, BELOW_COLON, BELOW_BANG = (
    np.uint64((0x80 - ord(c)) * 0x0101010101010101) for c in "a{0:!"
)


class TextBytes(NamedTuple):
    """Texts as one read-only buffer."""

    data: Bytes
    eights: Words
    """The eight bytes at each position."""
    ptr: Int64
    """Offsets of the texts."""


class WordAutomaton(NamedTuple):
    """A tokenizer: an automaton over characters, and classes of bytes that suffice for plain words."""

    classes: Bytes
    """uint8[0x110000], classes of characters."""
    kinds: Bytes
    """uint8[256], classes of bytes (SIMPLE ...)."""
    fold: Bytes
    """uint8[256]: map of the bytes of words."""
    table: Int32
    """int32[states * classes]: offsets into the table itself; the dead state is first, accepting states are last."""
    shape: Int64
    """int64[6]: start, first accepting state, limit in UTF-16 units, least length of a plain word, 1 if ASCII
    case is folded, 1 if plain words are letters and digits (else 0x21 to 0x7E)."""


class WordSlots(NamedTuple):
    """Distinct words, numbered in order of first occurrence."""

    slots: Int64
    """int64[2 * capacity], a hash table with linear probing."""
    arena: Bytes
    eights: Words
    """The eight bytes at each position of the arena."""
    ptr: Int64
    """Offsets of the words in the arena."""
    state: Int64
    """int64[2]: number of words, and the bytes of arena needed by a word that did not fit."""


# The table of words uses linear probing over pairs of int64 (key, length << 32 | number), -1 if empty. A word of at
# most 8 bytes is its own key, so most comparisons end there; a longer one has a hash and is compared in the arena.
# All is int64, since numba mixes int64 and uint64 to float64.
@jit
def _place(key: int, mask: int) -> int:
    return ((key ^ key >> 32) * MULTIPLIER >> 32) & mask


@jit
def _mixed(key: int, block: int) -> int:
    return ((key ^ key >> 29) * MULTIPLIER) ^ block


@jit
def _others(x: np.uint64, letters: bool) -> np.uint64:
    y = x & SEVENS
    if letters:
        z = y | SPACES
        inside = ((z + BELOW_A) & ~(z + BELOW_BRACE)) | ((y + BELOW_0) & ~(y + BELOW_COLON))
    else:
        inside = (y + BELOW_BANG) & ~(y + ONES)
    return (x | ~inside) & TOPS


@jit
def _beyond(left: int) -> np.uint64:
    return ZERO if left >= 8 else TOPS << np.uint64(8 * left)


@jit
def _decode(data: Bytes, at: int, end: int) -> int:
    b = int(data[at])
    if 0xC2 <= b < 0xE0:
        if at + 1 < end and data[at + 1] & 0xC0 == 0x80:
            return (((b & 0x1F) << 6 | (data[at + 1] & 0x3F)) << 3) | 2
    elif 0xE0 <= b < 0xF0:
        if at + 2 < end and data[at + 1] & 0xC0 == 0x80 and data[at + 2] & 0xC0 == 0x80:
            return (((b & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | (data[at + 2] & 0x3F)) << 3) | 3
    elif 0xF0 <= b < 0xF5 and (
        at + 3 < end
        and data[at + 1] & 0xC0 == 0x80
        and data[at + 2] & 0xC0 == 0x80
        and data[at + 3] & 0xC0 == 0x80
    ):
        high = (b & 0x07) << 18 | (data[at + 1] & 0x3F) << 12
        code = high | (data[at + 2] & 0x3F) << 6 | (data[at + 3] & 0x3F)
        if code < 0x110000:
            return (code << 3) | 4
    return (0xFFFD << 3) | 1


@jit
def scan_words(
    texts: TextBytes,
    first: int,
    tokenizer: WordAutomaton,
    insert: bool,
    words: WordSlots,
    out: Int32,
    out_ptr: Int64,
) -> int:
    """Write the word numbers of texts from `first` on to `out`; return the first text not done for lack of room
    in `words`.

    insert: number new words; otherwise they are -1.
    out_ptr: start of each text in `out`, int64[texts + 1]; filled after entry `first`.
    """
    # All in one loop: split into functions for plain words, others and the look-up, it took a fifth longer.
    data, data8, ptr = texts
    classes, kinds, fold, table, shape = tokenizer
    slots, arena, arena8, word_ptr, state = words
    mask = slots.shape[0] // 2 - 1
    count = state[0]
    start, accept, limit, least = shape[0], shape[1], shape[2], shape[3]
    bit = SPACES if shape[4] else ZERO
    letters = shape[5] != 0
    size = data.shape[0]
    for i in range(first, ptr.shape[0] - 1):
        at, stop, m = ptr[i], ptr[i + 1], out_ptr[i]
        while at < stop:
            kind = kinds[data[at]]
            if kind & BEGINS == 0:
                at += 1
                continue
            key = 0
            end = at
            simple = False
            tail = ALL
            if kind & SIMPLE and at + 8 <= size:
                q = at
                x = data8[q]
                other = _others(x, letters) | _beyond(stop - q)
                if other != ZERO:
                    tail = ((other & (ZERO - other)) >> SEVEN) - ONE
                    key = np.int64((x | bit) & tail)
                    q += np.int64(((tail & ONES) * ONES) >> FIFTYSIX)
                    simple = True
                else:
                    key = np.int64(x | bit)
                    q += 8
                    while q - at < LONGEST:
                        if q == stop:
                            tail = ZERO
                            simple = True
                            break
                        if q + 8 > size:
                            break
                        x = data8[q]
                        other = _others(x, letters) | _beyond(stop - q)
                        if other != ZERO:
                            simple = True
                            tail = ((other & (ZERO - other)) >> SEVEN) - ONE
                            if tail != ZERO:
                                key = _mixed(key, np.int64((x | bit) & tail))
                                q += np.int64(((tail & ONES) * ONES) >> FIFTYSIX)
                            break
                        key = _mixed(key, np.int64(x | bit))
                        q += 8
                if simple and q < stop:
                    kind = kinds[data[q]]
                    simple = kind & STOP != 0 or (
                        kind & MIDDLE != 0 and (q + 1 >= stop or kinds[data[q + 1]] & (STOP | MIDDLE) != 0)
                    )
                if simple:
                    end = q
                    if end - at < least:
                        at = end
                        continue
            if not simple:
                q, units, s, width = at, 0, start, 1
                while q < stop:
                    b = data[q]
                    if b < 128:
                        c = classes[b]
                        units += 1
                        step = 1
                    else:
                        code = _decode(data, q, stop)
                        c = classes[code >> 3]
                        step = code & 7
                        units += 1 + (step == 4)
                    if q == at:
                        width = step
                    if units > limit:
                        break
                    s = np.int64(table[s + c])
                    if s == 0:
                        break
                    q += step
                    if s >= accept:
                        end = q
                if end == at:
                    at += width
                    continue
                key = 0
                w = 0
                for j in range(end - at):
                    w |= np.int64(fold[data[at + j]]) << (8 * (j & 7))
                    if j & 7 == 7 or at + j + 1 == end:
                        key = _mixed(key, w) if j > 7 else w
                        w = 0
            n = end - at
            place = _place(key, mask)
            number = -1
            while True:
                meta = slots[2 * place + 1]
                if meta == EMPTY:
                    break
                if slots[2 * place] == key and meta >> 32 == n:
                    number = meta & LOW
                    if n <= 8:
                        break
                    base = word_ptr[number]
                    j = 0
                    if simple:
                        while j + 8 <= n and arena8[base + j] == data8[at + j] | bit:
                            j += 8
                        if j + 8 > n and (
                            j == n or (arena8[base + j] ^ (data8[at + j] | bit)) & tail == ZERO
                        ):
                            j = n
                    else:
                        while j < n and arena[base + j] == fold[data[at + j]]:
                            j += 1
                    if j == n:
                        break
                    number = -1
                place = (place + 1) & mask
            if number < 0 and insert:
                base = word_ptr[count]
                if 2 * (count + 1) > mask or count + 2 > word_ptr.shape[0] or base + n > arena8.shape[0]:
                    state[0] = count
                    state[1] = base + n
                    return i
                for j in range(n):
                    arena[base + j] = fold[data[at + j]]
                word_ptr[count + 1] = base + n
                slots[2 * place] = key
                slots[2 * place + 1] = n << 32 | count
                number = count
                count += 1
            out[m] = number
            m += 1
            at = end
        out_ptr[i + 1] = m
    state[0] = count
    return ptr.shape[0] - 1


@jit
def regrow(slots: Int64, larger: Int64, where: Int64) -> None:
    """Copy a table of words into a larger, empty one.

    where: int64[words], scratch.
    """
    for i in range(slots.shape[0] // 2):
        if slots[2 * i + 1] != EMPTY:
            where[slots[2 * i + 1] & LOW] = 2 * i
    mask = larger.shape[0] // 2 - 1
    # in order of number, since early words are frequent and should get their preferred slots
    for i in where:
        place = _place(slots[i], mask)
        while larger[2 * place + 1] != EMPTY:
            place = (place + 1) & mask
        larger[2 * place] = slots[i]
        larger[2 * place + 1] = slots[i + 1]


@jit
def renumber(ptr: Int64, numbers: Int32, to: Int32) -> None:
    """Replace each number by to[number] in place; remove entries that become DROPPED, and adjust `ptr`."""
    m = j = ptr[0]
    for i in range(ptr.shape[0] - 1):
        while j < ptr[i + 1]:
            t = to[numbers[j]]
            numbers[m] = t  # the next one overwrites a dropped one, without a branch
            m += t != DROPPED
            j += 1
        ptr[i + 1] = m
