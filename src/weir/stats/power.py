"""Power: the smallest difference that a test detects, the queries that it takes, and tests of equivalence.

Power is that of the test itself at the level that its correction leaves. The deviation of the differences is estimated
from the data at hand, so power is the chance in new data, over the chance in the estimate too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from weir.core.results import result
from weir.core.rounding import change, count, probability, score, share
from weir.core.strings import Float64
from weir.core.tables import Table, table_of
from weir.errors import BadValue
from weir.measures.measure import within_unit
from weir.stats.distributions import (
    foreseen_tail,
    normal_quantile,
    normal_tail,
    student_quantile,
)
from weir.stats.permutation import exact_p_values  # noqa: F401  registers the default test
from weir.stats.resampling import SEED
from weir.stats.significance import (
    TEST,
    TESTS,
    Detection,
    Draws,
    adjusted,
    deviation_of,
    exact_mean,
    level_met,
    t_tail,
)

ALPHA = 0.05
POWER = 0.8
MOST_QUERIES = 10_000_000
FEW_UNITS, SOME_UNITS = 11, 30
"""Queries or datasets up to which p-values are simulated exactly, and up to which findings are simulated at all."""
SIMULATED_ROWS = 12_000
POWER_TOLERANCE = 0.002
"""Tolerance of a simulated power."""
MOST_STEPS = 25
KURTOSIS_UNITS, KURTOSIS_STEP, KURTOSIS_BOUNDS = 4, 0.25, (-1.2, 12.0)
"""Values from which on their excess kurtosis is estimated, to which step, and between which bounds it is used."""
KURTOSIS_SURE_UNITS, KURTOSIS_PRIOR, KURTOSIS_PRIOR_UNITS = 10, 0.5, 2
"""Values up to which an estimate is drawn to a usual kurtosis, that one, and as how many values it counts."""


@dataclass(frozen=True)
class Family:
    """Differences that are tested together.

    tests: how many; alike: how many of them are true and equal, 1 of those against a baseline, and of those of each of
    K systems with each K - 1: one system differs from all others, which are equal; correct: the correction.
    """

    tests: int = 1
    alike: int = 1
    correct: str = "holm"

    def level(self, alpha: float, others: float) -> float:
        """The level that a test has to meet where so many others are found; linear between whole numbers."""
        low = math.floor(others)
        one = level_met(self.correct, self.tests, low, alpha)
        if low == others:
            return one
        return one + (others - low) * (level_met(self.correct, self.tests, low + 1, alpha) - one)


ALONE = Family()


@dataclass(frozen=True)
class Reach:
    """Whether a test with its correction can find anything with so many queries or datasets, however large.

    smallest: no adjusted p-value is below this; alpha: what one has to be below; fewest: of how many queries or
    datasets one can be, None where the draws are too few for so many comparisons; draws: how many draws it takes at
    least, 0 for a test that does not draw.
    """

    smallest: float
    alpha: float
    fewest: int | None
    draws: int = 0

    @property
    def possible(self) -> bool:
        """Whether something could be found."""
        return self.smallest < self.alpha


@dataclass(frozen=True)
class Need:
    """What a true difference of this size needs: the power now, the queries for the wanted one.

    queries: None where that is more than ten million.
    """

    effect: float
    power: float
    queries: int | None


@dataclass(frozen=True)
class PowerPlan:
    """How small a difference of a measure the queries at hand can show, and what other differences need.

    difference: second minus first; deviation: 0 where all differences are equal, which says nothing of how others vary,
    so that nothing is detectable or needed; detectable: None where the queries are too few for any too; test: one of
    two systems, without a correction; reach: what it can find at all.
    """

    measure: str
    queries: int
    difference: float
    deviation: float
    wanted: float
    alpha: float
    detectable: float | None
    needs: tuple[Need, ...]
    test: str
    reach: Reach

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values."""
        return asdict(self)


