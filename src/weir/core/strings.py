"""A column of strings as two arrays, the layout Arrow calls large_string."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue

__all__ = [
    "Bytes",
    "Float64",
    "Grades",
    "Int32",
    "Int64",
    "StringColumn",
    "Strings",
    "first_repeated",
]

T = TypeVar("T")

Bytes: TypeAlias = NDArray[np.uint8]
Grades: TypeAlias = NDArray[np.int16 | np.float64]
"""Relevance grades: int16 where all of them are whole, else float64."""
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]


def first_repeated(values: Iterable[T]) -> T | None:
    """The first value that came before, None where none did."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


class StringColumn(Protocol):
    """Strings by position, held in memory as `Strings`, or read or made when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int) -> str: ...

    def __iter__(self) -> Iterator[str]: ...

    def lengths(self) -> Int64:
        """Bytes of each string."""
        ...

    def slice(self, start: int, stop: int) -> Strings:
        """Strings start..stop-1; like a list's slice it ends where the strings end."""
        ...

    def take(self, codes: NDArray[np.integer]) -> Strings:
        """The strings at these positions, copied, in this order."""
        ...

    def tolist(self) -> list[str]:
        """All strings as Python strings."""
        ...


_BREAK = 0x0A
_MANY, _SHORT = 64, 64
"""Strings, and bytes of one on average, from which and up to which all are decoded at once."""


@dataclass(frozen=True, eq=False)
class Strings:
    """Many UTF-8 strings in one buffer; string i is data[ptr[i]:ptr[i+1]].

    data: uint8[total bytes], ptr: int64[n + 1]; both may be views of a memory-mapped file.
    ptr need not start at 0, so a slice shares its parent's data.
    """

    data: Bytes
    ptr: Int64

    @staticmethod
    def of(values: Iterable[str]) -> Strings:
        """Pack Python strings; raises BadValue for half of a surrogate pair, which UTF-8 cannot hold."""
        try:
            return Strings.packed([v.encode("utf-8") for v in values])
        except UnicodeEncodeError as error:
            raise BadValue(f"{error.object!r} is not valid Unicode: {error.reason}") from None

    @staticmethod
    def packed(values: Sequence[bytes]) -> Strings:
        """Pack UTF-8 byte strings."""
        ptr = np.fromiter(accumulate(map(len, values), initial=0), np.int64, len(values) + 1)
        return Strings(np.frombuffer(b"".join(values), np.uint8), ptr)

    @staticmethod
    def concatenated(columns: Sequence[Strings]) -> Strings:
        """Several columns as one, copied."""
        pieces = [c.data[int(c.ptr[0]) : int(c.ptr[-1])] for c in columns]
        ptr = np.zeros(sum(map(len, columns)) + 1, np.int64)
        np.cumsum(np.concatenate([c.lengths() for c in columns] or [ptr[:0]]), out=ptr[1:])
        return Strings(np.concatenate(pieces or [np.zeros(0, np.uint8)]), ptr)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, i: int) -> str:
        count = len(self.ptr) - 1
        if not -count <= i < count:
            raise IndexError(i)
        i %= count
        return self.data[self.ptr[i] : self.ptr[i + 1]].tobytes().decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def lengths(self, codes: NDArray[np.integer] | None = None) -> Int64:
        """Bytes of each string, or of those at these positions."""
        if codes is None:
            return np.diff(self.ptr)
        lengths: Int64 = self.ptr[1:][codes] - self.ptr[:-1][codes]
        return lengths

    def slice(self, start: int, stop: int) -> Strings:
        """Strings start..stop-1, sharing the data; like a list's slice it ends where the strings end."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        return Strings(self.data, self.ptr[start : stop + 1])

    def take(self, codes: NDArray[np.integer]) -> Strings:
        """The strings at these positions, copied, in this order."""
        starts, lengths = self.ptr[:-1][codes], self.lengths(codes)
        ptr = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=ptr[1:])
        where = np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1])
        return Strings(self.data[where], ptr)

    def tolist(self) -> list[str]:
        """All strings as Python strings."""
        if len(self) == 0:
            return []
        base, count = int(self.ptr[0]), len(self)
        held = self.data[base : int(self.ptr[-1])]
        if count >= _MANY and len(held) < _SHORT * count and not (held == _BREAK).any():
            # One text with a break between two strings is decoded and cut faster than the strings are one by one.
            joined = np.full(len(held) + count, _BREAK, np.uint8)
            ends = np.zeros(len(joined), np.bool_)
            ends[self.ptr[1:] - base + np.arange(count)] = True
            joined[~ends] = held
            return joined[:-1].tobytes().decode("utf-8", "replace").split(chr(_BREAK))
        raw = bytes(held)
        cuts = (self.ptr - base).tolist()
        return [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(cuts)]
