"""Stores of vectors, where a text is encoded once."""

from __future__ import annotations

import errno
import hashlib
import itertools
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float32, Int64, Strings
from weir.errors import BadValue, StoreError, UnknownName
from weir.files.atomic import storing
from weir.files.leases import clear_lock
from weir.settings import require_memory
from weir.systems.vectors.journal import (
    Hashes,
    Journal,
    JournalColumn,
    KnownTexts,
    alone,
    hash_texts,
    lock_of,
    mended,
    store_folder,
)

# ----------
# Codecs: vectors on disk as float32, or in fewer bytes.


Rows: TypeAlias = NDArray[np.uint8]


CODECS = ("fp32", "fp16", "bf16", "int8", "binary")


@dataclass(frozen=True)
class Codec:
    """A way to store vectors, one of CODECS. Scores are always computed from what `read` gives, in full precision."""

    name: str

    def width(self, dimensions: int) -> int:
        """Bytes of a vector."""
        if self.name == "binary":
            return 4 + -(-dimensions // 8)
        return {"fp32": 4 * dimensions, "int8": 4 + dimensions}.get(self.name, 2 * dimensions)

    def write(self, vectors: Float32) -> Rows:
        """Vectors as rows of bytes; a number beyond the range of fp16 becomes infinite, which the store refuses."""
        if self.name == "fp32":
            return _bytes(vectors)
        if self.name == "fp16":
            with np.errstate(over="ignore"):
                return _bytes(vectors.astype(np.float16))
        if self.name == "bf16":  # to the nearest, ties to even
            bits = np.ascontiguousarray(vectors).view(np.uint32)
            return _bytes(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16))
        if self.name == "int8":
            scale = np.abs(vectors).max(axis=1) / np.float32(127)
            inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
            codes = _bytes(np.rint(np.clip(vectors * inverse[:, None], -127, 127)).astype(np.int8))
        else:  # signs alone would lose the length
            scale = np.sqrt((vectors.astype(np.float64) ** 2).mean(axis=1))
            codes = np.packbits(vectors > 0, axis=1)
        return np.concatenate([_bytes(scale.astype(np.float32)[:, None]), codes], axis=1)

    def read(self, rows: Rows, dimensions: int) -> Float32:
        """Rows of bytes as vectors; a view where they are float32."""
        if self.name in ("fp32", "fp16"):
            numbers = np.ascontiguousarray(rows).view(np.float32 if self.name == "fp32" else np.float16)
            return numbers.astype(np.float32, copy=False)
        if self.name == "bf16":
            bits = np.ascontiguousarray(rows).view(np.uint16).astype(np.uint32)
            bits <<= 16
            return bits.view(np.float32)
        scale = np.ascontiguousarray(rows[:, :4]).view(np.float32)
        if self.name == "int8":
            return np.multiply(rows[:, 4:].view(np.int8), scale, dtype=np.float32)
        signs = np.unpackbits(rows[:, 4:], axis=1, count=dimensions).astype(np.float32)
        signs *= 2
        signs -= 1
        signs *= scale
        return signs


def codec(name: str) -> Codec:
    """The codec of that name; raises UnknownName, suggesting the nearest."""
    if name not in CODECS:
        raise UnknownName("way to store vectors", str(name), CODECS)
    return Codec(name)


def _bytes(values: NDArray[Any]) -> Rows:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


# ----------
# The store of vectors, one folder for each encoder with all its settings. journal.py says how it grows.
#
#     store.json     what made the vectors, their dimensions, how they are stored: for people
#     vectors.bin    rows of equal width
#     texts.bin      the 128-bit hash of each row's text
#     journal.bin    a record for each batch: the number of rows, and checksums of what was added


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


def _mapped(path: Path, rows: int, width: int) -> Rows:
    """The rows of a file; raises BadValue where the system lets the process have no room for their addresses."""
    try:
        return np.memmap(path, np.uint8, "r", shape=(rows, width))
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise BadValue(
            f"{path}: {rows * width / 1e9:.1f} GB cannot be mapped, since `ulimit -v` counts mapped files as memory; "
            "raise it, or limit memory by a cgroup or --max-ram"
        ) from None


