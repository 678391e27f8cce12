"""Rankings and judgments in JSON, JSON lines and pickles."""

from __future__ import annotations

import codecs
import importlib
import io
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from weir.core.input_shapes import grades_of, scores_of_ranking
from weir.core.qrels import Origins
from weir.core.strings import IDENTIFIER_BYTES, Bytes, Strings, first_repeated
from weir.errors import BadRanking, FormatError, WeirError
from weir.files.column_names import Kind, origin_column, three_columns
from weir.files.json_lines import Records, read_records
from weir.files.parsers import (
    BLOCK_ROWS,
    LongIdentifierError,
    RankingBlock,
    TableChunk,
    differs_from_previous,
    filled_rows,
    row_arrays,
    take_strings,
)
from weir.files.pickles import is_pickle, read_pickle
from weir.files.text_files import DAMAGE, PACKED, damaged, open_bytes, read_bytes
from weir.kernels.jit import available, is_compiled

# Rankings and judgments as JSON lines: on each an object that names query, document and score or grade.


def first_json_row(path: Path) -> dict[str, Any]:
    """The first object, {} for an empty file; raises FormatError for what is none."""
    return next((records.rows[0] for records in json_records(path) if records.rows), {})


def json_row_chunks(path: Path, kind: Kind) -> Iterator[TableChunk]:
    """The rows of a file, some hundred kilobytes of it at a time.

    Which name stands for what, the first object says. Raises FormatError, with the line, for an object without these
    names, an identifier that is no text or whole number, and a number that is none or not finite.
    """
    names: tuple[str, str, str] | None = None
    for records in json_records(path):
        if not records.rows:
            continue
        if names is None:
            columns = list(records.rows[0])
            query, doc, number = three_columns(columns, kind, path)
            names = columns[query], columns[doc], columns[number]
        lines = range(len(records.rows))
        query_ids, doc_ids = (
            Strings.of(_identifier(records, i, name, path) for i in lines) for name in names[:2]
        )
        score = np.array([_number(records, i, names[2], path) for i in lines], np.float64)
        first = np.flatnonzero(differs_from_previous(query_ids.data, query_ids.ptr[:-1], query_ids.lengths()))
        yield TableChunk(query_ids.take(first), first, doc_ids, score)


def json_row_origins(path: Path, kind: Kind) -> Origins | None:
    """Where each judgment comes from, None where the first object does not say."""
    columns = list(first_json_row(path))
    at = origin_column(columns, kind)
    if at is None:
        return None
    return Origins.of(
        str(row.get(columns[at]) or "") for records in json_records(path) for row in records.rows
    )


def line_of_row(path: Path, row: int) -> int:
    """The line, from 1, on which a row stands."""
    lines = (records.line(i) for records in json_records(path) for i in range(len(records.rows)))
    return next(itertools.islice(lines, row, None))


def json_records(path: Path) -> Iterator[Records]:
    """Objects on lines, some hundred kilobytes at a time; raises FormatError for a line that holds no object."""
    try:
        with open_bytes(path) as stream:
            yield from read_records(stream, path)
    except DAMAGE as error:
        raise damaged(path, error) from error


