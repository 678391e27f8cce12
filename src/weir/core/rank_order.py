"""Check whether row order, ranks and scores of rankings agree."""

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
"""Rows at a file's beginning whose ranks are read even if its scores only fall, rounded to whole rankings."""
CHANCE = 0.001
"""Rising scores are reported if random rows would rise less often than this."""
CHANCE_OF_RANKS = 0.05
"""The same for scores that are 1, 2, 3 ... or 0, 1, 2 ... in every ranking, as ranks are."""


@dataclass(frozen=True)
class OrderCounts:
    """Counts of rankings whose row order, ranks and scores agree or not; counts of blocks add up."""

    ranked: int = 0
    """Rankings with two rows of different ranks and different scores."""
    contrary: int = 0
    """Rankings of `ranked` with a lower score at a better rank."""
    reversed: int = 0
    """Rankings of `ranked` with lower scores at every better rank."""
    listed: int = 0
    """Rankings without ranks, with two different scores."""
    rising: int = 0
    """Rankings of `listed` whose scores only rise from row to row."""
    surprise: float = 0.0
    """-log of the probability that all `rising` rankings rise by chance."""
    fractional: int = 0
    """Number of ranks with a fraction."""
    count_up: bool = True
    """True if all scores are whole and rise from row to row."""
    exactly: bool = True
    """True if all scores are 1, 2, 3 ... or 0, 1, 2 ... in their ranking."""
    fall: bool = False
    """True if ranks only fall from row to row, and a ranking of two rows or more does not end at 0 or 1 in
    steps of 1."""
    rows: int = 0
    equal: bool = True
    """True if every row has a rank, and it equals the score."""

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
            self.equal and other.equal,
        )

    def swapped(self) -> bool:
        """True if the columns of ranks and scores are certainly exchanged."""
        return self.rows > 1 and self.count_up and bool(self.fractional or (self.exactly and self.fall))

    def scores_are_ranks(self) -> bool:
        """True if the scores are certainly ranks: equal to them in every row, or counting up in more rankings than by
        chance.
        """
        if self.ranked and self.equal:
            return True
        counts = self.exactly and self.count_up and self.rising == self.listed > 0
        return counts and not self.ranked and -self.surprise < log(CHANCE)

    def doubts(self) -> tuple[str, ...]:
        """Return a sentence for each sign that rankings are not meant to descend by score."""
        said = []
        if self.contrary:
            how = "scores rise from rank to rank, as distances do,"
            if 2 * self.reversed <= self.contrary:
                how = "ranks and scores say different orders"
            said.append(f"{how} in {self.contrary:,} of {counted(self.ranked, 'ranking')}")
        if self.rising and 2 * self.rising > self.listed:
            ways = lgamma(self.listed + 1) - lgamma(self.rising + 1) - lgamma(self.listed - self.rising + 1)
            chance, how = CHANCE, "scores rise from row to row, as distances do,"
            if self.exactly:
                chance, how = CHANCE_OF_RANKS, "scores count up from row to row, as ranks do,"
            if ways - self.surprise < log(chance):
                said.append(f"{how} in {self.rising:,} of {counted(self.listed, 'ranking')}")
        if self.fractional:
            said.append(f"{counted(self.fractional, 'rank')} with a fraction, as scores have")
        return tuple(said)


ORDER_COUNTS = "the highest score counts as the best"
"""Ends the sentence on doubts."""

Flags: TypeAlias = NDArray[np.bool_]


def _any_in(steps: Flags, begins: Int64) -> Flags:
    return np.logical_or.reduceat(np.append(steps, False), begins)


