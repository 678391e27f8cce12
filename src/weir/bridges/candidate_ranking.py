"""Given candidates of each query put in order by a system: what other tools ask of a re-ranker."""

from __future__ import annotations

from weir.core.run import Run
from weir.systems.compose import Pipeline, as_system
from weir.systems.protocol import Reranker, Retriever
from weir.systems.rerank.score_reranker import Score

__all__ = ["candidate_ranking"]


def candidate_ranking(system: Retriever | Reranker, candidates: Run) -> Retriever:
    """What answers with these candidates of each query: in the order of a system's own scores, of the last re-ranker
    of a pipeline, or of a re-ranker given alone.

    Raises BadValue for a system that scores only what it finds, as fusions do.
    """
    if isinstance(system, Pipeline):
        return candidate_ranking(system.reranker, candidates)
    deepest = max(1, *(candidates.ptr[1:] - candidates.ptr[:-1]).tolist(), 1)
    last = system if isinstance(system, Reranker) else Score(system, deepest)

    def given(queries: dict[str, str], k: int) -> dict[str, dict[str, float]]:
        found = candidates.to_dict()
        return {query: found.get(query, {}) for query in queries}

    return Pipeline(as_system(given), last)
