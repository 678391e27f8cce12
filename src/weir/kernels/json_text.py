"""Parse JSON rankings and JSON lines of documents by compiled code."""

from __future__ import annotations

import numpy as np

from weir.kernels.arrays import Bytes, Int64, UInt64
from weir.kernels.jit import jit
from weir.kernels.lines import ONES, Int, RowArrays, dot_at, first_of, hash_bytes, hash_short, number_of

# A compiled reader of {"query": {"document": number}}: from JSON text to rows, and silent about anything unusual.
#
# Words as in `lines.py`; the slow reference is `weir.files.json_files.read_nested`.

MORE, ENDED, FULL, ODD = 0, 1, 2, 3  # how a scan stops

_BELOW_32, _QUOTES, _BACKSLASHES = (np.uint64(byte) * ONES for byte in (32, 34, 92))


@jit
def _skip(buf: Bytes, at: int) -> Int:
    while buf[at] == 32 or buf[at] == 10 or buf[at] == 13 or buf[at] == 9:
        at += 1
    return at


@jit
def _is_number(first: int, second: int, third: int, last: int) -> bool:
    if first == 45:
        first, second = second, third
    digits = first >= 48 and first <= 57 and last >= 48 and last <= 57
    return digits and not (first == 48 and second >= 48 and second <= 57)


@jit
def scan_object(
    buf: Bytes, words: UInt64, at: int, stop: int, most: int, rows: RowArrays
) -> tuple[int, int, int, int, int]:
    """Read queries of a JSON run, {query: {document: score}}, from position `at` into `rows`, until it has more
    than `most` rows.

    Returns (rows, segments, scores left to the general parser, position, state). State: MORE, a query starts at
    the position; ENDED, the object ended; FULL, no room for the query there; ODD, other than plain names and
    numbers. buf[stop:] must be zero.
    """
    start, length, hashes, score, segment, slow = (
        rows.start, rows.length, rows.hashes, rows.score, rows.segment, rows.slow,
    )  # fmt: skip
    n, segments, slows, in_query = 0, 0, 0, False
    query, rows_before, slows_before = at, 0, 0  # where the query begins, and the counts there
    while True:
        at = _skip(buf, at) if buf[at] <= 32 else at
        if buf[at] != 34:
            break
        name, at, step = at + 1, at + 1, 8
        while step == 8:
            step = first_of(words[at], _QUOTES, _BACKSLASHES, _BELOW_32)
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
        if not in_query:
            if buf[at] != 123:
                break
            segment[segments, 0], segment[segments, 1], segment[segments, 2] = n, name, size
            in_query, at = True, at + 1
            continue
        if n == len(start):
            return rows_before, segments, slows_before, query, FULL
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
        segments, in_query, at = segments + 1, False, _skip(buf, at + 1)
        if buf[at] == 125:
            return n, segments, slows, at + 1, ENDED
        if buf[at] != 44:
            break
        query, rows_before, slows_before, at = at + 1, n, slows, at + 1
        if n > most:
            return n, segments, slows, at, MORE
    return rows_before, segments, slows_before, query, ODD


# Reads JSON lines of plain documents: objects with `_id`, `text`, perhaps `title`, nothing surprising.

_SPACE, _TAB, _RETURN, _NEWLINE = 32, 9, 13, 10
_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE = 34, 92, 58, 44, 123, 125
_ESCAPED = np.zeros(256, np.uint8)
_ESCAPED[list(b'"\\/ntrbf')] = list(b'"\\/\n\t\r\b\f')
_OTHER, _ID, _TITLE, _TEXT, _METADATA = 0, 1, 2, 3, 4
_BYTES_4, _BYTES_5, _BYTES_6 = (np.uint64((1 << 8 * n) - 1) for n in (4, 5, 6))
_ID_8, _TEXT_8, _TITLE_8, _METADATA_8 = (
    np.uint64(int.from_bytes(name, "little")) for name in (b'_id"', b'text"', b'title"', b"metadata")
)


@jit
def _blanks(buf: Bytes, at: int) -> int:
    while buf[at] == _SPACE or buf[at] == _TAB or buf[at] == _RETURN:
        at += 1
    return at


