"""Read text, compressed and TOML files."""

from __future__ import annotations

import codecs
import errno
import gzip
import importlib
import io
import itertools
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, first_repeated
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

if TYPE_CHECKING:
    from weir.kernels.lines import RowArrays

Watch: TypeAlias = Callable[[str, int, int], None]
"""Called with (activity, amount done, total amount); a total of 0 marks a note."""


def unwatched(what: str, done: int, total: int) -> None:
    """Ignore progress."""


PACKED = (".gz", ".zst")
_PIECE_BYTES = 1 << 12  # of zstd, which may unpack to HARMLESS_BYTES, as a block of equal bytes takes four
_ZSTD = ("compression.zstd", "zstandard", "pyarrow")  # Python 3.14's own, and two packages

DAMAGE = (EOFError, OSError, zlib.error)  # raised by reading a damaged file

_PAD_BYTES = 32  # a few words may be read from any position of the text
_SLICE_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
_UTF_16 = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks of texts that are made UTF-8; the longer first, as one begins with another."""
_SAVE_AGAIN = "text in UTF-8; save it again in UTF-8"
_UNPACKED = "the file unpacked, or as .gz or .zst"
_WRITTEN_OUT = "a table written out of it, as CSV or Parquet"
# First bytes of files that no reader reads: their name, and the remedy.
_FOREIGN = (
    (b"\x1f\x8b", "gzip data", "its name to end in .gz"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "its name to end in .zst"),
    (b"\xfd7zXZ\x00", "xz data", _UNPACKED),
    (
        b"\x04\x22\x4d\x18",
        "lz4 data",
        f"{_UNPACKED}; of ranx, what was saved as .json, .parquet or .trec",
    ),
    (b"PK\x03\x04", "a zip or an Excel workbook", "each sheet saved as CSV, or one file out of the zip"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "each sheet saved as CSV"),
    (b"7z\xbc\xaf", "a 7z archive", "one file out of it"),
    (b"Rar!\x1a\x07", "a RAR archive", "one file out of it"),
    (b"\x93NUMPY", "a numpy array", "a table with identifiers"),
    (b"SQLite format 3", "an SQLite database", _WRITTEN_OUT),
    (b"\x89HDF", "an HDF5 file", _WRITTEN_OUT),
    (b"Obj\x01", "an Avro file", _WRITTEN_OUT),
    (b"%PDF-", "a PDF", "text"),
    (b"\x89PNG", "a picture", "text"),
    (bytes(4), "zero bytes", "text, or a table"),
)
JOURNAL_HEAD = re.compile(rb"SQLite format 3\0.{52}Weir", re.DOTALL)
"""The beginning of a journal of judgments, the one SQLite database that is read (journal_labels.py)."""
_BEGIN_BYTES = 512  # of a file, by which its kind is known
_MEMORY_TIMES = 3  # memory for reading a file whole, as a multiple of its size


STANDARD_INPUT = Path("-")
_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/")  # where pipes have names that are of this process alone


def is_stream(path: Path) -> bool:
    """Return True for standard input, `-`, and pipes of this process such as `<(...)`."""
    return path == STANDARD_INPUT or (str(path).startswith(_STREAMS) and is_pipe(path))


@cache
def _stream_bytes(path: Path) -> bytes:
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
    """Return a stream of a file, `.gz` and `.zst` decompressed, UTF-16 as UTF-8; reading may raise one of DAMAGE.

    Raises FormatError for devices, binary formats such as zips, and files that cannot be opened.
    """
    file = _opened(path)
    try:
        return known_bytes(file, path)
    except DAMAGE as error:
        raise damaged(path, error) from error


def known_bytes(file: BinaryIO, name: object) -> BinaryIO:
    """Return a stream of the same bytes, UTF-16 as UTF-8; raises FormatError for zips and other binary formats."""
    begins = b""
    try:
        while more := file.read(
            _BEGIN_BYTES - len(begins)
        ):  # an unpacker or a pipe may give less than asked for
            begins += more
        _refuse_foreign(begins, name)
    except BaseException:
        file.close()
        raise
    rest = itertools.chain([begins], iter(lambda: file.read(_SLICE_BYTES), b""))
    if encoding := next((name for mark, name in _UTF_16.items() if begins.startswith(mark)), None):
        return cast(BinaryIO, _Pieces(_utf_8(rest, encoding, name), file))
    if not file.seekable():
        return cast(BinaryIO, _Pieces(rest, file))
    file.seek(0)
    return file


def refuse_pack(path: Path) -> None:
    """Raise FormatError for a pack of `weir submit pack`, whose results are read once it is unzipped."""
    import zipfile  # seldom needed

    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "manifest.json" in names and any(name.startswith("results/") for name in names):
            expected = (
                "it unzipped: its folder results/ is a results folder (weir submit verify checks a pack)"
            )
            raise FormatError(path, "a pack of results", expected)


def _refuse_foreign(begins: bytes, name: object) -> None:
    if begins.startswith(b"PK") and isinstance(name, Path):
        refuse_pack(name)
    for magic, data, expected in _FOREIGN:
        if begins.startswith(magic) and not JOURNAL_HEAD.match(begins):
            raise FormatError(name, data, expected)
    if begins[257:262] == b"ustar":
        raise FormatError(name, "a tar archive", "one file out of it")
    # An identifier may begin with these letters.
    if begins.startswith(b"BZh") and begins[4:10] == b"1AY&SY":
        raise FormatError(name, "bzip2 data", _UNPACKED)
    if begins.startswith(b"ORC") and b"\0" in begins:
        raise FormatError(name, "an ORC table", _WRITTEN_OUT)
    for zeros, letters in ((begins[1:8:2], begins[:8:2]), (begins[:8:2], begins[1:8:2])):
        if zeros and not zeros.strip(b"\0") and b"\0" not in letters:
            raise FormatError(name, "text in UTF-16 without a byte order mark", _SAVE_AGAIN)


def _utf_8(pieces: Iterable[bytes], encoding: str, name: object) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode("utf-8")
        decoder.decode(b"", final=True)
    except UnicodeError:
        raise FormatError(name, f"damaged text in {encoding.upper()}", _SAVE_AGAIN) from None


def decoded(data: bytes, name: object, line: int = 1) -> str:
    """Return the text in UTF-8 bytes; raises FormatError for invalid bytes.

    line: number of the first line.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"bytes that are not UTF-8 (0x{data[error.start]:02x})"
        raise FormatError(name, found, _SAVE_AGAIN, line + data.count(b"\n", 0, error.start)) from None


