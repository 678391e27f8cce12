"""The sections of a report: what each says, draws and tabulates. A section stands where its data are."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from weir.api.charts import cost_charts, difference_chart, front, length_charts, standings_chart, verdict_map
from weir.api.result_set import ResultSet
from weir.api.rows import grid_tables, grids_marked
from weir.audit.bias import feature_groups
from weir.audit.check import SEVERITIES as AUDITED
from weir.audit.check import Audit, audit_tables
from weir.audit.judgments import BEIR_HOLE, HOLE
from weir.core.charts import Chart, HeatMap, Interval, Intervals, Panel, Points, Spread
from weir.core.rounding import (
    coarse_score,
    counted,
    duration,
    figure,
    probability,
    share,
    short_change,
    short_score,
)
from weir.core.scores import Row
from weir.core.subject import Subject
from weir.core.tables import Table, sentences, table_of
from weir.errors import WeirError
from weir.experiment.comparing import compare_cells
from weir.experiment.efficiency import efficiency_tables
from weir.experiment.llm_answers import ModelUse, model_uses, use_tables
from weir.experiment.results import PARSE_FAILURES, search_seconds, stages_of
from weir.files.runs import read_run
from weir.measures.measure import direction
from weir.models.verdicts import SCORED_KINDS
from weir.plugins.report.paper import (
    CollectionFacts,
    collection_table,
    cost_table,
    judged_table,
    trained_on,
)
from weir.plugins.report.study import FEW_QUERIES, MOST_PAIRWISE_SYSTEMS, RUN_BYTES, Study
from weir.stats.compare import Comparison, compare_tables, disagrees, rank_text
from weir.stats.score_rows import answered_rate
from weir.systems.lexical.terms import weighted_jaccard, word_counts

MOST_SENTENCES = 4
"""Sentences under what can be concluded, and under what cannot."""
UNLIKE_JUDGED_RATES = 0.05
"""Difference of the judged shares of two systems from which their comparison is in doubt."""
SPAN_OF_TIES = 0.01
"""Range of a mean by the order of ties from which it weakens a claim."""
MOST_BOUND_COLLECTIONS = 12
"""Collections whose score bounds are drawn, those of most queries; the table has all."""
MOST_OVERLAP_COLLECTIONS = 20
"""Collections whose words are compared at most."""
SEVERITIES = ("serious", "caution", "note", "checked")
"""Of the questions of a reviewer, in the words of the audit."""


@dataclass(frozen=True)
class Statement:
    """A sentence whose beginning is the message: `head` stands in bold before `text`."""

    head: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.head} {self.text}".strip()


@dataclass(frozen=True)
class Question:
    """What a sceptical reviewer asks, answered from the data. command: what settles it, "" for nothing."""

    severity: str
    question: str
    answer: Statement
    command: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, how to read what is below it, charts, tables and notes.

    behind: longer tables, which a page shows when asked; lists: statements under headings; records: results that CSV
    holds at full precision instead of the tables.
    """

    name: str
    title: str
    lead: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    behind: tuple[Table, ...] = ()
    lists: tuple[tuple[str, tuple[Statement, ...]], ...] = ()
    records: tuple[ResultSet[Any], ...] = ()


