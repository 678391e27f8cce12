"""Text files, packed (.gz, .zst) or not, and TOML files."""

from __future__ import annotations

import errno
import gzip
import importlib
import io
import stat
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes
from weir.errors import FormatError, MissingExtra
from weir.settings import (
    ARCHIVE_MEMBERS,
    HARMLESS_BYTES,
    LINE_BYTES,
    RECORD_BYTES,
    TOML_BYTES,
    require_memory,
    unpacked_times,
)

Watch: TypeAlias = Callable[[str, int, int], None]
"""Called with (what is read, how much of it is done, of how much) while files are imported; of 0 in all is a note."""


def unwatched(what: str, done: int, total: int) -> None:
    """Watch nothing."""


PACKED = (".gz", ".zst")
_PIECE_BYTES = 1 << 12  # of zstd, which may unpack to HARMLESS_BYTES, as a block of equal bytes takes four
_ZSTD = ("compression.zstd", "zstandard", "pyarrow")  # Python 3.14's own, and two packages

DAMAGE = (EOFError, OSError, zlib.error)  # what reading a damaged file raises

_PAD_BYTES = 32  # a few words may be read from any position of the text
_SLICE_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
_MEMORY_TIMES = 3  # what a file that is read whole takes while it is read, by its size


STANDARD_INPUT = Path("-")
_STREAMS = ("/dev/", "/proc/")  # where pipes have names that are of this process alone


def is_stream(path: Path) -> bool:
    """Whether a path is standard input, `-`, or a pipe of this process, such as `<(...)` of a shell."""
    return path == STANDARD_INPUT or (str(path).startswith(_STREAMS) and is_pipe(path))


