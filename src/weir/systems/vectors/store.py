"""A store of vectors or rows by text, in which each text is encoded once."""

from __future__ import annotations

import errno
import hashlib
import itertools
import math
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float32, Int64, Strings, offsets
from weir.errors import BadValue, StoreError, UnknownName, UnusableText
from weir.files.atomic import storing
from weir.files.leases import clear_lock
from weir.models.batching import Ragged
from weir.settings import require_memory
from weir.systems.protocol import Progress
from weir.systems.vectors.journal import (
    Hashes,
    Journal,
    JournalColumn,
    KnownTexts,
    hash_texts,
    lock_of,
    locked_store,
    mended,
    store_folder,
)

# ----------
# Codecs: rows on disk as float32, or in fewer bytes.


Bool: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.uint8]


CODECS = ("fp32", "fp16", "bf16", "int8", "binary")
RAW = "raw"
FLOATS = {"fp32": np.float32, "fp16": np.float16}
"""Formats whose rows are read without conversion."""


@dataclass(frozen=True)
class Codec:
    """A format of stored rows: a name in CODECS, or RAW for bytes of any array."""

    name: str

    def width(self, numbers: int) -> int:
        """Return the bytes of a stored row of `numbers` values."""
        if self.name == "binary":
            return 4 + -(-numbers // 8)
        return {"fp32": 4 * numbers, "int8": 4 + numbers, RAW: numbers}.get(self.name, 2 * numbers)

    def write(self, values: NDArray[Any]) -> Rows:
        """Return vectors as stored rows, uint8[rows, width]; values beyond fp16 become infinite."""
        if self.name in (RAW, "fp32"):
            return _bytes(values)
        if self.name == "fp16":
            with np.errstate(over="ignore"):
                return _bytes(values.astype(np.float16))
        if self.name == "bf16":  # to the nearest, ties to even
            bits = np.ascontiguousarray(values).view(np.uint32)
            return _bytes(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16))
        if self.name == "int8":
            scale = np.abs(values).max(axis=1) / np.float32(127)
            inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
            codes = _bytes(np.rint(np.clip(values * inverse[:, None], -127, 127)).astype(np.int8))
        else:  # signs alone would lose the length
            scale = np.sqrt((values.astype(np.float64) ** 2).mean(axis=1))
            codes = np.packbits(values > 0, axis=1)
        return np.concatenate([_bytes(scale.astype(np.float32)[:, None]), codes], axis=1)

    def plain(self, rows: Rows) -> NDArray[Any]:
        """Return stored rows undecoded: float[rows, numbers] for fp32 and fp16, else bytes."""
        kind = FLOATS.get(self.name)
        return rows if kind is None else np.ascontiguousarray(rows).view(kind)

    def read(self, rows: Rows, numbers: int) -> Float32:
        """Return stored rows as vectors, float32[rows, numbers]."""
        if self.name in FLOATS:
            return self.plain(rows).astype(np.float32, copy=False)
        if self.name == "bf16":
            bits = np.ascontiguousarray(rows).view(np.uint16).astype(np.uint32)
            bits <<= 16
            return bits.view(np.float32)
        scale = np.ascontiguousarray(rows[:, :4]).view(np.float32)
        if self.name == "int8":
            return np.multiply(rows[:, 4:].view(np.int8), scale, dtype=np.float32)
        signs = np.unpackbits(rows[:, 4:], axis=1, count=numbers).astype(np.float32)
        signs *= 2
        signs -= 1
        signs *= scale
        return signs

    def finite(self, values: NDArray[Any]) -> Bool:
        """Return bool[rows]: True if a row is finite once stored, and always for RAW."""
        if self.name == RAW:
            return np.ones(len(values), np.bool_)
        numbers = values
        if self.name != "fp32" and np.isfinite(values).all():
            numbers = self.read(self.write(values), values.shape[1])
        finite: Bool = np.isfinite(numbers).all(axis=1)
        return finite


def codec(name: str) -> Codec:
    """Return the codec of a name; raises UnknownName for another."""
    if name not in (*CODECS, RAW):
        raise UnknownName("way to store vectors", str(name), CODECS)
    return Codec(name)