def order_counts(cuts: Int64, score: Float64, rank: Float64 | None = None) -> OrderCounts:
    """Return how often row order, or ranks if given, agree with scores.

    cuts: first row of each nonempty ranking, and the end.
    rank: NaN for a row without one.
    """
    if len(score) == 0:
        return OrderCounts()
    rankings = len(cuts) - 1
    exact = score
    with np.errstate(over="ignore"):
        score = score.astype(np.float32).astype(np.float64)  # closer scores are ties to trec_eval
    within = np.ones(len(score) - 1, np.bool_)
    within[cuts[1:-1] - 1] = False  # the last row of one ranking and the first of the next
    begins = cuts[:-1]

    rises = (score[1:] > score[:-1]) & within
    falls = (score[1:] < score[:-1]) & within
    has_ranks = np.zeros(rankings, np.bool_)
    ranked, fractional = (0, 0, 0), 0
    exchanged = (*_counts_up(cuts, exact, within), False)
    equal = rank is not None and bool((rank == exact).all())
    if rank is not None:
        exchanged = (False, False, False)
        known = ~np.isnan(rank)
        changes = (rank[1:] != rank[:-1]) & within & known[1:] & known[:-1]
        has_ranks = _any_in(changes, begins) & (np.minimum.reduceat(known, begins) > 0)
        fractional = int((rank[known] % 1 != 0).sum())
        if known.all():
            exchanged = _looks_exchanged(cuts, exact, rank, within)
        if has_ranks.any():
            of_row = np.repeat(np.arange(rankings), np.diff(cuts))
            rows = np.flatnonzero(has_ranks[of_row])
            ranked = _against_ranks(of_row[rows], rank[rows], score[rows])
    plain_rise = _any_in(rises, begins) & ~_any_in(falls, begins) & ~has_ranks
    listed = int((_any_in(rises | falls, begins) & ~has_ranks).sum())
    distinct = np.add.reduceat(np.append(rises, False).astype(np.int64), begins)[plain_rise] + 1
    surprise = sum(lgamma(n + 1) for n in distinct.tolist())
    return OrderCounts(
        *ranked, listed, int(plain_rise.sum()), surprise, fractional, *exchanged, len(exact), equal
    )


def _counts_up(cuts: Int64, score: Float64, within: NDArray[np.bool_]) -> tuple[bool, bool]:
    steps = score[1:] - score[:-1]
    if (score % 1 != 0).any() or ((steps <= 0) & within).any():
        return False, False
    return True, bool(np.isin(score[cuts[:-1]], (0, 1)).all() and ((steps == 1) | ~within).all())


def _looks_exchanged(
    cuts: Int64, score: Float64, rank: Float64, within: NDArray[np.bool_]
) -> tuple[bool, bool, bool]:
    count_up, exactly = _counts_up(cuts, score, within)
    if not count_up:
        return False, False, False
    begins, ends = cuts[:-1], rank[cuts[1:] - 1]
    gaps = _any_in((rank[:-1] - rank[1:] != 1) & within, begins) | (ends > 1) | (ends < 0)
    lower = _any_in((rank[1:] < rank[:-1]) & within, begins)
    fall = bool((lower & gaps).any()) and not bool(((rank[1:] >= rank[:-1]) & within).any())
    return True, exactly, fall


def _against_ranks(query: Int64, rank: Float64, score: Float64) -> tuple[int, int, int]:
    if ((rank[1:] < rank[:-1]) & (query[1:] == query[:-1])).any():
        order = np.lexsort((rank, query))
        query, rank, score = query[order], rank[order], score[order]
    # Rows of one rank are one group: only the best and the worst of them matter to the next.
    head = np.flatnonzero(np.concatenate([[True], (query[1:] != query[:-1]) | (rank[1:] != rank[:-1])]))
    most, least, group = np.maximum.reduceat(score, head), np.minimum.reduceat(score, head), query[head]
    next_to = group[1:] == group[:-1]
    opens = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    against = _any_in((most[1:] > least[:-1]) & next_to, opens)
    along = _any_in((least[1:] < most[:-1]) & next_to, opens)
    return int((against | along).sum()), int(against.sum()), int((against & ~along).sum())


def may_rise(cuts: Int64, score: Float64) -> bool:
    """Return False if scores certainly do not rise in most rankings; True is a guess.

    cuts: first row of each nonempty ranking, and the end.
    """
    begins, ends = cuts[:-1], cuts[1:] - 1
    first, second, last = score[begins], score[np.minimum(begins + 1, ends)], score[ends]
    if not (first <= second).any():  # as in most runs
        return False
    return bool(2 * np.count_nonzero((first <= second) & (first < last)) > np.count_nonzero(first != last))


def counts_of_block(
    cuts: Int64, score: Float64, ranks: Callable[[int], Float64 | None], before: OrderCounts | None
) -> OrderCounts:
    """Return `order_counts` of one block of a file's rankings.

    ranks: returns the ranks of the block's first n rows; called only near the file's start or if a score rises.
    before: sum of the earlier blocks' counts; None for the first block.
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
        return OrderCounts(ranked=differ, count_up=False, exactly=False, equal=False)
    return OrderCounts(listed=differ, count_up=False, exactly=False, equal=False)


def counts_of_scores(rankings: Iterable[Iterable[float]]) -> OrderCounts:
    """Return `order_counts` of rankings, each given as its scores in row order."""
    rows = [row for row in map(list, rankings) if row]
    cuts = np.cumsum([0, *map(len, rows)])
    return order_counts(cuts, np.array(list(chain.from_iterable(rows)), np.float64))
