"""Systems compared on each group of queries, with the share of false findings bounded over the groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.core.query_groups import QueryGroups
from weir.core.scores import Scores
from weir.errors import BadValue
from weir.stats.across import pooled
from weir.stats.compare import compared, compared_together, shared_measures, table
from weir.stats.comparison import Comparison, ComparisonMethod, ScoreTable
from weir.stats.significance import TESTS

__all__ = ["BY_GROUP", "compare_scores_by_group", "compared_by_group"]

BY_GROUP = ComparisonMethod(correct="bh")
"""How groups are compared unless told otherwise: by the correction of Benjamini and Hochberg."""


def compared_by_group(
    given: ScoreTable,
    groups: QueryGroups,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Compare the systems on all queries, by the macro mean over groups, and on each group of at least two queries.

    The correction of a group counts the tests of all groups. In the macro mean every group weighs the same, whatever
    its queries. method: by default BY_GROUP. Raises BadValue where no group has two queries, and for a test whose
    p-values hold for one table only.
    """
    method = method or BY_GROUP
    if TESTS.get(method.test).familywise:
        raise BadValue(
            f"{method.test} holds for the pairs of one group alone; take another test for several groups"
        )
    assert given.queries is not None
    rows = groups.rows(given.queries)
    parts = [replace(given.take(at), group=label) for label, at in rows.items() if len(at) > 1]
    if not parts:
        raise BadValue(f"{given.dataset}, {groups.name}: no group has two queries, which a comparison needs")
    tables = [replace(part, dataset=part.group) for part in parts]  # in one order whatever the dataset
    macro = replace(pooled(tables, given.dataset), group=f"macro mean of {len(parts)} groups")
    each = compared_together(parts, baseline, method)
    return [compared(given, baseline, method), compared(macro, baseline, method), *each]


def compare_scores_by_group(
    scores: Mapping[str, Scores],
    dataset: str,
    groups: QueryGroups,
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """The comparisons of `compared_by_group` for each measure that all systems have; raises as it and `table`."""
    return [
        comparison
        for measure in shared_measures(scores.values())
        for comparison in compared_by_group(table(dataset, measure, scores), groups, baseline, method)
    ]
