"""Holes: how much of what systems return anybody ever judged, and whether systems are alike in it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, Severity, check
from weir.core import rounding
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.subject import Subject
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.score_bounds import MEASURE, score_bounds, turning_pairs

__all__ = ["hole_of_any_query", "judged_share"]

CUTOFF = 10
JUDGED = parse_measure(f"Judged@{CUTOFF}")
BESIDE = (parse_measure(f"condensed(nDCG@{CUTOFF})"), parse_measure("RBP_residual"))
"""Other views of holes: unjudged documents leave the ranking; the weight that RBP gives to them."""
FULLY_JUDGED = 0.9
"""Share of judged documents in the first 10 from which holes are no longer said to matter."""
UNEQUAL = 0.05
"""Difference of judged shares of two systems from which a comparison of them is said to be unequal."""


def judged_share(judged: Judged) -> float:
    """The mean share of judged documents among the first 10 returned, over the queries that are answered.

    Elastic's judge rate: Judged@10, where a query without an answer is left out and not counted as 0. NaN without any.
    """
    values = JUDGED.per_query(judged)[judged.answered]
    return float(values.mean()) if len(values) else math.nan


def hole_of_any_query(run: Run, qrels: Qrels, k: int = CUTOFF) -> float:
    """BEIR's Hole@k: the share of the first k places that hold a document which no query at all judges.

    Of k and of all judged queries, answered or not, so that it is smaller than the share unjudged for their query.
    Source: the hole evaluation of BEIR's own code.
    """
    top = run.top(k)
    asked = qrels.queries.codes(top.queries.strings)[top.query_of_row()] >= 0
    seen = np.zeros(len(qrels.docs), np.bool_)
    seen[qrels.doc] = True
    at = qrels.docs.codes(top.docs.strings)[top.doc]
    holes = asked & ~((at >= 0) & seen[at])
    return int(np.count_nonzero(holes)) / (k * len(qrels)) if len(qrels) else math.nan


def _definitions(run: Run, qrels: Qrels, judged: Judged) -> tuple[tuple[str, float], ...]:
    """The share by each tool's own definition."""
    return (
        (f"Elastic's judge rate at {CUTOFF}", judged_share(judged)),
        (f"ir-measures' Judged@{CUTOFF}", float(JUDGED.per_query(judged).mean())),
        (f"BEIR's Hole@{CUTOFF}", hole_of_any_query(run, qrels)),
    )


@check("holes", needs=["runs", "qrels"])
def holes(subject: Subject) -> Iterator[Finding]:
    """How many of the first 10 documents of each system are judged, and whether the systems differ in that.

    An unjudged document counts as not relevant: a system whose answers are judged less often is scored too low.
    numbers: the share also as Elastic, ir-measures and BEIR define it.
    Source: Thakur et al. 2021, section 6.
    """
    shares = {name: judged_share(judged) for name, judged in subject.joins.items() if judged.answered.any()}
    for name, share in shares.items():
        if share < FULLY_JUDGED:
            ranks = _by_rank(subject.joins[name])
            severity: Severity = "serious" if share < 0.5 else "caution"
            yield Finding(
                severity,
                f"{rounding.share(share)} of the first {CUTOFF} documents are judged (at rank 1 "
                f"{rounding.share(ranks[0])}, at rank "
                f"{CUTOFF} {rounding.share(ranks[-1])}); the others count as not relevant",
                "its scores may be too low: judge its unjudged answers, or compare on condensed(...) too",
                (
                    (f"judged share at {CUTOFF}", share),
                    *_definitions(subject.runs[name], subject.need_qrels(), subject.joins[name]),
                    *((f"at rank {r}", v) for r, v in enumerate(ranks, 1)),
                ),
                system=name,
            )
    if len(shares) > 1:
        low, high = min(shares, key=lambda n: shares[n]), max(shares, key=lambda n: shares[n])
        gap = shares[high] - shares[low]
        if gap >= UNEQUAL:
            yield Finding(
                "serious",
                f"the systems are not judged alike: {rounding.share(shares[high])} of the first "
                f"{CUTOFF} of {high}, "
                f"{rounding.share(shares[low])} of {low}",
                f"a difference of {low} to {high} may be one of judging: judge both to the same depth",
                (("difference of judged shares", gap), *shares.items()),
            )


def _by_rank(judged: Judged) -> list[float]:
    """The share of judged documents at each of the first ranks, over the queries that return so many."""
    found = []
    for rank in range(1, CUTOFF + 1):
        returned = int(np.count_nonzero(judged.retrieved >= rank))
        found.append(int(np.count_nonzero(judged.rank == rank)) / returned if returned else float("nan"))
    return found


@check("score bounds", needs=["runs", "qrels"])
def score_bounds_check(subject: Subject) -> Iterator[Finding]:
    """Between which values nDCG@10 lies whatever the unjudged documents are, and which systems may change places.

    Exact over all ways of judging them, each with any grade from 0 to the highest that was judged. Beside it the score
    of condensed lists (Sakai 2007), and what RBP leaves to unjudged documents (Moffat and Zobel 2008).
    """
    answering = {name: run for name, run in subject.runs.items() if subject.joins[name].answered.any()}
    if not answering:
        return
    qrels = subject.need_qrels()
    for name, one in score_bounds(answering, qrels).items():
        low, score, high = (float(values.mean()) for values in (one.low, one.score, one.high))
        views = scores_of(subject.joins[name], BESIDE).means()
        beside = ", ".join(f"{view} {rounding.score(value)}" for view, value in views.items())
        if high - low >= 0.005:
            yield Finding(
                "caution",
                f"{MEASURE} {rounding.score(score)} may be anything from {rounding.score(low)} "
                f"to {rounding.score(high)} by what its unjudged documents are; beside it {beside}",
                "judge what is unjudged among the first 10 of each system (weir pool)",
                (("low", low), ("score", score), ("high", high), *views.items()),
                system=name,
            )
    turning = turning_pairs(answering, qrels)
    total = len(answering) * (len(answering) - 1) // 2
    large = [pair for pair, detected in turning.items() if detected]
    if large:
        yield Finding(
            "serious",
            f"{len(large):,} of {total:,} pairs of systems differ by enough for {len(qrels):,} queries to detect, and "
            "may change places by what unjudged documents are",
            "call the order of such a pair open until their unjudged documents are judged",
            (("pairs that may turn", float(len(large))), ("pairs", float(total))),
            tuple(f"{better} over {worse}" for better, worse in large),
        )
    small = [pair for pair, detected in turning.items() if not detected]
    if small:
        yield Finding(
            "note",
            f"{len(small):,} of {total:,} pairs of systems may change places by what unjudged documents are, but "
            f"differ by too little for {len(qrels):,} queries to detect",
            "",
            (("pairs that may turn", float(len(small))), ("pairs", float(total))),
            tuple(f"{better} over {worse}" for better, worse in small),
        )
