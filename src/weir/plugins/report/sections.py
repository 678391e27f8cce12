"""The sections of a report; a section without data is left out."""

from __future__ import annotations

import ast
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from weir.api.charts import (
    MANY_SYSTEMS,
    SEPARABLE,
    by_system,
    cost_charts,
    difference_chart,
    front,
    length_charts,
    standings_chart,
    verdict_map,
)
from weir.api.comparison_tables import COMPARISONS
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS, grid_tables, grids_marked
from weir.audit.bias import feature_groups
from weir.audit.check import PART_WORDS, Audit, Finding, audit_tables
from weir.audit.check import SEVERITIES as AUDITED
from weir.audit.judgments import BEIR_HOLE, HOLE
from weir.audit.subsets import WANTED_DIFFERENCE
from weir.core.charts import Chart, HeatMap, Interval, Intervals, Panel, Points, Spread
from weir.core.rounding import (
    counted,
    duration,
    figure,
    one_or_more,
    percent,
    probability,
    score,
    typeset,
    typeset_change,
)
from weir.core.scores import Row
from weir.core.subject import Subject
from weir.core.tables import Cell, Table, sentences, table_of
from weir.datasets import catalogue
from weir.datasets.names import catalogue_name
from weir.errors import WeirError
from weir.experiment.beside import NO_TEST
from weir.experiment.comparing import compare_cells
from weir.experiment.efficiency import (
    BEST,
    EFFICIENCIES,
    MARK,
    PROCESS,
    Efficiency,
    efficiency_tables,
    extrapolation,
    timed_queries,
    unkept_indexes,
)
from weir.experiment.experiment import DEPTH
from weir.experiment.results import (
    PARSE_FAILURES,
    UNKNOWN_PLACE,
    ResultCell,
    counted_notes,
    given_objects,
    name_given,
    search_seconds,
    started_in,
    unequal_depths,
    without_command,
)
from weir.files.runs import read_run
from weir.measures.measure import direction, parse_measure
from weir.plugins.llm.answers_report import ModelUse, model_uses, use_tables
from weir.plugins.report.paper import (
    CollectionFacts,
    beside_tables,
    collection_table,
    cost_table,
    judged_table,
    trained_on,
)
from weir.plugins.report.study import FEW_QUERIES, MOST_PAIRWISE_SYSTEMS, RUN_BYTES, Study
from weir.registry import Registry
from weir.services.answers import SCORED_KINDS
from weir.stats.compare import (
    Comparison,
    Pair,
    answers_said,
    compare_tables,
    disagrees,
    many_unanswered,
    rank_text,
)
from weir.stats.permutation import enumerated
from weir.stats.score_rows import answered_rate, unanswered_outcome
from weir.stats.significance import TESTS
from weir.systems.expression import expression_tree
from weir.systems.lexical.terms import weighted_jaccard, word_counts

MOST_SENTENCES = 5
"""Sentences under what can be concluded, and under what cannot."""
UNLIKE_JUDGED_RATES = 0.05
"""Difference of the judged shares of two systems from which their comparison is in doubt."""
FEW_JUDGED = 0.5
"""Share of the first ten documents that is judged, below which a score says little by itself."""
TOLD_APART = "with a verdict here, or a difference that the audit calls detectable"
"""Which pairs of systems `turning_pairs` counts; the audit alone, which has no verdicts, counts the latter."""
SPAN_OF_TIES = 0.01
"""Range of a mean by the order of ties from which it weakens a claim."""
MOST_BOUND_COLLECTIONS = 6
"""Most collections with a chart of score bounds if systems are many: those where most pairs may change places."""
MOST_OVERLAP_COLLECTIONS = 20
"""Most collections whose words are compared."""
SEVERITIES = ("wrong", "serious", "caution", "note", "checked")
"""Severities of a reviewer's questions, in the words of the audit."""
SEVERITY_WORDS = {
    "wrong": ("wrong", "wrong"),
    "serious": ("serious", "serious"),
    "caution": ("caution", "cautions"),
    "note": ("note", "notes"),
    "checked": ("checked", "checked"),
}
"""{severity: its word after 1, and after another number}."""


@dataclass(frozen=True)
class Statement:
    """A statement of the report: `head` in bold, then `text`."""

    head: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.head} {self.text}".strip()


@dataclass(frozen=True)
class Question:
    """A question of a sceptical reviewer, with its answer."""

    severity: str
    question: str
    answer: Statement
    command: str = ""
    """The command that settles it; "" for none."""


@dataclass(frozen=True)
class Section:
    """A section of the report: text, charts and tables."""

    name: str
    title: str
    lead: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    behind: tuple[Table, ...] = ()
    """Longer tables, which a page folds."""
    lists: tuple[tuple[str, tuple[Statement, ...]], ...] = ()
    """Statements under headings."""
    records: tuple[ResultSet[Any], ...] = ()
    """Results whose CSV is written instead of the CSV of `tables`."""
    board: str = ""
    """A key to marks that only the page has beside the charts: ranks, bold numbers."""
    plain: tuple[Table, ...] = ()
    """Tables whose CSV is written instead of the CSV of `tables`, unless there are `records`."""


