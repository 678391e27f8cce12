"""The quick way through large files of plain documents: compiled, and silent about anything unusual."""

from __future__ import annotations

import numpy as np

from weir.core.strings import Strings

__all__ = ["PlainReader"]

_SHORTEST = 20  # bytes: a line with an id and a text has more
_PATIENCE = 8  # blocks in a row that were not plain, after which no more are tried


class PlainReader:
    """Reads blocks of JSON lines that hold nothing but texts under `_id`, `title` and `text`.

    Needs numba. The arrays it works in are kept from block to block.
    """

    def __init__(self) -> None:
        from weir.kernels.parse.plain_documents import read_plain_documents

        self._kernel = read_plain_documents
        self._refused = 0
        self._make(1 << 18)

    def read(self, block: bytes) -> tuple[Strings, Strings, Strings] | None:
        """The ids, titles and texts of whole lines; None for a block that the general parser has to read."""
        if self._refused >= _PATIENCE or not block.endswith(b"\n"):
            return None
        size = len(block)
        if size + 16 > self._out.shape[1]:
            self._make(2 * size)
        buf = np.frombuffer(block, np.uint8)
        words = np.ndarray((max(0, size - 7),), "<u8", buf, strides=(1,))
        ptr = np.zeros((3, size // _SHORTEST + 2), np.int64)
        rows = self._kernel(buf, words, self._out, self._words, ptr, np.zeros(3, np.int64))
        self._refused = 0 if rows >= 0 else self._refused + 1
        if rows < 0:
            return None
        ids, titles, texts = (
            Strings(self._out[c, : ptr[c, rows]].copy(), ptr[c, : rows + 1]) for c in range(3)
        )
        return ids, titles, texts

    def _make(self, size: int) -> None:
        width = size + 16
        self._out = np.empty((4, width), np.uint8)
        self._words: np.ndarray[tuple[int, int], np.dtype[np.uint64]] = np.ndarray(
            (4, width - 7), "<u8", self._out, strides=(width, 1)
        )
