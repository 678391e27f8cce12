"""JSON lines, JSON objects of rankings and judgments, and pickles of the same."""

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
from weir.core.strings import Bytes, Strings, first_repeated
from weir.errors import BadRanking, FormatError, WeirError
from weir.files.column_names import Kind, origin_column, rank_column, three_columns
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
    take_strings,
)
from weir.files.pickles import is_pickle, read_pickle
from weir.files.text_files import BOM, DAMAGE, PACKED, damaged, open_bytes, read_bytes, require_room
from weir.kernels.jit import available, is_compiled
from weir.settings import IDENTIFIER_BYTES, RECORD_BYTES

# JSON lines in blocks: one object on each line, lines end at "\n" and nowhere else.

BLOCK_BYTES = 1 << 17
"""What is parsed from a block is still in the processor's cache when it is packed."""

_LEAST_LINE_BYTES = 20  # bytes: a line with an id and a text has more
_REFUSED_BLOCKS = 8  # blocks in a row that were not plain, after which no more are tried


@dataclass(frozen=True)
class Records:
    """The objects of some whole lines; `lines` has their numbers, or is None when they follow each other."""

    rows: list[dict[str, Any]]
    first: int
    lines: list[int] | None = None

    def line(self, i: int) -> int:
        """The line, counted from 1, that row i stands on."""
        return self.lines[i] if self.lines is not None else self.first + i


def read_blocks(stream: BinaryIO, size: int = BLOCK_BYTES, name: object = "the file") -> Iterator[bytes]:
    """Whole lines in blocks of about `size` bytes; a byte order mark at the start is dropped.

    name: what the file is called in errors. Raises FormatError for a line of more than RECORD_BYTES.
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
    """Parse whole lines; blank ones are skipped.

    first: the number of the first line; name: what the file is called in errors. Raises FormatError, with the
    line, for what is no JSON object.
    """
    loads, lines = _orjson_loads() or json.loads, block.split(b"\n")
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
                    raise _no_object(name, line, number, f" ({json_fault(error)})") from None
                numbers.append(number)
        records = Records(rows, first, numbers)
    if set(map(type, records.rows)) - {dict}:
        i = next(i for i, row in enumerate(records.rows) if not isinstance(row, dict))
        raise _no_object(name, repr(records.rows[i]).encode(), records.line(i))
    return records


def _no_object(name: object, line: bytes, number: int, reason: str = "") -> FormatError:
    text = line.decode("utf-8", "backslashreplace").strip()
    shown = text if len(text) <= 60 else text[:59] + "…"
    return FormatError(name, f"{shown}{reason}", "one JSON object on each line", number)


def _orjson_loads() -> Callable[[bytes], Any] | None:
    """The parser of orjson where it is installed."""
    with suppress(ModuleNotFoundError):
        parser: Callable[[bytes], Any] = importlib.import_module("orjson").loads
        return parser
    return None


def read_records(stream: BinaryIO, name: object) -> Iterator[Records]:
    """Parse all JSON lines of a stream; see `parse_block`."""
    first = 1
    for block in read_blocks(stream, name=name):
        records = parse_block(block, first, name)
        yield records
        first += len(records.rows) if records.lines is None else block.count(b"\n")


def json_records(path: Path) -> Iterator[Records]:
    """The objects of a file, some hundred kilobytes at a time; raises FormatError for a line that holds no object."""
    try:
        with open_bytes(path) as stream:
            yield from read_records(stream, path)
    except DAMAGE as error:
        raise damaged(path, error) from error


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line and the object of each row; raises as `json_records`."""
    return ((part.line(i), row) for part in json_records(path) for i, row in enumerate(part.rows))


class PlainReader:
    """Reads blocks of JSON lines that hold nothing but texts under `_id`, `title` and `text`.

    Needs numba. The arrays it works in are kept from block to block.
    """

    def __init__(self) -> None:
        from weir.kernels.json_text import read_plain_documents

        self._kernel = read_plain_documents
        self._refused = 0
        self._make(1 << 18)

    def read(self, block: bytes) -> tuple[Strings, Strings, Strings] | None:
        """The ids, titles and texts of whole lines; None for a block that the general parser has to read."""
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
    """The first object, {} for an empty file; raises FormatError for what is none."""
    return next((row for _, row in json_rows(path)), {})


