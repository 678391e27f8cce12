"""What an answer says: a score or a choice, read with care and never guessed; what became of it is counted."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weir.llm.chat_shapes import ChatReply
from weir.llm.passage_text import without_echoes

__all__ = [
    "HIGHEST_SCORE",
    "SCORE_NAMES",
    "ScoreVerdict",
    "VerdictKind",
    "nothing_said",
    "read_choice",
    "read_requirements",
    "read_score",
    "said",
]

VerdictKind: TypeAlias = Literal["ok", "repaired", "refused", "missing", "duplicate", "out of range"]
"""ok: in the form that was asked for; repaired: in another, and clear; refused: the model would not; missing: no
verdict, or a part of it is cut; duplicate: several that differ; out of range: beyond what was asked for."""
HIGHEST_SCORE = 10
MAX_REQUIREMENTS = 12

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r".*</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<(?:think|thinking|thought|reasoning)>.*", re.DOTALL | re.IGNORECASE)
_NUMBER = r"(-?\d+(?:[.,]\d+)?)"
_PLAIN = re.compile(rf"\W*?{_NUMBER}[.!\s*`]*")
SCORE_NAMES = (
    "score|rating|relevance|grade|punktzahl|wertung|bewertung|note|puntuaci[oó]n|puntaje|calificaci[oó]n|pontua[cç][aã]o|"
    "nota|punteggio|ocena|оценка|балл|评分|評分|分数|分數|得分|スコア|点数|評価|점수"
)
_NAMED = re.compile(
    rf"(?:{SCORE_NAMES})[^\d\n-]{{0,12}}{_NUMBER}(?:\s*(?:/|out of|von|sur|de|из)\s*(\d+))?", re.IGNORECASE
)
_LINE = re.compile(rf"\W*{_NAMED.pattern}\W*", re.IGNORECASE)
_OF = re.compile(rf"(?<![\d.,]){_NUMBER}\s*(?:/|out of|von|sur|из)\s*(\d+)", re.IGNORECASE)
_ANY = re.compile(rf"(?<![\w.,]){_NUMBER}(?![\w])")
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:no|')t|won't|will not|must decline)|as an AI|"
    r"cannot (?:help|assist))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ScoreVerdict:
    """A score from 0 to the highest asked for, None where the answer has none; written: as the answer writes it."""

    score: float | None
    kind: VerdictKind
    written: str = ""


def said(reply: ChatReply) -> str:
    """An answer without the thoughts before it, with all digits in ASCII; "" where it is all thought."""
    text = _THOUGHT.sub(" ", reply.text)
    text = _THOUGHT_ENDS.sub(" ", text)
    text = _THOUGHT_BEGINS.sub(" ", text)
    digits = [str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text.replace("’", "'")]
    return "".join(digits).strip()


def nothing_said(reply: ChatReply, text: str) -> VerdictKind:
    """What an answer without a verdict is."""
    return "refused" if reply.finish == "refused" or _REFUSAL.search(text) else "missing"


def read_score(
    reply: ChatReply, passage: str, last: bool = False, highest: int = HIGHEST_SCORE
) -> ScoreVerdict:
    """The score of a passage, 0 to `highest`; last: whether the last one named counts, as it does behind reasoning.

    What the answer quotes of the passage is no verdict. Several different scores are none, since nothing tells which
    one is meant, and one beyond the range is not cut to it.
    """
    text = said(reply)
    if reply.finish == "refused" or not text:
        return ScoreVerdict(None, nothing_said(reply, text))
    strict = _strict_score(text)
    if strict is not None:
        return _ranged([(strict, None)], "ok", highest)
    if last and reply.finish == "length":
        return ScoreVerdict(None, "missing")  # the line with the score was cut
    whole = _LINE.fullmatch(text.splitlines()[-1] if last else text)
    if whole is not None:
        return _ranged([(whole[1], whole[2])], "ok" if last else "repaired", highest)
    own = without_echoes(text.strip("\"'“” "), (passage,))
    found = [(m[1], m[2]) for m in _NAMED.finditer(own)] or [(m[1], m[2]) for m in _OF.finditer(own)]
    if not found and not last:
        found = [(m[1], None) for m in _ANY.finditer(own)]
    if not found:
        return ScoreVerdict(None, nothing_said(reply, own))
    return _ranged(found[-1:] if last else found, "repaired", highest)


def _strict_score(text: str) -> str | None:
    """The number, where the answer is nothing else, or JSON with an entry "score"."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        return plain[1]
    body = re.sub(r"^```\w*\s*|\s*```$", "", text)
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        value = found.get("score") if isinstance(found, dict) else None
        if type(value) in (int, float) or (isinstance(value, str) and _PLAIN.fullmatch(value)):
            return str(value)
    return None


def _ranged(found: list[tuple[str, str | None]], kind: VerdictKind, highest: int) -> ScoreVerdict:
    """The one score among those found, each with the highest that it is out of."""
    values = {float(number.replace(",", ".")) for number, _ in found}
    written, whole = found[-1]
    if len(values) > 1:
        return ScoreVerdict(None, "duplicate")
    [value] = values
    if not 0 <= value <= highest or (whole is not None and int(whole) != highest):
        return ScoreVerdict(None, "out of range")
    return ScoreVerdict(value, kind, written)


def read_choice(reply: ChatReply, passages: tuple[str, ...]) -> tuple[int | None, VerdictKind]:
    """Which of some passages is best, from 1, None where the answer does not say."""
    text = said(reply)
    if reply.finish == "refused" or not text:
        return None, nothing_said(reply, text)
    plain = re.fullmatch(r"\W*(?:passage\s*)?\W*(\d+)\W*", text, re.IGNORECASE)
    found = {plain[1]} if plain else set(_ANY.findall(without_echoes(text, passages)))
    if not found:
        return None, nothing_said(reply, text)
    if len(found) > 1:
        return None, "duplicate"
    [one] = found
    if one not in {str(number) for number in range(1, len(passages) + 1)}:
        return None, "out of range"
    return int(one), "ok" if plain else "repaired"


def read_requirements(reply: ChatReply) -> tuple[tuple[str, ...], VerdictKind]:
    """The requirements that an answer names; () where it names none."""
    text = said(reply)
    if reply.finish == "refused" or not text:
        return (), nothing_said(reply, text)
    body = re.sub(r"^```\w*\s*|\s*```$", "", text)
    kind: VerdictKind = "ok"
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        found = found.get("requirements") if isinstance(found, dict) else found
    if not isinstance(found, list):
        kind = "repaired"
        listed = re.findall(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", text, re.MULTILINE)
        found = listed or re.findall(r'"([^"\n]+)"(?=\s*[,\]])', text[text.find("[") :])  # cut JSON
    texts = [" ".join(one.split()) for one in found if isinstance(one, str) and one.strip()]
    unique = tuple(dict.fromkeys(texts))[:MAX_REQUIREMENTS]
    return (unique, kind) if unique else ((), nothing_said(reply, text))
