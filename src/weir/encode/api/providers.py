"""What differs from one embedding API to the next: its address, its limits, how it is asked and how it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from weir.encode.encoder import Float32, Kind
from weir.registry import Registry

__all__ = ["PROVIDERS", "Ask", "Provider", "ProviderAnswer", "UnusableError", "rows"]

Json: TypeAlias = Any
"""Whatever a server sent: nothing about it is known before it is looked at."""


class UnusableError(Exception):
    """An answer does not hold what was asked for; the next may. row: of the vector that is wrong, if one is."""

    def __init__(self, said: str, row: int | None = None) -> None:
        super().__init__(said)
        self.row = row


@dataclass(frozen=True)
class Ask:
    """One request: texts as they are sent, and the dimensions asked for, None for the model's own."""

    model: str
    texts: Sequence[str]
    kind: Kind
    dimensions: int | None


@dataclass(frozen=True)
class ProviderAnswer:
    """One answer: vectors in the order of the texts, not yet looked at, and the tokens the provider counted."""

    vectors: list[Json]
    tokens: int | None


@dataclass(frozen=True)
class Provider:
    """An embedding API.

    base, path: its address; variable: the environment variable that holds the key. texts, tokens: of a request
    at most, tokens by estimate. longest: tokens of a text by estimate, longer ones are cut; None leaves that to
    the provider. body, read: how a request is written and an answer read; read raises UnusableError.
    kinds: what the provider is told about documents and queries, for the manifest.
    """

    base: str
    path: str
    variable: str
    texts: int
    tokens: int
    longest: int | None
    body: Callable[[Ask], dict[str, Json]]
    read: Callable[[Json], ProviderAnswer]
    kinds: Mapping[Kind, str]


PROVIDERS: Registry[Provider] = Registry("provider")


def rows(vectors: list[Json], count: int, dimensions: int | None) -> Float32:
    """Vectors of an answer as float32[count, d]; raises UnusableError saying what is wrong with them.

    dimensions: what they must have; None takes those of the first.
    """
    if len(vectors) != count:
        raise UnusableError(f"the answer has {len(vectors)} vectors for {count} texts")
    for at, vector in enumerate(vectors):
        if not isinstance(vector, list) or not vector or not set(map(type, vector)) <= {float, int}:
            raise UnusableError(f"vector {at + 1} of the answer is no list of numbers", at)
        wanted = dimensions or len(vectors[0])
        if len(vector) != wanted:
            raise UnusableError(
                f"vector {at + 1} of the answer has {len(vector)} dimensions, not {wanted}", at
            )
    try:
        with np.errstate(over="ignore"):
            found: Float32 = np.array(vectors, np.float64).astype(np.float32)
    except OverflowError:  # a whole number beyond any float
        raise UnusableError("a number of the answer is out of range") from None
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise UnusableError(f"vector {int(bad[0]) + 1} of the answer is not finite", int(bad[0]))
    empty = np.flatnonzero(~found.any(axis=1))
    if len(empty):
        raise UnusableError(f"vector {int(empty[0]) + 1} of the answer is all zeros", int(empty[0]))
    return found


def _openai_body(ask: Ask) -> dict[str, Json]:
    size = {} if ask.dimensions is None else {"dimensions": ask.dimensions}
    return {"model": ask.model, "input": list(ask.texts), "encoding_format": "float"} | size


def _cohere_body(ask: Ask) -> dict[str, Json]:
    size = {} if ask.dimensions is None else {"output_dimension": ask.dimensions}
    return {
        "model": ask.model,
        "texts": list(ask.texts),
        "input_type": COHERE[ask.kind],
        "embedding_types": ["float"],
        "truncate": "END",
    } | size


def _voyage_body(ask: Ask) -> dict[str, Json]:
    size = {} if ask.dimensions is None else {"output_dimension": ask.dimensions}
    given = {"model": ask.model, "input": list(ask.texts), "input_type": VOYAGE[ask.kind]}
    return given | {"truncation": True} | size


def _listed(answer: Json) -> ProviderAnswer:
    """Vectors under data, each with the place of its text: they may come in any order."""
    data = _at(answer, "data")
    if not isinstance(data, list) or not all(isinstance(d, dict) and "embedding" in d for d in data):
        raise UnusableError("the answer has no list 'data' of embeddings")
    places = [d.get("index", at) for at, d in enumerate(data)]
    if not all(type(p) is int for p in places) or sorted(places) != list(range(len(data))):
        raise UnusableError("the answer's 'index' does not name every text once")
    ordered = sorted(zip(places, data, strict=True), key=lambda pair: pair[0])
    return ProviderAnswer([d["embedding"] for _, d in ordered], _tokens(answer, "usage", "total_tokens"))


def _typed(answer: Json) -> ProviderAnswer:
    """Vectors under embeddings, by type, in the order of the texts."""
    vectors = _at(answer, "embeddings", "float")
    if not isinstance(vectors, list):
        raise UnusableError("the answer has no list 'embeddings.float'")
    return ProviderAnswer(vectors, _tokens(answer, "meta", "billed_units", "input_tokens"))


def _at(answer: Json, *names: str) -> Json:
    for name in names:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def _tokens(answer: Json, *names: str) -> int | None:
    found = _at(answer, *names)
    return int(found) if type(found) is int or (type(found) is float and math.isfinite(found)) else None


COHERE: Mapping[Kind, str] = {"document": "search_document", "query": "search_query"}
VOYAGE: Mapping[Kind, str] = {"document": "document", "query": "query"}

# The limits are well below what each provider states (OpenAI 2,048 texts, 300,000 tokens and 8,192 of one text;
# Cohere 96 texts; Voyage 1,000 texts and, for its large models, 120,000 tokens): an answer stays of some megabytes,
# and what a crash may lose small.
PROVIDERS.add(
    "openai",
    Provider(
        base="https://api.openai.com/v1",
        path="/embeddings",
        variable="OPENAI_API_KEY",
        texts=256,
        tokens=200_000,
        longest=8_000,
        body=_openai_body,
        read=_listed,
        kinds={"document": "", "query": ""},
    ),
)
PROVIDERS.add(
    "cohere",
    Provider(
        base="https://api.cohere.com/v2",
        path="/embed",
        variable="COHERE_API_KEY",
        texts=96,
        tokens=200_000,
        longest=None,
        body=_cohere_body,
        read=_typed,
        kinds=COHERE,
    ),
)
PROVIDERS.add(
    "voyage",
    Provider(
        base="https://api.voyageai.com/v1",
        path="/embeddings",
        variable="VOYAGE_API_KEY",
        texts=128,
        tokens=100_000,
        longest=None,
        body=_voyage_body,
        read=_listed,
        kinds=VOYAGE,
    ),
)
