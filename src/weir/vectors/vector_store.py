"""The embedding store: a text's vector is kept under the text itself, so that it is never computed twice.

One folder for each encoder with all its settings; see vectors/journal.py for how it grows and what a kill costs:

    store.json     what made the vectors, how many numbers one has, how they are stored: for the reader
    vectors.bin    rows of equal width, one after another
    texts.bin      the 128-bit hash of each row's text
    journal.bin    a record for each batch: how many rows there are now, and checksums of what was added
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64
from weir.errors import BadValue
from weir.io.storage.atomic import storing
from weir.vectors.journal import Hashes, Journal, JournalColumn, KnownTexts, mended, store_folder
from weir.vectors.vector_codec import Codec, codec

__all__ = ["Snapshot", "VectorStore", "release"]

Float32: TypeAlias = NDArray[np.float32]

RECORD = np.dtype([("rows", "<i8"), ("vectors", "<u4"), ("texts", "<u4"), ("size", "<u4"), ("check", "<u4")])
"""Of the journal; size: numbers of a vector."""
COLUMNS = (JournalColumn("vectors.bin", "rows", "vectors"), JournalColumn("texts.bin", "rows", "texts"))
TEXT_BYTES = 16
"""Bytes of a text in texts.bin."""


def release(raw: NDArray[np.uint8]) -> None:
    """Let the system take back the memory of a mapped file's parts read before; they are read again when used."""
    mapping = getattr(raw, "_mmap", None)
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


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
    def _known(self) -> KnownTexts:
        return KnownTexts(self.texts)

    def find(self, wanted: Hashes) -> Int64:
        """The row of each text, -1 for one that is not here."""
        return self._known.find(wanted)

    def release(self) -> None:
        """Let the system take back the memory of rows read before; they are read again when they are used."""
        release(self.raw)

    def vectors(self, rows: Int64) -> Float32:
        """The vectors of these rows: float32[n, d]; a view where they are float32 and follow each other."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            raw = self.raw[int(rows[0]) : int(rows[-1]) + 1]
        else:
            raw = self.raw[rows]
        return self.codec.read(raw, self.dimensions)


@dataclass(frozen=True)
class VectorStore:
    """The vectors of one encoder with all its settings; nothing is touched until it is read or added to.

    folder: where; about: what makes the vectors, kept for the reader; dtype: how they are stored.
    """

    folder: Path
    about: str
    dtype: str

    @staticmethod
    def of(root: Path, about: Mapping[str, object], dtype: str = "fp32") -> VectorStore:
        """The store, below the folder `root`, of an encoder that `about` describes entirely."""
        codec(dtype)
        return VectorStore(*store_folder(root, {**about, "stored": dtype}), dtype)

    def snapshot(self, check: bool = True) -> Snapshot | None:
        """The store as it is now; None where nothing was added yet.

        check: compare it with its checksums, once in each process while nothing changes; what is damaged is forgotten,
        so that it is made again, and a warning (StoreWarning) says so. Raises StoreError, naming the file, for damage
        that is not mended: without `check`, and where nothing may be written.
        """
        if not check:
            return self._read(check)
        journal, kind = self._journal, codec(self.dtype)
        return mended(
            journal, lambda: self._read(check), lambda: journal.mend(lambda d: (kind.width(d), TEXT_BYTES))
        )

    def alone(self) -> AbstractContextManager[None]:
        """Hold the store for adding: another process that wants to add waits; a killed one lets go."""
        return self._journal.alone()

    def clear_lock(self) -> None:
        """Take away the lock that a killed process left; one that is held, or in a read-only folder, stays."""
        self._journal.clear_lock()

    def add(self, texts: Hashes, vectors: Float32) -> None:
        """Add a batch of texts that are not there, while holding the store; it is there whole once this returns.

        Raises BadValue for other dimensions than the store's, StoreError where the disk refuses.
        """
        journal = self._journal
        with storing(self.folder):
            records, given = journal.records(), vectors.shape[1]
            d = int(records["size"][0]) if len(records) else given
            if given != d:
                raise BadValue(
                    f"the encoder gave vectors of {given} dimensions; those in {self.folder} have {d}"
                )
            journal.add((codec(self.dtype).write(vectors), texts.astype("<u8")), d)

    def _read(self, check: bool) -> Snapshot | None:
        journal, kind = self._journal, codec(self.dtype)
        records = journal.records()
        if len(records) == 0:
            return None
        d, rows = int(records["size"][0]), journal.totals(records)[0]
        journal.check(records, (kind.width(d), TEXT_BYTES), check)
        raw = np.memmap(self.folder / COLUMNS[0].file, np.uint8, "r", shape=(rows, kind.width(d)))
        texts = np.fromfile(self.folder / COLUMNS[1].file, "<u8", 2 * rows).reshape(-1, 2)
        return Snapshot(kind, d, raw, texts)

    @property
    def _journal(self) -> Journal:
        return Journal(self.folder, RECORD, COLUMNS, self.about)