def json_row_chunks(path: Path, kind: Kind) -> Iterator[TableChunk]:
    """The rows of a file, some hundred kilobytes of it at a time.

    Which name stands for what, the first object says. Raises FormatError, with the line, for an object without these
    names, an identifier that is no text or whole number, and a number that is none or not finite.
    """
    names: list[str] = []
    place: str | None = None
    for records in json_records(path):
        if not records.rows:
            continue
        if not names:
            columns = list(records.rows[0])
            names = [columns[at] for at in three_columns(columns, kind, path)]
            at = rank_column(columns, kind)
            place = None if at is None else columns[at]

        def refuse(i: int, name: str, expected: str, records: Records = records) -> FormatError:
            row = records.rows[i]
            shown = f"{name} {str(row[name])[:80]!r}" if name in row else f"no '{name}'"
            return FormatError(path, shown, expected, records.line(i))

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
                raise FormatError(path, long, expected, records.line(i))
        score = np.array([_finite(row.get(names[2])) for row in records.rows], np.float64)
        if np.isnan(score).any():
            raise refuse(int(np.isnan(score).argmax()), names[2], "a finite number")
        queries, docs = ids
        first = np.flatnonzero(differs_from_previous(queries.data, queries.ptr[:-1], queries.lengths()))
        rank = (
            None if place is None else np.array([_finite(row.get(place)) for row in records.rows], np.float64)
        )
        yield TableChunk(queries.take(first), first, docs, score, rank)


def _finite(value: object) -> float:
    """A value as a number; NaN for what is none, or none that is finite."""
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def json_row_origins(path: Path, kind: Kind) -> Origins | None:
    """Where each judgment comes from, None where the first object does not say."""
    columns = list(first_json_row(path))
    at = origin_column(columns, kind)
    return None if at is None else Origins.of(str(row.get(columns[at]) or "") for _, row in json_rows(path))


def line_of_row(path: Path, row: int) -> int:
    """The line, from 1, on which a row stands."""
    return next(itertools.islice((line for line, _ in json_rows(path)), row, None))


# Rankings and judgments as one object, {query: {document: number}}, in JSON or a pickle.

_TEST_SET = frozenset({"query", "corpus", "qrel"})
_EXPECTED = 'an object {"query": {"document": number}}'


def is_birco_set(value: object) -> bool:
    """Whether it is a test set as BIRCO publishes them: texts of queries, texts of documents, and grades."""
    if not isinstance(value, Mapping) or set(value) != _TEST_SET:
        return False
    return all(isinstance(part, Mapping) for part in value.values())


def kind_of_pickle(path: Path) -> Kind | None:
    """What a pickle holds: judgments where it is a test set, a run where it lists documents; None for anything else.

    Raises FormatError as `read_pickle` does.
    """
    value = read_pickle(path)
    if is_birco_set(value):
        return "qrels"
    lists = isinstance(value, Mapping) and len(value) > 0 and all(isinstance(v, list) for v in value.values())
    return "run" if lists else None


def read_nested(path: Path, kind: Kind | None = None) -> dict[str, dict[str, float]]:
    """Read {query: {document: number}} of JSON or a pickle, or lists of documents; of BIRCO's test sets the judgments.

    kind: "run" or "qrels", as which lists are in rank order, or of relevant documents; None where that is not known,
    and then lists are refused. Raises FormatError for another shape, for NaN and infinity, and for text that is no
    JSON; BadRanking for a name that occurs twice in one object, which JSON readers usually pass over in silence.
    """
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
            listed = (
                "; a list of rows is read by: weir data import FILE -o DIR" if isinstance(rows, list) else ""
            )
            raise FormatError(path, f"a JSON {type(rows).__name__}", _EXPECTED + listed)
    for query, value in rows.items():
        row = value
        if isinstance(row, list):
            if kind is None:
                expected = "--kind run, in rank order, or --kind qrels, relevant ones"
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
            shown = f"{json.dumps(row[document])[:40]} for query '{query}', document '{document}'"
            raise FormatError(path, shown, "a number")
    return cast("dict[str, dict[str, float]]", rows)


