"""What a language model was asked and answered about one ranking, and how that was read: from kept answers alone.

The method itself runs again over the answers that are kept, so a trace is of the code that made the ranking.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.llm.kept_conversation import KeptReply, UnknownAnswerError, kept_conversation
from weir.llm.verdicts import VerdictKind
from weir.systems.rerank.llm_reranker import LLMReranker
from weir.systems.rerank.llm_scorer import PromptedRanking

__all__ = ["NOT_KEPT", "Exchange", "traced"]

NOT_KEPT = "not kept here"


@dataclass(frozen=True)
class Exchange:
    """A prompt, its answer, and what was read from it.

    number: from 1, in the order asked; system_text, user_text: what was asked; answer: as it is kept, None where it is
    not; verdict: what became of it, "not kept here" without one; value: what it says, as JSON, "" for nothing; finish:
    why the answer ends; named: the model as it names itself; tokens_in, tokens_out: None where they were not told;
    milliseconds: that the answer took.
    """

    number: int
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


def traced(
    reranker: LLMReranker, corpus: Corpus, query: Queries, candidates: Run
) -> tuple[tuple[Exchange, ...], bool]:
    """(every prompt about the candidates of one query in the order asked, whether these are all of them).

    candidates: the first stage's, at most the re-ranker's depth. What follows from an answer that is not kept is not
    known. Raises StoreError for an answer that is damaged.
    """
    read: list[tuple[VerdictKind, object]] = []
    whole = True
    with kept_conversation(reranker.chat) as talk:
        scorer = reranker.ready(corpus)
        asked = PromptedRanking(
            scorer, talk, query, candidates, None, heard=lambda kind, value: read.append((kind, value))
        )
        try:
            if len(candidates.doc):
                scorer.method(asked)
        except UnknownAnswerError:
            whole = False
    return _exchanges(talk.said, read), whole


def _exchanges(said: Sequence[KeptReply], read: Sequence[tuple[VerdictKind, object]]) -> tuple[Exchange, ...]:
    return tuple(
        _exchange(number, one, kind, value)
        for number, (one, (kind, value)) in enumerate(zip(said, read, strict=True), 1)
    )


def _exchange(number: int, one: KeptReply, kind: VerdictKind, value: object) -> Exchange:
    reply, prompt = one.reply, one.prompt
    if reply is None:
        return Exchange(number, prompt.system, prompt.user, None, NOT_KEPT, "", "", "", None, None, None)
    said: Any = "" if value is None or value == [] else json.dumps(value, ensure_ascii=False)
    tokens = (reply.tokens_in, reply.tokens_out)
    told = (prompt.system, prompt.user, reply.text, kind, said, reply.finish, reply.model)
    return Exchange(number, *told, *tokens, one.milliseconds)
