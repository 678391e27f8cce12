"""BIRCO's figures as its program prints them, beside the scores that their names promise."""

from __future__ import annotations

import json
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import count, percent_points, percent_step, score
from weir.core.tables import columns, paragraph
from weir.report.short_names import short_names
from weir.stats.birco import BircoScore

LEAST_SHARE = 5e-6
"""Of a difference that is told, as a share of 1: half of the last digit that BIRCO prints."""


def birco_text(found: Sequence[BircoScore], width: int | None = None) -> str:
    """A line for each ranking and measure: what BIRCO prints, the score, and what makes them differ."""
    several = len({one.dataset for one in found}) > 1
    head = ["system", "BIRCO's name", "printed", "score", "measure", "printed differs by"]
    lines = [["dataset", *head] if several else head]
    systems = tuple(dict.fromkeys(one.system for one in found))
    names = dict(zip(systems, short_names(systems), strict=True))
    for one in found:
        figure = f"{percent_points(one.printed)} ± {percent_points(one.deviation)}"
        scored = f"{score(one.score)} [{score(one.low)}, {score(one.high)}]"
        cells = [names[one.system], one.measure, figure, scored, one.plain, "; ".join(_reasons(one))]
        lines.append([one.dataset, *cells] if several else cells)
    note = (
        "printed: the mean and deviation of 1,000 bootstrap means, times 100, a standard error and no interval; "
        "score: over all judged queries, with its 95% bootstrap interval; weir compare gives verdicts"
    )
    return columns(lines, width=width, keys=1 + several) + "\n\n" + paragraph(note, width)


def _reasons(one: BircoScore) -> list[str]:
    """What printed less score consists of, in per cent, and a name that says something else."""
    parts = (
        (one.resampling, "resampled means"),
        (one.left_out, f"queries left out, {count(one.queries)} count"),
        (one.best_grade, f"the highest grade alone, {one.definition}"),
    )
    said = [f"{percent_step(size)} {why}" for size, why in parts if abs(size) >= LEAST_SHARE]
    return said + ([f"named {one.line}"] if one.line == "R@100" != one.measure else [])


def birco_json(found: Sequence[BircoScore]) -> str:
    """One JSON object for each ranking and measure, at full precision."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)
