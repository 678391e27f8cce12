"""Random samples of queries and bootstrap intervals, from one stated seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.scores import Scores, averaged
from weir.core.strings import Float64
from weir.errors import BadValue

# Random signs and random samples of queries, shared by all systems, in bounded memory.
#
# A sum under random signs is linear, so one product of a block of signs with the values of K systems serves all
# K(K-1)/2 pairs; so it is with counts of samples drawn with replacement.

BLOCK_CELLS = 2_000_000

_SIGNS = np.where(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) > 0, 1.0, -1.0)
_COMMON_COUNTS = 5


def sign_sums(values: Float64, draws: int, generator: np.random.Generator) -> Iterator[Float64]:
    """Sums over queries under random signs, in blocks of shape [draws of the block, K].

    values: float64[K, Q]. Each draw takes whole 64-bit words of the stream, so it depends neither on the other
    systems nor on the size of the blocks.
    """
    systems, queries = values.shape
    words = -(-queries // 64)
    padded = np.zeros((systems, 64 * words))
    padded[:, :queries] = values
    rows = max(1, min(_cells(systems) // (64 * words), BLOCK_CELLS // systems))
    signs = np.empty((rows * words * 8, 8))
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        drawn = generator.integers(0, 2**64, count * words, np.uint64).astype("<u8", copy=False)
        some = signs[: 8 * len(drawn)]
        _SIGNS.take(drawn.view(np.uint8), axis=0, out=some, mode="clip")
        yield some.reshape(count, -1) @ padded.T


def resampled_sums(columns: Float64, resamples: int, generator: np.random.Generator) -> Iterator[Float64]:
    """Sums over samples of queries drawn with replacement, in blocks of shape [samples of the block, C].

    columns: float64[C, Q]. The sums are exact sums of `summable` values: no bit of them depends on the other
    columns, the size of the blocks or the library that multiplies.
    """
    by_query = summable(columns).T
    for counts in resampled_counts(columns.shape[1], resamples, generator, _cells(len(columns))):
        yield counts @ by_query


def resampled_counts(
    queries: int, resamples: int, generator: np.random.Generator, cells: int = BLOCK_CELLS
) -> Iterator[Float64]:
    """How often each query is in each sample of as many drawn with replacement, in blocks float64[rows, queries].

    Independent Poisson counts with a mean a little below 1 are, given their sum, a sample of that size drawn with
    replacement. So those whose sum is at most the number of queries are taken and filled up with single draws:
    the same distribution as drawing all of them one by one, at half the cost. cells: about how large a block
    is; the samples do not depend on it. Each block lies where the one before it lay. The streams are children of
    the generator, new ones with each call.
    """
    words, rare, single = generator.spawn(3)
    chances = _poisson(max(0.0, 1 - 2.5 / math.sqrt(queries)))
    rows, width = max(1, cells // queries), -(-queries // 4)
    counts, marks = np.empty((rows, queries)), np.empty((2, rows, queries), np.uint8)
    ones = np.ones(queries)
    todo = resamples
    while todo > 0:
        drawn = words.integers(0, 2**64, (rows, width), np.uint64).astype("<u8", copy=False)
        _poisson_counts(drawn.view(np.dtype("<u2"))[:, :queries], chances, rare, marks)
        counts[...] = marks[0]
        missing = (queries - counts @ ones).astype(np.int64)
        accepted = np.flatnonzero(missing >= 0)[:todo]
        if len(accepted) < rows:
            counts[: len(accepted)], missing = counts[accepted], missing[accepted]
        # A word of 32 bits times Q, over 2^32: no query is likelier than another by more than one part in 2^32 / Q.
        more = single.integers(0, 2**64, int(missing.sum()), np.uint64) >> np.uint64(32)
        more = (more * np.uint64(queries)) >> np.uint64(32)
        more += np.repeat(np.arange(len(accepted), dtype=np.uint64) * np.uint64(queries), missing)
        np.add.at(counts.reshape(-1), more.view(np.int64), 1.0)
        todo -= len(accepted)
        yield counts[: len(accepted)]


def summable(rows: Float64) -> Float64:
    """Each row rounded to multiples of a power of two, so that any sum of as many of its values is exact.

    A value moves by less than one part in 2^51 / Q of the largest: 2e-12 for 7,000 queries.
    """
    most = np.abs(rows).max(axis=1, keepdims=True) * rows.shape[1]
    unit = np.ldexp(1.0, np.frexp(most)[1] - 52)
    return np.asarray(np.round(rows / unit) * unit)


def _cells(columns: int) -> int:
    """How large a block is: what the cache holds for few columns, a matrix product for many."""
    return min(BLOCK_CELLS, max(BLOCK_CELLS // 20, columns * BLOCK_CELLS // 200))


def _poisson(mean: float) -> Float64:
    """Probabilities of the counts 0, 1, 2 ... as long as a double holds them beside 1, at least of the common ones."""
    chances = [math.exp(-mean)]
    while chances[-1] > 1e-17 or len(chances) <= _COMMON_COUNTS:
        chances.append(chances[-1] * mean / len(chances))
    return np.array(chances)


def _poisson_counts(
    drawn: NDArray[np.uint16], chances: Float64, rare: np.random.Generator, marks: NDArray[np.uint8]
) -> None:
    """A count for each random word of 16 bits, into marks[0]; marks[1] is scratch.

    The words decide on the first counts but for what their chances leave over in 1/65536; the rest, three in
    a thousand, is decided by the second generator, so the chances are those given and not rounded ones.
    """
    shares = np.floor(chances[:_COMMON_COUNTS] * 65536)
    remaining = chances * 65536
    remaining[:_COMMON_COUNTS] -= shares
    counts, above = marks
    counts[...] = 0
    for edge in np.cumsum(shares).astype(np.int64).tolist():
        if edge > 65535:
            break
        np.greater_equal(drawn, np.uint16(edge), out=above.view(np.bool_))
        np.add(counts, above, out=counts)
    open_ = np.flatnonzero(counts.reshape(-1) == _COMMON_COUNTS)
    if len(open_):
        at = np.searchsorted(np.cumsum(remaining) / remaining.sum(), rare.random(len(open_)), side="right")
        counts.reshape(-1)[open_] = at


# Bootstrap intervals of means over queries.

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 20_210_427


@dataclass(frozen=True)
class Interval:
    """A mean over queries and the bounds between which it would fall with other queries."""

    mean: float
    low: float
    high: float


def fewest(level: float = LEVEL) -> int:
    """The fewest values for which an interval of their mean is given: 6 at a level of 0.95.

    The range of n values contains the median of their population with probability 1 - 2^(1 - n). If that is below the
    level, no interval of resampled means can keep the level, as it lies within the range, and no permutation test can
    reach a p-value below 1 - level. Source: Thompson 1936 for the range.
    """
    count = 2
    while 1 - 2.0 ** (1 - count) < level:
        count += 1
    return count


def intervals(scores: Scores, level: float = LEVEL) -> list[Interval]:
    """The mean of each measure with its percentile bootstrap interval.

    Queries are resampled in the order of their identifiers and from the same seed for each measure, so
    the same values give the same interval in whatever order a file lists them and whatever else is measured.
    Where values are logarithms the bounds are of the geometric mean. Raises BadValue for a level outside 0..1.
    """
    values = scores.values[:, scores.id_order()]
    defined = ~np.isnan(values)
    bounds = np.full((len(values), 2), np.nan)
    # Measures that are defined for the same queries share the samples.
    for queries in np.unique(defined, axis=0) if len(values) else defined:
        rows = np.flatnonzero((defined == queries).all(axis=1))
        bounds[rows] = _bounds(values[rows][:, queries], np.random.default_rng(SEED), level, RESAMPLES)
    of_measures = []
    for measure, mean, (low, high) in zip(
        scores.measures, scores.mean_values().tolist(), bounds.tolist(), strict=True
    ):
        geometric = measure in scores.geometric
        of_measures.append(Interval(mean, averaged(low, geometric), averaged(high, geometric)))
    return of_measures


def interval(
    values: Float64,
    generator: np.random.Generator | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Bounds of the percentile bootstrap interval of the mean of values; NaN values are left out.

    generator: of the samples, by default that of SEED. NaN bounds where nothing is defined; bounds equal to the value
    where there is one. Raises BadValue for a level outside 0..1. Source: Efron and Tibshirani 1993, section 13.3; as
    scipy.stats.bootstrap(method="percentile").
    """
    draws = generator or np.random.default_rng(SEED)
    low, high = _bounds(values[None, ~np.isnan(values)], draws, level, resamples)[0]
    return float(low), float(high)


