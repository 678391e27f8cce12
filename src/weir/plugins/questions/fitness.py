"""Can queries and judgments show a change of systems? (`weir audit --fit`)"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from weir.api.auditing import Places, places_of
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.corpus import Queries
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.results import ResultKind
from weir.core.rounding import count, counted, percent, score
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.strings import Float64
from weir.core.subject import Subject
from weir.core.tables import Table, sentences, table_of
from weir.datasets.load import query_groups
from weir.datasets.scoring_rules import judged_by
from weir.errors import BadValue, RankingWarning
from weir.experiment.audit_subjects import subjects_of
from weir.experiment.stage_store import silent
from weir.files.frames import qrels_from
from weir.files.text_files import Watch
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, direction, no_direction_note, parse_measure
from weir.plugins.questions.noise import FEWEST_REPEATS, SystemNoise, system_noise
from weir.plugins.questions.ruler_faults import (
    PROBE_DEPTH,
    Fault,
    absent_documents,
    chosen_by_system,
    contradicted_classes,
    not_found,
    other_documents,
    probes,
)
from weir.plugins.questions.system_stages import MemoryShelf
from weir.stats.distributions import binomial_tail
from weir.stats.power import POWER, detectable, excess_kurtosis, queries_needed
from weir.stats.run_noise import RunNoise
from weir.stats.score_rows import ranked_notes
from weir.stats.significance import deviation_of, exact_mean
from weir.systems import system
from weir.systems.composite import adapted_to, indexed, rankings
from weir.systems.expression import parse_system
from weir.systems.protocol import Context, Retriever

CHANGE = 0.02
MEASURES = ("nDCG@10", "R@10", "RR@10")
"""Default measures; the first decides."""
LEXICAL_SYSTEMS = ("bm25", "bm25(b=0.0)", "rm3")
"""Systems to run too if there are fewer than two rankings and systems; their differences show how much differences
vary."""
DEPTH = 100
"""Number of documents that a system is asked for."""
FEWEST_SIGNS = 6
"""Fewest queries, all changed for the better, for which a sign test is significant at 0.05."""
MOST_PAIRS = 100
HALF = 2
"""A change that takes more than half of what is left to the ceiling is not expected of any system."""


@dataclass(frozen=True)
class _MeasureFitness:
    """Differences of a measure that the queries can detect, its ceiling, and its noise."""

    measure: str
    queries: int
    detectable: float
    """Smallest difference that a test finds 80 times in 100 between the two systems of `pair`; NaN if no two differ."""
    pair: tuple[str, str]
    """The pair of systems whose smallest difference is the median of all pairs; empty names if no two differ."""
    needed: int | None
    """Number of queries that would show the change; None if ten million would not, or if no two systems differ."""
    best: str
    mean: float
    """Mean of the best system."""
    ceiling: float
    """Mean of the best possible rankings."""
    at_ceiling: float
    """Probability that a perfect system would be found better than the best one."""
    saturated: int
    """Number of systems too near to the ceiling to show the change."""
    systems: int
    noise: float
    """Standard deviation of a system's mean over repeated runs; NaN if none was repeated."""
    within_noise: float
    """95th percentile of the difference between two runs of one system; NaN if none was repeated."""
    change: float
    """The difference to be shown."""

    @property
    def shows_change(self) -> bool:
        return (
            self.detectable <= self.change and not self.is_saturated and not self.within_noise > self.change
        )

    @property
    def is_saturated(self) -> bool:
        return saturated(self.mean, self.ceiling, self.at_ceiling, self.change)


@dataclass(frozen=True)
class Fitness:
    """A verdict, with reasons, on whether queries and judgments can show a change of systems."""

    subject: str
    change: float
    faults: tuple[Fault, ...]
    """The reasons; () for a set that is fit."""
    measures: tuple[_MeasureFitness, ...]
    """The first decides; the others are alternatives."""
    noise: tuple[SystemNoise, ...] = ()

    @property
    def verdict(self) -> str:
        """ "unfit" with any fault, else "fit"."""
        return "unfit" if self.faults else "fit"


