"""What an answer says about the order of some passages."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field

from weir.llm.chat_shapes import ChatReply
from weir.llm.passage_text import without_echoes
from weir.llm.verdicts import VerdictKind, nothing_said, said

__all__ = ["OrderVerdict", "read_order"]

_BRACKETED = re.compile(r"\[\s*(\d+)\s*\]")
_CHAIN = re.compile(r"\[?\d+\]?(?:[ \t]*[>＞,、≻][ \t]*\[?\d+\]?)+")
_STRICT = re.compile(r"\[\d+\](?:\s*>\s*\[\d+\])*")
_DIGITS = 9
"""A number of more digits is no passage's."""


@dataclass(frozen=True)
class OrderVerdict:
    """The places of passages from 0, best first: each of them exactly once. Those that the answer does not name stand
    behind the others in the order in which they were asked about; where it names none, all do. named: how many it
    names."""

    order: tuple[int, ...]
    kind: VerdictKind
    named: int = field(default=0, repr=False)


def read_order(reply: ChatReply, passages: tuple[str, ...]) -> OrderVerdict:
    """The order of passages that were numbered from 1; of a passage named twice the first place counts."""
    text, count = said(reply), len(passages)
    if reply.finish == "refused" or not text:
        return OrderVerdict(tuple(range(count)), nothing_said(reply, text))
    strict = _STRICT.fullmatch(text) is not None
    numbers = _numbers(text if strict else without_echoes(text, passages))
    inside = [number - 1 for number in numbers if 1 <= number <= count]
    named = tuple(dict.fromkeys(inside))
    order = named + tuple(i for i in range(count) if i not in set(named))
    good: VerdictKind = "ok" if strict else "repaired"
    if not named:
        return OrderVerdict(order, "out of range" if numbers else nothing_said(reply, text))
    return OrderVerdict(order, _kind(len(numbers), len(inside), len(named), count) or good, len(named))


def _kind(numbers: int, inside: int, named: int, count: int) -> VerdictKind | None:
    """What is wrong with an order of so many numbers, so many of them passages, different ones; None for nothing."""
    if inside < numbers:
        return "out of range"
    if named < inside:
        return "duplicate"
    return "missing" if named < count else None


def _numbers(text: str) -> list[int]:
    """The numbers of an order: those of a JSON list, of the longest chain such as [2] > [1], or all in brackets."""
    with suppress(ValueError, RecursionError):
        found = json.loads(re.sub(r"^```\w*\s*|\s*```$", "", text))
        lists = [found] if isinstance(found, list) else [v for v in _values(found) if isinstance(v, list)]
        for one in lists:
            if one and all(type(number) is int for number in one):
                return list(one)
    chains = _CHAIN.findall(text)
    longest = max(reversed(chains), key=lambda chain: len(re.findall(r"\d+", chain)), default="")
    digits, bracketed = re.findall(r"\d+", longest), _BRACKETED.findall(text)
    digits = bracketed if len(set(bracketed)) > len(digits) else digits
    digits = digits or re.findall(r"^\s*(\d+)\s*$", text, re.MULTILINE)
    return [int(number) if len(number) <= _DIGITS else 0 for number in digits]


def _values(found: object) -> list[object]:
    return list(found.values()) if isinstance(found, dict) else []
