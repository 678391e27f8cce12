"""Estimate the mean of people's values from few of them and many of a model, by sampling design."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.query_metadata import QueryGroups, QueryWeights
from weir.core.strings import Float64, Ids, Int32
from weir.errors import BadValue
from weir.stats.distributions import normal_quantile, normal_tail, student_quantile, student_tail
from weir.stats.resampling import ADDED_APART_VALUES, ADDED_VALUES, LEVEL, share_bounds

# Estimates with their intervals; the share by Rogan and Gladen.


@dataclass(frozen=True)
class Estimate:
    """An estimated mean with its 95% interval; NaN bounds if there is none."""

    value: float
    low: float
    high: float
    weight: float
    """Weight of the model's values: 0 for people's alone, 1 for plain PPI."""

    def clipped(self, least: float, most: float) -> Estimate:
        """Return the estimate with value and bounds cut to `least` to `most`."""
        value, low, high = np.clip([self.value, self.low, self.high], least, most).tolist()
        return Estimate(value, low, high, self.weight)


@dataclass(frozen=True)
class SampledMean:
    """A mean estimated from a sample of judgments, with its standard error."""

    value: float
    error: float
    degrees: float
    """Degrees of freedom of Student's t; inf for the normal distribution."""
    weight: float
    """Weight of the model's values, as in Estimate."""
    ends: tuple[float, float] | None = None
    """Interval to use instead of Student's t."""

    def estimate(self) -> Estimate:
        """Return the mean with its 95% interval: `ends` if given, else Student's t or normal, with NaN bounds for a
        standard error of 0."""
        if self.ends is not None:
            return Estimate(self.value, *self.ends, self.weight)
        if not self.error:
            return Estimate(self.value, math.nan, math.nan, self.weight)
        upper = (1 + LEVEL) / 2
        normal = math.isinf(self.degrees)
        margin = self.error * (normal_quantile(upper) if normal else student_quantile(upper, self.degrees))
        return Estimate(self.value, self.value - margin, self.value + margin, self.weight)

    @property
    def p(self) -> float:
        """The two-sided p-value of a mean of 0; 1 if all values are 0, NaN if all are equal otherwise."""
        if not self.error:
            return math.nan if self.value else 1.0
        far = abs(self.value) / self.error
        return 2 * (normal_tail(far) if math.isinf(self.degrees) else student_tail(far, self.degrees))


def corrected_share(above: float, slope: float, errors: tuple[float, float, float], times: float) -> Estimate:
    """Return the ratio `above` / `slope`, a corrected share, with Fieller's interval, both cut to 0..1.

    above: the model's share of positives + specificity - 1.
    slope: the model's sensitivity + specificity - 1.
    errors: variance of `above`, covariance, variance of `slope`.
    times: number of standard errors to either side.

    Raises BadValue if the slope cannot be told from 0, and if the interval is outside 0..1.
    """
    # Source: Fieller 1954. The interval holds each share s for which above - s * slope is within `times` its error of
    # 0, so it keeps its coverage for a small slope too.
    of_above, of_both, of_slope = errors
    if slope <= times * math.sqrt(of_slope):
        raise BadValue(
            "the model's labels cannot be told from chance (sensitivity + specificity - 1 is "
            f"{slope:.3f}, ± {times * math.sqrt(of_slope):.3f}), so that they cannot be corrected"
        )
    square = slope**2 - times**2 * of_slope
    middle = (above * slope - times**2 * of_both) / square
    half = math.sqrt(max(0.0, middle**2 - (above**2 - times**2 * of_above) / square))
    if middle - half > 1 or middle + half < 0:
        raise BadValue(
            "the model calls another share relevant than its errors allow, so that it errs otherwise where people "
            "judged than elsewhere"
        )
    return Estimate(above / slope, middle - half, middle + half, 1.0).clipped(0.0, 1.0)


# Prediction-powered means of small samples: at random, by strata, with known probabilities, in parts. Variances divide
# by degrees of freedom, and quantiles are Student's: with twenty items, intervals of the normal distribution contain
# the truth in 92% of samples instead of 95%.

