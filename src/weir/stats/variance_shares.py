"""Where the variance of scores comes from: collections, queries, the factors of systems, and what is left."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.core.strings import Float64, Int64
from weir.stats.bootstrap import RESAMPLES
from weir.stats.comparison import ComparisonMethod
from weir.stats.corrections import adjusted
from weir.stats.factorial import Factor, VarianceSource
from weir.stats.resampling import BLOCK_CELLS
from weir.stats.significance import Draws, p_values

__all__ = ["HIGHER", "randomised_p", "variance_shares"]

HIGHER = "higher interactions"
"""Those of three factors or more, together."""

_ROUNDING = 1e-11
_WORK_CELLS = 300_000_000  # values that the deals of one source move: some seconds
_LEAST_DEALS = 999


@dataclass(frozen=True)
class _Squares:
    """A source before its share is known; axes: the factors it is of, None for what is not tested."""

    source: str
    df: int
    squares: float
    axes: tuple[int, ...] | None = None


def variance_shares(
    parts: Sequence[Float64], factors: Sequence[Factor], method: ComparisonMethod
) -> tuple[VarianceSource, ...]:
    """Sums of squares of collections, queries, factors, their interactions of two, all higher ones, and the rest.

    parts: float64[K, Q] for each collection, systems in the order of a `FactorialDesign`. What is left is how systems
    differ from query to query otherwise than on the mean. Generalised eta squared sets an effect's sum of squares
    over its own, those of collections and queries, and what is left. p-values deal the levels of a factor at random
    within each query; those of an interaction its residuals by rows and by columns. Source: classical analysis of
    variance; Olejnik and Algina 2003 (generalised eta squared); Pesarin and Salmaso 2010, chapter 6 (dealing).
    """
    values = np.concatenate(list(parts), axis=1)
    shape = tuple(len(factor.levels) for factor in factors)
    found = [*_between(parts, values), *_of_factors(values, factors, shape)]
    if len(parts) > 1:
        found.append(_by_collection(parts, values))
    total = float(np.square(values - values.mean()).sum())
    left = values.size - 1 - sum(one.df for one in found)
    found.append(_Squares("residual", left, max(0.0, total - sum(one.squares for one in found))))
    sources = [_shared(one, found, total) for one in found]
    tested = [n for n, one in enumerate(found) if one.axes is not None]
    p = np.array([randomised_p(values, shape, found[n].axes or (), method) for n in tested])
    corrected = adjusted(p, method.correct)
    for number, one, both in zip(tested, p.tolist(), corrected.tolist(), strict=True):
        sources[number] = replace(sources[number], p=one, adjusted=both)
    return tuple(sources)


def randomised_p(
    values: Float64, shape: tuple[int, ...], axes: tuple[int, ...], method: ComparisonMethod
) -> float:
    """The share of deals of the levels of these factors, within each query, that give as large a sum of squares.

    values: float64[K, Q]. Of factors with two levels alone this is the paired randomisation test of their contrast.
    Deals are method.draws of them, at most 10,000 of three levels or more and fewer for very many queries.
    """
    effect = _projected(values.reshape(*shape, -1), axes, len(shape))
    sizes = tuple(shape[axis] for axis in axes)
    effect = effect.reshape(*sizes, -1)
    draws = Draws(method.draws, method.seed)
    if max(sizes) == 2:
        row = effect[(1,) * len(sizes)]
        row = np.where(np.abs(row) > _ROUNDING * np.abs(values).max(), row, 0.0)
        return float(p_values("permutation", np.stack([row, np.zeros_like(row)]), draws=draws)[0])
    observed = float(np.square(effect.sum(axis=-1)).sum())
    most = max(_LEAST_DEALS, min(draws.count, RESAMPLES, _WORK_CELLS // effect.size))
    threshold = observed - _ROUNDING * float(np.abs(effect).sum()) ** 2
    larger = sum(
        int(np.count_nonzero(block >= threshold)) for block in _dealt(effect, Draws(most, draws.seed))
    )
    return (larger + 1) / (most + 1)


def _dealt(effect: Float64, draws: Draws) -> Iterator[Float64]:
    """Sums of squares of the sums over queries when each factor's levels are dealt anew within each query, in blocks.

    effect: float64[L, Q], or float64[L, M, Q] of two factors.
    """
    generator = draws.generator()
    by_query = np.moveaxis(effect, -1, 0)
    rows = max(1, BLOCK_CELLS // effect.size)
    for start in range(0, draws.count, rows):
        count = min(rows, draws.count - start)
        found = np.broadcast_to(by_query, (count, *by_query.shape))
        for axis, size in enumerate(effect.shape[:-1]):
            order: Int64 = generator.random((count, len(by_query), size)).argsort(axis=-1)
            wide = [1] * (effect.ndim - 1)
            wide[axis] = size
            found = np.take_along_axis(found, order.reshape(count, len(by_query), *wide), axis=2 + axis)
        yield np.asarray(np.square(found.sum(axis=1)).reshape(count, -1).sum(axis=1))


def _between(parts: Sequence[Float64], values: Float64) -> list[_Squares]:
    """Collections, where there are several, and the queries within them."""
    systems, queries = values.shape
    among = systems * sum(p.shape[1] * float(p.mean() - values.mean()) ** 2 for p in parts)
    within = systems * sum(float(np.square(p.mean(axis=0) - p.mean()).sum()) for p in parts)
    collections = [_Squares("collections", len(parts) - 1, among)] if len(parts) > 1 else []
    return [*collections, _Squares("queries", queries - len(parts), within)]


def _of_factors(values: Float64, factors: Sequence[Factor], shape: tuple[int, ...]) -> list[_Squares]:
    """Each factor, each interaction of two, and all higher interactions together."""
    means, each = values.mean(axis=1).reshape(shape), range(len(factors))
    found = []
    for axes in [*((axis,) for axis in each), *itertools.combinations(each, 2)]:
        name = " × ".join(factors[axis].name for axis in axes)
        sizes = [shape[axis] for axis in axes]
        apart = float(np.square(_projected(means, axes, len(shape))).sum()) * values.size / math.prod(sizes)
        found.append(_Squares(name, math.prod(size - 1 for size in sizes), apart, axes))
    if len(factors) > 2:
        systems = float(np.square(means - means.mean()).sum()) * values.shape[1]
        rest = means.size - 1 - sum(one.df for one in found)
        higher = max(0.0, systems - sum(one.squares for one in found))
        found.append(_Squares(HIGHER, rest, higher))
    return found


def _by_collection(parts: Sequence[Float64], values: Float64) -> _Squares:
    """How systems differ from collection to collection otherwise than on the mean of all queries."""
    apart = [_systems_squares(p) for p in parts]
    return _Squares(
        "systems × collections",
        (len(values) - 1) * (len(parts) - 1),
        max(0.0, sum(apart) - _systems_squares(values)),
    )


def _systems_squares(values: Float64) -> float:
    return float(np.square(values.mean(axis=1) - values.mean()).sum() * values.shape[1])


def _projected(table: Float64, axes: Sequence[int], factors: int) -> Float64:
    """What the levels of these factors do together: less each one's mean, and the mean over all other factors.

    table: float64[L1, L2, ...], an axis for each factor and those behind them, which stay; the axes of other factors
    are kept with length 1.
    """
    for axis in range(factors):
        mean = table.mean(axis=axis, keepdims=True)
        table = table - mean if axis in axes else mean
    return table


def _shared(one: _Squares, all_: Sequence[_Squares], total: float) -> VarianceSource:
    by_chance = sum(o.squares for o in all_ if o.axes is None and o.source != HIGHER)
    against = one.squares + by_chance
    eta = one.squares / against if one.axes is not None and against else None
    return VarianceSource(
        one.source, one.df, one.squares, one.squares / total if total else math.nan, eta, None, None
    )
