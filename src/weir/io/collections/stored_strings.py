"""Text columns in files: written as they grow, memory-mapped, compared with their checksums when they are first used.

A column is two files: `<name>.utf8`, the bytes of its texts one behind the other, and `<name>.offsets`, little-endian
int64[n + 1], where each text begins and the last one ends.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Int64, StringColumn, Strings
from weir.errors import StoreError
from weir.io.storage.checksums import BLOCK_BYTES, Checksum

__all__ = ["CheckedFile", "ColumnHash", "ColumnWriter", "StoredStrings", "column_files"]

BATCH_STRINGS = 4096
"""Strings read together by who goes through all of them."""


def column_files(name: str) -> tuple[str, str]:
    """The names of the files of a column: of its bytes and of its offsets."""
    return f"{name}.utf8", f"{name}.offsets"


class ColumnHash:
    """A SHA-256 of the bytes of a text column and one of its offsets, whatever the batches it comes in."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self._hash = (hashlib.sha256(), hashlib.sha256())

    @staticmethod
    def of(column: StringColumn) -> bytes:
        """The hash of a whole column."""
        found = ColumnHash()
        for start in range(0, len(column), BATCH_STRINGS):
            found.append(column.slice(start, start + BATCH_STRINGS))
        return found.digest()

    def append(self, texts: Strings) -> tuple[bytes, bytes]:
        """Take some more texts; returns their bytes, and where each of them ends in the column, as files hold them."""
        first = int(texts.ptr[0])
        offsets = (texts.ptr[1:] + (self.bytes - first)).astype("<i8", copy=False).tobytes()
        data = texts.data[first : int(texts.ptr[-1])].tobytes()
        for digest, part in zip(self._hash, (data, offsets), strict=True):
            digest.update(part)
        self.bytes += len(data)
        self.rows += len(texts)
        return data, offsets

    def digest(self) -> bytes:
        """The hash of the column: equal columns have equal ones."""
        return self._hash[0].digest() + self._hash[1].digest()


class ColumnWriter:
    """Writes a text column batch by batch, and hashes it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._paths = tuple(folder / file for file in column_files(name))
        self._data, self._offsets = (path.open("wb") for path in self._paths)
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        self._hash = ColumnHash()
        self.rows = self.bytes = 0

    def append(self, texts: Strings) -> None:
        """Write some texts; raises OSError where the disk refuses."""
        for file, part in zip((self._data, self._offsets), self._hash.append(texts), strict=True):
            file.write(part)
        self.rows, self.bytes = self._hash.rows, self._hash.bytes

    def digest(self) -> bytes:
        """The hash of the column: equal columns have equal ones."""
        return self._hash.digest()

    def close(self) -> None:
        """Close both files, which is when the last of their bytes are written."""
        try:
            self._data.close()
        finally:
            self._offsets.close()

    def remove(self) -> None:
        """Remove both files of a column that nobody needs."""
        for path in self._paths:
            path.unlink()


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
        empty = self.checksum.bytes == 0  # which cannot be mapped
        self.raw = np.empty(0, np.uint8) if empty else np.asarray(np.memmap(self.path, np.uint8, "r"))
        self._seen = np.zeros(len(self.checksum.blocks), np.bool_)


@dataclass(frozen=True, eq=False)
class StoredStrings:
    """A column in its two files; see StringColumn.

    Raises StoreError, when strings are read, for damage that cannot be mended.
    """

    data: CheckedFile
    offsets: CheckedFile

    def __len__(self) -> int:
        return self.offsets.checksum.bytes // 8 - 1

    def __getitem__(self, i: int) -> str:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.slice(i, i + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BATCH_STRINGS):
            yield from self.slice(start, start + BATCH_STRINGS)

    def lengths(self) -> Int64:
        """Bytes of each string."""
        return np.diff(self._cuts(0, len(self)))

    def slice(self, start: int, stop: int) -> Strings:
        """Strings start..stop-1, sharing the memory of the file."""
        start, stop, _ = slice(start, stop).indices(len(self))
        ptr = self._cuts(start, max(start, stop))
        self.data.need(int(ptr[0]), int(ptr[-1]))
        return Strings(self.data.raw, ptr)

    def take(self, codes: NDArray[np.integer]) -> Strings:
        """The strings at these positions, copied; only the blocks they stand on are read."""
        at = np.asarray(codes, np.int64)
        at = np.where(at < 0, at + len(self), at)
        if len(at) and not 0 <= at.min() <= at.max() < len(self):
            raise IndexError(int(at.max()))
        self.offsets.need_all(8 * at, 8 * at + 16)
        ptr = self._ptr
        starts, stops = ptr[at], ptr[at + 1]
        if len(at) and not (
            starts.min() >= 0 and (starts <= stops).all() and stops.max() <= self.data.checksum.bytes
        ):
            raise self._senseless()
        self.data.need_all(starts, stops)
        return Strings(self.data.raw, ptr).take(at)

    def tolist(self) -> list[str]:
        """All strings as Python strings."""
        return self.slice(0, len(self)).tolist()

    @property
    def _ptr(self) -> Int64:
        return self.offsets.raw.view("<i8")

    def _cuts(self, start: int, stop: int) -> Int64:
        """Where strings start..stop-1 lie among the bytes: int64[n + 1], rising."""
        self.offsets.need(8 * start, 8 * stop + 8)
        ptr = self._ptr[start : stop + 1]
        if not (ptr[0] >= 0 and ptr[-1] <= self.data.checksum.bytes and (ptr[1:] >= ptr[:-1]).all()):
            raise self._senseless()
        return ptr

    def _senseless(self) -> StoreError:
        return StoreError(
            f"{self.offsets.path}: its offsets were never written so; delete it to build it again"
        )
