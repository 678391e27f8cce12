"""Estimate scores from few labels of people and many of a model, and draw queries to judge next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.results import ResultKind
from weir.core.roles import judged_run
from weir.core.rounding import between, change, count, percent, probability, score
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.strings import Float64, Int64
from weir.core.subject import Subject
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.measure import MEASURES, Measure
from weir.plugins.labels.pools import JudgingPool, write_pool
from weir.plugins.labels.sampling import (
    AT_RANDOM,
    DrawnQueries,
    Estimate,
    PairedValues,
    SampleDesign,
    corrected_share,
    numbered_strata,
)
from weir.stats.distributions import normal_quantile, student_quantile
from weir.stats.label_agreement import LabelPairs, label_pairs
from weir.stats.resampling import LEVEL
from weir.stats.score_bounds import MOST_RANKS, RISING, Unjudged, score_bounds
from weir.stats.score_rows import unanswered_note
from weir.stats.significance import adjusted

# Precision by a model's errors on the pairs that people judged too.


def corrected_precision(labelled: Float64, relevant: Float64, confusion: Float64, k: int) -> Estimate:
    """Return mean precision at k by people's labels, in 0..1, estimated from a model's labels and its error rates.

    labelled, relevant: float64[queries], documents of the first k that the model labelled, and called relevant.
    confusion: float64[queries, 2, 2], counts of pairs labelled by both, by [people's, model's] label; 1 is relevant.

    Unlabelled documents count as not relevant. Raises BadValue if people gave a single label, or the model is no
    better than chance or contradicts its error rates.
    """
    # Source: Rogan and Gladen 1978. Errors are linearised over queries as in Binder 1983, the limit of a bootstrap of
    # queries, so that pairs of a query may depend on each other; Student's t by the queries that people judged.
    cells = confusion.sum(axis=0)
    negative, positive = cells.sum(axis=1).tolist()
    if not negative or not positive:
        raise BadValue("people gave one label alone, so that the model's errors are not known; judge more")
    sensitivity, specificity = float(cells[1, 1]) / positive, float(cells[0, 0]) / negative
    slope = sensitivity + specificity - 1
    queries, all_labelled = len(labelled), float(labelled.sum())
    apparent = float(relevant.sum()) / all_labelled
    # Of the first k places some hold nothing that was labelled: these are not relevant.
    filled = all_labelled / queries / k
    of_positive = (confusion[:, 1, 1] - sensitivity * confusion[:, 1].sum(axis=1)) / positive
    of_negative = (confusion[:, 0, 0] - specificity * confusion[:, 0].sum(axis=1)) / negative
    moved = filled * ((relevant - apparent * labelled) / all_labelled + of_negative)
    moved = moved + (apparent + specificity - 1) * (labelled / k - filled) / queries
    moved_slope = of_positive + of_negative
    judged = int((confusion.sum(axis=(1, 2)) > 0).sum())
    few = judged / max(1, judged - 1)
    errors = (
        few * float(moved @ moved),
        few * float(moved @ moved_slope),
        few * float(moved_slope @ moved_slope),
    )
    times = student_quantile((1 + LEVEL) / 2, max(1, judged - 1))
    return corrected_share(filled * (apparent + specificity - 1), slope, errors, times)


# Queries to judge by stratum.

LEAST_AFTER = 2
"""Queries to judge in each stratum at least, so that its variance is known."""
POOLED_QUERIES = 4
"""Weight of the pooled variance in that of a stratum, in queries."""


@dataclass(frozen=True, eq=False)
class QueryVariances:
    """The variances from which the interval of each system's mean (a model's values, corrected by people's) follows."""

    queries: Int64
    """int64[strata]."""
    judged: Int64
    """int64[strata], queries that people judged."""
    residual: Float64
    """float64[systems, strata], variance over queries of people's values that the model does not explain."""
    explained: Float64
    """float64[systems, strata], variance that the model explains."""
    apart: Float64
    """float64[systems], variance between stratum means."""

    def half_width(self, judged: Int64) -> float:
        """Return half the width of the widest 95% interval of any system with `judged` queries, int64[strata]; inf if
        a stratum with queries has none judged."""
        here = self.queries > 0
        if (judged[here] < 1).any():
            return math.inf
        queries, count = self.queries[here], judged[here]
        share = queries / queries.sum()
        variance = (self.explained[:, here] / queries + self.residual[:, here] / count) @ share**2
        variance += self.apart / queries.sum()
        return normal_quantile((1 + LEVEL) / 2) * math.sqrt(float(variance.max(initial=0.0)))


