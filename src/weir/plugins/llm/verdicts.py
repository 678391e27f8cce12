"""Read verdicts from answers of chat models."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from weir.services.answers import SCORED_KINDS

# ----------
# Answers.


Finish: TypeAlias = Literal["stop", "length", "refused"]
"""Why an answer ended: complete, cut at max_tokens, or refused by model or provider."""
TokenChoice: TypeAlias = tuple[str, Mapping[str, float]]
"""A token of an answer, and the known log-probabilities of its alternatives, itself included."""


@dataclass(frozen=True)
class ChatReply:
    """A language model's answer to one prompt."""

    text: str
    finish: Finish = "stop"
    model: str = ""
    """The provider's name for the model that answered."""
    tokens_in: int | None = None
    """The provider's count of prompt tokens; None without one."""
    tokens_out: int | None = None
    """The provider's count of answer tokens; None without one."""
    choices: tuple[TokenChoice, ...] = field(default=(), repr=False)
    """The tokens with their alternatives; () if the provider returns none."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON, which `of` reads."""
        return {
            "text": self.text,
            "finish": self.finish,
            "model": self.model,
            "tokens": [self.tokens_in, self.tokens_out],
            "choices": [[token, dict(others)] for token, others in self.choices],
        }

    @staticmethod
    def of(stored: Mapping[str, Any]) -> ChatReply:
        """Return the reply that `to_json` wrote."""
        choices = tuple((token, others) for token, others in stored["choices"])
        tokens_in, tokens_out = stored["tokens"]
        return ChatReply(stored["text"], stored["finish"], stored["model"], tokens_in, tokens_out, choices)


# ----------
# Verdicts: read strictly, in the line that was asked for.
#
# A prompt that shows passages asks for a line that begins with a token which none of its texts has (`prompts.py`), so
# that no passage knows the line. Only the last line of an answer is read.


VerdictKind: TypeAlias = Literal[
    "ok", "repaired", "unsigned", "refused", "missing", "duplicate", "out of range"
]
"""How an answer was read. "ok": in the requested form; "repaired": in that form but for a detail; "unsigned": in the
form of a prompt without a token, which a passage may imitate; "refused"; "missing": no verdict or a cut one;
"duplicate": several that differ; "out of range".
"""
HIGHEST_SCORE = 10
MAX_REQUIREMENTS = 12
MAX_ANSWER_CHARACTERS = 1 << 14
"""Characters read from the end of an answer; a model may repeat itself without end."""
NUMBER = r"-?\d+(?:[.,]\d+)?"
OUT_OF = r"(?:\s*(?:/|out of|of|von|sur|de|из)\s*(?P<top>\d+))?"

_THOUGHT_TAGS = r"(?:think|thinking|thought|reasoning)"
_THOUGHT_START = re.compile(rf"\s*<{_THOUGHT_TAGS}>", re.IGNORECASE)
_THOUGHT_END = re.compile(rf"</{_THOUGHT_TAGS}>", re.IGNORECASE)
_REPEATED = re.compile(r"([\W_])\1{3,}")
_FENCED = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)
_SCORE = re.compile(rf"(?P<number>{NUMBER}){OUT_OF}", re.IGNORECASE)
_MARKS = " \t*_`#"
"""Blanks and Markdown marks that may surround a verdict or its line."""
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
    """The form in which an answer must give its verdict."""

    token: str = ""
    """The word that begins the last line; "" for a prompt without one."""
    json: bool = False
    """The answer is a JSON object and nothing else."""
    line: str = ""
    """The words before the verdict, in a prompt sent as published; "" for the verdict alone."""
    last: bool = False
    """Other lines may precede the verdict."""


@dataclass(frozen=True)
class ScoreVerdict:
    """An answer's score, from 0 to the highest requested; None without a score."""

    score: float | None
    kind: VerdictKind
    written: str = ""
    """The score's text in the answer."""


