"""Scores corrected by few human judgments, beside what is certain of them, and what people should judge next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weir.audit.judging_pool import JudgingPool, write_pool
from weir.core.qrels import Qrels
from weir.core.query_groups import QueryGroups
from weir.core.run import Run
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject
from weir.errors import BadValue
from weir.measures.measure import Measure
from weir.stats.corrected_scores import CorrectedScore, LabelledRuns, corrected_scores
from weir.stats.query_allocation import allocated, query_variances
from weir.stats.sample_design import AT_RANDOM, SampleDesign, numbered_strata
from weir.stats.score_bounds import MOST_RANKS, RISING, Unjudged, score_bounds

__all__ = ["QueryPlan", "StratumPlan", "estimated_scores", "next_queries", "write_plan"]

STRATA_FILE, WEIGHTS_FILE = "strata.tsv", "weights.tsv"
MOST_STRATA = 4
QUERIES_A_STRATUM = 5
"""Queries that people judged for each stratum that is made of the model's scores."""
SEED = 13


def estimated_scores(
    runs: Mapping[str, Run], human: Qrels, model: Qrels, measure: Measure, design: SampleDesign = AT_RANDOM
) -> list[CorrectedScore]:
    """Corrected scores of runs, and between what they lie whatever people have not judged.

    Arguments and errors as `corrected_scores`.
    """
    found = corrected_scores(runs, human, model, measure, design)
    if measure.name not in RISING or (measure.cutoff or 0) > MOST_RANKS:
        return found
    certain = score_bounds(runs, _of_all(human, model), measure)
    return [
        replace(one, least=float(certain[one.system].low.mean()), most=float(certain[one.system].high.mean()))
        for one in found
    ]


@dataclass(frozen=True)
class StratumPlan:
    """A stratum of queries: how many there are, were judged, are to be judged now; weight: of each judged then."""

    stratum: str
    queries: int
    judged: int
    more: int
    weight: float


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """Which queries people should judge next.

    queries: the names of those drawn, in the order of the sheet; pairs: how many documents of them are to be judged;
    now, then, best: half the 95% interval of the system whose is widest, as expected now, after these, and after all
    queries; width: what was asked for, NaN where nothing was, needed: queries more for it, -1 where none are enough.
    """

    measure: str
    systems: int
    queries: tuple[str, ...]
    pairs: int
    now: float
    then: float
    best: float
    width: float
    needed: int
    strata: tuple[StratumPlan, ...]


@dataclass(frozen=True, eq=False)
class DrawnPlan:
    """A plan with what its sheet takes: the pool, and the stratum of each query that the model judged."""

    plan: QueryPlan
    pool: JudgingPool
    strata: QueryGroups
    weights: Float64


def next_queries(
    runs: Mapping[str, Run],
    labels: tuple[Qrels, Qrels],
    measure: Measure,
    count: int | None = None,
    width: float | None = None,
    strata: QueryGroups | None = None,
) -> DrawnPlan:
    """Draw the queries that people should judge next, and say how far that narrows the corrected scores.

    labels: people's and the model's; count: how many queries; width: half an interval that is asked for, which decides
    how many where no count is given; strata: within which people's queries were drawn, None makes up to four by the
    model's scores. How many of each stratum follows from how far the model erred on those that people judged (Neyman's
    allocation, by pairs to judge); which of them is drawn at random, so that the estimate by strata stays unbiased.
    Raises BadValue where neither count nor width is given or they are not above 0, where nothing is left to judge, and
    as `corrected_scores`.
    """
    if (count is None and width is None) or (count or 1) < 1 or (width or 1.0) <= 0:
        raise BadValue(f"found {count} queries and a width of {width}; give one of them, above 0")
    human, model = labels
    labelled = LabelledRuns.of(runs, human, model, measure)
    drawn, values = labelled.drawn, list(labelled.values.values())
    groups = _by_score(labelled) if strata is None else strata
    stratum = numbered_strata(groups, model.queries)
    variances = query_variances(values, (stratum[drawn.mine], stratum[drawn.alone]), len(groups))
    unjudged = Unjudged.of(list(runs.values()), _of_all(human, model), measure.cutoff or 1)
    to_judge = np.bincount(unjudged.query, minlength=len(model))
    cost = np.bincount(stratum[drawn.alone], to_judge[drawn.alone], len(groups)) / np.maximum(
        1, variances.queries - variances.judged
    )
    wanted = None if width is None else allocated(variances, cost, None, width)
    more = allocated(variances, cost, count) if count is not None else wanted
    if more is None or not more.sum():
        raise BadValue(
            "nothing is left to judge: every query is judged by people, or the width is reached already"
        )
    rng = np.random.default_rng(SEED)
    chosen = np.concatenate(
        [rng.permutation(drawn.alone[stratum[drawn.alone] == n])[:m] for n, m in enumerate(more.tolist())]
    )
    chosen = rng.permutation(chosen)
    after = variances.judged + more
    reached = wanted is not None and variances.half_width(variances.judged + wanted) <= (width or 0.0)
    plan = QueryPlan(
        str(measure),
        len(runs),
        tuple(model.queries.take(chosen).tolist()),
        int(to_judge[chosen].sum()),
        variances.half_width(variances.judged),
        variances.half_width(after),
        variances.half_width(variances.queries),
        float("nan") if width is None else width,
        int(wanted.sum()) if wanted is not None and reached else -1,
        tuple(
            StratumPlan(label, int(n), int(j), int(m), float(n / max(1, j + m)))
            for label, n, j, m in zip(groups.labels, variances.queries, variances.judged, more, strict=True)
        ),
    )
    weights = np.zeros(len(model))
    weights[np.concatenate([drawn.mine, chosen])] = 1.0
    weights *= (variances.queries / np.maximum(1, after))[stratum]
    pool = _pool(unjudged, chosen, model, (measure.cutoff or 1, len(runs)), rng)
    named = QueryGroups(groups.name, model.queries, groups.labels, stratum)
    return DrawnPlan(plan, pool, named, weights)


