"""A pool open for judging: its pairs, its journal, and all that people do with it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.errors import BadValue, UnknownName
from weir.files.atomic import write_json
from weir.files.journal_labels import SHEET, Kind, settled_judgments
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, direction, parse_measure
from weir.plugins.app.judging.assignment import (
    CLAIM_SECONDS,
    Plan,
    Table,
    Turn,
    next_decision,
    next_turn,
    turns_of_query,
)
from weir.plugins.app.judging.journal import GRADED, Event, Item, Journal, Standing
from weir.plugins.app.judging.preferences import Comparison, next_comparison
from weir.plugins.app.judging.tasks import JudgingPair, Tasks, tasks_of_pool, write_queries
from weir.plugins.labels.pools import (
    ABOUT,
    Relabelled,
    about_sheet,
    judged_anew,
    relabelled,
    subject_of_pool,
    turned,
)
from weir.plugins.questions.decision import Decision, decision_of
from weir.stats.order_agreement import OrderAgreement, order_agreement

TEST = "permutation"
"""The default test of verdicts."""
JOURNAL = "judgments.sqlite"
MOST_TEXT = 10_000
"""Most characters of a note or reason; longer ones are cut."""


@dataclass(frozen=True)
class Answer:
    """A judge's answer to a pair or a comparison."""

    kind: Kind
    grade: float | None = None
    """Of a comparison 1 for the left side, -1 for the right one, 0 for neither; None if the kind has no grade."""
    text: str = ""
    seconds: float | None = None
    """Time as the page measured it."""
    key: str = ""
    """An answer sent twice with one key counts once."""


@dataclass(frozen=True)
class ChangedQuery:
    """A query's value for each run, before and after a pool's judgments."""

    query: str
    before: tuple[float, ...]
    """NaN if the query had no judgment before."""
    after: tuple[float, ...]

    @property
    def change(self) -> float:
        """The largest absolute change among the runs; 0 if the query was unjudged before."""
        pairs = zip(self.before, self.after, strict=True)
        return max((abs(now - then) for then, now in pairs if not math.isnan(then)), default=0.0)


@dataclass(frozen=True, eq=False)
class Changes:
    """Scores, order of systems and verdicts before and after a pool's judgments."""

    measure: str
    rows: tuple[Relabelled, ...]
    turned: tuple[tuple[str, str], ...]
    """Pairs (better before, worse before) whose order turned."""
    verdicts: OrderAgreement | None
    """Agreement of verdicts before and after; None for fewer than two systems or queries."""
    judged: int
    queries: int
    """Queries of the means."""
    first: bool
    """True if there were no judgments before."""
    contested: int
    """Judged pairs on which judges differ, undecided."""
    of_query: tuple[ChangedQuery, ...]
    """Queries whose values changed or are new, largest change first."""


@dataclass(frozen=True)
class TakenBack:
    """A group of labels withdrawn together."""

    events: tuple[Event, ...]
    """The withdrawing events, in order."""

    @property
    def group_number(self) -> int:
        """Number of the group's first event, by which pages name the group."""
        return self.events[0].number


