"""Agreement of two orders of systems, such as by two sets of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import change, count, counted, percent, score
from weir.core.run import Run
from weir.core.scores import averaged
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.evaluate import score_run
from weir.measures.measure import Measure, direction, no_direction_note
from weir.stats.distributions import student_quantile
from weir.stats.label_agreement import bounds_shown, drawn_tables
from weir.stats.resampling import LEVEL, percentiles
from weir.stats.significance import adjusted, all_pairs, p_values


def kendall_tau(a: Float64, b: Float64) -> float:
    """Return Kendall's tau-b of two vectors of scores, -1 to 1; NaN if one is constant or has a NaN.

    Raises BadValue for different lengths.
    """
    # Kendall 1945; equals scipy.stats.kendalltau.
    _check_alike(a, b)
    one, other = np.sign(a[:, None] - a), np.sign(b[:, None] - b)
    pairs = math.sqrt(float(np.abs(one).sum()) * float(np.abs(other).sum()))
    return float((one * other).sum()) / pairs if pairs else math.nan


def _check_alike(a: Float64, b: Float64) -> None:
    if a.shape != b.shape or a.ndim != 1:
        raise BadValue(f"{a.shape} and {b.shape} values cannot be orders of the same systems")


def rbo(a: Sequence[str], b: Sequence[str], p: float = 0.9) -> float:
    """Return the rank-biased overlap of two rankings, 0 to 1, extrapolated beyond their ends (RBO_ext).

    p: probability of reading on to the next rank.

    Raises BadValue for p not between 0 and 1, an empty ranking or a repeated member.
    """
    # Webber, Moffat and Zobel 2010, equation 32.
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


def tau_ap(truth: Float64, estimate: Float64) -> float:
    """Return tau_AP of an estimated order of systems against the true order, -1 to 1; errors at the top weigh
    more.

    Both are scores, larger is better. Ties in the truth count as errors, ties in the estimate are skipped;
    NaN for a constant estimate. Raises BadValue for different lengths.
    """
    # Yilmaz, Aslam and Robertson 2008, without ties. tauAP_b of Urbano and Marrero 2017 (tauap_b of autojudge)
    # is the mean of this and of the same with truth and estimate exchanged.
    _check_alike(truth, estimate)
    # Ties in the truth count as errors, ties in the estimate are not compared.
    right = [
        float((truth[above] > truth[i]).mean())
        for i in range(len(truth))
        if (above := estimate > estimate[i]).any()
    ]
    return 2 * math.fsum(right) / len(right) - 1 if right else math.nan


def spearman(a: Float64, b: Float64) -> float:
    """Return Spearman's rank correlation, -1 to 1, with mean ranks for ties; NaN if one vector is constant.

    Raises BadValue for different lengths.
    """
    # Spearman 1904; equals scipy.stats.spearmanr.
    _check_alike(a, b)
    centred = []
    for values in (a, b):  # ranks from 1, ascending; equal values share the mean of theirs
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
        centred.append(ranks - (len(ranks) + 1) / 2)
    x, y = centred
    spread = math.sqrt(float((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / spread if spread else math.nan


def order_interval(
    value: float,
    resampled: Sequence[float],
    queries: int,
    steps: int,
    limits: tuple[float, float] = (-1.0, 1.0),
) -> tuple[float, float]:
    """Return the 95% interval (low, high) of a statistic of two orders of systems; (NaN, NaN) for one query
    or undefined values.

    resampled: the statistic on resampled queries, NaN ignored; (value, value) if it never varies.
    steps: number of values between its limits, such as the pairs of systems for Kendall's tau.
    """
    # Resampled orders hold the noise of two draws and agree less than measured ones, so their percentiles lie
    # below the value. Only their spread is used, around the value, with Student's t: on the scale of Fisher's
    # z, which keeps to the limits, and on the plain scale, cut at them. The interval is the hull of both, and
    # of the percentiles, too, for two systems. Coverage: docs/labels.md. Fieller, Hartley and Pearson 1957 (z
    # of rank correlations).
    defined = np.array([one for one in resampled if not math.isnan(one)])
    if math.isnan(value) or not len(defined) or queries < 2:
        return math.nan, math.nan
    low, high = limits
    times, edge = student_quantile((1 + LEVEL) / 2, queries - 1), 1 - 1 / max(2, steps)
    at, drawn = 2 * (value - low) / (high - low) - 1, 2 * (defined - low) / (high - low) - 1
    plain = times * float(drawn.std())
    if not plain:
        return value, value
    centre, spread = np.arctanh(np.clip(at, -edge, edge)), np.arctanh(np.clip(drawn, -edge, edge))
    first, last = (math.tanh(float(centre) + sign * times * float(spread.std())) for sign in (-1, 1))
    first = max(-1.0, min(at - plain, first if first > -edge else -1.0))
    last = min(1.0, max(at + plain, last if last < edge else 1.0))
    if steps == 1:
        ends = percentiles(drawn).tolist()
        first, last = min(first, ends[0]), max(last, ends[1])
    first, last = ((one + 1) / 2 * (high - low) + low for one in (first, last))
    return min(value, first), max(value, last)


# Two sets of labels.

ALPHA = 0.05
TOP_SYSTEMS = 5
MEAN_DECIMALS = 12
"""Means are rounded to this many decimals, so that exact ties are ties."""
STATISTICS_OF_ORDERS = ("tau", "tau_ap", "spearman", "rbo", "top", "top_tau")
SHARES = ("rbo", "top")
"""Statistics from 0 to 1; the others are correlations, from -1."""


@dataclass(frozen=True)
class OrderAgreement:
    """How two sets of labels, the first taken as true, agree on the order of systems."""

    labels: tuple[str, str]
    measure: str
    systems: tuple[str, ...]
    first: tuple[float, ...]
    """Mean of each system by the first labels, `second` by the second."""
    second: tuple[float, ...]
    queries: int
    tau: float
    tau_ap: float
    spearman: float
    rbo: float
    top_systems: int
    top: float
    """Share of the best `top_systems` by the second labels that are also the first's best."""
    top_tau: float
    """Kendall's tau of the first's best systems only."""
    intervals: tuple[tuple[str, float, float], ...]
    """(statistic, low, high) at 95%, by `order_interval`."""
    pairs: int
    decisions: float
    """Share of pairs on which both agree: better, worse, or no significant difference (paired test, Holm)."""
    only_first: int
    """Pairs that differ significantly by the first labels only; `only_second` by the second only."""
    only_second: int
    turned: int
    """Pairs that differ significantly by both, in opposite directions."""
    test: str = "t"
    """The paired test, in TESTS, by which pairs differ."""
    alike: tuple[tuple[str, str], ...] = ()
    """(system, model family) of systems named like the model that made the second labels."""


