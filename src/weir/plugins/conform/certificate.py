"""Grade a tool's answers to test vectors: outcomes, causes of differences, counts by group."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias

from weir.errors import WeirError
from weir.plugins.conform.oracle import Case, exact_answer, sorted_documents
from weir.plugins.conform.tools import Answers, ToolValue, VectorReply
from weir.plugins.conform.vectors import Expected, Number, Vector, groups, vectors

# Deviations: other readings of a measure, which change the input or the measure; the oracle computes the values.


@dataclass(frozen=True)
class Question:
    """A test case, and a measure that a tool computes on it."""

    case: Case
    measure: str


Change = Callable[[Question], Question | None]


@dataclass(frozen=True)
class Deviation:
    """Another reading of a measure or of the input, which may explain a tool's value."""

    name: str
    change: Change
    """Returns None if the reading changes nothing."""
    last_resort: bool = False
    """True if it may fit by chance; tried only if no other fits."""


def _convention(**changes: str) -> Change:
    def conventions_changed(question: Question) -> Question | None:
        conventions = replace(question.case.conventions, **changes)  # type: ignore[arg-type]  # the values are written below
        if conventions == question.case.conventions:
            return None
        return replace(question, case=replace(question.case, conventions=conventions))

    return conventions_changed


def _down(best_first: list[str]) -> list[tuple[str, float]]:
    return [(d, float(len(best_first) - n)) for n, d in enumerate(best_first)]


def _ties_by(key: Callable[[int, str], Any]) -> Change:
    def ties_changed(question: Question) -> Question | None:
        rankings = question.case.run
        if all(len({score for _, score in row}) == len(row) for row in rankings.values()):
            return None
        run: dict[str, list[tuple[str, float]]] = {}
        for query, row in rankings.items():
            places = [(-score, key(n, d), d) for n, (d, score) in enumerate(row)]
            run[query] = _down([d for _, _, d in sorted(places, key=lambda place: place[:2])])
        return replace(question, case=replace(question.case, run=run))

    return ties_changed


def _judging(change: Callable[[str, dict[str, float], Question], dict[str, float]]) -> Change:
    def grades_changed(question: Question) -> Question | None:
        qrels = {
            q: list(change(q, dict(row), question).items()) if row else []
            for q, row in question.case.qrels.items()
        }
        if all(dict(row) == dict(question.case.qrels[q]) for q, row in qrels.items()):
            return None
        return replace(question, case=replace(question.case, qrels=qrels))

    return grades_changed


def _graded(change: Callable[[float], float]) -> Change:
    return _judging(lambda query, grades, question: {d: change(g) for d, g in grades.items()})


def _renamed(pattern: str, replacement: str) -> Change:
    def rename(question: Question) -> Question | None:
        name = re.sub(pattern, replacement, question.measure)
        return None if name == question.measure else replace(question, measure=name)

    return rename


def _ideal_of(query: str, grades: Mapping[str, float], question: Question, k: int | None) -> dict[str, float]:
    returned = set(sorted_documents(question.case.run.get(query, ()), question.case.conventions)[:k])
    return {d: g for d, g in grades.items() if d in returned} or {"nothing": 0}


def _ideal_of_top(query: str, grades: Mapping[str, float], question: Question) -> dict[str, float]:
    match = re.search(r"@(\d+)", question.measure)
    return _ideal_of(query, grades, question, int(match[1]) if match else None)


def _judged_for_any(query: str, grades: Mapping[str, float], question: Question) -> dict[str, float]:
    others = {d: -1.0 for row in question.case.qrels.values() for d, _ in row}
    return others | dict(grades)


def _nothing_unanswered(query: str, grades: Mapping[str, float], question: Question) -> dict[str, float]:
    return dict(grades) if question.case.run.get(query) else {"nothing": 0}


def _appended(question: Question) -> Question | None:
    run: dict[str, list[tuple[str, float]]] = {}
    for query, judged in question.case.qrels.items():
        row = list(question.case.run.get(query, ()))
        returned = {d for d, _ in row}
        lowest = min((s for _, s in row), default=0.0) - 1
        run[query] = row + [(d, lowest) for d, _ in judged if d not in returned]
    return None if run == question.case.run else replace(question, case=replace(question.case, run=run))


def _in_input_order(question: Question) -> Question | None:
    run = {q: _down([d for d, _ in row]) for q, row in question.case.run.items()}
    return replace(question, case=replace(question.case, run=run))


