"""RM3: BM25 queries expanded with words of their first results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.order import ranked
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Int32, Int64, Strings
from weir.errors import BadValue, StoreError
from weir.registry import changed_settings
from weir.systems.compose import system_text, then
from weir.systems.lexical.bm25 import BM25, BM25Searcher, query_terms
from weir.systems.lexical.inverted_index import candidate_scores, term_scores, top_documents
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    SYSTEMS,
    Context,
    TermScores,
    always_nested,
    called,
    check_k,
    index_repr,
    only_time,
)
from weir.systems.restricted import permitted_only

MAX_DOCUMENT_SHARE = 0.1
"""Words in a larger share of the documents are never added."""

MIN_LETTERS, MAX_LETTERS = 2, 20
"""Lengths of words that may be added."""

MAX_SETTING = 10_000
"""Largest number of documents used, and of words added."""

BLOCK_ANSWERS = 1 << 14
"""First results processed together."""

IS_LETTER = np.isin(np.arange(256), np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8))

Answers = tuple[Int64, Int32, Float32]
"""Aligned columns: query int64[n] ascending, document or term int32[n], score or weight float32[n]."""


@SYSTEMS.register("rm3")
@named_arguments
@dataclass(frozen=True)
class RM3:
    """Search again by BM25 after adding the heaviest words of the first results to the query (RM3).

    Equals Anserini's RM3 with its rounding, but terms of weight 0 find nothing. Words have 2 to 20 ASCII
    letters or digits and occur in at most a tenth of the documents. Each result keeps its `terms` heaviest
    words, and so does their mixture. Ties are ordered alphabetically, ties of results by ascending id. Query
    words in no document count in the query's length.

    Source: Abdul-Jaleel et al. 2004; Anserini 1.7.1, Rm3Reranker. Raises BadValue for settings out of range.
    """

    first: BM25 = BM25()  # noqa: RUF009 - a frozen value
    """A bm25 over one field."""
    docs: int = 10
    """First results from which words are taken."""
    terms: int = 10
    """Words taken from them."""
    weight: float = 0.5
    """Share of the original query."""

    def __post_init__(self) -> None:
        if not isinstance(self.first, BM25) or len(self.first.recipe.fields) != 1:
            raise BadValue(f"rm3 expands a bm25 over one field, not {self.first}")
        if not all(type(n) is int and 1 <= n <= MAX_SETTING for n in (self.docs, self.terms)):
            raise BadValue(
                f"rm3: docs={self.docs!r}, terms={self.terms!r}; expected whole numbers from 1 to {MAX_SETTING:,}"
            )
        if type(self.weight) not in (int, float) or not 0 <= self.weight <= 1:
            raise BadValue(f"rm3: weight is {self.weight!r}; expected a number from 0 to 1")
        object.__setattr__(self, "weight", float(self.weight))  # equal systems print equal

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        first: list[object] = [] if self.first == BM25() else [self.first]
        return called("rm3", first, changed_settings(self, leave_out=("first",)))

    def describe(self) -> dict[str, object]:
        own: dict[str, object] = {"docs": self.docs, "terms": self.terms, "weight": self.weight}
        share = f"in at most {MAX_DOCUMENT_SHARE} of the documents"
        own |= {"words": f"{MIN_LETTERS} to {MAX_LETTERS} of a-z, 0-9, {share}"}
        own |= {"ties": "words alphabetical, answers by ascending id", "algorithm": algorithm("rm3")}
        return {"system": str(self), "expansion": own, "first": self.first.describe()}

    def indexed_as(self) -> RM3:
        return RM3(self.first)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RM3Searcher:
        return RM3Searcher(self, self.first.indexed(corpus, context, keep_terms=True))

    def open(self, corpus: Corpus, context: Context) -> RM3Searcher:
        """Return the searcher of a stored index; raises StoreError if it lacks documents' terms."""
        first = self.first.open(corpus, context)
        if first.parts[0].forward is None:
            raise StoreError(
                f"{context.folder}: this index has no terms by document; delete it to build it again"
            )
        return RM3Searcher(self, first)


