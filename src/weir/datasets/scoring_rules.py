"""How runs on a collection are scored: by conventions, and by what the collection says of its queries."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import numpy as np

from weir.core.corpus import Queries
from weir.core.dangling import dangling_notes
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
"""A collection by name, path or itself."""
Judgments = TypeVar("Judgments", Qrels, IntentQrels, Qrels | IntentQrels)


@dataclass(frozen=True, eq=False)
class ScoringRules:
    """What decides the score of a run besides the run, the judgments and the measure, with a collection or without.

    conventions: with self-matches dropped where the collection says so; dataset: None where no collection is named.
    """

    conventions: Conventions = DEFAULT
    dataset: Dataset | None = None

    @staticmethod
    def of(
        collection: str | Path | Dataset | None = None, conventions: Conventions = DEFAULT
    ) -> ScoringRules:
        """The rules of a collection, by name, path or itself; its self-matches leave whatever the conventions say.

        Raises as `load`.
        """
        dataset = collection if collection is None or isinstance(collection, Dataset) else load(collection)
        if dataset is not None and dataset.self_match == "drop":
            conventions = replace(conventions, self_matches="drop")
        return ScoringRules(conventions, dataset)

    @cached_property
    def queries(self) -> Queries | None:
        """The queries that the collection says something of, of every split; None where there are none."""
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
        """Whether documents may leave a ranking before it is scored."""
        metadata = None if self.queries is None else self.queries.metadata
        listed = metadata is not None and bool(metadata.lists() or metadata.filter is not None)
        return listed or self.conventions.self_matches == "drop"

    @property
    def notes(self) -> tuple[Note, ...]:
        """What each convention that is not the usual one means."""
        return tuple(map(Note, self.conventions.sentences()))

    def dangling_notes(self, *judgments: Qrels | IntentQrels | None) -> list[Note]:
        """Notes on judgments of documents that the collection does not have; none where no documents are known."""
        dataset = self.dataset
        if dataset is None or dataset.layout.documents is None:
            return []
        flat = (one.numbered if isinstance(one, IntentQrels) else one for one in judgments if one is not None)
        ids = dataset.corpus.ids
        return list(dict.fromkeys(note for one in flat for note in dangling_notes(one, ids, dataset.name)))

    def counted(self, qrels: Judgments) -> Judgments:
        """The judgments without those of queries that nothing answers, which are in no mean."""
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
        """The run as it is scored: what may be ranked, without self-matches where they are dropped, in order.

        Raises BadValue for a run that was read without the identifiers of all its documents, if they matter.
        """
        return ranked_by(run if self.queries is None else run.allowed(self.queries), self.conventions)

    def join_run(self, run: Path, qrels: Qrels | IntentQrels, conventions: Conventions) -> Judged:
        """Join a run file with judgments by its own or other conventions; raises as `measures.evaluate.join_run`."""
        return join_run(run, qrels, conventions, self.queries)


def judged_by(qrels: object, collection: Collection = None) -> tuple[object, Collection]:
    """(judgments, the collection of the rankings) from what is given as judgments, by every command and function.

    What names a collection stands for both, as `names_collection` says, and so does a Dataset; a given collection goes
    first. Judgments are then a file's path, or Qrels of an archive; anything else stays as it is. Raises as `load`.
    """
    if not names_collection(qrels):
        return path_of(qrels) if isinstance(qrels, (str, os.PathLike)) else qrels, collection
    dataset = qrels if isinstance(qrels, Dataset) else load(cast("str | Path", qrels))
    part = dataset.layout.need_qrels(dataset.split)
    judgments = part.path if part.member is None else read_judgments(part)
    return judgments, dataset if collection is None else collection


NO_COLLECTION = ScoringRules()
"""The usual conventions, and nothing that a collection says."""
