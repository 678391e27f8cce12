"""Methods that show a language model several documents at a time: listwise, set-wise and pairwise.

All queries are asked side by side, round after round: the prompts of a round are out together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np

from weir.core.strings import Float64
from weir.llm.chat_shapes import ChatPrompt
from weir.llm.expected_score import choice_chances
from weir.llm.orderings import read_order
from weir.llm.verdicts import read_choice
from weir.systems.rerank.llm_scorer import PromptedRanking
from weir.systems.rerank.llm_sorting import most_groups, sorting

__all__ = ["LOG_PROBABILITIES", "by_pairs", "listwise", "setwise"]

LOG_PROBABILITIES = 20
"""Alternatives of a token that are asked for, where a score or a choice is made of them."""

Rows: TypeAlias = tuple[int, ...]
"""Candidates of one query, in the order in which they stand in a prompt."""
Chooser: TypeAlias = Callable[[Sequence[Rows], Callable[[int], None] | None], list[int | None]]
"""(groups of candidates, progress) -> the best of each, None where the answer does not say."""


def listwise(asked: PromptedRanking) -> Float64:
    """The places that windows over each ranking give, window after window.

    A candidate that no answer put anywhere has no value.
    """
    [template] = asked.scorer.templates
    orders = asked.orders()
    windows = [asked.scorer.ordering.windows.over(len(order)) for order in orders]
    total, done = sum(map(len, windows)), 0
    placed = np.zeros(len(asked.candidates.doc), np.bool_)
    for turn in range(max(map(len, windows), default=0)):
        active = [q for q, own in enumerate(windows) if turn < len(own)]
        rows = [orders[q][slice(*windows[q][turn])] for q in active]

        def prompt(number: int, active: list[int] = active, rows: list[list[int]] = rows) -> ChatPrompt:
            return asked.prompt(active[number], template, rows[number])

        replies = asked.replies(template, len(active), prompt, asked.told(done, total))
        for q, own, (form, reply) in zip(active, rows, replies, strict=True):
            verdict = read_order(reply, form, len(own))
            asked.count(verdict.kind, reply, [place + 1 for place in verdict.order[: verdict.named]])
            orders[q][slice(*windows[q][turn])] = [own[place] for place in verdict.order]
            placed[own] |= verdict.named > 0
        done += len(active)
    values = np.empty(len(placed))
    for order in orders:
        values[order] = np.arange(len(order), 0, -1)
    return np.where(placed, values, np.nan)


def setwise(asked: PromptedRanking) -> Float64:
    """The places that a sort gives, of which each step asks for the best of several documents.

    Where an answer does not say which is best, the first of them in the first stage's order is.
    """

    def choose(groups: Sequence[Rows], progress: Callable[[int], None] | None) -> list[int | None]:
        chances = _chances(asked, groups, progress)
        return [
            None if one is None else rows[int(np.argmax(one))]
            for rows, one in zip(groups, chances, strict=True)
        ]

    return _sorted(asked, asked.scorer.ordering.window or 2, choose)


def by_pairs(asked: PromptedRanking) -> Float64:
    """Every two documents compared in both orders: the share of comparisons that each wins; or the places that a sort
    gives, of which each step compares two documents in both orders, and the first stage's order decides a draw."""
    if asked.scorer.ordering.sort != "all":
        return _sorted(asked, 2, lambda groups, progress: _better(asked, groups, progress))
    ptr = asked.candidates.ptr.tolist()
    spans = pairwise(ptr)
    pairs = [rows for start, stop in spans for rows in combinations(range(start, stop), 2)]
    both = [rows for a, b in pairs for rows in ((a, b), (b, a))]
    won, compared = np.zeros(ptr[-1]), np.zeros(ptr[-1])
    for rows, chances in zip(both, _chances(asked, both, asked.told(0, len(both))), strict=True):
        if chances is not None:
            won[list(rows)] += chances
            compared[list(rows)] += 1
    with np.errstate(invalid="ignore"):
        return won / compared


def _better(
    asked: PromptedRanking, groups: Sequence[Rows], progress: Callable[[int], None] | None
) -> list[int | None]:
    """The better of each two documents, by both orders together; None for a draw."""
    both = [rows for a, b in groups for rows in ((a, b), (b, a))]
    chances = _chances(asked, both, None if progress is None else lambda done: progress(done // 2))
    found: list[int | None] = []
    for number, (a, b) in enumerate(groups):
        forth, back = chances[2 * number], chances[2 * number + 1]
        lead = (0.0 if forth is None else forth[0] - forth[1]) + (0.0 if back is None else back[1] - back[0])
        found.append(a if lead > 0 else b if lead < 0 else None)
    return found


def _chances(
    asked: PromptedRanking, groups: Sequence[Rows], progress: Callable[[int], None] | None
) -> list[list[float] | None]:
    """How sure the model is of each document of some groups that it is the best, None where it does not say.

    One is 1 and the others 0, or by log-probabilities where they are told.
    """
    [template] = asked.scorer.templates
    soft = asked.scorer.settings.expected

    def prompt(number: int) -> ChatPrompt:
        rows = groups[number]
        made = asked.prompt(asked.query_of_row[rows[0]], template, rows)
        return replace(made, log_probabilities=LOG_PROBABILITIES) if soft else made

    found: list[list[float] | None] = []
    answers = asked.replies(template, len(groups), prompt, progress)
    for rows, (form, reply) in zip(groups, answers, strict=True):
        choice, kind = read_choice(reply, form, len(rows))
        asked.count(kind, reply, choice)
        told = choice_chances(reply, choice, len(rows)) if soft and choice is not None else None
        sure = None if choice is None else [float(place == choice) for place in range(1, len(rows) + 1)]
        found.append(told or sure)
    return found


def _sorted(asked: PromptedRanking, width: int, choose: Chooser) -> Float64:
    """The places that the ordering's sort gives, those behind its top in the first stage's order.

    Documents stand in a prompt in their initial order, so that the same of them are asked about once.
    """
    how, initial = asked.scorer.ordering, asked.orders()
    sort = str(how.sort)
    sorts = {q: sorting(sort, len(rows), width, how.top) for q, rows in enumerate(initial) if rows}
    total = sum(most_groups(sort, len(rows), width, how.top) for rows in initial)
    best: dict[Rows, int] = {}
    tops: dict[int, list[int]] = {}
    sent: dict[int, list[int] | None] = dict.fromkeys(sorts)
    while sent:
        wanted: dict[int, list[Rows]] = {}
        for q, answer in sent.items():
            try:
                groups = sorts[q].send(answer)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as done:
                tops[q] = [initial[q][place] for place in done.value]
                continue
            wanted[q] = [tuple(initial[q][place] for place in sorted(group)) for group in groups]
        new = [rows for q in wanted for rows in dict.fromkeys(wanted[q]) if rows not in best]
        found = choose(new, asked.told(len(best), total)) if new else []
        for rows, chosen in zip(new, found, strict=True):
            best[rows] = min(rows) if chosen is None else chosen
        sent = {q: [initial[q].index(best[rows]) for rows in groups] for q, groups in wanted.items()}
    values = np.full(len(asked.candidates.doc), np.nan)
    for q, top in tops.items():
        others = sorted(set(initial[q]) - set(top))
        values[[*top, *others]] = np.arange(len(initial[q]), 0, -1)
    return values
