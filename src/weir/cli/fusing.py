"""Fuse rankings."""

from __future__ import annotations

from pathlib import Path

import click

from weir import api
from weir.cli.options import NAME, OUTPUT, PATH, Given, options
from weir.cli.terminal import say, say_notes, show_tables
from weir.errors import BadValue


@click.command("fuse")
@click.argument("method")
@click.argument("runs", type=PATH, nargs=-1, required=True)
@click.option("-o", "--out", "output", type=OUTPUT, required=True,
              help="The fused ranking; its ending says the format, as .trec, .trec.gz or .json.")  # fmt: skip
@options("weir.api.fusing.fuse_files", "k qrels", qrels={"flags": "--fit", "type": NAME})
@options("weir.api.fusing.Search", "measure folds seed step train_queries", "search", "With --fit: ")
@options("weir.measures.evaluate.Conventions", "self_matches", "conventions",
         self_matches={"help": "Leave out first documents with the identifier of their query (ArguAna, Quora)."},
         )  # fmt: skip
def fuse_command(
    method: str, runs: tuple[Path, ...], output: Path, given: Given, search: Given, conventions: Given
) -> None:
    """Fuse rankings into one.

    METHOD: rrf, combsum, combmnz, wsum ... with its settings, such as 'rrf(k=10)' or 'wsum(weights=[0.7,
    0.3])'; all are in docs/fusion.md. RUNS: two or more rankings. With --fit, settings that METHOD does not
    give are chosen on judged queries: each fold is fused with the settings chosen on the other folds, so that
    scoring the result on them is fair.
    """
    if search and "qrels" not in given:
        raise BadValue("--measure, --folds, --seed, --step and --train-queries go with --fit")
    how = api.fusing.Search(**search)
    with api.progress.Progress() as progress:
        fused = api.fusing.fuse_files(
            method, runs, output, **given, search=how, conventions=conventions, progress=progress
        )
    for number, tables in enumerate(fused.tables):
        if number:
            click.echo()
        show_tables(tables)
    say_notes(fused.notes)
    if fused.warning:
        say(f"WARNING: {fused.warning}")
