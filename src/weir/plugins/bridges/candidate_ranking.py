"""Given candidates of each query put in order by a system: what other tools ask of a re-ranker."""

from __future__ import annotations

from dataclasses import dataclass

from weir.core.corpus import Corpus
from weir.core.run import Run
from weir.registry import Identity
from weir.systems.compose import FunctionSearcher, FunctionSystem, Pipeline
from weir.systems.protocol import IN_MEMORY, Component, Context, Reranker, Retriever
from weir.systems.rerank.score_reranker import Score

__all__ = ["GivenCandidates", "candidate_ranking"]


def candidate_ranking(system: Retriever | Reranker, candidates: Run) -> Retriever:
    """What answers with these candidates of each query, all of them unless a re-ranker names its depth: in the order of
    a system's own scores, of the last re-ranker of a pipeline, or of a re-ranker given alone.

    Raises BadValue for a system that scores only what it finds, as fusions do.
    """
    if isinstance(system, Pipeline):
        return candidate_ranking(system.reranker, candidates)
    return Pipeline(GivenCandidates(candidates), system if isinstance(system, Reranker) else Score(system))


@dataclass(frozen=True, eq=False)
class GivenCandidates:
    """A run in memory as the first stage of a re-ranking."""

    candidates: Run

    def __str__(self) -> str:
        return "candidates"

    def describe(self) -> dict[str, object]:
        """A session: what is given is of this process."""
        return {"system": "candidates", **Identity("candidates").describe()}

    def pool_depth(self, k: int, documents: int) -> int:
        """All that were given."""
        return max(k, documents)

    def is_drawn(self) -> bool:
        """Their order is that of the run."""
        return False

    def components(self) -> tuple[Component, ...]:
        """None."""
        return ()

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> FunctionSearcher:
        """The run, whose documents have to be the corpus's."""
        return FunctionSystem(self._answers, Identity(str(self))).index(corpus, context)

    def open(self, corpus: Corpus, context: Context) -> FunctionSearcher:
        """As `index`: nothing is kept."""
        return self.index(corpus, context)

    def _answers(self, queries: dict[str, str], k: int) -> dict[str, dict[str, float]]:
        found = self.candidates.to_dict()
        return {query: found.get(query, {}) for query in queries}
