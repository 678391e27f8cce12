"""A growing table of distinct words, filled by the compiled scanner."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Int32, Int64, Strings
from weir.text.scanner import WordScanner

__all__ = ["WordTable"]

FIRST_SLOTS = 1 << 12
FIRST_BYTES = 1 << 15
PADDING = 8  # the kernel reads eight bytes at a time
NEWLINE = 0x0A
T = TypeVar("T", bound=np.generic)


class WordTable:
    """Distinct words, numbered from 0 in the order they came.

    expected: how many words are to come, where that is known; the table grows by doubling anyway.
    """

    def __init__(self, expected: int = 0) -> None:
        slots = FIRST_SLOTS
        while slots < 2 * expected + 4:
            slots *= 2
        self._slots: Int64 = np.full(2 * slots, -1, np.int64)
        self._ptr: Int64 = np.zeros(slots // 2 + 2, np.int64)
        self._arena: Bytes = np.zeros(FIRST_BYTES, np.uint8)
        self._state: Int64 = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return int(self._state[0])

    def scan(self, texts: Strings, scanner: WordScanner, insert: bool = True) -> tuple[Int64, Int32]:
        """ptr int64[n + 1], word number int32[]: the words of each text; without `insert` a new word is -1."""
        out = np.empty(int(texts.ptr[-1] - texts.ptr[0]), np.int32)
        ptr = np.zeros(len(texts) + 1, np.int64)
        self.scan_into(texts, scanner, insert, ptr, out)
        return ptr, out[: int(ptr[-1])]

    def scan_into(self, texts: Strings, scanner: WordScanner, insert: bool, ptr: Int64, out: Int32) -> None:
        """As `scan`, into arrays of the caller: ptr[0] says where in `out` to begin; a word takes a byte at least."""
        from weir.kernels.parse import words as tokenize

        data, text_ptr, n = _fixed(texts.data), _fixed(texts.ptr), len(texts)
        data8 = _eights(data)
        at = 0
        while True:
            at = tokenize.scan(
                data,
                data8,
                text_ptr,
                at,
                n,
                scanner.classes,
                scanner.kinds,
                scanner.fold,
                scanner.table,
                scanner.shape,
                insert,
                self._slots,
                self._arena,
                _eights(self._arena),
                self._ptr,
                self._state,
                out,
                ptr[at:],
            )
            if at == n:
                return
            self._grow()

    def words(self) -> Strings:
        """Every word, by number; a view that later growth leaves as it is."""
        ptr = self._ptr[: len(self) + 1]
        return Strings(_fixed(self._arena[: int(ptr[-1])]), _fixed(ptr))

    def lines(self, start: int) -> str:
        """The words from number `start` on, one a line; none holds a line end."""
        ptr = self._ptr[start : len(self) + 1]
        if len(ptr) < 2:
            return ""
        lengths = np.diff(ptr)
        filled = np.full(int(ptr[-1] - ptr[0]) + len(lengths), NEWLINE, np.uint8)
        keep = np.ones(len(filled), np.bool_)
        keep[np.cumsum(lengths + 1) - 1] = False
        filled[keep] = self._arena[int(ptr[0]) : int(ptr[-1])]
        return filled[:-1].tobytes().decode("utf-8", "replace")

    def _grow(self) -> None:
        """Make room for the word that did not fit: double what is full."""
        from weir.kernels.parse import words as tokenize

        count, needed = int(self._state[0]), int(self._state[1]) + PADDING
        if needed > len(self._arena):
            self._arena = _enlarged(self._arena, max(needed, 2 * len(self._arena)))
        if 4 * (count + 1) >= len(self._slots) - 2:
            larger = np.full(2 * len(self._slots), -1, np.int64)
            tokenize.regrow(self._slots, larger, np.empty(count, np.int64))
            self._slots = larger
            self._ptr = _enlarged(self._ptr, len(larger) // 4 + 2)


def _enlarged(array: NDArray[T], size: int) -> NDArray[T]:
    larger = np.zeros(size, array.dtype)
    larger[: len(array)] = array
    return larger


def _fixed(array: NDArray[T]) -> NDArray[T]:
    """A read-only contiguous view: the kernels are compiled once, for read-only inputs."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _eights(data: Bytes) -> NDArray[np.uint64]:
    """The eight bytes from each place on, little-endian; shares the data.

    Two places at least: numpy calls a shorter array contiguous, and the kernel would be compiled again for that.
    """
    if len(data) <= PADDING:
        padded = np.zeros(2 * PADDING, np.uint8)
        padded[: len(data)] = data
        data = _fixed(padded)
    return np.ndarray((len(data) - PADDING + 1,), np.dtype("<u8"), data, strides=(1,))
