"""A tool's conformance in numbers: counts by group, what explains the differences, the worst of them."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from weir.plugins.conform.grade import OUTCOMES, Graded, ValueDifference
from weir.plugins.conform.tools import Answers
from weir.plugins.conform.vectors import groups, vectors

__all__ = ["Cause", "Counts", "Summary", "fingerprint", "summary", "worst"]


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
