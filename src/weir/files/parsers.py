"""Parse rankings and judgments in blocks, compiled or with numpy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.order import by_score, settled
from weir.core.qrels import Origins
from weir.core.strings import (
    Bytes,
    Float64,
    Ids,
    Int32,
    Int64,
    Strings,
    descending_bytes,
    hash_strings,
    load_words,
    take_strings,
)
from weir.errors import BadValue, FormatError
from weir.files.column_names import ColumnLayout
from weir.files.text_files import LineBuffer
from weir.kernels.jit import available, check_available, is_compiled
from weir.kernels.lines import (
    TREC,
    IdTable,
    LineShape,
    RowArrays,
    build_slots,
    hash_texts,
    order_rows,
    scan_lines,
)
from weir.settings import IDENTIFIER_BYTES

EngineName: TypeAlias = Literal["auto", "numpy", "numba"]
ENGINES: tuple[EngineName, ...] = ("auto", "numpy", "numba")
BLOCK_ROWS = 1 << 16
_PAD_BYTES = 32  # after a block's text: whole words may be read from any position of it
_SPARSE_TABLE_SLOTS = 1 << 16  # a table of fewer stays in the cache even when it is mostly empty

# Texts numbered by first appearance.


COMPARED_TEXTS = 1 << 15
"""Texts compared together, few enough to stay in the processor's cache."""


def distinct(data: Bytes, start: Int64, length: Int64, hashes: NDArray[np.uint64]) -> tuple[Int64, Int64]:
    """Return (code of each text, int64[n]; position of the first text with each code, int64[codes]).

    Codes count from 0 in the order of first appearance.

    start, length, hashes: position, bytes and hash of each text in `data`.
    """
    n = len(start)
    if n == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(hashes)
    order = order.astype(np.int32) if n < 1 << 31 else order  # half the memory to go through
    ordered = hashes[order]
    opens = np.ones(n, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=opens[1:])
    first = np.minimum.reduceat(order, np.flatnonzero(opens))
    group = np.cumsum(opens, dtype=order.dtype) - 1
    # Texts of one hash are nearly always the same: their bytes are compared with those of the first.
    same = True
    for at in range(0, n, COMPARED_TEXTS):
        a, b = order[at : at + COMPARED_TEXTS], first[group[at : at + COMPARED_TEXTS]]
        a, b = a[a != b], b[a != b]
        size = length[a]
        same = same and bool((size == length[b]).all())
        for done in range(0, int(size.max(initial=0)) if same else 0, 8):
            words, expected = (load_words(data, start[text] + done, size - done) for text in (a, b))
            same = same and bool((words == expected).all())
    if not same:
        numbers: dict[bytes, int] = {}
        texts = [data[at : at + n].tobytes() for at, n in zip(start.tolist(), length.tolist(), strict=True)]
        codes = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
        return codes, np.unique(codes, return_index=True)[1]
    is_first = np.zeros(n, np.bool_)
    is_first[first] = True
    codes = np.empty(n, np.int64)
    codes[order] = (np.cumsum(is_first, dtype=order.dtype) - 1)[first][group]
    return codes, np.flatnonzero(is_first)


def distinct_strings(strings: Strings) -> tuple[Int64, Strings]:
    """Return (number of each string by first appearance, int64[n]; the distinct strings in that order)."""
    start, length = strings.ptr[:-1], strings.lengths()
    codes, first = distinct(strings.data, start, length, hash_strings(strings.data, start, length))
    return codes, strings.take(first)


def differs_from_previous(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.bool_]:
    """Return bool[n], False for each text buf[start[i] : start[i] + length[i]] that equals the text before it."""
    change = np.ones(len(start), np.bool_)
    change[1:] = length[1:] != length[:-1]
    longest = int(length.max(initial=0))
    for done in range(0, longest, 8):
        word = load_words(buf, start + done, length - done)
        change[1:] |= word[1:] != word[:-1]
    return change


# A block of rows and its parsers.