def _query_variances(
    values: list[PairedValues], strata: tuple[NDArray[np.integer], NDArray[np.integer]], count: int
) -> QueryVariances:
    mine, alone = strata
    if len(mine) < POOLED_QUERIES:
        raise BadValue(
            f"people judged {len(mine)} queries; {POOLED_QUERIES} at least say how far the model errs: judge some "
            "drawn at random first"
        )
    judged = np.bincount(mine, minlength=count)
    queries = judged + np.bincount(alone, minlength=count)
    residual, explained = np.zeros((2, len(values), count))
    apart = np.zeros(len(values))
    for system, one in enumerate(values):
        spread = float(np.concatenate([one.whole, one.alone]).var(ddof=1))
        covariance = float(np.cov(one.human, one.whole)[0, 1])
        slope = min(1.0, max(0.0, covariance / spread)) if spread else 0.0
        residual[system] = _variances_within_strata(one.human - slope * one.whole, mine, judged)
        explained[system] = np.maximum(
            _variances_within_strata(one.human, mine, judged) - residual[system], 0.0
        )
        share = queries / queries.sum()
        mean = np.divide(np.bincount(mine, one.human, count), judged, out=np.zeros(count), where=judged > 0)
        judged_share = np.where(judged > 0, share, 0.0)
        centre = float(judged_share @ mean) / float(judged_share.sum())
        apart[system] = float(judged_share @ (mean - centre) ** 2)
    return QueryVariances(queries.astype(np.int64), judged.astype(np.int64), residual, explained, apart)


def _variances_within_strata(
    values: Float64, stratum: NDArray[np.integer], judged: NDArray[np.integer]
) -> Float64:
    count = len(judged)
    mean = np.divide(np.bincount(stratum, values, count), judged, out=np.zeros(count), where=judged > 0)
    squares = np.bincount(stratum, (values - mean[stratum]) ** 2, count)
    together = float(squares.sum()) / max(1, len(values) - int((judged > 0).sum()))
    variance: Float64 = (squares + POOLED_QUERIES * together) / (np.maximum(judged - 1, 0) + POOLED_QUERIES)
    return variance


def allocated(
    variances: QueryVariances, cost: Float64, more: int | None, width: float | None = None
) -> Int64:
    """Return how many more queries to judge in each stratum, int64[strata], for the narrowest intervals.

    cost: float64[strata], pairs to judge for a query.
    more: number of queries. None takes as many as `width` needs, or all.
    width: half width to reach, ignored if `more` is given.
    """
    # Neyman 1934, greedily: after two of each stratum, the next query goes where it takes most from the variance of the
    # systems' mean for each pair that it costs.
    queries, judged = variances.queries, variances.judged.copy()
    share = queries / queries.sum()
    weight = share**2 * variances.residual.mean(axis=0) / np.maximum(cost, 1e-9)
    limit = int((queries - judged).sum()) if more is None else min(more, int((queries - judged).sum()))
    for _ in range(limit):
        if width is not None and more is None and variances.half_width(judged) <= width:
            break
        gain = weight * (1 / np.maximum(judged, 0.5) - 1 / (judged + 1.0)) + 1e-300
        gain[judged < np.minimum(queries, LEAST_AFTER)] = np.inf
        gain[judged >= queries] = -1.0
        judged[int(np.argmax(gain))] += 1
    return judged - variances.judged


# Corrected scores of systems.

ESTIMABLE = ("ContextPrecision", "DCG", "ERR", "P", "RBP", "RR", "SDCG", "Success")
"""Measures that depend only on labels of returned documents, unlike nDCG, AP and recall."""
SUMS = ("DCG", "P", "RBP", "SDCG")
"""Measures that are sums over documents, so that a sample of a query's documents estimates them."""
EVERY_PAIR = 8
"""With more systems than this, each is compared with the first alone."""


@dataclass(frozen=True)
class CorrectedDifference:
    """An estimated mean difference: `other` minus the system whose CorrectedScore holds it."""

    other: str
    human: Estimate
    model: float
    """By the model's labels alone."""
    corrected: Estimate
    p: float
    """Two-sided p-value of `corrected`."""
    adjusted: float
    """p corrected by Holm over all differences of one estimate."""


