"""Posting lists in few bytes: two for a document's number, mostly one for its impact.

Lists that `BlockBounds` cuts into ranges keep only the lower 16 bits of document numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Bytes, Float32, Int32, Int64
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS, RANKS, BlockBounds, range_layout
from weir.kernels.jit import jit

UInt16: TypeAlias = NDArray[np.uint16]

HALF = 0xFFFF
"""Mask of the lower half of a document's number."""
_MOST_LEVELS = 1 << 8  # distinct impacts that a byte tells apart
_SLOT_BITS = 10


class PlainLists(NamedTuple):
    """Posting lists of few documents as stored: doc int32[P], impact float32[P]."""

    doc: Int32
    impact: Float32


class PackedLists(NamedTuple):
    """Packed posting lists of V terms as stored, one list after another in each array."""

    low: UInt16
    """uint16[P]: lower half of each document number."""
    high: UInt16
    """uint16: upper half of each number, only of lists that `BlockBounds` does not cut into ranges."""
    code: Bytes
    """uint8: position in `value` of each posting's impact, only of lists with few distinct impacts."""
    value: Float32
    """float32: the distinct impacts of a list with codes in order of appearance, all impacts of a list without."""
    levels: Int32
    """int32[V]: number of distinct impacts of a list with codes; 0 for a list without."""
    top: Float32
    """As in `BlockBounds`, like `offset` and `peak`."""
    offset: Int32
    peak: Float32


ARRAYS: dict[str, tuple[type[Any], tuple[int, ...]]] = {
    "doc": (np.int32, (-1,)),
    "impact": (np.float32, (-1,)),
    "low": (np.uint16, (-1,)),
    "high": (np.uint16, (-1,)),
    "code": (np.uint8, (-1,)),
    "value": (np.float32, (-1,)),
    "levels": (np.int32, (-1,)),
    "top": (np.float32, (-1, 1 + len(RANKS))),
    "offset": (np.int32, (-1,)),
    "peak": (np.float32, (-1,)),
}
"""dtype and shape of each array of both layouts; -1: any length."""


class Lists(NamedTuple):
    """Packed posting lists for kernels: term t has the postings ptr[t]:ptr[t + 1]."""

    ptr: Int64
    low: UInt16
    high: UInt16
    code: Bytes
    value: Float32
    levels: Int32
    first: Int64
    """int64[V]: start of a list's codes, or of its upper halves."""
    table: Int64
    """int64[V]: start of a list in `value`."""


def layout(n_docs: int) -> type[PlainLists] | type[PackedLists]:
    """Return the class of posting lists that an index of `n_docs` documents stores."""
    return PackedLists if n_docs > EXHAUSTIVE_DOCUMENTS else PlainLists


def joined(groups: Sequence[PlainLists | PackedLists]) -> PlainLists | PackedLists:
    """Return one or more groups of posting lists, of one class, concatenated."""
    return groups[0] if len(groups) == 1 else type(groups[0])(*map(np.concatenate, zip(*groups, strict=True)))


def stored(ptr: Int64, doc: Int32, impact: Float32, n_docs: int) -> PlainLists | PackedLists:
    """Return posting lists in the form that an index of `n_docs` documents stores.

    ptr, doc, impact: int64[V + 1], int32[P], float32[P].
    """
    return packed(ptr, doc, impact, n_docs) if layout(n_docs) is PackedLists else PlainLists(doc, impact)


def packed(ptr: Int64, doc: Int32, impact: Float32, n_docs: int) -> PackedLists:
    """Return packed posting lists; arguments as for `stored`."""
    impact = np.ascontiguousarray(impact)
    bounds = BlockBounds.of(ptr, doc, impact, n_docs)
    cut, size = with_ranges(bounds.listed, bounds.shift), int(ptr[-1])
    made = PackedLists(
        np.empty(size, np.uint16), np.empty(int(np.diff(ptr)[~cut].sum()), np.uint16), np.empty(size, np.uint8),
        np.empty(size, np.float32), np.zeros(len(cut), np.int32), bounds.top, bounds.offset,
        bounds.peak,
    )  # fmt: skip
    scratch = np.full(1 << _SLOT_BITS, -1, np.int32), *np.empty((2, _MOST_LEVELS), np.int32)
    codes, values = _pack(cut, ptr, doc, impact, impact.view(np.int32), *scratch, made)
    return made._replace(code=made.code[:codes].copy(), value=made.value[:values].copy())


