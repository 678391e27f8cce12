"""Conformance of a tool: the outcome of each question, counts by group, and causes of differences."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from weir.plugins.conform.causes import causes
from weir.plugins.conform.tools import Answers, ToolValue, VectorReply
from weir.plugins.conform.vectors import Expected, Number, Vector, groups, vectors

Outcome: TypeAlias = Literal["passed", "differs", "refused", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "differs", "refused", "not applicable")


@dataclass(frozen=True)
class ValueDifference:
    """A value that is not the exact one; query: None for the mean; found: None where a value is missing."""

    query: str | None
    found: float | None
    exact: Number

    @property
    def size(self) -> float:
        """How far apart they are; infinite where one of them is no number."""
        if self.found is None or not math.isfinite(self.found):
            return math.inf
        return float(abs(Fraction(self.found) - Fraction(self.exact.decimal)))


@dataclass(frozen=True)
class Graded:
    """One question, a measure of a vector: what became of it.

    note: why it was refused or does not apply, or the number that a tool gave where it should have refused; why: the
    convention that gives what the tool said, where it differs.
    """

    vector: Vector
    measure: str
    outcome: Outcome
    note: str = ""
    why: str = ""
    differences: tuple[ValueDifference, ...] = ()


def grade(answers: Answers, vectors: Iterable[Vector], explain: bool = True) -> list[Graded]:
    """Grade what a tool said of these vectors; explain: say why values differ, which takes longer."""
    graded = [g for v in vectors for g in grade_reply(v, answers.replies.get(v.id))]
    if not explain:
        return graded
    wrong = [n for n, g in enumerate(graded) if g.differences]
    values = [answers.replies[graded[n].vector.id].measures[graded[n].measure] for n in wrong]
    why = causes([(graded[n].vector.case, graded[n].measure, v) for n, v in zip(wrong, values, strict=True)])
    for n, cause in zip(wrong, why, strict=True):
        graded[n] = replace(graded[n], why=cause)
    return graded


def grade_reply(vector: Vector, reply: VectorReply | None) -> Iterator[Graded]:
    """The measures of a vector with their outcomes."""
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
            differences = tuple(value_differences(expected[name], value))
            yield Graded(vector, name, "differs" if differences else "passed", differences=differences)


def value_differences(expected: Expected, value: ToolValue) -> Iterator[ValueDifference]:
    """The values of a tool that are not the exact ones, the mean last."""
    per_query = dict(value.per_query)
    for query, exact in expected.per_query.items():
        if query in per_query and not value.agrees(per_query[query], float(exact)):
            yield ValueDifference(query, per_query[query], exact)
        elif query not in per_query and value.mean is None:
            yield ValueDifference(query, None, exact)
    if value.mean is not None and not value.agrees(value.mean, float(expected.mean)):
        yield ValueDifference(None, value.mean, expected.mean)


# Conformance in numbers.


@dataclass(frozen=True)
class Counts:
    """How many questions (a measure of a vector) came out how; `vectors`: of how many inputs."""

    group: str
    vectors: int
    passed: int
    differs: int
    refused: int
    not_applicable: int


@dataclass(frozen=True)
class Cause:
    """One reason and how many questions it accounts for, with an example.

    kind: "differs" or "refused"; found, exact: what the tool said and what is right, of the example's query, or of
    its mean where that is "".
    """

    kind: str
    why: str
    questions: int
    vector: str
    measure: str
    query: str = ""
    found: str = ""
    exact: str = ""


@dataclass(frozen=True)
class Summary:
    """A tool's conformance; clean: vectors with nothing but passed questions, of those that could be asked."""

    tool: str
    package: str
    version: str
    clean: int
    asked: int
    counts: tuple[Counts, ...]
    causes: tuple[Cause, ...]

    @property
    def total(self) -> Counts:
        """The counts of all groups together."""
        found = [(c.vectors, c.passed, c.differs, c.refused, c.not_applicable) for c in self.counts]
        return Counts("all", *(sum(column) for column in zip(*found, strict=True)))


def summary(answers: Answers, graded: Sequence[Graded]) -> Summary:
    """What the graded answers of a tool come to."""
    by_vector: dict[str, set[str]] = {}
    for g in graded:
        by_vector.setdefault(g.vector.id, set()).add(g.outcome)
    seen = [outcomes - {"not applicable"} for outcomes in by_vector.values()]
    counts = []
    for name in groups():
        members = [g for g in graded if g.vector.group == name]
        if members:
            outcomes_of = Counter(g.outcome for g in members)
            vectors_of = len({g.vector.id for g in members})
            counts.append(Counts(name, vectors_of, *(outcomes_of[outcome] for outcome in OUTCOMES)))
    return Summary(
        answers.tool,
        answers.package,
        answers.version,
        sum(outcomes == {"passed"} for outcomes in seen),
        sum(bool(outcomes) for outcomes in seen),
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
    return sorted((cause_of(kind, *item) for item in by_reason.items()), key=lambda c: -c.questions)


def cause_of(kind: str, why: str, members: Sequence[Graded]) -> Cause:
    """A reason with its number of questions and an example."""
    if not members[0].differences:
        example = max(members, key=number_in_note)  # such as an nDCG of 1.63
        return Cause(kind, why, len(members), example.vector.id, example.measure, found=example.note)
    # The example is the shortest input, where the reader sees most quickly what happened.
    example = min(members, key=lambda g: sum(map(len, g.vector.case.run.values())))
    one = example.differences[0]
    found = "" if one.found is None else repr(one.found)
    exact = one.exact.fraction or one.exact.decimal
    return Cause(kind, why, len(members), example.vector.id, example.measure, one.query or "", found, exact)


def number_in_note(graded: Graded) -> float:
    """The number in a note, 0 where there is none."""
    try:
        number = float(graded.note)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def worst(graded: Iterable[Graded], most: int = 5) -> list[tuple[Graded, ValueDifference]]:
    """The largest differences, one for each question, no numbers first."""
    largest = [(g, max(g.differences, key=lambda d: d.size)) for g in graded if g.differences]
    return sorted(largest, key=lambda pair: -pair[1].size)[:most]


def fingerprint() -> str:
    """Twelve digits that change when an input or an exact value of the golden vectors does."""
    asked = [(v.id, asdict(v.case), v.measures, v.expected, v.error) for v in vectors()]
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:12]
