"""Holes: how much of what systems return anybody ever judged, and whether systems are alike in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.audit.check import Finding, Severity, check
from weir.audit.subject import Subject
from weir.core.judged import Judged
from weir.core.strings import Float64

__all__ = ["judged_share"]

CUTOFF = 10
FULLY_JUDGED = 0.9
"""Share of judged documents in the first 10 from which holes are no longer said to matter."""
UNEQUAL = 0.05
"""Difference of judged shares of two systems from which a comparison of them is said to be unequal."""


def judged_share(judged: Judged, k: int) -> Float64:
    """The share of the first k documents returned that are judged, float64[Q]; NaN where nothing is returned.

    Elastic's judge rate: the divisor is what was returned, at most k, and queries without an answer are left out.
    """
    returned = np.minimum(judged.retrieved, k)
    hits = judged.per_query(judged.query, judged.rank <= k)
    shares: Float64 = np.divide(hits, returned, out=np.full(len(judged), np.nan), where=returned > 0)
    return shares


@check("holes", needs=["runs", "qrels"])
def holes(subject: Subject) -> Iterator[Finding]:
    """How many of the first 10 documents of each system are judged, and whether the systems differ in that.

    An unjudged document counts as not relevant: a system whose answers are judged less often is scored too low.
    Source: Thakur et al. 2021, section 6.
    """
    shares = {
        name: float(np.nanmean(judged_share(judged, CUTOFF)))
        for name, judged in subject.joins.items()
        if judged.answered.any()
    }
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
