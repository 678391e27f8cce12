"""What measures do within groups of queries, as people read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from weir.core.frames import plain
from weir.core.rounding import count, score
from weir.core.tables import columns
from weir.stats.paired_sets import WithinGroups


def within_text(found: Mapping[str, Sequence[WithinGroups]], width: int | None = None) -> str:
    """A line for each system and measure: mean, worst, best and spread within a group, averaged, with intervals."""
    several = len(found) > 1
    head = ["measure", "groups", "queries", "mean", "worst", "best", "spread"]
    rows = [
        [system] * several + [one.measure, count(one.groups), count(one.queries), *_values(one)]
        for system, of in found.items()
        for one in of
    ]
    lines = [["system"] * several + head, *rows]
    return columns(lines, 6, width, keys=1 + several)


def measures_text(found: Sequence[WithinGroups]) -> str:
    """The same of one system."""
    return within_text({"": found})


def within_json(found: Mapping[str, Sequence[WithinGroups]]) -> str:
    """One JSON object for each system and measure, at full precision."""
    rows = [{"system": system} | plain(one) for system, of in found.items() for one in of]
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _values(one: WithinGroups) -> list[str]:
    pairs = (
        (one.mean, one.mean_interval),
        (one.worst, one.worst_interval),
        (one.best, one.best_interval),
        (one.spread, one.spread_interval),
    )
    return [f"{score(value)} [{score(low)}, {score(high)}]" for value, (low, high) in pairs]
