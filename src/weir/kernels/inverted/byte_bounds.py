"""Store for each frequent term and document a byte, an upper bound of the term's impact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from weir.kernels.arrays import Bytes, Float32, Int32, Int64
from weir.kernels.jit import jit

WINDOW = 14
"""Binary logarithm of the documents of a window: sums stay in the cache and column reads are long."""

_FREQUENT_ONE_IN = 8  # a byte a document is then no more to read than the postings are, and faster to add
_LEAST_DOCUMENTS = 1 << 17  # in fewer documents the postings are in the cache and as fast
_STEPS = 255


KeptWindows: TypeAlias = Callable[[Iterator[Bytes], tuple[int, int, int]], Bytes]


def in_memory(windows: Iterator[Bytes], shape: tuple[int, int, int]) -> Bytes:
    """Return the windows stacked in one array of this shape, uint8."""
    values = np.empty(shape, np.uint8)
    for number, window in enumerate(windows):
        values[number] = window
    return values


class ByteBounds(NamedTuple):
    """Upper bounds of impacts, a byte for each frequent term and document."""

    number: Int32
    """int32[V]: column of a term; -1 for none."""
    step: Float32
    """float32[C]: unit of the bytes of a column."""
    values: Bytes
    """uint8[windows, C, documents]: upper bound of the impact, less than one step above it; 0 without the term."""

    @staticmethod
    def of(
        ptr: Int64, doc: Int32, impact: Float32, n_docs: int, kept: KeptWindows = in_memory
    ) -> ByteBounds | None:
        """Return the columns of an impact index; None for few documents, or without frequent terms.

        ptr, doc, impact: int64[V+1], int32[P], float32[P].
        kept: stores windows, uint8[C, documents] in one reused array, and returns them in the final shape.
        """
        frequent, _ = frequent_terms(ptr, n_docs)
        if n_docs < _LEAST_DOCUMENTS or len(frequent) == 0:
            return None
        return ByteBounds.of_terms(frequent, ptr, doc, impact, n_docs, kept)

    @staticmethod
    def of_terms(
        frequent: Int64, ptr: Int64, doc: Int32, impact: Float32, n_docs: int, kept: KeptWindows = in_memory
    ) -> ByteBounds:
        """Return the columns of these terms; arguments are as for `of`."""
        step = np.zeros(len(frequent), np.float32)
        _steps(frequent, ptr, impact, step)
        windows, terms, documents = shape = column_shape(n_docs, len(frequent))

        def filled_rows() -> Iterator[Bytes]:
            values, at = np.empty((terms, documents), np.uint8), ptr[frequent].copy()
            for window in range(windows):
                _fill(ptr[frequent + 1], doc, impact, step, at, window * documents, values)
                yield values

        return ByteBounds(_numbered(frequent, len(ptr) - 1), step, kept(filled_rows(), shape))


def frequent_terms(ptr: Int64, n_docs: int) -> tuple[Int64, Int32]:
    """Return (terms with a column, column of each term or -1), int64[C] and int32[V].

    ptr: int64[V+1], offsets of the posting lists.
    """
    sizes = np.diff(ptr)
    frequent = np.flatnonzero(sizes * _FREQUENT_ONE_IN >= n_docs)
    return frequent, _numbered(frequent, len(sizes))


def _numbered(frequent: Int64, terms: int) -> Int32:
    number = np.full(terms, -1, np.int32)
    number[frequent] = np.arange(len(frequent), dtype=np.int32)
    return number


def column_shape(n_docs: int, terms: int) -> tuple[int, int, int]:
    """Return the shape of `ByteBounds.values`: (windows, terms, documents of a window)."""
    return ((n_docs - 1) >> WINDOW) + 1, terms, 1 << WINDOW


@jit
def _steps(frequent: Int64, ptr: Int64, impact: Float32, step: Float32) -> None:
    for c in range(len(frequent)):
        most = np.float32(0)
        for p in range(ptr[frequent[c]], ptr[frequent[c] + 1]):
            most = max(most, impact[p])
        step[c] = np.float32(
            np.float64(most) / (_STEPS - 0.001)
        )  # so that rounding leaves the largest in reach


@jit
def _fill(
    end: Int64, doc: Int32, impact: Float32, step: Float32, at: Int64, first: int, values: Bytes
) -> None:
    values[:] = 0
    stop = np.int64(first + values.shape[1])
    for c in range(len(end)):
        one, p = np.float64(step[c]), at[c]
        while p < end[c] and np.int64(doc[p]) < stop:
            v = np.float64(impact[p])
            # Rounding may leave a quotient one step off: the product decides.
            q = np.int64(v / one) if one > 0.0 else np.int64(0)
            while q * one < v:
                q += 1
            values[c, np.int64(doc[p]) - first] = q
            p += 1
        at[c] = p
