"""Agreement of two sets of labels on systems: their order, and which differ significantly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.qrels import Qrels
from weir.core.results import result
from weir.core.rounding import change, count, score, share
from weir.core.run import Run
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.evaluate import score_run
from weir.measures.measure import Measure
from weir.stats import significance as paired  # noqa: F401 - registers the t-test
from weir.stats.label_agreement import bounds_shown, drawn_tables
from weir.stats.rank_stability import kendall_tau, order_interval, rbo, spearman, tau_ap
from weir.stats.significance import adjusted, all_pairs, p_values

ALPHA = 0.05
TOP_SYSTEMS = 5
MEAN_DECIMALS = 12
STATISTICS_OF_ORDERS = ("tau", "tau_ap", "spearman", "rbo", "top", "top_tau")
SHARES = ("rbo", "top")
"""Statistics from 0 to 1; the others are correlations, from -1."""


@dataclass(frozen=True)
class OrderAgreement:
    """The order of systems under two sets of labels, the first taken as true.

    labels: their names; first, second: mean of the measure of each system; tau, tau_ap, spearman, rbo: of both
    orders; top: share of the best `top_systems` by the second that are among the best by the first; top_tau: Kendall's
    tau of those best by the first alone; intervals: (name, low, high) of these, of 95%, see `order_interval`. Of the
    `pairs` of systems, decisions: the share for which both say the same (better, worse, or no significant difference;
    paired t-test, Holm); only_first, only_second: how many differ significantly by one set of labels alone; turned:
    those that differ significantly by both, in opposite directions. alike: (system, family of models) where a system
    has a name like the model that made the second labels.
    """

    labels: tuple[str, str]
    measure: str
    systems: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    queries: int
    tau: float
    tau_ap: float
    spearman: float
    rbo: float
    top_systems: int
    top: float
    top_tau: float
    intervals: tuple[tuple[str, float, float], ...]
    pairs: int
    decisions: float
    only_first: int
    only_second: int
    turned: int
    alike: tuple[tuple[str, str], ...] = ()


def order_agreement(
    runs: Mapping[str, Run],
    first: Qrels,
    second: Qrels,
    measure: Measure,
    names: tuple[str, str] = ("first", "second"),
) -> OrderAgreement:
    """Score systems by both labels on the queries that both judge, and compare.

    Raises BadValue for fewer than two systems, and where labels have fewer than two queries in common.
    """
    if len(runs) < 2:
        raise BadValue(f"{len(runs)} rankings have no order; name two or more")
    common = np.flatnonzero(second.queries.codes(first.queries.strings) >= 0)
    if len(common) < 2:
        raise BadValue(f"both labels judge {len(common)} queries in common; two at least are needed")
    of_both = second.queries.codes(first.queries.take(common).strings)
    one, other = (
        np.array([score_run(qrels, run, [measure]).in_id_order(str(measure)) for run in runs.values()])
        for qrels in (first.only(common), second.only(of_both))
    )
    top = min(TOP_SYSTEMS, len(runs))
    means = _rounded(one.mean(axis=1)), _rounded(other.mean(axis=1))
    values = _statistics(*means, top)
    tau, ap, rho, overlap, share, top_tau = values
    both = np.stack([one.T, other.T], axis=1)
    drawn = [_rounded(sums / len(both)) for sums in drawn_tables(both)]
    resampled = [_statistics(of_first, of_second, top) for of_first, of_second in drawn]
    pairs, of_top = (math.comb(count, 2) for count in (len(one), top))
    steps = (pairs, pairs, pairs, pairs, top, of_top)
    intervals = []
    for name, value, draws, number in zip(
        STATISTICS_OF_ORDERS, values, zip(*resampled, strict=True), steps, strict=True
    ):
        limits = (0.0, 1.0) if name in SHARES else (-1.0, 1.0)
        intervals.append((name, *order_interval(value, draws, len(both), number, limits)))
    by_first, by_second = _decisions(one), _decisions(other)
    return OrderAgreement(
        names,
        str(measure),
        tuple(runs),
        tuple(means[0].tolist()),
        tuple(means[1].tolist()),
        len(common),
        tau,
        ap,
        rho,
        overlap,
        top,
        share,
        top_tau,
        tuple(intervals),
        len(by_first),
        float((by_first == by_second).mean()),
        int(((by_first != 0) & (by_second == 0)).sum()),
        int(((by_first == 0) & (by_second != 0)).sum()),
        int((by_first * by_second < 0).sum()),
    )


def _rounded(means: Float64) -> Float64:
    """Means rounded to decimals at which ties in exact numbers are ties here."""
    return np.round(means, MEAN_DECIMALS)


def _statistics(one: Float64, other: Float64, top: int) -> tuple[float, float, float, float, float, float]:
    """The STATISTICS_OF_ORDERS of two means for each system; of equal means the earlier system stands first."""
    true, estimated = (np.argsort(-means, kind="stable") for means in (one, other))
    best = true[:top]
    return (
        kendall_tau(one, other),
        tau_ap(one, other),
        spearman(one, other),
        rbo([str(number) for number in true], [str(number) for number in estimated]),
        len(np.intersect1d(best, estimated[:top])) / top,
        kendall_tau(one[best], other[best]),
    )


def _decisions(values: Float64) -> Float64:
    """For each pair of systems the sign of their difference if it is significant, else 0."""
    pairs = all_pairs(len(values))
    p = adjusted(p_values("t", values, pairs), "holm")
    difference = np.array([values[j].mean() - values[i].mean() for i, j in pairs])
    return np.where(p <= ALPHA, np.sign(difference), 0.0)


@result("orders", OrderAgreement)
def order_tables(results: Sequence[OrderAgreement]) -> tuple[Table, ...]:
    """Systems under both sets of labels, the best by the first one first, and how far the orders agree."""
    tables = []
    for one in results:
        first, second = one.labels
        systems = [["system", f"{one.measure} by {first}", f"by {second}", "change"]]
        rows = sorted(zip(one.systems, one.first, one.second, strict=True), key=lambda row: -row[1])
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
            f"of {count(one.pairs)} pairs of systems {share(one.decisions)} are decided alike (paired t-test, Holm); "
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
