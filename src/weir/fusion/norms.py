"""Normalisations: they bring the scores of different systems to one scale, for each query by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weir.core.strings import Float64, Int64
from weir.registry import Registry

__all__ = ["NORMS", "Norm", "ScoreLists"]


@dataclass(frozen=True, eq=False)
class ScoreLists:
    """The scores of one run: list q is score[ptr[q] : ptr[q + 1]], best first.

    score: float64[n], finite; ptr: int64[Q + 1].
    """

    score: Float64
    ptr: Int64

    @property
    def size(self) -> Int64:
        """int64[Q]: how long each list is."""
        return np.diff(self.ptr)

    def spread(self, values: Float64) -> Float64:
        """float64[n]: the value of its list for each row."""
        return np.repeat(values, self.size)

    def sums(self, values: Float64) -> Float64:
        """float64[Q]: the sum over each list, added from its top."""
        rows = np.repeat(np.arange(len(self.ptr) - 1), self.size)
        return np.bincount(rows, values, len(self.ptr) - 1).astype(np.float64, copy=False)

    def highest(self) -> Float64:
        """float64[Q]: the largest score of each list, 0 for an empty one."""
        return self._reduced(np.maximum)

    def lowest(self) -> Float64:
        """float64[Q]: the smallest score of each list, 0 for an empty one."""
        return self._reduced(np.minimum)

    def _reduced(self, function: np.ufunc) -> Float64:
        found = np.zeros(len(self.ptr) - 1)
        filled = np.flatnonzero(self.size)
        if len(filled):
            found[filled] = function.reduceat(self.score, self.ptr[filled])
        return found


Norm: TypeAlias = Callable[[ScoreLists], Float64]
NORMS: Registry[Norm] = Registry("normalisation")


@NORMS.register("none")
def none(lists: ScoreLists) -> Float64:
    """The score as it is."""
    return lists.score


@NORMS.register("minmax")
def minmax(lists: ScoreLists) -> Float64:
    """(score - lowest) / (highest - lowest); 1 where all scores of the list are equal. Source: Lee 1997."""
    low = lists.lowest()
    return _ratio(lists.score - lists.spread(low), lists.spread(lists.highest() - low), 1.0)


@NORMS.register("zscore")
def zscore(lists: ScoreLists) -> Float64:
    """(score - mean) / standard deviation (of the population); 0 where all scores of the list are equal.

    Called ZMUV too. A document that is not returned counts as an average one. Source: Montague and Aslam 2001.
    """
    deviation = lists.score - lists.spread(lists.sums(lists.score) / lists.size)
    spread = np.sqrt(lists.sums(deviation**2) / lists.size)
    flat = lists.highest() == lists.lowest()
    return _ratio(deviation, lists.spread(np.where(flat, 0.0, spread)), 0.0)


@NORMS.register("rank")
def rank(lists: ScoreLists) -> Float64:
    """1 - (rank - 1) / number of documents in the list. Source: Lee 1997."""
    place = np.arange(len(lists.score)) - np.repeat(lists.ptr[:-1], lists.size)
    return 1.0 - place / np.repeat(lists.size, lists.size)


@NORMS.register("sum")
def summed(lists: ScoreLists) -> Float64:
    """(score - lowest) / sum of these over the list; equal scores share 1 equally. Source: Montague and Aslam 2001."""
    raised = lists.score - lists.spread(lists.lowest())
    flat = lists.spread(1.0 / lists.size)
    return _ratio(raised, lists.spread(lists.sums(raised)), flat)


@NORMS.register("max")
def maximum(lists: ScoreLists) -> Float64:
    """Score / largest absolute score; 0 where all scores are 0. Source: the usual one, made to hold below 0 too."""
    most = np.maximum(np.abs(lists.highest()), np.abs(lists.lowest()))
    return _ratio(lists.score, lists.spread(most), 0.0)


def _ratio(top: Float64, bottom: Float64, otherwise: Float64 | float) -> Float64:
    """top / bottom, and `otherwise` where bottom is 0."""
    found = np.empty_like(top)
    found[:] = otherwise
    np.divide(top, bottom, out=found, where=bottom != 0)
    return found