def and_(names: Sequence[str], most: int = 0) -> str:
    """Return names joined by commas and "and"; "" for none.

    most: names to show before "N others"; 0 shows all.
    """
    if 0 < most < len(names):
        names = [*names[:most], counted(len(names) - most, "other")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def _score_cell(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(score(value), value=value)


def interval(low: float | None, high: float | None) -> str:
    """Return " [low, high]" with signs; "" if either is None."""
    return "" if low is None or high is None else f" [{typeset_change(low)}, {typeset_change(high)}]"


MOST_QUERIES = "which has most queries"


def chosen_clause(study: Study, reason: str) -> str:
    """Return, as a clause, the reason why a section shows one collection of several; "" if there is only one."""
    return f", {reason}" if len(study.datasets) > 1 else ""


# ----------
# In short.


def _report_title(study: Study) -> str:
    words = "no one two three four five six seven eight nine ten eleven twelve"
    numbers = dict(enumerate(words.split(" ")))
    systems, datasets = len(study.systems), len(study.units)
    left = f"{numbers.get(systems, str(systems)).capitalize()} {'system' if systems == 1 else 'systems'}"
    if len(study.unit_of) == 1:
        return f"{left} on {study.datasets[0]}"
    where = study.units[0] if datasets == 1 else f"{numbers.get(datasets, str(datasets))} collections"
    return f"{left} on {where}"


def lede(study: Study) -> str:
    """Return introductory sentences on systems, queries, collections, measures and tests."""
    queries = sum(study.query_count(dataset) for dataset in study.unit_of)
    names = [f"{name} ({study.query_count(name):,})" for name in study.unit_of]
    where = (
        study.datasets[0]
        if len(names) == 1
        else and_(names)
        if len(names) <= 4
        else f"{len(study.units)} collections"
        if len(study.units) > 1
        else study.units[0]
    )
    lacking = sum(math.isnan(row.low) for row in study.cell_rows)
    but = (
        f", but for {counted(lacking, 'mean')} that {one_or_more(lacking, 'has', 'have')} none"
        if lacking
        else ""
    )
    verdicts = f"Every comparison has a verdict ({study.family})." if study.comparisons else ""
    partly, holes = _partly_answered(study), _holes(study)
    verb = one_or_more(len(study.systems), "was asked", "were asked") if partly or holes else "answered"
    said = "".join(f"; {one}" for one in [*holes, *[_answers(study, partly)] * bool(partly)])
    return (
        f"{counted(len(study.systems), 'system')} {verb} {queries:,} queries of {where}, measured by "
        f"{and_(study.measures)}{said}. "
        f"Every mean on a collection has a 95% interval{but}. {verdicts}".strip()
    )


def _holes(study: Study) -> list[str]:
    """Return clauses on systems without results on some datasets, and on measures that some results lack."""
    results = {(row.dataset, row.system) for row in study.cell_rows}
    measured, alike = Counter(row.measure for row in study.cell_rows), dict[tuple[str, ...], list[str]]()
    for system in study.systems:
        of = tuple(name for name in study.datasets if (name, system) in results)
        alike.setdefault(of, []).append(study.short_name(system))
    alike.pop(study.datasets, None)
    groups = sorted(alike.items(), key=lambda one: len(one[0]))
    more = sum(len(names) for _, names in groups[MOST_PARTLY:])
    return [
        *(
            f"{and_(names, 3)} {one_or_more(len(names), 'was', 'were')} asked only those of {_these(study, of)}"
            if of
            else f"{and_(names, 3)} {one_or_more(len(names), 'has', 'have')} no score by {and_(study.measures)}"
            for of, names in groups[:MOST_PARTLY]
        ),
        *[f"{counted(more, 'more system')} {one_or_more(more, 'lacks', 'lack')} collections"] * (more > 0),
        *(
            f"{measure} is known of {measured[measure]:,} of {len(results):,} results"
            for measure in study.measures
            if measured[measure] < len(results)
        ),
    ]


def _these(study: Study, datasets: Sequence[str]) -> str:
    few = len(datasets) <= MOST_PARTLY
    return and_(datasets) if few else f"{len(datasets)} of the {len(study.datasets)} {study.noun}"


def _partly_answered(study: Study) -> list[Row]:
    return [row for row in study.cell_rows if row.answered < row.queries and row.measure == study.measures[0]]


MOST_PARTLY = 3
"""Results whose number of answered queries one sentence names."""


def _answers(study: Study, rows: Iterable[Row]) -> str:
    worst = sorted(rows, key=lambda row: row.answered / row.queries)
    said = [
        answers_said(study.short_name(row.system), row.answered, row.queries)
        + f" of {row.dataset}" * (len(study.datasets) > 1)
        for row in worst[:MOST_PARTLY]
    ]
    more = len(worst) - MOST_PARTLY
    return and_(
        [
            *said,
            *[f"{counted(more, 'more result')} {one_or_more(more, 'lacks', 'lack')} answers"] * (more > 0),
        ]
    )


FASTER = 2
"""Ratio of times of the second fastest system to the fastest below which nobody is called the fastest: one model under
two names has taken 1.4 times as long, on a machine that others used."""


def concluded(study: Study, audits: Sequence[Audit] = ()) -> tuple[Statement, ...]:
    """Return up to 5 conclusions that the verdicts support; () without comparisons."""
    if not study.comparisons:
        return ()
    measure, baseline = study.measures[0], study.short_name(study.baseline)
    single, whole = study.on(measure), study.ranking_comparison(measure)
    across = [whole] if whole is not None and whole.unit == "datasets" else []
    found: list[tuple[bool, float, Statement]] = []
    for system in study.systems:
        pairs = [(c, pair) for c in single if (pair := study.against(c, system)) is not None]
        by = {v: [(c, p) for c, p in pairs if p.verdict == v] for v in ("better", "worse")}
        over = [(c, p) for c in across if (p := study.against(c, system)) and p.verdict in SEPARABLE]
        if system == study.baseline or not (by["better"] or by["worse"] or over):
            continue
        verdict, other = ("better", "worse") if len(by["better"]) >= len(by["worse"]) else ("worse", "better")
        if over and over[0][1].verdict != verdict:
            verdict, other = other, verdict
        names, changes = [c.dataset for c, _ in by[verdict]], [p.difference for _, p in by[verdict]]
        size = " to ".join(
            dict.fromkeys(typeset_change(of(changes, key=abs)) for of in (min, max) if changes)
        )
        if len(changes) == 1:
            size = _size(by[verdict][0][1])
        where = and_(names) if len(names) <= 3 else f"{len(names)} of {len(pairs)} {study.noun}"
        none = f"{other} on {and_([c.dataset for c, _ in by[other]], 3)}" if by[other] else f"{other} on none"
        text = f"on {where}, by {size}" if names else "on none"
        text += f" of {measure}" * (not over) + f", {none}" * (len(pairs) > 1)
        if over:
            text = f"on the mean of {over[0][0].dataset}, by {_size(over[0][1])} of {measure}; singly {text}"
        claimed = [*over, *(one for of in by.values() for one in of)]
        text += _doubts(study, [c for c, _ in claimed], (system, study.baseline), audits)
        differences = [p.difference for _, p in over] or changes
        head = f"{study.short_name(system)} is {verdict} than {baseline}"
        found.append((not over, -sum(map(abs, differences)), Statement(head, f"{text}.")))
    if study.pairwise and not found:  # the baseline is level with all, which says nothing of the others
        found = [
            (
                c.unit == "queries",
                -abs(pair.difference),
                Statement(
                    f"{study.short_name(first)} is better than {study.short_name(second)}",
                    f"on {'the mean of ' * (c.unit == 'datasets')}{c.dataset}, by {_size(_better_last(pair))} of "
                    f"{measure}{_doubts(study, [c], (pair.first, pair.second), audits)}.",
                ),
            )
            for c in (*across, *single)
            for pair in c.pairs
            if pair.verdict in SEPARABLE
            for first, second in [(_better_last(pair).second, _better_last(pair).first)]
        ]
    statements = [
        *([] if whole is None else _best_of_all(study, whole, audits)),
        *(one for *_, one in sorted(found, key=lambda one: one[:2])),
        *_fastest(study),
    ]
    alone = tuple(_by_another_measure(study))
    return (*statements[: MOST_SENTENCES - len(alone)], *alone)


def _doubts(
    study: Study, comparisons: Sequence[Comparison], systems: tuple[str, str], audits: Sequence[Audit]
) -> str:
    """Return clauses on weaknesses of the verdicts on a pair of systems."""
    whole = any(c.unit == "datasets" for c in comparisons)
    datasets = study.datasets if whole else [c.dataset for c in comparisons]
    clauses = (
        _open_pair_clause(study, systems, datasets, audits),
        _depths_clause(study, study.measures[0], datasets, systems),
        _unanswered_clause(study, study.measures[0], datasets, [systems]),
        _ties_clause([c.dataset for c in comparisons if ties_could_turn(study, c, *systems)]),
    )
    return "".join(clauses)


def _better_last(pair: Pair) -> Pair:
    return pair if pair.verdict == "better" else pair.reversed


def _size(pair: Pair) -> str:
    return f"{typeset_change(pair.difference)}{interval(pair.low, pair.high)}"


def _by_another_measure(study: Study) -> Iterator[Statement]:
    """Yield at most one statement: the largest difference that is significant by another measure but not by the first,
    of systems whose rankings that measure reads to about the same depth.
    """
    pairs = {
        (measure, c.dataset, frozenset((p.first, p.second))): p
        for measure in study.tested()
        for c in study.on(measure)
        for p in c.pairs
        if p.verdict in SEPARABLE and (measure, c.dataset) not in study.constructed
    }
    first = study.measures[0]
    alone = [(m, d, _better_last(p)) for (m, d, both), p in pairs.items() if (first, d, both) not in pairs]
    uneven = {(m, d) for m, d in {one[:2] for one in alone} if uneven_depths(study, m, d)}
    alone = [
        (m, d, p)
        for m, d, p in alone
        if (m, d) not in uneven or not uneven_depths(study, m, d, (p.first, p.second))
    ]
    if alone:
        measure, dataset, pair = max(alone, key=lambda one: abs(one[2].difference))
        better, worse = map(study.short_name, (pair.second, pair.first))
        text = f"on {dataset}, by {_size(pair)}, where {first} does not separate them"
        both = pair.first, pair.second
        text += _unanswered_clause(study, measure, [dataset], [both])
        if len(alone) > 1:
            measures = and_(list(dict.fromkeys(name for name, _, _ in alone)), 3)
            text += f"; {len(alone)} verdicts of {measures} separate systems that {first} does not"
        yield Statement(f"By {measure}, {better} is better than {worse}", f"{text}.")


def _best_of_all(study: Study, whole: Comparison, audits: Sequence[Audit]) -> Iterator[Statement]:
    best = whole.standings[0]
    if len(whole.standings) <= 2 or best.worst != 1:
        return
    unranked = _unranked_clause(study, whole)
    where = whole.dataset
    pairs = [(best.system, one.system) for one in whole.standings[1:]]
    tied = any(ties_could_turn(study, whole, *pair) for pair in pairs)
    turned = "; the order of tied documents could turn it" * tied
    ahead = ""
    if whole.unit == "datasets":
        singly = study.singly_best(whole.measure, best.system)
        where = f"the mean of {whole.dataset} (on {f'{singly} of them also' if singly else 'none of them'} singly)"
        second = whole.standings[1].system
        if (lead := study.against(whole, best.system, second)) is not None:
            ahead = f", {_size(lead)} ahead of {study.short_name(second)}"
    yield Statement(
        f"{study.short_name(best.system)} is better than every other system{' with a rank' * bool(unranked)}",
        f"on {where}, by {whole.measure}{ahead}{_open_order_clause(study, study.short_name(best.system), audits)}"
        f"{_depths_clause(study, whole.measure, study.datasets)}"
        f"{_unanswered_clause(study, whole.measure, study.datasets, pairs)}{turned}{unranked}.",
    )


def _unranked_clause(study: Study, whole: Comparison) -> str:
    lacking = [study.short_name(s) for s in study.systems if study.standing(whole, s) is None]
    why = f"{one_or_more(len(lacking), 'has', 'have')} no rank, not being scored everywhere"
    return f"; {and_(lacking, 3)} {why}" if lacking else ""


def _two_digits(ratio: float) -> str:
    rounded = float(f"{ratio:.2g}")
    return f"{rounded:,.{int(rounded < 10)}f}"


def _fastest(study: Study) -> Iterator[Statement]:
    costs = [one for one in study.every_cost if one.quality.dataset == study.largest]
    timed = [one for one in costs if one.p50_ms is not None]
    own = sorted((one.p50_ms or 0.0, one.quality.system, one.singles or 0) for one in timed if one.compared)
    places = {(one.machine, one.depth) for one in timed}
    if len(places) == 1 and len(own) > 1 and own[1][0] >= FASTER * own[0][0] > 0:
        (first, system, asked), others = own[0], own[1:]
        ratios = dict.fromkeys(_two_digits(ms / first) for ms, *_ in (others[0], others[-1]))
        who = one_or_more(len(others), "the other takes", "the others take")
        medians = (
            f"{one_or_more(len(others), 'the median', 'medians')} of {_from_to([n for *_, n in others])}"
        )
        few = any(one.singles is not None and not one.compared for one in timed)
        enough = " with as many queries as a p95 needs" * few
        of = f" of the {len(own)} that were timed{enough}" * (len(own) < len(costs))
        yield Statement(
            f"{study.short_name(system)} is the fastest{of}:",
            f"{figure(first)} ms for a query on {study.largest}, the median of {asked:,}; {who} some "
            f"{' to '.join(ratios)} times as long, {medians}, on {next(iter(places))[0]}.",
        )


def tie_span(study: Study, comparison: Comparison, system: str) -> tuple[float, float]:
    """Return (lowest, highest) mean of a system over all orders of tied documents; NaN if it lacks a mean on
    some dataset."""
    units: dict[str, list[tuple[float, float]]] = {}
    across = comparison.unit == "datasets"
    for dataset in study.unit_of if across else [comparison.dataset]:
        row = study.mean_of.get((dataset, system, comparison.measure))
        mean = math.nan if row is None else row.mean
        low, high = (mean, mean) if row is None else (row.lowest, row.highest)
        ends = mean if low is None else low, mean if high is None else high
        units.setdefault(study.unit_of[dataset] if across else "", []).append(ends)
    low, high = np.mean([np.mean(of, axis=0) for of in units.values()], axis=0).tolist()
    return low, high


def ties_could_turn(study: Study, comparison: Comparison, one: str, other: str) -> bool:
    """Return True if orders of tied documents could reverse the means of two systems."""
    (low, high), (least, most) = (tie_span(study, comparison, system) for system in (one, other))
    return max(high - low, most - least) > 0 and low < most and least < high


def _depths_clause(study: Study, measure: str, datasets: Sequence[str], systems: Sequence[str] = ()) -> str:
    uneven = [name for name in datasets if uneven_depths(study, measure, name, systems)]
    return f"; rankings end at very different depths on {and_(uneven, 3)}" if uneven else ""


def _unanswered_clause(
    study: Study, measure: str, datasets: Sequence[str], pairs: Iterable[tuple[str, str]]
) -> str:
    """Return a clause on these pairs' unanswered queries, if many or enough to explain a difference; else ""."""
    partly = dict[tuple[str, str], Row]()
    for dataset, pair, turn in product(datasets, pairs, (1, -1)):
        row, other = (study.mean_of.get((dataset, system, measure)) for system in pair[::turn])
        if (
            row is not None
            and other is not None
            and many_unanswered(row.answered, row.queries, row.mean - other.mean)
        ):
            partly[row.dataset, row.system] = row
    if not partly:
        return ""
    outcome = unanswered_outcome(row.conventions for row in partly.values())
    return f"; {_answers(study, partly.values())}: the rest {outcome}"


def _ties_clause(datasets: Sequence[str]) -> str:
    return f"; the order of tied documents could turn it on {and_(datasets, 3)}" if datasets else ""


def _tied(study: Study, measure: str) -> list[Statement]:
    found = []
    for c in study.on(measure):
        spans = {one.system: tie_span(study, c, one.system) for one in c.standings}
        for pair in combinations(spans, 2):
            loose, firm = sorted(pair, key=lambda name: spans[name][0] - spans[name][1])
            low, high = spans[loose]
            if high - low >= SPAN_OF_TIES and ties_could_turn(study, c, loose, firm):
                mean = study.cell_mean(c.dataset, firm, measure)
                found.append(
                    (high - low, c.dataset, study.short_name(loose), study.short_name(firm), low, high, mean)
                )
    if not found:
        return []
    _, dataset, loose, firm, *scores = max(found)
    least, most, mean_of_firm = map(score, scores)
    more = f", and of {counted(len(found) - 1, 'pair')} more:" if len(found) > 1 else ":"
    text = (
        f"in some order of tied documents {loose} has {least}, in another {most}; {firm} has {mean_of_firm}."
    )
    return [Statement(f"The order of {loose} and {firm} on {dataset}{more}", text)]


def _open_order_clause(study: Study, label: str, audits: Sequence[Audit]) -> str:
    pairs = [
        (dataset, worse)
        for dataset, (_, turned) in turning_pairs(study, audits).items()
        for better, worse in turned
        if better == label
    ]
    if not pairs:
        return ""
    others, places = (list(dict.fromkeys(pair[n] for pair in pairs)) for n in (1, 0))
    return f", as judged: unjudged documents could put {and_(others, 3)} above it on {and_(places, 3)}"


def _open_pair_clause(
    study: Study, systems: tuple[str, str], datasets: Sequence[str], audits: Sequence[Audit]
) -> str:
    turning = {name: found for name, found in turning_pairs(study, audits).items() if name in datasets}
    both = set(map(study.short_name, systems))
    sure = [name for name, (_, pairs) in turning.items() if any(set(pair) == both for pair in pairs)]
    if sure:
        return f", as judged: unjudged documents could turn this on {and_(sure, 3)}"
    # The audit keeps some pairs of each collection, and counts them all.
    perhaps = [name for name, (count, pairs) in turning.items() if count > len(pairs)]
    return f", as judged: unjudged documents may turn this on {and_(perhaps, 3)}" if perhaps else ""


def not_concluded(study: Study) -> tuple[Statement, ...]:
    """Return up to 5 conclusions that the data do not support, or why nothing can be compared."""
    removed = tuple(
        Statement(f"How good {name} is with all its answers on {dataset}:", f"{said}.")
        for (dataset, name), said in study.removed.items()
    )
    if not study.comparisons:
        reason = study.remarks[-1] if study.remarks else "there is one system"
        return (*removed[:1], Statement("Nothing can be compared:", f"{reason}."))
    measure = study.measures[0]
    whole = study.ranking_comparison(measure)
    statements = [
        *removed[:1],
        *_left_out(study),
        *([] if whole is None else _lead_not_separable(study, whole)),
        *_tied(study, measure),
        *([] if whole is None else _too_few_units(study, whole)),
        *(
            []
            if whole is not None and whole.unit == "queries" and len(study.systems) == 2
            else _never_separated(study, measure)
        ),
        *_few_judged(study),
        *_scored_by_construction(study),
        *_small_collections(study, measure),
    ]
    return tuple(statements[:MOST_SENTENCES])


def _left_out(study: Study) -> Iterator[Statement]:
    if study.remarks:
        few = list(study.remarks) if len(study.remarks) < 4 else [*study.remarks[:2]]
        more = [f"and {len(study.remarks) - len(few)} sentences more of this kind, which weir results prints"]
        said = "; ".join(few + more * (len(few) < len(study.remarks)))
        yield Statement("Anything about results that are not here:", f"{said}.")


def _lead_not_separable(study: Study, whole: Comparison) -> Iterator[Statement]:
    first, *others = whole.standings
    leads = [(one.system, study.against(whole, first.system, one.system)) for one in others]
    level = [(system, pair) for system, pair in leads if pair is not None and pair.verdict == "not separable"]
    head = f"That {study.short_name(first.system)} is the best."
    if level:
        second, pair = level[0]
        size = f"{_size(pair)} of {whole.measure}"
        wide = study.together[whole.measure, whole.dataset].against(first.system, second)
        if disagrees(pair) and wide is not None and wide.low is not None:
            size += f", or{interval(wide.low, wide.high)} for all {pair.comparisons} comparisons together"
        more = and_([study.short_name(system) for system, _ in level[1:4]])
        text = f"On {whole.dataset} it leads {study.short_name(second)} by {size}, which is not separable"
        rest = f", nor is its lead over {more}" if more else ""
        if not pair.difference:
            text = f"On {whole.dataset} {study.short_name(second)} has the same mean"
            rest = f", and its lead over {more} is not separable" if more else ""
        yield Statement(head, f"{text}{rest}{_unranked_clause(study, whole)}.")
    elif not study.pairwise and len(whole.standings) > 2 and first.worst != 1:
        yield Statement(head, f"Each system is compared with {study.short_name(study.baseline)} alone.")


def _too_few_units(study: Study, whole: Comparison) -> Iterator[Statement]:
    if not whole.reach.possible and not any(pair.verdict in SEPARABLE for pair in whole.pairs):
        yield Statement(
            f"Anything over {whole.dataset}:",
            f"the test cannot find a difference on so few {whole.unit.replace('datasets', 'collections')}"
            f"{_weights_clause(study) if whole.unit == 'datasets' else ''}, however large it is.",
        )


def _never_separated(study: Study, measure: str) -> Iterator[Statement]:
    comparisons = [*study.on(measure), *filter(None, [study.across(measure)])]
    level_with = [
        study.short_name(system)
        for system in study.systems
        if system != study.baseline
        and (pairs := [p for c in comparisons if (p := study.against(c, system)) is not None])
        and all(p.verdict == "not separable" for p in pairs)
    ]
    if level_with:
        verb = "differs" if len(level_with) == 1 else "differ"
        who = (
            and_(level_with)
            if len(level_with) <= 3
            else f"{len(level_with)} of {len(study.systems) - 1} systems"
        )
        yield Statement(
            f"That {who} {verb} from {study.short_name(study.baseline)} in {measure}:",
            "no collection separates them.",
        )


def _few_judged(study: Study) -> Iterator[Statement]:
    rates: dict[str, list[float]] = {}
    for row in study.cell_rows:
        if (rate := answered_rate(row)) is not None:
            rates.setdefault(row.dataset, []).append(rate)
    if few := {name: shares for name, shares in rates.items() if min(shares) < FEW_JUDGED}:
        ends = min(map(min, few.values())), max(map(max, few.values()))
        shares = " to ".join(dict.fromkeys(map(percent, ends)))
        on = next(iter(few)) if len(few) == 1 else f"{len(few)} {study.noun}"
        yield Statement(
            "How high a score is:", f"only {shares} of the first ten documents are judged on {on}."
        )


def _scored_by_construction(study: Study) -> Iterator[Statement]:
    if study.constructed:
        names = sorted({measure for measure, _ in study.constructed})
        on = sorted({dataset for _, dataset in study.constructed})
        yield Statement(
            f"Anything from {and_(names)} on {on[0] if len(on) == 1 else f'{len(on)} {study.noun}'}:",
            "a system that returns all documents scores 1 there.",
        )


def _small_collections(study: Study, measure: str) -> Iterator[Statement]:
    small = [name for name in study.datasets if study.query_count(name) < FEW_QUERIES]
    if small:
        spans = {c.dataset: d for c in study.on(measure) if c.dataset in small and (d := study.detectable(c))}
        shown = f", which show {_between(study, spans)} 8 times in 10, and less more seldom" if spans else ""
        few = small[0] if len(small) == 1 else f"{len(small)} small {study.noun}"
        yield Statement(
            f"Small differences on {few}:",
            f"{'it has' if len(small) == 1 else 'they have'} {_from_to(list(map(study.query_count, small)))} "
            f"queries{shown}.",
        )


def short(study: Study, audits: Sequence[Audit] = ()) -> Section:
    """Return the report's first section: conclusions and their limits."""
    can, cannot = concluded(study, audits), not_concluded(study)
    return Section(
        "short",
        _report_title(study),
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
    """Return the section of standings and ranks by each measure; None without comparisons."""
    charts, tables = list[Intervals](), list[Table]()
    wholes = [whole for whole in map(study.ranking_comparison, study.measures) if whole is not None]
    for one in wholes:
        parts = study.on(one.measure) if one.unit == "datasets" else []
        charts.append(standings_chart(one, parts, study.numbers))
        tables.append(_standings_table(study, one))
    if not wholes:
        return None
    whole = wholes[0]
    over = (
        f"Mean over {whole.dataset}{_weights_clause(study)}; the small ticks are the means on each of them. "
        if whole.unit == "datasets"
        else f"Mean over {whole.count:,} queries of {whole.dataset}. "
    )
    board = []
    if ranges_differ(whole):
        board.append(
            "A rank is a range: 1 + the systems that are better, to all less the systems that are worse."
        )
    if any(s.letters for s in whole.standings):
        board.append("Systems that share a letter are not separable.")
    if not study.pairwise and len(study.systems) > 2:
        alone = f"Each system is compared with {study.short_name(study.baseline)} alone"
        board.append(f"{alone}{', so the ranks of the others stay wide' * ranges_differ(whole)}.")
    lead = over.rstrip()
    if any(not one.filled for chart in charts for panel in chart.panels for one in panel.intervals if one):
        lead += f" Hollow marks are not separable from {study.short_name(study.baseline)}."
    if all(one.low is None for one in whole.standings):
        units = "collections" if whole.unit == "datasets" else "queries"
        lead += f" Means over so few {units} ({whole.count}) have no interval."
    elif any(one.low is None for one in whole.standings):
        lead += " A system with one value everywhere has no interval."
    lacking = [s for s in study.systems if study.standing(whole, s) is None]
    notes = (
        (f"not on all collections, so without a rank: {and_([study.short_name(s) for s in lacking], 6)}",)
        if lacking
        else ()
    )
    twice = counted_notes(study.cells) if whole.unit == "datasets" else []
    return Section(
        "leaderboard",
        "Leaderboard",
        lead,
        tuple(charts),
        tuple(tables),
        (*notes, *twice, *constructed_notes(study)),
        board=" ".join(board),
        plain=(_plain_standings(study, wholes),),
    )


def _plain_standings(study: Study, wholes: Sequence[Comparison]) -> Table:
    counts = ("better", "not separable", "worse")
    lines: list[list[str | Cell]] = [
        ["measure", "over", "system", "mean", "low", "high", "best rank", "worst rank", "tie groups", *counts]
    ]
    for whole in wholes:
        for one in whole.standings:
            compared = direction(whole.measure) and one.system != study.baseline
            tallied = tally(study, whole.measure, one.system) if compared else (None,) * 3
            numbers = (one.mean, one.low, one.high, one.best, one.worst)
            lines.append(
                [whole.measure, whole.dataset, study.short_name(one.system),
                 *("" if v is None else Cell(score(v), value=v) for v in numbers), one.letters,
                 *("" if n is None else str(n) for n in tallied)]
            )  # fmt: skip
    return table_of(lines, right=3, keys=3)


def ranges_differ(whole: Comparison) -> bool:
    """Return True unless all systems have the same range of ranks."""
    return len({(one.best, one.worst) for one in whole.standings if one.best is not None}) > 1


def _between(study: Study, spans: Mapping[str, Mapping[str, float]]) -> str:
    """Return the smallest and the largest detectable difference to the baseline as text, with systems and
    datasets if there are several.

    spans: {dataset: {system: difference}}, none empty.
    """
    several, alone = len(spans) > 1, len(study.systems) < 3
    of = sorted((size, system, dataset) for dataset, by in spans.items() for system, size in by.items())
    ends = [
        score(size)
        + f" ({' on '.join([study.short_name(system)] * (not alone) + [dataset] * several)})"
        * (several or not alone)
        for size, system, dataset in dict.fromkeys([of[0], of[-1]])
    ]
    return " to ".join(ends)


def _from_to(counts: Sequence[int]) -> str:
    return " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))


def _weights_clause(study: Study) -> str:
    if len(set(study.unit_of.values())) == len(study.unit_of):
        return ", each counting alike"
    return ", where splits of one, and members of one group, count together"


def tally(study: Study, measure: str, system: str) -> tuple[int, int, int]:
    """Return the numbers of datasets on which a system is (better than, not separable from, worse than) the
    baseline."""
    counted = [c for c in study.on(measure) if c.dataset in study.unit_of]
    verdicts = [p.verdict for c in counted if (p := study.against(c, system)) is not None]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    return better, len(verdicts) - better - worse - verdicts.count("-"), worse


def _standings_table(study: Study, whole: Comparison) -> Table:
    tested = bool(direction(whole.measure))
    ranked = ranges_differ(whole)
    known = any(one.low is not None for one in whole.standings)
    lettered = any(one.letters for one in whole.standings)
    head = ["rank"] * ranked + ["system", "mean"] + ["95% interval"] * known + ["tie groups"] * lettered
    lines: list[list[str | Cell]] = [[*head, *["better", "not separable", "worse"] * tested]]
    for one in whole.standings:
        ends = "–" if one.low is None or one.high is None else f"{score(one.low)}–{score(one.high)}"
        counts = (
            [""] * 3 if one.system == study.baseline else map(str, tally(study, whole.measure, one.system))
        )
        lines.append([*[rank_text(one, "–")] * ranked, study.short_name(one.system), _score_cell(one.mean),
                      *[ends] * known, *[one.letters] * lettered, *(counts if tested else ())])  # fmt: skip
    title = f"{whole.measure}, against {study.short_name(study.baseline)}" if tested else whole.measure
    deep = uneven_depths(study, whole.measure)
    return table_of(lines, right=1 + known + lettered + 3 * tested, keys=1 + ranked, title=title, notes=deep)


def uneven_depths(
    study: Study, measure: str, dataset: str = "", systems: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a sentence for each dataset on which the rankings that the measure reads differ much in length.

    dataset, systems: only these; by default all.
    """
    cells = [
        named
        for cell, named in zip(study.cells, study.named_cells, strict=True)
        if dataset in ("", cell.dataset) and (not systems or cell.label in systems)
    ]
    notes = unequal_depths(cells, [measure])
    return tuple(f"{note.text}. The longer ones can gain where the shorter end." for note in notes)


def collections(study: Study) -> Section | None:
    """Return the section of verdicts and means on datasets x systems; None for a single dataset or without
    verdicts."""
    maps = tuple(verdict_map(study.on(m), study.numbers) for m in study.measures if study.on(m))
    if not maps or len(study.datasets) < 2:
        return None
    bold = "best, or not separable from the best" if study.pairwise else "the highest"
    lead = (
        f"A tint says that the difference to {study.short_name(study.baseline)} is separable on these queries; its "
        "depth says how large it is."
    )
    board = (
        f"Bold is {bold}. Detectable: the difference between the named system and the baseline that such queries show "
        "8 times in 10 by the corrected test, of several systems the smallest and the largest; – if none is known: "
        "queries are too few, or scores are equal."
    )
    if any(study.query_count(name) < FEW_QUERIES for name in study.datasets):
        board += f" A collection marked (few) has fewer than {FEW_QUERIES} queries."
    rows = [replace(row, system=study.short_name(row.system), title="") for row in study.rows]
    grids = tuple(
        replace(table, notes=(*table.notes, *uneven), own=(*(table.own or ()), *uneven))
        for table in grids_marked(grid_tables(rows), legend=False)
        for uneven in [uneven_depths(study, table.title)]
    )
    records = (ResultSet(ROWS, tuple(rows)),)
    return Section("collections", "Collections and systems", lead, maps, grids, records=records, board=board)


def _against_baseline(study: Study) -> Section | None:
    if len(study.systems) < 2:
        return None
    tested = [m for m in study.tested() if study.on(m)]
    telling = [m for m in tested if m in study.telling]
    many = len(study.systems) > MANY_SYSTEMS
    charts = tuple(
        chart
        for m in (telling[:1] if many else telling)
        if (chart := _differences(study, m)).panels
    )  # fmt: skip
    if not tested:
        return None
    name = study.short_name(study.baseline)
    lead = (
        f"Difference to {name}. Thick bars are 95% intervals of one difference alone; thin ones hold for all "
        f"comparisons together. Marks are filled if the test, corrected for as many, separates them from {name}: near "
        "the limit a thin bar may cross 0 all the same."
    )
    if many and len(study.datasets) == 1:
        lead += f" Drawn is {tested[0]}; the table has all measures." if len(tested) > 1 else ""
    elif many:
        drawn = len(charts[0].panels) if charts else 0
        lead += (
            f" Drawn is {tested[0]} of the {drawn} of {len(study.systems) - 1} systems that are separable from {name} "
            "somewhere; the table has all."
        )
    shown = tuple(_labelled(study, c) for m in tested for c in study.on(m))
    tables, records = compare_tables(shown, long=True), (ResultSet(COMPARISONS, shown),)
    notes = constructed_notes(study)
    return Section("baseline", f"Better or worse than {name}", lead, charts, tables, notes, records=records)


def constructed_notes(study: Study) -> tuple[str, ...]:
    """Return a sentence on measures left out because they are 1 for any system that returns all documents; ()
    without any."""
    left = [measure for measure in study.measures if measure not in study.telling]
    everywhere = "on every collection here" if len(study.datasets) > 1 else "here"
    ones = f"{one_or_more(len(left), 'is', 'are')} 1 {everywhere}"
    text = f"Not drawn: {and_(left)}, which {ones} for any system that returns all documents."
    return (text,) * bool(left)


def _differences(study: Study, measure: str) -> Intervals:
    own = study.on(measure)
    return difference_chart(own, study.numbers, [study.together[measure, one.dataset] for one in own])


def _labelled(study: Study, comparison: Comparison) -> Comparison:
    turned = (pair.reversed if pair.second == study.baseline else pair for pair in comparison.pairs)
    return replace(
        comparison,
        standings=tuple(replace(one, system=study.short_name(one.system)) for one in comparison.standings),
        pairs=tuple(
            replace(p, first=study.short_name(p.first), second=study.short_name(p.second)) for p in turned
        ),
        baseline=None if comparison.baseline is None else study.short_name(comparison.baseline),
    )


def cost(study: Study) -> Section | None:
    """Return the section of quality against query time and index size; None if nothing was timed."""
    costs = [one for one in study.costs if one.p50_ms is not None or one.mean_ms is not None]
    if not costs:
        return None
    dataset = study.largest
    comparison = next((c for c in study.on(study.measures[0]) if c.dataset == dataset), None)
    own = [one for one in costs if one.quality.dataset == dataset]
    hardware = sorted({one.machine for one in own})
    charts = [
        _with_front(study, chart, comparison, lined=len(hardware) == 1)
        if isinstance(chart, Points) and comparison is not None
        else chart
        for chart in cost_charts(
            [one for one in study.costs if one.quality.dataset == dataset], study.numbers
        )
    ]
    size = study.documents(dataset)
    what = f"{size:,} documents" if size else "its documents"
    why = chosen_clause(study, study.why_largest)
    lead = f"On {dataset}{why}: {what} and {study.query_count(dataset):,} queries, by {own[0].machine}."
    if any(isinstance(chart, Points) for chart in charts):
        if len(hardware) == 1:
            lead += " The line is the best that can be had for the time; where it is dashed, the gain is not separable."
        lead += f" Hollow marks are not separable from {study.short_name(study.baseline)}. Bars are 95% intervals."
    machines = (f"measured on different machines: {and_(hardware)}",) if len(hardware) > 1 else ()
    notes = (*machines, *study.without_results(dataset))
    shown = [
        replace(one, quality=replace(one.quality, system=study.short_name(one.quality.system), title=""))
        for one in costs
    ]
    first, *more = efficiency_tables(shown)
    printed = cost_table(one for one in shown if one.quality.dataset == dataset)
    marks = " ".join(_cost_marks(shown))
    tables = (replace(first, notes=(marks,) * bool(marks)), *more, printed)
    records = (ResultSet(EFFICIENCIES, tuple(shown)),)
    return Section("cost", "Quality against time", lead, tuple(charts), tables, notes, records=records)


def _with_front(study: Study, chart: Points, comparison: Comparison, lined: bool) -> Points:
    of_label = {study.short_name(s): s for s in study.systems}
    names = [of_label[point.name] for point in chart.points]
    to_baseline = {s: p for s in names if (p := study.against(comparison, s)) is not None}
    found = [s for s, pair in to_baseline.items() if pair.verdict in SEPARABLE]
    found.sort(key=lambda s: -abs(to_baseline[s].difference))
    told = {study.baseline, comparison.standings[0].system, *found[: MANY_SYSTEMS // 2]}
    points = tuple(
        replace(
            point, filled=s not in to_baseline or s in found, named=len(names) <= MANY_SYSTEMS or s in told
        )
        for point, s in zip(chart.points, names, strict=True)
    )

    def separable(before: int, after: int) -> bool:
        pair = study.against(comparison, names[after], names[before])
        return pair is not None and pair.verdict == "better"

    line = front(points, separable, direction(study.measures[0])) if lined else ()
    on_line = {number for number, _ in line}
    points = tuple(replace(one, named=one.named or number in on_line) for number, one in enumerate(points))
    return replace(chart, points=points, front=line, tested=True)


def _cost_marks(shown: Sequence[Efficiency]) -> list[str]:
    return [
        *[
            f"{BEST}: no other system on the collection is as good in quality, time and size, and better in one, "
            "where all three are known."
        ]
        * any(one.best for one in shown),
        *[f"{MARK}: the time leaves out work, or is that of a service; the page names it."]
        * any(one.index_marks or one.search_marks for one in shown),
        *(
            f"{one[0].upper()}{one[1:]}."
            for one in [extrapolation(shown), timed_queries(shown), PROCESS, *unkept_indexes(shown)]
            if one
        ),
    ]


def _judged_rates(study: Study) -> Section | None:
    rows = {(row.dataset, row.system): rate for row in study.rows if (rate := answered_rate(row)) is not None}
    datasets = [name for name in study.datasets if any((name, s) in rows for s in study.systems)]
    if not datasets:
        return None
    values = tuple(tuple(rows.get((name, s)) for s in study.systems) for name in datasets)
    chart = HeatMap(
        "Share of the first ten documents that is judged",
        tuple(datasets),
        study.numbers.labels,
        values,
        percent=True,
    )
    rates = {(d, study.short_name(s)): rows[d, s] for d in datasets for s in study.systems if (d, s) in rows}
    lead = (
        "An unjudged document counts as not relevant. Where the judged share of two systems differs, the one with the "
        "lower share may be better than its score says. As Elastic's judge rate: of the documents returned, over the "
        "queries that are answered; the measure Judged@10 counts an unanswered query as 0."
    )
    unlike = {name: pair for name in datasets if (pair := _unlike_rates(study, name)) is not None}
    notes = (
        f"Comparisons are open where judged shares lie far apart: by {percent(UNLIKE_JUDGED_RATES, 0)} or more"
        f"{_number_of_datasets(study, len(unlike), len(datasets))}.",
    ) * bool(unlike)  # fmt: skip
    notes += tuple(
        f"{name} on {dataset}: the share after dropping; {said}."
        for (dataset, name), said in study.removed.items()
    )
    table = replace(judged_table(rates), title="Judged of the first ten")
    lines = [["collection", "lowest", "", "highest", ""]]
    lines += [
        [name, study.short_name(low), percent(a), study.short_name(high), percent(b)]
        for name, (low, a, high, b) in unlike.items()
    ]
    apart = (table_of(lines, right=None, title="Where judged shares lie far apart"),) if unlike else ()
    charts = (by_system(chart, study.numbers),)
    return Section("judged", "Judged rates", lead, charts, (table,), notes, apart)


def _number_of_datasets(study: Study, count: int, total: int) -> str:
    return f" on {count} of {total} {study.noun}" if total > 1 else " here"


def _unlike_rates(study: Study, dataset: str) -> tuple[str, float, str, float] | None:
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


def _bounds_section(study: Study, audits: Sequence[Audit]) -> Section | None:
    numbers = {
        (one.subject, finding.system): dict(finding.numbers)
        for one in audits
        for finding in one.findings
        if finding.check == "score bounds" and finding.system
    }
    found = [d for d in study.datasets if any((d, label) in numbers for label in study.numbers.labels)]
    if not found:
        return None
    turning = turning_pairs(study, audits)
    names, shown = _bounds_drawn(study, found, turning)
    panels = tuple(
        Panel(
            dataset,
            tuple(
                Interval(of["score"], of["low"], of["high"], study.numbers.number(system))
                if (of := numbers.get((dataset, study.short_name(system))))
                else None
                for system in shown
            ),
        )
        for dataset in names
    )
    lines: list[list[str | Cell]] = [["collection", "system", str(HOLE), BEIR_HOLE, "least", "score", "most"]]
    lines += [
        [
            d,
            label,
            *(Cell(percent(of[name]), value=of[name]) for name in (str(HOLE), BEIR_HOLE)),
            *(_score_cell(of[end]) for end in ("low", "score", "high")),
        ]
        for d in found
        for label in study.numbers.labels
        if (of := numbers.get((d, label)))
    ]
    lead = (
        "Between which values nDCG@10 lies if every unjudged document among the first ten of any of these systems "
        "were judged, in any way; beside other systems the ranges are others. Where the ranges of two systems "
        "overlap, unjudged documents could turn their order."
    )
    total = len(study.systems) * (len(study.systems) - 1) // 2
    counts = [["collection", "pairs of systems that may change places", "pairs", "such as"]]
    counts += [[d, str(n), str(total), " and ".join(pairs[0])] for d, (n, pairs) in turning.items()]
    behind = replace(table_of(counts, right=2, keys=1, tail=1), title="Pairs that may change places")
    title = "Score bounds: the least, as judged, the most"
    chart = Intervals(title, "nDCG@10", tuple(map(study.short_name, shown)), panels, bar="from the least to the most",
                      ends=True)  # fmt: skip
    holes = (
        f"{HOLE}: the share of the first ten places with a document that was not judged for the query. {BEIR_HOLE}: "
        "with one that was judged for no query, as table 4 of BEIR's paper (Thakur et al. 2021) counts."
    )
    table = replace(table_of(lines, right=None, keys=2), notes=(holes,))
    notes = tuple(_bounds_notes(study, found, names, len(shown), len(turning)))
    return Section(
        "bounds", "Score bounds", lead, (chart,) * bool(names), (table,), notes, (behind,) * bool(turning)
    )


def _bounds_drawn(
    study: Study, found: Sequence[str], turning: Mapping[str, tuple[int, list[tuple[str, str]]]]
) -> tuple[list[str], list[str]]:
    many = len(study.systems) > MANY_SYSTEMS
    names = sorted(found, key=lambda d: -turning[d][0] if d in turning else 0) if many else list(found)
    names = [
        d
        for d in found
        if d in names[: MOST_BOUND_COLLECTIONS if many else None] and (d in turning or not many)
    ]
    seen = Counter(label for d in names if d in turning for pair in turning[d][1] for label in pair)
    order = sorted(study.systems, key=lambda s: (s != study.baseline, -seen[study.short_name(s)]))
    return names, [s for s in study.systems if not many or s in order[:MANY_SYSTEMS]]


def _bounds_notes(
    study: Study, found: Sequence[str], names: Sequence[str], systems: int, turning: int
) -> Iterator[str]:
    if turning:
        yield (
            "Unjudged documents may change the places of systems"
            f"{_number_of_datasets(study, turning, len(found))}; counted are pairs {TOLD_APART}."
        )
    if not names:
        yield f"Nothing is drawn, as no pair {TOLD_APART} may change places; the table has all."
    elif len(study.systems) > MANY_SYSTEMS or len(names) < len(found):
        where = f"the {len(names)} {study.noun} of most such pairs and " if len(names) < len(found) else ""
        who = f"{counted(systems, 'system')}, those of pairs that the audit names first"
        yield f"Drawn are {where}{who}; the table has all."
    if lacking := [name for name in study.datasets if name not in found]:
        yield f"Without bounds, as their documents or judgments are not here: {and_(lacking)}."


def turning_pairs(study: Study, audits: Sequence[Audit]) -> dict[str, tuple[int, list[tuple[str, str]]]]:
    """Return {dataset: (number, examples)} of pairs of systems whose order unjudged documents could reverse.

    Examples are (better, worse), from the audits' score bounds; findings that are mere notes count only pairs
    that the first measure separates.
    """
    told = {
        (c.dataset, frozenset((study.short_name(p.first), study.short_name(p.second))))
        for c in study.on(study.measures[0])
        for p in c.pairs
        if p.verdict in SEPARABLE
    }
    pairs: dict[str, tuple[int, list[tuple[str, str]]]] = {}
    for finding in (finding for one in audits for finding in one.findings):
        if finding.check == "score bounds" and finding.severity in ("serious", "note") and not finding.system:
            examples = [
                (better, worse) for better, _, worse in (one.partition(" over ") for one in finding.examples)
            ]
            count = int(dict(finding.numbers)["pairs that may turn"])
            if finding.severity == "note":
                examples = [pair for pair in examples if (finding.subject, frozenset(pair)) in told]
                count = len(examples)
            before, shown = pairs.get(finding.subject, (0, []))
            if count:
                pairs[finding.subject] = before + count, [*shown, *examples]
    return pairs


# ----------
# The collections themselves.


def findings(audits: Sequence[Audit]) -> Section | None:
    """Return the section of the audits' findings, the worst of each check; None without audits."""
    if not audits:
        return None
    ran = sorted({name for one in audits for name in one.ran})
    count = sum(len(one.findings) for one in audits)
    lead = (
        f"{counted(count, 'finding')} of {counted(len(ran), 'check')} on {counted(len(audits), 'subject')}: "
        f"{severities_counted(f.severity for one in audits for f in one.findings)}. {_unseen(audits)} Wrong: a "
        "number is not what it claims to be. Serious: conclusions may change. Caution: report it beside the number. "
        "Notes are left out: weir audit FOLDER shows them."
    )
    above = [
        replace(one, findings=tuple(f for f in one.findings if f.severity != "note"))
        for one in audits
        if any(f.severity != "note" for f in one.findings)
    ]
    all_above = sorted((f for one in above for f in one.findings), key=_finding_sort_key)
    kinds = [one for one in AUDITED if one != "note"]
    lines: list[list[str]] = [["the worst that was found", "severity", "check", *kinds, "collections"]]
    for check in dict.fromkeys(f.check for f in all_above):
        own = [f for f in all_above if f.check == check]
        counts = [str(sum(f.severity == kind for f in own)) for kind in kinds]
        lines.append([said(own[0]), own[0].severity, check, *counts, str(len({f.subject for f in own}))])
    summary = (
        table_of(lines, right=len(kinds) + 1, keys=3) if above else sentences("No finding above a note.")
    )
    return Section("audit", "Findings of the audit", lead, (), (summary,), (), audit_tables(above))


def severities_counted(found: Iterable[str]) -> str:
    """Return counts by severity, worst first, such as "1 serious, 2 cautions"; "none" without findings."""
    counts = Counter(found)
    said = [f"{counts[one]} {SEVERITY_WORDS[one][counts[one] != 1]}" for one in SEVERITIES if counts[one]]
    return ", ".join(said) or "none"


def _finding_sort_key(finding: Finding) -> tuple[int, float]:
    numbers = dict(finding.numbers)
    size = next(iter(numbers.values()), 0.0)
    if {"low", "high"} <= numbers.keys():
        size = numbers["high"] - numbers["low"]
    elif named := numbers.keys() & {"share", "detectable"}:
        size = numbers[named.pop()]
    elif finding.check == "holes":
        size = 1 - size if finding.system else size - 1  # the systems first, then that they are judged unlike
    elif finding.check == "unanswered queries":
        size = numbers["judged queries"] - numbers["answered"]
    return AUDITED.index(finding.severity), -size


def said(finding: Finding) -> str:
    """Return a finding's first clause, after its collection and system."""
    system = f", {finding.system}" if finding.system else ""
    first, *_ = re.split(r"; (?![^()]*\))", finding.statement)  # not within brackets
    return f"{finding.subject}{system}: {typeset(first)}"


def _with_documents(study: Study) -> list[str]:
    here = {name for name, one in study.collections.items() if one.layout.documents is not None}
    return [name for name in study.datasets if name in here]


def overlap(study: Study) -> Section | None:
    """Return the section on words that collections share; None for fewer than 3 collections or more than 20."""
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
    lines: list[list[str | Cell]] = [["collection", *names]]
    lines += [[name, *map(_score_cell, of)] for name, of in zip(names, weights, strict=True)]
    return Section("overlap", "Overlap of collections", lead, (chart,), (table_of(lines, right=None),))


def lengths(study: Study) -> Section | None:
    """Return the section on lengths of queries and documents; None without documents on this machine."""
    cards_here = [one.card for one in study.collections.values() if one.layout.documents is not None]
    charts = length_charts(cards_here)
    if not charts:
        return None
    retrieved = retrieved_lengths(study)
    lead = "Words, separated by white space, on average: of title and text, and of a query. The axis is logarithmic."
    if retrieved:
        lead += " The second chart shows the documents that each system returns first, and the relevant ones"
        names = _with_documents(study)
        lead += f"{', on the collection with most queries' * (len(names) > 1)}."
    table = collection_table(map(CollectionFacts.of_card, cards_here))
    notes = study.without_results(max(_with_documents(study), key=study.query_count)) if retrieved else ()
    return Section("lengths", "Lengths", lead, (*charts, *retrieved), (table,), notes)


def retrieved_lengths(study: Study) -> tuple[Spread, ...]:
    """Return charts of quartiles of document lengths (words) in each system's first ten, on the collection
    with most queries.

    () without texts, for run files above RUN_BYTES, fewer than two rows, or a quartile below one word.
    """
    names = _with_documents(study)
    if not names:
        return ()
    dataset = max(names, key=study.query_count)
    collection = study.collections[dataset]
    cells = [cell for cell in study.cells if cell.dataset == dataset and cell.run.exists()]
    if sum(cell.run.stat().st_size for cell in cells) > RUN_BYTES:
        return ()
    tops = {study.short_name(cell.label): read_run(cell.run).top(10) for cell in cells}
    numbers = {study.short_name(cell.label): study.numbers.number(cell.label) for cell in cells}
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
            mark=1,
        ),
    )


def slices(study: Study) -> Section | None:
    """Return the section of means on groups of queries of the collection with most queries; None below 50
    queries on this machine, or without a group of 25."""
    large = [n for n in study.datasets if n in study.collections and study.query_count(n) >= 2 * FEW_QUERIES]
    if not large:
        return None
    dataset, measure = max(large, key=study.query_count), study.measures[0]
    collection = study.collections[dataset]
    subject = Subject(dataset, queries=collection.all_queries, qrels=collection.qrels)
    scores = {system: values for (of, system), values in study.scores.items() if of == dataset}
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
    lines: list[list[str | Cell]] = [["queries with", "queries", *study.numbers.labels]]
    lines += [[row, str(n), *map(_score_cell, of)] for row, n, of in zip(rows, counts, values, strict=True)]
    lead = (
        f"Means on groups of the {study.query_count(dataset):,} queries of {dataset}"
        f"{chosen_clause(study, MOST_QUERIES)}; darker is higher. Groups of "
        f"fewer than {FEW_QUERIES} queries are left out. No verdicts are made here: the audit tests slices and "
        "corrects for their number."
    )
    charts = (by_system(chart, study.numbers),)
    notes = study.without_results(dataset)
    return Section("slices", "Groups of queries", lead, charts, (table_of(lines, right=None),), notes)


def _language_models(study: Study) -> Section | None:
    uses = model_uses(study.cells)
    if not uses:
        return None
    return Section(
        "models",
        "Language models",
        "What was asked, how answers were read, and what they cost.",
        (),
        use_tables([replace(use, system=study.short_name(use.system)) for use in uses]),
    )


# ----------
# What a sceptical reviewer will ask. Each question is answered from the data, or "not known".


def _enough_queries(study: Study) -> Question:
    measure = study.measures[0]
    spans = {c.dataset: d for c in study.on(measure) if (d := study.detectable(c))}
    small = [name for name in study.datasets if study.query_count(name) < FEW_QUERIES]
    large = [name for name in study.datasets if name not in small and name in spans]
    parts = []
    if small:
        counts = [study.query_count(name) for name in small]
        known = {name: spans[name] for name in small if name in spans}
        shown = (
            f"show a difference of {_between(study, known)}, or more, 8 times in 10"
            if known
            else "are so few that no difference is known that they show 8 times in 10"
        )
        who = small[0] if len(small) == 1 else f"{len(small)} {study.noun}"
        parts.append(f"The {_from_to(counts)} queries of {who} {shown}.")
    for name in sorted(large, key=lambda one: -study.query_count(one))[:2]:
        shown = _between(study, {name: spans[name]})
        parts.append(f"{study.query_count(name):,} queries of {name} show {shown}, 8 times in 10.")
    if spans and study.comparisons[0].pairs[0].comparisons > 1:
        parts.append(
            f"These are by the tests of the verdicts ({study.family}); weir power has one test alone."
        )
    if not parts:
        moved = max((pair.won + pair.lost for c in study.on(measure) for pair in c.pairs), default=0)
        told = counted(moved, "query", "queries")
        parts = ["How large a difference the queries can show is not known"]
        parts[0] += f": they tell too few of these systems apart, {told} at most." if moved else "."
    head = "Not everywhere." if small and large else "No." if small else "For differences of this size."
    severity = "serious" if small else "checked"
    if not small and not spans:
        head, severity = "Not known.", "note"
    elif not small and max(max(by.values()) for by in spans.values()) > WANTED_DIFFERENCE:
        severity = "caution"  # as the audit's check of power
    return Question(
        severity,
        "Are there enough queries?",
        Statement(head, " ".join(parts)),
        "weir power",
    )


def _one_collection(study: Study) -> Question | None:
    measure = study.measures[0]
    whole = study.across(measure)
    single = [c for c in study.on(measure) if c.dataset in study.unit_of]
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
                    [study.cell_mean(d, s, measure) for s in common]
                    for d, unit in study.unit_of.items()
                    if unit == u
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
    name = study.short_name(leader)
    if not others:
        return Question("checked", "Does the average hold without one collection?",
                        Statement("Yes.", f"{name} leads on every collection."))  # fmt: skip
    first = next(iter(others))
    text = f"Over all, {name} leads ({score(whole.standings[0].mean)}); on {and_(list(others), 3)}"
    other, mean = others[first]
    text += f" another system does, such as {study.short_name(other)} on {first} "
    text += f"({score(mean)})."
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
    names = and_(where) if len(where) < 4 else f"{len(where)} {study.noun}"
    answer = Statement(f"Not on {names}.", f"What returns all documents there has {first} = 1.")
    return Question("serious", f"Does {first} say anything here?", answer)


def _unjudged_question(study: Study, audits: Sequence[Audit]) -> Question | None:
    question = "Could unjudged documents decide it?"
    if turning := turning_pairs(study, audits):
        dataset = max(turning, key=lambda name: turning[name][0])
        count, [(better, worse), *_] = turning[dataset]
        text = (
            f"On {dataset} they could turn {counted(count, 'pair')} of systems {TOLD_APART}, such as {better} and "
            f"{worse}."
        )
        head = f"Yes, on {counted(len(turning), 'collection')}." if len(study.datasets) > 1 else "Yes."
        return Question("serious", question, Statement(head, text), "weir eval -m Judged@10")
    if study.removed:
        (dataset, name), said = next(iter(study.removed.items()))
        text = f"{name} on {dataset}: {said}. Shares of judged documents are of the answers that stay."
        return Question("serious", question, Statement("Perhaps.", text), "weir eval -m Judged@10")
    rates = [rate for row in study.cell_rows if (rate := answered_rate(row)) is not None]
    if not rates:
        return None
    few = min(rates) < FEW_JUDGED
    settled = _settled_by_bounds(audits)
    apart = [(name, pair) for name in study.datasets if (pair := _unlike_rates(study, name)) is not None]
    ends = " to ".join(dict.fromkeys(map(percent, (min(rates), max(rates)))))
    if unlike := [(name, pair) for name, pair in apart if name not in settled]:
        name, (low, a, high, b) = max(unlike, key=lambda one: one[1][3] - one[1][1])
        everywhere = len(unlike) == len(study.datasets)
        head = "Perhaps." if everywhere else f"Perhaps on {counted(len(unlike), 'collection')}."
        severity, text = "caution", (
            f"On {name}, {percent(a)} of the first ten are judged for {study.short_name(low)} and {percent(b)} for "
            f"{study.short_name(high)}; the rest count as not relevant."
        )  # fmt: skip
    else:
        head, severity = "The systems are judged alike.", "caution" if few else "checked"
        head = head if len(study.systems) > 1 else "Nothing is compared."
        text = f"{ends} of the first ten documents are judged."
        if len(study.systems) > 1 and settled.issuperset(study.datasets) and study.comparisons:
            head, severity = "No.", "note" if apart and not few else severity
            text += (
                " Whatever the others are, systems that the queries tell apart keep their order by nDCG@10"
            )
            text += ", though not their distance." if min(rates) < 1 else "."
        if few:
            head = "Any score, if not their order." if len(study.systems) > 1 else "Any score."
            text = f"Only {text}{_widest_bounds(audits)}"
    answer = Statement(head, text)
    return Question(severity, question, answer, "weir eval -m Judged@10")


def _settled_by_bounds(audits: Sequence[Audit]) -> set[str]:
    cut = {
        finding.subject
        for one in audits
        for finding in one.findings
        if finding.check == "score bounds"
        and not finding.system
        and dict(finding.numbers)["pairs that may turn"] > len(finding.examples)
    }
    return {one.subject for one in audits if "score bounds" in one.ran} - cut


def _widest_bounds(audits: Sequence[Audit]) -> str:
    findings = [finding for one in audits for finding in one.findings]
    bounds = [(f"{one.system} on {one.subject}", dict(one.numbers)) for one in findings
              if one.check == "score bounds" and one.system]  # fmt: skip
    if not bounds:
        return ""
    of, widest = max(bounds, key=lambda one: one[1]["high"] - one[1]["low"])
    low, high = score(widest["low"]), score(widest["high"])
    return f" By what the others are, nDCG@10 of {of} may be anything from {low} to {high}."


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
        f"{study.short_name(most.system)} on {most.dataset}: tied scores let {most.movable} of {most.queries} queries "
        f"move; {most.measure} may be {score(most.lowest or 0)} to {score(most.highest or 0)}, the widest."
    )
    severity, head = ("caution", "For some systems.") if span >= SPAN_OF_TIES else ("note", "By a little.")
    turned = [
        c.dataset
        for measure in study.tested()
        for c in study.on(measure)
        if any(p.verdict in SEPARABLE and ties_could_turn(study, c, p.first, p.second) for p in c.pairs)
    ]
    if turned:
        severity, head = "serious", f"Yes, verdicts on {and_(list(dict.fromkeys(turned)), 3)}."
    return Question(severity, question, Statement(head, text), "weir eval --ties bounds")


def _depths(study: Study) -> Question | None:
    notes = unequal_depths(study.named_cells, study.measures)
    if not notes:
        return None
    least = min(cell.longest for cell in study.cells if not cell.whole)
    parsed = [parse_measure(name) for name in study.tested()]
    deeper = next(one for one in parsed if one.cutoff is None or one.cutoff > least)
    text = "; ".join(note.text for note in notes) + ". The longer ones can gain where the shorter end."
    question = "Were the rankings cut at the same depth?"
    return Question(
        "serious",
        question,
        Statement("No.", text),
        f"weir run -m '{deeper.name}@{least}'",
    )


def _family(study: Study) -> Question | None:
    if len(study.systems) < 3 or len(study.systems) > MOST_PAIRWISE_SYSTEMS or not study.comparisons:
        return None
    fewer = compare_cells(study.scores, study.measures[:1], study.baseline, study.comparisons[0].method)
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
        f"On {dataset}, {study.short_name(system)} is {theirs.verdict} against {study.short_name(study.baseline)} "
        f"among {counted(theirs.comparisons, 'comparison')} (adjusted p {probability(theirs.adjusted)}) and "
        f"{mine.verdict} among all {mine.comparisons} ({probability(mine.adjusted)}). This page counts all pairs."
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
    measure, name = study.measures[0], study.short_name(study.baseline)
    across = study.across(measure)
    over = [s for s in study.systems if across and (p := study.against(across, s)) and p.verdict == "better"]
    level = [
        study.short_name(s)
        for s in study.systems
        if s not in (study.baseline, *over) and tally(study, measure, s)[0] == 0
    ]
    question = f"Is every system better than {name} somewhere?"
    if not level:
        return Question(
            "checked",
            question,
            Statement(
                "Yes.", f"On one collection at least{', or on their mean' * bool(over)}, by the verdicts."
            ),
        )
    who = and_(level) if len(level) <= 3 else f"{len(level)} of {len(study.systems) - 1} systems"
    return Question("note", question, Statement("No.", f"{who}: no collection shows it."))


def _costs(study: Study) -> Question | None:
    if not study.costs:
        return None
    untimed = dict.fromkeys(study.short_name(one.quality.system) for one in study.costs if not one.timed)
    left_out = (
        f" Nobody measured a time of {and_(list(untimed), 3)}, whose rankings are a file's."
        if untimed
        else ""
    )
    timed = [one for one in study.costs if one.timed]
    machines = {one.machine for one in timed}
    names = list(dict.fromkeys(study.short_name(one.quality.system) for one in timed))
    if len(names) < 2:
        head = f"Nothing is compared: {names[0]} alone has a time." if names else "No time is known."
        return Question("note", "Are the costs comparable?", Statement(head, left_out.strip()))
    marked = [one for one in timed if one.index_marks or one.search_marks]
    together = [one for one in timed if one.p50_ms is None]
    mixed = 0 < len(together) < len(timed)
    head = "Not between machines." if len(machines) > 1 else "Partly." if marked or mixed else "Roughly."
    text = (
        f"{len(machines)} machines: {and_(sorted(machines))}."
        if len(machines) > 1
        else f"One machine ({next(iter(machines))}), and what else it did meanwhile is not known: times that "
        f"differ by less than a factor of {FASTER:g} rank no systems."
    )
    few = [
        (one.singles, study.short_name(one.quality.system))
        for one in timed
        if one.singles and not one.compared
    ]
    if few:
        text += f" The median of {min(few)[1]} is that of {counted(min(few)[0], 'query', 'queries')}."
    if marked:
        text += (
            f" {counted(len(marked), 'time')} {one_or_more(len(marked), 'leaves', 'leave')} out work that was stored "
            f"before; the table marks {one_or_more(len(marked), 'it', 'them')}."
        )
    if mixed:
        text += (
            f" {counted(len(together), 'result')} without times of single queries: only queries/s compares."
        )
    text += left_out
    severity = "caution" if len(machines) > 1 else "note"
    return Question(severity, "Are the costs comparable?", Statement(head, text), "weir study efficiency")


def _training(study: Study) -> Question | None:
    of = {system: trained_on(system) for system in study.systems}
    trained = {s: sorted(names) for s, names in of.items() if names}
    unknown = [study.short_name(s) for s, names in of.items() if names is None]
    if not trained and not unknown:
        return None
    question = "Was a model trained on these data?"
    hits = [(s, name) for s, names in trained.items() for name in names if name in study.datasets]
    own = list(dict.fromkeys(cell.dataset for cell in study.cells if not catalogue_name(cell.collection)))
    alike = dict[tuple[str, ...], list[str]]()
    for s, names in trained.items():
        alike.setdefault(tuple(names), []).append(study.short_name(s))
    parts = [
        f"{and_(who, 3)} {'was' if len(who) == 1 else 'were'} trained on {and_(names)}."
        for names, who in list(alike.items())[:3]
    ]
    if unknown:
        verb = "was" if len(unknown) == 1 else "were"
        parts.append(f"No record says on which data {and_(unknown, 3)} {verb} trained.")
    if trained:
        parts.append("Names of collections were compared, not their texts.")
    if trained and own:
        verb, whose = one_or_more(len(own), "is", "are"), one_or_more(len(own), "its", "their")
        parts.append(
            f"{and_(own, 3)} {verb} no published collection, so {whose} name says nothing of {whose} queries."
        )
    head = (
        f"Yes, on {and_(list(dict.fromkeys(name for _, name in hits)))}."
        if hits
        else "Not known."
        if unknown or len(own) == len(study.datasets)
        else "Not by name."
    )
    severity = "caution" if hits else "note"
    return Question(severity, question, Statement(head, " ".join(parts)), "weir audit --training")


def _answered(study: Study) -> Question:
    unanswered = _partly_answered(study)
    question = "Is every query answered?"
    if not unanswered:
        return Question(
            "checked", question, Statement("Yes.", "Every system returns documents for every judged query.")
        )
    worst = max(unanswered, key=lambda row: (row.queries - row.answered) / row.queries)
    missing = worst.queries - worst.answered
    portion = missing / worst.queries
    text = (
        f"{study.short_name(worst.system)} returns nothing for {missing} of {worst.queries} queries of "
        f"{worst.dataset}, which score 0; {counted(len(unanswered), 'cell')} in all."
    )
    return Question(
        "caution" if portion > 0.02 else "note",
        question,
        Statement("Nearly." if portion < 0.1 else "No.", text),
    )


def _seed(study: Study) -> Question:
    question = "Would another seed change it?"
    services = [
        study.short_name(cell.label)
        for cell in study.cells
        if any(record.facts.get("services") for _, record in cell.stages)
    ]
    tests = seed_of_tests(study.comparisons)
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


def seed_of_tests(comparisons: Sequence[Comparison]) -> str:
    """Return a sentence, after a blank, on how p-values depend on the seed; "" without comparisons."""
    if not comparisons:
        return ""
    method = comparisons[0].method
    if method.test != "permutation":
        drawn = TESTS.get(method.test).drawn
        return (
            f" Tests draw {method.draws:,} samples, seed {method.seed}." if drawn else " Tests draw nothing."
        )
    tested = [pair for one in comparisons for pair in one.pairs]
    drawn_pairs = sum(not enumerated(pair.won + pair.lost, method.draws) for pair in tested)
    if not drawn_pairs:
        return " Tests count every permutation: neither p nor a verdict depends on a seed."
    level = method.alpha
    moves = 1.96 * math.sqrt(level * (1 - level) / method.draws)
    return (
        f" {drawn_pairs} of {len(tested)} tests draw {method.draws:,} permutations, seed {method.seed}: near {level:g} "
        f"another seed moves p by some {moves:.4f}, and only verdicts as near could change."
    )


def _parsed(study: Study) -> Question | None:
    uses = [use for use in model_uses(study.cells) if use.answers]
    return parsed_answers(uses, study.short_name) if uses else None


def parsed_answers(uses: Sequence[ModelUse], label: Callable[[str], str]) -> Question:
    """Return a reviewer's question with its answer: could language models' answers be read?

    uses: at least one, each with answers.
    """

    def unread(use: ModelUse) -> int:
        return use.answers - sum(use.verdicts.get(kind, 0) for kind in SCORED_KINDS)

    worst = max(uses, key=lambda use: unread(use) / use.answers)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in worst.verdicts.items())
    many = unread(worst) > PARSE_FAILURES * worst.answers
    severity, head = ("serious", "Not all.") if many else ("checked", "Yes.")
    answer = Statement(head, f"At worst, {label(worst.system)} on {worst.dataset}: {kinds}.")
    return Question(severity, "Could the models' answers be read?", answer, "weir study llm")


