"""What a collection says of its queries, counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.document_lists import DocumentLists

__all__ = ["ListsCard", "MetadataCard", "metadata_card"]


@dataclass(frozen=True)
class ListsCard:
    """Documents listed by query.

    queries: with a list; documents: listed in all, over queries; longest: of one query; absent: listed and not in the
    collection.
    """

    queries: int = 0
    documents: int = 0
    longest: int = 0
    absent: int = 0


@dataclass(frozen=True)
class MetadataCard:
    """What is said of the queries of a split.

    queries: how many there are; candidates, excluded: their lists; instructions, unanswerable: queries with each;
    groups: different labels of each column.
    """

    queries: int = 0
    candidates: ListsCard = field(default_factory=ListsCard)
    excluded: ListsCard = field(default_factory=ListsCard)
    instructions: int = 0
    unanswerable: int = 0
    groups: Mapping[str, int] = field(default_factory=dict)


def metadata_card(queries: Queries, corpus: Corpus | None) -> MetadataCard:
    """Count what the metadata of queries says; without documents none is absent."""
    said = queries.metadata
    if said is None:
        return MetadataCard(len(queries))
    return MetadataCard(
        len(queries),
        _lists(said.candidates, corpus),
        _lists(said.excluded, corpus),
        0 if said.instruction is None else int(np.count_nonzero(said.instruction.lengths())),
        0 if said.unanswerable is None else int(said.unanswerable.sum()),
        {name: len(set(labels.tolist()) - {""}) for name, labels in said.groups.items()},
    )


def _lists(lists: DocumentLists | None, corpus: Corpus | None) -> ListsCard:
    if lists is None:
        return ListsCard()
    absent = 0 if corpus is None else int(np.count_nonzero(lists.codes_in(corpus.ids) < 0))
    return ListsCard(lists.listed(), len(lists.doc), int(lists.lengths().max(initial=0)), absent)
