"""What has to be said of a collection beside its scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from weir.core.rounding import count, share
from weir.core.scores import Note
from weir.core.tables import columns
from weir.datasets.card import CollectionCard, JudgmentsCard, ListsCard, metadata_card
from weir.datasets.load import SELF_MATCHES, Dataset, self_matches
from weir.measures import parse_measure
from weir.stats.score_rows import grade_notes

_LISTED = 12  # different grades with fractions that are listed one by one
_COMPLETE = ("R", "R_cap", "Success")
"""Measures that are 1 for a ranking of all documents."""


def dataset_notes(dataset: Dataset, measures: Sequence[str], dropped: bool | None = None) -> list[Note]:
    """All that has to be said of a collection beside scores on it; arguments as `collection_notes`."""
    own = [*judgment_notes(dataset, measures), *restriction_notes(dataset)]
    return [*own, *collection_notes(dataset, measures, dropped)]


def collection_notes(dataset: Dataset, measures: Iterable[str], dropped: bool | None = None) -> list[Note]:
    """Notes on what a collection makes of scores: queries that are documents, and cut-offs that take all of them.

    dropped: whether self-matches are left out; by default what the collection says. Reads the documents' store; nothing
    is said where documents, queries or judgments are not there.
    """
    found: list[Note] = []
    if None in (dataset.layout.documents, dataset.layout.queries) or not dataset.layout.qrels:
        return found
    said = bool(dataset.entry or dataset.layout.self_match)
    share_of_queries = 0.0 if said or dropped else self_matches(dataset)
    if share_of_queries >= SELF_MATCHES:
        found.append(
            Note(
                f"{share(share_of_queries)} of the queries of {dataset.name} are documents of it and find themselves "
                "first; --drop-self leaves these out",
                "identifier and text are the same; self_match = 'drop' in a TOML file of the collection, such as "
                "collection.toml in its folder, leaves them out always, 'keep' says that they are meant",
            )
        )
    card = metadata_card(dataset.queries, dataset.corpus)
    whole = card.candidates.queries == card.queries
    count, what = len(dataset.corpus), "documents"
    if whole and card.candidates.longest < count:
        count, what = card.candidates.longest, "candidates"
    for name in measures:
        measure = parse_measure(name)
        if measure.name in _COMPLETE and measure.cutoff is not None and measure.cutoff >= count:
            found.append(
                Note(f"{name} on {dataset.name} is 1 by construction for whatever returns all {count} {what}")
            )
    return found


def restriction_notes(dataset: Dataset) -> list[Note]:
    """Notes on what is done with queries because of what the collection says of them."""
    if dataset.layout.queries is None or not dataset.layout.qrels:
        return []
    corpus = None if dataset.layout.documents is None else dataset.corpus
    card, found = metadata_card(dataset.queries, corpus), []
    if card.candidates.queries:
        found.append(f"only candidates are ranked: {_listed(card.candidates, card.queries)}")
    if card.excluded.queries:
        found.append(f"excluded documents leave each ranking: {_listed(card.excluded, card.queries)}")
    if card.unanswerable:
        are = "is asked, and is" if card.unanswerable == 1 else "are asked, and are"
        found.append(f"{_queries(card.unanswerable)} without an answer {are} in no mean")
    return [Note(f"{dataset.name}: {line}") for line in found]


def _queries(number: int) -> str:
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def _listed(card: ListsCard, queries: int) -> str:
    if not card.queries:
        return ""
    mean = count(card.documents / card.queries, 1)
    absent = f", {card.absent:,} of them no documents of the collection" if card.absent else ""
    return f"{mean} on average for {card.queries:,} of {queries:,} queries{absent}"


def judgment_notes(dataset: Dataset, measures: Iterable[str]) -> list[Note]:
    """Notes on the judgments of a collection: grades with fractions, and where judgments come from."""
    found = grade_notes(dataset.qrels, map(parse_measure, measures))
    return [note.about(dataset.name) for note in found]


def card_text(card: CollectionCard, width: int | None = None) -> str:
    """What a collection holds, a line for each kind of fact."""
    return columns([[card.name, card.title], *_lines(card)], width=width)


def judgments_text(card: JudgmentsCard, width: int | None = None) -> str:
    """What judgments hold that stand alone, a line for each kind of fact."""
    grades = _grades(card.pairs)
    lines = [
        [card.name, "judgments alone"],
        ["relevance", card.relevance],
        ["queries", f"{card.queries:,}, {card.without_relevant:,} without {_none(card)}"],
        ["judgments", f"{sum(card.pairs.values()):,} of {card.documents:,} documents ({grades})"],
        ["mean per query", _per_query(card)],
    ]
    return columns(lines, width=width)


def _per_query(card: CollectionCard | JudgmentsCard) -> str:
    return f"{count(card.judged_per_query, 2)} judged, {count(card.relevant_per_query, 2)} {_above(card)}"


def _none(card: JudgmentsCard) -> str:
    return "a relevant document" if _above(card) == "relevant" else "a document above 0"


def _above(card: CollectionCard | JudgmentsCard) -> str:
    """What documents are called that have a grade above 0: with fractions they need not be relevant."""
    return "above 0" if any(not float(grade).is_integer() for grade in card.pairs) else "relevant"


def _grades(pairs: Mapping[float, int]) -> str:
    """How many judgments have each grade, best first; where many have fractions, how many lie between whole ones."""
    bands: dict[str, int] = {}
    for grade, n in sorted(pairs.items(), reverse=True):
        below = math.floor(grade)
        whole = float(grade).is_integer() or len(pairs) <= _LISTED
        band = f"of grade {grade:g}" if whole else f"between {below} and {below + 1}"
        bands[band] = bands.get(band, 0) + n
    return ", ".join(f"{n:,} {band}" for band, n in bands.items())


def _lines(card: CollectionCard) -> list[list[str]]:
    grades = _grades(card.pairs)
    judged = f"{card.positive:,} positive, {card.zero:,} zero, {card.negative:,} negative ({grades})"
    words = [
        f"{count(mean, 2)} per {what}"
        for what, part, mean in (
            ("query", "queries", card.words_per_query),
            ("document", "documents", card.words_per_document),
        )
        if part not in card.lacks
    ]
    copies = f"{card.copies_of_text:,} by text, {card.copies:,} by title and text"
    empty = f"{card.empty:,} without a word, {card.without_text:,} without text, {card.without_title:,} without title"
    absent = [
        f"{number:,} {told}"
        for part, number, told in (
            ("documents", card.absent_documents, "pairs name absent documents"),
            (
                "queries",
                card.absent_queries,
                "absent queries" if "documents" not in card.lacks else "pairs name absent queries",
            ),
        )
        if part not in card.lacks
    ]
    lines = [
        ("", ["task", card.task]),
        ("", ["domain", card.domain]),
        ("", ["licence", card.licence]),
        ("judgments", ["relevance", card.relevance]),
        ("documents", ["documents", f"{card.documents:,}"]),
        ("", ["queries", ", ".join(f"{n:,} {split}" for split, n in card.queries.items())]),
        ("judgments", [f"judgments ({card.split})", judged]),
        ("judgments", ["mean per query", _per_query(card)]),
        ("", ["mean words", ", ".join(words)]),
        ("documents", ["exact duplicates", copies]),
        ("documents", ["empty documents", empty]),
        ("judgments", ["dangling judgments", ", ".join(absent)]),
        ("", ["candidates", _listed(card.said.candidates, card.said.queries)]),
        ("", ["excluded documents", _listed(card.said.excluded, card.said.queries)]),
        ("", ["instructions", _queries(card.said.instructions) if card.said.instructions else ""]),
        ("", ["without an answer", _queries(card.said.unanswerable) if card.said.unanswerable else ""]),
        ("", ["groups of queries", ", ".join(f"{name} ({n:,})" for name, n in card.said.groups.items())]),
        ("", ["not there", ", ".join(card.lacks)]),
    ]
    return [line for needed, line in lines if line[1] and needed not in card.lacks]
