"""From scores to the rows of a table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from weir.core.label_use import LabelUse
from weir.core.result_row import Row
from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.bootstrap import LEVEL, RESAMPLES, SEED, intervals, resampled_means

__all__ = ["group_row", "result_rows"]


def result_rows(scores: Scores, dataset: str, system: str) -> list[Row]:
    """One row for each measure: the mean over all queries that count and its 95% bootstrap interval."""
    queries, answered = len(scores.queries), int(np.count_nonzero(scores.answered))
    plain = scores.conventions == "default"
    found = []
    for measure, i, counted, movable, ends, people in zip(
        scores.measures,
        intervals(scores),
        scores.counted(),
        scores.movable(),
        scores.tie_bounds(),
        scores.people_means().tolist(),
        strict=True,
    ):
        row = Row(dataset, system, measure, i.mean, i.low, i.high, queries, answered, scores.conventions)
        if not plain and counted != queries:
            row = replace(row, counted=int(counted))
        if movable:
            lowest, highest = (None if math.isnan(end) else float(end) for end in ends)
            row = replace(row, movable=int(movable), lowest=lowest, highest=highest)
        if not math.isnan(scores.judged_at_10):
            row = replace(row, judged_at_10=scores.judged_at_10)
        found.append(row if scores.labels is None else _labelled(row, scores.labels, people))
    return found


def _labelled(row: Row, labels: LabelUse, people: float) -> Row:
    known = [None if math.isnan(value) else value for value in (people, labels.share)]
    return replace(row, labels=labels.said, people=known[0], model_share=known[1])


def group_row(name: str, members: list[Row], values: list[Float64], geometric: bool = False) -> Row:
    """The row of a group of datasets: the unweighted mean of the members' means.

    members: one row for each member, of one system and measure; values: each member's per-query values
    in the order of Ids.tie_ranks, as `intervals` takes them; geometric: whether these are logarithms. The
    interval resamples queries within each member; the order of the members changes nothing. Raises BadValue for
    no members or another number of values.
    """
    if not members or len(members) != len(values):
        raise BadValue(f"the group '{name}' has {len(members)} members and {len(values)} lists of values")
    generator = np.random.default_rng(SEED)
    by_name = sorted(range(len(members)), key=lambda i: members[i].dataset)
    defined = [values[i][~np.isnan(values[i])] for i in by_name]
    if any(len(v) == 0 for v in defined):
        low = high = float("nan")
    else:
        each = np.array([resampled_means(v, generator, RESAMPLES) for v in defined])
        means = np.mean(np.exp(each) if geometric else each, axis=0)
        low, high = (float(q) for q in np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    first = members[0]
    mean = math.fsum(m.mean for m in members) / len(members)
    queries, answered = sum(m.queries for m in members), sum(m.answered for m in members)
    row = Row(name, first.system, first.measure, mean, low, high, queries, answered)
    rates = [m.judged_at_10 for m in members if m.judged_at_10 is not None]
    return replace(row, judged_at_10=math.fsum(rates) / len(rates)) if len(rates) == len(members) else row