@dataclass(frozen=True, eq=False)
class RM3Searcher:
    """Searches a BM25 index by expanded queries."""

    system: RM3
    first: BM25Searcher

    __repr__ = index_repr

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        corpus = self.first.corpus
        hits = top_documents(self.first.parts[0], *self.enlarged(queries), min(k, max(len(corpus), 1)))
        return Run(queries.ids, corpus.ids, hits.ptr, hits.doc, hits.score, str(self.system))

    nested = always_nested
    costs = only_time

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        return candidate_scores(self.first.parts[0], self.enlarged(queries), candidates)

    def term_scores(self, queries: Queries, candidates: Run) -> list[TermScores]:
        return term_scores(self.first.parts[0], self.enlarged(queries), candidates)

    def enlarged(self, queries: Queries) -> tuple[Int64, Int32, Float32]:
        """Return the expanded queries: (ptr int64[queries + 1], term int32, weight float32 above 0, summing
        to at most 1 per query)."""
        ptr, term, count = query_terms(self.first.tables[0], queries.text)
        length = np.diff(self.first.tables[0][0].lookup(queries.text)[0])
        share = (count / np.repeat(length, np.diff(ptr))).astype(np.float32)
        step = max(1, BLOCK_ANSWERS // self.system.docs)
        parts: list[Answers] = [(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))]
        for start in range(0, len(queries), step):
            bounds = ptr[start : start + step + 1]
            span = slice(int(bounds[0]), int(bounds[-1]))
            query, doc, score = self._first_answers(bounds - bounds[0], term[span], count[span])
            numbers = np.arange(start, start + len(bounds) - 1, dtype=np.int64)
            own: Answers = (np.repeat(numbers, np.diff(bounds)), term[span], share[span])
            parts.append(self._mixed(own, self._model(query + start, doc, score)))
        query, terms, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        return _starts(query, len(queries)), terms, weights

    def _first_answers(self, ptr: Int64, term: Int32, count: Float32) -> Answers:
        docs, total = self.system.docs, len(self.first.corpus)
        index, depth = self.first.parts[0], 2 * docs
        hits = top_documents(index, ptr, term, count, min(depth, max(total, 1)))
        while depth < total:
            full = hits.ptr[:-1][np.diff(hits.ptr) == depth]
            if not (hits.score[full + docs - 1] == hits.score[full + depth - 1]).any():
                break
            depth *= 4
            hits = top_documents(index, ptr, term, count, min(depth, total))
        query = np.repeat(np.arange(len(ptr) - 1), np.diff(hits.ptr))
        best = ranked(query, hits.score, -self.first.corpus.ids.tie_ranks[hits.doc])
        best = best[_first(query, docs)]
        return query[best], hits.doc[best], hits.score[best].astype(np.float32)

    def _model(self, query: Int64, doc: Int32, score: Float32) -> Answers:
        docs, row = np.unique(doc, return_inverse=True)
        words, ptr, place, share = self._bags(docs)
        where, length = _ranges(ptr, row)
        pair, group = np.unique(np.repeat(query, length) * len(words) + place[where], return_inverse=True)
        total = np.zeros(len(pair), np.float32)
        # One by one in float32, best answer first: what Lucene's arithmetic makes equal is a tie.
        np.add.at(total, group, share[where] * np.repeat(score, length))
        query, place = np.divmod(pair, max(len(words), 1))
        # Floats from 0 order as their bits do; the sort is stable, so equal ones stay in alphabetical order.
        best = np.argsort((query << 32) - total.view(np.int32), kind="stable")
        best = best[_first(query, self.system.terms)]
        query, place, total = query[best], place[best], total[best]
        weight = total / np.bincount(query, total)[query]
        return query, words[place], weight.astype(np.float32)

    def _bags(self, docs: Int32) -> tuple[Int32, Int64, Int64, Float32]:
        index, forward = self.first.parts[0], self.first.parts[0].forward
        if forward is None:
            raise BadValue("this index does not keep the documents' terms; index with rm3")
        where, length = _ranges(np.asarray(forward.ptr), docs)
        term, count = forward.term[where], forward.count[where].astype(np.int64)
        occurs = np.zeros(len(index.vocabularies[0]), np.bool_)
        occurs[term] = True
        used = np.flatnonzero(occurs).astype(np.int32)
        documents = (index.impacts.ptr[used + 1] - index.impacts.ptr[used]).astype(np.float32)
        rare = documents / np.float32(len(index.order)) <= np.float32(MAX_DOCUMENT_SHARE)
        words = _addable(index.vocabularies[0], used[rare])
        places = np.full(len(occurs), -1, np.int64)
        places[words] = np.arange(len(words))
        place = places[term]
        addable = np.flatnonzero(place >= 0)
        place, count, row = place[addable], count[addable], np.repeat(np.arange(len(docs)), length)[addable]
        # Sorting one number is several times quicker than sorting by three columns.
        most, size = int(count.max(initial=0)), max(len(words), 1)
        key = np.sort((row * (most + 1) + (most - count)) * size + place)
        ptr = _starts(row, len(docs))
        where, length = _ranges(ptr, np.arange(len(docs)), self.system.terms)
        rest, place = np.divmod(key[where], size)
        heavy = (most - rest % (most + 1)).astype(np.float32)
        row = np.repeat(np.arange(len(docs)), length)
        share = heavy / np.bincount(row, heavy, len(docs)).astype(np.float32)[row]
        return words, np.concatenate([[0], np.cumsum(length)]), place, share

    def _mixed(self, own: Answers, model: Answers) -> Answers:
        size, keep = len(self.first.parts[0].vocabularies[0]), np.float32(self.system.weight)
        pairs = [query * size + term for query, term, _ in (own, model)]
        pair, where = np.unique(np.concatenate(pairs), return_inverse=True)
        original, expanded = np.zeros((2, len(pair)))
        original[where[: len(pairs[0])]] = keep * own[2]
        expanded[where[len(pairs[0]) :]] = model[2]
        weight = (original + (1.0 - float(keep)) * expanded).astype(np.float32)
        query, term = np.divmod(pair[weight > 0], max(size, 1))
        return query, term.astype(np.int32), weight[weight > 0]