@dataclass(frozen=True)
class CorrectedScore:
    """A system's mean score by people's labels alone, by a model's alone, and by the two combined."""

    system: str
    measure: str
    human_queries: int
    model_queries: int
    judged: float
    """Share of the first k documents judged by people, in their queries."""
    human: Estimate
    """From people's labels alone."""
    model: float
    """From the model's labels alone, with their error."""
    corrected: Estimate
    """By prediction-powered inference."""
    drawn: str = str(AT_RANDOM)
    """How the judged queries were drawn."""
    left_out: int = 0
    """Queries that people judged and the model did not."""
    rogan_gladen: Estimate | None = None
    """P@k by the model's sensitivity and specificity; None if undefined or refused."""
    rogan_gladen_refused: str = ""
    """Reason of a refusal."""
    least: float = math.nan
    """Lower bound of the mean for any labels of the pairs that people have not judged; NaN if unknown."""
    most: float = math.nan
    """Upper bound for any such labels; NaN if unknown."""
    differences: tuple[CorrectedDifference, ...] = ()
    """To later systems of the list."""


@dataclass(frozen=True, eq=False)
class _LabelledRuns:
    """Systems' values by people's and by a model's labels, on the queries that the model judged."""

    model: Qrels
    measure: Measure
    drawn: DrawnQueries
    """Which queries people judged."""
    values: Mapping[str, PairedValues]
    pairs: Mapping[str, LabelPairs]
    """Labels of each system's first k documents."""

    @staticmethod
    def of(
        runs: Mapping[str, Run],
        human: Qrels,
        model: Qrels,
        measure: Measure,
        design: SampleDesign = AT_RANDOM,
    ) -> _LabelledRuns:
        """Return each run's values by people's and by the model's labels.

        Raises BadValue for a measure that is condensed, without cut-off or not in ESTIMABLE (SUMS if pairs were
        drawn), and for too few queries judged by both.
        """
        by_ideal = dict(measure.settings).get("gain") == "scaled"  # RBP by the best grade of the query
        k = measure.cutoff
        if measure.name not in ESTIMABLE or k is None or measure.condensed or by_ideal:
            takes = ", ".join(f"{one}@k" for one in ESTIMABLE)
            raise BadValue(
                f"{measure} cannot be estimated from two kinds of labels, for its ideal ranking is another by each; "
                f"take one of {takes}"
            )
        if design.pairs and measure.name not in SUMS:
            takes = ", ".join(f"{one}@k" for one in SUMS)
            raise BadValue(
                f"{measure} is no sum over documents, so that a part of a query's documents says nothing of it; take "
                f"one of {takes}, or judge the first {k} documents of fewer queries"
            )
        runs = {name: run.top(k) for name, run in runs.items()}  # deeper documents do not count
        rows = label_pairs(list(runs.values()), human, model, k)
        pairs = dict(zip(runs, rows, strict=True))
        codes = model.queries.codes(human.queries.strings)
        mine = codes[codes >= 0]
        if design.pairs:
            mine = np.unique(np.concatenate([one.query[one.judged] for one in rows])) if rows else mine[:0]
        drawn = DrawnQueries.of(design, model.queries, mine)
        if design.pairs:
            values = {name: _values_of_pairs(one, model, measure, drawn) for name, one in pairs.items()}
            return _LabelledRuns(model, measure, drawn, values, pairs)
        both, values = human.queries.codes(model.queries.strings.take(drawn.mine)), {}
        for name, run in runs.items():  # what one of the two did not judge counts as not relevant
            by_human = measure.per_query(Judged.of(run, human))[both]
            by_model = measure.per_query(Judged.of(run, model))
            of_mine = by_model[drawn.mine]
            limits = (0.0, 1.0) if MEASURES.get(measure.name).bounded else None
            values[name] = PairedValues(by_human, of_mine, of_mine, by_model[drawn.alone], limits)
        return _LabelledRuns(model, measure, drawn, values, pairs)


