"""Parsers of blocks of lines: compiled, or numpy alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.order import by_score, settled
from weir.core.strings import (
    Bytes,
    Float64,
    Int64,
    Strings,
    descending_bytes,
    hash_strings,
    load_words,
)
from weir.errors import BadValue
from weir.files.blocks import (
    ENGINES,
    EngineName,
    Lookup,
    ParsedRows,
    Parser,
    QuotedCellError,
    RankedRows,
    differs_from_previous,
    refuse_long,
    take_strings,
)
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

# Decimal numbers in a text buffer to correctly rounded doubles, many at once with numpy alone; and back.

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
    """Plain decimals such as `12345678.1234567812345678`, of up to 19 digits altogether; NaN for everything else."""
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
    late = np.minimum(places, 8)
    for stop, wanted in ((start + whole, whole), (end - 8, places - 8), (end, late)):
        count = np.clip(wanted, 0, 8)
        if count.any():
            number, digits = _eight_digits(buf, np.maximum(stop - 8, 0), count)
            mantissa = mantissa * _TENS[count] + number
            good &= digits
    value = _quotients(mantissa, np.where(good, places, 0))
    value[~good] = np.nan
    return np.negative(value, out=value, where=negative)


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


# The parser of blocks of lines in numpy alone: TREC's columns, separated cells, their rows in order.

_KIND = np.zeros(256, np.uint8)  # 1: between columns, 2: ends a line
_KIND[[9, 11, 12, 13, 32]] = 1
_KIND[10] = 2
_HASH = 35
_END, _RETURN, _QUOTE = 10, 13, 34
_DIGITS = (48, 57)


@dataclass(frozen=True, eq=False)
class WhitespaceTable:
    """Where the columns of each line stand.

    start, end: int64[rows, columns]; a line that lacks the last columns repeats its end there. bad: the
    position of the first line with too few or too many columns, or -1; rows stop before it. wide: the rows
    that have more columns than these.
    """

    start: Int64
    end: Int64
    bad: int = -1
    wide: Int64 = field(default_factory=lambda: np.empty(0, np.int64))


def _regular(buf: Bytes, space: Int64, kind: NDArray[np.uint8], most: int) -> WhitespaceTable | None:
    """The table of lines that all have `most` columns with one separator between them; None otherwise."""
    if len(space) == 0 or len(space) % most:
        return None
    marks = kind.reshape(-1, most)
    if not (marks[:, -1] == 2).all() or (marks[:, :-1] == 2).any():
        return None
    start = np.empty(len(space), np.int64)
    start[0] = 0
    np.add(space[:-1], 1, out=start[1:])
    if not (start < space).all():
        return None
    rows = start.reshape(-1, most)
    if (buf[rows[:, 0]] == _HASH).any():
        return None
    return WhitespaceTable(rows, space.reshape(-1, most))


def split_columns(buf: Bytes, stop: int, fewest: int, most: int, more: bool = False) -> WhitespaceTable:
    """Split the lines of buf[:stop] into columns; blank lines and lines that start with `#` are no rows.

    fewest, most: accepted numbers of columns; more: a line may have more than `most`, which are then left out.

    buf[stop - 1] is a line end. Columns stand between blanks or tabs, however many; lines may end in CRLF.
    """
    space = np.flatnonzero(buf[:stop] <= 32)
    kind = _KIND[buf[space]]
    if not kind.all():  # control characters inside an identifier
        space, kind = space[kind > 0], kind[kind > 0]
    table = _regular(buf, space, kind, most)
    if table is not None:
        return table
    before = np.empty(len(space), np.int64)  # the first byte after the white space before
    before[:1] = 0
    np.add(space[:-1], 1, out=before[1:])
    filled = before < space
    line = np.cumsum(kind == 2) - (kind == 2)
    start, end, line = before[filled], space[filled], line[filled]
    if len(start) == 0:
        return WhitespaceTable(np.empty((0, most), np.int64), np.empty((0, most), np.int64))
    head = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    count = np.diff(np.append(head, len(line)))
    rows = buf[start[head]] != _HASH
    head, count = head[rows], count[rows]
    wrong = np.flatnonzero((count < fewest) | ((count > most) & (not more)))
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head, count = head[: wrong[0]], count[: wrong[0]]
    at = head[:, None] + np.minimum(np.arange(most), count[:, None] - 1)
    start, end = start[at], end[at]
    absent = np.arange(most) >= count[:, None]
    start[absent] = end[absent]
    return WhitespaceTable(start, end, bad, np.flatnonzero(count > most))


def split_cells(buf: Bytes, stop: int, columns: int) -> WhitespaceTable:
    """Split the lines of buf[:stop] at tabs; white space around cells is no part of them.

    buf[stop - 1] is a line end. Every line must have the given number of cells, of which some may be empty;
    blank lines and lines without a tab that start with `#` are no rows.
    """
    cut = np.flatnonzero((buf[:stop] == 9) | (buf[:stop] == 10))
    ends_line = buf[cut] == 10
    start = np.empty(len(cut), np.int64)
    start[:1] = 0
    np.add(cut[:-1], 1, out=start[1:])
    end = cut.copy()
    while (left := (start < end) & (_KIND[buf[start]] > 0)).any():
        start = start + left
    while (right := (start < end) & (_KIND[buf[end - 1]] > 0)).any():
        end = end - right
    last = np.flatnonzero(ends_line)
    count = np.diff(last, prepend=-1)
    head = last - count + 1
    # A line without a tab is no row when it is blank or a comment.
    filled = (count > 1) | ((start[head] < end[head]) & (buf[start[head]] != _HASH))
    head, count = head[filled], count[filled]
    wrong = np.flatnonzero(count != columns)
    bad = -1
    if len(wrong):
        bad = int(start[head[wrong[0]]])
        head = head[: wrong[0]]
    at = head[:, None] + np.arange(columns)
    return WhitespaceTable(start[at], end[at], bad)


def split_named(buf: Bytes, stop: int, layout: ColumnLayout) -> WhitespaceTable:
    """Split the lines of buf[:stop] exactly at the separators of a layout; lines without a byte are no rows.

    buf[stop - 1] is a line end. Quotation marks around a cell are no part of it. Raises QuotedCellError where one of
    them may have to be read otherwise, which is then left to a slower parser.
    """
    cut = np.flatnonzero((buf[:stop] == ord(layout.separator)) | (buf[:stop] == _END))
    start = np.empty(len(cut), np.int64)
    start[:1] = 0
    np.add(cut[:-1], 1, out=start[1:])
    cells, ends = len(layout.names), buf[cut] == _END
    bad = -1
    if len(cut) % cells or not (ends.reshape(-1, cells) == (np.arange(cells) == cells - 1)).all():
        last = np.flatnonzero(ends)
        count = np.diff(last, prepend=-1)
        head = last - count + 1
        empty = start[head] == cut[head]
        empty |= (cut[head] - start[head] == 1) & (buf[start[head]] == _RETURN)
        filled = (count > 1) | ~empty
        head, count = head[filled], count[filled]
        wrong = np.flatnonzero(count != cells)
        if len(wrong):
            if (buf[start] == _QUOTE).any():  # which may be why
                raise QuotedCellError
            bad, head = int(start[head[wrong[0]]]), head[: wrong[0]]
        at = head[:, None] + np.arange(cells)
        start, cut = start[at].ravel(), cut[at].ravel()
    ends_of_lines = cut[cells - 1 :: cells]  # a view: carriage returns are no part of the last cells
    ends_of_lines -= (ends_of_lines > start[cells - 1 :: cells]) & (buf[ends_of_lines - 1] == _RETURN)
    quoted = buf[start] == _QUOTE
    marks = int(np.count_nonzero(buf[:stop] == _QUOTE)) if quoted.any() else 0
    if marks:
        around = (cut - start > 1) & (buf[cut - 1] == _QUOTE)
        if marks != 2 * int(quoted.sum()) or not around[quoted].all():
            raise QuotedCellError
        start += quoted
        cut -= quoted
    return WhitespaceTable(start.reshape(-1, cells), cut.reshape(-1, cells), bad)


def _numpy_scan(buffer: LineBuffer, stop: int) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows with numpy alone."""
    buf = buffer.buf
    table = split_columns(buf, stop, 5, 6, more=True)
    bad = table.bad
    if len(table.wide):
        rank, tag = buf[table.start[table.wide, 3]], buf[table.start[table.wide, 5]]
        shifted = np.flatnonzero(
            (rank < _DIGITS[0]) | (rank > _DIGITS[1]) | ((tag >= 43) & (tag <= _DIGITS[1]))
        )
        if len(shifted):
            row = int(table.wide[shifted[0]])
            bad = int(table.start[row, 0])
            table = WhitespaceTable(table.start[:row], table.end[:row])
    return _table_rows(buf, replace(table, bad=bad), (0, 2, 4))