LEAST_IN_STRATUM = 2
"""Items that people must judge in each stratum, so that its variance is known."""
MOST_WIDENING = 1.05
"""Ratio of interval widths up to which the model's values are preferred to people's alone."""
LEAST_TUNED = 4
"""Judged items from which a weight is estimated."""


Limits: TypeAlias = tuple[float, float] | None
"""Smallest and largest possible value; None if unknown."""


def drawn_mean(
    human: Float64,
    model: Float64,
    model_alone: Float64,
    weight: float | None = None,
    limits: Limits = None,
) -> SampledMean:
    """Return the mean of people's values over all items, estimated by PPI++ from a random sample.

    human, model: float64[n], people's and the model's values of the judged items (queries, not pairs).
    model_alone: float64[N], the model's values of the other items.
    weight: weight of the model's values. None takes the one within 0..1 with the narrowest interval, or 0 if that is
        more than 5% wider than people's alone.
    limits: smallest and largest possible value. Binary values then have Wilson's interval.

    Raises BadValue for fewer than two judged items.
    """
    # Sources: Angelopoulos et al. 2023 (PPI); Angelopoulos, Duchi and Zrnic 2023 (PPI++). Value and weight equal
    # ppi-python's ppi_mean_ci; error and quantiles are for small samples.
    strata = np.zeros(len(human), np.int64), np.zeros(len(model_alone), np.int64)
    return stratified_mean(human, model, model_alone, strata, weight, limits)


def stratified_mean(
    human: Float64,
    model: Float64,
    model_alone: Float64,
    strata: tuple[NDArray[np.integer], NDArray[np.integer]],
    weight: float | None = None,
    limits: Limits = None,
) -> SampledMean:
    """Return the mean of people's values over all items, estimated from a random sample within strata.

    human, model, model_alone, weight, limits: see `drawn_mean`.
    strata: (stratum of each judged item, stratum of each other item).

    Raises BadValue if people judged fewer than two items of a stratum.
    """
    # Source: Fisch et al. 2024 (StratPPI), with the two draws of Neyman 1938: the strata's shares are random too.
    both, plain, counts = [], [], []
    for number in np.unique(np.concatenate(strata)).tolist():
        mine, alone = strata[0] == number, strata[1] == number
        counts.append(int(mine.sum()) + int(alone.sum()))
        if mine.sum() < LEAST_IN_STRATUM:
            raise BadValue(
                f"stratum number {number} has {int(mine.sum())} items that people judged; two at least are needed"
            )
        plain.append(_of_people(human[mine], limits))
        both.append(_mean_of_stratum(human[mine], model[mine], model_alone[alone], weight, limits))
    sizes = np.array(counts)
    total = float(sizes.sum())
    shares = sizes / total

    def over_strata(parts: list[SampledMean]) -> SampledMean:
        values = np.array([one.value for one in parts])
        errors = np.array([one.error for one in parts]) ** 2
        value = float(shares @ values)
        within = float(shares**2 @ errors)
        # Strata differ by chance too: what that adds to their variance is known and left out.
        apart = float(shares @ (values - value) ** 2 - (shares * (1 - shares)) @ errors)
        by_stratum = float((shares**2 * errors) ** 2 @ np.array([1 / one.degrees for one in parts]))
        degrees = max(1, math.floor(within**2 / by_stratum)) if by_stratum else math.inf
        error = math.sqrt(within + max(0.0, apart) / total)
        ends = parts[0].ends if len(parts) == 1 else None
        return SampledMean(
            value, error, degrees, float(shares @ np.array([one.weight for one in parts])), ends
        )

    estimate = over_strata(both)
    return estimate if weight is not None else _unless_wider(estimate, over_strata(plain))


def _of_people(human: Float64, limits: Limits) -> SampledMean:
    n = len(human)
    shares = limits == (0.0, 1.0) and np.isin(human, limits).all()
    ends = share_bounds(float(human.sum()), n, LEVEL) if shares else None
    if not shares and np.all(human == human[0]):
        limits = None  # nothing is known of how they vary
    return SampledMean(float(human.mean()), math.sqrt(_squared_error(human, n - 1, limits)), n - 1, 0.0, ends)