# ----------
# What a measure can show.


def _measure_fitness(
    joins: dict[str, Judged],
    best_possible: Judged,
    measure: Measure,
    change: float,
    noises: Sequence[SystemNoise] = (),
) -> _MeasureFitness:
    values, name = {system: _values(joined, measure) for system, joined in joins.items()}, str(measure)
    way = direction(name)
    known = [one for one in noises if one.measure == name]
    noisiest = max(known, key=lambda one: one.deviation, default=None)
    least, deviation, kurtosis, pair, queries = _middle_pair(
        values, None if noisiest is None else noisiest.of_mean
    )
    needed = None
    if deviation:
        needed = queries_needed(change, deviation, kurtosis=kurtosis, pilot=queries)
    top = _values(best_possible, measure)
    means = {system: way * float(np.nanmean(of)) for system, of in values.items()}
    best = max(means, key=lambda system: means[system])
    of_top = float(np.nanmean(top))
    near = sum(
        saturated(float(np.nanmean(of)), of_top, power_at_ceiling(way * (top - of)), change)
        for of in values.values()
    )
    return _MeasureFitness(
        measure=name,
        queries=queries,
        detectable=least,
        pair=pair,
        needed=needed,
        best=best,
        mean=exact_mean(values[best][~np.isnan(values[best])]),
        ceiling=exact_mean(top[~np.isnan(top)]),
        at_ceiling=power_at_ceiling(way * (top - values[best])),
        saturated=near,
        systems=len(values),
        noise=math.nan if noisiest is None else noisiest.deviation,
        within_noise=math.nan if noisiest is None else noisiest.between,
        change=change,
    )


def _values(joined: Judged, measure: Measure) -> Float64:
    return np.asarray(scores_of(joined, (measure,)).values[0])


