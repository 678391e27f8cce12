"""weir run: systems on collections, scored, resumable."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.errors import WeirError

if TYPE_CHECKING:
    from weir.experiment import Experiment

__all__ = ["command"]


@click.command("run")
@click.argument("experiment", required=False, type=click.Path(path_type=Path))
@click.option(
    "-d", "--dataset", "datasets", multiple=True, help="A catalogue name, a group, or a folder; repeatable."
)
@click.option(
    "-s", "--system", "systems", multiple=True, help="A system such as 'bm25(k1=1.2, b=0.75)'; repeatable."
)
@click.option("-m", "--measure", "measures", multiple=True, help="A measure such as nDCG@10; repeatable.")
@click.option("-k", "depth", type=int, help="Documents returned for each query, at most.  [default: 1000]")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
              help="The results folder; what is finished there is not repeated.")  # fmt: skip
@click.option("--stages", type=click.Path(path_type=Path),
              help="Where other grids too find indexes and rankings.  [default: the results folder]")  # fmt: skip
@click.option(
    "--device",
    help="Where neural models run: cpu, cuda, cuda:1, or several such as cuda:0,cuda:1, on which documents are "
    "encoded side by side.  [default: a GPU where there is one]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option, as click passes them
    experiment: Path | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    depth: int | None,
    output: Path,
    stages: Path | None,
    device: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run systems on collections and score them, resumably.

    EXPERIMENT: a TOML file with the keys datasets, systems, measures and k; options replace its entries.
    Every dataset is answered by every system. Killed at any moment, the same command continues.
    """
    from weir.cli.progress import Progress
    from weir.experiment import Experiment
    from weir.report.table import json_lines, text_table
    from weir.settings import use_device

    if device is not None:
        use_device(device)
    plan = Experiment.read(experiment) if experiment is not None else Experiment((), ())
    plan = replace(
        plan,
        datasets=datasets or plan.datasets,
        systems=systems or plan.systems,
        measures=measures or plan.measures,
        k=plan.k if depth is None else depth,
        stages=stages,
    )
    progress = Progress(quiet)
    try:
        found = plan.execute(output, progress)
    except WeirError:
        progress.close()
        with suppress(WeirError):  # what is wrong may be the grid itself
            _show_finished(plan, output, as_json)
        raise
    finally:
        progress.close()
    click.echo(json_lines(found) if as_json else text_table(found))
    click.echo(f"results: {output}", err=True)


def _show_finished(plan: Experiment, output: Path, as_json: bool) -> None:
    """The rows that are there although the grid failed."""
    from weir.report.table import json_lines, text_table

    found = plan.finished(output) if output.exists() else []
    if found:
        click.echo(json_lines(found) if as_json else text_table(found))
