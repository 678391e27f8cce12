"""Slices: groups of queries on which two systems differ otherwise than on the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weir.audit.check import Finding, check
from weir.audit.query_features import feature_groups
from weir.core import rounding
from weir.core.ids import Ids
from weir.core.query_groups import QueryGroups
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.corrections import adjusted
from weir.stats.distributions import student_tail

__all__ = ["Slice", "slices_of", "student", "welch"]

MEASURE = parse_measure("nDCG@10")
FEWEST_QUERIES = 10
"""Queries of a slice, and of the rest, below which nothing is said."""
FALSE_DISCOVERY_RATE = 0.05
TURNED = 0.01
"""Difference on a slice, against the sign of that on the rest, from which conclusions are said to turn."""
MOST_SYSTEMS = 6
"""Systems of which all pairs are looked at; of more, each is compared with the best alone."""


@dataclass(frozen=True)
class Slice:
    """A group of queries on which a difference is another than on the rest.

    feature, label: which group; queries: how many; inside, outside: mean difference, second minus first, there and on
    the other queries; p: of the test that both are equal, the larger of Welch's and Student's, adjusted for all
    slices looked at.
    """

    feature: str
    label: str
    queries: int
    inside: float
    outside: float
    p: float


def welch(a: Float64, b: Float64) -> float:
    """Two-sided p-value of Welch's test that two samples have the same mean; 1 where neither varies nor differs."""
    difference = float(a.mean() - b.mean())
    parts = [float(x.var(ddof=1)) / len(x) for x in (a, b)]
    error = sum(parts)
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    freedom = error**2 / sum(part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True))
    return 2 * student_tail(abs(difference) / math.sqrt(error), freedom)


def student(a: Float64, b: Float64) -> float:
    """Two-sided p-value of Student's test with pooled variance; 1 where neither varies nor differs."""
    difference, freedom = float(a.mean() - b.mean()), len(a) + len(b) - 2
    pooled = (float(a.var(ddof=1)) * (len(a) - 1) + float(b.var(ddof=1)) * (len(b) - 1)) / freedom
    error = pooled * (1 / len(a) + 1 / len(b))
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return 2 * student_tail(abs(difference) / math.sqrt(error), freedom)


def slices_of(queries: Ids, differences: Float64, groupings: Sequence[QueryGroups]) -> list[Slice]:
    """Every slice of at least FEWEST_QUERIES with its adjusted p-value (Benjamini and Hochberg), the smallest first.

    differences: float64[Q] aligned with queries, NaN where one of the systems is undefined.
    """
    known = ~np.isnan(differences)
    found: list[tuple[QueryGroups, str, Float64, Float64]] = []
    for groups in groupings:
        for label, rows in _without_complement(groups.rows(queries), len(queries)).items():
            here = np.zeros(len(queries), np.bool_)
            here[rows] = True
            inside, outside = differences[here & known], differences[~here & known]
            if min(len(inside), len(outside)) >= FEWEST_QUERIES:
                found.append((groups, label, inside, outside))
    if not found:
        return []
    # Welch's alone is too sure of a few queries that happen not to differ at all, Student's of a few that differ much.
    raw = [max(welch(inside, outside), student(inside, outside)) for *_, inside, outside in found]
    p = adjusted(np.array(raw), "bh")
    rows_ = [
        Slice(groups.name, label, len(inside), float(inside.mean()), float(outside.mean()), float(value))
        for (groups, label, inside, outside), value in zip(found, p, strict=True)
    ]
    return sorted(rows_, key=lambda one: one.p)


def _without_complement(rows: dict[str, Int64], queries: int) -> dict[str, Int64]:
    """Of two groups that are all queries the smaller alone: each says of the other what that says of it."""
    if len(rows) != 2 or sum(map(len, rows.values())) != queries:
        return rows
    smaller = min(rows, key=lambda label: len(rows[label]))
    return {smaller: rows[smaller]}


@check("slices", needs=["queries", "qrels", "runs"])
def slices(subject: Subject) -> Iterator[Finding]:
    """Kinds of queries on which one system gains or loses against another otherwise than on the rest.

    Groups by length, question word, numbers, negation, names, topic, judgments and the collection's own columns; with
    the false-discovery rate held at 5% for each pair of systems.
    """
    joins = {name: join for name, join in subject.joins.items() if join.answered.any()}
    if len(joins) < 2:
        return
    scores = {name: scores_of(join, (MEASURE,)) for name, join in joins.items()}
    queries = next(iter(joins.values())).queries
    groupings = list(feature_groups(subject))
    best = max(scores, key=lambda name: scores[name].means()[str(MEASURE)])
    pairs = (
        list(combinations(scores, 2))
        if len(scores) <= MOST_SYSTEMS
        else [(one, best) for one in scores if one != best]
    )
    for one, other in pairs:
        found = slices_of(queries, scores[other].values[0] - scores[one].values[0], groupings)
        for part in (s for s in found if s.p <= FALSE_DISCOVERY_RATE):
            yield _finding(one, other, part)


def _finding(one: str, other: str, part: Slice) -> Finding:
    turns = part.inside * part.outside < 0 and min(abs(part.inside), abs(part.outside)) >= TURNED
    return Finding(
        "serious" if turns else "caution",
        f"{one} to {other}: {MEASURE} changes by {rounding.change(part.inside)} on the {part.queries:,} "
        f"queries with "
        f"{part.feature} '{part.label}', by {rounding.change(part.outside)} on the others (p "
        f"{rounding.score(max(part.p, 0.0001))}, adjusted)",
        "one mean hides this: report both, and look at these queries" if turns else "look at these queries",
        (("queries", float(part.queries)), ("inside", part.inside), ("outside", part.outside), ("p", part.p)),
    )
