"""The pages of judges and of their supervisor."""

from __future__ import annotations

import math
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of_class
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from weir.core.rounding import counted
from weir.core.subject import Subject
from weir.errors import BadValue, UnknownName
from weir.files.journal_labels import Kind
from weir.plugins.app.answers import Fields, fields_of
from weir.plugins.app.choices import System
from weir.plugins.app.golden_scores import golden_subject
from weir.plugins.app.judging.assignment import (
    Plan,
    Progress,
    Table,
    Turn,
    contested,
    progress,
)
from weir.plugins.app.judging.exports import FILES, exported, files_of
from weir.plugins.app.judging.journal import GRADED, Event
from weir.plugins.app.judging.preferences import Comparison, compared_documents, compared_rankings
from weir.plugins.app.judging.room import Answer, Changes, Room, TakenBack
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.app.judging.supervision import Supervision, supervision
from weir.plugins.app.marking import Marked, Words
from weir.plugins.app.queries_page import Listed
from weir.plugins.app.server import Download, Page, Redirect, Visit, address
from weir.plugins.questions.decision import Decision
from weir.stats.preferences import Preference, PreferenceOrder, preference_order

REASONS = ("no text", "another language", "the query is not clear", "needs an expert")
"""Offered reasons of "cannot tell"."""
SHOWN_QUERIES = 50
"""Most queries that a page of changes lists."""
SHOWN_LABELS = 200
"""Most labels listed before they are withdrawn."""


# What judges see. None of it tells system, rank, or another's label, but where disagreements are decided.


@dataclass(frozen=True)
class _ShownPool:
    """A pool's name, collection and scale, as all its pages show them."""

    name: str
    """Its name in URLs."""
    collection: str
    grades: tuple[int, ...]
    reasons: tuple[str, ...]
    """Offered reasons of "cannot tell"."""
    guidelines: str
    """Markdown."""
    golden: str
    """Name of the pool's collection file; "" for none."""


@dataclass(frozen=True)
class _ShownPair:
    """A (query, document) pair with its texts, and the judge's own answer."""

    number: int
    query: str
    document: str
    title: Marked
    text: Marked
    fields: Fields
    """Its metadata, such as price and brand."""
    kind: str
    """Kind of the own answer, such as "graded"; "" without one."""
    grade: float | None
    """The own grade; None without one."""
    reason: str
    """The own reason of "cannot tell"."""
    note: str
    suggested: float | None
    """A model's grade, if shown."""
    key: str
    """Key of the answer, which counts once."""
    shown: str
    """`JudgingPair.shown`, which the answer repeats."""


@dataclass(frozen=True)
class _JudgePage:
    pool: _ShownPool
    query: str
    """Text of the query, else its identifier."""
    pair: _ShownPair | None
    """None if nothing is left."""
    progress: Progress
    time_left: str
    """"" if unknown."""
    deciding: tuple[tuple[float, str], ...]
    """(grade, note) of others, by grade, if a disagreement is decided; else ()."""
    back: str
    """The previous page: "", "decide", or "query" for a list."""
    to_decide: int
    """Disagreements that this judge may decide; 0 while pairs are left."""
    compares: bool
    """True if there is something to compare."""
    decided: bool
    """True if the best system is certain, so that the rest need not be judged."""


@dataclass(frozen=True)
class _QueryPage:
    pool: _ShownPool
    name: str
    query: str
    pairs: tuple[_ShownPair, ...]
    progress: Progress
    at: int
    """Number of the first pair shown; -1 for the first without a grade."""


@dataclass(frozen=True)
class QueryRow:
    """A query of a pool with a judge's progress."""

    name: str
    query: str
    pairs: int
    done: int
    """Pairs that this judge has answered or deferred."""
    open: int
    """Pairs that this judge may still take."""


@dataclass(frozen=True)
class QueriesPage:
    """The list of a pool's queries, with a judge's progress."""

    pool: _ShownPool
    queries: tuple[QueryRow, ...]
    progress: Progress


@dataclass(frozen=True)
class _ShownDocument:
    """A document as a side of a comparison."""

    document: str
    title: Marked
    text: Marked
    fields: Fields
    """As `_ShownPair.fields`."""


