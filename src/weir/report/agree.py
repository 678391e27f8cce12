"""Agreement of labels, and of what they conclude, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from weir.core.frames import plain
from weir.core.rounding import change, count, score, share
from weir.core.tables import columns, paragraph
from weir.stats.label_agreement import Agreement, ManyRaters
from weir.stats.order_agreement import OrderAgreement

_SAID = {"tau": "tau", "tau_ap": "tau_AP", "spearman": "Spearman", "rbo": "RBO"}


def agree_text(found: Sequence[Agreement], width: int | None = None) -> str:
    """Confusion, statistics with their intervals, and kappa from each grade on, of each pair of raters."""
    return "\n\n".join(_one(one, width) for one in found)


def _one(found: Agreement, width: int | None) -> str:
    grades = [f"{label:g}" for label in found.labels]
    confusion = [[f"{found.first} \\ {found.second}", *grades]]
    confusion += [[grade, *map(count, row)] for grade, row in zip(grades, found.confusion, strict=True)]
    values = [["statistic", "value", "95% interval"]]
    values += [[name, score(value), _interval(low, high)] for name, value, low, high in found.values]
    binary = [["relevant from", "kappa", "95% interval", found.first, found.second]]
    binary += [
        [f"{cut:g}", score(kappa), _interval(low, high), share(one), share(other)]
        for cut, kappa, low, high, one, other in found.binary
    ]
    left = [f"{count(n)} only by {name}" for n, name in
            ((found.only_first, found.first), (found.only_second, found.second)) if n]  # fmt: skip
    head = f"{count(found.pairs)} pairs of {count(found.queries)} queries are labelled by both" + (
        f"; {', '.join(left)}" if left else ""
    )
    parts = [paragraph(head, width), *(columns(lines, width=width) for lines in (confusion, values, binary))]
    return "\n\n".join(part for part in parts if part)


def by_query_text(found: Sequence[Agreement], width: int | None = None) -> str:
    """A line for each query of each pair of raters, the worst kappa first."""
    parts = []
    for one in found:
        lines = [[f"{one.first} and {one.second}", "pairs", "accuracy", "kappa", "bias"]]
        lines += [
            [q.query, count(q.pairs), share(q.accuracy), score(q.kappa), change(q.bias)] for q in one.by_query
        ]
        parts.append(columns(lines, right=4, width=width))
    return "\n\n".join(parts)


def raters_text(found: Sequence[ManyRaters], width: int | None = None) -> str:
    """Each rater's base rates, and the alphas of all of them together."""
    parts = []
    for one in found:
        base = [["rater", "labels", "queries", "mean grade", "1 or more"]]
        base += [
            [r.name, count(r.labels), count(r.queries), score(r.mean), share(r.relevant)] for r in one.raters
        ]
        values = [["alpha of all raters", "value", "95% interval"]]
        values += [[level, score(value), _interval(low, high)] for level, value, low, high in one.values]
        said = (
            f"{count(len(one.raters))} raters: {count(one.pairs)} pairs of {count(one.queries)} queries have two "
            f"labels or more, {share(one.missing)} of theirs are missing; {count(one.alone)} pairs have one alone"
        )
        parts += [paragraph(said, width), columns(base, width=width), columns(values, width=width)]
    return "\n\n".join(parts)


def orders_text(found: Sequence[OrderAgreement], width: int | None = None) -> str:
    """Systems under both sets of labels, the best by the first one first, and how far the orders agree."""
    return "\n\n".join(part for one in found for part in _order(one, width))


def _order(found: OrderAgreement, width: int | None) -> list[str]:
    first, second = found.labels
    lines = [["system", f"{found.measure} by {first}", f"by {second}", "change"]]
    rows = sorted(zip(found.systems, found.first, found.second, strict=True), key=lambda row: -row[1])
    lines += [[name, score(one), score(other), change(other - one)] for name, one, other in rows]
    values = {**_SAID, "top": f"share of the best {found.top_systems} kept",
              "top_tau": f"tau of the best {found.top_systems}"}  # fmt: skip
    measured = {"tau": found.tau, "tau_ap": found.tau_ap, "spearman": found.spearman, "rbo": found.rbo,
                "top": found.top, "top_tau": found.top_tau}  # fmt: skip
    table = [[f"orders on {count(found.queries)} queries", "value", "95% interval"]]
    table += [
        [values[name], score(measured[name]), _interval(low, high)] for name, low, high in found.intervals
    ]
    said = (
        f"of {count(found.pairs)} pairs of systems {share(found.decisions)} are decided alike (paired t-test, Holm); "
        f"{count(found.only_first)} differ significantly by {first} alone, {count(found.only_second)} by {second} "
        f"alone, {count(found.turned)} are turned round"
    )
    parts = [columns(lines, width=width), columns(table, width=width), paragraph(said, width)]
    if found.alike:
        named = ", ".join(f"{system} ({family})" for system, family in found.alike)
        note = f"note: named like the model that labels: {named}; a judge favours what ranks as it does, so rank these "
        parts.append(paragraph(note + "by people's labels", width))
    return parts


def agree_json(
    found: Sequence[Agreement],
    several: Sequence[ManyRaters] = (),
    orders: Sequence[OrderAgreement] = (),
    by_query: bool = False,
) -> str:
    """One JSON object for each, at full precision, with the queries where asked; what is undefined is null."""
    pairs = found if by_query else [replace(one, by_query=()) for one in found]
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in (*pairs, *several, *orders))


def _interval(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"[{score(low)}, {score(high)}]"
