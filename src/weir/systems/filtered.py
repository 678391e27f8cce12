"""A system that ranks only documents that fit a filter: filtered(bm25, "lang == 'en' and year >= 2020")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.document_filter import parse_filter
from weir.core.document_masks import DocumentMasks
from weir.core.query_metadata import QueryMetadata
from weir.core.run import Run
from weir.datasets.query_rules import filtered
from weir.errors import BadValue
from weir.systems.compose import shown, then
from weir.systems.composite import shelf_of
from weir.systems.protocol import (
    IN_MEMORY,
    SYSTEMS,
    CandidateSource,
    Component,
    Context,
    Costs,
    Retriever,
    Searcher,
    Shelf,
    called,
)
from weir.systems.restricted import restricted_search

__all__ = ["Filtered", "FilteredSearcher"]


@SYSTEMS.register("filtered")
@dataclass(frozen=True)
class Filtered:
    """A system's ranking of the documents that fit a filter, as if the others had left it before the cut at k.

    system: any system; what it counts over all documents, such as how many hold a term, stays so. filter: what a
    document's fields have to be, such as 'lang == "en" and year >= 2020', see docs/fields.md. Queries may have filters
    of their own, which count as well. Raises BadValue for what is no system or no filter.
    """

    system: Retriever
    filter: str

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(f"filtered takes a system, such as filtered(bm25, ...); {self.system!r} is none")
        object.__setattr__(self, "filter", str(parse_filter(self.filter)))

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return called("filtered", [self.system, self.filter], {})

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        own = {"filter": self.filter, "algorithm": algorithm("restricted search")}
        return {"system": str(self), **own, "of": self.system.describe()}

    def fields_read(self) -> tuple[str, ...]:
        """The fields that the filter reads."""
        return parse_filter(self.filter).fields

    def pool_depth(self, k: int, documents: int) -> int | None:
        """That of its system."""
        return self.system.pool_depth(k, documents) if isinstance(self.system, CandidateSource) else None

    def is_drawn(self) -> bool:
        """Whether its system's order is."""
        return isinstance(self.system, CandidateSource) and self.system.is_drawn()

    def components(self) -> tuple[Component, ...]:
        """The system's index, which holds all documents."""
        return (Component(self.system, "index"),)

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FilteredSearcher:
        """The system over all documents, from the context's shelf."""
        return self._over(corpus, shelf_of(context), context)

    def open(self, corpus: Corpus, context: Context) -> FilteredSearcher:
        """Open what `index` wrote for the same corpus; raises StoreError where it is not complete."""
        return self._over(corpus, shelf_of(context, build=False), context)

    def _over(self, corpus: Corpus, shelf: Shelf, context: Context) -> FilteredSearcher:
        return FilteredSearcher(self, corpus, shelf.index(self.system, corpus, context))


@dataclass(frozen=True, eq=False)
class FilteredSearcher:
    """A searcher of all documents, and the filter."""

    system: Filtered
    corpus: Corpus
    searcher: Searcher

    @cached_property
    def fitting(self) -> NDArray[np.bool_]:
        """Which documents fit: bool[N]; raises as `DocumentFilter.mask`."""
        return parse_filter(self.system.filter).mask(self.corpus)

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best of the documents that fit; raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        run = restricted_search(self.searcher, self._narrowed(queries), k, context)
        return replace(run, name=str(self.system))

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """As `search`: what may be ranked for a query and fits."""
        return self.search(queries, k, context)

    def costs(self) -> Costs:
        """Those of its system."""
        return self.searcher.costs()

    def _narrowed(self, queries: Queries) -> Queries:
        """The queries, for which only documents that fit may be ranked."""
        queries = filtered(queries, self.corpus) if _unread(queries) else queries
        metadata = queries.metadata or QueryMetadata()
        before = metadata.permitted or DocumentMasks.every(self.corpus.ids, len(queries))
        return replace(queries, metadata=replace(metadata, permitted=before.within(self.fitting)))


def _unread(queries: Queries) -> bool:
    """Whether queries have filters of which nobody has said which documents fit them."""
    metadata = queries.metadata
    return metadata is not None and metadata.filter is not None and metadata.permitted is None