def _audit_questions(audits: Sequence[Audit]) -> list[Question]:
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
        severity, head, text = "checked", "No finding.", f"{counted(len(ran), 'collection')} checked."
        if findings_of:
            worst = min(findings_of, key=_finding_sort_key)
            head, text = f"{counted(len(findings_of), 'finding')}.", f"{said(worst)}."
            severity = worst.severity
        if unseen := _unseen(audits, checks):
            if not findings_of:
                seen = and_([name for name in checks if any(name in one.ran for one in ran)])
                severity, head = "note", "Not wholly known."
                text = f"No finding of {seen} on {counted(len(ran), 'collection')}."
            text += f" {unseen}"
        questions.append(Question(severity, question, Statement(head, text), "weir audit"))
    return questions


def _unseen(audits: Sequence[Audit], checks: Iterable[str] = ()) -> str:
    lacking = dict[str, set[str]]()
    for one in audits:
        for name, needed in one.left_out:
            if not checks or name in checks:
                lacking.setdefault(name, set()).update(needed.split(", "))
    if not lacking:
        return ""
    parts = and_([PART_WORDS.get(part, part) for part in sorted(set().union(*lacking.values()))])
    names = list(lacking)
    who = and_(names) if checks else counted(len(names), "check")
    elsewhere = any(name in one.ran for one in audits for name in names)
    return f"Not looked at{' everywhere' * elsewhere}: {who}, for want of {parts}."


