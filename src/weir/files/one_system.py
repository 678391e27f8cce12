"""Refuse a query with rows of several systems or collections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from weir.errors import FormatError, warn_of_ranking

SystemRow: TypeAlias = tuple[str, str, str, str]
"""Place in the file, such as ", line 7"; query, system or collection, and rank, each "" if not there."""
REMEDIES = {
    "system": "one system; weir data import FILE -o DIR makes a run of each",
    "collection": "one; keep the rows of one, or remove the column if it describes documents",
}
_SHOWN = 40  # characters of a name


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
