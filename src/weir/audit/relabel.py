"""New judgments as a layer over the old ones: every system before and after (Thakur et al. 2021, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weir.core.judged import Judged
from weir.core.layers import merge_qrels
from weir.core.qrels import Qrels
from weir.core.subject import Subject
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, parse_measure
from weir.stats.bootstrap import SEED, interval

__all__ = ["Relabelled", "judged_anew", "relabelled", "turned"]

NDCG_AT_10 = parse_measure("nDCG@10")
HOLE_AT_10 = parse_measure("Hole@10")


@dataclass(frozen=True)
class Relabelled:
    """A system before and after new judgments.

    hole_before, hole_after: mean Hole@10; before, after: the mean of the measure; low, high: 95% interval of the mean
    difference, by bootstrap over queries.
    """

    subject: str
    system: str
    measure: str
    hole_before: float
    hole_after: float
    before: float
    after: float
    low: float
    high: float

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before


def judged_anew(subjects: Sequence[Subject], new: Qrels) -> list[Subject]:
    """The subjects of whose queries some are judged anew; raises BadValue where there is none."""
    found = [one for one in subjects if (one.need_qrels().queries.codes(new.queries.strings) >= 0).any()]
    if not found:
        names = ", ".join(one.name for one in subjects)
        raise BadValue(f"none of the {len(new):,} queries judged anew is a query of {names}")
    return found


def relabelled(
    subject: Subject, new: Qrels, measure: Measure = NDCG_AT_10, origin: str = "new"
) -> tuple[list[Relabelled], Qrels]:
    """(every system before and after, the judgments together with the origin of each).

    Where both judge a pair, the new judgment counts. Queries that only the new judgments know do not: the means are of
    the same queries. Raises BadValue where none of the new judgments is of a query of the subject, or without runs.
    """
    old = subject.need_qrels()
    if not subject.runs:
        raise BadValue(f"{subject.name}: there are no rankings to score again")
    known = np.flatnonzero(old.queries.codes(new.queries.strings) >= 0)
    if not len(known):
        raise BadValue(
            f"{subject.name}: none of the {len(new):,} queries judged anew is one of its {len(old):,}"
        )
    both = merge_qrels(
        new.only(known).labelled(origin), old if old.origin is not None else old.labelled("before")
    )
    measures = (measure, HOLE_AT_10)
    rows = []
    for name, run in subject.runs.items():
        before, after = (
            scores_of(joined, measures) for joined in (subject.joins[name], Judged.of(run, both))
        )
        one, other = (scores.in_id_order(str(measure)) for scores in (before, after))
        low, high = interval(other - one, np.random.default_rng(SEED))
        rows.append(
            Relabelled(
                subject.name,
                name,
                str(measure),
                before.means()[str(HOLE_AT_10)],
                after.means()[str(HOLE_AT_10)],
                before.means()[str(measure)],
                after.means()[str(measure)],
                low,
                high,
            )
        )
    return rows, both


def turned(rows: list[Relabelled]) -> list[tuple[str, str]]:
    """Pairs of systems (better before, better now) of one subject that changed places."""
    return [
        (one.system, other.system) if one.before > other.before else (other.system, one.system)
        for one, other in combinations(rows, 2)
        if one.subject == other.subject and (one.before - other.before) * (one.after - other.after) < 0
    ]
