"""Bootstrap samples of queries, random signs, and intervals of means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.scores import Scores
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.measure import all_within_unit, within_unit
from weir.registry import Registry
from weir.stats.distributions import binomial_tail, normal_quantile, normal_tail, student_quantile

LEVEL = 0.95
RESAMPLES = 10_000
DRAWS = 100_000
SEED = 20_210_427


@dataclass(frozen=True)
class Draws:
    """Number and seed of random draws."""

    count: int = DRAWS
    seed: int = SEED

    def generator(self) -> np.random.Generator:
        """Return a new generator with this seed."""
        return np.random.default_rng(self.seed)


# Random signs and random samples of queries, shared by all systems, in bounded memory.
#
# A sum under random signs is linear, so one product of a block of signs with the values of K systems serves all
# K(K-1)/2 pairs; so it is with counts of samples drawn with replacement.

BLOCK_CELLS = 2_000_000

_SIGNS = np.where(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) > 0, 1.0, -1.0)
_COMMON_COUNTS = 5


def sign_sums(values: Float64, draws: int, generator: np.random.Generator) -> Iterator[Float64]:
    """Yield sums of float64[systems, queries] under random signs of queries, in blocks float64[draws,
    systems].
    """
    # Each draw takes whole 64-bit words, so it depends neither on the other systems nor on the block size.
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
    """Yield sums of float64[columns, queries] over queries drawn with replacement, in blocks float64[samples,
    columns].
    """
    by_query = summable(columns).T
    for counts in resampled_counts(columns.shape[1], resamples, generator, _cells(len(columns))):
        yield counts @ by_query


def _all_sums(columns: Float64, resamples: int, generator: np.random.Generator) -> Float64:
    return np.concatenate(list(resampled_sums(columns, resamples, generator)))


def resampled_counts(
    queries: int, resamples: int, generator: np.random.Generator, cells: int = BLOCK_CELLS
) -> Iterator[Float64]:
    """Yield how often each query is drawn with replacement, in blocks float64[samples, queries] of about
    `cells` numbers.

    The next block reuses a block's memory.
    """
    # Independent Poisson counts, given their sum, are a sample of that size drawn with replacement. With a mean
    # a little below 1, samples whose sum is at most the number of queries are accepted and filled up with
    # single draws: the same distribution as drawing all one by one, at half the cost.
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
    """Return rows rounded slightly, float64[rows, n], so that sums are exact in any order."""
    # A value moves by less than one part in 2^51 / Q of the largest: 2e-12 for 7,000 queries.
    most = np.abs(rows).max(axis=1, keepdims=True) * rows.shape[1]
    unit = np.ldexp(1.0, np.frexp(most)[1] - 52)
    return np.asarray(np.round(rows / unit) * unit)


def _cells(columns: int) -> int:
    # A block fits the cache for few columns, and a matrix product for many.
    return min(BLOCK_CELLS, max(BLOCK_CELLS // 20, columns * BLOCK_CELLS // 200))


def _poisson(mean: float) -> Float64:
    chances = [math.exp(-mean)]
    while chances[-1] > 1e-17 or len(chances) <= _COMMON_COUNTS:
        chances.append(chances[-1] * mean / len(chances))
    return np.array(chances)


def _poisson_counts(
    drawn: NDArray[np.uint16], chances: Float64, rare: np.random.Generator, marks: NDArray[np.uint8]
) -> None:
    # The words decide up to a resolution of 1/65536; the remainder, three in a thousand, is drawn from the
    # second generator, so that the probabilities are exact.
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

_NO_VARIANCE = 1e-24
_ROUNDING = 1e-11


@dataclass(frozen=True)
class Interval:
    """A mean over queries and its interval; NaN bounds if there is none."""

    mean: float
    low: float
    high: float


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise BadValue(f"the level of an interval is {level}; expected between 0 and 1")


def percentiles(samples: Float64, level: float = LEVEL) -> Float64:
    """Return the ends of the central share `level` along the first axis, float64[..., 2]; NaN where samples
    never vary.
    """
    # Efron and Tibshirani 1993, section 13.3.
    ends: Float64 = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)
    lowest, highest = np.min(samples, axis=0), np.max(samples, axis=0)
    varies = highest - lowest > _ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    return np.where(varies, ends, np.nan).T


def fewest(level: float = LEVEL) -> int:
    """Return the smallest number of values for which an interval is given: 6 at a level of 0.95."""
    # The range of n values contains the population's median with probability 1 - 2^(1 - n) (Thompson 1936).
    # Below that no interval of resampled means can keep the level, as it lies within the range, and no
    # permutation test can reach a p-value below 1 - level.
    count = 2
    while 1 - 2.0 ** (1 - count) < level:
        count += 1
    return count


def has_percentile(p: int, count: int) -> bool:
    """Return True if at least one of `count` values is expected beyond the p-th percentile."""
    return count * (100 - p) >= 100


def intervals(scores: Scores, level: float = LEVEL) -> list[Interval]:
    """Return each measure's mean (geometric for geometric measures) and interval over queries with a value,
    NaN as in `mean_bounds`.
    """
    # Resampled in id order and from the same seed for each measure.
    values = scores.values[:, scores.id_order()]
    defined = ~np.isnan(values)
    unit = np.array(list(map(_within_unit, scores.measures, values)), np.bool_)
    geometric = np.array([measure in scores.geometric for measure in scores.measures], np.bool_)
    bounds = np.full((len(values), 2), np.nan)
    # Measures that are defined for the same queries share the samples.
    for queries in {row.tobytes(): row for row in defined}.values():
        alike = (defined == queries).all(axis=1)
        for logarithms in (False, True):
            rows = np.flatnonzero(alike & (geometric == logarithms))
            if len(rows):
                parts = [values[rows][:, queries]]
                bounds[rows] = mean_bounds(parts, level=level, unit=unit[rows], geometric=logarithms)
    means = scores.mean_values().tolist()
    return [Interval(mean, *or_nan(ends)) for mean, ends in zip(means, bounds.tolist(), strict=True)]


def interval_methods(scores: Scores) -> list[Literal["wilson", "student", "percentile bootstrap"]]:
    """Return the method by which `intervals` makes each measure's interval."""
    found: list[Literal["wilson", "student", "percentile bootstrap"]] = []
    for measure, row in zip(scores.measures, scores.values, strict=True):
        unit = np.array([_within_unit(measure, row)])
        shares, few = _small_rows([row[~np.isnan(row)][None]], unit & (measure not in scores.geometric))
        found.append("wilson" if shares[0] else "student" if few[0] else "percentile bootstrap")
    return found