READ_AHEAD_BYTES = 1 << 24
"""How far before the block that is read the disk begins."""


def announce(raw: NDArray[np.uint8], starts: Int64, stops: Int64) -> None:
    """Let the disk begin with rows that are read next: runs starts[i]..stops[i]-1 of a mapped file, as one request."""
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
    """A store as it was at one moment. raw: its rows, uint8[n, width], memory-mapped; texts: that of each row."""

    codec: Codec
    dimensions: int
    raw: Rows
    texts: KnownTexts

    def vectors(self, rows: Int64) -> Float32:
        """The vectors of these rows: float32[n, d]; a view where they are float32 and follow each other."""
        cuts = np.flatnonzero(np.diff(rows) != 1) + 1
        if len(rows) and len(cuts) == 0:
            ahead = READ_AHEAD_BYTES // max(1, self.raw.shape[1])
            announce(self.raw, rows[:1] + ahead, rows[-1:] + 1 + ahead)
            raw = self.raw[int(rows[0]) : int(rows[-1]) + 1]
        else:
            if len(rows):
                announce(self.raw, rows[np.append(0, cuts)], rows[np.append(cuts, len(rows)) - 1] + 1)
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
        kind = codec(self.dtype)
        return mended(self._journal, self._read, lambda d: (kind.width(d), TEXT_BYTES))

    def add(self, texts: Hashes, vectors: Float32) -> None:
        """Add a batch of texts that are not there, while holding the store; it is there whole once this returns.

        Raises BadValue for other dimensions than the store's, StoreError where the disk refuses.
        """
        with storing(self.folder):
            records, dimensions = self._journal.records(), vectors.shape[1]
            if len(records) and dimensions != records["size"][0]:
                raise BadValue(
                    f"the encoder gave vectors of {dimensions} dimensions; those in {self.folder} have "
                    f"{records['size'][0]}"
                )
            self._journal.add((codec(self.dtype).write(vectors), texts.astype("<u8")), dimensions)

    def keeper(self, texts: TextSource, hashes: Hashes, encode: Encode) -> Keep:
        """What encodes some of the texts and adds those that are lacking."""

        def keep(numbers: Int64, lacking: Bool) -> None:
            for some, vectors in _encoded(texts, numbers, encode, self.dtype):
                new = lacking[np.searchsorted(numbers, some)]
                if new.any():
                    self.add(hashes[some[new]], vectors[new])

        return keep

    def take_in(self, folder: Path) -> None:
        """Add what another store of the same vectors holds and this one lacks; raises StoreError for a damaged one."""
        other = VectorStore(folder, "", self.dtype).snapshot(check=False)
        if other is None:
            return
        with alone(self.folder), storing(self.folder):
            for some in _lacking(self.snapshot(check=False), other.texts.hashes):
                self._journal.add((other.raw[some], other.texts.hashes[some]), other.dimensions)

    def convert(self, full: VectorStore, texts: TextSource) -> None:
        """Add the vectors of texts that this store lacks and one in fp32 has, as encoding them would; no text is.

        A vector beyond the range of this dtype is left. Raises BadValue where memory does not suffice to look texts up,
        StoreError where the disk refuses.
        """
        if self.dtype == full.dtype or (exact := full.snapshot()) is None:
            return
        require_memory_for(texts.count)
        kind, own, hashes = codec(self.dtype), self.snapshot(), texts.hashes()
        hashes = hashes[_first_of_each(hashes)]
        if own is not None:
            hashes = hashes[own.texts.find(hashes) < 0]
        found = exact.texts.find(hashes)
        found = found[found >= 0]
        if len(found) == 0:
            return
        with alone(self.folder), storing(self.folder):
            for some in _lacking(self.snapshot(check=False), exact.texts.hashes[found]):
                rows = found[some]
                raw = kind.write(exact.vectors(rows))
                kept = np.isfinite(kind.read(raw, exact.dimensions)).all(axis=1)
                if kept.any():
                    self._journal.add((raw[kept], exact.texts.hashes[rows[kept]]), exact.dimensions)

    def _read(self, check: bool) -> Snapshot | None:
        journal, kind = self._journal, codec(self.dtype)
        records = journal.records()
        if len(records) == 0:
            return None
        d, rows = int(records["size"][0]), journal.totals(records)[0]
        journal.check(records, (kind.width(d), TEXT_BYTES), check)
        raw = _mapped(self.folder / COLUMNS[0].file, rows, kind.width(d))
        texts = np.fromfile(self.folder / COLUMNS[1].file, "<u8", 2 * rows).reshape(-1, 2)
        return Snapshot(kind, d, raw, KnownTexts(texts))

    @property
    def _journal(self) -> Journal:
        return Journal(self.folder, RECORD, COLUMNS, self.about)


