"""A collection searched once by a model in memory: the corpus goes by in chunks, of which the best alone are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int32, Int64
from weir.encode.object_encoder import ObjectEncoder
from weir.errors import BadValue
from weir.kernels.inverted.block_bounds import BlockBounds
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.postings import place
from weir.kernels.inverted.search import Impacts
from weir.systems.lexical.inverted_index import Float32, ImpactIndex, top
from weir.vectors.exact_search import ArraySource, search

__all__ = ["EncodeTerms", "dense_run", "sparse_run"]

CHUNK_DOCUMENTS = 16_384
VIEW = "title text"

Hits: TypeAlias = tuple[Int64, Int32, Float64]
"""ptr int64[Q + 1], document int32[n] within the chunk, score float64[n]."""
EncodeTerms: TypeAlias = Callable[[list[str]], Any]
"""Texts to a sparse tensor [n, terms] of weights, such as torch's."""
Terms: TypeAlias = tuple[Int64, Int32, Float32]
"""ptr int64[n + 1], term int32, weight float32, aligned."""


def dense_run(encoder: ObjectEncoder, corpus: Corpus, queries: Queries, k: int) -> Run:
    """The k nearest documents of each query, found exactly; none for a query without text.

    Each document is encoded once; memory is that of one chunk's vectors. Raises BadValue for k below 1 and for what
    are no vectors.
    """
    loaded, asked = encoder.load(), _with_text(queries)
    vectors = loaded.encode(queries.take(asked).text, "query") if len(asked) else np.zeros((0, 0), np.float32)

    def chunk(start: int, stop: int, tie_rank: Int32) -> Hits:
        documents = loaded.encode(corpus.view(VIEW, start, stop), "document")
        found = search(ArraySource(documents), vectors, k, "dot", tie_rank)
        return found.ptr, found.doc, found.score.astype(np.float64)

    return _by_chunks(corpus, queries, k, chunk, encoder.identity.name)


def sparse_run(
    query_terms: EncodeTerms, document_terms: EncodeTerms, corpus: Corpus, queries: Queries, k: int
) -> Run:
    """The k documents whose terms' weights have the largest products with each query's, found exactly.

    query_terms, document_terms: what weighs terms. Chunks, memory and errors as `dense_run`; a document without a term
    of the query is no answer. Raises BadValue for weights below 0 too.
    """
    asked = _with_text(queries)
    query, _ = _terms(query_terms, queries.take(asked).text.tolist())

    def chunk(start: int, stop: int, tie_rank: Int32) -> Hits:
        documents, count = _terms(document_terms, corpus.view(VIEW, start, stop).tolist())
        found = top(_impact_index(documents, count, tie_rank), *query, min(k, stop - start))
        return found.ptr, found.doc, found.score

    return _by_chunks(corpus, queries, k, chunk, "sparse")


def _with_text(queries: Queries) -> Int64:
    return np.array([i for i, text in enumerate(queries.text.tolist()) if text.strip()], np.int64)


def _by_chunks(
    corpus: Corpus, queries: Queries, k: int, search_chunk: Callable[[int, int, Int32], Hits], name: str
) -> Run:
    """The best of all chunks: those so far and each chunk's are ranked together, by score and then identifier."""
    if k < 1:
        raise BadValue(f"k is {k}; expected a whole number from 1")
    asked, none = _with_text(queries), np.zeros(0, np.int32)
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
    """The terms of texts, by text, and how many terms there are."""
    tensor = encode(texts).coalesce()
    row, term = (np.asarray(column) for column in tensor.indices())
    weight = np.asarray(tensor.values().float(), np.float32)
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise BadValue("a term's weight is below 0 or not finite; expected weights as SPLADE's")
    kept = np.flatnonzero(weight)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(row[kept], minlength=len(texts)))])
    return (ptr, term[kept].astype(np.int32), weight[kept]), int(tensor.shape[1])


def _impact_index(documents: Terms, vocabulary: int, tie_rank: Int32) -> ImpactIndex:
    """Postings of the documents, numbered by their places among ties."""
    own, term, weight = documents
    number = np.repeat(tie_rank, np.diff(own))
    by_number = np.argsort(number, kind="stable")
    lengths = np.bincount(number, minlength=len(tie_rank))
    fptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(term, minlength=vocabulary))])
    doc, impact = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    place(fptr, term[by_number], weight[by_number], 0, ptr[:-1].copy(), doc, impact)
    postings = ptr, doc, impact, len(tie_rank)
    bounds = BlockBounds.where_needed(*postings), ByteBounds.of(*postings)
    order = np.argsort(tie_rank).astype(np.int32)
    return ImpactIndex(Impacts(len(tie_rank), ptr, doc, impact, *bounds), (), order)
