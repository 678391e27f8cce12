"""From scores by group to the rows of a table: each group, their macro mean, and the mean over all queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.core.result_row import Row
from weir.core.scores import GroupedScores
from weir.stats.score_rows import group_row, result_rows

__all__ = ["rows_by_group"]


def rows_by_group(grouped: GroupedScores, dataset: str, system: str) -> list[Row]:
    """Rows of each group, then of the macro mean, then of all queries, each with its 95% bootstrap interval.

    The macro mean is the unweighted mean of the groups' means, and its interval resamples queries within each group; a
    group where a measure is undefined throughout is left out of it. The mean over all queries counts those without a
    group too.
    """
    parts = {label: result_rows(part, dataset, system) for label, part in grouped.items()}
    whole = result_rows(grouped.whole, dataset, system)
    found = [replace(row, group=label) for label, part in parts.items() for row in part]
    for number, measure in enumerate(grouped.whole.measures):
        members, values = [], []
        for label, part in grouped.items():
            if not np.isnan(part.of(measure)).all():
                members.append(replace(parts[label][number], dataset=label))
                values.append(part.in_id_order(measure))
        if members:
            macro = group_row(dataset, members, values, measure in grouped.whole.geometric)
            found.append(replace(macro, conventions=whole[number].conventions, groups=len(members)))
    return found + whole
