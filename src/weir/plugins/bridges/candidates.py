"""Rank given candidates, and search a collection by a model exactly, without an index on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Named, Run
from weir.core.strings import Float32, Float64, Int32, Int64
from weir.errors import BadValue
from weir.kernels.inverted.packed import stored
from weir.kernels.inverted.postings import write_postings
from weir.kernels.inverted.search import Impacts
from weir.models.encoder import ObjectEncoder
from weir.registry import Identity
from weir.systems.compose import FunctionSearcher, FunctionSystem, Pipeline
from weir.systems.composite import open_anew
from weir.systems.encoded import with_text
from weir.systems.lexical.inverted_index import ImpactIndex, top_documents
from weir.systems.protocol import IN_MEMORY, Context, Reranker, Retriever, no_parts
from weir.systems.rerank.scorers import Score
from weir.systems.vectors.exact_search import ArraySource, search

# ----------
# Candidates of each query, ordered by a system: the task that other tools give a re-ranker.


def candidate_ranking(system: Retriever | Reranker, candidates: Run) -> Retriever:
    """Return a system that ranks given candidates by a system's scores, or by a pipeline's last re-ranker.

    All candidates are ordered unless the re-ranker has a depth. Raises BadValue for a system that scores only
    documents that it finds itself, such as a fusion.
    """
    if isinstance(system, Pipeline):
        return candidate_ranking(system.reranker, candidates)
    return Pipeline(_GivenCandidates(candidates), system if isinstance(system, Reranker) else Score(system))


@dataclass(frozen=True, eq=False)
class _GivenCandidates:
    """A first stage that returns a run's rankings in place of a search; none for a query not in it."""

    candidates: Run

    def __str__(self) -> str:
        return "candidates"

    def describe(self) -> dict[str, object]:
        return {"system": "candidates", **Identity("candidates").describe()}

    def pool_depth(self, k: int, documents: int) -> int:
        return max(k, documents)

    def is_drawn(self) -> bool:
        return False

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FunctionSearcher:
        rankings = self.candidates.to_dict()

        def given_rankings(queries: dict[str, str], k: int) -> dict[str, dict[str, float]]:
            return {query: rankings.get(query, {}) for query in queries}

        return FunctionSystem(given_rankings, Identity(str(self))).index(corpus, context)

    components = no_parts
    open = open_anew


# ----------
# A collection searched once by a model in memory, in chunks of documents; only the best of each chunk stay in memory.


CHUNK_DOCUMENTS = 16_384
VIEW = "title text"

Hits: TypeAlias = tuple[Int64, Int32, Float64]
"""ptr int64[queries + 1], document int32[hits] within the chunk, score float64[hits]."""
EncodeTerms: TypeAlias = Callable[[list[str]], Any]
"""Texts -> a sparse tensor [texts, terms] of weights, such as torch's."""
Terms: TypeAlias = tuple[Int64, Int32, Float32]
"""ptr int64[texts + 1], term int32, weight float32; the last two aligned."""


def dense_run(encoder: ObjectEncoder, corpus: Corpus, queries: Queries, k: int) -> Run:
    """Return the k documents of the highest inner product for each query, by exact search; none for a query
    of blanks.

    Raises BadValue for k below 1 and for values that are no vectors.
    """
    loaded, asked = encoder.load(), with_text(queries)
    texts = queries.take(asked).text
    vectors = loaded.encode(texts, "query") if len(asked) else np.zeros((0, 0), np.float32)

    def chunk(start: int, stop: int, tie_rank: Int32) -> Hits:
        documents = loaded.encode(corpus.view(VIEW, start, stop, encoder.separator), "document")
        hits = search(ArraySource(documents), vectors, k, "dot", tie_rank)
        return hits.ptr, hits.doc, hits.score.astype(np.float64)

    return _by_chunks(corpus, queries, k, chunk, encoder.identity.name)


def sparse_run(
    query_terms: EncodeTerms, document_terms: EncodeTerms, corpus: Corpus, queries: Queries, k: int
) -> Run:
    """Return the k documents of the largest dot product of term weights for each query with text, by exact
    search.

    Documents without a common term are left out. Raises BadValue for k below 1 and for weights below 0.
    """
    asked = with_text(queries)
    query, _ = _terms(query_terms, queries.take(asked).text.tolist())

    def chunk(start: int, stop: int, tie_rank: Int32) -> Hits:
        documents, count = _terms(document_terms, corpus.view(VIEW, start, stop).tolist())
        hits = top_documents(_impact_index(documents, count, tie_rank), *query, min(k, stop - start))
        return hits.ptr, hits.doc, hits.score

    return _by_chunks(corpus, queries, k, chunk, "sparse")


def _by_chunks(
    corpus: Corpus, queries: Queries, k: int, search_chunk: Callable[[int, int, Int32], Hits], name: str
) -> Run:
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")
    asked, none = with_text(queries), np.zeros(0, np.int32)
    best = Run.from_columns(queries.ids, corpus.ids, none, none, np.zeros(0), Named(name))
    for start in range(0, len(corpus) if len(asked) else 0, CHUNK_DOCUMENTS):
        stop = min(start + CHUNK_DOCUMENTS, len(corpus))
        tie_rank = np.argsort(np.argsort(corpus.ids.tie_ranks[start:stop])).astype(np.int32)
        ptr, doc, score = search_chunk(start, stop, tie_rank)
        query = np.concatenate([best.query_of_row(), np.repeat(asked, np.diff(ptr))])
        documents = np.concatenate([best.doc, (doc + start).astype(np.int32)])
        scores = np.concatenate([best.score, score])
        best = Run.from_columns(queries.ids, corpus.ids, query, documents, scores, Named(name)).top(k)
    return best


def _terms(encode: EncodeTerms, texts: list[str]) -> tuple[Terms, int]:
    tensor = encode(texts).coalesce()
    row, term = (np.asarray(column) for column in tensor.indices())
    weight = np.asarray(tensor.values().float(), np.float32)
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise BadValue("a term's weight is below 0 or not finite; expected weights as SPLADE's")
    nonzero = np.flatnonzero(weight)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(row[nonzero], minlength=len(texts)))])
    return (ptr, term[nonzero].astype(np.int32), weight[nonzero]), int(tensor.shape[1])


def _impact_index(documents: Terms, vocabulary: int, tie_rank: Int32) -> ImpactIndex:
    own, term, weight = documents
    number = np.repeat(tie_rank, np.diff(own))
    by_number = np.argsort(number, kind="stable")
    lengths = np.bincount(number, minlength=len(tie_rank))
    fptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(term, minlength=vocabulary))])
    doc, impact = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    write_postings(fptr, term[by_number], weight[by_number], 0, ptr[:-1].copy(), doc, impact)
    impacts = Impacts(len(tie_rank), ptr, stored(ptr, doc, impact, len(tie_rank)))
    return ImpactIndex(impacts.with_columns(), (), np.argsort(tie_rank).astype(np.int32))