@dataclass(frozen=True, eq=False)
class ParsedRows:
    """Rows of a run or judgments in file order, as offsets into a buffer of text."""

    start: Int64
    """int64[n]: offset of each document identifier; its length is in `length`, its hash in `hashes`."""
    length: Int64
    hashes: NDArray[np.uint64]
    score: Float64
    first: Int64
    """First row of each segment, a range of rows of one query."""
    query_start: Int64
    """Offset of each segment's query identifier, if it is in the block; its length is in `query_length`."""
    query_length: Int64
    bad: int = -1
    """Offset of the first invalid line, or -1."""
    bad_score: bool = False
    """True if nothing but the score of that line is invalid."""
    end_alike: bool = False
    """True if all TREC lines are known to have the same text after the score."""
    ranks: Callable[[int], Float64] | None = None
    """Returns the file's ranks of the first n rows, NaN for none; None if the file has no ranks."""
    unread: str = ""
    """In words, a column that is not read although its values differ; "" for none."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """A hash table that returns the position of identifiers in `ids`; without `ids` it finds nothing."""

    ids: Ids | None
    hashes: NDArray[np.uint64]
    slots: Int32
    """int32: open-addressing table of the hashes."""
    filter: NDArray[np.bool_]
    """bool[2**bits]: the top bits of hashes that occur."""

    @staticmethod
    def of(ids: Ids | None) -> Lookup:
        """Return a lookup of identifiers; None finds nothing."""
        strings = ids.strings if ids is not None else Strings.of([])
        hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
        bits = min(max(16, len(strings).bit_length() + 3), 24)
        present = np.zeros(1 << bits, np.bool_)
        present[(hashes >> np.uint64(64 - bits)).astype(np.int64)] = True
        # A small table is given room, so that most of what is not in it meets an empty slot at once.
        sparse = 8 if len(strings) < _SPARSE_TABLE_SLOTS else 2
        room = 1 << (sparse * len(strings)).bit_length() if ids is not None else 0
        return Lookup(ids, hashes, np.full(room, -1, np.int32), present)


@dataclass(frozen=True)
class Parser:
    """Functions that parse, rank and hash rows, with numpy or compiled, and their block size."""

    name: str
    block: int
    """Bytes of text in a block."""
    scan: Callable[[LineBuffer, int, ColumnLayout | None], ParsedRows]
    """Parses lines of a layout, or TREC's (None)."""
    rank: Callable[[Bytes, ParsedRows, Int64, Float64, Lookup], tuple[Int64, Int32, int]]
    """Returns (row order by query and rank; document codes in that order, -1 if not in the lookup; -1). If a
    row repeats a document, its number is returned in place of the last -1, and the rest is invalid."""
    hashes: Callable[[Bytes, Int64, Int64], NDArray[np.uint64]]
    """Hashes texts of a block padded by eight bytes."""


class LongIdentifierError(Exception):
    """Raised for an identifier of `size` bytes, too many, at offset `at` of a block."""

    def __init__(self, at: int, size: int) -> None:
        super().__init__(f"{size:,} bytes")
        self.at, self.size = at, size


def _refuse_long(start: Int64, length: Int64) -> None:
    if int(length.max(initial=0)) > IDENTIFIER_BYTES:
        row = int(length.argmax())
        raise LongIdentifierError(int(start[row]), int(length[row]))


class QuotedCellError(Exception):
    """Raised for a row that needs the general parser, such as a quoted separator."""


# Decimal numbers in a text buffer to correctly rounded doubles, many at once with numpy alone; and back.

# Scores: no "nan", "inf", hexadecimal or digit-group underscores, which float() would take.
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_POWERS = np.array([float(10**k) for k in range(23)], np.float64)  # exact
_PLAIN = (1e-4, 1e15)
"""Magnitudes written without an exponent."""
_BLOCK_NUMBERS, _LONGEST_PLAIN = 1 << 15, 24
_BLANK, _HASH, _END, _RETURN, _QUOTE, _MINUS, _PLUS, _ZERO, _NINE, _DOT = b' #\n\r"-+09.'
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
    """Return the value of a decimal number; NaN for other text and beyond a double."""
    if NUMBER.fullmatch(text) is None:
        return np.nan
    value = float(text)
    return value if np.isfinite(value) else np.nan


