"""Decide whether a candidate's means drop by no more than allowed: pass, fail or undecided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from weir.core.frames import json_value
from weir.core.results import ResultKind, member_html, member_text
from weir.core.rounding import change, count, percent, probability, score
from weir.core.scores import averaged
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue, printable
from weir.measures.measure import direction, must_stay_zero, no_direction_note, within_unit
from weir.stats.compare import ScoreTable
from weir.stats.distributions import student_quantile
from weir.stats.power import MOST_QUERIES, POWER, queries_needed
from weir.stats.query_differences import QueryDifference, shown
from weir.stats.resampling import INTERVALS, bounds, fewest
from weir.stats.run_noise import RunNoise, noise_of
from weir.stats.score_rows import never_note
from weir.stats.significance import adjusted, deviation_of, exact_mean, t_tail

_ROUNDING = 1e-12  # a bound that equals the allowed drop but for rounding passes
BROKEN_KEPT = 10
"""Most queries that a gate lists as losing."""

CORRECTION = "holm"
"""Correction of failures over all datasets, measures and groups of a call."""

GateVerdict: TypeAlias = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True)
class GateRules:
    """The drop that a gate allows, and the confidence that it needs.

    Raises BadValue for a negative drop, a confidence outside 0.5..1 or the interval two-level, UnknownName
    for another interval.
    """

    max_drop: float = 0.01
    """Largest accepted drop of a mean."""
    drops: Mapping[str, float] = field(default_factory=dict)
    """{measure: largest accepted drop}, for measures that differ from `max_drop`."""
    confidence: float = 0.95
    """1 - the probability that a larger drop passes; also 1 - the probability that anything fails if nothing
    dropped."""
    interval: str = "t"
    """Kind of the one-sided bound."""
    noise: tuple[RunNoise, ...] = ()
    """How the systems' means vary when their queries are run again."""

    def __post_init__(self) -> None:
        for drop in (self.max_drop, *self.drops.values()):
            if not (drop >= 0 and math.isfinite(drop)):
                raise BadValue(f"the allowed drop is {drop}; expected a number from 0")
        if not 0.5 < self.confidence < 1:
            raise BadValue(f"the confidence is {self.confidence}; expected between 0.5 and 1")
        INTERVALS.get(self.interval)
        if self.interval == "two-level":
            raise BadValue("the interval is two-level, which is of means over datasets; a gate takes t")

    def allowed(self, measure: str) -> float:
        """Return the largest accepted drop of a measure's mean."""
        return self.drops.get(measure, self.max_drop)


@dataclass(frozen=True, repr=False)
class Gate:
    """The verdict on a candidate against its baseline by a measure, on a dataset or query group.

    If less is better, a "drop" is a rise of the mean.
    """

    dataset: str
    group: str
    """"" for all queries."""
    measure: str
    queries: int
    before: float
    """Mean of the baseline; `after`, of the candidate."""
    after: float
    difference: float
    """After minus before; of logarithms for geometric means."""
    low: float
    """One-sided bound of the difference on its worse side; NaN for a single query or if all changed equally."""
    max_drop: float
    confidence: float
    p: float
    """One-sided p-value of a drop, adjusted over `tests`."""
    tests: int
    verdict: GateVerdict
    deviation: float
    """Standard deviation of the differences."""
    lost: int
    """Queries on which the candidate is worse."""
    broken: tuple[QueryDifference, ...]
    """Up to BROKEN_KEPT queries that lost most, largest loss first."""
    left_out: int = 0
    """Queries that lack a value on either side."""
    geometric: bool = False
    noise: float = 0.0
    """Standard deviation of a system's mean between repeated runs, which bound and p-value allow for."""

    __repr__ = member_text
    _repr_html_ = member_html

    @property
    def passed(self) -> bool:
        """True if the verdict is "pass"."""
        return self.verdict == "pass"

    @property
    def harmless(self) -> bool:
        """True if the gate passes or, for a group, does not fail."""
        return self.verdict != "fail" if self.group else self.passed

    @property
    def scoreless(self) -> bool:
        """True if both sides score 0 on every query of a dataset by a measure from 0 to 1."""
        nothing = self.before == self.after == 0 and within_unit(self.measure)
        return nothing and not self.group and direction(self.measure) > 0

    @property
    def gain(self) -> float:
        """The difference of means, negated if less is better."""
        return direction(self.measure) * self.difference

    @property
    def within(self) -> bool:
        """True if the observed mean dropped by no more than allowed, significant or not."""
        return self.gain >= -self.max_drop - _ROUNDING

    @property
    def needed(self) -> int | None:
        """Number of queries that would decide an undecided gate with a power of 80%, if the change stays as
        measured.

        None if decided, of unknown deviation or noisy, and above ten million.
        """
        # To pass if the mean dropped by no more than allowed; else to fail, which takes a p-value and a
        # mean beyond the drop.
        level = 2 * (1 - self.confidence) / (1 if self.within else self.tests)  # one-sided
        beyond = self.gain + self.max_drop
        effect = beyond if self.within else self.gain
        if (
            self.verdict != "undecided"
            or math.isnan(self.deviation)
            or self.noise
            or self.scoreless
            or min(abs(effect), abs(beyond)) <= _ROUNDING
            or level >= POWER
        ):
            return None
        if self.deviation == 0:
            return math.ceil(math.log2(2 / level))
        tested = queries_needed(effect, self.deviation, POWER, level, "t", pilot=self.queries)
        if self.within or tested is None:
            return tested
        # The chance that the mean lies beyond the drop; Student's t for the deviation, which is estimated.
        seen = (student_quantile(POWER, self.queries - 1) * self.deviation / beyond) ** 2
        return max(tested, math.ceil(seen)) if seen <= MOST_QUERIES else None