def with_ranges(listed: Int32, shift: Bytes) -> NDArray[np.bool_]:
    """Return bool[V]: True for lists cut into ranges; arguments as in `BlockBounds`."""
    cut: NDArray[np.bool_] = listed >= 0
    cut[cut] = shift != 255
    return cut


def unpacked(ptr: Int64, lists: PackedLists, n_docs: int) -> tuple[Lists, BlockBounds]:
    """Return packed lists and their bounds for kernels; raises ValueError if array sizes disagree.

    ptr: offsets of the lists, int64[V + 1], valid.
    """
    _, listed, shift, base = range_layout(ptr, n_docs)
    cut, sizes, levels = with_ranges(listed, shift), np.diff(ptr), lists.levels
    most = np.minimum(_MOST_LEVELS, np.where(cut, sizes, 0))
    if len(levels) != len(sizes) or (levels < 0).any() or (levels > most).any():
        raise ValueError("levels")
    first, table = np.zeros(len(sizes), np.int64), np.where(levels > 0, levels, sizes)
    expected = {"low": int(ptr[-1]), "value": int(table.sum())}
    for name, some in (("high", ~cut), ("code", levels > 0)):
        own = sizes[some]
        first[some], expected[name] = np.cumsum(own) - own, int(own.sum())
    for name, size in (
        expected | {"top": len(shift), "offset": int(base[-1]), "peak": int(base[-1])}
    ).items():
        if len(getattr(lists, name)) != size:
            raise ValueError(name)
    kept = Lists(ptr, *lists[:5], first, np.cumsum(table) - table)
    return kept, BlockBounds(listed, lists.top, shift, base, lists.offset, lists.peak)


