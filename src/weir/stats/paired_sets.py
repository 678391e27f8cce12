"""Groups of related queries: paraphrases and typos of one question, one query under several instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.origin import Origin, judgment_marks
from weir.core.qrels import Qrels
from weir.core.results import result
from weir.core.rounding import between, count, score
from weir.core.run import Run
from weir.core.scores import GroupedScores, Scores, averaged
from weir.core.strings import Ids
from weir.core.tables import Table, table_of
from weir.errors import BadValue
from weir.measures.measure import direction
from weir.stats.query_differences import ranks_of
from weir.stats.resampling import interval
from weir.stats.significance import exact_mean

P_MRR = "p-MRR"


@dataclass(frozen=True)
class WithinGroups:
    """What a measure does within groups of queries, averaged over the groups.

    groups: how many have a defined value, queries: how many values those have; mean, worst, best: means over groups of
    the group's mean, worst and best value (lowest and highest by a measure without a direction), where values are
    logarithms geometric ones; spread: of highest less lowest value, of logarithms where values are; intervals: 95%, by
    resampling groups, since the queries of a group are not independent. worst by nDCG@10 is InstructIR's robustness@10.
    """

    measure: str
    groups: int
    queries: int
    mean: float
    worst: float
    best: float
    spread: float
    mean_interval: tuple[float, float]
    worst_interval: tuple[float, float]
    best_interval: tuple[float, float]
    spread_interval: tuple[float, float]


def within_groups(grouped: GroupedScores) -> list[WithinGroups]:
    """Mean, worst, best and spread within groups by each measure; undefined values are left out.

    Raises BadValue where no group has a defined value. Source: Oh et al. 2024 (InstructIR) for the worst.
    """
    within = []
    for measure in grouped.whole.measures:
        rows = [part.of(measure) for _, part in sorted(grouped.items())]
        defined = [row[~np.isnan(row)] for row in rows if not np.isnan(row).all()]
        if not defined:
            raise BadValue(f"{measure} has no value in any group of {grouped.name}")
        geometric = measure in grouped.whole.geometric
        low_first = direction(measure) >= 0
        means: list[float] = []
        ends: list[tuple[float, float]] = []
        for of, logarithms in (
            (np.mean, geometric),
            (np.min if low_first else np.max, geometric),
            (np.max if low_first else np.min, geometric),
            (np.ptp, False),
        ):
            values = np.array([of(row) for row in defined])
            low, high = interval(values)
            means.append(averaged(exact_mean(values), logarithms))
            ends.append((averaged(low, logarithms), averaged(high, logarithms)))
        mean, worst, best, spread = means
        queries = sum(map(len, defined))
        within.append(WithinGroups(measure, len(defined), queries, mean, worst, best, spread, *ends))
    return within


def p_mrr(
    qrels: Qrels,
    run: Run,
    changed: Run | None = None,
    signs: tuple[str, str] = ("-og", "-changed"),
) -> Scores:
    """How far documents that a changed instruction makes irrelevant fall: p-MRR, a value for each pair of queries.

    qrels, run: of both queries of each pair, whose identifiers end in one of the signs; changed: the rankings under the
    changed instructions where they are another run. A document of rank o under the original instruction and c under the
    changed one has the value 1 - o / c where it falls and c / o - 1 where it rises; a pair's is the mean over its
    documents that are relevant under the original instruction and not under the changed one. 1 is best, 0 an
    instruction that changes nothing, -1 worst. A document that is not returned stands behind all that are. Raises
    BadValue where no pair has such a document. Source: Weller et al. 2024 (FollowIR); ranks as Weir breaks ties.
    """
    names, later, values = [], changed or run, []
    grades = qrels.to_dict()
    for before in sorted(grades):
        stem = before.removesuffix(signs[0])
        after = stem + signs[1]
        if stem == before or after not in grades:
            continue
        judged = grades[after]
        documents = [d for d, grade in grades[before].items() if grade > 0 and not judged.get(d, 0) > 0]
        if not documents:
            continue
        ranks = []
        for ranking, query in ((run, before), (later, after)):
            rank = ranks_of(ranking, query, documents)
            ranks.append(np.where(rank == 0, _returned(ranking, query) + 1, rank))
        old, new = ranks
        names.append(stem)
        values.append(exact_mean(np.where(old >= new, new / old - 1, 1 - old / new)))
    if not names:
        raise BadValue(
            f"no pair of queries ending in '{signs[0]}' and '{signs[1]}' has a document that is relevant for the first "
            "alone"
        )
    queries, mark = Ids.of(names), judgment_marks(qrels)
    marks = {name: mark[name + signs[0]] + mark[name + signs[1]] for name in names}
    answered = [bool(_returned(run, n + signs[0]) and _returned(later, n + signs[1])) for n in names]
    return Scores((P_MRR,), queries, np.array([values]), np.array(answered), origin=Origin(saved=marks))


def _returned(run: Run, query: str) -> int:
    code = int(run.queries.codes([query])[0])
    return 0 if code < 0 else int(run.ptr[code + 1] - run.ptr[code])


@result("within", WithinGroups)
def within_tables(measures: Sequence[WithinGroups]) -> tuple[Table, ...]:
    """A line for each measure: mean, worst, best and spread within a group, averaged, with intervals."""
    return within_tables_of({"": measures})


def within_tables_of(systems: Mapping[str, Sequence[WithinGroups]]) -> tuple[Table, ...]:
    """The same of several systems by name."""
    several = len(systems) > 1
    head = ["measure", "groups", "queries", "mean", "worst", "best", "spread"]
    lines = [["system"] * several + head]
    for system, measures in systems.items():
        for one in measures:
            intervals = (one.mean_interval, one.worst_interval, one.best_interval, one.spread_interval)
            values = [
                f"{score(value)} {between(low, high)}"
                for value, (low, high) in zip(
                    (one.mean, one.worst, one.best, one.spread), intervals, strict=True
                )
            ]
            lines.append([system] * several + [one.measure, count(one.groups), count(one.queries), *values])
    return (table_of(lines, right=6, keys=1 + several),)
