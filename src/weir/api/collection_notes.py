"""Notes on collections, beside scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weir.core.rounding import counted, one_or_more, part_of, percent
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.strings import Strings
from weir.datasets.card import lists_shown, metadata_card, queries_shown, without_judgment
from weir.datasets.load import SELF_MATCHES, Dataset, self_matches
from weir.datasets.scoring_rules import ScoringRules
from weir.files.layouts import ABOUT
from weir.files.records import read_judgments
from weir.measures import parse_measure
from weir.stats.score_rows import grade_notes

if TYPE_CHECKING:
    from weir.experiment.results import ResultCell

_BLANK = 16
"""Most bytes of a text that may be blanks alone."""
_COMPLETE = ("R", "R_cap", "Success")
"""Measures that are 1 for a ranking of all documents."""


def dataset_notes(
    datasets: Sequence[Dataset], measures: Sequence[str], k: int, dropped: bool | None = None
) -> list[Note]:
    """Return all notes on collections to print below scores.

    measures: names of the measures shown.
    k: most documents for each query.
    dropped: True if self-matches were left out, None if unknown.
    """
    notes: list[Note] = []
    for one in datasets:
        notes += [
            *_split_notes(one, {other.split for other in datasets if other.layout == one.layout}),
            *_unasked_notes(one),
            *_empty_notes(one),
            *judgment_notes(one, measures),
            *ScoringRules(dataset=one).dangling_notes(one.all_qrels),
            *restriction_notes(one),
            *collection_notes(one, (), dropped),
        ]
    return [*notes, *construction_notes(datasets, measures, k)]


def language_notes(datasets: Iterable[Dataset], systems: Iterable[object]) -> list[Note]:
    """Return a note, with the analyzer to use, for each collection in a language that the BM25 systems do not
    analyse.

    Catalogue collections are skipped.
    """
    from weir.systems.composite import parts_of
    from weir.systems.lexical.bm25 import BM25, BM25F
    from weir.systems.lexical.language import language_of_corpus

    words = {
        str(part): part.recipe.analysis
        for one in systems
        for part in parts_of(one)
        if isinstance(part, (BM25, BM25F))
    }
    notes: list[Note] = []
    for dataset in datasets if words else ():
        if dataset.entry or dataset.layout.documents is None:  # those of the catalogue are in English
            continue
        if (language := language_of_corpus(dataset.corpus)) is None:
            continue
        wrong = [name for name, analyzer in words.items() if not language.suits(analyzer)]
        if wrong:
            made_for = {words[one].language.title() or "texts with spaces between words" for one in wrong}
            notes.append(
                Note(
                    f"{dataset.name} looks like {language.written_name} ({language.evidence}), and {', '.join(wrong)} "
                    f"{one_or_more(len(wrong), 'is', 'are')} made for {', '.join(sorted(made_for))}: "
                    f'bm25(analyzer="{language.analyzer}")',
                    "told by a sample of its texts",
                )
            )
    return notes


def collection_notes(dataset: Dataset, measures: Iterable[str], dropped: bool | None = None) -> list[Note]:
    """Return notes on properties of a collection that decide scores; [] if documents, queries or judgments are
    missing.

    dropped: True if self-matches are left out; by default as the collection says.
    """
    notes: list[Note] = []
    if None in (dataset.layout.documents, dataset.layout.queries) or not dataset.layout.qrels:
        return notes
    declared = bool(dataset.entry or dataset.layout.self_match)
    portion = 0.0 if declared or dropped else self_matches(dataset)
    if portion >= SELF_MATCHES:
        notes.append(
            Note(
                f"{percent(portion)} of the queries of {dataset.name} are documents of it, which may find "
                "themselves; drop-self leaves these out",
                "identifier and text are the same; self_match = 'drop' in a TOML file of the collection, such as "
                "collection.toml in its folder, leaves them out always, 'keep' says that they are meant",
            )
        )
    return [*notes, *construction_notes([dataset], measures)]


def construction_notes(
    datasets: Iterable[Dataset], measures: Iterable[str], k: int | None = None
) -> list[Note]:
    """Return notes on measures that are 1 for all systems because their cut-off covers all documents that may be
    ranked.

    k: most documents for each query; None for no limit.
    """
    names, by_measure = list(measures), dict[str, list[str]]()
    for dataset in datasets:
        layout = dataset.layout
        if layout.documents is not None and layout.queries is not None and dataset.split in layout.qrels:
            for name, count, what in complete_cutoffs(dataset, names):
                if k is None or k >= count:
                    by_measure.setdefault(name, []).append(f"all {count} {what} on {dataset.name}")
    notes = []
    for name, places in by_measure.items():
        head = f"{name} is 1 by construction for whatever returns {places[0]}"
        more = f", and alike on {counted(len(places) - 1, 'other collection')}" if len(places) > 1 else ""
        notes.append(Note(head + more, "; ".join(places[1:])))
    return notes


def construction_notes_of(cells: Iterable[ResultCell], measures: Iterable[str]) -> list[Note]:
    """Return `construction_notes` for finished results, of collections on this machine."""
    from weir.experiment.results import dataset_of

    names, depths = list(measures), list[int]()
    first: dict[str, ResultCell] = {}
    cutoffs = [measure.cutoff or 0 for measure in map(parse_measure, names) if measure.name in _COMPLETE]
    for cell in cells:
        documents = cell.scored[-1][1].facts.get("documents") if cell.scored else None
        if isinstance(documents, int) and documents <= max(cutoffs, default=0):
            first.setdefault(cell.dataset, cell)
            depths.append(cell.depth)
    opened = [dataset for cell in first.values() if (dataset := dataset_of(cell)) is not None]
    return construction_notes(opened, names, max(depths, default=0))


def complete_cutoffs(dataset: Dataset, measures: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Yield (measure, number, "documents" or "candidates") for each recall-like measure whose cut-off covers all that
    may be ranked.

    Yields nothing if some relevant document may not be ranked.
    """
    card = metadata_card(dataset.queries, dataset.corpus)
    whole = card.candidates.queries == card.queries
    count, what = len(dataset.corpus), "documents"
    if whole and card.candidates.longest < count:
        count, what = card.candidates.longest, "candidates"
    for name in measures:
        measure = parse_measure(name)
        complete = measure.name in _COMPLETE and measure.cutoff is not None and measure.cutoff >= count
        if complete and _all_relevant_ranked(dataset):
            yield name, count, what


