"""Append-only files of rows, with a journal of their valid batches.

A batch counts once its record in journal.bin is complete. Processes write in turn. Damaged batches are
removed, and made again when needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64, hash_strings
from weir.errors import FormatError, StoreError, StoreWarning, give_warning, is_shortage
from weir.files.atomic import atomic_dir, storing, sweep_inside, write_json
from weir.files.json_record import read_json
from weir.files.leases import locked

T = TypeVar("T")

Hashes: TypeAlias = NDArray[np.uint64]
"""uint64[n, 2], the halves of a text's hash."""

MovedRows: TypeAlias = Callable[
    [list[NDArray[np.uint8]], list[int], tuple[int, ...]], Sequence[NDArray[Any]] | None
]
"""(a batch's rows in each column, each column's offset then, its offset now) -> rows to add; None if
inconsistent."""

FORMAT = 2
FACTS, JOURNAL = "store.json", "journal.bin"
PIECE_BYTES = 1 << 22


def hash_texts(texts: list[bytes]) -> Hashes:
    """Return the 128-bit hash of each text, uint64[texts, 2]."""
    digests = b"".join([hashlib.blake2b(t, digest_size=16).digest() for t in texts])
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


def store_folder(root: Path, about: Mapping[str, object]) -> tuple[Path, str]:
    """Return (folder of a store below `root`, `about` as JSON); creates nothing.

    about: everything that decides the rows; "model" begins the folder's name.
    """
    text = json.dumps(about, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in str(about.get("model", "vectors")))
    return root / f"{name.strip('-.')[-60:]}-{key}", text


@dataclass(frozen=True, eq=False)
class KnownTexts:
    """Hashes of a store's texts, in order of addition."""

    hashes: Hashes

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def _sorted(self) -> tuple[Int64, NDArray[np.uint64]]:
        order = np.argsort(self.hashes[:, 0], kind="stable")
        return order, self.hashes[order, 0]

    def find(self, hashes: Hashes) -> Int64:
        """Return each text's number in the store, int64[n]; -1 if absent."""
        numbers = np.full(len(hashes), -1, np.int64)
        order, ordered = self._sorted
        at = np.searchsorted(ordered, hashes[:, 0])
        pending = np.arange(len(hashes))
        while len(pending):  # halves of different hashes may agree: walk along
            pending = pending[at[pending] < len(ordered)]
            pending = pending[ordered[at[pending]] == hashes[pending, 0]]
            row = order[at[pending]]
            same = self.hashes[row, 1] == hashes[pending, 1]
            numbers[pending[same]] = row[same]
            pending = pending[~same]
            at[pending] += 1
        return numbers


def lock_of(folder: Path) -> Path:
    """Return the path of a store's lock file."""
    return folder.with_name(f".{folder.name}.lock")


@contextmanager
def locked_store(folder: Path) -> Iterator[None]:
    """Hold a store's write lock during the block, waiting for it; remove leftovers of killed writers first."""
    with locked(lock_of(folder)):
        sweep_inside(folder)
        yield


@dataclass(frozen=True)
class JournalColumn:
    """A file of rows, and its fields in the journal."""

    file: str
    count: str
    """Field for the total number of rows."""
    checksum: str
    """Field for the checksum of a batch's rows."""


