"""Read JSON lines, JSON objects and pickles."""

from __future__ import annotations

import codecs
import importlib
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from weir.core.input_shapes import grades_of, scores_of_ranking
from weir.core.qrels import Origins
from weir.core.roles import refuse_grades_as_documents
from weir.core.strings import Bytes, Strings, first_repeated, take_strings
from weir.errors import BadRanking, FormatError, WeirError
from weir.files.column_names import Kind, origin_column, part_columns, rank_column, row_columns, say_unread
from weir.files.json_record import json_fault, require_values
from weir.files.parsers import (
    BLOCK_ROWS,
    LongIdentifierError,
    RankingBlock,
    ReadOptions,
    Source,
    TableChunk,
    differs_from_previous,
    filled_rows,
    row_arrays,
)
from weir.files.pickles import is_pickle, read_pickle
from weir.files.text_files import (
    BOM,
    DAMAGE,
    PACKED,
    damaged,
    decoded,
    is_pipe,
    open_bytes,
    read_bytes,
    require_room,
)
from weir.kernels.jit import available, is_compiled
from weir.kernels.json_text import ENDED, FULL, ODD, read_plain_documents, scan_object
from weir.settings import IDENTIFIER_BYTES, RECORD_BYTES

# JSON lines in blocks: one object on each line, lines end at "\n" and nowhere else.

BLOCK_BYTES = 1 << 17
"""Bytes of lines parsed at a time, few enough for the processor's cache."""

_LEAST_LINE_BYTES = 20  # bytes: a line with an id and a text has more
_LEVELS = 100  # of nested objects and lists that are counted
_ENDS_NAME = np.isin(
    np.arange(256), list(b'" \t\r\n')
)  # bool[256]: the byte may stand before the colon of a name
_REFUSED_BLOCKS = 8  # blocks in a row that were not plain, after which no more are tried


@dataclass(frozen=True)
class Records:
    """The JSON objects of a block of lines, with their line numbers."""

    rows: list[dict[str, Any]]
    first: int
    lines: list[int] | None = None
    """Line number of each row; None if they are consecutive from `first`."""

    def line_number(self, i: int) -> int:
        """Return the line number, from 1, of the object at position i, from 0."""
        return self.lines[i] if self.lines is not None else self.first + i


def read_blocks(stream: BinaryIO, size: int = BLOCK_BYTES, name: object = "the file") -> Iterator[bytes]:
    """Yield a stream's lines in blocks of about `size` bytes that end with a line, without a byte order mark.

    Raises FormatError for a line over RECORD_BYTES.
    """
    rest: list[bytes] = []  # a line whose end is not read yet
    length, lines, first = 0, 1, True
    while chunk := stream.read(size):
        if first:
            chunk, first = chunk.removeprefix(BOM), False
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = b"".join([*rest, chunk[:cut]])
            yield block
            lines += block.count(b"\n")
            rest, length = [], 0
        rest.append(chunk[cut:])
        length += len(chunk) - cut
        if length > RECORD_BYTES:
            long_line = f"a line of more than {RECORD_BYTES:,} bytes"
            raise FormatError(name, long_line, "one record on each line", lines)
    if length:
        yield b"".join(rest)


def parse_block(block: bytes, first: int, name: object) -> Records:
    """Return the JSON objects in complete lines; blank lines are skipped.

    first: number of the first line.

    Raises FormatError for a line that is no object, or repeats a key.
    """
    loads, lines = orjson_loads() or json.loads, block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    try:
        records = Records([loads(line) for line in lines], first)
    except ValueError:
        # The standard library also takes NaN and lone surrogates, which real collections contain.
        rows, numbers = [], []
        for number, line in enumerate(lines, first):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except (ValueError, RecursionError) as error:
                    decoded(line, name, number)
                    raise _no_object(name, line, number, f" ({json_fault(error)})") from None
                numbers.append(number)
        records = Records(rows, first, numbers)
    if set(map(type, records.rows)) - {dict}:
        i = next(i for i, row in enumerate(records.rows) if not isinstance(row, dict))
        raise _no_object(name, repr(records.rows[i]).encode(), records.line_number(i))
    if not _names_differ(block, records.rows):  # a line of which counting does not tell is parsed with care
        for i, (line, row) in enumerate(zip(filter(bytes.strip, lines), records.rows, strict=True)):
            if not _names_differ(line, [row]):
                _refuse_repeated(name, line, records.line_number(i))
    return records