# ----------
# Texts to vectors: what the store lacks is encoded and added.


Bool: TypeAlias = NDArray[np.bool_]
Encode: TypeAlias = Callable[[list[str]], Float32 | Iterator[Float32]]
"""Texts to vectors: all at once, or block by block in their order, each kept before the next is asked for."""
Progress: TypeAlias = Callable[[int, int], None]

HASHED_TEXTS = 4096
"""Texts hashed together."""
EXPORTED_TEXTS = 1 << 16
"""Texts whose vectors are copied together."""
LOOKED_UP_BYTES = 130
"""Memory of a text while it is looked for among those of a store: hashes, their order, places; measured."""


def require_memory_for(texts: int) -> None:
    """Raise BadValue where so many texts are more than memory suffices to look up; their vectors lie on the disk."""
    require_memory(LOOKED_UP_BYTES * texts, f"looking up the vectors of {texts:,} texts")


@dataclass(frozen=True, eq=False)
class TextSource:
    """Texts that are made when they are asked for. count: how many; block: texts start..stop-1; name: what a
    message calls text i."""

    count: int
    block: Callable[[int, int], Strings]
    name: Callable[[int], str]

    @staticmethod
    def of(texts: Strings) -> TextSource:
        """Texts that are there, named by their numbers."""
        return TextSource(len(texts), texts.slice, str)

    def hashes(self) -> Hashes:
        """The hash of each text."""
        hashes = np.zeros((self.count, 2), np.uint64)
        for start in range(0, self.count, HASHED_TEXTS):
            block = self.block(start, min(start + HASHED_TEXTS, self.count))
            data, cuts = block.data, block.ptr.tolist()
            some = hash_texts([data[a:b].tobytes() for a, b in itertools.pairwise(cuts)])
            hashes[start : start + len(some)] = some
        return hashes

    def take(self, numbers: Int64) -> list[str]:
        """The texts of these numbers, which ascend."""
        if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1:
            return self.block(int(numbers[0]), int(numbers[-1]) + 1).tolist()
        return [self.block(i, i + 1)[0] for i in numbers.tolist()]


