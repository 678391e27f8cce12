"""What people and a model say of holes, as text and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import change, count, score, share
from weir.core.tables import columns, paragraph
from weir.labels.hole_study import FilledOrder, FilledScore, HolesFound, HoleStudy, Ratio


def holes_text(found: Sequence[HoleStudy], width: int | None = None) -> str:
    """Agreement and what was missed, scores before and after, and the order of systems, each with its interval."""
    return "\n\n".join(part for one in found for part in _study(one, width))


def _study(study: HoleStudy, width: int | None) -> list[str]:
    head = [
        "first " + str(study.k),
        "unjudged",
        "relevant by people",
        "by the model",
        "same verdict",
        "kappa",
    ]
    alone = all(len(one.filled) < 2 for one in study.found)  # people alone
    shares = [row[:3] if alone else row for row in [head, *map(_shares, study.found)]]
    named = ["by people", "change", "by the model", "change"][: 2 if alone else 4]
    scores = [["system", f"{study.measure} now", "may be", *named]]
    rows = sorted((one for one in study.found if one.system), key=lambda one: -one.before)
    scores += [
        [one.system, score(one.before), f"{score(one.least)} to {score(one.most)}",
         *(cell for filled in one.filled for cell in _filled(filled))] for one in rows
    ]  # fmt: skip
    judges = "people" if alone else "each"
    said = (
        f"documents of grade {study.rel:g} or more are relevant; shares are of the unjudged documents that {judges} "
        "judged, those judged by nobody still count as not relevant; intervals of 95% over "
        f"{count(study.queries)} queries"
    )
    return [
        columns(shares, width=width),
        columns(scores, width=width),
        "\n".join(paragraph(_order(one), width) for one in [*study.orders]) or "one system has no order",
        paragraph(said, width),
    ]


def _shares(one: HolesFound) -> list[str]:
    kappa, low, high = one.kappa
    ratios = [_ratio(r) for r in (one.missed_by_people, one.missed_by_model, one.agreement)]
    shown = "-" if math.isnan(kappa) else f"{score(kappa)} [{score(low)}, {score(high)}]"
    return [one.system or "all systems", count(one.holes), *ratios, shown]


def _ratio(ratio: Ratio) -> str:
    if not ratio.of:
        return "-"
    parts = f"{count(ratio.count)} of {count(ratio.of)}"
    return f"{parts}, {share(ratio.value)} [{share(ratio.low)}, {share(ratio.high)}]"


def _filled(one: FilledScore) -> list[str]:
    return [score(one.mean), f"{change(one.change)} [{change(one.low)}, {change(one.high)}]"]


def _order(one: FilledOrder) -> str:
    by = "by people" if one.by == "people" else "by the model"
    pairs = "; ".join(f"{better} was above {worse}" for better, worse in one.turned)
    return (
        f"order of systems {by}: tau {score(one.tau)} [{score(one.low)}, {score(one.high)}] with the order now, "
        f"{count(len(one.turned))} of {count(one.pairs)} pairs change places [{one.fewest:g}, {one.most:g}]"
        + (f": {pairs}" if pairs else "")
    )


def holes_json(found: Sequence[HoleStudy]) -> str:
    """One JSON object for each study, at full precision; what is undefined is null."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)
