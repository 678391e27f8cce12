"""Protocols of other libraries' encoders."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class TextsEncoder(Protocol):
    """An object that encodes queries and documents by one method."""

    def encode(self, texts: list[str]) -> object:
        """Return vectors, [n, d]."""


@runtime_checkable
class QueryDocumentEncoder(Protocol):
    """An object with separate methods for queries and documents."""

    def encode_query(self, texts: list[str]) -> object:
        """Return vectors, [queries, d]."""

    def encode_document(self, texts: list[str]) -> object:
        """Return vectors, [documents, d]."""


@runtime_checkable
class BeirEncoder(Protocol):
    """A dense model with the methods that BEIR calls."""

    def encode_queries(self, queries: list[str]) -> object:
        """Return vectors, [queries, d]."""

    def encode_corpus(self, corpus: list[dict[str, str]]) -> object:
        """Return vectors, [documents, d], of documents {"title": ..., "text": ...}."""


@runtime_checkable
class DeclaredSimilarity(Protocol):
    """A model that declares its similarity."""

    @property
    def similarity_fn_name(self) -> str | None:
        """Similarity that the model was trained for, such as "cosine" or "dot"; None if unknown."""


ENCODER_PAIRS = {
    "BEIR's": ("encode_queries", "encode_corpus"),
    "sentence-transformers'": ("encode_query", "encode_document"),
}
"""{whose: (method for queries, method for documents)}; an encoder has both."""


def missing_method(given: object) -> str:
    """Return advice if an object has only one of a pair of methods for queries and documents, else ""."""
    for whose, pair in ENCODER_PAIRS.items():
        missing = [name for name in pair if not callable(getattr(given, name, None))]
        if len(missing) == 1:
            (found,) = {*pair} - {*missing}
            return f"found {found} without {missing[0]}; expected both, {whose} pair, or encode(texts)"
    return ""
