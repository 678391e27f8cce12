"""Files that only grow, and a journal that says how much of them counts.

A folder of a store holds

    store.json     what made the contents, and the sizes that never change
    journal.bin    a record for each batch: how much there is now, and checksums of what was added
    others         columns: rows of equal width, one after another

A batch counts once its record is whole, so a process killed anywhere loses the batch it was at and nothing else:
what lies behind the last record is written over. Of several processes one adds at a time, the others wait for it and
then find what it added.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.strings import Int64
from weir.errors import StoreError
from weir.io.atomic import locked, write_json

__all__ = ["Column", "Hashes", "Journal", "Known", "hash_texts", "store_folder"]

Hashes: TypeAlias = NDArray[np.uint64]
"""uint64[n, 2]: the two halves of a text's hash."""

PIECE = 1 << 22
AGAIN = "delete the folder to encode again"


def hash_texts(texts: list[bytes]) -> Hashes:
    """The 128-bit hash of each text."""
    digests = b"".join([hashlib.blake2b(t, digest_size=16).digest() for t in texts])
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


def store_folder(root: Path, about: Mapping[str, object]) -> tuple[Path, str]:
    """(folder, its description as JSON) of the store, below `root`, of what `about` describes entirely."""
    text = json.dumps(about, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in str(about.get("model", "vectors")))
    return root / f"{name.strip('-.')[-60:]}-{key}", text


@dataclass(frozen=True, eq=False)
class Known:
    """The texts that a store holds, by their hashes in the order they were added."""

    texts: Hashes

    @cached_property
    def _sorted(self) -> tuple[Int64, NDArray[np.uint64]]:
        order = np.argsort(self.texts[:, 0], kind="stable")
        return order, self.texts[order, 0]

    def find(self, wanted: Hashes) -> Int64:
        """The number of each text, -1 for one that is not here."""
        found = np.full(len(wanted), -1, np.int64)
        order, ordered = self._sorted
        at = np.searchsorted(ordered, wanted[:, 0])
        pending = np.arange(len(wanted))
        while len(pending):  # halves of different hashes may agree: walk along
            pending = pending[at[pending] < len(ordered)]
            pending = pending[ordered[at[pending]] == wanted[pending, 0]]
            row = order[at[pending]]
            same = self.texts[row, 1] == wanted[pending, 1]
            found[pending[same]] = row[same]
            pending = pending[~same]
            at[pending] += 1
        return found


@dataclass(frozen=True)
class Column:
    """A file of rows. count: the journal's field with how many there are; checksum: that of what a batch added."""

    file: str
    count: str
    checksum: str