def corrected_scores(
    runs: Mapping[str, Run], human: Qrels, model: Qrels, measure: Measure, design: SampleDesign = AT_RANDOM
) -> list[CorrectedScore]:
    """Return each run's score by the model's labels, corrected by people's, with its differences to later runs.

    Raises BadValue as `_LabelledRuns.of` does, and if the model alone judged too few queries of any stratum.
    """
    labelled = _LabelledRuns.of(runs, human, model, measure, design)
    drawn, names = labelled.drawn, list(runs)
    most = 1.0 if MEASURES.get(measure.name).bounded else math.inf
    left_out = int((model.queries.codes(human.queries.strings) < 0).sum())
    of_mine = human.queries.codes(model.queries.strings.take(drawn.mine))
    people = human.only(of_mine[of_mine >= 0])
    unanswered = _unanswered(runs, human, model, design)
    scores = []
    for name, values in labelled.values.items():
        answered = 1 - int(unanswered[name].missing.sum()) / len(model)
        joined = judged_run(runs[name], people)
        returned = int(np.minimum(joined.retrieved, measure.cutoff or 1).sum())
        judged = int((joined.rank <= (measure.cutoff or 1)).sum()) / returned if returned else 0.0
        scores.append(
            CorrectedScore(
                name,
                str(measure),
                len(drawn.mine),
                len(drawn.mine) + len(drawn.alone),
                judged,
                drawn.estimated_mean(values, 0.0).estimate().clipped(0.0, most),
                values.by_model,
                drawn.estimated_mean(values).estimate().clipped(0.0, most * answered if answered else 0.0),
                str(design),
                left_out,
                *_precision_by_errors(labelled, name),
            )
        )
    pairs = list(combinations(names, 2)) if len(names) <= EVERY_PAIR else [(names[0], n) for n in names[1:]]
    pairs = [pair for pair in pairs if not any(unanswered[name].outside_draw for name in pair)]
    differences = []
    for first, second in pairs:
        values = labelled.values[second].minus(labelled.values[first])
        corrected = drawn.estimated_mean(values)
        differences.append(
            CorrectedDifference(
                second,
                drawn.estimated_mean(values, 0.0).estimate().clipped(-most, most),
                values.by_model,
                corrected.estimate().clipped(-most, most),
                corrected.p,
                math.nan,
            )
        )
    together = adjusted(np.array([one.p for one in differences]), "holm").tolist()
    by_system: dict[str, list[CorrectedDifference]] = {name: [] for name in names}
    for (first, _), one, p in zip(pairs, differences, together, strict=True):
        by_system[first].append(replace(one, adjusted=p))
    return [replace(score, differences=tuple(by_system[score.system])) for score in scores]


def _values_of_pairs(pairs: LabelPairs, model: Qrels, measure: Measure, drawn: DrawnQueries) -> PairedValues:
    whole = pairs.worth(measure, pairs.model, model.queries)
    judged = pairs.judged
    by_human = pairs.worth(measure, np.where(np.isnan(pairs.human), 0.0, pairs.human), model.queries)

    def summed(rows: Int64, worth: Float64) -> Float64:
        return np.bincount(pairs.query[rows], worth, minlength=len(model)).astype(np.float64)

    all_rows = np.arange(len(pairs.query))
    by_model = summed(all_rows, whole)
    return PairedValues(
        summed(judged, by_human[judged] * pairs.drawn[judged])[drawn.mine],
        summed(judged, whole[judged] * pairs.drawn[judged])[drawn.mine],
        by_model[drawn.mine],
        by_model[drawn.alone],
    )


def _precision_by_errors(labelled: _LabelledRuns, name: str) -> tuple[Estimate | None, str]:
    measure, pairs, drawn = labelled.measure, labelled.pairs[name], labelled.drawn
    if measure.name != "P" or drawn.strata is not None or drawn.weights is not None:
        return None, ""
    queries, judged = len(labelled.model), pairs.judged
    by_model = pairs.worth(measure, pairs.model, labelled.model.queries) > 0
    by_human = (
        pairs.worth(measure, np.where(np.isnan(pairs.human), 0.0, pairs.human), labelled.model.queries) > 0
    )
    confusion = np.zeros((queries, 2, 2))
    np.add.at(
        confusion,
        (pairs.query[judged], by_human[judged].astype(np.intp), by_model[judged].astype(np.intp)),
        1.0,
    )
    counted = (
        np.bincount(pairs.query, minlength=queries).astype(np.float64),
        np.bincount(pairs.query, by_model, minlength=queries).astype(np.float64),
    )
    try:
        return corrected_precision(*counted, confusion, measure.cutoff or 1), ""
    except BadValue as refused:
        return None, str(refused)


