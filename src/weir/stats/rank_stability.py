"""The order of systems: which cannot be told apart, and how two orders agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64
from weir.errors import BadValue
from weir.stats.distributions import student_quantile

LEVEL = 0.95


def letters(apart: NDArray[np.bool_]) -> list[str]:
    """Letters of systems, best first: two systems share a letter exactly if they cannot be told apart.

    apart: bool[K, K], symmetric, whether two systems differ by the test. Groups are as large as can be. Letters go
    on with aa, ab after z. Raises BadValue for a matrix that is not symmetric. Source: Piepho 2004 (insert and absorb).
    """
    count = len(apart)
    if apart.shape != (count, count) or (apart != apart.T).any():
        raise BadValue("which systems are apart must be a symmetric square matrix")
    groups = [(1 << count) - 1] if count else []
    for i, j in zip(*np.nonzero(np.triu(apart, 1)), strict=True):
        both = 1 << int(i) | 1 << int(j)
        split = [g for g in groups if g & both == both]
        if not split:
            continue
        whole = [g for g in groups if g & both != both]
        halves = sorted({g & ~(1 << int(k)) for g in split for k in (i, j)}, key=int.bit_count, reverse=True)
        for half in halves:
            if not any(half & g == half for g in whole):
                whole.append(half)
        groups = whole
    members = sorted([k for k in range(count) if g >> k & 1] for g in groups)
    found = [""] * count
    for number, group in enumerate(members):
        for k in group:
            found[k] += _letter(number) if len(members) <= 26 else f"{_letter(number)} "
    return [f.strip() for f in found]


def kendall_tau(a: Float64, b: Float64) -> float:
    """Agreement of two orders of the same systems, from -1 to 1 (tau-b: ties count in neither direction).

    a, b: float64[K], what the systems are ordered by. NaN where all values of one are equal. Raises BadValue for
    different lengths. Source: Kendall 1945; equals scipy.stats.kendalltau.
    """
    if a.shape != b.shape or a.ndim != 1:
        raise BadValue(f"{a.shape} and {b.shape} values cannot be orders of the same systems")
    left = np.sign(a[:, None] - a)
    right = np.sign(b[:, None] - b)
    pairs = math.sqrt(float(np.abs(left).sum()) * float(np.abs(right).sum()))
    return float((left * right).sum()) / pairs if pairs else math.nan


def rbo(a: Sequence[str], b: Sequence[str], p: float = 0.9) -> float:
    """Rank-biased overlap of two rankings, 0 to 1, extrapolated beyond their ends.

    p: how far down a reader goes on, as in RBP. The rankings need not have the same members or lengths, nor ties.
    Raises BadValue for p outside 0..1, an empty ranking and a member that occurs twice. Source: Webber, Moffat and
    Zobel 2010, equation 32.
    """
    if not 0 < p < 1:
        raise BadValue(f"p is {p}; expected between 0 and 1")
    if not a or not b or len(set(a)) < len(a) or len(set(b)) < len(b):
        raise BadValue("a ranking is empty or names a member twice")
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    common, total, beyond, at_short = 0, 0.0, 0.0, 0
    for depth, member in enumerate(long, 1):
        if depth <= len(short):
            other = short[depth - 1]
            common += (member == other) or (member in seen_short) + (other in seen_long)
            seen_short.add(other)
            at_short = common
        else:
            common += member in seen_short
            beyond += at_short * (depth - len(short)) / (len(short) * depth) * p**depth
        seen_long.add(member)
        total += common / depth * p**depth
    tail = ((common - at_short) / len(long) + at_short / len(short)) * p ** len(long)
    return min(1.0, (1 - p) / p * (total + beyond) + tail)


def _letter(number: int) -> str:
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def tau_ap(truth: Float64, estimate: Float64) -> float:
    """Agreement of an estimated order of systems with the true one, -1 to 1, where mistakes at the top count more.

    truth, estimate: float64[K], what systems are ordered by, larger first; of equal ones the earlier is taken first.
    NaN for fewer than two systems. Raises BadValue for different lengths. Source: Yilmaz, Aslam and Robertson 2008.
    """
    if truth.shape != estimate.shape or truth.ndim != 1:
        raise BadValue(f"{truth.shape} and {estimate.shape} values cannot be orders of the same systems")
    order = truth[np.argsort(-estimate, kind="stable")]
    if len(order) < 2:
        return math.nan
    right = [float((order[:i] > order[i]).sum()) / i for i in range(1, len(order))]
    return 2 * math.fsum(right) / (len(order) - 1) - 1


def spearman(a: Float64, b: Float64) -> float:
    """Pearson's correlation of average ranks, -1 to 1; NaN where one of them does not vary.

    Raises BadValue for different lengths. Source: Spearman 1904; equals scipy.stats.spearmanr.
    """
    if a.shape != b.shape or a.ndim != 1:
        raise BadValue(f"{a.shape} and {b.shape} values cannot be orders of the same systems")
    x, y = (ranks - (len(ranks) + 1) / 2 for ranks in (average_ranks(a), average_ranks(b)))
    spread = math.sqrt(float((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / spread if spread else math.nan


def average_ranks(values: Float64) -> Float64:
    """Ranks from 1, ascending; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], np.float64)


def order_interval(
    value: float,
    resampled: Sequence[float],
    queries: int,
    steps: int,
    limits: tuple[float, float] = (-1.0, 1.0),
) -> tuple[float, float]:
    """The 95% interval of a statistic of two orders of systems, over other draws of as many queries.

    value: as measured; resampled: on queries drawn again; steps: how many the statistic has between its limits, such as
    the pairs of systems for Kendall's tau. Resampled orders hold the noise of two draws and agree less than the
    measured ones, so that percentiles of them lie below the value. Their spread alone is taken, around the value, with
    Student's t: on the scale of Fisher's z, which keeps to the limits, and on the plain one, cut at them; the interval
    is the hull of both, and of percentiles too where there are no steps between the limits, as for two systems. It
    holds its value always. NaN where the value or all of the resampled ones are. Coverage: docs/labels.md. Source:
    Fieller, Hartley and Pearson 1957 (z of rank correlations).
    """
    known = np.array([one for one in resampled if not math.isnan(one)])
    if math.isnan(value) or not len(known) or queries < 2:
        return math.nan, math.nan
    low, high = limits
    times, edge = student_quantile((1 + LEVEL) / 2, queries - 1), 1 - 1 / max(2, steps)
    at, drawn = 2 * (value - low) / (high - low) - 1, 2 * (known - low) / (high - low) - 1
    plain = times * float(drawn.std())
    if not plain:
        return value, value
    centre, spread = np.arctanh(np.clip(at, -edge, edge)), np.arctanh(np.clip(drawn, -edge, edge))
    first, last = (math.tanh(float(centre) + sign * times * float(spread.std())) for sign in (-1, 1))
    first = max(-1.0, min(at - plain, first if first > -edge else -1.0))
    last = min(1.0, max(at + plain, last if last < edge else 1.0))
    if steps == 1:
        percentiles = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
        first, last = min(first, percentiles[0]), max(last, percentiles[1])
    ends = ((one + 1) / 2 * (high - low) + low for one in (first, last))
    return min(value, next(ends)), max(value, next(ends))
