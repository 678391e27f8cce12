"""Quality of judging: agreement, speed, drift, uncritical acceptance of suggestions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

import numpy as np

from weir.core.qrels import Qrels
from weir.core.rounding import between, change, counted, percent
from weir.plugins.app.judging.assignment import Table, contested
from weir.plugins.app.judging.journal import GRADED, Event, Pair
from weir.plugins.app.judging.tasks import Tasks
from weir.plugins.labels.people import Kappa, kappas_of
from weir.stats.label_agreement import many_raters
from weir.stats.resampling import fewest, mean_bounds, or_nan, share_bounds

QUICK_WORDS = 20.0
"""Words a second, several times reading speed: quicker answers were given without reading."""
QUICK_SHARE = 0.2
"""Least share of answers without reading that is remarked on."""
FEW_ANSWERS = 20
"""Answers of a judge below which speed and runs are not remarked on."""
RUN_CHANCE = 1e-4
"""Probability of a run of equal grades below which it is remarked on."""
FEW_SUGGESTIONS = 10
"""Pairs with and without a suggestion below which they are not compared."""


def _qrels_of(events: Sequence[Event]) -> dict[str, Qrels]:
    grades: dict[str, dict[str, dict[str, float]]] = {}
    for event in events:
        if event.kind in GRADED and event.grade is not None:
            grades.setdefault(event.judge, {}).setdefault(event.query, {})[event.document] = event.grade
    return {name: Qrels.of(of_judge) for name, of_judge in sorted(grades.items())}


@dataclass(frozen=True)
class _Suggested:
    """How often a judge's grade equals a model's suggestion, shown or hidden."""

    shown: int
    """Pairs graded with the suggestion in view."""
    accepted: float
    """Share of these with the suggested grade."""
    blind: int
    """Pairs graded with a hidden suggestion."""
    alike: float
    """Share of these with the suggested grade."""
    low: float
    """Newcombe's 95% interval of `accepted` - `alike`, to `high`; NaN for too few."""
    high: float

    @property
    def stamps(self) -> bool:
        return self.low > 0


@dataclass(frozen=True)
class JudgeRow:
    """A judge's numbers of answers, speed, consistency and drift, for the supervisor."""

    name: str
    graded: int
    """Pairs with a grade in force."""
    unable: int
    """Pairs with "cannot tell" in force."""
    later: int
    """Deferred pairs."""
    mean: float
    """Mean grade; NaN without any."""
    seconds: float
    """Median time for an answer; NaN if none was timed."""
    quick: float
    """Share of timed answers given faster than the text can be read; NaN if none was timed."""
    run: int
    """Longest run of equal grades."""
    same_again: float
    """Share of pairs seen twice with the same grade; NaN without any."""
    again: int
    """Pairs seen twice."""
    drift: float
    """Mean difference to others' grades in the later half of the queries minus that in the first; NaN if unknown."""
    drift_low: float
    drift_high: float
    suggested: _Suggested | None
    """None if no grade was suggested."""
    remarks: tuple[str, ...]
    """Sentences on speed, runs, drift and suggestions."""


@dataclass(frozen=True)
class Supervision:
    """The progress of a pool's judging, with agreement, speed and drift of its judges."""

    pairs: int
    judged: int
    """Pairs with as many grades as requested; deferred ones count."""
    begun: int
    """Pairs with some judgments, but fewer than requested."""
    contested: int
    """Undecided pairs without a majority grade."""
    decided: int
    unable: tuple[tuple[str, str, str, str], ...]
    """(query, document, judge, reason) of each "cannot tell"."""
    judges: tuple[JudgeRow, ...]
    kappas: tuple[Kappa, ...]
    """Of each two judges with pairs in common."""
    alpha: tuple[float, float, float] | None
    """(Krippendorff's ordinal alpha of all judges, ends of its 95% interval); None if no two judges share a pair."""


def supervision(table: Table) -> Supervision:
    """Return the progress and quality of a pool's judging, with a row for each judge by name."""
    standing, tasks = table.standing, table.tasks
    first = standing.current("judge")
    labels = _qrels_of(first)
    full = table.judged_pairs
    begun = sum(count for query, levels in standing.levels.items() for count in levels.values()) - full
    kappas = kappas_of(labels)
    alpha: tuple[float, float, float] | None = None
    if kappas:
        alpha = next(one[1:] for one in many_raters(labels).values if one[0] == "ordinal")
    return Supervision(
        len(tasks.by_pair),
        full,
        begun,
        len(contested(table)),
        sum(event.answers for event in standing.current("decide")),
        tuple((e.query, e.document, e.judge, e.text) for e in first if e.kind == "unable"),
        tuple(_row(table, name, first) for name in sorted({event.judge for event in first})),
        tuple(kappas),
        alpha,
    )


