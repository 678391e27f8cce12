"""What has to be said beside scores: who was not answered, what ties could change, which conventions hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.result_row import Row
from weir.core.rounding import count, probability, score, share
from weir.core.scores import Scores
from weir.measures.conventions import parse_conventions
from weir.measures.measure import MEASURES, Measure
from weir.stats.intervals import fewest
from weir.stats.power import Reach

__all__ = [
    "convention_notes",
    "float_tie_notes",
    "grade_notes",
    "judged_notes",
    "reach_note",
    "score_notes",
    "unanswered",
]

_FEW_GRADES = 3  # mean judgments of a query up to which nothing is made of grades that all differ
ENOUGH_JUDGED = 0.9
"""Judged@10 from which nothing is said."""


def score_notes(scores: Scores) -> list[str]:
    """Sentences on unanswered and unjudged queries, few queries, ties and conventions; each begins with "note: "."""
    found = []
    missing = int(np.count_nonzero(~scores.answered))
    if missing:
        found.append(
            f"note: {missing} of {len(scores.answered)} judged queries are not answered and {unanswered(scores)}"
        )
    if scores.ignored:
        found.append(f"note: {scores.ignored} queries of the run have no judgments and are ignored")
    if scores.tied:
        found.append(f"note: {share(scores.tied)} of the documents returned share their score with another")
    counted = int(scores.counted().max(initial=0))
    if 1 < counted < fewest():
        found.append(
            f"note: {counted} queries are too few for an interval: the whole range of so many holds the median "
            f"{share(1 - 2.0 ** (1 - counted))} of the time only"
        )
    return found + _tie_notes(scores) + convention_notes(scores)


def judged_notes(rows: Sequence[Row]) -> list[str]:
    """A sentence where fewer than 90% of the first 10 documents of a system are judged: what that does to scores."""
    rates = {(r.system, r.dataset): r.judged_at_10 for r in rows if r.judged_at_10 is not None}
    if not rates or min(rates.values()) >= ENOUGH_JUDGED:
        return []
    (system, dataset), least = min(rates.items(), key=lambda one: one[1])
    few = (
        f"as few as {share(least)} are judged ({system} on {dataset})"
        if len(rates) > 1
        else f"{share(least)} are judged"
    )
    return [
        f"note: of the first 10 documents {few}; the others count as not relevant, so scores can be too low, more so "
        "for systems unlike those that were judged; condensed(nDCG@10) leaves them out"
    ]


def reach_note(reach: Reach, test: str, units: int, unit: str, tests: int) -> str:
    """Why so many queries or datasets can show no difference, however large, and how many it takes."""
    several = f", adjusted over {tests} comparisons" if tests > 1 else ""
    takes = (
        f"it takes {count(reach.fewest)} {unit} at least"
        if reach.fewest is not None
        else f"it takes {reach.draws:,} draws at least (--draws)"
    )
    return (
        f"{count(units)} {unit} can show no difference, however large: {test} cannot give a p-value below "
        f"{probability(reach.smallest)}{several}; {takes} to come below {reach.alpha:g}"
    )


def grade_notes(qrels: Qrels | IntentQrels, measures: Iterable[Measure]) -> list[str]:
    """Sentences on grades with fractions, on what reads like scores, and on where judgments come from."""
    found = []
    between = int(np.count_nonzero((qrels.grade > 0) & (qrels.grade < 1)))
    asking = [
        m for m in measures if "rel" in MEASURES.get(m.name).defaults() and "rel" not in dict(m.settings)
    ]
    if between and asking:
        found.append(
            f"note: {between:,} of {len(qrels.grade):,} judgments have a grade above 0 and below 1, which "
            f"{asking[0]} does not take for relevant; {asking[0](rel=0.5)} does from 0.5 on"
        )
    if isinstance(qrels, Qrels) and qrels.fractional and _like_scores(qrels):
        found.append("note: all grades of each query differ, as scores do; judgments come first, then runs")
    if isinstance(qrels, Qrels) and qrels.origin is not None:
        above = qrels.origin.said(qrels.grade > 0)
        found.append(f"note: judgments by origin: {qrels.origin.said()}; above 0: {above or 'none'}")
    return found


def _like_scores(qrels: Qrels) -> bool:
    query = qrels.query_of_row()
    order = np.lexsort((qrels.grade, query))
    same = (np.diff(query[order]) == 0) & (np.diff(qrels.grade[order]) == 0)
    return len(query) >= _FEW_GRADES * max(len(qrels), 1) and not same.any()


def float_tie_notes(usual: Scores, as_floats: Scores) -> list[str]:
    """A sentence on each measure whose mean, as printed, is another where scores compare as floats."""
    found = []
    for measure, here, there in zip(
        usual.measures, usual.mean_values(), as_floats.mean_values(), strict=True
    ):
        if score(float(here)) != score(float(there)):
            found.append(
                f"note: {measure} is {score(float(there))} under trec_eval 9, which compares scores as floats "
                "(--ties trec9)"
            )
    return found


def unanswered(scores: Scores) -> str:
    """What becomes of judged queries that are not answered, as the end of a sentence."""
    return "leave the mean" if "missing=answered-only" in scores.conventions else "score 0"


def convention_notes(scores: Scores) -> list[str]:
    """A sentence on each convention that is not the usual one."""
    return [f"note: {sentence}" for sentence in parse_conventions(scores.conventions).sentences()]


def _tie_notes(scores: Scores) -> list[str]:
    """For each measure how many queries the order of ties could change, and between which means."""
    found = []
    rows = zip(scores.measures, scores.movable(), scores.counted(), scores.tie_bounds(), strict=True)
    for measure, movable, counted, (low, high) in rows:
        if movable:
            mean = f", its mean between {score(low)} and {score(high)}"
            found.append(
                f"note: {measure}: {'up to ' if math.isnan(low) else ''}{movable} of {counted} queries could score "
                f"otherwise by the order of ties{'' if math.isnan(low) else mean}"
            )
    if found and not parse_conventions(scores.conventions).over_orders:
        found.append(
            "note: ties=expected is the mean over all orders of ties, ties=bounds the worst and the best"
        )
    return found
