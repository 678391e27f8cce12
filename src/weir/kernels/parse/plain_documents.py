"""Reads JSON lines of plain documents: objects with `_id`, `text`, perhaps `title`, nothing surprising."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

__all__ = ["read_plain_documents"]

_SPACE, _TAB, _RETURN, _NEWLINE = 32, 9, 13, 10
_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE = 34, 92, 58, 44, 123, 125
_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x0101010101010101)
_BLANK_8 = np.uint64(0x2020202020202020)
_QUOTE_8 = np.uint64(0x2222222222222222)
_BACKSLASH_8 = np.uint64(0x5C5C5C5C5C5C5C5C)
_OTHER, _ID, _TITLE, _TEXT, _METADATA = 0, 1, 2, 3, 4


@jit
def _blanks(buf: NDArray[np.uint8], at: int) -> int:
    """The first position from `at` on that is no blank within a line."""
    while buf[at] == _SPACE or buf[at] == _TAB or buf[at] == _RETURN:
        at += 1
    return at


@jit
def _hex(buf: NDArray[np.uint8], at: int) -> int:
    """The number of four hexadecimal digits, or -1."""
    value = 0
    for i in range(at, at + 4):
        c = buf[i]
        if 48 <= c <= 57:
            value = value * 16 + c - 48
        elif 97 <= (c | 32) <= 102:
            value = value * 16 + (c | 32) - 87
        else:
            return -1
    return value


@jit
def _wide(buf: NDArray[np.uint8], at: int) -> int:
    """Bytes of the well-formed UTF-8 character beyond ASCII that starts here, or 0 (Unicode, table 3-7)."""
    c = buf[at]
    low, high, more = 0x80, 0xBF, 1
    if 0xC2 <= c <= 0xDF:
        more = 1
    elif 0xE0 <= c <= 0xEF:
        more = 2
        if c == 0xE0:
            low = 0xA0
        elif c == 0xED:
            high = 0x9F
    elif 0xF0 <= c <= 0xF4:
        more = 3
        if c == 0xF0:
            low = 0x90
        elif c == 0xF4:
            high = 0x8F
    else:
        return 0
    if not low <= buf[at + 1] <= high:
        return 0
    for i in range(at + 2, at + 1 + more):
        if not 0x80 <= buf[i] <= 0xBF:
            return 0
    return more + 1


@jit
def _put(out: NDArray[np.uint8], to: int, character: int) -> int:
    """Write a character as UTF-8; returns the position behind it."""
    if character < 0x80:
        out[to] = character
        return to + 1
    if character < 0x800:
        out[to] = 0xC0 | character >> 6
        out[to + 1] = 0x80 | character & 0x3F
        return to + 2
    if character < 0x10000:
        out[to] = 0xE0 | character >> 12
        out[to + 1] = 0x80 | character >> 6 & 0x3F
        out[to + 2] = 0x80 | character & 0x3F
        return to + 3
    out[to] = 0xF0 | character >> 18
    out[to + 1] = 0x80 | character >> 12 & 0x3F
    out[to + 2] = 0x80 | character >> 6 & 0x3F
    out[to + 3] = 0x80 | character & 0x3F
    return to + 4


@jit
def _string(
    buf: NDArray[np.uint8],
    words: NDArray[np.uint64],
    at: int,
    out: NDArray[np.uint8],
    out_words: NDArray[np.uint64],
    to: int,
) -> tuple[int, int]:
    """Unescape the string behind the quote before `at`; returns the positions behind both, or -1 to give up."""
    while True:
        # Eight bytes at a time, as long as all are ASCII, none a quote, a backslash or a control character.
        while at < len(words):
            word = words[at]
            quotes, slashes = word ^ _QUOTE_8, word ^ _BACKSLASH_8
            found = word | (word - _BLANK_8) | ((quotes - _LOW) & ~quotes) | ((slashes - _LOW) & ~slashes)
            out_words[to] = word
            if found & _HIGH:
                break
            at += 8
            to += 8
        c = buf[at]
        if c == _QUOTE:
            return at + 1, to
        if c >= 0x80:
            size = _wide(buf, at)
            if size == 0:
                return -1, to
            for i in range(size):
                out[to + i] = buf[at + i]
            at += size
            to += size
        elif c == _BACKSLASH:
            c = buf[at + 1]
            at += 2
            if c in (_QUOTE, _BACKSLASH, 47):
                out[to] = c
            elif c == 110:
                out[to] = 10
            elif c == 116:
                out[to] = 9
            elif c == 114:
                out[to] = 13
            elif c == 98:
                out[to] = 8
            elif c == 102:
                out[to] = 12
            elif c == 117:
                character = _hex(buf, at)
                at += 4
                if 0xD800 <= character <= 0xDBFF and buf[at] == _BACKSLASH and buf[at + 1] == 117:
                    low = _hex(buf, at + 2)
                    at += 6
                    if not 0xDC00 <= low <= 0xDFFF:
                        return -1, to
                    character = 0x10000 + ((character - 0xD800) << 10) + low - 0xDC00
                if character < 0 or 0xD800 <= character <= 0xDFFF:
                    return -1, to
                to = _put(out, to, character) - 1
            else:
                return -1, to
            to += 1
        elif c < 0x20:
            return -1, to
        else:
            out[to] = c
            at += 1
            to += 1


@jit
def _key(buf: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Which key stands behind the quote before `at`, and the position behind it, -1 for one to give up on."""
    start = at
    while buf[at] != _QUOTE:
        if buf[at] < 0x20 or buf[at] >= 0x80 or buf[at] == _BACKSLASH:
            return _OTHER, -1
        at += 1
    size = at - start
    kind = _OTHER
    if size == 3 and buf[start] == 95 and buf[start + 1] == 105 and buf[start + 2] == 100:
        kind = _ID
    elif size == 4 and buf[start] == 116 and buf[start + 1] == 101 and buf[start + 2] == 120:
        kind = _TEXT if buf[start + 3] == 116 else _OTHER
    elif size == 5 and buf[start] == 116 and buf[start + 1] == 105 and buf[start + 2] == 116:
        kind = _TITLE if buf[start + 3] == 108 and buf[start + 4] == 101 else _OTHER
    elif size == 8 and buf[start] == 109 and buf[start + 1] == 101 and buf[start + 2] == 116:
        kind = _METADATA
    return kind, at + 1


