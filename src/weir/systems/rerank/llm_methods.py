"""How a language model orders candidates: one function for each method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from weir.core.strings import Float64
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.expected_score import expected_score
from weir.llm.orderings import read_order
from weir.llm.verdicts import read_choice, read_requirements, read_score
from weir.systems.rerank.llm_scorer import MethodFunction, PromptedRanking

__all__ = ["METHODS", "Method"]

LOG_PROBABILITIES = 20
"""Alternatives of a token that are asked for, where a score is their mean."""


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