ASKED: tuple[Callable[[Study], Question | None], ...] = (
    *(_enough_queries, _one_collection, _construction, _depths, _ties, _family, _level_with_baseline),
    *(_costs, _training, _answered, _seed, _parsed),
)
"""Questions of a reviewer, as functions of the study."""


def questions(study: Study, audits: Sequence[Audit] = ()) -> tuple[Question, ...]:
    """Return the reviewer's questions that the data answer, most serious first."""
    answered = [one for ask in ASKED if (one := ask(study)) is not None] + _audit_questions(audits)
    if (unjudged := _unjudged_question(study, audits)) is not None:
        answered.insert(0, unjudged)
    return tuple(sorted(answered, key=lambda one: SEVERITIES.index(one.severity)))


def reviewer(answered: Sequence[Question]) -> Section:
    """Return the section with a table of the reviewer's questions: severity, question, answer, command."""
    lines = [["", "question", "answer", "settled by"]]
    lines += [[one.severity, one.question, str(one.answer), one.command] for one in answered]
    return Section(
        "reviewer", "What a sceptical reviewer will ask", "", (), (table_of(lines, right=0, keys=4),)
    )


# ----------
# How to do it again.


def _places(study: Study, cells: Iterable[ResultCell]) -> list[str]:
    """Return the collections of results as `weir run -d` takes them, without repeats.

    Paths are relative to the folder in which the study's first result was made.
    """
    base = next(filter(None, map(started_in, study.cells)), "")
    return list(dict.fromkeys(name_given(cell, base) for cell in cells))


