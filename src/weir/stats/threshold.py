"""Abstention: the gain from leaving uncertain queries unanswered, and a threshold of confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import numpy as np

from weir.argument_types import named_arguments
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.roles import judged_run
from weir.core.rounding import count, exact, percent, score
from weir.core.run import Run
from weir.core.scores import Scores, averaged
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, direction
from weir.registry import Registry
from weir.stats.resampling import SEED, interval, share_bounds

ABSTENTION_RATES: Float64 = np.linspace(0, 1, 11)[:-1]
_RELATIVE_ROUNDING = 1e-12
_SHOWN = (0, 3, 6, 9)  # of the rates

Ties: TypeAlias = Literal["mean", "order"]
Confidence: TypeAlias = Callable[[Float64, Int64], Float64]
"""Maps descending scores of each query, float64[n], and offsets int64[queries + 1] to float64[queries]."""

CONFIDENCES: Registry[Confidence] = Registry("confidence")


@dataclass(frozen=True)
class Abstention:
    """Mean of a measure over the remaining queries as more of the least confident ones are left out."""

    measure: str
    confidence: str
    rates: tuple[float, ...]
    """Shares of queries left out."""
    curve: tuple[float, ...]
    """Mean at each rate."""
    oracle: tuple[float, ...]
    """Mean at each rate if the queries with the lowest values are left out instead."""
    nauc: float
    """Area between curve and overall mean, divided by the oracle's; negative if confidence misleads, NaN if all
    values are equal."""

    def to_dict(self) -> dict[str, object]:
        """Return {field: value}, None for NaN."""
        return {k: None if v != v else v for k, v in asdict(self).items()}  # noqa: PLR0124 - NaN alone differs from itself


def abstention(run: Run, scores: Scores, confidence: str = "max", ties: Ties = "mean") -> list[Abstention]:
    """Return each measure's abstention curve with its normalised area (nAUC), as MTEB computes them.

    confidence: "max" (best score), "std" (of the scores) or "diff1" (best minus second).
    ties: queries of equal confidence count by their "mean", or in the "order" of the scores (older MTEB).

    Unanswered queries are least confident; NaN for a measure without values. Raises UnknownName for another
    confidence, BadValue for other ties or if no scored query is answered.
    """
    # Gisserot-Boukhlef et al. 2024; mteb retrieval_metrics.py. For logarithms the means are geometric, the area
    # is not.
    sure = confidence_of(run, scores.queries, confidence)
    if not np.isfinite(sure).any():
        raise BadValue(
            f"the run answers none of the {len(sure):,} scored queries: these are scores of another run"
        )
    abstentions = []
    for measure, values in zip(scores.measures, scores.values, strict=True):
        defined, way = ~np.isnan(values), direction(measure)
        own, oracle = (
            curve(by[defined], values[defined], ties)
            if defined.any()
            else np.full(len(ABSTENTION_RATES), np.nan)
            for by in (sure, way * values)
        )
        geometric = measure in scores.geometric
        abstentions.append(
            Abstention(
                measure,
                confidence,
                tuple(ABSTENTION_RATES.tolist()),
                tuple(averaged(mean, geometric) for mean in own.tolist()),
                tuple(averaged(mean, geometric) for mean in oracle.tolist()),
                nauc(way * own, way * oracle),
            )
        )
    return abstentions


def confidence_of(run: Run, queries: Ids, how: str) -> Float64:
    """Return the run's confidence for each query, float64[queries], as in `abstention`; -inf if unanswered.

    Raises UnknownName unless `how` is "max", "std" or "diff1".
    """
    confidence = CONFIDENCES.get(how)
    order = np.lexsort((-run.score, run.query_of_row()))
    codes = run.queries.codes(queries.strings)
    some = np.flatnonzero(codes >= 0)
    some = some[np.diff(run.ptr)[codes[some]] > 0]
    sure = np.full(len(codes), -math.inf)
    sure[some] = confidence(run.score[order], run.ptr)[codes[some]]
    return sure


def nauc(own: Float64, oracle: Float64) -> float:
    """Return the area of an abstention curve above the overall mean, divided by the oracle's; NaN if all
    values are equal.
    """
    width = np.diff(ABSTENTION_RATES)
    own_area, most = (float(np.sum(width * (means[1:] + means[:-1]) / 2)) for means in (own, oracle))
    flat = float(oracle[0]) * (ABSTENTION_RATES[-1] - ABSTENTION_RATES[0])
    room = most - flat
    if not room > _RELATIVE_ROUNDING * max(abs(flat), _RELATIVE_ROUNDING):  # NaN, too
        return math.nan
    return float((own_area - flat) / room)


def curve(sure: Float64, values: Float64, ties: Ties = "mean") -> Float64:
    """Return the mean of `values` at each of ABSTENTION_RATES, the least confident queries left out,
    float64[rates].

    sure: confidence of each query.
    ties: "mean" or "order", for equal confidence.

    One query always remains. Raises BadValue for no queries, a wrong number of confidences or other ties.
    """
    n = len(values)
    if n == 0 or len(sure) != n or ties not in ("mean", "order"):
        raise BadValue(
            f"{len(sure)} confidences for {n} values with ties '{ties}'; expected one each, and 'mean' or 'order'"
        )
    order = np.argsort(sure, kind="stable")
    sure, values = sure[order], values[order]
    if ties == "mean":
        begin = np.flatnonzero(np.append(True, sure[1:] != sure[:-1]))
        size = np.diff(np.append(begin, n))
        values = np.repeat(np.add.reduceat(values, begin) / size, size)
    # Round half to even, and keep at least one.
    return np.array([values[min(round(rate * n), n - 1) :].mean() for rate in ABSTENTION_RATES.tolist()])


@CONFIDENCES.register("max")
def best(score: Float64, ptr: Int64) -> Float64:
    """Return the best score of each query, float64[queries]; 0 for an empty ranking.

    ptr: offsets of the queries' descending scores.
    """
    return _at(score, ptr, 0)


@CONFIDENCES.register("std")
def spread(score: Float64, ptr: Int64) -> Float64:
    """Return the population standard deviation of each query's scores, float64[queries]; 0 for an empty
    ranking.
    """
    cuts = zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    return np.array([float(np.std(score[a:b])) if b > a else 0.0 for a, b in cuts])


@CONFIDENCES.register("diff1")
def lead(score: Float64, ptr: Int64) -> Float64:
    """Return the best minus the second score of each query, float64[queries]; 0 for fewer than two documents."""
    return np.where(np.diff(ptr) > 1, _at(score, ptr, 0) - _at(score, ptr, 1), 0.0)


def _at(score: Float64, ptr: Int64, place: int) -> Float64:
    values = np.zeros(len(ptr) - 1)
    longer = np.diff(ptr) > place
    values[longer] = score[ptr[:-1][longer] + place]
    return values


# A threshold: below it a query is not answered.

THRESHOLD_RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
"""Shares of false answers whose thresholds are shown."""


@named_arguments
@dataclass(frozen=True)
class ThresholdRules:
    """How a threshold is chosen; raises BadValue for a share outside 0..1."""

    max_false: float = 0.1
    """Largest share of unanswerable queries that may be answered."""
    confidence: str = "max"
    """"max", "std" or "diff1"."""
    seed: int = SEED
    """Seed of the split in halves."""

    def __post_init__(self) -> None:
        if not 0 <= self.max_false <= 1:
            raise BadValue(f"the share of false answers is {self.max_false}; expected between 0 and 1")


@dataclass(frozen=True)
class CutOff:
    """The outcome of answering only queries with a confidence of at least `score`."""

    score: float
    """Least confidence that is answered; infinite if nothing is."""
    false_answers: float
    """Share of unanswerable queries that are answered."""
    answered: float
    """Share of answerable queries that are answered."""
    kept: float
    """Mean of the measure over answerable queries, 0 for unanswered queries."""


@dataclass(frozen=True)
class Threshold:
    """A minimum confidence for an answer, chosen on half of the queries, and its outcome on the other half."""

    measure: str
    rules: ThresholdRules
    answerable: int
    """Queries with an answer in the reported half; `unanswerable` without an answer."""
    unanswerable: int
    chosen_on: tuple[int, int]
    """Answerable and unanswerable queries of the half on which it was chosen."""
    chosen: CutOff
    """Outcome on the half on which it was chosen."""
    reported: CutOff
    """Outcome of the same score on the other half."""
    false_interval: tuple[float, float]
    """Wilson's 95% interval of the share; so is `answered_interval`."""
    answered_interval: tuple[float, float]
    kept_interval: tuple[float, float]
    """Bootstrap 95% interval."""
    silent_never: float
    """Mean of the measure over the reported half if everything is answered."""
    separation: float
    """Area under the ROC curve of confidence, over all queries."""
    curve: tuple[CutOff, ...]
    """Outcomes in the reported half if `max_false` were each of THRESHOLD_RATES."""


