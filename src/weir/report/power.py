"""What a test can find, as people read it."""

from __future__ import annotations

from weir.core.rounding import change, count, score, share
from weir.measures.measure import within_unit
from weir.report.terminal_layout import columns, paragraph
from weir.stats.power import PowerPlan
from weir.stats.score_notes import reach_note

__all__ = ["power_text"]


def power_text(plan: PowerPlan, width: int | None = None) -> str:
    """The minimum detectable effect now, and the queries that other effects need."""
    if plan.detectable is None or (within_unit(plan.measure) and plan.detectable > 1):
        least = "none, not even the largest difference"
    else:
        least = score(plan.detectable)
    lines = [
        f"{plan.measure}: {count(plan.queries)} queries, second minus first {change(plan.difference)}, "
        f"standard deviation {score(plan.deviation)}",
        f"minimum detectable effect now: {least} "
        f"(found {100 * plan.wanted:g} times in 100 in new data by one {plan.test} test at level {plan.alpha:g})"
        if plan.reach.possible
        else reach_note(plan.reach, plan.test, plan.queries, "queries", 1),
    ]
    body = [["effect", "power now", "queries needed"]]
    body += [[f"{n.effect:g}", share(n.power), _needed(n.queries)] for n in plan.needs]
    return "\n".join([*(paragraph(line, width) for line in lines), columns(body, right=3)]) + "\n"


def _needed(queries: int | None) -> str:
    return "more than 10,000,000" if queries is None else count(queries)