def _runs_again(cells: Sequence[ResultCell]) -> list[list[ResultCell]]:
    """Return the results in groups of one depth, and one split of each collection: a call of `weir run` makes
    a group."""
    calls: dict[tuple[int, int], list[ResultCell]] = {}
    splits: dict[str, list[str]] = {}
    for cell in cells:
        of = splits.setdefault(cell.collection, [])
        of += [cell.split] * (cell.split not in of)
        calls.setdefault((cell.depth, of.index(cell.split)), []).append(cell)
    return list(calls.values())


def _command_lines(study: Study, options: Sequence[str]) -> str:
    lines = list[str]()
    named = [cell for cell in study.cells if not without_command(cell)]
    for own in _runs_again(named):
        depth, places = own[0].depth, _places(study, own)
        known = [
            name for place in places if (name := place.partition(":")[0]) in catalogue.collection_names()
        ]
        parts = ["weir run" + " --fetch" * any(catalogue.get(name).urls for name in known)]
        parts += [f"-d {shlex.quote(place)}" for place in places]
        parts += dict.fromkeys(f"-s {shlex.quote(cell.system)}" for cell in own)
        parts += [f"-m {shlex.quote(name)}" for name in study.measures]
        parts += [f"-k {depth}"] * (depth != DEPTH)
        line = ""
        for part in [*parts, "-o results/"]:
            if line and len(line) + len(part) > 100:
                lines.append(line + " \\")
                line = "  "
            line += (" " if line.strip() else "") + part
        lines.append(line)
    return "\n".join([*lines, shlex.join(["weir", "report", "results/", *options, "-o", "report.html"])])


