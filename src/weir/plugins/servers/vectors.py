"""Search by vectors on a server: settings, vectors of queries, loss of an approximate index."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Queries
from weir.core.run import Run
from weir.errors import BadValue
from weir.models.hosted import LoadedEncoder
from weir.registry import check_whole
from weir.systems.dense_search import DenseRetriever, encoder_of, query_vectors
from weir.systems.encoded import with_text
from weir.systems.remote.remote_searcher import check_choice
from weir.systems.vectors.approximate import Loss

DISTANCES = ("inner", "cosine", "l2")
INDEXES = ("exact", "hnsw")
MOST_CANDIDATES = 1000
"""Largest ef_search that is taken; pgvector's own bound."""


@dataclass(frozen=True)
class VectorSearch:
    """How a server indexes and compares document vectors; raises BadValue for settings out of range."""

    index: str = "exact"
    """exact or hnsw."""
    distance: str = "inner"
    """inner, cosine or l2."""
    m: int = 16
    """Links of a vector in the graph of hnsw; it is built with `ef_construction` candidates and searched with
    `ef_search`.
    """
    ef_construction: int = 64
    ef_search: int = 100

    def __post_init__(self) -> None:
        check_choice("index", self.index, INDEXES)
        check_choice("distance", self.distance, DISTANCES)
        check_whole("m", self.m, 2, 100)
        check_whole("ef_construction", self.ef_construction, 4, 1000)
        check_whole("ef_search", self.ef_search, 1, MOST_CANDIDATES)

    def overridden(self, index: str | None, ef_search: int | None) -> VectorSearch:
        """Return a copy with `index` and `ef_search` where they are not None; raises BadValue for ef_search
        of an exact search."""
        index = self.index if index is None else index
        if ef_search is not None and index == "exact":
            raise BadValue('ef_search does not apply to an exact search; expected index="hnsw" beside it')
        return replace(self, index=index, ef_search=self.ef_search if ef_search is None else ef_search)

    def facts(self) -> dict[str, object]:
        """Return all settings that decide a server's rankings, except the encoder."""
        hnsw = {"m": self.m, "ef_construction": self.ef_construction, "ef_search": self.ef_search}
        own: dict[str, object] = {"kind": "vectors", "index": self.index, "distance": self.distance}
        return own | (hnsw if self.index == "hnsw" else {})


def encoder_given(system: str, encoder: object) -> DenseRetriever | None:
    """Return the dense retriever of a model's name; a retriever or None unchanged. Raises BadValue for other
    values."""
    retriever = DenseRetriever(encoder_of(encoder)) if isinstance(encoder, str) else encoder
    if not isinstance(retriever, (DenseRetriever, type(None))):
        raise BadValue(
            f'{system}: encoder is {encoder!r}; expected a model, such as "minilm", or a dense(...)'
        )
    return retriever


def vectors_of(dense: DenseRetriever, loaded: LoadedEncoder, queries: Queries) -> NDArray[np.float32] | None:
    """Return the queries' vectors, float32[queries, dimensions], zeros for a query without text; None if no
    query has text."""
    numbers = with_text(queries)
    if not len(numbers):
        return None
    encoded = query_vectors(dense.encoder, loaded, queries.take(numbers))
    vectors = np.zeros((len(queries), encoded.shape[1]), np.float32)
    vectors[numbers] = encoded
    return vectors


def lost(exact: Run, near: Run) -> Loss:
    """Return, as a Loss that begins with 0, the share of the exact run's (query, document) pairs that the approximate
    run lacks; 0 for an empty run. Both number queries and documents alike."""
    pairs = [np.stack([run.query_of_row(), run.doc]) for run in (exact, near)]
    missed = {*map(tuple, pairs[0].T.tolist())} - {*map(tuple, pairs[1].T.tolist())}
    return Loss(0.0, len(missed) / max(1, len(exact.doc)))