@dataclass(frozen=True)
class _ComparePage:
    pool: _ShownPool
    number: int
    """-1 if nothing is left."""
    task: str
    query: str
    left: tuple[_ShownDocument, ...]
    right: tuple[_ShownDocument, ...]
    key: str
    done: int
    """Comparisons that this judge has answered."""
    of: int
    """Number of all comparisons."""


def _rooms_of(visit: Visit) -> Rooms:
    if visit.rooms is None:
        raise BadValue("no pool is open: weir open POOL --judge NAME opens a folder of weir labels pool")
    return visit.rooms


def _room_of(visit: Visit) -> Room:
    return _rooms_of(visit).room(visit.names["room"])


def _judge_of(visit: Visit) -> str:
    if not visit.judge:
        raise BadValue("nobody's name came with this address: weir open ... --judge NAME says who judges")
    return visit.judge


def _pool(room: Room, plan: Plan) -> _ShownPool:
    guidelines = room.tasks.guidelines_for(plan.grades)
    return _ShownPool(room.name, room.tasks.name, plan.grades, REASONS, guidelines, room.tasks.golden)


def _fields(visit: Visit, room: Room, documents: Sequence[str]) -> dict[str, Fields]:
    corpus = None if room.collection is None else room.collection.corpus
    if corpus is None and _rooms_of(visit).results is not None:
        results, name = visit.folder.results(), room.tasks.name
        dataset = results.dataset(name) if name in results.collections else None
        corpus = dataset.corpus if dataset is not None and dataset.layout.documents is not None else None
    return fields_of(corpus, documents)


def _shown(room: Room, table: Table, turn: Turn, judge: str, fields: Mapping[str, Fields]) -> _ShownPair:
    pair, words = turn.pair, Words.of(room.tasks.queries.get(turn.pair.query, ""), ())
    item = turn.item(judge)
    label = table.standing.label(item)
    return _ShownPair(
        pair.number,
        pair.query,
        pair.document,
        words.marked(pair.title),
        words.marked(pair.text),
        fields.get(pair.document, ()),
        "" if label is None else label.kind,
        None if label is None else label.grade,
        label.text if label is not None and label.kind == "unable" else "",
        table.standing.note(item),
        room.suggestion(turn, table.plan),
        secrets.token_urlsafe(12),
        pair.shown,
    )


def _time_left(found: Progress) -> str:
    minutes = found.minutes_left
    if minutes is None or not found.left:
        return ""
    if minutes < 1:
        return "a minute"
    return counted(round(minutes), "minute") if minutes < 90 else f"{minutes / 60:.1f} hours"


def _judge_page(visit: Visit, deciding: bool = False) -> _JudgePage:
    room, judge = _room_of(visit), _judge_of(visit)
    turn = room.turn(judge, deciding)
    disagreements = contested(room.snapshot()) if deciding or turn is None else []
    others = next((given for pair, given in disagreements if turn is not None and pair == turn.pair), ())
    fields = {} if turn is None else _fields(visit, room, [turn.pair.document])
    with room.table() as table:
        mine = progress(table, judge)
        notes = sorted((float(one.grade or 0), table.standing.note(one.item)) for one in others)
        return _JudgePage(
            _pool(room, table.plan),
            "" if turn is None else room.tasks.query_text(turn.pair.query),
            None if turn is None else _shown(room, table, turn, judge, fields),
            mine,
            _time_left(mine),
            tuple(notes) if deciding else (),
            "decide" if deciding else "",
            sum(judge not in table.standing.judged[pair.pair] for pair, _ in disagreements),
            bool(room.comparisons()),
            (stand := room.decision(table, fresh=False)) is not None and stand.decided is not None,
        )


def _decide_page(visit: Visit) -> _JudgePage:
    return _judge_page(visit, deciding=True)


def _query_page(visit: Visit) -> _QueryPage:
    room, judge, name = _room_of(visit), _judge_of(visit), visit.names["query"]
    if name not in room.tasks.of_query:
        raise UnknownName("query of this pool", name, room.tasks.of_query)
    turns, at = room.query_turns(judge, name), visit.one("at")
    fields = _fields(visit, room, [turn.pair.document for turn in turns])
    with room.table() as table:
        return _QueryPage(
            _pool(room, table.plan),
            name,
            room.tasks.query_text(name),
            tuple(_shown(room, table, turn, judge, fields) for turn in turns),
            progress(table, judge),
            int(at) if at.isdecimal() else -1,
        )


