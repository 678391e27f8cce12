"""Systems before and after new judgments, as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from weir.core.rounding import change, score, share
from weir.core.tables import columns, paragraph
from weir.labels.pools import Relabelled, turned


def relabel_text(rows: Sequence[Relabelled], width: int | None = None) -> str:
    """A line for each system, the best first, and the pairs that changed places."""
    if not rows:
        return ""
    measure = rows[0].measure
    lines = [["collection", "system", "Hole@10", "now", measure, "now", "change", "95% interval"]]
    lines += [
        [
            row.subject,
            row.system,
            share(row.hole_before),
            share(row.hole_after),
            score(row.before),
            score(row.after),
            change(row.change),
            f"[{change(row.low)}, {change(row.high)}]",
        ]
        for row in sorted(rows, key=lambda row: (row.subject, -row.after))
    ]
    pairs = turned(list(rows))
    said = "; ".join(f"{better} was above {worse}" for better, worse in pairs)
    note = f"changed places: {said}" if pairs else "no two systems changed places"
    return columns(lines, width=width) + "\n\n" + paragraph(note, width)


def relabel_json(rows: Sequence[Relabelled]) -> str:
    """One JSON object for each system, at full precision."""
    return "\n".join(json.dumps(asdict(row) | {"change": row.change}, ensure_ascii=False) for row in rows)
