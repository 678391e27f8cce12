"""Scores by group of queries as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from weir.core.rounding import count
from weir.core.scores import GroupedScores, Note, Row
from weir.report.table import long_table
from weir.stats.intervals import fewest
from weir.stats.score_rows import rows_by_group


def groups_text(grouped: GroupedScores) -> str:
    """A line for each group, the macro mean and all queries, and what has to be said of them."""
    found = rows_by_group(grouped, "", "")
    return "\n\n".join([long_table(found).text(), *map(str, group_notes(found, grouped.ungrouped))])


def group_notes(rows: Sequence[Row], ungrouped: int = 0) -> list[Note]:
    """Notes on groups that are too small for an interval, and on queries without a group."""
    small = {row.group: row.queries for row in rows if row.group and row.queries < fewest()}
    found = []
    if small:
        named = ", ".join(list(small)[:5]) + (", ..." if len(small) > 5 else "")
        found.append(
            Note(
                f"{len(small)} group{'s have' if len(small) > 1 else ' has'} fewer than {fewest()} queries, too few "
                f"for an interval: {named}"
            )
        )
    if ungrouped:
        found.append(Note(f"{count(ungrouped)} queries have no group and count among all queries alone"))
    return found
