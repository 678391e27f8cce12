"""Compute the mean, worst and best value of a measure over all orders of tied documents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Grades, Int32, Int64
from weir.errors import BadValue
from weir.measures.library.arithmetic import gain_of
from weir.measures.measure import Measure, condensed_join
from weir.measures.ties import additive, curve, diversity_ties, documents_above, inferred  # noqa: F401 - each registers its measures
from weir.measures.ties.tie_groups import TIED, Groups, OverTies, Worth

_PLACES = 1 << 20  # places of tied documents worked on at a time
_RELATIVE_ROUNDING = 1e-12  # sums in another order may differ by as much


@dataclass(frozen=True, eq=False)
class TiedQueries:
    """Queries of a run in which a judged document is tied."""

    codes: Int64
    """int64[queries]: their numbers in the whole join."""
    judged: Judged
    """The join of these queries only."""
    nearest: Int32
    """int32[queries]: first rank of the first tie group with a judged document."""

    @staticmethod
    def of(judged: Judged, codes: Int64) -> TiedQueries:
        """Return the queries with these ascending numbers, int64[queries]; each must have a tied judged
        document."""
        part = judged.take(codes) if len(codes) < len(judged) else judged
        rows = np.flatnonzero(part.last > part.first)[::-1]
        nearest = np.zeros(len(codes), np.int32)
        nearest[part.query[rows]] = part.first[rows]  # from the end, so that the first group stands
        return TiedQueries(codes, part, nearest)

    def _tied_within(self, k: int | None) -> TiedQueries | None:
        """Return the queries whose ties begin within the first k ranks (None: all queries); None if none do."""
        if k is None or (reached := self.nearest <= k).all():
            return self
        some = np.flatnonzero(reached)
        return (
            TiedQueries(self.codes[some], self.judged.take(some), self.nearest[some]) if len(some) else None
        )


@dataclass(frozen=True, eq=False)
class Tied:
    """A run matched with judgments, and, in blocks, its queries with tied judged documents."""

    judged: Judged
    parts: tuple[TiedQueries, ...]

    @staticmethod
    def of(judged: Judged) -> Tied:
        """Return a judged run with its queries that have a tied judged document."""
        ranked = judged if judged.intents is None else judged.intents.joined
        rows = np.flatnonzero(ranked.last > ranked.first)
        if len(rows) == 0:
            return Tied(judged, ())
        groups = Groups.of(ranked.query[rows], ranked.first[rows], ranked.last[rows])
        places = np.bincount(groups.query, groups.size, len(judged))
        codes = np.flatnonzero(places)
        cuts = np.flatnonzero(np.diff(np.cumsum(places[codes]) // _PLACES)) + 1
        return Tied(judged, tuple(TiedQueries.of(judged, some) for some in np.split(codes, cuts)))

    def _seen_by(self, measure: Measure) -> Tied:
        """Return the ties that can change this measure, given its cut-off and condensing."""
        whole = Tied.of(condensed_join(self.judged)) if measure.condensed else self
        k = None if measure.by_intent else measure.cutoff
        cut = (part._tied_within(k) for part in whole.parts)
        return Tied(whole.judged, tuple(part for part in cut if part is not None))


def expected_values(measure: Measure, tied: Tied, values: Float64) -> Float64:
    """Return a measure's exact mean over all orders of tied documents, float64[queries].

    values: the measure in trec order, float64[queries].

    Raises BadValue if a measure without a formula has too many orders.
    """
    rule, found = _rule(measure), values.copy()
    if rule.worth == "nothing":
        return found
    seen, settings = tied._seen_by(measure), dict(measure.settings)
    for part in seen.parts:
        of = seen.judged if measure.by_intent else part.judged  # intents are those of all queries
        mean = rule.mean(of, k=measure.cutoff, **settings) if rule.mean is not None else None
        if mean is None:
            mean = _tried(measure, part.judged, rule)[:, 1]
        elif measure.by_intent:
            mean = mean[part.codes]
        found[part.codes] = mean
    return measure.asserted(found)


def extreme_values(measure: Measure, tied: Tied, values: Float64, strict: bool) -> tuple[Float64, Float64]:
    """Return a measure's (smallest, largest) value over all orders of tied documents, float64[queries] each.

    values: the measure in trec order, float64[queries].
    strict: if a measure without a rule has too many orders, raise BadValue; False gives NaN.
    """
    rule, low, high = _rule(measure), values.copy(), values.copy()
    if rule.worth == "nothing":
        return low, high
    plain, settings = measure.uncondensed, dict(measure.settings)
    for part in tied._seen_by(measure).parts:
        codes, of = part.codes, part.judged
        if rule.ends is not None:
            ends = rule.ends(of, k=measure.cutoff, **settings)
        elif rule.worth is not None:
            best, worst = _sorted(of, _worth(measure, of, rule.worth))
            ends = plain.computed(best), plain.computed(worst)  # asserted below
        elif strict:
            low[codes], _, high[codes] = _tried(measure, of, rule).T
            continue
        else:
            low[codes] = high[codes] = np.nan
            continue
        low[codes], high[codes] = _around(values[codes], *ends)
    return measure.asserted(low), measure.asserted(high)


def _rule(measure: Measure) -> OverTies:
    return TIED.get(measure.name) if measure.name in TIED else OverTies()


def _least_grade(measure: Measure) -> float:
    return float(dict(measure.settings).get("rel", 1))


def _around(values: Float64, one: Float64, other: Float64) -> tuple[Float64, Float64]:
    low, high = np.minimum(np.minimum(values, one), other), np.maximum(np.maximum(values, one), other)
    same = high - low <= _RELATIVE_ROUNDING * np.maximum(np.abs(high), 1.0)
    return np.where(same, values, low), np.where(same, values, high)


def _worth(measure: Measure, j: Judged, kind: Worth) -> Float64:
    settings = dict(measure.settings)
    relevant = j.grade >= _least_grade(measure)
    if kind == "gain":
        return gain_of(j.grade, str(settings.get("gain", "linear")))
    if (kind == "relevant" and settings.get("of") == "best") or (
        kind == "persistent" and settings.get("gain") == "scaled"
    ):
        return np.where(relevant, np.searchsorted(np.unique(j.grade), j.grade) + 1.0, 0.0)
    worth = {
        "grade": np.maximum(j.grade, 0),
        "judged": np.ones(len(relevant)),
        "assessed": j.grade >= 0,
        "wrong": (j.grade >= 0) & ~relevant,
    }
    return worth.get(kind, relevant).astype(np.float64)


def _sorted(j: Judged, worth: Float64) -> tuple[Judged, Judged]:
    rows = np.flatnonzero(j.last > j.first)
    groups, worth = Groups.of(j.query[rows], j.first[rows], j.last[rows]), worth[rows]
    count = np.bincount(groups.of_row, minlength=len(groups))
    place = groups.first[groups.of_row] + np.arange(len(rows)) - (np.cumsum(count) - count)[groups.of_row]
    others = (groups.size - count)[groups.of_row]

    def ordered(key: Float64, place: Int64) -> Judged:
        rank, grade = j.rank.copy(), j.grade.copy()
        rank[rows], grade[rows] = place, j.grade[rows[np.lexsort((key, groups.of_row))]]
        return replace(j, rank=rank, grade=grade)

    # Worth is nowhere negative: in the worst order all unjudged documents of a group stand first.
    return ordered(-worth, place), ordered(worth, place + others)


def _tried(measure: Measure, j: Judged, rule: OverTies) -> Float64:
    if measure.by_intent:
        raise BadValue(
            f"{measure}: only its mean over orders of ties is known; take ties=expected or ties=trec"
        )
    if rule.worth == "relevant":  # then relevant ones are alike, and so are others
        rel = _least_grade(measure)
        grade = np.select([j.grade >= rel, j.grade >= 0], [rel, 0.0], min(-1.0, rel - 1.0))
        j = replace(j, grade=grade)
    plain, found = measure.uncondensed, np.empty((len(j), 3))
    for query, orders in enumerate(_count_orders(j)):
        if orders > _LIMIT:
            raise BadValue(
                f"{measure}: query '{j.queries[query]}' has more than {_LIMIT:,} orders of its tied documents to try, "
                "and the measure has no formula for them; take ties=trec or another measure"
            )
        values = plain.per_query(_arranged(j.take(np.array([query]))))
        found[query] = values.min(), values.mean(), values.max()
    return found


# ----------
# All orders of tied documents, for measures whose mean or extremes have no formula.
#
# Documents of one grade are alike, and so are unjudged ones: only distinct sequences count, all equally likely.

_LIMIT = 20_000  # orders of one query that are tried
_UNJUDGED = float(np.iinfo(np.int16).min)


def _count_orders(j: Judged) -> list[int]:
    groups = Groups.in_join(j)
    orders = [1] * len(j)
    for group, counts in enumerate(_kinds(groups, j.grade)):
        orders[int(groups.query[group])] *= _multinomial(counts.values())
    return orders


def _arranged(j: Judged) -> Judged:
    groups = Groups.in_join(j)
    ways = [
        first - 1 + _orders(counts)
        for first, counts in zip(groups.first.tolist(), _kinds(groups, j.grade), strict=True)
    ]
    # Every choice of one order for each group.
    choice = np.unravel_index(np.arange(math.prod(map(len, ways))), [len(w) for w in ways])
    place = np.concatenate([way[at] for way, at in zip(ways, choice, strict=True)], axis=1)
    grade = j.grade[
        np.lexsort((j.grade, groups.of_row))
    ]  # ascending within each group, as `_orders` lists places
    order = np.argsort(place, axis=1)
    rank = np.take_along_axis(place, order, axis=1).astype(np.int32).ravel()
    many = j.take(np.zeros(len(place), np.int64))
    return replace(many, rank=rank, first=rank, last=rank, grade=grade[order].ravel())


def _kinds(groups: Groups, grade: Grades) -> list[dict[float, int]]:
    cuts = np.searchsorted(groups.of_row, np.arange(len(groups) + 1)).tolist()
    found = []
    for group, size in enumerate(groups.size.tolist()):
        grades, counts = np.unique(grade[cuts[group] : cuts[group + 1]], return_counts=True)
        kinds = dict(zip(grades.tolist(), counts.tolist(), strict=True))
        if size > sum(kinds.values()):
            kinds[_UNJUDGED] = size - sum(kinds.values())
        found.append(kinds)
    return found


def _orders(kinds: dict[float, int]) -> Int64:
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


def _multinomial(counts: Iterable[int]) -> int:
    orders, total = 1, 0
    for count in counts:
        total += count
        orders *= math.comb(total, count)
    return orders
