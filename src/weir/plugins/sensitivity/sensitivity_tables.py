"""What re-ranking by a language model depends on, as text or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.plain_values import plain
from weir.core.rounding import change, count, duration, figure, probability, score, share
from weir.core.tables import columns, paragraph
from weir.plugins.sensitivity.answer_log import AskedTotals
from weir.plugins.sensitivity.studies import DepthStudy, OrderStudy, SampleStudy, Sensitivity, Spread
from weir.plugins.sensitivity.verdict_stability import OrderFlips, PromptPlaces, SameVerdicts

__all__ = ["sensitivity_json", "sensitivity_text"]

LEVEL = 0.05
SHOWN_PLACES = 20
BEST = "+"


def sensitivity_text(found: Sensitivity, width: int | None = None) -> str:
    """A part for each study, each with the sentence that it comes to."""
    parts = [paragraph(f"{found.dataset}: {found.system}", width)]
    if found.orders is not None:
        parts += _orders(found.orders, width)
    if found.samples is not None:
        parts += _samples(found.samples, width)
    if found.depths:
        parts += _depths(found.measure, found.depths, width)
    parts += [paragraph(f"note: {note}", width) for note in found.notes]
    return "\n\n".join(parts)


def sensitivity_json(found: Sensitivity) -> str:
    """One JSON object at full precision; what is undefined is null."""
    return json.dumps(plain(found), ensure_ascii=False)


def _orders(one: OrderStudy, width: int | None) -> list[str]:
    spread = one.spread
    parts = [_spread_table("order", spread, width)]
    said = (
        f"order of candidates: the first stage's order has {score(one.own)}, {change(one.lead)} against random ones "
        f"[{change(one.low)}, {change(one.high)}]; {_said(spread)}; {_asked(one.totals)}"
    )
    parts.append(paragraph(said, width))
    for places in one.places:
        parts += [_place_table(places, width)] if places.prompts else []
        parts.append(paragraph(_place_words(places), width))
    return parts


def _samples(one: SampleStudy, width: int | None) -> list[str]:
    said = f"asked again: {_same(one.verdicts)}; {_said(one.spread)}; {_asked(one.totals)}"
    parts = [_spread_table("sample", one.spread, width), paragraph(said, width)]
    if one.flips is not None:
        parts.append(paragraph(_flips(one.flips), width))
    return parts


def _depths(measure: str, found: Sequence[DepthStudy], width: int | None) -> list[str]:
    lines = [["depth", measure, "95% interval", "prompts", "tokens", "dollars", "time of answers"]]
    for one in found:
        totals = one.totals
        dollars = "-" if math.isnan(totals.dollars) else f"{totals.dollars:.4f}"
        lines.append(
            [
                f"{one.depth}{' ' + BEST if one.efficient else ''}",
                score(one.mean),
                _interval(one.low, one.high),
                count(totals.prompts),
                count(totals.tokens) if totals.tokens else "-",
                dollars,
                duration(totals.seconds),
            ]
        )
    said = f"{BEST} efficient: no other depth is as good for as few tokens, and better in one of both"
    return [columns(lines, 6, width), paragraph(said, width)]


def _spread_table(what: str, spread: Spread, width: int | None) -> str:
    lines = [[what, spread.measure]]
    lines += [[str(number), score(mean)] for number, mean in enumerate(spread.means, 1)]
    return columns(lines, 1, width)


def _said(spread: Spread) -> str:
    """The two kinds of chance apart, and how far orders agree."""
    return (
        f"mean {score(spread.mean)} {_interval(spread.low, spread.high)} over {count(spread.queries)} queries; one of "
        f"{len(spread.means)} such runs lies {score(spread.deviation)} from it (standard deviation, queries held "
        f"fixed), other queries would move it by {score(spread.error)}; two of the orders agree with tau-b "
        f"{score(spread.tau)}, RBO {score(spread.rbo)}"
    )


def _place_table(found: PromptPlaces, width: int | None) -> str:
    lines = [["place", "put first", "share", "95% interval", "p, Holm"]]
    for one in found.places[:SHOWN_PLACES]:
        bounds = f"[{share(one.low)}, {share(one.high)}]" if one.low == one.low else "-"
        lines.append([str(one.place), count(one.times), share(one.share), bounds, probability(one.p)])
    return columns(lines, 4, width)


def _place_words(found: PromptPlaces) -> str:
    """Which places are put first too often or too rarely."""
    if not found.prompts:
        return f"places in prompts of {found.size} documents: none of {count(found.shown)} answers is whole"
    odd = [one for one in found.places if one.p <= LEVEL]
    much = ", ".join(str(one.place) for one in odd if one.share > found.even)
    little = ", ".join(str(one.place) for one in odd if one.share < found.even)
    said = "; ".join(
        part
        for part in (
            f"more often: place {much}" if much else "",
            f"more rarely: place {little}" if little else "",
        )
        if part
    )
    verdict = f"not even at {LEVEL}: {said}" if odd else f"no place differs from an even share at {LEVEL}"
    return (
        f"places in prompts of {found.size} documents in random order: {count(found.prompts)} of {count(found.shown)} "
        f"answers are whole, an even share is {share(found.even)}; {verdict}"
    )


def _same(found: SameVerdicts) -> str:
    if not found.prompts:
        return "no prompt was asked in every sample"
    apart = (
        ""
        if math.isnan(found.deviation)
        else f", scores lie {figure(found.deviation)} apart (standard deviation)"
    )
    others = f" ({count(found.others)} others depend on answers before)" if found.others else ""
    return (
        f"two of {found.samples} answers to one of {count(found.prompts)} prompts{others} say the same in "
        f"{share(found.equal)} [{share(found.low)}, {share(found.high)}]{apart}"
    )


def _flips(found: OrderFlips) -> str:
    if not found.pairs:
        return f"pairs in both orders: none of {count(found.compared)} has two whole verdicts"
    tail = "" if math.isnan(found.first) else f"; the document named first wins {share(found.first)} of those"
    return (
        f"pairs in both orders: the verdict on {share(found.flipped)} [{share(found.low)}, {share(found.high)}] of "
        f"{count(found.pairs)} is on the place, not the document{tail}; {count(found.compared - found.pairs)} of "
        f"{count(found.compared)} lack a whole verdict"
    )


def _asked(totals: AskedTotals) -> str:
    dollars = "" if math.isnan(totals.dollars) else f", {totals.dollars:.4f} dollars"
    tokens = f", {count(totals.tokens)} tokens" if totals.tokens else ""
    return f"{count(totals.prompts)} prompts{tokens}{dollars}, {count(totals.unclear)} answers without a whole verdict"


def _interval(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"[{score(low)}, {score(high)}]"