def queries_page(visit: Visit) -> QueriesPage:
    """Return the list of a pool's queries with a judge's progress; raises BadValue if the visitor gave no
    name."""
    room, judge = _room_of(visit), _judge_of(visit)
    with room.table() as table:
        rows = [
            QueryRow(
                name,
                room.tasks.query_text(name),
                len(pairs),
                sum(judge in table.standing.judged.get(pair.pair, {}) for pair in pairs),
                sum(
                    table.is_open(pair, judge) or judge in table.shown.get(name, {}).get(pair.document, ())
                    for pair in pairs
                ),
            )
            for name, pairs in room.tasks.of_query.items()
        ]
        return QueriesPage(_pool(room, table.plan), tuple(rows), progress(table, judge))


def _compare_page(visit: Visit) -> _ComparePage:
    room, judge = _room_of(visit), _judge_of(visit)
    found, everything = room.comparison(judge), room.comparisons()
    with room.table() as table:
        label = (table.standing.label(one.item(judge)) for one in everything)
        done = sum(one is not None and one.answers for one in label)
        if found is None:
            shown: tuple[tuple[_ShownDocument, ...], ...] = ((), ())
        else:
            sides = dict(zip((found.first, found.second), found.documents, strict=True))
            left = found.left(table.plan.seed, judge)
            right = found.second if left == found.first else found.first
            fields = _fields(visit, room, [*sides[left], *sides[right]])
            shown = tuple(_documents(room, found, sides[name], fields) for name in (left, right))
        return _ComparePage(
            _pool(room, table.plan),
            -1 if found is None else found.number,
            "" if found is None else found.task,
            "" if found is None else room.query_text(found.query),
            shown[0],
            shown[1],
            secrets.token_urlsafe(12),
            done,
            len(everything),
        )


def _documents(
    room: Room, comparison: Comparison, names: Sequence[str], fields: Mapping[str, Fields]
) -> tuple[_ShownDocument, ...]:
    words = Words.of(room.query_text(comparison.query), ())
    texts = room.texts(comparison.query, names)
    return tuple(
        _ShownDocument(name, words.marked(title), words.marked(text), fields.get(name, ()))
        for name, (title, text) in zip(names, texts, strict=True)
    )


# What judges do.


def store_answer(visit: Visit) -> Redirect:
    """Store a judge's answer and note from a form; redirect to the next pair or the list.

    Raises BadValue for an unnamed visitor, an invalid answer or a text that has changed, UnknownName for an
    unknown pair.
    """
    room, judge, given = _room_of(visit), _judge_of(visit), visit.given
    pair, deciding = room.pair(given.get("number", "")), given.get("back") == "decide"
    if given.get("shown", pair.shown) != pair.shown:
        raise BadValue(
            "the pool, or the document's text, changed after this page: load it again; nothing was stored"
        )
    kind, key = given.get("kind", "graded"), given.get("key", "")
    note = given.get("note", "").strip()
    seconds = _number(given.get("seconds"))
    with room.journal.writing() as standing:
        item = room.item_of(judge, pair, deciding)
        if note != standing.note(item) and "note" in given:
            room.answer(
                judge, pair, Answer("noted", None, note, None, f"{key} note" if key else ""), deciding
            )
        if kind != "noted":
            given_answer = Answer(
                _one_of(ANSWERS, kind), _number(given.get("grade")), given.get("reason", ""), seconds, key
            )
            room.answer(judge, pair, given_answer, deciding)
    return _back(room, given, pair.query)


def prefer(visit: Visit) -> Redirect:
    """Store a judge's preference from a form; redirect to the next comparison.

    Raises BadValue for an unnamed visitor or an unknown kind or grade, UnknownName for an unknown comparison.
    """
    room, judge, given = _room_of(visit), _judge_of(visit), visit.given
    kind = _one_of(PREFERENCES, given.get("kind", "preferred"))
    outcome = _number(given.get("grade")) if kind == "preferred" else None
    seconds, key = _number(given.get("seconds")), given.get("key", "")
    found = Answer(kind, outcome, given.get("reason", ""), seconds, key)
    room.prefer(judge, given.get("number", ""), found)
    return Redirect(address("judge", room.name, "compare"))