@jit
def _pack(
    cut: NDArray[np.bool_], ptr: Int64, doc: Int32, impact: Float32, bits: Int32, slots: Int32, found: Int32,
    place: Int32, made: PackedLists,
) -> tuple[int, int]:  # fmt: skip
    low, high, code, value = made.low, made.high, made.code, made.value
    highs, codes, values = np.int64(0), np.int64(0), np.int64(0)
    for t in range(len(cut)):
        start, end = ptr[t], ptr[t + 1]
        for p in range(np.uint64(start), np.uint64(end)):
            low[p] = doc[p] & HALF
        if not cut[t]:
            for p in range(start, end):
                high[highs] = doc[p] >> 16
                highs += 1
        # Codes are kept where they and their table take at most half of what the impacts take.
        most = min(_MOST_LEVELS, (end - start) // 4) if cut[t] else np.int64(0)
        n, coded = np.int64(0), most > 0
        if coded:
            for p in range(start, end):
                x = bits[p]
                h = (np.uint64(np.uint32(x)) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _SLOT_BITS)
                while slots[h] >= 0 and found[slots[h]] != x:
                    h = (h + np.uint64(1)) & np.uint64((1 << _SLOT_BITS) - 1)
                if slots[h] < 0:
                    if n == most:
                        coded = False
                        break
                    slots[h], found[n], place[n] = n, x, h
                    value[values + n] = impact[p]
                    n += 1
                code[codes + p - start] = slots[h]
        for j in range(n):
            slots[place[j]] = -1
        if coded:
            made.levels[t] = n
            codes += end - start
            values += n
        else:
            for p in range(start, end):
                value[values] = impact[p]
                values += 1
    return codes, values


class ListImpacts(NamedTuple):
    """The arrays that hold one list's impacts, and the list's offsets in them."""

    code: Bytes
    value: Float32
    levels: int
    first: np.uint64
    """As in `QueryTerms`, like `table`."""
    table: np.uint64


@jit
def impact_at(own: ListImpacts, p: np.uint64) -> np.float32:
    """Return the impact of posting p of a list."""
    if own.levels == 0:
        return own.value[own.table + p]
    return own.value[own.table + np.uint64(own.code[own.first + p])]


@jit
def impacts_of(lists: Lists, levels: int, first: int, table: int) -> ListImpacts:
    """Return one list's impacts for `impact_at`; levels, first and table as in `QueryTerms`."""
    return ListImpacts(lists.code, lists.value, levels, np.uint64(first), np.uint64(table))


@jit
def starts_of(lists: Lists, t: int) -> tuple[int, int]:
    """Return a list's (first, table) for `impacts_of`: offsets to which a posting's position is added."""
    start = lists.ptr[t]
    return lists.first[t] - start, lists.table[t] - (start if lists.levels[t] == 0 else 0)


@jit
def first_at(number: UInt16, low: int, high: int, wanted: np.uint16) -> int:
    """Return the first position in number[low:high], ascending, with a value of at least `wanted`, else `high`."""
    step = 1
    while low + step < high and number[low + step] < wanted:
        low += step
        step += step
    if low + step < high:
        high = low + step
    while low < high:
        middle = (low + high) >> 1
        if number[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def first_whole(number: UInt16, upper: UInt16, first: int, low: int, high: int, wanted: int) -> int:
    """Return the first posting in low..high-1 whose document is at least `wanted`, else `high`.

    number, upper: low and high 16 bits of the documents of a list without ranges, ascending.
    first: offset of the list in `upper`, to which postings' positions are added.
    """
    while low < high:
        middle = (low + high) >> 1
        if (np.int64(upper[first + middle]) << 16 | np.int64(number[middle])) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def look_up(lists: Lists, bounds: BlockBounds, t: int, docs: Int32, impact: Float32) -> None:
    """Write term t's impact in each of `docs` to `impact`, 0 where the document lacks the term."""
    start, end, row = lists.ptr[t], lists.ptr[t + 1], np.int64(bounds.listed[t])
    first, table = starts_of(lists, t)
    own = impacts_of(lists, lists.levels[t], first, table)
    shift = np.int64(255) if row < 0 else np.int64(bounds.shift[row])
    for i in range(len(docs)):
        d = np.int64(docs[i])
        if shift < 255:
            r = bounds.base[row] + (d >> shift)
            stop = start + np.int64(bounds.offset[r + 1])
            p = first_at(lists.low, start + np.int64(bounds.offset[r]), stop, np.uint16(d & HALF))
            hit = p < stop and np.int64(lists.low[p]) == d & HALF
        else:
            p = first_whole(lists.low, lists.high, first, start, end, d)
            hit = p < end and first_whole(lists.low, lists.high, first, p, end, d + 1) > p
        impact[i] = np.float32(0)
        if hit:
            impact[i] = impact_at(own, np.uint64(p))


@jit
def write_list(lists: Lists, bounds: BlockBounds, t: int, doc: Int32, impact: Float32) -> None:
    """Write the documents and impacts of term t's whole list."""
    start, row = lists.ptr[t], np.int64(bounds.listed[t])
    first, table = starts_of(lists, t)
    own = impacts_of(lists, lists.levels[t], first, table)
    for p in range(start, lists.ptr[t + 1]):
        impact[p - start] = impact_at(own, np.uint64(p))
    if row < 0 or bounds.shift[row] == 255:
        for p in range(start, lists.ptr[t + 1]):
            doc[p - start] = np.int64(lists.high[first + p]) << 16 | np.int64(lists.low[p])
        return
    base, shift = bounds.base[row], np.int64(bounds.shift[row])
    for r in range(bounds.base[row + 1] - base - 1):
        for i in range(bounds.offset[base + r], bounds.offset[base + r + 1]):
            doc[i] = (r << shift) & ~HALF | np.int64(lists.low[start + i])


@jit
def flaw(lists: Lists, bounds: BlockBounds, n_docs: int) -> int:
    """Return 0 if all postings are in their place, 1 for a wrong `offset`, 2 for `low` or `high`, 3 for `code`."""
    for t in range(len(lists.ptr) - 1):
        start, end, row = lists.ptr[t], lists.ptr[t + 1], np.int64(bounds.listed[t])
        first, levels = lists.first[t], lists.levels[t]
        if row < 0 or bounds.shift[row] == 255:
            before = np.int64(-1)
            for p in range(start, end):
                d = np.int64(lists.high[first + p - start]) << 16 | np.int64(lists.low[p])
                if d <= before or d >= n_docs:
                    return 2
                before = d
            continue
        base, shift = bounds.base[row], np.int64(bounds.shift[row])
        last = bounds.base[row + 1] - base - 1
        if bounds.offset[base] != 0 or bounds.offset[base + last] != end - start:
            return 1
        for r in range(last):
            if bounds.offset[base + r] > bounds.offset[base + r + 1]:
                return 1
        for r in range(last):
            before = (r << shift & HALF) - 1
            stop = min((r << shift & HALF) + (1 << shift), n_docs - (r << shift & ~HALF))
            for i in range(bounds.offset[base + r], bounds.offset[base + r + 1]):
                d = np.int64(lists.low[start + i])
                if d <= before or d >= stop:
                    return 2
                before = d
        if 0 < levels < _MOST_LEVELS:
            for i in range(end - start):
                if lists.code[first + i] >= levels:
                    return 3
    return 0