def parse_decimals(buf: Bytes, start: Int64, length: Int64) -> tuple[Float64, Int64]:
    """Return (numbers in the texts buf[start[i] : start[i] + length[i]], float64[n], NaN for other text; positions of
    other texts).
    """
    if length.max(initial=0) == 1 == length.min(initial=1):  # as grades nearly always are
        digit = buf[start] - np.uint8(_ZERO)
        if digit.max(initial=0) < 10:
            return digit.astype(np.float64), np.empty(0, np.int64)
    value = np.empty(len(start), np.float64)
    for at in range(0, len(start), _BLOCK_NUMBERS):
        stop = at + _BLOCK_NUMBERS
        value[at:stop] = _parse_plain(buf, start[at:stop], length[at:stop])
        rest = at + np.flatnonzero(np.isnan(value[at:stop]))
        value[rest] = _parse_long(buf, start[rest], length[rest])
    bad = []
    for i in np.flatnonzero(np.isnan(value)).tolist():
        value[i] = parse_slowly(buf[start[i] : start[i] + length[i]].tobytes())
        if np.isnan(value[i]):
            bad.append(i)
    return value, np.array(bad, np.int64)


def _parse_long(buf: Bytes, start: Int64, length: Int64) -> Float64:
    # Of digits with at most one dot, checked all at once, as Python reads them; NaN for other text.
    value = np.full(len(start), np.nan)
    place = np.arange(_LONGEST_PLAIN)
    inside = place < length[:, None]
    text = np.where(inside, buf[np.minimum(start[:, None] + place, len(buf) - 1)], np.uint8(0))
    digit, dot = text - np.uint8(_ZERO) < 10, text == _DOT
    plain = (digit | dot | ~inside).all(axis=1) & (length <= _LONGEST_PLAIN)
    plain &= (dot.sum(axis=1) <= 1) & digit.any(axis=1)
    value[plain] = list(map(float, text[plain].view(f"S{_LONGEST_PLAIN}").ravel().tolist()))
    return value


def _parse_plain(buf: Bytes, start: Int64, length: Int64) -> Float64:
    lead = buf[start]
    negative = lead == _MINUS
    signed = negative | (lead == _PLUS)
    start, length = start + signed, length - signed
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
    for stop, digits in ((start + whole, whole), (end - 8, places - 8), (end, np.minimum(places, 8))):
        count = np.clip(digits, 0, 8)
        if count.any():
            word = load_words(buf, np.maximum(stop - 8, 0), np.full(len(stop), 8))
            mask = _LAST[count]
            word = (word & mask) | (_ZEROS & ~mask)
            good &= (((word + _OVER_9) | (word - _ZEROS)) & _HIGHS) == 0
            word -= _ZEROS
            # Neighbouring digits are joined to pairs, pairs to fours, fours to eight, all in one word.
            word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
            word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
            word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
            mantissa = mantissa * _TENS[count] + word
    # mantissa / 10**places, correctly rounded, or NaN where double arithmetic cannot tell. Up to 2**53 both are exact
    # doubles and one division rounds once (Clinger). Beyond, the division is repeated on its own remainder (Dekker's
    # exact products): the quotient is then a sum of two doubles, good to about 100 bits, enough unless the true value
    # lies next to a midpoint.
    high = mantissa.astype(np.float64)
    divisor = _POWERS[np.where(good, places, 0)]
    value: Float64 = high / divisor
    wide = np.flatnonzero(mantissa > np.uint64(1 << 53))
    if len(wide):
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
    value[~good] = np.nan
    return np.negative(value, out=value, where=negative)


def number_texts(numbers: NDArray[np.float64 | np.integer]) -> list[str]:
    """Return each number as text, as Python's repr writes it."""
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


# The parser in numpy alone: TREC's columns, separated cells, their rows in order.

_KIND = np.zeros(256, np.uint8)  # 1: between columns, 2: ends a line
_KIND[[9, 11, 12, 13, 32]] = 1
_KIND[_END] = 2


@dataclass(frozen=True, eq=False)
class CellTable:
    """Byte offsets of the cells of each line in a buffer."""

    start: Int64
    """int64[rows, columns]; missing last columns have start = end."""
    end: Int64
    bad: int = -1
    """Offset of the first line with a wrong number of columns, before which the rows stop; -1 for none."""


