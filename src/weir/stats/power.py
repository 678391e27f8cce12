"""How small a difference a test can find, how many queries it takes, and when two systems are equivalent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.distributions import noncentral_tail, normal_quantile, root, student_quantile, student_tail
from weir.stats.paired import t_statistic

__all__ = [
    "ALPHA",
    "MOST_QUERIES",
    "POWER",
    "Need",
    "PowerPlan",
    "detectable",
    "equivalence",
    "plan",
    "power",
    "queries_needed",
]

ALPHA = 0.05
POWER = 0.8
MOST_QUERIES = 10_000_000


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

    difference: second minus first.
    """

    measure: str
    queries: int
    difference: float
    deviation: float
    wanted: float
    alpha: float
    detectable: float
    needs: tuple[Need, ...]

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values."""
        return asdict(self)


def plan(
    measure: str,
    differences: Float64,
    effects: Sequence[float],
    wanted: float = POWER,
    alpha: float = ALPHA,
) -> PowerPlan:
    """What the differences of two systems between queries say about finding such and other effects.

    Raises BadValue as `detectable` and `queries_needed`.
    """
    n = len(differences)
    if n < 2:
        raise BadValue(f"power needs at least two queries; found {n}")
    mean = math.fsum(differences.tolist()) / n
    deviation = float(differences.std(ddof=1))
    least = detectable(deviation, n, wanted, alpha)
    needs = []
    for effect in effects:
        needed = queries_needed(effect, deviation, wanted, alpha)
        needs.append(Need(effect, power(effect, deviation, n, alpha), needed))
    return PowerPlan(measure, n, mean, deviation, wanted, alpha, least, tuple(needs))


def power(difference: float, deviation: float, queries: int, alpha: float = ALPHA) -> float:
    """Probability that a two-sided paired t-test finds a true mean difference.

    deviation: standard deviation of the differences between queries. From the noncentral t. Raises BadValue for
    fewer than two queries, a negative deviation, and an alpha outside 0..1.
    """
    _check(queries, deviation, alpha)
    if deviation == 0:
        return 1.0 if difference else alpha
    shift = abs(difference) / deviation * math.sqrt(queries)
    return _power(shift, queries - 1, student_quantile(1 - alpha / 2, queries - 1))


def detectable(deviation: float, queries: int, wanted: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest true difference that a two-sided paired t-test finds with the wanted probability.

    Arguments as in `power`. Raises BadValue as `power`, and for a wanted power that is not above alpha and below 1.
    """
    _check(queries, deviation, alpha)
    if not alpha < wanted < 1:
        raise BadValue(f"the wanted power is {wanted}; expected between {alpha} and 1")
    return _shift(queries - 1, wanted, alpha) * deviation / math.sqrt(queries)


def queries_needed(
    difference: float, deviation: float, wanted: float = POWER, alpha: float = ALPHA
) -> int | None:
    """How many queries a two-sided paired t-test needs to find a true difference with the wanted probability.

    At least 2, and None for more than ten million. Raises BadValue for a difference of 0 and as `detectable`.
    """
    _check(2, deviation, alpha)
    if difference == 0 or not math.isfinite(difference):
        raise BadValue(f"the difference to find is {difference}; expected a number other than 0")
    if not alpha < wanted < 1:
        raise BadValue(f"the wanted power is {wanted}; expected between {alpha} and 1")
    if power(difference, deviation, MOST_QUERIES, alpha) < wanted:
        return None
    low, high = _around(difference, deviation, wanted, alpha)
    while high - low > 1:
        middle = (low + high) // 2
        if power(difference, deviation, middle, alpha) < wanted:
            low = middle
        else:
            high = middle
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
    sides = (t_statistic(differences + margin), t_statistic(margin - differences))
    return max(student_tail(t, len(differences) - 1) for t in sides)


def _around(difference: float, deviation: float, wanted: float, alpha: float) -> tuple[int, int]:
    """A number of queries that is too small (or 1) and one that is enough, near what the normal distribution says."""
    quantiles = normal_quantile(1 - alpha / 2) + normal_quantile(wanted)
    guess = min(max(2.0, (quantiles * deviation / difference) ** 2), float(MOST_QUERIES))
    low = high = int(guess)
    step = max(1, low // 64)
    while low > 1 and power(difference, deviation, low, alpha) >= wanted:
        low, high, step = max(1, low - step), low, 2 * step
    while power(difference, deviation, high, alpha) < wanted:
        low, high, step = high, min(high + step, MOST_QUERIES), 2 * step
    return low, high


@lru_cache(maxsize=256)
def _shift(df: int, wanted: float, alpha: float) -> float:
    """The shift of t that is found with the wanted probability."""
    edge = student_quantile(1 - alpha / 2, df)
    return root(lambda shift: _power(shift, df, edge) - wanted, 1.0)


def _power(shift: float, df: int, edge: float) -> float:
    """Probability that t, so shifted, lies beyond the edge on either side."""
    return noncentral_tail(edge, df, shift) + noncentral_tail(edge, df, -shift)


def _check(queries: int, deviation: float, alpha: float) -> None:
    if queries < 2:
        raise BadValue(f"power needs at least two queries; found {queries}")
    if not (deviation >= 0 and math.isfinite(deviation)):
        raise BadValue(f"the deviation is {deviation}; expected a number from 0")
    if not 0 < alpha < 1:
        raise BadValue(f"alpha is {alpha}; expected between 0 and 1")
