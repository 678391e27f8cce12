"""Long documents in pieces: chunked(bm25, words=150) finds passages and answers with their documents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int32, Int64
from weir.errors import BadValue
from weir.systems.compose import shown, then
from weir.systems.composite import renumbered, shelf_of
from weir.systems.lexical.bm25 import BM25
from weir.systems.lexical.passages import as_corpus, cut
from weir.systems.protocol import (
    IN_MEMORY,
    SYSTEMS,
    Component,
    Context,
    Costs,
    Retriever,
    Searcher,
    Shelf,
    called,
)
from weir.systems.restricted import unrestricted

__all__ = ["Chunked", "ChunkedSearcher"]

COLLAPSES = ("max", "first", "sum")
MAX_WORDS = 1_000_000
"""Words of a passage at most."""
PASSAGES_PER_DOCUMENT = 3
"""Passages asked for at first, for each document wanted."""


@SYSTEMS.register("chunked")
@dataclass(frozen=True)
class Chunked:
    """A system over passages of the documents, which answers with documents.

    system: what finds passages; words: of a passage at most, split at white space, each with its document's title;
    overlap: words that a passage shares with the one before; collapse: "max", a document scores as its best passage
    (MaxP), "first": as its first, "sum": as all its passages that the system finds together. However many passages a
    document has, k distinct documents are returned where so many match: passages are asked for until k documents are
    certain. Source: Dai and Callan 2019. Raises BadValue for settings out of range.
    """

    system: Retriever = BM25()  # noqa: RUF009 - a frozen value
    words: int = 150
    overlap: int = 50
    collapse: str = "max"

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(f"chunked takes a system, such as chunked(bm25); {self.system!r} is none")
        if type(self.words) is not int or not 1 <= self.words <= MAX_WORDS:
            raise BadValue(
                f"chunked: words is {self.words!r}; expected a whole number from 1 to {MAX_WORDS:,}"
            )
        if type(self.overlap) is not int or not 0 <= self.overlap < self.words:
            raise BadValue(f"chunked: overlap is {self.overlap!r}; expected 0 to words - 1, {self.words - 1}")
        if self.collapse not in COLLAPSES:
            raise BadValue(f"chunked: collapse is {self.collapse!r}; expected {', '.join(COLLAPSES)}")

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        default = Chunked()
        first: list[object] = [] if self.system == default.system else [self.system]
        names = ("words", "overlap", "collapse")
        given = {n: getattr(self, n) for n in names if getattr(self, n) != getattr(default, n)}
        return called("chunked", first, given)

    def describe(self) -> dict[str, object]:
        """Everything that can move a number."""
        own = {"words": self.words, "overlap": self.overlap, "collapse": self.collapse}
        return {
            "system": str(self),
            "algorithm": algorithm("passages"),
            "passages": own,
            "of": self.system.describe(),
        }

    def components(self) -> tuple[Component, ...]:
        """The system's index of the passages."""
        passages = f"passages of {self.words} words, {self.overlap} shared"
        return (Component(self.system, "index", passages),)

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ChunkedSearcher:
        """The system over the passages of a corpus, from the context's shelf."""
        return self._over(corpus, shelf_of(context), context)

    def open(self, corpus: Corpus, context: Context) -> ChunkedSearcher:
        """Open what `index` wrote for the same corpus; raises StoreError where it is not complete."""
        return self._over(corpus, shelf_of(context, build=False), context)

    def _over(self, corpus: Corpus, shelf: Shelf, context: Context) -> ChunkedSearcher:
        passages, owner = self._passages(corpus)
        return ChunkedSearcher(self, corpus, passages, owner, shelf.index(self.system, passages, context))

    def _passages(self, corpus: Corpus) -> tuple[Corpus, Int32]:
        """The passages as a corpus, and the document that each is of."""
        cuts = cut(corpus, self.words, self.overlap, self.collapse == "first")
        shape = f"{corpus.fingerprint} {self.words} {self.overlap} {self.collapse == 'first'}"
        key = hashlib.blake2b(shape.encode("utf-8"), digest_size=16).hexdigest()
        return as_corpus(corpus, cuts, key if corpus.fingerprint else ""), cuts.owner


@dataclass(frozen=True, eq=False)
class ChunkedSearcher:
    """An index of passages; owner: int32, the document of each."""

    system: Chunked
    corpus: Corpus
    passages: Corpus
    owner: Int32
    searcher: Searcher

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best distinct documents for each query, fewer where fewer match; raises BadValue for k below 1."""
        if k < 1:
            raise BadValue(f"k is {k}; expected a whole number from 1")
        every = max(len(self.passages), 1)
        depth = every if self.system.collapse == "sum" else min(every, PASSAGES_PER_DOCUMENT * k + 1)
        asked = unrestricted(queries)  # what may be ranked are documents, not passages
        waiting, parts = np.arange(len(queries)), list[tuple[Int64, Int32, Float64]]()
        while len(waiting):
            run = renumbered(self.searcher.search(asked.take(waiting), depth, context), self.passages)
            query, doc, score = self._documents(run)
            settled = self._settled(run, query, score, k, depth)
            kept = settled[query]
            parts.append((waiting[query[kept]], doc[kept], score[kept]))
            waiting, depth = waiting[~settled], min(every, 4 * depth)
        empty = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0))
        query, doc, score = (np.concatenate(column) for column in zip(empty, *parts, strict=True))
        named = Named(str(self.system))
        return Run.from_columns(queries.ids, self.corpus.ids, query, doc.astype(np.int32), score, named).top(
            k
        )

    def costs(self) -> Costs:
        """Those of its system."""
        return self.searcher.costs()

    def _documents(self, run: Run) -> tuple[Int64, Int32, Float64]:
        """(query, document, score) of every document of which a passage was found."""
        key = run.query_of_row().astype(np.int64) * max(len(self.corpus), 1) + self.owner[run.doc]
        order = np.argsort(key, kind="stable")
        fresh = np.flatnonzero(np.diff(key[order], prepend=-1))
        collapse = np.add if self.system.collapse == "sum" else np.maximum
        score = collapse.reduceat(run.score[order], fresh) if len(fresh) else np.empty(0)
        query, doc = np.divmod(key[order][fresh], max(len(self.corpus), 1))
        return query, doc.astype(np.int32), score

    def _settled(self, run: Run, query: Int64, score: Float64, k: int, depth: int) -> np.ndarray:
        """Which queries need no more passages: all were found, or k documents score above any other passage."""
        count = np.diff(run.ptr)
        last = np.full(len(run), np.inf)
        filled = count > 0
        last[filled] = run.score[run.ptr[1:][filled] - 1]
        above = np.bincount(query[score > last[query]], minlength=len(run))
        return np.asarray((count < depth) | (depth >= len(self.passages)) | (above >= k))
