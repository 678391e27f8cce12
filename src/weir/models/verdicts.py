"""Answers of chat models, and what they say: a verdict, an order, an expected score."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

# ----------
# Answers.


Finish: TypeAlias = Literal["stop", "length", "refused"]
"""Why an answer ends: the model was done; it was cut; model or provider would not answer."""
TokenChoice: TypeAlias = tuple[str, Mapping[str, float]]
"""A token that was said, and the log-probability of each alternative that the provider tells, its own among them."""


@dataclass(frozen=True)
class ChatReply:
    """What a model answered.

    model: as the provider names what answered; tokens_in, tokens_out: as it counts them, None where it does not;
    choices: the tokens with their alternatives, () where the provider returns none.
    """

    text: str
    finish: Finish = "stop"
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    choices: tuple[TokenChoice, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON, which `of` reads."""
        return {
            "text": self.text,
            "finish": self.finish,
            "model": self.model,
            "tokens": [self.tokens_in, self.tokens_out],
            "choices": [[token, dict(others)] for token, others in self.choices],
        }

    @staticmethod
    def of(stored: Mapping[str, Any]) -> ChatReply:
        """The reply that `to_json` gave."""
        choices = tuple((token, others) for token, others in stored["choices"])
        tokens_in, tokens_out = stored["tokens"]
        return ChatReply(stored["text"], stored["finish"], stored["model"], tokens_in, tokens_out, choices)


# ----------
# Verdicts: read strictly, in the line that was asked for.
#
# A prompt that shows passages asks for a line that begins with a token which none of its texts has (`prompts.py`), so
# that no passage knows the line. The verdict is the last line of an answer, and nothing else of the answer is read.


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


def answer_text(reply: ChatReply) -> str:
    """An answer without the thoughts before it, with all digits in ASCII; "" where it is all thought."""
    text = _REPEATED.sub(r"\1\1\1", reply.text[-MAX_ANSWER_CHARACTERS:])
    text = _THOUGHT_END.split(text)[-1]
    if _THOUGHT_START.match(text):
        return ""
    digits = [str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text.replace("’", "'")]
    return "".join(digits).strip()


def kind_without_verdict(reply: ChatReply, text: str) -> VerdictKind:
    """The kind of an answer without a verdict."""
    return "refused" if reply.finish == "refused" or _REFUSAL.search(text) else "missing"


def read_verdict(
    reply: ChatReply,
    form: VerdictForm,
    parse: Callable[[str], Parsed[T]],
    entries: Sequence[str] = (),
    passages: Sequence[str] = (),
) -> Parsed[T]:
    """The verdict of an answer, and what became of the answer.

    parse: the verdict that a text is, with "missing" for none; entries: names of the verdict in an answer of JSON;
    passages: the passages of the prompt, which only matter to a form without a token.
    """
    text = answer_text(reply)
    if reply.finish == "refused" or not text:
        return None, kind_without_verdict(reply, text)
    if form.json:
        verdict, kind = _of_object(text, parse, entries)
    elif not (form.token or form.line or form.last):
        verdict, kind = (None, "missing") if reply.finish == "length" else parse(_bare(text))
    else:
        verdict, kind = _of_last_line(text, form, parse, reply.finish == "length", passages)
    if verdict is None and kind == "missing":
        return None, kind_without_verdict(reply, text)
    return verdict, "unsigned" if not form.token and kind in SCORED_KINDS else kind


def _of_last_line(
    text: str, form: VerdictForm, parse: Callable[[str], Parsed[T]], cut: bool, passages: Sequence[str]
) -> Parsed[T]:
    """The verdict of the last line, if all lines in the form say the same."""
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
    """An answer without what may stand around all of it: a code fence, quotation marks."""
    fenced = _FENCED.fullmatch(text)
    whole = (fenced[1] if fenced else text).strip()
    return whole if "\n" in whole else whole.strip("\"'“”")


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
    """Whether a verdict that is not read names several numbers, such as "2 or 3"."""
    return len(set(re.findall(NUMBER, text))) > 1


def read_score(
    reply: ChatReply, form: VerdictForm, highest: int = HIGHEST_SCORE, passages: Sequence[str] = ()
) -> ScoreVerdict:
    """The score that an answer gives, 0 to `highest`; one beyond the range is not cut to it.

    passages: see `read_verdict`.
    """

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
    text = answer_text(reply)
    if reply.finish == "refused" or not text:
        return (), kind_without_verdict(reply, text)
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
    return (unique, kind) if unique else ((), kind_without_verdict(reply, text))


# ----------
# Orders of passages.


_STRICT = re.compile(r"\[\d+\](?:\s*>\s*\[\d+\])*")
_LOOSE = re.compile(r"\[?\s*\[?\d+\]?(?:\s*[>＞,、≻]\s*\[?\d+\]?)*\s*\]?")
_DIGITS = 9
"""A number of more digits is no passage's."""


@dataclass(frozen=True)
class OrderVerdict:
    """The places of passages from 0, best first: each of them exactly once. Those that the answer does not name stand
    behind the others in the order in which they were asked about; where it names none, all do. ranked: how many it
    names."""

    order: tuple[int, ...]
    kind: VerdictKind
    ranked: int = field(default=0, repr=False)


def read_order(reply: ChatReply, form: VerdictForm, count: int) -> OrderVerdict:
    """The order of passages that were numbered from 1; of a passage named twice the first place counts."""

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
"""The smallest total probability of the scores, among all tokens at that place, for an expected score."""
MAX_DIGIT = 9


def expected_score(reply: ChatReply, written: str, highest: int = HIGHEST_SCORE) -> float | None:
    """The mean of the scores 0 to `highest` that could stand where the answer has `written`, weighted by probability.

    None without log-probabilities, where scores have too little probability, and above a scale of 10. Where the answer
    has a 1, the next token says how much of it is the beginning of 10.
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
    """The token with which the last `written` of the answer begins; None where the tokens are not those of the text."""
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
    """The probability of each of the numbers 1 to `count` where the answer has `choice`, 1 in all.

    None without log-probabilities, where these numbers have too little probability, and for more than nine: a number
    of two digits begins like another.
    """
    at = _place(reply, str(choice))
    if at is None or count > MAX_DIGIT:
        return None
    weights = _scores(reply.choices[at][1], count)
    chances = [weights.get(number, 0.0) for number in range(1, count + 1)]
    total = sum(chances)
    return None if total < MIN_KNOWN_PROBABILITY else [chance / total for chance in chances]


def _scores(choices: Mapping[str, float], highest: int) -> dict[int, float]:
    """Probability by score, of the alternatives that are one."""
    weights: dict[int, float] = {}
    for token, value in choices.items():
        digits = token.strip()
        if digits.isascii() and digits.isdecimal() and len(digits) <= 2 and int(digits) <= highest:
            weights[int(digits)] = weights.get(int(digits), 0.0) + math.exp(value)
    return weights
