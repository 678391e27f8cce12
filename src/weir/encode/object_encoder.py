"""An object of one's own as an encoder: anything with encode(texts), as a SentenceTransformer, or a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

from weir.core.strings import Strings
from weir.encode.encoder import Float32, Kind
from weir.errors import BadValue
from weir.registry import Identity

__all__ = ["LoadedObject", "ObjectEncoder", "as_encoder"]

EncodeFunction: TypeAlias = Callable[[list[str]], object]
"""Texts to an array of vectors [n, d]."""
SIMILARITIES = ("cosine", "dot")


@runtime_checkable
class TextsEncoder(Protocol):
    """An object that encodes texts."""

    def encode(self, texts: list[str]) -> object:
        """An array of vectors [n, d]."""
        ...


@runtime_checkable
class QueryDocumentEncoder(Protocol):
    """An object that encodes queries and documents each in its own way, as with prompts of their own."""

    def encode_query(self, texts: list[str]) -> object:
        """Vectors of queries [n, d]."""
        ...

    def encode_document(self, texts: list[str]) -> object:
        """Vectors of documents [n, d]."""
        ...


@runtime_checkable
class DeclaredSimilarity(Protocol):
    """A model that says how its vectors are compared, as sentence-transformers' do."""

    @property
    def similarity_fn_name(self) -> str | None:
        """cosine, dot, ..."""
        ...


@dataclass(frozen=True)
class ObjectEncoder:
    """An object in memory that turns texts into vectors.

    query, document: what encodes each kind of text; similarity: cosine (vectors are brought to length 1) or dot.
    """

    query: EncodeFunction
    document: EncodeFunction
    identity: Identity
    similarity: str = "cosine"
    adapter: ClassVar[str] = "weir.encoder"

    def __str__(self) -> str:
        return self.identity.name

    def __repr__(self) -> str:
        return f"encoder({self.identity.name})"

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a system prints it: by its name without quotes, which names nothing that could be loaded."""
        return [self], {}

    def describe(self, device: str = "auto") -> dict[str, object]:
        """Its name and version, or a session; the device is its own affair."""
        return {"object": "encoder", "similarity": self.similarity, **self.identity.describe()}

    def fetch(self) -> None:
        """Nothing: it is here."""

    def adapted_to(self, collection: str, instruction: str) -> ObjectEncoder:
        """The same on every collection."""
        return self

    def load(self, device: str = "auto") -> LoadedObject:
        """The object, ready."""
        return LoadedObject(self)


@dataclass(frozen=True, eq=False)
class LoadedObject:
    """An object that encodes."""

    encoder: ObjectEncoder

    def encode(self, texts: Strings | Sequence[str], kind: Kind = "document") -> Float32:
        """One vector for each text, in their order: float32[N, d]; raises BadValue for anything else."""
        function = self.encoder.query if kind == "query" else self.encoder.document
        given = texts.tolist() if isinstance(texts, Strings) else list(texts)
        try:
            vectors = np.asarray(function(given), np.float32)
        except (TypeError, ValueError) as error:
            raise BadValue(f"{self.encoder}, asked for {len(given)} vectors: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(given) or vectors.shape[1] == 0:
            raise BadValue(f"{self.encoder}: {len(given)} texts gave vectors of shape {vectors.shape}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise BadValue(f"{self.encoder}: the vector of {given[int(bad[0])][:60]!r} is not finite")
        if self.encoder.similarity == "dot":
            return vectors
        length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        return (vectors / np.where(length > 0, length, 1.0)).astype(np.float32)


def as_encoder(
    model: object, similarity: str | None = None, name: str | None = None, version: str | None = None
) -> ObjectEncoder:
    """An object with encode(texts), with encode_query(texts) and encode_document(texts), or a function, as an encoder.

    Each takes a list of texts and gives an array of vectors [n, d]. similarity: None takes what the object declares
    (similarity_fn_name), else cosine; name: how it prints, by default that of its class or function; version: what
    stands for it in keys; vectors by one without a version are made again in each process. Raises BadValue for what
    encodes nothing, and for a similarity other than cosine and dot.
    """
    if isinstance(model, type):
        raise BadValue(f"{model.__name__} is a class; give a value of it")
    query, document = _functions(model)
    declared = model.similarity_fn_name if isinstance(model, DeclaredSimilarity) else None
    chosen = similarity or declared or "cosine"
    if chosen not in SIMILARITIES:
        raise BadValue(f"similarity is {chosen!r}; expected {' or '.join(SIMILARITIES)}")
    return ObjectEncoder(query, document, Identity.of(model, name, version), chosen)


def _functions(model: object) -> tuple[EncodeFunction, EncodeFunction]:
    """What encodes queries, and documents."""
    if isinstance(model, QueryDocumentEncoder):
        return model.encode_query, model.encode_document
    if isinstance(model, TextsEncoder):
        return model.encode, model.encode
    if callable(model):
        return model, model
    raise BadValue(
        f"model is {model!r}; expected a name of `weir models`, a hub name, a folder, or an object with encode(texts)"
    )