def split_columns(buf: Bytes, stop: int, fewest: int, most: int, remarks: bool = False) -> CellTable:
    """Return the cells of the lines in buf[:stop], split at white space, without blank lines and comments (#).

    fewest, most: columns of a line; another number ends the table and sets `bad`.
    remarks: ignore further columns of a TREC run.
    """
    space = np.flatnonzero(buf[:stop] <= 32)
    kind = _KIND[buf[space]]
    if not kind.all():  # control characters inside an identifier
        space, kind = space[kind > 0], kind[kind > 0]
    before = np.zeros(len(space), np.int64)  # the first byte after the white space before
    np.add(space[:-1], 1, out=before[1:])
    ends, filled = kind == 2, before < space
    if (
        len(space) and len(space) % most == 0 and filled.all()
    ):  # `most` columns and one separator between them?
        marks, heads = ends.reshape(-1, most), before[::most]
        if marks[:, -1].all() and not marks[:, :-1].any() and not (buf[heads] == _HASH).any():
            return CellTable(before.reshape(-1, most), space.reshape(-1, most))
    start, end, line = before[filled], space[filled], (np.cumsum(ends) - ends)[filled]
    if len(start) == 0:
        return CellTable(np.empty((0, most), np.int64), np.empty((0, most), np.int64))
    head = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    count = np.diff(head, append=len(line))
    rows = buf[start[head]] != _HASH
    head, count = head[rows], count[rows]
    wide = count > most
    if remarks and wide.any():
        first, marked = head[wide], (end - start == 2) & (buf[start] | 32 == 113) & (buf[start + 1] == _ZERO)
        tag, marks = buf[start[first + 5]], np.bincount(line[marked], minlength=line[-1] + 1)[line[first]]
        text = marked[first + 1] & (marks - marked[first] == 1) & ((tag < _PLUS) | (tag > _NINE))
        wide[wide] = ~text & (buf[start[first + most]] != _HASH)
    wrong = np.flatnonzero((count < fewest) | wide)
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head, count = head[: wrong[0]], count[: wrong[0]]
    at = head[:, None] + np.minimum(np.arange(most), count[:, None] - 1)
    start, end = start[at], end[at]
    absent = np.arange(most) >= count[:, None]
    start[absent] = end[absent]
    return CellTable(start, end, bad)


def split_cells(buf: Bytes, stop: int, separator: str, cells: int, exact: bool) -> CellTable:
    """Return the cells, possibly empty, of the lines in buf[:stop], without empty lines.

    cells: columns of a line; any other number ends the table and sets `bad`.
    exact: keep white space and strip quotation marks around cells, rather than strip white space and skip comments.

    Raises QuotedCellError for quotation marks that may be misread.
    """
    cut = np.flatnonzero((buf[:stop] == ord(separator)) | (buf[:stop] == _END))
    ends = buf[cut] == _END
    start, end = np.zeros(len(cut), np.int64), cut.copy()
    np.add(cut[:-1], 1, out=start[1:])
    last, bad = np.flatnonzero(ends), -1
    if exact:
        end[last] -= (cut[last] > start[last]) & (buf[cut[last] - 1] == _RETURN)
    else:
        while (blank := (start < end) & (_KIND[buf[start]] > 0)).any():
            start = start + blank
        while (blank := (start < end) & (_KIND[buf[end - 1]] > 0)).any():
            end = end - blank
    if len(cut) % cells or not (ends.reshape(-1, cells) == (np.arange(cells) == cells - 1)).all():
        count = np.diff(last, prepend=-1)
        head = last - count + 1
        filled = start[head] < end[head]
        if not exact:
            filled &= buf[start[head]] != _HASH
        filled |= count > 1
        head, count = head[filled], count[filled]
        wrong = np.flatnonzero(count != cells)
        if len(wrong):
            if exact and (buf[start] == _QUOTE).any():  # which may be why
                raise QuotedCellError
            bad, head = int(start[head[wrong[0]]]), head[: wrong[0]]
        at = head[:, None] + np.arange(cells)
        start, end = start[at].ravel(), end[at].ravel()
    if exact and (quoted := buf[start] == _QUOTE).any():
        around = (end - start > 1) & (buf[end - 1] == _QUOTE)
        if np.count_nonzero(buf[:stop] == _QUOTE) != 2 * quoted.sum() or not around[quoted].all():
            raise QuotedCellError
        start += quoted
        end -= quoted
    return CellTable(start.reshape(-1, cells), end.reshape(-1, cells), bad)


