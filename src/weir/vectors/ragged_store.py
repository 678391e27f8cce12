"""The store of texts with several rows each, such as token vectors, or the terms of a sparse vector and their weights.

As vectors/vector_store.py, for texts of which one has many rows and another none:

    store.json     what made the rows, and how many bytes one has: for the reader
    rows.bin       the rows of all texts, one text after another
    texts.bin      for each text its 128-bit hash, and where its rows end
    journal.bin    a record for each batch: how many texts and rows there are now, and checksums of what was added
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64
from weir.errors import BadValue, StoreError
from weir.io.storage.atomic import storing
from weir.vectors.encode_missing import EncodingBlocks, Progress, TextSource, completed, in_pieces
from weir.vectors.journal import Hashes, Journal, JournalColumn, KnownTexts, mended, store_folder
from weir.vectors.vector_store import release

__all__ = ["Block", "GatheredRagged", "RaggedSnapshot", "RaggedStore", "stored_ragged"]

Bytes: TypeAlias = NDArray[np.uint8]
Block: TypeAlias = tuple[Int64, Bytes]
"""Rows of some texts: those of text i are rows[ptr[i]:ptr[i + 1]]; ptr int64[n + 1] from 0, rows uint8[any, width]."""
EncodeRagged: TypeAlias = Callable[[list[str]], Block | Iterator[Block]]
"""Texts to rows: all at once, or block by block in their order, each kept before the next is asked for."""

RECORD = np.dtype(
    [
        ("texts", "<i8"),
        ("rows", "<i8"),
        ("row sum", "<u4"),
        ("text sum", "<u4"),
        ("size", "<u4"),
        ("check", "<u4"),
    ]
)
"""Of the journal; size: bytes of a row."""
COLUMNS = (JournalColumn("rows.bin", "rows", "row sum"), JournalColumn("texts.bin", "texts", "text sum"))
TEXT_BYTES = 24
"""Bytes of a text in texts.bin."""


@dataclass(frozen=True, eq=False)
class RaggedSnapshot:
    """A store as it was at one moment. raw: uint8[rows, width], memory-mapped; texts: uint64[n, 2], the hashes;
    ptr: int64[n + 1], the rows of text i are ptr[i]:ptr[i + 1].
    """

    raw: Bytes
    texts: Hashes
    ptr: Int64

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def _known(self) -> KnownTexts:
        return KnownTexts(self.texts)

    def find(self, wanted: Hashes) -> Int64:
        """The number of each text, -1 for one that is not here."""
        return self._known.find(wanted)

    def release(self) -> None:
        """Let the system take back the memory of rows read before; they are read again when they are used."""
        release(self.raw)

    def rows(self, numbers: Int64) -> Block:
        """The rows of these texts; a view where the texts follow each other in the store."""
        lengths = self.ptr[numbers + 1] - self.ptr[numbers]
        ptr = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(lengths, out=ptr[1:])
        starts = self.ptr[numbers]
        if (starts[1:] == starts[:-1] + lengths[:-1]).all():
            first = int(starts[0]) if len(numbers) else 0
            return ptr, self.raw[first : first + int(ptr[-1])]
        return ptr, self.raw[np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1])]


@dataclass(frozen=True)
class RaggedStore:
    """What an encoder with all its settings makes of texts; nothing is touched until it is read or added to.

    folder: where; about: what makes the rows, kept for the reader; width: bytes of a row; floats: "float16" or
    "float32" where a row is such numbers, which then must be finite, else "".
    """

    folder: Path
    about: str
    width: int
    floats: str = ""

    @staticmethod
    def of(root: Path, about: Mapping[str, object], width: int, floats: str = "") -> RaggedStore:
        """The store, below the folder `root`, of an encoder that `about` describes entirely."""
        if width < 1:
            raise BadValue(f"rows of {width} bytes; expected at least one")
        return RaggedStore(*store_folder(root, {**about, "row bytes": width}), width, floats)

    def snapshot(self, check: bool = True) -> RaggedSnapshot | None:
        """The store as it is now; None where nothing was added yet.

        check: compare it with its checksums, once in each process while nothing changes; what is damaged is forgotten,
        so that it is made again, and a warning (StoreWarning) says so. Raises StoreError, naming the file, for damage
        that is not mended: without `check`, and where nothing may be written.
        """
        if not check:
            return self._read(check)
        journal = self._journal
        return mended(
            journal,
            lambda: self._read(check),
            lambda: journal.mend(lambda width: (width, TEXT_BYTES), _moved_rows),
        )

    def alone(self) -> AbstractContextManager[None]:
        """Hold the store for adding: another process that wants to add waits; a killed one lets go."""
        return self._journal.alone()

    def clear_lock(self) -> None:
        """Take away the lock that a killed process left; one that is held, or in a read-only folder, stays."""
        self._journal.clear_lock()

    def add(self, texts: Hashes, lengths: Int64, rows: Bytes) -> None:
        """Add a batch of texts that are not there, while holding the store; it is there whole once this returns.

        lengths: int64[n], rows of each text, which may be none; rows: uint8[their sum, width]. Raises BadValue for
        another number or width of rows, StoreError where the disk refuses.
        """
        if rows.ndim != 2 or rows.shape != (int(lengths.sum()), self.width) or len(lengths) != len(texts):
            raise BadValue(
                f"{len(texts)} texts with {int(lengths.sum())} rows came as a table of {rows.shape}; those in "
                f"{self.folder} have {self.width} bytes a row"
            )
        journal = self._journal
        with storing(self.folder):
            before, _ = journal.totals(self._records())
            ends = (before + np.cumsum(lengths)).astype("<u8")
            journal.add((rows, np.column_stack([texts.astype("<u8"), ends])), self.width)

    def _read(self, check: bool) -> RaggedSnapshot | None:
        journal, records = self._journal, self._records()
        if len(records) == 0:
            return None
        journal.check(records, (self.width, TEXT_BYTES), check)
        rows, count = journal.totals(records)
        raw = np.zeros((0, self.width), np.uint8)
        if rows:  # what is empty cannot be mapped
            raw = np.memmap(self.folder / COLUMNS[0].file, np.uint8, "r", shape=(rows, self.width))
        table = np.fromfile(self.folder / COLUMNS[1].file, "<u8", 3 * count).reshape(-1, 3)
        ptr = np.concatenate([np.zeros(1, np.int64), table[:, 2].astype(np.int64)])
        if ptr[-1] != rows or not (ptr[1:] >= ptr[:-1]).all():
            raise StoreError(f"{self.folder / COLUMNS[1].file}: its ends were never written so")
        return RaggedSnapshot(raw, np.ascontiguousarray(table[:, :2]), ptr)

    def _records(self) -> NDArray[np.void]:
        """The journal's; raises StoreError where its rows have another width."""
        records = self._journal.records()
        if len(records) and records["size"][0] != self.width:
            raise StoreError(
                f"{self.folder}: its rows have {records['size'][0]} bytes, expected {self.width}"
            )
        return records

    @property
    def _journal(self) -> Journal:
        return Journal(self.folder, RECORD, COLUMNS, self.about)


