"""A factorial study of systems as values: factors, the complete design, effects of levels, shares of variance."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.comparison import ComparisonMethod, Verdict
from weir.stats.power import Family, Reach, reach
from weir.stats.significance import Draws

__all__ = ["OTHERS", "Contrast", "Factor", "FactorEffect", "FactorStudy", "FactorialDesign", "VarianceSource"]

OTHERS = "others"
"""What a level of three or more is set against: the mean of all others."""


@dataclass(frozen=True)
class Factor:
    """A setting, or a part of systems, with its levels as they are written; the first is the one that others follow."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Contrast:
    """An effect as weights of systems: float64[K], whose sum is 0 and whose positive part sums to 1 or more.

    factors, levels: by number, of one factor or of two that interact.
    """

    factors: tuple[int, ...]
    levels: tuple[int, ...]
    weights: Float64


@dataclass(frozen=True)
class FactorialDesign:
    """Every combination of the levels of some factors, one system for each: the last factor varies fastest.

    Raises BadValue for fewer than two levels of a factor and for another number of systems.
    """

    factors: tuple[Factor, ...]
    systems: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.factors or min(self.shape) < 2:
            raise BadValue("a factorial study needs a factor, and each factor two levels or more")
        if math.prod(self.shape) != len(self.systems):
            raise BadValue(
                f"{len(self.systems)} systems do not fill the {math.prod(self.shape)} cells of a design"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each factor has."""
        return tuple(len(factor.levels) for factor in self.factors)

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The main effects, factor by factor, then the interactions of every two factors.

        Of two levels the second against the first, of more each against the mean of the others, averaged over all
        levels of the other factors. An interaction is how much larger the effect of one level is at another factor's
        level than at what that is set against.
        """
        count = len(self.factors)
        alone = [(number,) for number in range(count)]
        return tuple(
            contrast
            for numbers in [*alone, *itertools.combinations(range(count), 2)]
            for contrast in self._contrasts(numbers)
        )

    def _contrasts(self, numbers: tuple[int, ...]) -> list[Contrast]:
        """The contrasts of one factor, or of an interaction."""
        choices = [[1] if self.shape[n] == 2 else list(range(self.shape[n])) for n in numbers]
        found = []
        for levels in itertools.product(*choices):
            chosen = dict(zip(numbers, levels, strict=True))
            axes = [_against(size, chosen.get(n)) for n, size in enumerate(self.shape)]
            found.append(Contrast(numbers, levels, reduce(np.multiply.outer, axes).reshape(-1)))
        return found


def _against(size: int, level: int | None) -> Float64:
    """Weights of the levels of a factor: one level against the others, or the mean of all for None."""
    if level is None:
        return np.full(size, 1 / size)
    weights = np.full(size, -1 / (size - 1))
    weights[level] = 1
    return weights


@dataclass(frozen=True)
class FactorEffect:
    """What a level of a factor does, or two levels of two factors together.

    levels, against: of each factor; mean, other: of the systems on either side, None for an interaction; difference:
    the first minus the second, with an interval that holds for all effects of the study together, None for fewer
    queries than `fewest`; p, adjusted: before and after the correction over all effects; effect: Hedges' g, None
    across collections; won, lost, tied: queries by the sign of their difference; verdict: what the levels are.
    """

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    mean: float | None
    other: float | None
    difference: float
    low: float | None
    high: float | None
    p: float
    adjusted: float
    effect: float | None
    won: int
    lost: int
    tied: int
    verdict: Verdict


@dataclass(frozen=True)
class VarianceSource:
    """A source of variance among the scores of all systems on all queries.

    df: degrees of freedom; squares: sum of squares; share: of that of all sources; eta: generalised eta squared, None
    for what is no effect of factors; p, adjusted: that levels dealt at random within each query give as much, before
    and after the correction over all that are tested, None for what is not.
    """

    source: str
    df: int
    squares: float
    share: float
    eta: float | None
    p: float | None
    adjusted: float | None


@dataclass(frozen=True)
class FactorStudy:
    """What one measure on one collection, or over several, says about the factors in which systems differ.

    count: queries; collections: over which, () for one alone; left_out: queries that not all systems have a value
    for; systems: how many; geometric: values are logarithms; notes: what the design lacks, in sentences.
    """

    dataset: str
    measure: str
    count: int
    collections: tuple[str, ...]
    left_out: int
    factors: tuple[Factor, ...]
    systems: int
    effects: tuple[FactorEffect, ...]
    sources: tuple[VarianceSource, ...]
    method: ComparisonMethod
    geometric: bool = False
    notes: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """What the tests swap levels on: queries, or collections where these are a sample too."""
        return "collections" if self.method.interval == "two-level" and self.collections else "queries"

    @property
    def reach(self) -> Reach:
        """Whether the tests of its effects can find anything."""
        units = self.count if self.unit == "queries" else len(self.collections)
        m = self.method
        family = Family(len(self.effects), 1, m.correct)
        return reach(m.test, units, m.alpha, family, Draws(m.draws, m.seed))
