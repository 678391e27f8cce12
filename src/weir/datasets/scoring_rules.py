"""Decide how runs on a collection are scored: conventions, and the documents that its queries may have."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from weir import datasets
from weir.argument_types import converted_one
from weir.core.dangling import dangling_notes, refuse_strangers, textless_notes
from weir.core.intents import IntentQrels
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Note
from weir.datasets.names import names_collection, refuse_misspelt
from weir.errors import BadValue, held_warnings
from weir.files.paths import path_of
from weir.files.runs import read_run
from weir.measures.evaluate import DEFAULT, Conventions, join_run, permitted, ranked_by

if TYPE_CHECKING:
    from weir.core.corpus import Queries
    from weir.datasets.load import Dataset

Collection: TypeAlias = "str | Path | Dataset | None"
"""A collection by name, path or value."""
Judgments = TypeVar("Judgments", Qrels, IntentQrels, Qrels | IntentQrels)


@dataclass(frozen=True, eq=False)
class ScoringRules:
    """Conventions and the collection that decide a run's score, besides judgments and measure."""

    conventions: Conventions = DEFAULT
    """Include dropping self-matches if the collection says so."""
    dataset: Dataset | None = None
    """None without a collection."""

    @staticmethod
    def of(
        collection: str | Path | Dataset | None = None, conventions: Conventions = DEFAULT
    ) -> ScoringRules:
        """Return the scoring rules of a collection; without one, only the conventions.

        A collection that says so drops self-matches, even if `conventions` keep them. Raises the errors of `load`.
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
        """The collection's queries of every split, with metadata; None without a collection or queries."""
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
        """True if scoring may remove documents: self-matches, or documents that a query may not have."""
        metadata = None if self.queries is None else self.queries.metadata
        listed = metadata is not None and bool(metadata.lists() or metadata.filter is not None)
        return listed or self.conventions.self_matches == "drop"

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note for each convention that differs from the default."""
        return tuple(map(Note, self.conventions.sentences()))

    def dangling_notes(self, *judgments: Qrels | IntentQrels | None) -> list[Note]:
        """Return notes on judgments of documents or queries that the collection lacks; [] without a collection."""
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

    def refuse_strangers(self, qrels: Qrels) -> None:
        """Raise BadValue if no judged query, or no judged document, is in the collection; never without a
        collection.
        """
        dataset = self.dataset
        if dataset is not None:
            queries = None if dataset.layout.queries is None else dataset.all_queries.ids
            docs = None if dataset.layout.documents is None else dataset.corpus.ids
            refuse_strangers(qrels, queries, docs, dataset.name)

    def counted(self, qrels: Judgments) -> Judgments:
        """Return the judgments of the queries that count (`counting`)."""
        if self.dataset is None or self.queries is None:
            return qrels
        counting, settled = datasets.load.counting, datasets.load.settled
        queries = self.dataset.all_queries
        if isinstance(qrels, IntentQrels):
            judged = replace(qrels.numbered, grade=qrels.best())
            left = counting(judged, settled(queries, judged, "", "")).queries
            codes = np.sort(judged.queries.codes(left.strings))
            return qrels if len(codes) == len(judged) else qrels.only(codes)
        return counting(qrels, settled(queries, qrels, "", ""))

    def ranked(self, run: Run) -> Run:
        """Return the run without documents that a query may not have and, if the conventions say so, self-matches."""
        if self.queries is not None:
            run = permitted(run.by_identifier(self.queries), self.queries)
        return ranked_by(run, self.conventions)

    def join_run(self, run: Path, qrels: Qrels | IntentQrels, conventions: Conventions) -> Judged:
        """Return a run file joined with judgments, by these conventions and the collection's restrictions.

        Raises FormatError for a malformed file, BadValue for a run without a judged query.
        """
        try:
            judged = join_run(run, qrels, conventions, self.queries)
        except BadValue as error:
            with held_warnings():  # the run is read again, and the error says more
                if self.dataset is not None and (other := self.split_answered(read_run(run), qrels)):
                    raise BadValue(f"{error}; {other}") from None
                raise
        meant = self.dataset is not None and self.dataset.layout.self_match == "keep"
        return replace(judged, own_first=0, own_near=0) if meant else judged

    def split_answered(self, run: Run, qrels: Qrels | IntentQrels) -> str:
        """Return a clause that names the split whose queries a run answers, if it answers no query of these
        judgments, else "".
        """
        dataset = self.dataset
        if dataset is None:
            return ""
        queries = run.queries.strings
        judged = qrels.numbered if isinstance(qrels, IntentQrels) else qrels
        if (judged.queries.codes(queries) >= 0).any():
            return ""
        from weir.files.records import read_judgments  # which imports the code of collections

        answered = {
            split: int((read_judgments(dataset.layout.need_qrels(split)).queries.codes(queries) >= 0).sum())
            for split in dataset.splits
        }
        best = max(answered, key=lambda split: answered[split], default="")
        if not answered.get(best):
            return ""
        return f"{answered[best]:,} of them are judged in the split {best}: {dataset.name}:{best}"


def judged_by(qrels: object, collection: Collection = None) -> tuple[object, Collection]:
    """Return (judgments, collection) for a value given as judgments, which may be a collection or its name.

    A collection gives both, unless `collection` is given; its judgments are a path, or Qrels from an archive. Other
    values are returned unchanged. Raises UnknownName for a misspelt catalogue name, and the errors of `load`.
    """
    if isinstance(qrels, (str, os.PathLike)):
        if not names_collection(qrels):
            if isinstance(qrels, str) and not Path(qrels).suffix and not Path(qrels).exists():
                refuse_misspelt(qrels)
            return path_of(qrels), collection
        qrels = datasets.load.load(cast("str | Path", qrels))
    elif not isinstance(qrels := converted_one(qrels), datasets.load.Dataset):
        return qrels, collection
    return qrels.judgments_given, qrels if collection is None else collection


NO_COLLECTION = ScoringRules()
"""Default conventions without a collection."""
