"""Columns of strings, and numbered identifiers, in arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from weir.errors import BadValue, UnknownName
from weir.settings import IDENTIFIER_BYTES

Int64: TypeAlias = NDArray[np.int64]


def offsets(lengths: NDArray[np.integer] | NDArray[np.bool_]) -> Int64:
    """Return the offsets of consecutive pieces of these lengths, int64[n + 1], from 0."""
    ptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def stretches(begin: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Return (numbers begin[i] to end[i] - 1 for each i in turn, the i of each number), int64 each."""
    length = end - begin
    of = np.repeat(np.arange(len(length)), length)
    return np.arange(len(of)) + (begin - (np.cumsum(length) - length))[of], of


def valid_offsets(ptr: Int64, total: int) -> bool:
    """Return True if offsets go from 0 to `total` without decreasing."""
    return bool(len(ptr) and ptr[0] == 0 and ptr[-1] == total and (ptr[1:] >= ptr[:-1]).all())


def is_permutation(order: NDArray[np.integer]) -> bool:
    """Return True if an array has each of 0 to n - 1 once."""
    n = len(order)
    if not in_range(order, n):
        return False
    seen = np.zeros(n, np.bool_)
    seen[order] = True
    return bool(seen.all())


def in_range(values: NDArray[np.integer], count: int) -> bool:
    """Return True if all numbers are in 0 to count - 1, or none are given."""
    return values.size == 0 or 0 <= int(values.min()) <= int(values.max()) < count


# Odd constants of the 64-bit hash by which identifiers are looked up.
# A word is xor-ed in, multiplied, folded: strings of one length up to 8 bytes never collide.
SEED = 0x9E3779B97F4A7C15
MIX = 0xD6E8FEB86659FD93
MIX_TAIL = 0xFF51AFD7ED558CCD
_WORD = (1 << 64) - 1

_BLOCK_STRINGS = 1 << 15  # strings hashed together: the intermediate arrays stay in the cache
_FEW_STRINGS = (
    16  # strings whose rest is hashed one by one: a step over arrays costs as much as many over numbers
)
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(8)] + [(1 << 64) - 1], np.uint64)


def load_words(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return the first eight bytes of each string data[start[i] : start[i] + length[i]], zero-padded, as
    little-endian uint64[n].
    """
    if len(data) < 8:
        data = np.concatenate([data, np.zeros(8, np.uint8)])
    data = np.ascontiguousarray(data)
    windows: NDArray[np.uint64] = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    at = np.minimum(start, len(windows) - 1)
    word = windows[at]
    # A string near the end of the data is read from an earlier position and shifted down.
    late = np.flatnonzero(at != start)
    if len(late):
        shift = np.minimum(start[late] - at[late], 8).astype(np.uint64) * np.uint64(8)
        word[late] = np.where(shift < 64, word[late] >> np.minimum(shift, np.uint64(63)), np.uint64(0))
    word &= _MASKS[np.clip(length, 0, 8)]
    return word


def _hash_rest(state: int, rest: bytes) -> int:
    words = np.frombuffer(rest + bytes(-len(rest) % 8), "<u8").tolist()
    for word in words:
        state = (state ^ word) * MIX & _WORD
        state ^= state >> 32
    return state


def _hash_block(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    state = np.full(len(start), SEED, np.uint64)
    live: NDArray[np.int64] | None = None  # None: every string still has bytes left
    done = 0
    longest = int(length.max(initial=0))
    while done < longest:
        if live is None and int(length.min()) <= done:
            live = np.flatnonzero(length > done)
        elif live is not None:
            live = live[length[live] > done]
        if live is not None and len(live) <= _FEW_STRINGS:
            for one in live.tolist():
                rest = data[start[one] + done : start[one] + length[one]].tobytes()
                state[one] = _hash_rest(int(state[one]), rest)
            break
        if live is None:
            state ^= load_words(data, start + done, length - done)
            state *= np.uint64(MIX)
            state ^= state >> np.uint64(32)
        else:
            part = state[live] ^ load_words(data, start[live] + done, length[live] - done)
            part *= np.uint64(MIX)
            part ^= part >> np.uint64(32)
            state[live] = part
        done += 8
    state ^= length.astype(np.uint64)
    state *= np.uint64(MIX_TAIL)
    state ^= state >> np.uint64(32)
    return state


def hash_strings(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each string data[start[i] : start[i] + length[i]], uint64[n], equal on every machine."""
    start = np.asarray(start, np.int64)
    length = np.asarray(length, np.int64)
    out = np.empty(len(start), np.uint64)
    for at in range(0, len(start), _BLOCK_STRINGS):
        stop = at + _BLOCK_STRINGS
        out[at:stop] = _hash_block(data, start[at:stop], length[at:stop])
    return out


T = TypeVar("T")

Bytes: TypeAlias = NDArray[np.uint8]
Grades: TypeAlias = NDArray[np.int16 | np.float64]
"""Relevance grades: int16 if all are whole, else float64."""
Int32: TypeAlias = NDArray[np.int32]

Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]


