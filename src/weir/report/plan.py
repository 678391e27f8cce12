"""Plans as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from weir.core.rounding import count, duration, size
from weir.core.tables import columns
from weir.experiment.experiment import Node
from weir.experiment.plan import Planned, planned_total

HEAD_COLUMNS = ("dataset", "system", "documents", "queries")
TAKEN_COLUMNS = ("index", "search", "disk", "memory")
ASKED_COLUMNS = ("prompts", "tokens", "dollars")


def plan_text(found: Sequence[Planned], width: int | None = None) -> str:
    """A table for the terminal.

    Time, disk and memory as ranges where any system is probed; prompts, tokens and dollars where any asks for them,
    with a line for all systems together.
    """
    total = planned_total(found)
    asked = any(one.tokens is not None for one in found)
    taken = not asked or any(one.probed is not None for one in found)
    lines = [
        (
            one.dataset,
            one.system,
            count(one.documents),
            count(one.queries),
            *(_taken(one) if taken else ()),
            *(_asked(one.prompts, one.tokens, one.dollars) if asked else ()),
        )
        for one in found
    ]
    if total is not None and len(found) > 1:
        blank = ("", "", *(("",) * len(TAKEN_COLUMNS) if taken else ()))
        lines.append(
            ("in all, what is shared once", "", *blank, *_asked(total.prompts, total.tokens, total.dollars))
        )
    head = (*HEAD_COLUMNS, *(TAKEN_COLUMNS if taken else ()), *(ASKED_COLUMNS if asked else ()))
    return columns([head, *lines], len(head) - 2, width, keys=2)


def _taken(one: Planned) -> tuple[str, ...]:
    """Time, disk and memory of a system, with two digits, as sure as they are."""
    mb = None if one.peak_mb is None else 1e6 * one.peak_mb
    peak = None if one.peak_range is None else (1e6 * one.peak_range[0], 1e6 * one.peak_range[1])
    return (
        _between(duration, one.index_seconds, one.index_range),
        _between(duration, one.search_seconds, one.search_range),
        _between(size, one.disk_bytes, one.disk_range),
        _between(size, mb, peak),
    )


def _between(
    written: Callable[[float | None], str], value: float | None, ends: tuple[float, float] | None
) -> str:
    """A range, or the value where there is none or its ends read alike."""
    if ends is None or written(ends[0]) == written(ends[1]):
        return written(value)
    return f"{written(ends[0])} to {written(ends[1])}"


def _asked(prompts: int | None, tokens: float | None, dollars: float | None) -> tuple[str, str, str]:
    return (
        "-" if prompts is None else count(prompts),
        "-" if tokens is None else count(tokens),
        "-" if dollars is None else f"{dollars:,.2f}",
    )


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
    cells: dict[str, list[Planned]] = {}
    for one in found:
        for note in one.notes:
            cells.setdefault(note, []).append(one)
    for note, having in cells.items():
        first = f"{having[0].dataset}, {having[0].system}"
        others = f" and {count(len(having) - 1)} others" if len(having) > 1 else ""
        notes.append(f"note: {note}" if len(having) == len(found) else f"note: {first}{others}: {note}")
    longest = [(one, one.longest_tokens) for one in found if one.longest_tokens is not None]
    if longest:
        one, tokens = max(longest, key=lambda pair: pair[1])
        notes.append(
            f"note: with the longest documents {count(tokens)} tokens at most ({one.dataset}, {one.system})"
        )
    seconds = [s for one in found for s in (one.index_seconds, one.search_seconds) if s is not None]
    if len(found) > 1 and seconds:
        notes.append(
            f"note: {duration(sum(seconds))} in all, less what systems share: each stage is made once"
        )
    return notes