@cache
def _stream_bytes(path: Path) -> bytes:
    """What a stream holds, kept: it can be read once. Raises BadValue where memory may not hold it."""
    if path == STANDARD_INPUT and sys.stdin is None:
        raise FormatError(path, "a closed standard input", "a file")
    pieces, length = list[bytes](), 0
    with nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else path.open("rb") as file:
        while piece := file.read(_SLICE_BYTES):
            length += len(piece)
            require_room(path, length)
            pieces.append(piece)
    return b"".join(pieces)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacking `.gz` and `.zst`; reading may raise one of DAMAGE.

    A stream is read whole, once. Raises FormatError when there is no such file, for a device, and when it cannot be
    unpacked here.
    """
    if is_stream(path):
        return io.BytesIO(_stream_bytes(path))
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):  # it may have no end
            raise FormatError(path, "a device", "a file")
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
    except IsADirectoryError as error:
        raise FormatError(path, "a folder", "a file") from error
    except FileNotFoundError as error:
        raise FormatError(path, "no such file", "the path of an existing file") from error
    except PermissionError as error:
        raise FormatError(path, "a file without read permission", "a readable file") from error
    except ValueError as error:
        raise FormatError(path, "a path with characters that no path has", "the path of a file") from error
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP):
            raise
        raise FormatError(path, f"no such file ({error.strerror})", "the path of an existing file") from error


def is_pipe(path: Path) -> bool:
    """Whether a pipe is there, which can be read once; False for a path that no file can have."""
    try:
        return path.is_fifo()
    except OSError:
        return False


def check_regular(path: Path) -> None:
    """Raise FormatError for a device, a pipe or a socket, which may have no end, and for a path that no file has.

    OSError for what is not there.
    """
    try:
        mode = path.stat().st_mode
    except ValueError:  # a NUL, half a surrogate pair
        raise FormatError(path, "a path with characters that no path has", "the path of a file") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise FormatError(path, "a device or a pipe", "a file")


def named_file(folder: Path, name: str | Path, by: object, inside: str = "") -> Path:
    """The file in a folder, or elsewhere, that another file names, which may be somebody else's.

    by: the file that names it, for errors; inside: what is expected, for errors, where it has to lie in the folder.
    Raises FormatError as `check_regular`, and for one that leads out of the folder; one that is missing is found
    missing when it is read.
    """
    path = folder / name
    with suppress(FileNotFoundError):
        check_regular(path)
    if inside and not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(by, f"the file '{name}', which lies elsewhere", inside)
    return path


@contextmanager
def unquoted(path: Path, folder: Path | None) -> Iterator[None]:
    """While a file is read: a FormatError quotes nothing of it where it lies, or its link leads, out of a folder.

    Whoever named it may want it shown. folder: None where the user named the file. Raises FormatError.
    """
    try:
        yield
    except FormatError as error:
        if folder is None or path.resolve().is_relative_to(folder.resolve()):
            raise
        raise FormatError(path, "something else", error.expected, error.line) from None


def check_record(path: Path) -> None:
    """Raise as `check_regular`, and FormatError for more than RECORD_BYTES: records of JSON are parsed whole."""
    check_regular(path)
    if path.stat().st_size > RECORD_BYTES:
        raise FormatError(path, f"{path.stat().st_size:,} bytes", f"a record, of at most {RECORD_BYTES:,}")


def read_bytes(path: Path, size: int = -1) -> bytes:
    """A file, unpacked, without a byte order mark: the whole of it, or what its first `size` bytes hold.

    Raises FormatError when it cannot be read, and for a packed one that unpacks to more than 200 times its size;
    BadValue where the whole of it is more than memory may hold.
    """
    if size < 0:
        return _whole(path).removeprefix(BOM)
    with open_bytes(path) as file:
        try:
            pieces, length = [], 0
            # An unpacker may give less than it is asked for.
            while length != size and (piece := file.read(size - length)):
                pieces.append(piece)
                length += len(piece)
            return b"".join(pieces).removeprefix(BOM)
        except DAMAGE as error:
            raise damaged(path, error) from error


def _whole(path: Path) -> bytes:
    with open_bytes(path) as file:
        try:
            if path.suffix not in PACKED:
                require_room(path, 0 if is_stream(path) else path.stat().st_size)
                return file.read()
            pieces, length = list[bytes](), 0
            while piece := file.read(_SLICE_BYTES):
                length += len(piece)
                check_unpacked(path, length)
                pieces.append(piece)
                if length > HARMLESS_BYTES:  # it is counted before it is held
                    pieces.clear()
        except DAMAGE as error:
            raise damaged(path, error) from error
    if length <= HARMLESS_BYTES:
        return b"".join(pieces)
    require_room(path, length)
    with open_bytes(path) as file:
        return file.read()


def require_room(path: Path, size: int, times: int = _MEMORY_TIMES) -> None:
    """Raise BadValue where a file of so many bytes, unpacked, takes so many times as much, and memory may not."""
    if size > HARMLESS_BYTES:
        require_memory(times * size, f"reading {path} whole")


def check_unpacked(path: Path, length: int) -> None:
    """Raise FormatError where so many bytes are more than a file of its size may unpack to."""
    if length > HARMLESS_BYTES:
        times = unpacked_times()
        largest = max(HARMLESS_BYTES, times * path.stat().st_size)
        if length > largest:
            expected = f"at most {times} times its size (WEIR_MAX_UNPACKED raises that)"
            raise FormatError(path, f"more than {largest:,} bytes packed into it", expected)


def damaged(path: Path, error: Exception) -> FormatError:
    """What to say about a file that cannot be unpacked or read to its end."""
    return FormatError(path, f"a damaged file ({error})", "a complete file; fetch or write it again")


def check_members(path: Path, count: int) -> None:
    """Raise FormatError for a zip of more files than one may hold."""
    if count > ARCHIVE_MEMBERS:
        raise FormatError(
            path, f"{count:,} files in a zip", f"at most {ARCHIVE_MEMBERS:,}; nothing was unpacked"
        )


class LineBuffer:
    """The part of a file that is being worked on: whole lines at the front of one buffer.

    file: closed by the caller; text: the bytes; buf: the same as uint8; words: the little-endian word starting at each
    position; ended: nothing is left to read.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.file = path, open_bytes(path)
        self.ended = self._began = False
        self._passed = self._end = self._room = 0
        self.text = bytearray()
        self.grow(max(size, 64))

    def grow(self, size: int = 0) -> None:
        """Make room for `size` bytes, by default for twice as many; what is in the buffer stays."""
        size = size or 2 * self._room
        require_room(self.path, size)
        text = bytearray(size + _PAD_BYTES)
        text[: self._end] = memoryview(self.text)[: self._end]
        self._room, self.text = size, text
        self.buf: Bytes = np.frombuffer(text, np.uint8)
        self.words: NDArray[np.uint64] = np.ndarray((size + _PAD_BYTES - 7,), "<u8", text, strides=(1,))

    def fill(self) -> int:
        """Read until the buffer is full or the file ends; returns where its last whole line ends.

        At the end of the file a missing final line end is supplied. 0 means: one line fills the buffer
        (grow and fill again), or, when `ended`, that nothing is left.
        """
        while self._end < self._room - 1 and not self.ended:
            view = memoryview(self.text)[self._end : self._room - 1]
            try:
                size = cast(io.RawIOBase, self.file).readinto(view) or 0
            except DAMAGE as error:
                raise damaged(self.path, error) from error
            self.ended = size == 0
            self._end += size
            if self.path.suffix in PACKED:
                check_unpacked(self.path, self._passed + self._end)
            if not self._began and (self._end >= 3 or self.ended):
                self._began = True
                if self.text.startswith(BOM, 0, self._end):
                    self.consume(3)
        if self.ended and self._end and self.text[self._end - 1] != 10:
            self.text[self._end] = 10
            self._end += 1
        half = LINE_BYTES // 2  # a line that is too long spans a whole stretch of half as many bytes
        for at in range(0, self._end - half, half):
            if self.text.find(b"\n", at, at + half) < 0:
                begin, end = self.begin_of_line(at), self.text.find(b"\n", at, self._end)
                if (end if end >= 0 else self._end) - begin > LINE_BYTES:
                    long_line = f"a line of more than {LINE_BYTES:,} bytes"
                    raise FormatError(self.path, long_line, "one row on each line", self.line_of(begin))
        return self.text.rfind(b"\n", 0, self._end) + 1

    def consume(self, count: int) -> None:
        """Drop the first `count` bytes, a number of whole lines."""
        rest = self._end - count
        self.buf[:rest] = self.buf[count : self._end].copy()
        self._end = rest
        self._passed += count

    def line_of(self, position: int) -> int:
        """The line number in the file, from 1, of a position in the buffer.

        Lines are not counted on the way: the file is read again, once something has to be said about it.
        """
        ends, before = self.text.count(b"\n", 0, position), self._passed
        with open_bytes(self.path) as file:
            while before > 0 and (data := file.read(min(before, _SLICE_BYTES))):
                ends += data.count(b"\n")
                before -= len(data)
        return ends + 1

    def begin_of_line(self, position: int) -> int:
        """Where the line of a position in the buffer begins."""
        return self.text.rfind(b"\n", 0, position) + 1

    def line_text(self, position: int) -> str:
        """The line of a position in the buffer, for a message."""
        begin, end = self.begin_of_line(position), self.text.find(b"\n", position)
        return bytes(self.text[begin:end]).decode("utf-8", "replace")