def ranks_in(buf: Bytes, start: Int64, length: Int64) -> Float64:
    """Return the numbers in the texts buf[start[i] : start[i] + length[i]], float64[n]; NaN for other text."""
    rank, wrong = parse_decimals(buf, start, length)
    rank[wrong] = np.nan
    return rank


def ranks_behind(buf: Bytes, start: Int64, length: Int64) -> Float64:
    """Return the ranks in TREC lines, float64[n], NaN for other text, given the places of the documents
    before them.
    """
    at = start + length
    while (blank := _KIND[buf[at]] == 1).any():
        at = at + blank
    end = at
    while (inside := buf[end] > _BLANK).any():
        end = end + inside
    return ranks_in(buf, at, end - at)


def _scan_with_numpy(buffer: LineBuffer, stop: int, layout: ColumnLayout | None) -> ParsedRows:
    buf = buffer.buf
    if layout is not None:
        table = split_cells(buf, stop, layout.separator, len(layout.names), exact=True)
        columns = (layout.query, layout.doc, layout.number)
        odd = np.flatnonzero((table.start == table.end)[:, columns[:2]].any(axis=1))  # without an identifier
    else:
        table, columns = split_columns(buf, stop, 5, 6, remarks=True), (0, 2, 4)
        rank, second = buf[table.start[:, 3]], table.start[:, 1]
        # A rank begins as numbers do; a line without a tag is one of TREC's only with the letters Q0.
        wrong = (rank < _PLUS) | (rank > _NINE)
        bare = np.flatnonzero(table.start[:, 5] == table.end[:, 5])
        letters = (buf[second[bare]] | 32 == 113) & (buf[second[bare] + 1] == _ZERO)
        wrong[bare] |= ~letters | (table.end[bare, 1] != second[bare] + 2)
        odd = np.flatnonzero(wrong)
    if len(odd):
        row = int(odd[0])
        table = CellTable(table.start[:row], table.end[:row], int(table.start[row, 0]))
    return table_rows(buf, table, columns)


def table_rows(buf: Bytes, table: CellTable, columns: tuple[int, ...]) -> ParsedRows:
    """Return rows of a run or judgments from cells; `bad` becomes the first row without a finite number.

    columns: positions of query, document and number; without the third, all numbers are 1.

    Raises LongIdentifierError.
    """
    starts = np.ascontiguousarray(table.start.T[list(columns)])
    (query, doc, *number), (query_length, doc_length, *number_length) = (
        starts,
        table.end.T[list(columns)] - starts,
    )
    _refuse_long(query, query_length)
    _refuse_long(doc, doc_length)
    score, wrong = np.ones(len(query)), np.empty(0, np.int64)
    if number:
        score, wrong = parse_decimals(buf, number[0], number_length[0])
    first = np.flatnonzero(differs_from_previous(buf, query, query_length))
    hashes = hash_strings(buf, doc, doc_length)
    rows = ParsedRows(doc, doc_length, hashes, score, first, query[first], query_length[first], table.bad)
    return replace(rows, bad=int(table.start[wrong[0], 0]), bad_score=True) if len(wrong) else rows


