"""The expected score or choice of an answer, from the log-probabilities of what could have stood in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping

from weir.llm.chat_shapes import ChatReply
from weir.llm.verdicts import HIGHEST_SCORE

__all__ = ["choice_chances", "expected_score"]

MIN_KNOWN_PROBABILITY = 0.5
"""Of all that could stand there, so much at least has to be scores whose probability was told."""
MAX_DIGIT = 9


def expected_score(reply: ChatReply, written: str, highest: int = HIGHEST_SCORE) -> float | None:
    """The mean of the scores 0 to `highest` that could stand where the answer has `written`, weighted by probability.

    None where no log-probabilities were told, or scores have too little of it, and above a scale of 10. Where a 1 was
    said digit by digit, the next token says how much of it is the beginning of 10.
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

    None where no log-probabilities were told, or these numbers have too little of it, and for more than nine: a number
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
    found: dict[int, float] = {}
    for token, value in choices.items():
        digits = token.strip()
        if digits.isascii() and digits.isdecimal() and len(digits) <= 2 and int(digits) <= highest:
            found[int(digits)] = found.get(int(digits), 0.0) + math.exp(value)
    return found
