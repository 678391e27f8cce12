"""Tables of the studies of re-rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weir.core.results import ResultKind
from weir.core.rounding import between, change, count, duration, figure, percent, probability, score
from weir.core.tables import Table, sentences, table_of
from weir.plugins.llm.reordering import MeanOverQueries, RankBand, ReachedDocuments, Reordering
from weir.plugins.llm.studies import (
    AskedTotals,
    DepthStudy,
    OrderFlips,
    PromptPlaces,
    SameVerdicts,
    Sensitivity,
    Spread,
)

# ----------
# Re-rankings compared with their first stage: order, scores, and places of relevant documents.


_ORDER_WORDS = """\
first {k} kept, all kept: share of queries whose first {k}, or all, documents stand in the first stage's order
one order: largest share of queries whose first {k} came from the same places of the first stage, in another order
lost, new, twice: candidates that the re-ranking lacks, its documents that are no candidates, rows that repeat one
places moved: mean places that a document moved; tau-b, RBO: Kendall's tau and rank-biased overlap with the first stage
last moved: mean over queries of the deepest place that holds another document
sealed at borders: how much more often no document crossed a window's border than a line beside it, in percentage \
points, with a 95% interval; above 0 where windows came back as they were"""
_GAIN_WORDS = """\
change: after minus before, with its 95% interval; p of a permutation test, Holm: corrected over the re-rankings
hurt, helped: share of queries that lost, or gained; judged at {k}: share of the first {k} documents that are judged"""
_BIAS_WORDS = """\
relevant from ...: ratio of the relevant documents among the first {k} after re-ranking to those that a perfect order \
of the candidates would have there, by the place from which they came, with both counts
difference: from further down minus from the first {k}; below 0 where documents from further down rise too rarely"""
_BLOCK_WORDS = """\
promoted: share of documents from these places that reach the first {k}; raised by: mean places that they rose
relevant, of these promoted: numbers of relevant documents there, and of those that reach the first {k}
by a perfect order: how many a perfect order of the candidates would have there; ratio: promoted to these"""
_RATIO_WORDS = """\
from 1, ...: the ratio by places of the first stage, beginning at this one"""
KEPT_SHARE = 0.5
"""Share of queries with an unchanged beginning from which a note names the re-ranking, as in `weir audit`."""


def _page(rerankings: Sequence[Reordering]) -> tuple[Table, ...]:
    if not rerankings:
        return ()
    k = rerankings[0].k
    tables = [(_orders(rerankings), _ORDER_WORDS.format(k=k))]
    if all(one.gain for one in rerankings):
        blocks = _blocks(rerankings[0].blocks) if len(rerankings) == 1 else _ratios(rerankings)
        words = _BLOCK_WORDS if len(rerankings) == 1 else _RATIO_WORDS
        tables += [
            (_gains(rerankings), _GAIN_WORDS.format(k=k)),
            (_biases(rerankings), _BIAS_WORDS.format(k=k)),
        ]
        tables.append((blocks, words.format(k=k)))
    return tuple(table_of(lines, right=None, notes=words.splitlines()) for lines, words in tables)


def _reranking_tables(rerankings: Sequence[Reordering]) -> tuple[Table, ...]:
    warnings = [f"note: {line}" for one in rerankings for line in _warnings(one)]
    return (*_page(rerankings), *([sentences(*warnings)] if warnings else []))


REORDERINGS = ResultKind("reranking", Reordering, _reranking_tables, page=_page, parts="means")


def _orders(rerankings: Sequence[Reordering]) -> list[list[str]]:
    head = ["re-ranking", f"first {rerankings[0].k} kept", "all kept", "one order", "lost", "new", "twice"]
    lines = [[*head, "places moved", "tau-b", "RBO", "last moved", "sealed at borders"]]
    for one in rerankings:
        lines.append(
            [
                one.system,
                percent(one.mean_of("kept first").mean),
                percent(one.mean_of("kept").mean),
                percent(one.repeated / max(1, one.queries - one.unanswered)),
                count(one.lost),
                count(one.new),
                count(one.duplicates),
                figure(one.mean_of("moved").mean),
                *(score(one.mean_of(name).mean) for name in ("tau", "rbo")),
                figure(one.mean_of("last moved").mean),
                _points(one.mean_of("sealed")),
            ]
        )
    return lines


def _gains(rerankings: Sequence[Reordering]) -> list[list[str]]:
    gains = [(one.system, one.gain) for one in rerankings if one.gain is not None]
    lines = [["re-ranking", gains[0][1].measure, "change", "95% interval", "p", "Holm", "hurt", "helped"]]
    lines[0].append(f"judged at {rerankings[0].k}")
    lines += [
        [
            name,
            score(gain.after),
            change(gain.change),
            between(gain.low, gain.high, change),
            probability(gain.p),
            probability(gain.adjusted),
            percent(gain.hurt),
            percent(gain.helped),
            percent(gain.judged_after),
        ]
        for name, gain in gains
    ]
    return lines