# Score bounds of corrected scores, and plans of the next queries to judge.

STRATA_FILE, WEIGHTS_FILE = "strata.tsv", "weights.tsv"
MOST_STRATA = 4
QUERIES_A_STRATUM = 5
"""Judged queries for each stratum made from the model's scores."""
SEED = 13


def estimated_scores(
    runs: Mapping[str, Run], human: Qrels, model: Qrels, measure: Measure, design: SampleDesign = AT_RANDOM
) -> list[CorrectedScore]:
    """Return `corrected_scores`, cut to the scores that any labels of the unjudged pairs could give.

    For a measure not in RISING or deeper than MOST_RANKS bounds are NaN, and nothing is cut.
    """
    scores = corrected_scores(runs, human, model, measure, design)
    if measure.name not in RISING or (measure.cutoff or 0) > MOST_RANKS:
        return scores
    certain = score_bounds(runs, _of_all(human, model), measure, float(model.grade.max(initial=0)))
    bounded = []
    for one in scores:
        least, most = (float(end.mean()) for end in (certain[one.system].low, certain[one.system].high))
        bounded.append(replace(one, corrected=one.corrected.clipped(least, most), least=least, most=most))
    return bounded


@dataclass(frozen=True, eq=False)
class _Unanswered:
    missing: NDArray[np.bool_]
    """bool[queries of the model], not answered by the system."""
    judged: bool
    """Whether people judged any of these queries."""
    outside_draw: bool
    """Whether people judged none of them, although 95% of random draws hold one: the judged queries are not
    like the rest."""


def _unanswered(
    runs: Mapping[str, Run], human: Qrels, model: Qrels, design: SampleDesign
) -> dict[str, _Unanswered]:
    people = np.isin(np.arange(len(model)), model.queries.codes(human.queries.strings))
    answered = {name: Judged.of(run, model).answered for name, run in runs.items()}
    # A part of a query's documents can be judged where some system returned one.
    drawable = (
        np.logical_or.reduce(list(answered.values())) if design.pairs and runs else np.ones_like(people)
    )
    found = {}
    for name, own in answered.items():
        judged = bool((people & ~own).any())
        chance = design.chance_of_none(model.queries, people & drawable, ~own & drawable, drawable)
        found[name] = _Unanswered(~own, judged, not judged and chance < 1 - LEVEL)
    return found


def unanswered_notes(
    runs: Mapping[str, Run], human: Qrels, model: Qrels, design: SampleDesign = AT_RANDOM
) -> list[Note]:
    """Return a note for each run that leaves some of the model's queries unanswered."""
    notes = []
    for name, one in _unanswered(runs, human, model, design).items():
        if not one.missing.any():
            continue
        note = unanswered_note(int(one.missing.sum()), len(model), "").about(name)
        alone = "; people judged none of them, "
        alone += (
            "which fewer than 5% of random draws do: its differences to others are left out; judge some of them"
            if one.outside_draw
            else "and the correction takes the model to err there as elsewhere"
        )
        notes.append(note if one.judged else replace(note, text=note.text + alone))
    return notes


@dataclass(frozen=True)
class StratumPlan:
    """A stratum of queries, with the number `more` to judge next."""

    stratum: str
    queries: int
    judged: int
    more: int
    weight: float
    """Weight of each judged query afterwards."""


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """The queries to judge next, and the expected half widths of the widest 95% interval."""

    measure: str
    systems: int
    queries: tuple[str, ...]
    """In the order of the sheet."""
    pairs: int
    """Number of documents to judge."""
    now: float
    """Half width before; `then` after these queries, `best` after all queries."""
    then: float
    best: float
    width: float
    """The requested half width; NaN for none."""
    needed: int
    """Further queries for `width`; -1 if all are not enough."""
    strata: tuple[StratumPlan, ...]


