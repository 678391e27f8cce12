"""What an answer says about the order of some passages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from weir.llm.chat_shapes import ChatReply
from weir.llm.verdicts import VerdictForm, VerdictKind, read_verdict

__all__ = ["OrderVerdict", "read_order"]

_STRICT = re.compile(r"\[\d+\](?:\s*>\s*\[\d+\])*")
_LOOSE = re.compile(r"\[?\s*\[?\d+\]?(?:\s*[>＞,、≻]\s*\[?\d+\]?)*\s*\]?")
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


def read_order(reply: ChatReply, form: VerdictForm, count: int) -> OrderVerdict:
    """The order of passages that were numbered from 1; of a passage named twice the first place counts."""

    def parse(text: str) -> tuple[tuple[int, ...] | None, VerdictKind]:
        if _LOOSE.fullmatch(text) is None:
            return None, "missing"
        numbers = [int(n) if len(n) <= _DIGITS else 0 for n in re.findall(r"\d+", text)]
        inside = [number - 1 for number in numbers if 1 <= number <= count]
        named = tuple(dict.fromkeys(inside))
        if not named:
            return None, "out of range"
        kind = _defect(len(numbers), len(inside), len(named), count)
        return named, kind or ("ok" if _STRICT.fullmatch(text) else "repaired")

    named, kind = read_verdict(reply, form, parse, ("order", "ranking", "verdict"))
    first = named or ()
    order = first + tuple(place for place in range(count) if place not in set(first))
    return OrderVerdict(order, kind, len(first))


def _defect(numbers: int, inside: int, named: int, count: int) -> VerdictKind | None:
    """What is wrong with an order of so many numbers, so many of them passages, different ones; None for nothing."""
    if inside < numbers:
        return "out of range"
    if named < inside:
        return "duplicate"
    return "missing" if named < count else None