def plan(
    measure: str,
    differences: Float64,
    effects: Sequence[float],
    wanted: float = POWER,
    alpha: float = ALPHA,
    test: str = TEST,
) -> PowerPlan:
    """What the differences of two systems between queries say about finding such and other effects.

    Raises BadValue as `detectable` and `queries_needed`.
    """
    n = len(differences)
    if n < 2:
        raise BadValue(f"power needs at least two queries; found {n}")
    deviation = deviation_of(differences)
    kurtosis = excess_kurtosis(differences[None])
    least = detectable(deviation, n, wanted, alpha, test, kurtosis=kurtosis) if deviation else math.inf
    needs = []
    for effect in effects if deviation else ():
        needed = queries_needed(effect, deviation, wanted, alpha, test, kurtosis, n)
        needs.append(Need(effect, power(effect, deviation, n, alpha, test, kurtosis), needed))
    return PowerPlan(
        *(measure, n, exact_mean(differences), deviation, wanted, alpha),
        least if math.isfinite(least) else None,
        tuple(needs),
        test,
        reach(test, n, alpha),
    )


def reach(
    test: str,
    units: int,
    alpha: float = ALPHA,
    family: Family = ALONE,
    draws: Draws | None = None,
    systems: int = 2,
    beside: Float64 | None = None,
) -> Reach:
    """What a test with its correction can find of so many units, where all p-values of its family are the smallest.

    beside: the smallest p-values of tests that the correction counts besides those of the family, in other tables.
    """
    draws = draws or Draws()
    kind = TESTS.get(test)
    others = np.empty(0) if beside is None else beside

    def smallest(count: int, drawn: Draws) -> float:
        own = np.full(family.tests - len(others), kind.smallest(count, systems, drawn))
        return float(adjusted(np.concatenate([own, others]), family.correct)[: len(own)].min())

    now = smallest(units, draws)
    needed = 0
    if kind.drawn:
        needed = max(1, math.floor(1 / level_met(family.correct, family.tests, 0, alpha) + 1e-9))
    # From some number of units on a test that draws is bound by its draws, and every other finds anything.
    fewest = next((n for n in range(2, 65) if smallest(n, draws) < alpha), None)
    return Reach(now, alpha, fewest, needed)


def excess_kurtosis(rows: Float64) -> float:
    """How much heavier the tails of values are than normal ones, which have 0: the same for all rows, float64[R, n].

    The sum of the rows' fourth k-statistics over that of unbiased estimates of their squared variances, from four
    values on, to steps of a quarter, between the least that there is and 12. Of fewer than ten it is drawn to that of
    usual differences of systems, somewhat above 0. Source: Fisher 1930; Tukey 1956 (polykays).
    """
    n = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    largest = float(np.abs(centred).max(initial=0))
    if n < KURTOSIS_UNITS or largest == 0:
        return 0.0
    centred = centred / largest
    square, fourth = (centred**2).mean(axis=1), (centred**4).mean(axis=1)
    cumulant = n * n * ((n + 1) * fourth - 3 * (n - 1) * square**2) / ((n - 1) * (n - 2) * (n - 3))
    variance = (n - 1) / (n + 1) * ((square * n / (n - 1)) ** 2 - cumulant / n)
    low, high = KURTOSIS_BOUNDS
    scale = float(variance.sum())
    mean = float(cumulant.sum()) / scale if scale > 0 else high
    if n < KURTOSIS_SURE_UNITS:
        drawn = KURTOSIS_PRIOR_UNITS * KURTOSIS_PRIOR + n * min(max(mean, low), high)
        mean = drawn / (KURTOSIS_PRIOR_UNITS + n)
    return min(max(round(mean / KURTOSIS_STEP) * KURTOSIS_STEP, low), high)


def power(
    difference: float,
    deviation: float,
    queries: int,
    alpha: float = ALPHA,
    test: str = TEST,
    kurtosis: float = 0.0,
    pilot: int | None = None,
) -> float:
    """Probability that a two-sided paired test finds a true mean difference in new data.

    deviation: standard deviation of the differences between queries, estimated from those of a pilot, None for as many;
    kurtosis: in excess of that of normal differences, as `excess_kurtosis` estimates it: the deviation of heavy tails
    is known less well. For normal differences exact for the t-test, and for other tests of more than SOME_UNITS
    queries, which find what it finds; else simulated. Raises BadValue for fewer than two queries, a negative deviation,
    an alpha outside 0..1, and a test of which no power is known.
    """
    detection = _checked(min(queries, pilot or queries), deviation, alpha, test)
    if deviation == 0:
        return float(reach(test, queries, alpha).possible) if difference else alpha
    return _chance(detection, queries, alpha, ALONE, alpha, kurtosis, pilot)(abs(difference) / deviation)


