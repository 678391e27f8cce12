"""weir stats: the card of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import dataset_names
from weir.cli.terminal import say

if TYPE_CHECKING:
    from weir.datasets.card import CollectionCard

__all__ = ["command"]


@click.command("stats")
@click.argument("names", shell_complete=dataset_names, nargs=-1, required=True)
@click.option("--split", help="Whose judgments; by default those everyone reports on.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def command(names: tuple[str, ...], split: str | None, as_json: bool) -> None:
    """Describe a collection: sizes, judgments, duplicates, damage.

    NAMES: catalogue names, groups, folders, or files of judgments alone. Everything is counted from the files,
    nothing is quoted.
    """
    import json
    from dataclasses import asdict

    from weir.datasets.load import load_group
    from weir.report.collection import collection_notes
    from weir.report.layout import columns

    for name in names:
        if _is_judgments(name):
            _judgments(Path(name), as_json)
    for dataset in [d for name in names if not _is_judgments(name) for d in load_group(name, split)]:
        card = dataset.card
        if as_json:
            click.echo(json.dumps(asdict(card), ensure_ascii=False))
        else:
            click.echo(columns([[card.name, card.title], *_lines(card)]) + "\n")
        for note in collection_notes(dataset, ()):
            say(note)


def _is_judgments(name: str) -> bool:
    """Whether a name is that of a file that is no collection: a zip or a TOML file is one."""
    path = Path(name)
    return path.is_file() and path.suffix.lower() not in (".zip", ".toml")


def _judgments(path: Path, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from weir.datasets.card import judgments_card
    from weir.io.runs.read import read_qrels
    from weir.report.format import count
    from weir.report.layout import columns

    card = judgments_card(path.name, read_qrels(path))
    if as_json:
        click.echo(json.dumps(asdict(card), ensure_ascii=False))
        return
    grades = ", ".join(f"{n:,} of grade {grade}" for grade, n in sorted(card.pairs.items(), reverse=True))
    per_query = f"{count(card.judged_per_query, 2)} judged, {count(card.relevant_per_query, 2)} relevant"
    lines = [
        ["relevance", card.relevance],
        ["queries", f"{card.queries:,}, {card.without_relevant:,} without a relevant document"],
        ["judgments", f"{sum(card.pairs.values()):,} of {card.documents:,} documents ({grades})"],
        ["mean per query", per_query],
    ]
    click.echo(columns([[card.name, "judgments alone"], *lines]) + "\n")


def _lines(card: CollectionCard) -> list[list[str]]:
    from weir.report.format import count

    grades = ", ".join(f"{n:,} of grade {grade}" for grade, n in sorted(card.pairs.items(), reverse=True))
    judged = f"{card.positive:,} positive, {card.zero:,} zero, {card.negative:,} negative ({grades})"
    per_query = f"{count(card.judged_per_query, 2)} judged, {count(card.relevant_per_query, 2)} relevant"
    words = f"{count(card.words_per_query, 2)} per query, {count(card.words_per_document, 2)} per document"
    copies = f"{card.copies_of_text:,} by text, {card.copies:,} by title and text"
    empty = f"{card.empty:,} without a word, {card.without_text:,} without text, {card.without_title:,} without title"
    absent = f"{card.absent_documents:,} pairs name absent documents, {card.absent_queries:,} absent queries"
    lines = [
        ["task", card.task],
        ["domain", card.domain],
        ["licence", card.licence],
        ["relevance", card.relevance],
        ["documents", f"{card.documents:,}"],
        ["queries", ", ".join(f"{n:,} {split}" for split, n in card.queries.items())],
        [f"judgments ({card.split})", judged],
        ["mean per query", per_query],
        ["mean words", words],
        ["exact duplicates", copies],
        ["empty documents", empty],
        ["dangling judgments", absent],
    ]
    return [[label, value] for label, value in lines if value]