def order_agreement(
    runs: Mapping[str, Run],
    first: Qrels,
    second: Qrels,
    measure: Measure,
    names: tuple[str, str] = ("first", "second"),
    test: str = "t",
) -> OrderAgreement:
    """Return how two sets of labels agree on the order of systems, scored on the queries that both judge.

    test: in TESTS, decides which pairs of systems differ.

    Raises BadValue for fewer than two systems or shared queries, a system that answers none of these, or a
    measure without a direction.
    """
    if problem := no_direction_note([str(measure)]):
        raise BadValue(f"{problem[0]}; order systems by another measure")
    if len(runs) < 2:
        raise BadValue(f"{counted(len(runs), 'ranking')} cannot be put in order; name two or more")
    common = np.flatnonzero(second.queries.codes(first.queries.strings) >= 0)
    if len(common) < 2:
        raise BadValue(f"both labels judge {len(common)} queries in common; two at least are needed")
    for name, run in runs.items():
        if not (run.queries.codes(first.queries.take(common).strings) >= 0).any():
            raise BadValue(f"{name} answers none of the {len(common):,} queries that both labels judge")
    of_both = second.queries.codes(first.queries.take(common).strings)
    one, other = (
        np.array([score_run(qrels, run, [measure]).in_id_order(str(measure)) for run in runs.values()])
        for qrels in (first.only(common), second.only(of_both))
    )
    top = min(TOP_SYSTEMS, len(runs))
    means = np.round([one.mean(axis=1), other.mean(axis=1)], MEAN_DECIMALS)
    way = direction(str(measure))
    values = _statistics(way * means, top)
    both = way * np.stack([one.T, other.T], axis=1)
    resampled = [
        _statistics(np.round(sums / len(both), MEAN_DECIMALS), top) for sums in drawn_tables(both, least=2)
    ]
    pairs, of_top = (math.comb(count, 2) for count in (len(one), top))
    steps = (pairs, pairs, pairs, pairs, top, of_top)
    rows = zip(STATISTICS_OF_ORDERS, values, zip(*resampled, strict=True), steps, strict=True)
    intervals = tuple(
        (name, *order_interval(value, draws, len(both), number, (0.0 if name in SHARES else -1.0, 1.0)))
        for name, value, draws, number in rows
    )
    by_first, by_second = _decisions(one, test), _decisions(other, test)
    tau, ap, rho, overlap, share, top_tau = values
    return OrderAgreement(
        names,
        str(measure),
        tuple(runs),
        tuple(averaged(mean, measure.geometric) for mean in means[0].tolist()),
        tuple(averaged(mean, measure.geometric) for mean in means[1].tolist()),
        *(len(common), tau, ap, rho, overlap, top, share, top_tau, intervals, len(by_first)),
        float((by_first == by_second).mean()),
        int(((by_first != 0) & (by_second == 0)).sum()),
        int(((by_first == 0) & (by_second != 0)).sum()),
        int((by_first * by_second < 0).sum()),
        test,
    )