def _names_differ(text: bytes, objects: list[dict[str, Any]]) -> bool:
    # Names are counted by their colons, which follow a quote or a blank; strings may hold such colons too.
    code = np.frombuffer(text, np.uint8)
    before = code[np.flatnonzero(code == ord(":")) - 1]
    names, inner = int(np.count_nonzero(_ENDS_NAME[before])), list[Any](objects)
    for _ in range(_LEVELS):
        if not inner:
            return names == 0
        names -= sum(len(one) for one in inner if type(one) is dict)
        values = (value for one in inner for value in (one.values() if type(one) is dict else one))
        inner = [value for value in values if type(value) in (dict, list)]
    return False


def once(refuse: Callable[[str], WeirError]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return an object_pairs_hook for Python's JSON parser that makes dicts and raises `refuse(key)` for a repeated
    key.
    """

    def unique_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            raise refuse(str(first_repeated(key for key, _ in pairs)))
        return row

    return unique_dict


def _refuse_repeated(name: object, line: bytes, number: int) -> None:
    def refuse(twice: str) -> FormatError:
        return FormatError(name, f"'{twice}' twice in one object", "each name once", number)

    try:
        json.loads(line, object_pairs_hook=once(refuse))
    except (ValueError, RecursionError) as error:  # orjson reads what lies deeper
        raise _no_object(name, line, number, f" ({json_fault(error)})") from None


def _no_object(name: object, line: bytes, number: int, reason: str = "") -> FormatError:
    text = line.decode("utf-8", "backslashreplace").strip()
    shown = text if len(text) <= 60 else text[:59] + "…"
    return FormatError(name, f"{shown}{reason}", "one JSON object on each line", number)


def orjson_loads() -> Callable[[bytes], Any] | None:
    """Return orjson's parser; None if it is not installed."""
    with suppress(ModuleNotFoundError):
        parser: Callable[[bytes], Any] = importlib.import_module("orjson").loads
        return parser
    return None


def read_records(stream: BinaryIO, name: object) -> Iterator[Records]:
    """Yield the objects of a stream's JSON lines in blocks; raises the errors of `read_blocks` and `parse_block`."""
    first = 1
    for block in read_blocks(stream, name=name):
        records = parse_block(block, first, name)
        yield records
        first += len(records.rows) if records.lines is None else block.count(b"\n")


def _json_records(path: Path) -> Iterator[Records]:
    try:
        with open_bytes(path) as stream:
            yield from read_records(stream, path)
    except DAMAGE as error:
        raise damaged(path, error) from error


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line of a JSON Lines file, without blank ones; raises FormatError for a
    line that is no object.
    """
    return ((part.line_number(i), row) for part in _json_records(path) for i, row in enumerate(part.rows))


class PlainReader:
    """A compiled reader of JSON lines whose only fields are the texts `_id`, `title` and `text`; needs numba."""

    def __init__(self) -> None:
        self._kernel = read_plain_documents
        self._refused = 0
        self._make(1 << 18)

    def read(self, block: bytes) -> tuple[Strings, Strings, Strings] | None:
        """Return (ids, titles, texts) of complete lines; None if they have another form."""
        if self._refused >= _REFUSED_BLOCKS or not block.endswith(b"\n"):
            return None
        try:
            block.decode("utf-8")
        except UnicodeDecodeError:
            self._refused += 1
            return None
        size = len(block)
        if size + 16 > self._out.shape[1]:
            self._make(2 * size)
        buf = np.frombuffer(block, np.uint8)
        words = np.ndarray((max(0, size - 7),), "<u8", buf, strides=(1,))
        ptr = np.zeros((3, size // _LEAST_LINE_BYTES + 2), np.int64)
        rows = self._kernel(buf, words, self._out, self._words, ptr, np.zeros(3, np.int64))
        self._refused = 0 if rows >= 0 else self._refused + 1
        if rows < 0:
            return None
        ids, titles, texts = (
            Strings(self._out[c, : ptr[c, rows]].copy(), ptr[c, : rows + 1]) for c in range(3)
        )
        return ids, titles, texts

    def _make(self, size: int) -> None:
        width = size + 16
        self._out = np.empty((3, width), np.uint8)
        self._words: np.ndarray[tuple[int, int], np.dtype[np.uint64]] = np.ndarray(
            (3, width - 7), "<u8", self._out, strides=(width, 1)
        )


# Rankings and judgments as JSON lines: on each an object that names query, document and score or grade.


def first_json_row(path: Path) -> dict[str, Any]:
    """Return the first object of a JSON Lines file, {} if it is empty; raises FormatError for other content."""
    return next((row for _, row in json_rows(path)), {})


def json_row_chunks(path: Path, kind: Kind) -> Iterator[TableChunk]:
    """Yield the rows of a run or judgments in JSON Lines, in chunks; the keys of the first object name the columns.

    Raises FormatError for a missing value, an invalid identifier, and a number that is not finite.
    """
    names: list[str] = []
    columns: list[str] = []
    place: str | None = None
    for records in _json_records(path):
        if not records.rows:
            continue
        if not names:
            columns = list(records.rows[0])
            names = [columns[at] for at in row_columns(columns, kind, path)]
            at = rank_column(columns, kind)
            place = None if at is None else columns[at]
        columns += _further_fields(path, columns, records, kind)

        def refuse(i: int, name: str, expected: str, records: Records = records) -> FormatError:
            row = records.rows[i]
            shown = f"{name} {str(row[name])[:80]!r}" if name in row else f"no '{name}'"
            return FormatError(path, shown, expected, records.line_number(i))

        ids: list[Strings] = []
        for name in names[:2]:
            values: list[Any] = [row.get(name) for row in records.rows]
            texts = [str(value) if type(value) is int else value for value in values]
            for i, text in enumerate(texts):
                if not isinstance(text, str) or not text:
                    raise refuse(i, name, "an identifier in every row")
            ids.append(Strings.of(texts))
            size = ids[-1].lengths()
            if size.max(initial=0) > IDENTIFIER_BYTES:
                i = int((size > IDENTIFIER_BYTES).argmax())
                long, expected = (
                    f"an identifier of {len(texts[i]):,} characters",
                    f"at most {IDENTIFIER_BYTES:,} bytes",
                )
                raise FormatError(path, long, expected, records.line_number(i))
        score = np.ones(len(records.rows))
        for name in names[2:]:
            score = np.array([_finite(row.get(name)) for row in records.rows], np.float64)
            if np.isnan(score).any():
                raise refuse(int(np.isnan(score).argmax()), name, "a finite number")
        queries, docs = ids
        first = np.flatnonzero(differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths()))
        rank = (
            None if place is None else np.array([_finite(row.get(place)) for row in records.rows], np.float64)
        )
        yield TableChunk(queries.take(first), first, docs, score, rank)
    if columns:
        say_unread(path, columns, kind)


def _further_fields(path: Path, columns: list[str], records: Records, kind: Kind) -> list[str]:
    known, further = set(columns), dict[str, None]()
    for i, row in enumerate(records.rows):
        if row.keys() <= known:
            continue
        new = [name for name in row if name not in known]
        try:
            changes = _used(columns, kind, path) != _used([*columns, *new], kind, path)
        except FormatError:  # two columns could be one
            changes = True
        if changes:
            what = f"'{new[0]}'" if len(new) == 1 else f"the fields {', '.join(new)[:80]}"
            raise FormatError(
                path,
                f"{what}, which the first row lacks",
                "the same fields in every row",
                records.line_number(i),
            )
        further |= dict.fromkeys(new)
        known |= row.keys()
    return list(further)


def _used(columns: list[str], kind: Kind, path: Path) -> object:
    found = rank_column(columns, kind), origin_column(columns, kind), part_columns(columns, kind)
    return row_columns(columns, kind, path), found


def _finite(value: object) -> float:
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def json_row_origins(path: Path, kind: Kind) -> Origins | None:
    """Return each judgment's origin in a JSON Lines file, "" for none; None if the first object has no such field."""
    columns = list(first_json_row(path))
    at = origin_column(columns, kind)
    return None if at is None else Origins.of(str(row.get(columns[at]) or "") for _, row in json_rows(path))


def line_of_row(path: Path, row: int) -> int:
    """Return the line number, from 1, of a row, counted from 0, of a JSON Lines file."""
    return next(itertools.islice((line for line, _ in json_rows(path)), row, None))


# Rankings and judgments as one object, {query: {document: number}}, in JSON or a pickle.

_TEST_SET = frozenset({"query", "corpus", "qrel"})
_EXPECTED = 'an object {"query": {"document": number}}'


_IMPORTED = "read by: weir data import FILE -o DIR"
_FOREIGN = (
    (("mteb_model_meta",), "predictions of MTEB", f"{_EXPECTED}; these are {_IMPORTED}"),
    (
        ("mteb_version", "mteb_dataset_name"),
        "means of MTEB, without rankings",
        f"{_EXPECTED}; weir results RESULTS --published FILE lays means beside yours, and MTEB's predictions are "
        f"{_IMPORTED}",
    ),
)
"""(names of which the beginning of another tool's file has one, what it is, what is expected and what reads it)."""
_HEAD_BYTES = 1 << 12


def is_birco_set(value: object) -> bool:
    """Return True for a test set of BIRCO: a dict of queries, documents and grades."""
    if not isinstance(value, Mapping) or set(value) != _TEST_SET:
        return False
    return all(isinstance(part, Mapping) for part in value.values())


def kind_of_pickle(path: Path) -> Kind | None:
    """Return "qrels" for a pickled test set of BIRCO, "run" for lists by query, else None.

    Raises FormatError for anything but plain data.
    """
    value = read_pickle(path)
    if is_birco_set(value):
        return "qrels"
    lists = isinstance(value, Mapping) and len(value) > 0 and all(isinstance(v, list) for v in value.values())
    return "run" if lists else None


def read_nested(path: Path, kind: Kind | None = None) -> dict[str, dict[str, float]]:
    """Return {query: {document: number}} from JSON or a pickle.

    kind: reads lists of documents as ranked, best first ("run"), or as relevant, grade 1 ("qrels"); None refuses
        them.

    Raises FormatError for invalid content, BadRanking for a repeated key.
    """
    try:
        return _read_nested(path, kind)
    except FormatError:
        _refuse_foreign(path)
        raise


def _refuse_foreign(path: Path) -> None:
    head = b""
    with suppress(WeirError):
        head = b"" if is_pipe(path) else read_bytes(path, _HEAD_BYTES)
    for names, found, expected in _FOREIGN:
        if any(f'"{name}"'.encode() in head for name in names):
            raise FormatError(path, found, expected) from None


def _read_nested(path: Path, kind: Kind | None) -> dict[str, dict[str, float]]:
    if is_pickle(path):
        rows: Any = read_pickle(path)
        if is_birco_set(rows):
            if kind == "run":
                expected = "a ranking; its judgments stand before the run"
                raise FormatError(path, "a test set of BIRCO", expected)
            rows = rows["qrel"]
        if not isinstance(rows, dict):
            expected = 'a pickle of {"query": {"document": number}}'
            raise FormatError(path, f"a {type(rows).__name__}", expected)
    else:
        rows = _unique_json(path)
        if not isinstance(rows, dict):
            listed = f"; a list of rows is {_IMPORTED}" if isinstance(rows, list) else ""
            raise FormatError(path, f"a JSON {type(rows).__name__}", _EXPECTED + listed)
    for query, value in rows.items():
        row = value
        if isinstance(row, list):
            if kind is None:
                expected = "`kind='run'`, in rank order, or `kind='qrels'`, relevant ones"
                raise FormatError(path, f"a list for query '{query}'", expected)
            pairs = [tuple(one) if isinstance(one, list) else one for one in row]
            try:
                numbers = (scores_of_ranking if kind == "run" else grades_of)(f"query '{query}'", pairs)
            except WeirError as error:
                raise FormatError(path, str(error), f"{_EXPECTED}, or lists of documents") from None
            row = {str(document): number for document, number in numbers.items()}
            rows[query] = row
        if not isinstance(row, dict):
            raise FormatError(path, f"{type(row).__name__} for query '{query}'", _EXPECTED)
        if not set(map(type, row.values())) <= {int, float}:
            document = next(d for d, v in row.items() if type(v) not in (int, float))
            if kind == "qrels" and all(isinstance(one, dict) for one in rows.values()):
                pairs = [(str(doc), str(grade)) for one in rows.values() for doc, grade in one.items()]
                refuse_grades_as_documents(
                    Strings.of(doc for doc, _ in pairs), [grade for _, grade in pairs], path
                )
            shown = f"{json.dumps(row[document])[:40]} for query '{query}', document '{document}'"
            raise FormatError(path, shown, "a number")
    return cast("dict[str, dict[str, float]]", rows)


def whole_json(path: Path) -> bytes:
    """Return the decompressed bytes of a JSON file; raises BadValue if its values would exceed memory, FormatError if
    unreadable.
    """
    data = read_bytes(path)
    require_values(path, data, "an object on each line (.jsonl) takes less")
    return data


def _unique_json(path: Path) -> Any:  # noqa: ANN401  JSON holds anything
    data, loads = whole_json(path), orjson_loads()
    if loads is not None:
        with suppress(ValueError):
            value = loads(data)
            if (
                isinstance(value, dict)
                and all(isinstance(row, dict) for row in value.values())
                and _names_differ(data, [value])
            ):
                return value

    def refuse(twice: str) -> BadRanking:
        return BadRanking(f"{path}: '{twice}' occurs twice in one object; remove the duplicates first")

    def refuse_constant(constant: str) -> float:
        raise FormatError(path, constant, "finite numbers")

    try:
        return json.loads(decoded(data, path), object_pairs_hook=once(refuse), parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            line, _, rest = data.lstrip().partition(b"\n")
            with suppress(ValueError, RecursionError):
                if isinstance(json.loads(line), dict) and rest.lstrip().startswith(b"{"):
                    expected = f"{_EXPECTED}, or its name to end in .jsonl"
                    raise FormatError(path, "JSON lines, an object on each", expected, error.lineno) from None
        raise FormatError(path, f"no valid JSON ({error.msg})", _EXPECTED, error.lineno) from error
    except (
        ValueError,
        RecursionError,
    ) as error:  # a number of thousands of digits, nested too deeply
        raise FormatError(path, f"no valid JSON ({json_fault(error)})", _EXPECTED) from error


# The reader of large runs is compiled: it holds the text, and its values never become objects. Anything unusual (an
# escape, an empty ranking, a repeated name, invalid JSON) is left to the general reader, which reads it or explains.

_LARGE_BYTES = (
    16 << 20,
    128 << 20,
)  # of a file: what loading the compiled reader pays for, and what compiling it
_PAD_BYTES = 32
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BLANKS = b" \t\r\n"


class OddJsonError(Exception):
    """Raised for JSON that only the general parser can read."""


def nested_source(path: Path, worth: int | None = None) -> Source | None:
    """Return the rows of a large JSON run for compiled reading; None without numba, or if the file is too small or
    unreadable.

    worth: fewest bytes; by default more until the code is compiled.

    Reading raises OddJsonError for unusual JSON.
    """
    try:
        size = path.stat().st_size
    except OSError:  # opening it will say what is wrong
        return None
    if not available() or size < (_LARGE_BYTES[0] if worth is None else worth):
        return None
    if worth is None and size < _LARGE_BYTES[1] and not is_compiled("json_text"):
        return None

    def json_blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        if how.whole:  # a query was met twice, which JSON forbids
            raise OddJsonError
        buf, at, stop = _plain_text(path)
        words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
        room, state = 2 * BLOCK_ROWS, FULL
        while state != ENDED:
            arrays = row_arrays(room)
            n, segments, slows, at, state = scan_object(buf, words, at, stop, BLOCK_ROWS, arrays)
            if state == ODD or (state == ENDED and buf[at:stop].tobytes().strip(_BLANKS)):
                raise OddJsonError
            if n == 0:  # one query needs more room
                room *= 2
                continue
            slow = (buf[start : start + size].tobytes() for _, start, size in arrays.slow[:slows].tolist())
            if not all(map(_NUMBER.fullmatch, slow)):
                raise OddJsonError
            try:
                rows, wrong = filled_rows(buf, arrays, n, segments, slows)
            except LongIdentifierError:
                raise OddJsonError from None
            if wrong >= 0:
                raise OddJsonError
            queries = take_strings(buf, rows.query_start, rows.query_length)
            yield RankingBlock(buf, rows, queries, lambda _: "")

    return Source(path, 1 << 40, json_blocks)  # always worth compiled code


def _plain_text(path: Path) -> tuple[Bytes, int, int]:
    if path.suffix in PACKED:
        buf = np.concatenate([np.frombuffer(read_bytes(path), np.uint8), np.zeros(_PAD_BYTES, np.uint8)])
    else:
        with open_bytes(path) as file:
            require_room(path, path.stat().st_size, times=2)
            buf = np.zeros(path.stat().st_size + _PAD_BYTES, np.uint8)
            text, done = buf.data[: len(buf) - _PAD_BYTES], 0
            while done < len(text) and (more := cast(io.RawIOBase, file).readinto(text[done:])):
                done += more
            if done < len(text) or file.read(
                1
            ):  # text in UTF-16, which is as long as its UTF-8 by chance alone
                raise OddJsonError
    stop = len(buf) - _PAD_BYTES
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin in range(0, stop, 1 << 20):
            decoder.decode(buf.data[begin : min(begin + (1 << 20), stop)])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise OddJsonError from None
    head = buf[: min(stop, 1 << 12)].tobytes()
    body = head.removeprefix(BOM).lstrip(_BLANKS)
    if not body.startswith(b"{"):
        raise OddJsonError
    return buf, len(head) - len(body) + 1, stop
