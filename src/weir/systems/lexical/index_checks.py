"""What a compiled search takes for granted of an index, checked in vectorised passes.

Compiled loops test no bounds. Whatever the arrays that passed these checks hold, every position that a search computes
lies inside its array: a file that was changed on purpose can give other scores, and never end the process.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.pointers import cuts
from weir.kernels.inverted.block_bounds import BlockBounds, range_layout
from weir.kernels.inverted.byte_bounds import ByteBounds, column_shape, frequent_terms

__all__ = ["flaw"]

Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]

PIECE_ENTRIES = 1 << 20
"""Entries looked at together: what lies between stays in the cache."""


def flaw(
    n_docs: int,
    ptr: Int64,
    doc: Int32,
    impact: Float32,
    bounds: BlockBounds | None,
    columns: ByteBounds | None,
) -> str:
    """The first array that a search must not be given, "" where all are sound; see kernels/inverted/search.py."""
    if not cuts(ptr, len(doc)):
        return "ptr"
    if not _ascends(ptr, doc, n_docs):
        return "doc"
    if impact.shape != doc.shape or not _weights(impact):
        return "impact"
    wrong = "" if bounds is None else _bounds_flaw(bounds, ptr, doc, n_docs)
    return wrong or ("" if columns is None else _columns_flaw(columns, ptr, n_docs))


def _ascends(ptr: Int64, doc: Int32, n_docs: int) -> bool:
    """Whether every list holds documents below n_docs, each greater than the one before."""
    for start in range(0, len(doc), PIECE_ENTRIES):
        some = doc[start : start + PIECE_ENTRIES + 1]
        if int(some.min()) < 0 or int(some.max()) >= n_docs:
            return False
        falls = start + 1 + np.flatnonzero(some[1:] <= some[:-1])
        if not (ptr[np.searchsorted(ptr, falls)] == falls).all():  # only where another list begins
            return False
    return True


def _bounds_flaw(bounds: BlockBounds, ptr: Int64, doc: Int32, n_docs: int) -> str:
    rows, listed, shift, base = range_layout(ptr, n_docs)
    for name, wanted in (("listed", listed), ("shift", shift), ("base", base)):
        if not np.array_equal(getattr(bounds, name), wanted):
            return f"bounds-{name}"
    if len(bounds.top) != len(rows) or not _weights(bounds.top):
        return "bounds-top"
    if len(bounds.offset) != base[-1] or not _offsets(bounds.offset, rows, shift, base, ptr, doc):
        return "bounds-offset"
    if bounds.peak.shape != bounds.offset.shape or not _weights(bounds.peak):
        return "bounds-peak"
    return ""


def _offsets(
    offset: Int32, rows: Int64, shift: NDArray[np.uint8], base: Int64, ptr: Int64, doc: Int32
) -> bool:
    """Whether each range of documents begins in its list where `offset` says."""
    for start in range(0, len(offset), PIECE_ENTRIES):
        entry = np.arange(start, min(start + PIECE_ENTRIES, len(offset)))
        row = np.searchsorted(base, entry, side="right") - 1
        first, size = ptr[rows[row]], np.diff(ptr)[rows[row]]
        number = (entry - base[row]) << shift[row].astype(np.int64)  # the first document of the range
        at = offset[entry].astype(np.int64)
        if not ((at >= 0) & (at <= size)).all():
            return False
        before = (at == 0) | (doc[np.maximum(first + at - 1, 0)] < number)
        behind = (at == size) | (doc[np.minimum(first + at, len(doc) - 1)] >= number)
        if not (before & behind).all():
            return False
    return True


def _columns_flaw(columns: ByteBounds, ptr: Int64, n_docs: int) -> str:
    frequent, number = frequent_terms(ptr, n_docs)
    if not np.array_equal(columns.number, number):
        return "columns-number"
    if len(columns.step) != len(frequent) or not _weights(columns.step):
        return "columns-step"
    return "" if columns.values.shape == column_shape(n_docs, len(frequent)) else "columns-values"


def _weights(values: NDArray[Any]) -> bool:
    """Whether all numbers are finite and none is negative."""
    return values.size == 0 or bool(values.min() >= 0 and values.max() < np.inf)
