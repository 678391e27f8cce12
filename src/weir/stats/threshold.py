"""Answer or stay silent: the score below which not to answer, chosen on some queries and reported on others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weir.core.ids import Ids
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure
from weir.stats.abstention import confidence_of
from weir.stats.bootstrap import LEVEL, SEED, interval
from weir.stats.distributions import normal_quantile

__all__ = ["CutOff", "Threshold", "ThresholdRules", "threshold", "wilson_interval"]

RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
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
    """How sure a system is, float64, of queries with an answer, whose values are given, and of those without."""

    answerable: Float64
    values: Float64
    unanswerable: Float64

    def halves(self, seed: int) -> tuple[_Confidences, _Confidences]:
        """Two halves, each with half of the queries of either kind; the first is the larger one."""
        generator = np.random.default_rng(seed)
        yes, no = (generator.permutation(len(part)) for part in (self.answerable, self.unanswerable))
        cuts = (len(yes) + 1) // 2, (len(no) + 1) // 2
        rows = ((yes[: cuts[0]], no[: cuts[1]]), (yes[cuts[0] :], no[cuts[1] :]))
        one, other = (_Confidences(self.answerable[y], self.values[y], self.unanswerable[n]) for y, n in rows)
        return one, other

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

    def separation(self) -> float:
        """The chance that an answerable query is surer than an unanswerable one, equal ones counting half."""
        wrong = np.sort(self.unanswerable)
        below = np.searchsorted(wrong, self.answerable, "left") + np.searchsorted(
            wrong, self.answerable, "right"
        )
        return float(np.mean(below) / (2 * len(wrong)))


def threshold(
    run: Run,
    qrels: Qrels,
    measure: Measure,
    rules: ThresholdRules | None = None,
    unanswerable: Iterable[str] = (),
) -> Threshold:
    """The least score from which on a system should answer, so that few queries without an answer are answered.

    A query has no answer where nothing judged for it has a grade above 0, and where it is among `unanswerable` and
    nothing is judged; a query that the run does not answer has confidence 0. Half of the queries of either kind, drawn
    by the seed, choose the score; the other half reports it. measure: what is kept of queries with an answer. Raises
    BadValue for fewer than four queries of either kind and a measure that is undefined for a query, UnknownName for
    another confidence.
    """
    rules = rules or ThresholdRules()
    found = _confidences(run, qrels, measure, rules.confidence, set(unanswerable))
    for what, part in (("with an answer", found.answerable), ("without an answer", found.unanswerable)):
        if len(part) < 4:
            raise BadValue(
                f"found {len(part)} queries {what}; a threshold needs at least four of either kind"
            )
    one, other = found.halves(rules.seed)
    score = one.chosen(rules.max_false)
    reported = other.cut(score)
    kept = np.where(other.answerable >= score, other.values, 0.0)
    low, high = interval(kept, np.random.default_rng(rules.seed))
    counts = len(other.answerable), len(other.unanswerable)
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
        found.separation(),
        tuple(other.cut(one.chosen(rate)) for rate in RATES),
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


def _confidences(
    run: Run, qrels: Qrels, measure: Measure, confidence: str, flagged: set[str]
) -> _Confidences:
    judged = Judged.of(run, qrels)
    scores = scores_of(judged, (measure,))
    positive = np.zeros(len(qrels), np.bool_)
    positive[qrels.query_of_row()[qrels.grade > 0]] = True
    names = qrels.queries.tolist()
    answerable = sorted(q for q, has in zip(names, positive.tolist(), strict=True) if has)
    without = sorted(set(names).union(flagged) - set(answerable))
    values = scores.values[0][scores.queries.codes(answerable)] if answerable else np.empty(0)
    if np.isnan(values).any():
        raise BadValue(f"{measure} is undefined for a query with an answer; take another measure")
    sure = [confidence_of(run, Ids.of(part), confidence) for part in (answerable, without)]
    return _Confidences(sure[0], values, sure[1])
