"""The journal of judgments: an append-only SQLite file of events, and the labels that follow from them."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from weir.errors import StoreError
from weir.files.journal_labels import APPLICATION_ID, JOURNAL_VERSION, Kind, Task

Pair: TypeAlias = tuple[str, str]
"""(query, document)."""
Item: TypeAlias = tuple[str, Task, str, str, str]
"""(judge, task, query, document, other document): the key of a label."""
UNDOABLE = frozenset(("graded", "accepted", "unable", "later", "preferred", "noted"))
GRADED = frozenset(("graded", "accepted"))
BUSY_SECONDS = 10.0
"""Seconds to wait while another process writes."""


@dataclass(frozen=True)
class Event:
    """An entry of the journal: a judge's grade, preference, note or undo, or a withdrawal."""

    judge: str
    """The judge whose label it sets."""
    kind: Kind
    query: str = ""
    document: str = ""
    """The document; of a comparison the first by name."""
    task: Task = "judge"
    grade: float | None = None
    """The grade; of a comparison 1 if `document` is preferred, -1 if `other` is, 0 if neither."""
    text: str = ""
    """The note, or the reason of "cannot tell" or of a withdrawal."""
    seconds: float | None = None
    """Time from showing to answering."""
    content: str = ""
    """Hash of the document's text when it was shown."""
    guidelines: str = ""
    """Version of the guidelines when it was shown."""
    suggested: float | None = None
    """The grade that a model suggested, if it was shown."""
    other: str = ""
    """The second of the compared documents or rankings."""
    left: str = ""
    """The compared document or ranking that was on the left."""
    undoes: int | None = None
    """Number of the undone event."""
    author: str = ""
    """Who did it, if not the judge."""
    key: str = ""
    """Random key of the page: an answer sent twice counts once."""
    time: float = 0.0
    """Seconds since 1970."""
    number: int = 0
    """From 1, in order."""

    @property
    def item(self) -> Item:
        """The key of the label: (judge, task, query, document, other document)."""
        return self.judge, self.task, self.query, self.document, self.other

    @property
    def answers(self) -> bool:
        """True for a grade, a preference, or "cannot tell"."""
        return self.kind in ("graded", "accepted", "unable", "preferred")


COLUMNS = tuple(one.name for one in fields(Event))
_SCHEMA = f"""
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE claims (
    judge TEXT NOT NULL, task TEXT NOT NULL, query TEXT NOT NULL, document TEXT NOT NULL, other TEXT NOT NULL,
    time REAL NOT NULL, PRIMARY KEY (judge, task, query, document, other)
) WITHOUT ROWID;
CREATE TABLE events (
    judge TEXT NOT NULL, kind TEXT NOT NULL, query TEXT NOT NULL, document TEXT NOT NULL, task TEXT NOT NULL,
    grade REAL, text TEXT NOT NULL, seconds REAL, content TEXT NOT NULL, guidelines TEXT NOT NULL, suggested REAL,
    other TEXT NOT NULL, "left" TEXT NOT NULL, undoes INTEGER, author TEXT NOT NULL, key TEXT, time REAL NOT NULL,
    number INTEGER PRIMARY KEY AUTOINCREMENT
);
CREATE UNIQUE INDEX events_key ON events (key) WHERE key IS NOT NULL;
CREATE INDEX events_undoes ON events (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX events_item ON events (judge, task, query, document, other);
CREATE TRIGGER events_are_kept BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are only appended'); END;
CREATE TRIGGER events_stay BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are only appended'); END;
CREATE TRIGGER undone_events_exist BEFORE INSERT ON events
    WHEN NEW.undoes IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events WHERE number = NEW.undoes)
    BEGIN SELECT RAISE(ABORT, 'the event to undo is not there'); END;
CREATE VIEW standing AS SELECT * FROM events AS e
    WHERE kind <> 'undone' AND NOT EXISTS (SELECT 1 FROM events AS u WHERE u.undoes = e.number)
    AND NOT EXISTS (
        SELECT 1 FROM events AS l WHERE l.judge = e.judge AND l.task = e.task AND l.query = e.query
        AND l.document = e.document AND l.other = e.other AND l.number > e.number AND l.kind <> 'undone'
        AND (l.kind = 'noted') = (e.kind = 'noted')
        AND NOT EXISTS (SELECT 1 FROM events AS u WHERE u.undoes = l.number)
    );
CREATE VIEW labels AS SELECT * FROM standing WHERE kind NOT IN ('noted', 'withdrawn');
CREATE VIEW judgments AS SELECT judge, task, query, document, grade, kind = 'accepted' AS accepted, time
    FROM labels WHERE kind IN ('graded', 'accepted');
CREATE VIEW settled AS SELECT query, document, grade, votes, judges, decided, accepted FROM (
    SELECT query, document, grade, task = 'decide' AS decided, COUNT(*) AS votes, MIN(accepted) AS accepted,
        SUM(COUNT(*)) OVER pair AS judges,
        ROW_NUMBER() OVER (pair ORDER BY task = 'decide' DESC, COUNT(*) DESC, grade) AS place
    FROM judgments WHERE task IN ('judge', 'decide') GROUP BY query, document, grade, task = 'decide'
    WINDOW pair AS (PARTITION BY query, document)
) WHERE place = 1;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {JOURNAL_VERSION};
"""
_REASONS = {
    "SQLITE_FULL": "no space left on the disk",
    "SQLITE_BUSY": "another program keeps writing to it",
    "SQLITE_READONLY": "no permission to write there",
    "SQLITE_CANTOPEN": "no file can be opened or made there",
}


