"""How a language model orders candidates: one function for each method, and sorting by choices."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations, pairwise
from typing import Protocol, TypeAlias

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Float64
from weir.errors import BadValue, RankingWarning
from weir.models.chat import ChatModel
from weir.models.chat_shapes import ChatPrompt, ChatReply
from weir.models.conversation import conversation
from weir.models.prompts import PromptTemplate, fenced, has_hidden_instruction, shortened
from weir.models.verdicts import (
    HIGHEST_SCORE,
    MAX_REQUIREMENTS,
    SCORED_KINDS,
    VerdictForm,
    VerdictKind,
    choice_chances,
    expected_score,
    read_choice,
    read_order,
    read_requirements,
    read_score,
)
from weir.services.answers import ServiceUse
from weir.systems.protocol import IN_MEMORY, Context, Costs, Progress
from weir.systems.rerank.reranking import VIEW, kept_places

# ----------
# How a language model is shown several documents at a time, and which of the orders that come of it count.


ORDERS = ("first stage", "reversed", "shuffled")
"""Orders in which documents stand before the model is asked."""
SORTS = ("all", "heapsort", "bubblesort", "tournament")
"""Which groups of documents are compared: every one, or those that a sort needs."""


@dataclass(frozen=True)
class Windows:
    """The windows of a listwise order: documents of one, how far the next is from it, how often over all of them."""

    window: int = 20
    step: int = 10
    passes: int = 1

    def __post_init__(self) -> None:
        _check_counts("llm", {f.name: getattr(self, f.name) for f in fields(self)})
        if self.window < 2 or self.step > self.window:
            raise BadValue("llm: a window has 2 documents or more, and a step is no longer than it")

    def over(self, count: int) -> list[tuple[int, int]]:
        """(start, stop) of each window over so many documents, the last documents first; () for one alone."""
        stops = [count - i * self.step for i in range(count)]
        needed = next((i for i, stop in enumerate(stops) if stop <= self.window), 0) + 1
        once = [(max(0, stop - self.window), stop) for stop in stops[:needed]]
        return once * self.passes if count > 1 else []


@dataclass(frozen=True)
class Ordering:
    """How an order of documents is asked for; None takes the method's own.

    window: documents of a prompt; step, passes: see Windows; sort: one of SORTS; top: how many of the first places a
    sort fills, the others keep the first stage's order behind them; order: one of ORDERS, in which the documents stand
    before the first prompt; seed: of the shuffled order.
    """

    window: int | None = None
    step: int | None = None
    passes: int = 1
    sort: str | None = None
    top: int = 10
    order: str = "first stage"
    seed: int = 0

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("window", "step")}
        given = {name: value for name, value in given.items() if value is not None}
        _check_counts("llm", given | {"passes": self.passes, "top": self.top})
        if self.window == 1:
            raise BadValue("llm: a window has 2 documents or more")
        if self.sort not in (None, *SORTS):
            raise BadValue(f"llm: sort is {self.sort!r}; expected {', '.join(SORTS)}")
        if self.order not in ORDERS:
            raise BadValue(f"llm: order is {self.order!r}; expected {', '.join(ORDERS)}")
        if type(self.seed) is not int or self.seed < 0:
            raise BadValue(f"llm: seed is {self.seed!r}; expected a whole number from 0")

    @property
    def given(self) -> dict[str, object]:
        """What is not by default."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def resolved(self, window: int, sort: str) -> Ordering:
        """The same with a method's window and sort where none is named, and half of the window as the step."""
        wide = self.window or window
        return replace(self, window=wide, step=self.step or max(1, wide // 2), sort=self.sort or sort)

    @property
    def windows(self) -> Windows:
        """The windows of a listwise order, once resolved; raises BadValue for a step that leaves documents out."""
        return Windows(self.window or 2, self.step or 1, self.passes)

    def initial(self, count: int, query: str) -> list[int]:
        """The places of so many documents in the order in which they stand before the first prompt.

        A shuffled order is that of hashes of seed, query's identifier and place: whatever other queries there are, and
        whatever draws random numbers.
        """
        if self.order == "shuffled":
            begun = hashlib.blake2b(f"{self.seed} {query} ".encode("utf-8", "surrogatepass"), digest_size=8)
            return sorted(range(count), key=lambda place: _hashed(begun, place))
        return list(range(count)) if self.order == "first stage" else list(range(count - 1, -1, -1))


def _hashed(begun: hashlib.blake2b, place: int) -> bytes:
    whole = begun.copy()
    whole.update(b"%d" % place)
    return whole.digest()


def _check_counts(who: str, given: dict[str, object]) -> None:
    for name, value in given.items():
        if type(value) is not int or value < 1:
            raise BadValue(f"{who}: {name} is {value!r}; expected a whole number from 1")


# ----------
# A language model that is asked about candidates: the frame of every method, and what became of the answers.


MAX_SCALE = 100
"""The highest score that a model may be asked for."""


@dataclass(frozen=True)
class PromptSettings:
    """The parts of a prompt; see llm(...). task: the collection's instruction, for queries without their own."""

    objective: bool = True
    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    max_length: int | None = None
    expected: bool = True
    scale: int = HIGHEST_SCORE
    task: str = ""

    def __post_init__(self) -> None:
        if type(self.scale) is not int or not 1 <= self.scale <= MAX_SCALE:
            raise BadValue(f"llm: scale is {self.scale!r}; expected a whole number from 1 to {MAX_SCALE}")
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
    ordering: Ordering
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
        self.use.cut += asked.cut
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


class Talk(Protocol):
    """What answers prompts, such as a Conversation."""

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """The answers to so many prompts, in order."""
        ...


@dataclass(eq=False)
class PromptedRanking:
    """One re-ranking: the queries, their candidates, the model.

    heard: told of each answer, in the order of `talk`, what became of it and what it says; verdicts, cut: how many
    answers there were of each kind, and how many without a verdict were cut; asking: the number of the query that the
    latest prompt is about; showing: the candidates that it shows.
    """

    scorer: LLMScorer
    talk: Talk
    queries: Queries
    candidates: Run
    progress: Progress | None
    heard: Callable[[VerdictKind, object], None] | None = None
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)
    cut: int = 0
    asking: int = -1
    showing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        metadata = self.queries.metadata
        own = None if metadata is None else metadata.instruction
        settings, texts = self.scorer.settings, self.queries.text.tolist()
        told = [""] * len(texts) if own is None else own.tolist()
        self.texts = texts
        self.objectives = [(t or settings.task) if settings.objective else "" for t in told]
        self.query_of_row = self.candidates.query_of_row().tolist()

    def passages(self, rows: Sequence[int]) -> tuple[str, ...]:
        """The documents of candidates, as they stand in prompts."""
        texts = self.scorer.corpus.view_of(VIEW, self.candidates.doc[list(rows)]).tolist() if rows else ()
        return tuple(fenced(shortened(text, self.scorer.settings.max_length)) for text in texts)

    def prompt(
        self, query: int, template: PromptTemplate, rows: Sequence[int] = (), requirement: str = ""
    ) -> ChatPrompt:
        """A prompt about a query that shows some of its candidates, in this order."""
        self.asking, self.showing = query, tuple(rows)
        settings, passages = self.scorer.settings, self.passages(rows)
        said = {"query": self.texts[query], "scale": str(settings.scale), "requirement": requirement}
        said |= {"passage": "".join(passages[:1]), "passages": _numbered(passages), "count": str(len(rows))}
        filled = template.filled(said, self.objectives[query])
        return ChatPrompt(
            filled.system,
            filled.user.strip(),
            settings.max_tokens or template.max_tokens,
            settings.temperature,
            json=template.json,
            schema=template.schema,
            token=filled.token,
        )

    def replies(
        self,
        template: PromptTemplate,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
        line: str = "",
    ) -> Iterator[tuple[VerdictForm, ChatReply]]:
        """The answers to so many prompts of a template, in order, each with the form that its verdict has to have.

        line: the words before a verdict behind reasoning, in a prompt that is sent as published; "" where none stands
        before it.
        """
        tokens: dict[int, str] = {}

        def noted(number: int) -> ChatPrompt:
            made = prompt_of(number)
            tokens[number] = made.token
            return made

        for number, reply in enumerate(self.talk.replies(count, noted, progress)):
            yield VerdictForm(tokens.pop(number), template.object_answer, line, bool(line)), reply

    def orders(self) -> list[list[int]]:
        """The candidates of each query, as rows, in the order in which they stand before the first prompt."""
        ptr, ids = self.candidates.ptr.tolist(), self.queries.ids
        initial = self.scorer.ordering.initial
        return [
            [start + place for place in initial(stop - start, ids[query])]
            for query, (start, stop) in enumerate(pairwise(ptr))
        ]

    def count(self, kind: VerdictKind, reply: ChatReply, value: object = None) -> None:
        """An answer was read; value: what it says, None for nothing."""
        self.verdicts[kind] += 1
        self.cut += kind not in SCORED_KINDS and reply.finish == "length"
        if self.heard is not None:
            self.heard(kind, value)

    def told(self, before: int, total: int) -> Callable[[int], None] | None:
        """A progress of some prompts, before which so many are done, of so many in all."""
        report = self.progress
        return None if report is None else lambda done: report(before + done, total)

    def flagged(self) -> list[int]:
        """The documents among the candidates that hold instructions."""
        documents = np.unique(self.candidates.doc)
        view = self.scorer.corpus.view_of
        return [int(d) for d in documents if has_hidden_instruction(view(VIEW, np.array([d])).tolist()[0])]


def _numbered(passages: tuple[str, ...]) -> str:
    return "\n\n".join(f"[{i}]\n<passage>\n{text}\n</passage>" for i, text in enumerate(passages, 1))


MethodFunction: TypeAlias = Callable[[PromptedRanking], Float64]
"""A value for each candidate, the more the better, NaN where no answer says anything of it."""

# ----------
# Sorting by choices: which groups of documents a judge is shown, who picks the best of each, until the top is known.
#
# A sorting is a generator over places 0 to n - 1 of an initial order. It yields groups of places, all those that can
# be judged side by side, is sent the best place of each, and returns the top places, best first. Nothing here knows
# who judges: whoever answers every group by one order gets the top of that order.
#
# Source: Zhuang et al. 2024 (set-wise heap sort and bubble sort); Chen et al. 2025 (tournaments).


Groups: TypeAlias = list[tuple[int, ...]]
"""Groups of places of which the best is asked for, two or more in each."""
Sorting: TypeAlias = Generator[Groups, list[int], list[int]]


def sorting(sort: str, count: int, width: int, top: int) -> Sorting:
    """The sorting of so many documents by groups of at most `width`, until the `top` best are known.

    sort: "heapsort", "bubblesort" or "tournament".
    """
    known = {"heapsort": _heapsort, "bubblesort": _bubblesort, "tournament": _tournament}
    return known[sort](count, width, min(top, count))


def most_groups(sort: str, count: int, width: int, top: int) -> int:
    """How many groups a sorting asks about at most; for "all", every two documents."""
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
    levels = list(_levels(count, width))
    return sum(nodes for nodes, _ in levels) + (top - 1) * len(levels)


def _best(groups: list[list[int]]) -> Generator[Groups, list[int], list[int]]:
    """The best of each group, of which those of a single place are not asked about."""
    asked = [tuple(group) for group in groups if len(group) > 1]
    found = iter((yield asked) if asked else [])
    return [next(found) if len(group) > 1 else group[0] for group in groups]


def _children(width: int) -> int:
    """Children of a parent in a heap: one group holds a family, or two of two in turn."""
    return max(2, width - 1)


def _height(place: int, count: int, width: int) -> int:
    """Levels below a place of a heap."""
    levels = 0
    while (place := _children(width) * place + 1) < count:
        levels += 1
    return levels


def _heapsort(count: int, width: int, top: int) -> Sorting:
    """A heap whose parents are compared with all their children at once, by twos with the better of two children; the
    trees of one level side by side."""
    heap = list(range(count))
    by_height: dict[int, list[int]] = {}
    for place in range(count):
        by_height.setdefault(_height(place, count, width), []).append(place)
    for height in range(1, max(by_height, default=0) + 1):
        yield from _sift(heap, by_height.get(height, []), width)
    found: list[int] = []
    while len(found) < top:
        found.append(heap[0])
        last = heap.pop()
        if heap and len(found) < top:
            heap[0] = last
            yield from _sift(heap, [0], width)
    return found


def _sift(heap: list[int], roots: list[int], width: int) -> Generator[Groups, list[int], None]:
    """Let what stands at the roots of disjoint trees sink to where no child is better."""
    active = roots
    while active:
        families = [_family(heap, root, width) for root in active]
        best = yield from _best_of_families([[heap[at] for at in family] for family in families], width)
        following = []
        for root, family, chosen in zip(active, families, best, strict=True):
            at = family[[heap[place] for place in family].index(chosen)]
            if at != root:
                heap[root], heap[at] = heap[at], heap[root]
                following.append(at)
        active = following


def _best_of_families(families: list[list[int]], width: int) -> Generator[Groups, list[int], list[int]]:
    """The best of a parent, which stands first, and its children, in groups of at most `width`."""
    if width > 2:
        return (yield from _best(families))
    several = [number for number, family in enumerate(families) if len(family) > 1]
    better = yield from _best([families[number][1:] for number in several])
    best = yield from _best(
        [[families[number][0], child] for number, child in zip(several, better, strict=True)]
    )
    found = [family[0] for family in families]
    for number, chosen in zip(several, best, strict=True):
        found[number] = chosen
    return found


def _family(heap: list[int], root: int, width: int) -> list[int]:
    first = _children(width) * root + 1
    return [root, *range(first, min(first + _children(width), len(heap)))]


def _bubblesort(count: int, width: int, top: int) -> Sorting:
    """Groups from the last documents to the first, each with the best of the one before; once for each place."""
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


def _levels(count: int, width: int) -> Iterator[tuple[int, int]]:
    """(groups, members to share among them) of each round of a tournament."""
    while count > 1:
        groups = -(-count // width)
        yield groups, count
        count = groups


def _tournament(count: int, width: int, top: int) -> Sorting:
    """The best of each group goes on to the next round; for the next place the groups that the winner won are asked
    again without it. Documents are seeded: those that stand one behind the other meet late."""
    rounds: list[list[int | None]] = [list(range(count))]
    sizes = [groups for groups, _ in _levels(count, width)]
    for groups in sizes:
        members = [[m for m in rounds[-1][g::groups] if m is not None] for g in range(groups)]
        rounds.append(list((yield from _best(members))))
    found: list[int] = []
    while len(found) < top:
        winner = rounds[-1][0]
        assert winner is not None  # fewer were taken out than there are
        found.append(winner)
        if len(found) < top:
            yield from _without(rounds, sizes, winner)
    return found


def _without(
    rounds: list[list[int | None]], sizes: list[int], winner: int
) -> Generator[Groups, list[int], None]:
    """Take the winner out of every round, and let those whom it beat play for its places."""
    place = winner
    rounds[0][place] = None
    for number, groups in enumerate(sizes):
        place %= groups
        members = [m for m in rounds[number][place::groups] if m is not None]
        rounds[number + 1][place] = (yield from _best([members]))[0] if members else None


# ----------
# Methods that show a language model several documents at a time: listwise, set-wise and pairwise.
#
# All queries are asked side by side, round after round: the prompts of a round are out together.


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


# ----------
# How a language model orders candidates: one function for each method.


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
