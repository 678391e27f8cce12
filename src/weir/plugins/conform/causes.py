"""Known other readings of a measure, and which of them explains a tool's values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weir.errors import WeirError
from weir.plugins.conform.oracle import Case, Rankings, answer, ranking
from weir.plugins.conform.tools import ToolValue

# Deviations: they change the input or the measure, and the oracle computes the values.


@dataclass(frozen=True)
class Question:
    """A measure asked of an input."""

    case: Case
    measure: str


@dataclass(frozen=True)
class Deviation:
    """Another reading by name; `change` gives None where it changes nothing that it could.

    last_resort: it may give many a value by chance and is tried where no other does.
    """

    name: str
    change: Callable[[Question], Question | None]
    last_resort: bool = False


def _convention(**changed: str) -> Callable[[Question], Question | None]:
    def change(asked: Question) -> Question | None:
        now = asked.case.conventions
        if all(getattr(now, key) == value for key, value in changed.items()):
            return None
        return Question(replace(asked.case, conventions=replace(now, **changed)), asked.measure)  # type: ignore[arg-type]  # names and values are written below

    return change


def _tied(case: Case) -> bool:
    return any(len({s for _, s in row}) < len(row) for row in case.run.values())


def _ordered(key: Callable[[int, str], object]) -> Callable[[Question], Question | None]:
    """Ties in the order of a key of (place in the input, identifier), smallest first."""

    def change(asked: Question) -> Question | None:
        if not _tied(asked.case):
            return None
        run: dict[str, list[tuple[str, float]]] = {}
        for query, row in asked.case.run.items():
            places = [(-score, key(n, d), d) for n, (d, score) in enumerate(row)]
            best_first = [d for _, _, d in sorted(places, key=lambda p: (p[0], p[1]))]
            run[query] = _down(best_first)
        return Question(replace(asked.case, run=run), asked.measure)

    return change


def _down(best_first: list[str]) -> list[tuple[str, float]]:
    return [(d, float(len(best_first) - n)) for n, d in enumerate(best_first)]


def _judging(
    change: Callable[[str, dict[str, float], Question], dict[str, float]],
) -> Callable[[Question], Question | None]:
    """Other judgments: a function of the query, its grades and the question."""

    def changed(asked: Question) -> Question | None:
        qrels = {
            q: list(change(q, dict(row), asked).items()) if row else [] for q, row in asked.case.qrels.items()
        }
        if all(dict(row) == dict(asked.case.qrels[q]) for q, row in qrels.items()):
            return None
        return Question(replace(asked.case, qrels=qrels), asked.measure)

    return changed


def _graded(change: Callable[[float], float]) -> Callable[[Question], Question | None]:
    return _judging(lambda query, grades, asked: {d: change(g) for d, g in grades.items()})


def _renamed(pattern: str, put: str) -> Callable[[Question], Question | None]:
    """Another measure: a regular expression over its name."""

    def change(asked: Question) -> Question | None:
        name = re.sub(pattern, put, asked.measure)
        return None if name == asked.measure else Question(asked.case, name)

    return change


def _cut(measure: str) -> int | None:
    match = re.search(r"@(\d+)", measure)
    return int(match[1]) if match else None


def _returned(query: str, asked: Question, k: int | None = None) -> list[str]:
    return ranking(asked.case.run.get(query, ()), asked.case.conventions)[:k]


def _ideal_of_returned(query: str, grades: Mapping[str, float], asked: Question) -> dict[str, float]:
    seen = set(_returned(query, asked))
    return {d: g for d, g in grades.items() if d in seen} or {"nothing": 0}


def _ideal_of_top(query: str, grades: Mapping[str, float], asked: Question) -> dict[str, float]:
    seen = set(_returned(query, asked, _cut(asked.measure)))
    return {d: g for d, g in grades.items() if d in seen} or {"nothing": 0}


def _anybodys(query: str, grades: Mapping[str, float], asked: Question) -> dict[str, float]:
    others = {d: -1.0 for row in asked.case.qrels.values() for d, _ in row}
    return others | dict(grades)


def _nothing_unanswered(query: str, grades: Mapping[str, float], asked: Question) -> dict[str, float]:
    return dict(grades) if asked.case.run.get(query) else {"nothing": 0}


def _appended(asked: Question) -> Question | None:
    """Judged documents that were not returned stand at the end, all with one score."""
    run: dict[str, list[tuple[str, float]]] = {}
    for query, judged in asked.case.qrels.items():
        row = list(asked.case.run.get(query, ()))
        there = {d for d, _ in row}
        lowest = min((s for _, s in row), default=0.0) - 1
        run[query] = row + [(d, lowest) for d, _ in judged if d not in there]
    same: Rankings = asked.case.run
    return None if run == same else Question(replace(asked.case, run=run), asked.measure)


def _in_input_order(asked: Question) -> Question | None:
    run = {q: _down([d for d, _ in row]) for q, row in asked.case.run.items()}
    return Question(replace(asked.case, run=run), asked.measure)


def _counting_unjudged(asked: Question) -> Question | None:
    qrels = {q: row or [("nothing", 0)] for q, row in asked.case.qrels.items()}
    return None if qrels == asked.case.qrels else Question(replace(asked.case, qrels=qrels), asked.measure)


def _ranking_everything(asked: Question) -> Question | None:
    if not (asked.case.candidates or asked.case.excluded):
        return None
    return Question(replace(asked.case, candidates={}, excluded={}), asked.measure)


DEVIATIONS = (
    Deviation("ties in the order of the input", _ordered(lambda place, document: place)),
    Deviation("ties by ascending identifier", _ordered(lambda place, document: document.encode())),
    Deviation("ties in the reverse order of the input", _ordered(lambda place, document: -place)),
    Deviation("the mean over all orders of ties", _convention(ties="expected")),
    Deviation("ties by descending identifier", _convention(ties="trec")),
    Deviation("scores as 32-bit floats", _convention(ties="trec9")),
    Deviation("unanswered queries leave the mean", _convention(missing="answered-only")),
    Deviation("unanswered queries count 0", _convention(missing="zero")),
    Deviation("unanswered queries have no relevant document", _judging(_nothing_unanswered)),
    Deviation("queries without judgments count 0", _counting_unjudged),
    Deviation("queries without a relevant document count 0", _convention(empty="zero")),
    Deviation("queries without a relevant document leave the mean", _convention(empty="left-out")),
    Deviation("self matches dropped", _convention(self_matches="drop")),
    Deviation("self matches kept", _convention(self_matches="keep")),
    Deviation("documents that may not be ranked stay", _ranking_everything),
    Deviation("documents not returned fill the list", _appended),
    Deviation("grades taken as relevant or not", _graded(lambda grade: min(math.floor(grade), 1))),
    Deviation("grades cut to whole numbers", _graded(math.trunc)),
    Deviation("any grade above 0 as relevant", _graded(math.ceil)),
    Deviation("grades below 0 as judged not relevant", _graded(lambda grade: max(grade, 0))),
    Deviation("judged for any query is judged", _judging(_anybodys)),
    Deviation("ideal ranking from the returned documents", _judging(_ideal_of_returned)),
    Deviation("ideal ranking from the first k returned", _judging(_ideal_of_top)),
    Deviation("exponential gains", _renamed(r"^nDCG@", "nDCG(gain='exp')@")),
    Deviation("linear gains", _renamed(r"\(gain='exp'\)", "")),
    Deviation("precision divided by the documents returned", _renamed(r"^P(\(.*\))?@", r"SetP\1@")),
    Deviation("AP divided by at most k", _renamed(r"^AP@", "AP_within_k@")),
    Deviation("grades below 0 as negative gains", _renamed(r"^DCG(@|$)", r"DCG_signed\1")),
    Deviation("raw grades as gains of RBP", _renamed(r"^RBP(\(p=[^,)]*)?(,[^)]*)?(\))?", r"RBP_raw\1\3")),
    Deviation("recall divided by at most k", _renamed(r"^R(\(.*\))?@", r"R_cap\1@")),
    Deviation(
        "the highest grade of a query alone as relevant",
        _renamed(r"^RR@", "RR(of='best',rel=0.01)@"),
        last_resort=True,
    ),
    Deviation("the order of the input in place of scores", _in_input_order, last_resort=True),
)

# Causes of differences.

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
