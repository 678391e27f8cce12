"""RM3: BM25 whose query is enlarged by the words of its own first answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.order import ranked
from weir.core.run import Run
from weir.core.strings import Float32, Float64, Int32, Int64, Strings
from weir.errors import BadValue, StoreError
from weir.registry import changed_settings
from weir.systems.compose import shown, then
from weir.systems.lexical.bm25 import BM25, BM25Searcher, query_terms
from weir.systems.lexical.inverted_index import pair_scores, top
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, always_nested, called, check_k, only_time

MAX_DOCUMENT_SHARE = 0.1
"""Words in more than this share of the documents are never added."""

MIN_LETTERS, MAX_LETTERS = 2, 20
"""Characters of a word that may be added."""

MAX_SETTING = 10_000
"""Answers looked at, and words added, at most."""

BLOCK_ANSWERS = 1 << 14
"""First answers looked at together."""

IS_LETTER = np.isin(np.arange(256), np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8))

Answers = tuple[Int64, Int32, Float32]
"""Aligned: query int64[n] ascending, document or term int32[n], score or weight float32[n]."""


@SYSTEMS.register("rm3")
@dataclass(frozen=True)
class RM3:
    """BM25, asked a second time with the weightiest words of its own first answers added.

    first: the BM25 that answers, one field only; docs: answers looked at; terms: words taken; weight:
    share that the original query keeps. As Anserini's RM3, rounding included: each answer keeps its
    `terms` most frequent words, words of 2 to 20 ASCII letters or digits in at most a tenth of the
    documents, and so does their mixture; equal words in alphabetical order, equal answers by ascending
    id; words of the query that no document has count in its length. One difference: nothing is found by
    terms of weight 0 alone. Source: Abdul-Jaleel et al. 2004; Anserini 1.7.1, Rm3Reranker.
    Raises BadValue for settings out of range.
    """

    first: BM25 = BM25()  # noqa: RUF009 - a frozen value
    docs: int = 10
    terms: int = 10
    weight: float = 0.5

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

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        first: list[object] = [] if self.first == BM25() else [self.first]
        return called("rm3", first, changed_settings(self, leave_out=("first",)))

    def describe(self) -> dict[str, object]:
        """Everything that decides its rankings."""
        own: dict[str, object] = {"docs": self.docs, "terms": self.terms, "weight": self.weight}
        share = f"in at most {MAX_DOCUMENT_SHARE} of the documents"
        own |= {"words": f"{MIN_LETTERS} to {MAX_LETTERS} of a-z, 0-9, {share}"}
        own |= {"ties": "words alphabetical, answers by ascending id", "algorithm": algorithm("rm3")}
        return {"system": str(self), "expansion": own, "first": self.first.describe()}

    def indexed_as(self) -> RM3:
        """Expansions by any settings search one index."""
        return RM3(self.first)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RM3Searcher:
        """Index a corpus, in memory or into the context's folder."""
        return RM3Searcher(self, self.first.indexed(corpus, context, keep_terms=True))

    def open(self, corpus: Corpus, context: Context) -> RM3Searcher:
        """Open an index that `index` wrote for the same corpus.

        Raises StoreError for an index that does not keep the documents' terms.
        """
        first = self.first.open(corpus, context)
        if first.parts[0].forward is None:
            raise StoreError(
                f"{context.folder}: this index has no terms by document; delete it to build it again"
            )
        return RM3Searcher(self, first)


@dataclass(frozen=True, eq=False)
class RM3Searcher:
    """An index of a corpus that keeps each document's terms."""

    system: RM3
    first: BM25Searcher

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each enlarged query; raises BadValue for k below 1."""
        check_k(k)
        corpus = self.first.corpus
        hits = top(self.first.parts[0], *self.enlarged(queries), min(k, max(len(corpus), 1)))
        return Run(queries.ids, corpus.ids, hits.ptr, hits.doc, hits.score, str(self.system))

    nested = always_nested
    costs = only_time

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The scores of given documents, as `search` scores them; 0 for one without a term of the query."""
        return pair_scores(self.first.parts[0], self.enlarged(queries), candidates)

    def enlarged(self, queries: Queries) -> tuple[Int64, Int32, Float32]:
        """(ptr int64[Q + 1], term int32, weight float32): what each query becomes; weights add up to 1.

        Less than 1 where a query has words that no document has. Weights of 0 are left out.
        """
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
        """The best `docs` documents of each query; equal ones by ascending id, as Lucene sorts them."""
        docs, total = self.system.docs, len(self.first.corpus)
        index, depth = self.first.parts[0], 2 * docs
        hits = top(index, ptr, term, count, min(depth, max(total, 1)))
        while depth < total:
            full = hits.ptr[:-1][np.diff(hits.ptr) == depth]
            if not (hits.score[full + docs - 1] == hits.score[full + depth - 1]).any():
                break
            depth *= 4
            hits = top(index, ptr, term, count, min(depth, total))
        query = np.repeat(np.arange(len(ptr) - 1), np.diff(hits.ptr))
        best = ranked(query, hits.score, -self.first.corpus.ids.tie_ranks[hits.doc])
        best = best[_first(query, docs)]
        return query[best], hits.doc[best], hits.score[best].astype(np.float32)

    def _model(self, query: Int64, doc: Int32, score: Float32) -> Answers:
        """The relevance model of the first answers of each query: its heaviest terms, adding up to 1."""
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
        """The heaviest terms of documents: (words, ptr, place, share).

        words: int32, the terms that may be added, in alphabetical order; the terms of docs[i] stand at
        ptr[i]:ptr[i + 1] as places in words, with their shares of the count of the terms kept.
        """
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
        """The queries and their relevance models, mixed by weight."""
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
    """int64[rows + 1]: where each row starts in an ascending column of row numbers."""
    return np.searchsorted(row, np.arange(rows + 1)).astype(np.int64)


def _first(row: Int64, n: int) -> NDArray[np.bool_]:
    """True for the first n entries of each row in an ascending column of row numbers."""
    return np.arange(len(row)) - np.searchsorted(row, row) < n


def _ranges(ptr: Int64, rows: NDArray[np.integer], most: int | None = None) -> tuple[Int64, Int64]:
    """The positions in ptr[r]:ptr[r + 1], at most `most`, for each r of rows in turn; how many each r has."""
    start, length = ptr[rows], ptr[rows + 1] - ptr[rows]
    if most is not None:
        length = np.minimum(length, most)
    shift = np.repeat(start - (np.cumsum(length) - length), length)
    return shift + np.arange(len(shift)), length


def _addable(vocabulary: Strings, terms: Int32) -> Int32:
    """Those of the terms that are MIN_LETTERS to MAX_LETTERS ASCII letters or digits, in alphabetical order."""
    length = vocabulary.ptr[terms + 1] - vocabulary.ptr[terms]
    terms = terms[(length >= MIN_LETTERS) & (length <= MAX_LETTERS)]
    words = vocabulary.take(terms)
    letters = np.zeros((len(terms), MAX_LETTERS), np.uint8)
    letters[np.arange(MAX_LETTERS) < words.lengths()[:, None]] = words.data
    plain = (IS_LETTER[letters] | (letters == 0)).all(axis=1)
    order = np.argsort(letters[plain].view(f"S{MAX_LETTERS}").ravel())
    addable: Int32 = terms[plain][order]
    return addable