def _python_lines(study: Study) -> tuple[str, ...]:
    """Return a Python program, with gaps to fill in, that makes the results of a user's objects; () if there
    are none."""
    own = [cell for cell in study.cells if given_objects(cell)]
    if not own:
        return ()
    objects = {one.name: one for cell in own for one in given_objects(cell)}
    lines = ["import weir", "", "objects = {  # as they were given; the names are those in the results"]
    lines += [f"    {name!r}: ...,  # {str(one).removeprefix(f'{name}: ')}" for name, one in objects.items()]
    if any(one.version is None for one in objects.values()):
        lines.append(
            "    # without a version, results come back beside these, under another key, as nothing says that"
        )
        lines.append("    # an object is the same; with version=... below, under one key from then on")
    lines += ["}"]
    for cells in _runs_again(own):
        depth = cells[0].depth
        made = {cell.called: _python_line(cell) for cell in cells}
        if any(cell.title for cell in cells):  # names that the user gave
            lines += ["systems = {", *(f"    {name!r}: {line}" for name, line in made.items()), "}"]
        else:
            lines += ["systems = [", *(f"    {line}" for line in dict.fromkeys(made.values())), "]"]
        places = json.dumps(_places(study, cells), ensure_ascii=False)
        k = f", k={depth}" * (depth != DEPTH)
        lines.append(
            f'weir.benchmark({places}, systems, {json.dumps(list(study.measures))}, out="results/"{k})'
        )
    return ("\n".join(lines),)