def ratio_interval(
    parts: tuple[Float64, Float64],
    generator: np.random.Generator | None = None,
    less: tuple[Float64, Float64] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Bounds of the percentile bootstrap interval of a ratio of two sums over queries, or of two ratios' difference.

    parts, less: (numerator, denominator) by query, float64[Q] each; with `less`, the interval is of the ratio of
    `parts` minus that of `less`, on the same samples. Samples with a denominator of 0 are left out; NaN bounds where
    all are. Raises BadValue for a level outside 0..1. Source: Efron and Tibshirani 1993, section 13.3.
    """
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    columns = np.stack([*parts, *(less or ())])
    draws = generator or np.random.default_rng(SEED)
    sums = np.concatenate(list(resampled_sums(columns, resamples, draws)))
    sums = sums[(sums[:, 1::2] > 0).all(axis=1)]
    if not len(sums):
        return math.nan, math.nan
    ratios = sums[:, 0::2] / sums[:, 1::2]
    statistics = ratios[:, 0] - (ratios[:, 1] if less else 0.0)
    low, high = np.quantile(statistics, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high


def resampled_means(values: Float64, generator: np.random.Generator, resamples: int) -> Float64:
    """Means of samples drawn with replacement, float64[resamples], in bounded memory; of rows float64[resamples, C]."""
    sums = np.concatenate(list(resampled_sums(np.atleast_2d(values), resamples, generator)))
    means: Float64 = sums / values.shape[-1]
    return means if values.ndim > 1 else means[:, 0]


def resampled_part_means(
    parts: Sequence[Float64], generator: np.random.Generator, resamples: int, geometric: bool = False
) -> Float64:
    """Means over parts of the means of samples of queries drawn within each, float64[resamples, C].

    parts: float64[C, Q] each; geometric: whether values are logarithms, so that the mean of a part is an exponential.
    """
    each = [resampled_means(part, generator, resamples) for part in parts]
    means: Float64 = np.mean(np.exp(each) if geometric else each, axis=0)
    return means


def _bounds(rows: Float64, generator: np.random.Generator, level: float, resamples: int) -> Float64:
    """Percentiles of the resampled means of each row, float64[P, 2]; a row of one value has both bounds at it."""
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    bounds = np.full((len(rows), 2), np.nan)
    count = rows.shape[1]
    if count == 0:
        return bounds
    constant = (rows == rows[:, :1]).all(axis=1)
    for number in np.flatnonzero(constant):
        bounds[number] = math.fsum(rows[number].tolist()) / count  # as Scores.mean_values rounds it
    if not constant.all():
        sums = np.concatenate(list(resampled_sums(rows[~constant], resamples, generator)))
        bounds[~constant] = np.quantile(sums / count, [(1 - level) / 2, (1 + level) / 2], axis=0).T
    return bounds