def next_queries(
    runs: Mapping[str, Run],
    labels: tuple[Qrels, Qrels],
    measure: Measure,
    count: int | None = None,
    width: float | None = None,
    strata: QueryGroups | None = None,
) -> tuple[QueryPlan, JudgingPool, QueryGroups, Float64]:
    """Return (plan, pool of documents, strata, weights) for queries drawn at random that people should judge next.

    labels: (people's, the model's).
    width: half width to reach, which sets the number of queries if `count` is None.
    strata: strata of the earlier draw; None makes up to four from the model's scores.

    Strata and weights (float64) are of each query that the model judged. Raises BadValue without a positive count or
    width, if nothing is left to judge, and if no estimate is possible.
    """
    if (count is None and width is None) or (count or 1) < 1 or (width or 1.0) <= 0:
        raise BadValue(f"found {count} queries and a width of {width}; give one of them, above 0")
    human, model = labels
    labelled = _LabelledRuns.of(runs, human, model, measure)
    drawn, values = labelled.drawn, list(labelled.values.values())
    groups = _strata_by_score(labelled) if strata is None else strata
    stratum = numbered_strata(groups, model.queries)
    variances = _query_variances(values, (stratum[drawn.mine], stratum[drawn.alone]), len(groups))
    unjudged = Unjudged.of(list(runs.values()), _of_all(human, model), measure.cutoff or 1)
    to_judge = np.bincount(unjudged.query, minlength=len(model))
    cost = np.bincount(stratum[drawn.alone], to_judge[drawn.alone], len(groups)) / np.maximum(
        1, variances.queries - variances.judged
    )
    for_width = None if width is None else allocated(variances, cost, None, width)
    more = allocated(variances, cost, count) if count is not None else for_width
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
    reached = for_width is not None and variances.half_width(variances.judged + for_width) <= (width or 0.0)
    plan = QueryPlan(
        str(measure),
        len(runs),
        tuple(model.queries.take(chosen).tolist()),
        int(to_judge[chosen].sum()),
        variances.half_width(variances.judged),
        variances.half_width(after),
        variances.half_width(variances.queries),
        float("nan") if width is None else width,
        int(for_width.sum()) if for_width is not None and reached else -1,
        tuple(
            StratumPlan(label, int(n), int(j), int(m), float(n / max(1, j + m)))
            for label, n, j, m in zip(groups.labels, variances.queries, variances.judged, more, strict=True)
        ),
    )
    weights = np.zeros(len(model))
    weights[np.concatenate([drawn.mine, chosen])] = 1.0
    weights *= (variances.queries / np.maximum(1, after))[stratum]
    place = np.full(len(model), -1)  # queries in their order, the documents of each shuffled
    place[chosen] = np.arange(len(chosen))
    rows = rng.permutation(np.flatnonzero(place[unjudged.query] >= 0))
    rows = rows[np.argsort(place[unjudged.query[rows]], kind="stable")]
    pool = JudgingPool(
        model.queries,
        unjudged.qrels.docs,
        unjudged.query[rows],
        unjudged.doc[rows],
        1 / np.log2(unjudged.rank[rows] + 1.0),
        measure.cutoff or 1,
        len(runs),
    )
    return plan, pool, QueryGroups(groups.name, model.queries, groups.labels, stratum), weights


def write_plan(
    pool: JudgingPool, strata: QueryGroups, weights: Float64, subject: Subject, folder: Path
) -> None:
    """Write the sheet to judge, strata.tsv and weights.tsv (without zeros) to a new folder; raises BadValue if it
    exists."""
    names = strata.queries.tolist()
    labels = [strata.labels[number] for number in strata.group.tolist()]
    labelled = "".join(f"{name}\t{label}\n" for name, label in zip(names, labels, strict=True))
    weighted = "".join(
        f"{name}\t{weight!r}\n" for name, weight in zip(names, weights.tolist(), strict=True) if weight
    )
    beside = {STRATA_FILE: "query-id\tstratum\n" + labelled, WEIGHTS_FILE: "query-id\tweight\n" + weighted}
    write_pool(pool, subject, folder, beside)


def _of_all(human: Qrels, model: Qrels) -> Qrels:
    codes = model.queries.codes(human.queries.strings)
    query = codes[human.query_of_row()]
    rows = query >= 0
    return Qrels.from_columns(model.queries, human.docs, query[rows], human.doc[rows], human.grade[rows])


def _strata_by_score(labelled: _LabelledRuns) -> QueryGroups:
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


# Tables.

WHOLE_SHARE = 0.95
"""Share of documents judged by people below which a note asks if they judged a random part."""


