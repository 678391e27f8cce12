"""Collections imported once into Weir's home folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from weir.errors import DownloadError, StoreError
from weir.files.atomic import storing
from weir.files.import_report import REPORT
from weir.files.integrity import content_hash
from weir.files.leases import locked
from weir.files.text_files import check_regular
from weir.plugins.importing.importer import ImportReport
from weir.settings import settings

FORMAT = 4
"""Version of stored collections; another version imports them again."""
_HASHED_BYTES = 1 << 28  # files up to this size are known by their content, larger ones by length and time


def home() -> Path:
    """Return the folder in Weir's home for collections imported by reference."""
    return settings().home / "references"


def materialized(name: str, key: object, make: Callable[[Path], ImportReport] | None) -> Path:
    """Return the folder of an imported collection; if it is missing, one process imports it while others wait.

    key: JSON of everything that decides the content.
    make: writes the folder, whole or not at all; None forbids importing.

    Raises DownloadError if importing is forbidden, StoreError if it cannot be written, and the errors of `make`.
    """
    digest = hashlib.sha256(json.dumps([FORMAT, key], sort_keys=True).encode()).hexdigest()[:12]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "collection"
    place = home() / f"{plain}-{digest}"
    if not (place / REPORT).is_file():
        if make is None:
            raise not_materialized(name)
        with storing(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        with locked(place.with_name(f".{place.name}.lock")):
            if not (place / REPORT).is_file():
                make(place)
        if not (place / REPORT).is_file():
            raise StoreError(f"{place} is missing right after it was written; is the disk failing?")
    return place


def not_materialized(name: object) -> DownloadError:
    """Return the error for a collection that is not in Weir's home while fetching is off."""
    return DownloadError(f"{name} is not in Weir's home yet; `fetch=True` imports it")


def identity(path: Path) -> list[object]:
    """Return values that identify a file's content: name and hash; above 256 MiB path, size and times.

    Raises FormatError for a device.
    """
    check_regular(path)
    stat = path.stat()
    if stat.st_size > _HASHED_BYTES:
        return [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    return [path.name, content_hash(path)]
