"""What an answer says: a verdict in the line that was asked for, read strictly; what became of each answer is counted.

A prompt that shows passages asks for a line that begins with a token which none of its texts has (`prompt.py`), so that
no passage knows the line. The verdict is the last line of an answer, and nothing else of the answer is read.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from weir.llm.chat_shapes import ChatReply

__all__ = [
    "HIGHEST_SCORE",
    "NUMBER",
    "OUT_OF",
    "SCORED_KINDS",
    "ScoreVerdict",
    "VerdictForm",
    "VerdictKind",
    "nothing_said",
    "read_choice",
    "read_requirements",
    "read_score",
    "read_verdict",
    "said",
    "several_numbers",
]

VerdictKind: TypeAlias = Literal[
    "ok", "repaired", "unsigned", "refused", "missing", "duplicate", "out of range"
]
"""ok: in the form that was asked for; repaired: in that form but for a detail; unsigned: in the form of a prompt
without a token, as it was published or of JSON, so that a passage may know it; refused: the model would not; missing:
no verdict, or a part of it is cut; duplicate: several that differ; out of range: beyond what was asked for."""
SCORED_KINDS = ("ok", "repaired", "unsigned")
"""Kinds of answers that have a verdict."""
HIGHEST_SCORE = 10
MAX_REQUIREMENTS = 12
MAX_ANSWER_CHARACTERS = 1 << 14
"""What is read of an answer, from its end: models may repeat themselves for ever."""
NUMBER = r"-?\d+(?:[.,]\d+)?"
OUT_OF = r"(?:\s*(?:/|out of|of|von|sur|de|из)\s*(?P<top>\d+))?"

_THOUGHT_TAGS = r"(?:think|thinking|thought|reasoning)"
_THOUGHT_START = re.compile(rf"\s*<{_THOUGHT_TAGS}>", re.IGNORECASE)
_THOUGHT_END = re.compile(rf"</{_THOUGHT_TAGS}>", re.IGNORECASE)
_REPEATED = re.compile(r"([\W_])\1{3,}")
_FENCED = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_SCORE = re.compile(rf"(?P<number>{NUMBER}){OUT_OF}", re.IGNORECASE)
_MARKS = " \t*_`#"
"""Blanks and marks of Markdown, which may stand around a verdict and its line."""
_ENDS = f"{_MARKS}.!。！"
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:no|')t|won't|will not|must decline)|as an AI|"
    r"cannot (?:help|assist))",
    re.IGNORECASE,
)

T = TypeVar("T")
Parsed: TypeAlias = "tuple[T | None, VerdictKind]"


@dataclass(frozen=True)
class VerdictForm:
    """How an answer to a prompt has to give its verdict.

    token: what the last line of the answer begins with; "" where the prompt names none. json: the answer is a JSON
    object and nothing else. line: of a prompt that is sent as published, the words before the verdict in its line, ""
    for the verdict alone; last: whether other lines may stand before that one.
    """

    token: str = ""
    json: bool = False
    line: str = ""
    last: bool = False


@dataclass(frozen=True)
class ScoreVerdict:
    """A score from 0 to the highest asked for, None where the answer has none; written: as the answer writes it."""

    score: float | None
    kind: VerdictKind
    written: str = ""


def said(reply: ChatReply) -> str:
    """An answer without the thoughts before it, with all digits in ASCII; "" where it is all thought."""
    text = _REPEATED.sub(r"\1\1\1", reply.text[-MAX_ANSWER_CHARACTERS:])
    text = _THOUGHT_END.split(text)[-1]
    if _THOUGHT_START.match(text):
        return ""
    digits = [str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text.replace("’", "'")]
    return "".join(digits).strip()


def nothing_said(reply: ChatReply, text: str) -> VerdictKind:
    """What an answer without a verdict is."""
    return "refused" if reply.finish == "refused" or _REFUSAL.search(text) else "missing"


def read_verdict(
    reply: ChatReply,
    form: VerdictForm,
    parse: Callable[[str], Parsed[T]],
    entries: Sequence[str] = (),
    shown: Sequence[str] = (),
) -> Parsed[T]:
    """The verdict of an answer, and what became of the answer.

    parse: the verdict that a text is, with "missing" for none; entries: names of the verdict in an answer of JSON;
    shown: the passages of the prompt, which only matter to a form without a token.
    """
    text = said(reply)
    if reply.finish == "refused" or not text:
        return None, nothing_said(reply, text)
    if form.json:
        found, kind = _of_object(text, parse, entries)
    elif not (form.token or form.line or form.last):
        found, kind = (None, "missing") if reply.finish == "length" else parse(_bare(text))
    else:
        found, kind = _of_last_line(text, form, parse, reply.finish == "length", shown)
    if found is None and kind == "missing":
        return None, nothing_said(reply, text)
    return found, "unsigned" if not form.token and kind in SCORED_KINDS else kind


def _of_last_line(
    text: str, form: VerdictForm, parse: Callable[[str], Parsed[T]], cut: bool, shown: Sequence[str]
) -> Parsed[T]:
    """The verdict of the last line, if all lines in the form say the same."""
    lines = [line for line in _whole(text).splitlines() if re.search(r"\w", line)]
    behind = [_behind(line, form) for line in lines]
    if not lines or behind[-1] is None or cut:
        return None, "missing"
    if not form.token:
        folded = " ".join(lines[-1].split()).casefold()
        if any(folded in " ".join(passage.split()).casefold() for passage in shown):
            return None, "missing"
    found, kind = parse(behind[-1])
    others = [parse(one)[0] for one in behind[:-1] if one is not None]
    return (None, "duplicate") if any(other not in (None, found) for other in others) else (found, kind)


def _whole(text: str) -> str:
    """An answer without what may stand around all of it: a code fence, quotation marks."""
    fenced = _FENCED.fullmatch(text)
    whole = (fenced[1] if fenced else text).strip()
    return whole if "\n" in whole else whole.strip("\"'“”")


def _behind(line: str, form: VerdictForm) -> str | None:
    """What stands behind the token, or behind the words of a published line; None for a line of another form."""
    rest: str | None = line.lstrip(f"{_MARKS}-•")
    if form.token:
        rest = _after([form.token], rest)
    published = _after(re.findall(r"\w+", form.line), rest)
    found = rest if form.token and published is None else published
    return None if found is None else _bare(found)


def _after(words: Sequence[str], text: str | None) -> str | None:
    """What stands behind words and the colon after them, whatever marks stand between; None for another beginning."""
    for word in words:
        if text is None or text[: len(word)].casefold() != word.casefold() or text[len(word) :][:1].isalnum():
            return None
        text = text[len(word) :].lstrip(_MARKS)
    return text[1:].lstrip(_MARKS) if words and text and text[0] in ":：=" else text


def _bare(text: str) -> str:
    return text.lstrip(_MARKS).rstrip(_ENDS)


def _of_object(text: str, parse: Callable[[str], Parsed[T]], entries: Sequence[str]) -> Parsed[T]:
    """The verdict of an answer that is a JSON object and nothing else."""
    pairs: list[tuple[str, Any]] = []
    found: object = None

    def noted(entry: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = entry  # the outermost object comes last
        return dict(entry)

    with suppress(ValueError, RecursionError):
        found = json.loads(_whole(text), object_pairs_hook=noted)
    if not isinstance(found, dict):
        return None, "missing"
    named = [value for name, value in pairs if name.casefold() in entries]
    values = named or [value for _, value in pairs if len(pairs) == 1]
    if len(values) > 1 and any(value != values[0] for value in values):
        return None, "duplicate"
    if not values or isinstance(values[0], (dict, bool, type(None))):
        return None, "missing"
    [value] = values[:1]
    return parse(" > ".join(map(str, value)) if isinstance(value, list) else _bare(str(value)))


def several_numbers(text: str) -> bool:
    """Whether a verdict that is not read names several numbers, such as "2 or 3"."""
    return len(set(re.findall(NUMBER, text))) > 1


def read_score(
    reply: ChatReply, form: VerdictForm, highest: int = HIGHEST_SCORE, shown: Sequence[str] = ()
) -> ScoreVerdict:
    """The score that an answer gives, 0 to `highest`; one beyond the range is not cut to it.

    shown: see `read_verdict`.
    """

    def parse(text: str) -> Parsed[tuple[float, str]]:
        match = _SCORE.fullmatch(text)
        if match is None:
            return None, "duplicate" if several_numbers(text) else "missing"
        value, top = float(match["number"].replace(",", ".")), match["top"]
        if not 0 <= value <= highest or (top is not None and int(top) != highest):
            return None, "out of range"
        return (value, match["number"]), "ok" if top is None else "repaired"

    found, kind = read_verdict(reply, form, parse, ("score", "verdict"), shown)
    return ScoreVerdict(None, kind) if found is None else ScoreVerdict(found[0], kind, found[1])


def read_choice(reply: ChatReply, form: VerdictForm, count: int) -> tuple[int | None, VerdictKind]:
    """Which of `count` passages is best, from 1, None where the answer does not say."""
    numbers = {str(number) for number in range(1, count + 1)}

    def parse(text: str) -> Parsed[int]:
        match = re.fullmatch(r"(?:passage\s*)?\[?\s*(\d+)\s*\]?", text, re.IGNORECASE)
        if match is None:
            return None, "duplicate" if several_numbers(text) else "missing"
        return (int(match[1]), "ok") if match[1] in numbers else (None, "out of range")

    return read_verdict(reply, form, parse, ("choice", "best", "passage", "verdict"))


def read_requirements(reply: ChatReply) -> tuple[tuple[str, ...], VerdictKind]:
    """The requirements that an answer names, () where it names none; the prompt shows no passage."""
    text = said(reply)
    if reply.finish == "refused" or not text:
        return (), nothing_said(reply, text)
    kind: VerdictKind = "ok"
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(_whole(text))
        found = found.get("requirements") if isinstance(found, dict) else found
    if not isinstance(found, list):
        kind = "repaired"
        listed = re.findall(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", text, re.MULTILINE)
        found = listed or re.findall(r'"([^"\n]+)"(?=\s*[,\]])', text[text.find("[") :])  # cut JSON
    texts = [" ".join(one.split()) for one in found if isinstance(one, str) and one.strip()]
    unique = tuple(dict.fromkeys(texts))[:MAX_REQUIREMENTS]
    return (unique, kind) if unique else ((), nothing_said(reply, text))