def answer_text(reply: ChatReply) -> str:
    """Return an answer's text without its thoughts and outer white space; "" if it is all thought.

    At most the last 16,384 characters, digits as ASCII, and repeated marks cut to three.
    """
    text = _REPEATED.sub(r"\1\1\1", reply.text[-MAX_ANSWER_CHARACTERS:])
    text = _THOUGHT_END.split(text)[-1]
    if _THOUGHT_START.match(text):
        return ""
    digits = [str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text.replace("’", "'")]
    return "".join(digits).strip()


def _kind_without_verdict(reply: ChatReply, text: str) -> VerdictKind:
    return "refused" if reply.finish == "refused" or _REFUSAL.search(text) else "missing"


def read_verdict(
    reply: ChatReply,
    form: VerdictForm,
    parse: Callable[[str], Parsed[T]],
    entries: Sequence[str] = (),
    passages: Sequence[str] = (),
) -> Parsed[T]:
    """Return (verdict in an answer or None, kind of reading such as "ok", "repaired" or "missing").

    parse: text -> (verdict, kind), (None, "missing") without a verdict.
    entries: names of the verdict's entry in a JSON answer.
    passages: passages of the prompt, needed by a form without a token.
    """
    text = answer_text(reply)
    if reply.finish == "refused" or not text:
        return None, _kind_without_verdict(reply, text)
    if form.json:
        verdict, kind = _of_object(text, parse, entries)
    elif not (form.token or form.line or form.last):
        verdict, kind = (None, "missing") if reply.finish == "length" else parse(_bare(text))
    else:
        verdict, kind = _of_last_line(text, form, parse, reply.finish == "length", passages)
    if verdict is None and kind == "missing":
        return None, _kind_without_verdict(reply, text)
    return verdict, "unsigned" if not form.token and kind in SCORED_KINDS else kind


def _of_last_line(
    text: str, form: VerdictForm, parse: Callable[[str], Parsed[T]], cut: bool, passages: Sequence[str]
) -> Parsed[T]:
    lines = [line for line in _whole(text).splitlines() if re.search(r"\w", line)]
    behind: list[
        str | None
    ] = []  # the token, or the words of a published line; None for a line of another form
    for line in lines:
        rest: str | None = line.lstrip(f"{_MARKS}-•")
        if form.token:
            rest = _after([form.token], rest)
        published = _after(re.findall(r"\w+", form.line), rest)
        rest = rest if form.token and published is None else published
        behind.append(None if rest is None else _bare(rest))
    if not lines or behind[-1] is None or cut:
        return None, "missing"
    if not form.token:
        folded = " ".join(lines[-1].split()).casefold()
        if any(folded in " ".join(passage.split()).casefold() for passage in passages):
            return None, "missing"
    verdict, kind = parse(behind[-1])
    others = [parse(one)[0] for one in behind[:-1] if one is not None]
    return (None, "duplicate") if any(other not in (None, verdict) for other in others) else (verdict, kind)


