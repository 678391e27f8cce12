"""From texts to vectors through the store: only what is missing is encoded."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Int64, Strings
from weir.errors import BadValue
from weir.vectors.journal import Hashes, hash_texts
from weir.vectors.vector_codec import codec
from weir.vectors.vector_store import Snapshot, VectorStore

__all__ = [
    "Encode",
    "EncodingBlocks",
    "StoredVectors",
    "TextSource",
    "completed",
    "encoded_in_memory",
    "in_pieces",
    "stored",
]

Float32: TypeAlias = NDArray[np.float32]
Bool: TypeAlias = NDArray[np.bool_]
Encode: TypeAlias = Callable[[list[str]], Float32 | Iterator[Float32]]
"""Texts to vectors: all at once, or block by block in their order, each kept before the next is asked for."""
Progress: TypeAlias = Callable[[int, int], None]

HASHED_TEXTS = 4096
"""Texts hashed together."""


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
        parts = []
        for start in range(0, self.count, HASHED_TEXTS):
            block = self.block(start, min(start + HASHED_TEXTS, self.count))
            data, cuts = block.data, block.ptr.tolist()
            parts.append(hash_texts([data[a:b].tobytes() for a, b in itertools.pairwise(cuts)]))
        return np.concatenate(parts) if parts else np.zeros((0, 2), np.uint64)

    def take(self, numbers: Int64) -> list[str]:
        """The texts of these numbers, which ascend."""
        if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1:
            return self.block(int(numbers[0]), int(numbers[-1]) + 1).tolist()
        return [self.block(i, i + 1)[0] for i in numbers.tolist()]


@dataclass(frozen=True, eq=False)
class EncodingBlocks:
    """How texts are cut into blocks that are encoded together.

    size: texts of a block; whole: cut all texts by their places, whatever the store holds, and encode a block in which
    one is missing as a whole: a text's company is then the same however often a process was killed, and so are its
    bits. Where company moves no bit, or texts are paid for, only what is missing is encoded. group: a number for each
    text, which changes where a block must end; None where none must.
    """

    size: int = 512
    whole: bool = True
    group: Int64 | None = None

    def blocks(self, once: Int64, lacking: Bool) -> Iterator[Int64]:
        """The blocks to encode, in order. once: the first place of each distinct text; lacking: of all texts."""
        if not self.whole:
            once = once[lacking[once]]
        group = np.zeros(len(once), np.int64) if self.group is None or not self.whole else self.group[once]
        ends = np.append(np.flatnonzero(np.diff(group)) + 1, len(once))
        start = 0
        for end in ends.tolist():
            for first in range(start, end, self.size):
                numbers = once[first : min(first + self.size, end)]
                if lacking[numbers].any():
                    yield numbers
            start = end


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
        self.snapshot.release()

    @cached_property
    def values(self) -> Float32:
        """All vectors: float32[N, d], memory-mapped where they follow each other in the file, else copied."""
        return self.block(0, len(self))


class _Finding(Protocol):
    """A snapshot of a store: which texts it holds."""

    def find(self, wanted: Hashes) -> Int64:
        """The number of each text, -1 for one that is not here."""
        ...


S_co = TypeVar("S_co", bound=_Finding, covariant=True)
F = TypeVar("F", bound=_Finding)
B = TypeVar("B")


class _Storing(Protocol[S_co]):
    """A store, as far as completing it goes."""

    def snapshot(self, check: bool = True) -> S_co | None:
        """The store as it is now; None where nothing was added yet."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Hold the store for adding."""
        ...

    def clear_lock(self) -> None:
        """Take away the lock that a killed process left."""
        ...


