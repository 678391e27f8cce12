"""A language model that is asked about candidates: the frame of every method, and what became of the answers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, RankingWarning
from weir.llm.chat_model import ChatModel
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.conversation import Conversation, conversation
from weir.llm.passage_text import fenced, has_hidden_instruction, shortened
from weir.llm.prompt import PromptTemplate
from weir.llm.verdicts import VerdictKind
from weir.services.asking import ServiceUse
from weir.systems.protocol import IN_MEMORY, Context, Costs, Progress
from weir.systems.rerank.kept_places import kept_places
from weir.systems.rerank.llm_windows import Windows
from weir.systems.rerank.score_cache import VIEW

__all__ = ["LLMScorer", "MethodFunction", "PromptSettings", "PromptedRanking"]

SCORED_KINDS = ("ok", "repaired")


@dataclass(frozen=True)
class PromptSettings:
    """The parts of a prompt; see llm(...). task: the collection's instruction, for queries without their own."""

    objective: bool = True
    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    max_length: int | None = None
    expected: bool = True
    task: str = ""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_length"):
            value = getattr(self, name)
            if value is not None and not (type(value) is int and value > 0):
                raise BadValue(f"llm: {name} is {value!r}; expected a whole number from 1")
        warmth = self.temperature
        if warmth is not None and not (type(warmth) in (int, float) and 0 <= warmth <= 2):
            raise BadValue(f"llm: temperature is {warmth!r}; expected a number from 0 to 2, or None")
        if type(self.objective) is not bool or type(self.expected) is not bool:
            raise BadValue("llm: objective and expected are True or False")
        if not (self.prompt is None or isinstance(self.prompt, str)):
            raise BadValue(f"llm: prompt is {self.prompt!r}; expected the path of a TOML file")


@dataclass(frozen=True, eq=False)
class LLMScorer:
    """A language model and the documents that it is asked about; name: of the re-ranker, in messages."""

    name: str
    chat: ChatModel
    method: MethodFunction
    templates: tuple[PromptTemplate, ...]
    windows: Windows
    settings: PromptSettings
    concurrency: int
    corpus: Corpus
    use: ServiceUse = field(default_factory=lambda: ServiceUse(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """A score for each candidate: what the method makes of the answers, lower from place to place; a candidate of
        which no answer says anything keeps its place (see kept_places).

        Warns (RankingWarning) of answers without a verdict and of documents that speak to the model. Raises
        ServiceError where the budget ends or a prompt stays without an answer; what was answered is kept.
        """
        if len(candidates.doc) == 0:
            return np.empty(0)
        with conversation(self.chat, self.concurrency, self.use, context.reuse) as talk:
            asked = PromptedRanking(self, talk, queries, candidates, context.progress)
            values = self.method(asked)
        self.use.verdicts.update(asked.verdicts)
        self._warn(asked)
        return kept_places(values, candidates.ptr)

    def costs(self) -> Costs:
        """What the model was asked and what that took; asking again is not for free."""
        return Costs(services=(self.use.named(self.chat.model),))

    def _warn(self, asked: PromptedRanking) -> None:
        unclear = {k: n for k, n in sorted(asked.verdicts.items()) if k not in SCORED_KINDS}
        if unclear:
            kinds = ", ".join(f"{count} {kind}" for kind, count in unclear.items())
            said = f"no whole verdict in {sum(unclear.values()):,} of {asked.verdicts.total():,} answers ({kinds})"
            cut = f"; cut: {asked.cut:,}, max_tokens allows more" if asked.cut else ""
            _note(f"{self.name}: {said}; what they leave out keeps its order{cut}")
        flagged = asked.flagged()
        self.use.flagged += len(flagged)
        if flagged:
            first = self.corpus.ids[flagged[0]]
            others = f" and {len(flagged) - 1:,} others" if len(flagged) > 1 else ""
            _note(f"{self.name}: the model that judges is spoken to by document '{first}'{others}")


def _note(said: str) -> None:
    warnings.warn(RankingWarning(said), stacklevel=3)


@dataclass(eq=False)
class PromptedRanking:
    """One re-ranking: the queries, their candidates, the model; verdicts, cut: answers by what became of them."""

    scorer: LLMScorer
    talk: Conversation
    queries: Queries
    candidates: Run
    progress: Progress | None
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)
    cut: int = 0

    def __post_init__(self) -> None:
        metadata = self.queries.metadata
        own = None if metadata is None else metadata.instruction
        settings, texts = self.scorer.settings, self.queries.text.tolist()
        told = [""] * len(texts) if own is None else own.tolist()
        self.texts = texts
        self.objectives = [(t or settings.task) if settings.objective else "" for t in told]
        self.query_of_row = self.candidates.query_of_row().tolist()

    def passage(self, row: int) -> str:
        """The document of a candidate, as it stands in prompts."""
        [text] = self.scorer.corpus.view_of(VIEW, self.candidates.doc[row : row + 1]).tolist()
        return fenced(shortened(text, self.scorer.settings.max_length))

    def passages(self, rows: list[int]) -> tuple[str, ...]:
        """Those of several."""
        return tuple(self.passage(row) for row in rows)

    def prompt(self, query: int, template: PromptTemplate, given: Mapping[str, str]) -> ChatPrompt:
        """A prompt about a query."""
        settings = self.scorer.settings
        system, user = template.texts({"query": self.texts[query], **given}, self.objectives[query])
        tokens = settings.max_tokens or template.max_tokens
        return ChatPrompt(system, user.strip(), tokens, settings.temperature, json=template.json)

    def count(self, kind: VerdictKind, reply: ChatReply) -> None:
        """An answer was read."""
        self.verdicts[kind] += 1
        self.cut += kind not in SCORED_KINDS and reply.finish == "length"

    def told(self, before: int, total: int) -> Callable[[int], None] | None:
        """A progress of some prompts, before which so many are done, of so many in all."""
        report = self.progress
        return None if report is None else lambda done: report(before + done, total)

    def flagged(self) -> list[int]:
        """The documents among the candidates that hold instructions."""
        documents = np.unique(self.candidates.doc)
        view = self.scorer.corpus.view_of
        return [int(d) for d in documents if has_hidden_instruction(view(VIEW, np.array([d])).tolist()[0])]


MethodFunction: TypeAlias = Callable[[PromptedRanking], Float64]
"""A value for each candidate, the more the better, NaN where no answer says anything of it."""