def undo(visit: Visit) -> Redirect:
    """Undo the judge's last answer and redirect to its pair, or to the previous page if there is none; raises
    BadValue for an unnamed visitor."""
    room, judge, given = _room_of(visit), _judge_of(visit), visit.given
    undone = room.undo(judge, given.get("key", ""))
    if undone is None:
        return _back(room, given, given.get("query", ""))
    if undone.other:
        return Redirect(address("judge", room.name, "compare"))
    if undone.task == "decide":
        return Redirect(address("judge", room.name, "decide"))
    pair = room.tasks.by_pair.get((undone.query, undone.document))
    in_list = given.get("back") == "query" and undone.task == "judge"
    if pair is not None and (in_list or undone.kind == "noted"):
        return Redirect(address("judge", room.name, "q", undone.query, at=str(pair.number)))
    return Redirect(address("judge", room.name))


def _back(room: Room, given: Mapping[str, str], query: str) -> Redirect:
    back = given.get("back", "")
    if back == "query" and query in room.tasks.of_query:
        return Redirect(address("judge", room.name, "q", query))
    return Redirect(address("judge", room.name, *(["decide"] if back == "decide" else [])))


ANSWERS: Sequence[Kind] = ("graded", "accepted", "unable", "later")
PREFERENCES: Sequence[Kind] = ("preferred", "unable", "later")


def _one_of(kinds: Sequence[Kind], text: str) -> Kind:
    for kind in kinds:
        if kind == text:
            return kind
    raise BadValue(f"'{text}' is no answer; expected one of {', '.join(kinds)}")


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(given: Mapping[str, str], name: str, otherwise: int) -> int:
    text = given.get(name, str(otherwise)).strip()
    if not (text.isdecimal() and int(text)):
        raise BadValue(f"'{text}' is no number from 1 ({name})")
    return int(text)


# What supervisors see and do.


@dataclass(frozen=True)
class RoomRow:
    """A pool in the list of pools, with its progress."""

    name: str
    collection: str
    pairs: int
    queries: int
    judged: int
    """Pairs with as many grades as requested; deferred ones count."""
    contested: int
    """Undecided pairs without a majority grade."""
    changes: bool
    """True if there are judgments, and rankings to score by them."""
    golden: bool
    """True for the golden set of typed queries."""


@dataclass(frozen=True)
class RoomsPage:
    """The list of pools open for judging."""

    rooms: tuple[RoomRow, ...]


@dataclass(frozen=True)
class _SupervisorPage:
    pool: _ShownPool
    plan: Plan
    stands: Supervision
    events: int
    judges: tuple[str, ...]
    """Judges with a URL."""
    preferences: PreferenceOrder | None
    """Of compared rankings; None if nobody compared any."""
    documents: int
    """Answered comparisons of documents."""
    systems: tuple[str, ...]
    files: tuple[str, ...]
    suggests: bool
    """True if a model's grades are suggested."""
    place: str
    """Path of the golden set's collection file; "" for other pools."""
    decision: Decision | None
    """The best system by the judgments so far; None while no query is judged."""


@dataclass(frozen=True)
class _TakenRow:
    """A group of labels withdrawn together, as the page lists it."""

    number: int
    labels: int
    when: str
    """To the minute, in UTC."""
    author: str
    reason: str


@dataclass(frozen=True)
class _BackPage:
    pool: _ShownPool
    query: str
    judge: str
    since: str
    until: str
    changed: bool
    """True for labels whose document has changed, only."""
    labels: int
    shown: tuple[Event, ...]
    """The first of the selected labels."""
    judges: tuple[str, ...]
    said: str
    """Message on labels just withdrawn or restored; "" for none."""
    before: tuple[_TakenRow, ...]
    """Groups of withdrawn labels, which can be restored, the latest first."""


@dataclass(frozen=True)
class _ChangedRow:
    query: str
    text: str
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class _ChangedPage:
    pool: _ShownPool
    changes: Changes | None
    """None without judgments, or if no system answers."""
    systems: tuple[System, ...]
    verdicts: str
    """Which verdicts on pairs of systems changed; "" if none did."""
    queries: tuple[_ChangedRow, ...]
    """The first changed queries."""
    lacking: tuple[tuple[System, str], ...]
    """(system, why it has no scores)."""
    files: tuple[str, ...]
    command: str
    """The command that writes the judgments together with the earlier ones, or scores a golden set."""


