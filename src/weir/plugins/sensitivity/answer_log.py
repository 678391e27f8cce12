"""What a language model was shown and said of it, answer by answer, while it re-ranks."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from weir.core.corpus import Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.conversation import conversation
from weir.llm.verdicts import SCORED_KINDS, VerdictKind
from weir.services.asking import ServiceUse
from weir.systems.protocol import IN_MEMORY, Context, Costs
from weir.systems.rerank.kept_places import kept_places
from weir.systems.rerank.llm_scorer import LLMScorer, PromptedRanking, Talk

__all__ = ["AskedTotals", "HeardAnswer", "LoggedScorer"]

_SHOWN = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)
"""A passage within its fence, which no passage can close (llm/passage_text.py)."""


@dataclass(frozen=True)
class HeardAnswer:
    """An answer. query: the identifier of the query that was asked about; prompt: a hash of all that was asked but for
    the sample; shown: hashes of the passages in their order; value: what the verdict says, None for nothing."""

    query: str
    prompt: bytes
    shown: tuple[bytes, ...]
    kind: VerdictKind
    value: object

    @property
    def clear(self) -> bool:
        """Whether the answer holds a verdict that is whole."""
        return self.kind in SCORED_KINDS and self.value is not None

    @property
    def first(self) -> int | None:
        """The place from 1 of the passage that a verdict over several puts first, None where there is none."""
        if not self.clear or len(self.shown) < 2:
            return None
        if isinstance(self.value, list):
            return int(self.value[0]) if self.value and isinstance(self.value[0], int) else None
        return self.value if isinstance(self.value, int) else None


@dataclass(frozen=True)
class AskedTotals:
    """What re-ranking took, answers from before among it: a prompt that is asked twice counts once.

    prompts; tokens, answer_tokens of them, 0 where they are not counted; dollars: NaN without a price; seconds: sum
    over answers, which may overlap; unclear: answers without a whole verdict.
    """

    prompts: int
    tokens: int
    answer_tokens: int
    dollars: float
    seconds: float
    unclear: int


@dataclass(eq=False)
class LoggedScorer:
    """A scorer by a language model that remembers what it heard; sample: which of several answers to a prompt it asks
    for, from 0."""

    scorer: LLMScorer
    sample: int = 0
    answers: list[HeardAnswer] = field(default_factory=list)
    use: ServiceUse = field(default_factory=lambda: ServiceUse(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """As LLMScorer.scores, which raises the same; without warnings, since what is unclear is counted."""
        if len(candidates.doc) == 0:
            return np.empty(0)
        scorer = self.scorer
        with conversation(scorer.chat, scorer.concurrency, self.use, context.reuse) as talk:
            log = _LoggedTalk(talk, self.sample)
            asked = PromptedRanking(scorer, log, queries, candidates, context.progress, log.hear)
            log.asking = lambda: asked.asking
            values = scorer.method(asked)
        names = queries.ids.tolist()
        self.answers += [
            HeardAnswer(names[query], prompt, shown, kind, value)
            for (query, prompt, shown), (kind, value) in zip(log.prompts, log.heard, strict=True)
        ]
        return kept_places(values, candidates.ptr)

    def costs(self) -> Costs:
        """What the model was asked."""
        return Costs(services=(self.use.named(self.scorer.chat.model),))

    def totals(self) -> AskedTotals:
        """What that took."""
        taken = list(self.use.milliseconds.values())
        return AskedTotals(
            len({answer.prompt for answer in self.answers}),
            self.use.tokens,
            self.use.answer_tokens,
            math.nan if self.use.dollars is None else self.use.dollars,
            math.fsum(math.fsum(one) for one in taken) / 1000,
            sum(not answer.clear for answer in self.answers),
        )


@dataclass(eq=False)
class _LoggedTalk:
    """A conversation of which each prompt and each verdict is noted, in the order of prompts."""

    talk: Talk
    sample: int
    asking: Callable[[], int] = field(default=lambda: -1)
    prompts: list[tuple[int, bytes, tuple[bytes, ...]]] = field(default_factory=list)
    heard: list[tuple[VerdictKind, object]] = field(default_factory=list)

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """The answers to so many prompts, in order."""
        noted: dict[int, tuple[int, bytes, tuple[bytes, ...]]] = {}

        def sampled(number: int) -> ChatPrompt:
            made = prompt_of(number)
            shown = tuple(map(_digest, _SHOWN.findall(made.user)))
            noted[number] = (self.asking(), _digest(repr(made)), shown)
            return replace(made, sample=self.sample)

        found = self.talk.replies(count, sampled, progress)  # every prompt has been made when this returns
        self.prompts += [noted[number] for number in range(count)]
        return found

    def hear(self, kind: VerdictKind, value: object) -> None:
        """An answer was read."""
        self.heard.append((kind, value))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
