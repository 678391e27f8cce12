"""How a language model orders candidates: one function for each method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weir.core.strings import Float64
from weir.llm.chat_shapes import ChatPrompt, ChatReply
from weir.llm.expected_score import expected_score
from weir.llm.verdicts import MAX_REQUIREMENTS, VerdictForm, read_requirements, read_score
from weir.systems.rerank.llm_comparing import LOG_PROBABILITIES, by_pairs, listwise, setwise
from weir.systems.rerank.llm_scorer import MethodFunction, PromptedRanking
from weir.systems.rerank.llm_sorting import most_groups
from weir.systems.rerank.llm_windows import Ordering

__all__ = ["METHODS", "Asking", "Method"]

PUBLISHED_LINE = "Score:"
"""The words before the score behind reasoning, in a prompt that is sent as published."""


def _pointwise(asked: PromptedRanking, last: bool) -> Float64:
    """The score of each document by itself; last: whether the score stands behind reasoning."""
    rows, [template] = len(asked.candidates.doc), asked.scorer.templates
    mean = asked.scorer.settings.expected and not last

    def prompt(row: int) -> ChatPrompt:
        made = asked.prompt(asked.query_of_row[row], template, [row])
        return replace(made, log_probabilities=LOG_PROBABILITIES) if mean else made

    values = np.full(rows, np.nan)
    answers = asked.replies(template, rows, prompt, asked.told(0, rows), PUBLISHED_LINE if last else "")
    for row, (form, reply) in enumerate(answers):
        values[row] = _score(asked, form, reply, row)
    return values


def _score(asked: PromptedRanking, form: VerdictForm, reply: ChatReply, row: int) -> float:
    """The score that an answer gives a candidate, NaN for none."""
    settings = asked.scorer.settings
    shown = asked.passages([row]) if form.last and not form.token else ()
    verdict = read_score(reply, form, settings.scale, shown)
    value = verdict.score
    if value is not None and settings.expected and not form.last and verdict.kind != "repaired":
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
    replies = asked.talk.replies(len(searched), lambda number: asked.prompt(searched[number], naming))
    for q, reply in zip(searched, replies, strict=True):
        named[q], kind = read_requirements(reply)
        asked.count(kind, reply, list(named[q]))
    parts = [(row, need) for row, q in enumerate(asked.query_of_row) for need in named[q]]

    def prompt(number: int) -> ChatPrompt:
        row, need = parts[number]
        made = asked.prompt(asked.query_of_row[row], scoring, [row], need)
        return replace(made, log_probabilities=LOG_PROBABILITIES) if asked.scorer.settings.expected else made

    total, scored = np.zeros(ptr[-1]), np.zeros(ptr[-1])
    answers = asked.replies(scoring, len(parts), prompt, asked.told(0, len(parts)))
    for (row, _), (form, reply) in zip(parts, answers, strict=True):
        value = _score(asked, form, reply, row)
        if not np.isnan(value):
            total[row] += value
            scored[row] += 1
    with np.errstate(invalid="ignore"):
        return total / scored


@dataclass(frozen=True)
class Asking:
    """Prompts of one kind about one query: which of the method's templates, how many at most, passages in each."""

    template: int
    prompts: int
    passages: int


@dataclass(frozen=True)
class Method:
    """A way to order candidates.

    score: what it makes of them; prompts: its templates by name; places: that the last of them fills; asks: what it
    asks at most about a query with so many candidates; takes: settings of an Ordering, and "scale", that mean something
    to it; window, sort: those of an Ordering where none is named.
    """

    score: MethodFunction
    prompts: tuple[str, ...]
    places: tuple[str, ...]
    asks: Callable[[Ordering, int], tuple[Asking, ...]]
    takes: tuple[str, ...] = ()
    window: int = 2
    sort: str = "all"


def _of_each(how: Ordering, count: int) -> tuple[Asking, ...]:
    return (Asking(0, count, 1),)


def _of_windows(how: Ordering, count: int) -> tuple[Asking, ...]:
    return (Asking(0, len(how.windows.over(count)), min(how.window or 2, count)),)


def _of_groups(how: Ordering, count: int) -> tuple[Asking, ...]:
    width = how.window or 2
    return (Asking(0, most_groups(str(how.sort), count, width, how.top), min(width, count)),)


def _of_pairs(how: Ordering, count: int) -> tuple[Asking, ...]:
    return (Asking(0, 2 * most_groups(str(how.sort), count, 2, how.top), 2),)


def _of_requirements(how: Ordering, count: int) -> tuple[Asking, ...]:
    return (Asking(0, min(count, 1), 0), Asking(1, MAX_REQUIREMENTS * count, 1))


METHODS = {
    "score": Method(
        lambda asked: _pointwise(asked, last=False),
        ("score",),
        ("query", "passage"),
        _of_each,
        takes=("scale",),
    ),
    "reason": Method(
        lambda asked: _pointwise(asked, last=True),
        ("reason",),
        ("query", "passage"),
        _of_each,
        takes=("scale",),
    ),
    "listwise": Method(
        listwise,
        ("listwise",),
        ("query", "passages"),
        _of_windows,
        takes=("window", "step", "passes", "order", "seed"),
        window=20,
    ),
    "setwise": Method(
        setwise,
        ("setwise",),
        ("query", "passages"),
        _of_groups,
        takes=("window", "sort", "top", "order", "seed"),
        window=4,
        sort="heapsort",
    ),
    "pairwise": Method(by_pairs, ("pairwise",), ("query", "passages"), _of_pairs, takes=("sort", "top")),
    "subtask": Method(
        _subtask,
        ("requirements", "requirement"),
        ("passage", "requirement"),
        _of_requirements,
        takes=("scale",),
    ),
}
