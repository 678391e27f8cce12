"""What a finished cell took, summed over the stages that it was made from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir.errors import FormatError
from weir.experiment.finished import Finished
from weir.stages.stage import RECORD, Record, record_of

__all__ = [
    "index_cost",
    "search_cost",
    "stages_of",
    "unscored_candidates",
    "unscored_note",
    "unscored_notes",
]


def stages_of(cell: Finished) -> Iterator[tuple[Path, Record]]:
    """(folder, record) of every stage behind a cell, each once, the cell's own rankings last."""
    seen: set[Path] = set()

    def walk(folder: Path, record: Record) -> Iterator[tuple[Path, Record]]:
        seen.add(folder)
        collection = folder.parent.parent if record.kind == "index" else folder.parent
        for _, name in record.inputs:
            inner = Path(os.path.normpath(collection / name))
            found = None if inner in seen else record_of(inner)
            if found is not None:
                yield from walk(inner, found)
        yield folder, record

    return walk(cell.folder, cell.ranked)


@contextmanager
def _as_weir_writes_it(cell: Finished) -> Iterator[None]:
    """Raise FormatError where an entry of a cell's records, which may be somebody else's, is another value."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError):
        raise FormatError(cell.folder / RECORD, "another layout", "a record of weir run") from None


def index_cost(cell: Finished) -> dict[str, Any]:
    """Seconds, bytes and documents of all indexes behind a cell; empty where it has none. Raises FormatError."""
    with _as_weir_writes_it(cell):
        return _index_cost(cell)


def _index_cost(cell: Finished) -> dict[str, Any]:
    records = [record for _, record in stages_of(cell) if record.kind == "index"]
    if not records:
        return {}
    found = _summed(records)
    found |= {"bytes": sum(r.facts["bytes"] for r in records)}
    found |= {"documents": max(r.facts["documents"] for r in records)}
    found |= {"reused": sum(r.facts.get("reused", 0) for r in records)}
    return found | {"cached_queries": any(r.facts.get("cached_queries") for r in records)}


def search_cost(cell: Finished) -> dict[str, Any]:
    """Seconds of all rankings behind a cell, and what its own rankings note; raises FormatError."""
    with _as_weir_writes_it(cell):
        return _search_cost(cell)


def _search_cost(cell: Finished) -> dict[str, Any]:
    records = [record for _, record in stages_of(cell) if record.kind == "run"]
    # Rankings without self-matches are those of the stage before them, which was searched.
    searched = next((r for r in reversed(records) if "single_query_ms" in r.facts), cell.ranked)
    services = [use for record in records for use in record.facts.get("services", [])]
    return {**searched.facts, **cell.ranked.facts, **_summed(records), "services": services}


def unscored_notes(cells: Sequence[Finished]) -> list[str]:
    """A sentence on each re-ranker behind some cells that left documents of its first stage unscored, once for each
    collection."""
    found: dict[str, None] = {}
    for cell in cells:
        with _as_weir_writes_it(cell):
            for _, record in stages_of(cell):
                reranked = record.facts.get("reranked", {})
                if reranked.get("unscored"):
                    note = unscored_note(record.name, int(reranked["unscored"]), int(reranked["candidates"]))
                    found[f"{cell.dataset}: {note}"] = None
    return list(found)


def unscored_candidates(cell: Finished) -> tuple[int, int]:
    """(candidates that re-rankers behind a cell left unscored, candidates that they were given)."""
    with _as_weir_writes_it(cell):
        found = [record.facts.get("reranked", {}) for _, record in stages_of(cell)]
        unscored, given = (sum(int(one.get(name, 0)) for one in found) for name in ("unscored", "candidates"))
    return unscored, given


def unscored_note(system: str, unscored: int, candidates: int, bound: str = "") -> str:
    """A sentence on a re-ranking that does not score all documents of its first stage."""
    return f"{system} leaves {bound}{unscored:,} of {candidates:,} candidates unscored, behind its depth"


def _summed(records: list[Record]) -> dict[str, Any]:
    """The costs of some stages together: times and requests add up, of memory the most counts."""
    found: dict[str, Any] = {
        "seconds": sum(r.cost["seconds"] for r in records),
        "peak_mb": max(r.cost["peak_mb"] for r in records),
        "compile_seconds": sum(r.cost.get("compile_seconds", 0.0) for r in records),
    }
    asked = [r.cost["api"] for r in records if "api" in r.cost]
    names = dict.fromkeys(name for one in asked for name in one)
    return found | (
        {"api": {name: sum(one.get(name, 0) for one in asked) for name in names}} if asked else {}
    )