def _starts(row: Int64, rows: int) -> Int64:
    return np.searchsorted(row, np.arange(rows + 1)).astype(np.int64)


def _first(row: Int64, n: int) -> NDArray[np.bool_]:
    return np.arange(len(row)) - np.searchsorted(row, row) < n


def _ranges(ptr: Int64, rows: NDArray[np.integer], most: int | None = None) -> tuple[Int64, Int64]:
    start, length = ptr[rows], ptr[rows + 1] - ptr[rows]
    if most is not None:
        length = np.minimum(length, most)
    shift = np.repeat(start - (np.cumsum(length) - length), length)
    return shift + np.arange(len(shift)), length


def _addable(vocabulary: Strings, terms: Int32) -> Int32:
    length = vocabulary.ptr[terms + 1] - vocabulary.ptr[terms]
    terms = terms[(length >= MIN_LETTERS) & (length <= MAX_LETTERS)]
    words = vocabulary.take(terms)
    letters = np.zeros((len(terms), MAX_LETTERS), np.uint8)
    letters[np.arange(MAX_LETTERS) < words.lengths()[:, None]] = words.data
    plain = (IS_LETTER[letters] | (letters == 0)).all(axis=1)
    order = np.argsort(letters[plain].view(f"S{MAX_LETTERS}").ravel())
    addable: Int32 = terms[plain][order]
    return addable
