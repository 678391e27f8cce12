"""The embedding store: a text's vector is kept under the text itself, so that it is never computed twice.

One folder for each encoder with all its settings; see vectors/journal.py for how it grows and what a kill costs:

    store.json     what made the vectors, how many numbers one has, how they are stored
    vectors.bin    rows of equal width, one after another
    texts.bin      the 128-bit hash of each row's text
    journal.bin    a record for each batch: how many rows there are now, and checksums of what was added
"""

from __future__ import annotations

import json
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
from weir.io.atomic import storing
from weir.vectors.codec import Codec, codec
from weir.vectors.journal import Column, Hashes, Journal, Known, store_folder

__all__ = ["Snapshot", "Store", "release"]

Float32: TypeAlias = NDArray[np.float32]

RECORD = np.dtype([("rows", "<i8"), ("vectors", "<u4"), ("texts", "<u4"), ("check", "<u4"), ("zero", "<u4")])
COLUMNS = (Column("vectors.bin", "rows", "vectors"), Column("texts.bin", "rows", "texts"))


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
    def _known(self) -> Known:
        return Known(self.texts)

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
        return Store(*store_folder(root, {**about, "stored": dtype}), dtype)

    def snapshot(self, check: bool = True) -> Snapshot | None:
        """The store as it is now; None where nothing was added yet.

        check: compare what changed since it was last compared with its checksums. Raises StoreError, naming the file,
        where it is damaged or of another format.
        """
        journal = self._journal
        if not journal.begun:
            return None
        d, records, kind = journal.size("dimensions"), journal.records(), codec(self.dtype)
        journal.check(records, (kind.width(d), 16), check)
        rows, _ = journal.totals(records)
        if rows == 0:
            return Snapshot(kind, d, np.zeros((0, kind.width(d)), np.uint8), np.zeros((0, 2), np.uint64))
        raw = np.memmap(self.folder / COLUMNS[0].file, np.uint8, "r", shape=(rows, kind.width(d)))
        texts = np.fromfile(self.folder / COLUMNS[1].file, "<u8", 2 * rows).reshape(-1, 2)
        return Snapshot(kind, d, raw, texts)

    def alone(self) -> AbstractContextManager[None]:
        """Hold the store for adding: another process that wants to add waits; a killed one lets go."""
        return self._journal.alone()

    def add(self, texts: Hashes, vectors: Float32) -> None:
        """Add a batch of texts that are not there, while holding the store; it is there whole once this returns.

        Raises BadValue for other dimensions than the store's, StoreError where the disk refuses.
        """
        journal = self._journal
        with storing(self.folder):
            if not journal.begun:
                journal.begin({"dimensions": vectors.shape[1], "about": json.loads(self.about)})
            d = journal.size("dimensions")
            if vectors.shape[1] != d:
                raise BadValue(
                    f"the encoder gave vectors of {vectors.shape[1]} dimensions; those in {self.folder} have {d}"
                )
            journal.add((codec(self.dtype).write(vectors), texts.astype("<u8")))

    @property
    def _journal(self) -> Journal:
        return Journal(self.folder, RECORD, COLUMNS)
