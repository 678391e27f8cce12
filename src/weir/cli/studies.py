"""Choose score thresholds (`weir study`)."""

from __future__ import annotations

from pathlib import Path

import click

from weir import api
from weir.cli.options import NAME, PATH, Given, forms, options
from weir.cli.terminal import present


@click.command("threshold")
@click.argument("qrels", type=NAME)
@click.argument("run", type=PATH)
@options("weir.api.comparisons.threshold", "measure max_false confidence collection seed",
         confidence={"flags": "--abstention"})  # fmt: skip
@forms("json")
def threshold_command(qrels: str, run: Path, given: Given, form: str | None) -> int:
    """Choose the score below which a system should not answer.

    QRELS: judgments, RUN: one ranking. A query has no answer if none of its judged documents has a grade
    above 0, or if the collection says so (unanswerable); answering it is a false answer. On one half of the
    queries, drawn by a seed, the lowest score is chosen that keeps false answers within --max-false. The
    shares of false answers and the remaining value of the measure are reported for the other half, which did
    not choose it.
    """
    return present(api.comparisons.threshold(qrels, run, **given), form)