@dataclass(frozen=True)
class Journal:
    """The log of complete batches, beside a store's files of rows."""

    folder: Path
    record: np.dtype[Any]
    """Dtype of a record: row counts (the first rises with every batch), checksums, a constant `size`, and
    last `check`, a hash of the bytes before it."""
    columns: tuple[JournalColumn, ...]
    about: str
    """Description of the contents as JSON, "" if unknown."""

    def records(self) -> NDArray[np.void]:
        """Return the records of complete batches; raises StoreError if one is damaged."""
        records, good = self._read()
        bad = np.flatnonzero(~good)
        if len(bad):
            raise StoreError(f"{self.folder / JOURNAL}: record {bad[0] + 1} is damaged")
        return records

    def totals(self, records: NDArray[np.void]) -> tuple[int, ...]:
        """Return the number of valid rows of each column."""
        return tuple(int(records[c.count][-1]) if len(records) else 0 for c in self.columns)

    def check(self, records: NDArray[np.void], widths: Sequence[int], contents: bool) -> None:
        """Raise StoreError, naming the file, for a column that is too short or, with `contents`, damaged.

        widths: bytes of a row in each column.
        """
        for column, width, rows in zip(self.columns, widths, self.totals(records), strict=True):
            path = self.folder / column.file
            size = path.stat().st_size if path.exists() else 0
            if size < rows * width:
                raise StoreError(f"{path}: {size} bytes, expected {rows * width} by the journal")
        if not (contents and len(records)):
            return
        for column, width in zip(self.columns, widths, strict=True):
            damaged = np.flatnonzero(~self._whole(column, records, width))
            if len(damaged):
                cuts = np.concatenate([[0], records[column.count]])
                first, last = cuts[damaged[0]], cuts[damaged[0] + 1] - 1
                raise StoreError(f"{self.folder / column.file}: rows {first} to {last} are damaged")
        if self.about and self._facts() != self._described(records):
            raise StoreError(f"{self.folder / FACTS}: changed since it was written")

    def add(self, parts: Sequence[NDArray[Any]], size: int, durable: bool = True) -> None:
        """Append a batch of rows to every column and record it; raises StoreError for a damaged journal.

        parts: rows of each column.
        size: the same in all records.
        durable: wait until the rows are on the disk.
        """
        records = self.records()
        record = np.zeros(1, self.record)
        record["size"] = size
        if len(records) == 0:
            write_json(self.folder / FACTS, self._described(record), durable)
        for column, part, before in zip(self.columns, parts, self.totals(records), strict=True):
            data = np.ascontiguousarray(part)
            width = data.itemsize * int(np.prod(data.shape[1:], dtype=np.int64))
            plain = data.reshape(-1).view(np.uint8)
            _put(self.folder / column.file, before * width, plain, durable)
            record[column.count] = before + len(data)
            record[column.checksum] = zlib.crc32(plain.data)
        record["check"] = self._check(record)
        _put(self.folder / JOURNAL, len(records) * self.record.itemsize, record.view(np.uint8), durable)

    def mend(self, width: Callable[[int], Sequence[int]], moved_rows: MovedRows | None = None) -> int:
        """Remove damaged batches, and return the number of rows left in the last column; the caller holds the lock.

        width: maps a vector's size to the bytes of a row in each column.
        moved_rows: adjusts rows to their new offset; None from it removes the batch.
        """
        records, good = self._read()
        size = int(records["size"][good][0]) if good.any() else 0
        widths = width(size)
        whole = good & np.concatenate([[True], good[:-1]])  # where it begins is certain
        for column, wide in zip(self.columns, widths, strict=True):
            whole &= self._whole(column, records, wide, whole)
        if whole.all() and len(records):  # nothing but the description
            write_json(self.folder / FACTS, self._described(records))
            return self.totals(records)[-1]
        with atomic_dir(self.folder) as folder:
            copy = replace(self, folder=folder, about=self.about or json.dumps(self._facts().get("about")))
            for batch in np.flatnonzero(whole).tolist():
                before = [int(records[c.count][batch - 1]) if batch else 0 for c in self.columns]
                parts = []
                for column, wide, first in zip(self.columns, widths, before, strict=True):
                    count = int(records[column.count][batch]) - first
                    with (self.folder / column.file).open("rb") as file:
                        file.seek(first * wide)
                        rows = np.frombuffer(file.read(count * wide), np.uint8)
                    parts.append(rows.reshape(count, wide))
                moved = moved_rows(parts, before, copy.totals(copy.records())) if moved_rows else parts
                if moved is not None:
                    copy.add(moved, size, durable=False)
            return copy.totals(copy.records())[-1]

    def _read(self) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
        try:
            data = (self.folder / JOURNAL).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            data = b""
        except OSError as error:
            if is_shortage(error):
                raise
            raise StoreError(f"{self.folder / JOURNAL}: {error.strerror or error}") from None
        width = self.record.itemsize
        records = np.frombuffer(data[: len(data) // width * width], self.record)
        good: NDArray[np.bool_] = records["check"] == self._check(records)
        sound = records[good]
        assert self.record.names is not None
        rises = np.diff(sound[self.record.names[0]], prepend=0) > 0  # each counts more than the one before it
        for column in self.columns:
            rises &= np.diff(sound[column.count], prepend=0) >= 0
        good[good] = rises
        if good.any():
            good &= records["size"] == records["size"][good][0]
        return records, good

    def _check(self, records: NDArray[np.void]) -> NDArray[np.uint32]:
        width = self.record.itemsize
        plain = np.ascontiguousarray(records).view(np.uint8)
        assert self.record.fields is not None
        lengths = np.full(len(records), self.record.fields["check"][1])
        return hash_strings(plain, np.arange(len(records)) * width, lengths).astype(np.uint32)

    def _described(self, records: NDArray[np.void]) -> dict[str, object]:
        return {"format": FORMAT, "size": int(records["size"][0]), "about": json.loads(self.about or "null")}

    def _facts(self) -> dict[str, object]:
        with suppress(OSError, FormatError):
            facts = read_json(self.folder / FACTS)
            return facts if isinstance(facts, dict) else {}
        return {}

    def _whole(
        self,
        column: JournalColumn,
        records: NDArray[np.void],
        width: int,
        batches: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        path = self.folder / column.file
        ends = records[column.count] * width
        spans = np.stack([np.concatenate([[0], ends[:-1]]), ends, records[column.checksum].astype(np.int64)])
        if batches is not None:
            spans = spans[:, batches]
        whole = np.zeros(len(records), np.bool_)
        try:
            stat = path.stat()
            state = stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
            sound = np.frombuffer(_sound(str(path), state, spans.astype(np.int64).tobytes()), np.bool_)
        except OSError:
            return whole
        whole[slice(None) if batches is None else batches] = sound
        return whole


def mended(
    journal: Journal,
    read: Callable[[bool], T],
    width: Callable[[int], Sequence[int]],
    moved_rows: MovedRows | None = None,
) -> T:
    """Return the result of `read`, which reads a store; a damaged store is repaired first, with a StoreWarning.

    read: compares checksums if its argument is True.
    width, moved_rows: passed to `Journal.mend`.

    Raises StoreError if repair fails.
    """
    try:
        return read(True)
    except StoreError as first_error:
        error = first_error
    with storing(journal.folder), locked_store(journal.folder):
        try:
            return read(True)  # another process mended it meanwhile
        except StoreError:
            count = journal.mend(width, moved_rows)
    give_warning(StoreWarning(f"{error}; {count} texts are kept, the others are made again"))
    return read(True)


@lru_cache(maxsize=64)
def _sound(path: str, state: tuple[int, ...], spans: bytes) -> bytes:
    starts, ends, sums = np.frombuffer(spans, np.int64).reshape(3, -1).tolist()
    sound = bytearray()
    with Path(path).open("rb") as file:
        for start, end, checksum in zip(starts, ends, sums, strict=True):
            file.seek(start)
            crc, size = 0, end - start
            while size > 0 and (data := file.read(min(size, PIECE_BYTES))):
                crc, size = zlib.crc32(data, crc), size - len(data)
            sound.append(size == 0 and crc == checksum)
    return bytes(sound)


def _put(path: Path, at: int, data: NDArray[np.uint8], durable: bool = True) -> None:
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.seek(at)
        file.write(data.data)
        file.truncate()
        if durable:
            file.flush()
            os.fsync(file.fileno())