def _squared_error(values: Float64, degrees: int, limits: Limits) -> float:
    # If most of few values are equal, their variance is nearly always too small: some values at each limit are added,
    # the fewer the more other values there are, as in `few_bounds`.
    n, squares = len(values), float(((values - values.mean()) ** 2).sum())
    alike = int(np.unique(values, return_counts=True)[1].max())
    if limits is None or 2 * alike < n:
        return squares / degrees / n
    added = ADDED_VALUES * alike / n / (ADDED_APART_VALUES + n - alike)
    squares += added * sum((limit - float(values.mean())) ** 2 for limit in limits)
    return squares / (degrees + 2 * added) / (n + 2 * added)


def _mean_of_stratum(
    human: Float64, model: Float64, model_alone: Float64, weight: float | None, limits: Limits = None
) -> SampledMean:
    n, alone, plain = len(human), len(model_alone), _of_people(human, limits)
    if alone < LEAST_IN_STRATUM or weight == 0 or (weight is None and n < LEAST_TUNED):
        return plain
    tuned = weight is None
    if weight is None:
        spread = float(np.concatenate([model, model_alone]).var(ddof=1))
        covariance = float(((human - human.mean()) * (model - model.mean())).mean())  # as ppi-python
        weight = min(1.0, max(0.0, covariance / ((1 + n / alone) * spread))) if spread else 0.0
    rest = human - weight * model
    value = weight * float(model_alone.mean()) + float(rest.mean())
    of_rest = limits and (limits[0] - weight * limits[1], limits[1] - weight * limits[0])
    residual = _squared_error(rest, n - 1 - tuned, of_rest)
    error = math.sqrt(weight**2 * float(model_alone.var(ddof=1)) / alone + residual)
    estimate = SampledMean(value, error, n - 1 - tuned, weight)
    return _unless_wider(estimate, plain) if tuned else estimate


def _unless_wider(estimate: SampledMean, plain: SampledMean) -> SampledMean:
    # Always taking the narrower one would make intervals too narrow on average.
    one, other = (
        math.inf if math.isnan(found.low) else found.high - found.low
        for found in (estimate.estimate(), plain.estimate())
    )
    return plain if one > MOST_WIDENING * other else estimate


def weighted_mean(
    human: Float64,
    model: Float64,
    model_alone: Float64,
    weights: Float64,
    weight: float | None = None,
) -> SampledMean:
    """Return Hajek's estimate of the mean of people's values over all items, from a sample with known probabilities.

    human, model, model_alone: see `drawn_mean`.
    weights: float64[n], 1 / sampling probability, up to a constant factor.
    weight: weight of the model's values; None for the one within 0..1 with the least variance.

    Raises BadValue for fewer than four judged items, and for weights that are not positive and finite.
    """
    # Sources: Hajek 1971; Saerndal, Swensson and Wretman 1992, chapter 6: linearised variance, independent draws. Point
    # estimates equal ppi-python's with its weights.
    n, total = len(human), len(human) + len(model_alone)
    if n < LEAST_TUNED:
        raise BadValue(f"people judged {n} items; {LEAST_TUNED} at least are needed where weights differ")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise BadValue(
            "a weight is not a finite number above 0; it is one over the probability of being drawn"
        )
    scaled = weights * (total / float(weights.sum()))
    squares = scaled * np.maximum(
        scaled - 1, 0.0
    )  # weights of squared residuals in the variance of independent draws
    tuned = weight is None
    if weight is None:
        by_human, by_model = (
            values - float(scaled @ values) / float(scaled.sum()) for values in (human, model)
        )
        variance = float(squares @ by_model**2)
        weight = min(1.0, max(0.0, float(squares @ (by_human * by_model)) / variance)) if variance else 0.0
    rest = human - weight * model
    everywhere = (float(model.sum()) + float(model_alone.sum())) / total
    mean = float(scaled @ rest) / total
    value = weight * everywhere + mean
    spread = float(scaled @ (human - float(scaled @ human) / total) ** 2) / total * n / (n - 1)
    degrees = max(1, math.floor(float(scaled.sum()) ** 2 / float(scaled @ scaled)) - 1 - tuned)
    drawn = float(squares @ (rest - mean) ** 2) / total**2 * n / (n - 1 - tuned)
    estimate = SampledMean(value, math.sqrt(drawn + spread / total), degrees, weight)
    return (
        _unless_wider(estimate, weighted_mean(human, model, model_alone, weights, 0.0)) if tuned else estimate
    )


