"""What is decided by the user alone: other grades, judges who disagree, how many words must occur."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.core.qrels import LARGEST, grade_of, shown_number
from weir.errors import BadValue, UnknownName
from weir.plugins.importing.click_models import parse_click_model
from weir.plugins.importing.found import number

__all__ = ["LEAST_IMPRESSIONS", "Choices", "agreed", "chosen_grade"]

LEAST_IMPRESSIONS = 10

_JUDGES: dict[str, Callable[[Sequence[float]], float]] = {
    "max": max,
    "min": min,
    "mean": lambda grades: math.fsum(grades) / len(grades),
    "majority": lambda grades: max(Counter(grades).items(), key=lambda one: (one[1], one[0]))[0],
}


@dataclass(frozen=True)
class Choices:
    """What the user decides where files leave it open; "" stands for "ask", by an error of one line.

    grades: "round" (half up), "scale=N" (times N, then rounded) or "threshold=X" (1 from X on, else 0); "" keeps them
    as they are, fractions included; judges: "max", "min", "mean" or "majority" (the higher of equal ones) for a pair
    with several grades, which is left out otherwise; words: "all" or "any" of several words that make a document
    relevant; strict: write nothing where a file is refused; clicks: the model that makes grades of clicks, see
    `parse_click_model`; "" takes "coec" where a log has positions and "ctr" where it has none; impressions: of a pair,
    from which it is judged by clicks; allow_disjoint: write also what cannot belong together. Raises BadValue or
    UnknownName for anything else.
    """

    grades: str = ""
    judges: str = ""
    words: str = ""
    strict: bool = False
    clicks: str = ""
    impressions: int = LEAST_IMPRESSIONS
    allow_disjoint: bool = False

    def __post_init__(self) -> None:
        _regraded(self.grades)
        if self.judges and self.judges not in _JUDGES:
            raise UnknownName("way to join judges", self.judges, _JUDGES)
        if self.clicks:
            parse_click_model(self.clicks)
        if self.impressions < 1:
            raise BadValue(f"a floor of {self.impressions} impressions; expected 1 or more")
        if self.words not in ("", "all", "any"):
            raise UnknownName("way to match words", self.words, ("all", "any"))


def _regraded(grades: str) -> Callable[[float], float]:
    """What the choice does to a grade."""
    name, _, written = grades.partition("=")
    value = number(written)
    if name == "scale" and value is not None and value > 0:
        return lambda grade: math.floor(grade * value + 0.5)
    if name == "threshold" and value is not None:
        return lambda grade: float(grade >= value)
    if grades == "round":
        return lambda grade: math.floor(grade + 0.5)
    if grades:
        raise BadValue(f"--grades: found '{grades}'; expected round, scale=N or threshold=X")
    return lambda grade: grade


def agreed(grades: Sequence[float], choices: Choices) -> float | None:
    """The one grade of a pair; None where judges disagree and nothing was chosen."""
    if len(set(grades)) == 1:
        return grades[0]
    return _JUDGES[choices.judges](grades) if choices.judges else None


def chosen_grade(grade: float, choices: Choices, where: str) -> float:
    """What the choice makes of a grade, an int where it is whole; raises BadValue beyond what judgments hold."""
    found = _regraded(choices.grades)(grade)
    if abs(found) > LARGEST:
        raise BadValue(f"{where}: the grade {shown_number(found)} is beyond ±{LARGEST}; say --grades scale=N")
    return grade_of(found, where)
