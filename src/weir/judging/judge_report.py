"""What came of judging: verdicts counted, how a judge agrees with itself and with people, what moved it, its cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weir.core.qrels import Qrels
from weir.core.strings import Float64, Int64
from weir.judging.judge_prompt import GradeScale
from weir.judging.judging_pairs import JudgingPairs
from weir.judging.panel import JudgeSettings
from weir.judging.probes import ProbeResult
from weir.llm.verdicts import SCORED_KINDS
from weir.stats.label_agreement import bounds, cohen_kappa, drawn_tables, label_tables

__all__ = [
    "JudgeReport",
    "LabelConsistency",
    "Trust",
    "agreement_with_people",
    "labels_of",
    "report_warnings",
    "self_consistency",
]


@dataclass(frozen=True)
class LabelConsistency:
    """How far two sets of labels of the same pairs are equal; intervals are of 95%, by resampling queries.

    by: "grade", or "relevant or not" where the scales differ; pairs: with both labels; equal: the share of equal ones;
    kappa: Cohen's, NaN where all labels are one; rose: the share of second labels above the first.
    """

    by: str
    pairs: int
    queries: int
    equal: float
    equal_low: float
    equal_high: float
    kappa: float
    kappa_low: float
    kappa_high: float
    rose: float


@dataclass(frozen=True)
class JudgeReport:
    """What a model judged, and how far to trust it.

    subject: what the pairs belong to; model, prompt, digest: who judged and by what; answered_by: the model as it names
    itself; pairs, queries: that were to be judged; labelled: that have a grade; left_out: that nothing could be asked
    of; unanswered: answers that are still missing, as where a budget ended. grades: (grade, pairs); verdicts: (kind,
    answers); cut: answers without a verdict that max_tokens ended; tied: pairs with several modes, of which the lowest
    counts; flagged: pairs whose document speaks to the judge. consistency: of pairs judged twice; people: of judgments
    by people with the labels. answers: all that were read, also of earlier runs and of probes; tokens, answer_tokens,
    dollars: what they took.
    """

    subject: str
    model: str
    prompt: str
    digest: str
    answered_by: str
    pairs: int
    queries: int
    labelled: int
    left_out: int
    unanswered: int
    grades: tuple[tuple[float, int], ...]
    verdicts: tuple[tuple[str, int], ...]
    cut: int
    tied: int
    flagged: int
    consistency: LabelConsistency | None
    probes: tuple[ProbeResult, ...]
    people: LabelConsistency | None
    warnings: tuple[str, ...]
    answers: int
    tokens: int
    answer_tokens: int
    dollars: float | None
    settings: JudgeSettings

    @property
    def complete(self) -> bool:
        """Whether everything was answered."""
        return self.unanswered == 0


@dataclass(frozen=True)
class Trust:
    """How far a judge can be trusted; see JudgeReport."""

    consistency: LabelConsistency | None
    probes: tuple[ProbeResult, ...]
    people: LabelConsistency | None


FEWEST_TELLING_PAIRS = 20
"""Pairs of one grade from which on that says something of the judge."""
PROBE_WORDS = {
    "position": "passages when the relevant sentence stands elsewhere",
    "padding": "passages when words that say nothing are added",
    "keywords": "irrelevant passages when the query is pasted in",
    "instruction": "passages when they tell it to",
}
"""What raised grades, by probe."""


def report_warnings(report: JudgeReport, textless: int) -> list[str]:
    """What a reader of the labels should know; textless: pairs whose document is not in the collection."""
    said = [
        f"gullible: the grade rises in {probe.rose} of {probe.pairs} {PROBE_WORDS[probe.probe]}"
        for probe in report.probes
        if probe.gullible
    ]
    without = [(count, kind) for kind, count in report.verdicts if kind not in SCORED_KINDS]
    if without:
        total, kinds = sum(n for n, _ in without), ", ".join(f"{count:,} {kind}" for count, kind in without)
        cut = f"; {report.cut:,} were cut, --max-tokens allows more" if report.cut else ""
        answers = sum(count for _, count in report.verdicts)
        said.append(f"{total:,} of {answers:,} answers have no grade ({kinds}) and label nothing{cut}")
    if len(report.grades) == 1 and report.labelled >= FEWEST_TELLING_PAIRS:
        said.append(
            f"all {report.labelled:,} pairs have the grade {report.grades[0][0]:g}: the judge tells nothing apart"
        )
    if report.left_out:
        said.append(
            f"{report.left_out:,} pairs were not asked: their queries have no document that people found relevant"
        )
    if textless:
        said.append(f"{textless:,} pairs were left out: the collection has not their documents")
    if report.settings.samples > 1 and report.settings.temperature == 0:
        said.append("several samples at temperature 0 are mostly the same; give a temperature")
    return said


def labels_of(pairs: JudgingPairs, grades: Float64) -> Qrels:
    """The grades of pairs as judgments; grades: float64[n], NaN for a pair without one."""
    found: dict[str, dict[str, float]] = {}
    for row in np.flatnonzero(~np.isnan(grades)).tolist():
        query, doc = pairs.names(row)
        found.setdefault(query, {})[doc] = float(grades[row])
    return Qrels.of(found)


def self_consistency(pairs: JudgingPairs, first: Float64, again: Float64) -> LabelConsistency | None:
    """How far a judge agrees with itself; first, again: grades, NaN for none. None where no pair has both."""
    both = ~np.isnan(first) & ~np.isnan(again)
    one, other = (labels_of(pairs, np.where(both, grades, np.nan)) for grades in (first, again))
    return _consistency("grade", one, other) if both.any() else None


def agreement_with_people(pairs: JudgingPairs, grades: Float64, scale: GradeScale) -> LabelConsistency | None:
    """How far judgments of people agree with a judge's grades; None where people judged none of the pairs.

    Grades are compared where people use no others than the judge; else whether people's are above 0 and the judge's
    from relevant_from on.
    """
    if pairs.people is None:
        return None
    known = pairs.people.to_dict()
    human = np.array([known.get(q, {}).get(d, math.nan) for q, d in map(pairs.names, range(len(pairs)))])
    both = ~np.isnan(human) & ~np.isnan(grades)
    if not both.any():
        return None
    human, judged = np.where(both, human, np.nan), np.where(both, grades, np.nan)
    if set(human[both].tolist()) <= set(map(float, scale.grades)):
        return _consistency("grade", labels_of(pairs, human), labels_of(pairs, judged))
    halves = [np.where(both, values, np.nan) for values in (human > 0, judged >= scale.relevant_from)]
    return _consistency("relevant or not", *(labels_of(pairs, values) for values in halves))


def _consistency(by: str, first: Qrels, second: Qrels) -> LabelConsistency:
    tables = label_tables(first, second)
    whole = tables.table.sum(axis=0)
    drawn = list(drawn_tables(tables.table))
    equal, kappa = ([statistic(table) for table in (whole, *drawn)] for statistic in (_equal, cohen_kappa))
    rose = float(np.triu(whole, 1).sum()) / float(whole.sum())
    intervals = (equal[0], *bounds(equal[1:]), kappa[0], *bounds(kappa[1:]))
    return LabelConsistency(by, int(whole.sum()), len(tables.table), *intervals, rose)


def _equal(table: Int64) -> float:
    """The share of pairs with the same label."""
    return float(np.trace(table)) / float(table.sum())
