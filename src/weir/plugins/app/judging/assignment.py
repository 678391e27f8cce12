"""Assign (query, document) pairs to judges until each has its judgments."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from statistics import median
from typing import Any

from weir.errors import BadValue
from weir.files.journal_labels import Task
from weir.plugins.app.judging.journal import GRADED, Event, Item, Pair, Standing, seats
from weir.plugins.app.judging.tasks import JudgingPair, Tasks

CLAIM_SECONDS = 1800.0
"""Seconds after which an unanswered pair is offered to others."""
ACTIVE_SECONDS = 3600.0
"""Seconds since the last answer within which a judge is active."""
AGAIN_AFTER = 20
"""Answers of a judge between two judgments of a pair."""
LAST_ANSWERS = 50
"""Answers whose median time estimates the time left."""


@dataclass(frozen=True)
class Plan:
    """Settings of how a pool of pairs is judged; raises BadValue for values out of range."""

    grades: tuple[int, ...] = (0, 1, 2, 3)
    """The scale."""
    each: int = 1
    """Judges of each pair."""
    overlap: float = 0.0
    """Share of the queries that get a further judge, drawn at random."""
    twice: float = 0.0
    """Share of a judge's pairs that the judge sees again, drawn at random."""
    blind: float = 0.2
    """If a model's grades are suggested, the share of pairs without one, drawn at random."""
    apart: float = 1.0
    """Least difference of two grades on which somebody else has to decide."""
    seed: int = 11

    def __post_init__(self) -> None:
        shares = (self.overlap, self.twice, self.blind)
        if self.each < 1 or not 0 < self.apart < math.inf or not all(0 <= one <= 1 for one in shares):
            raise BadValue(
                f"judges of each pair {self.each}, shares {', '.join(map(str, shares))}, difference {self.apart:g}; "
                "expected numbers from 1, shares from 0 to 1, a difference above 0"
            )
        if len(set(self.grades)) < 2 or any(not 0 <= one <= 9 for one in self.grades):
            raise BadValue(
                f"the grades are {self.grades}; expected two at least, from 0 to 9, a key for each"
            )

    def settings(self) -> dict[str, object]:
        """Return the settings as a dictionary, to be stored."""
        return asdict(self)

    @staticmethod
    def of(settings: Mapping[str, Any]) -> Plan:
        """Return the plan in stored settings; missing entries get defaults."""
        known = {one.name: settings[one.name] for one in fields(Plan) if one.name in settings}
        return Plan(**{**known, **({"grades": tuple(known["grades"])} if "grades" in known else {})})

    def judges_of(self, query: str) -> int:
        """Return how many judges each pair of a query needs."""
        return self.each + (drawn(self.seed, "overlap", query) < self.overlap)

    def seen_again(self, judge: str, pair: Pair) -> bool:
        """Return True if this judge is to judge the pair a second time."""
        return drawn(self.seed, "again", judge, *pair) < self.twice

    def without_suggestion(self, pair: Pair) -> bool:
        """Return True if judges do not see a model's suggested grade for the pair."""
        return drawn(self.seed, "blind", *pair) < self.blind