def read_text(path: Path) -> str:
    """Return a file's text, decompressed; raises the errors of `read_bytes`, FormatError unless UTF-8."""
    return decoded(read_bytes(path), path)


def _opened(path: Path) -> BinaryIO:
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
        return cast(BinaryIO, _Pieces(_unpacked(file, module), file))
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
    """Return True for a named pipe; False for an invalid path."""
    try:
        return path.is_fifo()
    except OSError:
        return False


def check_regular(path: Path) -> None:
    """Raise FormatError unless `path` is a regular file or a folder, OSError if missing."""
    try:
        mode = path.stat().st_mode
    except ValueError:  # a NUL, half a surrogate pair
        raise FormatError(path, "a path with characters that no path has", "the path of a file") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise FormatError(path, "a device or a pipe", "a file")


def named_file(folder: Path, name: str | Path, by: object, inside: str = "") -> Path:
    """Return the path of a file named in an untrusted file; it may be missing.

    by: the file that names it.
    inside: if given, the file must be in `folder`, and the error asks for this text.

    Raises FormatError for a device, pipe or socket, and a path out of the folder.
    """
    path = folder / name
    with suppress(FileNotFoundError):
        check_regular(path)
    if inside and not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(by, f"the file '{name}', which lies elsewhere", inside)
    return path


@contextmanager
def unquoted(path: Path, folder: Path | None) -> Iterator[None]:
    """Raise the block's FormatErrors without text of the file `path` if it is outside `folder` (None: unchanged)."""
    try:
        yield
    except FormatError as error:
        if folder is None or path.resolve().is_relative_to(folder.resolve()):
            raise
        raise FormatError(path, "something else", error.expected, error.line) from None


def check_record(path: Path) -> None:
    """Raise FormatError unless `path` is a regular file or folder of at most RECORD_BYTES, OSError if missing."""
    check_regular(path)
    if path.stat().st_size > RECORD_BYTES:
        raise FormatError(path, f"{path.stat().st_size:,} bytes", f"a record, of at most {RECORD_BYTES:,}")


