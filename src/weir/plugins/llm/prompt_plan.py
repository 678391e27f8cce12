"""Estimates of a re-ranking's prompts and tokens, without requests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from weir.core.strings import Float64, Int64
from weir.errors import BadValue
from weir.plugins.llm.verdicts import HIGHEST_SCORE
from weir.registry import check_whole
from weir.systems.protocol import PromptPlan

if TYPE_CHECKING:
    from weir.datasets.load import Dataset
    from weir.plugins.llm.prompts import PromptTemplate


MAX_SCALE = 100


@dataclass(frozen=True)
class PromptSettings:
    """The prompt settings of `llm(...)`; raises BadValue for values out of range."""

    objective: bool = True
    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    max_length: int | None = None
    expected: bool = True
    scale: int = HIGHEST_SCORE
    task: str = ""
    """The collection's instruction, for queries without their own."""

    def __post_init__(self) -> None:
        check_whole("llm: scale", self.scale, 1, MAX_SCALE)
        for name in ("max_tokens", "max_length"):
            if getattr(self, name) is not None:
                check_whole(f"llm: {name}", getattr(self, name))
        heat = self.temperature
        if heat is not None and not (type(heat) in (int, float) and 0 <= heat <= 2):
            raise BadValue(f"llm: temperature is {heat!r}; expected a number from 0 to 2, or None")
        if type(self.objective) is not bool or type(self.expected) is not bool:
            raise BadValue("llm: objective and expected are True or False")
        if not (self.prompt is None or isinstance(self.prompt, str)):
            raise BadValue(f"llm: prompt is {self.prompt!r}; expected the path of a TOML file")


@dataclass(frozen=True)
class CallBudget:
    """An upper bound of a query's prompts with one template, and the passages in each."""

    template: int
    """Number of the method's template."""
    prompts: int
    passages: int
    """Passages in a prompt."""


class Prompter(Protocol):
    """A re-ranker by language model, as the estimates of its prompts and tokens need it."""

    @property
    def depth(self) -> int | None:
        """Candidates shown for a query; None for all."""

    @property
    def prompts(self) -> PromptSettings:
        """The settings from which prompts are made."""

    def templates(self) -> tuple[PromptTemplate, ...]:
        """Return the templates, in the order of use."""

    def max_calls(self, candidates: int) -> tuple[CallBudget, ...]:
        """Return upper bounds of a query's prompts for that many candidates, by template."""


TOKEN_BYTES = 3
"""Bytes of a token in estimates; most tokenizers make fewer tokens."""
BODY_BYTES = 160
"""Bytes of a request beside its two texts."""
FENCE_BYTES = 34
"""Bytes around a passage."""
REQUIREMENT_BYTES = 120
"""Bytes of a requirement that a model names."""


def prompt_plan(reranker: Prompter, dataset: Dataset, depths: Int64) -> PromptPlan:
    """Return an upper bound of the prompts and tokens for a dataset's queries, from the lengths of its texts.

    depths: int64[queries], candidates of each query.
    """
    queries, metadata = dataset.queries, dataset.queries.metadata
    own = None if metadata is None else metadata.instruction
    general = len(reranker.prompts.task.encode())
    own_lengths = np.zeros(len(queries), np.int64) if own is None else own.lengths()
    objective = (
        np.where(own_lengths > 0, own_lengths, general) if reranker.prompts.objective else own_lengths * 0
    )
    # Bytes of each document as it stands in prompts
    columns = [dataset.corpus.text, *([] if dataset.corpus.title is None else [dataset.corpus.title])]
    sizes: Float64 = np.full(len(dataset.corpus), len(columns) - 1, np.float64)
    for column in columns:
        sizes += column.lengths()
    lengths = (
        sizes
        if reranker.prompts.max_length is None
        else np.minimum(sizes, TOKEN_BYTES * reranker.prompts.max_length)
    )
    query = queries.text.lengths() + objective
    return _prompt_costs(reranker, query, depths, float(lengths.mean()), np.sort(lengths)[::-1])


def plan_of_words(
    reranker: Prompter, candidates: int, queries: int, document_bytes: float, query_bytes: float
) -> PromptPlan:
    """Return an estimate of the prompts and tokens of `queries` queries with `candidates` documents each, from mean
    lengths in bytes. Documents below the re-ranker's depth are not read."""
    depth = candidates if reranker.depth is None else min(candidates, reranker.depth)
    most = reranker.prompts.max_length
    mean = document_bytes if most is None else min(document_bytes, TOKEN_BYTES * most)
    general = len(reranker.prompts.task.encode()) if reranker.prompts.objective else 0
    query = np.full(queries, int(query_bytes) + general, np.int64)
    return _prompt_costs(reranker, query, np.full(queries, depth, np.int64), mean)


def _prompt_costs(
    reranker: Prompter,
    query_bytes: Int64,
    depths: Int64,
    document: float,
    longest_bytes: Float64 | None = None,
) -> PromptPlan:
    prompts = answers = 0
    mean, longest = 0.0, 0.0
    for candidates in np.unique(depths).tolist():
        rows = depths == candidates
        for one in (one for one in reranker.max_calls(candidates) if one.prompts):
            number = one.prompts * int(rows.sum())
            # (bytes of a prompt without its query and passages, tokens of its answer at most)
            template = reranker.templates()[one.template]
            slots = {"query": "", "passage": "", "passages": "", "requirement": "x" * REQUIREMENT_BYTES}
            slots |= {"count": str(one.passages), "scale": str(reranker.prompts.scale)}
            filled = template.filled_prompt(slots, " " if reranker.prompts.objective else "")
            size = len(json.dumps([filled.system, filled.user], ensure_ascii=False).encode()) + BODY_BYTES
            fences = FENCE_BYTES * one.passages if one.passages > 1 else 0
            fixed, answer = size + fences, reranker.prompts.max_tokens or template.max_tokens
            query = one.prompts * float(query_bytes[rows].sum())
            prompts += number
            answers += number * answer
            mean += _tokens(number, number * (fixed + one.passages * document) + query)
            if longest_bytes is not None and one.passages:
                # Who reads every document once reads the longest of one ranking; groups may all hold the same longest.
                several = candidates if one.passages == 1 else one.passages
                long = float(longest_bytes[:several].mean())
                longest += _tokens(number, number * (fixed + one.passages * long) + query)
            else:
                longest += _tokens(number, number * fixed + query)
    at_most = None if longest_bytes is None else round(longest) + answers
    return PromptPlan(prompts, round(mean) + answers, answers, at_most)


def _tokens(prompts: int, size: float) -> float:
    return size / TOKEN_BYTES + prompts
