"""Preferences between systems or documents: win rates, and an order by the Bradley-Terry model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weir.core.results import ResultKind
from weir.core.rounding import change, count, counted, percent
from weir.core.strings import Float64, Int64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.stats.distributions import student_quantile
from weir.stats.label_agreement import few
from weir.stats.resampling import LEVEL, fewest, interval

NEWTON_STEPS = 100
CONVERGED = 1e-12
"""Largest change of a strength in the last step of Newton's method."""


@dataclass(frozen=True)
class Preference:
    """A person's preference between two systems or documents, for a query."""

    query: str
    first: str
    second: str
    outcome: float
    """1 if the first is preferred, -1 if the second is, 0 if neither."""


@dataclass(frozen=True)
class WinRate:
    """Wins, ties and losses of `first` against `second`."""

    first: str
    second: str
    comparisons: int
    queries: int
    wins: int
    """Number of comparisons that the first won."""
    ties: int
    losses: int
    rate: float
    """Mean over queries of the share of wins; a tie counts as half a win."""
    low: float
    """`low` to `high` is a 95% interval over queries; NaN for fewer than `fewest`."""
    high: float


@dataclass(frozen=True)
class Strength:
    """The strength of a system or document in the Bradley-Terry model."""

    name: str
    value: float
    """Logarithm of the strength, 0 on average; exp(difference) gives the odds of winning. NaN if undefined."""
    low: float
    """`low` to `high` is a 95% interval robust to dependent judgments of a query; NaN for fewer queries than
    `fewest`."""
    high: float


@dataclass(frozen=True)
class PreferenceOrder:
    """The win rates of all pairs, and the strengths of all systems or documents."""

    comparisons: int
    queries: int
    rates: tuple[WinRate, ...]
    strengths: tuple[Strength, ...]
    """Largest first."""
    note: str
    """Why there are no strengths; "" if there are."""


def preference_order(given: Iterable[Preference]) -> PreferenceOrder:
    """Return all pairs' win rates and the order by strength; raises BadValue without preferences."""
    preferences = list(given)
    if not preferences:
        raise BadValue("nobody has preferred anything yet")
    strengths, note = bradley_terry(preferences)
    queries = {one.query for one in preferences}
    return PreferenceOrder(len(preferences), len(queries), tuple(win_rates(preferences)), strengths, note)


def win_rates(preferences: Sequence[Preference]) -> list[WinRate]:
    """Return the win rate of each compared pair, names sorted; queries weigh the same."""
    names = sorted({name for one in preferences for name in (one.first, one.second)})
    rates = []
    for first, second in combinations(names, 2):
        outcomes = [
            (one.query, one.outcome if one.first == first else -one.outcome)
            for one in preferences
            if {one.first, one.second} == {first, second}
        ]
        if not outcomes:
            continue
        by_query: dict[str, list[float]] = {}
        for query, outcome in outcomes:
            by_query.setdefault(query, []).append((1 + np.sign(outcome)) / 2)
        means = np.array([np.mean(by_query[query]) for query in sorted(by_query)])
        signs = [float(np.sign(outcome)) for _, outcome in outcomes]
        numbers = (signs.count(1.0), signs.count(0.0), signs.count(-1.0))
        low, high = interval(means, unit=True)
        rates.append(
            WinRate(first, second, len(outcomes), len(means), *numbers, float(means.mean()), low, high)
        )
    return rates


