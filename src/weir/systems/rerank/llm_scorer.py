"""A language model that is asked about candidates: the frame of every method, and what became of the answers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, RankingWarning
from weir.llm.chat_model import ChatModel
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.conversation import conversation
from weir.llm.passage_text import fenced, has_hidden_instruction, shortened
from weir.llm.prompt import PromptTemplate
from weir.llm.verdicts import HIGHEST_SCORE, SCORED_KINDS, VerdictForm, VerdictKind
from weir.services.asking import ServiceUse
from weir.systems.protocol import IN_MEMORY, Context, Costs, Progress
from weir.systems.rerank.kept_places import kept_places
from weir.systems.rerank.llm_windows import Ordering
from weir.systems.rerank.score_cache import VIEW

__all__ = ["LLMScorer", "MethodFunction", "PromptSettings", "PromptedRanking", "Talk"]

MAX_SCALE = 100
"""The highest score that a model may be asked for."""


@dataclass(frozen=True)
class PromptSettings:
    """The parts of a prompt; see llm(...). task: the collection's instruction, for queries without their own."""

    objective: bool = True
    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    max_length: int | None = None
    expected: bool = True
    scale: int = HIGHEST_SCORE
    task: str = ""

    def __post_init__(self) -> None:
        if type(self.scale) is not int or not 1 <= self.scale <= MAX_SCALE:
            raise BadValue(f"llm: scale is {self.scale!r}; expected a whole number from 1 to {MAX_SCALE}")
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
    ordering: Ordering
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
        self.use.cut += asked.cut
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


class Talk(Protocol):
    """What answers prompts, such as a Conversation."""

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """The answers to so many prompts, in order."""
        ...


@dataclass(eq=False)
class PromptedRanking:
    """One re-ranking: the queries, their candidates, the model.

    heard: told of each answer, in the order of `talk`, what became of it and what it says; verdicts, cut: how many
    answers there were of each kind, and how many without a verdict were cut; asking: the number of the query that the
    latest prompt is about; showing: the candidates that it shows.
    """

    scorer: LLMScorer
    talk: Talk
    queries: Queries
    candidates: Run
    progress: Progress | None
    heard: Callable[[VerdictKind, object], None] | None = None
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)
    cut: int = 0
    asking: int = -1
    showing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        metadata = self.queries.metadata
        own = None if metadata is None else metadata.instruction
        settings, texts = self.scorer.settings, self.queries.text.tolist()
        told = [""] * len(texts) if own is None else own.tolist()
        self.texts = texts
        self.objectives = [(t or settings.task) if settings.objective else "" for t in told]
        self.query_of_row = self.candidates.query_of_row().tolist()

    def passages(self, rows: Sequence[int]) -> tuple[str, ...]:
        """The documents of candidates, as they stand in prompts."""
        texts = self.scorer.corpus.view_of(VIEW, self.candidates.doc[list(rows)]).tolist() if rows else ()
        return tuple(fenced(shortened(text, self.scorer.settings.max_length)) for text in texts)

    def prompt(
        self, query: int, template: PromptTemplate, rows: Sequence[int] = (), requirement: str = ""
    ) -> ChatPrompt:
        """A prompt about a query that shows some of its candidates, in this order."""
        self.asking, self.showing = query, tuple(rows)
        settings, passages = self.scorer.settings, self.passages(rows)
        said = {"query": self.texts[query], "scale": str(settings.scale), "requirement": requirement}
        said |= {"passage": "".join(passages[:1]), "passages": _numbered(passages), "count": str(len(rows))}
        filled = template.filled(said, self.objectives[query])
        return ChatPrompt(
            filled.system,
            filled.user.strip(),
            settings.max_tokens or template.max_tokens,
            settings.temperature,
            json=template.json,
            schema=template.schema,
            token=filled.token,
        )

    def replies(
        self,
        template: PromptTemplate,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
        line: str = "",
    ) -> Iterator[tuple[VerdictForm, ChatReply]]:
        """The answers to so many prompts of a template, in order, each with the form that its verdict has to have.

        line: the words before a verdict behind reasoning, in a prompt that is sent as published; "" where none stands
        before it.
        """
        tokens: dict[int, str] = {}

        def noted(number: int) -> ChatPrompt:
            made = prompt_of(number)
            tokens[number] = made.token
            return made

        for number, reply in enumerate(self.talk.replies(count, noted, progress)):
            yield VerdictForm(tokens.pop(number), template.object_answer, line, bool(line)), reply

    def orders(self) -> list[list[int]]:
        """The candidates of each query, as rows, in the order in which they stand before the first prompt."""
        ptr, ids = self.candidates.ptr.tolist(), self.queries.ids
        initial = self.scorer.ordering.initial
        return [
            [start + place for place in initial(stop - start, ids[query])]
            for query, (start, stop) in enumerate(pairwise(ptr))
        ]

    def count(self, kind: VerdictKind, reply: ChatReply, value: object = None) -> None:
        """An answer was read; value: what it says, None for nothing."""
        self.verdicts[kind] += 1
        self.cut += kind not in SCORED_KINDS and reply.finish == "length"
        if self.heard is not None:
            self.heard(kind, value)

    def told(self, before: int, total: int) -> Callable[[int], None] | None:
        """A progress of some prompts, before which so many are done, of so many in all."""
        report = self.progress
        return None if report is None else lambda done: report(before + done, total)

    def flagged(self) -> list[int]:
        """The documents among the candidates that hold instructions."""
        documents = np.unique(self.candidates.doc)
        view = self.scorer.corpus.view_of
        return [int(d) for d in documents if has_hidden_instruction(view(VIEW, np.array([d])).tolist()[0])]


def _numbered(passages: tuple[str, ...]) -> str:
    return "\n\n".join(f"[{i}]\n<passage>\n{text}\n</passage>" for i, text in enumerate(passages, 1))


MethodFunction: TypeAlias = Callable[[PromptedRanking], Float64]
"""A value for each candidate, the more the better, NaN where no answer says anything of it."""