def _within_unit(measure: str, values: Float64) -> bool:
    return within_unit(measure) and all_within_unit(values)  # others' under a name of ours may be percentages


def or_nan(ends: Sequence[float]) -> tuple[float, float]:
    """Return (low, high) with each NaN as `math.nan`, so that equal tuples compare as equal."""
    low, high = (math.nan if math.isnan(end) else end for end in ends)
    return low, high


def interval(
    values: Float64,
    generator: np.random.Generator | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    unit: bool = False,
) -> tuple[float, float]:
    """Return the interval (low, high) of the mean of `values`, ignoring NaN.

    unit: True if values are within 0..1.

    (NaN, NaN) for fewer than `fewest` values, and for equal ones, except 0 or 1 with `unit`.
    """
    rows = values[None, ~np.isnan(values)]
    return or_nan(mean_bounds([rows], generator, level, resamples, np.array([unit]))[0].tolist())


def ratio_interval(
    parts: tuple[Float64, Float64],
    generator: np.random.Generator | None = None,
    less: tuple[Float64, Float64] | None = None,
    level: float = LEVEL,
    share: bool = False,
) -> tuple[float, float]:
    """Return the bootstrap interval (low, high) of a ratio of two sums over queries, or of its difference
    from the ratio `less`.

    parts, less: (numerator, denominator) of each query, float64[queries] each.
    share: True if numerators count some of what denominators count: Wilson's bounds for all or none.

    (NaN, NaN) for fewer than `fewest` queries or an unvarying ratio. Raises BadValue for a level outside
    0..1.
    """
    _check_level(level)
    columns = np.stack([*parts, *(less or ())])
    columns = columns[:, np.lexsort(columns[::-1])]  # as in `mean_bounds`: bounds depend on the values alone
    if columns.shape[1] < fewest(level):
        return math.nan, math.nan
    successes, trials = (float(part.sum()) for part in parts)
    if share and trials and successes in (0.0, trials):
        return share_bounds(successes, round(trials), level)
    draws = generator or np.random.default_rng(SEED)
    sums = _all_sums(columns, RESAMPLES, draws)
    sums = sums[(sums[:, 1::2] > 0).all(axis=1)]
    if not len(sums):
        return math.nan, math.nan
    ratios = sums[:, 0::2] / sums[:, 1::2]
    low, high = percentiles(ratios[:, 0] - (ratios[:, 1] if less else 0.0), level).tolist()
    return low, high