def joined_files(path: Path, line: int) -> FormatError:
    """Return the FormatError for a byte order mark on a later line."""
    return FormatError(
        path,
        "a byte order mark, with which another file begins",
        "one at the beginning of the file alone; join files without their marks and headers",
        line,
    )


def _joint(text: bytes | bytearray, start: int = 0, stop: int | None = None) -> int:
    at = text.find(BOM[:1], start, stop)  # a byte alone is sought ten times as fast, and is rare
    at = at if at < 0 else text.find(BOM, at, stop)
    while at > 0 and not text.endswith(b"\n", 0, at):
        at = text.find(BOM, at + 1, stop)
    return at


def read_bytes(path: Path, size: int = -1) -> bytes:
    """Return a file's decompressed content, or its first `size` bytes, without byte order mark.

    Raises FormatError if unreadable or over 200 times its packed size, BadValue for too little memory.
    """
    if size < 0:
        data = _whole(path).removeprefix(BOM)
        if (at := _joint(data)) >= 0:
            raise joined_files(path, data.count(b"\n", 0, at) + 1)
        return data
    with open_bytes(path) as file:
        return _first(file, path, size).removeprefix(BOM)


def first_bytes(path: Path, size: int) -> bytes:
    """Return a file's first `size` bytes, decompressed; raises FormatError if unreadable."""
    with _opened(path) as file:
        return _first(file, path, size)


def _first(file: BinaryIO, path: Path, size: int) -> bytes:
    pieces, length = list[bytes](), 0
    try:
        while length != size and (
            piece := file.read(size - length)
        ):  # an unpacker may give less than asked for
            pieces.append(piece)
            length += len(piece)
    except DAMAGE as error:
        raise damaged(path, error) from error
    return b"".join(pieces)


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
    """Raise BadValue if `times` so many bytes would exceed memory; small sizes always pass."""
    if size > HARMLESS_BYTES:
        require_memory(times * size, f"reading {path} whole")


def check_unpacked(path: Path, length: int) -> None:
    """Raise FormatError if a file decompresses to more bytes than its size allows.

    length: decompressed bytes.
    """
    if length > HARMLESS_BYTES:
        times = unpacked_times()
        largest = max(HARMLESS_BYTES, times * path.stat().st_size)
        if length > largest:
            expected = f"at most {times} times its size (WEIR_MAX_UNPACKED raises that)"
            raise FormatError(path, f"more than {largest:,} bytes packed into it", expected)


def damaged(path: object, error: Exception) -> FormatError:
    """Return the FormatError for a file that cannot be read to its end."""
    return FormatError(path, f"a damaged file ({error})", "a complete file; fetch or write it again")


def check_members(path: Path, names: Sequence[str]) -> None:
    """Raise FormatError for a zip with too many files, or two of one name."""
    if len(names) > ARCHIVE_MEMBERS:
        raise FormatError(
            path, f"{len(names):,} files in a zip", f"at most {ARCHIVE_MEMBERS:,}; nothing was unpacked"
        )
    if (twice := first_repeated(names)) is not None:
        raise FormatError(path, f"two files named '{twice[:80]}'", "each name once")


