"""The pools open for judging on a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weir.core.corpus import Queries
from weir.core.qrels import Qrels
from weir.core.subject import Subject
from weir.datasets.load import Dataset
from weir.errors import BadValue, UnknownName
from weir.experiment.audit_subjects import subjects_of
from weir.files.atomic import write_text
from weir.files.journal_labels import SHEET
from weir.plugins.app.judging.journal import Pair
from weir.plugins.app.judging.room import JOURNAL, Room
from weir.plugins.app.judging.tasks import QUERIES, same_query, tasks_of_pool, write_pairs, write_queries
from weir.plugins.labels.pools import about_sheet, open_sheet, sheet_text

BESIDE = "-judging"
"""Ending of the folder of pools, after the results folder's name."""


@dataclass(frozen=True, eq=False)
class Rooms:
    """The pools open for judging on a server, by name."""

    folder: Path
    """Folder of pools made from pages."""
    results: Path | None = None
    """The results folder; None for a single pool."""
    judges: tuple[str, ...] = ()
    """Judges with a URL."""
    suggestions: Qrels | None = None
    _rooms: dict[str, Room] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of_pools(
        folder: Path,
        collection: Subject | None = None,
        suggestions: Qrels | None = None,
        judges: Sequence[str] = (),
    ) -> Rooms:
        """Open a folder that `weir labels pool` wrote, or each such folder in it.

        collection: source of the texts; None takes those on the pools' sheets.
        suggestions: grades by a model.
        judges: names of the judges who have a link of their own.

        Raises BadValue without pairs to judge.
        """
        opened = [Room.open(sheet.parent, collection, suggestions) for sheet in sheets_of(folder)]
        return Rooms(folder.parent, None, tuple(judges), suggestions, {room.name: room for room in opened})

    @staticmethod
    def beside(results: Path, suggestions: Qrels | None = None, judges: Sequence[str] = ()) -> Rooms:
        """Open the pools in the folder `<results>-judging`, which need not be there.

        `<collection>-1`, `<collection>-2`, ... hold lists of queries, `<collection>-queries` single queries,
        `golden-<collection>` typed queries, whose file is written anew.

        suggestions: grades by a model.
        judges: names of the judges who have a link of their own.
        """
        folder = results.resolve().with_name(results.resolve().name + BESIDE)
        rooms = Rooms(folder, results, tuple(judges), suggestions)
        for sheet in sheets_of(folder):
            room = rooms._rooms[sheet.parent.name] = Room.open(sheet.parent, None, suggestions)
            if room.tasks.golden:  # a process that ended between the sheet and the queries is caught up with
                write_queries(sheet.parent, room.tasks.asked)
        return rooms

    def __iter__(self) -> Iterator[Room]:
        return iter([room for _, room in sorted(self._rooms.items())])

    def close(self) -> None:
        for room in self:
            room.journal.close()

    def room(self, name: str) -> Room:
        """Return the pool of this name; raises UnknownName for an unknown one."""
        if name not in self._rooms:
            raise UnknownName("pool", name, self._rooms)
        return self._rooms[name]

    def made(
        self, collection: str, systems: Sequence[str], queries: Sequence[str], k: int, again: bool
    ) -> Room:
        """Make a pool of the first k documents of systems (() for all) for some queries, and return it.

        again: include judged documents.

        Raises BadValue without a results folder or queries, or if nothing is unjudged; UnknownName for an
        unknown collection, system or query.
        """
        results = self._beside()
        subjects = {one.name: one for one in subjects_of([results])}
        if collection not in subjects:
            raise UnknownName("collection of these results", collection, subjects)
        subject = subjects[collection]
        for name in systems:
            if name not in subject.runs:
                raise UnknownName("system", name, subject.runs)
        pairs = _pairs(subject, systems or list(subject.runs), queries, k, again)
        with self._lock:
            taken = {path.name for path in self.folder.glob("*")} if self.folder.is_dir() else set()
            stem = _file_name(collection)
            name = next(name for n in range(1, 10**6) if (name := f"{stem}-{n}") not in taken)
            origin = {"targets": [str(results.absolute())], "collections": []}
            write_pairs(subject, pairs, self.folder / name, origin)
            self._rooms[name] = Room.open(self.folder / name, subject, self.suggestions)
            return self._rooms[name]

    def with_query(self, collection: str, dataset: Dataset, query: str, documents: Sequence[str]) -> Room:
        """Add documents of a query to its collection's pool of single queries, and return the pool.

        Raises UnknownName for an unknown query or document, BadValue without a results folder.
        """
        if dataset.all_queries.get(query) is None:
            raise UnknownName(f"query of {collection}", query, dataset.all_queries.ids)
        subject = Subject(collection, dataset.corpus, dataset.all_queries, dataset.qrels)
        origin = {"targets": [str(self._beside().absolute())], "collections": []}
        with self._lock:
            return self._grown(f"{_file_name(collection)}-queries", subject, query, documents, origin)

    def with_typed(
        self, collection: str, dataset: Dataset, text: str, documents: Sequence[str]
    ) -> tuple[Room, str]:
        """Add a typed query and documents to a collection's golden set; return (pool, the query's
        identifier).

        A text typed before keeps its identifier. Raises BadValue without a results folder, UnknownName for an
        unknown document.
        """
        self._beside()
        name, text = _golden_name(collection), sheet_text(text)
        sheet = self.folder / name / SHEET
        with self._lock:
            lines = open_sheet(sheet) if sheet.exists() else ()
            asked = {line.query: line.query_text for line in lines}
            query = next((one for one, of in asked.items() if same_query(of, text)), f"g{len(asked) + 1}")
            asked.setdefault(query, text)
            subject = Subject(collection, dataset.corpus, Queries.of(asked), dataset.qrels)
            room = self._grown(name, subject, query, documents, {"golden": f"{name}.toml"})
            room.restore([query])
            write_queries(sheet.parent, room.tasks.asked)
            write_text(self.folder / f"{name}.toml", _collection_file(dataset, name))
            return room, query

    def grades_of(self, collection: str, query: str, text: str) -> dict[str, tuple[float, str]]:
        """Return {document: (grade by people, pool)} for a query.

        query: its identifier; "" finds a typed query by `text`.
        """
        found: dict[str, tuple[float, str]] = {}
        for room in self:
            if room.tasks.name != collection:
                continue
            if room.tasks.golden:
                names = [one for one, of in room.tasks.asked.items() if same_query(of, text)]
            else:
                names = [query] if query in room.tasks.of_query else []
            for one in names:
                grades = room.journal.settled_grades(one)
                found |= {document: (grade, room.name) for document, grade in grades.items()}
        return found

    def judged(self, collection: str) -> tuple[tuple[str, int], ...]:
        """Return (pool, number of judged pairs) of each pool with judgments of a collection's own queries."""
        found = [
            (room.name, room.journal.settled_pairs())
            for room in self
            if room.tasks.name == collection and not room.tasks.golden
        ]
        return tuple(one for one in found if one[1])

    def golden_file(self, collection: str) -> str:
        """Return the path of a collection's golden set, relative to the results folder's parent; "" without a
        results folder."""
        return f"{self.folder.name}/{_golden_name(collection)}.toml" if self.results is not None else ""

    def _beside(self) -> Path:
        if self.results is None:
            raise BadValue("this is a pool; weir open a results folder to make another")
        return self.results

    def _grown(
        self,
        name: str,
        subject: Subject,
        query: str,
        documents: Sequence[str],
        origin: Mapping[str, object],
    ) -> Room:
        lacking = [one for one in documents if int(subject.need_corpus().ids.codes([one])[0]) < 0]
        if lacking:
            raise UnknownName(f"document of {subject.name}", lacking[0], [])
        folder = self.folder / name
        other = about_sheet(folder / SHEET).get("subject", subject.name)
        if other != subject.name:
            raise BadValue(f"{folder} has pairs of {other}; move that folder away to judge {subject.name}")
        write_pairs(subject, [(query, one) for one in documents], folder, origin)
        if name in self._rooms:
            self._rooms[name].tasks = tasks_of_pool(folder, subject, self.suggestions)
        else:
            self._rooms[name] = Room.open(folder, subject, self.suggestions)
        return self._rooms[name]