@dataclass(frozen=True, eq=False)
class _Confidences:
    answerable: Float64
    values: Float64
    unanswerable: Float64

    def cut(self, score: float) -> CutOff:
        answered = self.answerable >= score
        kept = math.fsum(self.values[answered].tolist()) / len(self.values)
        return CutOff(score, float(np.mean(self.unanswerable >= score)), float(np.mean(answered)), kept)

    def chosen(self, max_false: float) -> float:
        allowed = math.floor(max_false * len(self.unanswerable) + 1e-9)
        wrong = np.sort(self.unanswerable)[::-1]
        limit = -math.inf if allowed >= len(wrong) else float(wrong[allowed])
        above = np.concatenate([self.answerable, self.unanswerable])
        above = above[above > limit]
        return float(above.min()) if len(above) else math.inf


def threshold(
    run: Run,
    qrels: Qrels,
    measure: Measure,
    rules: ThresholdRules | None = None,
    unanswerable: Iterable[str] = (),
) -> Threshold:
    """Return the lowest confidence to answer at, chosen on half of the queries, and its outcome on the other
    half.

    measure: averaged over answerable queries, which have a grade above 0.
    unanswerable: queries without judgments that count as unanswerable.

    Raises BadValue for fewer than four queries of either kind or a measure undefined for some or not 0 at
    worst, UnknownName for another confidence.
    """
    rules = rules or ThresholdRules()
    if measure.geometric or direction(str(measure)) <= 0:
        problem = "a query that is left unanswered scores 0, which is not the worst of it"
        raise BadValue(f"{measure}: {problem}; take a measure of which more is better, such as R@10")
    scores = scores_of(judged_run(run, qrels), (measure,))
    relevant = set(qrels.queries.take(np.unique(qrels.query_of_row()[qrels.grade > 0])).tolist())
    answerable = sorted(relevant)
    without = sorted(set(qrels.queries.tolist()).union(unanswerable) - relevant)
    values = scores.values[0][scores.queries.codes(answerable)] if answerable else np.empty(0)
    if np.isnan(values).any():
        raise BadValue(f"{measure} is undefined for a query with an answer; take another measure")
    for kind, queries in (("with an answer", answerable), ("without an answer", without)):
        if len(queries) < 4:
            raise BadValue(
                f"found {len(queries)} queries {kind}; a threshold needs at least four of either kind"
            )
    right, wrong = (confidence_of(run, Ids.of(part), rules.confidence) for part in (answerable, without))
    # Each half has half of the queries of either kind; the first is the larger one.
    generator = np.random.default_rng(rules.seed)
    yes, no = (generator.permutation(len(part)) for part in (right, wrong))
    ends = (len(yes) + 1) // 2, (len(no) + 1) // 2
    one, other = (
        _Confidences(right[of_right], values[of_right], wrong[of_wrong])
        for of_right, of_wrong in ((yes[: ends[0]], no[: ends[1]]), (yes[ends[0] :], no[ends[1] :]))
    )
    score = one.chosen(rules.max_false)
    reported = other.cut(score)
    low, high = interval(
        np.where(other.answerable >= score, other.values, 0.0), np.random.default_rng(rules.seed)
    )
    counts = len(other.answerable), len(other.unanswerable)
    sorted_wrong = np.sort(wrong)  # equal confidences count half
    below = sum(np.searchsorted(sorted_wrong, right, side) for side in ("left", "right"))
    return Threshold(
        str(measure),
        rules,
        *counts,
        (len(one.answerable), len(one.unanswerable)),
        one.cut(score),
        reported,
        share_bounds(round(reported.false_answers * counts[1]), counts[1]),
        share_bounds(round(reported.answered * counts[0]), counts[0]),
        (low, high),
        other.cut(-math.inf).kept,
        float(np.mean(below) / (2 * len(wrong))),
        tuple(other.cut(one.chosen(rate)) for rate in THRESHOLD_RATES),
    )


