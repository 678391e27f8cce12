"""Groups of related queries, such as paraphrases, typos or other instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.core.frames import json_value
from weir.core.origin import Origin, judgment_marks
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.roles import judged_run
from weir.core.rounding import between, count, score
from weir.core.run import Run
from weir.core.scores import GroupedScores, Scores, averaged
from weir.core.strings import Ids
from weir.core.tables import Table, table_of
from weir.errors import BadValue
from weir.measures.measure import P_MRR, direction
from weir.stats.query_differences import ranks_of
from weir.stats.resampling import MEAN_INTERVALS, interval
from weir.stats.significance import exact_mean


@dataclass(frozen=True)
class WithinGroups:
    """Values of a measure within groups of queries, averaged over groups; 95% intervals resample groups."""

    measure: str
    groups: int
    """Groups with a defined value; `queries` is the number of defined values."""
    queries: int
    mean: float
    worst: float
    """Mean over groups of the worst value (lowest without a direction); for nDCG@10 InstructIR's robustness@10."""
    best: float
    """Mean over groups of the best value (highest without a direction)."""
    spread: float
    """Mean over groups of highest minus lowest value; of logarithms for geometric measures."""
    mean_interval: tuple[float, float]
    worst_interval: tuple[float, float]
    best_interval: tuple[float, float]
    spread_interval: tuple[float, float]
    system: str = ""
    """Name of the system; "" if it is the only one."""


def within_groups(grouped: GroupedScores) -> list[WithinGroups]:
    """Return, for each measure, means over groups of their mean, worst, best and spread of defined values.

    Raises BadValue if a measure has no defined value.
    """
    # Oh et al. 2024 (InstructIR) for the worst.
    within = []
    for measure in grouped.whole.measures:
        rows = [part.of(measure) for _, part in sorted(grouped.items())]
        defined = [row[~np.isnan(row)] for row in rows if not np.isnan(row).all()]
        if not defined:
            raise BadValue(f"{measure} has no value in any group of {grouped.name}")
        geometric = measure in grouped.whole.geometric
        low_first = direction(measure) >= 0
        means: list[float] = []
        ends = list[tuple[float, float]]()
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
        within.append(
            WithinGroups(
                *(measure, len(defined), queries, mean, worst, best, spread),
                *(ends[0], ends[1], ends[2], ends[3]),
            )
        )
    return within


def p_mrr(
    qrels: Qrels,
    run: Run,
    changed: Run | None = None,
    signs: tuple[str, str] = ("-og", "-changed"),
) -> Scores:
    """Return p-MRR of each pair of queries: how far a changed instruction moves down the documents that it
    makes irrelevant.

    qrels, run: hold both queries of each pair; identifiers end in the first or second of `signs`.
    changed: rankings under the changed instructions, if another run.

    1 is best, 0 no change, -1 worst; a missing document ranks last. Queries without a partner and pairs
    without such a document are left out; raises BadValue if none remains.
    """
    # A document of rank o under the original instruction and c under the changed one has the value 1 - o / c if
    # it falls and c / o - 1 if it rises, averaged over documents. Weller et al. 2024 (FollowIR); ranks as Weir
    # breaks ties.
    names, later, values = [], changed or run, []
    for one in {id(run): run, id(later): later}.values():
        judged_run(one, qrels)
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
            # A missing document ranks after all returned ones.
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


def _within_tables(results: Sequence[WithinGroups], explain: bool = False) -> tuple[Table, ...]:
    several = len({one.system for one in results}) > 1
    lines = [["system"] * several + ["measure", "groups", "queries", "mean", "worst", "best", "spread"]]
    for one in results:
        intervals = (one.mean_interval, one.worst_interval, one.best_interval, one.spread_interval)
        means = zip((one.mean, one.worst, one.best, one.spread), intervals, strict=True)
        values = [f"{score(value)} {between(low, high)}" for value, (low, high) in means]
        lines.append([one.system] * several + [one.measure, count(one.groups), count(one.queries), *values])
    made = [f"{MEAN_INTERVALS}; values are of groups"] if explain else []
    return (table_of(lines, right=6, keys=1 + several, notes=made),)


def _record(one: WithinGroups) -> list[dict[str, object]]:
    values = json_value(one)
    system = values.pop("system")
    return [{"system": system} | values if system else values]


WITHIN_GROUPS = ResultKind("within", WithinGroups, _within_tables, records=_record, explained=True)
