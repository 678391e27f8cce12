"""Compare texts beside labels with the texts of a collection or of other labels."""

from __future__ import annotations

import os

from weir.core.dangling import other_texts_note
from weir.core.scores import Note
from weir.core.subject import Subject
from weir.datasets.load import Dataset
from weir.datasets.scoring_rules import judged_by
from weir.files.label_files import label_texts
from weir.files.layouts import holds_collection
from weir.files.paths import path_of


def labels_given(labels: object) -> object:
    """Return the judgments of a collection if `labels` is or names one, else `labels`."""
    folder = path_of(labels) if isinstance(labels, (str, os.PathLike)) else None
    if folder is not None and folder.is_dir() and not holds_collection(folder):
        return labels
    return judged_by(labels)[0]


def text_notes(known: object, *labels: object) -> list[Note]:
    """Return notes on texts in files of labels that differ from the known texts of the same identifiers.

    known: a Dataset, a Subject, or a file of labels with texts.
    labels: paths of files; other values are passed over.
    """
    if isinstance(known, (str, os.PathLike)):
        known = (judged_by(known)[1] if labels_given(known) is not known else None) or known
    if isinstance(known, Dataset):
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
