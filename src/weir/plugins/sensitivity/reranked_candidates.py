"""Candidates that are found once and re-ranked many times: in other orders, to other depths, asked again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.datasets.load import Dataset
from weir.errors import BadValue, RankingWarning
from weir.measures.evaluate import evaluate
from weir.measures.measure import Measure
from weir.plugins.sensitivity.answer_log import AskedTotals, HeardAnswer, LoggedScorer
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to
from weir.systems.plugins import rankings
from weir.systems.protocol import IN_MEMORY, Context, Costs, Retriever
from weir.systems.rerank.llm_reranker import LLMReranker
from weir.systems.rerank.reranking import RerankingSearcher, rerank_room, reranked_rows

__all__ = ["RerankedOnce", "StudiedCandidates", "candidates_of"]

RESULT_DEPTH = 1000
"""Documents of a ranking that are scored, as `weir run` has it."""
SAMPLE_SEED = 20_231_107

Told = Callable[[int, int], None]
"""Told how many prompts are done, of how many."""


@dataclass(frozen=True, eq=False)
class RerankedOnce:
    """A re-ranking. values: float64[Q], the measure by query in the order of their identifiers; answers: what the model
    was shown and said; totals: what it took."""

    run: Run
    values: Float64
    answers: tuple[HeardAnswer, ...]
    totals: AskedTotals


@dataclass(frozen=True, eq=False)
class StudiedCandidates:
    """What a first stage found for the judged queries, and the language model that re-ranks it.

    found: the first stage's rankings, deep enough for `depth` and for the results; shown: the most candidates of a
    query that the re-ranker takes as it is declared; depth: the most candidates asked about.
    """

    pipeline: Pipeline
    reranker: LLMReranker
    corpus: Corpus
    queries: Queries
    qrels: Qrels
    measure: Measure
    found: Run
    shown: int
    depth: int
    drop_self: bool

    def reranked(self, reranker: LLMReranker, sample: int = 0, told: Told | None = None) -> RerankedOnce:
        """The candidates as a re-ranker orders them, the answers of that sample asked for and kept.

        Raises BadValue for a depth beyond the candidates, ServiceError where the budget ends or a prompt stays without
        an answer; the same call continues.
        """
        if reranker.depth is not None and reranker.depth > self.depth:
            raise BadValue(f"candidates were found to {self.depth}; a depth of {reranker.depth} needs more")
        scorer = LoggedScorer(reranker.ready(self.corpus), sample)
        system = replace(self.pipeline, reranker=reranker)
        searcher = RerankingSearcher(system, self.corpus, _Found(self.found), scorer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)  # what is unclear is counted
            run = searcher.search(self.queries, max(RESULT_DEPTH, self.depth) + 1, Context(progress=told))
        run = run.without_self() if self.drop_self else run
        run = run.top(RESULT_DEPTH) if len(run.doc) else run
        values = evaluate(self.qrels, run, [self.measure]).in_id_order(str(self.measure))
        return RerankedOnce(run, values, tuple(scorer.answers), scorer.totals())


@dataclass(frozen=True, eq=False)
class _Found:
    """A searcher that answers with what was found once."""

    run: Run

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The first k of it."""
        return self.run.top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The same: it holds only what may be ranked."""
        return self.run.top(k)

    def costs(self) -> Costs:
        """Nothing is asked."""
        return Costs(repeatable=True)


def candidates_of(
    dataset: Dataset, system: Retriever, measure: Measure, depths: tuple[int, ...], limit: int | None
) -> StudiedCandidates:
    """Search a collection with the first stage of `first >> llm(...)`, once.

    depths: others than the re-ranker's own that will be asked about; limit: judged queries at most, a sample by a fixed
    seed; None for all. Raises BadValue for another system and a limit below 1, and the WeirErrors of searching.
    """
    adapted = adapted_to(system, dataset.name, dataset.instruction)
    if not (isinstance(adapted, Pipeline) and isinstance(adapted.reranker, LLMReranker)):
        raise BadValue(
            f"{system} ends in no language model; give such as 'bm25 >> llm(\"listwise\", model=...)'"
        )
    queries = _sample(dataset.queries, limit)
    wanted = max(RESULT_DEPTH, *depths, 1) + 1
    room = rerank_room(adapted, queries, wanted, dataset.corpus)
    searcher = adapted.first.index(dataset.corpus)
    found = rankings(searcher, queries, room, adapted.first, dataset.name)
    shown = reranked_rows(adapted, found, queries, dataset.corpus)
    longest = int(np.bincount(found.query_of_row()[shown], minlength=1).max())
    qrels = dataset.qrels.only(np.flatnonzero(queries.ids.codes(dataset.qrels.queries.strings) >= 0))
    return StudiedCandidates(
        adapted,
        adapted.reranker,
        dataset.corpus,
        queries,
        qrels,
        measure,
        found,
        longest,
        max(longest, adapted.reranker.depth or 1, *depths, 1),
        dataset.self_match == "drop",
    )


def _sample(queries: Queries, limit: int | None) -> Queries:
    """So many queries drawn at random, in the order in which they stand."""
    if limit is None or limit >= len(queries):
        return queries
    if limit < 1:
        raise BadValue(f"{limit} queries are none; expected a whole number from 1")
    names = sorted(queries.ids.tolist())
    chosen = np.random.default_rng(SAMPLE_SEED).permutation(len(names))[:limit]
    return queries.take(np.sort(queries.ids.codes([names[i] for i in chosen.tolist()])))
