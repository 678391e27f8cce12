"""Holes: how much of what systems return anybody ever judged, and whether systems are alike in it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, Severity, check
from weir.audit.subject import Subject
from weir.core.judged import Judged
from weir.measures.measure import parse_measure

__all__ = ["judged_share"]

CUTOFF = 10
JUDGED = parse_measure(f"Judged@{CUTOFF}")
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


@check("holes", needs=["runs", "qrels"])
def holes(subject: Subject) -> Iterator[Finding]:
    """How many of the first 10 documents of each system are judged, and whether the systems differ in that.

    An unjudged document counts as not relevant: a system whose answers are judged less often is scored too low.
    Source: Thakur et al. 2021, section 6.
    """
    shares = {name: judged_share(judged) for name, judged in subject.joins.items() if judged.answered.any()}
    for name, share in shares.items():
        if share < FULLY_JUDGED:
            ranks = _by_rank(subject.joins[name])
            severity: Severity = "serious" if share < 0.5 else "caution"
            yield Finding(
                severity,
                f"{name}: {share:.1%} of the first {CUTOFF} documents are judged (at rank 1 {ranks[0]:.1%}, at rank "
                f"{CUTOFF} {ranks[-1]:.1%}); the others count as not relevant",
                "its scores are lower bounds: judge its unjudged answers, or compare on condensed(...) too",
                (
                    (f"judged share at {CUTOFF}", share),
                    *((f"at rank {r}", v) for r, v in enumerate(ranks, 1)),
                ),
            )
    if len(shares) > 1:
        low, high = min(shares, key=lambda n: shares[n]), max(shares, key=lambda n: shares[n])
        gap = shares[high] - shares[low]
        if gap >= UNEQUAL:
            yield Finding(
                "serious",
                f"the systems are not judged alike: {shares[high]:.1%} of the first {CUTOFF} of {high}, "
                f"{shares[low]:.1%} of {low}",
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
