"""Re-rankings in Python: what they did to their first stage, and how far they depend on what should not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir.api.result_set import ResultSet

if TYPE_CHECKING:
    from weir.measures.measure import Measure
    from weir.sensitivity.order_changes import ReorderRules
    from weir.sensitivity.reordering import Reordering

__all__ = ["reranking"]


def reranking(
    first: object,
    *reranked: object,
    qrels: object = None,
    measure: Measure | str = "nDCG@10",
    rules: ReorderRules | None = None,
) -> ResultSet[Reordering]:
    """What re-rankings did to their first stage, from rankings alone: `weir reranking`.

    first: the rankings whose first documents were ordered anew; reranked: re-rankings of it; qrels: judgments, all as
    `weir.evaluate` takes them; None leaves out scores and position bias. rules: weir.ReorderRules, with first ranks,
    depth, blocks of places, the least relevant grade and windows. Raises BadValue for a re-ranking of other queries and
    judgments of others, and the WeirErrors of the parts.
    """
    from weir.io.runs.frames import qrels_from, run_from
    from weir.io.runs.pairing import refuse_mismatched
    from weir.measures.files import distinct_names
    from weir.measures.measure import parse_measure
    from weir.sensitivity.reordering import reorderings

    if qrels is not None:
        refuse_mismatched(qrels, first)
    runs = [run_from(one) for one in reranked]
    names = distinct_names([run.name for run in runs], [f"re-ranking {n}" for n in range(1, len(runs) + 1)])
    judgments = None if qrels is None else qrels_from(qrels)
    by_name = dict(zip(names, runs, strict=True))
    found = reorderings(run_from(first), by_name, judgments, parse_measure(str(measure)), rules)
    return ResultSet("reranking", tuple(found))