class LineBuffer:
    """A buffer for reading a file in whole lines."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.file = path, open_bytes(path)
        self.ended = self._began = False
        self._passed = self._end = self._room = self._checked = 0
        self.text = bytearray()
        self.rows: RowArrays | None = (
            None  # of the block read last: a compiled scan writes the next over them
        )
        self.grow(max(size, 64))

    def grow(self, size: int = 0) -> None:
        """Enlarge the buffer to `size` bytes, by default twofold; raises BadValue for too little memory."""
        size = size or 2 * self._room
        require_room(self.path, size)
        text = bytearray(size + _PAD_BYTES)
        text[: self._end] = memoryview(self.text)[: self._end]
        self._room, self.text = size, text
        self.buf: Bytes = np.frombuffer(text, np.uint8)
        self.words: NDArray[np.uint64] = np.ndarray((size + _PAD_BYTES - 7,), "<u8", text, strides=(1,))

    def fill(self) -> int:
        """Read until the buffer is full or the file ends; return the end of the last complete line.

        0 means a line longer than the buffer or, if `ended`, nothing left. Raises FormatError for damage, other than
        UTF-8, and a too long line.
        """
        seen = max(self._end - len(BOM), 0)
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
        plain = self.buf[min(seen, self._checked) : self._end].view(np.int8).min(initial=0) >= 0  # ASCII
        if not plain and (at := _joint(self.text, seen, self._end)) >= 0:
            raise joined_files(self.path, self.line_of(at))
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
        stop = self.text.rfind(b"\n", 0, self._end) + 1
        if not plain:
            decoded(
                bytes(memoryview(self.text)[self._checked : stop]), self.path, self.line_of(self._checked)
            )
        self._checked = stop
        return stop

    def consume(self, count: int) -> None:
        """Remove the first `count` bytes, which must be complete lines, from the buffer."""
        rest = self._end - count
        self.buf[:rest] = self.buf[count : self._end].copy()
        self._end = rest
        self._passed += count
        self._checked = max(self._checked - count, 0)

    def line_of(self, position: int) -> int:
        """Return the line number, from 1, of an offset in the buffer."""
        ends, before = self.text.count(b"\n", 0, position), self._passed
        with open_bytes(self.path) as file:
            while before > 0 and (data := file.read(min(before, _SLICE_BYTES))):
                ends += data.count(b"\n")
                before -= len(data)
        return ends + 1

    def begin_of_line(self, position: int) -> int:
        """Return the offset at which the line with this offset begins."""
        return self.text.rfind(b"\n", 0, position) + 1

    def line_text(self, position: int) -> str:
        """Return the line that holds an offset, without its end."""
        begin, end = self.begin_of_line(position), self.text.find(b"\n", position)
        return bytes(self.text[begin:end]).decode("utf-8", "replace")


def unpacked_name(path: Path) -> str:
    """Return a file's name without .gz or .zst."""
    return path.stem if path.suffix in PACKED else path.name


@contextmanager
def packing(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a stream that compresses into `file` by the suffix of `path` (.gz, .zst, else not).

    Raises MissingExtra for .zst without an encoder.
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


def _unpacked(file: BinaryIO, module: Any) -> Iterator[bytes]:  # noqa: ANN401  compression.zstd or zstandard
    new = module.ZstdDecompressor
    frame, data = None, b""
    while data := data or file.read(_PIECE_BYTES):
        frame = frame or (new() if module.__name__ != "zstandard" else new().decompressobj())
        try:
            yield frame.decompress(data)
        except module.ZstdError as error:
            raise OSError(str(error)) from error
        data, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("the file ends too early")


class _Pieces(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes], file: BinaryIO) -> None:
        self._pieces, self._file, self._ready, self._given = pieces, file, b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:  # noqa: ANN401  any writable buffer
        while not self._ready:
            if (piece := next(self._pieces, None)) is None:
                return 0
            self._ready = piece
        count = min(len(self._ready), len(into))
        into[:count], self._ready = self._ready[:count], self._ready[count:]
        self._given += count
        return count

    def tell(self) -> int:
        return self._given

    def close(self) -> None:
        self._file.close()
        super().close()


def read_toml(path: Path, expected: str, pipes: bool = False) -> dict[str, Any]:
    """Return the content of a TOML file.

    expected: its description in errors.
    pipes: allow a pipe.

    Raises FormatError if missing, a device, over 16 MiB, or invalid.
    """
    import tomllib  # most commands read no TOML

    try:
        if not (pipes and is_pipe(path)):
            check_regular(path)
        with path.open("rb") as file:
            data = file.read(TOML_BYTES + 1)
        if len(data) > TOML_BYTES:
            raise FormatError(path, f"more than {TOML_BYTES:,} bytes", expected)
        return tomllib.loads(data.decode("utf-8-sig"))
    except FileNotFoundError:
        raise FormatError(path, "no such file", expected) from None
    except IsADirectoryError:
        raise FormatError(path, "a folder", expected) from None
    except RecursionError:
        raise FormatError(path, "not TOML (nested too deeply)", expected) from None
    except ValueError as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise FormatError(path, f"not TOML ({error})", expected) from None
