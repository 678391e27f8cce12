"""Decide whether a model's labels agree with people's well enough to be used."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import MODEL, Qrels, merge_qrels
from weir.core.rounding import between, change, count, score
from weir.core.scores import LabelUse, Scores
from weir.core.strings import Int64
from weir.errors import BadValue, UnknownName
from weir.measures.evaluate import Conventions, scores_of
from weir.measures.measure import Measure
from weir.stats.label_agreement import (
    STATISTICS,
    accuracy_bounds,
    binary_table,
    bounds,
    cohen_kappa,
    drawn_tables,
    label_tables,
    shared_pairs,
)
from weir.stats.resampling import fewest

DEFAULT_LEAST = "binary kappa 0.4"
"""Minimum of the interval's lower end; see docs/decisions/015-labels.md."""
FEWEST_PAIRS = 30
"""Pairs judged by both below which a kappa says nothing (McHugh 2012)."""
BINARY = "binary kappa"
PLACES = 10
"""Ranks from 1 in which judged documents are counted as a model's or people's."""
_ERRORS = ("mean absolute error", "bias")  # of which more is not better
_WRITTEN = re.compile(r"(?P<statistic>.+?)(?: from (?P<cut>[0-9.]+))? (?P<least>-?[0-9.]+)")


@dataclass(frozen=True)
class LeastAgreement:
    """The agreement with people that the lower end of a model's 95% interval must reach.

    Prints as "binary kappa from 2 0.5": at least 0.5, grades from 2 being relevant.
    """

    statistic: str
    """A key of label_agreement.STATISTICS, or "binary kappa", for which grades from `cut` are relevant."""
    least: float
    """Minimum of the interval's lower end."""
    cut: float = 1.0

    def __str__(self) -> str:
        return f"{self.statistic_name} {self.least:g}"

    @property
    def statistic_name(self) -> str:
        """The statistic, followed by the lowest relevant grade if that is not 1."""
        return self.statistic if self.cut == 1 else f"{self.statistic} from {self.cut:g}"


def parse_least(text: str) -> LeastAgreement:
    """Return the required agreement in a text such as "binary kappa from 2 0.5".

    Raises UnknownName for another statistic, BadValue for other syntax or a number outside -1..1.
    """
    written = _WRITTEN.fullmatch(" ".join(text.split()))
    if written is None:
        raise BadValue(f"`least`: found '{text}'; expected a statistic and a number, as in '{DEFAULT_LEAST}'")
    statistic, cut = written["statistic"], written["cut"]
    statistics = [BINARY, *(name for name in STATISTICS if name not in _ERRORS)]
    if statistic not in statistics:
        raise UnknownName("statistic of agreement", statistic, statistics)
    if cut is not None and statistic != BINARY:
        raise BadValue(f"`least`: 'from {cut}' is of '{BINARY}' alone; '{statistic}' is of all grades")
    try:
        least, from_grade = float(written["least"]), float(cut or 1)
    except ValueError:
        least, from_grade = math.nan, 1.0
    if not -1 <= least <= 1:
        raise BadValue(f"`least`: found '{text}'; expected a number from -1 to 1 after the statistic")
    return LeastAgreement(statistic, least, from_grade)


@dataclass(frozen=True)
class Calibration:
    """The agreement of a model's labels with people's on pairs that both judged."""

    least: LeastAgreement
    value: float
    """The statistic; NaN, like its 95% interval, if no pair is judged by both."""
    low: float
    high: float
    pairs: int
    queries: int
    bias: float
    """The model's mean grade minus people's."""
    passed: bool
    """True if `low` reaches the minimum, with enough pairs and queries."""

    def sentence(self) -> str:
        """Return a clause with the statistic, its interval and basis, and the bias or why it fails."""
        if not self.pairs:
            return "not calibrated, as no pair is judged by people and by it"
        basis = f"on {count(self.pairs)} pairs of {count(self.queries)} queries judged by both"
        statistic = f"{self.least.statistic_name} {score(self.value)} {between(self.low, self.high)}"
        if math.isnan(self.value):
            statistic = f"{self.least.statistic_name} undefined"
        if self.passed:
            return f"{statistic} {basis}, at least {self.least.least:g} asked, bias {change(self.bias)}"
        if self.pairs < FEWEST_PAIRS or self.queries < fewest():
            need = f"{FEWEST_PAIRS} pairs of {fewest()} queries are needed"
            return f"not calibrated: {statistic} {basis}, and {need}"
        return f"not calibrated: {statistic} {basis}, where its interval must lie above {self.least.least:g}"