def resampled_means(values: Float64, generator: np.random.Generator, resamples: int) -> Float64:
    """Return means of bootstrap samples, float64[resamples], or float64[resamples, rows] of a matrix."""
    sums = _all_sums(np.atleast_2d(values), resamples, generator)
    means: Float64 = sums / values.shape[-1]
    return means if values.ndim > 1 else means[:, 0]


# Intervals of means over queries, and over parts of them that weigh the same.

_HALVINGS = 60  # of an interval within 0..1, down to the resolution of doubles
FEW_VALUES = 50
"""Values in each part below which percentiles of resampled means are too narrow."""
APART_VALUES = 10
"""The same for values away from 0 or 1, if the others lie at that end."""
ADDED_VALUES, ADDED_APART_VALUES = 2.0, 4.0
"""Pseudo-values added at each end if all values lie at one, divided by the second constant plus the values
elsewhere.
"""
POOLED_VALUES = 2.0
"""Weight of the pooled variance, in values, in that of a part of two among much larger parts."""
MEAN_INTERVALS = (
    f"interval of a mean: percentiles of {RESAMPLES:,} bootstrap means; Student's for fewer than {FEW_VALUES} values "
    "or nearly all at 0 or 1, Wilson's for shares"
)
"""The rule of `mean_bounds` in words, for notes."""


def mean_bounds(
    parts: Sequence[Float64],
    generator: np.random.Generator | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    unit: NDArray[np.bool_] | None = None,
    geometric: bool = False,
) -> Float64:
    """Return bounds of each row's mean of the parts' means, float64[rows, 2]: Wilson's for shares in a single
    part, Student's for few values, else percentile bootstrap.

    parts: float64[rows, queries] each, without NaN.
    unit: rows within 0..1, bool[rows], by default none.
    geometric: values are logarithms; means are exponentiated, bounds cut to 0..1.

    NaN for fewer than `fewest(level)` values, a part of fewer than two, or equal values unless 0 or 1 with
    `unit`. Raises BadValue for a level outside 0..1.
    """
    _check_level(level)
    # As scipy.stats.bootstrap(method="percentile"). Coverage: docs/calibration.md.
    # Sorted, so that bounds depend on values alone, not on the names of queries, by which they are ordered.
    parts = [np.sort(part, axis=1) for part in parts]
    rows, counts = len(parts[0]), [part.shape[1] for part in parts]
    bounds = np.full((rows, 2), np.nan)
    if sum(counts) < fewest(level) or min(counts) < 2:
        return bounds
    unit = np.zeros(rows, np.bool_) if unit is None else unit
    # Percentiles of resampled means, unless `_small_rows` says otherwise.
    plain = unit & (not geometric)
    shares, few = _small_rows(parts, plain)
    for row in np.flatnonzero(shares).tolist():
        bounds[row] = share_bounds(int(parts[0][row].sum()), counts[0], level)
    for row in np.flatnonzero(few).tolist():
        bounds[row] = few_bounds([part[row] for part in parts], level, bool(plain[row]), geometric)
    many = ~shares & ~few & np.logical_or.reduce([(part != part[:, :1]).any(axis=1) for part in parts])
    if many.any():
        draws = generator or np.random.default_rng(SEED)
        each = [resampled_means(part[many], draws, resamples) for part in parts]
        bounds[many] = percentiles(np.mean(np.exp(each) if geometric else each, axis=0), level)
    return np.clip(bounds, 0.0, 1.0) if geometric else bounds