def _bytes(values: NDArray[Any]) -> Rows:
    plain = np.ascontiguousarray(values)
    return plain.view(np.uint8).reshape(len(plain), plain.itemsize * math.prod(plain.shape[1:]))


# ----------
# The store, one folder for each encoder with all its settings. journal.py says how it grows.
#
#     store.json     what made the rows, and their size, for people
#     vectors.bin    where each text has one row: the rows
#     rows.bin       where a text has any number: the rows of all texts, one text after another
#     texts.bin      for each text its 128-bit hash, and where its rows end if it has any number
#     journal.bin    a record for each batch: the numbers of rows and texts, and checksums of what was added


ONE_ROW = np.dtype([("rows", "<i8"), *((name, "<u4") for name in ("vectors", "texts", "size", "check"))])
ONE_ROW_FILES = JournalColumn("vectors.bin", "rows", "vectors"), JournalColumn("texts.bin", "rows", "texts")
ANY_ROWS = np.dtype(
    [("texts", "<i8"), ("rows", "<i8")] + [(name, "<u4") for name in ("row sum", "text sum", "size", "check")]
)
ANY_ROWS_FILES = JournalColumn("rows.bin", "rows", "row sum"), JournalColumn("texts.bin", "texts", "text sum")
"""Records of the journal, and the files that it counts; size: numbers of a vector, or bytes of a row."""


def _mapped(path: Path, rows: int, width: int) -> Rows:
    try:
        return np.memmap(path, np.uint8, "r", shape=(rows, width))
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise BadValue(
            f"{path}: {rows * width / 1e9:.1f} GB cannot be mapped, since `ulimit -v` counts mapped files as memory; "
            "raise it, or limit memory by a cgroup or WEIR_MAX_RAM"
        ) from None


READ_AHEAD_BYTES = 1 << 24
"""Distance from the block in use to the block that the disk is told to read."""


def _announce(raw: NDArray[np.uint8], starts: Int64, stops: Int64) -> None:
    mapping, width = getattr(raw, "_mmap", None), raw.shape[1]
    if mapping is None or not hasattr(mmap, "MADV_WILLNEED"):
        return
    first = starts * width // mmap.PAGESIZE * mmap.PAGESIZE
    lengths = np.minimum(stops * width, len(mapping)) - first
    for at, length in zip(first.tolist(), lengths.tolist(), strict=True):
        if length > 0:
            mapping.madvise(mmap.MADV_WILLNEED, at, length)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The vectors, or rows of vectors, of the texts in a store at one moment."""

    codec: Codec
    size: int
    """Numbers of a vector; bytes of a row if a text may have several rows."""
    raw: Rows
    """uint8[rows, width], memory-mapped."""
    texts: KnownTexts
    ptr: Int64 | None = None
    """int64[texts + 1]: offsets of each text's rows; None if each has one."""

    def lengths(self, numbers: Int64) -> Int64:
        if self.ptr is None:
            return np.ones(len(numbers), np.int64)
        return self.ptr[numbers + 1] - self.ptr[numbers]

    def rows(self, numbers: Int64) -> Rows:
        ptr = self.ptr
        starts, stops = (numbers, numbers + 1) if ptr is None else (ptr[numbers], ptr[numbers + 1])
        cuts = np.flatnonzero(starts[1:] != stops[:-1]) + 1
        if len(numbers) and len(cuts) == 0:
            if ptr is None:
                ahead = READ_AHEAD_BYTES // max(1, self.raw.shape[1])
                _announce(self.raw, starts[:1] + ahead, stops[-1:] + ahead)
            return self.raw[int(starts[0]) : int(stops[-1])]
        if ptr is None:
            if len(numbers):
                _announce(self.raw, starts[np.append(0, cuts)], stops[np.append(cuts, len(numbers)) - 1])
            return self.raw[numbers]
        lengths = stops - starts
        return self.raw[np.repeat(stops - np.cumsum(lengths), lengths) + np.arange(lengths.sum())]

    def ragged(self, numbers: Int64) -> Ragged:
        """Return the undecoded rows of the store's texts with these numbers; a view if the numbers are
        consecutive."""
        return Ragged(offsets(self.lengths(numbers)), self.codec.plain(self.rows(numbers)))

    def vectors(self, numbers: Int64) -> Float32:
        """Return the vectors of the store's texts with these numbers, float32[n, d]; a view if consecutive
        and float32."""
        return self.codec.read(self.rows(numbers), self.size)

    def release(self) -> None:
        mapping = getattr(self.raw, "_mmap", None)
        if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True)
