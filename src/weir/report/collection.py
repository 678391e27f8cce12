"""What has to be said of a collection beside its scores."""

from __future__ import annotations

from collections.abc import Iterable

from weir.datasets.card import CollectionCard, JudgmentsCard
from weir.datasets.load import Dataset
from weir.datasets.self_match import SELF_MATCHES, self_matches
from weir.measures import parse_measure
from weir.report.format import count, share
from weir.report.terminal_layout import columns

__all__ = ["card_text", "collection_notes", "judgments_text"]

_COMPLETE = ("R", "R_cap", "Success")
"""Measures that are 1 for a ranking of all documents."""


def collection_notes(dataset: Dataset, measures: Iterable[str], dropped: bool | None = None) -> list[str]:
    """Sentences on what a collection makes of scores: queries that are documents, and cut-offs that take all of them.

    dropped: whether self-matches are left out; by default what the collection says. Reads the documents' store.
    """
    found = []
    said = bool(dataset.entry or dataset.layout.self_match)
    share_of_queries = 0.0 if said or dropped else self_matches(dataset)
    if share_of_queries >= SELF_MATCHES:
        found.append(
            f"note: {share(share_of_queries)} of the queries of {dataset.name} are documents of it, with the same "
            "identifier and text, and find themselves first: leave these out with --drop-self, or with "
            "self_match = 'drop' in a TOML file of the collection ('keep' if that is meant)"
        )
    count = len(dataset.corpus)
    for name in measures:
        measure = parse_measure(name)
        if measure.name in _COMPLETE and measure.cutoff is not None and measure.cutoff >= count:
            found.append(
                f"note: {name} on {dataset.name} is 1 by construction for whatever returns all {count} documents"
            )
    return found


def card_text(card: CollectionCard, width: int | None = None) -> str:
    """What a collection holds, a line for each kind of fact."""
    return columns([[card.name, card.title], *_lines(card)], width=width)


def judgments_text(card: JudgmentsCard, width: int | None = None) -> str:
    """What judgments hold that stand alone, a line for each kind of fact."""
    grades = ", ".join(f"{n:,} of grade {grade}" for grade, n in sorted(card.pairs.items(), reverse=True))
    per_query = f"{count(card.judged_per_query, 2)} judged, {count(card.relevant_per_query, 2)} relevant"
    lines = [
        [card.name, "judgments alone"],
        ["relevance", card.relevance],
        ["queries", f"{card.queries:,}, {card.without_relevant:,} without a relevant document"],
        ["judgments", f"{sum(card.pairs.values()):,} of {card.documents:,} documents ({grades})"],
        ["mean per query", per_query],
    ]
    return columns(lines, width=width)


def _lines(card: CollectionCard) -> list[list[str]]:
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