def _counting_unjudged(question: Question) -> Question | None:
    qrels = {q: row or [("nothing", 0)] for q, row in question.case.qrels.items()}
    same = qrels == question.case.qrels
    return None if same else replace(question, case=replace(question.case, qrels=qrels))


def _ranking_everything(question: Question) -> Question | None:
    restricted = question.case.candidates or question.case.excluded
    return replace(question, case=replace(question.case, candidates={}, excluded={})) if restricted else None


DEVIATIONS = (
    Deviation("ties in the order of the input", _ties_by(lambda place, document: place)),
    Deviation("ties by ascending identifier", _ties_by(lambda place, document: document.encode())),
    Deviation("ties in the reverse order of the input", _ties_by(lambda place, document: -place)),
    Deviation("the mean over all orders of ties", _convention(ties="expected")),
    Deviation("ties by descending identifier", _convention(ties="trec")),
    Deviation("scores as 32-bit floats", _convention(ties="trec9")),
    Deviation("unanswered queries leave the mean", _convention(missing="answered-only")),
    Deviation("unanswered queries count 0", _convention(missing="zero")),
    Deviation("unanswered queries have no relevant document", _judging(_nothing_unanswered)),
    Deviation("queries without judgments count 0", _counting_unjudged),
    Deviation("queries without a relevant document count 0", _convention(empty="zero")),
    Deviation("queries without a relevant document leave the mean", _convention(empty="left-out")),
    Deviation("self matches dropped", _convention(self_matches="drop")),
    Deviation("self matches kept", _convention(self_matches="keep")),
    Deviation("documents that may not be ranked stay", _ranking_everything),
    Deviation("documents not returned fill the list", _appended),
    Deviation("grades taken as relevant or not", _graded(lambda grade: min(math.floor(grade), 1))),
    Deviation("grades cut to whole numbers", _graded(math.trunc)),
    Deviation("any grade above 0 as relevant", _graded(math.ceil)),
    Deviation("grades below 0 as judged not relevant", _graded(lambda grade: max(grade, 0))),
    Deviation("judged for any query is judged", _judging(_judged_for_any)),
    Deviation("ideal ranking from the returned documents", _judging(partial(_ideal_of, k=None))),
    Deviation("ideal ranking from the first k returned", _judging(_ideal_of_top)),
    Deviation("exponential gains", _renamed(r"^nDCG@", "nDCG(gain='exp')@")),
    Deviation("linear gains", _renamed(r"\(gain='exp'\)", "")),
    Deviation("precision divided by the documents returned", _renamed(r"^P(\(.*\))?@", r"SetP\1@")),
    Deviation("AP divided by at most k", _renamed(r"^AP@", "AP_within_k@")),
    Deviation("grades below 0 as negative gains", _renamed(r"^DCG(@|$)", r"DCG_signed\1")),
    Deviation("raw grades as gains of RBP", _renamed(r"^RBP(\(p=[^,)]*)?(,[^)]*)?(\))?", r"RBP_raw\1\3")),
    Deviation("recall divided by at most k", _renamed(r"^R(\(.*\))?@", r"R_cap\1@")),
    Deviation(
        "the highest grade of a query alone as relevant",
        _renamed(r"^RR@", "RR(of='best',rel=0.01)@"),
        last_resort=True,
    ),
    Deviation("the order of the input in place of scores", _in_input_order, last_resort=True),
)


# Causes of differences.

NO_NUMBER = "not a finite number"
UNEXPLAINED = "no convention known here gives this value"

_USUAL = 3  # values that a reading explains before it is taken for the tool's own


def causes(different: Sequence[tuple[Case, str, ToolValue]]) -> list[str]:
    """Return, for each wrong value, the name of a deviation that gives it; UNEXPLAINED if none does.

    different: (case, measure, the tool's value).
    """
    pairs = [(Question(case, measure), value) for case, measure, value in different]
    reasons = {
        n: NO_NUMBER for n, (_, value) in enumerate(pairs) if not all(map(math.isfinite, value.values()))
    }
    first = [one for one in DEVIATIONS if not one.last_resort]
    explains = {n: _singles(*pair, first) for n, pair in enumerate(pairs) if n not in reasons}
    own = _assign(reasons, explains, _USUAL)
    for n in explains.keys() - reasons.keys():
        reasons[n] = _double(*pairs[n], own)
    _assign(reasons, {n: names for n, names in explains.items() if not reasons[n]}, 1)
    for n in [n for n in explains if not reasons[n]]:
        last = _singles(*pairs[n], [one for one in DEVIATIONS if one.last_resort])
        reasons[n] = last[0].name if last else _double(*pairs[n], DEVIATIONS) or UNEXPLAINED
    return [reasons[n] for n in range(len(pairs))]