def unpacked_name(path: Path) -> str:
    """The name of a file without the ending of its packing."""
    return path.stem if path.suffix in PACKED else path.name


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
        module = _zstd()
        if module is None:
            raise MissingExtra("pyarrow", "run")
        if module.__name__ == "pyarrow":
            writer = module.CompressedOutputStream(module.PythonFile(file, "w"), "zstd")
        elif module.__name__ == "zstandard":
            writer = module.ZstdCompressor().stream_writer(file, closefd=False)
        else:
            writer = module.ZstdFile(file, "wb")
        with writer as out:
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
            data = self._rest or self._file.read(_PIECE_BYTES)
            if not data:
                if self._frame is not None:
                    raise EOFError("the file ends too early")
                return 0
            self._rest, self._frame = b"", self._frame or self._new()
            try:
                self._ready = self._frame.decompress(data)
            except self._damage as error:
                raise OSError(str(error)) from error
            if self._frame.eof:
                self._frame, self._rest = None, self._frame.unused_data
        count = min(len(self._ready), len(into))
        into[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        """Close the packed file too."""
        self._file.close()
        super().close()


def read_toml(path: Path, expected: str, pipes: bool = False) -> dict[str, Any]:
    """What a TOML file says; expected: what it should hold, for messages; pipes: whether it may be a pipe.

    Raises FormatError for no such file, a device, one of more than 16 MiB, and what is no TOML, nested however deeply.
    """
    try:
        if not (pipes and is_pipe(path)):
            check_regular(path)
        with path.open("rb") as file:
            data = file.read(TOML_BYTES + 1)
        if len(data) > TOML_BYTES:
            raise FormatError(path, f"more than {TOML_BYTES:,} bytes", expected)
        return tomllib.loads(data.decode("utf-8"))
    except FileNotFoundError:
        raise FormatError(path, "no such file", expected) from None
    except IsADirectoryError:
        raise FormatError(path, "a folder", expected) from None
    except RecursionError:
        raise FormatError(path, "not TOML (nested too deeply)", expected) from None
    except ValueError as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise FormatError(path, f"not TOML ({error})", expected) from None
