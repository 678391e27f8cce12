"""Re-rankings and their studies, as people read them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import change, count, duration, figure, probability, score, share
from weir.core.tables import columns, markdown_escaped, paragraph
from weir.plugins.sensitivity.reordering import MeanOverQueries, RankBand, ReachedDocuments, Reordering
from weir.plugins.sensitivity.studies import (
    AskedTotals,
    DepthStudy,
    OrderFlips,
    OrderStudy,
    PromptPlaces,
    SameVerdicts,
    SampleStudy,
    Sensitivity,
    Spread,
)

# ----------
# Re-rankings beside their first stage as text, Markdown or JSON: order, scores, and places of relevant documents.


KEPT_SHARE = 0.5
"""Share of queries with an unchanged beginning from which a re-ranking is named in a note, as `weir audit` does."""


def reranking_text(found: Sequence[Reordering], width: int | None = None) -> str:
    """Tables of order, scores and places, a line for each re-ranking; of one alone its blocks of places too."""
    tables = [columns(lines, len(lines[0]) - 1, width) for lines in _tables(found)]
    notes = [paragraph(note, width) for note in [*_legend(found), *reranking_notes(found)]]
    return "\n\n".join([*tables, "\n".join(notes)] if notes else tables)


def reranking_markdown(found: Sequence[Reordering]) -> str:
    """The same tables in Markdown."""
    return "\n\n".join(markdown_table(lines) for lines in _tables(found))


def reranking_json(found: Sequence[Reordering]) -> str:
    """One JSON object for each re-ranking, at full precision; what is undefined is null."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)


def reranking_notes(found: Sequence[Reordering]) -> list[str]:
    """What has to be said beside the figures; each begins with "note: "."""
    return [f"note: {said}" for one in found for said in _said(one)]


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """Cells under a header as a Markdown table, all columns but the first flush right."""
    head, *rows = [[markdown_escaped(cell) for cell in line] for line in lines]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rows])


def _tables(found: Sequence[Reordering]) -> list[list[list[str]]]:
    if not found:
        return []
    tables = [_orders(found)]
    if all(one.gain for one in found):
        tables += [_gains(found), _biases(found)]
        tables.append(_blocks(found[0].blocks) if len(found) == 1 else _ratios(found))
    return tables


def _legend(found: Sequence[Reordering]) -> list[str]:
    """What columns mean that do not say so themselves; each begins with "note: "."""
    said = [
        "note: sealed at borders: how much more often no document crossed a window's border than a line beside it, in "
        "percentage points; above 0 where windows came back as they were"
    ]
    if any(one.bias for one in found):
        said.append(
            f"note: relevant documents among the first {found[0].k} after re-ranking, by the place from which they "
            "came, of those that a perfect order of the candidates would have there"
        )
    return said


def _orders(found: Sequence[Reordering]) -> list[list[str]]:
    head = ["re-ranking", f"first {found[0].k} kept", "all kept", "one order", "lost", "new", "twice"]
    lines = [[*head, "places moved", "tau-b", "RBO", "last moved", "sealed at borders"]]
    for one in found:
        lines.append(
            [
                one.system,
                share(one.mean("kept first").mean),
                share(one.mean("kept").mean),
                share(one.repeated / max(1, one.queries - one.unanswered)),
                count(one.lost),
                count(one.new),
                count(one.duplicates),
                figure(one.mean("moved").mean),
                *(score(one.mean(name).mean) for name in ("tau", "rbo")),
                figure(one.mean("last moved").mean),
                _points(one.mean("sealed")),
            ]
        )
    return lines


def _gains(found: Sequence[Reordering]) -> list[list[str]]:
    gains = [(one.system, one.gain) for one in found if one.gain is not None]
    lines = [["re-ranking", gains[0][1].measure, "change", "95% interval", "p", "Holm", "hurt", "helped"]]
    lines[0].append(f"judged at {found[0].k}")
    lines += [
        [
            name,
            score(gain.after),
            change(gain.change),
            _interval(gain.low, gain.high),
            probability(gain.p),
            probability(gain.adjusted),
            share(gain.hurt),
            share(gain.helped),
            share(gain.judged_after),
        ]
        for name, gain in gains
    ]
    return lines


def _biases(found: Sequence[Reordering]) -> list[list[str]]:
    k = found[0].k
    lines = [["re-ranking", f"relevant from the first {k}", "from behind", "difference", "95% interval"]]
    lines += [
        [
            one.system,
            _reached(one.bias.early),
            _reached(one.bias.late),
            _ratio(one.bias.difference, signed=True),
            f"[{_ratio(one.bias.low, signed=True)}, {_ratio(one.bias.high, signed=True)}]",
        ]
        for one in found
        if one.bias is not None
    ]
    return lines


def _blocks(blocks: Sequence[RankBand]) -> list[list[str]]:
    lines = [
        ["places", "promoted", "raised by", "relevant", "of these promoted", "by a perfect order", "ratio"]
    ]
    lines[0].append("95% interval")
    for one in blocks:
        found = one.reach
        lines.append(
            [
                f"{one.start} to {one.stop}",
                share(one.promoted),
                figure(one.raised),
                count(found.relevant),
                count(found.reached),
                figure(found.ideal),
                _ratio(found.ratio),
                f"[{_ratio(found.low)}, {_ratio(found.high)}]",
            ]
        )
    return lines


