"""Make near misses of relevant passages, which a judge should not accept."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weir.core.strings import Float64
from weir.stats.resampling import share_bounds

Rule: TypeAlias = Callable[[str, str, Sequence[str]], str | None]
"""(passage, query, names of all passages in order) -> another passage, None if the rule does not apply."""
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_WORDS = re.compile(r"\w+")
_VERB = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|do|did|may|might|should|must)\b( not\b)?"
)
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_YEAR = re.compile(r"(?<![\w.,])(?:1[0-9]|20)\d\d(?![\w]|[.,]\d)")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b(?=,?\s+\d)")
_LATER_MONTHS, _EARLIER_YEARS = 5, 13
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*\b")


def key_sentence(passage: str, query: str) -> tuple[list[str], int | None]:
    """Return (sentences, index of the first one that shares most words with the query; None if none shares any)."""
    sentences = _SENTENCES.split(passage)
    words = set(_WORDS.findall(query.casefold()))
    shared = [len(words & set(_WORDS.findall(sentence.casefold()))) for sentence in sentences]
    best = shared.index(max(shared))
    return sentences, best if shared[best] else None


def names_in(passage: str) -> list[str]:
    """Return the capitalised names within sentences, in order, with repeats; months are no names."""
    return [name for name in _NAME.findall(passage) if name.split()[0] not in _MONTHS]


def negated(passage: str, query: str, _: Sequence[str]) -> str | None:
    """Return the passage with its sentence nearest the query negated: "not" is put after its verb, or taken away.

    None if there is no such sentence, or no verb in it.
    """
    sentences, best = key_sentence(passage, query)
    if best is None or (verb := _VERB.search(sentences[best])) is None:
        return None
    now = verb[1] if verb[2] else f"{verb[1]} not"
    sentences[best] = sentences[best][: verb.start()] + now + sentences[best][verb.end() :]
    return " ".join(sentences)


def another_number(passage: str, _: str, __: Sequence[str]) -> str | None:
    """Return the passage with the first non-zero digit of every number but years changed; None if unchanged."""

    def other(found: re.Match[str]) -> str:
        number = found[0]
        if _YEAR.fullmatch(number):
            return number
        at = next((n for n, digit in enumerate(number) if digit in "123456789"), 0)
        return f"{number[:at]}{int(number[at]) % 9 + 1}{number[at + 1 :]}"

    changed = _NUMBER.sub(other, passage)
    return None if changed == passage else changed


def _another_date(passage: str, _: str, __: Sequence[str]) -> str | None:
    """Return the passage with years 13 earlier, and months before a number 5 months later; None if unchanged."""
    changed = _YEAR.sub(lambda found: str(int(found[0]) - _EARLIER_YEARS), passage)
    changed = _MONTH.sub(lambda found: _MONTHS[(_MONTHS.index(found[0]) + _LATER_MONTHS) % 12], changed)
    return None if changed == passage else changed


def _another_name(passage: str, query: str, names: Sequence[str]) -> str | None:
    """Return the passage with other passages' names in its key sentence (most words of the query); None if
    unchanged."""
    sentences, best = key_sentence(passage, query)
    others = [name for name in names if name not in passage and name.casefold() not in query.casefold()]
    if best is None or not others:
        return None
    changed = passage
    for name in dict.fromkeys(names_in(sentences[best])):
        changed = re.sub(rf"\b{re.escape(name)}\b", others[bisect_right(others, name) % len(others)], changed)
    return None if changed == passage else changed


RULES: dict[str, Rule] = {
    "negated": negated,
    "number": another_number,
    "name": _another_name,
    "date": _another_date,
}


@dataclass(frozen=True)
class WrongAnswers:
    """Counts of near misses of relevant passages that a judge still calls relevant."""

    kind: str
    """negated, number, name or date."""
    pairs: int
    """Pairs with a grade after the change, all called relevant before."""
    accepted: int
    """Pairs that are still called relevant."""
    low: float
    """Wilson's 95% interval of the share that is accepted, with `high`; NaN without pairs."""
    high: float
    unread: int
    """Pairs without a grade after the change."""

    @staticmethod
    def of(kind: str, after: Float64, relevant_from: float) -> WrongAnswers:
        """Return the counts of near misses of a kind.

        after: float64[pairs], grades of the changed passages; NaN without a grade.
        relevant_from: lowest relevant grade.
        """
        read = ~np.isnan(after)
        pairs, accepted = int(read.sum()), int(np.sum(after[read] >= relevant_from))
        low, high = share_bounds(accepted, pairs) if pairs else (math.nan, math.nan)
        return WrongAnswers(kind, pairs, accepted, low, high, len(after) - pairs)

    @property
    def share(self) -> float:
        """Share of accepted pairs; NaN without pairs."""
        return self.accepted / self.pairs if self.pairs else math.nan
