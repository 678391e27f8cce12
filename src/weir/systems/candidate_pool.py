"""The candidates that a collection names for its queries, in a drawn order: pool >> cross("minilm-cross")."""

from __future__ import annotations

from dataclasses import dataclass

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue
from weir.systems.compose import shown, then
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Component, Context, Costs
from weir.systems.restricted import candidate_rows

__all__ = ["CandidatePool", "CandidatePoolSearcher"]


@SYSTEMS.register("pool")
@dataclass(frozen=True)
class CandidatePool:
    """A query's candidates in a drawn order, which ranks nothing; needs no index, and no text.

    The order is that of hashes of a fixed seed, the query's and the document's identifier, so that neither the order of
    a file nor identifiers decide anything. A query without candidates has no answer. Scores fall by 1 from one to the
    next.
    """

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return "pool"

    def describe(self) -> dict[str, object]:
        """Its algorithm: the candidates are the queries'."""
        return {"system": "pool", "algorithm": algorithm("candidates")}

    def pool_depth(self, k: int, documents: int) -> int:
        """All candidates."""
        return max(k, documents)

    def is_drawn(self) -> bool:
        """It ranks nothing."""
        return True

    def components(self) -> tuple[Component, ...]:
        """None: it keeps nothing."""
        return ()

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> CandidatePoolSearcher:
        """Nothing is indexed."""
        return CandidatePoolSearcher(corpus)

    def open(self, corpus: Corpus, context: Context) -> CandidatePoolSearcher:
        """As `index`: nothing is kept."""
        return CandidatePoolSearcher(corpus)


@dataclass(frozen=True, eq=False)
class CandidatePoolSearcher:
    """The documents among which candidates are looked up."""

    corpus: Corpus

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The first k candidates of each query that are documents and not excluded.

        Raises BadValue where no query has any, and for k below 1.
        """
        if queries.metadata is None or queries.metadata.candidates is None:
            raise BadValue(
                "pool: the collection names no candidates; where the judged documents of a query are its candidates, "
                'write into collection.toml in its folder the line: candidates = "judged"; others stand in the lines '
                'of queries.jsonl: {"_id": "q1", "text": "...", "metadata": {"candidates": ["d1", "d2"]}}'
            )
        return candidate_rows(queries, self.corpus, "pool").allowed(queries).top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """As `search`."""
        return self.search(queries, k, context)

    def costs(self) -> Costs:
        """Nothing is kept or counted, and asking again costs nothing."""
        return Costs(repeatable=True)
