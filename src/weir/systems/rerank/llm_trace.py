"""What a language model was asked and answered about one ranking, and how that was read: from kept answers alone.

The method itself runs again over the answers that are kept, so a trace is of the code that made the ranking.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.llm.kept_conversation import KeptConversation, KeptReply, UnknownAnswerError
from weir.llm.verdicts import VerdictKind
from weir.systems.rerank.llm_reranker import LLMReranker
from weir.systems.rerank.llm_scorer import PromptedRanking

__all__ = ["NOT_KEPT", "Exchange", "QueryExchanges", "traced"]

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
