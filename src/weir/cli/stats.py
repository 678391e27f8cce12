"""weir stats: the card of a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weir.cli.terminal import say

if TYPE_CHECKING:
    from weir.datasets.card import CollectionCard

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
    from weir.report.collection import collection_notes
    from weir.report.layout import columns

    for dataset in [d for name in names for d in load_group(name, split)]:
        card = dataset.card
        if as_json:
            click.echo(json.dumps(asdict(card), ensure_ascii=False))
        else:
            click.echo(columns([[card.name, card.title], *_lines(card)]) + "\n")
        for note in collection_notes(dataset, ()):
            say(note)


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
