"""weir fetch: download collections."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(names: tuple[str, ...], quiet: bool) -> None:
    """Download collections, verify them, and make them ready.

    NAMES: collections or groups of the catalogue (see weir datasets). An interrupted download continues. For a
    collection under licence, how to obtain it is printed.
    """
    from weir.cli.progress import Progress
    from weir.datasets import catalogue
    from weir.datasets.load import fetch

    for name in names:  # before anything is downloaded
        catalogue.group(name) if catalogue.is_group(name) else catalogue.get(name)
    progress = Progress(quiet)
    for name in names:
        try:
            got = fetch(name, lambda done, total, name=name: progress(f"fetch {name}", done, total or 0))  # type: ignore[misc]
        finally:
            progress.close()
        for dataset in got:
            click.echo(f"{dataset.name}: {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries")
