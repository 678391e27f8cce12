"""Compiled sort of rankings: rows in rank order, duplicates found, documents looked up in a hash table.

Identifiers are compared as the bytes of the block they stand in; the slow reference is `weir.io.runs.numpy_parser`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit
from weir.kernels.parse.fields import F64, I64, U8, U64, Int

__all__ = ["IdTable", "build_slots", "order_rows"]

I32 = NDArray[np.int32]

_29 = np.uint64(29)


class IdTable(NamedTuple):
    """A hash table of identifiers; without slots nothing is looked up.

    slots: int32, open addressing, see build_slots; keys: uint64[n], the hash of each identifier; data, ptr: identifier
    i is data[ptr[i]:ptr[i + 1]].
    """

    slots: I32
    keys: U64
    data: U8
    ptr: I64


@jit
def build_slots(hashes: U64, slots: I32) -> None:
    """Fill an open-addressing table (slots: all -1, a power of two at least twice as long) with positions."""
    mask = len(slots) - 1
    for i in range(len(hashes)):
        at = np.int64(hashes[i] >> _29) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@jit
def _find(
    buf: U8, start: int, length: int, hashed: np.uint64, slots: I32, keys: U64, data: U8, ptr: I64
) -> Int:
    """The position of an identifier in the table whose strings are data[ptr[i]:ptr[i + 1]], or -1."""
    mask = len(slots) - 1
    at = np.int64(hashed >> _29) & mask
    while slots[at] >= 0:
        i = slots[at]
        if keys[i] == hashed and ptr[i + 1] - ptr[i] == length:
            k = 0
            while k < length and buf[start + k] == data[ptr[i] + k]:
                k += 1
            if k == length:
                return np.int64(i)
        at = (at + 1) & mask
    return -1


@jit
def _larger(buf: U8, a: int, a_length: int, b: int, b_length: int) -> bool:
    """Whether the bytes at a are the larger, compared one by one (strcmp)."""
    k = 0
    while k < a_length and k < b_length and buf[a + k] == buf[b + k]:
        k += 1
    if k < a_length and k < b_length:
        return bool(buf[a + k] > buf[b + k])
    return a_length > b_length


@jit
def _sort(buf: U8, start: I64, length: I64, score: F64, order: I64, spare: I64) -> None:
    """Put `order` (rows) into rank order: insertion while rows are nearly in place, else a merge sort.

    Scores are compared here and bytes only in `_larger`: a call that takes arrays costs tens of comparisons.
    """
    n, moves = len(order), 0
    for i in range(1, n):
        row, j = order[i], i
        while j > 0:
            other = order[j - 1]
            if score[row] < score[other]:
                break
            if score[row] == score[other] and _larger(
                buf, start[other], length[other], start[row], length[row]
            ):
                break
            order[j] = other
            j -= 1
        order[j] = row
        moves += i - j
        if moves > 4 * n + 16:
            break
    else:
        return
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            a, middle, high = low, min(low + width, n), min(low + 2 * width, n)
            b = middle
            for k in range(low, high):
                first = b >= high
                if not first and a < middle:
                    x, y = order[a], order[b]
                    first = score[x] > score[y]
                    if score[x] == score[y]:
                        first = _larger(buf, start[x], length[x], start[y], length[y])
                if first:
                    spare[k] = order[a]
                    a += 1
                else:
                    spare[k] = order[b]
                    b += 1
        order[:] = spare[:n]
        width *= 2


@jit
def _duplicate(buf: U8, start: I64, length: I64, hashes: U64, a: int, b: int, seen: I32) -> int:
    """The first row of a..b-1 whose document an earlier one has, or -1; seen: a power of two >= 4(b-a)."""
    seen[:] = -1
    mask = len(seen) - 1
    for row in range(a, b):
        at = np.int64(hashes[row] >> _29) & mask
        while seen[at] >= 0:
            other = a + seen[at]
            if hashes[other] == hashes[row] and length[other] == length[row]:
                k = 0
                while k < length[row] and buf[start[other] + k] == buf[start[row] + k]:
                    k += 1
                if k == length[row]:
                    return row
            at = (at + 1) & mask
        seen[at] = row - a
    return -1


@jit
def order_rows(
    buf: U8, start: I64, length: I64, hashes: U64, score: F64, cuts: I64, table: IdTable, seen: I32, spare: I64,
    order: I64, doc: I32,
) -> int:  # fmt: skip
    """Rank the rows of each query and look their documents up in a table of identifiers.

    cuts: int64[queries + 1] first row of each; score: at the precision in which scores compare; seen: scratch, a power
    of two at least four times the longest ranking; spare: scratch, as long as that. Fills order (rows in rank order)
    and doc (position in the table or -1, in rank order). Returns the first row whose document occurs twice in its
    ranking, or -1.
    """
    slots, keys, data, ptr = table.slots, table.keys, table.data, table.ptr
    mask = len(slots) - 1
    for q in range(len(cuts) - 1):
        a, b = cuts[q], cuts[q + 1]
        room = 2
        while room < 4 * (b - a):
            room *= 2
        twice = _duplicate(buf, start, length, hashes, a, b, seen[:room])
        if twice >= 0:
            return twice
        ranked = True
        for row in range(a, b):
            order[row] = row
            if row > a and not score[row - 1] > score[row]:
                ranked = False
        if not ranked:
            _sort(buf, start, length, score, order[a:b], spare)
        for row in range(a, b):
            at, doc[row] = order[row], -1
            if len(slots):
                # Few documents are in the table, and a call that takes arrays costs more than the walk to know it.
                slot = np.int64(hashes[at] >> _29) & mask
                while slots[slot] >= 0 and keys[slots[slot]] != hashes[at]:
                    slot = (slot + 1) & mask
                if slots[slot] >= 0:
                    doc[row] = _find(buf, start[at], length[at], hashes[at], slots, keys, data, ptr)
    return -1
