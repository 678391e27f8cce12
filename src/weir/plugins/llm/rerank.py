"""The re-ranker `llm(...)`: its methods, sorts by a model's choices, and the trace of a ranking."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, warn_of_ranking
from weir.plugins.llm.chat import ChatModel, RecordedChat, UnknownAnswerError, cached_chat, default_model
from weir.plugins.llm.prompt_plan import CallBudget, PromptSettings, plan_of_words, prompt_plan
from weir.plugins.llm.prompts import (
    ChatPrompt,
    PromptTemplate,
    fenced,
    has_hidden_instruction,
    prompt_template,
)
from weir.plugins.llm.verdicts import (
    HIGHEST_SCORE,
    MAX_REQUIREMENTS,
    ChatReply,
    VerdictForm,
    VerdictKind,
    choice_chances,
    expected_score,
    read_choice,
    read_order,
    read_requirements,
    read_score,
)
from weir.registry import changed_settings, check_whole
from weir.services.answers import SCORED_KINDS, ServiceUsage
from weir.services.requests import shortened
from weir.systems.compose import behind, system_text
from weir.systems.protocol import (
    IN_MEMORY,
    RERANKERS,
    Context,
    Costs,
    Progress,
    called,
    check_depth,
    described_depth,
)
from weir.systems.rerank.reranking import VIEW, fill_unscored

if TYPE_CHECKING:
    from weir.datasets.load import Dataset

# ----------
# Orders in which documents are shown and asked about.


ORDERS = ("first stage", "reversed", "shuffled")
"""Orders of the candidates before the first prompt."""
SORTS = ("all", "heapsort", "bubblesort", "tournament")
"""Ways from choices to an order: all pairs, or a sort that needs fewer groups."""


def windows(count: int, window: int = 20, step: int = 10, passes: int = 1) -> list[tuple[int, int]]:
    """Return (start, stop) of each sliding window over `count` ranked documents; [] for fewer than 2.

    step: ranks between the ends of neighbouring windows, from 1 to `window`.
    passes: how often to go from the deepest window to the first, which may be shorter.
    """
    stops = [count - i * step for i in range(count)]
    needed = next((i for i, stop in enumerate(stops) if stop <= window), 0) + 1
    once = [(max(0, stop - window), stop) for stop in stops[:needed]]
    return once * passes if count > 1 else []


@dataclass(frozen=True)
class Ordering:
    """Settings of the order in which a method shows candidates; None is the method's default.

    Raises BadValue for a value out of range or not in SORTS or ORDERS.
    """

    window: int | None = None
    """Documents in a prompt."""
    step: int | None = None
    """Ranks between the starts of neighbouring windows."""
    passes: int = 1
    sort: str | None = None
    """A name in SORTS."""
    top: int = 10
    """First ranks that a sort fills; other documents follow in the first stage's order."""
    order: str = "first stage"
    """A name in ORDERS."""
    seed: int = 0
    """Seed of order="shuffled"."""

    def __post_init__(self) -> None:
        for name in ("window", "step", "passes", "top"):
            if name in ("passes", "top") or getattr(self, name) is not None:
                check_whole(f"llm: {name}", getattr(self, name))
        if self.window == 1:
            raise BadValue("llm: a window has 2 documents or more")
        if self.sort not in (None, *SORTS):
            raise BadValue(f"llm: sort is {self.sort!r}; expected {', '.join(SORTS)}")
        if self.order not in ORDERS:
            raise BadValue(f"llm: order is {self.order!r}; expected {', '.join(ORDERS)}")
        check_whole("llm: seed", self.seed, 0)

    @property
    def options(self) -> dict[str, object]:
        """Return {name: value} of the settings that differ from their defaults."""
        return changed_settings(self)

    def resolved(self, window: int, sort: str) -> Ordering:
        """Return a copy in which None becomes the method's `window` and `sort`, and half the window as `step`."""
        wide = self.window or window
        return replace(self, window=wide, step=self.step or max(1, wide // 2), sort=self.sort or sort)

    def windows(self, count: int) -> list[tuple[int, int]]:
        """Return `windows` over `count` documents; unresolved settings are window 2, step 1."""
        return windows(count, self.window or 2, self.step or 1, self.passes)

    def initial(self, count: int, query: str) -> list[int]:
        """Return the order of the candidates before the first prompt, a permutation of 0 to count - 1.

        A shuffle depends on the seed and the query's identifier only.
        """
        if self.order != "shuffled":
            return list(range(count)) if self.order == "first stage" else list(range(count - 1, -1, -1))
        seed = f"{self.seed} {query} ".encode("utf-8", "surrogatepass")
        return sorted(
            range(count), key=lambda place: hashlib.blake2b(seed + b"%d" % place, digest_size=8).digest()
        )


# ----------
# The parts of a prompt, and one re-ranking by a model.


@dataclass(frozen=True, eq=False)
class LLMScorer:
    """A language model that scores the candidates of queries by their texts."""

    reranker: LLMReranker
    corpus: Corpus
    usage: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """Return a score for each candidate, float64[candidates]; a candidate that no answer ranks keeps its rank.

        Warns (RankingWarning) of unreadable answers and possible prompt injections. Raises ServiceError if answers
        are missing; the others stay stored.
        """
        if len(candidates.doc) == 0:
            return np.empty(0)
        reranker = self.reranker
        with cached_chat(reranker.chat, reranker.concurrency, self.usage, context.reuse) as client:
            task = RerankTask(self, client, queries, candidates, context.progress)
            values = task.candidate_values()
        self.usage.verdicts.update(task.verdicts)
        self.usage.cut += task.cut
        unclear = {kind: n for kind, n in sorted(task.verdicts.items()) if kind not in SCORED_KINDS}
        if unclear:
            kinds = ", ".join(f"{n} {kind}" for kind, n in unclear.items())
            cut = f"; cut: {task.cut:,}, a higher max_tokens allows longer answers" if task.cut else ""
            parts = f"{sum(unclear.values()):,} of {task.verdicts.total():,}"
            message = f"{reranker}: {parts} answers hold no whole verdict "
            message += f"({kinds}); what they name is used, and the documents that they leave out keep their order{cut}"
            warn_of_ranking(message)
        flagged = task.flagged()
        self.usage.flagged += len(flagged)
        if flagged:
            others = f" and {len(flagged) - 1:,} others" if len(flagged) > 1 else ""
            message = (
                f"{reranker}: possible prompt injection in document '{self.corpus.ids[flagged[0]]}'{others}"
            )
            warn_of_ranking(message)
        return fill_unscored(values, candidates.ptr)

    def costs(self) -> Costs:
        return Costs(services=(self.usage.named(self.reranker.chat.model),))


class PromptRunner(Protocol):
    """An object that answers prompts, such as a CachedChatClient."""

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """Yield the answers to `count` prompts, in order.

        prompt_of: number from 0 -> prompt.
        progress: called with the number of prompts done.
        """


@dataclass(eq=False)
class RerankTask:
    """A re-ranking in progress."""

    scorer: LLMScorer
    client: PromptRunner
    queries: Queries
    candidates: Run
    progress: Progress | None
    on_verdict: Callable[[VerdictKind, object], None] | None = None
    """Called with (kind, verdict) of each answer, in the order of prompts."""
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)
    cut: int = 0
    """Answers without a verdict, cut at max_tokens."""
    query_shown: int = -1
    """Query of the latest prompt."""
    rows_shown: tuple[int, ...] = ()
    """Candidates in the latest prompt."""

    def __post_init__(self) -> None:
        reranker, metadata = self.scorer.reranker, self.queries.metadata
        self.templates, self.ordering = reranker.templates(), reranker.resolved
        self.settings = settings = reranker.prompts
        instructions = None if metadata is None else metadata.instruction
        self.texts = self.queries.text.tolist()
        own = [""] * len(self.texts) if instructions is None else instructions.tolist()
        self.objectives = [(text or settings.task) if settings.objective else "" for text in own]
        self.query_of_row = self.candidates.query_of_row().tolist()

    def candidate_values(self) -> Float64:
        """Return float64[candidates], higher is better; NaN if no answer gives a value."""
        return METHODS[self.scorer.reranker.method].score(self)

    def passages(self, rows: Sequence[int]) -> tuple[str, ...]:
        """Return the texts of candidates by row, cut to max_length estimated tokens and escaped by `fenced`."""
        texts = self.scorer.corpus.view_of(VIEW, self.candidates.doc[list(rows)]).tolist() if rows else ()
        return tuple(fenced(shortened(text, self.settings.max_length)) for text in texts)

    def filled_prompt(
        self,
        query: int,
        template: PromptTemplate,
        rows: Sequence[int] = (),
        requirement: str = "",
        log_probabilities: bool = False,
    ) -> ChatPrompt:
        """Return a prompt for a query with some of its candidates, in the given order, and note them as last shown.

        requirement: text for {requirement}; "" for none.
        """
        self.query_shown, self.rows_shown = query, tuple(rows)
        settings, passages = self.settings, self.passages(rows)
        blocks = [f"[{i}]\n<passage>\n{text}\n</passage>" for i, text in enumerate(passages, 1)]
        texts = {"query": self.texts[query], "scale": str(settings.scale), "requirement": requirement}
        texts |= {"passage": "".join(passages[:1]), "passages": "\n\n".join(blocks), "count": str(len(rows))}
        filled = template.filled_prompt(texts, self.objectives[query])
        return ChatPrompt(
            filled.system,
            filled.user.strip(),
            settings.max_tokens or template.max_tokens,
            settings.temperature,
            log_probabilities=LOG_PROBABILITIES if log_probabilities else 0,
            json=template.json,
            schema=template.schema,
            token=filled.token,
        )

    def _verdict_replies(
        self,
        template: PromptTemplate,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
        line: str = "",
    ) -> Iterator[tuple[VerdictForm, ChatReply]]:
        """Yield (form of the verdict, answer) of each prompt.

        line: words before the verdict in a published prompt; "" for Weir's prompts.
        """
        tokens: dict[int, str] = {}

        def noted(number: int) -> ChatPrompt:
            prompt = prompt_of(number)
            tokens[number] = prompt.token
            return prompt

        for number, reply in enumerate(self.client.replies(count, noted, progress)):
            yield VerdictForm(tokens.pop(number), template.object_answer, line, bool(line)), reply

    def orders(self) -> list[list[int]]:
        """Return the candidate rows of each query, in their order before the first prompt."""
        ptr, ids = self.candidates.ptr.tolist(), self.queries.ids
        initial = self.ordering.initial
        return [
            [start + place for place in initial(stop - start, ids[query])]
            for query, (start, stop) in enumerate(pairwise(ptr))
        ]

    def count(self, kind: VerdictKind, reply: ChatReply, value: object = None) -> None:
        """Count an answer by its kind of verdict, and pass kind and verdict (None for none) to `on_verdict`."""
        self.verdicts[kind] += 1
        self.cut += kind not in SCORED_KINDS and reply.finish == "length"
        if self.on_verdict is not None:
            self.on_verdict(kind, value)

    def _progress_callback(self, before: int, total: int) -> Callable[[int], None] | None:
        progress = self.progress
        return None if progress is None else lambda done: progress(before + done, total)

    def flagged(self) -> list[int]:
        """Return the corpus numbers of candidates with a possible prompt injection, each once, ascending."""
        documents = np.unique(self.candidates.doc)
        view = self.scorer.corpus.view_of
        return [int(d) for d in documents if has_hidden_instruction(view(VIEW, np.array([d])).tolist()[0])]


# ----------
# Sorting by choices. A sorting is a generator over places 0 to n - 1 of an initial order. It yields groups of places
# that can be judged side by side, is sent the best place of each, and returns the top places, best first.
#
# Source: Zhuang et al. 2024 (set-wise heap sort and bubble sort); Chen et al. 2025 (tournaments).


Groups: TypeAlias = list[tuple[int, ...]]
"""Groups of two or more positions; the model names the best of each."""
Sorting: TypeAlias = Generator[Groups, list[int], list[int]]


def sorting(sort: str, count: int, width: int, top: int) -> Sorting:
    """Return a generator that finds the best `top` of `count` documents; raises KeyError for an unknown sort.

    sort: "heapsort", "bubblesort" or "tournament".

    It yields groups of at most `width` positions, is sent the best of each, and returns the ranking.
    """
    sorts = {"heapsort": _heapsort, "bubblesort": _bubblesort, "tournament": _tournament}
    return sorts[sort](count, width, min(top, count))


def most_groups(sort: str, count: int, width: int, top: int) -> int:
    """Return an upper bound of the number of groups that `sorting` yields; for "all" the number of unordered
    pairs."""
    top = min(top, count)
    if sort == "all":
        return count * (count - 1) // 2
    if count < 2:
        return 0
    if sort == "heapsort":
        built = sum(_height(place, count, width) for place in range(count))
        sunk = sum(_height(0, count - out, width) for out in range(1, top))
        return (built + sunk) * (2 if width == 2 else 1)
    if sort == "bubblesort":
        return sum(-(-(count - done - 1) // (width - 1)) for done in range(top))
    rounds = _rounds(count, width)
    return sum(rounds) + (top - 1) * len(rounds)


def _best(groups: list[list[int]]) -> Generator[Groups, list[int], list[int]]:
    several = [tuple(group) for group in groups if len(group) > 1]
    best = iter((yield several) if several else [])
    return [next(best) if len(group) > 1 else group[0] for group in groups]


def _children(width: int) -> int:
    return max(2, width - 1)  # with a width of 2, two children are first compared with each other


def _height(place: int, count: int, width: int) -> int:
    levels = 0
    while (place := _children(width) * place + 1) < count:
        levels += 1
    return levels


def _heapsort(count: int, width: int, top: int) -> Sorting:
    heap = list(range(count))
    by_height: dict[int, list[int]] = {}
    for place in range(count):
        by_height.setdefault(_height(place, count, width), []).append(place)
    for height in range(1, max(by_height, default=0) + 1):
        yield from _sift(heap, by_height.get(height, []), width)
    ranking: list[int] = []
    while len(ranking) < top:
        ranking.append(heap[0])
        last = heap.pop()
        if heap and len(ranking) < top:
            heap[0] = last
            yield from _sift(heap, [0], width)
    return ranking


def _sift(heap: list[int], roots: list[int], width: int) -> Generator[Groups, list[int], None]:
    active = roots
    while active:
        families = []  # places of a parent and its children
        for root in active:
            first = _children(width) * root + 1
            families.append([root, *range(first, min(first + _children(width), len(heap)))])
        members = [[heap[at] for at in family] for family in families]
        if width > 2:
            best = yield from _best(members)
        else:  # the better child of each family, then that and the parent
            best = [family[0] for family in members]
            several = [number for number, family in enumerate(members) if len(family) > 1]
            better = yield from _best([members[number][1:] for number in several])
            pairs = [[members[number][0], child] for number, child in zip(several, better, strict=True)]
            winners = yield from _best(pairs)
            for number, winner in zip(several, winners, strict=True):
                best[number] = winner
        following = []
        for root, family, own, chosen in zip(active, families, members, best, strict=True):
            at = family[own.index(chosen)]
            if at != root:
                heap[root], heap[at] = heap[at], heap[root]
                following.append(at)
        active = following


def _bubblesort(count: int, width: int, top: int) -> Sorting:
    order = list(range(count))
    for done in range(min(top, count - 1)):
        stop = count
        while stop - done > 1:
            start = max(done, stop - width)
            [best] = yield from _best([order[start:stop]])
            order.remove(best)
            order.insert(start, best)
            stop = start + 1
    return order[:top]


def _rounds(count: int, width: int) -> list[int]:
    sizes = []
    while count > 1:
        count = -(-count // width)
        sizes.append(count)
    return sizes


def _tournament(count: int, width: int, top: int) -> Sorting:
    rounds: list[list[int | None]] = [list(range(count))]
    sizes = _rounds(count, width)
    for groups in sizes:
        members = [[m for m in rounds[-1][g::groups] if m is not None] for g in range(groups)]
        rounds.append(list((yield from _best(members))))
    ranking: list[int] = []
    while len(ranking) < top:
        winner = rounds[-1][0]
        assert winner is not None  # fewer were taken out than there are
        ranking.append(winner)
        if len(ranking) == top:
            break
        place = winner
        rounds[0][place] = None
        for number, groups in enumerate(sizes):
            place %= groups
            others = [m for m in rounds[number][place::groups] if m is not None]
            rounds[number + 1][place] = (yield from _best([others]))[0] if others else None
    return ranking


# ----------
# Methods. The queries are asked side by side, round after round.


LOG_PROBABILITIES = 20
"""Alternatives requested for each token, for scores and choices from log-probabilities."""

Rows: TypeAlias = tuple[int, ...]
"""Candidates of one query, in the order of a prompt."""
Chooser: TypeAlias = Callable[[Sequence[Rows], Callable[[int], None] | None], list[int | None]]
"""(groups of candidates, progress) -> the best of each group, None if the answer names none."""


def listwise(task: RerankTask) -> Float64:
    """Re-rank by sliding windows: return float64[candidates], higher is better; NaN if no answer ranked the
    document."""
    [template] = task.templates
    orders = task.orders()
    windows = [task.ordering.windows(len(order)) for order in orders]
    total, done = sum(map(len, windows)), 0
    placed = np.zeros(len(task.candidates.doc), np.bool_)
    for turn in range(max(map(len, windows), default=0)):
        active = [q for q, own in enumerate(windows) if turn < len(own)]
        rows = [orders[q][slice(*windows[q][turn])] for q in active]

        def group_prompt(number: int, active: list[int] = active, rows: list[list[int]] = rows) -> ChatPrompt:
            return task.filled_prompt(active[number], template, rows[number])

        replies = task._verdict_replies(
            template, len(active), group_prompt, task._progress_callback(done, total)
        )
        for q, own, (form, reply) in zip(active, rows, replies, strict=True):
            verdict = read_order(reply, form, len(own))
            task.count(verdict.kind, reply, [place + 1 for place in verdict.order[: verdict.ranked]])
            orders[q][slice(*windows[q][turn])] = [own[place] for place in verdict.order]
            placed[own] |= verdict.ranked > 0
        done += len(active)
    values = np.empty(len(placed))
    for order in orders:
        values[order] = np.arange(len(order), 0, -1)
    return np.where(placed, values, np.nan)


def setwise(task: RerankTask) -> Float64:
    """Re-rank by a sort whose answers name the best of several documents: return float64[candidates], higher is
    better.

    An unreadable answer chooses the document that the first stage ranks first.
    """

    def choose(groups: Sequence[Rows], progress: Callable[[int], None] | None) -> list[int | None]:
        chances = _chances(task, groups, progress)
        return [
            None if one is None else rows[int(np.argmax(one))]
            for rows, one in zip(groups, chances, strict=True)
        ]

    return _sorted(task, task.ordering.window or 2, choose)


def _by_pairs(task: RerankTask) -> Float64:
    """Return each candidate's share of won comparisons (NaN without answers), or score by a sort."""

    def better(groups: Sequence[Rows], progress: Callable[[int], None] | None) -> list[int | None]:
        both = [rows for a, b in groups for rows in ((a, b), (b, a))]
        chances = _chances(task, both, None if progress is None else lambda done: progress(done // 2))
        winners: list[int | None] = []
        for number, (a, b) in enumerate(groups):
            forth, back = chances[2 * number], chances[2 * number + 1]
            lead = 0.0 if forth is None else forth[0] - forth[1]
            lead += 0.0 if back is None else back[1] - back[0]
            winners.append(a if lead > 0 else b if lead < 0 else None)
        return winners

    if task.ordering.sort != "all":
        return _sorted(task, 2, better)
    ptr = task.candidates.ptr.tolist()
    spans = pairwise(ptr)
    pairs = [rows for start, stop in spans for rows in combinations(range(start, stop), 2)]
    both = [rows for a, b in pairs for rows in ((a, b), (b, a))]
    won, compared = np.zeros(ptr[-1]), np.zeros(ptr[-1])
    for rows, chances in zip(both, _chances(task, both, task._progress_callback(0, len(both))), strict=True):
        if chances is not None:
            won[list(rows)] += chances
            compared[list(rows)] += 1
    with np.errstate(invalid="ignore"):
        return won / compared


def _chances(
    task: RerankTask, groups: Sequence[Rows], progress: Callable[[int], None] | None
) -> list[list[float] | None]:
    [template] = task.templates
    soft = task.settings.expected

    def pair_prompt(number: int) -> ChatPrompt:
        rows = groups[number]
        return task.filled_prompt(task.query_of_row[rows[0]], template, rows, log_probabilities=soft)

    chances: list[list[float] | None] = []
    answers = task._verdict_replies(template, len(groups), pair_prompt, progress)
    for rows, (form, reply) in zip(groups, answers, strict=True):
        choice, kind = read_choice(reply, form, len(rows))
        task.count(kind, reply, choice)
        likely = choice_chances(reply, choice, len(rows)) if soft and choice is not None else None
        sure = None if choice is None else [float(place == choice) for place in range(1, len(rows) + 1)]
        chances.append(likely or sure)
    return chances


def _sorted(task: RerankTask, width: int, choose: Chooser) -> Float64:
    initial, sort, top_places = task.orders(), str(task.ordering.sort), task.ordering.top
    sorts = {q: sorting(sort, len(rows), width, top_places) for q, rows in enumerate(initial) if rows}
    total = sum(most_groups(sort, len(rows), width, top_places) for rows in initial)
    best: dict[Rows, int] = {}
    tops: dict[int, list[int]] = {}
    sent: dict[int, list[int] | None] = dict.fromkeys(sorts)
    while sent:
        groups_of_query: dict[int, list[Rows]] = {}
        for q, answer in sent.items():
            try:
                groups = sorts[q].send(answer)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as done:
                tops[q] = [initial[q][place] for place in done.value]
                continue
            groups_of_query[q] = [tuple(initial[q][place] for place in sorted(group)) for group in groups]
        new = [
            rows for q in groups_of_query for rows in dict.fromkeys(groups_of_query[q]) if rows not in best
        ]
        choices = choose(new, task._progress_callback(len(best), total)) if new else []
        for rows, chosen in zip(new, choices, strict=True):
            best[rows] = min(rows) if chosen is None else chosen
        sent = {q: [initial[q].index(best[rows]) for rows in groups] for q, groups in groups_of_query.items()}
    values = np.full(len(task.candidates.doc), np.nan)
    for q, top in tops.items():
        others = sorted(set(initial[q]) - set(top))
        values[[*top, *others]] = np.arange(len(initial[q]), 0, -1)
    return values


PUBLISHED_LINE = "Score:"
"""The words before a score that follows reasoning, in a prompt sent as published."""


def _pointwise(task: RerankTask, last: bool) -> Float64:
    """Return the model's score of each document, float64[candidates]; NaN if unreadable.

    last: True if the answer gives reasons before the score.
    """
    rows, [template] = len(task.candidates.doc), task.templates
    mean = task.settings.expected and not last

    def prompt(row: int) -> ChatPrompt:
        return task.filled_prompt(task.query_of_row[row], template, [row], log_probabilities=mean)

    values = np.full(rows, np.nan)
    answers = task._verdict_replies(
        template, rows, prompt, task._progress_callback(0, rows), PUBLISHED_LINE if last else ""
    )
    for row, (form, reply) in enumerate(answers):
        values[row] = _score(task, form, reply, row)
    return values


def _score(task: RerankTask, form: VerdictForm, reply: ChatReply, row: int) -> float:
    settings = task.settings
    passages = task.passages([row]) if form.last and not form.token else ()
    verdict = read_score(reply, form, settings.scale, passages)
    value = verdict.score
    if value is not None and settings.expected and not form.last and verdict.kind != "repaired":
        mean = expected_score(reply, verdict.written, settings.scale)
        value = value if mean is None else mean
    task.count(verdict.kind, reply, value)
    return np.nan if value is None else value


def subtask(task: RerankTask) -> Float64:
    """Return each document's mean score over the requirements that the model names for its query,
    float64[candidates]; NaN if no score is readable."""
    naming, scoring = task.templates
    count, ptr = len(task.queries), task.candidates.ptr
    searched = [q for q in range(count) if ptr[q + 1] > ptr[q]]
    requirements: dict[int, tuple[str, ...]] = {}
    replies = task.client.replies(len(searched), lambda number: task.filled_prompt(searched[number], naming))
    for q, reply in zip(searched, replies, strict=True):
        requirements[q], kind = read_requirements(reply)
        task.count(kind, reply, list(requirements[q]))
    parts = [(row, need) for row, q in enumerate(task.query_of_row) for need in requirements[q]]

    def prompt(number: int) -> ChatPrompt:
        row, need = parts[number]
        mean = task.settings.expected
        return task.filled_prompt(task.query_of_row[row], scoring, [row], need, log_probabilities=mean)

    total, scored = np.zeros(ptr[-1]), np.zeros(ptr[-1])
    answers = task._verdict_replies(scoring, len(parts), prompt, task._progress_callback(0, len(parts)))
    for (row, _), (form, reply) in zip(parts, answers, strict=True):
        value = _score(task, form, reply, row)
        if not np.isnan(value):
            total[row] += value
            scored[row] += 1
    with np.errstate(invalid="ignore"):
        return total / scored


@dataclass(frozen=True)
class Method:
    """A method of `llm(...)`: scoring function, prompts, accepted settings and defaults."""

    score: Callable[[RerankTask], Float64]
    """Returns a value for each candidate, NaN for none."""
    prompts: tuple[str, ...]
    """Names of its templates, in the order of use."""
    places: tuple[str, ...]
    """Placeholders that the last template must contain."""
    max_calls: Callable[[Ordering, int], tuple[CallBudget, ...]]
    """(ordering, candidates of a query) -> upper bounds of its prompts."""
    takes: tuple[str, ...] = ()
    """Settings of Ordering that it accepts, and "scale"."""
    window: int = 2
    sort: str = "all"


def _one_call_each(ordering: Ordering, count: int) -> tuple[CallBudget, ...]:
    return (CallBudget(0, count, 1),)


def _calls_of_groups(ordering: Ordering, count: int) -> tuple[CallBudget, ...]:
    width = ordering.window or 2
    groups = most_groups(str(ordering.sort), count, width, ordering.top)
    return (CallBudget(0, groups, min(width, count)),)


METHODS = {
    "score": Method(
        lambda task: _pointwise(task, last=False),
        ("score",),
        ("query", "passage"),
        _one_call_each,
        takes=("scale",),
    ),
    "reason": Method(
        lambda task: _pointwise(task, last=True),
        ("reason",),
        ("query", "passage"),
        _one_call_each,
        takes=("scale",),
    ),
    "listwise": Method(
        listwise,
        ("listwise",),
        ("query", "passages"),
        lambda ordering, n: (CallBudget(0, len(ordering.windows(n)), min(ordering.window or 2, n)),),
        takes=("window", "step", "passes", "order", "seed"),
        window=20,
    ),
    "setwise": Method(
        setwise,
        ("setwise",),
        ("query", "passages"),
        _calls_of_groups,
        takes=("window", "sort", "top", "order", "seed"),
        window=4,
        sort="heapsort",
    ),
    "pairwise": Method(
        _by_pairs,
        ("pairwise",),
        ("query", "passages"),
        lambda ordering, n: (CallBudget(0, 2 * most_groups(str(ordering.sort), n, 2, ordering.top), 2),),
        takes=("sort", "top"),
    ),
    "subtask": Method(
        subtask,
        ("requirements", "requirement"),
        ("passage", "requirement"),
        lambda _, n: (CallBudget(0, min(n, 1), 0), CallBudget(1, MAX_REQUIREMENTS * n, 1)),
        takes=("scale",),
    ),
}

# ----------
# The re-ranker: the model, the method and the parts of its prompt as one value.


CONCURRENCY = 8
"""Default number of concurrent requests."""


@dataclass(frozen=True)
class LLMReranker:
    """The re-ranker `llm(...)`: a language model re-orders the first `depth` documents of each ranking.

    Raises BadValue for a value out of range, or a setting that the method does not take.
    """

    method: str
    chat: ChatModel
    depth: int | None = None
    ordering: Ordering = field(default_factory=Ordering)
    prompts: PromptSettings = field(default_factory=PromptSettings)
    concurrency: int = CONCURRENCY

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise BadValue(f"llm: method is {self.method!r}; expected {', '.join(METHODS)}")
        changed = self.ordering.options | ({} if self.prompts.scale == HIGHEST_SCORE else {"scale": 0})
        for name in changed:
            if name not in METHODS[self.method].takes:
                takers = ", ".join(f'"{other}"' for other, method in METHODS.items() if name in method.takes)
                raise BadValue(f'llm: {name} belongs to {takers}; "{self.method}" does not take it')
        if "seed" in changed and self.ordering.order != "shuffled":
            raise BadValue('llm: seed is that of order="shuffled"')
        if self.method == "setwise" and self.ordering.sort == "all":
            raise BadValue('llm: "setwise" sorts by heapsort, bubblesort or tournament, not by all')
        if "top" in changed and self.method == "pairwise" and self.resolved.sort == "all":
            raise BadValue('llm: "pairwise" has a top where it sorts: sort="heapsort"')
        if self.method == "listwise" and (self.resolved.step or 1) > (self.resolved.window or 2):
            raise BadValue("llm: a step is no longer than the window")
        check_depth("llm", self.depth)
        check_whole("llm: concurrency", self.concurrency, 1, 256)
        self.templates()

    @property
    def resolved(self) -> Ordering:
        """The ordering with the method's window and sort filled in."""
        method = METHODS[self.method]
        return self.ordering.resolved(method.window, method.sort)

    __repr__ = system_text
    __rrshift__ = behind

    def __str__(self) -> str:
        options: dict[str, object] = {"model": self.chat.model}
        options |= {} if self.depth is None else {"depth": self.depth}
        options |= self.ordering.options
        for setting in fields(self.prompts):
            value = getattr(self.prompts, setting.name)
            if setting.name != "task" and value != setting.default:
                options[setting.name] = value
        options |= self.chat.options
        options |= {} if self.concurrency == CONCURRENCY else {"concurrency": self.concurrency}
        return called("llm", [self.method], options)

    @property
    def service(self) -> str:
        return self.chat.model

    def templates(self) -> tuple[PromptTemplate, ...]:
        method = METHODS[self.method]
        *first, last = method.prompts
        own = self.prompts.prompt
        before = [prompt_template(name, ("query",)) for name in first]
        return (*before, prompt_template(last if own is None else own, method.places))

    def max_calls(self, candidates: int) -> tuple[CallBudget, ...]:
        return METHODS[self.method].max_calls(self.resolved, candidates)

    def describe(self) -> dict[str, object]:
        takes = [name for name in METHODS[self.method].takes if name != "scale"]
        ordering = {name: getattr(self.resolved, name) for name in takes}
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
        self.chat.fetch()

    def adapted_to(self, collection: str, instruction: str) -> LLMReranker:
        if not self.prompts.objective or not instruction:
            return self
        return replace(self, prompts=replace(self.prompts, task=instruction))

    @property
    def local(self) -> bool:
        return self.chat.local

    def for_collection(self, dataset: Dataset) -> LLMReranker:
        metadata = dataset.queries.metadata
        own = None if metadata is None or metadata.instruction is None else metadata.instruction.lengths()
        if self.prompts.task or (own is not None and bool(own.any())):
            return self
        return replace(self, prompts=replace(self.prompts, objective=False))

    def asked(self) -> dict[str, object]:
        described = self.describe()
        alone = self.method in ("score", "reason", "subtask")
        if alone or (self.method == "pairwise" and described.get("sort") == "all"):
            del described["depth"]
        return described

    plan_prompts = prompt_plan
    plan_words = plan_of_words

    def ready(self, corpus: Corpus, context: Context = IN_MEMORY) -> LLMScorer:
        return LLMScorer(self, corpus)


@RERANKERS.register("llm")
@named_arguments
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
    """Order the first documents of each ranking by a language model, whose answers are stored.

    A document that no readable answer ranks keeps its rank. Raises BadValue, UnknownName and FormatError for
    settings.

    method: "score" asks for 0 to `scale` for each document, "reason" for the same after reasoning. "listwise"
        asks for orders of sliding windows, from the last documents to the first. "setwise" asks for the best
        of `window` documents, "pairwise" for the better of two in both orders. "subtask" asks once for a
        query's requirements, then for a score of each document for each of them.
    model: ADDRESS#NAME of a server that speaks OpenAI's API, openai:NAME, anthropic:NAME, gemini:NAME, or
        transformers: and a folder or a name on the hub. None is WEIR_LLM.
    depth: documents re-ranked for each query. None is the first 100, or all candidates that a collection lists.
    window: documents in a prompt. None is 20 for "listwise" and 4 for "setwise".
    step: places from one window to the next. None is half a window.
    passes: how often the windows pass over the ranking.
    sort: "heapsort", "bubblesort" or "tournament", for "pairwise" also "all".
    top: number of first places that a sort fills.
    order: order before the first prompt: "first stage", "reversed" or "shuffled".
    seed: seed of "shuffled".
    objective: put the query's or the collection's instruction into the prompt.
    prompt: TOML file of a prompt to use instead of Weir's own.
    temperature: None leaves it to the model.
    max_tokens: limit of an answer. None takes the prompt's.
    max_length: limit of a document, in estimated tokens.
    expected: use log-probabilities if the model returns them: the mean score, the likeliest choice.
    scale: highest score.
    base: another address of the provider's API, up to its version.
    key: environment variable that holds the key. None takes the provider's usual one at its own address.
    version: your label for a version of a model that may change.
    concurrency: requests at a time.

    Source: Qin et al. 2024 (pairwise), Sun et al. 2023 (listwise), Zhuang et al. 2024 (set-wise), Chen et al.
        2025 (tournament), Wang et al. 2024 (BIRCO).
    """
    settings = PromptSettings(objective, prompt, temperature, max_tokens, max_length, expected, scale)
    chat = ChatModel(default_model() if model is None else model, base, key, version)
    ordering = Ordering(window, step, passes, sort, top, order, seed)
    return LLMReranker(method, chat, depth, ordering, settings, concurrency)


# ----------
# A trace of one ranking: the method runs again over the stored answers.


NOT_KEPT = "not kept here"


@dataclass(frozen=True)
class Exchange:
    """A prompt, its stored answer, and the verdict read from it."""

    number: int
    """From 1, in the order asked."""
    documents: tuple[str, ...]
    """Documents in the prompt, in its order."""
    system_text: str
    user_text: str
    answer: str | None
    """None if it is not stored."""
    verdict: str
    """Kind of the verdict; NOT_KEPT without an answer."""
    value: str
    """The verdict as JSON; "" for none."""
    finish: str
    """Why the answer ended, in the provider's word."""
    named: str
    """The model's own name for itself."""
    tokens_in: int | None
    tokens_out: int | None
    milliseconds: float | None
    time: str = ""
    """Arrival in UTC, ISO 8601; "" if not stored."""


def traced(
    reranker: LLMReranker, recorded: RecordedChat, corpus: Corpus, query: Queries, candidates: Run
) -> tuple[tuple[Exchange, ...], bool, tuple[str, ...]]:
    """Return (prompts about a query in order, True if complete, documents with possible prompt injections).

    recorded: a client without exchanges, not to be used again.
    candidates: the first stage's ranking, cut at the re-ranker's depth.

    The re-ranking runs again on stored answers; prompts that depend on a missing answer are left out.
    """
    verdicts: list[tuple[VerdictKind, object]] = []
    whole = True
    task = RerankTask(
        reranker.ready(corpus),
        recorded,
        query,
        candidates,
        None,
        on_verdict=lambda kind, value: verdicts.append((kind, value)),
    )
    recorded.showing = lambda: task.rows_shown
    try:
        if len(candidates.doc):
            task.candidate_values()
    except UnknownAnswerError:
        whole = False
    exchanges = []
    for number, (one, (kind, value)) in enumerate(zip(recorded.exchanges, verdicts, strict=True), 1):
        reply, prompt = one.reply, one.prompt
        documents = tuple(candidates.docs[int(candidates.doc[row])] for row in one.about)
        prompt_facts = (number, documents, prompt.system, prompt.user)
        if reply is None:
            exchanges.append(Exchange(*prompt_facts, None, NOT_KEPT, "", "", "", None, None, None))
            continue
        verdict = "" if value is None or value == [] else json.dumps(value, ensure_ascii=False)
        answer = (reply.text, kind, verdict, reply.finish, reply.model)
        tokens = (reply.tokens_in, reply.tokens_out)
        exchanges.append(Exchange(*prompt_facts, *answer, *tokens, one.milliseconds, one.time))
    flagged = tuple(corpus.ids[document] for document in task.flagged())
    return tuple(exchanges), whole, flagged
