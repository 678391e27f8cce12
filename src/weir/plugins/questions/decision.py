"""Decide which system is best while queries are being judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.core.qrels import Qrels, merge_qrels
from weir.core.roles import judged_run
from weir.core.rounding import change, counted, figure, score
from weir.core.strings import Float64
from weir.core.subject import Subject
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, direction
from weir.stats.sequential import LEVEL, by_lot, e_values, first_at, lower_bounds
from weir.stats.significance import exact_mean


@dataclass(frozen=True)
class Lead:
    """The best system's lead over one other system."""

    system: str
    difference: float
    """Mean of the best system minus the mean of `system`; negated if less is better."""
    low: float
    """Lower bound of `difference`, valid for all systems and all numbers of queries together."""
    e_value: float
    """Largest e-value so far against the claim that the best system is worse by the margin or more."""


@dataclass(frozen=True)
class Decision:
    """The system that is best by the queries judged so far, and whether that is certain."""

    measure: str
    best: str
    """The system that is decided to be best, else the one with the highest mean so far."""
    mean: float
    judged: int
    """Number of queries that count: in drawn order, all before the first that is not judged completely."""
    queries: int
    decided: int | None
    """Number of queries after which it was decided; None if it is not."""
    enough: float
    """The e-value that decides."""
    margin: float
    """How much better than the best another system may still be."""
    leads: tuple[Lead, ...]
    """One for each other system."""

    def __str__(self) -> str:
        closest = min(self.leads, key=lambda one: one.e_value)
        than = f"{closest.system}, the closest," if len(self.leads) > 1 else closest.system
        lead = (
            f"{change(closest.difference)} over {than} at least {change(closest.low)}; e-value "
            f"{figure(closest.e_value)}, {figure(self.enough)} decides"
        )
        if self.decided is not None:
            within = f", but for {score(self.margin)} at most" if self.margin else ""
            return (
                f"decided after {self.decided:,} of {counted(self.queries, 'query', 'queries')}: {self.best} is best "
                f"by {self.measure}{within} ({lead})"
            )
        return (
            f"not decided by {self.judged:,} of {counted(self.queries, 'query', 'queries')}: {self.best} leads by "
            f"{self.measure} ({lead})"
        )


def decide(
    values: Float64,
    systems: Sequence[str],
    measure: str,
    queries: int,
    margin: float = 0.0,
    level: float = LEVEL,
) -> Decision:
    """Return the best of several systems by the queries judged so far, and after how many it was certain.

    values: float64[systems, n] within 0..1, for n of the `queries`, in the random order of judging.
    margin: how much better than the best another system may still be.
    level: probability that no system is ever called best wrongly.

    Raises BadValue for fewer than two systems, no query, or a measure without a direction.
    """
    way, (count, n) = direction(measure), values.shape
    if count < 2 or not n or not way:
        raise BadValue(
            f"found {counted(count, 'system')}, {n} judged queries and {measure}; expected two systems or more, a "
            "query at least, and a measure by which more or less is better"
        )
    # A system is called best once it beats each other one, so that a wrong call beats the one that is best: the level
    # is shared among as many calls as there are systems.
    enough, each = count / (1 - level), 1 - (1 - level) / count
    called: tuple[int, int] | None = None
    for system in range(count):
        others = np.delete(way * (values[system] - values), system, axis=0)
        beaten = [first_at(one, enough) for one in e_values(others, -margin)]
        if None not in beaten:
            at = max(one for one in beaten if one is not None)
            called = min(called or (at, system), (at, system))
    best = called[1] if called else int(np.argmax(way * values.mean(axis=1)))
    leads = []
    for other in range(count):
        if other != best:
            d = way * (values[best] - values[other])
            low = float(lower_bounds(d, each)[-1])
            leads.append(Lead(systems[other], exact_mean(d), low, float(e_values(d, -margin).max())))
    decided = called[0] if called else None
    return Decision(
        measure, systems[best], exact_mean(values[best]), n, queries, decided, enough, margin, tuple(leads)
    )


def decision_of(
    subject: Subject,
    new: Qrels | None,
    open_queries: Collection[str],
    measure: Measure,
    margin: float = 0.0,
) -> Decision | None:
    """Return which of a subject's systems is best by the labels so far; None while no judged query has a
    value.

    new: labels so far, besides the subject's judgments.
    open_queries: queries that still have something to judge.
    margin: how much better than the best another system may still be.

    Queries count in random order, up to the first open one. Raises BadValue for fewer than two systems and a
    measure without a direction.
    """
    before = subject.qrels
    labels = [one for one in (new, before) if one is not None and len(one)]
    answered = (name for run in subject.runs.values() for name in run.queries.tolist())
    everything = by_lot([*answered, *(name for one in labels for name in one.queries.tolist())])
    counted_queries: list[str] = []
    # Up to the first open one, so that quickly judged queries are not favoured.
    for query in everything:
        if query in open_queries:
            break
        counted_queries.append(query)
    if not labels or not counted_queries:
        return None
    merged = labels[0] if len(labels) == 1 else merge_qrels(*(replace(one, origin=None) for one in labels))
    rows = _values(subject, merged, measure)
    values = np.array([[of.get(query, np.nan) for query in counted_queries] for of in rows.values()])
    values = values[:, ~np.isnan(values).any(axis=0)]  # without a relevant document there is no value
    if not values.size:
        return None
    return decide(values, list(rows), str(measure), len(everything), margin)


def _values(subject: Subject, qrels: Qrels, measure: Measure) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, Mapping[str, float]] = {}
    for name, run in subject.runs.items():
        scores = scores_of(judged_run(run, qrels), (measure,))
        found[name] = scores[str(measure)].to_dict()
    return found
