"""Mean over all orders of tied documents, for measures that depend on the documents above each one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64
from weir.measures.library.arithmetic import (
    best_grades,
    gain_of,
    ideal_gains,
    product_before,
    ratio,
    sum_within,
)
from weir.measures.library.cascade import satisfies, stopped_at
from weir.measures.ties.tie_groups import Groups, hypergeometric, over_ties

# A document of a group of s is at its i-th place with probability 1 / s; the i - 1 above it are then a random draw
# from the s - 1 others, and the number of marked ones among them is hypergeometric. Groups above count whole.
# McSherry and Najork 2008 for AP, RR and the like; the others follow in the same way.
_CELLS = 1 << 20  # numbers worked on at a time
Adds: TypeAlias = Callable[[Int64, Int64, Int64], Float64]
"""Maps groups, ranks and numbers of marked documents above (arrays that broadcast) to contributions."""


def mean_over_orders(groups: Groups, count: Float64, others: Float64, adds: Adds, k: int | None) -> Float64:
    """Return the sum of the contributions of `count` documents of each tie group, as the mean over all orders
    of tied documents, float64[groups].

    others: number of marked documents among the group's other documents.
    adds: contribution of a document, from group, rank and number of the group's marked documents above it.
    k: last rank that counts; None for all.
    """
    values = np.zeros(len(groups))
    kept = (count > 0) & ((groups.first <= k) if k is not None else True)
    for size, marked, which in groups.by_size_and_others(others.astype(np.int64), kept):
        rows = size if k is None else min(size, k - int(groups.first[which].min()) + 1)
        table = hypergeometric(size - 1, marked, rows)
        step = max(1, _CELLS // table.size)
        for start in range(0, len(which), step):
            part = which[start : start + step]
            of = part[:, None, None]
            place = groups.first[of] + np.arange(rows)[None, :, None]
            chance = np.broadcast_to(table, (len(part), *table.shape))
            if k is not None:
                chance = np.where(place <= k, chance, 0.0)
            with np.errstate(all="ignore"):  # of what cannot be: as many above as there are no places for
                added = np.where(chance > 0, adds(of, place, np.arange(marked + 1)) * chance, 0.0)
            values[part] = count[part] / size * added.sum(axis=(1, 2))
    return values


def mean_by_marked_above(groups: Groups, marked: NDArray[np.bool_], adds: Adds, k: int | None) -> Float64:
    """Return the mean contribution of each tie group's marked rows over all orders of tied documents,
    float64[groups].

    adds: contribution of a row, from group, rank and number of the query's marked rows above it.
    k: last rank that counts; None for all.
    """
    count = groups.sum(marked)
    before = groups.before(count).astype(np.int64)
    return mean_over_orders(
        groups, count, np.maximum(count - 1, 0), lambda of, place, x: adds(of, place, before[of] + x), k
    )


def per_query(j: Judged, groups: Groups, values: Float64) -> Float64:
    """Return the sum of groups' values for each query, float64[queries]."""
    return j.total(groups.query.astype(np.int32), values)


def _in_order(j: Judged, marked: NDArray[np.bool_], adds: Adds, k: int | None) -> Float64:
    groups = Groups.in_join(j)
    return per_query(j, groups, mean_by_marked_above(groups, marked, adds, k))


@over_ties("Success", "relevant")
def _success(j: Judged, *, k: int, rel: float = 1) -> Float64:
    return _in_order(j, j.grade >= rel, lambda _, place, above: (above == 0) * np.ones(place.shape), k)


@over_ties("RR", "relevant")
def _rr(j: Judged, *, k: int | None, of: str = "relevant", rel: float = 1) -> Float64:
    wanted = j.grade >= rel
    if of == "best":
        wanted &= j.grade == best_grades(j)[j.query]
    return _in_order(j, wanted, lambda _, place, above: (above == 0) / place, k)


