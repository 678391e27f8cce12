"""Identifiers of documents or queries: code <-> string without a dict of millions of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings
from weir.core.strings import Int32, Int64, StringColumn, Strings, first_repeated
from weir.errors import BadValue

__all__ = ["IDENTIFIER_BYTES", "HashIndex", "Ids"]

IDENTIFIER_BYTES = 4096
"""The longest identifier that is taken: collections that go by address stay below 2,100 bytes."""

_BLOCK_IDENTIFIERS = 1 << 17  # identifiers looked up at a time
_BY_WORDS = 256  # bytes: longer identifiers are sorted as whole texts


@dataclass(frozen=True, eq=False)
class HashIndex:
    """Where to find a string by its 64-bit hash: sorted hashes and the positions they came from."""

    hashes: NDArray[np.uint64]
    positions: Int32

    @staticmethod
    def of(strings: Strings) -> HashIndex:
        """Hash and sort all strings; the sort is stable, so equal strings stay in order."""
        hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return HashIndex(hashes[order], order)


@dataclass(frozen=True, eq=False)
class Ids:
    """Distinct identifiers, numbered 0..n-1 in their order.

    column: the identifiers; index: gives their hash index on first use, by default it is made then.
    Raises BadValue on a duplicate, empty or too long identifier when made by `Ids.of`.
    """

    column: StringColumn
    index: Callable[[], HashIndex] | None = field(default=None, repr=False)

    @staticmethod
    def of(values: Iterable[object]) -> Ids:
        """Number these identifiers; anything but text is written as text (1 -> "1")."""
        texts = [v if isinstance(v, str) else str(v) for v in values]
        ids = Ids(Strings.of(texts))
        characters = max(map(len, texts), default=0)  # of at most four bytes each
        longest = int(ids.strings.lengths().max()) if 4 * characters > IDENTIFIER_BYTES else characters
        if longest > IDENTIFIER_BYTES:
            raise BadValue(f"an identifier of {longest:,} bytes; expected at most {IDENTIFIER_BYTES:,}")
        distinct = set(texts)
        if "" in distinct:
            raise BadValue("an identifier is empty; every document and query needs one")
        if len(distinct) != len(texts):
            raise BadValue(f"identifier '{first_repeated(texts)}' occurs twice")
        return ids

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, code: int) -> str:
        return self.column[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self.column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        return self is other or (len(self) == len(other) and self.tolist() == other.tolist())

    __hash__ = object.__hash__

    @cached_property
    def strings(self) -> Strings:
        """All identifiers, read or made where they are not in memory; `take` reads only some."""
        return self.column.slice(0, len(self))

    def tolist(self) -> list[str]:
        """All identifiers."""
        return self.column.tolist()

    def take(self, codes: NDArray[np.integer]) -> Ids:
        """These identifiers, renumbered from 0."""
        return Ids(self.column.take(codes))

    @cached_property
    def _index(self) -> HashIndex:
        return HashIndex.of(self.column.slice(0, len(self))) if self.index is None else self.index()

    def codes(self, wanted: Strings | Iterable[str]) -> Int32:
        """The number of each wanted identifier, -1 for one that is not here."""
        strings = wanted if isinstance(wanted, Strings) else Strings.of(wanted)
        if len(strings) > _BLOCK_IDENTIFIERS:  # so that what is between stays in the cache
            cuts = range(0, len(strings), _BLOCK_IDENTIFIERS)
            return np.concatenate([self.codes(strings.slice(cut, cut + _BLOCK_IDENTIFIERS)) for cut in cuts])
        found = np.full(len(strings), -1, np.int32)
        if len(self) == 0 or len(strings) == 0:
            return found
        hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
        index = self._index
        pending = _perhaps_among(index.hashes, hashes)
        at = np.zeros(len(strings), np.int64)
        at[pending] = np.searchsorted(index.hashes, hashes[pending])
        # Different strings may share a hash: walk along the equal hashes until the bytes agree.
        while len(pending):
            inside = at[pending] < len(index.hashes)
            pending = pending[inside]
            pending = pending[index.hashes[at[pending]] == hashes[pending]]
            candidates = index.positions[at[pending]]
            same = _same(self.column.take(candidates), strings, pending)
            found[pending[same]] = candidates[same]
            pending = pending[~same]
            at[pending] += 1
        return found

    @cached_property
    def tie_ranks(self) -> Int32:
        """Place of each identifier in descending byte order: 0 is the largest.

        It decides between equal scores (see core/order.py).
        """
        ranks = np.empty(len(self), np.int32)
        ranks[descending_bytes(self.column.slice(0, len(self)))] = np.arange(len(self), dtype=np.int32)
        return ranks


def _perhaps_among(known: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> Int64:
    """The positions of the hashes that may be among the known, which are sorted: most others are left out."""
    if len(hashes) < 8 * len(known):
        return np.arange(len(hashes))
    bits = len(known).bit_length() + 5
    shift = np.uint64(64 - bits)
    present = np.zeros(1 << bits, np.bool_)
    present[known >> shift] = True
    return np.flatnonzero(present[hashes >> shift])


def descending_bytes(strings: Strings) -> Int64:
    """The permutation that puts strings in descending byte order (strcmp), equal ones in reverse order."""
    n = len(strings)
    lengths = strings.lengths()
    width = int(lengths.max()) if n else 0
    if width == 0:
        return np.arange(n, dtype=np.int64)[::-1]
    if width > _BY_WORDS:
        texts = [strings.data[a : a + size].tobytes() for a, size in zip(strings.ptr, lengths, strict=False)]
        return np.array(sorted(range(n), key=texts.__getitem__), np.int64)[::-1]
    # Big-endian words of eight bytes compare as the bytes do; sort by the last word first.
    words = -(-width // 8)
    # Padding makes "a" equal to "a\0": the shorter comes first, unless a byte decides.
    order: Int64 = np.argsort(lengths, kind="stable")
    for word in reversed(range(words)):
        order = order[np.argsort(_word(strings, lengths, word)[order], kind="stable")]
    return order[::-1]


def _word(strings: Strings, lengths: Int64, word: int) -> NDArray[np.uint64]:
    """Bytes 8*word..8*word+7 of every string as a big-endian number, zero beyond the end."""
    value = np.zeros(len(strings), np.uint64)
    data, starts = strings.data, strings.ptr[:-1]
    for byte in range(8 * word, 8 * word + 8):
        value <<= np.uint64(8)
        inside = np.flatnonzero(lengths > byte)
        value[inside] |= data[starts[inside] + byte]
    return value


def _same(a: Strings, b: Strings, j: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether a[n] and b[j[n]] are the same bytes, for every n."""
    lengths = a.lengths()
    same = np.asarray(lengths == b.lengths(j))
    pairs = np.flatnonzero(same)
    if len(pairs) < len(same):
        a, lengths = a.take(pairs), lengths[pairs]
    if len(a.data) == 0:
        return same
    step = np.repeat(b.ptr[:-1][j[pairs]] - a.ptr[:-1], lengths) + np.arange(len(a.data))
    differ = np.repeat(np.arange(len(pairs)), lengths)[a.data != b.data[step]]
    same[pairs[differ]] = False
    return same