def write_plan(drawn: DrawnPlan, subject: Subject, folder: Path) -> None:
    """Write the sheet, as `write_pool`, with the stratum of each query and the weight of those judged then beside it.

    Both stand in files of their own, so that the sheet stays blind. Raises as `write_pool`.
    """
    names = drawn.strata.queries.tolist()
    labels = [drawn.strata.labels[number] for number in drawn.strata.group.tolist()]
    strata = "".join(f"{name}\t{label}\n" for name, label in zip(names, labels, strict=True))
    kept = [(name, weight) for name, weight in zip(names, drawn.weights.tolist(), strict=True) if weight]
    weights = "".join(f"{name}\t{weight!r}\n" for name, weight in kept)
    beside = {STRATA_FILE: "query-id\tstratum\n" + strata, WEIGHTS_FILE: "query-id\tweight\n" + weights}
    write_pool(drawn.pool, subject, folder, beside)


def _of_all(human: Qrels, model: Qrels) -> Qrels:
    """People's judgments with every query that the model judged, and no other."""
    codes = model.queries.codes(human.queries.strings)
    query = codes[human.query_of_row()]
    kept = query >= 0
    return Qrels.from_columns(model.queries, human.docs, query[kept], human.doc[kept], human.grade[kept])


def _by_score(labelled: LabelledRuns) -> QueryGroups:
    """Strata of about equally many queries by the model's mean score over systems, as people's queries allow."""
    drawn, model = labelled.drawn, labelled.model
    score = np.zeros(len(model))
    for one in labelled.values.values():
        score[drawn.mine] += one.whole
        score[drawn.alone] += one.alone
    count = max(1, min(MOST_STRATA, len(drawn.mine) // QUERIES_A_STRATUM))
    cuts = np.unique(np.quantile(score, np.arange(1, count) / count)) if count > 1 else np.empty(0)
    number = np.searchsorted(cuts, score, side="right")
    used = np.unique(number)
    labels = tuple(f"score-{n + 1}-of-{len(used)}" for n in range(len(used)))
    return QueryGroups(
        "the model's score", model.queries, labels, np.searchsorted(used, number).astype(np.int32)
    )


def _pool(
    unjudged: Unjudged,
    chosen: Int64,
    model: Qrels,
    looked: tuple[int, int],
    rng: np.random.Generator,
) -> JudgingPool:
    """The pairs of the chosen queries in their order, the documents of each shuffled."""
    place = np.full(len(model), -1)
    place[chosen] = np.arange(len(chosen))
    rows = rng.permutation(np.flatnonzero(place[unjudged.query] >= 0))
    rows = rows[np.argsort(place[unjudged.query[rows]], kind="stable")]
    weight = 1 / np.log2(unjudged.rank[rows] + 1.0)
    return JudgingPool(
        model.queries, unjudged.qrels.docs, unjudged.query[rows], unjudged.doc[rows], weight, *looked
    )