def _all_relevant_ranked(dataset: Dataset) -> bool:
    qrels, rows = dataset.qrels, np.flatnonzero(dataset.qrels.grade > 0)
    docs = qrels.docs.strings.take(np.unique(qrels.doc[rows]))
    relevant = qrels.query_of_row()[rows], qrels.doc[rows], np.ones(len(rows))
    run = Run.from_columns(qrels.queries, qrels.docs, *relevant)
    may = run.allowed(dataset.queries)
    return bool((dataset.corpus.ids.codes(docs) >= 0).all()) and len(may.doc) == len(rows)


def restriction_notes(dataset: Dataset) -> list[Note]:
    """Return notes on candidates, exclusions and filters of a collection's queries; [] without queries or
    judgments.
    """
    if dataset.layout.queries is None or not dataset.layout.qrels:
        return []
    corpus = None if dataset.layout.documents is None else dataset.corpus
    card = metadata_card(dataset.queries, corpus)
    lines = []
    if card.candidates.queries:
        shown = lists_shown(card.candidates, card.queries)
        lines.append(
            f"only candidates are ranked: {shown}; pool >> ... re-ranks those that a search misses, too"
        )
        if dataset.pools_of:
            lines.append(
                f"its numbers of documents, queries and judgments are those of {dataset.pools_of}, so that judged "
                f'documents are the candidates; to rank all documents, write candidates = "all" into '
                f"{ABOUT} in its folder"
            )
    if card.excluded.queries:
        lines.append(f"excluded documents leave each ranking: {lists_shown(card.excluded, card.queries)}")
    if card.unanswerable:
        are = "is asked, and is" if card.unanswerable == 1 else "are asked, and are"
        lines.append(f"{queries_shown(card.unanswerable)} without an answer {are} in no mean")
    return [Note(f"{dataset.name}: {line}") for line in [*lines, *_barred(dataset)]]


