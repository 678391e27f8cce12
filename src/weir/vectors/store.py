"""The embedding store: a text's vector is kept under the text itself, so that it is never computed twice.

One folder for each encoder with all its settings:

    store.json     what made the vectors, how many numbers one has, how they are stored
    vectors.bin    rows of equal width, one after another
    texts.bin      the 128-bit hash of each row's text
    journal.bin    a record for each batch: how many rows there are now, and checksums of what was added

A batch counts once its record is whole, so a process killed anywhere loses the batch it was at and nothing else:
what lies behind the last record is written over. Of several processes one adds at a time, the others wait for it and
then find what it added.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.strings import Int64
from weir.errors import BadValue, StoreError
from weir.io.atomic import locked, storing, write_json
from weir.vectors.codec import Codec, codec

__all__ = ["Hashes", "Snapshot", "Store", "hash_texts"]

Float32: TypeAlias = NDArray[np.float32]
Hashes: TypeAlias = NDArray[np.uint64]
"""uint64[n, 2]: the two halves of a text's hash."""

FORMAT = 1
RECORD = np.dtype([("rows", "<i8"), ("vectors", "<u4"), ("texts", "<u4"), ("check", "<u4"), ("zero", "<u4")])
FILES = ("vectors.bin", "texts.bin")
PIECE = 1 << 22


def hash_texts(texts: list[bytes]) -> Hashes:
    """The 128-bit hash of each text."""
    digests = b"".join([hashlib.blake2b(t, digest_size=16).digest() for t in texts])
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A store as it was at one moment: rows, memory-mapped, and the hashes of their texts.

    raw: uint8[n, width]; texts: uint64[n, 2].
    """

    codec: Codec
    dimensions: int
    raw: NDArray[np.uint8]
    texts: Hashes

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def _sorted(self) -> tuple[Int64, NDArray[np.uint64]]:
        order = np.argsort(self.texts[:, 0], kind="stable")
        return order, self.texts[order, 0]

    def find(self, wanted: Hashes) -> Int64:
        """The row of each text, -1 for one that is not here."""
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

    def release(self) -> None:
        """Let the system take back the memory of rows read before; they are read again when they are used."""
        mapping = getattr(self.raw, "_mmap", None)
        if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)

    def vectors(self, rows: Int64) -> Float32:
        """The vectors of these rows: float32[n, d]; a view where they are float32 and follow each other."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            raw = self.raw[int(rows[0]) : int(rows[-1]) + 1]
        else:
            raw = self.raw[rows]
        return self.codec.read(raw, self.dimensions)


