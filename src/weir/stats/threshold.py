"""Abstention: what leaving uncertain queries unanswered gains, and a threshold of confidence for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.results import result
from weir.core.rounding import count, exact, score, share
from weir.core.run import Run
from weir.core.scores import Scores, averaged
from weir.core.strings import Float64, Ids, Int64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, direction
from weir.registry import Registry
from weir.stats.distributions import normal_quantile
from weir.stats.resampling import LEVEL, SEED, interval

ABSTENTION_RATES: Float64 = np.linspace(0, 1, 11)[:-1]
_RELATIVE_ROUNDING = 1e-12
_SHOWN = (0, 3, 6, 9)  # of the rates

Ties: TypeAlias = Literal["mean", "order"]
Confidence: TypeAlias = Callable[[Float64, Int64], Float64]
"""From scores, float64[n], those of each query falling, and int64[Q + 1] where each begins, float64[Q]."""

CONFIDENCES: Registry[Confidence] = Registry("confidence")


@dataclass(frozen=True)
class Abstention:
    """The mean of a measure over the queries that are answered, when more and more of them are not.

    rates: the shares left out, least confident first; curve: the means; oracle: the means when those with the
    lowest values are left out; nauc: the area between the curve and the mean over all, as a share of the
    oracle's, 1 at best and below 0 where the confidence misleads; NaN where all queries have one value.
    """

    measure: str
    confidence: str
    rates: tuple[float, ...]
    curve: tuple[float, ...]
    oracle: tuple[float, ...]
    nauc: float

    def to_dict(self) -> dict[str, object]:
        """The same as plain values; undefined numbers are None."""
        return {k: None if v != v else v for k, v in asdict(self).items()}  # noqa: PLR0124 - NaN alone differs from itself


def abstention(run: Run, scores: Scores, confidence: str = "max", ties: Ties = "mean") -> list[Abstention]:
    """The abstention curve of each measure, with its normalised area (nAUC), as MTEB computes them.

    run: what was scored, whose scores say how sure the system is of each query; a query that it does not answer
    counts, with less confidence than any other. confidence: "max", the best score, "std", the standard deviation of
    the scores, or "diff1", the best less the second. Where values are logarithms the means are geometric, the area is
    not. ties: what counts for queries of equal confidence, their "mean" or each in turn in the "order" of the scores
    (MTEB before its issue 5613). Queries where a measure is undefined are left out of it, and one without a direction
    has no area. Raises UnknownName for another confidence, BadValue for another rule of ties. Source: Gisserot-Boukhlef
    et al. 2024; mteb retrieval_metrics.py.
    """
    sure = confidence_of(run, scores.queries, confidence)
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
    """How sure the run is of each of these queries, float64[Q]; -inf where it returned nothing. Raises UnknownName."""
    confidence = CONFIDENCES.get(how)
    order = np.lexsort((-run.score, run.query_of_row()))
    codes = run.queries.codes(queries.strings)
    some = np.flatnonzero(codes >= 0)
    some = some[np.diff(run.ptr)[codes[some]] > 0]
    sure = np.full(len(codes), -math.inf)
    sure[some] = confidence(run.score[order], run.ptr)[codes[some]]
    return sure


def nauc(own: Float64, oracle: Float64) -> float:
    """The normalised area of an abstention curve, `curve` by the confidences and by the values themselves.

    NaN where all values are equal, but for rounding.
    """
    width = np.diff(ABSTENTION_RATES)
    own_area, most = (float(np.sum(width * (means[1:] + means[:-1]) / 2)) for means in (own, oracle))
    flat = float(oracle[0]) * (ABSTENTION_RATES[-1] - ABSTENTION_RATES[0])
    room = most - flat
    if not room > _RELATIVE_ROUNDING * max(abs(flat), _RELATIVE_ROUNDING):  # NaN, too
        return math.nan
    return float((own_area - flat) / room)


def curve(sure: Float64, values: Float64, ties: Ties = "mean") -> Float64:
    """Means of the values of the queries that are left when shares RATES of the least sure ones are not answered.

    Of n queries round(rate * n) are left out, halves rounded to even, and at least one is kept.
    Raises BadValue for no queries, another number of confidences than of values, or another rule of ties.
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
    return np.array([values[min(round(rate * n), n - 1) :].mean() for rate in ABSTENTION_RATES.tolist()])