def _whole(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    whole = (fenced[1] if fenced else text).strip()
    return whole if "\n" in whole else whole.strip("\"'“”")


def _after(words: Sequence[str], text: str | None) -> str | None:
    for word in words:
        if text is None or text[: len(word)].casefold() != word.casefold() or text[len(word) :][:1].isalnum():
            return None
        text = text[len(word) :].lstrip(_MARKS)
    return text[1:].lstrip(_MARKS) if words and text and text[0] in ":：=" else text


def _bare(text: str) -> str:
    return text.lstrip(_MARKS).rstrip(_ENDS)


def _of_object(text: str, parse: Callable[[str], Parsed[T]], entries: Sequence[str]) -> Parsed[T]:
    pairs: list[tuple[str, Any]] = []
    value: object = None

    def noted(entry: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = entry  # the outermost object comes last
        return dict(entry)

    with suppress(ValueError, RecursionError):
        value = json.loads(_whole(text), object_pairs_hook=noted)
    if not isinstance(value, dict):
        return None, "missing"
    by_name = [value for name, value in pairs if name.casefold() in entries]
    values = by_name or [value for _, value in pairs if len(pairs) == 1]
    if len(values) > 1 and any(value != values[0] for value in values):
        return None, "duplicate"
    if not values or isinstance(values[0], (dict, bool, type(None))):
        return None, "missing"
    value = values[0]
    return parse(" > ".join(map(str, value)) if isinstance(value, list) else _bare(str(value)))


def several_numbers(text: str) -> bool:
    """Return True if a text has at least two different numbers."""
    return len(set(re.findall(NUMBER, text))) > 1


def read_score(
    reply: ChatReply, form: VerdictForm, highest: int = HIGHEST_SCORE, passages: Sequence[str] = ()
) -> ScoreVerdict:
    """Return the score in an answer, from 0 to `highest`; its `score` is None if missing or out of range."""

    def parse(text: str) -> Parsed[tuple[float, str]]:
        match = _SCORE.fullmatch(text)
        if match is None:
            return None, "duplicate" if several_numbers(text) else "missing"
        value, top = float(match["number"].replace(",", ".")), match["top"]
        if not 0 <= value <= highest or (top is not None and int(top) != highest):
            return None, "out of range"
        return (value, match["number"]), "ok" if top is None else "repaired"

    score, kind = read_verdict(reply, form, parse, ("score", "verdict"), passages)
    return ScoreVerdict(None, kind) if score is None else ScoreVerdict(score[0], kind, score[1])


def read_choice(reply: ChatReply, form: VerdictForm, count: int) -> tuple[int | None, VerdictKind]:
    """Return (number of the best passage from 1 to `count`, or None; kind of reading)."""
    numbers = {str(number) for number in range(1, count + 1)}

    def parse(text: str) -> Parsed[int]:
        match = re.fullmatch(r"(?:passage\s*)?\[?\s*(\d+)\s*\]?", text, re.IGNORECASE)
        if match is None:
            return None, "duplicate" if several_numbers(text) else "missing"
        return (int(match[1]), "ok") if match[1] in numbers else (None, "out of range")

    return read_verdict(reply, form, parse, ("choice", "best", "passage", "verdict"))


def read_requirements(reply: ChatReply) -> tuple[tuple[str, ...], VerdictKind]:
    """Return (up to 12 different requirements in an answer, () without any; kind of reading)."""
    text = answer_text(reply)
    if reply.finish == "refused" or not text:
        return (), _kind_without_verdict(reply, text)
    kind: VerdictKind = "ok"
    entries: object = None
    with suppress(ValueError, RecursionError):
        entries = json.loads(_whole(text))
        entries = entries.get("requirements") if isinstance(entries, dict) else entries
    if not isinstance(entries, list):
        kind = "repaired"
        listed = re.findall(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", text, re.MULTILINE)
        entries = listed or re.findall(r'"([^"\n]+)"(?=\s*[,\]])', text[text.find("[") :])  # cut JSON
    texts = [" ".join(one.split()) for one in entries if isinstance(one, str) and one.strip()]
    unique = tuple(dict.fromkeys(texts))[:MAX_REQUIREMENTS]
    return (unique, kind) if unique else ((), _kind_without_verdict(reply, text))


# ----------
# Orders of passages.


_STRICT = re.compile(r"\[\d+\](?:\s*>\s*\[\d+\])*")
_LOOSE = re.compile(r"\[?\s*\[?\d+\]?(?:\s*[>＞,、≻]\s*\[?\d+\]?)*\s*\]?")
_DIGITS = 9
"""Numbers with more digits name no passage."""


@dataclass(frozen=True)
class OrderVerdict:
    """An answer's order of all passages, best first, with the kind of its reading."""

    order: tuple[int, ...]
    """Positions in the prompt, from 0; unnamed passages follow in its order."""
    kind: VerdictKind
    ranked: int = field(default=0, repr=False)
    """How many the answer names."""


def read_order(reply: ChatReply, form: VerdictForm, count: int) -> OrderVerdict:
    """Return an answer's order of `count` passages, as positions from 0.

    Passages left out follow in the prompt's order; repeated and impossible numbers are ignored.
    """

    def parse(text: str) -> tuple[tuple[int, ...] | None, VerdictKind]:
        if _LOOSE.fullmatch(text) is None:
            return None, "missing"
        numbers = [int(n) if len(n) <= _DIGITS else 0 for n in re.findall(r"\d+", text)]
        inside = [number - 1 for number in numbers if 1 <= number <= count]
        ranked = tuple(dict.fromkeys(inside))
        if not ranked:
            return None, "out of range"
        if len(inside) < len(numbers):
            return ranked, "out of range"
        if len(ranked) < len(inside):
            return ranked, "duplicate"
        if len(ranked) < count:
            return ranked, "missing"
        return ranked, "ok" if _STRICT.fullmatch(text) else "repaired"

    ranked, kind = read_verdict(reply, form, parse, ("order", "ranking", "verdict"))
    first = ranked or ()
    order = first + tuple(place for place in range(count) if place not in set(first))
    return OrderVerdict(order, kind, len(first))


# ----------
# Expected scores and choices, from log-probabilities.


MIN_KNOWN_PROBABILITY = 0.5
"""Least total probability of the scores, among all tokens at their place, for an expected score."""
MAX_DIGIT = 9


def expected_score(reply: ChatReply, written: str, highest: int = HIGHEST_SCORE) -> float | None:
    """Return the mean of the scores from 0 to `highest`, weighted by the model's probability of writing each.

    written: the score in the answer.

    None if the log-probabilities do not tell, or for scales above 10.
    """
    at = _place(reply, written)
    if at is None or highest > HIGHEST_SCORE:
        return None
    weights = _scores(reply.choices[at][1], highest)
    if highest == HIGHEST_SCORE and reply.choices[at][0].strip() == "1" and 1 in weights:
        follows = reply.choices[at + 1][1] if at + 1 < len(reply.choices) else {}
        ten = sum(math.exp(value) for token, value in follows.items() if token == "0")
        weights[HIGHEST_SCORE] = weights.get(HIGHEST_SCORE, 0.0) + weights[1] * min(1.0, ten)
        weights[1] *= 1.0 - min(1.0, ten)
    elif reply.choices[at][0].strip() != written and written != str(HIGHEST_SCORE):
        return None  # the score is spread over several tokens
    total = sum(weights.values())
    if total < MIN_KNOWN_PROBABILITY:
        return None
    return sum(score * weight for score, weight in weights.items()) / total


def _place(reply: ChatReply, written: str) -> int | None:
    tokens = [token for token, _ in reply.choices]
    before, start = "".join(tokens).find(reply.text), reply.text.rfind(written)
    if not tokens or not written or min(before, start) < 0:
        return None
    start += before
    end = 0
    for number, token in enumerate(tokens):
        end += len(token)
        if end > start:
            return number
    return None


def choice_chances(reply: ChatReply, choice: int, count: int) -> list[float] | None:
    """Return the probability of each number from 1 to `count` at the token of the model's choice; they sum to 1.

    None if the log-probabilities do not tell, or for more than MAX_DIGIT numbers.
    """
    at = _place(reply, str(choice))
    if at is None or count > MAX_DIGIT:
        return None
    weights = _scores(reply.choices[at][1], count)
    chances = [weights.get(number, 0.0) for number in range(1, count + 1)]
    total = sum(chances)
    return None if total < MIN_KNOWN_PROBABILITY else [chance / total for chance in chances]


def _scores(choices: Mapping[str, float], highest: int) -> dict[int, float]:
    weights: dict[int, float] = {}
    for token, value in choices.items():
        digits = token.strip()
        if digits.isascii() and digits.isdecimal() and len(digits) <= 2 and int(digits) <= highest:
            weights[int(digits)] = weights.get(int(digits), 0.0) + math.exp(value)
    return weights
