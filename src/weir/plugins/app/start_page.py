"""The first page: means of all systems on all collections, and the newest results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.api.charts import MANY_SYSTEMS
from weir.core.scores import Row
from weir.experiment.results import ResultCell
from weir.measures.measure import best_of, direction
from weir.plugins.app.choices import System, measure_of
from weir.plugins.app.folder import Results
from weir.plugins.app.judging.pages import RoomRow, room_row
from weir.plugins.app.server import Page, Visit
from weir.stats.compare import Comparison

NEWEST = 5
"""Number of newest results listed."""


@dataclass(frozen=True)
class Mean:
    """A system's mean on a collection with its 95% interval and its comparison to the baseline."""

    mean: float
    low: float
    high: float
    best: bool
    """True if no other system is better or, before they are compared, has a better mean."""
    letters: str
    """Letters of its tie groups; "" if not compared."""
    verdict: str
    """Against the baseline; "" if not compared."""
    difference: float | None
    """Difference to the baseline's mean; None if not compared."""


@dataclass(frozen=True)
class _CollectionMeans:
    name: str
    queries: int
    judged_at_10: float | None
    """Smallest share of judged documents among a system's first ten; None if unknown."""
    made: str
    """Time of its newest result, to the minute, in UTC."""
    means: tuple[Mean | None, ...]
    """Mean of each system; None without a result."""


@dataclass(frozen=True)
class Made:
    """A result with the time it was made."""

    collection: str
    system: System
    when: str
    """To the minute, in UTC."""


@dataclass(frozen=True)
class Start:
    """The first page: means of all systems on all collections."""

    measure: str
    measures: tuple[str, ...]
    systems: tuple[System, ...]
    baseline: System
    collections: tuple[_CollectionMeans, ...]
    by_system: bool
    """True if systems are too many for columns."""
    comparing: int
    """Number of collections whose systems are being compared."""
    pools: tuple[RoomRow, ...]
    newest: tuple[Made, ...]
    remarks: tuple[str, ...]


def start(visit: Visit) -> Start:
    """Return the first page: means of all systems on all collections; raises UnknownName for an unknown
    measure."""
    results = visit.folder.results()
    measure = measure_of(visit, results.measures)
    numbers = results.numbers
    systems = tuple(System.of(numbers, name) for name in numbers.names)
    rows, comparing = list[_CollectionMeans](), 0
    for name, cells in results.collections.items():
        compared = results.comparison(name, measure) if measure and direction(measure) else (None,)
        comparing += compared is None
        rows.append(_means(results, name, cells, measure, compared[0] if compared else None))
    newest = sorted(results.cells, key=_when, reverse=True)[:NEWEST]
    return Start(
        measure,
        results.measures,
        systems,
        System.of(numbers, numbers.baseline),
        tuple(rows),
        len(systems) > MANY_SYSTEMS,
        comparing,
        tuple(map(room_row, visit.rooms or ())),
        tuple(Made(cell.dataset, System.of(numbers, cell.label), _minute(cell)) for cell in newest),
        (*results.remarks, *results.notes(measure)),
    )


def _means(
    results: Results, name: str, cells: tuple[ResultCell, ...], measure: str, comparison: Comparison | None
) -> _CollectionMeans:
    row_of = {cell.label: row for cell in cells for row in cell.rows if row.measure == measure}
    values = [row.mean for row in row_of.values()]
    best = best_of(measure, values) if values and direction(measure) else None
    standing = {} if comparison is None else {one.system: one for one in comparison.standings}

    def mean(system: str, row: Row) -> Mean:
        pair = None if comparison is None else comparison.against(system, results.numbers.baseline)
        own = standing.get(system)
        first = own.best == 1 if own is not None and own.letters else row.mean == best
        letters, verdict = own.letters if own else "", pair.verdict if pair else ""
        return Mean(row.mean, row.low, row.high, first, letters, verdict, pair.difference if pair else None)

    shares = [cell.rows[-1].judged_at_10 for cell in cells if cell.rows]
    return _CollectionMeans(
        name,
        max(cell.queries or int(cell.ranked.facts.get("queries", 0)) for cell in cells),
        min((share for share in shares if share is not None), default=None),
        max(map(_minute, cells)),
        tuple(mean(system, row_of[system]) if system in row_of else None for system in results.numbers.names),
    )


def _when(cell: ResultCell) -> str:
    return str(cell.scored[-1][1].made.get("when", ""))


def _minute(cell: ResultCell) -> str:
    return _when(cell)[:16].replace("T", " ")


PAGES: Sequence[Page] = [Page("/", "start.html", start)]