def stored(
    store: VectorStore,
    texts: TextSource,
    encode: Encode,
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> StoredVectors:
    """The vectors of texts in their order; those the store lacks are encoded, in blocks, see EncodingBlocks.

    A text that occurs often is encoded once. progress: told (texts that have their vector, all texts). Raises
    BadValue, naming the text, for a vector that is not finite, and for vectors of another dimension or number than
    expected; StoreError as the store.
    """
    hashes = texts.hashes()
    if texts.count == 0 and store.snapshot() is None:
        return StoredVectors(
            Snapshot(codec(store.dtype), 0, np.zeros((0, 0), np.uint8), hashes), np.zeros(0, np.int64)
        )

    def keep(numbers: Int64, wanted: Bool) -> None:
        for some, vectors in _encoded(texts, numbers, encode, store.dtype):
            kept = wanted[np.searchsorted(numbers, some)]
            if kept.any():
                store.add(hashes[some[kept]], vectors[kept])

    snapshot = completed(store, hashes, keep, progress, cut)
    return StoredVectors(snapshot, snapshot.find(hashes))


def encoded_in_memory(
    dtype: str, texts: TextSource, encode: Encode, progress: Progress | None, cut: EncodingBlocks
) -> StoredVectors:
    """The vectors of texts in their order, as a store of that dtype gives them, kept nowhere; raises as `stored`."""
    hashes, kept = texts.hashes(), codec(dtype)
    once = _first_of_each(hashes, np.arange(len(hashes)))
    rows, dimensions = list[NDArray[np.uint8]](), 0
    for numbers in cut.blocks(once, np.ones(len(hashes), np.bool_)):
        if progress is not None:
            progress(int(numbers[0]), len(hashes))
        for _, vectors in _encoded(texts, numbers, encode, dtype):
            dimensions = vectors.shape[1]
            rows.append(kept.write(vectors))
    raw = np.concatenate(rows) if rows else np.zeros((0, 0), np.uint8)
    snapshot = Snapshot(kept, dimensions, raw, hashes[once])
    return StoredVectors(snapshot, snapshot.find(hashes))


def completed(
    store: _Storing[F],
    hashes: Hashes,
    keep: Callable[[Int64, Bool], None],
    progress: Progress | None = None,
    cut: EncodingBlocks | None = None,
) -> F:
    """The store once it holds all texts with these hashes.

    keep: encodes the texts of these numbers, which ascend, together, and adds those that are wanted, while the store is
    held. progress: told (texts that are there, all texts).
    """
    snapshot = store.snapshot()
    if snapshot is not None and (snapshot.find(hashes) >= 0).all():
        store.clear_lock()  # a process that was killed between its last batch and letting go leaves it
        return snapshot
    with store.alone():
        snapshot = store.snapshot(check=False)  # another process may have added them meanwhile
        lacking = np.ones(len(hashes), np.bool_) if snapshot is None else snapshot.find(hashes) < 0
        cut, once = cut or EncodingBlocks(), _first_of_each(hashes, np.arange(len(hashes)))
        done = len(hashes) - int(lacking[once].sum())
        for numbers in cut.blocks(once, lacking):
            if progress is not None:
                progress(done, len(hashes))
            keep(numbers, lacking[numbers])
            done += int(lacking[numbers].sum())
        snapshot = store.snapshot(check=False)
    assert snapshot is not None  # something was added, or found
    return snapshot


def in_pieces(
    given: B | Iterator[B], numbers: Int64, size: Callable[[B], int], name: Callable[[int], str]
) -> Iterator[tuple[Int64, B]]:
    """(texts, what an encoder made of them), whether it gave all at once or block by block; size: texts of a block.

    Raises BadValue, naming the first text, where there are more or fewer texts than were asked for.
    """
    if not isinstance(given, Iterator):
        yield numbers, given
        return
    at = 0
    for block in given:
        some = numbers[at : at + size(block)]
        if len(some):
            yield some, block
        at += size(block)
    if at != len(numbers):
        raise BadValue(f"text '{name(int(numbers[0]))}': {len(numbers)} texts gave {at} vectors")


def _first_of_each(hashes: Hashes, numbers: Int64) -> Int64:
    """The first of the numbers for each distinct hash, ascending."""
    order = numbers[np.lexsort((numbers, hashes[numbers, 1], hashes[numbers, 0]))]
    new = np.ones(len(order), np.bool_)
    new[1:] = (hashes[order[1:]] != hashes[order[:-1]]).any(axis=1)
    return np.sort(order[new])


def _encoded(
    texts: TextSource, numbers: Int64, encode: Encode, dtype: str
) -> Iterator[tuple[Int64, Float32]]:
    """(texts, their vectors) in the blocks that the encoder makes."""
    for some, vectors in in_pieces(encode(texts.take(numbers)), numbers, len, texts.name):
        yield some, _checked(texts, some, vectors, dtype)


def _checked(texts: TextSource, numbers: Int64, given: Float32, dtype: str) -> Float32:
    first = f"text '{texts.name(int(numbers[0]))}'"
    vectors = np.asarray(given, np.float32)
    if vectors.ndim != 2 or len(vectors) != len(numbers) or vectors.shape[1] == 0:
        raise BadValue(f"{first}: {len(numbers)} texts gave vectors of shape {vectors.shape}")
    kept = codec(dtype)
    finite = np.isfinite(vectors).all(axis=1)
    if finite.all():
        finite = np.isfinite(kept.read(kept.write(vectors), vectors.shape[1])).all(axis=1)
    if not finite.all():
        bad = int(numbers[np.flatnonzero(~finite)[0]])
        raise BadValue(f"text '{texts.name(bad)}': its vector is not finite, or beyond the range of {dtype}")
    return vectors