def _numpy_cells(buffer: LineBuffer, stop: int, layout: ColumnLayout) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by a layout, with numpy alone."""
    table = split_named(buffer.buf, stop, layout)
    ids = [layout.query, layout.doc]
    empty = np.flatnonzero((table.start[:, ids] == table.end[:, ids]).any(axis=1))
    if len(empty):
        row = int(empty[0])
        table = WhitespaceTable(table.start[:row], table.end[:row], int(table.start[row, 0]))
    return _table_rows(buffer.buf, table, (layout.query, layout.doc, layout.number))


def _table_rows(buf: Bytes, table: WhitespaceTable, which: tuple[int, int, int]) -> ParsedRows:
    """Rows from the columns of query, document and score."""
    bad, bad_score = table.bad, False
    column = [np.ascontiguousarray(table.start[:, c]) for c in which]
    length = [table.end[:, c] - s for c, s in zip(which, column, strict=True)]
    refuse_long(column[0], length[0])
    refuse_long(column[1], length[1])
    score, wrong = parse_decimals(buf, column[2], length[2])
    if len(wrong):
        bad, bad_score = int(table.start[wrong[0], 0]), True
    first = np.flatnonzero(differs_from_previous(buf, column[0], length[0]))
    hashes = hash_strings(buf, column[1], length[1])
    return ParsedRows(
        column[1], length[1], hashes, score, first, column[0][first], length[0][first], bad, bad_score
    )


def _numpy_rank(buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup) -> RankedRows:
    """Put the rows of each query in order with numpy alone.

    cuts: int64[queries + 1] first row of each query; key: scores at the precision in which they compare.
    """
    query = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    twice = _first_duplicate(buf, rows, query)
    if twice >= 0:
        return RankedRows(np.empty(0, np.int64), np.empty(0, np.int32), twice)

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
    return RankedRows(order, code.take(order))


def _first_duplicate(buf: Bytes, rows: ParsedRows, query: Int64) -> int:
    """The first row whose document an earlier row of its query has, or -1."""
    key = rows.hashes ^ (query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    sorted_key = np.sort(key)
    repeated = sorted_key[1:][sorted_key[1:] == sorted_key[:-1]]
    if len(repeated) == 0:
        return -1
    # Equal keys are nearly always equal documents of one query; look at the bytes of those few rows.
    seen = set()
    for row in np.flatnonzero(np.isin(key, repeated)).tolist():
        start, length = int(rows.start[row]), int(rows.length[row])
        pair = (int(query[row]), buf[start : start + length].tobytes())
        if pair in seen:
            return int(row)
        seen.add(pair)
    return -1


NUMPY_PARSER = Parser("numpy", 2 << 20, _numpy_scan, _numpy_cells, _numpy_rank, hash_strings)

# The compiled parser of blocks of lines, and which parser reads a file; both give the same rows.

_WORTH_COMPILING, _WORTH_LOADING = 128 << 20, 4 << 20
"""Bytes of a file below which numpy is done before kernels are compiled (some seconds), or loaded (a tenth of one)."""

_LEAST_ROW_BYTES = 10  # bytes of a row of TREC's: five columns, four separators and the end of the line


def choose_engine(name: EngineName, size: int) -> Parser:
    """The engine of that name; for "auto" the faster one for `size` bytes of text that is installed.

    Raises BadValue for an unknown name, MissingExtra for "numba" without the `run` extra.
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
    """Arrays for a compiled scan to fill in; pages that no row reaches are never touched, so the worst case is free."""
    start, length = np.empty((2, room), np.int64)
    segment, slow = np.empty((2, room, 3), np.int64)
    return RowArrays(start, length, np.empty(room, np.uint64), np.empty(room, np.float64), segment, slow)


