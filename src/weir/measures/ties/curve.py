"""Mean over all orders of tied documents, for interpolated precision."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.library.binary import POINTS, needed_at
from weir.measures.ties.tie_groups import Groups, over_ties

# The relevant documents of a group are a random subset of its places, and the number above a group is certain. So
# the highest precision within a group is independent of that in others, and the probability that it stays at or
# below a value follows place by place; only values that a precision can take matter.
_STEPS = 200_000_000  # of one query and recall point: about half a second


@over_ties("IPrec", "relevant")
def _iprec(j: Judged, *, k: int | None, recall: float = 0.1, rounding: str = "up", rel: float = 1) -> Float64:
    return _mean(j, k, rel, needed_at(j.relevant(rel), recall, rounding))


@over_ties("IAP", "relevant")
def _iap(j: Judged, *, k: int | None, rounding: str = "up", rel: float = 1) -> Float64:
    total = np.zeros(len(j))
    for point in POINTS:
        total += _mean(j, k, rel, needed_at(j.relevant(rel), point, rounding))
    return total / len(POINTS)


def _mean(j: Judged, k: int | None, rel: float, needed: Float64) -> Float64:
    rows = np.flatnonzero(j.grade >= rel)
    groups = Groups.of(j.query[rows], j.first[rows], j.last[rows])
    count = groups.sum(np.ones(len(rows))).astype(np.int64)
    before = groups.before(count.astype(np.float64)).astype(np.int64)
    cuts = np.searchsorted(groups.query, np.arange(len(j) + 1))
    values = np.zeros(len(j))
    for query in range(len(j)):
        mine = [
            (int(before[g]), int(count[g]), int(groups.first[g]), int(groups.size[g]))
            for g in range(cuts[query], cuts[query + 1])
        ]
        precision = [_precision(*group, max(int(needed[query]), 1), k) for group in mine]
        values[query] = _mean_of_best(mine, precision, j.queries[query])
    return values


def _precision(before: int, count: int, first: int, size: int, needed: int, k: int | None) -> Float64:
    found, place = before + 1 + np.arange(count)[:, None], first + np.arange(size)[None, :]
    counts = (found >= needed) & ((place <= k) if k is not None else True)
    return np.where(counts, found / place, 0.0)


def _mean_of_best(groups: list[tuple[int, int, int, int]], precision: list[Float64], query: str) -> float:
    sure = max((_sure(p) for p in precision), default=0.0)
    open_ = [p for p in precision if p.shape[0] < p.shape[1] and p.max() > sure]
    values = np.unique(np.concatenate([[sure], *(_possible(p) for p in open_)]))
    values = values[values >= sure]
    if sum(p.size for p in open_) * len(values) > _STEPS:
        raise BadValue(
            f"query '{query}' has too many relevant documents among too many of equal score for the exact mean of "
            "interpolated precision; take ties=bounds or another measure"
        )
    below = np.ones(len(values))
    for one in open_:
        below *= _stays_within(one, values)
    return float(np.dot(values, np.diff(below, prepend=0.0)))


def _sure(precision: Float64) -> float:
    count, size = precision.shape
    return float(np.diagonal(precision, size - count).max())


def _possible(precision: Float64) -> Float64:
    count, size = precision.shape
    c, i = np.arange(count)[:, None], np.arange(size)[None, :]
    values: Float64 = precision[(i >= c) & (i <= size - count + c)]
    return values


def _stays_within(precision: Float64, values: Float64) -> Float64:
    count, size = precision.shape
    chance = np.zeros((count + 1, len(values)))
    chance[0] = 1.0
    left = (count - np.arange(count + 1))[:, None]
    for i in range(size):
        hit = np.clip(left / (size - i), 0.0, 1.0)
        moved = chance[:-1] * hit[:-1] * (precision[:, i : i + 1] <= values)
        chance *= 1.0 - hit
        chance[1:] += moved
    last: Float64 = chance[count]
    return last
