"""Columns of texts as they grow: in memory while small, in files of bounded memory when large."""

from __future__ import annotations

import hashlib
import shutil
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from weir.core.strings import Strings
from weir.io.collections.arrow_file import Column

__all__ = ["ColumnSpool", "Spool"]

_IN_MEMORY = 1 << 24  # bytes a buffer may hold before it moves to a file


class Spool:
    """Bytes written piece by piece and poured into their final place once their number is known."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = BytesIO()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes; beyond 16 MB they go to a file."""
        if self.size <= _IN_MEMORY < self.size + len(data):
            held = cast(BytesIO, self._file).getbuffer()
            self._file = self._path.open("wb+")
            self._file.write(held)
        self._file.write(data)
        self.size += len(data)

    def pour(self, into: BinaryIO) -> None:
        """Write all bytes into a file and let go of them."""
        self._file.seek(0)
        shutil.copyfileobj(self._file, into, 1 << 20)
        self.close()

    def close(self) -> None:
        """Let go of the bytes."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class ColumnSpool:
    """One growing text column: its bytes, its offsets, and a hash of both that no batching changes."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.rows = 0
        self._data = Spool(folder / f"{name}.data")
        self._offsets = Spool(folder / f"{name}.offsets")
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        self._hash = (hashlib.sha256(), hashlib.sha256())

    @property
    def empty(self) -> bool:
        """Whether every text so far is empty."""
        return self._data.size == 0

    def append(self, texts: Strings) -> None:
        """Add some texts."""
        first = int(texts.ptr[0])
        offsets = (texts.ptr[1:] + (self._data.size - first)).astype("<i8", copy=False).tobytes()
        data = texts.data[first : int(texts.ptr[-1])].tobytes()
        self._hash[0].update(data)
        self._hash[1].update(offsets)
        self._data.write(data)
        self._offsets.write(offsets)
        self.rows += len(texts)

    def digest(self) -> bytes:
        """The hash of the column: equal columns have equal ones."""
        return self._hash[0].digest() + self._hash[1].digest()

    def column(self) -> Column:
        """The column, ready to be written."""
        return Column(self.name, self._offsets, self._data)

    def close(self) -> None:
        """Let go of everything, written or not."""
        self._data.close()
        self._offsets.close()
