"""weir study threshold: answer, or stay silent?"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from weir.cli.completion import dataset_names, measure_names
from weir.cli.terminal import output_width, say_notes, show

__all__ = ["command"]


@click.command("threshold")
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-m", "--measure", shell_complete=measure_names, default="R@10", show_default=True,
              help="What is kept of queries with an answer; a silent one scores 0.")  # fmt: skip
@click.option("--max-false", type=float, default=0.1, show_default=True,
              help="The largest share of queries without an answer that may be answered.")  # fmt: skip
@click.option("--abstention", "confidence", type=click.Choice(["max", "std", "diff1"]), default="max",
              show_default=True,
              help="How sure the run is: its best score, their deviation, or the best less the second.")  # fmt: skip
@click.option("--collection", shell_complete=dataset_names,
              help="The collection of the run: its rules hold, and it says what queries have no answer.")  # fmt: skip
@click.option("--seed", type=int, help="Seed of the split in halves.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def command(
    qrels: Path,
    run: Path,
    measure: str,
    max_false: float,
    confidence: Literal["max", "std", "diff1"],
    collection: str | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Choose the score below which a system should not answer.

    QRELS: judgments, RUN: one ranking. A query has no answer where none of its judged documents has a grade above 0, or
    where the collection says so (unanswerable); answering it is a false answer. The least score that keeps false
    answers within --max-false is chosen on one half of the queries, drawn by a seed, and reported on the other, with
    what it leaves of the measure; so the shares are not those of the queries that chose it.
    """
    from weir.api.comparisons import threshold
    from weir.report.threshold import threshold_json, threshold_text

    found = threshold(
        qrels, run, measure, max_false=max_false, confidence=confidence, seed=seed, collection=collection
    )
    say_notes(found.notes)
    if as_json:
        click.echo(threshold_json(found))
    else:
        show(threshold_text(found, output_width()))
