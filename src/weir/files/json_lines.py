"""JSON lines, read in blocks: one object on each line, lines end at "\\n" and nowhere else."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from weir.core.strings import Strings
from weir.errors import FormatError

LINE_BYTES = 1 << 26
"""The longest line of documents or queries that is read."""

BLOCK_BYTES = (
    1 << 17
)  # bytes: what is parsed from a block is still in the processor's cache when it is packed

_LEAST_LINE_BYTES = 20  # bytes: a line with an id and a text has more
_REFUSED_BLOCKS = 8  # blocks in a row that were not plain, after which no more are tried

_BOM = b"\xef\xbb\xbf"


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

    name: what the file is called in errors. Raises FormatError for a line of more than LINE_BYTES.
    """
    rest: list[bytes] = []  # a line whose end is not read yet
    held, lines, first = 0, 1, True
    while chunk := stream.read(size):
        if first:
            chunk, first = chunk.removeprefix(_BOM), False
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = b"".join([*rest, chunk[:cut]])
            yield block
            lines += block.count(b"\n")
            rest, held = [], 0
        rest.append(chunk[cut:])
        held += len(chunk) - cut
        if held > LINE_BYTES:
            raise FormatError(
                name, f"a line of more than {LINE_BYTES:,} bytes", "one record on each line", lines
            )
    if held:
        yield b"".join(rest)


def parse_block(block: bytes, first: int, name: object) -> Records:
    """Parse whole lines; blank ones are skipped.

    first: the number of the first line; name: what the file is called in errors. Raises FormatError, with the
    line, for what is no JSON object.
    """
    loads = _fast_loads()
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    try:
        records = Records([loads(line) for line in lines], first)
    except ValueError:
        records = _line_by_line(lines, first, name)
    if set(map(type, records.rows)) - {dict}:
        raise _not_an_object(records, name)
    return records


def read_records(stream: BinaryIO, name: object) -> Iterator[Records]:
    """Parse all JSON lines of a stream; see `parse_block`."""
    first = 1
    for block in read_blocks(stream, name=name):
        records = parse_block(block, first, name)
        yield records
        first += len(records.rows) if records.lines is None else block.count(b"\n")


def _line_by_line(lines: list[bytes], first: int, name: object) -> Records:
    # The standard library also takes NaN and lone surrogates, which real collections contain.
    rows, numbers = [], []
    for number, line in enumerate(lines, first):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise FormatError(
                    name, f"{_shown(line)} ({error})", "one JSON object on each line", number
                ) from None
            numbers.append(number)
    return Records(rows, first, numbers)


def _not_an_object(records: Records, name: object) -> FormatError:
    i = next(i for i, row in enumerate(records.rows) if not isinstance(row, dict))
    return FormatError(
        name, _shown(repr(records.rows[i]).encode()), "one JSON object on each line", records.line(i)
    )


def _shown(line: bytes, width: int = 60) -> str:
    text = line.decode("utf-8", "backslashreplace").strip()
    return text if len(text) <= width else text[: width - 1] + "…"


def _fast_loads() -> Callable[[bytes], Any]:
    """The parser of orjson where it is installed, else the standard library's."""
    try:
        parser: Callable[[bytes], Any] = importlib.import_module("orjson").loads
    except ModuleNotFoundError:
        return json.loads
    return parser


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