def _ratios(found: Sequence[Reordering]) -> list[list[str]]:
    """The ratio of each block, a column for each; blocks of unlike re-rankings by their first places."""
    starts = sorted({block.start for one in found for block in one.blocks})
    lines = [["re-ranking", *(f"from {start}" for start in starts)]]
    for one in found:
        known = {block.start: block.reach.ratio for block in one.blocks}
        lines.append([one.system, *(_ratio(known.get(start, math.nan)) for start in starts)])
    return lines


def _said(one: Reordering) -> list[str]:
    found, kept = [], one.mean("kept first")
    if kept.mean >= KEPT_SHARE:
        same = round(kept.mean * kept.queries)
        found.append(
            f"{one.system} leaves the first {one.k} of {same} of {kept.queries} queries as they were: a re-ranking "
            "that failed keeps its first stage's order; look at what was asked and answered"
        )
    if one.repeated >= max(2, KEPT_SHARE * kept.queries):
        places = ", ".join(map(str, one.pattern))
        found.append(
            f"{one.system} gives {one.repeated} of {kept.queries} queries one order: their first {one.k} come from "
            f"places {places}; answers that are the same whatever the documents say are no judgment"
        )
    if one.unanswered:
        found.append(f"{one.system} answers {one.unanswered} of {one.queries} queries not at all")
    if one.duplicates:
        found.append(
            f"{one.system} names {count(one.duplicates)} documents again that stand higher in the same ranking, where "
            "they are counted here; measures refuse such a file"
        )
    if one.lost or one.new:
        found.append(
            f"{one.system} lacks {count(one.lost)} of {count(one.candidates)} candidates and has {count(one.new)} "
            "documents that are none: answers were parsed wrongly, or it was made from another first stage"
        )
    if one.tied:
        found.append(
            f"{one.system}: {share(one.tied)} of the documents share their score with another of the query; by which "
            "order they are scored is that of identifiers, not the re-ranker's"
        )
    if one.beyond:
        found.append(
            f"{one.system}: {count(one.beyond)} of {count(one.candidates)} documents are deeper than one pass of "
            "windows can put them: it was made in another way, or its scores are tied"
        )
    return found


def _points(one: MeanOverQueries) -> str:
    """A difference of shares in percentage points with its interval."""
    if math.isnan(one.mean):
        return "-"
    return f"{100 * one.mean:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


def _reached(one: ReachedDocuments) -> str:
    return f"{count(one.reached)} of {figure(one.ideal)}, {_ratio(one.ratio)}"


def _ratio(value: float, signed: bool = False) -> str:
    return "-" if math.isnan(value) else f"{value:+.2f}" if signed else f"{value:.2f}"


def _interval(low: float, high: float) -> str:
    return f"[{change(low)}, {change(high)}]"


# ----------
# What re-ranking by a language model depends on, as text or JSON.


LEVEL = 0.05
SHOWN_PLACES = 20
BEST = "+"


def sensitivity_text(found: Sensitivity, width: int | None = None) -> str:
    """A part for each study, each with the sentence that it comes to."""
    parts = [paragraph(f"{found.dataset}: {found.system}", width)]
    if found.orders is not None:
        parts += _sensitivity_tables_orders(found.orders, width)
    if found.samples is not None:
        parts += _samples(found.samples, width)
    if found.depths:
        parts += _depths(found.measure, found.depths, width)
    parts += [paragraph(f"note: {note}", width) for note in found.notes]
    return "\n\n".join(parts)


def sensitivity_json(found: Sensitivity) -> str:
    """One JSON object at full precision; what is undefined is null."""
    return json.dumps(plain(found), ensure_ascii=False)


def _sensitivity_tables_orders(one: OrderStudy, width: int | None) -> list[str]:
    spread = one.spread
    parts = [_spread_table("order", spread, width)]
    said = (
        f"order of candidates: the first stage's order has {score(one.own)}, {change(one.lead)} against random ones "
        f"[{change(one.low)}, {change(one.high)}]; {_sensitivity_tables_said(spread)}; {_asked(one.totals)}"
    )
    parts.append(paragraph(said, width))
    for places in one.places:
        parts += [_place_table(places, width)] if places.prompts else []
        parts.append(paragraph(_place_words(places), width))
    return parts


def _samples(one: SampleStudy, width: int | None) -> list[str]:
    said = f"asked again: {_same(one.verdicts)}; {_sensitivity_tables_said(one.spread)}; {_asked(one.totals)}"
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
                _in_brackets(one.low, one.high),
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


def _sensitivity_tables_said(spread: Spread) -> str:
    """The two kinds of chance apart, and how far orders agree."""
    return (
        f"mean {score(spread.mean)} {_in_brackets(spread.low, spread.high)} over {count(spread.queries)} queries; "
        f"one of {len(spread.means)} such runs lies {score(spread.deviation)} from it (standard deviation, queries "
        f"held fixed), other queries would move it by {score(spread.error)}; two of the orders agree with tau-b "
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


def _in_brackets(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"[{score(low)}, {score(high)}]"
