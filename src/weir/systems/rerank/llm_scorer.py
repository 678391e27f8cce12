"""How a language model orders candidates: one function for each method, and what became of its answers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, RankingWarning
from weir.llm.chat_model import ChatModel
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.conversation import Conversation, conversation
from weir.llm.expected_score import expected_score
from weir.llm.orderings import read_order
from weir.llm.passage_text import fenced, has_hidden_instruction, shortened
from weir.llm.prompt import PromptTemplate
from weir.llm.verdicts import VerdictKind, read_choice, read_requirements, read_score
from weir.services.asking import ServiceUse
from weir.systems.protocol import IN_MEMORY, Context, Costs, Progress
from weir.systems.rerank.kept_places import kept_places
from weir.systems.rerank.score_cache import VIEW

__all__ = ["METHODS", "LLMScorer", "Method", "PromptSettings", "Windows"]

LOG_PROBABILITIES = 20
"""Alternatives of a token that are asked for, where a score is their mean."""
SCORED_KINDS = ("ok", "repaired")


@dataclass(frozen=True)
class Windows:
    """The windows of a listwise order: documents of one, how far the next is from it, how often over all of them."""

    window: int = 20
    step: int = 10
    passes: int = 1

    def __post_init__(self) -> None:
        for name in ("window", "step", "passes"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise BadValue(f"llm: {name} is {getattr(self, name)!r}; expected a whole number from 1")
        if self.window < 2 or self.step > self.window:
            raise BadValue("llm: a window has 2 documents or more, and a step is no longer than it")

    def over(self, count: int) -> list[tuple[int, int]]:
        """(start, stop) of each window over so many documents, the last documents first; () for one alone."""
        stops = [count - i * self.step for i in range(count)]
        needed = next((i for i, stop in enumerate(stops) if stop <= self.window), 0) + 1
        once = [(max(0, stop - self.window), stop) for stop in stops[:needed]]
        return once * self.passes if count > 1 else []


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


def _pointwise(asked: PromptedRanking, last: bool) -> Float64:
    """The score of each document by itself; last: whether the score stands behind reasoning."""
    rows, [template] = len(asked.candidates.doc), asked.scorer.templates
    mean = asked.scorer.settings.expected and not last

    def prompt(row: int) -> ChatPrompt:
        made = asked.prompt(asked.query_of_row[row], template, {"passage": asked.passage(row)})
        return replace(made, log_probabilities=LOG_PROBABILITIES) if mean else made

    values = np.full(rows, np.nan)
    for row, reply in enumerate(asked.talk.replies(rows, prompt, asked.told(0, rows))):
        values[row] = _score(asked, reply, asked.passage(row), last)
    return values


def _score(asked: PromptedRanking, reply: ChatReply, passage: str, last: bool = False) -> float:
    """The score that an answer gives a passage, NaN for none."""
    verdict = read_score(reply, passage, last)
    asked.count(verdict.kind, reply)
    if verdict.score is None:
        return np.nan
    mean = expected_score(reply, verdict.written) if asked.scorer.settings.expected and not last else None
    return verdict.score if mean is None else mean


def _listwise(asked: PromptedRanking) -> Float64:
    """The places that windows over each ranking give, all queries side by side, window after window."""
    ptr, [template] = asked.candidates.ptr.tolist(), asked.scorer.templates
    orders = [list(range(a, b)) for a, b in pairwise(ptr)]
    windows = [asked.scorer.windows.over(len(order)) for order in orders]
    total, done = sum(map(len, windows)), 0
    for turn in range(max(map(len, windows), default=0)):
        active = [q for q, own in enumerate(windows) if turn < len(own)]
        rows = [orders[q][slice(*windows[q][turn])] for q in active]

        def prompt(number: int, active: list[int] = active, rows: list[list[int]] = rows) -> ChatPrompt:
            given = {
                "passages": _numbered(asked.passages(rows[number])),
                "count": str(len(rows[number])),
            }
            return asked.prompt(active[number], template, given)

        replies = asked.talk.replies(len(active), prompt, asked.told(done, total))
        for q, own, reply in zip(active, rows, replies, strict=True):
            verdict = read_order(reply, asked.passages(own))
            asked.count(verdict.kind, reply)
            orders[q][slice(*windows[q][turn])] = [own[place] for place in verdict.order]
        done += len(active)
    values = np.empty(len(asked.candidates.doc))
    for order in orders:
        values[order] = np.arange(len(order), 0, -1)
    return values


def _numbered(passages: tuple[str, ...]) -> str:
    return "\n\n".join(f"[{i}]\n<passage>\n{text}\n</passage>" for i, text in enumerate(passages, 1))


def _pairwise(asked: PromptedRanking) -> Float64:
    """The share of comparisons that each document wins, every two documents compared in both orders."""
    ptr, [template] = asked.candidates.ptr.tolist(), asked.scorer.templates
    pairs = [
        (a, b)
        for start, stop in pairwise(ptr)
        for a in range(start, stop)
        for b in range(start, stop)
        if a != b
    ]

    def prompt(number: int) -> ChatPrompt:
        rows = list(pairs[number])
        given = {"passages": _numbered(asked.passages(rows)), "count": "2"}
        return asked.prompt(asked.query_of_row[rows[0]], template, given)

    won, compared = np.zeros(ptr[-1]), np.zeros(ptr[-1])
    replies = asked.talk.replies(len(pairs), prompt, asked.told(0, len(pairs)))
    for rows, reply in zip(pairs, replies, strict=True):
        choice, kind = read_choice(reply, asked.passages(list(rows)))
        asked.count(kind, reply)
        if choice is not None:
            won[rows[choice - 1]] += 1
            compared[list(rows)] += 1
    with np.errstate(invalid="ignore"):
        return won / compared


def _subtask(asked: PromptedRanking) -> Float64:
    """The mean score for the requirements that the model names for each query."""
    naming, scoring = asked.scorer.templates
    count, ptr = len(asked.queries), asked.candidates.ptr
    searched = [q for q in range(count) if ptr[q + 1] > ptr[q]]
    named: dict[int, tuple[str, ...]] = {}
    replies = asked.talk.replies(len(searched), lambda number: asked.prompt(searched[number], naming, {}))
    for q, reply in zip(searched, replies, strict=True):
        named[q], kind = read_requirements(reply)
        asked.count(kind, reply)
    parts = [(row, need) for row, q in enumerate(asked.query_of_row) for need in named[q]]

    def prompt(number: int) -> ChatPrompt:
        row, need = parts[number]
        given = {"passage": asked.passage(row), "requirement": need}
        made = asked.prompt(asked.query_of_row[row], scoring, given)
        return replace(made, log_probabilities=LOG_PROBABILITIES) if asked.scorer.settings.expected else made

    total, scored = np.zeros(ptr[-1]), np.zeros(ptr[-1])
    answers = asked.talk.replies(len(parts), prompt, asked.told(0, len(parts)))
    for (row, _), reply in zip(parts, answers, strict=True):
        value = _score(asked, reply, asked.passage(row))
        if not np.isnan(value):
            total[row] += value
            scored[row] += 1
    with np.errstate(invalid="ignore"):
        return total / scored


@dataclass(frozen=True)
class Method:
    """score: what it makes of candidates; prompts: by name; places: that the last of them fills."""

    score: MethodFunction
    prompts: tuple[str, ...]
    places: tuple[str, ...]


METHODS = {
    "score": Method(lambda asked: _pointwise(asked, last=False), ("score",), ("query", "passage")),
    "reason": Method(lambda asked: _pointwise(asked, last=True), ("reason",), ("query", "passage")),
    "listwise": Method(_listwise, ("listwise",), ("query", "passages")),
    "pairwise": Method(_pairwise, ("pairwise",), ("query", "passages")),
    "subtask": Method(_subtask, ("requirements", "requirement"), ("passage", "requirement")),
}
