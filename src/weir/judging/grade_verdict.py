"""What a judge's answer says: a grade of its prompt's scale, read with care and never guessed.

An answer is read in this order: the verdict or the label alone; JSON; the lines that the prompt asks for; a label
behind a word such as "score" or "answer"; a label in plain words, where no reasoning was asked for. What it quotes of
a passage is no verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from weir.judging.judge_prompt import GRADE_PLACE, GradeScale
from weir.llm.chat_shapes import ChatReply
from weir.llm.passage_text import has_hidden_instruction, without_echoes
from weir.llm.verdicts import SCORE_NAMES, VerdictKind, nothing_said, said

__all__ = ["GradeVerdict", "read_grade", "speaks_to_the_judge"]

_NUMBER = r"-?\d+(?:[.,]\d+)?"
_OUT_OF = r"(?:\s*(?:/|out of|of|von|sur|de|из)\s*(?P<top>\d+))?"
_RANGE = r"(?P<open>\s*(?:[-–—~]|or|to|and|bis|oder|ou|o|y|и|или|至|到)\s*\d)?"
_MARKS = r"[\s\"'“”‘’*_`#.!()\[\]:：-]*"
_KEYS = (
    "o",
    "final score",
    "final_score",
    "overall",
    "score",
    "grade",
    "answer",
    "label",
    "verdict",
    "relevance",
)
_IS = r"(?:\b(?:is|was|ist|es|est|è)\b|は|是|为|為|[:：=])"
_GAP = r"[^\w\n-]{0,12}"
_NAMED_BY = (
    rf"(?:(?:{SCORE_NAMES}){_GAP}{_IS}?{_GAP}"
    rf"|\b(?:O|answer|verdict|label|judge?ment|overall|antwort|urteil|réponse|respuesta)\b[\"'*)]*\s*{_IS}{_GAP})"
)
_SAYING = r"\b(?:is|are|as|be|it's|that's)\b"
_ENDS = r"(?=[\s*\"'”’]*(?:$|[.,;:!)\n]|\b(?:because|since|as|here|to|for)\b))"
_SENTENCE_ENDS = re.compile(r"[.!?\n]+\s*")


@dataclass(frozen=True)
class GradeVerdict:
    """A grade of the scale, None where the answer has none, and what became of the answer."""

    grade: int | None
    kind: VerdictKind


@dataclass(frozen=True)
class _Found:
    """A verdict as it is written: a label, or any number; top: what it is out of; open: a range of several."""

    label: str
    top: str | None = None
    open: bool = False


@dataclass(frozen=True)
class _Patterns:
    """How answers to one prompt write a verdict.

    form: the verdict line; alone: it as a whole line; label: a label as a whole text; named: behind a word for a score;
    plain: in a sentence; telling: what could be a label, for finding echoes.
    """

    form: re.Pattern[str]
    alone: re.Pattern[str]
    label: re.Pattern[str]
    named: re.Pattern[str]
    plain: re.Pattern[str]
    telling: str


@cache
def _patterns(scale: GradeScale) -> _Patterns:
    words = sorted((label for label in scale.labels if not label.isdecimal()), key=len, reverse=True)
    listed = "|".join(r"[\s_-]*".join(map(re.escape, word.split())) for word in words)
    telling = r"\d" if scale.numeric else rf"(?<!\w)(?:{listed})(?!\w)"
    label = rf"(?P<label>{_NUMBER}){_OUT_OF}{_RANGE}" if scale.numeric else rf"(?P<label>{listed})(?![\w-])"
    front, _, behind = scale.verdict.partition(GRADE_PLACE)
    before, after = _loosely(front), _loosely(behind)
    in_plain = rf"(?<![\w.,-]){label}(?!\w)" if scale.numeric else rf"{_SAYING}[\s*\"'“‘]*{label}{_ENDS}"
    flags = re.IGNORECASE | re.MULTILINE
    form = rf"{before}{_MARKS}{label}"
    return _Patterns(
        re.compile(form, flags),
        re.compile(rf"{_MARKS}{form}{_MARKS}{after}{_MARKS}", flags),
        re.compile(rf"{_MARKS}{label}{_MARKS}", flags),
        re.compile(rf"{_NAMED_BY}{label}", flags),
        re.compile(in_plain, flags),
        telling,
    )


def _loosely(text: str) -> str:
    """A part of the verdict line, whatever blanks, marks and colon it is written with."""
    parts = [re.escape(word) for word in re.findall(r"\w+", text)]
    return r"[\s*_`#:：]*".join(parts) + (r"[\s*_`]*[:：=]" if text.rstrip().endswith(":") else "")


def read_grade(reply: ChatReply, passages: tuple[str, ...], scale: GradeScale) -> GradeVerdict:
    """The grade that an answer gives; passages: those it was shown.

    Several different grades are none where no reasoning was asked for; behind reasoning the last one counts. One beyond
    the scale is not moved into it.
    """
    text = said(reply)
    if reply.finish == "refused" or not text:
        return GradeVerdict(None, nothing_said(reply, text))
    patterns = _patterns(scale)
    alone = patterns.alone.fullmatch(text) or patterns.label.fullmatch(text)
    if alone is not None:
        return _settled([_found(alone)], scale, "ok")
    if (labels := _in_json(text)) is not None:
        return _settled(labels, scale, "repaired")
    own = without_echoes(text.strip("\"'“” "), passages, patterns.telling)
    named = _named(own, passages, scale)
    if scale.last:
        found = _behind_reasoning(reply, text, named, scale)
    else:
        found = _settled(named, scale, "repaired") if named else _in_words(own, scale)
    return found or GradeVerdict(None, nothing_said(reply, own))


def _named(own: str, passages: tuple[str, ...], scale: GradeScale) -> list[_Found]:
    """The verdict lines of an answer, else labels behind a word for a score; what a passage says, too, is left out."""
    patterns = _patterns(scale)
    formed = () if scale.verdict == GRADE_PLACE else (patterns.form,)
    shown = [" ".join(passage.split()).casefold() for passage in passages]
    for pattern in (*formed, patterns.named):
        matches = [(" ".join(match[0].split()).casefold(), match) for match in pattern.finditer(own)]
        if found := [_found(match) for text, match in matches if not any(text in one for one in shown)]:
            return found
    return []


def _in_words(own: str, scale: GradeScale) -> GradeVerdict | None:
    """The one grade that an answer says in a sentence, None where it says none; own: the answer without echoes."""
    patterns = _patterns(scale)
    if found := [_found(match) for match in patterns.plain.finditer(own)]:
        return _settled(found, scale, "repaired")
    if scale.numeric:
        return None
    sentences = [patterns.label.fullmatch(one) for one in _SENTENCE_ENDS.split(own)]
    if found := [_found(match) for match in sentences if match is not None]:
        return _settled(found, scale, "repaired")
    first = patterns.label.match(own)
    if first is None or not re.match(_ENDS, own[first.end("label") :], re.MULTILINE):
        return None
    rest = own[first.end("label") :].lstrip()
    others = list(patterns.label.finditer(rest)) if re.match(r"(?:to|for)\b", rest) else []
    return _settled([_found(match) for match in (first, *others)], scale, "repaired")


def _behind_reasoning(
    reply: ChatReply, text: str, named: list[_Found], scale: GradeScale
) -> GradeVerdict | None:
    """The last verdict of an answer, None where it has none; named: those that are no echoes."""
    last = _patterns(scale).alone.fullmatch(text.splitlines()[-1])
    if last is None and reply.finish == "length":
        return GradeVerdict(None, "missing")  # the line with the verdict was cut
    before = _settled(named[-1:], scale, "repaired") if named else None
    if last is None:
        return before
    told = _settled([_found(last)], scale, "ok")
    # The last line may be an echo of a passage that ends with a verdict: where the answer says another, neither counts.
    return told if before is None or before.grade == told.grade else GradeVerdict(None, "duplicate")


def _found(match: re.Match[str]) -> _Found:
    groups = match.groupdict()
    return _Found(match["label"], groups.get("top"), bool(groups.get("open")))


def _in_json(text: str) -> list[_Found] | None:
    """The verdict of an answer that is a JSON object, bare or fenced, None where it is none or has no verdict."""
    body = re.sub(r"^```\w*\s*|\s*```$", "", text)
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
    if not isinstance(found, dict):
        return None
    entries = {str(key).casefold(): value for key, value in found.items()}
    value = next((entries[key] for key in _KEYS if key in entries), None)
    if type(value) in (int, float):
        return [_Found(f"{value:g}")]
    return [_Found(value)] if isinstance(value, str) else None


def _settled(found: Sequence[_Found], scale: GradeScale, kind: VerdictKind) -> GradeVerdict:
    """The one grade among those found."""
    if any(one.open for one in found):
        return GradeVerdict(None, "duplicate")
    grades = {_grade(one, scale) for one in found}
    if len(grades) > 1:
        return GradeVerdict(None, "duplicate")
    [grade] = grades
    return GradeVerdict(grade, kind if grade is not None else "out of range")


def _grade(found: _Found, scale: GradeScale) -> int | None:
    """The grade of what was found, None beyond the scale."""
    if scale.numeric:
        try:
            value = float(found.label.replace(",", "."))
        except ValueError:
            return None
        beyond = found.top is not None and int(found.top) != max(map(int, scale.labels))
        known = {float(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
        return None if beyond else known.get(value)
    known_words = {_folded(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    return known_words.get(_folded(found.label))


def _folded(label: str) -> str:
    return re.sub(r"[\s_-]+", "", label).casefold()


def speaks_to_the_judge(passage: str, scale: GradeScale) -> bool:
    """Whether a passage holds an instruction, or a verdict in the form that the prompt asks for."""
    formed = scale.verdict != GRADE_PLACE and _patterns(scale).form.search(passage) is not None
    return formed or has_hidden_instruction(passage)