def _row(table: Table, name: str, labels: Sequence[Event]) -> JudgeRow:
    mine = [event for event in labels if event.judge == name]
    graded = [event for event in mine if event.kind in GRADED]
    grades = [float(event.grade or 0) for event in graded]
    timed = [event for event in mine if event.seconds is not None and event.answers]
    times = [float(event.seconds or 0) for event in timed]
    quick = [event for event in timed if float(event.seconds or 0) < _words(table.tasks, event) / QUICK_WORDS]
    run, run_grade = max(((len(list(same)), grade) for grade, same in groupby(grades)), default=(0, 0.0))
    repeated = [
        (first, event.grade)
        for event in table.standing.current("again")
        if event.judge == name and event.kind in GRADED
        and (first := _grade(table, name, (event.query, event.document))) is not None
    ]  # fmt: skip
    same_again = sum(one == other for one, other in repeated)
    drift = _drift_of(name, labels)
    suggested = _suggested_of(graded, table.tasks.suggestions)
    others = [float(event.grade or 0) for event in labels if event.kind in GRADED and event.judge != name]
    remarks = []
    if len(timed) >= FEW_ANSWERS and len(quick) >= QUICK_SHARE * len(timed):
        remarks.append(
            f"{percent(len(quick) / len(timed))} of the answers came quicker than {QUICK_WORDS:g} words a second are "
            "read"
        )
    chance = _chance_of_run(run, len(grades), run_grade, others or grades)
    if len(grades) >= FEW_ANSWERS and chance < RUN_CHANCE:
        of = (
            f"{percent(others.count(run_grade) / len(others))} of others'"
            if others
            else "less often elsewhere"
        )
        remarks.append(f"{counted(run, 'grade')} in a row are {run_grade:g}, which are {of}")
    if drift[1] > 0 or drift[2] < 0:
        way = "milder" if drift[0] > 0 else "stricter"
        remarks.append(
            f"grades became {way}: {change(drift[0])} {between(*drift[1:], change)} against others' of the same pairs"
        )
    if suggested is not None and suggested.stamps:
        remarks.append(
            f"gives the suggested grade to {percent(suggested.accepted)} of the pairs where it is shown, and to "
            f"{percent(suggested.alike)} of those where it is not: suggestions may be stamped rather than judged"
        )
    return JudgeRow(
        name,
        len(graded),
        sum(event.kind == "unable" for event in mine),
        sum(event.kind == "later" for event in mine),
        sum(grades) / len(grades) if grades else math.nan,
        median(times) if times else math.nan,
        len(quick) / len(timed) if timed else math.nan,
        run,
        same_again / len(repeated) if repeated else math.nan,
        len(repeated),
        *drift,
        suggested,
        tuple(remarks),
    )


def _words(tasks: Tasks, event: Event) -> int:
    pair = tasks.by_pair.get((event.query, event.document))
    return 0 if pair is None else len(pair.text.split()) + len(pair.title.split())


def _grade(table: Table, judge: str, pair: Pair) -> float | None:
    event = table.standing.judged.get(pair, {}).get(judge)
    return event.grade if event is not None and event.kind in GRADED else None


def _chance_of_run(run: int, answers: int, grade: float, others: Sequence[float]) -> float:
    usual = Counter(others)[grade] / len(others) if others else 1.0
    return min(1.0, (answers - run + 1) * usual**run)


def _drift_of(judge: str, labels: Sequence[Event]) -> tuple[float, float, float]:
    """Return (drift, low, high of its 95% interval) of a judge's grades; all NaN for too few queries.

    Drift is the mean difference to others' grades in the later half of the queries, minus that in the first
    half.
    """
    others: dict[Pair, list[float]] = {}
    for event in labels:
        if event.kind in GRADED and event.judge != judge:
            others.setdefault((event.query, event.document), []).append(float(event.grade or 0))
    by_query: dict[str, list[tuple[float, float]]] = {}
    for event in labels:
        given = others.get((event.query, event.document))
        if event.judge == judge and event.kind in GRADED and given:
            apart = float(event.grade or 0) - sum(given) / len(given)
            by_query.setdefault(event.query, []).append((event.time, apart))
    means = sorted(tuple(np.mean(found, axis=0).tolist()) for found in by_query.values())
    half = len(means) // 2
    if half < fewest():
        return math.nan, math.nan, math.nan
    early, late = (np.array([[apart for _, apart in part]]) for part in (means[:half], means[-half:]))
    low, high = or_nan((2 * mean_bounds([late, -early])[0]).tolist())
    return float(late.mean() - early.mean()), low, high


def _suggested_of(graded: Sequence[Event], suggestions: Mapping[Pair, float]) -> _Suggested | None:
    shown = [event.grade == event.suggested for event in graded if event.suggested is not None]
    if not shown:
        return None
    blind = [
        event.grade == suggestions[event.query, event.document]
        for event in graded
        if event.suggested is None and (event.query, event.document) in suggestions
    ]
    accepted, alike = (sum(one) / len(one) if one else math.nan for one in (shown, blind))
    low = high = math.nan
    if min(len(shown), len(blind)) >= FEW_SUGGESTIONS:
        (low_shown, high_shown), (low_blind, high_blind) = (
            share_bounds(sum(one), len(one)) for one in (shown, blind)
        )
        # Newcombe 1998, method 10.
        low = accepted - alike - math.hypot(accepted - low_shown, high_blind - alike)
        high = accepted - alike + math.hypot(high_shown - accepted, alike - low_blind)
    return _Suggested(len(shown), accepted, len(blind), alike, low, high)
