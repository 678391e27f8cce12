"""What `weir verify` found, as lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from weir.core.tables import paragraph
from weir.experiment.verify import Verdict


def verify_text(found: Sequence[Verdict], width: int | None = None) -> str:
    """A line for each cell, and for each other stage that is not sound; then how many there are of each."""
    lines = []
    for one in found:
        if one.kind == "cell" or not one.sound:
            said = "; ".join([*one.problems, *one.unchecked]) or "sound"
            lines.append(paragraph(f"{one.folder}: {said}", width))
    cells = sum(one.kind == "cell" for one in found)
    bad, open_ones = sum(not one.sound for one in found), sum(bool(one.unchecked) for one in found)
    summary = f"{len(found)} stages, {cells} of them cells: {len(found) - bad} sound, {bad} not"
    return "\n".join([*lines, summary + (f"; {open_ones} could not be checked whole" if open_ones else "")])


def verify_json(found: Sequence[Verdict]) -> str:
    """A JSON object for each stage."""
    return "\n".join(
        json.dumps(asdict(one) | {"sound": one.sound, "whole": one.whole}, ensure_ascii=False)
        for one in found
    )
