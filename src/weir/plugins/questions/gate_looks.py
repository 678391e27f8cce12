"""A gate that may be asked again at any time (`weir gate --sequential`), and its file of values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weir.api.auditing import Places
from weir.api.comparisons import MAX_DROP, Collection, FolderPath, Measures, cases_to_gate, gate_rules
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.results import ResultKind
from weir.core.rounding import change, count, counted, figure, percent, score
from weir.core.scores import Note
from weir.core.strings import Float64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue, FormatError
from weir.files.atomic import write_text
from weir.files.json_record import parse_json
from weir.files.paths import path_of
from weir.files.text_files import read_bytes
from weir.measures.evaluate import Conventions
from weir.measures.measure import direction, must_stay_zero, no_direction_note
from weir.stats.compare import ScoreTable
from weir.stats.gate import OUTCOMES, GateRules, GateVerdict
from weir.stats.power import POWER
from weir.stats.resampling import SEED
from weir.stats.sequential import by_lot, e_values, first_at, lower_bounds
from weir.stats.significance import exact_mean

FORMAT = "weir gate --sequential 1"
FORESEEN_DRAWS, FORESEEN_TIMES, FORESEEN_QUERIES = 100, 30, 5000
"""Simulated futures of an undecided gate; their length in multiples of the queries seen; its maximum in queries."""
VALUE_ROUNDING = 1e-9
"""Largest difference between two values of a query that count as equal."""
_MILLION = 1e6


@dataclass(frozen=True)
class SeenCase:
    """All values seen so far of baseline and candidate, by a measure on a dataset or a group of its queries."""

    dataset: str
    group: str
    """"" for all queries."""
    measure: str
    queries: tuple[str, ...] = ()
    """Queries in the order in which they count: by look, in drawn order within each."""
    before: tuple[float, ...] = ()
    """Value of the baseline for each query; `after`, of the candidate."""
    after: tuple[float, ...] = ()
    looks: tuple[int, ...] = ()
    """Number of queries after each look that brought new queries."""

    @property
    def name(self) -> tuple[str, str, str]:
        """The key of the case: (dataset, group, measure)."""
        return self.dataset, self.group, self.measure


@dataclass(frozen=True)
class SequentialGate:
    """The verdict on a candidate against its baseline by a measure, after any number of looks."""

    dataset: str
    group: str
    """"" for all queries."""
    measure: str
    queries: int
    """Number of queries seen over all looks."""
    looks: int
    """Number of looks that brought new queries."""
    before: float
    """Mean of the baseline; `after`, of the candidate."""
    after: float
    difference: float
    """After minus before."""
    low: float
    """Lower and upper bound (`high`) of the difference; each holds at all looks together."""
    high: float
    max_drop: float
    confidence: float
    e_allowed: float
    """Largest e-value so far against the claim that the mean dropped by more than allowed."""
    e_dropped: float
    """Largest e-value so far against the claim that nothing dropped."""
    tests: int
    """Number of cases gated together; a failure takes an e-value larger by this factor."""
    verdict: GateVerdict
    decided: int | None
    """Number of queries at which the verdict was reached; None without one."""
    needed: int | None
    """Queries that would decide the gate with 80% probability; None for a decided gate, and for too many."""

    @property
    def passed(self) -> bool:
        """True for the verdict "pass": at the gate's confidence, the mean dropped by no more than allowed."""
        return self.verdict == "pass"

    @property
    def harmless(self) -> bool:
        """True if the verdict lets the candidate through: "pass" over all queries, anything but "fail" over a
        group."""
        return self.verdict != "fail" if self.group else self.passed

    @property
    def within(self) -> bool:
        """True if the observed mean dropped by no more than allowed, certain or not."""
        return direction(self.measure) * self.difference >= -self.max_drop - VALUE_ROUNDING