@dataclass(frozen=True)
class Journal:
    """The journal of a folder: what is added to its columns, and what of them counts.

    record: the dtype of its entries: counts, of which the first rises with every batch, checksums, and `check`, a
    hash of the bytes before it; columns: the files it speaks of; format: of store.json.
    """

    folder: Path
    record: np.dtype[Any]
    columns: tuple[Column, ...]
    format: int = 1

    @property
    def begun(self) -> bool:
        """Whether anything was added, or was about to be."""
        return (self.folder / "store.json").exists()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder for adding: another process that wants to add waits; a killed one lets go."""
        with locked(self.folder / "lock"):
            yield

    def begin(self, facts: Mapping[str, object]) -> None:
        """Write store.json: sizes that never change and what the contents are."""
        write_json(self.folder / "store.json", {"format": self.format, **facts})

    def size(self, name: str) -> int:
        """A size that store.json states; raises StoreError where it is damaged or of another format."""
        path = self.folder / "store.json"
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["format"] != self.format:
                raise StoreError(f"{path}: format {facts['format']}, expected {self.format}; {AGAIN}")
            return int(facts[name])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: damaged ({error}); {AGAIN}") from None

    def records(self) -> NDArray[np.void]:
        """The records of whole batches; raises StoreError for one that is damaged and not the last."""
        path, width = self.folder / "journal.bin", self.record.itemsize
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return np.zeros(0, self.record)
        records = np.frombuffer(data[: len(data) // width * width], self.record)
        bad = np.flatnonzero((records["check"] != self._check(records)) | ~self._rises(records))
        if len(bad) == 0:
            return records
        if bad[0] == len(records) - 1:  # a batch that was being added when the power went
            return records[:-1]
        raise StoreError(f"{path}: record {bad[0] + 1} is damaged; {AGAIN}")

    def totals(self, records: NDArray[np.void]) -> tuple[int, ...]:
        """How many rows of each column count."""
        return tuple(int(records[c.count][-1]) if len(records) else 0 for c in self.columns)

    def check(self, records: NDArray[np.void], widths: Sequence[int], contents: bool) -> None:
        """Raise StoreError, naming the file, where a column is too short, or, where `contents` is set, damaged.

        widths: bytes in a row of each column. Files that were found whole are not read again while their sizes and
        times stay.
        """
        for column, width, rows in zip(self.columns, widths, self.totals(records), strict=True):
            path = self.folder / column.file
            size = path.stat().st_size if path.exists() else 0
            if size < rows * width:
                raise StoreError(f"{path}: {size} bytes, expected {rows * width} by the journal; {AGAIN}")
        if not (contents and len(records)):
            return
        mark, seen = self.folder / "checked.json", self._seen(records)
        with suppress(OSError, ValueError):
            if json.loads(mark.read_text(encoding="utf-8")) == seen:
                return
        for column, width in zip(self.columns, widths, strict=True):
            self._compare(column, records, width)
        with suppress(StoreError):  # where nothing may be written they are compared every time
            write_json(mark, seen, durable=False)

    def add(self, parts: Sequence[NDArray[Any]]) -> None:
        """Add rows to every column, each an array whose first axis counts them; they count once this returns."""
        records = self.records()
        record = np.zeros(1, self.record)
        for column, part, before in zip(self.columns, parts, self.totals(records), strict=True):
            data = np.ascontiguousarray(part)
            width = data.itemsize * int(np.prod(data.shape[1:], dtype=np.int64))
            plain = data.reshape(-1).view(np.uint8)
            _put(self.folder / column.file, before * width, plain)
            record[column.count] = before + len(data)
            record[column.checksum] = zlib.crc32(plain.data)
        record["check"] = self._check(record)
        _put(self.folder / "journal.bin", len(records) * self.record.itemsize, record.view(np.uint8))

    def _check(self, records: NDArray[np.void]) -> NDArray[np.uint32]:
        """A hash of what each record says."""
        width = self.record.itemsize
        plain = np.ascontiguousarray(records).view(np.uint8)
        assert self.record.fields is not None
        said = self.record.fields["check"][1]
        return hash_strings(plain, np.arange(len(records)) * width, np.full(len(records), said)).astype(
            np.uint32
        )

    def _rises(self, records: NDArray[np.void]) -> NDArray[np.bool_]:
        """Whether each record counts more than the one before it."""
        never_less: NDArray[np.bool_] = np.all(
            [np.diff(records[c.count], prepend=0) >= 0 for c in self.columns], axis=0
        )
        assert self.record.names is not None
        return never_less & (np.diff(records[self.record.names[0]], prepend=0) > 0)

    def _seen(self, records: NDArray[np.void]) -> list[int]:
        """The counts, and the files' sizes and times."""
        stats = [(self.folder / c.file).stat() for c in self.columns]
        counts = [int(records[name][-1]) for name in dict.fromkeys(c.count for c in self.columns)]
        return [*counts, *(s.st_size for s in stats), *(s.st_mtime_ns for s in stats)]

    def _compare(self, column: Column, records: NDArray[np.void], width: int) -> None:
        rows = np.concatenate([[0], records[column.count]])
        path = self.folder / column.file
        with path.open("rb") as file:
            for batch, size in enumerate(np.diff(rows) * width):
                if _crc(file, int(size)) != records[column.checksum][batch]:
                    raise StoreError(
                        f"{path}: rows {rows[batch]} to {rows[batch + 1] - 1} are damaged; {AGAIN}"
                    )


def _crc(file: BinaryIO, size: int) -> int:
    value = 0
    while size > 0 and (data := file.read(min(size, PIECE))):
        value, size = zlib.crc32(data, value), size - len(data)
    return value


def _put(path: Path, at: int, data: NDArray[np.uint8]) -> None:
    """Write bytes at a place of a file, all that comes behind cut off, and force them to the disk."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.seek(at)
        file.write(data.data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