@CONFIDENCES.register("max")
def best(score: Float64, ptr: Int64) -> Float64:
    """The best score."""
    return _at(score, ptr, 0)


@CONFIDENCES.register("std")
def spread(score: Float64, ptr: Int64) -> Float64:
    """The standard deviation of all scores, divided by their number and not by one less."""
    cuts = zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
    return np.array([float(np.std(score[a:b])) if b > a else 0.0 for a, b in cuts])


@CONFIDENCES.register("diff1")
def lead(score: Float64, ptr: Int64) -> Float64:
    """The best score less the second; 0 where there is one only."""
    return np.where(np.diff(ptr) > 1, _at(score, ptr, 0) - _at(score, ptr, 1), 0.0)


def _at(score: Float64, ptr: Int64, place: int) -> Float64:
    """The score at a place, from 0, of each ranking; 0 where it is shorter."""
    values = np.zeros(len(ptr) - 1)
    longer = np.diff(ptr) > place
    values[longer] = score[ptr[:-1][longer] + place]
    return values


# A threshold: below it a query is not answered.

THRESHOLD_RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
"""Shares of false answers for which a cut-off is shown."""


@dataclass(frozen=True)
class ThresholdRules:
    """How a threshold is chosen.

    max_false: the largest share of queries without an answer that may be answered; confidence: what says how sure a
    system is, "max", "std" or "diff1"; seed: of the split in halves. Raises BadValue for a share outside 0..1.
    """

    max_false: float = 0.1
    confidence: str = "max"
    seed: int = SEED

    def __post_init__(self) -> None:
        if not 0 <= self.max_false <= 1:
            raise BadValue(f"the share of false answers is {self.max_false}; expected between 0 and 1")


@dataclass(frozen=True)
class CutOff:
    """What answering from a score on does.

    score: the least confidence that is answered, infinite where nothing is; false_answers: the share of queries without
    an answer that are answered; answered: that of queries with one; kept: the mean of the measure over queries with an
    answer, 0 for one that is not answered.
    """

    score: float
    false_answers: float
    answered: float
    kept: float


@dataclass(frozen=True)
class Threshold:
    """A threshold chosen on one half of the queries and reported on the other.

    answerable, unanswerable: queries with and without an answer in the reported half, chosen_on: those of the other;
    chosen: the cut-off on the half that it was chosen on; reported: the same score on the other half; false_interval,
    answered_interval: Wilson's 95% intervals of its shares; kept_interval: the bootstrap's; silent_never: the mean of
    the measure over the reported half where everything is answered; separation: the chance that a query with an answer
    is surer than one without, over all queries (the area under the ROC curve); curve: other cut-offs on the reported
    half.
    """

    measure: str
    rules: ThresholdRules
    answerable: int
    unanswerable: int
    chosen_on: tuple[int, int]
    chosen: CutOff
    reported: CutOff
    false_interval: tuple[float, float]
    answered_interval: tuple[float, float]
    kept_interval: tuple[float, float]
    silent_never: float
    separation: float
    curve: tuple[CutOff, ...]