def _estimate_tables(scores: Sequence[CorrectedScore]) -> tuple[Table, ...]:
    first = scores[0]
    by_errors = any(one.rogan_gladen is not None for one in scores)
    certain = any(not math.isnan(one.least) for one in scores)
    head = ["system", f"{first.measure} by people", "by the model", "corrected", "weight"]
    systems = [[*head, *["Rogan-Gladen"] * by_errors, *["certain"] * certain]]
    several = sum(len(one.differences) for one in scores) > 1
    differences = [["difference", "by people", "by the model", "corrected", "p", *["p (Holm)"] * several]]
    for one in scores:
        line = [one.system, _interval_shown(one.human), score(one.model), _interval_shown(one.corrected)]
        line.append(f"{one.corrected.weight:.2f}")
        if by_errors:
            line.append("-" if one.rogan_gladen is None else _interval_shown(one.rogan_gladen))
        systems.append([*line, *[f"{score(one.least)} to {score(one.most)}"] * certain])
        differences += [
            [
                f"{other.other} - {one.system}",
                _interval_shown(other.human, signed=True),
                change(other.model),
                _interval_shown(other.corrected, signed=True),
                probability(other.p),
                *[probability(other.adjusted)] * several,
            ]
            for other in one.differences
        ]
    tables = [table_of(systems), *([table_of(differences)] if len(differences) > 1 else [])]
    return (*tables, *map(sentences, _estimate_notes(scores, by_errors, certain)))


def _estimate_notes(scores: Sequence[CorrectedScore], by_errors: bool, certain: bool) -> Iterator[str]:
    first, judged = scores[0], min(one.judged for one in scores)
    documents = "all documents" if judged == 1 else f"{percent(judged)} or more of the documents"
    basis = (
        f"people judged {count(first.human_queries)} of {count(first.model_queries)} queries ({first.drawn}), "
        f"{documents} that are scored there; intervals of 95% "
        "over queries; weight: how much the model's labels count (PPI++)"
    )
    if by_errors:
        basis += "; Rogan-Gladen: by the model's sensitivity and specificity, if it errs alike everywhere"
    if certain:
        basis += "; certain: whatever the pairs are that people have not judged"
    yield basis
    if any(
        math.isnan(e.low)
        for one in scores
        for e in (one.human, one.corrected, *(d.corrected for d in one.differences))
    ):
        yield "no interval: all values that people judged are equal, so that nothing tells how they vary"
    if first.left_out:
        yield f"note: the model did not judge {count(first.left_out)} queries that people did; they are left out"
    refused = [one for one in scores if one.rogan_gladen_refused]
    if refused:
        names = ", ".join(one.system for one in refused)
        yield f"note: no Rogan-Gladen for {names}: {refused[0].rogan_gladen_refused}"
    if judged < WHOLE_SHARE and "part" not in first.drawn:
        yield (
            f"note: people judged {percent(judged)} of the documents that are scored in their queries, and the "
            "others count as not relevant; if they judged a random part of each query, say so: `pairs=True`"
        )


ESTIMATES = ResultKind("estimate", CorrectedScore, _estimate_tables)


def _query_plan_tables(plans: Sequence[QueryPlan]) -> tuple[Table, ...]:
    tables = []
    for plan in plans:
        lines = [["stratum", "queries", "judged", "next", "weight then"]]
        lines += [
            [one.stratum, count(one.queries), count(one.judged), count(one.more), f"{one.weight:.2f}"]
            for one in plan.strata
        ]
        narrowing = 100 * (plan.now - plan.then) / plan.pairs if plan.pairs else math.nan
        tables += [
            table_of(lines, right=4),
            sentences(
                f"judging {count(len(plan.queries))} more queries ({count(plan.pairs)} pairs) is expected to narrow "
                f"{plan.measure} from ±{score(plan.now)} to ±{score(plan.then)}, {score(narrowing)} for 100 pairs; "
                f"with every query judged it is ±{score(plan.best)}"
            ),
        ]
        if not math.isnan(plan.width):
            tables.append(
                sentences(
                    f"±{plan.width:g} is out of reach: with all queries judged it is ±{score(plan.best)}; that takes "
                    "more queries in the collection"
                    if plan.needed < 0
                    else f"±{plan.width:g} takes {count(plan.needed)} more queries"
                )
            )
    return tuple(tables)


QUERY_PLANS = ResultKind("next queries", QueryPlan, _query_plan_tables, parts="strata")


def _interval_shown(estimate: Estimate, signed: bool = False) -> str:
    text = change if signed else score
    return f"{text(estimate.value)} {between(estimate.low, estimate.high, text)}"