def _biases(rerankings: Sequence[Reordering]) -> list[list[str]]:
    k = rerankings[0].k
    lines = [
        ["re-ranking", f"relevant from the first {k}", "from further down", "difference", "95% interval"]
    ]
    lines += [
        [
            one.system,
            _reached(one.bias.early),
            _reached(one.bias.late),
            _ratio(one.bias.difference, signed=True),
            f"[{_ratio(one.bias.low, signed=True)}, {_ratio(one.bias.high, signed=True)}]",
        ]
        for one in rerankings
        if one.bias is not None
    ]
    return lines


def _blocks(blocks: Sequence[RankBand]) -> list[list[str]]:
    lines = [
        ["places", "promoted", "raised by", "relevant", "of these promoted", "by a perfect order", "ratio"]
    ]
    lines[0].append("95% interval")
    for one in blocks:
        reach = one.reach
        lines.append(
            [
                f"{one.start} to {one.stop}",
                percent(one.promoted),
                figure(one.raised),
                count(reach.relevant),
                count(reach.reached),
                figure(reach.ideal),
                _ratio(reach.ratio),
                f"[{_ratio(reach.low)}, {_ratio(reach.high)}]",
            ]
        )
    return lines


def _ratios(rerankings: Sequence[Reordering]) -> list[list[str]]:
    starts = sorted({block.start for one in rerankings for block in one.blocks})
    lines = [["re-ranking", *(f"from {start}" for start in starts)]]
    for one in rerankings:
        known = {block.start: block.reach.ratio for block in one.blocks}
        lines.append([one.system, *(_ratio(known.get(start, math.nan)) for start in starts)])
    return lines


def _warnings(one: Reordering) -> list[str]:
    lines, first = [], one.mean_of("kept first")
    if first.mean >= KEPT_SHARE:
        same = round(first.mean * first.queries)
        lines.append(
            f"{one.system} leaves the first {one.k} of {same} of {first.queries} queries as they were: a re-ranking "
            "that failed keeps its first stage's order; look at what was asked and answered"
        )
    if one.repeated >= max(2, KEPT_SHARE * first.queries):
        places = ", ".join(map(str, one.pattern))
        lines.append(
            f"{one.system} gives {one.repeated} of {first.queries} queries one order: their first {one.k} come from "
            f"places {places}; answers that are the same whatever the documents say are no judgment"
        )
    if one.unanswered:
        lines.append(f"{one.system} answers {one.unanswered} of {one.queries} queries not at all")
    if one.duplicates:
        lines.append(
            f"{one.system} names {count(one.duplicates)} documents again that stand higher in the same ranking, where "
            "they are counted here; measures refuse such a file"
        )
    if one.lost or one.new:
        lines.append(
            f"{one.system} lacks {count(one.lost)} of {count(one.candidates)} candidates and has {count(one.new)} "
            "documents that are none: answers were parsed wrongly, or it was made from another first stage"
        )
    if one.tied:
        lines.append(
            f"{one.system}: {percent(one.tied)} of the documents share their score with another of the query; by which "
            "order they are scored is that of identifiers, not the re-ranker's"
        )
    if one.beyond:
        lines.append(
            f"{one.system}: {count(one.beyond)} of {count(one.candidates)} documents are deeper than one pass of "
            "windows can put them: it was made in another way, or its scores are tied"
        )
    return lines


def _points(one: MeanOverQueries) -> str:
    if math.isnan(one.mean):
        return "-"
    return f"{100 * one.mean:+.1f} {between(one.low, one.high, lambda end: f'{100 * end:+.1f}')}"


def _reached(one: ReachedDocuments) -> str:
    return f"{_ratio(one.ratio)} ({count(one.reached)} to {figure(one.ideal)})"


def _ratio(value: float, signed: bool = False) -> str:
    return "-" if math.isnan(value) else f"{value:+.2f}" if signed else f"{value:.2f}"


# ----------
# Studies of sensitivity as tables.


LEVEL = 0.05
SHOWN_PLACES = 20
BEST = "+"


def _sensitivity_tables(studies: Sequence[Sensitivity]) -> tuple[Table, ...]:
    tables = []
    for study in studies:
        tables.append(sentences(f"{study.dataset}: {study.system}"))
        if study.orders is not None:
            orders, spread = study.orders, study.orders.spread
            tables += [
                _spread_table("order", spread),
                sentences(
                    f"order of candidates: the first stage's order has {score(orders.own)}, {change(orders.lead)} "
                    f"against random ones {between(orders.low, orders.high, change)}; {_spread_words(spread)}; "
                    f"{_asked(orders.totals)}"
                ),
            ]
            for places in orders.places:
                tables += [_place_table(places)] if places.prompts else []
                tables.append(sentences(_place_words(places)))
        if study.samples is not None:
            samples = study.samples
            words = f"{_same(samples.verdicts)}; {_spread_words(samples.spread)}; {_asked(samples.totals)}"
            tables += [_spread_table("sample", samples.spread), sentences(f"asked again: {words}")]
            if samples.flips is not None:
                tables.append(sentences(_flips(samples.flips)))
        if study.depths:
            tables.append(_depth_table(study.measure, study.depths))
        tables += [sentences(f"note: {note}") for note in study.notes]
    return tuple(tables)