def gates(cases: Sequence[tuple[str, ScoreTable]], rules: GateRules) -> list[Gate]:
    """Return a gate for each (group, table of baseline and candidate); group "" is all queries of a dataset.

    A gate passes if the one-sided bound of the difference is within the allowed drop. It fails if the mean
    dropped by more, significantly by a one-sided paired t-test (Holm over all cases), or at the first failure
    by a measure that counts failures. Otherwise, and if both score 0 throughout, it is undecided.

    Raises BadValue for fewer than two queries, a measure without a direction, or an allowed drop that nothing
    exceeds.
    """
    # All must pass, so each is tested at the full level (intersection-union: Berger 1982); with Holm 1979 at
    # most 1 candidate in 20 fails anything if nothing dropped, at a confidence of 0.95.
    tested = [_tested(group, table, rules) for group, table in cases]
    p_of = np.array([one.p for one in tested])
    corrected, tests = adjusted(p_of, CORRECTION), int(np.count_nonzero(~np.isnan(p_of)))
    return [_decided(one, p, tests) for one, p in zip(tested, corrected.tolist(), strict=True)]


def _tested(group: str, table: ScoreTable, rules: GateRules) -> Gate:
    before, after = table.values
    way = direction(table.measure)
    if not way:
        raise BadValue(f"{no_direction_note([table.measure])[0]}; gate another measure")
    d = way * (after - before)
    if within_unit(table.measure) and rules.allowed(table.measure) >= 1:
        drop = f"{rules.allowed(table.measure):g}"
        raise BadValue(
            f"no drop of {table.measure} exceeds {drop}: every candidate passes; allow less than 1"
        )
    least = fewest(2 * rules.confidence - 1) if rules.interval != "t" else 2
    if 1 < len(d) < least and not must_stay_zero(table.measure):
        where = f"{table.dataset}, {group}" if group else table.dataset
        found = f"{len(d)} queries, on which its bound would not hold; take t"
        raise BadValue(f"{where}: an interval of {rules.interval} needs {least} queries; found {found}")
    if len(d) < 2 and not group and not must_stay_zero(table.measure):
        raise BadValue(f"{table.dataset}: a gate needs at least two queries; found {len(d)}")
    assert table.queries is not None
    low = p = deviation = math.nan
    noise = noise_of(rules.noise, table.measure)
    if must_stay_zero(table.measure):
        d = -after  # whatever the baseline did, a failure of the candidate is one
    elif len(d) > 1:
        low = float(bounds(d[None], rules.interval, 2 * rules.confidence - 1)[0, 0])
        p, deviation = t_tail(-d), deviation_of(d)
        if noise is not None:
            low = np.fmin(low, noise.bound(d, rules.confidence))
            p = max(p, noise.tail(-d))
        low = -1.0 if within_unit(table.measure) and low < -1 else float(low)
    worst = np.argsort(d, kind="stable")[:BROKEN_KEPT]
    broken = tuple(
        QueryDifference(
            name := table.queries[q], float(before[q]), float(after[q]), table.texts.get(name, "")
        )
        for q in worst[d[worst] < 0].tolist()
    )
    means = [averaged(exact_mean(row), table.geometric) for row in (before, after)]
    difference = exact_mean(after - before) + 0.0
    return Gate(
        *(table.dataset, group, table.measure, len(d), means[0], means[1]),
        *(difference, way * low, rules.allowed(table.measure), rules.confidence, p, 0),
        "undecided",
        *(deviation, int(np.count_nonzero(d < 0)), broken, table.left_out, table.geometric),
        noise=0.0 if noise is None else math.sqrt(noise.variance),
    )