def start(visit: Visit) -> Redirect | RoomsPage:
    """Return the list of pools open for judging; a redirect if there is one only. Raises BadValue for none."""
    found = list(_rooms_of(visit))
    if len(found) == 1:
        return Redirect(address("judge", found[0].name, *([] if visit.judge else ["progress"])))
    return RoomsPage(tuple(map(room_row, found)))


def room_row(room: Room) -> RoomRow:
    """Return a pool with its progress, for the list of pools."""
    tasks = room.tasks
    with room.table() as table:
        return RoomRow(
            room.name,
            tasks.name,
            len(tasks.by_pair),
            len(tasks.of_query),
            table.judged_pairs,
            len(contested(table)),
            bool(table.standing.answers) and bool(room.results or tasks.golden),
            bool(tasks.golden),
        )


def _progress_page(visit: Visit) -> _SupervisorPage:
    room = _room_of(visit)
    table = room.snapshot()
    stands, plan, events = supervision(table), table.plan, table.standing.last
    compared = [event for event in table.standing.current() if event.kind == "preferred"]
    rankings = [
        Preference(event.query, event.document, event.other, float(event.grade or 0))
        for event in compared
        if event.task == "rankings"
    ]
    return _SupervisorPage(
        _pool(room, plan),
        plan,
        stands,
        events,
        _rooms_of(visit).judges,
        preference_order(rankings) if rankings else None,
        sum(event.task == "documents" for event in compared),
        room.tasks.systems,
        tuple(name.removesuffix(".json") for name in files_of(room)),
        bool(room.tasks.suggestions),
        str(room.folder.with_name(room.tasks.golden)) if room.tasks.golden else "",
        room.decision(table),
    )


def set_plan(visit: Visit) -> Redirect:
    """Change a pool's settings by a form, and redirect to its progress; raises BadValue for values out of
    range and for a scale without a grade already given."""
    room, given = _room_of(visit), visit.given
    values: dict[str, object] = {}
    for one in fields_of_class(Plan):
        if one.name in given:
            text = given[one.name].strip()
            try:
                if one.name == "grades":
                    values["grades"] = tuple(int(part) for part in text.replace(",", " ").split())
                else:
                    values[one.name] = (int if one.name in ("each", "seed") else float)(text)
            except ValueError:
                raise BadValue(f"'{text}' is no number ({one.name})") from None
    room.set_plan(replace(room.plan(), **values))  # type: ignore[arg-type]  # checked by the plan
    return Redirect(address("judge", room.name, "progress"))


def _add_comparisons(visit: Visit) -> Redirect:
    room, given = _room_of(visit), visit.given
    seed = room.plan().seed
    if given.get("task") == "documents":
        room.compare(compared_documents(room.tasks, _whole(given, "each", 1), seed))
    else:
        runs = room.subject().runs
        names = [given.get("first", ""), given.get("second", "")]
        for name in names:
            if name not in runs:
                raise UnknownName("system of this pool", name, runs)
        if names[0] == names[1]:
            raise BadValue("a system is compared with another one; name two")
        first, second = ((name, runs[name]) for name in names)
        room.compare(compared_rankings(first, second, _whole(given, "k", 5), seed))
    return Redirect(address("judge", room.name, "progress"))


def back_page(visit: Visit) -> _BackPage:
    """Return the page of the labels that the URL's filter selects for withdrawal; raises BadValue for an
    invalid date."""
    return _back_page(visit, dict(visit.asked), "")


def _back_page(visit: Visit, asked: Mapping[str, str], said: str) -> _BackPage:
    room = _room_of(visit)
    with room.journal.reading() as standing:
        labels = _filtered(room, asked, standing.current()) if any(map(asked.get, FILTERS)) else []
        judges = tuple(sorted({event.judge for event in standing.current()}))
    return _BackPage(
        _pool(room, room.plan()),
        asked.get("query", ""),
        asked.get("judge", ""),
        asked.get("since", ""),
        asked.get("until", ""),
        bool(asked.get("changed")),
        len(labels),
        tuple(labels[:SHOWN_LABELS]),
        judges,
        said,
        tuple(map(_taken_row, room.taken_back())),
    )


