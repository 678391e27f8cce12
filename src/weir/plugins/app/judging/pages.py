"""The pages of judges and of their supervisor."""

from __future__ import annotations

import math
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from weir.core.rounding import counted
from weir.errors import BadValue, UnknownName
from weir.plugins.app.judging.assignment import (
    Plan,
    Progress,
    Table,
    Turn,
    contested,
    progress,
)
from weir.plugins.app.judging.exports import FILES, exported
from weir.plugins.app.judging.journal import Event, Kind
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
"""Reasons of "cannot tell" that are offered."""
SHOWN_LABELS = 200
"""Most labels that a page lists before they are taken back."""


# What judges see. None of it tells system, rank, or another's label, but where disagreements are decided.


@dataclass(frozen=True)
class ShownPool:
    """The facts about a pool that all its pages show."""

    name: str
    """Its name in URLs."""
    collection: str
    grades: tuple[int, ...]
    reasons: tuple[str, ...]
    """Reasons of "cannot tell" that are offered."""
    guidelines: str
    """Markdown."""
    golden: str
    """Name of the collection file beside the pool that it makes; "" for none."""


@dataclass(frozen=True)
class ShownPair:
    """A pair with its texts, as a judge sees it."""

    number: int
    query: str
    document: str
    title: Marked
    text: Marked
    kind: str
    """The judge's own answer, see `Event.kind`; "" without one."""
    grade: float | None
    """The judge's own grade; None without one."""
    reason: str
    """The judge's own reason of "cannot tell"."""
    note: str
    """The judge's own note."""
    suggested: float | None
    """A model's grade; None if none is shown."""
    key: str
    """Key of the answer: sent twice it counts once."""


@dataclass(frozen=True)
class JudgePage:
    """The page on which a judge grades the next pair."""

    pool: ShownPool
    query: str
    """Text of the query; its identifier if the text is unknown."""
    pair: ShownPair | None
    """None if nothing is left."""
    progress: Progress
    time_left: str
    """"" if unknown."""
    deciding: tuple[tuple[float, str], ...]
    """(grade, note) of others if a disagreement is decided, by grade; else ()."""
    back: str
    """The page before: "", "decide", or "query" for a list."""
    to_decide: int
    """Disagreements that this judge may decide; 0 while there is something to judge."""
    compares: bool
    """True if there is something to compare."""
    decided: bool
    """True if it is certain already which system is best, so that the rest need not be judged."""


@dataclass(frozen=True)
class QueryPage:
    """The pairs of a query that a judge has or may take."""

    pool: ShownPool
    name: str
    query: str
    pairs: tuple[ShownPair, ...]
    progress: Progress


@dataclass(frozen=True)
class QueryRow:
    """A query in a judge's list of queries, with the judge's progress."""

    name: str
    query: str
    pairs: int
    done: int
    """Pairs that this judge has answered or deferred."""
    open: int
    """Pairs that this judge may still take."""


@dataclass(frozen=True)
class QueriesPage:
    """The queries of a pool, with a judge's progress."""

    pool: ShownPool
    queries: tuple[QueryRow, ...]
    progress: Progress


@dataclass(frozen=True)
class ShownDocument:
    """A document with its text, as one side of a comparison."""

    document: str
    title: Marked
    text: Marked


@dataclass(frozen=True)
class ComparePage:
    """The page on which a judge compares two documents or rankings."""

    pool: ShownPool
    number: int
    """-1 if nothing is left."""
    task: str
    query: str
    left: tuple[ShownDocument, ...]
    right: tuple[ShownDocument, ...]
    key: str
    done: int
    """Comparisons that this judge has answered."""
    of: int
    """Number of all comparisons."""


def rooms_of(visit: Visit) -> Rooms:
    """Return the open pools; raises BadValue if there are none."""
    if visit.rooms is None:
        raise BadValue("no pool is open: weir open POOL --judge NAME opens a folder of weir labels pool")
    return visit.rooms


def room_of(visit: Visit) -> Room:
    """Return the pool in the URL; raises UnknownName, and BadValue if there are none."""
    return rooms_of(visit).room(visit.names["room"])