@dataclass(eq=False)
class Room:
    """A pool open for judging: its pairs, journal and settings."""

    name: str
    """Its name in URLs."""
    folder: Path
    tasks: Tasks
    journal: Journal
    collection: Subject | None = None
    """The collection with the texts; None if they are on the sheet."""
    _subject: Subject | None = None
    _decided: tuple[int, int, Decision | None] | None = None
    """Queries judged and events at the last decision, and the decision."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def open(
        folder: Path,
        collection: Subject | None = None,
        suggestions: Qrels | None = None,
    ) -> Room:
        """Open a folder of `weir labels pool`, creating its journal if missing.

        collection: source of the texts; None takes those on the pool's sheet.
        suggestions: grades by a model.

        Raises BadValue without pairs to judge.
        """
        tasks = tasks_of_pool(folder, collection, suggestions)
        return Room(folder.resolve().name, folder, tasks, Journal.open(folder / JOURNAL), collection)

    def plan(self) -> Plan:
        """Return the current settings; defaults are the sheet's grades and those of Plan."""
        scale = {"grades": self.tasks.grades} if self.tasks.grades else {}
        return Plan.of({**scale, **self.journal.settings()})

    def set_plan(self, plan: Plan) -> None:
        """Store settings; raises BadValue if the scale lacks a grade already given."""
        with self.journal.writing() as standing:
            given = {float(event.grade or 0) for event in standing.current() if event.kind in GRADED}
            lost = sorted(given - set(map(float, plan.grades)))
            if lost:
                raise BadValue(f"the grade {lost[0]:g} was given already, and stays on the scale")
            self.journal.declare(plan.settings())

    @contextmanager
    def table(self, write: bool = False) -> Iterator[Table]:
        """Yield the state of the judging for a `with` block; with `write`, other writers wait until its end."""
        with self.journal.writing() if write else self.journal.reading() as standing:
            yield Table(self.tasks, self.plan(), standing, self.journal.claims(), time.time())

    def snapshot(self) -> Table:
        """Return the state of the judging, which later events do not change."""
        standing = Standing()
        for event in self.journal.events():
            standing.apply(event)
        return Table(self.tasks, self.plan(), standing, self.journal.claims(), time.time())

    def decision(self, table: Table, fresh: bool = True) -> Decision | None:
        """Return which system is best by the queries judged completely, without deferred pairs.

        None for fewer than two systems, no such query, or a pool of unknown origin.

        fresh: False accepts an earlier decision from as many queries, although grades may have changed.
        """
        about = about_sheet(self.folder / SHEET)
        if not about.get("targets") or len(self.tasks.systems) < 2:
            return None
        left = {query for query in self.tasks.of_query if not table.is_full(query)}
        left |= {event.query for event in table.standing.current("judge") if event.kind == "later"}
        judged, last = len(self.tasks.of_query) - len(left), table.standing.last
        if self._decided is None or self._decided[0] != judged or (fresh and self._decided[1] != last):
            graded = any(event.kind in GRADED for event in table.standing.current())
            labels = settled_judgments(self.journal.path)[0] if graded else None
            measure = parse_measure(f"nDCG@{about.get('k') or 10}")
            self._decided = judged, last, decision_of(self.subject(), labels, left, measure)
        return self._decided[2]

    # What judges do.

    def turn(self, judge: str, deciding: bool = False) -> Turn | None:
        """Return the pair that a judge is to grade next, recorded as shown; None if nothing is left.

        deciding: return a disagreement to decide instead.
        """
        with self.table() as table:
            turn = next_decision(table, judge) if deciding else next_turn(table, judge)
            if turn is None or _looked_at(table, turn.item(judge)):
                return turn
        with self.table(write=True) as table:  # somebody else may have come in between
            turn = next_decision(table, judge) if deciding else next_turn(table, judge)
            if turn is not None and not _looked_at(table, turn.item(judge)):
                self.journal.claim([turn.item(judge)])
            return turn

    def query_turns(self, judge: str, query: str) -> list[Turn]:
        """Return the pairs of a query that a judge has judged or may judge; unanswered ones are recorded as
        shown."""
        with self.table(write=True) as table:
            turns = turns_of_query(table, judge, query)
            new = [
                item
                for turn in turns
                if table.standing.label(item := turn.item(judge)) is None and not _looked_at(table, item)
            ]
            self.journal.claim(new)
            return turns

    def pair(self, number: str) -> JudgingPair:
        """Return the pair with this number; raises UnknownName for an unknown number or a removed query."""
        if not number.isdecimal() or int(number) >= len(self.tasks.pairs):
            raise UnknownName("pair of this pool", number, [])
        pair = self.tasks.pairs[int(number)]
        if pair.query in self.tasks.removed:
            raise UnknownName("query of this pool", pair.query, self.tasks.of_query)
        return pair

    def query_text(self, query: str) -> str:
        """Return a query's text; its identifier if the text is unknown."""
        if self.tasks.queries.get(query) or not about_sheet(self.folder / SHEET).get("targets"):
            return self.tasks.query_text(query)
        queries = self.subject().queries
        code = -1 if queries is None else int(queries.ids.codes([query])[0])
        return query if queries is None or code < 0 else queries.text[code] or query

    def texts(self, query: str, documents: Sequence[str]) -> list[tuple[str, str]]:
        """Return each document's (title, text), from the pool or else the collection; "" if unknown."""
        found = []
        for name in documents:
            pair = self.tasks.by_pair.get((query, name))
            if pair is not None:
                found.append((pair.title, pair.text))
                continue
            corpus = self.subject().corpus
            code = -1 if corpus is None else int(corpus.ids.codes([name])[0])
            title = "" if corpus is None or code < 0 or corpus.title is None else corpus.title[code]
            found.append((title, "" if corpus is None or code < 0 else corpus.text[code]))
        return found

    def item_of(self, judge: str, pair: JudgingPair, deciding: bool = False) -> Item:
        """Return the journal's key of a judge's answer to a pair: as first or second judgment, or as
        decision."""
        if deciding:
            return Turn(pair, "decide").item(judge)
        again = Turn(pair, "again").item(judge)
        return again if again in self.journal.claims() else Turn(pair).item(judge)

    def suggestion(self, turn: Turn, plan: Plan) -> float | None:
        """Return a model's suggested grade for a pair, as the judge sees it.

        None if there is none, if it is hidden at random, and for second judgments and decisions.
        """
        shown = turn.task == "judge" and not plan.without_suggestion(turn.pair.pair)
        return self.tasks.suggestions.get(turn.pair.pair) if shown else None

    def answer(self, judge: str, pair: JudgingPair, answer: Answer, deciding: bool = False) -> Event:
        """Store a judge's answer to a pair and return its event; kind "accepted" takes the suggested grade.

        deciding: the answer decides a disagreement.

        Raises BadValue for a grade off the scale and for "cannot tell" without a reason.
        """
        with self.table(write=True) as table:
            item = self.item_of(judge, pair, deciding)
            turn, since = Turn(pair, item[1]), table.claims.get(item)
            suggested = self.suggestion(turn, table.plan)
            grade = suggested if answer.kind == "accepted" else answer.grade
            _check(replace(answer, grade=grade), tuple(map(float, table.plan.grades)))
            [stored] = self.journal.append(
                Event(
                    judge,
                    answer.kind,
                    *pair.pair,
                    turn.task,
                    grade,
                    _kept(answer.text),
                    _seconds(answer.seconds, since),
                    pair.content,
                    self.tasks.version(table.plan.grades),
                    suggested if answer.kind in ("graded", "accepted") else None,
                    key=answer.key,
                )
            )
            if answer.kind == "noted" and since is not None:  # it stays in front
                self.journal.claim([item], since)
            return stored

    def undo(self, judge: str, key: str = "") -> Event | None:
        """Undo a judge's last event, show its pair again, and return the event; None if there is none."""
        with self.journal.writing():
            undone = self.journal.undo(judge, key)
            if undone is not None and undone.kind != "noted":
                self.journal.claim([undone.item])
            return undone

    # Comparisons.

    def comparisons(self) -> list[Comparison]:
        """Return the pool's comparisons, ordered by `number`; [] if it asks for none."""
        stored = self.journal.settings().get("comparisons", [])
        return [
            Comparison(**{**one, "documents": tuple(tuple(side) for side in one["documents"])})
            for one in stored
        ]

    def compare(self, comparisons: Sequence[Comparison]) -> None:
        """Add the comparisons that the pool lacks, numbered after its others."""
        with self.journal.writing():
            before = self.comparisons()
            there = {(one.task, one.query, one.first, one.second) for one in before}
            new = [one for one in comparisons if (one.task, one.query, one.first, one.second) not in there]
            numbered = [replace(one, number=n) for n, one in enumerate([*before, *new])]
            self.journal.declare({"comparisons": [asdict(one) for one in numbered]})

    def comparison(self, judge: str) -> Comparison | None:
        """Return a judge's next comparison, recorded as shown; None if nothing is left."""
        with self.table(write=True) as table:
            found = next_comparison(table, self.comparisons(), judge)
            if found is not None and not _looked_at(table, found.item(judge)):
                self.journal.claim([found.item(judge)])
            return found

    def prefer(self, judge: str, number: str, answer: Answer) -> Event:
        """Store a judge's preference in a comparison, and return its event.

        answer: grade 1 for the left side, -1 for the right, 0 for neither.

        Raises UnknownName for an unknown comparison, BadValue for another grade.
        """
        with self.table(write=True) as table:
            found = self.comparisons()
            if not number.isdecimal() or int(number) >= len(found):
                raise UnknownName("comparison of this pool", number, [])
            one = found[int(number)]
            _check(answer, (1.0, 0.0, -1.0))
            left = one.left(table.plan.seed, judge)
            way = 1 if left == one.first else -1
            outcome = None if answer.grade is None else way * answer.grade
            since = table.claims.get(one.item(judge))
            [stored] = self.journal.append(
                Event(
                    judge, answer.kind, one.query, one.first, one.task, outcome, _kept(answer.text),
                    _seconds(answer.seconds, since), guidelines=self.tasks.version(table.plan.grades),
                    other=one.second, left=left, key=answer.key,
                )
            )  # fmt: skip
            return stored

    # What supervisors do.

    @property
    def results(self) -> tuple[str, ...]:
        """The results folder, or judgments and rankings, from which the pool was made; () if unknown."""
        return tuple(map(str, about_sheet(self.folder / SHEET).get("targets", ())))

    def take_back(self, labels: Sequence[Event], author: str, reason: str) -> int:
        """Withdraw the labels that are still in force, and return their number."""
        now = time.time()
        with self.journal.writing() as standing:
            there = [one for one in labels if standing.label(one.item) == one]
            self.journal.append(
                *(
                    Event(
                        one.judge, "withdrawn", one.query, one.document, one.task, text=_kept(reason),
                        other=one.other, author=author or "supervisor", time=now,
                    )
                    for one in there
                )
            )  # fmt: skip
            return len(there)

    def taken_back(self) -> list[TakenBack]:
        """Return the groups of withdrawn labels that are not restored, latest first."""
        found: dict[tuple[float, str, str], list[Event]] = {}
        with self.journal.reading() as standing:
            for event in standing.numbered.values():
                if event.kind == "withdrawn" and event in standing.labels[event.item]:
                    found.setdefault((event.time, event.author, event.text), []).append(event)
        return [TakenBack(tuple(events)) for _, events in sorted(found.items(), reverse=True)]

    def put_back(self, number: str, author: str) -> int:
        """Restore a group of withdrawn labels, and their queries if removed; return the number of labels.

        A label that its judge has set again keeps its new value. Raises UnknownName for an unknown group.
        """
        with self.journal.writing():
            found = next((one for one in self.taken_back() if str(one.group_number) == number), None)
            if found is None:
                raise UnknownName(
                    "labels taken back", number, [str(one.group_number) for one in self.taken_back()]
                )
            self.journal.append(
                *(
                    Event(
                        one.judge, "undone", one.query, one.document, one.task, other=one.other,
                        undoes=one.number, author=author or "supervisor",
                    )
                    for one in found.events
                )
            )  # fmt: skip
        self.restore({one.query for one in found.events})
        return len(found.events)

    def remove_query(self, query: str, author: str) -> int:
        """Remove a query from the pool and withdraw its labels; return the number of labels.

        `restore` or `put_back` brings it back. Raises UnknownName for an unknown query.
        """
        if query not in self.tasks.of_query:
            raise UnknownName("query of this pool", query, self.tasks.of_query)
        with self.journal.reading() as standing:
            labels = [event for event in standing.current() if event.query == query]
        taken = self.take_back(labels, author, f"removed: {self.tasks.query_text(query)}")
        self._set_removed(self.tasks.removed | {query})
        return taken

    def restore(self, queries: Collection[str]) -> None:
        """Bring removed queries back; other names are ignored."""
        if self.tasks.removed & set(queries):
            self._set_removed(self.tasks.removed - set(queries))

    def _set_removed(self, removed: frozenset[str]) -> None:
        sheet = self.folder / SHEET
        with self._lock:
            write_json(sheet.with_name(ABOUT), about_sheet(sheet) | {"removed": sorted(removed)})
            self.tasks = replace(self.tasks, removed=removed)
            write_queries(self.folder, self.tasks.asked)

    def subject(self) -> Subject:
        """Return the rankings and judgments from which the pool was made; raises BadValue if unknown."""
        with self._lock:
            if self._subject is None:
                self._subject = subject_of_pool(self.folder / SHEET)
            return self._subject

    def merged(self) -> Qrels:
        """Return the earlier judgments of the pool's results, with people's in place of old grades.

        Raises BadValue if the pool does not name its results, FormatError without judgments by people.
        """
        new, _ = settled_judgments(self.journal.path)
        return relabelled(judged_anew([self.subject()], new)[0], new)[1]

    def changes(self, measure: str = "nDCG@10", subject: Subject | None = None) -> Changes:
        """Return means, order of systems, verdicts and values by query, before and after the pool's
        judgments.

        subject: rankings and earlier judgments, if not the pool's own.

        Raises BadValue if the pool does not name its results, FormatError without judgments by people.
        """
        new, contested = settled_judgments(self.journal.path)
        [subject] = judged_anew([self.subject() if subject is None else subject], new)
        parsed, before = parse_measure(measure), subject.need_qrels()
        rows, now = relabelled(subject, new, parsed)
        verdicts = None
        if len(subject.runs) > 1 and len(before) > 1 and direction(str(parsed)):
            verdicts = order_agreement(subject.runs, before, now, parsed, ("before", "now"), TEST)
        of = before if len(before) else new
        counts = len(new.doc), len(of), not len(before), contested
        of_query = _changed_queries(subject, new.queries, before, now, parsed)
        return Changes(str(parsed), tuple(rows), tuple(turned(rows)), verdicts, *counts, of_query)


