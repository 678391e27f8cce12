"""BIRCO's figures as its program prints them, beside the plain means."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from weir.core.plain_values import plain
from weir.core.rounding import count, percent_points, score
from weir.report.terminal_layout import columns, paragraph
from weir.stats.birco import BircoScore

__all__ = ["birco_json", "birco_text"]


def birco_text(found: Mapping[str, Sequence[BircoScore]], width: int | None = None) -> str:
    """A line for each ranking and measure: what BIRCO prints, the plain mean, over how many, by which measure."""
    lines = [["system", "BIRCO's name", "printed", "mean", "queries", "here"]]
    lines += [
        [
            name,
            one.measure,
            f"{percent_points(one.printed)} ± {percent_points(one.deviation)}",
            score(one.mean),
            count(one.queries),
            one.definition,
        ]
        for name, scores in found.items()
        for one in scores
    ]
    note = (
        "printed: the mean and deviation of 1,000 bootstrap means, times 100, a standard error and no interval; mean: "
        "the score itself, over the queries that BIRCO counts; weir eval gives intervals, weir compare verdicts"
    )
    return columns(lines, width=width) + "\n\n" + paragraph(note, width)


def birco_json(found: Mapping[str, Sequence[BircoScore]]) -> str:
    """One JSON object for each ranking and measure, at full precision."""
    return "\n".join(
        json.dumps({"system": name, **plain(one)}, ensure_ascii=False)
        for name, scores in found.items()
        for one in scores
    )