def first_repeated(values: Iterable[T]) -> T | None:
    """Return the first value that occurs again; None if none."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


class StringColumn(Protocol):
    """A column of strings, in memory or read on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int) -> str: ...

    def __iter__(self) -> Iterator[str]: ...

    def lengths(self) -> Int64:
        """Return each string's bytes, int64[n]."""

    def slice(self, start: int, stop: int) -> Strings:
        """Return strings start to stop - 1, clipped like a list's slice."""

    def take(self, codes: NDArray[np.integer]) -> Strings:
        """Return a copy of the strings at these positions."""

    def tolist(self) -> list[str]:
        """Return all strings as a list."""


_BREAK = 0x0A
_MANY, _SHORT = 64, 64
"""Columns of at least this many strings, of fewer bytes each on average, are decoded at once."""


SHOWN_STRINGS, SHOWN_CHARACTERS = 5, 40
"""Strings that a column shows of itself, and characters of each."""


def shown_beginning(column: StringColumn) -> str:
    """Return the number of strings and the first five, shortened."""
    first = [repr(column[n][:SHOWN_CHARACTERS]) for n in range(min(SHOWN_STRINGS, len(column)))]
    return f"{len(column):,}{': ' * bool(first)}{', '.join(first)}{', ...' * (len(column) > len(first))}"


