"""Upper bounds of posting lists, by which a search skips postings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weir.kernels.arrays import Float32, Int32, Int64
from weir.kernels.jit import jit

RANKS = (10, 100, 1000)
"""Ranks with stored impacts: a term's k-th largest impact is a lower bound of the k-th best score."""

EXHAUSTIVE_DOCUMENTS = 1 << 13
"""Number of documents up to which a search adds all postings: their sums stay in the first-level cache."""
LISTED_POSTINGS = 10
"""Least postings of a list with a row; shorter ones are read whole sooner than looked up."""
_BLOCKED_POSTINGS = 128
_POSTINGS_PER_BLOCK = 8
MAX_SHIFT = 16

_OCTAVES, _PARTS = 8, 64  # histogram of impacts: eight binary orders of magnitude below the largest


class BlockBounds(NamedTuple):
    """Upper bounds of the impacts in posting lists."""

    listed: Int32
    """int32[V]: row of a term with at least 10 postings, or -1."""
    top: Float32
    """float32[L, 4]: largest impact, lower bounds of the 10th, 100th and 1,000th largest; 0 if there are
    fewer postings."""
    shift: NDArray[np.uint8]
    """uint8[L]: a list is cut into ranges of 2**shift internal numbers; 255 if it is not cut."""
    base: Int64
    """int64[L + 1]: offset of each row in `offset` and `peak`, which have one more entry per list that is
    cut."""
    offset: Int32
    """int32: start of a range within its list."""
    peak: Float32
    """float32: largest impact in a range."""

    @staticmethod
    def of(ptr: Int64, doc: Int32, impact: Float32, n_docs: int) -> BlockBounds:
        """Return the bounds of an impact index with ptr int64[V + 1], doc int32[P], impact float32[P]."""
        rows, listed, shift, base = range_layout(ptr, n_docs)
        top = np.zeros((len(rows), 1 + len(RANKS)), np.float32)
        offset, peak = np.zeros(base[-1], np.int32), np.zeros(base[-1], np.float32)
        bounds = BlockBounds(listed, top, shift, base, offset, peak)
        _fill(rows, ptr, doc, impact, impact.view(np.int32), bounds, np.zeros(_OCTAVES * _PARTS, np.int64))
        return bounds

    def nbytes(self) -> int:
        """Return the arrays' size in bytes."""
        return sum(array.nbytes for array in self)


def range_layout(ptr: Int64, n_docs: int) -> tuple[Int64, Int32, NDArray[np.uint8], Int64]:
    """Return (terms with bounds, `listed`, `shift`, `base`), the layout of `BlockBounds`.

    ptr: offsets of the posting lists, int64[V + 1].
    """
    sizes = np.diff(ptr)
    rows = np.flatnonzero(sizes >= LISTED_POSTINGS)
    listed = np.full(len(sizes), -1, np.int32)
    listed[rows] = np.arange(len(rows), dtype=np.int32)
    shift = _shifts(sizes[rows], n_docs)
    base = np.zeros(len(rows) + 1, np.int64)
    counts = np.where(shift == 255, 0, ((n_docs - 1) >> (shift & 31).astype(np.int64)) + 2)
    np.cumsum(counts, out=base[1:])
    return rows, listed, shift, base


def _shifts(sizes: Int64, n_docs: int) -> NDArray[np.uint8]:
    shift = np.full(len(sizes), 255, np.uint8)
    for s in range(MAX_SHIFT, 3, -1):
        fits = (sizes >= _BLOCKED_POSTINGS) & (sizes << s >= _POSTINGS_PER_BLOCK * n_docs)
        shift[fits] = s
    return shift


@jit
def _fill(
    rows: Int64, ptr: Int64, doc: Int32, impact: Float32, bits: Int32, bounds: BlockBounds, histogram: Int64
) -> None:
    top, shift, base, offset, peak = bounds.top, bounds.shift, bounds.base, bounds.offset, bounds.peak
    for row in range(len(rows)):
        start, end = ptr[rows[row]], ptr[rows[row] + 1]
        # Non-negative floats order as their bits do: bit patterns serve as a logarithmic scale.
        most = np.int32(0)
        for p in range(start, end):
            if bits[p] > most:
                most = bits[p]
        floor = (most >> 17) - np.int32(len(histogram) - 1)
        histogram[:] = 0
        for p in range(start, end):
            h = (bits[p] >> 17) - floor
            if h >= 0:
                histogram[h] += 1
        for p in range(start, end):
            if bits[p] == most:
                top[row, 0] = impact[p]
                break
        seen, h = 0, len(histogram) - 1
        for column in range(3):
            rank = 10 if column == 0 else (100 if column == 1 else 1000)
            while h >= 0 and seen + histogram[h] < rank:
                seen += histogram[h]
                h -= 1
            if h < 0 or h + floor <= 0:
                break
            # The lowest value of the bucket, read back from its bits.
            exponent = ((h + floor) >> 6) - 127
            top[row, column + 1] = np.float32((1.0 + ((h + floor) & 63) / 64.0) * 2.0**exponent)
        if shift[row] == 255:
            continue
        s, b = np.int64(shift[row]), base[row]
        count = base[row + 1] - b - 1
        r = 0
        for p in range(start, end):
            at = np.int64(doc[p]) >> s
            while r < at:
                r += 1
                offset[b + r] = p - start
            if impact[p] > peak[b + at]:
                peak[b + at] = impact[p]
        while r < count:
            r += 1
            offset[b + r] = end - start