@checked
def gate_sequentially(
    state: FolderPath,
    first: object,
    second: object,
    third: object = None,
    measures: Measures = (),
    *,
    max_drop: float | Mapping[str, float] = MAX_DROP,
    confidence: float = 0.95,
    by: object = None,
    common: bool = False,
    fetch: bool = False,
    conventions: Conventions | str | Mapping[str, str] | None = None,
    collection: Collection | Places = None,
    systems: Sequence[str] = (),
) -> ResultSet[SequentialGate]:
    """Return verdicts of a gate that may be asked again, with more queries, at any time.

    state: file of the values seen so far, made at the first look; new queries are added. A query seen earlier
        still counts if it is missing now.

    The other arguments are as in `weir.gate`, and so are its errors. Also raises BadValue if an earlier value
    has changed, if rules or cases differ from earlier looks, and for measures outside 0..1; FormatError for a
    file of another kind.
    """
    allowed = gate_rules(max_drop, confidence)
    compared, told = cases_to_gate(
        (first, second, third), measures, allowed, by, common, fetch, conventions, collection, systems
    )
    path = path_of(state)
    seen = read_seen(path, allowed)
    cases = look(path, seen, compared)
    fields = {"format": FORMAT, "rules": _rules(allowed), "cases": [asdict(one) for one in cases]}
    write_text(path, json.dumps(fields, ensure_ascii=False) + "\n")
    notes = [Note(f"{path} keeps what was seen; another candidate takes another file")] if not seen else []
    return ResultSet(SEQUENTIAL_GATES, tuple(sequential_gates(cases, allowed)), (*told, *notes))


def look(path: Path, seen: Sequence[SeenCase], cases: Sequence[tuple[str, ScoreTable]]) -> list[SeenCase]:
    """Return the cases with the values of one more look's new queries appended, in random order.

    path: the file, named in messages.
    seen: cases of earlier looks; [] at the first.

    Raises BadValue for a changed value, other cases than before, and a measure outside 0..1, without a
    direction, or that a single query fails.
    """
    known, after = {one.name: one for one in seen}, list[SeenCase]()
    for group, table in cases:
        name = (table.dataset, group, table.measure)
        if not direction(table.measure):
            raise BadValue(f"{no_direction_note([table.measure])[0]}; gate another measure")
        if must_stay_zero(table.measure):
            raise BadValue(
                f"{table.measure}: one query is enough to fail, at whichever look; gate it by itself"
            )
        if table.geometric or table.span > 1:
            raise BadValue(
                f"{table.measure}: verdicts over several looks need a measure whose values lie within 0..1"
            )
        if seen and name not in known:
            raise BadValue(f"{path} keeps no {_called(name)}; gate what was gated, or name another file")
        after.append(_looked_at(path, known.get(name, SeenCase(*name)), table))
    gated = {one.name for one in after}
    if lost := [one.name for one in seen if one.name not in gated]:
        raise BadValue(f"{path} keeps {_called(lost[0])}, which is not gated now; name another file")
    return after


def _looked_at(path: Path, seen: SeenCase, table: ScoreTable) -> SeenCase:
    assert table.queries is not None
    values = dict(zip(table.queries.tolist(), table.values.T.tolist(), strict=True))
    for query, *before in zip(seen.queries, seen.before, seen.after, strict=True):
        for role, old, new in zip(("baseline", "candidate"), before, values.get(query, before), strict=True):
            if abs(old - new) > VALUE_ROUNDING:
                raise BadValue(
                    f"{path}: {seen.measure} of query '{query}' was {score(old)} for the {role} at an earlier look "
                    f"and is {score(new)} now; a changed past takes another file"
                )
    new = by_lot(set(values) - set(seen.queries))
    if not new:
        return seen
    return replace(
        seen,
        queries=(*seen.queries, *new),
        before=(*seen.before, *(values[query][0] for query in new)),
        after=(*seen.after, *(values[query][1] for query in new)),
        looks=(*seen.looks, len(seen.queries) + len(new)),
    )


def _called(name: tuple[str, str, str]) -> str:
    dataset, group, measure = name
    return f"{measure} on {dataset}" + (f", {group}" if group else "")


# The file.


def _rules(rules: GateRules) -> dict[str, object]:
    return {"max_drop": rules.max_drop, "drops": dict(rules.drops), "confidence": rules.confidence}


