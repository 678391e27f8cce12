"""Documents of equal score: the places they share, and what each measure makes of them.

A measure registers with `over_ties` its exact mean over all orders of tied documents and what a document is worth
to it. A measure that registers nothing is still served, by enumeration (`permutations.py`), within limits.
"""

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
"""As the measure's function, of a join: the mean over orders; None for settings that have no closed form."""

Worth: TypeAlias = Literal[
    "relevant", "gain", "persistent", "grade", "judged", "assessed", "wrong", "nothing"
]
"""What makes the worthier of two neighbours: relevance, gain, either as RBP has it, grade, being judged at all, a
grade from 0, being judged not relevant; or nothing does, and order is without effect."""


Ends: TypeAlias = Callable[..., tuple[Float64, Float64]]
"""As the measure's function: the values in the worst and the best order."""

F = TypeVar("F", bound=Mean)


@dataclass(frozen=True)
class OverTies:
    """A measure under ties: its mean over orders, and its value in the best order and the worst.

    worth: of two neighbours the worthier stands first in the best order (or in the worst), whatever stands around
    them; ends: the two values, where they are not those of sorted orders. Where all are None, orders are tried.
    """

    mean: Mean | None = None
    worth: Worth | None = None
    ends: Ends | None = None


TIED: Registry[OverTies] = Registry("measure under tie")


def over_ties(name: str, worth: Worth | None = None, ends: Ends | None = None) -> Callable[[F], F]:
    """Register the decorated function as the exact mean of a measure over all orders of tied documents."""

    def register(mean: F) -> F:
        TIED.add(name, OverTies(mean, worth, ends))
        return mean

    return register


@dataclass(frozen=True, eq=False)
class Groups:
    """Judged documents by the score they share: an untied one is a group of its own.

    of_row: int64[n] the group of each row of the join; query, first, size: int64[G] of each group its query, its
    first place, from 1, and how many documents share it, the unjudged too.
    """

    of_row: Int64
    query: Int64
    first: Int64
    size: Int64

    @staticmethod
    def of(query: NDArray[np.integer], first: NDArray[np.integer], last: NDArray[np.integer]) -> Groups:
        """The groups of rows sorted by query and first place."""
        opens = np.ones(len(query), np.bool_)
        opens[1:] = (query[1:] != query[:-1]) | (first[1:] != first[:-1])
        at = np.flatnonzero(opens)
        sizes = last[at].astype(np.int64) - first[at] + 1
        return Groups(np.cumsum(opens) - 1, query[at].astype(np.int64), first[at].astype(np.int64), sizes)

    @staticmethod
    def in_join(j: Judged) -> Groups:
        """The groups of the judged documents of a join."""
        return Groups.of(j.query, j.first, j.last)

    def __len__(self) -> int:
        return len(self.query)

    def sum(self, values: NDArray[np.generic]) -> Float64:
        """The sum over the rows of each group, float64[G]."""
        return np.bincount(self.of_row, values.astype(np.float64), len(self)).astype(np.float64, copy=False)

    def before(self, values: Float64) -> Float64:
        """For each group the sum over the groups of its query that stand before it, float64[G]."""
        so_far = np.cumsum(values) - values
        return so_far - so_far[np.searchsorted(self.query, self.query)]

    def places(self, kept: NDArray[np.bool_]) -> tuple[Int64, Int64]:
        """The places, from 1, of the groups that are kept, and the group of each."""
        which = np.flatnonzero(kept)
        place, of = stretches(self.first[which], self.first[which] + self.size[which])
        return place, which[of]

    def alike(self, others: Int64, kept: NDArray[np.bool_]) -> Iterator[tuple[int, int, Int64]]:
        """Groups of one size with as many others each: size, others and their numbers, for each such pair."""
        which = np.flatnonzero(kept)
        which = which[np.lexsort((others[which], self.size[which]))]
        size, many = self.size[which], others[which]
        cuts = np.flatnonzero((size[1:] != size[:-1]) | (many[1:] != many[:-1])) + 1
        for same in np.split(which, cuts):
            if len(same):
                yield int(self.size[same[0]]), int(others[same[0]]), same


def hypergeometric(population: int, marked: int, rows: int) -> Float64:
    """The chance that i draws without replacement hold x of the marked, float64[rows, marked + 1], i from 0.

    rows: at most population + 1. Every step adds positive terms, so that nothing cancels.
    """
    chance = np.zeros((rows, marked + 1))
    chance[0, 0] = 1.0
    x = np.arange(marked + 1)
    for drawn in range(rows - 1):
        hit = np.maximum(marked - x, 0) / (population - drawn)
        now = chance[drawn]
        chance[drawn + 1] = now * np.maximum(1.0 - hit, 0.0)
        chance[drawn + 1, 1:] += (now * hit)[:-1]
    return chance