def and_(names: Sequence[str]) -> str:
    """Names as a sentence lists them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def interval(low: float | None, high: float | None) -> str:
    """An interval of differences in brackets, "" where there is none."""
    return "" if low is None or high is None else f" [{short_change(low)}, {short_change(high)}]"


# ----------
# In short.


def title(study: Study) -> str:
    """What was compared, as a heading."""
    words = "no one two three four five six seven eight nine ten eleven twelve"
    numbers = dict(enumerate(words.split(" ")))
    systems, datasets = len(study.systems), len(study.datasets)
    left = f"{numbers.get(systems, str(systems)).capitalize()} {'system' if systems == 1 else 'systems'}"
    where = study.datasets[0] if datasets == 1 else f"{numbers.get(datasets, str(datasets))} collections"
    return f"{left} on {where}"


def lede(study: Study) -> str:
    """What was compared, in sentences."""
    queries = sum(study.query_count(dataset) for dataset in study.datasets)
    names = [f"{name} ({study.query_count(name):,})" for name in study.datasets]
    where = and_(names) if len(names) <= 4 else f"{len(names)} collections"
    lacking = sum(math.isnan(row.low) for row in study.cell_rows)
    means = (
        f"All but {counted(lacking, 'mean')} on a collection have"
        if lacking
        else "Every mean on a collection has"
    )
    verdicts = f"Every comparison has a verdict ({study.family})." if study.comparisons else ""
    verb = "system answered" if len(study.systems) == 1 else "systems answered"
    return (
        f"{len(study.systems)} {verb} {queries:,} queries of {where}, measured by {and_(study.measures)}. "
        f"{means} a 95% interval. {verdicts}".strip()
    )


def concluded(study: Study, audits: Sequence[Audit] = ()) -> tuple[Statement, ...]:
    """What the verdicts of the first measure support; audits: which say what unjudged documents leave open."""
    if not study.comparisons:
        return ()
    measure, baseline = study.measures[0], study.label(study.baseline)
    single, whole = study.on(measure), study.whole(measure)
    statements: list[Statement] = []
    if whole is not None and len(study.systems) > 1 and whole.standings[0].worst == 1:
        best = whole.standings[0]
        statements.append(
            Statement(
                f"{study.label(best.system)} is better than every other system",
                f"on {whole.dataset}{_left_open(study.label(best.system), audits)}.",
            )
        )
    for system in study.systems:
        pairs = [(c, pair) for c in single if (pair := study.against(c, system)) is not None]
        if system == study.baseline or not pairs:
            continue
        by = {v: [(c, p) for c, p in pairs if p.verdict == v] for v in ("better", "worse")}
        if not by["better"] and not by["worse"]:
            continue
        verdict, other = ("better", "worse") if len(by["better"]) >= len(by["worse"]) else ("worse", "better")
        where, changes = [c.dataset for c, _ in by[verdict]], [p.difference for _, p in by[verdict]]
        low, high = min(changes, key=abs), max(changes, key=abs)
        size = short_change(low) if len(changes) == 1 else f"{short_change(low)} to {short_change(high)}"
        names = and_(where) if len(where) <= 3 else f"{len(where)} of {len(pairs)} collections"
        none = f"{other} on {and_([c.dataset for c, _ in by[other]])}" if by[other] else f"{other} on none"
        tail = f", {none}" if len(pairs) > 1 else ""
        statements.append(
            Statement(f"{study.label(system)} is {verdict} than {baseline}", f"on {names}, by {size}{tail}.")
        )
    timed = [one for one in study.costs if one.p50_ms is not None]
    for dataset in sorted(
        {one.quality.dataset for one in timed}, key=lambda name: -(study.documents(name) or 0)
    )[:1]:
        own = sorted(
            (one.p50_ms or 0.0, one.quality.system) for one in timed if one.quality.dataset == dataset
        )
        if len(own) > 1 and own[0][0] > 0:
            (first, system), others = own[0], [ms / own[0][0] for ms, _ in own[1:]]
            times = figure(others[0]) + (f" to {figure(others[-1])}" if len(others) > 1 else "")
            untimed = sum(one.quality.dataset == dataset and one.p50_ms is None for one in study.costs)
            of = f" of the {len(own)} that were timed" if untimed else ""
            statements.append(
                Statement(
                    f"{study.label(system)} is the fastest{of}:",
                    f"{figure(first)} ms for a query on {dataset}; the others take {times} times as long.",
                )
            )
    return tuple(statements[:MOST_SENTENCES])


def _left_open(label: str, audits: Sequence[Audit]) -> str:
    """That unjudged documents could turn the order of a system and others, as the audit found it; "" where none can."""
    begin = f"{label} over "
    pairs = [
        (one.subject, example.removeprefix(begin))
        for one in audits
        for finding in one.findings
        if finding.check == "score bounds" and finding.severity == "serious" and not finding.system
        for example in finding.examples
        if example.startswith(begin)
    ]
    if not pairs:
        return ""
    others, places = (list(dict.fromkeys(pair[n] for pair in pairs)) for n in (1, 0))
    return f", as judged: unjudged documents could turn it and {and_(others[:3])} on {and_(places[:3])}"


def not_concluded(study: Study) -> tuple[Statement, ...]:
    """What the data do not support, whatever the means suggest."""
    if not study.comparisons:
        reason = study.remarks[-1] if study.remarks else "there is one system"
        return (Statement("Nothing can be compared:", f"{reason}."),)
    measure, statements = study.measures[0], list[Statement]()
    whole = study.whole(measure)
    if whole is not None:
        first, *others = whole.standings
        leads = [(one.system, study.against(whole, first.system, one.system)) for one in others]
        level = [
            (system, pair) for system, pair in leads if pair is not None and pair.verdict == "not separable"
        ]
        head = f"That {study.label(first.system)} is the best."
        if level:
            second, pair = level[0]
            size = f"{short_change(pair.difference)}{interval(pair.low, pair.high)}"
            wide = study.together[measure, whole.dataset].against(first.system, second)
            if disagrees(pair) and wide is not None and wide.low is not None:
                size += f", or{interval(wide.low, wide.high)} for all {pair.comparisons} comparisons together"
            more = and_([study.label(system) for system, _ in level[1:4]])
            text = f"On {whole.dataset} it leads {study.label(second)} by {size}, which is not separable"
            statements.append(Statement(head, f"{text}{f', nor is its lead over {more}' if more else ''}."))
        elif not study.pairwise and len(whole.standings) > 2:
            statements.append(
                Statement(head, f"Each system is compared with {study.label(study.baseline)} alone.")
            )
        if not whole.reach.possible:
            statements.append(
                Statement(
                    f"Anything over {whole.dataset}:",
                    f"the test cannot find a difference on so few {whole.unit.replace('datasets', 'collections')}"
                    f"{_alike(study, whole) if whole.unit == 'datasets' else ''}, however large it is.",
                )
            )
    level_with = [
        study.label(system)
        for system in study.systems
        if system != study.baseline
        and (pairs := [p for c in study.on(measure) if (p := study.against(c, system)) is not None])
        and all(p.verdict == "not separable" for p in pairs)
    ]
    if level_with:
        verb = "differs" if len(level_with) == 1 else "differ"
        statements.append(
            Statement(
                f"That {and_(level_with)} {verb} from {study.label(study.baseline)}:",
                "no collection separates them.",
            )
        )
    if study.constructed:
        names = sorted({measure for measure, _ in study.constructed})
        where = {dataset for _, dataset in study.constructed}
        statements.append(
            Statement(
                f"Anything from {and_(names)} on {counted(len(where), 'collection')}:",
                "a system that returns all documents scores 1 there.",
            )
        )
    small = [name for name in study.datasets if study.query_count(name) < FEW_QUERIES]
    if small:
        spans = [
            d for c in study.on(measure) if c.dataset in small and (d := study.detectable(c)) is not None
        ]
        size = (
            f"differences under {short_score(min(low for low, _ in spans))}" if spans else "small differences"
        )
        statements.append(
            Statement(
                f"{size.capitalize()} on {counted(len(small), 'small collection')}:",
                f"they have {_from_to(list(map(study.query_count, small)))} queries.",
            )
        )
    return tuple(statements[:MOST_SENTENCES])


def short(study: Study, audits: Sequence[Audit] = ()) -> Section:
    """What was compared, what can be concluded and what cannot."""
    can, cannot = concluded(study, audits), not_concluded(study)
    return Section(
        "short",
        title(study),
        lede(study),
        lists=(
            (
                "What can be concluded",
                can or (Statement("Nothing can be concluded", "from the verdicts of these data."),),
            ),
            (
                "What cannot",
                cannot or (Statement("Nothing that the means suggest", "is contradicted by the verdicts."),),
            ),
        ),
    )


# ----------
# Scores.


def leaderboard(study: Study) -> Section | None:
    """Who is ahead, how surely: for each measure the systems with ranks from verdicts."""
    charts, tables = list[Chart](), list[Table]()
    wholes = [whole for whole in map(study.whole, study.measures) if whole is not None]
    for one in wholes:
        parts = study.on(one.measure) if one.unit == "datasets" else []
        charts.append(standings_chart(one, parts, study.numbers))
        tables.append(standings_table(study, one))
    if not wholes:
        return None
    whole = wholes[0]
    over = (
        f"Mean over {whole.dataset}{_alike(study, whole)}; the small ticks are the means on each of them. "
        if whole.unit == "datasets"
        else f"Mean over {whole.count:,} queries of {whole.dataset}. "
    )
    lead = (
        f"{over}A rank is a range: 1 + the systems that are better, to all less the systems that are worse. "
        f"{'Systems that share a letter are not separable. ' if any(s.letters for s in whole.standings) else ''}"
    ).rstrip()
    if not study.pairwise:
        lead += f" Each is compared with {study.label(study.baseline)} alone, so the ranks of the others stay wide."
    lacking = [s for s in study.systems if study.standing(whole, s) is None]
    notes = (
        (f"not on all collections, so without a rank: {and_([study.label(s) for s in lacking])}",)
        if lacking
        else ()
    )
    return Section("leaderboard", "Leaderboard", lead, tuple(charts), tuple(tables), notes)


def _from_to(counts: Sequence[int]) -> str:
    """The least and the greatest of some counts, one number where they are the same."""
    return " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))


def _alike(study: Study, whole: Comparison) -> str:
    """How collections weigh in a mean over them."""
    if whole.count == len(study.datasets):
        return ", each counting alike"
    return f", where those of one group count as one, {whole.count} in all"


def tally(study: Study, measure: str, system: str) -> tuple[int, int, int]:
    """On how many datasets a system is better than the baseline, not separable from it, and worse."""
    verdicts = [p.verdict for c in study.on(measure) if (p := study.against(c, system)) is not None]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    return better, len(verdicts) - better - worse - verdicts.count("-"), worse


def standings_table(study: Study, whole: Comparison) -> Table:
    """The standings of a comparison with ranks and intervals, and verdicts against the baseline by dataset."""
    lines = [["rank", "system", "mean", "95% interval", "tie groups", "better", "not separable", "worse"]]
    for one in whole.standings:
        ends = (
            "" if one.low is None or one.high is None else f"{short_score(one.low)}–{short_score(one.high)}"
        )
        counts = (
            ["", "", ""]
            if one.system == study.baseline
            else map(str, tally(study, whole.measure, one.system))
        )
        rank = rank_text(one, "–")
        lines.append([rank, study.label(one.system), short_score(one.mean), ends, one.letters, *counts])
    title = f"{whole.measure}, against {study.label(study.baseline)}"
    return table_of(lines, right=6, keys=2, title=title)


def collections(study: Study) -> Section | None:
    """Where it holds: datasets x systems with the verdict against the baseline."""
    maps = tuple(verdict_map(study.on(m), study.numbers) for m in study.measures if study.on(m))
    if not maps or len(study.datasets) < 2:
        return None
    bold = "best, or not separable from the best" if study.pairwise else "the highest"
    lead = (
        f"A tint says that the difference to {study.label(study.baseline)} is separable on these queries; its depth "
        f"says how large it is. Bold is {bold}. "
        "Detectable is the smallest difference to the baseline that such queries show 8 times in 10."
    )
    grids = grids_marked(grid_tables(labelled_rows(study), labels={}), legend=False)
    return Section("collections", "Collections and systems", lead, maps, grids)


def labelled_rows(study: Study) -> list[Row]:
    """The rows with the short names of their systems."""
    return [replace(row, system=study.label(row.system), title="") for row in study.rows]


def against_baseline(study: Study) -> Section | None:
    """By how much each system is better or worse than the baseline, on each collection."""
    if len(study.systems) < 2:
        return None
    charts = tuple(
        difference_chart(own, study.numbers, [study.together[m, c.dataset] for c in own])
        for m in study.measures
        if (own := study.on(m))
    )
    if not charts:
        return None
    name = study.label(study.baseline)
    lead = (
        f"Difference to {name}. Thick bars are 95% intervals of one difference alone; thin ones hold for all "
        f"comparisons together, as verdicts do. Filled marks are separable from {name}, hollow ones are not."
    )
    shown = tuple(_labelled(study, c) for m in study.measures for c in study.on(m))
    tables, records = compare_tables(shown, long=True), (ResultSet("compare", shown),)
    return Section("baseline", f"Better or worse than {name}", lead, charts, tables, records=records)


def _labelled(study: Study, comparison: Comparison) -> Comparison:
    """A comparison under the labels of its systems, each against the baseline as the charts have it."""
    turned = (pair.reversed if pair.second == study.baseline else pair for pair in comparison.pairs)
    return replace(
        comparison,
        standings=tuple(replace(one, system=study.label(one.system)) for one in comparison.standings),
        pairs=tuple(replace(p, first=study.label(p.first), second=study.label(p.second)) for p in turned),
        baseline=None if comparison.baseline is None else study.label(comparison.baseline),
    )


def cost(study: Study) -> Section | None:
    """What the quality costs: time of a query, size of the index."""
    costs = [one for one in study.costs if one.p50_ms is not None or one.mean_ms is not None]
    if not costs:
        return None
    dataset = max({one.quality.dataset for one in costs}, key=lambda name: (study.documents(name) or 0, name))
    comparison = next((c for c in study.on(study.measures[0]) if c.dataset == dataset), None)
    own = [one for one in costs if one.quality.dataset == dataset]
    charts = []
    for chart in cost_charts(own, study.numbers):
        drawn = chart
        if isinstance(chart, Points) and comparison is not None:
            of_label = {study.label(s): s for s in study.systems}
            names = [of_label[point.name] for point in chart.points]
            to_baseline = {s: p for s in names if (p := study.against(comparison, s)) is not None}
            points = tuple(
                replace(point, filled=s not in to_baseline or to_baseline[s].verdict in ("better", "worse"))
                for point, s in zip(chart.points, names, strict=True)
            )

            def separable(before: int, after: int, names: Sequence[str] = names) -> bool:
                pair = study.against(comparison, names[after], names[before])
                return pair is not None and pair.verdict == "better"

            way = direction(study.measures[0])
            drawn = replace(chart, points=points, front=front(points, separable, way))
        charts.append(drawn)
    size = study.documents(dataset)
    what = f"{size:,} documents" if size else "its documents"
    hardware = sorted({machine(one.hardware) for one in own})
    lead = (
        f"On {dataset}, {what} and {study.query_count(dataset):,} queries, by {machine(own[0].hardware)}. The line is "
        "the best that can be had for the time; where it is dashed, the gain is not separable. Hollow marks are not "
        f"separable from {study.label(study.baseline)}. Bars are 95% intervals."
    )
    notes = (f"measured on different machines: {and_(hardware)}",) if len(hardware) > 1 else ()
    shown = [
        replace(one, quality=replace(one.quality, system=study.label(one.quality.system), title=""))
        for one in costs
    ]
    tables = (*efficiency_tables(shown), cost_table(one for one in shown if one.quality.dataset == dataset))
    records = (ResultSet("efficiency", tuple(shown)),)
    return Section("cost", "Quality against time", lead, tuple(charts), tables, notes, records=records)


def machine(hardware: str) -> str:
    """The processor and its cores, without the engine that computed."""
    return ", ".join(hardware.split(", ")[:2])


def judged_rates(study: Study) -> Section | None:
    """Whether unjudged documents could decide: the judged shares of the first ten."""
    rows = {(row.dataset, row.system): rate for row in study.rows if (rate := answered_rate(row)) is not None}
    datasets = [name for name in study.datasets if any((name, s) in rows for s in study.systems)]
    if not datasets:
        return None
    values = tuple(tuple(rows.get((name, s)) for s in study.systems) for name in datasets)
    chart = HeatMap(
        "Share of the first ten documents that is judged", tuple(datasets), study.numbers.labels, values
    )
    rates = {(d, study.label(s)): rows[d, s] for d in datasets for s in study.systems if (d, s) in rows}
    lead = (
        "An unjudged document counts as not relevant. Where the judged share of two systems differs, the one with the "
        "lower share may be better than its score says. As Elastic's judge rate: of the documents returned, over the "
        "queries that are answered; the measure Judged@10 counts an unanswered query as 0."
    )
    unlike = "; ".join(
        f"{name} ({study.label(low)} {share(a)}, {study.label(high)} {share(b)})"
        for name in datasets
        if (pair := unlike_rates(study, name)) is not None
        for low, a, high, b in [pair]
    )
    notes = (f"Comparisons are open where judged shares lie far apart: {unlike}.",) if unlike else ()
    return Section("judged", "Judged rates", lead, (chart,), (judged_table(rates),), notes)


def unlike_rates(study: Study, dataset: str) -> tuple[str, float, str, float] | None:
    """The systems of the lowest and highest judged share on a dataset, where the difference matters."""
    rates = sorted(
        (rate, row.system)
        for row in study.rows
        if row.dataset == dataset
        and row.measure == study.measures[0]
        and (rate := answered_rate(row)) is not None
    )
    if not rates or rates[-1][0] - rates[0][0] < UNLIKE_JUDGED_RATES:
        return None
    return rates[0][1], rates[0][0], rates[-1][1], rates[-1][0]


def bounds(study: Study, audits: Sequence[Audit]) -> Section | None:
    """Between which values scores lie, whatever the unjudged documents are, as the audit has found it."""
    numbers = {
        (one.subject, finding.system): dict(finding.numbers)
        for one in audits
        for finding in one.findings
        if finding.check == "score bounds" and finding.system
    }
    largest = sorted(study.datasets, key=lambda name: -study.query_count(name))
    found = [d for d in largest if any((d, label) in numbers for label in study.numbers.labels)]
    names = found[:MOST_BOUND_COLLECTIONS]
    if not names:
        return None
    panels = tuple(
        Panel(
            dataset,
            tuple(
                Interval(of["score"], of["low"], of["high"], study.numbers.number(system))
                if (of := numbers.get((dataset, study.label(system))))
                else None
                for system in study.systems
            ),
        )
        for dataset in names
    )
    lines = [["collection", "system", str(HOLE), BEIR_HOLE, "least", "score", "most"]]
    lines += [
        [
            *(d, label, *(share(of[name]) for name in (str(HOLE), BEIR_HOLE))),
            *(short_score(of[end]) for end in ("low", "score", "high")),
        ]
        for (d, label), of in numbers.items()
    ]
    turning = [
        f"{one.subject} ({finding.statement.partition(' differ by')[0]})"
        for one in audits
        for finding in one.findings
        if finding.check == "score bounds" and not finding.system and finding.severity == "serious"
    ]
    lead = (
        "Between which values nDCG@10 lies if every unjudged document among the first ten of a system were judged, in "
        "any way. Where the ranges of two systems overlap, unjudged documents could turn their order. Hole@10: of the "
        "first ten places, those with a document that was not judged for the query; BEIR's, to lay beside its table 4: "
        "those with a document that was judged for no query."
    )
    notes = []
    if turning:
        notes.append(
            "Unjudged documents may change the places of systems that the queries could tell apart: "
            f"{'; '.join(turning)}."
        )
    if len(names) < len(found):
        notes.append(
            f"Drawn are the {len(names)} collections of most queries; the table has all {len(found)}."
        )
    if lacking := [name for name in study.datasets if name not in found]:
        notes.append(f"Without bounds, as their documents or judgments are not here: {and_(lacking)}.")
    title = "Score bounds: the least, as judged, the most"
    chart = Intervals(
        title, "nDCG@10", study.numbers.labels, panels, bar="from the least to the most", ends=True
    )
    table = table_of(lines, right=None, keys=2)
    return Section("bounds", "Score bounds", lead, (chart,), (table,), tuple(notes))


# ----------
# The collections themselves.


def findings(audits: Sequence[Audit]) -> Section | None:
    """Whether the test is sound: what the audit of the folder says."""
    if not audits:
        return None
    ran = sorted({name for one in audits for name in one.ran})
    count = sum(len(one.findings) for one in audits)
    lead = (
        f"{counted(count, 'finding')} of {counted(len(ran), 'check')} on {counted(len(audits), 'subject')}. Wrong: a "
        "number is not what it claims to be. Serious: conclusions may change. Caution: report it beside the number. "
        "Notes are left out: weir audit FOLDER shows them."
    )
    above = [
        replace(one, findings=tuple(f for f in one.findings if f.severity != "note"))
        for one in audits
        if any(f.severity != "note" for f in one.findings)
    ]
    all_above = [(AUDITED.index(f.severity), one.subject, f) for one in above for f in one.findings]
    all_above.sort(key=lambda finding: finding[0])
    lines: list[list[str]] = [["what was found", "severity", "check", "findings", "collections"]]
    for check in dict.fromkeys(f.check for *_, f in all_above):
        own = [(subject, f) for _, subject, f in all_above if f.check == check]
        subject, worst = own[0]
        example = f"{subject}: {worst.statement.split('; ')[0]}"
        lines.append([example, worst.severity, check, str(len(own)), str(len({name for name, _ in own}))])
    summary = table_of(lines, right=2, keys=3) if above else sentences("No finding above a note.")
    return Section("audit", "Findings of the audit", lead, (), (summary,), (), audit_tables(above))


def _with_documents(study: Study) -> list[str]:
    """The datasets whose documents are on this machine."""
    here = {name for name, one in study.collections.items() if one.layout.documents is not None}
    return [name for name in study.datasets if name in here]


def overlap(study: Study) -> Section | None:
    """What is alike among the collections: a heat map of shared words."""
    names = _with_documents(study)
    if not 3 <= len(names) <= MOST_OVERLAP_COLLECTIONS:
        return None
    profile = word_counts([study.collections[name].corpus for name in names])
    shares = [profile.shares(which) for which in range(len(names))]
    alike = np.eye(len(names))
    for i, j in combinations(range(len(names)), 2):
        alike[i, j] = alike[j, i] = np.nan_to_num(weighted_jaccard(shares[i], shares[j]))
    weights = tuple(map(tuple, alike.tolist()))
    hidden = tuple(tuple(None if i == j else w for j, w in enumerate(of)) for i, of in enumerate(weights))
    chart = HeatMap("Weighted Jaccard index of words", tuple(names), tuple(names), hidden)
    lead = (
        "How far two collections use the same words equally often: 1 is the same shares of all words. Systems tend to "
        "keep their order between collections that are alike."
    )
    lines = [
        ["collection", *names],
        *([n, *map(short_score, of)] for n, of in zip(names, weights, strict=True)),
    ]
    return Section("overlap", "Overlap of collections", lead, (chart,), (table_of(lines),))


def lengths(study: Study) -> Section | None:
    """How long queries and documents are."""
    cards_here = [one.card for one in study.collections.values() if one.layout.documents is not None]
    charts = length_charts(cards_here)
    if not charts:
        return None
    retrieved = retrieved_lengths(study)
    lead = "Words, separated by white space, on average: of title and text, and of a query. The axis is logarithmic."
    if retrieved:
        lead += " The second chart shows the documents that each system returns first, and the relevant ones."
    table = collection_table(map(CollectionFacts.counted, cards_here))
    return Section("lengths", "Lengths", lead, (*charts, *retrieved), (table,))


def retrieved_lengths(study: Study) -> tuple[Spread, ...]:
    """Quartiles of the words of the first ten documents of each system, on the largest collection that is here.

    A measure of similarity may prefer long or short documents (figures 4 and 5 of BEIR's paper).
    """
    names = _with_documents(study)
    if not names:
        return ()
    dataset = max(names, key=study.query_count)
    collection = study.collections[dataset]
    cells = [cell for cell in study.cells if cell.dataset == dataset and cell.run.exists()]
    if sum(cell.run.stat().st_size for cell in cells) > RUN_BYTES:
        return ()
    tops = {study.label(cell.label): read_run(cell.run).top(10) for cell in cells}
    numbers = {study.label(cell.label): study.numbers.number(cell.label) for cell in cells}
    corpus, qrels = collection.corpus, collection.qrels
    rows = {name: corpus.ids.codes(run.docs.strings)[run.doc] for name, run in tops.items()}
    rows["relevant documents"] = corpus.ids.codes(qrels.docs.strings)[qrels.doc[qrels.grade > 0]]
    read = np.unique(np.concatenate(list(rows.values())))
    read = read[read >= 0]
    fields = "title text" if corpus.title is not None else "text"
    words = dict(zip(read.tolist(), (len(t.split()) for t in corpus.view_of(fields, read)), strict=True))
    shown = {
        name: np.percentile([words[row] for row in own.tolist() if row >= 0], (25, 50, 75))
        for name, own in rows.items()
        if np.any(own >= 0)
    }
    if len(shown) < 2 or any(values[0] < 1 for values in shown.values()):
        return ()
    return (
        Spread(
            f"Lengths of the first ten documents on {dataset}",
            "words",
            tuple(shown),
            ("25%", "median", "75%"),
            tuple((float(a), float(b), float(c)) for a, b, c in shown.values()),
            tuple(map(numbers.get, shown)),
        ),
    )


def slices(study: Study) -> Section | None:
    """For which kinds of queries: means on groups of the queries of the largest collection that is here."""
    large = [n for n in study.datasets if n in study.collections and study.query_count(n) >= 2 * FEW_QUERIES]
    if not large:
        return None
    dataset, measure = max(large, key=study.query_count), study.measures[0]
    collection = study.collections[dataset]
    subject = Subject(dataset, queries=collection.all_queries, qrels=collection.qrels)
    scores = {cell.label: cell.values() for cell in study.cells if cell.dataset == dataset}
    rows, counts, values = list[str](), list[int](), list[tuple[float | None, ...]]()
    for groups in feature_groups(subject):
        places_of = {name: groups.rows(one.queries) for name, one in scores.items()}
        for label, places in next(iter(places_of.values())).items():
            if len(places) < FEW_QUERIES:
                continue
            means = [
                None
                if name not in scores or measure not in scores[name].measures or label not in places_of[name]
                else float(np.nanmean(scores[name].of(measure)[places_of[name][label]]))
                for name in study.systems
            ]
            rows.append(f"{groups.name}: {label}")
            counts.append(len(places))
            values.append(tuple(means))
    if not rows:
        return None
    chart = HeatMap(f"{measure} by kind of query", tuple(rows), study.numbers.labels, tuple(values))
    lines = [["queries with", "queries", *study.numbers.labels]]
    lines += [
        [row, str(n), *("–" if v is None else short_score(v) for v in of)]
        for row, n, of in zip(rows, counts, values, strict=True)
    ]
    lead = (
        f"Means on groups of the {study.query_count(dataset):,} queries of {dataset}; darker is higher. Groups of "
        f"fewer than {FEW_QUERIES} queries are left out. No verdicts are made here: the audit tests slices and "
        "corrects for their number."
    )
    return Section("slices", "Slices", lead, (chart,), (table_of(lines),))


def language_models(study: Study) -> Section | None:
    """What language models were asked, what could be read, what it cost."""
    uses = model_uses(study.cells)
    if not uses:
        return None
    return Section(
        "models",
        "Language models",
        "What was asked, how answers were read, and what they cost.",
        (),
        use_tables([replace(use, system=study.label(use.system)) for use in uses]),
    )


# ----------
# What a sceptical reviewer will ask. Each question is answered from the data, or "not known".


def _enough_queries(study: Study) -> Question:
    measure = study.measures[0]
    spans = {c.dataset: d for c in study.on(measure) if (d := study.detectable(c)) is not None}
    small = [name for name in study.datasets if study.query_count(name) < FEW_QUERIES]
    large = [name for name in study.datasets if name not in small and name in spans]
    parts = []
    if small:
        counts = [study.query_count(name) for name in small]
        known = [spans[name] for name in small if name in spans]
        shown = (
            f"show a difference of {coarse_score(min(low for low, _ in known))} to "
            f"{coarse_score(max(up for _, up in known))}, or more, 8 times in 10"
            if known
            else "are so few that no difference is known that they show 8 times in 10"
        )
        who = small[0] if len(small) == 1 else f"{len(small)} collections"
        parts.append(f"The {_from_to(counts)} queries of {who} {shown}.")
    for name in sorted(large, key=lambda one: -study.query_count(one))[:2]:
        low, high = spans[name]
        parts.append(
            f"{study.query_count(name):,} queries of {name} show {short_score(low)} to {short_score(high)}."
        )
    if not parts:
        parts = ["How large a difference the queries can show is not known for this test."]
    head = "Not everywhere." if small and large else "No." if small else "For differences of this size."
    return Question(
        "serious" if small else "checked",
        "Are there enough queries?",
        Statement(head, " ".join(parts)),
        "weir power",
    )


def _one_collection(study: Study) -> Question | None:
    measure = study.measures[0]
    whole = study.across(measure)
    single = study.on(measure)
    if whole is None or len(single) < 2 or not direction(measure):
        return None
    leader = whole.standings[0].system
    others = {
        c.dataset: (c.standings[0].system, c.standings[0].mean)
        for c in single
        if c.standings[0].system != leader
    }
    common = [s.system for s in whole.standings]
    units = list(dict.fromkeys(study.unit_of[c.dataset] for c in single))
    means = np.array(
        [
            np.mean(
                [
                    [study.mean(d, s, measure) for s in common]
                    for d in study.datasets
                    if study.unit_of[d] == u
                ],
                0,
            )
            for u in units
        ]
    )
    moved = [
        unit
        for n, unit in enumerate(units)
        if common[int(np.argmax(direction(measure) * np.delete(means, n, 0).mean(0)))] != leader
    ]
    name = study.label(leader)
    if not others:
        return Question("checked", "Does the average hold without one collection?",
                        Statement("Yes.", f"{name} leads on every collection."))  # fmt: skip
    first = next(iter(others))
    text = f"Over all, {name} leads ({short_score(whole.standings[0].mean)}); on {and_(list(others)[:4])}"
    other, mean = others[first]
    text += f"{' and others' if len(others) > 4 else ''} another system does, such as {study.label(other)} on {first} "
    text += f"({short_score(mean)})."
    if moved:
        text += f" Without {moved[0]} another system leads."
    severity = "serious" if moved else "caution"
    return Question(severity, "Does the average hold without one collection?",
                    Statement("No." if moved else "As an average.", text))  # fmt: skip


def _construction(study: Study) -> Question | None:
    cut = [measure for measure in study.measures if "@" in measure]
    if not study.constructed:
        answer = Statement("Yes.", "No cut-off reaches the size of a collection.")
        return (
            Question("checked", f"Does {cut[-1]} say anything here?", answer)
            if cut and study.collections
            else None
        )
    first = study.constructed[0][0]
    where = [dataset for measure, dataset in study.constructed if measure == first]
    names = and_(where) if len(where) < 4 else f"{len(where)} collections"
    answer = Statement(f"Not on {names}.", f"What returns all documents there has {first} = 1.")
    return Question("serious", f"Does {first} say anything here?", answer)


def _unjudged(study: Study) -> Question | None:
    rates = [rate for row in study.cell_rows if (rate := answered_rate(row)) is not None]
    if not rates:
        return None
    unlike = [(name, pair) for name in study.datasets if (pair := unlike_rates(study, name)) is not None]
    if unlike:
        name, (low, a, high, b) = max(unlike, key=lambda one: one[1][3] - one[1][1])
        everywhere = len(unlike) == len(study.datasets)
        head = "Perhaps." if everywhere else f"Perhaps on {counted(len(unlike), 'collection')}."
        severity, text = "caution", (
            f"On {name}, {share(a)} of the first ten are judged for {study.label(low)} and {share(b)} for "
            f"{study.label(high)}; the rest count as not relevant."
        )  # fmt: skip
    else:
        head, severity = "The systems are judged alike.", "checked" if min(rates) > 0.5 else "note"
        text = f"{share(min(rates))} to {share(max(rates))} of the first ten documents are judged."
    answer = Statement(head, text)
    return Question(severity, "Could unjudged documents decide it?", answer, "weir eval -m Judged@10")


def _ties(study: Study) -> Question | None:
    question = "Could the order of ties decide it?"
    spans = [row for row in study.cell_rows if row.lowest is not None and row.highest is not None]
    movable = [row for row in spans if row.movable]
    if not spans:
        return None
    if not movable:
        answer = Statement("No.", "No score moves with the order of tied documents.")
        return Question("checked", question, answer)
    most = max(movable, key=lambda row: (row.highest or 0) - (row.lowest or 0))
    span = (most.highest or 0) - (most.lowest or 0)
    text = (
        f"{study.label(most.system)} on {most.dataset}: tied scores let {most.movable} of {most.queries} queries move; "
        f"{most.measure} may be {short_score(most.lowest or 0)} to {short_score(most.highest or 0)}, the widest."
    )
    severity, head = ("caution", "For some systems.") if span >= SPAN_OF_TIES else ("note", "By a little.")
    return Question(severity, question, Statement(head, text), "weir eval --ties bounds")


def _family(study: Study) -> Question | None:
    if len(study.systems) < 3 or len(study.systems) > MOST_PAIRWISE_SYSTEMS or not study.comparisons:
        return None
    fewer = compare_cells(study.cells, study.measures[:1], study.baseline, study.comparisons[0].method)
    other = {(c.dataset, pair.second): pair for c in fewer for pair in c.pairs}
    differing = []
    for c in study.comparisons:
        for system in study.systems:
            mine, theirs = study.against(c, system), other.get((c.dataset, system))
            if c.measure == study.measures[0] and mine and theirs and mine.verdict != theirs.verdict:
                differing.append((c.dataset, system, mine, theirs))
    question = "Do the verdicts depend on how many pairs are counted?"
    if not differing:
        return Question(
            "checked",
            question,
            Statement("No.", "Against the baseline alone, every verdict is the same."),
            "weir compare --baseline",
        )
    dataset, system, mine, theirs = differing[0]
    text = (
        f"On {dataset}, {study.label(system)} is {theirs.verdict} against {study.label(study.baseline)} among "
        f"{counted(theirs.comparisons, 'comparison')} (adjusted p {probability(theirs.adjusted)}) and {mine.verdict} "
        f"among all {mine.comparisons} ({probability(mine.adjusted)}). This page counts all pairs."
    )
    return Question(
        "caution",
        question,
        Statement({1: "Once.", 2: "Twice."}.get(len(differing), f"{len(differing)} times."), text),
        "weir compare --baseline",
    )


def _level_with_baseline(study: Study) -> Question | None:
    if not study.comparisons or len(study.systems) < 2:
        return None
    measure, name = study.measures[0], study.label(study.baseline)
    level = [
        study.label(s) for s in study.systems if s != study.baseline and tally(study, measure, s)[0] == 0
    ]
    question = f"Is every system better than {name} somewhere?"
    if not level:
        return Question(
            "checked", question, Statement("Yes.", "On one collection at least, by the verdicts.")
        )
    return Question("note", question, Statement("No.", f"{and_(level)}: no collection shows it."))


def _costs(study: Study) -> Question | None:
    if not study.costs:
        return None
    untimed = dict.fromkeys(study.label(one.quality.system) for one in study.costs if not one.timed)
    left_out = (
        f" Nobody measured a time of {and_(list(untimed))}, whose rankings are a file's." if untimed else ""
    )
    machines = {machine(one.hardware) for one in study.costs if one.timed}
    if not machines:
        return Question("note", "Are the costs comparable?", Statement("No time is known.", left_out.strip()))
    marked = [one for one in study.costs if one.timed and (one.index_marks or one.search_marks)]
    head = "Not between machines." if len(machines) > 1 else "Partly." if marked else "Yes."
    text = (
        f"{len(machines)} machines: {and_(sorted(machines))}."
        if len(machines) > 1
        else f"One machine ({next(iter(machines))})."
    )
    if marked:
        text += (
            f" {counted(len(marked), 'time')} leave out work that was stored before; the table marks them."
        )
    text += left_out
    severity = "caution" if len(machines) > 1 else "note" if marked or untimed else "checked"
    return Question(severity, "Are the costs comparable?", Statement(head, text), "weir study efficiency")


def _training(study: Study) -> Question | None:
    of = {system: trained_on(system) for system in study.systems}
    trained = {s: sorted(names) for s, names in of.items() if names}
    unknown = [study.label(s) for s, names in of.items() if names is None]
    if not trained and not unknown:
        return None
    question = "Was a model trained on these data?"
    hits = [(s, name) for s, names in trained.items() for name in names if name in study.datasets]
    alike = dict[tuple[str, ...], list[str]]()
    for s, names in trained.items():
        alike.setdefault(tuple(names), []).append(study.label(s))
    parts = [
        f"{and_(who[:3])} {'was' if len(who) == 1 else 'were'} trained on {and_(names)}."
        for names, who in list(alike.items())[:3]
    ]
    if unknown:
        parts.append(f"What {and_(unknown[:3])} was trained on is not recorded.")
    parts.append("The audit finds test queries in training data that are here.")
    head = (
        f"Yes, on {and_(list(dict.fromkeys(name for _, name in hits)))}."
        if hits
        else "Not known."
        if unknown
        else "No."
    )
    severity = "caution" if hits else "note" if unknown else "checked"
    return Question(severity, question, Statement(head, " ".join(parts)), "weir audit --training")


def _answered(study: Study) -> Question:
    unanswered = [
        row for row in study.cell_rows if row.answered < row.queries and row.measure == study.measures[0]
    ]
    question = "Is every query answered?"
    if not unanswered:
        return Question(
            "checked", question, Statement("Yes.", "Every system returns documents for every judged query.")
        )
    worst = max(unanswered, key=lambda row: (row.queries - row.answered) / row.queries)
    missing = worst.queries - worst.answered
    portion = missing / worst.queries
    text = (
        f"{study.label(worst.system)} returns nothing for {missing} of {worst.queries} queries of {worst.dataset}, "
        f"which score 0; {counted(len(unanswered), 'cell')} in all."
    )
    return Question(
        "caution" if portion > 0.02 else "note",
        question,
        Statement("Nearly." if portion < 0.1 else "No.", text),
    )


def _seed(study: Study) -> Question:
    question = "Would another seed change it?"
    services = [
        study.label(cell.label)
        for cell in study.cells
        if any(record.facts.get("services") for _, record in stages_of(cell))
    ]
    method = study.comparisons[0].method if study.comparisons else None
    tests = f" Tests draw {method.draws:,} permutations, seed {method.seed}." if method else ""
    if services:
        names = and_(list(dict.fromkeys(services))[:3])
        return Question(
            "caution",
            question,
            Statement("Not known.", f"Answers of a service, by {names}, were asked for once.{tests}"),
        )
    return Question(
        "checked", question, Statement("Not the scores.", f"No system here asks a service.{tests}")
    )


def _parsed(study: Study) -> Question | None:
    uses = [use for use in model_uses(study.cells) if use.answers]
    return parsed_answers(uses, study.label) if uses else None


def parsed_answers(uses: Sequence[ModelUse], label: Callable[[str], str]) -> Question:
    """Whether the answers of language models could be read; label: the short name of a system."""

    def unread(use: ModelUse) -> int:
        return use.answers - sum(use.verdicts.get(kind, 0) for kind in SCORED_KINDS)

    worst = max(uses, key=lambda use: unread(use) / use.answers)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in worst.verdicts.items())
    many = unread(worst) > PARSE_FAILURES * worst.answers
    severity, head = ("serious", "Not all.") if many else ("checked", "Yes.")
    answer = Statement(head, f"At worst, {label(worst.system)} on {worst.dataset}: {kinds}.")
    return Question(severity, "Could the models' answers be read?", answer, "weir study llm")


def _audit_questions(audits: Sequence[Audit]) -> list[Question]:
    """What the audit's checks of duplicates and leakage say."""
    questions_of = {
        "Are there duplicates among the documents?": ("duplicates", "near duplicates"),
        "Do queries leak from training?": ("leakage", "leakage by meaning"),
        "Are judgments and texts whole?": ("dangling judgments", "published counts", "texts"),
    }
    questions = []
    for question, checks in questions_of.items():
        ran = [one for one in audits if set(checks) & set(one.ran)]
        findings_of = [
            f for one in audits for f in one.findings if f.check in checks and f.severity != "note"
        ]
        if not ran:
            continue
        if not findings_of:
            questions.append(
                Question(
                    "checked",
                    question,
                    Statement("No finding.", f"{counted(len(ran), 'collection')} checked."),
                    "weir audit",
                )
            )
            continue
        first = findings_of[0]
        severity = "serious" if first.severity in ("wrong", "serious") else "caution"
        questions.append(
            Question(
                severity,
                question,
                Statement(
                    f"{counted(len(findings_of), 'finding')}.",
                    f"{first.subject}: {first.statement.split('; ')[0]}.",
                ),
                "weir audit",
            )
        )
    return questions


ASKED: tuple[Callable[[Study], Question | None], ...] = (
    *(_enough_queries, _one_collection, _construction, _unjudged, _ties, _family, _level_with_baseline),
    *(_costs, _training, _answered, _seed, _parsed),
)
"""Questions of a reviewer, each a function of the study."""


def questions(study: Study, audits: Sequence[Audit] = ()) -> tuple[Question, ...]:
    """All questions that can be answered from the data, or are known to be open; the most serious first."""
    answered = [one for ask in ASKED if (one := ask(study)) is not None] + _audit_questions(audits)
    return tuple(sorted(answered, key=lambda one: SEVERITIES.index(one.severity)))


def reviewer(answered: Sequence[Question]) -> Section:
    """The questions as a table."""
    lines = [["", "question", "answer", "settled by"]]
    lines += [[one.severity, one.question, str(one.answer), one.command] for one in answered]
    return Section(
        "reviewer", "What a sceptical reviewer will ask", "", (), (table_of(lines, right=0, keys=4),)
    )


# ----------
# How to do it again.


def command_lines(study: Study) -> str:
    """The commands that make the results again, as somebody types them."""
    parts = ["weir run"]
    places = {
        cell.dataset: str(cell.scored[-1][1].facts.get("collection") or cell.dataset) for cell in study.cells
    }
    parts += [f"-d {shlex.quote(name if '/' in places[name] else places[name])}" for name in study.datasets]
    systems = dict.fromkeys(cell.system for cell in study.cells)
    parts += [f"-s {shlex.quote(name)}" for name in systems]
    parts += [f"-m {shlex.quote(name)}" for name in study.measures]
    lines, line = list[str](), ""
    for part in [*parts, "-o results/"]:
        if line and len(line) + len(part) > 100:
            lines.append(line + " \\")
            line = "  "
        line += (" " if line.strip() else "") + part
    return "\n".join([*lines, line, "weir report results/ -o report.html"])


def reproduce(study: Study) -> Section:
    """Commands, versions, fingerprints."""
    made = [cell.ranked.made for cell in study.cells]
    versions = sorted({f"weir {one.get('weir')}" for one in made} | {f"Python {one.get('python')}" for one in made}
                      | {f"{n} {v}" for one in made for n, v in dict(one.get("packages") or {}).items()})  # fmt: skip
    lines = [["dataset", "split", "fingerprint of the collection", "judgments"]]
    for dataset in study.datasets:
        cell = next(cell for cell in study.cells if cell.dataset == dataset)
        record = cell.scored[-1][1]
        lines.append(
            [dataset, cell.split, str(record.facts.get("fingerprint")), str(record.declared.get("qrels"))]
        )
    keys = [["dataset", "system", "key of the ranking", "made"]]
    keys += [
        [c.dataset, study.label(c.label), c.ranked.stage.key, str(c.ranked.made.get("when"))[:19]]
        for c in study.cells
    ]
    seconds = search_seconds(study.cells)
    lead = f"{'; '.join(versions)}. "
    lead += "" if seconds is None else f"Searching took {duration(seconds)} in all. "
    lead += "weir results FOLDER --provenance shows every setting."
    return Section(
        "reproduce",
        "Reproduce",
        lead,
        (),
        (table_of(lines, keys=4), table_of(keys, keys=4)),
        (command_lines(study),),
    )


def sections(study: Study, audits: Sequence[Audit], answered: Sequence[Question]) -> tuple[Section, ...]:
    """All sections whose data are there, in the order in which a reader needs them.

    audits: of the folder, none where there is no audit; answered: the questions of a reviewer.
    """
    made = [
        short(study, audits),
        leaderboard(study),
        collections(study),
        against_baseline(study),
        cost(study),
    ]
    made += [judged_rates(study), bounds(study, audits), findings(audits)]
    for build in (overlap, lengths, slices):
        try:
            made.append(build(study))
        except WeirError:  # a collection is not whole here: the section is named among those left out
            continue
    made += [language_models(study), reviewer(answered), reproduce(study)]
    return tuple(one for one in made if one is not None)
