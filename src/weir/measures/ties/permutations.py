"""Enumeration of all orders of tied documents, for measures whose mean or extremes have no formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Grades, Int64
from weir.measures.ties.tie_groups import Groups

# Documents of one grade are alike, and so are unjudged ones: only distinct sequences count, all equally likely.
LIMIT = 20_000  # orders of one query that are tried
_UNJUDGED = float(np.iinfo(np.int16).min)


def count_orders(j: Judged) -> list[int]:
    """Return the number of distinct orders of each query's tied documents."""
    groups = Groups.in_join(j)
    orders = [1] * len(j)
    for group, counts in enumerate(_kinds(groups, j.grade)):
        orders[int(groups.query[group])] *= _multinomial(list(counts.values()))
    return orders


def arranged(j: Judged) -> Judged:
    """Return every order of one query's tied documents as a join of that many queries without ties."""
    groups = Groups.in_join(j)
    ways = [
        first - 1 + _orders(counts)
        for first, counts in zip(groups.first.tolist(), _kinds(groups, j.grade), strict=True)
    ]
    # Every choice of one order for each group.
    choice = np.unravel_index(np.arange(math.prod(map(len, ways))), [len(w) for w in ways])
    place = np.concatenate([way[at] for way, at in zip(ways, choice, strict=True)], axis=1)
    grade = _by_kind(groups, j.grade)
    order = np.argsort(place, axis=1)
    rank = np.take_along_axis(place, order, axis=1).astype(np.int32).ravel()
    many = j.take(np.zeros(len(place), np.int64))
    return replace(many, rank=rank, first=rank, last=rank, grade=grade[order].ravel())


def _kinds(groups: Groups, grade: Grades) -> list[dict[float, int]]:
    """Return for each group the number of documents by grade, ascending, unjudged ones last."""
    cuts = np.searchsorted(groups.of_row, np.arange(len(groups) + 1)).tolist()
    found = []
    for group, size in enumerate(groups.size.tolist()):
        grades, counts = np.unique(grade[cuts[group] : cuts[group + 1]], return_counts=True)
        kinds = dict(zip(grades.tolist(), counts.tolist(), strict=True))
        if size > sum(kinds.values()):
            kinds[_UNJUDGED] = size - sum(kinds.values())
        found.append(kinds)
    return found


def _by_kind(groups: Groups, grade: Grades) -> Grades:
    """Return the grades ascending within each group: the order in which `_orders` lists places."""
    return grade[np.lexsort((grade, groups.of_row))]


def _orders(kinds: dict[float, int]) -> Int64:
    """Return, for each order of a tie group, the places (from 1) of its judged documents, int64[orders, judged]."""
    judged = [count for grade, count in kinds.items() if grade != _UNJUDGED]
    free = [tuple(range(1, sum(kinds.values()) + 1))]
    taken: list[tuple[int, ...]] = [()]
    for count in judged:
        pairs = [
            (held + chosen, tuple(p for p in left if p not in chosen))
            for held, left in zip(taken, free, strict=True)
            for chosen in combinations(left, count)
        ]
        taken, free = [held for held, _ in pairs], [left for _, left in pairs]
    return np.array(taken, np.int64)


def _multinomial(counts: Sequence[int]) -> int:
    orders, total = 1, 0
    for count in counts:
        total += count
        orders *= math.comb(total, count)
    return orders
