"""What a judge's answer says: a grade of its prompt's scale in the line that was asked for, and nothing else of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weir.judging.judge_prompt import GRADE_PLACE, GradeScale, JudgePrompt
from weir.llm.chat_shapes import ChatReply
from weir.llm.passage_text import has_hidden_instruction
from weir.llm.verdicts import NUMBER, OUT_OF, VerdictForm, VerdictKind, read_verdict, several_numbers

__all__ = ["GradeVerdict", "read_grade", "speaks_to_the_judge", "verdict_form"]

_ENTRIES = ("grade", "score", "final score", "final_score", "o", "answer", "label", "verdict", "relevance")
_NUMBERED = re.compile(rf"(?P<number>{NUMBER}){OUT_OF}", re.IGNORECASE)


@dataclass(frozen=True)
class GradeVerdict:
    """A grade of the scale, None where the answer has none, and what became of the answer."""

    grade: int | None
    kind: VerdictKind


def verdict_form(prompt: JudgePrompt, token: str) -> VerdictForm:
    """How answers to a prompt give their grade; token: that of the prompt, "" for one that is sent as published."""
    scale = prompt.scale
    front = scale.verdict.partition(GRADE_PLACE)[0]
    return VerdictForm(token, prompt.template.object_answer, front, scale.last)


def read_grade(
    reply: ChatReply, form: VerdictForm, scale: GradeScale, shown: Sequence[str] = ()
) -> GradeVerdict:
    """The grade that an answer gives; one beyond the scale is not moved into it. shown: see `read_verdict`."""
    grade, kind = read_verdict(
        reply, form, lambda text: (_number if scale.numeric else _label)(text, scale), _ENTRIES, shown
    )
    return GradeVerdict(grade, kind)


def _number(text: str, scale: GradeScale) -> tuple[int | None, VerdictKind]:
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return None, "duplicate" if several_numbers(text) else "missing"
    known = {float(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    grade, top = known.get(float(match["number"].replace(",", "."))), match["top"]
    if grade is None or (top is not None and int(top) != max(map(int, scale.labels))):
        return None, "out of range"
    return grade, "ok" if top is None else "repaired"


def _label(text: str, scale: GradeScale) -> tuple[int | None, VerdictKind]:
    known = {_folded(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    grade = known.get(_folded(text))
    return grade, "missing" if grade is None else "ok"


def _folded(label: str) -> str:
    return re.sub(r"[\s_-]+", "", label).casefold()


def speaks_to_the_judge(passage: str, scale: GradeScale) -> bool:
    """Whether a passage holds an instruction, or a verdict such as "final score: 3"."""
    labels = "|".join(r"[\s_-]*".join(map(re.escape, label.split())) for label in scale.labels)
    words = re.findall(r"\w+", scale.verdict.partition(GRADE_PLACE)[0])
    named = "|".join(filter(None, [r"(?:final|overall) (?:score|grade|verdict)", r"\W{0,4}".join(words)]))
    formed = rf"\b(?:{named})[\s*_`#]{{0,12}}[:：=][\s*_`]{{0,12}}(?:{labels})(?![\w-])"
    return re.search(formed, passage, re.IGNORECASE) is not None or has_hidden_instruction(passage)
