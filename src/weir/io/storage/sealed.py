"""Records in JSON that notice a change: of themselves, and of the files of a folder that they speak of.

A sealed record carries a checksum of its own content, whatever its spaces and line ends; the record of a folder also
the length and the checksums of every file there.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weir.errors import FormatError, StoreError, is_shortage
from weir.io.storage.atomic import write_json
from weir.io.storage.checksums import checksums_of, checksums_read, verify_files
from weir.io.storage.text_files import check_regular

__all__ = ["open_folder", "read_sealed", "seal_folder", "write_sealed"]

SEAL, FILES = "seal", "files"


def write_sealed(path: Path, facts: Mapping[str, object], durable: bool = True) -> None:
    """Write facts with a checksum of them, atomically; raises StoreError where the disk refuses."""
    write_json(path, {**facts, SEAL: _checksum(facts)}, durable)


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` wrote; raises StoreError, naming the file, where it is missing, changed or no JSON."""
    try:
        check_regular(path)
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FormatError as error:
        raise StoreError(str(error)) from None
    except OSError as error:
        if is_shortage(error):
            raise
        raise StoreError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}: damaged ({str(error)[:80]})") from None
    if not isinstance(facts, dict) or facts.pop(SEAL, None) != _checksum(facts):
        raise StoreError(f"{path}: changed since it was written, or of another version of weir")
    return facts


def seal_folder(folder: Path, name: str, facts: Mapping[str, object]) -> None:
    """Write the record `name` of a folder, which is complete but for it: facts, and what each file there is like."""
    files = {file: checksum.to_json() for file, checksum in checksums_of(folder).items()}
    write_sealed(folder / name, {**facts, FILES: files}, durable=False)


def open_folder(folder: Path, name: str) -> dict[str, Any]:
    """The record that `seal_folder` wrote, `files` the checksums; raises StoreError unless every file is as it was."""
    facts = read_sealed(folder / name)
    facts[FILES] = checksums_read(facts.get(FILES))
    verify_files(folder, facts[FILES])
    return facts


def _checksum(facts: Mapping[str, object]) -> str:
    plain = json.dumps(json.loads(json.dumps(facts)), sort_keys=True)  # as it reads back
    return f"{zlib.crc32(plain.encode('utf-8')):08x}"