def _rank_with_numpy(
    buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup
) -> tuple[Int64, Int32, int]:
    query = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    pair = rows.hashes ^ (query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    ordered = np.sort(pair)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):  # nearly always documents that a query has twice: the bytes of those few rows decide
        documents: set[tuple[int, bytes]] = set()
        for row in np.flatnonzero(np.isin(pair, repeated)).tolist():
            start, length = int(rows.start[row]), int(rows.length[row])
            document = (int(query[row]), buf[start : start + length].tobytes())
            if document in documents:
                return np.empty(0, np.int64), np.empty(0, np.int32), int(row)
            documents.add(document)

    def tie_ranks(tied: Int64) -> Int64:  # places of documents in descending byte order
        place = np.empty(len(tied), np.int64)
        place[descending_bytes(take_strings(buf, rows.start[tied], rows.length[tied]))] = np.arange(len(tied))
        return place

    order = settled(by_score(query, key), query, key, tie_ranks)
    code = np.full(len(order), -1, np.int32)
    if lookup.ids is not None and len(lookup.ids):
        bits = len(lookup.filter).bit_length() - 1
        at = np.flatnonzero(lookup.filter[(rows.hashes >> np.uint64(64 - bits)).astype(np.int64)])
        code[at] = lookup.ids.codes(take_strings(buf, rows.start[at], rows.length[at]))
    return order, code.take(order), -1


NUMPY_PARSER = Parser("numpy", 2 << 20, _scan_with_numpy, _rank_with_numpy, hash_strings)

# The compiled parser of blocks of lines, and which parser reads a file; both give the same rows.

_WORTH_COMPILING, _WORTH_LOADING = 128 << 20, 4 << 20
"""Sizes in bytes below which numpy is faster than compiling kernels (seconds) or loading them (0.1 s)."""

_LEAST_ROW_BYTES = 10  # bytes of a row of TREC's: five columns, four separators and the end of the line


def choose_engine(name: EngineName, size: int) -> Parser:
    """Return the parser of this name; "auto" chooses the faster installed one for `size` bytes.

    Raises BadValue for an unknown name, MissingExtra for "numba" if missing.
    """
    if name not in ENGINES:
        raise BadValue(f"engine is '{name}'; expected one of {', '.join(ENGINES)}")
    if name == "auto":
        large = size >= _WORTH_COMPILING or (size >= _WORTH_LOADING and is_compiled("lines"))
        name = "numba" if large and available() else "numpy"
    if name == "numba":
        check_available()
        return NUMBA_PARSER
    return NUMPY_PARSER


def row_arrays(room: int) -> RowArrays:
    """Return uninitialised arrays for a compiled scan of up to `room` rows."""
    start, length = np.empty((2, room), np.int64)
    segment, slow = np.empty((2, room, 3), np.int64)
    return RowArrays(start, length, np.empty(room, np.uint64), np.empty(room, np.float64), segment, slow)


def filled_rows(buf: Bytes, arrays: RowArrays, n: int, segments: int, slows: int) -> tuple[ParsedRows, int]:
    """Return (rows of a compiled scan, position of the first row without a finite score or -1).

    n, segments, slows: numbers of rows, segments and unparsed scores.

    Raises LongIdentifierError.
    """
    first, query_start, query_length = arrays.segment[:segments].T.copy()
    _refuse_long(arrays.start[:n], arrays.length[:n])
    _refuse_long(query_start, query_length)
    wrong = -1
    for row, at, size in arrays.slow[:slows].tolist():
        arrays.score[row] = parse_slowly(buf[at : at + size].tobytes())
        if np.isnan(arrays.score[row]):
            wrong = row
            break
    start, length, hashes, score = (arrays.start[:n], arrays.length[:n], arrays.hashes[:n], arrays.score[:n])
    return ParsedRows(start, length, hashes, score, first, query_start, query_length), wrong


def _scan_compiled(buffer: LineBuffer, stop: int, layout: ColumnLayout | None) -> ParsedRows:
    if layout is None:
        shape, row_bytes = TREC, _LEAST_ROW_BYTES
    else:
        row_bytes = len(layout.names)
        shape = LineShape(ord(layout.separator), row_bytes, layout.query, layout.doc, layout.number)
    room, arrays = stop // row_bytes + 1, buffer.rows
    if arrays is None or len(arrays.start) < room:
        arrays = buffer.rows = row_arrays(room)
    edge = np.zeros(2 * shape.cells + 1, np.int64)
    *counts, tails, bad, quoted = scan_lines(buffer.buf, buffer.words, stop, shape, arrays, edge)
    if quoted:
        raise QuotedCellError
    rows, wrong = filled_rows(buffer.buf, arrays, *counts)
    if wrong >= 0:
        bad = buffer.begin_of_line(int(rows.start[wrong]))
    return replace(rows, bad=int(bad), bad_score=wrong >= 0, end_alike=tails == 0)