def calibration(people: Qrels, model: Qrels, least: LeastAgreement) -> Calibration:
    """Return the agreement of a model's labels with people's, and whether it passes.

    It passes if the interval's lower end, or a value that no resample changes, reaches `least` on
    FEWEST_PAIRS pairs of `fewest()` queries. NaN without shared pairs. Raises BadValue for more than
    MOST_LABELS grades.
    """
    if not len(shared_pairs(people, model)[0]):
        return Calibration(least, math.nan, math.nan, math.nan, 0, 0, math.nan, False)
    tables = label_tables(people, model)
    whole = tables.table.sum(axis=0)

    def statistic(table: Int64) -> float:
        if least.statistic != BINARY:
            return STATISTICS[least.statistic](table, tables.labels)
        return cohen_kappa(binary_table(table, int(np.searchsorted(tables.labels, least.cut))))

    value = statistic(whole)
    drawn = list(drawn_tables(tables.table))
    low, high = bounds([statistic(table) for table in drawn])
    if least.statistic == "accuracy":
        low, high = accuracy_bounds(whole, drawn)
    pairs, queries = int(whole.sum()), len(tables.table)
    enough = pairs >= FEWEST_PAIRS and queries >= fewest()
    bias = STATISTICS["bias"](whole, tables.labels)
    surely = value if math.isnan(low) else low  # the same in every resample
    return Calibration(least, value, low, high, pairs, queries, bias, bool(enough and surely >= least.least))


@dataclass(frozen=True, eq=False)
class GatedLabels:
    """The judgments to score by: people's, and a model's on unjudged pairs if calibrated."""

    qrels: Qrels
    """People's judgments and, if the calibration passed, the model's on unjudged pairs of the same queries."""
    people: Qrels
    name: str
    """Name of the model's labels in messages."""
    calibration: Calibration
    left_out: int = 0
    """Queries that only the model judged; 0 unless the calibration passed."""
    model_judgments: int = 0
    """Judgments in the people's file whose origin is a model, which are ignored."""

    def marked(
        self,
        scores: Scores,
        joined: Judged,
        join: Callable[[Qrels], Judged],
        measures: tuple[Measure, ...],
        conventions: Conventions,
    ) -> Scores:
        """Return the scores with a `LabelUse`: whether the model's labels count, and how they agree with
        people's.

        joined: the ranking matched with the judgments that count; `join` matches it with others.
        """
        left_out = ""
        if self.left_out:
            left_out = f"; {count(self.left_out)} queries that it alone judged are left out"
        if self.model_judgments:
            number = count(self.model_judgments)
            left_out += f"; {number} judgments of QRELS are a model's by their origin and are left out"
        sentence = self.calibration.sentence()
        if not self.calibration.passed:
            use = f"{self.name}: {sentence}; scores are by people's labels alone{left_out}"
            return replace(scores, labels=LabelUse(use, False))
        people = join(self.people)
        near, of_people = (int(np.count_nonzero(one.rank <= PLACES)) for one in (joined, people))
        use = f"{self.name} judges what people left open: {sentence}{left_out}"
        values = scores_of(people, measures, conventions).values
        return replace(scores, labels=LabelUse(use, True, 1 - of_people / near if near else math.nan, values))


def gated(people: Qrels, model: Qrels, least: LeastAgreement, name: str = "the model") -> GatedLabels:
    """Return people's judgments, with the model's on unjudged pairs of the same queries if `calibration`
    passes.

    Model-made judgments of `people` are ignored; raises BadValue if none is left, or for more than
    MOST_LABELS grades.
    """
    model_judgments = 0
    if people.origin is not None:
        of_models = people.origin.of_models()
        model_judgments = int(np.count_nonzero(of_models))
        people = people.of_rows(~of_models) if model_judgments else people
    if not len(people.doc):
        raise BadValue(
            "none of the judgments is of people, so that nothing says how good the model's labels are"
        )
    calibrated = calibration(people, model, least)
    judged = people.queries.codes(model.queries.strings) >= 0
    left_out = int(np.count_nonzero(~judged)) if calibrated.passed else 0
    qrels = people
    if calibrated.passed:
        base = people if people.origin is not None else people.labelled("human")
        other = model.only(np.flatnonzero(judged))
        qrels = merge_qrels(base, other if other.origin is not None else other.labelled(f"{MODEL}{name}"))
    return GatedLabels(qrels, people, name, calibrated, left_out, model_judgments)