def _middle_pair(
    values: dict[str, Float64], noise: RunNoise | None
) -> tuple[float, float, float, tuple[str, str], int]:
    found = []
    queries = 0
    for one, other in list(combinations(values, 2))[:MOST_PAIRS]:
        d = values[other] - values[one]
        d = d[~np.isnan(d)]
        queries = max(queries, len(d))
        deviation = deviation_of(d) if len(d) > 1 else 0.0
        if deviation:
            kurtosis = excess_kurtosis(d[None])
            least = detectable(deviation, len(d), kurtosis=kurtosis)
            if noise is not None:  # as much larger as the standard error
                least *= noise.error(d)[0] * math.sqrt(len(d)) / deviation
            found.append((least, deviation, kurtosis, (one, other), len(d)))
    found.sort(key=lambda one: one[0])
    return found[len(found) // 2] if found else (math.nan, 0.0, 0.0, ("", ""), queries)


def power_at_ceiling(gaps: Float64) -> float:
    """Return the probability that new queries like these show a perfect system to be better than the given
    one.

    gaps: float64[queries], the best possible ranking's value minus the system's; NaN if undefined.

    0 if all are NaN.
    """
    # All differences have one sign, so that the test of all signs finds them from FEWEST_SIGNS on, whatever their size.
    known = gaps[~np.isnan(gaps)]
    share = float(np.mean(known > 1e-12)) if len(known) else 0.0
    return (
        binomial_tail(FEWEST_SIGNS, len(known), share)
        if 0 < share < 1
        else float(share > 0) * float(len(known) >= FEWEST_SIGNS)
    )


def saturated(mean: float, ceiling: float, at_ceiling: float, change: float) -> bool:
    """Return True if a system's mean is too near to `ceiling`, the best possible mean, to show a change of
    `change`.

    at_ceiling: probability that a perfect system would be found better.

    Either that is too low, or the change is more than half of the way to the ceiling.
    """
    return at_ceiling < POWER or abs(ceiling - mean) < HALF * change


# ----------
# Why a set is unfit.


def _measuring_faults(measures: Sequence[_MeasureFitness], noises: Sequence[SystemNoise]) -> Iterator[Fault]:
    first = measures[0]
    instead = [one for one in measures[1:] if one.shows_change]
    others = ", ".join(f"{one.measure} (shows {score(one.detectable)})" for one in instead)
    remedy = f"take {others}" if instead else ""
    if first.is_saturated:
        share = percent(abs(first.mean / first.ceiling) if first.ceiling else 1.0)
        yield Fault(
            "saturated",
            f"{first.measure} is at {share} of its ceiling for {first.best} ({first.saturated} of "
            f"{counted(first.systems, 'system')} are as near): a perfect system would be better by "
            f"{score(abs(first.ceiling - first.mean))}, and found better with a probability of "
            f"{percent(first.at_ceiling)}",
            remedy or "add harder queries: those that these systems do not answer",
        )
    moved = next(
        (one for one in noises if one.measure == first.measure and one.deviation == first.noise), None
    )
    if moved is not None and moved.between > first.change:
        yield Fault(
            "noisy",
            f"{moved.system}, asked {moved.repeats} times, has a {first.measure} that moves by "
            f"{score(moved.deviation)} (standard deviation of the mean), and other first documents for "
            f"{moved.changed:,} of {counted(moved.queries, 'query', 'queries')}; differences below "
            f"{score(moved.between)} are not about a change",
            "let it answer alike (seeds, one shard, exact search), or average several askings",
        )
    elif math.isnan(first.detectable) and first.systems > 1 and not first.is_saturated:
        yield Fault(
            "equal systems",
            f"no two of {count(first.systems)} systems differ in {first.measure}, so that nothing is known of how "
            "differences vary",
            "name rankings of systems that differ",
        )
    elif not first.detectable <= first.change and not first.is_saturated:
        shown = f"a difference of {score(first.detectable)}"
        takes = "more than ten million" if first.needed is None else count(first.needed)
        between = f" between systems such as {first.pair[0]} and {first.pair[1]}" if first.pair[0] else ""
        yield Fault(
            "few queries",
            f"{counted(first.queries, 'query shows', 'queries show')} {shown} of {first.measure}{between} with a "
            f"probability of {percent(POWER, 0)} by one test; one of {first.change:g} takes {takes} queries",
            remedy or "add queries, or decide on larger changes",
        )


# ----------
# The function of Python.


@checked
def fitness(
    *targets: str | Path,
    change: float = CHANGE,
    measures: Iterable[str] = (),
    systems: Iterable[object] = (),
    repeats: int | None = None,
    same: bool = False,
    labels: Iterable[str | Path] = (),
    by: object = None,
    collection: Places = None,
    progress: Watch | None = None,
) -> ResultSet[Fitness]:
    """Return a verdict on each collection, with reasons: can it show a change of systems (`weir audit --fit`)?

    targets: a collection, a results folder, or judgments and run files.
    change: difference of means to be shown.
    measures: the first decides, the others are alternatives. By default nDCG@10, R@10 and RR@10.
    systems: systems to run on the collection in addition to the given rankings. Each is also searched for
        relevant documents by their first words.
    repeats: number of runs, at least 5, of each system that is run, to measure its own noise. Given rankings are
        not repeated.
    same: the rankings are repeated runs of one system, without `systems` and `repeats`.
    labels: judgments of the same queries by other judges, whose variance is reported too, with `repeats` or `same`.
    by: classes of the queries, as `Scores.by` takes them, in addition to the collection's columns.
    collection: documents, queries and rules of run files, by name or path. For a results folder the paths
        of collections that moved, by name.
    progress: called with (step, amount done, total).

    Raises BadValue for a change not above 0, targets without judgments, and fewer than two systems without
    documents to run others on.
    """
    if not (change > 0 and math.isfinite(change)):
        raise BadValue(f"the change is {change}; expected a number above 0")
    parsed = _parsed(tuple(measures) or MEASURES)
    if same and (systems or repeats):
        raise BadValue(
            "`same` is of rankings that are there, `systems` and `repeats` of systems that are run; give one"
        )
    if repeats is not None and repeats < FEWEST_REPEATS:
        raise BadValue(f"`repeats={repeats}`: how far a system moves is seen from {FEWEST_REPEATS} runs on")
    if labels and not (same or repeats):
        raise BadValue("`labels` add to what varies between runs of a system; give `repeats`, or `same`")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RankingWarning)
        subjects = subjects_of(targets, places_of(collection))
    left = [str(one.message) for one in caught if issubclass(one.category, RankingWarning)]
    for one in caught:
        if not issubclass(one.category, RankingWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    others = [qrels_from(judged_by(one)[0]) for one in labels]
    wanted = _Wanted(
        change, parsed, tuple(map(system, systems)), repeats, same, others, by, progress or (lambda *_: None)
    )
    found = [_fitness(subject, wanted) for subject in subjects]
    notes = [*map(Note, left), *(note for one in subjects for note in ranked_notes(one.joins, parsed))]
    notes += [
        Note(
            f"{one.subject}: the noise of {one.system} is of {one.queries} queries, those with a value by all judgments"
        )
        for each in found
        for one in each.noise
        if one.queries < each.measures[0].queries and one.measure == each.measures[0].measure
    ]
    return ResultSet(FITNESSES, tuple(found), tuple(notes))


def fitness_of(subject: Subject, measures: Iterable[str], change: float = CHANGE) -> Fitness:
    """Return whether a subject's queries and judgments can show a change of systems, by its rankings.

    subject: a collection with judgments, and two rankings or the documents to run LEXICAL_SYSTEMS on.

    Raises BadValue without judgments, and for a measure without a direction.
    """
    return _fitness(subject, _Wanted(change, _parsed(measures), (), None, False, (), None, lambda *_: None))


def _parsed(measures: Iterable[object]) -> list[Measure]:
    parsed = [parse_measure(str(one)) for one in measures]
    if undirected := no_direction_note(map(str, parsed)):
        raise BadValue(undirected[0])
    return parsed


@dataclass(frozen=True, eq=False)
class _Wanted:
    change: float
    measures: Sequence[Measure]
    systems: tuple[Retriever, ...]
    repeats: int | None
    same: bool
    labels: Sequence[Qrels]
    by: object
    progress: Watch


def _fitness(subject: Subject, wanted: _Wanted) -> Fitness:
    qrels = subject.need_qrels()
    if not len(qrels):
        raise BadValue(f"{subject.name} has no judgments; what it can measure is seen by them")
    runs, again, faults = dict(subject.runs), dict[str, list[Run]](), list[Fault]()
    if wanted.same:
        again["the system"] = list(runs.values())
    alone = len(runs) + len(wanted.systems) < 2 and not wanted.same  # nothing to differ from
    lexical = [parse_system(name) for name in LEXICAL_SYSTEMS if alone]
    if wanted.repeats and not (wanted.systems or lexical):
        raise BadValue(
            f"`repeats={wanted.repeats}`: the rankings of {subject.name} are there, and no system is run; name "
            "`systems`, or say `same=True` if the rankings are repeated runs of one"
        )
    for one in dict.fromkeys([*wanted.systems, *lexical]):
        repeated = wanted.repeats is not None and one in (wanted.systems or lexical)
        name, (asked, of_probes) = str(one), _answers(subject, one, wanted, repeated)
        runs[name] = asked[0]
        if repeated:
            again[name] = asked
        faults += not_found(name, of_probes, asked[0], qrels) if of_probes is not None else ()
    whole = replace(subject, runs=runs)
    noises = [
        one
        for name, asked in again.items()
        for one in system_noise(subject.name, name, asked, (qrels, *wanted.labels), wanted.measures)
    ]
    chosen = [] if wanted.same else list(chosen_by_system(whole.joins, qrels))
    choosing = {name for fault in chosen for name in fault.examples}
    honest = {name: joined for name, joined in whole.joins.items() if name not in choosing}
    joins = honest if len(honest) > 1 else whole.joins
    top = Judged.of(subject.best, qrels)
    measured = [_measure_fitness(joins, top, one, wanted.change, noises) for one in wanted.measures]
    faults = [*_measuring_faults(measured, noises), *chosen, *absent_documents(subject), *faults]
    faults += _version_faults(subject)
    if not wanted.same:
        faults += other_documents(subject)
    values = {name: _values(joined, wanted.measures[0]) for name, joined in whole.joins.items()}
    faults += contradicted_classes(list(_groupings(subject, wanted.by)), whole, values)
    return Fitness(subject.name, wanted.change, tuple(faults), tuple(measured), tuple(noises))


def _answers(
    subject: Subject, given: Retriever, wanted: _Wanted, repeated: bool
) -> tuple[list[Run], Run | None]:
    if subject.corpus is None or subject.queries is None:
        raise BadValue(
            f"{subject.name}: {given} is run on documents, and there are none; name two rankings, or the collection"
        )
    queries = subject.judged_queries if subject.asked is None else subject.asked
    adapted = adapted_to(given, subject.name, subject.instruction)
    times, runs = (wanted.repeats or 1) if repeated else 1, list[Run]()
    for time in range(times):
        wanted.progress(f"{subject.name}  {given}", time, times)
        searcher = indexed(adapted, subject.corpus, Context(shelf=MemoryShelf(), reuse=False))
        drops = subject.self_match == "drop"
        with silent():
            run = rankings(searcher, queries, DEPTH + drops, adapted, subject.name, Context(reuse=False))
        runs.append(run.without_self() if drops else run)
    if given not in wanted.systems:
        return runs, None
    asked = Queries.of(probes(subject))
    if not len(asked):
        return runs, None
    with silent():
        return runs, rankings(searcher, asked, PROBE_DEPTH, adapted, subject.name, Context(reuse=False))


def _version_faults(subject: Subject) -> Iterator[Fault]:
    if subject.versions:
        yield Fault(
            "other documents",
            f"the folder has rankings by {count(1 + len(subject.versions))} versions of the documents or judgments of "
            f"{subject.name}",
            "run the systems that are compared on the same documents",
            subject.versions,
        )


def _groupings(subject: Subject, by: object) -> Iterator[QueryGroups]:
    queries = subject.queries
    if by is not None:
        yield query_groups(by, subject.need_qrels().queries)
    if queries is None or queries.metadata is None:
        return
    names = queries.ids.tolist()
    for name, column in queries.metadata.groups.items():
        yield QueryGroups.of(dict(zip(names, column.tolist(), strict=True)), name)
    if queries.metadata.unanswerable is not None:
        flags = ("unanswerable" if flag else "" for flag in queries.metadata.unanswerable.tolist())
        yield QueryGroups.of(dict(zip(names, flags, strict=True)), "queries")


# ----------
# Tables.


def _fitness_tables(found: Sequence[Fitness]) -> tuple[Table, ...]:
    tables = list[Table]()
    for one in found:
        noisy = not all(math.isnan(row.noise) for row in one.measures)
        head = ["measure", "queries", "shows", f"queries for {one.change:g}", "best", "mean", "of ceiling"]
        lines = [[*head, *(["noise"] if noisy else [])]]
        for row in one.measures:
            more = "> 10,000,000" if row.pair[0] else "-"
            needed = more if row.needed is None else count(row.needed)
            share = percent(abs(row.mean / row.ceiling)) if row.ceiling else "-"
            cells = [
                row.measure,
                count(row.queries),
                score(row.detectable),
                needed,
                row.best,
                score(row.mean),
                share,
            ]
            lines.append([*cells, *([score(row.noise)] if noisy else [])])
        tables.append(table_of(lines, above=[f"{one.subject}: can it show a change of {one.change:g}?"]))
        for fault in one.faults:
            such = [f"  such as: {'; '.join(fault.examples)}"] if fault.examples else []
            tables.append(sentences(f"{fault.kind}: {fault.statement}", *such, f"  do: {fault.remedy}"))
        kinds = ", ".join(dict.fromkeys(fault.kind for fault in one.faults))
        tables.append(sentences(f"{one.subject}: {one.verdict}" + (f" ({kinds})" if kinds else "")))
    return tuple(tables)


FITNESSES = ResultKind(
    "fitness", Fitness, _fitness_tables, parts="measures",
    outcome=lambda one: "fail" if one.faults else "pass",
)  # fmt: skip
