"""Whether two sets of labels lead to the same conclusions: the order of systems, and which differ significantly."""

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
from weir.measures.evaluate import evaluate
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
"""Those from 0 to 1; the others are correlations, from -1."""


@dataclass(frozen=True)
class OrderAgreement:
    """The order of systems under two sets of labels, the first taken for true.

    labels: what both are called; first, second: mean of the measure of each system; tau, tau_ap, spearman, rbo: of both
    orders; top: share of the best `top_systems` by the second that are among the best by the first; top_tau: Kendall's
    tau of those best by the first alone; intervals: (name, low, high) of these, of 95%, see `order_interval`. Of the
    `pairs` of systems, decisions: the share for which both say the same (better, worse, or no significant difference;
    paired t-test, Holm); only_first, only_second: how many differ significantly by one set of labels alone; turned:
    those that differ significantly by both, in opposite directions. alike: (system, family of models) where a system is
    called like the model that made the second labels.
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
    asked = first.queries.take(common)
    one = _values(runs, first.only(common), measure)
    other = _values(runs, second.only(second.queries.codes(asked.strings)), measure)
    top = min(TOP_SYSTEMS, len(runs))
    values = _statistics(_means(one), _means(other), top)
    tau, ap, rho, overlap, share, top_tau = values
    says = _decisions(one), _decisions(other)
    return OrderAgreement(
        names,
        str(measure),
        tuple(runs),
        tuple(_means(one).tolist()),
        tuple(_means(other).tolist()),
        len(common),
        tau,
        ap,
        rho,
        overlap,
        top,
        share,
        top_tau,
        _intervals(values, one, other, top),
        len(says[0]),
        float((says[0] == says[1]).mean()),
        int(((says[0] != 0) & (says[1] == 0)).sum()),
        int(((says[0] == 0) & (says[1] != 0)).sum()),
        int((says[0] * says[1] < 0).sum()),
    )


def _means(values: Float64) -> Float64:
    return _rounded(values.mean(axis=1))


def _rounded(means: Float64) -> Float64:
    """Means to so many decimals that systems which are tied in exact numbers are tied here."""
    return np.round(means, MEAN_DECIMALS)


def _statistics(one: Float64, other: Float64, top: int) -> tuple[float, float, float, float, float, float]:
    """The STATISTICS_OF_ORDERS of two means for each system; of equal means the earlier system stands first."""
    true, said = (np.argsort(-means, kind="stable") for means in (one, other))
    best = true[:top]
    return (
        kendall_tau(one, other),
        tau_ap(one, other),
        spearman(one, other),
        rbo([str(number) for number in true], [str(number) for number in said]),
        len(np.intersect1d(best, said[:top])) / top,
        kendall_tau(one[best], other[best]),
    )


def _intervals(
    values: Sequence[float], one: Float64, other: Float64, top: int
) -> tuple[tuple[str, float, float], ...]:
    """The interval of each statistic, where queries are drawn again, the same for both sets of labels."""
    both = np.stack([one.T, other.T], axis=1)
    drawn = [
        _statistics(one_mean, other_mean, top)
        for one_mean, other_mean in (_rounded(sums / len(both)) for sums in drawn_tables(both))
    ]
    pairs, of_top = (math.comb(count, 2) for count in (len(one), top))
    steps = (pairs, pairs, pairs, pairs, top, of_top)
    limits = [(0.0, 1.0) if name in SHARES else (-1.0, 1.0) for name in STATISTICS_OF_ORDERS]
    columns = zip(STATISTICS_OF_ORDERS, values, zip(*drawn, strict=True), steps, limits, strict=True)
    return tuple(
        (name, *order_interval(value, resampled, len(both), number, ends))
        for name, value, resampled, number, ends in columns
    )


def _values(runs: Mapping[str, Run], qrels: Qrels, measure: Measure) -> Float64:
    return np.array([evaluate(qrels, run, [measure]).in_id_order(str(measure)) for run in runs.values()])


def _decisions(values: Float64) -> Float64:
    """For each pair of systems 1 or -1 where they differ significantly, by the sign of the difference, else 0."""
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
