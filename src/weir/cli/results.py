"""weir results: the table of a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import (
    by_option,
    dataset_names,
    datasets_option,
    fetch_option,
    measures_option,
    systems_option,
)
from weir.cli.table_options import label_option, notes_option, scorer_option, table_options
from weir.cli.terminal import output_width, say_notes, show

if TYPE_CHECKING:
    from weir.core.result_row import Row
    from weir.experiment.finished import Finished

__all__ = ["command"]


@click.command("results")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@measures_option("Show this measure; repeatable.")
@datasets_option("Show this dataset or group; repeatable.")
@systems_option("Show this system; repeatable.")
@by_option
@click.option("--collection", shell_complete=dataset_names,
              help="The collection of --by's column or --scorer's judgments, where it is not found.")  # fmt: skip
@fetch_option
@label_option
@table_options
@click.option("--provenance", is_flag=True, help="What made each result, stage by stage; with --json whole.")
@scorer_option
@notes_option
def command(
    folder: Path,
    measures: tuple[str, ...],
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    by: str | None,
    collection: str | None,
    fetch: bool,
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    provenance: bool,
    scorer: str | None,
    notes: bool,
) -> None:
    """Show the scores in a folder written by weir run.

    Several datasets and systems make a grid for each measure: the best of each dataset is marked, systems that share
    a letter cannot be told apart, and the last column is the mean over datasets, a group counting as one. Otherwise,
    and with --long, each mean stands with its 95% bootstrap interval over queries. Datasets and systems come in the
    order in which they were first finished. Tables fit the terminal; a pipe gets whole rows unless COLUMNS is set.
    """
    from weir.cli.table_options import chosen_cells, display_of, show_cells
    from weir.core.notes import Note
    from weir.errors import UnknownName
    from weir.experiment.finished import damaged_records, finished_cells
    from weir.experiment.results import mixed_worlds
    from weir.measures import measures_of
    from weir.report.display import rows_shown
    from weir.report.provenance import provenance_json, provenance_text

    cells = chosen_cells(finished_cells(folder), datasets, systems)
    if scorer is not None:
        _official(cells, collection, fetch, form, bool(measures or by or provenance))
        return
    wanted = [str(m) for m in measures_of(measures)] if measures else []
    known = {row.measure for cell in cells for row in cell.rows}
    for measure in wanted:
        if measure not in known:
            raise UnknownName("measure among these results", measure, known)
    if provenance:
        show(provenance_json(cells) if form == "json" else provenance_text(cells, output_width()))
    elif by is not None:
        rows = [
            row
            for cell in cells
            for row in _by_group(cell, by, collection, fetch)
            if not wanted or row.measure in wanted
        ]
        display = display_of(form, long, labels, [c.label for c in cells])
        show(rows_shown(rows, display), display.form == "text")
    else:
        show_cells(cells, display_of(form, long, labels, [c.label for c in cells]), wanted, notes)
    beside = (
        map(Note, mixed_worlds(cells)) if provenance or by is not None else ()
    )  # show_cells says it itself
    say_notes([*map(Note, damaged_records(folder)), *beside], notes)


def _official(
    cells: list[Finished], collection: str | None, fetch: bool, form: str | None, more: bool
) -> None:
    """BIRCO's figures of the cells; more: whether options were given that it has no use for."""
    from weir.cli.table_options import show_birco
    from weir.errors import BadValue
    from weir.experiment.official_figures import birco_of_cells

    if more or form not in (None, "json"):
        raise BadValue("--scorer birco has measures of its own and writes text or --json; leave out the rest")
    show_birco(*birco_of_cells(cells, collection, fetch), form)


def _by_group(cell: Finished, by: str, collection: str | None, fetch: bool) -> list[Row]:
    """The rows of each group of the queries of a cell."""
    from weir.cli.table_options import by_group
    from weir.experiment.finished import cell_groups

    scores = cell.values()
    return by_group(
        cell.dataset, {cell.label: scores}, cell_groups(cell, by, scores.queries, collection, fetch)
    )