def _assign(reasons: dict[int, str], explains: dict[int, list[Deviation]], least: int) -> list[Deviation]:
    chosen: list[Deviation] = []
    while True:
        unexplained = [n for n in explains if not reasons.get(n)]
        counts = Counter(one for n in unexplained for one in explains[n])
        # Of equals the first in DEVIATIONS, so that every run says the same.
        best = max(DEVIATIONS, key=lambda one: counts[one])
        if counts[best] < least:
            return chosen
        chosen.append(best)
        reasons |= {n: best.name for n in unexplained if best in explains[n]}


def _singles(question: Question, value: ToolValue, readings: Iterable[Deviation]) -> list[Deviation]:
    return [one for one in readings if _gives(question, [one], value)]


def _double(question: Question, value: ToolValue, readings: Sequence[Deviation]) -> str:
    both = ((a, b) for a in readings for b in readings if a is not b)
    return next((f"{a.name} + {b.name}" for a, b in both if _gives(question, [a, b], value)), "")


def _gives(question: Question, readings: Iterable[Deviation], value: ToolValue) -> bool:
    changed: Question | None = question
    for one in readings:
        changed = None if changed is None else one.change(changed)
    if changed is None:
        return False
    try:
        exact = exact_answer(changed.case, changed.measure)
    except WeirError:
        return False
    per_query = dict(value.per_query)
    if value.mean is None and set(per_query) != set(exact.per_query):
        return False
    if value.mean is not None and not value.agrees(value.mean, float(exact.mean)):
        return False
    return all(
        value.agrees(one, float(exact.per_query[q])) for q, one in per_query.items() if q in exact.per_query
    )


# Outcomes of questions.

Outcome: TypeAlias = Literal["passed", "differs", "refused", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "differs", "refused", "not applicable")


@dataclass(frozen=True)
class ValueDifference:
    """A tool's value, for one query or the mean, that differs from the exact value."""

    query: str | None
    """None for the mean."""
    found: float | None
    """None for a missing value."""
    exact: Number

    @property
    def difference(self) -> float:
        """The absolute difference; infinite if the value is missing or not finite."""
        if self.found is None or not math.isfinite(self.found):
            return math.inf
        return float(abs(Fraction(self.found) - Fraction(self.exact.decimal)))


@dataclass(frozen=True)
class Graded:
    """A tool's outcome for a measure on a test vector."""

    vector: Vector
    measure: str
    outcome: Outcome
    note: str = ""
    """Why it was refused or does not apply, or the number given instead of a refusal."""
    why: str = ""
    """The reading that gives the tool's value, if it differs."""
    differences: tuple[ValueDifference, ...] = ()


def grade(answers: Answers, vectors: Iterable[Vector], explain: bool = True) -> list[Graded]:
    """Return the outcome for each test vector and measure; "not applicable" for a vector without an answer.

    explain: also find the cause of differences, which takes longer.
    """
    graded = [g for v in vectors for g in _grade_reply(v, answers.replies.get(v.id))]
    if not explain:
        return graded
    wrong = [g for g in graded if g.differences]
    reasons = iter(
        causes([(g.vector.case, g.measure, answers.replies[g.vector.id].measures[g.measure]) for g in wrong])
    )
    return [replace(g, why=next(reasons)) if g.differences else g for g in graded]


def _grade_reply(vector: Vector, reply: VectorReply | None) -> Iterator[Graded]:
    reply = reply or VectorReply({}, "it gave no answer")
    expected = {e.name: e for e in vector.expected}
    for name in vector.measures:
        value = reply.measures.get(name)
        if reply.died is not None:
            yield Graded(vector, name, "refused", reply.died)
        elif value is None:
            yield Graded(vector, name, "not applicable", reply.not_applicable or "it has no such measure")
        elif vector.error is not None and value.refused is not None:
            yield Graded(vector, name, "passed", value.refused)
        elif vector.error is not None:
            last = "".join(map(str, value.values()[-1:]))
            kind = vector.error.partition(" (query ")[0]
            yield Graded(vector, name, "differs", last, f"accepts what must be refused: {kind}")
        elif value.refused is not None:
            yield Graded(vector, name, "refused", value.refused)
        else:
            differences = tuple(_value_differences(expected[name], value))
            yield Graded(vector, name, "differs" if differences else "passed", differences=differences)