@dataclass(frozen=True)
class Store:
    """The vectors of one encoder with all its settings; nothing is touched until it is read or added to.

    folder: where; about: what makes the vectors, kept for the reader; dtype: how they are stored.
    """

    folder: Path
    about: str
    dtype: str

    @staticmethod
    def of(root: Path, about: Mapping[str, object], dtype: str = "fp32") -> Store:
        """The store, below the folder `root`, of an encoder that `about` describes entirely."""
        codec(dtype)
        text = json.dumps({**about, "stored": dtype}, sort_keys=True, default=str)
        key = hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in str(about.get("model", "vectors")))
        return Store(root / f"{name.strip('-.')[-60:]}-{key}", text, dtype)

    def snapshot(self, check: bool = True) -> Snapshot | None:
        """The store as it is now; None where nothing was added yet.

        check: compare what changed since it was last compared with its checksums. Raises StoreError, naming the file,
        where it is damaged or of another format.
        """
        if not (self.folder / "store.json").exists():
            return None
        d, journal = self._dimensions(), self._journal()
        kind = codec(self.dtype)
        rows = int(journal["rows"][-1]) if len(journal) else 0
        for name, width in zip(FILES, (kind.width(d), 16), strict=True):
            self._refuse_short(name, rows * width)
        if check and rows:
            self._verify(journal, (kind.width(d), 16))
        if rows == 0:
            return Snapshot(kind, d, np.zeros((0, kind.width(d)), np.uint8), np.zeros((0, 2), np.uint64))
        raw = np.memmap(self.folder / FILES[0], np.uint8, "r", shape=(rows, kind.width(d)))
        texts = np.fromfile(self.folder / FILES[1], "<u8", 2 * rows).reshape(-1, 2)
        return Snapshot(kind, d, raw, texts)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the store for adding: another process that wants to add waits; a killed one lets go."""
        with locked(self.folder / "lock"):
            yield

    def add(self, texts: Hashes, vectors: Float32) -> None:
        """Add a batch of texts that are not there, while holding the store; it is there whole once this returns.

        Raises BadValue for other dimensions than the store's, StoreError where the disk refuses.
        """
        with storing(self.folder):
            if not (self.folder / "store.json").exists():
                facts = {"format": FORMAT, "dimensions": vectors.shape[1], "about": json.loads(self.about)}
                write_json(self.folder / "store.json", facts)
            if vectors.shape[1] != self._dimensions():
                raise BadValue(
                    f"the encoder gave vectors of {vectors.shape[1]} dimensions; those in {self.folder} have "
                    f"{self._dimensions()}"
                )
            journal = self._journal()
            start = int(journal["rows"][-1]) if len(journal) else 0
            written = codec(self.dtype).write(vectors)
            parts = [np.ascontiguousarray(part).tobytes() for part in (written, texts.astype("<u8"))]
            for name, part in zip(FILES, parts, strict=True):
                _put(self.folder / name, start * (len(part) // len(texts)), part)
            record = np.zeros(1, RECORD)
            record["rows"] = start + len(texts)
            record["vectors"], record["texts"] = (zlib.crc32(part) for part in parts)
            record["check"] = _check(record)
            _put(self.folder / "journal.bin", len(journal) * RECORD.itemsize, record.tobytes())

    def _dimensions(self) -> int:
        path = self.folder / "store.json"
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise StoreError(
                    f"{path}: format {facts['format']}, expected {FORMAT}; delete the folder to encode again"
                )
            return int(facts["dimensions"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: damaged ({error}); delete the folder to encode again") from None

    def _journal(self) -> NDArray[np.void]:
        """The records of whole batches; raises StoreError for one that is damaged and not the last."""
        path = self.folder / "journal.bin"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return np.zeros(0, RECORD)
        records = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
        bad = np.flatnonzero(
            (records["check"] != _check(records)) | (np.diff(records["rows"], prepend=0) <= 0)
        )
        if len(bad) == 0:
            return records
        if bad[0] == len(records) - 1:  # a batch that was being added when the power went
            return records[:-1]
        raise StoreError(f"{path}: record {bad[0] + 1} is damaged; delete the folder to encode again")

    def _refuse_short(self, name: str, expected: int) -> None:
        path = self.folder / name
        size = path.stat().st_size if path.exists() else 0
        if size < expected:
            raise StoreError(
                f"{path}: {size} bytes, expected {expected} by the journal; delete the folder to encode again"
            )

    def _verify(self, journal: NDArray[np.void], widths: tuple[int, int]) -> None:
        """Compare with the checksums; what was found whole is remembered by the files' sizes and times."""
        mark = self.folder / "checked.json"
        stats = [(self.folder / name).stat() for name in FILES]
        seen = [int(journal["rows"][-1]), *(s.st_size for s in stats), *(s.st_mtime_ns for s in stats)]
        with suppress(OSError, ValueError):
            if json.loads(mark.read_text(encoding="utf-8")) == seen:
                return
        rows = np.concatenate([[0], journal["rows"]])
        for name, width, field in zip(FILES, widths, ("vectors", "texts"), strict=True):
            with (self.folder / name).open("rb") as file:
                for batch, size in enumerate(np.diff(rows) * width):
                    if _crc(file, int(size)) != journal[field][batch]:
                        raise StoreError(
                            f"{self.folder / name}: rows {rows[batch]} to {rows[batch + 1] - 1} are damaged; "
                            "delete the folder to encode again"
                        )
        with suppress(StoreError):  # where nothing may be written they are compared every time
            write_json(mark, seen, durable=False)


def _check(records: NDArray[np.void]) -> NDArray[np.uint32]:
    """A hash of what each record says."""
    plain = np.ascontiguousarray(records).view(np.uint8)
    start = np.arange(len(records)) * RECORD.itemsize
    return hash_strings(plain, start, np.full(len(records), 16)).astype(np.uint32)


def _crc(file: BinaryIO, size: int) -> int:
    value = 0
    while size > 0 and (data := file.read(min(size, PIECE))):
        value, size = zlib.crc32(data, value), size - len(data)
    return value


def _put(path: Path, at: int, data: bytes) -> None:
    """Write bytes at a place of a file, all that comes behind cut off, and force them to the disk."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.seek(at)
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