def _decided(gate: Gate, p: float, tests: int) -> Gate:
    if must_stay_zero(gate.measure):
        return replace(gate, tests=tests, max_drop=0.0, verdict="fail" if gate.lost else "pass")
    # No bound, as all queries changed equally: the change itself passes or fails, if so many queries would seldom
    # agree by chance.
    if math.isnan(gate.low):
        certain = gate.within and 0.5**gate.queries <= 1 - gate.confidence
    else:
        certain = direction(gate.measure) * gate.low >= -gate.max_drop - _ROUNDING
    verdict: GateVerdict = "undecided"
    if gate.scoreless:  # no candidate could drop
        return replace(gate, p=p, tests=tests)
    if certain:
        verdict = "pass"
    elif not gate.within and p <= 1 - gate.confidence:
        verdict = "fail"
    return replace(gate, p=p, tests=tests, verdict=verdict)


# Tables.

OUTCOMES = {"pass": "pass", "fail": "FAIL", "undecided": "UNDECIDED"}
_INDENT = 6
_NUMBERS = ("verdict", "queries", "baseline", "candidate", "change", "bound")


def _gate_outcome(gates: Sequence[Gate]) -> str:
    if any(one.verdict == "fail" for one in gates):
        return "fail"
    return "pass" if all(one.harmless for one in gates) else "undecided"


def _page(gates: Sequence[Gate]) -> tuple[Table, ...]:
    def filled(lines: Sequence[Sequence[str]], numbers: int, title: str = "") -> Table:
        used = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
        cells = [[line[i] for i in used] for line in lines]
        return table_of(cells, right=None, keys=len(used) - numbers, title=title)

    lines = [["dataset", "group", "measure", *_NUMBERS, "allowed drop"]]
    losses = [["dataset", "group", "measure", "query that lost", "text", "baseline", "candidate"]]
    for one in gates:
        names = [one.dataset, one.group, one.measure, OUTCOMES[one.verdict], count(one.queries)]
        changes = [change(one.difference), change(one.low), score(one.max_drop)]
        lines.append([*names, score(one.before), score(one.after), *changes])
        losses += [
            [
                *(one.dataset, one.group, one.measure, move.query, shown(move.text)),
                score(move.first),
                score(move.second),
            ]
            for move in (() if one.harmless else one.broken)
        ]
    reasons = [f"- {_subject(one, True)}: {'; '.join(_reasons(one))}" for one in gates if not one.passed]
    tables = [filled(lines, 6, f"weir gate: {OUTCOMES[_gate_outcome(gates)]}"), sentences(*reasons)]
    if len(losses) > 1:
        tables.append(filled(losses, 2))
    return tuple(part for part in (*tables, sentences(*_family(gates))) if part.header or part.notes)


def _gate_tables(gates: Sequence[Gate]) -> tuple[Table, ...]:
    several = len({one.dataset for one in gates}) > 1
    tables = []
    for one in gates:
        if one.group and one.verdict != "fail":
            continue
        above = [f"{OUTCOMES[one.verdict]}  {_subject(one, several)}: {_finding(one)}"]
        lines: list[list[str]] = [[]]
        if not one.passed:
            above += [" " * _INDENT + reason for reason in _reasons(one)]
            if one.broken:
                most = f", these {len(one.broken)} most" if one.lost > len(one.broken) else ""
                above.append(
                    f"{' ' * _INDENT}{count(one.lost)} quer{'y' if one.lost == 1 else 'ies'} lost{most}:"
                )
                texted = any(m.text for m in one.broken)
                lines = [["query", "baseline", "candidate", "change", *["text"] * texted]]
                lines += [
                    [
                        m.query,
                        score(m.first),
                        score(m.second),
                        change(m.difference),
                        *[shown(m.text)] * texted,
                    ]
                    for m in one.broken
                ]
        tail = len(lines[0]) == 5
        tables.append(
            replace(table_of(lines, right=None, tail=tail, above=above), indent=_INDENT, follows=True)
        )
    groups = [one for one in gates if one.group]
    if groups:
        lines = [["dataset", "measure", "group", *_NUMBERS]]
        for one in groups:
            verdict = one.verdict if one.harmless else OUTCOMES[one.verdict]
            names = [one.dataset, one.measure, one.group, verdict, count(one.queries)]
            lines.append(
                [*names, score(one.before), score(one.after), change(one.difference), change(one.low)]
            )
        tables.append(table_of([line if several else line[1:] for line in lines], right=5, keys=2 + several))
    if len(gates) > 1:
        tables.append(sentences(f"{OUTCOMES[_gate_outcome(gates)]}: {'; '.join(_family(gates))}"))
    return tuple(tables)


GATES = ResultKind(
    "gate",
    Gate,
    _gate_tables,
    page=_page,
    html=_gate_tables,
    outcome=lambda one: "pass" if one.harmless else one.verdict,
    records=lambda one: [json_value(one) | {"passed": one.passed, "needed": one.needed}],
)


