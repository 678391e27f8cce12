"""Groups of documents of equal score, and rules of measures for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.strings import Float64, Int64, stretches
from weir.registry import Registry

Mean: TypeAlias = Callable[..., Float64 | None]
"""Computes the mean over orders of a join, with the measure's signature; None for settings without a closed form."""

Worth: TypeAlias = Literal[
    "relevant", "gain", "persistent", "grade", "judged", "assessed", "wrong", "nothing"
]
"""The property by which the better of two tied documents is known, such as its gain; "nothing" if order does
not matter."""


Ends: TypeAlias = Callable[..., tuple[Float64, Float64]]
"""Computes the values in the worst and the best order, with the measure's signature."""

F = TypeVar("F", bound=Mean)


@dataclass(frozen=True)
class OverTies:
    """How a measure's mean, worst and best value over orders of ties are computed; None tries all orders."""

    mean: Mean | None = None
    worth: Worth | None = None
    """Property by which tied documents are sorted in the best order, and reversed in the worst."""
    ends: Ends | None = None
    """Computes worst and best value, if sorted orders do not give them."""


TIED: Registry[OverTies] = Registry("measure under tie")


def over_ties(name: str, worth: Worth | None = None, ends: Ends | None = None) -> Callable[[F], F]:
    """Return a decorator that registers a function as the named measure's exact mean over all orders of ties.

    worth: property by which tied documents are sorted in the best order.
    ends: computes worst and best value, if sorting does not give them.
    """

    def add_mean(mean: F) -> F:
        TIED.add(name, OverTies(mean, worth, ends))
        return mean

    return add_mean


@dataclass(frozen=True, eq=False)
class Groups:
    """Judged documents grouped by query and equal score; an untied document is a group of its own."""

    of_row: Int64
    """int64[n]: group of each row of the join."""
    query: Int64
    """int64[groups]."""
    first: Int64
    """int64[groups]: first rank, from 1."""
    size: Int64
    """int64[groups]: number of documents, unjudged documents included."""

    @staticmethod
    def of(query: NDArray[np.integer], first: NDArray[np.integer], last: NDArray[np.integer]) -> Groups:
        """Return the tie groups of rows sorted by query and first rank.

        first, last: lowest and highest rank that an order of ties can give each row.
        """
        opens = np.ones(len(query), np.bool_)
        opens[1:] = (query[1:] != query[:-1]) | (first[1:] != first[:-1])
        at = np.flatnonzero(opens)
        sizes = last[at].astype(np.int64) - first[at] + 1
        return Groups(np.cumsum(opens) - 1, query[at].astype(np.int64), first[at].astype(np.int64), sizes)

    @staticmethod
    def in_join(j: Judged) -> Groups:
        """Return the tie groups of the judged documents."""
        return Groups.of(j.query, j.first, j.last)

    def __len__(self) -> int:
        return len(self.query)

    def sum(self, values: NDArray[np.generic]) -> Float64:
        """Return the sum of row values in each group, float64[groups]."""
        return np.bincount(self.of_row, values.astype(np.float64), len(self)).astype(np.float64, copy=False)

    def before(self, values: Float64) -> Float64:
        """Return, for each group, the sum of finite values of its query's earlier groups, float64[groups]."""
        so_far = np.cumsum(values) - values
        return so_far - so_far[np.searchsorted(self.query, self.query)]

    def places(self, kept: NDArray[np.bool_]) -> tuple[Int64, Int64]:
        """Return (rank, number of its group) for all ranks of the groups marked True, int64[ranks] each."""
        which = np.flatnonzero(kept)
        place, of = stretches(self.first[which], self.first[which] + self.size[which])
        return place, which[of]

    def by_size_and_others(self, others: Int64, kept: NDArray[np.bool_]) -> Iterator[tuple[int, int, Int64]]:
        """Yield (size, others, group numbers) for each distinct pair (size, others) among the groups marked
        True.

        others: a number for each group, int64[groups].
        """
        which = np.flatnonzero(kept)
        which = which[np.lexsort((others[which], self.size[which]))]
        size, many = self.size[which], others[which]
        cuts = np.flatnonzero((size[1:] != size[:-1]) | (many[1:] != many[:-1])) + 1
        for same in np.split(which, cuts):
            if len(same):
                yield int(self.size[same[0]]), int(others[same[0]]), same


def hypergeometric(population: int, marked: int, rows: int) -> Float64:
    """Return the probability of x marked items (column) in i draws (row) without replacement, float64[rows,
    marked + 1].

    rows: at most population + 1.
    """
    # Every step adds positive terms, so that nothing cancels.
    chance = np.zeros((rows, marked + 1))
    chance[0, 0] = 1.0
    x = np.arange(marked + 1)
    for drawn in range(rows - 1):
        hit = np.maximum(marked - x, 0) / (population - drawn)
        now = chance[drawn]
        chance[drawn + 1] = now * np.maximum(1.0 - hit, 0.0)
        chance[drawn + 1, 1:] += (now * hit)[:-1]
    return chance
