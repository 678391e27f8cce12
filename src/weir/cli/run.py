"""weir run: systems on collections, scored, resumable."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import datasets_option, measures_option, systems_option
from weir.cli.table_options import budget_option, label_option, notes_option, price_option, table_options
from weir.cli.terminal import say, say_notes
from weir.errors import WeirError

if TYPE_CHECKING:
    from weir.experiment.experiment import Experiment
    from weir.report.display import Display

__all__ = ["command"]


@click.command("run")
@click.argument("experiment", required=False, type=click.Path(path_type=Path))
@datasets_option("A catalogue name, a group, a folder, a golden set, hf:... or irds:...; repeatable.")
@systems_option(
    "A system such as 'bm25(k1=1.2, b=0.75)', or a grid such as 'bm25(k1={0.9, 1.2})'; repeatable."
)
@measures_option()
@click.option("-k", "depth", type=int, help="Documents returned for each query, at most.  [default: 1000]")
@click.option("-o", "--out", "output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
              help="The results folder; what is finished there is not repeated.")  # fmt: skip
@click.option("--stages", type=click.Path(path_type=Path),
              help="Where other grids too find indexes and rankings.  [default: the results folder]")  # fmt: skip
@click.option(
    "--drop-self", is_flag=True, help="Leave out documents that are the query itself (ArguAna, Quora)."
)
@click.option(
    "--device",
    help="Where neural models run: cpu, cuda, cuda:1, or several such as cuda:0,cuda:1, on which documents are "
    "encoded side by side.  [default: a GPU where there is one]",
)
@budget_option
@price_option
@label_option
@table_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@notes_option
def command(
    experiment: Path | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    depth: int | None,
    output: Path,
    stages: Path | None,
    drop_self: bool,
    device: str | None,
    budget: str | None,
    price: str | None,
    labels: tuple[str, ...],
    form: str | None,
    long: bool,
    quiet: bool,
    notes: bool,
) -> None:
    """Run systems on collections, and show their scores.

    EXPERIMENT: a TOML file with the keys datasets, systems, measures and k; options replace its entries.
    Every dataset is answered by every system; values in braces, such as 'bm25(k1={0.9, 1.2}, b={0.4, 0.75})', stand
    for a system of each combination. Killed at any moment, the same command continues. The tables are those
    of weir results.
    """
    from weir.cli.table_options import display_of, show_cells
    from weir.experiment.experiment import Experiment
    from weir.report.collection import dataset_notes
    from weir.report.progress import Progress
    from weir.settings import use_budget, use_device

    if device is not None:
        use_device(device)
    use_budget(budget, price)
    plan = Experiment.read(experiment) if experiment is not None else Experiment((), ())
    plan = replace(
        plan,
        datasets=datasets or plan.datasets,
        systems=systems or plan.systems,
        measures=measures or plan.measures,
        k=plan.k if depth is None else depth,
        stages=stages,
        drop_self=drop_self,
    )
    named = [str(system) for system in plan.parsed_systems()] if labels else []
    display = display_of(form, long, labels, named)
    progress = Progress(quiet)
    try:
        found = plan.complete(output, progress)
    except WeirError:
        progress.close()
        with suppress(WeirError):  # what is wrong may be the grid itself
            _show_finished(plan, output, display)
        raise
    finally:
        progress.close()
    show_cells(found, display, details=notes)
    wanted = [str(measure) for measure in plan.measures]
    for dataset in plan.loaded_datasets():
        say_notes(dataset_notes(dataset, wanted, drop_self or None), notes)
    say(f"results: {output}")


def _show_finished(plan: Experiment, output: Path, display: Display) -> None:
    """The rows that are there although the grid failed."""
    from weir.cli.terminal import show
    from weir.experiment.results import rows_with_groups
    from weir.report.display import rows_shown

    found = plan.finished(output) if output.exists() else []
    if found:
        show(rows_shown(rows_with_groups(found), display), display.form == "text")
