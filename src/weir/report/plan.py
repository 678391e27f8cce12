"""Plans as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from weir.core.rounding import count, duration, size
from weir.experiment.graph import Node
from weir.experiment.plan import Planned
from weir.report.terminal_layout import columns

__all__ = ["graph_json", "graph_text", "plan_json", "plan_notes", "plan_text"]

HEAD = ("dataset", "system", "documents", "queries", "index", "search", "disk", "memory")


def plan_text(found: Sequence[Planned], width: int | None = None) -> str:
    """A table for the terminal; times, disk and memory with two digits, as sure as they are."""
    lines = [
        (
            one.dataset,
            one.system,
            count(one.documents),
            count(one.queries),
            duration(one.index_seconds),
            duration(one.search_seconds),
            size(one.disk_bytes),
            size(None if one.peak_mb is None else 1e6 * one.peak_mb),
        )
        for one in found
    ]
    return columns([HEAD, *lines], len(HEAD) - 2, width, keys=2)


def graph_text(nodes: Sequence[Node]) -> str:
    """The stages of the grid on each collection, in the order they are made, and how many systems share each."""
    lines = []
    for node in nodes:
        made_from = f"  from {', '.join(node.inputs)}" if node.inputs else ""
        shared = f"  for {len(node.systems)} systems" if len(node.systems) > 1 else ""
        lines.append(f"  {node}{made_from}{shared}")
    return "\n".join(["stages on each collection, each made once:", *lines])


def graph_json(nodes: Sequence[Node]) -> str:
    """One JSON object for each stage."""
    return "\n".join(json.dumps(asdict(node), ensure_ascii=False) for node in nodes)


def plan_json(found: Sequence[Planned]) -> str:
    """One JSON object per line at full precision."""
    return "\n".join(json.dumps(asdict(one), ensure_ascii=False) for one in found)


def plan_notes(found: Sequence[Planned]) -> list[str]:
    """What has to be said beside the figures; each begins with "note: "."""
    probed = [one.probed for one in found if one.probed is not None]
    notes = []
    if probed:
        least, most = min(p[0] for p in probed), max(p[1] for p in probed)
        notes.append(
            f"note: extended along a line from runs on {count(least)} to {count(most)} documents, one after the other "
            "on this machine as it is now; what is stored already takes no time again"
        )
    for one in found:
        if one.tokens is not None:
            price = "" if one.dollars is None else f", {one.dollars:,.2f} dollars"
            notes.append(f"note: {one.dataset}, {one.system}: about {count(one.tokens)} tokens{price}")
        notes += [f"note: {one.dataset}, {one.system}: {note}" for note in one.notes]
    seconds = [s for one in found for s in (one.index_seconds, one.search_seconds) if s is not None]
    if len(found) > 1 and seconds:
        notes.append(
            f"note: {duration(sum(seconds))} in all, less what systems share: each stage is made once"
        )
    return notes
