"""What a test can find, as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from weir.core.rounding import change, count, score, share
from weir.core.tables import Cell, Table, columns, paragraph
from weir.measures.measure import within_unit
from weir.stats.power import PowerPlan
from weir.stats.score_rows import reach_note


def power_text(plan: PowerPlan, width: int | None = None) -> str:
    """The minimum detectable effect now, and the queries that other effects need."""
    least = _least(plan)
    least += ", not even the largest difference" * (least == "none")
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


def power_html(plans: Sequence[PowerPlan]) -> str:
    """The same as tables of HTML: what can be found now, and the queries that other effects need."""
    now = tuple(
        tuple(map(Cell, (p.measure, count(p.queries), change(p.difference), score(p.deviation), _least(p))))
        for p in plans
    )
    needs = tuple(
        tuple(map(Cell, (p.measure, f"{n.effect:g}", share(n.power), _needed(n.queries))))
        for p in plans
        for n in p.needs
    )
    header = ("measure", "queries", "second - first", "standard deviation", "minimum detectable effect")
    reached = dict.fromkeys(
        reach_note(p.reach, p.test, p.queries, "queries", 1) for p in plans if not p.reach.possible
    )
    first = Table("", header, now, tuple(reached))
    second = Table("", ("measure", "effect", "power now", "queries needed"), needs)
    return f"{first.html()}\n{second.html_body()}"


def _least(plan: PowerPlan) -> str:
    """The minimum detectable effect, where there is one."""
    if not plan.reach.possible or plan.detectable is None:
        return "none"
    return "none" if within_unit(plan.measure) and plan.detectable > 1 else score(plan.detectable)


def _needed(queries: int | None) -> str:
    return "more than 10,000,000" if queries is None else count(queries)