def whole_json(path: Path) -> bytes:
    """A file whose JSON is parsed whole; raises as `read_bytes` and `require_values`."""
    data = read_bytes(path)
    require_values(path, data, "an object on each line (.jsonl) takes less")
    return data


def _unique_json(path: Path) -> Any:  # noqa: ANN401  JSON holds anything
    """The value of a file in which no name occurs twice in one object; raises FormatError, BadRanking."""
    data, loads = whole_json(path), _orjson_loads()
    # orjson keeps the last of equal names. Each name is followed by one colon; the others stand in names, unless they
    # are written as an escape.
    if loads is not None and b"\\u003" not in data:
        with suppress(ValueError):
            value = loads(data)
            if isinstance(value, dict) and all(isinstance(row, dict) for row in value.values()):
                rows = list(value.values())
                colons = (
                    sum(map(len, rows)) + len(rows) + sum("".join(row).count(":") for row in (value, *rows))
                )
                if colons == data.count(b":"):
                    return value

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = first_repeated(key for key, _ in pairs)
            raise BadRanking(f"{path}: '{twice}' occurs twice in one object; remove the duplicates first")
        return row

    def refuse(constant: str) -> float:
        raise FormatError(path, constant, "finite numbers")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
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
    ) as error:  # not UTF-8, a number of thousands of digits, nested too deeply
        raise FormatError(path, f"no valid JSON ({json_fault(error)})", _EXPECTED) from error


# The reader of large runs is compiled: it holds the text, and its values never become objects. Whatever is not plain
# (an escape, an empty ranking, a name that occurs twice, no valid JSON) is left to the general one, which reads it or
# says what is wrong with it.

_LARGE_BYTES = (
    16 << 20,
    128 << 20,
)  # of a file: what loading the compiled reader pays for, and what compiling it
_PAD_BYTES = 32
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BLANKS = b" \t\r\n"


class OddJsonError(Exception):
    """Something other than plain names and numbers, to be read by the general parser."""


def nested_source(path: Path, worth: int | None = None) -> Source | None:
    """A large JSON run as rows, read with numba; None for a small one, and where numba is not installed.

    worth: bytes from which a file is large, by default what the reader's loading, or compiling, takes to pay. Its
    blocks raise OddJsonError for anything unusual, before or after some blocks were read.
    """
    try:
        size = path.stat().st_size
    except OSError:  # opening it will say what is wrong
        return None
    if not available() or size < (_LARGE_BYTES[0] if worth is None else worth):
        return None
    if worth is None and size < _LARGE_BYTES[1] and not is_compiled("json_text"):
        return None

    def blocks(how: ReadOptions) -> Iterator[RankingBlock]:
        from weir.kernels.json_text import ENDED, FULL, ODD, scan_object

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

    return Source(path, 1 << 40, blocks)  # always worth compiled code


def _plain_text(path: Path) -> tuple[Bytes, int, int]:
    """A file in a buffer with zeros behind it, where its object's first name may stand, and where its text ends."""
    if path.suffix in PACKED:
        buf = np.concatenate([np.frombuffer(read_bytes(path), np.uint8), np.zeros(_PAD_BYTES, np.uint8)])
    else:
        with open_bytes(path) as file:
            require_room(path, path.stat().st_size, times=2)
            buf = np.zeros(path.stat().st_size + _PAD_BYTES, np.uint8)
            text, done = buf.data[: len(buf) - _PAD_BYTES], 0
            while done < len(text) and (more := cast(io.RawIOBase, file).readinto(text[done:])):
                done += more
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