class RowStore:
    """A store on disk of an encoder's vectors, or rows of vectors, by text; making this object touches no disk."""

    folder: Path
    about: str
    """Description of the encoder as JSON."""
    codec: Codec
    row_bytes: int = 0
    """Bytes of a row if a text may have any number of rows; 0 if each has one, whose size the first
    decides."""

    @staticmethod
    def of(root: Path, about: Mapping[str, object], stored_as: str = "fp32", row_bytes: int = 0) -> RowStore:
        """Return the store, below `root`, of the encoder that `about` describes; raises UnknownName for an
        unknown format.

        stored_as: format of the rows, such as "fp32".
        row_bytes: bytes of a row, if texts may have several.
        """
        own: dict[str, object] = {"row bytes": row_bytes} if row_bytes else {"stored": stored_as}
        return RowStore(*store_folder(root, {**about, **own}), codec(stored_as), row_bytes)

    def snapshot(self, check: bool = True) -> Snapshot | None:
        """Return the rows now in the store; None if it is empty.

        check: compare checksums; damaged rows are dropped with a StoreWarning.

        Raises StoreError for damage that cannot be repaired.
        """
        if not check:
            return self._read(check)
        return mended(self._journal, self._read, self._widths, _moved_rows if self.row_bytes else None)

    def add(self, texts: Hashes, values: NDArray[Any], lengths: Int64 | None = None) -> None:
        """Append rows of new texts, flushed to disk; the caller holds the store's lock.

        values: one row per text, or as many as `lengths` says.

        Raises BadValue for a wrong number or size of rows.
        """
        rows = self.codec.write(values)
        counts = np.ones(len(texts), np.int64) if lengths is None else lengths
        width = self.row_bytes or rows.shape[1]
        if rows.shape != (int(counts.sum()), width) or len(counts) != len(texts):
            raise BadValue(
                f"{len(texts)} texts with {int(counts.sum())} rows came as a table of {rows.shape}; those in "
                f"{self.folder} have {width} bytes a row"
            )
        with storing(self.folder):
            self._append(texts, rows, counts, self.row_bytes or values.shape[1])

    def _keeper(self, texts: TextSource, hashes: Hashes, encode: Encode) -> Keep:
        def keep(numbers: Int64, lacking: Bool) -> None:
            for some, block in _encoded(texts, numbers, encode, self.codec):
                new, lengths = lacking[np.searchsorted(numbers, some)], block.lengths
                if new.any():
                    self.add(hashes[some[new]], block.values[np.repeat(new, lengths)], lengths[new])

        return keep

    def take_in(self, folder: Path) -> None:
        """Copy rows that this store lacks from the store in another folder; raises StoreError if it is damaged."""
        other = replace(self, folder=folder, about="").snapshot(check=False)
        if other is None:
            return
        with locked_store(self.folder), storing(self.folder):
            self.copy(other, _missing_numbers(self.snapshot(check=False), other.texts.hashes))

    def copy(self, other: Snapshot, numbers: Int64) -> None:
        """Append the rows of another store's texts, by number; the caller holds this store's lock."""
        for some in _pieces(numbers):
            self._append(other.texts.hashes[some], other.rows(some), other.lengths(some), other.size)

    def convert(self, full: RowStore, texts: TextSource) -> None:
        """Add missing vectors converted from a store in fp32, except vectors beyond this format's range;
        raises BadValue for lack of memory."""
        if self.codec == full.codec or (exact := full.snapshot()) is None:
            return
        _require_memory_for(texts.count)
        hashes = texts.hashes()
        hashes = hashes[_first_numbers(hashes)]
        found = exact.texts.find(hashes[_missing_numbers(self.snapshot(), hashes)])
        found = found[found >= 0]
        if len(found) == 0:
            return
        with locked_store(self.folder):
            for some in _pieces(
                found[_missing_numbers(self.snapshot(check=False), exact.texts.hashes[found])]
            ):
                vectors = exact.vectors(some)
                kept = self.codec.finite(vectors)
                if kept.any():
                    self.add(exact.texts.hashes[some[kept]], vectors[kept])

    def _append(self, texts: Hashes, rows: Rows, lengths: Int64, size: int) -> None:
        records = self._journal.records()
        if len(records) and size != records["size"][0]:
            kind = "rows of {} bytes" if self.row_bytes else "vectors of {} dimensions"
            raise BadValue(
                f"the encoder gave {kind.format(size)}; those in {self.folder} have {records['size'][0]}"
            )
        table = texts.astype("<u8")
        if self.row_bytes:
            before, _ = self._journal.totals(records)
            table = np.column_stack([table, (before + np.cumsum(lengths)).astype("<u8")])
        self._journal.add((rows, table), size)

    def _read(self, check: bool) -> Snapshot | None:
        journal, records = self._journal, self._journal.records()
        if len(records) == 0:
            return None
        size = int(records["size"][0])
        if self.row_bytes not in (0, size):
            raise StoreError(f"{self.folder}: its rows have {size} bytes, expected {self.row_bytes}")
        width, text_bytes = self._widths(size)
        journal.check(records, (width, text_bytes), check)
        (rows, count), (rows_at, texts_at) = (
            journal.totals(records),
            [self.folder / c.file for c in journal.columns],
        )
        raw = _mapped(rows_at, rows, width) if rows else np.zeros((0, width), np.uint8)
        table = np.fromfile(texts_at, "<u8", text_bytes // 8 * count).reshape(count, -1)
        ptr = None
        if self.row_bytes:
            ptr = np.concatenate([np.zeros(1, np.int64), table[:, 2].astype(np.int64)])
            if ptr[-1] != rows or not (ptr[1:] >= ptr[:-1]).all():
                raise StoreError(f"{texts_at}: its ends were never written so")
        return Snapshot(self.codec, size, raw, KnownTexts(np.ascontiguousarray(table[:, :2])), ptr)

    def _widths(self, size: int) -> tuple[int, int]:
        return (self.row_bytes, 24) if self.row_bytes else (self.codec.width(size), 16)

    @property
    def _journal(self) -> Journal:
        record, columns = (ANY_ROWS, ANY_ROWS_FILES) if self.row_bytes else (ONE_ROW, ONE_ROW_FILES)
        return Journal(self.folder, record, columns, self.about)


def _moved_rows(
    parts: list[NDArray[np.uint8]], before: list[int], now: tuple[int, ...]
) -> list[NDArray[Any]] | None:
    rows, table = parts[0], parts[1].view("<u8").copy()
    ends = table[:, 2].astype(np.int64) - before[0]
    if not (np.diff(ends, prepend=0) >= 0).all() or ends[-1] != len(rows):
        return None
    table[:, 2] = (ends + now[0]).astype("<u8")
    return [rows, table]


# ----------
# Texts to rows: what the store lacks is encoded and added.


Encode: TypeAlias = Callable[[list[str]], Float32 | Ragged | Iterator[Float32] | Iterator[Ragged]]
"""Encodes texts into vectors [n, d] or ragged rows, at once or in blocks that are stored one by one."""
Keep: TypeAlias = Callable[[Int64, Bool], None]
"""Encodes the texts with these ascending numbers and adds the texts marked True; the store is locked."""
C = TypeVar("C")

HASHED_TEXTS = 4096
"""Texts hashed together."""
COPIED_TEXTS = 1 << 16
"""Texts copied together."""
LOOKED_UP_BYTES = 130
"""Measured memory per text while it is looked up in a store."""


def _require_memory_for(texts: int) -> None:
    require_memory(LOOKED_UP_BYTES * texts, f"looking up the vectors of {texts:,} texts")


@dataclass(frozen=True, eq=False)
class TextSource:
    """Numbered texts, read or made on demand."""

    count: int
    block: Callable[[int, int], Strings]
    """Returns texts start..stop-1."""
    name: Callable[[int], str]
    """Returns the name of text i in messages."""

    @staticmethod
    def of(texts: Strings) -> TextSource:
        """Return a source of texts in memory."""
        return TextSource(len(texts), texts.slice, str)

    def hashes(self) -> Hashes:
        """Return a hash of each text, uint64[count, 2]."""
        hashes = np.zeros((self.count, 2), np.uint64)
        for start in range(0, self.count, HASHED_TEXTS):
            block = self.block(start, min(start + HASHED_TEXTS, self.count))
            data, cuts = block.data, block.ptr.tolist()
            some = hash_texts([data[a:b].tobytes() for a, b in itertools.pairwise(cuts)])
            hashes[start : start + len(some)] = some
        return hashes

    def take(self, numbers: Int64) -> list[str]:
        """Return the texts with these ascending numbers."""
        if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1:
            return self.block(int(numbers[0]), int(numbers[-1]) + 1).tolist()
        return [self.block(i, i + 1)[0] for i in numbers.tolist()]


@dataclass(frozen=True, eq=False)
class EncodingBlocks:
    """How texts are divided into blocks that are encoded and stored one at a time."""

    size: int = 512
    """Texts of a block."""
    whole: bool = True
    """Encode whole blocks, so that a text always has the same bits. False encodes only missing texts."""
    group: Int64 | None = None
    """int64[texts]; a block ends where the number changes."""
    share: tuple[int, int] = (0, 1)
    """(i, n) encodes share i, from 0, of n equal shares of the blocks; needs `whole`."""

    def blocks(self, once: Int64, lacking: Bool) -> Iterator[Int64]:
        """Yield the text numbers, int64, of each block with texts to encode.

        once: first number of each distinct text.
        lacking: bool[texts], True for texts to encode.
        """
        if not self.whole:
            once = once[lacking[once]]
        group = np.zeros(len(once), np.int64) if self.group is None or not self.whole else self.group[once]
        blocks = [
            part[first : first + self.size]
            for part in np.split(once, np.flatnonzero(np.diff(group)) + 1)
            for first in range(0, len(part), self.size)
        ]
        number, of = self.share
        for numbers in blocks[len(blocks) * number // of : len(blocks) * (number + 1) // of]:
            if lacking[numbers].any():
                yield numbers


def encoded_rows(
    store: RowStore,
    texts: TextSource,
    encode: Encode,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> StoredRows:
    """Return the rows of texts, in order, after encoding and storing missing ones.

    Raises BadValue, naming the text, for numbers that are not finite and a wrong number or size of rows; also
    for lack of memory.
    """
    _require_memory_for(texts.count)
    hashes = texts.hashes()
    if texts.count == 0 and store.snapshot() is None:
        nothing = np.zeros((0, store.row_bytes), np.uint8)
        ptr = np.zeros(1, np.int64) if store.row_bytes else None
        snapshot = Snapshot(store.codec, store.row_bytes, nothing, KnownTexts(hashes), ptr)
        return StoredRows(snapshot, np.zeros(0, np.int64))
    snapshot = completed(store, hashes, store._keeper(texts, hashes, encode), progress, cut)
    return StoredRows(snapshot, snapshot.texts.find(hashes))


def encoded_in_memory(
    stored_as: Codec, texts: TextSource, encode: Encode, progress: Progress | None, cut: EncodingBlocks
) -> StoredRows:
    """Return the vectors of texts, in order, without storing them, bit-equal to stored ones.

    Raises BadValue, naming the text, for a vector that is not finite; also for lack of memory.
    """
    _require_memory_for(texts.count)
    hashes = texts.hashes()
    once = _first_numbers(hashes)
    raw, dimensions, done = np.zeros((0, 0), np.uint8), 0, 0
    for numbers in cut.blocks(once, np.ones(len(hashes), np.bool_)):
        if progress is not None:
            progress(int(numbers[0]), len(hashes))
        for some, block in _encoded(texts, numbers, encode, stored_as):
            if done == 0:
                dimensions = block.values.shape[1]
                size = len(once), stored_as.width(dimensions)
                smaller = "" if stored_as.name in ("int8", "binary") else 'store="int8" takes fewer bytes'
                require_memory(
                    size[0] * size[1], f"keeping {size[0]:,} vectors in memory as {stored_as.name}", smaller
                )
                raw = np.empty(size, np.uint8)
            if block.values.shape[1] != dimensions:
                raise BadValue(
                    f"text '{texts.name(int(some[0]))}': a vector of {block.values.shape[1]} dimensions after vectors "
                    f"of {dimensions}"
                )
            raw[done : done + len(some)] = stored_as.write(block.values)
            done += len(some)
    snapshot = Snapshot(stored_as, dimensions, raw, KnownTexts(hashes[once]))
    return StoredRows(snapshot, snapshot.texts.find(hashes))


def completed(
    store: RowStore,
    hashes: Hashes,
    keep: Keep,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> Snapshot:
    """Encode the texts, given by hashes, that a store lacks; return a snapshot with all.

    keep: encodes texts and adds their rows.
    """
    snapshot = store.snapshot()
    if snapshot is not None and (snapshot.texts.find(hashes) >= 0).all():
        with suppress(StoreError):  # a process that was killed after its last batch leaves its lock
            clear_lock(lock_of(store.folder))
        return snapshot
    with locked_store(store.folder):
        snapshot = store.snapshot(check=False)  # another process may have added them meanwhile
        _encode_lacking(hashes, (snapshot,), keep, progress, cut or EncodingBlocks())
        snapshot = store.snapshot(check=False)
    assert snapshot is not None  # something was added, or found
    return snapshot


def share_encoder(
    home: RowStore,
    texts_of: Callable[[C], TextSource],
    encode: Encode,
    cut: EncodingBlocks,
    full: RowStore | None = None,
) -> Callable[[C, tuple[int, int], Path, Progress | None], None]:
    """Return a ShareEncoder, which encodes a share of a corpus except texts that `home` has.

    texts_of: returns a corpus's texts.
    full: a store in fp32 whose texts are not encoded either.
    """

    def encode_one(corpus: C, share: tuple[int, int], folder: Path, progress: Progress | None) -> None:
        store, texts = replace(home, folder=folder), texts_of(corpus)
        known = home.snapshot(), None if full is None else full.snapshot()
        hashes = texts.hashes()
        with locked_store(folder):
            keep = store._keeper(texts, hashes, encode)
            _encode_lacking(hashes, (*known, store.snapshot()), keep, progress, replace(cut, share=share))

    return encode_one


def _encode_lacking(
    hashes: Hashes,
    known: Iterable[Snapshot | None],
    keep: Keep,
    progress: Progress | None,
    cut: EncodingBlocks,
) -> None:
    lacking, once = np.ones(len(hashes), np.bool_), _first_numbers(hashes)
    for contents in known:
        if contents is not None:
            lacking &= contents.texts.find(hashes) < 0
    done = len(hashes) - int(lacking[once].sum())
    for numbers in cut.blocks(once, lacking):
        if progress is not None:
            progress(done, len(hashes))
        keep(numbers, lacking[numbers])
        done += int(lacking[numbers].sum())


def _encoded(
    texts: TextSource, numbers: Int64, encode: Encode, stored_as: Codec
) -> Iterator[tuple[Int64, Ragged]]:
    try:
        yield from _encoded_blocks(texts, numbers, encode, stored_as)
    except UnusableText as error:
        raise error.of(texts.name(int(numbers[error.number]))) from None


def _encoded_blocks(
    texts: TextSource, numbers: Int64, encode: Encode, stored_as: Codec
) -> Iterator[tuple[Int64, Ragged]]:
    answer, at = encode(texts.take(numbers)), 0
    streamed, blocks = (True, answer) if isinstance(answer, Iterator) else (False, iter((answer,)))
    for given in blocks:
        if isinstance(given, Ragged):
            block = given
        else:
            vectors = np.asarray(given, np.float32)
            block = Ragged(np.arange(len(vectors) + 1), vectors)
        some = numbers[at : at + len(block)]
        at += len(block)
        if at > len(numbers) or (at < len(numbers) and not streamed):
            break
        if not len(some):
            continue
        first = texts.name(int(some[0]))
        if stored_as.name != RAW and (block.values.ndim != 2 or block.values.shape[1] == 0):
            raise BadValue(f"text '{first}': {len(some)} texts gave vectors of shape {block.values.shape}")
        bad = np.flatnonzero(~stored_as.finite(block.values))
        if len(bad):
            text = texts.name(int(some[np.searchsorted(block.ptr, bad[0], side="right") - 1]))
            raise BadValue(
                f"text '{text}': its vector is not finite, or beyond the range of {stored_as.name}"
            )
        yield some, block
    if at != len(numbers):
        raise BadValue(f"text '{texts.name(int(numbers[0]))}': {len(numbers)} texts gave the rows of {at}")


def _missing_numbers(own: Snapshot | None, hashes: Hashes) -> Int64:
    return np.arange(len(hashes)) if own is None else np.flatnonzero(own.texts.find(hashes) < 0)


def _pieces(numbers: Int64) -> Iterator[Int64]:
    return (numbers[start : start + COPIED_TEXTS] for start in range(0, len(numbers), COPIED_TEXTS))


def _first_numbers(hashes: Hashes) -> Int64:
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for half in (hashes[order, 0], hashes[order, 1]):
        new[1:] |= half[1:] != half[:-1]
    return np.sort(order[new])


# ----------
# Rows of texts, read from a store.


def spans(lengths: Int64, rows: int) -> list[tuple[int, int]]:
    """Return (start, stop) of groups of consecutive texts with about `rows` rows each.

    lengths: int64[texts], rows of each text.
    """
    ends, blocks, start = np.cumsum(lengths), list[tuple[int, int]](), 0
    while start < len(lengths):
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + rows, side="right")))
        blocks.append((start, stop))
        start = stop
    return blocks


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The rows of texts, in order: one vector per text, or ragged rows."""

    snapshot: Snapshot
    numbers: Int64
    """int64[texts]: number of each text in the store."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def dimensions(self) -> int:
        snapshot = self.snapshot
        return snapshot.size if snapshot.ptr is None else snapshot.codec.plain(snapshot.raw[:0]).shape[1]

    def block(self, start: int, stop: int) -> Float32:
        return self.snapshot.vectors(self.numbers[start:stop])

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        return self.snapshot.vectors(self.numbers[numbers])

    @cached_property
    def values(self) -> Float32:
        """All vectors, float32[texts, d]; a view if possible."""
        return self.block(0, len(self))

    @cached_property
    def lengths(self) -> Int64:
        return self.snapshot.lengths(self.numbers)

    @cached_property
    def all_rows(self) -> Ragged | None:
        return self.rows(0, len(self)) if (np.diff(self.numbers) == 1).all() else None

    def rows(self, start: int, stop: int) -> Ragged:
        return self.snapshot.ragged(self.numbers[start:stop])

    def rows_of(self, numbers: NDArray[np.integer]) -> Ragged:
        return self.snapshot.ragged(self.numbers[numbers])

    def blocks(self, rows: int) -> Iterator[tuple[int, int, Ragged]]:
        """Yield (start, stop, rows of texts start..stop-1), with about `rows` rows each."""
        return ((start, stop, self.rows(start, stop)) for start, stop in spans(self.lengths, rows))

    def release(self) -> None:
        self.snapshot.release()

    def stored_bytes(self) -> int:
        """Return the bytes of these rows, counting equal texts once."""
        lengths = self.snapshot.lengths(np.unique(self.numbers))
        return int(lengths.sum() * self.snapshot.raw.shape[1])

    def digest(self) -> str:
        return hashlib.blake2b(self.snapshot.texts.hashes[self.numbers].tobytes(), digest_size=16).hexdigest()

    def export(self, folder: Path) -> None:
        row_bytes = 0 if self.snapshot.ptr is None else self.snapshot.size
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            RowStore(folder, "", self.snapshot.codec, row_bytes).copy(self.snapshot, np.unique(self.numbers))
