"""weir results: the table of a results folder."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("results")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--json", "form", flag_value="json", help="One JSON object per line, at full precision.")
@click.option("--csv", "form", flag_value="csv", help="Comma-separated values, at full precision.")
@click.option("--latex", "form", flag_value="latex", help="A LaTeX table.")
@click.option("--provenance", is_flag=True, help="What made each result, stage by stage; with --json whole.")
def command(folder: Path, form: str | None, provenance: bool) -> None:
    """Show the results in a folder written by weir run.

    Each mean stands with its 95% bootstrap interval over queries; a group of datasets is the unweighted
    mean of its members.
    """
    from weir.experiment.finished import damaged_records, finished_cells
    from weir.experiment.results import mixed_worlds, rows_with_groups
    from weir.report.provenance import provenance_json, provenance_text
    from weir.report.table import csv_table, json_lines, long_table, text_table

    cells = finished_cells(folder)
    if provenance:
        click.echo(provenance_json(cells) if form == "json" else provenance_text(cells))
    else:
        rows = rows_with_groups(cells)
        shown = {"json": json_lines, "csv": csv_table, "text": text_table}
        click.echo(long_table(rows).latex() if form == "latex" else shown[form or "text"](rows))
    for note in [*damaged_records(folder), *mixed_worlds(cells)]:
        click.echo(f"note: {note}", err=True)