def filled_rows(buf: Bytes, arrays: RowArrays, n: int, segments: int, slows: int) -> tuple[ParsedRows, int]:
    """The rows that a scan has filled in, and the first one whose score is no finite number, or -1.

    Raises LongIdentifierError.
    """
    first, query_start, query_length = arrays.segment[:segments].T.copy()
    refuse_long(arrays.start[:n], arrays.length[:n])
    refuse_long(query_start, query_length)
    wrong = -1
    for row, at, size in arrays.slow[:slows].tolist():
        arrays.score[row] = parse_slowly(buf[at : at + size].tobytes())
        if np.isnan(arrays.score[row]):
            wrong = row
            break
    start, length, hashes, score = (arrays.start[:n], arrays.length[:n], arrays.hashes[:n], arrays.score[:n])
    return ParsedRows(start, length, hashes, score, first, query_start, query_length), wrong


def _numba_scan(buffer: LineBuffer, stop: int) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by TREC's columns."""
    return _numba_rows(buffer, stop, TREC, stop // _LEAST_ROW_BYTES + 1)


def _numba_cells(buffer: LineBuffer, stop: int, layout: ColumnLayout) -> ParsedRows:
    """Split the lines of the first `stop` bytes into rows by a layout."""
    cells = len(layout.names)
    shape = LineShape(ord(layout.separator), cells, layout.query, layout.doc, layout.number)
    return _numba_rows(buffer, stop, shape, stop // cells + 1)


def _numba_rows(buffer: LineBuffer, stop: int, shape: LineShape, room: int) -> ParsedRows:
    arrays = row_arrays(room)
    edge = np.zeros(2 * shape.cells + 1, np.int64)
    *counts, bad, quoted = scan_lines(buffer.buf, buffer.words, stop, shape, arrays, edge)
    if quoted:
        raise QuotedCellError
    rows, wrong = filled_rows(buffer.buf, arrays, *counts)
    if wrong >= 0:
        bad = buffer.begin_of_line(int(rows.start[wrong]))
    return replace(rows, bad=int(bad), bad_score=wrong >= 0)


def _numba_hashes(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.uint64]:
    """Hash the texts of a block that ends in eight bytes of padding."""
    hashes = np.empty(len(start), np.uint64)
    words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
    hash_texts(words, start, length, hashes)
    return hashes


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    # Read-only arrays have a type of their own: identifiers come memory-mapped or not, the kernel is one.
    view = values.view()
    view.flags.writeable = False
    return view


def _numba_rank(buf: Bytes, rows: ParsedRows, cuts: Int64, key: Float64, lookup: Lookup) -> RankedRows:
    """Put the rows of each query in order."""
    n = len(rows.start)
    longest = int(np.diff(cuts).max(initial=0))
    seen = np.empty(1 << (4 * longest + 2).bit_length(), np.int32)
    order, spare, doc = np.empty(n, np.int64), np.empty(longest, np.int64), np.empty(n, np.int32)
    strings = lookup.ids.strings if lookup.ids is not None else Strings.of([])
    if len(lookup.slots) and len(strings) and lookup.slots.max() < 0:
        build_slots(lookup.hashes, lookup.slots)
    data, ptr = _read_only(strings.data), _read_only(np.ascontiguousarray(strings.ptr, np.int64))
    table = IdTable(lookup.slots, lookup.hashes, data, ptr)
    twice = order_rows(buf, rows.start, rows.length, rows.hashes, key, cuts, table, seen, spare, order, doc)
    return RankedRows(order, doc, int(twice))


NUMBA_PARSER = Parser("numba", 2 << 20, _numba_scan, _numba_cells, _numba_rank, _numba_hashes)