@dataclass(frozen=True, eq=False)
class EncodingBlocks:
    """How texts are cut into blocks that are encoded together.

    size: texts of a block; whole: cut all texts by their places, whatever the store holds, and encode a block in which
    one is missing as a whole: every text is then encoded in the same batch after an interruption, and has the same
    bits. Where other texts of a batch move no bit, or texts are paid for, only what is missing is encoded. group: a
    number for each text, which changes where a block must end; None where none must. share: (i, n) for share i, from
    0, of n equal ones of the blocks; of whole blocks, whose places do not depend on what is missing.
    """

    size: int = 512
    whole: bool = True
    group: Int64 | None = None
    share: tuple[int, int] = (0, 1)

    def blocks(self, once: Int64, lacking: Bool) -> Iterator[Int64]:
        """The blocks to encode, in order. once: the first place of each distinct text; lacking: of all texts."""
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


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """The vectors of some texts in their order, read from the store in blocks. rows: int64[N]."""

    snapshot: Snapshot
    rows: Int64

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return self.snapshot.dimensions

    def block(self, start: int, stop: int) -> Float32:
        """Vectors start..stop-1: float32[n, d]; a view of the file where it can be one."""
        return self.snapshot.vectors(self.rows[start:stop])

    def take(self, numbers: NDArray[np.integer]) -> Float32:
        """The vectors of these numbers: float32[n, d]."""
        return self.snapshot.vectors(self.rows[numbers])

    def release(self) -> None:
        """Let the system take back the memory of blocks read before; blocks in use stay valid."""
        release(self.snapshot.raw)

    def export(self, folder: Path) -> None:
        """Write these vectors, each once, into a store of their own; raises StoreError where the disk refuses."""
        snapshot, rows = self.snapshot, np.unique(self.rows)
        journal = VectorStore(folder, "", snapshot.codec.name)._journal
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for start in range(0, len(rows), EXPORTED_TEXTS):
                some = rows[start : start + EXPORTED_TEXTS]
                journal.add((snapshot.raw[some], snapshot.texts.hashes[some]), snapshot.dimensions)

    def digest(self) -> str:
        """A hash of whose vectors these are."""
        return hashlib.blake2b(self.snapshot.texts.hashes[self.rows].tobytes(), digest_size=16).hexdigest()

    @cached_property
    def values(self) -> Float32:
        """All vectors: float32[N, d], memory-mapped where they follow each other in the file, else copied."""
        return self.block(0, len(self))


Keep: TypeAlias = Callable[[Int64, Bool], None]
"""Encodes the texts of these numbers, which ascend, together, and adds those lacking, while a store is held."""


class _Contents(Protocol):
    @property
    def texts(self) -> KnownTexts: ...


S_co = TypeVar("S_co", bound=_Contents, covariant=True)
S = TypeVar("S", bound=_Contents)
B = TypeVar("B")
C = TypeVar("C")
H = TypeVar("H", "VectorStore", "RaggedStore")


class _Store(Protocol[S_co]):
    @property
    def folder(self) -> Path: ...

    def snapshot(self, check: bool = True) -> S_co | None: ...


