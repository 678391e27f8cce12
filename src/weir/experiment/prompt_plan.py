"""How many prompts a language model would be asked on a collection, and how many tokens they would take."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from weir.core.corpus import Corpus
from weir.core.strings import Float64, Int64
from weir.datasets.load import Dataset
from weir.experiment.observations import silent
from weir.systems.candidate_pool import CandidatePool
from weir.systems.compose import Pipeline
from weir.systems.plugins import rankings
from weir.systems.rerank.llm_methods import Asking
from weir.systems.rerank.llm_reranker import LLMReranker
from weir.systems.rerank.reranking import has_candidates, rerank_depths, rerank_room
from weir.systems.stored_run import StoredRun

__all__ = ["PromptPlan", "plan_of_words", "prompt_plan", "shown_candidates"]

TOKEN_BYTES = 3
"""Bytes of a token, as budgets estimate: most tokenizers make fewer tokens."""
BODY_BYTES = 160
"""Bytes of a request beside its two texts, about."""
FENCE_BYTES = 34
"""Bytes around each of several passages in a prompt."""
REQUIREMENT_BYTES = 120
"""Bytes of a requirement that a model names, about."""


@dataclass(frozen=True)
class PromptPlan:
    """What a re-ranking would ask at most.

    prompts: for all queries; most: for one of them; tokens: with documents of mean length and answers as long as they
    may be, of which answer_tokens are the answers'; longest: the tokens if the longest documents stood in every prompt,
    None where lengths are not known.
    """

    prompts: int
    most: int
    tokens: int
    answer_tokens: int
    longest: int | None


@dataclass(frozen=True)
class _Texts:
    """What prompts are made of: bytes of each query with its objective, candidates shown of it, bytes of documents."""

    query: Int64
    candidates: Int64
    document: float
    longest: Float64 | None


def shown_candidates(system: Pipeline, dataset: Dataset, k: int) -> tuple[Int64, Int64]:
    """(documents that each query gives a re-ranker, those of them that it scores), where k are wanted of both stages.

    A pool and a stored run are counted; else nothing is searched, and a query is taken to find as many documents as may
    be ranked.
    """
    first, queries, corpus = system.first, dataset.queries, dataset.corpus
    room = rerank_room(system, queries, k, corpus)
    if isinstance(first, (CandidatePool, StoredRun)):
        with silent():
            found = np.diff(rankings(first.index(corpus), queries, room, first, dataset.name).ptr)
    else:
        found = np.full(len(queries), len(corpus), np.int64)
        if queries.metadata is not None and queries.metadata.candidates is not None:
            listed = queries.metadata.candidates.lengths()
            found = np.where((listed > 0) | has_candidates(system) & system.is_drawn(), listed, found)
        found = np.minimum(found, room)
    return found, np.minimum(found, rerank_depths(system, queries))


def prompt_plan(reranker: LLMReranker, dataset: Dataset, shown: Int64) -> PromptPlan:
    """What a re-ranker would ask about the queries of a collection; shown: how many candidates of each it is shown."""
    queries, metadata = dataset.queries, dataset.queries.metadata
    own = None if metadata is None else metadata.instruction
    general = len(reranker.prompts.task.encode())
    told = np.zeros(len(queries), np.int64) if own is None else own.lengths()
    objective = np.where(told > 0, told, general) if reranker.prompts.objective else told * 0
    lengths = _lengths(dataset.corpus, reranker.prompts.max_length)
    texts = _Texts(queries.text.lengths() + objective, shown, float(lengths.mean()), np.sort(lengths)[::-1])
    return _planned(reranker, texts)


def plan_of_words(
    reranker: LLMReranker, candidates: int, queries: int, document_bytes: float, query_bytes: float
) -> PromptPlan:
    """The same of a collection of which only these mean lengths are known; candidates: of a query, that are found."""
    shown = candidates if reranker.depth is None else min(candidates, reranker.depth)
    most = reranker.prompts.max_length
    mean = document_bytes if most is None else min(document_bytes, TOKEN_BYTES * most)
    general = len(reranker.prompts.task.encode()) if reranker.prompts.objective else 0
    query = np.full(queries, int(query_bytes) + general, np.int64)
    return _planned(reranker, _Texts(query, np.full(queries, shown, np.int64), mean, None))


def _lengths(corpus: Corpus, max_length: int | None) -> Float64:
    """Bytes of each document as it stands in prompts."""
    columns = [corpus.text, *([] if corpus.title is None else [corpus.title])]
    found: Float64 = np.full(len(corpus), len(columns) - 1, np.float64)
    for column in columns:
        found += column.lengths()
    return found if max_length is None else np.minimum(found, TOKEN_BYTES * max_length)


def _planned(reranker: LLMReranker, texts: _Texts) -> PromptPlan:
    prompts = answers = most = 0
    mean, longest = 0.0, 0.0
    for count in np.unique(texts.candidates).tolist():
        rows = texts.candidates == count
        asked = [one for one in reranker.asks(count) if one.prompts]
        most = max(most, sum(one.prompts for one in asked))
        for one in asked:
            number = one.prompts * int(rows.sum())
            fixed, answer = _fixed(reranker, one)
            query = one.prompts * float(texts.query[rows].sum())
            prompts += number
            answers += number * answer
            mean += _tokens(number, number * (fixed + one.passages * texts.document) + query)
            if texts.longest is not None and one.passages:
                # Who reads every document once reads the longest of one ranking; groups may all hold the same longest.
                several = count if one.passages == 1 else one.passages
                long = float(texts.longest[:several].mean())
                longest += _tokens(number, number * (fixed + one.passages * long) + query)
            else:
                longest += _tokens(number, number * fixed + query)
    known = texts.longest is not None
    return PromptPlan(
        prompts, most, round(mean) + answers, answers, round(longest) + answers if known else None
    )


def _tokens(prompts: int, size: float) -> float:
    """Tokens of so many prompts of so many bytes together."""
    return size / TOKEN_BYTES + prompts


def _fixed(reranker: LLMReranker, asked: Asking) -> tuple[int, int]:
    """(bytes of a prompt without its query and passages, tokens of its answer at most)."""
    template = reranker.templates()[asked.template]
    given = {"query": "", "passage": "", "passages": "", "requirement": "x" * REQUIREMENT_BYTES}
    given |= {"count": str(asked.passages), "scale": str(reranker.prompts.scale)}
    filled = template.filled(given, " " if reranker.prompts.objective else "")
    size = len(json.dumps([filled.system, filled.user], ensure_ascii=False).encode()) + BODY_BYTES
    fences = FENCE_BYTES * asked.passages if asked.passages > 1 else 0
    return size + fences, reranker.prompts.max_tokens or template.max_tokens
