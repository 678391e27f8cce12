"""Re-ranking by language models: the model, the method and the parts of its prompt as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from weir.algorithms import algorithm
from weir.core.corpus import Corpus
from weir.errors import BadValue
from weir.llm.chat_model import ChatModel, usual_model
from weir.llm.prompt import PromptTemplate, prompt_template
from weir.systems.compose import DEPTH, behind, shown
from weir.systems.protocol import IN_MEMORY, RERANKERS, Context, called, check_depth
from weir.systems.rerank.llm_methods import METHODS
from weir.systems.rerank.llm_scorer import LLMScorer, PromptSettings
from weir.systems.rerank.llm_windows import Windows
from weir.systems.rerank.score_cache import VIEW

__all__ = ["LLMReranker", "llm"]

CONCURRENCY = 8
"""Prompts that are out at a time, unless another number is named."""


@dataclass(frozen=True)
class LLMReranker:
    """A language model that orders the first `depth` documents of each ranking; concurrency: prompts at a time."""

    method: str
    chat: ChatModel
    depth: int = DEPTH
    windows: Windows = field(default_factory=Windows)
    prompts: PromptSettings = field(default_factory=PromptSettings)
    concurrency: int = CONCURRENCY

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise BadValue(f"llm: method is {self.method!r}; expected {', '.join(METHODS)}")
        if self.method != "listwise" and self.windows != Windows():
            raise BadValue(f'llm: window, step and passes belong to "listwise", not to "{self.method}"')
        check_depth("llm", self.depth)
        if not (type(self.concurrency) is int and 1 <= self.concurrency <= 256):
            raise BadValue(f"llm: concurrency is {self.concurrency!r}; expected a whole number from 1 to 256")
        self.templates()

    __repr__ = shown
    __rrshift__ = behind

    def __str__(self) -> str:
        given: dict[str, object] = {"model": self.chat.model}
        given |= {} if self.depth == DEPTH else {"depth": self.depth}
        for part in (self.windows, self.prompts):
            shown_fields = [f for f in fields(part) if f.name != "task"]
            given |= {
                f.name: getattr(part, f.name) for f in shown_fields if getattr(part, f.name) != f.default
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

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings: model, method, prompts and their versions; nothing is asked."""
        windows = {f.name: getattr(self.windows, f.name) for f in fields(Windows)}
        own: dict[str, object] = {
            "reranker": "llm",
            "method": self.method,
            "depth": self.depth,
            "document": VIEW,
            "prompts": [template.describe() for template in self.templates()],
            "algorithm": algorithm("llm verdicts"),
        }
        own |= {f.name: getattr(self.prompts, f.name) for f in fields(PromptSettings) if f.name != "prompt"}
        return own | (windows if self.method == "listwise" else {}) | {"chat": self.chat.describe()}

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
            self.windows,
            self.prompts,
            self.concurrency,
            corpus,
        )


@RERANKERS.register("llm")
def llm(  # noqa: PLR0913, PLR0917 - the settings of a re-ranker, as they are written
    method: str,
    model: str | None = None,
    depth: int = DEPTH,
    window: int = 20,
    step: int = 10,
    passes: int = 1,
    objective: bool = True,
    prompt: str | None = None,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
    max_length: int | None = None,
    expected: bool = True,
    base: str | None = None,
    key: str | None = None,
    version: str = "",
    concurrency: int = CONCURRENCY,
) -> LLMReranker:
    """Order the first documents by a language model, whose answers are kept.

    method: "score", 0 to 10 for each document; "reason", the same behind reasoning; "listwise", orders of `window`
    documents from the last to the first, `step` further each time, `passes` times; "pairwise", every two documents
    in both orders; "subtask", requirements named once for a query and a score of each document for each of them.
    model: address#name of a server that speaks OpenAI's API, or openai:, anthropic: or gemini: and a name; None takes
    the one in WEIR_LLM; depth: how
    many documents; objective: whether the prompt has the query's instruction, or the collection's; prompt: a TOML file
    instead of Weir's own; temperature: None leaves it to the model; max_tokens: of an answer, None takes the prompt's;
    max_length: tokens of a document at most, by estimate; expected: whether a score is the mean by log-probabilities,
    where they are told; base, key, version: see weir.llm.chat_model; concurrency: prompts at a time. A document without
    a verdict keeps its place. Source: Qin et al. 2024 (pairwise); Sun et al. 2023 (listwise); Wang et al. 2024 (BIRCO).
    Raises BadValue, UnknownName and FormatError for settings.
    """
    settings = PromptSettings(objective, prompt, temperature, max_tokens, max_length, expected)
    chat = ChatModel(usual_model() if model is None else model, base, key, version)
    return LLMReranker(method, chat, depth, Windows(window, step, passes), settings, concurrency)
