"""Checksums of files: what says that stored bytes are still those that were written."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from weir.errors import StoreError, is_shortage

__all__ = ["BLOCK_BYTES", "Checksum", "checksums_of", "checksums_read", "verify_files"]

BLOCK_BYTES = 1 << 20
"""Bytes under one checksum: what has to be read to check a single place of a large file."""


@dataclass(frozen=True)
class Checksum:
    """The length of a file and the CRC-32 of each of its blocks of BLOCK_BYTES, the last one shorter.

    A CRC-32 notices every single changed byte; it is no protection against somebody who can change the record too.
    """

    bytes: int
    blocks: tuple[int, ...]

    @staticmethod
    def of(path: Path) -> Checksum:
        """Read a whole file."""
        size, blocks = 0, []
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                size += len(block)
                blocks.append(zlib.crc32(block))
        return Checksum(size, tuple(blocks))

    @staticmethod
    def read(value: Any) -> Checksum:  # noqa: ANN401 - whatever JSON holds
        """The checksum that `to_json` wrote; raises StoreError for anything else."""
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
        """bytes, and crc32: eight hexadecimal digits for each block."""
        return {"bytes": self.bytes, "crc32": "".join(f"{block:08x}" for block in self.blocks)}

    def verify(self, path: Path, start: int = 0, stop: int | None = None) -> None:
        """Raise StoreError, naming the file, unless its length and its blocks from start to stop are as written.

        start, stop: bytes; None is the end. What this process verified is not read again while the file's size,
        time and place on the disk stay.
        """
        try:
            now = path.stat()
        except OSError as error:
            if is_shortage(error):
                raise
            raise StoreError(f"{path}: {error.strerror or error}") from None
        if not stat.S_ISREG(now.st_mode):
            raise StoreError(f"{path}: no file, such as was written")
        if now.st_size != self.bytes:
            raise StoreError(f"{path}: {now.st_size} bytes, {self.bytes} were written")
        first, last = start // BLOCK_BYTES, -(-(self.bytes if stop is None else stop) // BLOCK_BYTES)
        known = (str(path), now.st_ino, now.st_mtime_ns, now.st_ctime_ns, self)
        try:
            damaged = _damaged(*known, first, min(last, len(self.blocks)))
        except OSError as error:
            if is_shortage(error):
                raise
            raise StoreError(f"{path}: {error.strerror or error}") from None
        if damaged is not None:
            raise StoreError(
                f"{path}: changed since it was written, in bytes {damaged * BLOCK_BYTES} and following"
            )


@lru_cache(maxsize=4096)
def _damaged(
    path: str, inode: int, modified: int, changed: int, wanted: Checksum, first: int, last: int
) -> int | None:
    """The first block that is not as written, None where all are."""
    with Path(path).open("rb") as file:
        file.seek(first * BLOCK_BYTES)
        for number in range(first, last):
            if zlib.crc32(file.read(BLOCK_BYTES)) != wanted.blocks[number]:
                return number
    return None


def checksums_of(folder: Path) -> dict[str, Checksum]:
    """The checksum of every file below a folder, by its name there, with / between folders."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): Checksum.of(path) for path in files}


def checksums_read(value: Any) -> dict[str, Checksum]:  # noqa: ANN401 - whatever JSON holds
    """Checksums of files from a JSON object; raises StoreError for anything else."""
    if not isinstance(value, dict):
        raise StoreError(f"checksums are {str(value)[:80]!r}; expected an object of files")
    return {str(name): Checksum.read(one) for name, one in value.items()}


def verify_files(folder: Path, files: Mapping[str, Checksum]) -> None:
    """Raise StoreError, naming the file, unless each of these files lies in a folder as it was written.

    A name or a link that leads out of the folder is refused, for a record may be somebody else's.
    """
    root = folder.resolve()
    for name, checksum in files.items():
        if not (folder / name).resolve().is_relative_to(root):
            raise StoreError(f"{folder / name}: it leads out of the folder of its record")
        checksum.verify(folder / name)
