"""The identifiers of several tables as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weir.core.hashing import hash_strings, load_words
from weir.core.ids import Ids
from weir.core.strings import Int32, Int64, Strings
from weir.io.runs.distinct_ids import distinct_strings

__all__ = ["united", "united_sorted"]

BLOCK_IDENTIFIERS = 1 << 15
"""Identifiers looked at together: what is made of them stays near the processor."""

Codes = list[Int32 | None]
"""For each table the number that each of its identifiers has in the union; None: the table is the union."""


def united(tables: Sequence[Ids]) -> tuple[Ids, Codes]:
    """The identifiers of all tables, those of the first table first."""
    if all(table is tables[0] for table in tables):
        return tables[0], [None] * len(tables)
    strings = Strings.concatenated([table.strings for table in tables])
    codes, first = _numbered(strings)
    cuts = np.cumsum([len(table) for table in tables])[:-1]
    blocks = [
        strings.take(first[at : at + BLOCK_IDENTIFIERS]) for at in range(0, len(first), BLOCK_IDENTIFIERS)
    ]
    return Ids(Strings.concatenated(blocks)), list(np.split(codes, cuts))


def united_sorted(tables: Sequence[Ids]) -> tuple[Ids, Codes]:
    """As `united`, by identifier, so that no order of the tables shows; one table for all stays as it is."""
    ids, codes = united(tables)
    if codes[0] is None:
        return ids, codes
    place = len(ids) - 1 - ids.tie_ranks
    return ids.take(np.argsort(place)), [None if code is None else place[code] for code in codes]


def _numbered(strings: Strings) -> tuple[Int32, Int64]:
    """Numbers of strings by first appearance, and the position of each one's first."""
    hashes = hash_strings(strings.data, strings.ptr[:-1], strings.lengths())
    order = np.argsort(hashes).astype(np.int32)
    hashes = hashes[order]
    fresh = np.ones(len(order), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=fresh[1:])
    heads = np.flatnonzero(fresh)
    if len(heads) == 0:
        return order, heads
    leader = np.minimum.reduceat(order, heads)  # the first string of each hash
    group = np.cumsum(fresh, dtype=np.int32) - 1
    other = leader[group]
    spans = [slice(at, at + BLOCK_IDENTIFIERS) for at in range(0, len(order), BLOCK_IDENTIFIERS)]
    if not all(_equal(strings, order[span], other[span]) for span in spans):  # two strings share a hash
        numbers = distinct_strings(strings)[0]
        return numbers.astype(np.int32), np.unique(numbers, return_index=True)[1]
    kept = np.zeros(len(order), np.bool_)
    kept[leader] = True
    codes = np.empty(len(order), np.int32)
    codes[order] = (np.cumsum(kept, dtype=np.int32) - 1)[leader][group]
    return codes, np.flatnonzero(kept)


def _equal(strings: Strings, a: Int32, b: Int32) -> bool:
    """Whether strings a[i] and b[i] are the same bytes, for all i."""
    other = a != b
    a, b = a[other], b[other]
    size = strings.lengths(a)
    if (size != strings.lengths(b)).any():
        return False
    start, other_start = strings.ptr[a], strings.ptr[b]
    for at in range(0, int(size.max(initial=0)), 8):
        if (_words(strings, start, at, size) != _words(strings, other_start, at, size)).any():
            return False
    return True


def _words(strings: Strings, start: Int64, at: int, size: Int64) -> NDArray[np.uint64]:
    inside = np.minimum(at, size)
    return load_words(strings.data, start + inside, size - inside)
