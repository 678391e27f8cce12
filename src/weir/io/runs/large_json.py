"""Large JSON runs, {query: {document: score}}, as blocks of rows; compiled, and silent about anything unusual.

The text is held, its values never become objects. Whatever is not plain (an escape, an empty ranking, a name that
occurs twice, no valid JSON) is left to `jsonfile.py`, which reads it or says what is wrong with it.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import IDENTIFIER_BYTES
from weir.core.strings import Bytes
from weir.io.runs.blocks import ROWS, RankingBlock
from weir.io.runs.decimals import parse_slowly
from weir.io.runs.parsed_rows import ParsedRows, take_strings
from weir.io.runs.sources import ReadOptions, Source
from weir.io.storage.compression import PACKED
from weir.io.storage.lines import open_bytes, read_bytes
from weir.kernels.jit import available
from weir.kernels.jit.code_cache import kept

__all__ = ["OddJsonError", "nested_source"]

_WORTH = (16 << 20, 128 << 20)  # bytes of a file that loading the compiled reader pays for, or compiling it
_PAD = 32
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
    except OSError:
        return None
    if not available() or size < (_WORTH[0] if worth is None else worth):
        return None
    if worth is None and size < _WORTH[1] and not kept("parse.json_run"):
        return None
    return Source(path, 1 << 40, lambda how: _blocks(path, how))  # always worth the compiled engine


def _blocks(path: Path, how: ReadOptions) -> Iterator[RankingBlock]:
    from weir.kernels.parse.json_run import ENDED, FULL, ODD, scan_object

    if how.whole:
        raise OddJsonError  # a query comes back, which JSON forbids
    buf, stop = _text(path)
    words: NDArray[np.uint64] = np.ndarray((len(buf) - 7,), "<u8", buf, strides=(1,))
    at, room, state = _begin(buf, stop), 2 * ROWS, FULL
    while state != ENDED:
        start, length = np.empty(room, np.int64), np.empty(room, np.int64)
        hashes, score = np.empty(room, np.uint64), np.empty(room, np.float64)
        segment, slow = np.empty(3 * room, np.int64), np.empty(3 * room, np.int64)
        n, segments, slows, at, state = scan_object(
            buf, words, at, stop, ROWS, start, length, hashes, score, segment, slow
        )
        if state == ODD or (state == ENDED and buf[at:stop].tobytes().strip(_BLANKS)):
            raise OddJsonError
        if n == 0:  # one query needs more room
            room *= 2
            continue
        if int(length[:n].max()) > IDENTIFIER_BYTES:
            raise OddJsonError
        _settle(buf, slow[: 3 * slows].reshape(-1, 3), score)
        first, query, size = segment[: 3 * segments].reshape(-1, 3).T.copy()
        rows = ParsedRows(start[:n], length[:n], hashes[:n], score[:n], first, query, size)
        yield RankingBlock(buf, rows, take_strings(buf, query, size), lambda _: "")


def _text(path: Path) -> tuple[Bytes, int]:
    """The text of a file in a buffer with zeros behind it, and how long it is; it is UTF-8."""
    if path.suffix in PACKED:
        data = np.frombuffer(read_bytes(path), np.uint8)
        buf = np.concatenate([data, np.zeros(_PAD, np.uint8)])
    else:
        with open_bytes(path) as file:
            size = path.stat().st_size
            buf = np.zeros(size + _PAD, np.uint8)
            got = 0
            while got < size and (more := cast(io.RawIOBase, file).readinto(buf.data[got:size])):
                got += more
    stop = len(buf) - _PAD
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


def _settle(buf: Bytes, slow: NDArray[np.int64], score: NDArray[np.float64]) -> None:
    for row, start, length in slow.tolist():
        text = buf[start : start + length].tobytes()
        score[row] = parse_slowly(text) if _NUMBER.fullmatch(text) else np.nan
        if np.isnan(score[row]):
            raise OddJsonError