@jit
def _empty_object(buf: NDArray[np.uint8], at: int) -> int:
    """The position behind `{}`, or -1."""
    if buf[at] != _OPEN:
        return -1
    at = _blanks(buf, at + 1)
    return at + 1 if buf[at] == _CLOSE else -1


@jit
def _member(
    buf: NDArray[np.uint8],
    words: NDArray[np.uint64],
    at: int,
    out: NDArray[np.uint8],
    out_words: NDArray[np.uint64],
    end: NDArray[np.int64],
) -> tuple[int, int]:
    """Read `"key": value` from `at` on; returns the kind of key and the position behind, -1 to give up.

    end: int64[3], where each column ends; moved when the value is one of them.
    """
    at = _blanks(buf, at)
    if buf[at] != _QUOTE:
        return _OTHER, -1
    kind, at = _key(buf, at + 1)
    if at < 0:
        return kind, -1
    at = _blanks(buf, at)
    if buf[at] != _COLON:
        return kind, -1
    at = _blanks(buf, at + 1)
    if kind == _METADATA:
        at = _empty_object(buf, at)
    elif buf[at] != _QUOTE:
        at = -1
    elif kind == _OTHER:
        at, _ = _string(buf, words, at + 1, out[3], out_words[3], 0)
    else:
        c = kind - 1
        at, end[c] = _string(buf, words, at + 1, out[c], out_words[c], end[c])
    return kind, at


@jit
def read_plain_documents(
    buf: NDArray[np.uint8],
    words: NDArray[np.uint64],
    out: NDArray[np.uint8],
    out_words: NDArray[np.uint64],
    ptr: NDArray[np.int64],
    end: NDArray[np.int64],
) -> int:
    """Cut lines of JSON objects into three text columns.

    buf: read-only whole lines, the last byte a line end; out: uint8[4, more than len(buf) + 8]; words,
    out_words: the same bytes as the little-endian words that start at each position; ptr: int64[3, lines + 1]
    with ptr[:, 0] = 0; end: int64[3], scratch, zero at first. The id, title and text columns are written to out[0..2]
    and ptr; out[3] takes texts nobody wants. Returns the number of documents, or -1 when any line is not an object
    of texts with an id that is not empty and a text, or is not valid JSON in valid UTF-8: such a block is for a
    parser that explains.
    """
    needed = 1 << _ID | 1 << _TEXT
    at = 0
    row = 0
    while at < len(buf):
        at = _blanks(buf, at)
        if buf[at] != _OPEN:
            return -1
        seen = 0
        separator = _COMMA
        while separator == _COMMA:
            kind, at = _member(buf, words, at + 1, out, out_words, end)
            if at < 0 or (kind != _OTHER and seen >> kind & 1):
                return -1
            seen |= 1 << kind
            at = _blanks(buf, at)
            separator = buf[at]
        if separator != _CLOSE or seen & needed != needed or end[0] == ptr[0, row]:
            return -1
        at = _blanks(buf, at + 1)
        if buf[at] != _NEWLINE:
            return -1
        at += 1
        row += 1
        for column in range(3):
            ptr[column, row] = end[column]
    return row
