"""Numbering identifiers as they appear in a file, many at once."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings, load_words
from weir.core.strings import Bytes, Int64, Strings

__all__ = ["as_bytes", "differs_from_previous", "distinct", "distinct_strings"]


def distinct(data: Bytes, start: Int64, length: Int64, hashes: NDArray[np.uint64]) -> tuple[Int64, Int64]:
    """Number texts by first appearance.

    data[start[i] : start[i] + length[i]] is text i, hashes[i] its hash. Returns codes int64[n] and, for each
    code, the position of its first text.
    """
    n = len(start)
    if n == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(hashes)
    ordered = hashes[order]
    opens = np.ones(n, np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    heads = np.flatnonzero(opens)
    first = np.minimum.reduceat(order, heads)
    group = np.empty(n, np.int64)
    group[order] = np.cumsum(opens) - 1
    if not _all_same(data, start, length, first[group]):
        return _distinct_slowly(data, start, length)
    by_appearance = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[by_appearance] = np.arange(len(first))
    return number[group], first[by_appearance]


def distinct_strings(strings: Strings) -> tuple[Int64, Strings]:
    """Number strings by first appearance: codes int64[n] and the distinct strings."""
    start, length = strings.ptr[:-1], strings.lengths()
    codes, first = distinct(strings.data, start, length, hash_strings(strings.data, start, length))
    return codes, strings.take(first)


def as_bytes(strings: Strings) -> list[bytes]:
    """The bytes of each string; unlike text they keep what is no valid UTF-8."""
    data, cuts = strings.data[strings.ptr[0] : strings.ptr[-1]].tobytes(), strings.ptr - strings.ptr[0]
    ends = cuts.tolist()
    return [data[a:b] for a, b in itertools.pairwise(ends)]


def _all_same(data: Bytes, start: Int64, length: Int64, other: Int64) -> bool:
    """Whether every text i has the bytes of text other[i]: it may only fail when two texts share a hash."""
    rows = np.flatnonzero(other != np.arange(len(other)))
    a, b = start[rows], start[other[rows]]
    size = length[rows]
    if (size != length[other[rows]]).any():
        return False
    for at in range(int(size.max(initial=0))):
        inside = size > at
        a, b, size = a[inside], b[inside], size[inside]
        if (data[a + at] != data[b + at]).any():
            return False
    return True


def _distinct_slowly(data: Bytes, start: Int64, length: Int64) -> tuple[Int64, Int64]:
    known: dict[bytes, int] = {}
    first: list[int] = []
    codes = np.empty(len(start), np.int64)
    for i, (a, n) in enumerate(zip(start.tolist(), length.tolist(), strict=True)):
        text = data[a : a + n].tobytes()
        if text not in known:
            known[text] = len(first)
            first.append(i)
        codes[i] = known[text]
    return codes, np.array(first, np.int64)


def differs_from_previous(buf: Bytes, start: Int64, length: Int64) -> NDArray[np.bool_]:
    """Whether each text differs from the one before it; the first does. start, length: int64[n]."""
    change = np.ones(len(start), np.bool_)
    change[1:] = length[1:] != length[:-1]
    longest = int(length.max(initial=0))
    for done in range(0, longest, 8):
        word = load_words(buf, start + done, length - done)
        change[1:] |= word[1:] != word[:-1]
    return change