def _small_rows(
    parts: Sequence[Float64], plain: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    # Values of a single part that are all 0 or 1: `share_bounds`. Fewer than FEW_VALUES in a part, or nearly
    # all at one end: `few_bounds`.
    counts = [part.shape[1] for part in parts]
    at_ends = np.stack([sum((part == end).sum(axis=1) for part in parts) for end in (0.0, 1.0)])
    total = sum(counts)
    shares = (at_ends.sum(axis=0) == total) & plain & (len(parts) == 1)
    few = ~shares & ((min(counts) < FEW_VALUES) | (plain & (total - at_ends.max(axis=0) < APART_VALUES)))
    return shares, few


def share_bounds(successes: float, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's bounds (low, high) of `successes` / `count`; `count` must be above 0."""
    # Wilson 1927.
    z2 = normal_quantile((1 + level) / 2) ** 2
    share = successes / count
    centre = (successes + z2 / 2) / (count + z2)
    reach = math.sqrt(z2 * (share * (1 - share) * count + z2 / 4)) / (count + z2)
    low, high = max(0.0, centre - reach), min(1.0, centre + reach)
    return 0.0 if successes <= 0 else low, 1.0 if successes >= count else high


def share_below(successes: int, count: int) -> float:
    """Return the exact one-sided 95% upper bound of `successes` / `count` (Clopper-Pearson); 1 for no trials."""
    # Clopper and Pearson 1934: the largest share with which so few are seen as often as 1 - LEVEL.
    if successes >= count:
        return 1.0
    low, high = successes / count, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if binomial_tail(successes + 1, count, middle) > LEVEL else (middle, high)
    return high


def few_bounds(
    parts: Sequence[Float64], level: float = LEVEL, unit: bool = False, geometric: bool = False
) -> tuple[float, float]:
    """Return Student's bounds (low, high) of the mean of the parts' means; NaN without variance.

    Parameters as for `mean_bounds`.
    """
    if geometric and len(parts) == 1:
        low, high = few_bounds(parts, level)
        return math.exp(low), math.exp(high)
    # Degrees of freedom: Welch 1947. The variance of a part much smaller than others is shrunk to the pooled
    # one; that of a part of equal values is at least the pooled one, and what one more value at the overall
    # mean would give. For values in 0..1 the variance is too small when nearly all lie at one end: up to
    # ADDED_VALUES / ADDED_APART_VALUES pseudo-values at each end make up for it (Agresti and Coull 1998), fewer
    # the more values lie elsewhere.
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


def two_level_means(datasets: Sequence[Sequence[Float64]], draws: Draws, geometric: bool = False) -> Float64:
    """Return means over resampled datasets, queries resampled within each, float64[draws.count, systems].

    datasets: parts of each, float64[systems, queries], whose means are averaged.
    geometric: values are logarithms; parts' means are exponentiated.
    """
    # Somewhat wide, as the means of datasets vary with their queries already. Davison and Hinkley 1997, section
    # 3.8.
    first, *others = draws.generator().spawn(1 + sum(map(len, datasets)))
    blocks = resampled_counts(len(datasets), draws.count, first)
    times = np.concatenate([block.astype(np.int64) for block in blocks])
    total = np.zeros((draws.count, len(datasets[0][0])))
    streams = iter(others)
    for number, parts in enumerate(datasets):
        sample = np.repeat(np.arange(draws.count), times[:, number])
        for part in parts:
            sums = _all_sums(part, len(sample), next(streams))
            count = part.shape[1]
            means = np.exp(sums / count) / len(parts) if geometric else sums / (count * len(parts))
            np.add.at(total, sample, means)
    return total / len(datasets)


# Intervals by name.

_DIFFERENCES_TOGETHER = 200


Bounds: TypeAlias = Callable[[Float64, Float64, Float64, float], Sequence[float]]
"""Maps values of queries, means and standard errors of resamples, and a level to two bounds."""
INTERVALS: Registry[Bounds] = Registry("interval")


def bounds(rows: Float64, how: str, level: float = LEVEL, draws: Draws | None = None) -> Float64:
    """Return the bounds of each row's mean, float64[rows, 2]; NaN for a constant row.

    rows: float64[rows, queries] without NaN.
    how: "t", "percentile", "bca" or "studentised".

    Raises UnknownName for another `how`, BadValue for a level outside 0..1 or fewer than two queries.
    """
    function = INTERVALS.get(how)
    draws = draws or Draws(RESAMPLES)
    _check_level(level)
    if rows.shape[1] < 2:
        raise BadValue(f"an interval needs at least two queries; found {rows.shape[1]}")
    # Powers of two change no digit, and no square of a tiny difference is zero.
    power = np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1]
    rows = np.ldexp(rows, -power)
    ends = np.full((len(rows), 2), np.nan)
    for start in range(0, len(rows), _DIFFERENCES_TOGETHER):
        part = rows[start : start + _DIFFERENCES_TOGETHER]
        means = errors = np.empty((0, len(part)))
        if how != "t":
            means, errors = resampled(part, draws)
        for row in np.flatnonzero((part != part[:, :1]).any(axis=1)).tolist():
            ends[start + row] = function(part[row], means[:, row], errors[:, row], level)
    return np.asarray(np.ldexp(ends, power))


def resampled(rows: Float64, draws: Draws) -> tuple[Float64, Float64]:
    """Return (means, standard errors) of the same bootstrap samples for all rows, float64[draws, rows] each."""
    count, n = rows.shape
    # Squares of deviations from the mean cancel less than squares of values.
    centre = rows.mean(axis=1)
    centred = rows - centre[:, None]
    sums = _all_sums(np.concatenate([centred, centred**2]), draws.count, draws.generator())
    means = sums[:, :count] / n
    return means + centre, np.sqrt(np.maximum(sums[:, count:] / n - means**2, 0) / (n - 1))


@INTERVALS.register("percentile")
def percentile(values: Float64, means: Float64, errors: Float64, level: float) -> Sequence[float]:
    """Return the (lower, upper) percentile of the resampled means at `level`."""
    return percentiles(means, level).tolist()  # type: ignore[no-any-return]  # two floats


INTERVALS.add("two-level", percentile)  # across datasets `two_level_means` takes its place


@INTERVALS.register("bca")
def bca(values: Float64, means: Float64, errors: Float64, level: float) -> Sequence[float]:
    """Return the (lower, upper) percentile of the resampled means, corrected for bias and skewness (BCa)."""
    # Efron 1987; equals scipy.stats.bootstrap(method="BCa") on the same samples.
    mean = float(values.mean())
    rounding = _ROUNDING * float(np.abs(values).max())  # means that are equal but for it count half
    below = float(np.mean(means < mean - rounding) + np.mean(means <= mean + rounding)) / 2
    if not 0 < below < 1:  # differences that are nothing but rounding
        return percentile(values, means, errors, level)
    bias = normal_quantile(below)
    deviations = values - mean  # the jackknife's, but for a factor that cancels
    acceleration = float(np.sum(deviations**3)) / (6 * float(np.sum(deviations**2)) ** 1.5)
    shares = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + normal_quantile(tail)
        shares.append(normal_tail(-(bias + z / (1 - acceleration * z))))
    return np.quantile(means, shares).tolist()  # type: ignore[no-any-return]  # two floats


@INTERVALS.register("studentised")
def studentised(values: Float64, means: Float64, errors: Float64, level: float) -> Sequence[float]:
    """Return the bootstrap-t interval (low, high) of the mean of `values`; resamples with an error of 0 are
    left out.
    """
    # Efron and Tibshirani 1993, section 12.5.
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    spread = errors > 1e-12 * error
    low, high = percentiles((means[spread] - mean) / errors[spread], level).tolist()
    return mean - high * error, mean - low * error


@INTERVALS.register("t")
def student(values: Float64, means: Float64, errors: Float64, level: float) -> Sequence[float]:
    """Return Student's interval (low, high) of the mean of two or more values."""
    n = len(values)
    mean = float(values.mean())
    error = math.sqrt(float(np.sum((values - mean) ** 2)) / (n - 1) / n)
    reach = student_quantile((1 + level) / 2, n - 1) * error
    return mean - reach, mean + reach


# Intervals of several means that hold together.

_DEVIATION_ROUNDING = 1e-12


def simultaneous_bounds(
    parts: Sequence[Float64], weights: Sequence[float], level: float = LEVEL, draws: Draws | None = None
) -> Float64:
    """Return bounds of each row's weighted sum of means on collections, float64[rows, 2], valid for all rows
    together.

    parts: float64[rows, queries] for each collection, two or more queries.
    """
    # A bound is as many standard errors off as the largest deviation of any row reaches with probability
    # `level`, which accounts for number and correlation. Each sample is divided by the error of an estimated
    # deviation, as Student's t is, so that one row of normal values has Student's interval. Errors estimated
    # within each sample are not used: they are nearly 0 if few queries differ. Hothorn, Bretz and Westfall 2008
    # (largest of correlated t); Davison and Hinkley 1997, chapter 2 (bootstrap in place of the normal).
    draws = draws or Draws(RESAMPLES)
    chance, *streams = draws.generator().spawn(1 + len(parts))
    center, variances = np.zeros(len(parts[0])), np.zeros((len(parts), len(parts[0])))
    deviations = np.zeros((draws.count, len(parts[0])))
    for number, (weight, part) in enumerate(zip(weights, parts, strict=True)):
        count = part.shape[1]
        mean = part.mean(axis=1)
        center += weight * mean
        variances[number] = weight**2 * part.var(axis=1, ddof=1) / count
        sums = _all_sums(part - mean[:, None], draws.count, streams[number])
        # Samples vary as the values do about their own mean, which is somewhat less than about the true one.
        deviations += weight * (count / (count - 1)) ** 0.5 * sums / count
    # The fewest degrees of freedom of any row. Source: Satterthwaite 1946; Welch 1947.
    counts, total = np.array([part.shape[1] for part in parts]), variances.sum(axis=0)
    degrees, varies = float(counts.sum() - len(counts)), total > 0
    if varies.any():
        below = (np.square(variances) / (counts[:, None] - 1)).sum(axis=0)
        degrees = float((np.square(total) / np.where(varies, below, np.inf))[varies].min())
    spread = _drawn_deviations(chance, degrees, deviations.shape)
    return _symmetric_bounds(center, np.sqrt(variances.sum(axis=0)), deviations, spread, level)


def two_level_bounds(parts: Sequence[Sequence[Float64]], level: float, draws: Draws) -> Float64:
    """Return bounds of each system's mean over datasets, float64[systems, 2], valid for all together,
    resampling datasets and queries.

    parts: for each dataset its parts' values, float64[systems, queries].
    """
    means = two_level_means(parts, draws)
    center = np.mean([np.mean([p.mean(axis=1) for p in dataset], axis=0) for dataset in parts], axis=0)
    chance = draws.generator().spawn(1)[0]
    spread = _drawn_deviations(chance, len(parts) - 1.0, means.shape)
    return _symmetric_bounds(center, means.std(axis=0), means - center, spread, level)


def _drawn_deviations(chance: np.random.Generator, degrees: float, shape: tuple[int, ...]) -> Float64:
    return np.sqrt(chance.chisquare(degrees, shape) / degrees)


def _symmetric_bounds(
    center: Float64, error: Float64, deviations: Float64, spread: Float64, level: float
) -> Float64:
    varies = error > _DEVIATION_ROUNDING * np.abs(center)
    reach = np.zeros(len(center))
    if varies.any():
        largest = (np.abs(deviations[:, varies]) / (error[varies] * spread[:, varies])).max(axis=1)
        reach[varies] = np.quantile(largest, level) * error[varies]
    return np.stack([center - reach, center + reach], axis=1)