def _taken_row(taken: TakenBack) -> _TakenRow:
    first = taken.events[0]
    when = datetime.fromtimestamp(first.time, UTC).isoformat(" ", "minutes")[:16]
    return _TakenRow(taken.group_number, len(taken.events), when, first.author, first.text)


FILTERS = ("query", "judge", "since", "until", "changed")


def _filtered(room: Room, asked: Mapping[str, str], labels: Sequence[Event]) -> list[Event]:
    query, judge, since, until, changed = (asked.get(name, "") for name in FILTERS)
    first, end = _date(since, -math.inf), _date(until, math.inf)
    return [
        one
        for one in labels
        if query in ("", one.query)
        and judge in ("", one.judge)
        and first <= one.time < end
        and (not changed or room.tasks.has_changed(one))
    ]


def _date(text: str, otherwise: float) -> float:
    if not text:
        return otherwise
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadValue(f"'{text}' is no date; expected such as 2026-11-30 or 2026-11-30T14:00") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _take_back(visit: Visit) -> _BackPage:
    room, given = _room_of(visit), visit.given
    with room.journal.writing() as standing:
        if not any(map(given.get, FILTERS)):
            raise BadValue("say which labels: by query, judge, time, or documents that changed")
        labels = _filtered(room, given, standing.current())
        if str(len(labels)) != given.get("labels", ""):
            raise BadValue(
                f"{len(labels)} labels are meant now, {given.get('labels') or 'none'} were shown; look at them again"
            )
        taken = room.take_back(labels, visit.judge, given.get("reason", "") or "taken back together")
    return _back_page(
        visit, {}, f"{counted(taken, 'label')} taken back. The journal keeps what was said before."
    )


def _put_back(visit: Visit) -> _BackPage:
    count = _room_of(visit).put_back(visit.given.get("number", ""), visit.judge)
    return _back_page(visit, {}, f"{counted(count, 'label')} put back.")


def _changed_page(visit: Visit) -> _ChangedPage:
    room, measure = _room_of(visit), visit.one("measure", "nDCG@10")
    results = visit.folder.results() if _rooms_of(visit).results is not None else None
    subject: Subject | None = None
    lacking: tuple[tuple[str, str], ...] = ()
    command = ["weir", "labels", "relabel", str(room.journal.path), *room.results, "-o", "judged.tsv"]
    if room.tasks.golden:
        place = str(room.folder.with_name(room.tasks.golden))
        command = ["weir", "run", "-d", place, "-s", "bm25", "-m", measure, "-o", "golden-results/"]
        if results is not None:
            subject, lacking = golden_subject(results, room.tasks.name, room.tasks.asked)
    with room.journal.reading() as standing:
        graded = any(event.kind in GRADED for event in standing.current())
    changes = None
    if graded and (subject.runs if subject is not None else not room.tasks.golden):
        changes = room.changes(measure, subject)

    def system(name: str) -> System:
        cells = () if results is None else results.cells
        labels = [cell.label for cell in cells if name in (cell.label, cell.called)]
        return System.of(results.numbers, labels[0]) if results and labels else System(name, name, 0)

    return _ChangedPage(
        _pool(room, room.plan()),
        changes,
        tuple(system(row.system) for row in changes.rows) if changes is not None else (),
        _verdicts(changes),
        tuple(
            _ChangedRow(one.query, room.query_text(one.query), one.before, one.after)
            for one in (changes.of_query[:SHOWN_QUERIES] if changes is not None else ())
        ),
        tuple((system(name), reason) for name, reason in lacking),
        (*[one for one in files_of(room) if one not in FILES], "judgments.tsv") if graded else (),
        shlex.join(command),
    )


def _verdicts(changes: Changes | None) -> str:
    found = None if changes is None else changes.verdicts
    if found is None:
        return ""
    of = f"{counted(found.pairs, 'pair')} of systems (permutation test, Holm)"
    told = [
        f"{number} {'is' if number == 1 else 'are'} {change}"
        for number, change in (
            (found.only_second, "told apart now and not before"),
            (found.only_first, "told apart no more"),
            (found.turned, "turned round: the other system is better now"),
        )
        if number
    ]
    return f"Verdicts on {of}: {'; '.join(told) if told else 'all as before'}."