def _value_differences(expected: Expected, value: ToolValue) -> Iterator[ValueDifference]:
    per_query = dict(value.per_query)
    for query, exact in expected.per_query.items():
        if query in per_query and not value.agrees(per_query[query], float(exact)):
            yield ValueDifference(query, per_query[query], exact)
        elif query not in per_query and value.mean is None:
            yield ValueDifference(query, None, exact)
    if value.mean is not None and not value.agrees(value.mean, float(expected.mean)):
        yield ValueDifference(None, value.mean, expected.mean)


# Conformance in numbers. docs/conformance.json holds these fields.


@dataclass(frozen=True)
class Counts:
    """How many (vector, measure) pairs of a group passed, differ, were refused or do not apply."""

    group: str
    vectors: int
    """Number of inputs."""
    passed: int
    differs: int
    refused: int
    not_applicable: int


@dataclass(frozen=True)
class Cause:
    """A reason why a tool differs or refuses, with its number of cases."""

    kind: str
    """"differs" or "refused"."""
    why: str
    questions: int
    vector: str
    measure: str
    query: str = ""
    """Query of the example; "" for the mean."""
    found: str = ""
    """The tool's value."""
    exact: str = ""


@dataclass(frozen=True)
class Summary:
    """Numbers of a tool's outcomes on the test vectors, by group of vectors, and the causes of its differences."""

    tool: str
    package: str
    version: str
    clean: int
    """Vectors with passed questions only."""
    asked: int
    """Vectors with a question that applies to the tool."""
    counts: tuple[Counts, ...]
    causes: tuple[Cause, ...]

    @property
    def total_counts(self) -> Counts:
        """The counts of all groups added up, as group "all"."""
        rows = [(c.vectors, c.passed, c.differs, c.refused, c.not_applicable) for c in self.counts]
        return Counts("all", *(sum(column) for column in zip(*rows, strict=True)))


def summarised(answers: Answers, graded: Sequence[Graded]) -> Summary:
    """Return the outcomes counted by group, with the causes of differences and refusals."""
    outcomes: dict[str, set[str]] = {}
    for g in graded:
        outcomes.setdefault(g.vector.id, set()).add(g.outcome)
    applicable = [one - {"not applicable"} for one in outcomes.values()]
    counts = []
    for name in groups():
        if members := [g for g in graded if g.vector.group == name]:
            by_outcome = Counter(g.outcome for g in members)
            inputs = len({g.vector.id for g in members})
            counts.append(Counts(name, inputs, *(by_outcome[outcome] for outcome in OUTCOMES)))
    return Summary(
        answers.tool,
        answers.package,
        answers.version,
        sum(one == {"passed"} for one in applicable),
        sum(bool(one) for one in applicable),
        tuple(counts),
        tuple(_causes(graded, "differs") + _causes(graded, "refused")),
    )


def _causes(graded: Iterable[Graded], kind: str) -> list[Cause]:
    by_reason: dict[str, list[Graded]] = {}
    for g in graded:
        if g.outcome != kind:
            continue
        reason = g.why
        if kind != "differs":  # a refusal without the numbers and names of its question
            first = g.note.partition(". ")[0].rstrip(".")
            reason = re.sub(r"\d+", "…", re.sub(r"'\w*\d\w*'", "'…'", first))
        by_reason.setdefault(reason, []).append(g)
    rows = []
    for reason, members in by_reason.items():
        query = found = exact = ""
        if members[0].differences:
            # The shortest input, where the reader sees most quickly what happened.
            example = min(members, key=lambda g: sum(map(len, g.vector.case.run.values())))
            one = example.differences[0]
            query, found = one.query or "", "" if one.found is None else repr(one.found)
            exact = one.exact.fraction or one.exact.decimal
        else:
            example = max(members, key=_number_in_note)  # such as an nDCG of 1.63
            found = example.note
        rows.append(
            Cause(kind, reason, len(members), example.vector.id, example.measure, query, found, exact)
        )
    return sorted(rows, key=lambda cause: -cause.questions)


def _number_in_note(graded: Graded) -> float:
    try:
        number = float(graded.note)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def worst(graded: Iterable[Graded], most: int = 5) -> list[tuple[Graded, ValueDifference]]:
    """Return (outcome, its largest difference) of the `most` outcomes farthest from the exact value, farthest
    first."""
    largest = [(g, max(g.differences, key=lambda d: d.difference)) for g in graded if g.differences]
    return sorted(largest, key=lambda pair: -pair[1].difference)[:most]


def vectors_fingerprint() -> str:
    """Return a hash of all test vectors and their exact answers, as 12 hex digits."""
    content = [(v.id, asdict(v.case), v.measures, v.expected, v.error) for v in vectors()]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]
