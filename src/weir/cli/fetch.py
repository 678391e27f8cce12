"""weir data fetch: download collections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from weir.cli.completion import dataset_names

if TYPE_CHECKING:
    from weir.report.progress import Progress

__all__ = ["command"]


def _shown(progress: Progress, name: str, done: int, total: int | None) -> None:
    progress(f"fetch {name}", done, total or 0)


@click.command("fetch")
@click.argument("names", shell_complete=dataset_names, nargs=-1, required=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(names: tuple[str, ...], quiet: bool) -> None:
    """Download collections, verify them, and prepare them.

    NAMES: collections or groups of the catalogue (see weir list datasets), or references such as hf:mteb/nfcorpus, of
    which the newest commit is fetched. An interrupted download continues. For a collection under licence, how to obtain
    it is printed.
    """
    from weir.datasets import catalogue
    from weir.datasets.fetching import fetch
    from weir.datasets.references import is_reference
    from weir.report.progress import Progress

    for name in names:  # before anything is downloaded
        if not is_reference(name):
            catalogue.group(name) if catalogue.is_group(name) else catalogue.get(name)
    progress = Progress(quiet)
    for name in names:
        try:
            got = fetch(name, partial(_shown, progress, name))
        finally:
            progress.close()
        for dataset in got:
            click.echo(f"{dataset.name}: {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries")
