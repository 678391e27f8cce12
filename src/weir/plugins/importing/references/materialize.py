"""Collections imported once into Weir's home, in Weir's own layout."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from weir.errors import DownloadError, StoreError
from weir.files.atomic import storing
from weir.files.layouts import REPORT
from weir.files.leases import locked
from weir.files.text_files import check_regular
from weir.plugins.importing.importer import ImportReport
from weir.settings import settings

FORMAT = 2
"""The version of stored collections; another version makes them anew."""
_HASHED_BYTES = 1 << 28  # files up to this size are known by their content, larger ones by length and time


def home() -> Path:
    """The folder of all imported collections."""
    return settings().home / "references"


def materialized(name: str, key: object, make: Callable[[Path], ImportReport] | None) -> Path:
    """The folder of a collection, made where it is not there yet.

    name: part of the folder's name; key: JSON, all that decides the content; make: writes the folder, whole or not at
    all; None where nothing may be imported. Of several processes one makes it. Raises DownloadError for what is absent
    and may not be imported, StoreError where the disk refuses, and what `make` raises.
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
    """The error for a collection that is not here, where nothing may be fetched."""
    return DownloadError(f"{name} is not in Weir's home yet; add --fetch to import it")


def identity(path: Path) -> list[object]:
    """What tells a file from another: its content, or where it is large its length and times; JSON.

    Raises OSError for one that cannot be read, FormatError for a device.
    """
    check_regular(path)
    stat = path.stat()
    if stat.st_size > _HASHED_BYTES:
        return [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    with path.open("rb") as file:
        return [path.name, hashlib.file_digest(file, "sha256").hexdigest()]
