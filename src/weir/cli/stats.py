"""weir stats: the card of a collection."""

from __future__ import annotations

import click

from weir.cli.terminal import say

__all__ = ["command"]


@click.command("stats")
@click.argument("names", nargs=-1, required=True)
@click.option("--split", help="Whose judgments; by default those everyone reports on.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def command(names: tuple[str, ...], split: str | None, as_json: bool) -> None:
    """Describe a collection: sizes, judgments, duplicates, damage.

    NAMES: catalogue names, groups, or folders. Everything is counted from the files, nothing is quoted.
    """
    import json
    from dataclasses import asdict

    from weir.datasets.load import load_group
    from weir.report.collection import card_text, collection_notes

    for dataset in [d for name in names for d in load_group(name, split)]:
        card = dataset.card
        if as_json:
            click.echo(json.dumps(asdict(card), ensure_ascii=False))
        else:
            click.echo(card_text(card) + "\n")
        for note in collection_notes(dataset, ()):
            say(note)
