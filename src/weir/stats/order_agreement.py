"""Whether two sets of labels lead to the same conclusions: the order of systems, and which differ significantly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.evaluate import evaluate
from weir.measures.measure import Measure
from weir.stats import paired  # noqa: F401 - registers the t-test
from weir.stats.corrections import adjusted
from weir.stats.rank_stability import kendall_tau, rbo, spearman, tau_ap
from weir.stats.significance import all_pairs, p_values

__all__ = ["OrderAgreement", "order_agreement"]

ALPHA = 0.05
TOP_SYSTEMS = 5


@dataclass(frozen=True)
class OrderAgreement:
    """The order of systems under two sets of labels, the first taken for true.

    first, second: mean of the measure of each system; tau, tau_ap, spearman, rbo: of both orders; top: share of the
    best TOP_SYSTEMS by the second that are among the best by the first; decisions: share of pairs of systems for which
    both say the same (better, worse, or no significant difference; paired t-test, Holm); turned: pairs that differ
    significantly by both, in opposite directions.
    """

    measure: str
    systems: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    queries: int
    tau: float
    tau_ap: float
    spearman: float
    rbo: float
    top: float
    decisions: float
    turned: int


def order_agreement(runs: Mapping[str, Run], first: Qrels, second: Qrels, measure: Measure) -> OrderAgreement:
    """Score systems by both labels on the queries that both judge, and compare.

    Raises BadValue for fewer than two systems, and where labels have fewer than two queries in common.
    """
    if len(runs) < 2:
        raise BadValue(f"{len(runs)} rankings have no order; name two or more")
    common = np.flatnonzero(second.queries.codes(first.queries.strings) >= 0)
    if len(common) < 2:
        raise BadValue(f"both labels judge {len(common)} queries in common; two at least are needed")
    asked = first.queries.take(common)
    values = [_values(runs, first.only(common), measure)]
    values.append(_values(runs, second.only(second.queries.codes(asked.strings)), measure))
    one, other = (v.mean(axis=1) for v in values)
    names = np.array(list(runs))
    orders = [names[np.argsort(-means, kind="stable")].tolist() for means in (one, other)]
    says = [_decisions(v) for v in values]
    top = min(TOP_SYSTEMS, len(names))
    return OrderAgreement(
        str(measure),
        tuple(runs),
        tuple(one.tolist()),
        tuple(other.tolist()),
        len(common),
        kendall_tau(one, other),
        tau_ap(one, other),
        spearman(one, other),
        rbo(*orders),
        len(set(orders[0][:top]) & set(orders[1][:top])) / top,
        float((says[0] == says[1]).mean()),
        int((says[0] * says[1] < 0).sum()),
    )


def _values(runs: Mapping[str, Run], qrels: Qrels, measure: Measure) -> Float64:
    return np.array([evaluate(qrels, run, [measure]).in_id_order(str(measure)) for run in runs.values()])


def _decisions(values: Float64) -> Float64:
    """For each pair of systems 1 or -1 where they differ significantly, by the sign of the difference, else 0."""
    pairs = all_pairs(len(values))
    p = adjusted(p_values("t", values, pairs), "holm")
    difference = np.array([values[j].mean() - values[i].mean() for i, j in pairs])
    return np.where(p <= ALPHA, np.sign(difference), 0.0)