def detectable(
    deviation: float,
    queries: int,
    wanted: float = POWER,
    alpha: float = ALPHA,
    test: str = TEST,
    family: Family = ALONE,
    kurtosis: float = 0.0,
) -> float:
    """The smallest true difference that a two-sided paired test with its correction finds with the wanted probability.

    Arguments as in `power`; family: what else is tested. Infinite where no difference is found so often with so few
    queries. Raises BadValue as `power`, and for a wanted power that is not above alpha and below 1.
    """
    _checked(queries, deviation, alpha, test, wanted)
    shift = _smallest_shift(test, queries, wanted, alpha, family, kurtosis)
    return math.inf if shift is None else shift * deviation


def queries_needed(
    difference: float,
    deviation: float,
    wanted: float = POWER,
    alpha: float = ALPHA,
    test: str = TEST,
    kurtosis: float = 0.0,
    pilot: int | None = None,
) -> int | None:
    """How many queries a two-sided paired test needs to find a true difference with the wanted probability.

    pilot: of how many queries the deviation is estimated, None for as many as are needed; few take more, for theirs may
    be too small. At least 2, and None for more than ten million. Raises BadValue for a difference of 0 and as
    `detectable`.
    """
    detection = _checked(2 if pilot is None else pilot, deviation, alpha, test, wanted)
    if difference == 0 or not math.isfinite(difference):
        raise BadValue(f"the difference to find is {difference}; expected a number other than 0")

    def chance(count: int) -> float:
        return _chance_of_t(count, alpha, kurtosis, pilot)(abs(difference) / deviation) if deviation else 1.0

    if chance(MOST_QUERIES) < wanted:
        return None
    # Bracket the number of queries, from what the normal distribution gives.
    quantiles = normal_quantile(1 - alpha / 2) + normal_quantile(wanted)
    low = high = int(min(max(2.0, (quantiles * deviation / difference) ** 2), float(MOST_QUERIES)))
    step = max(1, low // 64)
    while low > 1 and chance(low) >= wanted:
        low, high, step = max(1, low - step), low, 2 * step
    while chance(high) < wanted:
        low, high, step = high, min(high + step, MOST_QUERIES), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if chance(middle) < wanted:
            low = middle
        else:
            high = middle
    if detection != Detection():  # few queries show less to another test than to the t-test
        while (
            high <= SOME_UNITS and power(difference, deviation, high, alpha, test, kurtosis, pilot) < wanted
        ):
            high += 1
    return high


def equivalence(differences: Float64, margin: float) -> float:
    """p-value of the claim that the true mean difference lies within plus and minus a margin.

    Two one-sided t-tests (TOST): the larger of their p-values. Raises BadValue for a margin that is not positive
    and for fewer than two differences. Source: Schuirmann 1987.
    """
    if not (margin > 0 and math.isfinite(margin)):
        raise BadValue(f"the margin is {margin}; expected a number above 0")
    if len(differences) < 2:
        raise BadValue(f"equivalence needs at least two queries; found {len(differences)}")
    return max(t_tail(differences + margin), t_tail(margin - differences))


@lru_cache(maxsize=1024)
def _smallest_shift(
    test: str, units: int, wanted: float, alpha: float, family: Family, kurtosis: float
) -> float | None:
    """The true difference, in estimated deviations, that is found with the wanted probability; None for none."""
    detection = TESTS.get(test).detection
    assert detection is not None
    # How many of the other true differences are found where this one is nearly missed: they share a system with it, so
    # that their noise is correlated by a half.
    others = (family.alike - 1) * (1 - normal_tail(normal_quantile(wanted) / math.sqrt(3)))
    level = family.level(alpha, others)
    if units <= SOME_UNITS and detection != Detection() and kurtosis:
        normal = _smallest_shift(test, units, wanted, alpha, family, 0.0)
        return None if normal is None else normal / _as_normal(units, level, kurtosis)
    quantiles = normal_quantile(1 - level / 2) + normal_quantile(wanted)
    of_t = _crossing(_chance_of_t(units, level, kurtosis), quantiles / math.sqrt(units), wanted, 1e-12)
    if of_t is None or detection == Detection() or units > SOME_UNITS:
        return of_t
    return _crossing(_chance(detection, units, level, family, alpha, 0.0), of_t, wanted, POWER_TOLERANCE)


def _chance_of_t(
    units: int, level: float, kurtosis: float, pilot: int | None = None
) -> Callable[[float], float]:
    """The chance that the paired t-test finds a true difference of so many estimated deviations.

    Exact for normal differences. For others an estimated deviation varies as that of normal ones with fewer degrees of
    freedom, to the first order. pilot: of how many they were estimated, None for as many.
    """
    edge = student_quantile(1 - level / 2, units - 1)
    df, before = (max(1.0, (count - 1) / (1 + kurtosis / 2)) for count in (units, pilot or units))

    def chance(shift: float) -> float:
        shifted = shift * math.sqrt(units)
        return foreseen_tail(edge, df, shifted, before) + foreseen_tail(edge, df, -shifted, before)

    return chance


def _chance(
    detection: Detection,
    units: int,
    level: float,
    family: Family,
    alpha: float,
    kurtosis: float,
    pilot: int | None = None,
) -> Callable[[float], float]:
    """The chance that a test finds a true difference of so many estimated deviations.

    What is simulated is normal; a difference counts there as less as the t-test finds less of it for its kurtosis. For
    FEW_UNITS all true differences of the family are simulated and corrected together, since few p-values are
    possible; for more this one alone, at the level that it has to meet.
    """
    normal = _as_normal(units, level, kurtosis, pilot)
    p_of, rejects = detection.p, detection.rejects
    if p_of is not None and units <= FEW_UNITS:
        noise, estimates = _simulated(units, family.alike, pilot or units)
        levels = [family.level(alpha, others) for others in range(family.alike)]

        def share(shift: float) -> float:
            rows = noise + shift * normal * estimates[:, None, None]
            p = p_of(rows.reshape(-1, units))
            # A correction depends only on which levels the p-values meet, and few combinations occur.
            met = np.sort(np.searchsorted(np.array(levels), p.reshape(-1, family.alike), "right"), axis=1)
            combinations, counts = np.unique(met, axis=0, return_counts=True)
            below = np.array([*(value * (1 - 1e-6) for value in levels), 1.0])
            others = np.ones(family.tests - family.alike)
            corrected = (
                adjusted(np.concatenate([below[one], others]), family.correct) for one in combinations
            )
            shares = [float(np.mean(part[: family.alike] < alpha)) for part in corrected]
            return float(np.dot(shares, counts)) / len(met)

        return share
    if rejects is not None and units <= SOME_UNITS:
        noise, estimates = _simulated(units, 1, pilot or units)

        def share_of_one(shift: float) -> float:
            return float(np.mean(rejects(noise[:, 0] + shift * normal * estimates[:, None], level)))

        return share_of_one
    return _chance_of_t(units, level, kurtosis, pilot)


@lru_cache(maxsize=1024)
def _as_normal(units: int, level: float, kurtosis: float, pilot: int | None = None) -> float:
    """What the t-test finds 80 times in 100 of normal differences, over what it finds so often of such."""
    if not kurtosis:
        return 1.0
    start = (normal_quantile(1 - level / 2) + normal_quantile(POWER)) / math.sqrt(units)
    normal, other = (
        _crossing(_chance_of_t(units, level, k, pilot), start, POWER, POWER_TOLERANCE / 10)
        for k in (0.0, kurtosis)
    )
    return normal / other if normal and other else 1.0


@lru_cache(maxsize=4)
def _simulated(units: int, alike: int, pilot: int) -> tuple[Float64, Float64]:
    """Differences of one system and several others without a true difference, float64[R, alike, units], and deviations
    as they would have been estimated from those of a pilot, float64[R]; from the stated seed.
    """
    generator = np.random.default_rng([SEED, units, alike])
    count = SIMULATED_ROWS // alike
    systems = generator.normal(0, math.sqrt(0.5), (count, 1 + alike, units))
    # Of sixteen times as many, so that they are spread as evenly as the distribution has it.
    squares = np.sort(generator.chisquare(pilot - 1, 16 * count))[8::16]
    return systems[:, :1] - systems[:, 1:], np.sqrt(squares / (pilot - 1))


def _crossing(
    rising: Callable[[float], float], start: float, wanted: float, tolerance: float
) -> float | None:
    """Where a function that rises reaches the wanted value, by false position (Illinois) from around the start.

    None where it does not for 1,000 times the start.
    """
    low, high = 0.8 * start, 1.25 * start
    below, above = rising(low) - wanted, rising(high) - wanted
    while above < 0:
        if high > 1000 * start:
            return None
        low, below, high = high, above, 2 * high
        above = rising(high) - wanted
    while below > 0:
        high, above, low = low, below, low / 2
        below = rising(low) - wanted
    side = 0
    for _ in range(MOST_STEPS):
        middle = (low * above - high * below) / (above - below) if above != below else (low + high) / 2
        value = rising(middle) - wanted
        if abs(value) <= tolerance:
            break
        if value < 0:
            low, below = middle, value
            above, side = (above / 2, -1) if side == -1 else (above, -1)
        else:
            high, above = middle, value
            below, side = (below / 2, 1) if side == 1 else (below, 1)
    return middle


def _checked(
    queries: int, deviation: float, alpha: float, test: str, wanted: float | None = None
) -> Detection:
    """The detection of a test; raises BadValue for values without power."""
    if queries < 2:
        raise BadValue(f"power needs at least two queries; found {queries}")
    if not (deviation >= 0 and math.isfinite(deviation)):
        raise BadValue(f"the deviation is {deviation}; expected a number from 0")
    if not 0 < alpha < 1:
        raise BadValue(f"alpha is {alpha}; expected between 0 and 1")
    detection = TESTS.get(test).detection
    if detection is None:
        raise BadValue(f"the power of {test} is not known; take permutation or t")
    if wanted is not None and not alpha < wanted < 1:
        raise BadValue(f"the wanted power is {wanted}; expected between {alpha} and 1")
    return detection


# Tables.


def reach_note(reach: Reach, test: str, units: int, unit: str, tests: int) -> str:
    """Why so many queries or datasets can show no difference, however large, and how many it takes."""
    several = f", adjusted over {tests} comparisons" if tests > 1 else ""
    takes = (
        f"it takes {count(reach.fewest)} {unit} at least"
        if reach.fewest is not None
        else f"it takes {reach.draws:,} draws at least (--draws)"
    )
    return (
        f"{count(units)} {unit} can show no difference, however large: {test} cannot give a p-value below "
        f"{probability(reach.smallest)}{several}; {takes} to come below {reach.alpha:g}"
    )


@result("power", PowerPlan, parts="needs")
def power_tables(plans: Sequence[PowerPlan]) -> tuple[Table, ...]:
    """Of each plan the minimum detectable effect now, and the queries that other effects need."""
    tables = []
    for one in plans:
        least = "none, not even the largest difference"
        if one.detectable is not None and not (within_unit(one.measure) and one.detectable > 1):
            least = score(one.detectable)
        above = (
            f"{one.measure}: {count(one.queries)} queries, second minus first {change(one.difference)}, "
            f"standard deviation {score(one.deviation)}",
            f"minimum detectable effect now: {least} "
            f"(found {100 * one.wanted:g} times in 100 in new data by one {one.test} test at level {one.alpha:g})"
            if one.reach.possible and one.deviation
            else "all differences are equal, which says nothing of how others vary: no effect can be planned for"
            if one.reach.possible
            else reach_note(one.reach, one.test, one.queries, "queries", 1),
        )
        lines = [["effect", "power now", "queries needed"]] if one.needs else [[]]
        for need in one.needs:
            queries = "more than 10,000,000" if need.queries is None else count(need.queries)
            lines.append([f"{need.effect:g}", share(need.power), queries])
        tables.append(table_of(lines, right=3, above=above))
    return tuple(tables)