def _judge_of(visit: Visit) -> str:
    if not visit.judge:
        raise BadValue("nobody's name came with this address: weir open ... --judge NAME says who judges")
    return visit.judge


def _pool(room: Room, plan: Plan) -> ShownPool:
    guidelines = room.tasks.guidelines_for(plan.grades)
    return ShownPool(room.name, room.tasks.name, plan.grades, REASONS, guidelines, room.tasks.golden)


def _shown(room: Room, table: Table, turn: Turn, judge: str) -> ShownPair:
    pair, words = turn.pair, Words.of(room.tasks.queries.get(turn.pair.query, ""), ())
    item = turn.item(judge)
    label = table.standing.label(item)
    return ShownPair(
        pair.number,
        pair.query,
        pair.document,
        words.marked(pair.title),
        words.marked(pair.text),
        "" if label is None else label.kind,
        None if label is None else label.grade,
        label.text if label is not None and label.kind == "unable" else "",
        table.standing.note(item),
        room.suggestion(turn, table.plan),
        secrets.token_urlsafe(12),
    )


def _time_left(found: Progress) -> str:
    minutes = found.minutes_left
    if minutes is None or not found.left:
        return ""
    if minutes < 1:
        return "a minute"
    return counted(round(minutes), "minute") if minutes < 90 else f"{minutes / 60:.1f} hours"


def judge_page(visit: Visit, deciding: bool = False) -> JudgePage:
    """Return the current pair of a judge.

    Raises UnknownName for another pool, BadValue for a visitor without a name.
    """
    room, judge = room_of(visit), _judge_of(visit)
    turn = room.turn(judge, deciding)
    disagreements = contested(room.snapshot()) if deciding or turn is None else []
    others = next((given for pair, given in disagreements if turn is not None and pair == turn.pair), ())
    with room.table() as table:
        mine = progress(table, judge)
        notes = sorted((float(one.grade or 0), table.standing.note(one.item)) for one in others)
        return JudgePage(
            _pool(room, table.plan),
            "" if turn is None else room.tasks.query_text(turn.pair.query),
            None if turn is None else _shown(room, table, turn, judge),
            mine,
            _time_left(mine),
            tuple(notes) if deciding else (),
            "decide" if deciding else "",
            sum(judge not in table.standing.judged[pair.pair] for pair, _ in disagreements),
            bool(room.comparisons()),
            (stand := room.decision(table, fresh=False)) is not None and stand.decided is not None,
        )


def decide_page(visit: Visit) -> JudgePage:
    """Return the disagreement that a judge is to decide; raises as `judge_page`."""
    return judge_page(visit, deciding=True)


def query_page(visit: Visit) -> QueryPage:
    """Return the pairs of a query that a judge has graded or may grade; raises UnknownName for another query, as
    `judge_page`."""
    room, judge, name = room_of(visit), _judge_of(visit), visit.names["query"]
    if name not in room.tasks.of_query:
        raise UnknownName("query of this pool", name, room.tasks.of_query)
    turns = room.query_turns(judge, name)
    with room.table() as table:
        return QueryPage(
            _pool(room, table.plan),
            name,
            room.tasks.query_text(name),
            tuple(_shown(room, table, turn, judge) for turn in turns),
            progress(table, judge),
        )


def queries_page(visit: Visit) -> QueriesPage:
    """Return the queries of a pool with a judge's progress; raises as `judge_page`."""
    room, judge = room_of(visit), _judge_of(visit)
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