def _python_line(cell: ResultCell) -> str:
    text, stands = cell.system, dict[str, str]()
    if any(one.made_of.startswith("mteb.") for one in given_objects(cell)):  # its task is not known
        return f"...,  # {cell.system}: weir.plugins.bridges.from_mteb(model, task, name=...)"
    for number, one in enumerate(sorted(given_objects(cell), key=lambda one: -len(one.name))):
        name, version = one.name, f", version={one.version!r}" * (one.version is not None)
        stands[f"object_{number}"] = f"objects[{name!r}], name={name!r}{version}"
        text = re.sub(rf"(?<![\w/.-]){re.escape(name)}(?![\w/.-])", f"object_{number}", text)
    try:
        return f"{_python(expression_tree(text), stands)},"
    except (WeirError, LookupError):
        return f"...,  # {cell.system}"


def _python(node: ast.expr, stands: Mapping[str, str], adapter: str = "system") -> str:
    """Return Python of a system's expression whose names are variables; raises LookupError if it cannot be
    written."""
    if not any(isinstance(one, ast.Name) and one.id in stands for one in ast.walk(node)):
        if not isinstance(node, (ast.Name, ast.Call, ast.BinOp)):
            return ast.unparse(node)
        if adapter == "reranker":
            raise LookupError("a re-ranker by name")
        return f"weir.system({json.dumps(ast.unparse(node), ensure_ascii=False)})"
    settings = [f"{one.arg}={ast.unparse(one.value)}" for one in getattr(node, "keywords", ())]
    match node:
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name), args=[]) if name in stands:
            return f"weir.{adapter}({', '.join([stands[name], *settings])})"
        case ast.BinOp(left=first, op=ast.RShift(), right=then):
            return f"{_python(first, stands)} >> {_python(then, stands, 'reranker')}"
        case ast.Call(func=ast.Name(id=name), args=parts):
            of = "encoder" if name == "dense" else "system"
            return (
                f"weir.systems.{name}({', '.join([*(_python(one, stands, of) for one in parts), *settings])})"
            )
    raise LookupError(ast.dump(node))


