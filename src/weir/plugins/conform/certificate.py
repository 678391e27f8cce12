"""What a tool's answers are worth, question by question and in numbers."""

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

# ----------
# What a tool's answers are worth: compared with the exact values, question by question.


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
    found = [g for v in vectors for g in _of_vector(v, answers.replies.get(v.id))]
    if not explain:
        return found
    wrong = [n for n, g in enumerate(found) if g.differences]
    told = [answers.replies[found[n].vector.id].measures[found[n].measure] for n in wrong]
    why = causes([(found[n].vector.case, found[n].measure, t) for n, t in zip(wrong, told, strict=True)])
    for n, cause in zip(wrong, why, strict=True):
        found[n] = replace(found[n], why=cause)
    return found


def _of_vector(vector: Vector, reply: VectorReply | None) -> Iterator[Graded]:
    reply = reply or VectorReply({}, "it gave no answer")
    expected = {e.name: e for e in vector.expected}
    for name in vector.measures:
        told = reply.measures.get(name)
        if reply.died is not None:
            yield Graded(vector, name, "refused", reply.died)
        elif told is None:
            yield Graded(vector, name, "not applicable", reply.not_applicable or "it has no such measure")
        elif vector.error is not None:
            yield _of_refusal(vector, name, told)
        elif told.refused is not None:
            yield Graded(vector, name, "refused", told.refused)
        else:
            found = tuple(_differences(expected[name], told))
            yield Graded(vector, name, "differs" if found else "passed", differences=found)


def _of_refusal(vector: Vector, name: str, told: ToolValue) -> Graded:
    """A question that must be refused: every value is one too many."""
    if told.refused is not None:
        return Graded(vector, name, "passed", told.refused)
    said = told.values()[-1:]
    kind = (vector.error or "").partition(" (query ")[0]
    return Graded(
        vector, name, "differs", str(said[0]) if said else "", f"accepts what must be refused: {kind}"
    )


def _differences(expected: Expected, told: ToolValue) -> Iterator[ValueDifference]:
    said = dict(told.per_query)
    for query, exact in expected.per_query.items():
        if query in said and not told.agrees(said[query], float(exact)):
            yield ValueDifference(query, said[query], exact)
        elif query not in said and told.mean is None:
            yield ValueDifference(query, None, exact)
    if told.mean is not None and not told.agrees(told.mean, float(expected.mean)):
        yield ValueDifference(None, told.mean, expected.mean)


# ----------
# A tool's conformance in numbers: counts by group, what explains the differences, the worst of them.


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
    present = [name for name in groups() if any(g.vector.group == name for g in graded)]
    return Summary(
        answers.tool,
        answers.package,
        answers.version,
        sum(outcomes == {"passed"} for outcomes in seen),
        sum(bool(outcomes) for outcomes in seen),
        tuple(_counts(name, [g for g in graded if g.vector.group == name]) for name in present),
        tuple(_causes(graded, "differs") + _causes(graded, "refused")),
    )


def _counts(group: str, graded: Sequence[Graded]) -> Counts:
    found = Counter(g.outcome for g in graded)
    return Counts(group, len({g.vector.id for g in graded}), *(found[outcome] for outcome in OUTCOMES))


def _causes(graded: Iterable[Graded], kind: str) -> list[Cause]:
    found: dict[str, list[Graded]] = {}
    for g in graded:
        if g.outcome == kind:
            found.setdefault(g.why if kind == "differs" else _first_words(g.note), []).append(g)
    causes = [_cause(kind, why, members) for why, members in found.items()]
    return sorted(causes, key=lambda c: -c.questions)


def _first_words(note: str) -> str:
    """A refusal without the numbers and names that tell one question's from another's."""
    first = note.partition(". ")[0].rstrip(".")
    return re.sub(r"\d+", "…", re.sub(r"'\w*\d\w*'", "'…'", first))


def _cause(kind: str, why: str, members: Sequence[Graded]) -> Cause:
    if not members[0].differences:
        example = max(members, key=_number)  # such as an nDCG of 1.63
        return Cause(kind, why, len(members), example.vector.id, example.measure, found=example.note)
    # The example is the shortest input, where the reader sees most quickly what happened.
    example = min(members, key=lambda g: sum(map(len, g.vector.case.run.values())))
    one = example.differences[0]
    found = "" if one.found is None else repr(one.found)
    exact = one.exact.fraction or one.exact.decimal
    return Cause(kind, why, len(members), example.vector.id, example.measure, one.query or "", found, exact)


def _number(graded: Graded) -> float:
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
