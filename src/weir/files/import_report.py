"""Read what an import left out from its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from weir.errors import FormatError, LossWarning, give_warning
from weir.files.json_record import read_json

REPORT = "import.json"
"""Name of the report."""
_SHOWN = 12  # names in a message


def import_losses(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence for each loss reported by the imports that made these files.

    Reports lie beside a file or one folder above; unreadable ones are skipped.
    """
    folders = dict.fromkeys(folder for path in paths for folder in list(path.parents)[:2])
    for report in (folder / REPORT for folder in folders):
        with suppress(OSError, FormatError, ValueError, LookupError, TypeError, AttributeError):
            for record in read_json(report)["files"]:
                if count := record.get("rows_refused"):
                    first = record["refused_rows"][0]
                    reason = f"{first['where']}: {first['reason']}"
                    yield f"{record['file']}: rows left out: {count:,}, the first: {reason}"
                if record.get("kind") == "corpus" and (again := record["counts"].get("repeated documents")):
                    yield f"{record['file']}: documents that come again with the same text, kept once: {again:,}"
                yield from (f"{record['file']}: {sentence}" for sentence in not_imported(record))
                if reason := record.get("refused"):
                    yield f"left out by the import: {reason}"


def not_imported(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on the cells that an import left out of a file, if any.

    record: the file's entry in import.json.
    """
    if cells := record.get("left_out"):
        some = ", ".join(f"{name} ({count:,})" for name, count in list(cells.items())[:_SHOWN])
        more = sum(list(cells.values())[_SHOWN:])
        yield f"not imported: {some}{f' and {more:,} further cells' if more else ''}"


def say_import_losses(path: Path) -> None:
    """Warn (LossWarning) of all that the import which made this file left out."""
    for sentence in import_losses([path]):
        give_warning(LossWarning(sentence))