# Tables.


def _abstention_tables(curves: Sequence[Abstention]) -> tuple[Table, ...]:
    first = curves[0]
    head = [
        f"confidence {first.confidence}",
        "nAUC",
        *(f"{percent(first.rates[i])} left out" for i in _SHOWN),
    ]
    lines = [[one.measure, score(one.nauc), *(score(one.curve[i]) for i in _SHOWN)] for one in curves]
    return (table_of([head, *lines], right=None),)


ABSTENTIONS = ResultKind("abstention", Abstention, _abstention_tables)


def _threshold_tables(thresholds: Sequence[Threshold]) -> tuple[Table, ...]:
    def query_counts(answerable: int, unanswerable: int) -> str:
        return f"{count(answerable)} queries with an answer and {count(unanswerable)} without"

    tables: list[Table] = []
    for one in thresholds:
        chosen, rules = one.reported, one.rules
        limit = f"at most {percent(rules.max_false)} false answers"
        head = ["answer from", "false answers", "answered", one.measure]
        rows = [
            [
                "never" if math.isinf(cut.score) else exact(cut.score),
                percent(cut.false_answers),
                percent(cut.answered),
                score(cut.kept),
            ]
            for cut in dict.fromkeys(one.curve)
        ]
        tables += [
            sentences(
                f"no score keeps {limit}: nothing would be answered"
                if math.isinf(chosen.score)
                else f"answer from {exact(chosen.score)} on (confidence {rules.confidence}), chosen for {limit}",
                f"  false answers {percent(chosen.false_answers)} [{percent(one.false_interval[0])}, "
                f"{percent(one.false_interval[1])}], {percent(one.chosen.false_answers)} where it was chosen",
                f"  answered {percent(chosen.answered)} [{percent(one.answered_interval[0])}, "
                f"{percent(one.answered_interval[1])}] of queries with an answer",
                f"  {one.measure} {score(chosen.kept)} [{score(one.kept_interval[0])}, "
                f"{score(one.kept_interval[1])}], {score(one.silent_never)} where everything is answered",
                f"chosen on {query_counts(*one.chosen_on)}; reported on the other "
                f"{query_counts(one.answerable, one.unanswerable)}; split by seed {rules.seed}",
                f"a query with an answer has the higher confidence {percent(one.separation)} of the time; 50% is "
                "chance",
            ),
            table_of([head, *rows], right=4),
        ]
    return tuple(tables)


THRESHOLDS = ResultKind("threshold", Threshold, _threshold_tables, parts="curve")
