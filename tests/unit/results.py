"""What a results folder holds, and when its finished files were written."""

from __future__ import annotations

import json
from pathlib import Path

TIMED = {"made", "cost", "check"}


def contents(folder: Path) -> dict[str, object]:
    """Every file of a results folder, of records without what times and machines change."""
    found: dict[str, object] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes()
        if path.name == "stage.json" or path.match("scores-*.json"):
            record = {k: v for k, v in json.loads(path.read_text()).items() if k not in TIMED}
            for name_of_fact in (
                "single_query_ms",
                "reused",
            ):  # what a killed process had stored is read by the next
                record["facts"].pop(name_of_fact, None)
            found[name] = record
    return found


def finished_files(results: Path) -> dict[Path, int]:
    """When each file of a finished stage was written: its record says which they are."""
    found = {}
    for path in [*results.rglob("stage.json"), *results.rglob("scores-*.json")]:
        for name in [path.name, *json.loads(path.read_text())["files"]]:
            found[path.parent / name] = (path.parent / name).stat().st_mtime_ns
    return found
