"""Why a tool's values differ: which other convention gives them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from weir.errors import WeirError
from weir.plugins.conform.deviations import DEVIATIONS, Deviation, Question
from weir.plugins.conform.oracle import Case, answer
from weir.plugins.conform.tools import ToolValue

__all__ = ["NO_NUMBER", "UNEXPLAINED", "causes"]

NO_NUMBER = "not a finite number"
UNEXPLAINED = "no convention known here gives this value"

_USUAL = 3  # values that a reading explains before it is taken for the tool's own
_Asked = tuple[Question, ToolValue]


def causes(different: Sequence[tuple[Case, str, ToolValue]]) -> list[str]:
    """For each question and what the tool said of it, the reading that explains it.

    Several readings may give one value by chance, so the reading that explains most values is taken first, then
    the one that explains most of the others, and so on. What is left may be two of these at once, or a reading of
    last resort, or any two readings at once.
    """
    asked = [(Question(case, measure), told) for case, measure, told in different]
    found: dict[int, str] = {n: NO_NUMBER for n, (_, told) in enumerate(asked) if not _finite(told)}
    first = [one for one in DEVIATIONS if not one.last_resort]
    explains = {n: _singles(asked[n], first) for n in range(len(asked)) if n not in found}
    own = _taken(found, explains, _USUAL)
    for n in [n for n in explains if n not in found]:
        found[n] = _double(asked[n], own)
    _taken(found, {n: names for n, names in explains.items() if not found[n]}, 1)
    for n in [n for n in explains if not found[n]]:
        last = _singles(asked[n], [one for one in DEVIATIONS if one.last_resort])
        found[n] = last[0].name if last else _double(asked[n], DEVIATIONS) or UNEXPLAINED
    return [found[n] for n in range(len(asked))]


def _taken(found: dict[int, str], explains: dict[int, list[Deviation]], least: int) -> list[Deviation]:
    """Readings that explain at least so many values that none before explains, most first; fills in `found`."""
    taken: list[Deviation] = []
    while True:
        open_still = [n for n in explains if not found.get(n)]
        counts = Counter(one for n in open_still for one in explains[n])
        # Of equals the first in DEVIATIONS, so that every run says the same.
        best = max(DEVIATIONS, key=lambda one: counts[one])
        if counts[best] < least:
            return taken
        taken.append(best)
        found |= {n: best.name for n in open_still if best in explains[n]}


def _finite(told: ToolValue) -> bool:
    return all(map(math.isfinite, told.values()))


def _singles(asked: _Asked, readings: Iterable[Deviation]) -> list[Deviation]:
    return [one for one in readings if _gives(_changed(asked[0], [one]), asked[1])]


def _double(asked: _Asked, readings: Sequence[Deviation]) -> str:
    """The first two readings that explain it together, "" where none do."""
    for a in readings:
        for b in readings:
            if a is not b and _gives(_changed(asked[0], [a, b]), asked[1]):
                return f"{a.name} + {b.name}"
    return ""


def _changed(asked: Question | None, several: Iterable[Deviation]) -> Question | None:
    for one in several:
        asked = None if asked is None else one.change(asked)
    return asked


def _gives(asked: Question | None, told: ToolValue) -> bool:
    """Whether this question's exact answer is what the tool said."""
    if asked is None:
        return False
    try:
        found = answer(asked.case, asked.measure)
    except WeirError:
        return False
    said = dict(told.per_query)
    if told.mean is None and set(said) != set(found.per_query):
        return False
    if told.mean is not None and not told.agrees(told.mean, float(found.mean)):
        return False
    return all(told.agrees(v, float(found.per_query[q])) for q, v in said.items() if q in found.per_query)