def reproduce(study: Study, options: Sequence[str] = ()) -> Section:
    """Return the section with commands, versions and fingerprints to reproduce the results.

    options: words of the options of this report.
    """
    made = [cell.ranked.made for cell in study.cells]
    versions = sorted({f"weir {one.get('weir')}" for one in made} | {f"Python {one.get('python')}" for one in made}
                      | {f"{n} {v}" for one in made for n, v in dict(one.get("packages") or {}).items()})  # fmt: skip
    lines = [["dataset", "split", "documents", "judgments", "documents, judged queries and judgments"]]
    for dataset in study.datasets:
        cell = next(cell for cell in study.cells if cell.dataset == dataset)
        record = cell.scored[-1][1]
        prints = (cell.ranked.declared.get("corpus"), cell.judgments, record.facts.get("fingerprint"))
        lines.append([dataset, cell.split, *map(str, prints)])
    keys = [["dataset", "system", "key of the ranking", "made"]]
    keys += [
        [c.dataset, study.short_name(c.label), c.ranked.stage.key, str(c.ranked.made.get("when"))[:19]]
        for c in study.cells
    ]
    seconds = search_seconds(study.cells)
    lead = f"{'; '.join(versions)}. "
    took = None if seconds is None else duration(seconds) if seconds >= 0.05 else "under 0.1 s"
    lead += "" if took is None else f"Searching took {took} in all. "
    if python := list(dict.fromkeys(filter(None, map(without_command, study.cells)))):
        others = " Commands make the others." if len(python) < len(study.systems) else ""
        lead += f"No command here makes {'; '.join(python)}.{others} "
    places = _places(study, study.cells)
    if any(one.startswith(("./", "../")) for one in places):
        lead += "Paths begin in the folder in which weir run, or the program, was started. "
    if unknown := [one for one in places if one.startswith(f"{UNKNOWN_PLACE}/")]:
        lead += f"No path is known of {and_(unknown)}; the fingerprints tell its data. "
    lead += "weir results FOLDER --provenance shows every setting."
    return Section(
        "reproduce",
        "Reproduce",
        lead,
        (),
        (table_of(lines, keys=4), table_of(keys, keys=4)),
        (_command_lines(study, options), *_python_lines(study)),
    )


SECTIONS: Registry[Callable[[Study], Section | None]] = Registry("section")
"""Sections of plug-ins, as functions of the study that return None without data."""


def published_scores(study: Study, publisher: str | Path, published_as: Sequence[str] = ()) -> Section:
    """Return the section with the study's scores beside published ones, a table for each measure.

    publisher, published_as: as in `published_tables`; raises the errors of `beside`.
    """
    lead = f"{NO_TEST[:1].upper()}{NO_TEST[1:]}."
    return Section(
        "published", "Beside published scores", lead, tables=beside_tables(study, publisher, published_as)
    )


def sections(
    study: Study,
    audits: Sequence[Audit],
    answered: Sequence[Question],
    beside: Section | None = None,
    options: Sequence[str] = (),
) -> tuple[Section, ...]:
    """Return all sections that have data, in reading order.

    beside: the section by `published_scores`.
    options: words of the options of this report.
    """
    made = [
        short(study, audits),
        leaderboard(study),
        collections(study),
        _against_baseline(study),
        beside,
        cost(study),
    ]
    made += [_judged_rates(study), _bounds_section(study, audits), findings(audits)]
    for build in (overlap, lengths, slices):
        try:
            made.append(build(study))
        except WeirError:  # a collection is not whole here: the section is named among those left out
            continue
    made += [SECTIONS.get(name)(study) for name in SECTIONS.names()]
    made += [_language_models(study), reviewer(answered), reproduce(study, options)]
    return tuple(one for one in made if one is not None)