def seen_rules(fields: Mapping[str, Any]) -> GateRules:
    """Return the rules in the fields of a sequential gate's file; raises KeyError, TypeError or ValueError
    for another file."""
    rules = fields["rules"]
    return GateRules(rules["max_drop"], dict(rules["drops"]), rules["confidence"])


def read_seen(path: Path, rules: GateRules) -> list[SeenCase]:
    """Return the cases in a sequential gate's file of earlier looks; [] if there is no file.

    Raises FormatError for a file of another kind, BadValue if it was begun with other rules.
    """
    if not path.exists():
        return []
    expected = "a file that weir gate --sequential wrote; name another for a new candidate"
    try:
        fields = parse_json(read_bytes(path), path)
        if fields["format"] != FORMAT:
            raise FormatError(path, f"the format {str(fields['format'])[:60]}", expected)
        kept = {name: fields["rules"][name] for name in _rules(rules)}
        cases = [
            SeenCase(
                str(one["dataset"]),
                str(one["group"]),
                str(one["measure"]),
                tuple(map(str, one["queries"])),
                tuple(map(float, one["before"])),
                tuple(map(float, one["after"])),
                tuple(map(int, one["looks"])),
            )
            for one in fields["cases"]
        ]
        whole = all(len(one.queries) == len(one.before) == len(one.after) > 0 for one in cases)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(path, "something else", expected) from None
    if not whole or not cases:
        raise FormatError(path, "queries without their values", expected)
    for name, value in _rules(rules).items():
        if kept[name] != value:
            raise BadValue(
                f"{path} was begun with {name} {kept[name]}, and now it is {value}; another rule takes another file"
            )
    return cases


# The verdict.


def sequential_gates(cases: Sequence[SeenCase], rules: GateRules) -> list[SequentialGate]:
    """Return a verdict for each case, by e-values that reach E = 1 / (1 - confidence).

    "pass" needs E against a drop larger than allowed; "fail" needs an observed drop larger than allowed, and
    E times the number of cases against no drop. The first reached stays.
    """
    # At most 1 candidate in 20 passes that dropped by more, or fails anything where nothing dropped (Ville 1939). Of
    # several cases all must pass, each at its full level; Bonferroni holds over those that fail.
    return [_gate(one, rules, len(cases)) for one in cases]


def _gate(seen: SeenCase, rules: GateRules, tests: int) -> SequentialGate:
    way, before, after = direction(seen.measure), np.array(seen.before), np.array(seen.after)
    d, drop = way * (after - before), rules.allowed(seen.measure)
    allowed, dropped = e_values(d, -drop), e_values(-d)
    passed, failed = _decided(d, drop, rules.confidence, tests)
    decided = min((one for one in (passed, failed) if one is not None), default=None)
    verdict: GateVerdict = "undecided" if decided is None else "pass" if decided == passed else "fail"
    low, high = lower_bounds(d, rules.confidence)[-1], -lower_bounds(-d, rules.confidence)[-1]
    return SequentialGate(
        dataset=seen.dataset,
        group=seen.group,
        measure=seen.measure,
        queries=len(d),
        looks=len(seen.looks),
        before=exact_mean(before),
        after=exact_mean(after),
        difference=way * exact_mean(d) + 0.0,
        low=way * float(low),
        high=way * float(high),
        max_drop=drop,
        confidence=rules.confidence,
        e_allowed=float(allowed.max()),
        e_dropped=float(dropped.max()),
        tests=tests,
        verdict=verdict,
        decided=decided,
        needed=_needed(d, drop, rules.confidence, tests) if decided is None else None,
    )


def _decided(d: Float64, drop: float, confidence: float, tests: int) -> tuple[int | None, int | None]:
    means = np.cumsum(d) / np.arange(1, len(d) + 1)
    failing = np.where(means < -drop - VALUE_ROUNDING, e_values(-d), 0.0)
    enough = 1 / (1 - confidence)
    return first_at(e_values(d, -drop), enough), first_at(failing, tests * enough)


