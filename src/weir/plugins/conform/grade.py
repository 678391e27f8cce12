"""What a tool's answers are worth: compared with the exact values, question by question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from weir.plugins.conform.likely_cause import causes
from weir.plugins.conform.tools import Answers, ToolValue, VectorReply
from weir.plugins.conform.vectors import Expected, Number, Vector

__all__ = ["OUTCOMES", "Graded", "Outcome", "ValueDifference", "grade"]

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
