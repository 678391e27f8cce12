"""A growing table of distinct words, filled by the compiled scanner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Int32, Int64, Strings
from weir.text.segment import Tokenizer

__all__ = ["Scanner", "WordTable"]

FIRST_SLOTS = 1 << 12
FIRST_BYTES = 1 << 15


@dataclass(frozen=True, eq=False)
class Scanner:
    """A tokenizer laid out for the kernel, and what happens to each byte of a word."""

    classes: Bytes
    fold: Bytes
    table: Int32
    accept: int
    limit: int

    @staticmethod
    def of(tokenizer: Tokenizer, fold_ascii: bool) -> Scanner:
        """States become offsets into one flat table, dead end first, accepting ones last."""
        order = np.lexsort((np.arange(len(tokenizer.accept)), tokenizer.accept))
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        width = tokenizer.table.shape[1]
        table = (rank[tokenizer.table[order]] * width).astype(np.int32)
        table[0, 0] = rank[1] * width  # no state is left through row 0: its first cell says where to start
        fold = np.arange(256, dtype=np.uint8)
        if fold_ascii:
            fold[ord("A") : ord("Z") + 1] += 32
        accept = int(np.count_nonzero(~tokenizer.accept)) * width
        return Scanner(
            _fixed(tokenizer.classes), _fixed(fold), _fixed(table.ravel()), accept, tokenizer.limit
        )


class WordTable:
    """Distinct words, numbered from 0 in the order they came."""

    def __init__(self) -> None:
        self._slots: Int64 = np.full(2 * FIRST_SLOTS, -1, np.int64)
        self._arena: Bytes = np.empty(FIRST_BYTES, np.uint8)
        self._ptr: Int64 = np.zeros(FIRST_SLOTS // 2 + 1, np.int64)
        self._state: Int64 = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return int(self._state[0])

    def scan(self, texts: Strings, scanner: Scanner, insert: bool = True) -> tuple[Int64, Int32]:
        """ptr int64[n + 1], word number int32[]: the words of each text; without `insert` a new word is -1."""
        from weir.kernels import tokenize

        data, ptr, n = _fixed(texts.data), _fixed(texts.ptr), len(texts)
        out = np.empty(int(ptr[-1] - ptr[0]), np.int32)
        out_ptr = np.zeros(n + 1, np.int64)
        at = 0
        while True:
            at = tokenize.scan(
                data,
                ptr,
                at,
                n,
                scanner.classes,
                scanner.fold,
                scanner.table,
                scanner.accept,
                scanner.limit,
                insert,
                self._slots,
                self._arena,
                self._ptr,
                self._state,
                out,
                out_ptr[at:],
            )
            if at == n:
                return out_ptr, out[: int(out_ptr[-1])]
            self._grow()

    def words(self, start: int = 0) -> Strings:
        """The words from number `start` on; a view that later growth leaves as it is."""
        stop = len(self)
        return Strings(_fixed(self._arena[: int(self._ptr[stop])]), _fixed(self._ptr[start : stop + 1]))

    def wordlist(self, start: int) -> list[str]:
        """The words from number `start` on as Python strings; none holds a line end."""
        ptr = self._ptr[start : len(self) + 1]
        if len(ptr) < 2:
            return []
        lengths = np.diff(ptr)
        lines = np.full(int(ptr[-1] - ptr[0]) + len(lengths), ord("\n"), np.uint8)
        keep = np.ones(len(lines), np.bool_)
        keep[np.cumsum(lengths + 1) - 1] = False
        lines[keep] = self._arena[int(ptr[0]) : int(ptr[-1])]
        return lines[:-1].tobytes().decode("utf-8", "replace").split("\n")

    def _grow(self) -> None:
        """Make room for the word that did not fit: double what is full."""
        from weir.kernels import tokenize

        count, needed = int(self._state[0]), int(self._state[1])
        if needed > len(self._arena):
            self._arena = _enlarged(self._arena, max(needed, 2 * len(self._arena)))
        if 2 * (count + 1) >= len(self._slots) // 2:
            larger = np.full(2 * len(self._slots), -1, np.int64)
            tokenize.regrow(self._slots, larger)
            self._slots = larger
            self._ptr = _enlarged(self._ptr, len(larger) // 4 + 2)


def _enlarged(array: NDArray[np.generic], size: int) -> NDArray[np.generic]:
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger


def _fixed(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A read-only contiguous view: the kernels are compiled once, for read-only inputs."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