def stored(
    store: VectorStore,
    texts: TextSource,
    encode: Encode,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> StoredVectors:
    """The vectors of texts in their order; those the store lacks are encoded, in blocks, see EncodingBlocks.

    A text that occurs often is encoded once. progress: called with (texts that have their vector, all texts). Raises
    BadValue, naming the text, for a vector that is not finite, and for vectors of another dimension or number than
    expected, and where memory does not suffice to look texts up; StoreError as the store.
    """
    require_memory_for(texts.count)
    hashes = texts.hashes()
    if texts.count == 0 and store.snapshot() is None:
        nothing = Snapshot(codec(store.dtype), 0, np.zeros((0, 0), np.uint8), KnownTexts(hashes))
        return StoredVectors(nothing, np.zeros(0, np.int64))

    snapshot = completed(store, hashes, store.keeper(texts, hashes, encode), progress, cut)
    return StoredVectors(snapshot, snapshot.texts.find(hashes))


def encoded_in_memory(
    dtype: str, texts: TextSource, encode: Encode, progress: Progress | None, cut: EncodingBlocks
) -> StoredVectors:
    """The vectors of texts in their order, as a store of that dtype gives them, kept nowhere.

    Raises as `stored`, and BadValue, once the dimensions are known, where memory does not hold them.
    """
    require_memory_for(texts.count)
    hashes, stored_as = texts.hashes(), codec(dtype)
    once = _first_of_each(hashes)
    raw, dimensions, done = np.zeros((0, 0), np.uint8), 0, 0
    for numbers in cut.blocks(once, np.ones(len(hashes), np.bool_)):
        if progress is not None:
            progress(int(numbers[0]), len(hashes))
        for some, vectors in _encoded(texts, numbers, encode, dtype):
            if done == 0:
                dimensions = vectors.shape[1]
                size = len(once), stored_as.width(dimensions)
                smaller = "" if dtype in ("int8", "binary") else 'store="int8" takes fewer bytes'
                require_memory(
                    size[0] * size[1], f"keeping {size[0]:,} vectors in memory as {dtype}", smaller
                )
                raw = np.empty(size, np.uint8)
            if vectors.shape[1] != dimensions:
                raise BadValue(
                    f"text '{texts.name(int(some[0]))}': a vector of {vectors.shape[1]} dimensions after vectors of "
                    f"{dimensions}"
                )
            raw[done : done + len(some)] = stored_as.write(vectors)
            done += len(some)
    snapshot = Snapshot(stored_as, dimensions, raw, KnownTexts(hashes[once]))
    return StoredVectors(snapshot, snapshot.texts.find(hashes))


def completed(
    store: _Store[S],
    hashes: Hashes,
    keep: Keep,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> S:
    """The store once it holds all texts with these hashes. progress: called with (texts that are there, all texts)."""
    snapshot = store.snapshot()
    if snapshot is not None and (snapshot.texts.find(hashes) >= 0).all():
        with suppress(StoreError):  # a process that was killed behind its last batch leaves its lock
            clear_lock(lock_of(store.folder))
        return snapshot
    with alone(store.folder):
        snapshot = store.snapshot(check=False)  # another process may have added them meanwhile
        _encode_lacking(hashes, (snapshot,), keep, progress, cut or EncodingBlocks())
        snapshot = store.snapshot(check=False)
    assert snapshot is not None  # something was added, or found
    return snapshot


def share_encoder(
    home: H,
    texts_of: Callable[[C], TextSource],
    keeper: Callable[[H, TextSource, Hashes], Keep],
    cut: EncodingBlocks,
    full: H | None = None,
) -> Callable[[C, tuple[int, int], Path, Progress | None], None]:
    """What encodes a share of a corpus, see `EncodingBlocks`, into a store in a folder, but for what `home` has.

    texts_of: the texts of a corpus; keeper: what encodes for a store; cut: the blocks of the whole corpus; full: a
    store from which `home` converts what is there.
    """

    def encode_one(corpus: C, share: tuple[int, int], folder: Path, progress: Progress | None) -> None:
        store, texts = replace(home, folder=folder), texts_of(corpus)
        known: tuple[_Contents | None, ...] = (home.snapshot(), None if full is None else full.snapshot())
        hashes = texts.hashes()
        with alone(folder):
            keep = keeper(store, texts, hashes)
            _encode_lacking(hashes, (*known, store.snapshot()), keep, progress, replace(cut, share=share))

    return encode_one


def _encode_lacking(
    hashes: Hashes,
    known: Iterable[_Contents | None],
    keep: Keep,
    progress: Progress | None,
    cut: EncodingBlocks,
) -> None:
    """Encode the blocks in which a text is among none of the known ones."""
    lacking, once = np.ones(len(hashes), np.bool_), _first_of_each(hashes)
    for contents in known:
        if contents is not None:
            lacking &= contents.texts.find(hashes) < 0
    done = len(hashes) - int(lacking[once].sum())
    for numbers in cut.blocks(once, lacking):
        if progress is not None:
            progress(done, len(hashes))
        keep(numbers, lacking[numbers])
        done += int(lacking[numbers].sum())


def _in_pieces(
    blocks: B | Iterator[B], numbers: Int64, size: Callable[[B], int], name: Callable[[int], str]
) -> Iterator[tuple[Int64, B]]:
    """(texts, what an encoder made of them), whether it gave all at once or block by block; size: texts of a block.

    Raises BadValue, naming the first text, where there are more or fewer texts than were asked for.
    """
    if not isinstance(blocks, Iterator):
        yield numbers, blocks
        return
    at = 0
    for block in blocks:
        some = numbers[at : at + size(block)]
        if len(some):
            yield some, block
        at += size(block)
    if at != len(numbers):
        raise BadValue(f"text '{name(int(numbers[0]))}': {len(numbers)} texts gave {at} vectors")


def _lacking(own: _Contents | None, hashes: Hashes) -> Iterator[Int64]:
    """The numbers of the texts with these hashes that are not among one's own, a copy's worth at a time."""
    lacking = np.arange(len(hashes))
    if own is not None:
        lacking = np.flatnonzero(own.texts.find(hashes) < 0)
    for start in range(0, len(lacking), EXPORTED_TEXTS):
        yield lacking[start : start + EXPORTED_TEXTS]


def _first_of_each(hashes: Hashes) -> Int64:
    """The number of the first text of each distinct hash, ascending."""
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for half in (hashes[order, 0], hashes[order, 1]):
        new[1:] |= half[1:] != half[:-1]
    return np.sort(order[new])


def _encoded(
    texts: TextSource, numbers: Int64, encode: Encode, dtype: str
) -> Iterator[tuple[Int64, Float32]]:
    """(texts, their vectors) in the blocks that the encoder makes."""
    stored_as = codec(dtype)
    for some, block in _in_pieces(encode(texts.take(numbers)), numbers, len, texts.name):
        vectors = np.asarray(block, np.float32)
        if vectors.ndim != 2 or len(vectors) != len(some) or vectors.shape[1] == 0:
            first = texts.name(int(some[0]))
            raise BadValue(f"text '{first}': {len(some)} texts gave vectors of shape {vectors.shape}")
        finite = np.isfinite(vectors).all(axis=1)
        if finite.all():
            finite = np.isfinite(stored_as.read(stored_as.write(vectors), vectors.shape[1])).all(axis=1)
        if not finite.all():
            bad = texts.name(int(some[np.flatnonzero(~finite)[0]]))
            raise BadValue(f"text '{bad}': its vector is not finite, or beyond the range of {dtype}")
        yield some, vectors


# ----------
# The store of texts with any number of rows each, such as token vectors or weighted terms.
#
#     store.json     what made the rows, and the bytes of one: for people
#     rows.bin       the rows of all texts, one text after another
#     texts.bin      for each text its 128-bit hash, and where its rows end
#     journal.bin    a record for each batch: the numbers of texts and rows, and checksums of what was added


Block: TypeAlias = tuple[Int64, Rows]
"""Rows of some texts: those of text i are rows[ptr[i]:ptr[i + 1]]; ptr int64[n + 1] from 0, rows uint8[any, width]."""
EncodeRagged: TypeAlias = Callable[[list[str]], Block | Iterator[Block]]
"""Texts to rows: all at once, or block by block in their order, each kept before the next is asked for."""

RAGGED_RECORD = np.dtype(
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
RAGGED_COLUMNS = (
    JournalColumn("rows.bin", "rows", "row sum"),
    JournalColumn("texts.bin", "texts", "text sum"),
)
RAGGED_TEXT_BYTES = 24
"""Bytes of a text in texts.bin."""


@dataclass(frozen=True, eq=False)
class RaggedSnapshot:
    """A store as it was at one moment. raw: uint8[rows, width], memory-mapped; ptr: int64[n + 1], where the rows of
    each text begin."""

    raw: Rows
    texts: KnownTexts
    ptr: Int64

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
        return mended(self._journal, self._read, lambda width: (width, RAGGED_TEXT_BYTES), _moved_rows)

    def add(self, texts: Hashes, lengths: Int64, rows: Rows) -> None:
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

    def keeper(self, texts: TextSource, hashes: Hashes, encode: EncodeRagged) -> Keep:
        """What encodes some of the texts and adds those that are lacking."""

        def keep(numbers: Int64, lacking: Bool) -> None:
            blocks = encode(texts.take(numbers))
            for some, (ptr, rows) in _in_pieces(blocks, numbers, lambda block: len(block[0]) - 1, texts.name):
                if len(ptr) != len(some) + 1:
                    first = f"text '{texts.name(int(some[0]))}'"
                    raise BadValue(f"{first}: {len(some)} texts gave the rows of {len(ptr) - 1}")
                if self.floats and rows.ndim == 2 and rows.shape[1] == self.width:
                    finite = np.isfinite(np.ascontiguousarray(rows).view(self.floats)).all(axis=1)
                    for row in np.flatnonzero(~finite):
                        text = texts.name(int(some[np.searchsorted(ptr, row, side="right") - 1]))
                        raise BadValue(f"text '{text}': one of its vectors is not finite")
                new, lengths = lacking[np.searchsorted(numbers, some)], np.diff(ptr)
                if new.any():
                    self.add(hashes[some[new]], lengths[new], rows[np.repeat(new, lengths)])

        return keep

    def take_in(self, folder: Path) -> None:
        """Add what another store of the same rows holds and this one lacks; raises StoreError for a damaged one."""
        other = RaggedStore(folder, "", self.width).snapshot(check=False)
        if other is None:
            return
        with alone(self.folder):
            for some in _lacking(self.snapshot(check=False), other.texts.hashes):
                ptr, rows = other.rows(some)
                self.add(other.texts.hashes[some], np.diff(ptr), rows)

    def _read(self, check: bool) -> RaggedSnapshot | None:
        journal, records = self._journal, self._records()
        if len(records) == 0:
            return None
        journal.check(records, (self.width, RAGGED_TEXT_BYTES), check)
        rows, count = journal.totals(records)
        raw = np.zeros((0, self.width), np.uint8)
        if rows:  # what is empty cannot be mapped
            raw = _mapped(self.folder / RAGGED_COLUMNS[0].file, rows, self.width)
        table = np.fromfile(self.folder / RAGGED_COLUMNS[1].file, "<u8", 3 * count).reshape(-1, 3)
        ptr = np.concatenate([np.zeros(1, np.int64), table[:, 2].astype(np.int64)])
        if ptr[-1] != rows or not (ptr[1:] >= ptr[:-1]).all():
            raise StoreError(f"{self.folder / RAGGED_COLUMNS[1].file}: its ends were never written so")
        return RaggedSnapshot(raw, KnownTexts(np.ascontiguousarray(table[:, :2])), ptr)

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
        return Journal(self.folder, RAGGED_RECORD, RAGGED_COLUMNS, self.about)


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


def spans(lengths: Int64, rows: int) -> list[tuple[int, int]]:
    """(start, stop) of texts with about so many rows together, one text at least."""
    ends, blocks, start = np.cumsum(lengths), list[tuple[int, int]](), 0
    while start < len(lengths):
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + rows, side="right")))
        blocks.append((start, stop))
        start = stop
    return blocks


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
        return ((start, stop, self.block(start, stop)) for start, stop in spans(self.lengths, rows))

    def export(self, folder: Path) -> None:
        """Write these rows, those of each text once, into a store of their own; raises StoreError as the disk."""
        snapshot, numbers = self.snapshot, np.unique(self.numbers)
        store = RaggedStore(folder, "", snapshot.raw.shape[1])
        folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(numbers), EXPORTED_TEXTS):
            some = numbers[start : start + EXPORTED_TEXTS]
            ptr, rows = snapshot.rows(some)
            store.add(snapshot.texts.hashes[some], np.diff(ptr), rows)

    def digest(self) -> str:
        """A hash of whose rows these are."""
        return hashlib.blake2b(self.snapshot.texts.hashes[self.numbers].tobytes(), digest_size=16).hexdigest()

    def release(self) -> None:
        """Let the system take back the memory of blocks read before; blocks in use stay valid."""
        release(self.snapshot.raw)


def stored_ragged(
    store: RaggedStore,
    texts: TextSource,
    encode: EncodeRagged,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> GatheredRagged:
    """The rows of texts in their order, as `stored` gives vectors.

    Raises BadValue, naming the text, for another number of texts or another width than expected, and for numbers that
    are not finite, and where memory does not suffice to look texts up; StoreError as the store.
    """
    require_memory_for(texts.count)
    hashes = texts.hashes()
    if texts.count == 0 and store.snapshot() is None:
        nothing = np.zeros((0, store.width), np.uint8)
        snapshot = RaggedSnapshot(nothing, KnownTexts(hashes), np.zeros(1, np.int64))
        return GatheredRagged(snapshot, np.zeros(0, np.int64))

    snapshot = completed(store, hashes, store.keeper(texts, hashes, encode), progress, cut)
    return GatheredRagged(snapshot, snapshot.texts.find(hashes))
