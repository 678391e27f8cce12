"""A ranking with rows of several systems is refused, in every format: it would be scored as that of one system."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TypeAlias

from weir.errors import FormatError, RankingWarning, user_level

SystemRow: TypeAlias = tuple[str, str, str, str]
"""Place in the file, such as ", line 7"; query, system and rank, each "" if not there."""
_SHOWN = 40  # characters of a name


def mixed_row(rows: Iterable[SystemRow]) -> tuple[SystemRow, str] | None:
    """Return (the first row of another system within a ranking, the ranking's first system); None if there is none.

    A ranking in which no rank is missing or stands twice is one, whatever systems its rows came from.
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
    remedy: str = "weir data import FILE -o DIR makes a run of each",
) -> None:
    """Raise FormatError for a ranking with rows of several systems; for several systems without such a ranking warn
    (RankingWarning).

    rows: returns the rows from the first on, each time it is called.
    remedy: the next step, for the message.
    """
    systems = (system for _, _, system, _ in rows() if system)
    one = next(systems, "")
    other = next((system for system in systems if system != one), "")
    if not other:
        return
    if mixed := mixed_row(rows()):
        (place, *names, _), before = mixed
        query, system, first = (name[:_SHOWN] for name in (*names, before))
        found = (
            f"a row of system '{system}' in the ranking of query '{query}', which began with system '{first}'"
        )
        raise FormatError(f"{source}{place}", found, f"one system; {remedy}")
    named = f"'{one[:_SHOWN]}' and '{other[:_SHOWN]}'"
    said = f"{source}: names systems {named}, which do not overlap; read as one system"
    warnings.warn(RankingWarning(said), stacklevel=user_level())