@contextmanager
def _storing(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        reason = next((text for start, text in _REASONS.items() if name.startswith(start)), str(error))
        raise StoreError(f"cannot write {path}: {reason}; nothing of this was stored") from error


@dataclass(eq=False)
class Standing:
    """The labels and notes in force after the events so far, indexed by judge, pair and query."""

    last: int = 0
    """Number of the last event."""
    labels: dict[Item, list[Event]] = field(default_factory=dict)
    """{item: events that set its label and are not undone}; the last one is in force."""
    notes: dict[Item, list[Event]] = field(default_factory=dict)
    """{item: events that set its note and are not undone}; the last one is in force."""
    undoable: dict[str, list[Event]] = field(default_factory=dict)
    """{author: own events that are not undone, in order}."""
    judged: dict[Pair, dict[str, Event]] = field(default_factory=dict)
    """{pair: {judge: first judgment in force}}: a grade, "cannot tell" or deferred."""
    held: dict[str, Counter[str]] = field(default_factory=dict)
    """{query: {judge: number of `judged` entries}}."""
    levels: dict[str, Counter[int]] = field(default_factory=dict)
    """{query: {n: number of pairs with n judgments other than "cannot tell"}}, n from 1."""
    of_judge: dict[str, dict[Item, Event]] = field(default_factory=dict)
    """{judge: {item: event in force}}."""
    answers: dict[str, list[Event]] = field(default_factory=dict)
    """{judge: all answers in order}, also those no longer in force."""
    numbered: dict[int, Event] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Update labels, notes and counts by the journal's next event."""
        self.last, self.numbered[event.number] = event.number, event
        changed = event
        if event.kind == "undone":
            assert event.undoes is not None  # held by the database
            changed = self.numbered[event.undoes]
            for held in (self._events(changed), self.undoable.get(changed.author or changed.judge, [])):
                with suppress(ValueError):
                    held.remove(changed)
        else:
            self._events(event).append(event)
            if event.kind in UNDOABLE:
                self.undoable.setdefault(event.author or event.judge, []).append(event)
        if event.answers:
            self.answers.setdefault(event.judge, []).append(event)
        if changed.kind not in ("noted", "undone"):
            mine, label = self.of_judge.setdefault(changed.judge, {}), self.label(changed.item)
            if label is None:
                mine.pop(changed.item, None)
            else:
                mine[changed.item] = label
            if changed.task == "judge":
                self._judge(changed)

    def _judge(self, changed: Event) -> None:
        label = self.label(changed.item)
        of_pair = self.judged.setdefault((changed.query, changed.document), {})
        held, levels = (
            self.held.setdefault(changed.query, Counter()),
            self.levels.setdefault(changed.query, Counter()),
        )
        before = seats(of_pair)
        if label is None:
            held[changed.judge] -= of_pair.pop(changed.judge, None) is not None
        else:
            held[changed.judge] += changed.judge not in of_pair
            of_pair[changed.judge] = label
        after = seats(of_pair)
        if after != before:
            levels[before] -= before > 0
            levels[after] += after > 0

    def _events(self, event: Event) -> list[Event]:
        return (self.notes if event.kind == "noted" else self.labels).setdefault(event.item, [])

    def label(self, item: Item) -> Event | None:
        """Return the event that sets the label of this key; None if there is none or it was withdrawn."""
        events = self.labels.get(item)
        return events[-1] if events and events[-1].kind != "withdrawn" else None

    def note(self, item: Item) -> str:
        """Return the judge's note under this key; "" if there is none."""
        events = self.notes.get(item)
        return events[-1].text if events else ""

    def current(self, task: Task | None = None) -> list[Event]:
        """Return the events whose labels are in force, without notes, oldest first.

        task: only events of this task; None for all.
        """
        found = (
            event
            for of_judge in self.of_judge.values()
            for item, event in of_judge.items()
            if task is None or item[1] == task
        )
        return sorted(found, key=lambda one: one.number)


def seats(of_pair: Mapping[str, Event]) -> int:
    """Return how many judges graded or deferred a pair; "cannot tell" does not count."""
    return sum(event.kind != "unable" for event in of_pair.values())


@dataclass(eq=False)
class Journal:
    """An open journal file, safe for threads and other processes."""

    path: Path
    _connection: sqlite3.Connection
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _standing: Standing = field(default_factory=Standing)

    @staticmethod
    def open(path: Path) -> Journal:
        """Open a journal, created if missing; raises StoreError for another kind or version of file."""
        with _storing(path):
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            with _storing(path):
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                found = _version(connection)
                if found == (0, 0, 0):  # empty, so the file is new
                    for statement in _statements(_SCHEMA):
                        connection.execute(statement)
                    found = _version(connection)
                connection.execute("COMMIT")
            if found[:2] != (APPLICATION_ID, JOURNAL_VERSION):
                other = (
                    "of another version of Weir" if found[0] == APPLICATION_ID else "no journal of judgments"
                )
                raise StoreError(f"{path} is {other}; name another file or folder")
            with _storing(path):
                connection.execute("PRAGMA journal_mode = WAL")
        except BaseException:
            connection.close()
            raise
        return Journal(path, connection)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[Standing]:
        """Yield the labels and notes in force, with events that other processes have stored."""
        with self._lock:
            self._catch_up()
            yield self._standing

    @contextmanager
    def writing(self) -> Iterator[Standing]:
        """Yield the labels and notes in force; events appended in the block are stored together, none after
        an error.

        Nested blocks join the outer one. Raises StoreError if the file cannot be written.
        """
        with self._lock:
            if self._connection.in_transaction:
                yield self._standing
                return
            with _storing(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up()
                yield self._standing
                with _storing(self.path):
                    self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._catch_up()

    def append(self, *events: Event) -> list[Event]:
        """Store events together and return them; for an event whose key is stored already, return that one."""
        with self.writing():
            return [self._stored(one.key) or self._inserted(one) for one in events]

    def _stored(self, key: str) -> Event | None:
        with _storing(self.path):
            row = key and self._connection.execute(f"{_SELECT} WHERE key = ?", (key,)).fetchone()
        return _event(row) if row else None

    def _inserted(self, event: Event) -> Event:
        stored = replace(event, time=event.time or time.time())
        values = astuple(replace(stored, key=stored.key or None))[:-1]  # type: ignore[arg-type]  # no key is NULL
        with _storing(self.path):
            cursor = self._connection.execute(_INSERT, values)
            sql = "DELETE FROM claims WHERE (judge, task, query, document, other) = (?, ?, ?, ?, ?)"
            self._connection.execute(sql, event.item)
        return replace(stored, number=int(cursor.lastrowid or 0))

    def _catch_up(self) -> None:
        with _storing(self.path):
            sql = f"{_SELECT} WHERE number > ? ORDER BY number"
            rows = self._connection.execute(sql, (self._standing.last,)).fetchall()
        for row in rows:
            self._standing.apply(_event(row))

    def undo(self, judge: str, key: str = "") -> Event | None:
        """Undo the last event that `judge` caused and return it; None if there is none.

        key: key of the request; repeating it undoes nothing more.
        """
        with self.writing() as standing:
            undone = self._stored(key)
            own = standing.undoable.get(judge, ())
            if undone is None and own:
                last = own[-1]
                task, query, document, other = last.item[1:]
                [undone] = self.append(
                    Event(last.judge, "undone", query, document, task, other=other, undoes=last.number,
                          author=judge, key=key)
                )  # fmt: skip
            return None if undone is None else standing.numbered[int(undone.undoes or 0)]

    def claim(self, items: Iterable[Item], since: float | None = None) -> None:
        """Record that the pairs of these answers' keys are shown now, or at `since` (seconds since 1970)."""
        with self.writing(), _storing(self.path):
            shown = time.time() if since is None else since
            rows = [(*item, shown) for item in items]
            self._connection.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?)", rows)

    def claims(self) -> dict[Item, float]:
        """Return {answer's key: time when its pair was last shown, in seconds since 1970}, also of answered
        ones."""
        with self._lock, _storing(self.path):
            return {tuple(row[:5]): row[5] for row in self._connection.execute("SELECT * FROM claims")}

    def settled_grades(self, query: str) -> dict[str, float]:
        """Return {document: grade that counts} for a query, as `read_journal` settles them; {} without any."""
        with self._lock, _storing(self.path):
            rows = self._connection.execute("SELECT document, grade FROM settled WHERE query = ?", (query,))
            return {str(document): float(grade) for document, grade in rows}

    def settled_pairs(self) -> int:
        """Return the number of pairs with a grade."""
        with self._lock, _storing(self.path):
            [count] = self._connection.execute("SELECT COUNT(*) FROM settled").fetchone()
        return int(count)

    def settings(self) -> dict[str, Any]:
        """Return {name: stored setting}."""
        with self._lock, _storing(self.path):
            rows = self._connection.execute("SELECT name, value FROM settings").fetchall()
        return {name: json.loads(value) for name, value in rows}

    def declare(self, settings: Mapping[str, object]) -> None:
        """Store settings by name, replacing earlier values."""
        with self.writing(), _storing(self.path):
            rows = [(name, json.dumps(value)) for name, value in settings.items()]
            self._connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    def events(self) -> list[Event]:
        """Return all events in order."""
        with self.reading() as standing:
            return list(standing.numbered.values())


_NAMES = [f'"{name}"' for name in COLUMNS]
_SELECT = f"SELECT {', '.join(_NAMES)} FROM events"
_INSERT = f"INSERT INTO events ({', '.join(_NAMES[:-1])}) VALUES ({', '.join('?' * (len(COLUMNS) - 1))})"


def _event(row: tuple[Any, ...]) -> Event:
    values = dict(zip(COLUMNS, row, strict=True))
    return Event(**{**values, "key": values["key"] or ""})


def _version(connection: sqlite3.Connection) -> tuple[int, int, int]:
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [objects] = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    return int(application), int(version), int(objects)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