def _hash_compiled(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.uint64]:
    hashes = np.empty(len(start), np.uint64)
    words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
    hash_texts(words, start, length, hashes)
    return hashes


def _rank_compiled(
    buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup
) -> tuple[Int64, Int32, int]:
    def read_only(values: NDArray[Any]) -> NDArray[Any]:
        # Read-only arrays have a type of their own: identifiers come memory-mapped or not, the kernel is one.
        view = values.view()
        view.flags.writeable = False
        return view

    n = len(rows.start)
    longest = int(np.diff(cuts).max(initial=0))
    slots = np.empty(1 << (4 * longest + 2).bit_length(), np.int32)
    order, spare, doc = np.empty(n, np.int64), np.empty(longest, np.int64), np.empty(n, np.int32)
    strings = lookup.ids.strings if lookup.ids is not None else Strings.of([])
    if len(lookup.slots) and len(strings) and lookup.slots.max() < 0:
        build_slots(lookup.hashes, lookup.slots)
    data, ptr = read_only(strings.data), read_only(np.ascontiguousarray(strings.ptr, np.int64))
    table = IdTable(lookup.slots, lookup.hashes, data, ptr)
    twice = order_rows(buf, rows.start, rows.length, rows.hashes, key, cuts, table, slots, spare, order, doc)
    return order, doc, int(twice)


NUMBA_PARSER = Parser("numba", 4 << 20, _scan_compiled, _rank_compiled, _hash_compiled)

# Blocks of whole queries, with the bytes of their documents, from any format.


@dataclass(frozen=True, eq=False)
class RankingBlock:
    """Complete rankings or judgments of some queries, with the buffer that holds their identifiers."""

    buf: Bytes
    rows: ParsedRows
    queries: Strings
    """Query identifier of each segment."""
    place: Callable[[int], str]
    """Returns the place of a row in the file, such as ", line 7"."""


@dataclass(frozen=True)
class ReadOptions:
    """Settings for reading rows: parser, in blocks or at once, quotation marks."""

    engine: Parser
    whole: bool = False
    """Read all rows in one block."""
    quoted: bool = False
    """Use the general parser, for quotation marks."""


@dataclass(frozen=True)
class Source:
    """A run or judgments to be read in blocks of rows."""

    name: object
    """Name for messages."""
    size: int
    """Approximate bytes as text."""
    blocks: Callable[[ReadOptions], Iterator[RankingBlock]]
    origins: Callable[[], Origins | None] | None = None
    """Returns the origin of each judgment in row order; None without any."""