@jit
def _hex(buf: Bytes, at: int) -> int:
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
def _put(out: Bytes, to: int, character: int) -> int:
    if character < 0x80:
        out[to] = character
        return to + 1
    more = 1 + (character >= 0x800) + (character >= 0x10000)
    out[to] = ((0xFF00 >> (more + 1)) & 0xFF) | character >> 6 * more
    for i in range(more):
        out[to + more - i] = 0x80 | character >> 6 * i & 0x3F
    return to + more + 1


@jit
def _string(buf: Bytes, words: UInt64, at: int, out: Bytes, out_words: UInt64, to: int) -> tuple[int, int]:
    while True:
        step = 8
        while step == 8 and at < len(words):
            out_words[to] = words[at]
            step = first_of(words[at], _QUOTES, _BACKSLASHES, _BELOW_32)
            at += step
            to += step
        c = buf[at]
        if c == _QUOTE:
            return at + 1, to
        if c < 0x20:
            return -1, to
        if c != _BACKSLASH:  # so near the end that there is no word
            out[to] = c
            at += 1
            to += 1
            continue
        c = buf[at + 1]
        at += 2
        if c == 117:
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
            to = _put(out, to, character)
        elif _ESCAPED[c] > 0:
            out[to] = _ESCAPED[c]
            to += 1
        else:
            return -1, to


@jit
def _key(buf: Bytes, words: UInt64, at: int) -> tuple[int, int]:
    if at >= len(words):
        return _OTHER, -1
    word = words[at]
    if word & _BYTES_4 == _ID_8:
        return _ID, at + 4
    if word & _BYTES_5 == _TEXT_8:
        return _TEXT, at + 5
    if word & _BYTES_6 == _TITLE_8:
        return _TITLE, at + 6
    if word == _METADATA_8 and buf[at + 8] == _QUOTE:
        return _METADATA, at + 9
    return _OTHER, -1


@jit
def _empty_object(buf: Bytes, at: int) -> int:
    if buf[at] != _OPEN:
        return -1
    at = _blanks(buf, at + 1)
    return at + 1 if buf[at] == _CLOSE else -1


@jit
def _member(buf: Bytes, words: UInt64, at: int, out: Bytes, out_words: UInt64, end: Int64) -> tuple[int, int]:
    at = _blanks(buf, at)
    if buf[at] != _QUOTE:
        return _OTHER, -1
    kind, at = _key(buf, words, at + 1)
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
    else:
        c = kind - 1
        at, end[c] = _string(buf, words, at + 1, out[c], out_words[c], end[c])
    return kind, at


@jit
def read_plain_documents(
    buf: Bytes, words: UInt64, out: Bytes, out_words: UInt64, ptr: Int64, end: Int64
) -> int:
    """Write the ids, titles and texts of JSON lines as columns; return the number of documents, or -1 for a
    line of another form.

    buf: whole lines of valid UTF-8: objects with nonempty id, text, and perhaps title and empty metadata.
    words, out_words: `buf` and `out` as overlapping little-endian words.
    out: uint8[3, more than len(buf) + 8], receives ids, titles and texts.
    ptr: int64[3, lines + 1] with ptr[:, 0] = 0, receives the offsets.
    end: int64[3], scratch, zero at first.
    """
    required = 1 << _ID | 1 << _TEXT
    at = 0
    row = 0
    while at < len(buf):
        at = _blanks(buf, at)
        if buf[at] != _OPEN:
            return -1
        keys = 0
        separator = _COMMA
        while separator == _COMMA:
            kind, at = _member(buf, words, at + 1, out, out_words, end)
            if at < 0 or keys >> kind & 1:
                return -1
            keys |= 1 << kind
            at = _blanks(buf, at)
            separator = buf[at]
        if separator != _CLOSE or keys & required != required or end[0] == ptr[0, row]:
            return -1
        at = _blanks(buf, at + 1)
        if buf[at] != _NEWLINE:
            return -1
        at += 1
        row += 1
        for column in range(3):
            ptr[column, row] = end[column]
    return row