def _statistics(means: Float64, top: int) -> tuple[float, float, float, float, float, float]:
    one, other = means
    true, estimated = (np.argsort(-row, kind="stable") for row in means)
    best = true[:top]
    return (
        kendall_tau(one, other),
        tau_ap(one, other),
        spearman(one, other),
        rbo([str(number) for number in true], [str(number) for number in estimated]),
        len(np.intersect1d(best, estimated[:top])) / top,
        kendall_tau(one[best], other[best]),
    )


def _decisions(values: Float64, test: str) -> Float64:
    pairs = all_pairs(len(values))
    p = adjusted(p_values(test, values, pairs), "holm")
    difference = np.array([values[j].mean() - values[i].mean() for i, j in pairs])
    return np.where(p <= ALPHA, np.sign(difference), 0.0)


def order_tables(results: Sequence[OrderAgreement]) -> tuple[Table, ...]:
    """Return tables of the systems' means by both sets of labels, best first, and of their agreement."""
    tables = []
    for one in results:
        first, second = one.labels
        systems = [["system", f"{one.measure} by {first}", f"by {second}", "change"]]
        way, means = direction(one.measure), zip(one.systems, one.first, one.second, strict=True)
        rows = sorted(means, key=lambda row: -way * row[1])
        systems += [[name, score(a), score(b), change(b - a)] for name, a, b in rows]
        statistics = {
            "tau": ("tau", one.tau),
            "tau_ap": ("tau_AP", one.tau_ap),
            "spearman": ("Spearman", one.spearman),
            "rbo": ("RBO", one.rbo),
            "top": (f"share of the best {one.top_systems} kept", one.top),
            "top_tau": (f"tau of the best {one.top_systems}", one.top_tau),
        }
        values = [[f"orders on {count(one.queries)} queries", "value", "95% interval"]]
        for key, low, high in one.intervals:
            name, value = statistics[key]
            values.append([name, score(value), bounds_shown(low, high)])
        decided = (
            f"of {count(one.pairs)} pairs of systems {percent(one.decisions)} are decided alike "
            f"(paired {one.test}-test, Holm); "
            f"{count(one.only_first)} differ significantly by {first} alone, {count(one.only_second)} by {second} "
            f"alone, {count(one.turned)} are turned round"
        )
        tables += [table_of(systems), table_of(values), sentences(decided)]
        if one.alike:
            names = ", ".join(f"{system} ({family})" for system, family in one.alike)
            tables.append(
                sentences(
                    f"note: named like the model that labels: {names}; a judge favours what ranks as it does, so rank "
                    "these by people's labels"
                )
            )
    return tuple(tables)


ORDERS = ResultKind("orders", OrderAgreement, order_tables)