def _golden_name(collection: str) -> str:
    return f"golden-{_file_name(collection)}"


def _file_name(collection: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in collection)


def _collection_file(dataset: Dataset, name: str) -> str:
    keys = {
        "documents": str(dataset.layout.need_documents().path.absolute()),
        "queries": f"{name}/{QUERIES}",
        "qrels": f"{name}/{JOURNAL}",
    }
    if dataset.instruction not in ("", "{task}"):
        keys["instruction"] = dataset.instruction
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    return "\n".join(["# Queries that were typed in weir open, and what people judged for them.", *lines, ""])


def sheets_of(folder: Path) -> list[Path]:
    """Return the paths of the pool sheet in a folder, else of the sheets in its subfolders; [] if there are
    none."""
    return [folder / SHEET] if (folder / SHEET).is_file() else sorted(folder.glob(f"*/{SHEET}"))


def _pairs(
    subject: Subject, systems: Sequence[str], queries: Sequence[str], k: int, again: bool
) -> list[Pair]:
    judged = subject.need_qrels() if subject.qrels is not None else None
    rankings = [subject.runs[name].top(max(1, k)).to_dict() for name in systems]
    answered = {query for ranking in rankings for query in ranking}
    lacking = [query for query in queries if query not in answered]
    if lacking:
        raise UnknownName("query that these systems answer", lacking[0], answered)
    pairs = []
    for query in queries:
        known = {} if again or judged is None else judged.get(query) or {}
        pairs += [(query, doc) for ranking in rankings for doc in ranking.get(query, {}) if doc not in known]
    if not pairs:
        raise BadValue(f"everything among the first {k} documents of these queries is judged; ask for more")
    return list(dict.fromkeys(pairs))
