"""Describe encoders of other libraries: objects with these methods."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class TextsEncoder(Protocol):
    """An object that encodes queries and documents with the same method."""

    def encode(self, texts: list[str]) -> object:
        """Return an array of vectors [n, d]."""
        ...


@runtime_checkable
class QueryDocumentEncoder(Protocol):
    """An object with separate methods for encoding queries and documents."""

    def encode_query(self, texts: list[str]) -> object:
        """Return the vectors of queries, an array [queries, d]."""
        ...

    def encode_document(self, texts: list[str]) -> object:
        """Return the vectors of documents, an array [documents, d]."""
        ...


@runtime_checkable
class BeirEncoder(Protocol):
    """A dense model with the methods that BEIR's evaluation calls."""

    def encode_queries(self, queries: list[str]) -> object:
        """Return the vectors of queries, an array [queries, d]."""
        ...

    def encode_corpus(self, corpus: list[dict[str, str]]) -> object:
        """Return the vectors of documents, an array [n, d]; each document is a dict with title and text."""
        ...


@runtime_checkable
class DeclaredSimilarity(Protocol):
    """A model that declares its similarity, as in sentence-transformers."""

    @property
    def similarity_fn_name(self) -> str | None:
        """The similarity that the model was trained for, such as "cosine" or "dot"; None if unknown."""
        ...