@over_ties("AP", "relevant")
def _ap(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    return ratio(
        _in_order(j, j.grade >= rel, lambda _, place, above: (above + 1) / place, k), j.relevant(rel)
    )


def _by_logarithm(_: Int64, place: Int64, above: Int64) -> Float64:
    cost: Float64 = np.log2(place - above + 1.0)
    return 1.0 / cost


@over_ties("binG", "relevant")
def _bin_g(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    found = _in_order(j, j.grade >= rel, _by_logarithm, k)
    return ratio(found, j.relevant(rel))


@over_ties("Accuracy")
def _accuracy(j: Judged, *, k: int | None, rel: float = 1) -> Float64 | None:
    if k is not None and (j.retrieved > k).any():
        return None  # what it divides by depends on the order as well
    rows = j.grade >= rel
    found = j.per_query(j.query, rows)
    wrong = _in_order(j, rows, lambda _, place, above: (place - above).astype(np.float64) - 1.0, None)
    accuracy: Float64 = np.where(found > 0, 1.0 - ratio(wrong, (j.retrieved - found) * found), 0.0)
    return accuracy


@over_ties("bpref", "relevant")
def _bpref(j: Judged, *, k: int | None, rel: float = 1) -> Float64:
    groups, relevant = Groups.in_join(j), j.relevant(rel)
    wrong = groups.sum((j.grade < rel) & (j.grade >= 0))
    before, of = groups.before(wrong), relevant[groups.query]
    all_wrong = j.per_query(j.ideal_query(), (j.ideal < rel) & (j.ideal >= 0))
    most = np.minimum(all_wrong, relevant)[groups.query]

    def kept(group: Int64, _: Int64, above: Int64) -> Float64:
        lost = np.minimum(before[group] + above, of[group]) / np.maximum(most[group], 1)
        return 1.0 - np.where(most[group] > 0, lost, 0.0)

    return ratio(
        per_query(j, groups, mean_over_orders(groups, groups.sum(j.grade >= rel), wrong, kept, k)), relevant
    )


@over_ties("Q", "gain")
def _q(j: Judged, *, k: int | None, beta: float = 1.0, gain: str = "linear") -> Float64:
    groups, rows = Groups.in_join(j), j.grade > 0
    count, gained = groups.sum(rows), groups.sum(np.where(rows, gain_of(j.grade, gain), 0.0))
    above, gained_above = groups.before(count), groups.before(gained)
    place, of = groups.places(count > 0)
    if k is not None:
        place, of = place[place <= k], of[place <= k]
    query, size, n = groups.query[of].astype(np.int32), groups.size[of], count[of]
    # Two of the group, one here and one above, are any two of its documents.
    pairs = (place - groups.first[of]) * (n - 1) * (n + beta * gained[of]) / np.maximum(size - 1, 1)
    own = n * (above[of] + 1 + beta * gained_above[of]) + beta * gained[of]
    most = sum_within(*ideal_gains(j, None, gain), query, place)
    return ratio(j.total(query, (own + pairs) / size / (place + beta * most)), j.above_zero())


@over_ties("ERR", "grade")
def _err(j: Judged, *, k: int | None, max_grade: int = 4) -> Float64:
    rows = np.flatnonzero(j.grade > 0)
    groups = Groups.of(j.query[rows], j.first[rows], j.last[rows])
    stop = satisfies(j, j.grade[rows], max_grade)
    goes_on = np.ones(len(groups))
    np.multiply.at(goes_on, groups.of_row, 1.0 - stop)
    reached = product_before(groups.query.astype(np.int32), goes_on)
    place, of = groups.places(np.ones(len(groups), np.bool_))
    chance = reached[of] * _stops(groups, stop)
    within = np.ones(len(place), np.bool_) if k is None else place <= k
    return j.total(groups.query[of[within]].astype(np.int32), chance[within] / place[within])


@over_ties("nERR", "grade")
def _nerr(j: Judged, *, k: int | None, max_grade: int = 4) -> Float64:
    rank = j.ideal_rank()
    best = (j.ideal > 0) & ((rank <= k) if k is not None else True)
    ideal = stopped_at(j, j.ideal_query()[best], rank[best], satisfies(j, j.ideal[best], max_grade))
    return ratio(_err(j, k=k, max_grade=max_grade), ideal)


def _stops(groups: Groups, stop: Float64) -> Float64:
    # It is the decrease, from j to j + 1 documents of the group, of the mean product of their probabilities of
    # going on. That mean is built document by document: of n + 1 documents a draw of j has a given one with
    # probability j / (n + 1). Only the last difference cancels.
    cuts = np.searchsorted(groups.of_row, np.arange(len(groups) + 1)).tolist()
    found = []
    for group, size in enumerate(groups.size.tolist()):
        mine = stop[cuts[group] : cuts[group + 1]]
        mean = np.ones(size - len(mine) + 1)
        for chance in mine:
            n = len(mean)
            drawn = np.arange(n + 1)
            mean = (np.append(mean, 0.0) * (n - drawn) + np.append(0.0, mean) * drawn * (1.0 - chance)) / n
        found.append(mean[:-1] - mean[1:])
    return np.concatenate([np.empty(0), *found])
