"""Randomised Tukey HSD: all pairs of many systems at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.stats.resampling import BLOCK_CELLS
from weir.stats.significance import Draws, Pairs, significance

__all__ = ["ranges", "tukey_test"]

_LEAST_SHUFFLES = 32
_ROUNDING = 1e-11


def _smallest(units: int, systems: int, draws: Draws) -> float:
    """The chance that deals give all values of one system to one, and all of another to one other."""
    return max((systems * (systems - 1.0)) ** (1 - units), 1 / (draws.count + 1))


@significance("tukey", drawn=True, familywise=True, smallest=_smallest)
def tukey_test(values: Float64, pairs: Pairs, draws: Draws) -> Float64:
    """Randomised Tukey HSD: is a difference larger than the largest one among exchangeable systems?

    The values of each query are dealt to the systems at random; the p-value of a pair is (b + 1) / (B + 1) for b
    of B deals in which the range of the means reaches the pair's difference. It holds for all pairs together,
    under the hypothesis that all systems are equal: one system far from the rest widens the range for every
    pair, and then Holm's correction of another test finds more. Source: Carterette 2012.
    """
    means = values.mean(axis=1)
    observed = np.abs(means[pairs[:, 0]] - means[pairs[:, 1]])
    tolerance = _ROUNDING * float(np.abs(means).max())
    drawn = np.sort(np.concatenate(list(ranges(values, draws))))
    larger = len(drawn) - np.searchsorted(drawn, observed - tolerance)
    p: Float64 = (larger + 1) / (draws.count + 1)
    return p


def ranges(values: Float64, draws: Draws) -> Iterator[Float64]:
    """Largest minus smallest mean in each deal, in blocks.

    A deal shuffles the values of each query and then turns them by a random number of places; every shuffle of a
    block meets every turn of it. Each deal alone is uniform over all ways to deal. Deals of different shuffles are
    independent; those that share one, at most 32 or a tenth of the queries, have uncorrelated means. To turn values is
    to multiply their Fourier coefficients by roots of unity, so the sums over queries are products of matrices.
    """
    systems, queries = values.shape
    first, second = draws.generator().spawn(2)
    centred = np.ascontiguousarray((values - values.mean(axis=0)).T)
    roots = np.exp(2j * np.pi * np.outer(np.arange(1, systems // 2 + 1), np.arange(systems)) / systems)
    turns = max(_LEAST_SHUFFLES, min(queries // 10, math.isqrt(draws.count)))
    shuffles = min(-(-draws.count // turns), max(1, BLOCK_CELLS // (turns * systems)))
    together = max(1, BLOCK_CELLS // (systems * (turns + shuffles)))
    done = 0
    while done < draws.count:
        sums = np.zeros((len(roots), turns, shuffles), np.complex128)
        for start in range(0, queries, together):
            rows = centred[start : start + together]
            shape = (len(rows), shuffles, systems)
            shuffled = first.permuted(np.broadcast_to(rows[:, None], shape), axis=2)
            parts = np.fft.rfft(shuffled)[..., 1:].transpose(2, 0, 1)  # the first is the mean, which is zero
            places: NDArray[np.int32] = second.integers(0, systems, (len(rows), turns), np.int32)
            sums += roots[:, places.T] @ np.ascontiguousarray(parts)
        mean_zero = np.concatenate([np.zeros((1, turns, shuffles)), sums])
        dealt = np.fft.irfft(mean_zero, systems, axis=0) / queries
        found = np.ptp(dealt, axis=0).T.reshape(-1)[: draws.count - done]
        done += len(found)
        yield found