def gate_junit(gates: Sequence[Gate]) -> str:
    """Return JUnit XML with a test case for each gate: failed if it stops the candidate, skipped for an
    undecided group.
    """
    from xml.etree import ElementTree as Xml

    failed = sum(not one.harmless for one in gates)
    skipped = sum(one.harmless and not one.passed for one in gates)
    counts = {"tests": str(len(gates)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    root = Xml.Element("testsuites", counts)
    suite = Xml.SubElement(root, "testsuite", {"name": "weir gate", **counts})
    for one in gates:
        name = f"{one.measure} of {one.group}" if one.group else one.measure
        case = Xml.SubElement(
            suite, "testcase", {"classname": printable(one.dataset), "name": printable(name), "time": "0"}
        )
        if one.passed:
            continue
        outcome = Xml.SubElement(
            case,
            "skipped" if one.harmless else "failure",
            {"type": one.verdict, "message": printable(f"{OUTCOMES[one.verdict]}: {_finding(one)}")},
        )
        [shown] = [part for part in _gate_tables([replace(one, group="")])]
        losses = shown.text().split("\n")[1 + len(_reasons(one)) :]
        outcome.text = printable("; ".join(_reasons(one))) + "\n" + "\n".join(losses)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode")


def _subject(one: Gate, several: bool) -> str:
    return one.measure + (f" on {one.dataset}" if several else "") + (f", {one.group}" if one.group else "")


def _finding(one: Gate) -> str:
    if must_stay_zero(one.measure):
        return never_note(one.measure, one.lost, one.queries).text.removeprefix(f"{one.measure}: ")
    side, drop = ("upper", "rise") if direction(one.measure) < 0 else ("lower", "drop")
    logarithms = " of logarithms" if one.geometric else ""
    allowed = f"{logarithms}, about {percent(1 - math.exp(-one.max_drop))}" if one.geometric else ""
    queries = f"{count(one.queries)} quer{'y' if one.queries == 1 else 'ies'}"
    queries += f" ({count(one.left_out)} left out that not both sides have)" * bool(one.left_out)
    bound = f"{side} bound {change(one.low)} with {100 * one.confidence:g}% confidence over {queries}"
    if math.isnan(one.low):
        bound = f"no {side} bound over {queries}"
        if one.queries > 1:
            others = percent(1 - (1 - one.confidence) ** (1 / one.queries))
            alike = "of which none changed" if one.difference == 0 else "which all changed equally"
            bound += f", {alike}; up to {others} of other queries may change otherwise"
    return (
        f"candidate - baseline {change(one.difference)}{logarithms}, {bound}; allowed {drop} "
        f"{score(one.max_drop)}{allowed}"
    )


def _reasons(one: Gate) -> list[str]:
    adjusted = f", {CORRECTION} over {one.tests}" if one.tests > 1 else ""
    fell, drop, far = ("rose", "rise", "high") if direction(one.measure) < 0 else ("fell", "drop", "low")
    test = "one-sided t" if one.deviation else "one-sided, by signs"
    tested = f"p {probability(one.p)} against no {drop} ({test}{adjusted})"
    if must_stay_zero(one.measure):
        return [f"one query is enough to fail; the baseline had {score(one.before)}"]
    if one.verdict == "fail":
        return [f"the mean {fell} from {score(one.before)} to {score(one.after)}, {tested}"]
    if one.queries < 2:
        return ["one query tells nothing of others"]
    if one.scoreless:
        return ["both score 0 on every query, so that nothing can drop: are identifiers as in the judgments?"]
    if one.within and math.isnan(one.low):
        return [f"{one.queries} queries may change alike by chance; a gate over {one.needed} that do passes"]
    needed = "more than ten million queries" if one.needed is None else f"about {count(one.needed)} queries"
    remedy = "; a larger max-drop decides it too" if one.within else ""
    why = (
        f"the mean lies within the allowed {drop}, but the true change may be as {far} as {change(one.low)}"
        if one.within
        else f"the mean lies beyond the allowed {drop}, but it may be chance: {tested}"
    )
    if one.noise:
        return [
            why,
            f"asked again, a system's mean moves by {score(one.noise)}, which more queries may not narrow",
        ]
    verdict = "pass" if one.within else "fail"
    return [
        why,
        f"if the true change is {change(one.difference)}, a gate over {needed} would {verdict} with a probability of "
        f"{percent(POWER, 0)}{remedy}",
    ]


def _family(gates: Sequence[Gate]) -> list[str]:
    if len(gates) == 1:
        return []
    whole = sum(not one.group for one in gates)
    lines = []
    if whole > 1:
        lines.append(f"all {whole} have to pass, each at its full confidence")
    if len(gates) > whole:
        lines.append(f"of {len(gates) - whole} groups none may fail; none has to pass")
    return ["; ".join([*lines, f"failures are adjusted over all {gates[0].tests} tests ({CORRECTION})"])]
