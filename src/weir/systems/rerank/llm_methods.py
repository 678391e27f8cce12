"""How a language model orders candidates: one function for each method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from weir.core.strings import Float64
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.expected_score import expected_score
from weir.llm.verdicts import read_requirements, read_score
from weir.systems.rerank.llm_comparing import LOG_PROBABILITIES, by_pairs, listwise, setwise
from weir.systems.rerank.llm_scorer import MethodFunction, PromptedRanking

__all__ = ["METHODS", "Method"]


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
    settings = asked.scorer.settings
    verdict = read_score(reply, passage, last, settings.scale)
    value = verdict.score
    if value is not None and settings.expected and not last:
        mean = expected_score(reply, verdict.written, settings.scale)
        value = value if mean is None else mean
    asked.count(verdict.kind, reply, value)
    return np.nan if value is None else value


def _subtask(asked: PromptedRanking) -> Float64:
    """The mean score for the requirements that the model names for each query."""
    naming, scoring = asked.scorer.templates
    count, ptr = len(asked.queries), asked.candidates.ptr
    searched = [q for q in range(count) if ptr[q + 1] > ptr[q]]
    named: dict[int, tuple[str, ...]] = {}
    replies = asked.talk.replies(len(searched), lambda number: asked.prompt(searched[number], naming, {}))
    for q, reply in zip(searched, replies, strict=True):
        named[q], kind = read_requirements(reply)
        asked.count(kind, reply, list(named[q]))
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
    """score: what it makes of candidates; prompts: by name; places: that the last of them fills; takes: settings of an
    Ordering, and "scale", that mean something to it; window, sort: those of an Ordering where none is named."""

    score: MethodFunction
    prompts: tuple[str, ...]
    places: tuple[str, ...]
    takes: tuple[str, ...] = ()
    window: int = 2
    sort: str = "all"


METHODS = {
    "score": Method(
        lambda asked: _pointwise(asked, last=False), ("score",), ("query", "passage"), takes=("scale",)
    ),
    "reason": Method(
        lambda asked: _pointwise(asked, last=True), ("reason",), ("query", "passage"), takes=("scale",)
    ),
    "listwise": Method(
        listwise,
        ("listwise",),
        ("query", "passages"),
        takes=("window", "step", "passes", "order", "seed"),
        window=20,
    ),
    "setwise": Method(
        setwise,
        ("setwise",),
        ("query", "passages"),
        takes=("window", "sort", "top", "order", "seed"),
        window=4,
        sort="heapsort",
    ),
    "pairwise": Method(by_pairs, ("pairwise",), ("query", "passages"), takes=("sort", "top")),
    "subtask": Method(
        _subtask, ("requirements", "requirement"), ("passage", "requirement"), takes=("scale",)
    ),
}
