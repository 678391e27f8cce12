"""Decide how runs on a collection are scored: conventions, and which documents its queries may have."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from weir import datasets
from weir.core.dangling import dangling_notes, other_texts_note, textless_notes
from weir.core.intents import IntentQrels
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.subject import Subject
from weir.datasets.names import names_collection, refuse_misspelt
from weir.files.label_files import label_texts
from weir.files.layouts import holds_collection
from weir.files.paths import path_of
from weir.measures.evaluate import DEFAULT, Conventions, join_run, ranked_by

if TYPE_CHECKING:
    from weir.core.corpus import Queries
    from weir.datasets.load import Dataset

Collection: TypeAlias = "str | Path | Dataset | None"
"""A collection by name, path or value."""
Judgments = TypeVar("Judgments", Qrels, IntentQrels, Qrels | IntentQrels)


@dataclass(frozen=True, eq=False)
class ScoringRules:
    """Settings that decide a run's score, apart from judgments and measure."""

    conventions: Conventions = DEFAULT
    """Self-matches are dropped if the collection says so."""
    dataset: Dataset | None = None
    """None without a collection."""

    @staticmethod
    def of(
        collection: str | Path | Dataset | None = None, conventions: Conventions = DEFAULT
    ) -> ScoringRules:
        """Return the scoring rules of a collection, or without one only the conventions.

        Self-matches are dropped if the collection says so, even if `conventions` keep them. Raises
        FormatError or DownloadError for a collection that cannot be loaded.
        """
        if collection is None:
            return ScoringRules(conventions)
        load = datasets.load
        dataset = collection if isinstance(collection, load.Dataset) else load.load(collection)
        if dataset.self_match == "drop":
            conventions = replace(conventions, self_matches="drop")
        return ScoringRules(conventions, dataset)

    @cached_property
    def queries(self) -> Queries | None:
        """The collection's queries of every split, with metadata; None without a collection or its
        queries."""
        dataset = self.dataset
        if dataset is None or dataset.layout.queries is None:
            return None
        if dataset.layout.qrels:
            return dataset.settled_queries
        queries = dataset.all_queries
        restricted = queries.metadata is not None and queries.metadata.filter is not None
        return datasets.load.filtered(queries, dataset.corpus) if restricted else queries

    @property
    def remove_documents(self) -> bool:
        """True if scoring may remove documents from a ranking: self-matches, or documents that a query may
        not have."""
        metadata = None if self.queries is None else self.queries.metadata
        listed = metadata is not None and bool(metadata.lists() or metadata.filter is not None)
        return listed or self.conventions.self_matches == "drop"

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on conventions that differ from the default."""
        return tuple(map(Note, self.conventions.sentences()))

    def dangling_notes(self, *judgments: Qrels | IntentQrels | None) -> list[Note]:
        """Return notes on judgments of documents or queries that the collection lacks; [] without a
        collection."""
        dataset = self.dataset
        if dataset is None:
            return []
        flat = [one.numbered if isinstance(one, IntentQrels) else one for one in judgments if one is not None]
        notes: list[Note] = []
        if dataset.layout.documents is not None:
            notes += [note for one in flat for note in dangling_notes(one, dataset.corpus.ids, dataset.name)]
        if dataset.layout.queries is not None:
            ids = dataset.all_queries.ids
            notes += [note for one in flat for note in textless_notes(one, ids, dataset.name)]
        return list(dict.fromkeys(notes))

    def counted(self, qrels: Judgments) -> Judgments:
        """Return the judgments without queries that the collection marks unanswerable."""
        if self.dataset is None or self.queries is None:
            return qrels
        answerable, settled = datasets.load.answerable, datasets.load.settled
        queries = self.dataset.all_queries
        if isinstance(qrels, IntentQrels):
            judged = replace(qrels.numbered, grade=qrels.best())
            left = answerable(judged, settled(queries, judged, "", "")).queries
            codes = np.sort(judged.queries.codes(left.strings))
            return qrels if len(codes) == len(judged) else qrels.only(codes)
        return answerable(qrels, settled(queries, qrels, "", ""))

    def ranked(self, run: Run) -> Run:
        """Return the run as scored, without documents that a query may not have and without dropped
        self-matches."""
        if self.queries is not None:
            run = run.by_identifier(self.queries).allowed(self.queries)
        return ranked_by(run, self.conventions)

    def join_run(self, run: Path, qrels: Qrels | IntentQrels, conventions: Conventions) -> Judged:
        """Return a run file joined with judgments, by the given conventions and the collection's
        restrictions.

        Raises FormatError for a malformed file.
        """
        return join_run(run, qrels, conventions, self.queries)


def judged_by(qrels: object, collection: Collection = None) -> tuple[object, Collection]:
    """Return (judgments, collection) for a value given as judgments, which may be a collection or its name.

    A collection gives both, unless `collection` is given; its judgments are a path, or Qrels from an archive.
    Other values are returned as they are. Raises UnknownName for a misspelt catalogue name, and the errors of
    `load`.
    """
    if isinstance(qrels, (str, os.PathLike)):
        if not names_collection(qrels):
            if isinstance(qrels, str) and not Path(qrels).suffix and not Path(qrels).exists():
                refuse_misspelt(qrels)
            return path_of(qrels), collection
        qrels = datasets.load.load(cast("str | Path", qrels))
    elif not isinstance(qrels, datasets.load.Dataset):
        return qrels, collection
    return qrels.judgments_given, qrels if collection is None else collection


def labels_given(labels: object) -> object:
    """Return labels in a form for `labels_from`: a collection's judgments, or any other value or path
    unchanged."""
    folder = path_of(labels) if isinstance(labels, (str, os.PathLike)) else None
    if folder is not None and folder.is_dir() and not holds_collection(folder):
        return labels
    return judged_by(labels)[0]


def text_notes(known: object, *labels: object) -> list[Note]:
    """Return notes on texts given with labels that differ from the known texts of the same ids; [] if none
    differ.

    known: a Dataset, a Subject, or other labels with texts.
    """
    if isinstance(known, (str, os.PathLike)):
        known = (judged_by(known)[1] if labels_given(known) is not known else None) or known
    if isinstance(known, datasets.load.Dataset):
        layout, name = known.layout, known.name
        corpus = None if layout.documents is None else known.corpus
        queries = None if layout.queries is None else known.all_queries
    elif isinstance(known, Subject):
        corpus, queries, name = known.corpus, known.queries, known.name
    else:
        corpus, queries, name = None, None, str(known)
    beside = label_texts(known)

    def of_query(query: str) -> str:
        return queries[query] if queries is not None and query in queries else beside.queries.get(query, "")

    def of_document(doc: str) -> str:
        return (
            " ".join(corpus[doc].values())
            if corpus is not None and doc in corpus
            else beside.documents.get(doc, "")
        )

    notes = list[Note]()
    for one in labels:
        texts = label_texts(labels_given(one))
        notes += other_texts_note("query", texts.queries, of_query, str(one), name)
        notes += other_texts_note("document", texts.documents, of_document, str(one), name)
    return notes


NO_COLLECTION = ScoringRules()
"""Default conventions without a collection."""
