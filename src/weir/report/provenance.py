"""What made each cell of a results folder, stage by stage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weir.core.tables import paragraph
from weir.experiment.results import ResultCell, stages_of
from weir.experiment.stages import Record, flattened


def provenance_text(cells: Sequence[ResultCell], width: int | None = None) -> str:
    """A paragraph for each cell: its stages in the order they were made, what was declared and what made them.

    width: of the terminal, in columns; None leaves each fact on a line.
    """
    return "\n\n".join("\n".join(paragraph(li, width) for li in _paragraph(cell)) for cell in cells)


def provenance_json(cells: Sequence[ResultCell]) -> str:
    """A JSON object for each cell: the whole record of each of its stages."""
    return "\n".join(
        json.dumps(
            {
                "dataset": cell.dataset,
                "system": cell.label,
                "stages": [
                    {"folder": _name(cell, folder), **record.to_json()} for folder, record in _stages(cell)
                ],
            },
            ensure_ascii=False,
        )
        for cell in cells
    )


def _stages(cell: ResultCell) -> Iterator[tuple[Path, Record]]:
    yield from stages_of(cell)
    yield from cell.scored


def _paragraph(cell: ResultCell) -> Iterator[str]:
    yield f"{cell.dataset}  {cell.label}"
    for folder, record in _stages(cell):
        made = record.made
        engines = ", ".join(str(engine) for engine in record.engines)
        taken = record.cost.get("seconds")
        seconds = f"{taken:.3g} s" if isinstance(taken, (int, float)) else ""
        facts = [
            str(made.get("when", "")),
            f"weir {made.get('weir')} (code {made.get('code')})",
            engines,
            seconds,
        ]
        yield f"  {record.kind}  {_name(cell, folder)}"
        yield f"    made: {', '.join(fact for fact in facts if fact)}"
        yield f"    by: {_machine(made)}"
        said = [f"{name}={value}" for name, value in flattened("", dict(record.declared))]
        yield f"    declared: {'; '.join(said)}"


def _machine(made: Any) -> str:  # noqa: ANN401 - as JSON holds it
    packages = [f"{name} {version}" for name, version in (made.get("packages") or {}).items()]
    where = [f"Python {made.get('python')}", f"Unicode {made.get('unicode')}", str(made.get("system"))]
    processor = f"{made.get('processor')} ({made.get('instructions') or 'no vector instructions told'})"
    return ", ".join([*packages, *where, processor, f"{made.get('threads')} threads"])


def _name(cell: ResultCell, folder: Path) -> str:
    return folder.relative_to(cell.folder.parent).as_posix()
