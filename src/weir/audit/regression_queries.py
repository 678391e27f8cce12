"""Regression queries: a few that stand for all, saved as a group that a gate looks at on every change."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weir.audit.query_features import topics
from weir.core.strings import Float64
from weir.core.subject import Subject
from weir.errors import BadValue
from weir.io.storage.atomic import write_text
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure

__all__ = ["GROUP", "regression_queries", "write_regression_queries"]

MEASURE = parse_measure("nDCG@10")
GROUP = "regression"


def regression_queries(subject: Subject, count: int = 30) -> list[str]:
    """So many judged queries: from each topic by its share, from its easiest to its hardest at even steps.

    How hard a query is tells the mean nDCG@10 of all systems. The same subject gives the same queries. Raises BadValue
    for a count below 1, and without rankings.
    """
    if count < 1 or not subject.runs:
        found = f"count {count} and {len(subject.runs)} rankings"
        raise BadValue(f"regression queries: found {found}; expected one of each at least")
    judged = next(iter(subject.joins.values())).queries.tolist()
    hard = _mean_scores(subject)
    label = _topic_of_each(subject)
    by_topic: dict[str, list[int]] = {}
    for row in np.lexsort((np.array(judged), hard)).tolist():
        by_topic.setdefault(label.get(judged[row], ""), []).append(row)
    share = min(1.0, count / len(judged))
    wanted = {topic: share * len(rows) for topic, rows in by_topic.items()}
    taken = {topic: int(n) for topic, n in wanted.items()}
    left = min(count, len(judged)) - sum(taken.values())
    for topic in sorted(wanted, key=lambda t: (taken[t] - wanted[t], t))[:left]:
        taken[topic] += 1
    chosen = [
        rows[round((place + 0.5) * len(rows) / taken[topic] - 0.5)]
        for topic, rows in by_topic.items()
        for place in range(taken[topic])
    ]
    return sorted(judged[row] for row in chosen)


def _topic_of_each(subject: Subject) -> dict[str, str]:
    """The topic of each query that has one; none where their texts are not there."""
    if subject.queries is None:
        return {}
    groups = topics(subject)
    pairs = zip(groups.queries.tolist(), groups.group.tolist(), strict=True)
    return {query: groups.labels[number] for query, number in pairs if number >= 0}


def _mean_scores(subject: Subject) -> Float64:
    values = [scores_of(join, (MEASURE,)).values[0] for join in subject.joins.values()]
    return np.asarray(np.nan_to_num(np.mean(values, axis=0)), np.float64)


def write_regression_queries(queries: list[str], path: Path) -> None:
    """Write them as a file of groups, as --by reads it; raises StoreError when the disk refuses."""
    write_text(path, "".join(f"{query}\t{GROUP}\n" for query in queries))
