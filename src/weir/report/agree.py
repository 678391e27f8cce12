"""Agreement of labels, and of what they conclude, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.plain_values import plain
from weir.core.rounding import change, count, score, share
from weir.report.terminal_layout import columns, paragraph
from weir.stats.label_agreement import Agreement
from weir.stats.order_agreement import OrderAgreement

__all__ = ["agree_json", "agree_text", "orders_text"]


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


def orders_text(found: OrderAgreement, names: tuple[str, str], width: int | None = None) -> str:
    """Systems under both sets of labels, the best by the first one first, and how far the orders agree."""
    lines = [["system", f"{found.measure} by {names[0]}", f"by {names[1]}", "change"]]
    rows = sorted(zip(found.systems, found.first, found.second, strict=True), key=lambda row: -row[1])
    lines += [[name, score(one), score(other), change(other - one)] for name, one, other in rows]
    said = (
        f"orders on {count(found.queries)} queries: tau {score(found.tau)}, tau_AP {score(found.tau_ap)}, Spearman "
        f"{score(found.spearman)}, RBO {score(found.rbo)}; of the best systems {share(found.top)} are the same; "
        f"{share(found.decisions)} of the decisions on pairs (paired t-test, Holm) are the same, {count(found.turned)} "
        "are turned round"
    )
    return columns(lines, width=width) + "\n\n" + paragraph(said, width)


def agree_json(found: Sequence[Agreement], orders: Sequence[OrderAgreement] = ()) -> str:
    """One JSON object for each, at full precision; what is undefined is null."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in (*found, *orders))


def _interval(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"[{score(low)}, {score(high)}]"
