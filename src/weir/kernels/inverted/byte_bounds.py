"""One-byte upper bounds of each frequent term's impact in each document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from weir.kernels.arrays import Bytes, Float32, Int32, Int64
from weir.kernels.inverted.block_bounds import LISTED_POSTINGS, BlockBounds
from weir.kernels.inverted.packed import Lists, impact_at, impacts_of, starts_of
from weir.kernels.jit import jit

WINDOW = 14
"""Binary logarithm of the documents of a window: sums stay in the cache and column reads are long."""

_FREQUENT_ONE_IN = 8  # a byte a document is then no more to read than the postings are, and faster to add
_LEAST_DOCUMENTS = 1 << 17  # in fewer documents the postings are in the cache and as fast
_STEPS = 255


KeptWindows: TypeAlias = Callable[[Iterator[Bytes], tuple[int, int, int]], Bytes]


def in_memory(windows: Iterator[Bytes], shape: tuple[int, int, int]) -> Bytes:
    """Return the windows stacked in one uint8 array of this shape."""
    values = np.empty(shape, np.uint8)
    for number, window in enumerate(windows):
        values[number] = window
    return values


class ByteBounds(NamedTuple):
    """Upper bounds, in one byte each, of the impacts of frequent terms in documents."""

    number: Int32
    """int32[V]: column of a term; -1 for none."""
    step: Float32
    """float32[C]: unit of the bytes of a column."""
    values: Bytes
    """uint8[windows, C, documents]: upper bound of the impact, less than one step above it; 0 without the term."""

    @staticmethod
    def of(
        lists: Lists, bounds: BlockBounds, n_docs: int, kept: KeptWindows = in_memory
    ) -> ByteBounds | None:
        """Return the byte bounds of an impact index; None for few documents or without frequent terms.

        kept: stores successive windows, uint8[C, documents] (one array, reused), and returns all in the final
            shape.
        """
        frequent, _ = frequent_terms(lists.ptr, n_docs)
        if n_docs < _LEAST_DOCUMENTS or len(frequent) == 0:
            return None
        return ByteBounds.of_terms(frequent, lists, bounds, n_docs, kept)

    @staticmethod
    def of_terms(
        frequent: Int64, lists: Lists, bounds: BlockBounds, n_docs: int, kept: KeptWindows = in_memory
    ) -> ByteBounds:
        """Return the byte bounds of these terms, which `bounds` lists; other arguments as for `of`."""
        # So that rounding leaves the largest in reach.
        most = bounds.top[bounds.listed[frequent], 0].astype(np.float64)
        step = (most / (_STEPS - 0.001)).astype(np.float32)
        windows, terms, documents = shape = column_shape(n_docs, len(frequent))

        def filled_rows() -> Iterator[Bytes]:
            values = np.empty((terms, documents), np.uint8)
            for window in range(windows):
                _fill(frequent, lists, bounds, step, window * documents, values)
                yield values

        return ByteBounds(_numbered(frequent, len(lists.ptr) - 1), step, kept(filled_rows(), shape))


def frequent_terms(ptr: Int64, n_docs: int) -> tuple[Int64, Int32]:
    """Return (frequent terms int64[C], each term's position among them or -1, int32[V]).

    ptr: offsets of the posting lists, int64[V + 1].
    """
    sizes = np.diff(ptr)
    frequent = np.flatnonzero((sizes * _FREQUENT_ONE_IN >= n_docs) & (sizes >= LISTED_POSTINGS))
    return frequent, _numbered(frequent, len(sizes))


def _numbered(frequent: Int64, terms: int) -> Int32:
    number = np.full(terms, -1, np.int32)
    number[frequent] = np.arange(len(frequent), dtype=np.int32)
    return number


def column_shape(n_docs: int, terms: int) -> tuple[int, int, int]:
    """Return the shape of `ByteBounds.values`: (windows, terms, documents of a window)."""
    return ((n_docs - 1) >> WINDOW) + 1, terms, 1 << WINDOW


@jit
def _steps(impact: np.float32, step: float) -> int:
    v = np.float64(impact)
    # Rounding may leave a quotient one step off: the product decides.
    q = np.int64(v / step) if step > 0.0 else np.int64(0)
    while q * step < v:
        q += 1
    return q


@jit
def _fill(
    frequent: Int64, lists: Lists, bounds: BlockBounds, step: Float32, begin: int, values: Bytes
) -> None:
    values[:] = 0
    width = values.shape[1]
    for c in range(len(frequent)):
        t, one = frequent[c], np.float64(step[c])
        row, start = np.int64(bounds.listed[t]), lists.ptr[t]
        base, shift = bounds.base[row], np.int64(bounds.shift[row])
        ahead, table = starts_of(lists, t)
        own = impacts_of(lists, lists.levels[t], ahead, table)
        first, last = start, lists.ptr[t + 1]
        if shift < 255:
            ranges = bounds.base[row + 1] - base - 1
            first = start + bounds.offset[base + (begin >> shift)]
            last = start + bounds.offset[base + min((begin + width) >> shift, ranges)]
        for p in range(first, last):
            # The lower half tells the place in the window.
            if (
                shift < 255
                or (np.int64(lists.high[ahead + p]) << 16 | np.int64(lists.low[p])) // width == begin // width
            ):
                values[c, np.int64(lists.low[p]) & (width - 1)] = _steps(impact_at(own, np.uint64(p)), one)
