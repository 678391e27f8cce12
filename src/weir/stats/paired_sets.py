"""Groups of related queries: paraphrases and typos of one question, one query under several instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.qrels import Qrels
from weir.core.results import result
from weir.core.rounding import count, score
from weir.core.run import Run
from weir.core.scores import GroupedScores, Scores, averaged
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Table, table_of
from weir.errors import BadValue
from weir.stats.query_differences import ranks_of
from weir.stats.resampling import SEED, interval

P_MRR = "p-MRR"


@dataclass(frozen=True)
class WithinGroups:
    """What a measure does within groups of queries, averaged over the groups.

    groups: how many have a defined value, queries: how many values those have; mean, worst, best: means over groups of
    the group's mean, lowest and highest value, where values are logarithms geometric ones; spread: of highest less
    lowest value, of logarithms where values are; intervals: 95%, by resampling groups, since the queries of a group
    are not independent. worst by nDCG@10 is InstructIR's robustness@10.
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
    return [_within(grouped, measure) for measure in grouped.whole.measures]


def _within(grouped: GroupedScores, measure: str) -> WithinGroups:
    rows = [part.of(measure) for _, part in sorted(grouped.items())]
    defined = [row[~np.isnan(row)] for row in rows if not np.isnan(row).all()]
    if not defined:
        raise BadValue(f"{measure} has no value in any group of {grouped.name}")
    geometric = measure in grouped.whole.geometric

    def over_groups(of: Callable[[Float64], float], logs: bool) -> tuple[float, tuple[float, float]]:
        values = np.array([of(row) for row in defined])
        low, high = interval(values, np.random.default_rng(SEED))
        mean = math.fsum(values.tolist()) / len(values)
        return averaged(mean, logs), (averaged(low, logs), averaged(high, logs))

    mean, worst, best = (over_groups(of, geometric) for of in (np.mean, np.min, np.max))
    spread = over_groups(lambda row: float(np.max(row) - np.min(row)), logs=False)
    return WithinGroups(
        measure,
        len(defined),
        sum(map(len, defined)),
        *(mean[0], worst[0], best[0], spread[0]),
        *(mean[1], worst[1], best[1], spread[1]),
    )


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
        ranks = zip(
            _ranks(run, before, documents).tolist(), _ranks(later, after, documents).tolist(), strict=True
        )
        falls = [new / old - 1 if old >= new else 1 - old / new for old, new in ranks]
        names.append(stem)
        values.append(math.fsum(falls) / len(documents))
    if not names:
        raise BadValue(
            f"no pair of queries ending in '{signs[0]}' and '{signs[1]}' has a document that is relevant for the first "
            "alone"
        )
    queries = Ids.of(names)
    answered = np.array([_returned(run, n + signs[0]) and _returned(later, n + signs[1]) for n in names])
    return Scores((P_MRR,), queries, np.array([values]), answered)


def _ranks(run: Run, query: str, documents: list[str]) -> Int64:
    """The rank of each document, one more than all that are returned where it is not."""
    ranks = ranks_of(run, query, documents)
    return np.where(ranks == 0, _returned(run, query) + 1, ranks)


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
            pairs = (
                (one.mean, one.mean_interval),
                (one.worst, one.worst_interval),
                (one.best, one.best_interval),
                (one.spread, one.spread_interval),
            )
            values = [f"{score(value)} [{score(low)}, {score(high)}]" for value, (low, high) in pairs]
            lines.append([system] * several + [one.measure, count(one.groups), count(one.queries), *values])
    return (table_of(lines, right=6, keys=1 + several),)