def _barred(dataset: Dataset) -> Iterator[str]:
    queries, qrels = ScoringRules(dataset=dataset).queries, dataset.qrels
    metadata = None if queries is None else queries.metadata
    if (
        queries is None
        or metadata is None
        or (metadata.filter is not None and dataset.layout.documents is None)
    ):
        return
    relevant = np.flatnonzero(qrels.grade > 0)
    query = qrels.query_of_row()[relevant]
    equal = np.ones(len(relevant), np.float64)
    best = Run.from_columns(qrels.queries, qrels.docs, query, qrels.doc[relevant], equal)
    left = best.allowed(queries)
    pairs, kept = (
        set(zip(one.query_of_row().tolist(), one.doc.tolist(), strict=True)) for one in (best, left)
    )
    if barred := sorted(pairs - kept):
        first, doc = barred[0]
        share = part_of(len(barred), len(pairs), "relevant documents", "is", "are")
        yield (
            f"{share} barred from the rankings by candidates, exclusions or filters, and missed, the first "
            f"'{qrels.docs[doc]}' for query '{qrels.queries[first]}'"
        )


def _split_notes(dataset: Dataset, counted_too: Collection[str]) -> list[Note]:
    # Beside test, training data is no other choice, and the catalogue says which splits its collections have.
    known = {"train"} if dataset.entry is None else {*dataset.splits}
    left = known | {*counted_too} if "test" in counted_too else counted_too
    others = [split for split in dataset.splits if split not in left]
    if not others:
        return []
    more = f"another one is chosen after the name, as in {dataset.name}:{others[0]}"
    return [Note(f"{dataset.name}: the split {dataset.split} counts, not {', '.join(others[:5])}", more)]


def _unasked_notes(dataset: Dataset) -> list[Note]:
    whole = (
        None if dataset.layout.queries is None or dataset.entry or dataset.unjudged else dataset.all_queries
    )
    if whole is None or len(whole) == len(dataset.queries):
        return []
    names = without_judgment(
        whole, (read_judgments(dataset.layout.need_qrels(one)) for one in dataset.splits)
    )
    unasked = len(set(names).difference(dataset.queries.ids.tolist()))
    if not unasked:
        return []
    return [
        Note(
            f"{dataset.name}: {part_of(unasked, len(whole), 'queries', 'has', 'have')} no judgment and "
            f"{one_or_more(unasked, 'is', 'are')} not asked",
            "a TOML file that names documents and queries alone is a collection without judgments, of which all are "
            "asked; weir labels pool then writes what to judge",
        )
    ]


def _empty_notes(dataset: Dataset) -> list[Note]:
    layout, said = dataset.layout, []
    if layout.documents is not None:
        corpus = dataset.corpus
        lengths = corpus.text.lengths() + (0 if corpus.title is None else corpus.title.lengths())
        empty = _blank(corpus.view_of("title text", np.flatnonzero(lengths <= _BLANK)))
        said += [part_of(empty, len(corpus), "documents", "has", "have")] * (empty > 0)
    if layout.queries is not None:
        empty = _blank(dataset.queries.text)
        said += [part_of(empty, len(dataset.queries), "queries", "has", "have")] * (empty > 0)
    return [Note(f"{dataset.name}: {one} no text") for one in said]


def _blank(texts: Strings) -> int:
    return sum(not text.strip() for text in texts.tolist())


def judgment_notes(dataset: Dataset, measures: Iterable[str]) -> list[Note]:
    """Return notes on fractional grades and on the origin of a collection's judgments."""
    return [note.about(dataset.name) for note in grade_notes(dataset.qrels, map(parse_measure, measures))]
