"""Random samples of queries and bootstrap intervals, from one stated seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.measure import within_unit
from weir.stats.distributions import normal_quantile, student_quantile

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
_NO_VARIANCE = 1e-24


@dataclass(frozen=True)
class Interval:
    """A mean over queries and the bounds between which it would fall with other queries; NaN where there are none."""

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
    """The mean of each measure with its interval, as `mean_bounds` has it.

    Queries are resampled in the order of their identifiers and from the same seed for each measure, so
    the same values give the same interval in whatever order a file lists them and whatever else is measured.
    Where values are logarithms the bounds are of the geometric mean. Raises BadValue for a level outside 0..1.
    """
    values = scores.values[:, scores.id_order()]
    defined = ~np.isnan(values)
    unit = np.array([within_unit(measure) for measure in scores.measures], np.bool_)
    geometric = np.array([measure in scores.geometric for measure in scores.measures], np.bool_)
    bounds = np.full((len(values), 2), np.nan)
    # Measures that are defined for the same queries share the samples.
    for queries in np.unique(defined, axis=0) if len(values) else defined:
        alike = (defined == queries).all(axis=1)
        for logarithms in (False, True):
            rows = np.flatnonzero(alike & (geometric == logarithms))
            if len(rows):
                parts = [values[rows][:, queries]]
                bounds[rows] = mean_bounds(parts, level=level, unit=unit[rows], geometric=logarithms)
    means = scores.mean_values().tolist()
    return [Interval(mean, *or_nan(ends)) for mean, ends in zip(means, bounds.tolist(), strict=True)]


def or_nan(ends: Sequence[float]) -> tuple[float, float]:
    """Bounds with the one NaN that is equal to itself in tuples where there are none, as rows are compared."""
    low, high = (math.nan if math.isnan(end) else end for end in ends)
    return low, high


def interval(
    values: Float64,
    generator: np.random.Generator | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    unit: bool = False,
) -> tuple[float, float]:
    """Bounds of the mean of values, as `mean_bounds` has them; NaN values are left out.

    generator: of the samples, by default that of SEED; unit: whether values lie within 0..1. Raises BadValue for a
    level outside 0..1.
    """
    rows = values[None, ~np.isnan(values)]
    return or_nan(mean_bounds([rows], generator, level, resamples, np.array([unit]))[0].tolist())


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
    all are, and for fewer than `fewest` queries. Raises BadValue for a level outside 0..1. Source: Efron and Tibshirani
    1993, section 13.3.
    """
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    columns = np.stack([*parts, *(less or ())])
    if columns.shape[1] < fewest(level):
        return math.nan, math.nan
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


# Intervals of means over queries, and over parts of them that weigh the same.

FEW_VALUES = 50
"""Values of each part from which on percentiles of resampled means keep the level; of fewer they are too narrow."""
APART_VALUES = 10
"""Values away from an end of the scale, 0 or 1, from which on they do so where the others lie at that end."""
ADDED_VALUES, ADDED_APART_VALUES = 2.0, 4.0
"""How many values at each end are added where all lie at one, over those that lie elsewhere plus the second."""
POOLED_VALUES = 2.0
"""As how many values of its own the variance of all parts counts in that of a part of two among much larger ones."""


def mean_bounds(
    parts: Sequence[Float64],
    generator: np.random.Generator | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    unit: NDArray[np.bool_] | None = None,
    geometric: bool = False,
) -> Float64:
    """Bounds of the mean over parts of the means of their values, float64[C, 2]; NaN where none keep the level.

    parts: float64[C, Q] each, without NaN; generator: of the samples, by default that of SEED; unit: bool[C], whether
    means of a row lie within 0..1; geometric: whether values are logarithms of some within 0..1, so that the mean of a
    part is an exponential. From FEW_VALUES values of each part on, percentiles of resampled means, unless nearly all
    lie at an end of the scale; of fewer, those of `few_bounds`; where all of one part are 0 or 1, those of
    `share_bounds`. There are none for fewer than `fewest` values, a part of a single one, and values that are all equal
    and no shares. Raises BadValue for a level outside 0..1. Source: Efron and Tibshirani 1993, section 13.3; as
    scipy.stats.bootstrap(method="percentile"). Coverage: docs/calibration.md.
    """
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")
    rows, counts = len(parts[0]), [part.shape[1] for part in parts]
    bounds = np.full((rows, 2), np.nan)
    if sum(counts) < fewest(level) or min(counts) < 2:
        return bounds
    unit = np.zeros(rows, np.bool_) if unit is None else unit
    at_ends = np.stack([sum((part == end).sum(axis=1) for part in parts) for end in (0.0, 1.0)])
    total = sum(counts)
    plain = unit & (not geometric)
    shares = (at_ends.sum(axis=0) == total) & plain & (len(parts) == 1)
    few = ~shares & ((min(counts) < FEW_VALUES) | (plain & (total - at_ends.max(axis=0) < APART_VALUES)))
    for row in np.flatnonzero(shares).tolist():
        bounds[row] = share_bounds(int(at_ends[1, row]), total, level)
    for row in np.flatnonzero(few).tolist():
        bounds[row] = few_bounds([part[row] for part in parts], level, bool(plain[row]), geometric)
    many = ~shares & ~few & np.logical_or.reduce([(part != part[:, :1]).any(axis=1) for part in parts])
    if many.any():
        draws = generator or np.random.default_rng(SEED)
        chosen = [part[many] for part in parts]
        means = resampled_part_means(chosen, draws, resamples, geometric)
        bounds[many] = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0).T
    return np.clip(bounds, 0.0, 1.0) if geometric else bounds