def _changed_queries(
    subject: Subject, queries: Ids, before: Qrels, now: Qrels, measure: Measure
) -> tuple[ChangedQuery, ...]:
    def values_by(run: Run, qrels: Qrels) -> dict[str, float]:
        at = qrels.queries.codes(queries.strings)
        mine = qrels.only(np.sort(at[at >= 0]))
        if not len(mine):
            return {}
        scores = scores_of(Judged.of(run, mine), (measure,))
        return dict(zip(scores.queries, scores.of(str(measure)).tolist(), strict=True))

    then, after = ([values_by(run, qrels) for run in subject.runs.values()] for qrels in (before, now))
    found = [
        ChangedQuery(name, *(tuple(of.get(name, math.nan) for of in each) for each in (then, after)))
        for name in queries
        if name in after[0]
    ]
    changed = [one for one in found if one.change or any(map(math.isnan, one.before))]
    return tuple(sorted(changed, key=lambda one: -one.change))


def _looked_at(table: Table, item: Item) -> bool:
    return table.now - table.claims.get(item, -math.inf) < CLAIM_SECONDS


def _check(answer: Answer, grades: Sequence[float]) -> None:
    if answer.kind in ("graded", "accepted", "preferred") and answer.grade not in grades:
        shown = "nothing" if answer.grade is None else f"{answer.grade:g}"
        raise BadValue(f"the grade is {shown}; expected one of {', '.join(f'{grade:g}' for grade in grades)}")
    if answer.kind == "unable" and not answer.text.strip():
        raise BadValue("say why you cannot tell: what is missing, or which language it is")


def _kept(text: str) -> str:
    return text.strip()[:MOST_TEXT].encode("utf-8", "replace").decode("utf-8")


def _seconds(measured: float | None, since: float | None) -> float | None:
    elapsed = None if since is None else max(0.0, time.time() - since)
    if measured is None or not 0 <= measured < math.inf:
        return elapsed
    return measured if elapsed is None else min(measured, elapsed)