def bradley_terry(preferences: Sequence[Preference]) -> tuple[tuple[Strength, ...], str]:
    """Return (maximum-likelihood strengths, largest first, ""), or ((), reason) if there are none."""
    # Bradley and Terry 1952. They are finite where nobody, alone or with others, has won or lost all comparisons
    # with the rest (Ford 1957). Intervals: the sandwich of Huber 1967 with a sum for each query, Student's t.
    names = sorted({name for one in preferences for name in (one.first, one.second)})
    number = {name: n for n, name in enumerate(names)}
    rows = np.array([(number[one.first], number[one.second]) for one in preferences])
    won = np.array([(1 + np.sign(one.outcome)) / 2 for one in preferences])
    wins = np.zeros((len(names), len(names)))
    np.add.at(wins, (rows[:, 0], rows[:, 1]), won)
    np.add.at(wins, (rows[:, 1], rows[:, 0]), 1 - won)
    reached = wins > 0
    for middle in range(len(names)):
        reached |= np.outer(reached[:, middle], reached[middle])
    if not (reached | np.eye(len(names), dtype=bool)).all():
        return (), (
            "no strengths by Bradley and Terry: some were never compared with the others, or won or lost each time"
        )
    value = np.zeros(len(names))
    for _ in range(NEWTON_STEPS):
        chance = _chances(value, rows)
        score = (np.bincount(rows[:, side], won - chance, len(names)) for side in (0, 1))
        step = np.linalg.pinv(_information(chance, rows, len(names))) @ np.subtract(*score)
        largest = float(np.abs(step).max())
        value += step / max(1.0, largest)
        if largest < CONVERGED:
            break
    value -= value.mean()
    chance = _chances(value, rows)
    query = np.unique([one.query for one in preferences], return_inverse=True)[1]
    queries = int(query.max()) + 1
    reach = np.full(len(names), math.nan)
    if queries >= fewest():
        sums = np.zeros((queries, len(names)))
        np.add.at(sums, (query, rows[:, 0]), won - chance)
        np.add.at(sums, (query, rows[:, 1]), chance - won)
        bread = np.linalg.pinv(_information(chance, rows, len(names)))
        covariance = bread @ (sums.T @ sums) @ bread * queries / (queries - 1)
        reach = student_quantile((1 + LEVEL) / 2, queries - 1) * np.sqrt(np.maximum(0.0, np.diag(covariance)))
    order = sorted(range(len(names)), key=lambda n: (-value[n], names[n]))
    return tuple(
        Strength(names[n], float(value[n]), float(value[n] - reach[n]), float(value[n] + reach[n]))
        for n in order
    ), ""


def _chances(value: Float64, rows: Int64) -> Float64:
    return np.asarray(1 / (1 + np.exp(value[rows[:, 1]] - value[rows[:, 0]])))


def _information(chance: Float64, rows: Int64, count: int) -> Float64:
    weight, found = chance * (1 - chance), np.zeros((count, count))
    for one, other, sign in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, -1.0), (1, 0, -1.0)):
        np.add.at(found, (rows[:, one], rows[:, other]), sign * weight)
    return found


def preference_tables(results: Sequence[PreferenceOrder]) -> tuple[Table, ...]:
    """Return tables of pairs' win rates and of the order by strength."""
    tables = []
    for one in results:
        number = counted(one.comparisons, "comparison"), counted(one.queries, "query", "queries")
        head = f"{' on '.join(number)}{few(one.queries)}"
        rates = [["preferred", "to", "comparisons", "wins", "ties", "losses", "rate", "95% interval"]]
        rates += [
            [
                rate.first,
                rate.second,
                *map(count, (rate.comparisons, rate.wins, rate.ties, rate.losses)),
                percent(rate.rate),
                "-" if math.isnan(rate.low) else f"[{percent(rate.low)}, {percent(rate.high)}]",
            ]
            for rate in one.rates
        ]
        tables += [sentences(head), table_of(rates, keys=2)]
        if one.note:
            tables.append(sentences(one.note))
            continue
        strengths = [["order by Bradley and Terry", "log strength", "95% interval"]]
        strengths += [
            [
                s.name,
                change(s.value),
                "-" if math.isnan(s.low) else f"[{change(s.low)}, {change(s.high)}]",
            ]
            for s in one.strengths
        ]
        tables.append(table_of(strengths))
    return tuple(tables)


PREFERENCES = ResultKind("preferences", PreferenceOrder, preference_tables)