def _identifier(records: Records, i: int, name: str, path: Path) -> str:
    value = records.rows[i].get(name)
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not text:
        raise FormatError(path, _shown(records, i, name), "an identifier in every row", records.line(i))
    if len(text.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
        raise FormatError(
            path,
            f"an identifier of {len(text):,} characters",
            f"at most {IDENTIFIER_BYTES:,} bytes",
            records.line(i),
        )
    return text


def _number(records: Records, i: int, name: str, path: Path) -> float:
    value: Any = records.rows[i].get(name)
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(path, _shown(records, i, name), "a finite number", records.line(i))
    return number


def _shown(records: Records, i: int, name: str) -> str:
    row = records.rows[i]
    return f"{name} {str(row[name])[:80]!r}" if name in row else f"no '{name}'"


# Rankings and judgments in pickles: {query: {document: number}}, and BIRCO's test sets and lists of documents.

_TEST_SET = frozenset({"query", "corpus", "qrel"})


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
    listed = (
        isinstance(value, Mapping) and len(value) > 0 and all(isinstance(v, list) for v in value.values())
    )
    return "run" if listed else None


def pickled_nested(path: Path, kind: Kind | None) -> dict[str, Any]:
    """What a pickle holds; of a test set the judgments.

    Raises FormatError as `read_pickle` does, for a test set in place of a run, and for no dict.
    """
    value: Any = read_pickle(path)
    if is_birco_set(value):
        if kind == "run":
            raise FormatError(path, "a test set of BIRCO", "a ranking; its judgments stand before the run")
        value = value["qrel"]
    if not isinstance(value, dict):
        raise FormatError(path, f"a {type(value).__name__}", 'a pickle of {"query": {"document": number}}')
    found: dict[str, Any] = value
    return found


# Rankings and judgments as one object, {query: {document: number}}: a general reader, and one of large runs.
#
# The reader of large runs is compiled: it holds the text, and its values never become objects. Whatever is not plain
# (an escape, an empty ranking, a name that occurs twice, no valid JSON) is left to the general one, which reads it or
# says what is wrong with it.

Nested = dict[str, dict[str, float]]
_EXPECTED = 'an object {"query": {"document": number}}'


def read_nested(path: Path, kind: Kind | None = None) -> Nested:
    """Read {query: {document: number}} of JSON or a pickle, or lists of documents.

    kind: "run" or "qrels", as which lists are in rank order, or of relevant documents; None where that is not known,
    and then lists are refused. Raises FormatError for another shape, for NaN and infinity, and for text that is no
    JSON; BadRanking for a name that occurs twice in one object, which JSON readers usually pass over in silence.
    """
    if is_pickle(path):
        found: Any = pickled_nested(path, kind)
    else:
        data = read_bytes(path)
        found = _quickly(data)
        if found is None:
            found = _strictly(path, data)
    if not isinstance(found, dict):
        raise FormatError(path, f"a JSON {type(found).__name__}", _EXPECTED)
    for query, given in found.items():
        row = _listed(path, query, given, kind) if isinstance(given, list) else given
        found[query] = row
        if not isinstance(row, dict):
            raise FormatError(path, f"{type(row).__name__} for query '{query}'", _EXPECTED)
        if not set(map(type, row.values())) <= {int, float}:
            document = next(d for d, v in row.items() if type(v) not in (int, float))
            found_here = f"{json.dumps(row[document])[:40]} for query '{query}', document '{document}'"
            raise FormatError(path, found_here, "a number")
    return found


def _listed(path: Path, query: str, row: list[Any], kind: Kind | None) -> dict[str, Any]:
    """{document: number} of a list of documents, or of [document, number] pairs; asks where the kind is not known."""
    if kind is None:
        raise FormatError(
            path, f"a list for query '{query}'", "--kind run, in rank order, or --kind qrels, relevant ones"
        )
    try:
        pairs = [tuple(one) if isinstance(one, list) else one for one in row]
        found = (scores_of_ranking if kind == "run" else grades_of)(f"query '{query}'", pairs)
        return {str(document): number for document, number in found.items()}
    except WeirError as error:
        raise FormatError(path, str(error), f"{_EXPECTED}, or lists of documents") from None


def _quickly(data: bytes) -> Any:  # noqa: ANN401  JSON holds anything
    """Parse with orjson where it is installed; None when a name may occur twice or anything is odd."""
    try:
        loads = importlib.import_module("orjson").loads
        found = loads(data)
    except (ModuleNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or not all(isinstance(row, dict) for row in found.values()):
        return None
    # orjson keeps the last of equal names. Each name is followed by one colon; the others stand in names,
    # unless they are written as an escape.
    if b"\\u003" in data:
        return None
    rows = list(found.values())
    colons = sum(map(len, rows)) + len(rows) + sum("".join(row).count(":") for row in (found, *rows))
    return found if colons == data.count(b":") else None


def _strictly(path: Path, data: bytes) -> Any:  # noqa: ANN401  JSON holds anything
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = first_repeated(key for key, _ in pairs)
            raise BadRanking(f"{path}: '{twice}' occurs twice in one object; remove the duplicates first")
        return row

    def refuse(constant: str) -> float:
        raise FormatError(path, constant, "finite numbers")

    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and _objects_on_lines(data):
            raise FormatError(
                path,
                "JSON lines, an object on each",
                f"{_EXPECTED}, or its name to end in .jsonl",
                error.lineno,
            ) from None
        raise FormatError(path, f"no valid JSON ({error.msg})", _EXPECTED, error.lineno) from error
    except (
        ValueError,
        RecursionError,
    ) as error:  # not UTF-8, a number of thousands of digits, nested too deeply
        raise FormatError(path, f"no valid JSON ({error})", _EXPECTED) from error


def _objects_on_lines(data: bytes) -> bool:
    first, _, rest = data.lstrip().partition(b"\n")
    try:
        return isinstance(json.loads(first), dict) and rest.lstrip().startswith(b"{")
    except (ValueError, RecursionError):
        return False


_LARGE_BYTES = (
    16 << 20,
    128 << 20,
)  # bytes of a file that loading the compiled reader pays for, or compiling it
_PAD_BYTES = 32
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BLANKS = b" \t\r\n"


class OddJsonError(Exception):
    """Something other than plain names and numbers, to be read by the general parser."""


def is_large(path: Path, worth: int | None = None) -> bool:
    """Whether a file is large enough for the compiled reader, and that can be used; worth: bytes from which it is."""
    try:
        size = path.stat().st_size
    except OSError:
        return False
    if not available() or size < (_LARGE_BYTES[0] if worth is None else worth):
        return False
    return worth is not None or size >= _LARGE_BYTES[1] or is_compiled("json_text")


def large_json_blocks(path: Path, whole: bool) -> Iterator[RankingBlock]:
    """The rows of a JSON run; whole: a query was met twice, which JSON forbids. Raises OddJsonError, MissingExtra."""
    from weir.kernels.json_text import ENDED, FULL, ODD, scan_object

    if whole:
        raise OddJsonError
    buf, stop = _text(path)
    words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
    at, room, state = _begin(buf, stop), 2 * BLOCK_ROWS, FULL
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
        yield RankingBlock(buf, rows, take_strings(buf, rows.query_start, rows.query_length), lambda _: "")


def _text(path: Path) -> tuple[Bytes, int]:
    """The text of a file in a buffer with zeros behind it, and how long it is; it is UTF-8."""
    if path.suffix in PACKED:
        data = np.frombuffer(read_bytes(path), np.uint8)
        buf = np.concatenate([data, np.zeros(_PAD_BYTES, np.uint8)])
    else:
        with open_bytes(path) as file:
            size = path.stat().st_size
            buf = np.zeros(size + _PAD_BYTES, np.uint8)
            got = 0
            while got < size and (more := cast(io.RawIOBase, file).readinto(buf.data[got:size])):
                got += more
    stop = len(buf) - _PAD_BYTES
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin in range(0, stop, 1 << 20):
            decoder.decode(buf.data[begin : min(begin + (1 << 20), stop)])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise OddJsonError from None
    return buf, stop


def _begin(buf: Bytes, stop: int) -> int:
    """Where the object's first name may stand."""
    head = buf[: min(stop, 1 << 12)].tobytes().removeprefix(codecs.BOM_UTF8)
    opening = len(head) - len(head.lstrip(_BLANKS))
    if head[opening : opening + 1] != b"{":
        raise OddJsonError
    return opening + 1 + (3 if buf[:3].tobytes() == codecs.BOM_UTF8 else 0)
