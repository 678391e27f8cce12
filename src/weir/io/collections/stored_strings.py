"""Columns of strings in a file whose bytes are compared with their checksums when they are first used."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Int64, Strings
from weir.errors import StoreError
from weir.io.collections.arrow_file import Extent
from weir.io.storage.checksums import BLOCK_BYTES, Checksum

__all__ = ["CheckedFile", "StoredStrings"]

AT_ONCE = 4096
"""Strings read together by who goes through all of them."""


@dataclass(eq=False)
class CheckedFile:
    """A memory-mapped file of which no block is used before it was compared with its checksum.

    path: where; checksum: what was written there; mend: builds the file again, with the same bytes, or raises
    StoreError; told what was found damaged.
    """

    path: Path
    checksum: Checksum
    mend: Callable[[StoreError], None]
    raw: Bytes = field(init=False)
    _seen: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self._map()

    def need(self, start: int, stop: int) -> None:
        """Make sure of bytes start..stop-1; a damaged file is mended, and `raw` is then another array."""
        first, last = start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)
        if stop > start and not self._seen[first:last].all():
            self._compare(np.arange(first, last))

    def need_all(self, starts: Int64, stops: Int64) -> None:
        """As `need`, of several pieces, none reaching beyond the file."""
        some = stops > starts
        first, last = starts[some] // BLOCK_BYTES, (stops[some] - 1) // BLOCK_BYTES
        for start, stop in {*zip(first.tolist(), last.tolist(), strict=True)}:
            self.need(start * BLOCK_BYTES, (stop + 1) * BLOCK_BYTES)

    def _compare(self, blocks: Int64) -> None:
        damaged = self._damaged(blocks[~self._seen[blocks]])
        if damaged is None:
            return
        self.mend(StoreError(f"{self.path}: changed since it was written, {damaged}"))
        self._map()
        damaged = self._damaged(blocks)
        if damaged is not None:
            raise StoreError(f"{self.path}: damaged again, {damaged}; is the disk failing?")

    def _damaged(self, blocks: Int64) -> str | None:
        for number in blocks.tolist():
            at = number * BLOCK_BYTES
            if zlib.crc32(self.raw[at : at + BLOCK_BYTES].data) != self.checksum.blocks[number]:
                return f"in bytes {at} and following"
            self._seen[number] = True
        return None

    def _map(self) -> None:
        self.raw = np.asarray(np.memmap(self.path, np.uint8, "r"))
        self._seen = np.zeros(len(self.checksum.blocks), np.bool_)


@dataclass(frozen=True, eq=False)
class StoredStrings:
    """A column of a file; see StringColumn. offsets, data: where its n + 1 offsets (int64) and its bytes lie.

    Raises StoreError, when strings are read, for damage that cannot be mended.
    """

    file: CheckedFile
    offsets: Extent
    data: Extent

    def __len__(self) -> int:
        return self.offsets.size // 8 - 1

    def __getitem__(self, i: int) -> str:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.slice(i, i + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), AT_ONCE):
            yield from self.slice(start, start + AT_ONCE)

    def lengths(self) -> Int64:
        """Bytes of each string."""
        return np.diff(self._cuts(0, len(self)))

    def slice(self, start: int, stop: int) -> Strings:
        """Strings start..stop-1, sharing the memory of the file."""
        start, stop, _ = slice(start, stop).indices(len(self))
        ptr = self._cuts(start, max(start, stop))
        self.file.need(self.data.start + int(ptr[0]), self.data.start + int(ptr[-1]))
        return Strings(self._bytes, ptr)

    def take(self, codes: NDArray[np.integer]) -> Strings:
        """The strings at these positions, copied; only what they stand on is read."""
        at = np.asarray(codes, np.int64)
        at = np.where(at < 0, at + len(self), at)
        if len(at) and not 0 <= at.min() <= at.max() < len(self):
            raise IndexError(int(at.max()))
        self.file.need_all(self.offsets.start + 8 * at, self.offsets.start + 8 * at + 16)
        ptr = self._ptr
        starts, stops = ptr[at], ptr[at + 1]
        if len(at) and not (starts.min() >= 0 and (starts <= stops).all() and stops.max() <= self.data.size):
            raise self._senseless()
        self.file.need_all(self.data.start + starts, self.data.start + stops)
        return Strings(self._bytes, ptr).take(at)

    def tolist(self) -> list[str]:
        """All strings as Python strings."""
        return self.slice(0, len(self)).tolist()

    @property
    def _ptr(self) -> Int64:
        return self.file.raw[self.offsets.start : self.offsets.start + self.offsets.size].view("<i8")

    @property
    def _bytes(self) -> Bytes:
        return self.file.raw[self.data.start : self.data.start + self.data.size]

    def _cuts(self, start: int, stop: int) -> Int64:
        """Where strings start..stop-1 lie among the bytes: int64[n + 1], rising."""
        self.file.need(self.offsets.start + 8 * start, self.offsets.start + 8 * stop + 8)
        ptr = self._ptr[start : stop + 1]
        if not (ptr[0] >= 0 and ptr[-1] <= self.data.size and (ptr[1:] >= ptr[:-1]).all()):
            raise self._senseless()
        return ptr

    def _senseless(self) -> StoreError:
        return StoreError(f"{self.file.path}: its offsets were never written so; delete it to build it again")
