"""Whether the order in which rankings come and their scores agree: the one home of what is said and refused of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import lgamma, log
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.rounding import counted
from weir.core.strings import Float64, Int64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HEAD_ROWS = 1 << 12
"""Rows of a file whose ranks are looked at if its scores only fall, to whole rankings."""
CHANCE = 0.001
"""Scores that rise from row to row are said where rows in random order would do so less often than this."""


@dataclass(frozen=True)
class OrderCounts:
    """Count how often the given order of rankings and their scores agree; sums of parts are counts of the whole."""

    ranked: int = 0
    """Rankings with two rows of different ranks and different scores."""
    contrary: int = 0
    """Ranked ones in which a better rank has a lower score."""
    reversed: int = 0
    """Ranked ones in which every better rank has a lower score."""
    listed: int = 0
    """Rankings without ranks, with two different scores."""
    rising: int = 0
    """Listed ones whose scores only rise from row to row."""
    surprise: float = 0.0
    """Log of one over the chance that all of `rising` rise."""
    fractional: int = 0
    """Ranks with a fraction."""
    count_up: bool = True
    """All scores are whole and rise from row to row."""
    exactly: bool = True
    """All scores are 1, 2, 3 ... or 0, 1, 2 ... in their ranking."""
    fall: bool = False
    """Ranks only fall from row to row, and in some ranking of two rows do not end at 0 or 1 in steps of 1."""
    rows: int = 0
    """Rows that were looked at."""

    def __add__(self, other: OrderCounts) -> OrderCounts:
        return OrderCounts(
            self.ranked + other.ranked,
            self.contrary + other.contrary,
            self.reversed + other.reversed,
            self.listed + other.listed,
            self.rising + other.rising,
            self.surprise + other.surprise,
            self.fractional + other.fractional,
            self.count_up and other.count_up,
            self.exactly and other.exactly,
            self.fall or other.fall,
            self.rows + other.rows,
        )

    def swapped(self) -> bool:
        """Whether the ranks are certainly scores, and the scores ranks."""
        return self.rows > 1 and self.count_up and bool(self.fractional or (self.exactly and self.fall))

    def doubts(self) -> tuple[str, ...]:
        """A sentence on each thing that makes another order than that of scores probable."""
        said = []
        if self.contrary:
            how = "scores rise from rank to rank, as distances do,"
            if 2 * self.reversed <= self.contrary:
                how = "ranks and scores say different orders"
            said.append(f"{how} in {self.contrary:,} of {counted(self.ranked, 'ranking')}")
        if self.rising and 2 * self.rising > self.listed:
            ways = lgamma(self.listed + 1) - lgamma(self.rising + 1) - lgamma(self.listed - self.rising + 1)
            if ways - self.surprise < log(CHANCE):
                how = "scores rise from row to row, as distances do,"
                said.append(f"{how} in {self.rising:,} of {counted(self.listed, 'ranking')}")
        if self.fractional:
            said.append(f"{counted(self.fractional, 'rank')} with a fraction, as scores have")
        return tuple(said)


Flags: TypeAlias = NDArray[np.bool_]


def _any_in(steps: Flags, begins: Int64) -> Flags:
    """Whether any step is set in each stretch of rows; steps: between a row and the next."""
    return np.logical_or.reduceat(np.append(steps, False), begins)


def order_counts(cuts: Int64, score: Float64, rank: Float64 | None = None) -> OrderCounts:
    """Count how the order of rows, or their ranks, and their scores agree.

    cuts: int64[rankings + 1] the first row of each ranking, none of them empty; rank: float64[rows], NaN where a row
    has none; None where no row has one.
    """
    if len(score) == 0:
        return OrderCounts()
    rankings = len(cuts) - 1
    exact = score
    with np.errstate(over="ignore"):
        score = score.astype(np.float32).astype(np.float64)  # what is closer is a tie to trec_eval
    within = np.ones(len(score) - 1, np.bool_)
    within[cuts[1:-1] - 1] = False  # the last row of one ranking and the first of the next
    begins = cuts[:-1]

    rises = (score[1:] > score[:-1]) & within
    falls = (score[1:] < score[:-1]) & within
    has_ranks = np.zeros(rankings, np.bool_)
    ranked = contrary = backward = fractional = 0
    fall = count_up = exactly = False
    if rank is not None:
        known = ~np.isnan(rank)
        changes = (rank[1:] != rank[:-1]) & within & known[1:] & known[:-1]
        has_ranks = _any_in(changes, begins) & (np.minimum.reduceat(known, begins) > 0)
        fractional = int((rank[known] % 1 != 0).sum())
        steady = (
            (exact % 1 == 0).all() and bool(((exact[1:] > exact[:-1]) | ~within).all()) and bool(known.all())
        )
        if steady:
            first = exact[begins]
            count_up = True
            exactly = bool(np.isin(first, (0, 1)).all() and ((exact[1:] - exact[:-1] == 1) | ~within).all())
            ends = rank[cuts[1:] - 1]
            gaps = _any_in((rank[:-1] - rank[1:] != 1) & within, begins) | (ends > 1) | (ends < 0)
            lower = _any_in((rank[1:] < rank[:-1]) & within, begins)
            fall = bool((lower & gaps).any()) and not bool(((rank[1:] >= rank[:-1]) & within).any())
        if has_ranks.any():
            of_row = np.repeat(np.arange(rankings), np.diff(cuts))
            rows = np.flatnonzero(has_ranks[of_row])
            query, place, value = of_row[rows], rank[rows], score[rows]
            if ((place[1:] < place[:-1]) & (query[1:] == query[:-1])).any():
                order = np.lexsort((place, query))
                query, place, value = query[order], place[order], value[order]
            # Rows of one rank are one group: only the best and the worst of them matter to the next.
            head = np.flatnonzero(
                np.concatenate([[True], (query[1:] != query[:-1]) | (place[1:] != place[:-1])])
            )
            most, least, group = (
                np.maximum.reduceat(value, head),
                np.minimum.reduceat(value, head),
                query[head],
            )
            next_to = group[1:] == group[:-1]
            against = (most[1:] > least[:-1]) & next_to
            along = (least[1:] < most[:-1]) & next_to
            opens = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
            is_against, is_along = _any_in(against, opens), _any_in(along, opens)
            ranked = int((is_against | is_along).sum())
            contrary = int(is_against.sum())
            backward = int((is_against & ~is_along).sum())
    plain_rise = _any_in(rises, begins) & ~_any_in(falls, begins) & ~has_ranks
    listed = int((_any_in(rises | falls, begins) & ~has_ranks).sum())
    distinct = np.add.reduceat(np.append(rises, False).astype(np.int64), begins)[plain_rise] + 1
    surprise = sum(lgamma(n + 1) for n in distinct.tolist())
    return OrderCounts(
        ranked,
        contrary,
        backward,
        listed,
        int(plain_rise.sum()),
        surprise,
        fractional,
        count_up,
        exactly,
        fall,
        len(exact),
    )


def may_rise(cuts: Int64, score: Float64) -> bool:
    """Say whether `doubts` of rankings without ranks may hold anything, by three scores of each alone.

    A ranking that rises ends higher than it begins and does not begin with a fall; most rankings must.
    """
    first, last = score[cuts[:-1]], score[cuts[1:] - 1]
    second = score[np.minimum(cuts[:-1] + 1, cuts[1:] - 1)]
    return bool(2 * np.count_nonzero((first <= second) & (first < last)) > np.count_nonzero(first != last))


def counts_of_block(
    cuts: Int64, score: Float64, ranks: Callable[[int], Float64 | None], before: OrderCounts | None
) -> OrderCounts:
    """`order_counts` of one block of rankings after others; ranks are looked at where they can tell something.

    ranks: those of the first rows, as many as it is called with; None where there are none.

    Rows that fall from row to row are in the order of their scores: of their ranks the first of a file alone are read.
    """
    rises = score[1:] > score[:-1]
    rises[cuts[1:-1] - 1] = False
    if rises.any():
        return order_counts(cuts, score, ranks(len(score)))
    if before is None:
        head = max(1, int(np.searchsorted(cuts, HEAD_ROWS, "right")) - 1)
        before = order_counts(cuts[: head + 1], score[: cuts[head]], ranks(int(cuts[head])))
        return before + counts_of_block(cuts[head:] - cuts[head], score[cuts[head] :], ranks, before)
    if len(score) == 0:
        return OrderCounts()
    differ = int((score[cuts[:-1]] != score[cuts[1:] - 1]).sum())
    if before.ranked:
        return OrderCounts(ranked=differ, count_up=False, exactly=False)
    return OrderCounts(listed=differ, count_up=False, exactly=False)


def counts_of_scores(rankings: Iterable[Iterable[float]]) -> OrderCounts:
    """`order_counts` of the scores of each ranking, in their order."""
    rows = [row for row in map(list, rankings) if row]
    cuts = np.cumsum([0, *map(len, rows)])
    return order_counts(cuts, np.array(list(chain.from_iterable(rows)), np.float64))
