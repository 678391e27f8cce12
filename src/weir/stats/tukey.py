"""Randomised Tukey HSD: all pairs of many systems at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.stats.resampling import BLOCK
from weir.stats.significance import Draws, Pairs, significance

__all__ = ["ranges", "tukey_test"]

SHARED = 32
_ROUNDING = 1e-12


@significance("tukey", drawn=True, familywise=True)
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

    A deal shuffles the values of each query and then turns them by a random number of places; 32 deals share a
    shuffle. Each deal alone is uniform over all ways to deal; those that share a shuffle have uncorrelated means.
    """
    systems, queries = values.shape
    generator = draws.generator()
    by_query = np.ascontiguousarray(values.T)
    shuffles = max(1, BLOCK // (queries * systems * max(SHARED, systems)))
    for start in range(0, draws.count, shuffles * SHARED):
        wanted = min(shuffles * SHARED, draws.count - start)
        count = -(-wanted // SHARED)
        shuffled = generator.permuted(np.broadcast_to(by_query, (count, *by_query.shape)), axis=2)
        turned = _turned(shuffled).reshape(-1, systems)
        drawn: NDArray[np.int32] = generator.integers(0, systems, (count, SHARED, queries), np.int32)
        at = drawn + (np.arange(count * queries, dtype=np.int32) * systems).reshape(count, 1, queries)
        means = np.matmul(np.full(queries, 1 / queries), turned.take(at.reshape(-1, queries), axis=0))
        yield np.ptp(means, axis=1)[:wanted]


def _turned(shuffled: Float64) -> Float64:
    """Each row turned by each number of places, float64[..., K, K]."""
    systems = shuffled.shape[-1]
    twice = np.concatenate([shuffled, shuffled[..., :-1]], axis=-1)
    turned = np.empty((*shuffled.shape, systems))
    for places in range(systems):
        turned[..., places, :] = twice[..., places : places + systems]
    return turned
