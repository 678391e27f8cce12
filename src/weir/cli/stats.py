"""weir data stats: the card of a collection."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import dataset_names

__all__ = ["command"]


@click.command("stats")
@click.argument("names", shell_complete=dataset_names, nargs=-1, required=True)
@click.option("--split", help="Whose judgments; by default those everyone reports on.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def command(names: tuple[str, ...], split: str | None, as_json: bool) -> None:
    """Describe collections: sizes, judgments, duplicates, damage.

    NAMES: catalogue names, groups, folders, golden sets, references, or files of judgments alone. Of a collection
    without documents, queries or judgments the rest is described. Everything is counted from the files, nothing is
    quoted.
    """
    import json
    from dataclasses import asdict

    from weir.cli.terminal import output_width, say_notes, show
    from weir.datasets.load import load_group
    from weir.report.collection import card_text, collection_notes, judgment_notes

    for name in names:
        if _is_judgments(name):
            _judgments(Path(name), as_json)
    for dataset in [d for name in names if not _is_judgments(name) for d in load_group(name, split)]:
        card = dataset.card
        if as_json:
            click.echo(json.dumps(asdict(card), ensure_ascii=False))
        else:
            show(card_text(card, output_width()) + "\n")
        notes = judgment_notes(dataset, ()) if "judgments" not in card.lacks else []
        say_notes([*notes, *collection_notes(dataset, ())], details=True)


def _is_judgments(name: str) -> bool:
    """Whether a name is that of a file that is no collection: a zip, a TOML file or a golden set is one."""
    from weir.errors import FormatError
    from weir.io.runs.read import read_qrels

    path = Path(name)
    if not path.is_file() or path.suffix.lower() in (".zip", ".toml") or path.with_suffix(".toml").is_file():
        return False
    if path.suffix.lower() not in (".json", ".jsonl", ".yaml", ".yml"):
        return True
    try:
        read_qrels(path)
    except FormatError:
        return False
    return True


def _judgments(path: Path, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from weir.cli.terminal import output_width, show
    from weir.datasets.card import judgments_card
    from weir.io.runs.read import read_qrels
    from weir.report.collection import judgments_text

    card = judgments_card(path.name, read_qrels(path))
    if as_json:
        click.echo(json.dumps(asdict(card), ensure_ascii=False))
    else:
        show(judgments_text(card, output_width()) + "\n")
