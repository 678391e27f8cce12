"""Vectors: the stores they are kept in, and exact search over them."""

from __future__ import annotations

from weir.vectors.encode_missing import EncodingBlocks, StoredVectors, TextSource, stored
from weir.vectors.exact_search import ArraySource, Found, VectorSource, search
from weir.vectors.ragged_store import GatheredRagged, RaggedStore, stored_ragged
from weir.vectors.vector_store import VectorStore

__all__ = [
    "ArraySource",
    "EncodingBlocks",
    "Found",
    "GatheredRagged",
    "RaggedStore",
    "StoredVectors",
    "TextSource",
    "VectorSource",
    "VectorStore",
    "search",
    "stored",
    "stored_ragged",
]