@dataclass(frozen=True, eq=False, repr=False)
class Strings:
    """UTF-8 strings in one buffer; string i is data[ptr[i]:ptr[i+1]]."""

    data: Bytes
    """uint8[total bytes]; `data` and `ptr` may be views of memory-mapped files."""
    ptr: Int64
    """int64[n + 1]; need not start at 0."""

    def __repr__(self) -> str:
        return f"<Strings: {shown_beginning(self)}>"

    @staticmethod
    def of(values: Iterable[str]) -> Strings:
        """Return a column of Python strings. Raises BadValue for a lone surrogate."""
        try:
            return Strings.packed([v.encode("utf-8") for v in values])
        except UnicodeEncodeError as error:
            raise BadValue(f"{error.object!r} is not valid Unicode: {error.reason}") from None

    @staticmethod
    def packed(values: Sequence[bytes | memoryview]) -> Strings:
        """Return a column of byte strings, not checked to be UTF-8."""
        ptr = np.fromiter(accumulate(map(len, values), initial=0), np.int64, len(values) + 1)
        return Strings(np.frombuffer(b"".join(values), np.uint8), ptr)

    @staticmethod
    def concatenated(columns: Sequence[Strings]) -> Strings:
        """Return a copy of columns as one column."""
        pieces = [c.data[int(c.ptr[0]) : int(c.ptr[-1])] for c in columns]
        lengths = np.concatenate([np.zeros(0, np.int64), *(c.lengths() for c in columns)])
        return Strings(np.concatenate([np.zeros(0, np.uint8), *pieces]), offsets(lengths))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, i: int) -> str:
        count = len(self.ptr) - 1
        if not -count <= i < count:
            raise IndexError(i)
        i %= count
        return self.data[self.ptr[i] : self.ptr[i + 1]].tobytes().decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def feed(self, update: Callable[[bytes], object]) -> None:
        """Pass all strings to a hash's `update`, with their offsets."""
        column = self if self.ptr[0] == 0 else self.take(np.arange(len(self)))
        update(column.ptr.tobytes())
        update(column.data[: column.ptr[-1]].tobytes())

    def lengths(self, codes: NDArray[np.integer] | None = None) -> Int64:
        """Return each string's bytes, int64[n], of all or of those at `codes`."""
        if codes is None:
            return np.diff(self.ptr)
        lengths: Int64 = self.ptr[1:][codes] - self.ptr[:-1][codes]
        return lengths

    def slice(self, start: int, stop: int) -> Strings:
        """Return strings start to stop - 1 as a view, clipped like a list's slice."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        return Strings(self.data, self.ptr[start : stop + 1])

    def take(self, codes: NDArray[np.integer]) -> Strings:
        return take_strings(self.data, self.ptr[:-1][codes], self.lengths(codes))

    def tolist(self) -> list[str]:
        if len(self) == 0:
            return []
        base, count = int(self.ptr[0]), len(self)
        data = self.data[base : int(self.ptr[-1])]
        if count >= _MANY and len(data) < _SHORT * count and not (data == _BREAK).any():
            # One text with a break between two strings is decoded and cut faster than the strings are one by one.
            joined = np.full(len(data) + count, _BREAK, np.uint8)
            ends = np.zeros(len(joined), np.bool_)
            ends[self.ptr[1:] - base + np.arange(count)] = True
            joined[~ends] = data
            return joined[:-1].tobytes().decode("utf-8", "replace").split(chr(_BREAK))
        raw = bytes(data)
        cuts = (self.ptr - base).tolist()
        return [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(cuts)]


def take_strings(data: Bytes, start: Int64, length: Int64) -> Strings:
    """Return a copy of the strings data[start[i] : start[i] + length[i]]."""
    ptr = offsets(length)
    return Strings(data[np.repeat(start - ptr[:-1], length) + np.arange(ptr[-1])], ptr)


_BLOCK_IDENTIFIERS = 1 << 17  # identifiers looked up at a time
_SUGGESTED = 10_000  # identifiers among which the nearest to an unknown one is sought
_BY_WORDS = 256  # bytes: longer identifiers are sorted as whole texts


@dataclass(frozen=True, eq=False)
class HashIndex:
    """Sorted 64-bit hashes of strings, each with its string's position."""

    hashes: NDArray[np.uint64]
    positions: Int32

    @staticmethod
    def of(strings: Strings) -> HashIndex:
        """Return the sorted hashes of all strings."""
        hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return HashIndex(hashes[order], order)


