"""Prompts of judges as files: what a model is asked, what its labels are worth, and how it writes a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from weir.errors import BadValue, UnknownName
from weir.io.storage.toml_file import read_toml
from weir.llm.prompt import PromptTemplate, checked_template, prompt_digest

__all__ = ["GradeScale", "JudgePrompt", "judge_prompt", "judge_prompts"]

FOLDER = Path(__file__).with_name("prompts")
GRADE_PLACE = "{grade}"
PLACES = ("query", "objective", "passage", "positive", "token")
PLACE = re.compile(r"\{(\w+)\}")
MAX_GRADE = 100
_JUDGE_ENTRIES = ("verdict", "last", "relevant_from", "grades", "answers")


@dataclass(frozen=True)
class GradeScale:
    """The grades of a judge, and the labels by which its answers name them.

    labels, grades: aligned; several labels may stand for one grade. verdict: the line that is asked for, with {grade}
    in the label's place; "{grade}" for the label alone. last: whether the verdict stands behind reasoning, so that the
    last one counts; relevant_from: the lowest grade of a relevant document.
    """

    labels: tuple[str, ...]
    grades: tuple[int, ...]
    verdict: str = GRADE_PLACE
    last: bool = False
    relevant_from: int = 1

    @property
    def lowest(self) -> int:
        """The grade of a document that has nothing of what is asked."""
        return min(self.grades)

    @property
    def highest(self) -> int:
        """The best grade."""
        return max(self.grades)

    @property
    def numeric(self) -> bool:
        """Whether all labels are numbers."""
        return all(label.isdecimal() for label in self.labels)

    def label_of(self, grade: int) -> str:
        """The first label of a grade."""
        return self.labels[self.grades.index(grade)]


@dataclass(frozen=True)
class JudgePrompt:
    """What a judge is asked and how its answer is read; answers: (text, grade) as the file documents them."""

    template: PromptTemplate
    scale: GradeScale
    answers: tuple[tuple[str, int], ...]

    @property
    def needs_positive(self) -> bool:
        """Whether it shows a passage that people found relevant beside the one to judge."""
        return "{positive}" in self.template.user

    def describe(self) -> dict[str, object]:
        """Its name and version."""
        return self.template.describe()


def judge_prompts() -> list[str]:
    """The names of the prompts that come with Weir."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def judge_prompt(name: str) -> JudgePrompt:
    """The prompt of that name, or in a TOML file of that path.

    Raises UnknownName for neither, FormatError for no TOML, BadValue for entries that are wrong or missing.
    """
    known = judge_prompts()
    if name not in known and not name.endswith(".toml"):
        raise UnknownName("prompt of a judge, nor a path that ends in .toml,", name, known)
    path = FOLDER / f"{name}.toml" if name in known else Path(name)
    entries = read_toml(path, "a judge's prompt, with system, user, objective, max_tokens and grades")
    own = {entry: entries[entry] for entry in _JUDGE_ENTRIES if entry in entries}
    asked = {entry: value for entry, value in entries.items() if entry not in own}
    checked = checked_template(path, asked, ("query", "passage"))
    if odd := [p for p in PLACE.findall(checked.system + checked.user) if p not in PLACES]:
        raise BadValue(f"{path}: {{{odd[0]}}} is no place that a judge fills; expected {', '.join(PLACES)}")
    deciding = {entry: value for entry, value in entries.items() if entry != "answers"} | {
        "user": checked.user
    }
    template = replace(checked, digest=prompt_digest(deciding))
    scale = _scale(path, own)
    return JudgePrompt(template, scale, _answers(path, own.get("answers", []), scale))


def _scale(path: Path, own: Mapping[str, Any]) -> GradeScale:
    """The scale of a file; raises BadValue."""
    grades, verdict = own.get("grades"), own.get("verdict", GRADE_PLACE)
    if not isinstance(grades, dict) or not all(_is_grade(grade) for grade in grades.values()):
        raise BadValue(
            f"{path}: [grades] says what each label is worth, a whole number from 0 to {MAX_GRADE}"
        )
    labels = tuple(" ".join(label.split()) for label in grades)
    numeric = [label.isdecimal() for label in labels]
    if len(set(grades.values())) < 2 or not all(labels) or len({x.casefold() for x in labels}) < len(labels):
        raise BadValue(
            f"{path}: [grades] has {len(grades)} labels; expected different ones, of two grades or more"
        )
    if any(numeric) and not all(numeric):
        raise BadValue(f"{path}: [grades] has numbers and words as labels; expected either")
    if not isinstance(verdict, str) or verdict.count(GRADE_PLACE) != 1:
        raise BadValue(f"{path}: verdict is {verdict!r}; expected a line with {GRADE_PLACE} in it")
    last, relevant = own.get("last", False), own.get("relevant_from", 1)
    if type(last) is not bool or relevant not in grades.values() or relevant == min(grades.values()):
        raise BadValue(f"{path}: last is true or false, relevant_from a grade above the lowest")
    return GradeScale(labels, tuple(grades.values()), verdict.strip(), last, relevant)


def _is_grade(grade: object) -> bool:
    return type(grade) is int and 0 <= grade <= MAX_GRADE


def _answers(path: Path, given: object, scale: GradeScale) -> tuple[tuple[str, int], ...]:
    """The documented answers; raises BadValue."""
    listed: list[Any] = given if isinstance(given, list) else [None]
    for one in listed:
        if not (isinstance(one, dict) and set(one) == {"text", "grade"} and isinstance(one["text"], str)):
            raise BadValue(f"{path}: [[answers]] has a text and the grade that it gives")
        if one["grade"] not in scale.grades:
            raise BadValue(f"{path}: [[answers]] gives the grade {one['grade']!r}, which [grades] has not")
    return tuple((one["text"], one["grade"]) for one in listed)
