"""Re-ranking by language models."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Any

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import BadValue
from weir.models.chat import ChatModel, usual_model
from weir.models.conversation import KeptConversation, KeptReply, UnknownAnswerError
from weir.models.prompts import PromptTemplate, prompt_template
from weir.models.verdicts import HIGHEST_SCORE, VerdictKind
from weir.systems.compose import behind, shown
from weir.systems.protocol import IN_MEMORY, RERANKERS, Context, called, check_depth, described_depth
from weir.systems.rerank.llm_methods import (
    METHODS,
    Asking,
    LLMScorer,
    Ordering,
    PromptedRanking,
    PromptSettings,
)
from weir.systems.rerank.reranking import VIEW

# ----------
# Re-ranking by language models: the model, the method and the parts of its prompt as one value.


CONCURRENCY = 8
"""Prompts that are out at a time, unless another number is named."""


@dataclass(frozen=True)
class LLMReranker:
    """A language model that orders the first `depth` documents of each ranking; concurrency: prompts at a time."""

    method: str
    chat: ChatModel
    depth: int | None = None
    ordering: Ordering = field(default_factory=Ordering)
    prompts: PromptSettings = field(default_factory=PromptSettings)
    concurrency: int = CONCURRENCY

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise BadValue(f"llm: method is {self.method!r}; expected {', '.join(METHODS)}")
        self._check_settings()
        check_depth("llm", self.depth)
        if not (type(self.concurrency) is int and 1 <= self.concurrency <= 256):
            raise BadValue(f"llm: concurrency is {self.concurrency!r}; expected a whole number from 1 to 256")
        self.templates()

    def _check_settings(self) -> None:
        """Raise BadValue for settings that mean nothing to the method, or to one another."""
        given = self.ordering.given | ({} if self.prompts.scale == HIGHEST_SCORE else {"scale": 0})
        for name in given:
            if name not in METHODS[self.method].takes:
                takers = ", ".join(f'"{known}"' for known, method in METHODS.items() if name in method.takes)
                raise BadValue(f'llm: {name} belongs to {takers}; "{self.method}" does not take it')
        if "seed" in given and self.ordering.order != "shuffled":
            raise BadValue('llm: seed is that of order="shuffled"')
        if self.method == "setwise" and self.ordering.sort == "all":
            raise BadValue('llm: "setwise" sorts by heapsort, bubblesort or tournament, not by all')
        if "top" in given and self.method == "pairwise" and self._resolved.sort == "all":
            raise BadValue('llm: "pairwise" has a top where it sorts: sort="heapsort"')
        if self.method == "listwise":
            _ = self._resolved.windows  # raises for a step that is longer than the window

    @property
    def _resolved(self) -> Ordering:
        method = METHODS[self.method]
        return self.ordering.resolved(method.window, method.sort)

    __repr__ = shown
    __rrshift__ = behind

    def __str__(self) -> str:
        given: dict[str, object] = {"model": self.chat.model}
        given |= {} if self.depth is None else {"depth": self.depth}
        given |= self.ordering.given
        shown_fields = [f for f in fields(self.prompts) if f.name != "task"]
        given |= {
            f.name: getattr(self.prompts, f.name)
            for f in shown_fields
            if getattr(self.prompts, f.name) != f.default
        }
        given |= self.chat.given
        given |= {} if self.concurrency == CONCURRENCY else {"concurrency": self.concurrency}
        return called("llm", [self.method], given)

    @property
    def service(self) -> str:
        """The model that is asked."""
        return self.chat.model

    def templates(self) -> tuple[PromptTemplate, ...]:
        """The prompts of the method, the user's own in the place of the last; raises FormatError and BadValue."""
        method = METHODS[self.method]
        *first, last = method.prompts
        own = self.prompts.prompt
        found = [prompt_template(name, ("query",)) for name in first]
        return (*found, prompt_template(last if own is None else own, method.places))

    def asks(self, candidates: int) -> tuple[Asking, ...]:
        """What it asks at most about a query of which it is shown so many candidates."""
        return METHODS[self.method].asks(self._resolved, candidates)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings: model, method, prompts and their versions; nothing is asked."""
        takes = [name for name in METHODS[self.method].takes if name != "scale"]
        ordering = {name: getattr(self._resolved, name) for name in takes}
        own: dict[str, object] = {
            "reranker": "llm",
            "method": self.method,
            **described_depth(self.depth),
            "document": VIEW,
            "prompts": [template.describe() for template in self.templates()],
            "algorithm": algorithm("llm verdicts"),
        }
        own |= {f.name: getattr(self.prompts, f.name) for f in fields(PromptSettings) if f.name != "prompt"}
        sorts = "sort" in takes or self.ordering.order == "shuffled"
        own |= {"sorting": algorithm("llm sorting")} if sorts else {}
        return own | ordering | {"chat": self.chat.describe()}

    def fetch(self) -> None:
        """Download a model that runs in this process where it is not here; raises DownloadError."""
        self.chat.fetch()

    def adapted_to(self, collection: str, instruction: str) -> LLMReranker:
        """The re-ranker as it runs on a collection, whose instruction is the objective of queries without their own."""
        if not self.prompts.objective or not instruction:
            return self
        return replace(self, prompts=replace(self.prompts, task=instruction))

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> LLMScorer:
        """What asks the model about documents; its answers are kept in Weir's home."""
        method = METHODS[self.method]
        return LLMScorer(
            str(self),
            self.chat,
            method.score,
            self.templates(),
            self._resolved,
            self.prompts,
            self.concurrency,
            corpus,
        )


