"""weir plan: what a grid will take, before it is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from weir.cli.completion import datasets_option, systems_option
from weir.cli.table_options import price_option
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("plan")
@click.argument("experiment", required=False, type=click.Path(path_type=Path))
@datasets_option("As for weir run; repeatable.")
@systems_option("As for weir run; repeatable.")
@click.option("-k", "depth", type=int, help="Documents returned for each query, at most.  [default: 1000]")
@click.option("--device", help="Where neural models run: cpu, cuda or cuda:1.")
@price_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@click.option(
    "--only-stages",
    "graph_only",
    is_flag=True,
    help="Only the stages and what they share; nothing is probed.",
)
@click.option("--precise", is_flag=True,
              help="Run each system by itself on growing samples, however long that takes.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    experiment: Path | None,
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    depth: int | None,
    device: str | None,
    price: str | None,
    as_json: bool,
    graph_only: bool,
    precise: bool,
    quiet: bool,
) -> None:
    """Estimate time and cost.

    The stages that weir run would make, and their time, disk and memory. EXPERIMENT: a TOML file as weir run takes it.
    The systems are run on a few documents of every collection, or on texts of the published length where the collection
    is not here, each stage once and all within a minute, and the cost is extended to all of it, with a range. Embedding
    APIs and language models are not asked: prompts and tokens are estimated, and the last line counts what several
    systems ask alike once.
    """
    from weir.experiment.experiment import Experiment
    from weir.experiment.graph import stage_graph
    from weir.experiment.plan import planned
    from weir.report.plan import graph_json, graph_text, plan_json, plan_notes, plan_text
    from weir.report.progress import Progress
    from weir.settings import use_budget, use_device

    if device is not None:
        use_device(device)
    use_budget(None, price)
    plan = Experiment.read(experiment) if experiment is not None else Experiment((), ())
    plan = replace(
        plan,
        datasets=datasets or plan.datasets,
        systems=systems or plan.systems,
        k=plan.k if depth is None else depth,
    )
    nodes = stage_graph(plan.parsed_systems())
    click.echo(graph_json(nodes) if as_json else graph_text(nodes))
    if graph_only:
        return
    progress = Progress(quiet)
    try:
        found = planned(plan, progress, precise)
    finally:
        progress.close()
    show(plan_json(found) if as_json else plan_text(found, output_width()))
    for note in plan_notes(found):
        say(note)
