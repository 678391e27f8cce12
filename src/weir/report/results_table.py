"""The rows of a results folder as tables of datasets x systems, one for each measure."""

from __future__ import annotations

from collections.abc import Sequence

from weir.core.scores import Row
from weir.report.grid_table import grid_tables, write_grids


def results_text(rows: Sequence[Row]) -> str:
    """For a terminal."""
    return write_grids(grid_tables(rows))


def results_latex(rows: Sequence[Row]) -> str:
    """For a paper."""
    return write_grids(grid_tables(rows), "latex")


def results_markdown(rows: Sequence[Row]) -> str:
    """For a page in Markdown."""
    return write_grids(grid_tables(rows), "markdown")


def results_html(rows: Sequence[Row]) -> str:
    """For a notebook."""
    return "".join(table.html() for table in grid_tables(rows))