def download(visit: Visit) -> Download:
    """Return a file of a pool for download; raises UnknownName for an unknown file."""
    room = _room_of(visit)
    found = {name.removesuffix(".json"): name for name in files_of(room)}
    if visit.names["file"] not in found:
        raise UnknownName("file", visit.names["file"], found)
    name = found[visit.names["file"]]
    return Download(name, exported(room, name))


def _new_room(visit: Visit) -> Redirect:
    given = visit.given
    systems = [name for name in given.get("systems", "").split("\n") if name]
    queries = [name for name in given.get("queries", "").split("\n") if name]
    if "list" in given:
        asked = parse_qsl(given["list"].partition("?")[2], keep_blank_values=True)
        names = {"collection": given.get("collection", "")}
        listed = Listed.of(replace(visit, names=names, asked=asked), visit.folder.results())
        systems = [cell.called for cell in listed.compared.cells]
        queries = [listed.compared.queries[n] for n in listed.order.tolist()]
    k = _whole(given, "k", 10)
    room = _rooms_of(visit).made(given.get("collection", ""), systems, queries, k, bool(given.get("again")))
    return Redirect(address("judge", room.name, *([] if visit.judge else ["progress"])))


def add_query(visit: Visit) -> Redirect:
    """Add a query from a form to the collection's pool of single queries, a typed query to its golden set;
    redirect to judging it.

    Raises BadValue if no documents are given or the collection's texts are not on this machine.
    """
    given, rooms, collection = visit.given, _rooms_of(visit), visit.given.get("collection", "")
    dataset = visit.folder.results().dataset(collection)
    if dataset is None or dataset.layout.documents is None or dataset.layout.queries is None:
        raise BadValue(f"the texts of {collection} are not here as they were measured, to be judged")
    documents = re.split(r"\r?\n", given.get("documents", ""))  # as browsers send line ends
    query, text = given.get("query", ""), given.get("text", "").strip()
    if text:
        room, query = rooms.with_typed(collection, dataset, text, documents)
    else:
        room = rooms.with_query(collection, dataset, query, documents)
    return Redirect(address("judge", room.name, *(["q", query] if visit.judge else ["progress"])))


def _remove_query(visit: Visit) -> Redirect:
    room = _room_of(visit)
    if not room.tasks.golden:
        raise BadValue(
            f"{room.name} has queries of its collection, which stay; golden sets alone lose queries"
        )
    room.remove_query(visit.given.get("query", ""), visit.judge)
    return Redirect(address("judge", room.name, "queries" if visit.judge else "progress"))


PAGES: Sequence[Page] = [
    Page("/judge", "judging/rooms.html", start, judges=True),
    Page("/judge", "judging/rooms.html", _new_room, writes=True),
    Page("/judge/query", "judging/query.html", add_query, writes=True),
    Page("/judge/{room}/progress", "judging/progress.html", _progress_page),
    Page("/judge/{room}/back", "judging/back.html", back_page),
    Page("/judge/{room}/changed", "judging/changed.html", _changed_page),
    Page("/judge/{room}/out/{file}", "refusal.html", download),
    Page("/judge/{room}/queries", "judging/queries.html", queries_page, judges=True),
    Page("/judge/{room}/q/{query}", "judging/query.html", _query_page, judges=True),
    Page("/judge/{room}/decide", "judging/judge.html", _decide_page, judges=True),
    Page("/judge/{room}/compare", "judging/compare.html", _compare_page, judges=True),
    Page("/judge/{room}", "judging/judge.html", _judge_page, judges=True),
    Page("/judge/{room}/answer", "judging/judge.html", store_answer, judges=True, writes=True),
    Page("/judge/{room}/prefer", "judging/compare.html", prefer, judges=True, writes=True),
    Page("/judge/{room}/undo", "judging/judge.html", undo, judges=True, writes=True),
    Page("/judge/{room}/plan", "judging/progress.html", set_plan, writes=True),
    Page("/judge/{room}/compare", "judging/progress.html", _add_comparisons, writes=True),
    Page("/judge/{room}/back", "judging/back.html", _take_back, writes=True),
    Page("/judge/{room}/remove", "judging/queries.html", _remove_query, writes=True),
    Page("/judge/{room}/put-back", "judging/back.html", _put_back, writes=True),
]
