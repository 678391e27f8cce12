"""From scores to the rows of a table."""

from __future__ import annotations

import math

import numpy as np

from weir.core.row import Row
from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.bootstrap import LEVEL, RESAMPLES, SEED, intervals, resampled_means

__all__ = ["group_row", "rows"]


def rows(scores: Scores, dataset: str, system: str) -> list[Row]:
    """One row for each measure: the mean over all judged queries and its 95% bootstrap interval."""
    answered = int(np.count_nonzero(scores.answered))
    return [
        Row(dataset, system, measure, i.mean, i.low, i.high, len(scores.queries), answered)
        for measure, i in zip(scores.measures, intervals(scores), strict=True)
    ]


def group_row(name: str, members: list[Row], values: list[Float64]) -> Row:
    """The row of a group of datasets: the unweighted mean of the members' means.

    members: one row for each member, of one system and measure; values: each member's per-query values
    in the order of Ids.tie_ranks, as `intervals` takes them. The interval resamples queries within each
    member; the order of the members changes nothing. Raises BadValue for no members or another number of values.
    """
    if not members or len(members) != len(values):
        raise BadValue(f"the group '{name}' has {len(members)} members and {len(values)} lists of values")
    generator = np.random.default_rng(SEED)
    by_name = sorted(range(len(members)), key=lambda i: members[i].dataset)
    defined = [values[i][~np.isnan(values[i])] for i in by_name]
    if any(len(v) == 0 for v in defined):
        low = high = float("nan")
    else:
        means = np.mean([resampled_means(v, generator, RESAMPLES) for v in defined], axis=0)
        low, high = (float(q) for q in np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    first = members[0]
    mean = math.fsum(m.mean for m in members) / len(members)
    queries, answered = sum(m.queries for m in members), sum(m.answered for m in members)
    return Row(name, first.system, first.measure, mean, low, high, queries, answered)
