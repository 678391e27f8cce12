"""What the metadata of queries comes to in one split: by its judgments, and by what is said of the whole collection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.document_lists import DocumentLists
from weir.core.document_masks import DocumentMasks
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryMetadata
from weir.core.strings import Strings

__all__ = ["answerable", "filtered", "judged_candidates", "settled", "unanswerable_queries"]


def settled(queries: Queries, judged: Qrels, candidates: str, instruction: str) -> Queries:
    """The queries with what holds in this split.

    candidates: "judged" for the documents judged for a query, see `judged_candidates`; instruction: of the collection,
    which queries without one of their own have where others have one. A query with a relevant document is answerable,
    whatever its flag says.
    """
    metadata = queries.metadata
    if candidates == "judged":
        metadata = replace(metadata or QueryMetadata(), candidates=judged_candidates(queries, judged))
    if metadata is None:
        return queries
    if metadata.instruction is not None and instruction:
        own = metadata.instruction.tolist()
        metadata = replace(metadata, instruction=Strings.of(one or instruction for one in own))
    if metadata.unanswerable is not None:
        row = judged.query_of_row()[judged.grade > 0]
        relevant = np.isin(judged.queries.codes(queries.ids.strings), row)
        flagged = metadata.unanswerable & ~relevant
        metadata = replace(metadata, unanswerable=flagged if flagged.any() else None)
    return replace(queries, metadata=metadata)


def filtered(queries: Queries, corpus: Corpus) -> Queries:
    """The queries with the documents that fit the filter of each.

    Raises UnknownName for a field that no document has, BadValue where a value is of another kind than the field.
    """
    metadata = queries.metadata
    if metadata is None or metadata.filter is None:
        return queries
    permitted = DocumentMasks.of(metadata.filter.tolist(), corpus)
    return replace(queries, metadata=replace(metadata, permitted=permitted))


def answerable(judged: Qrels, queries: Queries) -> Qrels:
    """The judgments without those of queries that nothing answers, which are in no mean."""
    metadata = queries.metadata
    if metadata is None or metadata.unanswerable is None:
        return judged
    code = queries.ids.codes(judged.queries.strings)
    silent = (code >= 0) & metadata.unanswerable[code]
    return judged.only(np.flatnonzero(~silent)) if silent.any() else judged


def judged_candidates(queries: Queries, judged: Qrels) -> DocumentLists:
    """The documents judged for each query, by descending identifier: the order of judgments may give grades away."""
    place = judged.docs.tie_ranks[judged.doc] if len(judged.doc) else judged.doc
    order = np.lexsort((place, judged.query_of_row()))
    lists = DocumentLists(judged.docs, judged.ptr, judged.doc[order])
    return lists.take(judged.queries.codes(queries.ids.strings))


def unanswerable_queries(queries: Queries) -> list[str]:
    """The identifiers of the queries that nothing answers."""
    metadata = queries.metadata
    if metadata is None or metadata.unanswerable is None:
        return []
    return queries.ids.take(np.flatnonzero(metadata.unanswerable)).tolist()