@dataclass(frozen=True, eq=False)
class _Confidences:
    """How sure a system is, float64, of queries with an answer, whose values are given, and of those without.

    -inf where it returned nothing, which is no answer whatever the threshold.
    """

    answerable: Float64
    values: Float64
    unanswerable: Float64

    def cut(self, score: float) -> CutOff:
        """What answering from this score on does."""
        answered = self.answerable >= score
        kept = math.fsum(self.values[answered].tolist()) / len(self.values)
        return CutOff(score, float(np.mean(self.unanswerable >= score)), float(np.mean(answered)), kept)

    def chosen(self, max_false: float) -> float:
        """The least confidence from which on no larger share of the unanswerable is answered, infinite for none."""
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
    """The least score from which on a system should answer, so that few queries without an answer are answered.

    A query has no answer where nothing judged for it has a grade above 0, and where it is among `unanswerable` and
    nothing is judged; a query for which the run has nothing is not answered. Half of the queries of either kind, drawn
    by the seed, choose the score; the other half reports it. measure: what is kept of queries with an answer. Raises
    BadValue for fewer than four queries of either kind and a measure that is undefined for a query, UnknownName for
    another confidence.
    """
    rules = rules or ThresholdRules()
    scores = scores_of(Judged.of(run, qrels), (measure,))
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
        wilson_interval(round(reported.false_answers * counts[1]), counts[1]),
        wilson_interval(round(reported.answered * counts[0]), counts[0]),
        (low, high),
        other.cut(-math.inf).kept,
        float(np.mean(below) / (2 * len(wrong))),
        tuple(other.cut(one.chosen(rate)) for rate in THRESHOLD_RATES),
    )


def wilson_interval(count: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a share; raises BadValue for a share of nothing. Source: Wilson 1927."""
    if of < 1 or not 0 <= count <= of:
        raise BadValue(f"found {count} of {of}; expected a share of at least one")
    z = normal_quantile((1 + level) / 2)
    share, spread = count / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    reach = z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return 0.0 if count == 0 else middle - reach, 1.0 if count == of else middle + reach


# Tables.


@result("abstention", Abstention)
def abstention_tables(curves: Sequence[Abstention]) -> tuple[Table, ...]:
    """A line for each measure: its nAUC, and its mean when ever fewer queries are answered."""
    first = curves[0]
    head = [f"confidence {first.confidence}", "nAUC", *(f"{share(first.rates[i])} left out" for i in _SHOWN)]
    lines = [[one.measure, score(one.nauc), *(score(one.curve[i]) for i in _SHOWN)] for one in curves]
    return (table_of([head, *lines], right=None),)


@result("threshold", Threshold, parts="curve")
def threshold_tables(thresholds: Sequence[Threshold]) -> tuple[Table, ...]:
    """Of each threshold the chosen score with its intervals, then a table of cut-offs."""

    def queries(answerable: int, unanswerable: int) -> str:
        return f"{count(answerable)} queries with an answer and {count(unanswerable)} without"

    tables: list[Table] = []
    for one in thresholds:
        chosen, rules = one.reported, one.rules
        limit = f"at most {share(rules.max_false)} false answers"
        head = ["answer from", "false answers", "answered", one.measure]
        rows = [
            [
                "never" if math.isinf(cut.score) else exact(cut.score),
                share(cut.false_answers),
                share(cut.answered),
                score(cut.kept),
            ]
            for cut in dict.fromkeys(one.curve)
        ]
        tables += [
            sentences(
                f"no score keeps {limit}: nothing would be answered"
                if math.isinf(chosen.score)
                else f"answer from {exact(chosen.score)} on (confidence {rules.confidence}), chosen for {limit}",
                f"  false answers {share(chosen.false_answers)} [{share(one.false_interval[0])}, "
                f"{share(one.false_interval[1])}], {share(one.chosen.false_answers)} where it was chosen",
                f"  answered {share(chosen.answered)} [{share(one.answered_interval[0])}, "
                f"{share(one.answered_interval[1])}] of queries with an answer",
                f"  {one.measure} {score(chosen.kept)} [{score(one.kept_interval[0])}, "
                f"{score(one.kept_interval[1])}], {score(one.silent_never)} where everything is answered",
                f"chosen on {queries(*one.chosen_on)}; reported on the other "
                f"{queries(one.answerable, one.unanswerable)}; split by seed {rules.seed}",
                f"a query with an answer has the higher confidence {share(one.separation)} of the time; 50% is chance",
            ),
            table_of([head, *rows], right=4),
        ]
    return tuple(tables)