@RERANKERS.register("llm")
def llm(
    method: str,
    model: str | None = None,
    depth: int | None = None,
    window: int | None = None,
    step: int | None = None,
    passes: int = 1,
    sort: str | None = None,
    top: int = 10,
    order: str = "first stage",
    seed: int = 0,
    objective: bool = True,
    prompt: str | None = None,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
    max_length: int | None = None,
    expected: bool = True,
    scale: int = HIGHEST_SCORE,
    base: str | None = None,
    key: str | None = None,
    version: str = "",
    concurrency: int = CONCURRENCY,
) -> LLMReranker:
    """Order the first documents by a language model, whose answers are kept.

    method: "score", 0 to `scale` for each document; "reason", the same behind reasoning; "listwise", orders of
    `window` documents (20) from the last to the first, `step` (half a window) further each time, `passes` times;
    "setwise", the best of `window` documents (4), by which `sort` finds the `top` places; "pairwise", every two
    documents in both orders, or those that a `sort` compares; "subtask", requirements named once for a query and a
    score of each document for each of them. sort: "heapsort", "bubblesort" or "tournament", for "pairwise" also "all";
    order: "first stage", "reversed" or "shuffled" (by `seed`), how documents stand before the first prompt.
    model: address#name of a server that speaks OpenAI's API, or openai:, anthropic: or gemini: and a name, or
    transformers: and a folder or a name on the hub; depth: how many documents, None for 100, and for all candidates;
    objective: whether the prompt has the
    query's instruction, or the collection's; prompt: a TOML file instead of Weir's own; temperature: None leaves it to
    the model; max_tokens: of an answer, None takes the prompt's; max_length: tokens of a document at most, by estimate;
    expected: whether a score is the mean by log-probabilities, and a choice the likeliest, where they are told; base,
    key, version: see weir.models.chat; concurrency: prompts at a time. A document without a verdict keeps its place.
    Source: Qin et al. 2024 (pairwise); Sun et al. 2023 (listwise); Zhuang et al. 2024 (set-wise); Chen et al. 2025
    (tournament); Wang et al. 2024 (BIRCO).
    Raises BadValue, UnknownName and FormatError for settings.
    """
    settings = PromptSettings(objective, prompt, temperature, max_tokens, max_length, expected, scale)
    chat = ChatModel(usual_model() if model is None else model, base, key, version)
    ordering = Ordering(window, step, passes, sort, top, order, seed)
    return LLMReranker(method, chat, depth, ordering, settings, concurrency)


# ----------
# What a language model was asked and answered about one ranking, and how that was read: from kept answers alone.
#
# The method itself runs again over the answers that are kept, so a trace is of the code that made the ranking.


NOT_KEPT = "not kept here"


@dataclass(frozen=True)
class Exchange:
    """A prompt, its answer, and what was read from it.

    number: from 1, in the order asked; documents: that the prompt shows, in its order; system_text, user_text: what was
    asked; answer: as it is kept, None where it is not; verdict: what became of it, "not kept here" without one; value:
    what it says, as JSON, "" for nothing; finish: why the answer ends; named: the model as it names itself; tokens_in,
    tokens_out: None where they were not told; milliseconds: that the answer took; time: when it came, UTC in ISO's
    form, "" where that is not kept.
    """

    number: int
    documents: tuple[str, ...]
    system_text: str
    user_text: str
    answer: str | None
    verdict: str
    value: str
    finish: str
    named: str
    tokens_in: int | None
    tokens_out: int | None
    milliseconds: float | None
    time: str = ""


@dataclass(frozen=True)
class QueryExchanges:
    """What was asked about a query; whole: False where others followed from an answer that is not kept; flagged:
    documents among the candidates that speak to the model."""

    exchanges: tuple[Exchange, ...]
    whole: bool
    flagged: tuple[str, ...]


def traced(
    reranker: LLMReranker, talk: KeptConversation, corpus: Corpus, query: Queries, candidates: Run
) -> QueryExchanges:
    """Every prompt about the candidates of one query, in the order asked.

    talk: of which nothing was read yet; candidates: the first stage's, at most the re-ranker's depth. What follows from
    an answer that is not kept is not known. Raises StoreError for an answer that is damaged.
    """
    read: list[tuple[VerdictKind, object]] = []
    whole = True
    scorer = reranker.ready(corpus)
    asked = PromptedRanking(
        scorer, talk, query, candidates, None, heard=lambda kind, value: read.append((kind, value))
    )
    talk.showing = lambda: asked.showing
    try:
        if len(candidates.doc):
            scorer.method(asked)
    except UnknownAnswerError:
        whole = False
    pairs = enumerate(zip(talk.said, read, strict=True), 1)
    found = tuple(_exchange(number, candidates, one, kind, value) for number, (one, (kind, value)) in pairs)
    flagged = tuple(corpus.ids[document] for document in asked.flagged())
    return QueryExchanges(found, whole, flagged)


def _exchange(number: int, candidates: Run, one: KeptReply, kind: VerdictKind, value: object) -> Exchange:
    reply, prompt = one.reply, one.prompt
    shown = tuple(candidates.docs[int(candidates.doc[row])] for row in one.about)
    asked = (number, shown, prompt.system, prompt.user)
    if reply is None:
        return Exchange(*asked, None, NOT_KEPT, "", "", "", None, None, None)
    said: Any = "" if value is None or value == [] else json.dumps(value, ensure_ascii=False)
    tokens = (reply.tokens_in, reply.tokens_out)
    told = (reply.text, kind, said, reply.finish, reply.model)
    return Exchange(*asked, *told, *tokens, one.milliseconds, one.time)