def _needed(d: Float64, drop: float, confidence: float, tests: int) -> int | None:
    most = min(FORESEEN_TIMES * len(d), FORESEEN_QUERIES)
    futures = np.random.default_rng(SEED).choice(d, (FORESEEN_DRAWS, most))
    after = [_decided(np.concatenate([d, future]), drop, confidence, tests) for future in futures]
    counts = sorted(min((n for n in one if n is not None), default=10 * most) for one in after)
    needed = counts[int(POWER * FORESEEN_DRAWS) - 1]
    return needed if needed <= len(d) + most else None


# Tables.

_INDENT = 6


def _sequential_tables(gates: Sequence[SequentialGate]) -> tuple[Table, ...]:
    several = len({one.dataset for one in gates}) > 1
    lines = []
    for one in gates:
        name = (
            one.measure + (f" on {one.dataset}" if several else "") + (f", {one.group}" if one.group else "")
        )
        lines += [f"{OUTCOMES[one.verdict]}  {name}: {_finding(one)}", " " * _INDENT + _reason(one)]
    return (sentences(*lines),)


def _page(gates: Sequence[SequentialGate], bullet: str = "- ") -> tuple[Table, ...]:
    lines = [["dataset", "group", "measure", "verdict", "after", "queries", "looks", "change", "bounds",
              "allowed drop"]]  # fmt: skip
    for one in gates:
        bounds = f"{change(one.low)} to {change(one.high)}"
        after = "-" if one.decided is None else count(one.decided)
        lines.append(
            [*(one.dataset, one.group, one.measure, OUTCOMES[one.verdict], after, count(one.queries)),
             *(count(one.looks), change(one.difference), bounds, score(one.max_drop))]
        )  # fmt: skip
    used = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    reasons = (f"{bullet}{one.measure}{', ' * bool(one.group)}{one.group}: {_reason(one)}" for one in gates)
    table = table_of(
        [[line[i] for i in used] for line in lines], right=None, keys=3, title="weir gate --sequential"
    )
    return table, sentences(*reasons)


def _finding(one: SequentialGate) -> str:
    worse, better, drop = ("at most", "at least", "rise") if direction(one.measure) < 0 else (
        "at least", "at most", "drop")  # fmt: skip
    return (
        f"candidate - baseline {change(one.difference)} over {counted(one.queries, 'query', 'queries')}, {worse} "
        f"{change(one.low)} and {better} {change(one.high)} with {100 * one.confidence:g}% confidence each over "
        f"{counted(one.looks, 'look')} and all to come; allowed {drop} {score(one.max_drop)}"
    )


def _reason(one: SequentialGate) -> str:
    enough = 1 / (1 - one.confidence)
    queries = (
        "" if one.decided is None else f"decided after {count(one.decided)} of {count(one.queries)} queries"
    )
    drop, dropped = ("rise", "rose") if direction(one.measure) < 0 else ("drop", "dropped")
    if one.verdict == "pass":
        return f"{queries}: e-value {_evidence(one.e_allowed)} that the {drop} is allowed"
    family = f" ({_evidence(one.tests * enough)} is enough, of {one.tests} tests)" if one.tests > 1 else ""
    if one.verdict == "fail":
        return f"{queries}: e-value {_evidence(one.e_dropped)} that the mean {dropped}{family}"
    most = count(one.queries + min(FORESEEN_TIMES * one.queries, FORESEEN_QUERIES))
    needed = f"more than {most} queries" if one.needed is None else f"about {count(one.needed)} queries"
    return (
        f"e-value {_evidence(one.e_allowed)} that the {drop} is allowed ({_evidence(enough)} is enough), "
        f"{_evidence(one.e_dropped)} that the mean {dropped}{family}; if queries to come are like these, {needed} "
        f"decide with a probability of {percent(POWER, 0)}"
    )


def _evidence(value: float) -> str:
    return "above a million" if value > _MILLION else figure(value)


SEQUENTIAL_GATES = ResultKind(
    "sequential gate",
    SequentialGate,
    _sequential_tables,
    page=_page,
    html=lambda gates: _page(gates, ""),
    outcome=lambda one: "pass" if one.harmless else one.verdict,
)