def partly_judged_mean(
    human: Float64,
    model: Float64,
    whole: Float64,
    model_alone: Float64,
    weight: float | None = None,
) -> SampledMean:
    """Return the mean over queries by people's labels, estimated from random documents of some queries.

    human, model: float64[n], Horvitz-Thompson estimates of a query's value from its judged documents.
    whole: float64[n], the model's values of these queries from all their documents.
    model_alone: float64[N], the model's values of the other queries.
    weight: see `weighted_mean`.

    Raises BadValue for fewer than four queries that people judged.
    """
    # Source: Saerndal, Swensson and Wretman 1992, chapters 4 and 8 (two-stage difference estimator).
    n, alone = len(human), len(model_alone)
    if n < LEAST_TUNED:
        raise BadValue(f"people judged documents of {n} queries; {LEAST_TUNED} at least are needed")
    share = n / (n + alone)
    # theta = weight * (mean of whole over all queries) + mean(human - weight * model), split into independent parts.
    against = model - share * whole
    elsewhere = float(model_alone.var(ddof=1)) * (1 - share) ** 2 / alone if alone > 1 else 0.0
    tuned = weight is None
    if weight is None:
        spread = elsewhere + float(against.var(ddof=1)) / n
        weight = min(1.0, max(0.0, float(np.cov(human, against)[0, 1]) / n / spread)) if spread else 0.0
    rest = human - weight * against
    value = float(rest.mean()) + weight * (1 - share) * (float(model_alone.mean()) if alone else 0.0)
    residual = float(((rest - rest.mean()) ** 2).sum()) / (n - 1 - tuned) / n
    estimate = SampledMean(value, math.sqrt(weight**2 * elsewhere + residual), n - 1 - tuned, weight)
    if not tuned:
        return estimate
    return _unless_wider(estimate, partly_judged_mean(human, model, whole, model_alone, 0.0))


# Designs: how judgments were sampled, and the mean for each.


@dataclass(frozen=True, eq=False)
class SampleDesign:
    """How the judged queries were sampled: at random unless one field is set; raises BadValue for several."""

    strata: QueryGroups | None = None
    """Queries were drawn at random within each stratum."""
    weights: QueryWeights | None = None
    """Queries were drawn with probabilities of one over these weights."""
    pairs: bool = False
    """People judged random documents of the first k of each query."""

    def __post_init__(self) -> None:
        if (self.strata is not None) + (self.weights is not None) + self.pairs > 1:
            raise BadValue("queries were drawn by strata, by weights, or in parts (pairs): give one of them")

    def chance_of_none(
        self, queries: Ids, drawn: NDArray[np.bool_], part: NDArray[np.bool_], drawable: NDArray[np.bool_]
    ) -> float:
        """Return the probability that a random draw of as many queries as `drawn` contains none of `part`.

        drawn, part, drawable: bool[queries]; `drawable` are the queries that could be drawn.

        Queries without a weight count as the least likely of the others.
        """
        if self.weights is not None:
            codes = self.weights.queries.codes(queries.strings)
            known = codes >= 0
            weight = np.where(
                known, self.weights.weight[codes], self.weights.weight[codes[known]].max(initial=1e-300)
            )
            every = float((1 / weight).sum()) if known.all() else len(queries) / float(weight[drawn].mean())
            return float(np.prod(1 - np.minimum(1, drawn.sum() / weight[part] / every)))
        strata = np.zeros(len(queries)) if self.strata is None else numbered_strata(self.strata, queries)
        chance = 1.0
        for stratum in np.unique(strata[part]).tolist():
            here = drawable & (strata == stratum)
            count, mine = int(here.sum()), int((drawn & here).sum())
            chance *= math.comb(count - int((part & here).sum()), mine) / math.comb(count, mine)
        return chance

    def __str__(self) -> str:
        if self.strata is not None:
            return f"drawn within {len(self.strata)} strata ({self.strata.name})"
        if self.weights is not None:
            return "drawn with known probabilities"
        return "a random part of the documents of each" if self.pairs else "drawn at random"