def text_blocks(
    path: Path, scan: Callable[[LineBuffer, int], ParsedRows], size: int, whole: bool, header: int = 0
) -> Iterator[RankingBlock]:
    """Yield the rows of a text file in blocks of whole queries, each valid until the next.

    scan: parses complete lines at the beginning of a buffer.
    size: bytes of a block.
    whole: yield a single block.
    header: lines to skip.

    Raises FormatError for a too long identifier, and the errors of `scan`.
    """
    buffer = LineBuffer(path, size)
    with buffer.file:
        for _ in range(header):
            while buffer.fill() == 0 and not buffer.ended:
                buffer.grow()
            buffer.consume(buffer.text.find(b"\n") + 1)
        while True:
            stop = buffer.fill()
            if stop == 0 and buffer.ended:
                return
            if stop == 0 or (whole and not buffer.ended):
                buffer.grow()
                continue
            try:
                rows = scan(buffer, stop)
            except LongIdentifierError as error:
                expected, line = f"at most {IDENTIFIER_BYTES:,}", buffer.line_of(error.at)
                raise FormatError(path, f"an identifier of {error}", expected, line) from None
            if not buffer.ended and len(rows.first):
                if len(rows.first) == 1:  # the query may go on: see all of it
                    buffer.grow()
                    continue
                stop, n = buffer.begin_of_line(int(rows.query_start[-1])), int(rows.first[-1])
                start, length, hashes, score = (
                    rows.start[:n],
                    rows.length[:n],
                    rows.hashes[:n],
                    rows.score[:n],
                )
                query = rows.first[:-1], rows.query_start[:-1], rows.query_length[:-1]
                rows = ParsedRows(start, length, hashes, score, *query, ranks=rows.ranks)

            def place_of_row(row: int, starts: Int64 = rows.start) -> str:
                return f", line {buffer.line_of(int(starts[row]))}"

            queries = take_strings(buffer.buf, rows.query_start, rows.query_length)
            yield RankingBlock(buffer.buf, rows, queries, place_of_row)
            if buffer.ended:
                return
            buffer.consume(stop)


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Consecutive rows of a run or judgments, as columns."""

    queries: Strings
    """Query identifier of each segment, a range of rows of one query."""
    first: Int64
    """int64: first row of each segment."""
    docs: Strings
    """Document identifier of each row."""
    score: Float64
    rank: Float64 | None = None
    """float64[rows], NaN for no rank; None if the table has no ranks."""

    def __len__(self) -> int:
        return len(self.score)

    @staticmethod
    def joined(chunks: list[TableChunk]) -> TableChunk:
        """Return the rows of all chunks as one chunk; a query that continues in the next chunk is not split."""
        begin = np.cumsum([0, *map(len, chunks)])
        queries = Strings.concatenated([c.queries for c in chunks])
        opens = differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths())
        first = np.concatenate([c.first + row for c, row in zip(chunks, begin, strict=False)])[opens]
        docs = Strings.concatenated([c.docs for c in chunks])
        score = np.concatenate([c.score for c in chunks])
        ranks = [np.full(len(c), np.nan) if c.rank is None else c.rank for c in chunks]
        rank = None if all(c.rank is None for c in chunks) else np.concatenate(ranks)
        return TableChunk(queries.take(np.flatnonzero(opens)), first, docs, score, rank)

    def split(self) -> tuple[TableChunk, TableChunk]:
        """Return (rows before the last query, rows of the last query)."""
        cut, last = int(self.first[-1]), len(self.first) - 1
        docs = (self.docs.slice(0, cut), self.docs.slice(cut, len(self)))
        before, after = (None, None) if self.rank is None else (self.rank[:cut], self.rank[cut:])
        head = TableChunk(self.queries.slice(0, last), self.first[:-1], docs[0], self.score[:cut], before)
        rest = TableChunk(
            self.queries.slice(last, last + 1), self.first[:1], docs[1], self.score[cut:], after
        )
        return head, rest

    def block(self, engine: Parser, place: Callable[[int], str]) -> RankingBlock:
        """Return these rows as a block, hashed by `engine`.

        place: returns where row i, from 0, is in the file, such as ", line 7".
        """
        data = np.append(self.docs.data, np.zeros(_PAD_BYTES, np.uint8))
        start, length, queries = self.docs.ptr[:-1], self.docs.lengths(), self.queries
        hashes, at = engine.hashes(data, start, length), queries.ptr[:-1]
        rank = self.rank
        ranks = None if rank is None else lambda count: rank[:count]
        rows = ParsedRows(start, length, hashes, self.score, self.first, at, queries.lengths(), ranks=ranks)
        return RankingBlock(data, rows, queries, place)


def table_blocks(
    chunks: Iterable[TableChunk], engine: Parser, whole: bool, place: Callable[[int], str]
) -> Iterator[RankingBlock]:
    """Yield chunks of rows as blocks of whole queries; with `whole` as one block.

    place: returns where row i, from 0, is in the file, such as ", line 7".
    """
    pending: list[TableChunk] = []
    count, done, limit = 0, 0, BLOCK_ROWS
    for chunk in chunks:
        pending.append(chunk)
        count += len(chunk)
        if whole or count < limit:
            continue
        pending = [TableChunk.joined(pending)]
        if len(pending[0].first) == 1:  # one query, which may go on
            limit *= 2
            continue
        head, rest = pending[0].split()
        yield head.block(engine, lambda row, before=done: place(before + row))  # type: ignore[misc]  # an int
        done += len(head)
        pending, count, limit = [rest], len(rest), BLOCK_ROWS
    if count:
        yield TableChunk.joined(pending).block(engine, lambda row: place(done + row))