def _moved_rows(
    parts: list[NDArray[np.uint8]], before: list[int], now: tuple[int, ...]
) -> list[NDArray[Any]] | None:
    """A batch behind other ones, for Journal.mend: where the rows of its texts end is counted from them."""
    rows, table = parts[0], parts[1].view("<u8").copy()
    ends = table[:, 2].astype(np.int64) - before[0]
    if not (np.diff(ends, prepend=0) >= 0).all() or ends[-1] != len(rows):
        return None
    table[:, 2] = (ends + now[0]).astype("<u8")
    return [rows, table]


@dataclass(frozen=True, eq=False)
class GatheredRagged:
    """The rows of some texts in their order, read from the store in blocks. numbers: int64[N], texts of the store."""

    snapshot: RaggedSnapshot
    numbers: Int64

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def lengths(self) -> Int64:
        """Rows of each text: int64[N]."""
        return self.snapshot.ptr[self.numbers + 1] - self.snapshot.ptr[self.numbers]

    def block(self, start: int, stop: int) -> Block:
        """The rows of texts start..stop-1; a view of the file where the texts follow each other in it."""
        return self.snapshot.rows(self.numbers[start:stop])

    def take(self, numbers: NDArray[np.integer]) -> Block:
        """The rows of these texts."""
        return self.snapshot.rows(self.numbers[numbers])

    def blocks(self, rows: int) -> Iterator[tuple[int, int, Block]]:
        """(start, stop, rows of texts start..stop-1) in order, about so many rows at once, one text at least."""
        ends = np.cumsum(self.lengths)
        start = 0
        while start < len(self):
            base = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, base + rows, side="right")))
            yield start, stop, self.block(start, stop)
            start = stop

    def release(self) -> None:
        """Let the system take back the memory of blocks read before; blocks in use stay valid."""
        self.snapshot.release()


def stored_ragged(
    store: RaggedStore,
    texts: TextSource,
    encode: EncodeRagged,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> GatheredRagged:
    """The rows of texts in their order; those the store lacks are encoded, in blocks, see
    EncodingBlocks.

    A text that occurs often is encoded once. progress: told (texts that have their rows, all texts). Raises BadValue,
    naming the text, for another number of texts or another width than expected, and for numbers that are not finite;
    StoreError as the store.
    """
    hashes = texts.hashes()
    if texts.count == 0 and store.snapshot() is None:
        nothing = np.zeros((0, store.width), np.uint8)
        return GatheredRagged(RaggedSnapshot(nothing, hashes, np.zeros(1, np.int64)), np.zeros(0, np.int64))

    def keep(numbers: Int64, wanted: NDArray[np.bool_]) -> None:
        given = encode(texts.take(numbers))
        for some, (ptr, rows) in in_pieces(given, numbers, lambda block: len(block[0]) - 1, texts.name):
            if len(ptr) != len(some) + 1:
                first = f"text '{texts.name(int(some[0]))}'"
                raise BadValue(f"{first}: {len(some)} texts gave the rows of {len(ptr) - 1}")
            _refuse_not_finite(store, texts, some, (ptr, rows))
            kept, lengths = wanted[np.searchsorted(numbers, some)], np.diff(ptr)
            if kept.any():
                store.add(hashes[some[kept]], lengths[kept], rows[np.repeat(kept, lengths)])

    snapshot = completed(store, hashes, keep, progress, cut)
    return GatheredRagged(snapshot, snapshot.find(hashes))


def _refuse_not_finite(store: RaggedStore, texts: TextSource, numbers: Int64, block: Block) -> None:
    ptr, rows = block
    if not store.floats or rows.ndim != 2 or rows.shape[1] != store.width:
        return
    bad = np.flatnonzero(~np.isfinite(np.ascontiguousarray(rows).view(store.floats)).all(axis=1))
    if len(bad):
        text = int(numbers[np.searchsorted(ptr, bad[0], side="right") - 1])
        raise BadValue(f"text '{texts.name(text)}': one of its vectors is not finite")
