"""Tests of whether two systems differ, by name: `--test permutation` finds them here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.registry import Registry
from weir.stats.bootstrap import SEED

__all__ = [
    "DRAWS",
    "TEST",
    "TESTS",
    "Detection",
    "Draws",
    "Pairs",
    "Significance",
    "all_pairs",
    "p_values",
    "significance",
]

TEST = "permutation"
"""The test that is made unless another is named."""

DRAWS = 100_000

Pairs: TypeAlias = NDArray[np.int64]
"""Numbers of two systems in each row, int64[P, 2]; the difference is the first minus the second."""


@dataclass(frozen=True)
class Draws:
    """How often a test draws, and from which seed; part of every result that comes from drawing."""

    count: int = DRAWS
    seed: int = SEED

    def generator(self) -> np.random.Generator:
        """The generator of these draws, from its beginning."""
        return np.random.default_rng(self.seed)


Function: TypeAlias = Callable[[Float64, Pairs, Draws], Float64]


def _no_bound(units: int, systems: int, draws: Draws) -> float:
    return 0.0


@dataclass(frozen=True)
class Detection:
    """How a test decides on many rows of differences at once, float64[R, n], as simulations of its power need it.

    p: the p-value of each row, for few columns; found: whether the p-value of each row is below a level, for some more;
    None where the rows are found that the paired t-test finds. For many columns it finds what the t-test finds.
    """

    p: Callable[[Float64], Float64] | None = None
    found: Callable[[Float64, float], NDArray[np.bool_]] | None = None


@dataclass(frozen=True)
class Significance:
    """A test of many pairs at once.

    function: takes the values of the systems, float64[K, Q], the pairs and the draws, and gives the two-sided
    p-value of each pair; drawn: whether it draws; familywise: whether its p-values hold for all pairs together;
    smallest: no p-value is below this, by the number of queries or datasets, that of systems, and the draws;
    detection: None for a test of which no smallest mean difference can be said that it finds.
    """

    name: str
    function: Function
    drawn: bool
    familywise: bool
    smallest: Callable[[int, int, Draws], float] = _no_bound
    detection: Detection | None = None

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


TESTS: Registry[Significance] = Registry("test")


def significance(
    name: str,
    *,
    drawn: bool = False,
    familywise: bool = False,
    smallest: Callable[[int, int, Draws], float] = _no_bound,
    detection: Detection | None = None,
) -> Callable[[Function], Function]:
    """Register the decorated function as a test of differences between systems; arguments as in `Significance`."""

    def register(function: Function) -> Function:
        TESTS.add(name, Significance(name, function, drawn, familywise, smallest, detection))
        return function

    return register


def p_values(test: str, values: Float64, pairs: Pairs | None = None, draws: Draws | None = None) -> Float64:
    """Two-sided p-values of the differences between systems, float64[P].

    values: float64[K, Q], a row for each system and a column for each query, without NaN; pairs: which rows to
    compare, by default each with each later one. Raises BadValue for fewer than two systems or two queries,
    for values that are not numbers and for fewer than one draw, UnknownName for another test.
    """
    found = TESTS.get(test)
    draws = draws or Draws()
    if values.ndim != 2 or values.shape[0] < 2:
        raise BadValue("a test needs the values of at least two systems")
    if values.shape[1] < 2:
        raise BadValue(f"a test needs at least two queries that all systems share; found {values.shape[1]}")
    if not np.isfinite(values).all():
        raise BadValue("a test needs a number for each system and query; some are undefined or infinite")
    if draws.count < 1:
        raise BadValue(f"the number of draws is {draws.count}; expected at least 1")
    pairs = all_pairs(len(values)) if pairs is None else np.asarray(pairs, np.int64).reshape(-1, 2)
    return found.function(values, pairs, draws)


def all_pairs(systems: int) -> Pairs:
    """Each system with each later one, int64[P, 2]."""
    return np.stack(np.triu_indices(systems, 1), axis=1).astype(np.int64)