def drawn(seed: int, *names: str) -> float:
    """Return a pseudo-random number in [0, 1), a function of seed and names alone."""
    digest = hashlib.blake2b("\x1f".join((str(seed), *names)).encode("utf-8", "replace"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") / 2.0**64


@dataclass(frozen=True)
class Turn:
    """A judge's next pair and task: "judge", "again" (a second time) or "decide" (a disagreement)."""

    pair: JudgingPair
    task: Task = "judge"

    def item(self, judge: str) -> Item:
        """Return the journal's key of this judge's answer: (judge, task, query, document, "")."""
        return judge, self.task, self.pair.query, self.pair.document, ""


@dataclass(frozen=True, eq=False)
class Table:
    """The state of a pool's judging at one moment: pairs, plan, judgments so far, and pairs on judges'
    screens."""

    tasks: Tasks
    plan: Plan
    standing: Standing
    claims: Mapping[Item, float]
    """{item: time when it was shown}."""
    now: float
    """Seconds since 1970."""

    @cached_property
    def shown(self) -> dict[str, dict[str, set[str]]]:
        """{query: {document: judges who have it on their screens}}, without those who opened it too long ago."""
        found: dict[str, dict[str, set[str]]] = {}
        for (judge, task, query, document, _), since in self.claims.items():
            if task == "judge" and self.now - since < CLAIM_SECONDS:
                found.setdefault(query, {}).setdefault(document, set()).add(judge)
        return found

    def in_front(self, judge: str) -> dict[Item, float]:
        """Return {answer's key: time when shown, in seconds since 1970} of the pairs on a judge's screen."""
        return {
            item: since
            for item, since in self.claims.items()
            if item[0] == judge and self.now - since < CLAIM_SECONDS
        }

    @cached_property
    def at_work(self) -> frozenset[str]:
        """The judges who answered lately or have a pair on their screens."""
        lately = {
            name
            for name, answers in self.standing.answers.items()
            if self.now - answers[-1].time < ACTIVE_SECONDS
        }
        return frozenset(
            lately | {name for of in self.shown.values() for names in of.values() for name in names}
        )

    def _crew(self, query: str) -> set[str]:
        """Return the judges who have judged, or have on their screens, a pair of the query."""
        held = {name for name, count in self.standing.held.get(query, Counter()).items() if count}
        return held.union(*self.shown.get(query, {}).values())

    def is_open(self, pair: JudgingPair, judge: str) -> bool:
        """Return True if the pair needs another judge and this one has neither judged nor opened it."""
        of_pair = self.standing.judged.get(pair.pair, {})
        looking = self.shown.get(pair.query, {}).get(pair.document, set())
        others = seats(of_pair) + len(looking - of_pair.keys())
        return judge not in of_pair and judge not in looking and others < self.plan.judges_of(pair.query)

    @property
    def judged_pairs(self) -> int:
        """The number of pairs with all requested judgments; deferred ones count."""
        return sum(
            count
            for query, levels in self.standing.levels.items()
            if query in self.tasks.of_query
            for level, count in levels.items()
            if level >= self.plan.judges_of(query)
        )

    def is_full(self, query: str) -> bool:
        """Return True if every pair of a query has all requested judgments; deferred ones count."""
        need = self.plan.judges_of(query)
        levels = self.standing.levels.get(query, Counter())
        return sum(count for level, count in levels.items() if level >= need) == len(
            self.tasks.of_query[query]
        )

    def _met(self, judge: str) -> Counter[str]:
        """Return {judge: number of queries begun by both}, with the given judge's own count; judges without a
        shared query are left out."""
        held = [of_query for of_query in self.standing.held.values() if of_query[judge]]
        return Counter(name for of_query in held for name, count in of_query.items() if count)


def next_turn(table: Table, judge: str) -> Turn | None:
    """Return a judge's next pair; None if nothing is left.

    In order: the pair on the screen; queries begun; due second judgments; the new query whose judges share
    the fewest queries with this one; other open pairs; deferred pairs; early second judgments.
    """
    tasks, standing = table.tasks, table.standing
    before_me = [
        (-since, pair.number, Turn(pair, task))
        for (_, task, query, document, _), since in table.in_front(judge).items()
        if task in ("judge", "again") and (pair := tasks.by_pair.get((query, document))) is not None
    ]
    if before_me:
        return min(before_me, key=lambda one: one[:2])[2]
    further: list[tuple[int, int, JudgingPair]] = []
    spare: JudgingPair | None = None
    others = max(1, len(table.at_work | {judge}))
    met: Counter[str] | None = None
    for place, (query, pairs) in enumerate(tasks.of_query.items()):
        if standing.held.get(query, Counter()).get(judge, 0) == len(pairs) or table.is_full(query):
            continue
        crew = table._crew(query)
        if judge not in crew and len(further) >= others:
            continue
        pair = next((one for one in pairs if table.is_open(one, judge)), None)
        if pair is None:
            continue
        if judge in crew:
            return Turn(pair)
        if len(crew) < table.plan.judges_of(query):
            if crew and met is None:
                met = table._met(judge)
            further.append((sum(met[name] for name in crew) if met else 0, place, pair))
        else:
            spare = spare or pair
    if due := next(_again(table, judge, AGAIN_AFTER), None):
        return due
    if further:
        return Turn(min(further, key=lambda one: one[:2])[2])
    if spare:
        return Turn(spare)
    mine = standing.of_judge.get(judge, {}).values()
    put_off = [one for one in mine if one.kind == "later" and one.task == "judge"]
    for event in sorted(put_off, key=lambda one: one.number):
        if (event.query, event.document) in tasks.by_pair:
            return Turn(tasks.by_pair[event.query, event.document])
    return next(_again(table, judge, 0), None)


def _again(table: Table, judge: str, after: int) -> Iterator[Turn]:
    if not table.plan.twice:
        return
    answers = table.standing.answers.get(judge, [])
    for event in answers[: max(0, len(answers) - after)]:
        pair = table.tasks.by_pair.get((event.query, event.document))
        if pair is None or event.task != "judge" or not table.plan.seen_again(judge, pair.pair):
            continue
        turn = Turn(pair, "again")
        first = table.standing.judged.get(pair.pair, {}).get(judge)
        second = table.standing.label(turn.item(judge))
        open_still = second is None or (second.kind == "later" and not after)
        if first is not None and first.kind in GRADED and open_still:
            yield turn


def turns_of_query(table: Table, judge: str, query: str) -> list[Turn]:
    """Return the pairs of a query that a judge has judged or may judge, in the pool's order."""
    mine = table.shown.get(query, {})
    return [
        Turn(pair)
        for pair in table.tasks.of_query.get(query, ())
        if judge in table.standing.judged.get(pair.pair, {})
        or judge in mine.get(pair.document, ())
        or table.is_open(pair, judge)
    ]


# Disagreements, which somebody else decides.


def contested(table: Table) -> list[tuple[JudgingPair, tuple[Event, ...]]]:
    """Return (pair, grades given) of each undecided pair without a majority grade, by the pair's number.

    Only grades at least `apart` (of the plan) from each other disagree.
    """
    decided = {(event.query, event.document) for event in table.standing.current("decide") if event.answers}
    found = []
    for names, of_pair in table.standing.judged.items():
        given = sorted((one for one in of_pair.values() if one.kind in GRADED), key=lambda one: one.number)
        grades = Counter(float(one.grade or 0) for one in given)
        split = len(grades) > 1 and 2 * max(grades.values()) <= len(given)
        if split and max(grades) - min(grades) >= table.plan.apart and names not in decided:
            pair = table.tasks.by_pair.get(names)
            found += [] if pair is None else [(pair, tuple(given))]
    return sorted(found, key=lambda one: one[0].number)


def next_decision(table: Table, judge: str) -> Turn | None:
    """Return the disagreement that a judge is to decide; None if there is none.

    It is the last one shown to the judge, else the first that this judge has not judged and no other is
    deciding.
    """
    looked_at = {
        (query, document): name
        for (name, task, query, document, _), since in table.claims.items()
        if task == "decide" and table.now - since < CLAIM_SECONDS
    }
    found = [
        Turn(pair, "decide")
        for pair, _ in contested(table)
        if judge not in table.standing.judged[pair.pair] and looked_at.get(pair.pair, judge) == judge
    ]
    mine = table.in_front(judge)
    return max(found, key=lambda turn: mine.get(turn.item(judge), 0.0), default=None)


# How far a judge has come.


@dataclass(frozen=True)
class Progress:
    """Numbers of a judge's answers, of pairs left, and the time an answer takes."""

    done: int
    """Answers in force."""
    left: int
    """Expected pairs: open pairs, shared among the active judges, deferred pairs and second judgments."""
    later: int
    """Deferred pairs."""
    seconds: float | None
    """Median time of the last answers; None without any."""

    @property
    def minutes_left(self) -> float | None:
        """Estimated minutes to the end; None if no answer was timed."""
        return None if self.seconds is None else self.left * self.seconds / 60


def progress(table: Table, judge: str) -> Progress:
    """Return a judge's progress: answers given, pairs expected to be left, pairs deferred, median seconds an
    answer."""
    standing, plan = table.standing, table.plan
    missing = possible = 0
    for query, pairs in table.tasks.of_query.items():
        need, levels = plan.judges_of(query), standing.levels.get(query, Counter())
        missing += need * len(pairs) - sum(min(level, need) * count for level, count in levels.items())
        possible += len(pairs) - standing.held.get(query, Counter()).get(judge, 0)
    mine = standing.of_judge.get(judge, {}).values()
    later = Counter(one.task for one in mine if one.kind == "later")
    again = len(set(_again(table, judge, 0)))
    share = -(-missing // max(1, len(table.at_work | {judge})))
    timed = [
        one.seconds for one in standing.answers.get(judge, [])[-LAST_ANSWERS:] if one.seconds is not None
    ]
    done = sum(one.answers for one in mine)
    return Progress(
        done,
        min(share, possible) + later["judge"] + again,
        later.total(),
        float(median(timed)) if timed else None,
    )