@dataclass(frozen=True, eq=False, repr=False)
class Ids:
    """Distinct identifiers, numbered from 0 in their order."""

    column: StringColumn
    index: Callable[[], HashIndex] | None = None
    """Returns the hash index on first use; None builds it from `column`."""

    def __repr__(self) -> str:
        return f"<Ids: {shown_beginning(self.column)}>"

    @staticmethod
    def of(values: Iterable[object]) -> Ids:
        """Return identifiers, made text (1 -> "1") and numbered in this order. Raises BadValue for a repeated, empty
        or too long one.
        """
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

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        if isinstance(code, slice):
            return [self.column[one] for one in range(*code.indices(len(self)))]
        return self.column[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self.column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        return self is other or (len(self) == len(other) and _all_equal(self.strings, other.strings))

    __hash__ = object.__hash__

    @cached_property
    def strings(self) -> Strings:
        """All identifiers, read into memory."""
        return self.column.slice(0, len(self))

    def tolist(self) -> list[str]:
        return self.column.tolist()

    def take(self, codes: NDArray[np.integer]) -> Ids:
        """Return the identifiers at these positions, numbered from 0."""
        return Ids(self.column.take(codes))

    @cached_property
    def _index(self) -> HashIndex:
        return HashIndex.of(self.column.slice(0, len(self))) if self.index is None else self.index()

    def codes(self, wanted: Strings | Iterable[str]) -> Int32:
        """Return each wanted identifier's number, int32[n]; -1 if absent."""
        strings = wanted if isinstance(wanted, Strings) else Strings.of(wanted)
        if len(strings) > _BLOCK_IDENTIFIERS:  # so that intermediate arrays stay in the cache
            cuts = range(0, len(strings), _BLOCK_IDENTIFIERS)
            return np.concatenate([self.codes(strings.slice(cut, cut + _BLOCK_IDENTIFIERS)) for cut in cuts])
        if len(strings) == len(self) and _all_equal(self.strings, strings):  # as for files of one collection
            return np.arange(len(self), dtype=np.int32)
        code = np.full(len(strings), -1, np.int32)
        if len(self) == 0 or len(strings) == 0:
            return code
        hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
        index, pending = self._index, np.arange(len(strings))
        if len(hashes) >= 8 * len(index.hashes):  # most are not here: look only at those that may be
            shift = np.uint64(64 - len(index.hashes).bit_length() - 5)
            present = np.zeros(1 << (64 - int(shift)), np.bool_)
            present[index.hashes >> shift] = True
            pending = np.flatnonzero(present[hashes >> shift])
        at = np.zeros(len(strings), np.int64)
        at[pending] = np.searchsorted(index.hashes, hashes[pending])
        # Different strings may share a hash: walk along the equal hashes until the bytes agree.
        while len(pending):
            inside = at[pending] < len(index.hashes)
            pending = pending[inside]
            pending = pending[index.hashes[at[pending]] == hashes[pending]]
            candidates = index.positions[at[pending]]
            same = _same(self.column.take(candidates), strings, pending)
            code[pending[same]] = candidates[same]
            pending = pending[~same]
            at[pending] += 1
        return code

    def code(self, name: object, of: str) -> int:
        """Return an identifier's number. Raises UnknownName, with the kind `of`, if absent."""
        code = int(self.codes([str(name)])[0])
        if code < 0:
            raise UnknownName(of, str(name), self[:_SUGGESTED])
        return code

    @cached_property
    def tie_ranks(self) -> Int32:
        """Each identifier's position in descending byte order, int32[n]; ties of scores go by it."""
        ranks = np.empty(len(self), np.int32)
        ranks[descending_bytes(self.column.slice(0, len(self)))] = np.arange(len(self), dtype=np.int32)
        return ranks


def descending_bytes(strings: Strings) -> Int64:
    """Return the positions of strings in descending byte order, int64[n]; equal strings in reverse order."""
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
    data, starts = strings.data, strings.ptr[:-1]
    for word in reversed(range(words)):
        value = np.zeros(n, np.uint64)  # zero beyond the end of a string
        for byte in range(8 * word, 8 * word + 8):
            value <<= np.uint64(8)
            inside = np.flatnonzero(lengths > byte)
            value[inside] |= data[starts[inside] + byte]
        order = order[np.argsort(value[order], kind="stable")]
    return order[::-1]


def _all_equal(a: Strings, b: Strings) -> bool:
    return (
        np.array_equal(a.ptr - a.ptr[0], b.ptr - b.ptr[0])
        and np.array_equal(a.data[a.ptr[0] : a.ptr[-1]], b.data[b.ptr[0] : b.ptr[-1]])
    )  # fmt: skip


def _same(a: Strings, b: Strings, j: NDArray[np.integer]) -> NDArray[np.bool_]:
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


def equal_at(data: Bytes, start: Int64, length: Int64, strings: Strings, which: NDArray[np.integer]) -> Int64:
    """Return the positions i where data[start[i] : start[i] + length[i]] is nonempty and equals string which[i],
    int64.
    """
    at: Int64 = np.flatnonzero((length == strings.lengths()[which]) & (length > 0))
    first, last = strings.ptr[:-1], strings.ptr[1:] - 1
    # The first and the last byte leave few to be hashed.
    at = at[data[start[at]] == strings.data[first[which[at]]]]
    at = at[data[start[at] + length[at] - 1] == strings.data[last[which[at]]]]
    if len(at) == 0:
        return at
    hashes = hash_strings(strings.data, first[which[at]], length[at])
    equal: Int64 = at[hash_strings(data, start[at], length[at]) == hashes]
    return equal
