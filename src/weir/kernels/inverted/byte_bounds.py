"""Columns of an impact index: for its frequent terms an upper bound of each document's impact, in a byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.kernels.jit import jit

Bytes: TypeAlias = NDArray[np.uint8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]

WINDOW = 14
"""Documents of a window, as a power of two: their sums stay in the cache, and each column is read in long stretches."""

_FREQUENT_ONE_IN = 8  # a byte a document is then no more to read than the postings are, and faster to add
_LEAST_DOCUMENTS = 1 << 17  # in fewer documents the postings are in the cache and as fast
_STEPS = 255


KeptWindows: TypeAlias = Callable[[Iterator[Bytes], tuple[int, int, int]], Bytes]


def in_memory(windows: Iterator[Bytes], shape: tuple[int, int, int]) -> Bytes:
    """The windows one behind the other in an array of this shape."""
    values = np.empty(shape, np.uint8)
    for number, window in enumerate(windows):
        values[number] = window
    return values


class ByteBounds(NamedTuple):
    """The columns of frequent terms; those of learned weights take about a tenth of the postings' size.

    number: int32[V], the column of a term, or -1; step: float32[C]; values: uint8[windows, C, documents], in steps of
    its column an upper bound of a document's impact, less than one step above it and 0 where the term is not.
    """

    number: Int32
    step: Float32
    values: Bytes

    @staticmethod
    def of(
        ptr: Int64, doc: Int32, impact: Float32, n_docs: int, kept: KeptWindows = in_memory
    ) -> ByteBounds | None:
        """The columns of an impact index: int64[V+1], int32[P], float32[P], documents; None where none would help.

        kept: makes `values` of its windows, uint8[C, documents] in turn (the memory of one is that of the next), and
        its shape.
        """
        frequent, _ = frequent_terms(ptr, n_docs)
        if n_docs < _LEAST_DOCUMENTS or len(frequent) == 0:
            return None
        return ByteBounds.of_terms(frequent, ptr, doc, impact, n_docs, kept)

    @staticmethod
    def of_terms(
        frequent: Int64, ptr: Int64, doc: Int32, impact: Float32, n_docs: int, kept: KeptWindows = in_memory
    ) -> ByteBounds:
        """As `of`, for these terms whether it helps or not."""
        step = np.zeros(len(frequent), np.float32)
        _steps(frequent, ptr, impact, step)
        windows, terms, documents = shape = column_shape(n_docs, len(frequent))

        def filled() -> Iterator[Bytes]:
            values, at = np.empty((terms, documents), np.uint8), ptr[frequent].copy()
            for window in range(windows):
                _fill(ptr[frequent + 1], doc, impact, step, at, window * documents, values)
                yield values

        return ByteBounds(_numbered(frequent, len(ptr) - 1), step, kept(filled(), shape))


def frequent_terms(ptr: Int64, n_docs: int) -> tuple[Int64, Int32]:
    """What the lengths of the lists alone decide: (the terms that have a column, number), see Columns."""
    sizes = np.diff(ptr)
    frequent = np.flatnonzero(sizes * _FREQUENT_ONE_IN >= n_docs)
    return frequent, _numbered(frequent, len(sizes))


def _numbered(frequent: Int64, terms: int) -> Int32:
    """The column of each of so many terms, -1 for one that has none."""
    number = np.full(terms, -1, np.int32)
    number[frequent] = np.arange(len(frequent), dtype=np.int32)
    return number


def column_shape(n_docs: int, terms: int) -> tuple[int, int, int]:
    """The shape of `values` with the columns of so many terms."""
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
    """The window of the documents from `first`; at: where each list goes on, moved to the next window."""
    values[:] = 0
    stop = np.int64(first + values.shape[1])
    for c in range(len(end)):
        one, p = np.float64(step[c]), at[c]
        while p < end[c] and np.int64(doc[p]) < stop:
            v = np.float64(impact[p])
            # Rounding may leave a quotient one step off: what counts is what the product says.
            q = np.int64(v / one) if one > 0.0 else np.int64(0)
            while q * one < v:
                q += 1
            values[c, np.int64(doc[p]) - first] = q
            p += 1
        at[c] = p