def share_bounds(successes: float, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's bounds of a share, which is so many of a count. Source: Wilson 1927."""
    z2 = normal_quantile((1 + level) / 2) ** 2
    share = successes / count
    centre = (successes + z2 / 2) / (count + z2)
    reach = math.sqrt(z2 * (share * (1 - share) * count + z2 / 4)) / (count + z2)
    low, high = max(0.0, centre - reach), min(1.0, centre + reach)
    return 0.0 if successes <= 0 else low, 1.0 if successes >= count else high


def few_bounds(
    parts: Sequence[Float64], level: float = LEVEL, unit: bool = False, geometric: bool = False
) -> tuple[float, float]:
    """Student's bounds of the mean over parts of the means of their values, float64[Q] each; NaN without a variance.

    Variances are those within parts, degrees of freedom Welch's. The variance of a part that is much smaller than
    others is drawn to that of all, which is known better; that of equal values is at least that of all, and what one
    value more at the mean of all would give. unit: values lie within 0..1, where a variance is too small
    when nearly all lie at one end: up to ADDED_VALUES / ADDED_APART_VALUES values more at each end make up for that,
    the fewer the more values lie elsewhere; the bounds are cut at 0 and 1. geometric: as of `mean_bounds`. Sources:
    Welch 1947; Agresti and Coull 1998 for values that are added.
    """
    if geometric and len(parts) == 1:
        low, high = few_bounds(parts, level)
        return math.exp(low), math.exp(high)
    n = np.array([len(part) for part in parts], np.float64)
    total, freedom = float(n.sum()), float(n.sum() - len(n))
    means = np.array([part.mean() for part in parts])
    squares = np.array([np.sum((part - mean) ** 2) for part, mean in zip(parts, means, strict=True)])
    if geometric:
        means = np.exp(means)
        squares = squares * means**2  # to the first order
    centre, added = float(means.mean()), np.zeros(len(n))
    if unit:
        at_end = max(sum(int(np.count_nonzero(part == end)) for part in parts) for end in (0.0, 1.0))
        added = ADDED_VALUES * at_end / total / (ADDED_APART_VALUES + total - at_end) * n / total
        squares = squares + added * (centre**2 + (1 - centre) ** 2)
        centre = (total * centre + float(added.sum())) / (total + 2 * float(added.sum()))
    variances = squares / (n - 1 + 2 * added)
    pooled = float(squares.sum()) / (freedom + 2 * float(added.sum()))
    if pooled <= _NO_VARIANCE * centre**2:
        return math.nan, math.nan
    alike = np.array([bool((part == part[0]).all()) for part in parts])
    unseen = np.maximum(pooled, (squares + n / (n + 1) * (means - means.mean()) ** 2) / n)
    variances = np.where(alike, np.maximum(variances, unseen), variances)
    drawn = POOLED_VALUES * (1 - n / n.max()) / (n - 1) ** 2
    variances = ((n - 1) * variances + drawn * pooled) / (n - 1 + drawn)
    degrees = (n - 1 + drawn) ** 2 / (n - 1 + drawn**2 / freedom)
    errors = variances / (n + 2 * added)
    welch = float(errors.sum()) ** 2 / float(np.sum(errors**2 / (degrees + 2))) - 2
    degrees_used = min(freedom, max(float(degrees.min()), math.floor(10 * welch) / 10))
    times = student_quantile((1 + level) / 2, degrees_used)
    reach = times * math.sqrt(float(errors.sum())) / len(n)
    low, high = centre - reach, centre + reach
    return (max(0.0, low), min(1.0, high)) if unit else (low, high)
