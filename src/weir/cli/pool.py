"""weir labels pool: what to judge next."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import collections_option

__all__ = ["command"]


@click.command("pool")
@click.argument("targets", nargs=-1, required=True)
@click.option("-k", default=10, show_default=True, help="Ranks of each system that are looked at.")
@click.option("--limit", type=int, help="Pairs at most, those that narrow scores most.")
@collections_option
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The folder to write.")
def command(
    targets: tuple[str, ...], k: int, limit: int | None, collections: tuple[str, ...], out: Path
) -> None:
    """Write a sheet of the documents to judge next.

    TARGETS: a results folder of weir run, or QRELS RUN... as weir eval takes them. The sheet, to_judge.tsv, holds each
    unjudged document among the first k of any system, blind: which system returned it, and where, is not said. Queries
    whose judging narrows scores most come first, documents of a query are shuffled. Fill in the column "grade", then:
    weir labels relabel FOLDER/to_judge.tsv TARGETS
    Texts stand on the sheet where the collection is known: for run files by --collection.
    """
    from weir.audit.judging_pool import pool_notes, pools_of
    from weir.cli.terminal import say
    from weir.experiment.audit_subjects import subjects_of

    subjects = subjects_of(targets, collections)
    pools = pools_of(subjects, out, k, limit)
    click.echo(f"{out}: {sum(map(len, pools)):,} pairs to judge", err=True)
    for note in pool_notes(subjects):
        say(f"note: {note}")
