"""Vectors: the stores they are kept in, and exact search over them."""

from __future__ import annotations

from weir.systems.vectors.exact_search import ArraySource, Found, VectorSource, search
from weir.systems.vectors.store import (
    EncodingBlocks,
    GatheredRagged,
    RaggedStore,
    StoredVectors,
    TextSource,
    VectorStore,
    stored,
    stored_ragged,
)

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
