"""Rules for scoring runs on a collection: conventions, and restrictions of its queries."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import numpy as np

from weir.core.corpus import Queries
from weir.core.dangling import dangling_notes, textless_notes
from weir.core.intents import IntentQrels
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Note
from weir.datasets.load import Dataset, answerable, filtered, load, names_collection, settled
from weir.files.paths import path_of
from weir.files.records import read_judgments
from weir.measures.evaluate import DEFAULT, Conventions, join_run, ranked_by

Collection: TypeAlias = str | Path | Dataset | None
"""A collection by name, path or value."""
Judgments = TypeVar("Judgments", Qrels, IntentQrels, Qrels | IntentQrels)


@dataclass(frozen=True, eq=False)
class ScoringRules:
    """The rules that decide a run's score besides judgments and measure, with or without a collection."""

    conventions: Conventions = DEFAULT
    """Self-matches are dropped if the collection says so."""
    dataset: Dataset | None = None
    """None without a collection."""

    @staticmethod
    def of(
        collection: str | Path | Dataset | None = None, conventions: Conventions = DEFAULT
    ) -> ScoringRules:
        """Return the rules of a collection; it may drop self-matches even if `conventions` keep them. Raises
        as `load`.
        """
        dataset = collection if collection is None or isinstance(collection, Dataset) else load(collection)
        if dataset is not None and dataset.self_match == "drop":
            conventions = replace(conventions, self_matches="drop")
        return ScoringRules(conventions, dataset)

    @cached_property
    def queries(self) -> Queries | None:
        """The collection's queries of every split, with metadata; None if there are none."""
        dataset = self.dataset
        if dataset is None or dataset.layout.queries is None:
            return None
        if dataset.layout.qrels:
            return dataset.settled_queries
        queries = dataset.all_queries
        restricted = queries.metadata is not None and queries.metadata.filter is not None
        return filtered(queries, dataset.corpus) if restricted else queries

    @property
    def remove_documents(self) -> bool:
        """True if documents may be removed from a ranking before it is scored."""
        metadata = None if self.queries is None else self.queries.metadata
        listed = metadata is not None and bool(metadata.lists() or metadata.filter is not None)
        return listed or self.conventions.self_matches == "drop"

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note on each convention that differs from the default."""
        return tuple(map(Note, self.conventions.sentences()))

    def dangling_notes(self, *judgments: Qrels | IntentQrels | None) -> list[Note]:
        """Return notes on judgments of documents and of queries that the collection lacks, where it has such."""
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
        """Return the judgments without unanswerable queries, which count in no mean."""
        if self.dataset is None or self.queries is None:
            return qrels
        queries = self.dataset.all_queries
        if isinstance(qrels, IntentQrels):
            judged = replace(qrels.numbered, grade=qrels.best())
            left = answerable(judged, settled(queries, judged, "", "")).queries
            codes = np.sort(judged.queries.codes(left.strings))
            return qrels if len(codes) == len(judged) else qrels.only(codes)
        return answerable(qrels, settled(queries, qrels, "", ""))

    def ranked(self, run: Run) -> Run:
        """Return the run as it is scored: restricted documents and self-matches removed, in order.

        Raises BadValue if that needs document ids that were not read.
        """
        return ranked_by(run if self.queries is None else run.allowed(self.queries), self.conventions)

    def join_run(self, run: Path, qrels: Qrels | IntentQrels, conventions: Conventions) -> Judged:
        """Return a run file joined with judgments by these conventions; raises as `measures.evaluate.join_run`."""
        return join_run(run, qrels, conventions, self.queries)


def judged_by(qrels: object, collection: Collection = None) -> tuple[object, Collection]:
    """Return (judgments, collection) for a value given as judgments, which may be a collection.

    The name of a collection, or a Dataset, gives both (see `names_collection`), unless `collection` is given.
    Judgments are then a file's path, or Qrels from an archive; other values are returned as they are. Raises
    as `load`.
    """
    if not names_collection(qrels):
        return path_of(qrels) if isinstance(qrels, (str, os.PathLike)) else qrels, collection
    dataset = qrels if isinstance(qrels, Dataset) else load(cast("str | Path", qrels))
    part = dataset.layout.need_qrels(dataset.split)
    judgments = part.path if part.member is None else read_judgments(part)
    return judgments, dataset if collection is None else collection


NO_COLLECTION = ScoringRules()
"""Default conventions without a collection."""
