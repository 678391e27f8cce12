"""weir data align: which benchmark collections look like mine, and which systems lead on those?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import dataset_names, measure_names
from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("align")
@click.argument("dataset", shell_complete=dataset_names)
@click.argument("others", nargs=-1, shell_complete=dataset_names)
@click.option("--task", help="Task of the collection, as weir list datasets names tasks.")
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="A measure such as nDCG@10.")  # fmt: skip
@click.option(
    "--results", type=click.Path(path_type=Path), help="A results folder whose systems to set beside."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def command(
    dataset: str, others: tuple[str, ...], task: str | None, measure: str, results: Path | None, as_json: bool
) -> None:
    """List the benchmark collections that are most like yours.

    Scores are averaged by likeness. DATASET: a collection by name or path; OTHERS: collections to compare it with,
    whose texts are read, so that shared words count. Without any, those of the catalogue with published lengths and
    many published scores, by the lengths of queries and documents and the task. Systems are those with published scores
    on all of them.
    """
    from weir.experiment.alignment import align
    from weir.report.align import align_json, align_text

    found = align(dataset, others, task, measure, results)
    show(align_json(found) if as_json else align_text(found, output_width()))
