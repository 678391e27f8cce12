"""Packed files, .gz and .zst, read and written with what this Python has."""

from __future__ import annotations

import gzip
import importlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from weir.errors import FormatError, MissingExtra

__all__ = ["PACKED", "open_packed", "packing", "unpacked_name"]

PACKED = (".gz", ".zst")
_PIECE = 1 << 17
_ZSTD = ("compression.zstd", "zstandard", "pyarrow")  # Python 3.14's own, and two packages


def unpacked_name(path: Path) -> str:
    """The name of a file without the ending of its packing."""
    return path.stem if path.suffix in PACKED else path.name


def open_packed(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacking .gz and .zst; damage is an EOFError, OSError or zlib.error.

    Raises FormatError for a .zst file when nothing here can unpack it, OSError when the file cannot be opened.
    """
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix != ".zst":
        return path.open("rb", buffering=0)
    module = _zstd()
    if module is None:
        unpacked = "the file unpacked or as .gz (or `pip install zstandard`, or Python 3.14)"
        raise FormatError(path, "a .zst file, which this Python cannot unpack", unpacked)
    file = path.open("rb")
    if module.__name__ == "pyarrow":
        return cast(BinaryIO, module.CompressedInputStream(file, "zstd"))
    return cast(BinaryIO, _Unpacked(file, module))


@contextmanager
def packing(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """What is written to the yielded file arrives in `file` packed as the ending of `path` says.

    Equal contents make equal files: no time and no name is stored. Raises MissingExtra for .zst when nothing
    here can pack it.
    """
    if path.suffix == ".gz":
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as out:
            yield cast("IO[bytes]", out)
    elif path.suffix == ".zst":
        with _zstd_writer(file) as out:
            yield out
    else:
        yield file


def _zstd() -> Any:  # noqa: ANN401  one of three modules, none of which need be here
    for name in _ZSTD:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    return None


def _zstd_writer(file: IO[bytes]) -> Any:  # noqa: ANN401  a file object of one of three modules
    module = _zstd()
    if module is None:
        raise MissingExtra("pyarrow", "run")
    if module.__name__ == "pyarrow":
        return module.CompressedOutputStream(module.PythonFile(file, "w"), "zstd")
    if module.__name__ == "zstandard":
        return module.ZstdCompressor().stream_writer(file, closefd=False)
    return module.ZstdFile(file, "wb")


class _Unpacked(io.RawIOBase):
    """The bytes inside a .zst file, frame after frame; a cut or damaged file is an OSError."""

    def __init__(self, file: BinaryIO, module: Any) -> None:  # noqa: ANN401  compression.zstd or zstandard
        self._file, self._ready, self._rest = file, b"", b""
        self._damage: type[Exception] = module.ZstdError
        new = module.ZstdDecompressor
        self._new = new if module.__name__ != "zstandard" else lambda: new().decompressobj()
        self._frame: Any = None

    def readable(self) -> bool:
        """Whether bytes can be read: always."""
        return True

    def readinto(self, into: Any) -> int:  # noqa: ANN401  any writable buffer
        """Unpack as many bytes as there is room for; 0 at the end."""
        while not self._ready:
            data = self._rest or self._file.read(_PIECE)
            if not data:
                if self._frame is not None:
                    raise EOFError("the file ends too early")
                return 0
            self._rest = b""
            self._unpack(data)
        count = min(len(self._ready), len(into))
        into[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _unpack(self, data: bytes) -> None:
        self._frame = self._frame or self._new()
        try:
            self._ready = self._frame.decompress(data)
        except self._damage as error:
            raise OSError(str(error)) from error
        if self._frame.eof:
            self._frame, self._rest = None, self._frame.unused_data

    def close(self) -> None:
        """Close the packed file too."""
        self._file.close()
        super().close()
