"""Collections brought into Weir's home, each once, in Weir's own layout."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from weir.errors import DownloadError, StoreError
from weir.files.atomic import locked, storing
from weir.files.text_files import Watch, check_regular
from weir.plugins.importing.importer import REPORT, ImportReport, ImportRequest, import_request
from weir.settings import settings

FORMAT = 1
"""Of what is kept; another number makes everything anew."""
_HASHED_BYTES = 1 << 28  # of a file that is known by its content; a larger one by length and time


def home() -> Path:
    """The folder of all that was brought."""
    return settings().home / "references"


def materialized(name: str, key: object, make: Callable[[Path], None] | None) -> Path:
    """The folder of a collection, made where it is not there yet.

    name: what people see in the folder's name; key: JSON, all that decides the content; make: writes the folder, whole
    or not at all; None where nothing may be brought here. Of several processes one makes it. Raises DownloadError for
    what is not there and may not be brought, StoreError where the disk refuses, and what `make` raises.
    """
    digest = hashlib.sha256(json.dumps([FORMAT, key], sort_keys=True).encode()).hexdigest()[:12]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "collection"
    place = home() / f"{plain}-{digest}"
    if (place / REPORT).is_file():
        return place
    if make is None:
        raise not_materialized(name)
    with storing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place.with_name(f".{place.name}.lock")):
        if not (place / REPORT).is_file():
            make(place)
    if not (place / REPORT).is_file():
        raise StoreError(f"{place} is not there after it was written; is the disk failing?")
    return place


def not_materialized(name: object) -> DownloadError:
    """The error for what would have to be brought here first, and may not."""
    return DownloadError(
        f"{name} was not brought into Weir's home before, and nothing was asked for; --fetch does so"
    )


def imported(request: ImportRequest, watch: Watch, to: Path) -> None:
    """Import files into a folder; rows that were left out are told. Raises as `weir.import_files`."""
    tell_refused(import_request(request, to, watch), watch)


def tell_refused(report: ImportReport, watch: Watch) -> None:
    """Say what was left out, a line for each file."""
    for one in report.files:
        if one.get("rows_refused"):
            first = one["refused_rows"][0]
            reason = f"{one['rows_refused']:,} rows left out, the first: {first['where']}: {first['reason']}"
            watch(f"{one['file']}: {reason}", 0, 0)


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
