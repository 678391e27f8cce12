"""Rows of results as text, CSV, LaTeX, Markdown or HTML, in long form: a line for each dataset, system and group."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from weir.core.rounding import score, share
from weir.core.scores import Row
from weir.core.tables import Cell, Table, csv_text

JUDGED = "Judged@10"
UNRANKED = ("Judged", "Hole", "NumRet", "NumRel", "NumNonrelRet", "IDCG")
"""Measures of which more is not better, so that none is the best."""


def long_table(rows: Sequence[Row]) -> Table:
    """A line for each dataset, system and group of queries, a column for each measure.

    Each value is a mean with its 95% bootstrap interval, and with ties=bounds the means of the worst and the best
    order of ties, * behind the best of several systems; then follow, where a model's labels count, the means by
    people's alone and the model's share of the judged places among the first 10, then Judged@10, where it is no
    measure of the rows already, and how many of the judged queries were answered.
    """
    measures = list(dict.fromkeys(r.measure for r in rows))
    there: dict[tuple[str, ...], list[float]] = {}
    for r in rows:
        there.setdefault((r.dataset, _group(r), r.measure), []).append(r.mean)
    best = {
        key: max(means) for key, means in there.items() if len(means) > 1 and not key[-1].startswith(UNRANKED)
    }
    judged = says_judged(rows)
    people = [m for m in measures if any(r.measure == m and r.people is not None for r in rows)]
    keys = _keys(rows)
    lines = []
    for group in _grouped(rows).values():
        any_row = next(iter(group.values()))
        names = [Cell(_NAMES[key](any_row)) for key in keys]
        cells = [_cell(row, best) if (row := group.get(m)) else Cell("") for m in measures]
        beside = _by_people(group, people) + [Cell(_rate(any_row))] * judged
        answered = Cell(f"{any_row.answered}/{any_row.queries}")
        lines.append((*names, *cells, *beside, answered))
    by_people = [f"{m} by people" for m in people] + ["labels of the model"] * bool(people)
    header = (*keys, *measures, *by_people, *[JUDGED] * judged, "answered")
    return Table("", header, tuple(lines), label_notes(rows), keys=len(keys))


def label_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """What has to be said of a model's labels, once for all rows of which it is so."""
    several = len({r.dataset for r in rows}) > 1
    return tuple(
        dict.fromkeys(f"labels: {f'{r.dataset}: ' if several else ''}{r.labels}" for r in rows if r.labels)
    )


def _by_people(group: Mapping[str, Row], people: Sequence[str]) -> list[Cell]:
    """The means by people's labels alone, and the share of places that the model judged."""
    if not people:
        return []
    means = [None if m not in group else group[m].people for m in people]
    rate = next(iter(group.values())).model_share
    return [Cell("-" if mean is None else score(mean)) for mean in means] + [
        Cell("-" if rate is None else share(rate))
    ]


def says_judged(rows: Sequence[Row]) -> bool:
    """Whether Judged@10 is known and is to be said beside the measures, not being one of them."""
    return any(r.judged_at_10 is not None for r in rows) and all(r.measure != JUDGED for r in rows)


def text_table(rows: Sequence[Row], width: int | None = None, colour: bool = False) -> str:
    """The long table for a terminal of so many columns; None is boundless."""
    return long_table(rows).text(width, colour)


def json_lines(rows: Sequence[Row]) -> str:
    """One JSON object per row at full precision."""
    return "\n".join(json.dumps(r.to_dict(), ensure_ascii=False) for r in rows)


def csv_table(rows: Sequence[Row]) -> str:
    """Comma-separated values at full precision, with a header."""
    records = [r.to_dict() for r in rows]
    names = [name for name in Row.__dataclass_fields__ if any(name in record for record in records)]
    return csv_text([names, *([record.get(name) for name in names] for record in records)])


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, ...], dict[str, Row]]:
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for r in rows:
        found.setdefault((r.dataset, r.system, _group(r)), {})[r.measure] = r
    return found


def _keys(rows: Sequence[Row]) -> list[str]:
    """The names of the first columns: the group where there are groups, and what of the others is not empty."""
    grouped = any(r.group for r in rows)
    named = {"dataset": any(r.dataset for r in rows), "system": any(r.system for r in rows), "group": grouped}
    return [key for key, shown in named.items() if shown or not (grouped or key == "group")]


def _group(row: Row) -> str:
    """The group of a row as tables show it."""
    return row.group or ("" if row.groups is None else f"macro mean of {row.groups} groups")


_NAMES: dict[str, Callable[[Row], str]] = {
    "dataset": lambda row: row.dataset,
    "system": lambda row: row.title or row.system,
    "group": lambda row: _group(row) or "all queries",
}


def _rate(row: Row) -> str:
    return "-" if row.judged_at_10 is None else score(row.judged_at_10)


def _cell(row: Row, best: dict[tuple[str, ...], float]) -> Cell:
    more = f"[{score(row.low)}, {score(row.high)}]"
    if "ties=bounds" in row.conventions:
        lowest, highest = (row.mean if end is None else end for end in (row.lowest, row.highest))
        more += f" ties {score(lowest)}..{score(highest)}"
    return Cell(score(row.mean), row.mean == best.get((row.dataset, _group(row), row.measure)), more=more)
