"""Whether a change may have made things worse than allowed: pass, fail, or undecided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from weir.core.scores import averaged
from weir.core.strings import Float64
from weir.errors import BadValue
from weir.measures.measure import within_unit
from weir.stats.compare import ScoreTable
from weir.stats.distributions import student_tail
from weir.stats.intervals import INTERVALS, bounds
from weir.stats.power import POWER, queries_needed
from weir.stats.query_differences import QueryDifference
from weir.stats.significance import adjusted, t_statistic

_ROUNDING = 1e-12  # a bound that equals the allowed drop but for rounding passes
BROKEN_KEPT = 10
"""Queries kept of those that lost, those that lost most."""

CORRECTED = {False: "holm", True: "bh"}
"""How failures are corrected, by whether they are of groups."""

GateVerdict: TypeAlias = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True)
class GateRules:
    """What a gate allows, and at which confidence.

    max_drop: the largest drop of a mean that is accepted; drops: other ones by measure; confidence: 1 minus the chance
    that a larger drop passes, and 1 minus the chance that anything fails where nothing dropped; interval: of the lower
    bound. Raises BadValue for a negative drop and a confidence outside 0.5..1, UnknownName for another interval.
    """

    max_drop: float = 0.01
    drops: Mapping[str, float] = field(default_factory=dict)
    confidence: float = 0.95
    interval: str = "t"

    def __post_init__(self) -> None:
        for drop in (self.max_drop, *self.drops.values()):
            if not (drop >= 0 and math.isfinite(drop)):
                raise BadValue(f"the allowed drop is {drop}; expected a number from 0")
        if not 0.5 < self.confidence < 1:
            raise BadValue(f"the confidence is {self.confidence}; expected between 0.5 and 1")
        INTERVALS.get(self.interval)

    def allowed(self, measure: str) -> float:
        """The largest drop of a measure that is accepted."""
        return self.drops.get(measure, self.max_drop)


@dataclass(frozen=True)
class Gate:
    """One measure of a candidate against its baseline, on a dataset or a group of its queries.

    group: "" for all queries; before, after: the means; difference: after minus before, of logarithms where the means
    are geometric; low: its one-sided lower confidence bound, NaN for a single query; p: of the claim that nothing
    dropped, adjusted over so many `tests`; deviation: standard deviation of the differences; lost: how many queries
    lost, broken: those that lost most; left_out: queries without a value on both sides; geometric:
    whether means are.
    """

    dataset: str
    group: str
    measure: str
    queries: int
    before: float
    after: float
    difference: float
    low: float
    max_drop: float
    confidence: float
    p: float
    tests: int
    verdict: GateVerdict
    deviation: float
    lost: int
    broken: tuple[QueryDifference, ...]
    left_out: int = 0
    geometric: bool = False

    @property
    def passed(self) -> bool:
        """Whether it is certain enough that the mean dropped by no more than allowed."""
        return self.verdict == "pass"

    @property
    def harmless(self) -> bool:
        """Whether it lets the candidate pass: all queries have to pass; a group, of few queries, must not fail."""
        return self.verdict != "fail" if self.group else self.passed

    @property
    def within(self) -> bool:
        """Whether the mean dropped by no more than allowed, certain or not."""
        return self.difference >= -self.max_drop - _ROUNDING

    @property
    def needed(self) -> int | None:
        """How many queries would decide an undecided gate with a probability of 80%, if the change is as measured.

        That is, pass it if the mean dropped by no more than allowed, else fail it. None for a decided gate, for more
        than ten million queries, and where no number is enough.
        """
        level = 2 * (1 - self.confidence) / (1 if self.within else self.tests)  # one-sided
        effect = self.difference + self.max_drop if self.within else self.difference
        if (
            self.verdict != "undecided"
            or math.isnan(self.deviation)
            or abs(effect) <= _ROUNDING
            or level >= POWER
        ):
            return None
        return queries_needed(effect, self.deviation, POWER, level, "t")


def gates(cases: Sequence[tuple[str, ScoreTable]], rules: GateRules) -> list[Gate]:
    """A gate for each (group, table of baseline and candidate), group "" for all queries of a dataset.

    pass: the one-sided lower bound of the difference, that of the two-sided interval of level 2 * confidence - 1, is
    within the allowed drop. All have to pass, so that each is tested at the full level (intersection-union). fail: the
    mean dropped by more than allowed, and a one-sided paired t-test rejects that nothing dropped. Its p-values are
    adjusted by Holm over the cases of all queries, and by Benjamini and Hochberg over those of groups: where nothing
    dropped, at most 1 gate in 20 fails for all queries, and 1 in 20 for a group, at a confidence of 0.95. Else
    undecided. Raises BadValue for fewer than two queries of a dataset. Sources: Berger 1982; Holm 1979.
    """
    found = [gate_numbers(group, table, rules) for group, table in cases]
    p = np.array([one.p for one in found])
    for grouped, correction in CORRECTED.items():
        rows = np.flatnonzero([bool(one.group) == grouped for one in found])
        corrected, tests = adjusted(p[rows], correction), int(np.count_nonzero(~np.isnan(p[rows])))
        for row, value in zip(rows.tolist(), corrected.tolist(), strict=True):
            one = found[row]
            verdict: GateVerdict = "undecided"
            if one.low >= -one.max_drop - _ROUNDING:
                verdict = "pass"
            elif not one.within and value <= 1 - one.confidence:
                verdict = "fail"
            found[row] = replace(one, p=value, tests=tests, verdict=verdict)
    return found


def gate_numbers(group: str, table: ScoreTable, rules: GateRules) -> Gate:
    """The numbers of a case before its p-value is adjusted and its verdict decided; raises BadValue as `gates`."""
    before, after = table.values
    d = after - before
    if len(d) < 2 and not group:
        raise BadValue(f"{table.dataset}: a gate needs at least two queries; found {len(d)}")
    assert table.queries is not None
    one, other = (averaged(_mean(row), table.geometric) for row in (before, after))
    low = math.nan
    if len(d) > 1:
        low = float(bounds(d[None], rules.interval, 2 * rules.confidence - 1)[0, 0])
        low = max(low, -1.0) if within_unit(table.measure) else low
    worst = np.argsort(d, kind="stable")[:BROKEN_KEPT]
    return Gate(
        table.dataset,
        group,
        table.measure,
        len(d),
        one,
        other,
        _mean(d),
        low,
        rules.allowed(table.measure),
        rules.confidence,
        student_tail(-t_statistic(d), len(d) - 1) if len(d) > 1 else math.nan,
        0,
        "undecided",
        float(d.std(ddof=1)) if len(d) > 1 else math.nan,
        int(np.count_nonzero(d < 0)),
        tuple(
            QueryDifference(table.queries[q], float(before[q]), float(after[q]))
            for q in worst[d[worst] < 0].tolist()
        ),
        table.left_out,
        table.geometric,
    )


def _mean(values: Float64) -> float:
    return math.fsum(values.tolist()) / len(values)