def compare_page(visit: Visit) -> ComparePage:
    """Return the current comparison of a judge; raises as `judge_page`."""
    room, judge = room_of(visit), _judge_of(visit)
    found, everything = room.comparison(judge), room.comparisons()
    with room.table() as table:
        label = (table.standing.label(one.item(judge)) for one in everything)
        done = sum(one is not None and one.answers for one in label)
        if found is None:
            shown: tuple[tuple[ShownDocument, ...], ...] = ((), ())
        else:
            sides = dict(zip((found.first, found.second), found.documents, strict=True))
            left = found.left(table.plan.seed, judge)
            right = found.second if left == found.first else found.first
            shown = tuple(_documents(room, found, sides[name]) for name in (left, right))
        return ComparePage(
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


def _documents(room: Room, comparison: Comparison, names: Sequence[str]) -> tuple[ShownDocument, ...]:
    words = Words.of(room.query_text(comparison.query), ())
    texts = room.texts(comparison.query, names)
    return tuple(
        ShownDocument(name, words.marked(title), words.marked(text))
        for name, (title, text) in zip(names, texts, strict=True)
    )


# What judges do.


def answer(visit: Visit) -> Redirect:
    """Store an answer, and go on to the next pair or back to the list.

    Raises BadValue for an incomplete answer, UnknownName for another pair, StoreError if the disk refuses.
    """
    room, judge, given = room_of(visit), _judge_of(visit), visit.given
    pair, deciding = room.pair(given.get("number", "")), given.get("back") == "decide"
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
    """Store a preference and go on; raises as `answer`."""
    room, judge, given = room_of(visit), _judge_of(visit), visit.given
    kind = _one_of(PREFERENCES, given.get("kind", "preferred"))
    outcome = _number(given.get("grade")) if kind == "preferred" else None
    seconds, key = _number(given.get("seconds")), given.get("key", "")
    found = Answer(kind, outcome, given.get("reason", ""), seconds, key)
    room.prefer(judge, given.get("number", ""), found)
    return Redirect(address("judge", room.name, "compare"))


def undo(visit: Visit) -> Redirect:
    """Undo the last own answer and show its pair again; raises StoreError if the disk refuses."""
    room, judge = room_of(visit), _judge_of(visit)
    undone = room.undo(judge, visit.given.get("key", ""))
    if undone is None:
        return _back(room, visit.given, visit.given.get("query", ""))
    if undone.other:
        return Redirect(address("judge", room.name, "compare"))
    if undone.task == "decide":
        return Redirect(address("judge", room.name, "decide"))
    return _back(room, visit.given if visit.given.get("back") == "query" else {}, undone.query)


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
    """Return a field as a whole number from 1; raises BadValue for other text."""
    text = given.get(name, str(otherwise)).strip()
    if not (text.isdecimal() and int(text)):
        raise BadValue(f"'{text}' is no number from 1 ({name})")
    return int(text)


# What supervisors see and do.


@dataclass(frozen=True)
class RoomRow:
    """A pool in the list of open pools, with its progress."""

    name: str
    collection: str
    pairs: int
    queries: int
    judged: int
    """Pairs with as many grades as requested."""
    contested: int
    """Pairs on which judges differ and that nobody has decided."""
    changes: bool
    """True if there are judgments and the pool names its results, so that their changes can be shown."""


@dataclass(frozen=True)
class RoomsPage:
    """The page that lists all open pools."""

    rooms: tuple[RoomRow, ...]


@dataclass(frozen=True)
class SupervisorPage:
    """The owner's page on a pool: progress, agreement and settings."""

    pool: ShownPool
    plan: Plan
    stands: Supervision
    events: int
    judges: tuple[str, ...]
    """Names of the judges with a URL."""
    preferences: PreferenceOrder | None
    """Of rankings that were compared; None if nobody compared any."""
    documents: int
    """Comparisons of documents that were answered."""
    systems: tuple[str, ...]
    files: tuple[str, ...]
    suggests: bool
    """True if a model's grades are suggested."""
    place: str
    """Path of the golden set's collection file; "" for another pool."""
    decision: Decision | None
    """The system that is best by the judgments so far; None while no query is judged."""


@dataclass(frozen=True)
class TakenRow:
    """A group of labels that were taken back together, in the owner's list."""

    number: int
    labels: int
    when: str
    """To the minute, in UTC."""
    author: str
    reason: str


@dataclass(frozen=True)
class BackPage:
    """The labels that a filter would take back."""

    pool: ShownPool
    query: str
    judge: str
    since: str
    until: str
    changed: bool
    """Only labels of documents whose text has changed."""
    labels: int
    shown: tuple[Event, ...]
    """The first of these labels."""
    judges: tuple[str, ...]
    said: str
    """Message on labels that were just taken back or put back; "" for none."""
    before: tuple[TakenRow, ...]
    """Groups of labels that were taken back and can be put back, the latest first."""


@dataclass(frozen=True)
class ChangedPage:
    """The page of scores before and after the judgments of a pool."""

    pool: ShownPool
    changes: Changes
    command: str
    """The command that writes the judgments together with the earlier ones."""


def start(visit: Visit) -> Redirect | RoomsPage:
    """Return the list of open pools, or redirect to the only one."""
    found = list(rooms_of(visit))
    if len(found) == 1:
        return Redirect(address("judge", found[0].name, *([] if visit.judge else ["progress"])))
    return RoomsPage(tuple(map(room_row, found)))


def room_row(room: Room) -> RoomRow:
    """Return a pool's progress."""
    tasks = room.tasks
    with room.table() as table:
        return RoomRow(
            room.name,
            tasks.name,
            len(tasks.pairs),
            len(tasks.of_query),
            table.judged_pairs,
            len(contested(table)),
            bool(table.standing.answers) and bool(room.results),
        )


def progress_page(visit: Visit) -> SupervisorPage:
    """Return the state of a pool's judging; raises UnknownName for another pool."""
    room = room_of(visit)
    table = room.snapshot()
    stands, plan, events = supervision(table), table.plan, table.standing.last
    compared = [event for event in table.standing.current() if event.kind == "preferred"]
    rankings = [
        Preference(event.query, event.document, event.other, float(event.grade or 0))
        for event in compared
        if event.task == "rankings"
    ]
    return SupervisorPage(
        _pool(room, plan),
        plan,
        stands,
        events,
        rooms_of(visit).judges,
        preference_order(rankings) if rankings else None,
        sum(event.task == "documents" for event in compared),
        room.tasks.systems,
        tuple(_without_json(name) for name in FILES),
        bool(room.tasks.suggestions),
        str(room.folder.with_name(room.tasks.golden)) if room.tasks.golden else "",
        room.decision(table),
    )


def set_plan(visit: Visit) -> Redirect:
    """Change the plan of a pool; raises BadValue for values out of range."""
    room, given = room_of(visit), visit.given
    values: dict[str, object] = {}
    for one in fields(Plan):
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


def add_comparisons(visit: Visit) -> Redirect:
    """Add comparisons of documents of the pool, or of two systems' rankings.

    Raises BadValue for numbers or systems that give none, UnknownName for another system.
    """
    room, given = room_of(visit), visit.given
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


def back_page(visit: Visit) -> BackPage:
    """Return the labels that a filter would take back; raises BadValue for an invalid date."""
    return _back_page(visit, dict(visit.asked), "")


def _back_page(visit: Visit, asked: Mapping[str, str], said: str) -> BackPage:
    room = room_of(visit)
    with room.journal.reading() as standing:
        labels = _filtered(room, asked, standing.current()) if any(map(asked.get, FILTERS)) else []
        judges = tuple(sorted({event.judge for event in standing.current()}))
    return BackPage(
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


def _taken_row(taken: TakenBack) -> TakenRow:
    first = taken.events[0]
    when = datetime.fromtimestamp(first.time, UTC).isoformat(" ", "minutes")[:16]
    return TakenRow(taken.number, len(taken.events), when, first.author, first.text)


FILTERS = ("query", "judge", "since", "until", "changed")


def _filtered(room: Room, asked: Mapping[str, str], labels: Sequence[Event]) -> list[Event]:
    """Return the labels that pass a filter; an empty field excludes none."""
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
    """Parse a date; return seconds since 1970, `otherwise` for an empty field."""
    if not text:
        return otherwise
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadValue(f"'{text}' is no date; expected such as 2026-11-30 or 2026-11-30T14:00") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def take_back(visit: Visit) -> BackPage:
    """Take back the labels of a filter, unless their number has changed since the page showed it.

    Raises BadValue if it finds another number, and without a filter; StoreError if the disk refuses.
    """
    room, given = room_of(visit), visit.given
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


def put_back(visit: Visit) -> BackPage:
    """Put back a group of labels that was taken back; raises UnknownName for another group, StoreError if the
    disk refuses.
    """
    count = room_of(visit).put_back(visit.given.get("number", ""), visit.judge)
    return _back_page(visit, {}, f"{counted(count, 'label')} put back.")


def changed_page(visit: Visit) -> ChangedPage:
    """Return scores before and after the judgments; raises BadValue if the pool does not name its results."""
    room = room_of(visit)
    changes = room.changes(visit.one("measure", "nDCG@10"))
    names = shlex.join(
        ["weir", "labels", "relabel", str(room.journal.path), *room.results, "-o", "judged.tsv"]
    )
    return ChangedPage(_pool(room, room.plan()), changes, names)


def download(visit: Visit) -> Download:
    """Return an exported file; raises UnknownName for another file."""
    room = room_of(visit)
    found = {_without_json(name): name for name in FILES}
    if visit.names["file"] not in found:
        raise UnknownName("file", visit.names["file"], found)
    name = found[visit.names["file"]]
    return Download(name, exported(room, name))


def _without_json(name: str) -> str:
    """Return the name of a file in URLs, where an ending `.json` means the JSON of a page."""
    return name.removesuffix(".json")


def new_room(visit: Visit) -> Redirect:
    """Make a pool from a page: its systems, and all or the chosen queries of its list.

    Raises as `Rooms.made`, and UnknownName for an unknown list.
    """
    given = visit.given
    systems = [name for name in given.get("systems", "").split("\n") if name]
    queries = [name for name in given.get("queries", "").split("\n") if name]
    if "list" in given:
        asked = parse_qsl(given["list"].partition("?")[2], keep_blank_values=True)
        names = {"collection": given.get("collection", "")}
        listed = Listed.of(replace(visit, names=names, asked=asked), visit.folder.results())
        systems = [cell.label for cell in listed.compared.cells]
        queries = [listed.compared.queries[n] for n in listed.order.tolist()]
    k = _whole(given, "k", 10)
    room = rooms_of(visit).made(given.get("collection", ""), systems, queries, k, bool(given.get("again")))
    return Redirect(address("judge", room.name, *([] if visit.judge else ["progress"])))


def add_query(visit: Visit) -> Redirect:
    """Add a query with documents of a page to the pool of its collection, and go on to judge them.

    A typed query belongs to the golden set. Raises BadValue for documents that are no list and for texts that
    are not on this machine, and as `Rooms.with_query`.
    """
    given, rooms, collection = visit.given, rooms_of(visit), visit.given.get("collection", "")
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


PAGES: Sequence[Page] = [
    Page("/judge", "judging/rooms.html", start, judges=True),
    Page("/judge", "judging/rooms.html", new_room, writes=True),
    Page("/judge/query", "judging/query.html", add_query, writes=True),
    Page("/judge/{room}/progress", "judging/progress.html", progress_page),
    Page("/judge/{room}/back", "judging/back.html", back_page),
    Page("/judge/{room}/changed", "judging/changed.html", changed_page),
    Page("/judge/{room}/out/{file}", "refusal.html", download),
    Page("/judge/{room}/queries", "judging/queries.html", queries_page, judges=True),
    Page("/judge/{room}/q/{query}", "judging/query.html", query_page, judges=True),
    Page("/judge/{room}/decide", "judging/judge.html", decide_page, judges=True),
    Page("/judge/{room}/compare", "judging/compare.html", compare_page, judges=True),
    Page("/judge/{room}", "judging/judge.html", judge_page, judges=True),
    Page("/judge/{room}/answer", "judging/judge.html", answer, judges=True, writes=True),
    Page("/judge/{room}/prefer", "judging/compare.html", prefer, judges=True, writes=True),
    Page("/judge/{room}/undo", "judging/judge.html", undo, judges=True, writes=True),
    Page("/judge/{room}/plan", "judging/progress.html", set_plan, writes=True),
    Page("/judge/{room}/compare", "judging/progress.html", add_comparisons, writes=True),
    Page("/judge/{room}/back", "judging/back.html", take_back, writes=True),
    Page("/judge/{room}/put-back", "judging/back.html", put_back, writes=True),
]