AT_RANDOM = SampleDesign()


@dataclass(frozen=True, eq=False)
class PairedValues:
    """A system's values by query, or differences of two systems, by people's and by the model's labels."""

    human: Float64
    """float64[n], from people's labels."""
    model: Float64
    """float64[n], from the model's labels of the same documents."""
    whole: Float64
    """float64[n], from all the model's labels of these queries."""
    alone: Float64
    """float64[N], from the model's labels of the queries that people did not judge."""
    limits: Limits = None

    def minus(self, other: PairedValues) -> PairedValues:
        """Return the differences to another system's values of the same queries."""
        return PairedValues(
            self.human - other.human,
            self.model - other.model,
            self.whole - other.whole,
            self.alone - other.alone,
            self.limits and (self.limits[0] - self.limits[1], self.limits[1] - self.limits[0]),
        )

    @property
    def by_model(self) -> float:
        """The mean over all queries by the model's labels."""
        return float(np.concatenate([self.whole, self.alone]).mean())


@dataclass(frozen=True, eq=False)
class DrawnQueries:
    """The queries that the model judged, split by whether people judged them."""

    mine: NDArray[np.integer]
    """Numbers of the queries that people judged."""
    alone: NDArray[np.integer]
    """Numbers of the queries that only the model judged."""
    pairs: bool
    strata: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    """(stratum of each query in `mine`, stratum of each in `alone`)."""
    weights: Float64 | None = None
    """Weight of each query in `mine`."""

    @staticmethod
    def of(design: SampleDesign, queries: Ids, mine: NDArray[np.integer]) -> DrawnQueries:
        """Return the model's queries, split by whether people judged them; `mine` are the positions of the judged.

        Raises BadValue for too few queries, also of a stratum, and for a query without stratum or weight.
        """
        alone = np.delete(np.arange(len(queries)), mine)
        if len(mine) < LEAST_IN_STRATUM or (
            len(alone) < LEAST_IN_STRATUM and design.strata is None and not design.pairs
        ):
            raise BadValue(
                f"{len(mine)} queries are judged by people and the model, {len(alone)} by the model alone; two of each "
                "are needed (if they judged a part of each query's documents: `pairs=True`)"
            )
        strata = None
        if design.strata is not None:
            groups, stratum = design.strata, numbered_strata(design.strata, queries)
            judged, every = (np.bincount(part, minlength=len(groups)) for part in (stratum[mine], stratum))
            short = np.flatnonzero((judged < LEAST_IN_STRATUM) & (every > 0)).tolist()
            if short:
                raise BadValue(
                    f"stratum '{groups.labels[short[0]]}' has {int(judged[short[0]])} queries that people judged; two "
                    "at least are needed: judge more of it, or join it with another"
                )
            strata = stratum[mine], stratum[alone]
        weights = None if design.weights is None else design.weights.of_queries(queries.take(mine))
        return DrawnQueries(mine, alone, design.pairs, strata, weights)

    def estimated_mean(self, values: PairedValues, weight: float | None = None) -> SampledMean:
        """Return the estimated mean over all queries, by the sampling design.

        weight: weight of the model's values: 0 for people's labels only, None for the best within 0..1.
        """
        if self.pairs:
            return partly_judged_mean(values.human, values.model, values.whole, values.alone, weight)
        if self.strata is not None:
            return stratified_mean(
                values.human, values.model, values.alone, self.strata, weight, values.limits
            )
        if self.weights is not None:
            return weighted_mean(values.human, values.model, values.alone, self.weights, weight)
        return drawn_mean(values.human, values.model, values.alone, weight, values.limits)


def numbered_strata(groups: QueryGroups, queries: Ids) -> Int32:
    """Return the number of each query's stratum, int32[queries]; raises BadValue for a query without one."""
    codes = groups.queries.codes(queries.strings)
    stratum = np.where(codes >= 0, groups.group[codes], -1).astype(np.int32)
    if (stratum < 0).any():
        missing = queries[int(np.flatnonzero(stratum < 0)[0])]
        raise BadValue(
            f"query '{missing}' is in no stratum of {groups.name}; every query that the model judged needs one"
        )
    return stratum
