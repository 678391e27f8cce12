"""Verify stored bytes: checksums, sealed records, array files."""

from __future__ import annotations

import hashlib
import json
import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from weir.errors import FormatError, StoreError, is_shortage
from weir.files.atomic import write_json
from weir.files.json_record import read_json

# Arrays in .npy files; any content yields an array or a StoreError.


def read_array(path: Path, dtype: DTypeLike | None = None, shape: tuple[int, ...] = (-1,)) -> NDArray[Any]:
    """Return the array in a .npy file, memory-mapped and read-only.

    dtype: None for any numbers.
    shape: -1 for any length.

    Raises StoreError if missing, damaged, or of another type or shape.
    """
    try:
        # A plain array: slicing a memmap costs more than searching a short list.
        array = np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except Exception as error:
        if is_shortage(error):
            raise
        raise StoreError(f"{path}: damaged ({type(error).__name__}: {str(error)[:80]})") from None
    fits = array.ndim == len(shape) and all(w in (-1, n) for w, n in zip(shape, array.shape, strict=True))
    numbers = array.dtype.kind in "iuf" if dtype is None else array.dtype == np.dtype(dtype)
    if not (fits and numbers and array.flags.c_contiguous):
        raise StoreError(f"{path}: damaged (it holds {array.dtype} of shape {array.shape})")
    return array


# Checksums of files, which detect changed bytes.


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=256)
def content_hash_of(path: Path, state: object) -> str:
    """Return the SHA-256 of a file in hexadecimal, cached by path and `state`, such as the file's times."""
    return content_hash(path)


BLOCK_BYTES = 1 << 20
"""Bytes under one checksum: the least that is read to verify a part of a large file."""


@dataclass(frozen=True)
class Checksum:
    """A file's length in bytes and the CRC-32 of each MiB; detects damage, not forgery."""

    bytes: int
    blocks: tuple[int, ...]

    @staticmethod
    def of(path: Path) -> Checksum:
        """Return the checksum of a file."""
        size, blocks = 0, []
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                size += len(block)
                blocks.append(zlib.crc32(block))
        return Checksum(size, tuple(blocks))

    @staticmethod
    def read(value: Any) -> Checksum:  # noqa: ANN401 - whatever JSON holds
        """Return the checksum that `to_json` wrote; raises StoreError for other values."""
        try:
            text, size = str(value["crc32"]), int(value["bytes"])
            blocks = tuple(int(text[i : i + 8], 16) for i in range(0, len(text), 8))
        except (KeyError, TypeError, ValueError):
            raise StoreError(f"a checksum is {str(value)[:80]!r}; expected bytes and crc32") from None
        if len(text) % 8 or len(blocks) != -(-size // BLOCK_BYTES):
            raise StoreError(
                f"a checksum of {size} bytes has {len(text)} digits; expected 8 for each {BLOCK_BYTES}"
            )
        return Checksum(size, blocks)

    def to_json(self) -> dict[str, object]:
        """Return {"bytes": length, "crc32": eight hexadecimal digits for each MiB}."""
        return {"bytes": self.bytes, "crc32": "".join(f"{block:08x}" for block in self.blocks)}

    def verify(self, path: Path, start: int = 0, stop: int | None = None) -> None:
        """Raise StoreError for a missing file, another length, or damage in the blocks of bytes `start` to `stop`.

        stop: exclusive; None for the end.

        Verified blocks are read again only if the file's time or inode changes.
        """
        first, last = start // BLOCK_BYTES, -(-(self.bytes if stop is None else stop) // BLOCK_BYTES)
        try:
            now = path.stat()
            if not stat.S_ISREG(now.st_mode):
                raise StoreError(f"{path}: not a regular file")
            if now.st_size != self.bytes:
                raise StoreError(f"{path}: {now.st_size} bytes, {self.bytes} were written")
            state = (now.st_ino, now.st_mtime_ns, now.st_ctime_ns)
            damaged = _damaged(path, state, self, first, min(last, len(self.blocks)))
        except OSError as error:
            if is_shortage(error):
                raise
            raise StoreError(f"{path}: {error.strerror or error}") from None
        if damaged is not None:
            place = f"in bytes {damaged * BLOCK_BYTES} and following"
            raise StoreError(f"{path}: changed since it was written, {place}")


@lru_cache(maxsize=4096)
def _damaged(
    path: Path, state: tuple[int, int, int], checksum: Checksum, first: int, last: int
) -> int | None:
    with path.open("rb") as file:
        file.seek(first * BLOCK_BYTES)
        for number in range(first, last):
            if zlib.crc32(file.read(BLOCK_BYTES)) != checksum.blocks[number]:
                return number
    return None


def checksums_of(folder: Path) -> dict[str, Checksum]:
    """Return {relative path: checksum} of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): Checksum.of(path) for path in files}


def checksums_read(value: Any) -> dict[str, Checksum]:  # noqa: ANN401 - whatever JSON holds
    """Return {file: checksum} from parsed JSON; raises StoreError for any other content."""
    if not isinstance(value, dict):
        raise StoreError(f"checksums are {str(value)[:80]!r}; expected an object of files")
    if odd := next((name for name in value if "\0" in name), None):
        raise StoreError(f"a checksum of the file {odd[:80]!r}, a name that no file has")
    return {str(name): Checksum.read(one) for name, one in value.items()}


def verify_files(folder: Path, files: Mapping[str, Checksum]) -> None:
    """Raise StoreError for a missing or changed file, or one outside the folder."""
    root = folder.resolve()
    for name, checksum in files.items():
        if not (folder / name).resolve().is_relative_to(root):
            raise StoreError(f"{folder / name}: it leads out of the folder of its record")
        checksum.verify(folder / name)


# Sealed records: JSON with a checksum of its own content, independent of white space; the record of a folder also
# holds length and checksums of every file there.

SEAL, FILES = "seal", "files"


def write_sealed(path: Path, facts: Mapping[str, object], durable: bool = True) -> None:
    """Write a JSON object atomically, with a checksum of its content."""
    write_json(path, {**facts, SEAL: _checksum(facts)}, durable)


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the object that `write_sealed` wrote; raises StoreError if missing or changed."""
    try:
        facts = read_json(path)
    except FormatError as error:
        raise StoreError(str(error)) from None
    except OSError as error:
        if is_shortage(error):
            raise
        raise StoreError(f"{path}: {error.strerror or error}") from None
    if not isinstance(facts, dict) or facts.pop(SEAL, None) != _checksum(facts):
        raise StoreError(f"{path}: changed since it was written, or of another version of weir")
    return facts


def seal_folder(folder: Path, name: str, facts: Mapping[str, object]) -> None:
    """Write the file `name` into a complete folder: `facts` and checksums of all its files."""
    files = {file: checksum.to_json() for file, checksum in checksums_of(folder).items()}
    write_sealed(folder / name, {**facts, FILES: files}, durable=False)


def open_folder(folder: Path, name: str) -> dict[str, Any]:
    """Return the facts that `seal_folder` wrote, with checksums by file under "files"; raises StoreError if a file is
    missing or changed.
    """
    facts = read_sealed(folder / name)
    facts[FILES] = checksums_read(facts.get(FILES))
    verify_files(folder, facts[FILES])
    return facts


def _checksum(facts: Mapping[str, object]) -> str:
    plain = json.dumps(json.loads(json.dumps(facts)), sort_keys=True)  # as it reads back
    return f"{zlib.crc32(plain.encode('utf-8')):08x}"