SENSITIVITIES = ResultKind("sensitivity", Sensitivity, _sensitivity_tables, parts="depths")


def _depth_table(measure: str, depths: Sequence[DepthStudy]) -> Table:
    lines = [["depth", measure, "95% interval", "prompts", "tokens", "dollars", "time of answers"]]
    for one in depths:
        totals = one.totals
        lines.append(
            [
                f"{one.depth}{' ' + BEST if one.efficient else ''}",
                score(one.mean),
                _in_brackets(one.low, one.high),
                count(totals.prompts),
                count(totals.tokens) if totals.tokens else "-",
                "-" if math.isnan(totals.dollars) else f"{totals.dollars:.4f}",
                duration(totals.seconds),
            ]
        )
    note = f"{BEST} efficient: no other depth is as good for as few tokens, and better in one of both"
    return table_of(lines, right=6, notes=[note])


def _spread_table(what: str, spread: Spread) -> Table:
    lines = [[what, spread.measure]]
    lines += [[str(number), score(mean)] for number, mean in enumerate(spread.means, 1)]
    return table_of(lines, right=1)


def _spread_words(spread: Spread) -> str:
    return (
        f"mean {score(spread.mean)} {_in_brackets(spread.low, spread.high)} over {count(spread.queries)} queries; one "
        f"of {len(spread.means)} such runs lies {score(spread.deviation)} from it (standard deviation, queries held "
        f"fixed), other queries would move it by {score(spread.error)}; two of the orders agree with tau-b "
        f"{score(spread.tau)}, RBO {score(spread.rbo)}"
    )


def _place_table(prompts: PromptPlaces) -> Table:
    lines = [["place", "put first", "share", "95% interval", "p, Holm"]]
    for one in prompts.places[:SHOWN_PLACES]:
        bounds = between(one.low, one.high, percent) if one.low == one.low else "-"
        lines.append([str(one.place), count(one.times), percent(one.share), bounds, probability(one.p)])
    return table_of(lines, right=4)


def _place_words(prompts: PromptPlaces) -> str:
    if not prompts.prompts:
        return (
            f"places in prompts of {prompts.size} documents: none of {count(prompts.shown)} answers is whole"
        )
    odd = [one for one in prompts.places if one.p <= LEVEL]
    much = ", ".join(str(one.place) for one in odd if one.share > prompts.even)
    little = ", ".join(str(one.place) for one in odd if one.share < prompts.even)
    parts = [f"more often: place {much}"] * bool(much) + [f"more rarely: place {little}"] * bool(little)
    verdict = (
        f"not even at {LEVEL}: {'; '.join(parts)}"
        if odd
        else f"no place differs from an even share at {LEVEL}"
    )
    return (
        f"places in prompts of {prompts.size} documents in random order: {count(prompts.prompts)} of "
        f"{count(prompts.shown)} answers are whole, an even share is {percent(prompts.even)}; {verdict}"
    )


def _same(verdicts: SameVerdicts) -> str:
    if not verdicts.prompts:
        return "no prompt was asked in every sample"
    apart = (
        ""
        if math.isnan(verdicts.deviation)
        else f", scores lie {figure(verdicts.deviation)} apart (standard deviation)"
    )
    others = f" ({count(verdicts.others)} others depend on answers before)" if verdicts.others else ""
    return (
        f"two of {verdicts.samples} answers to one of {count(verdicts.prompts)} prompts{others} say the same in "
        f"{percent(verdicts.equal)} {between(verdicts.low, verdicts.high, percent)}{apart}"
    )


def _flips(flips: OrderFlips) -> str:
    if not flips.pairs:
        return f"pairs in both orders: none of {count(flips.compared)} has two whole verdicts"
    tail = (
        "" if math.isnan(flips.first) else f"; the document named first wins {percent(flips.first)} of those"
    )
    return (
        f"pairs in both orders: the verdict on {percent(flips.flipped)} {between(flips.low, flips.high, percent)} of "
        f"{count(flips.pairs)} is on the place, not the document{tail}; {count(flips.compared - flips.pairs)} of "
        f"{count(flips.compared)} lack a whole verdict"
    )


def _asked(totals: AskedTotals) -> str:
    dollars = "" if math.isnan(totals.dollars) else f", {totals.dollars:.4f} dollars"
    tokens = f", {count(totals.tokens)} tokens" if totals.tokens else ""
    return f"{count(totals.prompts)} prompts{tokens}{dollars}, {count(totals.unclear)} answers without a whole verdict"


def _in_brackets(low: float, high: float) -> str:
    return "-" if math.isnan(low) else between(low, high)
