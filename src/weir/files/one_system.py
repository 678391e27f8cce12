"""Refuse a query with rows of several systems or collections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import TypeAlias

from weir.errors import FormatError, warn_of_ranking

SystemRow: TypeAlias = tuple[str, str, str, str]
"""Place in the file, such as ", line 7"; query, system or collection, and rank, each "" if not there."""
REMEDIES = {
    "system": "one system; weir data import FILE -o DIR makes a run of each",
    "collection": "one; keep the rows of one, or remove the column if it describes documents",
    "order": "one system; weir data import FILE -o DIR --columns system=NAME makes a run of each; remove the column if "
    "it describes documents",
}
_SHOWN = 40  # characters of a name
MOST_ROWS = 20_000
"""Rows of a table whose order is looked at."""
_CERTAIN = 10
"""Steps to a worse score, without one to a better, that are an order and no chance."""


def orders_apart(column: str, rows: Iterable[tuple[object, object, object]]) -> str:
    """Return words for a message if several rankings of a query stand in a table, told apart by a column; else "".

    They do if the rows of each value are in the order of their scores, and all rows of the query are not.

    rows: query, value of the column, and score, rank or distance; of the first MOST_ROWS, those with numbers count.
    """
    queries: dict[str, list[tuple[str, float]]] = {}
    for query, value, score in islice(rows, MOST_ROWS):
        with suppress(ValueError):
            queries.setdefault(str(query), []).append((str(value), float(str(score).replace(",", "."))))
    several = [(query, of) for query, listed in queries.items() if len(of := _by_value(listed)) > 1]
    for sign in (1.0, -1.0):
        apart = [(query, of) for query, of in several if _steps(queries[query], sign)[1]]
        steps = [_steps(listed, sign) for _, of in several for listed in of.values()]
        down, up = (sum(counts) for counts in zip(*steps, strict=True)) if steps else (0, 0)
        if not up and down >= _CERTAIN and 2 * len(apart) >= len(several):
            query, of = apart[0]
            one, other = (value[:_SHOWN] for value in list(of)[:2])
            return f"rows of {column} '{one}' and '{other}' for query '{query[:_SHOWN]}', each in an order of its own"
    return ""


def _by_value(listed: Iterable[tuple[str, float]]) -> dict[str, list[tuple[str, float]]]:
    of: dict[str, list[tuple[str, float]]] = {}
    for value, score in listed:
        of.setdefault(value, []).append((value, score))
    return of


def _steps(listed: Sequence[tuple[str, float]], sign: float) -> tuple[int, int]:
    changes = [sign * (after - before) for (_, before), (_, after) in pairwise(listed)]
    return sum(change < 0 for change in changes), sum(change > 0 for change in changes)


def mixed_row(rows: Iterable[SystemRow]) -> tuple[SystemRow, str] | None:
    """Return (first row of a second system for a query, the query's first system); None if each query has one system.

    If all rows of a query have different ranks, they count as one system's.
    """
    first, others = dict[str, str](), dict[str, SystemRow]()
    ranks, unranked = set[tuple[str, str]](), set[str]()
    for row in rows:
        _, query, system, rank = row
        if system and first.setdefault(query, system) != system:
            others.setdefault(query, row)
        if not rank or (query, rank) in ranks:
            unranked.add(query)
        ranks.add((query, rank))
    return next(((row, first[query]) for query, row in others.items() if query in unranked), None)


def refuse_several_systems(
    source: object,
    rows: Callable[[], Iterable[SystemRow]],
    remedy: str = REMEDIES["system"],
    what: str = "system",
) -> None:
    """Raise FormatError if a query has rows of several systems; warn (RankingWarning) if only the file has.

    rows: returns all rows at each call.
    remedy, what: advice and the word for a system in messages.
    """
    systems = (system for _, _, system, _ in rows() if system)
    one = next(systems, "")
    other = next((system for system in systems if system != one), "")
    if not other:
        return
    if mixed := mixed_row(rows()):
        (place, *names, _), before = mixed
        query, system, first = (name[:_SHOWN] for name in (*names, before))
        found = f"a row of {what} '{system}' for query '{query}', which began with {what} '{first}'"
        raise FormatError(f"{source}{place}", found, remedy)
    named = f"'{one[:_SHOWN]}' and '{other[:_SHOWN]}'"
    said = f"{source}: names {what}s {named}, which do not overlap; read as one {what}"
    warn_of_ranking(said)
