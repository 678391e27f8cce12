"""The measure and the systems that a URL's parameters choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.core.charts import SystemNumbers
from weir.errors import UnknownName
from weir.experiment.results import ResultCell
from weir.measures.measure import direction
from weir.plugins.app.folder import Results
from weir.plugins.app.server import Visit

MOST_BESIDE = 4
"""Most systems side by side."""


@dataclass(frozen=True)
class System:
    """A system with its short name and the number of its colour and mark."""

    name: str
    label: str
    """Short name, unique."""
    number: int
    """Number of its colour and mark; 0 is grey."""

    @staticmethod
    def of(numbers: SystemNumbers, name: str) -> System:
        """Return the system of this full name."""
        return System(name, numbers.label(name), numbers.number(name))


def measure_of(visit: Visit, measures: Sequence[str]) -> str:
    """Return the measure in the URL, by default the first, "" if there are none; raises UnknownName for one
    not listed."""
    if not measures:
        return ""
    measure = visit.one("measure", measures[0])
    if measure not in measures:
        raise UnknownName("measure among these results", measure, measures)
    return measure


def cells_of(visit: Visit, results: Results, cells: Sequence[ResultCell], measure: str) -> list[ResultCell]:
    """Return the results (one a system) of the systems that the URL names, at most four.

    By default the baseline and the best other system by the measure. Raises UnknownName for a system without
    results.
    """
    names = {name: cell for cell in cells for name in (cell.label, results.numbers.label(cell.label))}
    by_name = {
        name.replace(" ", ""): cell for name, cell in names.items()
    } | names  # blanks are easily left out
    values = visit.every("systems")
    asked = [name for value in values for name in ([value] if value in by_name else _split(value))]
    for name in asked:
        if name not in by_name:
            raise UnknownName("system among these results", name, names)
    if asked:
        return list({id(by_name[name]): by_name[name] for name in asked}.values())[:MOST_BESIDE]
    first = next((cell for cell in cells if cell.label == results.numbers.baseline), cells[0])
    way = direction(measure) or 1 if measure else 1
    others = [cell for cell in cells if cell is not first]
    return [first, *sorted(others, key=lambda cell: -way * (cell.mean(measure) or 0.0))[:1]]


def systems_text(labels: Sequence[str]) -> str | list[str]:
    """Return short names as the URL's parameter `systems`: joined by commas, or as a list if a name has a
    comma."""
    joined = ",".join(labels)
    return joined if _split(joined) == [*labels] else [*labels]


def _split(value: str) -> list[str]:
    names, depth = [""], 0
    for sign in value:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += sign
    return [name.strip() for name in names if name.strip()]
