"""Statistical power: detectable effects, numbers of queries needed, and tests of equivalence."""

# Power is that of the test at the level that its correction leaves. The deviation of the differences is estimated
# from the data, so power is the probability in new data, averaged over that estimate's error.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from weir.core.results import ResultKind, member_html, member_text
from weir.core.rounding import change, count, percent, probability, score
from weir.core.strings import Float64
from weir.core.tables import Table, table_of
from weir.errors import BadValue
from weir.measures.measure import is_geometric, within_unit
from weir.stats.distributions import (
    binomial_tail,
    foreseen_tail,
    normal_quantile,
    normal_tail,
    student_quantile,
)
from weir.stats.permutation import exact_p_values  # noqa: F401  registers the default test
from weir.stats.resampling import SEED, Draws
from weir.stats.significance import (
    TEST,
    TESTS,
    Detection,
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
"""Numbers of queries or datasets up to which p-values are simulated exactly, and findings simulated at all."""
SIMULATED_ROWS = 12_000
POWER_TOLERANCE = 0.002
"""Tolerance of a simulated power."""
MOST_STEPS = 25
MOST_FEW = 100
"""Number of large differences from which a t-test is not deceived by how few they are."""
KURTOSIS_UNITS, KURTOSIS_STEP, KURTOSIS_BOUNDS = 4, 0.25, (-1.2, 12.0)
"""Smallest number of values whose excess kurtosis is estimated; rounding step and bounds of the estimate."""
KURTOSIS_SURE_UNITS, KURTOSIS_PRIOR, KURTOSIS_PRIOR_UNITS = 10, 0.5, 2
"""Below this many values the estimate is shrunk to the second constant, which counts as this many values."""


@dataclass(frozen=True)
class Family:
    """Number of tests corrected together, how many have equal true differences, and the correction."""

    tests: int = 1
    alike: int = 1
    """Tests with a true difference of the same size: 1 against a baseline, systems - 1 for all pairs."""
    correct: str = "holm"

    def level(self, alpha: float, others: float) -> float:
        """Return the p-value below which a test is significant if `others` (interpolated if fractional) of
        the other tests are.
        """
        low = math.floor(others)
        one = level_met(self.correct, self.tests, low, alpha)
        if low == others:
            return one
        return one + (others - low) * (level_met(self.correct, self.tests, low + 1, alpha) - one)


ALONE = Family()


@dataclass(frozen=True)
class Reach:
    """The smallest p-value that a corrected test can give."""

    smallest: float
    """Lower bound of the adjusted p-values."""
    alpha: float
    fewest: int | None
    """Smallest number of queries or datasets that can be significant; None above 64, or if draws are too few."""
    draws: int = 0
    """Smallest number of draws that can be significant; 0 for a test that does not draw."""

    @property
    def possible(self) -> bool:
        """True if the smallest possible p-value is below alpha."""
        return self.smallest < self.alpha


@dataclass(frozen=True)
class Need:
    """The present power for a true difference, and the queries needed for the required power."""

    effect: float
    power: float
    queries: int | None
    """None above ten million."""


@dataclass(frozen=True, repr=False)
class PowerPlan:
    """The smallest difference that a test can show now, and the queries that given differences need."""

    measure: str
    queries: int
    difference: float
    """Second minus first."""
    deviation: float
    """0 if all differences are equal; then nothing can be planned."""
    wanted: float
    alpha: float
    detectable: float | None
    """Smallest difference found with probability `wanted`; None if `deviation` is 0 or queries are too few."""
    needs: tuple[Need, ...]
    test: str
    """Test of two systems, without a correction."""
    reach: Reach
    first: str = "first"
    second: str = "second"

    __repr__ = member_text
    _repr_html_ = member_html

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def plan(
    measure: str,
    differences: Float64,
    effects: Sequence[float],
    wanted: float = POWER,
    alpha: float = ALPHA,
    test: str = TEST,
    names: tuple[str, str] = ("first", "second"),
) -> PowerPlan:
    """Return the power plan for two systems' differences, float64[queries]; no needs if all are equal.

    effects: true mean differences to find with probability `wanted`.
    test: "permutation", "t" or "bootstrap-shift".

    Raises BadValue for fewer than two queries, numbers out of range or another test.
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
        *names,
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
    """Return the smallest adjusted p-value that a test can give, and the units and draws needed for one below
    alpha.

    units: number of queries or datasets; None above 64 where needed.
    family: the tests corrected together, all with their smallest p-values.
    draws: by default Draws().
    systems: number compared, for tests such as tukey.
    beside: smallest p-values of the family's tests in other tables.
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
    """Return the excess kurtosis pooled over rows, rounded to 0.25 and cut at KURTOSIS_BOUNDS.

    Shrunk towards KURTOSIS_PRIOR for fewer than 10 columns; 0 for fewer than 4 or constant rows.
    """
    # The sum of the rows' fourth k-statistics over that of unbiased squared variances: Fisher 1930; Tukey 1956
    # (polykays).
    n = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    largest = float(np.abs(centred).max(initial=0))
    if n < KURTOSIS_UNITS or largest == 0:
        return 0.0
    centred = centred / largest
    square, fourth = (centred**2).mean(axis=1), (centred**4).mean(axis=1)
    cumulant = n * n * ((n + 1) * fourth - 3 * (n - 1) * square**2) / ((n - 1) * (n - 2) * (n - 3))
    variance = (n - 1) / (n + 1) * ((square * n / (n - 1)) ** 2 - cumulant / n)
    # Bounded, and for fewer than ten values shrunk to that of usual differences.
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
    """Return the probability that a two-sided paired test finds a true mean difference in new data.

    deviation, kurtosis: of the differences, the kurtosis in excess of the normal's.
    test: "permutation", "t" or "bootstrap-shift".
    pilot: number of queries from which the deviation was estimated, by default `queries`.

    alpha for a difference of 0; 1 without deviation, or 0 if alpha is out of reach. Raises BadValue for fewer
    than two queries, numbers out of range or another test.
    """
    detection = _checked(min(queries, pilot or queries), deviation, alpha, test)
    if deviation == 0:
        return float(reach(test, queries, alpha).possible) if difference else alpha
    # Exact for the t-test on normal differences; other tests are simulated up to SOME_UNITS queries, and count
    # as it above.
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
    """Return the smallest true difference found with probability `wanted`; infinite if none.

    family: the tests corrected together; else as for `power`.

    Raises BadValue as `power`, and for `wanted` not between alpha and 1.
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
    """Return the number of queries, from 2, that find a true difference with probability `wanted`; None above
    ten million.

    pilot: queries from which the deviation was estimated, None for as many as needed; else as for `power`.

    Raises BadValue for a difference of 0 and other numbers out of range.
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
    """Return the p-value of the claim that the true mean difference is within ±margin.

    Raises BadValue for a margin not above 0 or fewer than two differences.
    """
    if not (margin > 0 and math.isfinite(margin)):
        raise BadValue(f"the margin is {margin}; expected a number above 0")
    if len(differences) < 2:
        raise BadValue(f"equivalence needs at least two queries; found {len(differences)}")
    mean = abs(exact_mean(differences))
    if deviation_of(differences) == 0 and mean < margin < 1:
        # How often are all alike although rare differences of 1, which were not met, bring the mean to the margin?
        return float(max(((1 - margin) / (1 - mean)) ** len(differences), 0.5 ** len(differences)))
    # Two one-sided t-tests (TOST): Schuirmann 1987. Few large differences deceive them, so the claim must also survive
    # exact tests of how often they occur.
    of_t = max(t_tail(differences + margin), t_tail(margin - differences))
    return max(of_t, _few_large(differences, margin), _few_large(-differences, margin))


def _few_large(differences: Float64, margin: float) -> float:
    descending = np.sort(differences)[::-1]
    largest, count = float(np.abs(differences).max()), len(differences)
    worst = 0.0
    for few in range(int(descending[0] == largest), min(MOST_FEW + 1, count)):
        if few and descending[few - 1] == descending[few]:
            continue
        high = exact_mean(descending[:few]) if few else largest
        low = exact_mean(descending[few:])
        if low < margin < high:
            worst = max(worst, 1 - binomial_tail(few + 1, count, (margin - low) / (high - low)))
    return worst


@lru_cache(maxsize=1024)
def _smallest_shift(
    test: str, units: int, wanted: float, alpha: float, family: Family, kurtosis: float
) -> float | None:
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
    # Exact for normal differences. Otherwise the estimated deviation varies, to the first order, as a normal
    # one with fewer degrees of freedom.
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
    # Simulated data are normal; a difference is scaled by the t-test's loss from kurtosis. Up to FEW_UNITS,
    # with few possible p-values, all true differences of the family are simulated and corrected together;
    # above, this one alone.
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
    generator = np.random.default_rng([SEED, units, alike])
    count = SIMULATED_ROWS // alike
    systems = generator.normal(0, math.sqrt(0.5), (count, 1 + alike, units))
    # Of sixteen times as many, so that they are spread as evenly as the distribution has it.
    squares = np.sort(generator.chisquare(pilot - 1, 16 * count))[8::16]
    return systems[:, :1] - systems[:, 1:], np.sqrt(squares / (pilot - 1))


def _crossing(
    rising: Callable[[float], float], start: float, wanted: float, tolerance: float
) -> float | None:
    # False position (Illinois).
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
    """Return a sentence on why so few queries (`units` of the noun `unit`) or draws can show no difference,
    and how many would.
    """
    several = f", adjusted over {tests} comparisons" if tests > 1 else ""
    few, takes = "draws", f"{reach.draws:,} draws"
    if reach.fewest is not None:
        few, takes = f"{count(units)} {unit}", f"{count(reach.fewest)} {unit}"
    return (
        f"{few} are too few for a test: however large the difference, p ({test}) is {probability(reach.smallest)} at "
        f"least{several}; {takes} could bring it below {reach.alpha:g}"
    )


def _records(one: PowerPlan) -> list[dict[str, object]]:
    names = {"measure": one.measure, "first": one.first, "second": one.second, "difference": one.difference}
    now = {"deviation": one.deviation, "queries": one.queries, "detectable": one.detectable}
    settings = {"power_wanted": one.wanted, "test": one.test, "alpha": one.alpha}
    needs: list[dict[str, object]] = [
        {"effect": need.effect, "power": need.power, "queries_needed": need.queries} for need in one.needs
    ]
    return [names | need | now | settings for need in needs or [{}]]


def _power_tables(plans: Sequence[PowerPlan]) -> tuple[Table, ...]:
    tables = []
    for one in plans:
        least = "none, not even the largest difference"
        if one.detectable is not None and not (within_unit(one.measure) and one.detectable > 1):
            least = score(one.detectable)
        above = (
            f"{one.measure}: {count(one.queries)} queries, {one.second} minus {one.first} {change(one.difference)}"
            f"{' of logarithms, as are all effects' if is_geometric(one.measure) else ''}, "
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
            lines.append([f"{need.effect:g}", percent(need.power), queries])
        tables.append(table_of(lines, right=3, above=above))
    return tuple(tables)


POWER_PLANS = ResultKind("power", PowerPlan, _power_tables, csv=_records)
