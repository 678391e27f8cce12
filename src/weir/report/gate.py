"""Whether a change passes, as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from weir.report.format import change, count, score
from weir.report.terminal_layout import paragraph
from weir.stats.gate import Gate
from weir.stats.query_differences import Move

__all__ = ["gate_text"]


WORDS = {"pass": "pass", "fail": "FAIL", "undecided": "UNDECIDED"}


def gate_text(found: Gate, lost: Sequence[Move] = (), width: int | None = None) -> str:
    """What is gated and whether it passes; where it does not, whether queries are too few, and which lost most."""
    lines = [
        f"{WORDS[found.verdict]}  {found.measure}: candidate - baseline {change(found.difference)}, "
        f"at least {change(found.low)} with {100 * found.confidence:g}% confidence over {found.queries} queries; "
        f"allowed drop {score(found.max_drop)}"
    ]
    if found.undecided:
        lines.append(
            f"      {count(found.queries)} queries that vary so tell the mean only to within "
            f"{score(found.difference - found.low)}; more queries or a larger --max-drop can decide"
        )
    if lost:
        named = ", ".join(f"{move.query} {change(move.difference)}" for move in lost)
        lines.append(f"      lost most: {named}")
    return "\n".join(paragraph(line, width) for line in lines)
