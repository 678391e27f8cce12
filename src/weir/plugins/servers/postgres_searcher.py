"""Asking a PostgreSQL server all queries, by text or by the vectors of an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue
from weir.plugins.servers.postgres_search import PostgresAsker, SearchedTable
from weir.plugins.servers.postgres_settings import TextSearch
from weir.registry import SESSION
from weir.services.asking import ServiceUse, Terms
from weir.settings import settings
from weir.systems.dense import DenseRetriever, LoadedEncoder, query_vectors
from weir.systems.protocol import IN_MEMORY, Context, Costs
from weir.systems.remote.remote_searcher import RemoteSearcher, RemoteService
from weir.vectors.ann import Loss

__all__ = ["PostgresSearcher"]


@dataclass(frozen=True, eq=False)
class PostgresSearcher:
    """A table on a server, ready to answer.

    name: of the system, in messages; about: everything that decides an answer; dense: what makes vectors of queries,
    None for full text; use: what was asked.
    """

    name: str
    table: SearchedTable
    corpus: Corpus
    about: Mapping[str, object]
    dense: DenseRetriever | None = None
    use: ServiceUse = field(default_factory=lambda: ServiceUse(""))

    @cached_property
    def loaded(self) -> LoadedEncoder:
        """The encoder, loaded when it is first needed."""
        assert self.dense is not None
        return self.dense.encoder.load(settings().device)

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query, none for one without text; raises as RemoteSearcher."""
        service = RemoteService(
            self.name,
            self.about,
            lambda query, text, k: {"id": query, "text": text, "k": k},
            partial(PostgresAsker, self.table, self._vectors(queries)),
            Terms(self.table.settings.concurrency),
            self.table.settings.on_failure,
        )
        return RemoteSearcher(service, self.corpus, self.use).search(queries, k, context)

    def loss(self, queries: Queries, k: int) -> Loss:
        """What HNSW loses of the exact k best of these queries, which are asked exactly too, for nothing else.

        Raises BadValue where it searches exactly, ServiceError as `search`.
        """
        search = self.table.search
        if isinstance(search, TextSearch) or search.index == "exact":
            raise BadValue(f"{self.name} searches exactly; only an approximate index loses anything")
        table = replace(self.table, search=replace(search, index="exact"))
        about = {**self.about, SESSION: "asked exactly"}
        exact = replace(self, table=table, about=about, use=ServiceUse("")).search(queries, k)
        near = replace(self, use=ServiceUse("")).search(queries, k)
        pairs = [np.stack([run.query_of_row(), run.doc]) for run in (exact, near)]
        missed = {*map(tuple, pairs[0].T.tolist())} - {*map(tuple, pairs[1].T.tolist())}
        return Loss(0.0, len(missed) / max(1, len(exact.doc)))

    def costs(self) -> Costs:
        """The table on the server, what was asked of it and how long that took."""
        services = (self.use.named(self.name),)
        return Costs(self.table.bytes, self.table.reused, services=services)

    def _vectors(self, queries: Queries) -> NDArray[np.float32] | None:
        """The queries' vectors, zeros for one without text, which is not asked."""
        asked = np.array([i for i, text in enumerate(queries.text.tolist()) if text.strip()], np.int64)
        if self.dense is None or not len(asked):
            return None
        found = query_vectors(self.dense.encoder, self.loaded, queries.take(asked))
        vectors = np.zeros((len(queries), found.shape[1]), np.float32)
        vectors[asked] = found
        return vectors
