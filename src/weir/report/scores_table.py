"""Scores as people read them, and the first rows of other values: what a terminal and a notebook show of them."""

from __future__ import annotations

from collections.abc import Sequence

from weir.core.rounding import count, score
from weir.core.scores import Scores
from weir.core.tables import Cell, Table
from weir.report.table import label_notes
from weir.stats.score_rows import result_rows, score_notes


def scores_text(scores: Scores) -> str:
    """A line for each measure: mean, 95% bootstrap interval over queries, and over how many; then what to know."""
    return _table(scores).text()


def scores_html(scores: Scores) -> str:
    """The same for a notebook."""
    return _table(scores).html()


def cells_html(title: str, lines: Sequence[Sequence[str]], keys: int) -> str:
    """Cells under a header for a notebook; the first `keys` columns are names, the others numbers."""
    rows = tuple(tuple(map(Cell, line)) for line in lines[1:])
    return Table(title, tuple(lines[0]), rows, keys=keys).html()


def _table(scores: Scores) -> Table:
    found, shown = [], result_rows(scores, "", "")
    by_people = any(row.people is not None for row in shown)
    for row, counted in zip(shown, scores.counted().tolist(), strict=True):
        cells = (row.measure, score(row.mean), f"{score(row.low)} to {score(row.high)}", count(counted))
        beside = ("-" if row.people is None else score(row.people),) * by_people
        found.append(tuple(map(Cell, (*cells, *beside))))
    header = ("measure", "mean", "95% interval", "queries", *("by people",) * by_people)
    return Table("", header, tuple(found), (*label_notes(shown), *map(str, score_notes(scores))))
