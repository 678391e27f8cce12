"""Files of items merged into one collection."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
import sys
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import pairwise
from operator import add
from typing import Any, Literal

import numpy as np

from weir.core.rank_order import OrderCounts, order_counts
from weir.errors import BadValue, StoreError
from weir.files.atomic import UNPORTABLE
from weir.files.column_names import fold
from weir.plugins.importing.cells import number
from weir.plugins.importing.click_models import ClickShare
from weir.plugins.importing.items import (
    ByWords,
    Choices,
    Document,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    agreed,
    chosen_grade,
)
from weir.settings import IDENTIFIER_BYTES

# ----------
# Judgments by words that documents hold, as characters or as whole tokens.


LARGEST_SEARCH = 10**12
"""Characters looked at in all, words times texts: some ten minutes."""


@dataclass
class MatchCounts:
    """The judgments by words of an import: how many there are and by tokens, how many found documents, and which."""

    judgments: int = 0
    by_tokens: int = 0
    matched: int = 0
    documents: set[str] = field(default_factory=set)

    def sentence(self) -> str:
        """What was matched, and how."""
        by_characters = "as characters, whatever their case and white space"
        by_tokens = "as whole tokens of the text, after Unicode's NFD and in lower case, as DPR does"
        ways = [by_characters] * (self.judgments > self.by_tokens) + [by_tokens] * (self.by_tokens > 0)
        return (
            f"words: {len(self.documents):,} documents match {self.matched:,} of {self.judgments:,} judgments by "
            f"words, {' or '.join(ways)}"
        )


class Matcher:
    """Looks words up in documents.

    As characters, case and runs of white space do not count. As tokens, the words are a run of whole tokens of the
    text, title aside: letters, digits and marks in a row or any other character alone, after NFD and in lower case
    (Karpukhin et al. 2020, whose code takes the answers of DPR's topics so). documents: id -> (title, text); how: "all"
    or "any" of several words, "" where the user did not say.
    """

    def __init__(self, documents: Mapping[str, tuple[str, str]], how: str) -> None:
        self._documents, self._how = documents, how
        self._folded: dict[tuple[str, bool], list[tuple[str, str]]] = {}

    def refuse_endless(self, items: Iterable[Item]) -> None:
        """Raise BadValue for more words and texts than can be looked through."""
        words = sum(len(item.words) for item in items if isinstance(item, ByWords))
        characters = sum(len(title) + len(text) for title, text in self._documents.values())
        if words * characters > LARGEST_SEARCH:
            raise BadValue(
                f"looking for {words:,} words in {characters:,} characters of documents takes hours; give fewer "
                "queries at a time, or a smaller --corpus"
            )

    def documents_with(self, by: ByWords) -> list[str]:
        """The identifiers of documents that hold the words; raises ValueError, with the reason, where that is open."""
        if not self._documents:
            raise ValueError(
                f"judged by words ({by.field}), which needs documents: give them, or --corpus FOLDER"
            )
        how = by.how or self._how
        if len(by.words) > 1 and not how:
            raise ValueError(f"{len(by.words)} words in '{by.field}': add --words all or --words any")
        fold = _tokens if by.tokens else _characters
        words = [folded for word in by.words if (folded := fold(word)).strip()]
        if not words:
            raise ValueError(f"no word in '{by.field}'")
        if (by.within, by.tokens) not in self._folded:
            folded_texts = []
            for name, (title, text) in self._documents.items():
                whole = text if by.tokens else f"{title} {text}"
                folded_texts.append((name, fold({"id": name, "title": title}.get(by.within, whole))))
            self._folded[by.within, by.tokens] = folded_texts
        test = any if how == "any" else all
        texts = self._folded[by.within, by.tokens]
        return [name for name, text in texts if test(word in text for word in words)]


def _characters(text: str) -> str:
    return " ".join(text.casefold().split())


def _tokens(text: str) -> str:
    """The tokens with a blank before and behind each, so that a run of them is a part of the text."""
    tokens = (
        token
        for token in _token_pattern().findall(unicodedata.normalize("NFD", text))
        if not (len(token) == 1 and unicodedata.category(token)[0] in "ZC")
    )
    return f" {' '.join(tokens)} ".lower()


@cache
def _token_pattern() -> re.Pattern[str]:
    """Letters, digits and marks in a row, or one other character; `\\w` alone has no marks."""
    marks = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    return re.compile(rf"(?:[^\W_]|[{''.join(marks)}])+|\S")


# ----------
# Documents on disk, so that a corpus of millions needs little memory.


_CACHE_KIB = 64 << 10  # of the database that is held in memory; the rest is in a file that goes with it
_BATCH_ROWS = 4096

_TABLE = """create table documents (n integer primary key, id blob unique not null, title blob not null,
    text blob not null, metadata blob not null, hash integer not null)"""


class DocumentSpill(Mapping[str, tuple[str, str]]):
    """Documents by identifier, (title, text) of each, in the order of their arrival.

    They lie in a temporary database that ends with the process. Raises StoreError where the disk refuses.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._indexed = False

    def __len__(self) -> int:
        (count,) = self._database.execute("select count(*) from documents").fetchone()
        return int(count)

    def __iter__(self) -> Iterator[str]:
        yield from (_text(row[0]) for row in self._rows("id"))

    def __getitem__(self, name: str) -> tuple[str, str]:
        row = self._one("title, text", name)
        if row is None:
            raise KeyError(name)
        return _text(row[0]), _text(row[1])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._one("1", name) is not None

    def __bool__(self) -> bool:
        return self._database.execute("select 1 from documents limit 1").fetchone() is not None

    def add(self, name: str, document: Document) -> Literal["new", "same", "other"]:
        """Add a document under its identifier.

        "same" where one of this identifier and text is there already, "other" where it has another text; both change
        nothing.
        """
        text = _bytes(document.key.text)
        metadata = json.dumps(document.metadata, default=str).encode() if document.metadata else b""
        row = (_bytes(name), _bytes(document.title), text, metadata, hash(document.key.text))
        added = self._database.execute(
            "insert or ignore into documents (id, title, text, metadata, hash) values (?, ?, ?, ?, ?)", row
        )
        if added.rowcount:
            return "new"
        return "same" if self._one("text", name) == (text,) else "other"

    def ids_of(self, text: str) -> set[str]:
        """The identifiers of the documents that have this text."""
        if not self._indexed:
            self._database.execute("create index by_text on documents (hash)")
            self._indexed = True
        select = "select id from documents where hash = ? and text = ?"
        return {_text(name) for (name,) in self._database.execute(select, (hash(text), _bytes(text)))}

    def lines(self) -> Iterator[str]:
        """The documents as lines of corpus.jsonl."""
        for name, title, text, metadata in self._rows("id, title, text, metadata"):
            line = json.dumps({"_id": _text(name), "title": _text(title), "text": _text(text)})
            yield f'{line[:-1]}, "metadata": {metadata.decode()}}}' if metadata else line

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Undo what was added in the block where it ends in an error."""
        self._database.execute("savepoint file")
        try:
            yield
        except BaseException:
            self._database.execute("rollback to file")
            raise
        finally:
            self._database.execute("release file")

    def _one(self, columns: str, name: str) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(
            f"select {columns} from documents where id = ?", (_bytes(name),)
        ).fetchone()
        return row

    def _rows(self, columns: str) -> Iterator[tuple[Any, ...]]:
        cursor = self._database.execute(f"select {columns} from documents order by n")
        while batch := cursor.fetchmany(_BATCH_ROWS):
            yield from batch


@contextmanager
def document_spill() -> Iterator[DocumentSpill]:
    """An empty spill; raises StoreError where the disk refuses while it is filled or read."""
    database = sqlite3.connect(
        "", isolation_level=None
    )  # no name: a file that nobody sees and that goes by itself
    try:
        for setting in (f"cache_size = -{_CACHE_KIB}", "journal_mode = memory", "synchronous = off"):
            database.execute(f"pragma {setting}")
        database.execute(_TABLE)
        database.execute("begin")
        yield DocumentSpill(database)
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot keep the documents of an import in the temporary folder: {error}") from None
    finally:
        database.close()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


# ----------
# Identifiers of queries and documents that files name by identifier, by text, or by both.


class Identifiers:
    """Identifiers of queries or documents; a text without one gets that of the same text elsewhere, or a new one.

    keys: their names in all files, and where; spill: documents that have identifiers.
    """

    def __init__(
        self,
        what: Literal["query", "document"],
        keys: Iterable[tuple[ItemKey, str]],
        spill: DocumentSpill | None = None,
    ) -> None:
        self._what, self._spill = what, spill
        self._of_text: dict[str, set[str]] = {}
        self._text: dict[str, str] = {}
        self._place: dict[str, str] = {}
        self._made: set[str] = set()
        self._joined: set[str] = set()
        for key, place in keys:
            if not key.id:
                continue
            text = self._text.setdefault(key.id, key.text)
            if not key.text:
                continue
            if what == "query" and text and " ".join(text.split()) != " ".join(key.text.split()):
                other = f"'{key.text[:60]}' in {place}"
                raise BadValue(
                    f"query '{key.id[:60]}' is '{text[:60]}' in {self._place[key.id]} and {other}; "
                    "go by the text alone (leave out query_id), or import different query sets into different folders"
                )
            self._text[key.id] = text or key.text
            self._place.setdefault(key.id, place)
            self._of_text.setdefault(key.text, set()).add(key.id)

    def of(self, key: ItemKey) -> str:
        """The identifier of a query or document; raises ValueError, with the reason, where there is none."""
        if key == ItemKey():
            raise ValueError(f"no {self._what}")
        text, name = key.text, key.id
        if not name:
            same = self._of_text.get(text, set())
            if self._spill is not None:
                same = same | self._spill.ids_of(text)
            if len(same) > 1:
                raise ValueError(
                    f"its text is that of {len(same)} {self._what} identifiers, {' and '.join(sorted(same)[:2])}"
                )
            if same:
                self._joined.add(text)
                name = next(iter(same))
            elif text in self._text or (self._spill is not None and text in self._spill):
                name = text
            else:
                name = made_id(text, self._what)
                self._made.add(name)
        if len(name.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
            raise ValueError(f"the identifier of the {self._what} has more than {IDENTIFIER_BYTES:,} bytes")
        return name

    def notes(self) -> list[str]:
        """What was done for want of identifiers."""
        several = "queries" if self._what == "query" else "documents"
        sentences = []
        if self._made:
            sentences.append(
                f"{several} without an identifier, which got a hash of their text: {len(self._made)}"
            )
        if self._joined:
            sentences.append(
                f"{several} known by their text, which got the identifier of the same text: {len(self._joined)}"
            )
        return sentences


def made_id(text: str, what: str) -> str:
    """An identifier made from a text: its first words and a hash of the whole, the same wherever the text is."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    words = re.findall(r"[a-z0-9]+", text.casefold()) if what == "query" else []
    slug = "-".join(words)[:32].rstrip("-") or ("q" if what == "query" else "text")
    return f"{slug}-{digest}"


# ----------
# One collection from the items of several files.


_JOINED = {"candidates", "excluded"}  # metadata that several files may list
LARGEST_LOSS = 0.1
"""The share of a file's rows that may be refused where the user did not allow more."""
_REPORTED = 100  # refused rows of a file that are reported one by one


@dataclass
class FileCounts:
    """What became of a file's items.

    rows: of the file; refused: the first rows, with the reasons; left_out: how many in all; places: where they stand;
    cells_left: in how many records a field that is not imported has a value.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    left_out: int = 0
    rows: int = 0
    places: set[str] = field(default_factory=set)
    cells_left: Counter[str] = field(default_factory=Counter)

    def refuse(self, where: str, reason: str, lost: bool = True) -> None:
        """Leave out a row; lost: whether it is lost to the collection, and not only without an effect on it."""
        self.left_out += 1
        if lost:
            self.places.add(where)
        if len(self.refused) < _REPORTED:
            self.refused.append(Refused(where, reason))


@dataclass(frozen=True)
class ImportedFile:
    """The items of a file.

    name: as the user gave it; stem: the name of its runs; items: but for documents with an identifier, which go into
    the spill as they are read; counts: what became of those; record: the file's part of the report; split: of its
    judgments that name no other.
    """

    name: str
    stem: str
    items: tuple[Item, ...]
    counts: FileCounts
    record: Mapping[str, Any]
    split: str = "test"

    def refused(self) -> list[Refused]:
        """The rows that were refused while the file was read, and the first of those that were while it was joined."""
        return [item for item in self.items if isinstance(item, Refused)] + self.counts.refused

    def refuse_silence(self) -> None:
        """Raise BadValue where every document of the file is empty."""
        empty = self.counts.counts["documents without text and title"]
        if empty and empty == self.counts.counts["documents"]:
            columns = self.record["columns"]
            used = ", ".join(f"{role}={column}" for role, column in columns.items()) or "no field"
            raise BadValue(
                f"{self.name}: none of its {empty:,} documents has a text; say which field holds it, as in --as corpus "
                f"--columns doc=NAME,text=NAME (used: {used})"
            )

    def refuse_loss(self) -> None:
        """Raise BadValue where more than a tenth of the file's rows are refused."""
        kept = (FoundQuery, Judgment, ByWords, Ranking)
        lost = {item.where for item in self.items if isinstance(item, Refused)} | self.counts.places
        places = {item.where for item in self.items if isinstance(item, kept)} | lost
        documents = self.counts.counts["documents"] + self.counts.counts["repeated documents"]
        total = max(len(places) + documents, self.counts.rows)
        if len(lost) > LARGEST_LOSS * total:
            first = self.refused()[0]
            raise BadValue(
                f"{self.name}: {len(lost):,} of {total:,} rows cannot be imported, the first: {first.where}: "
                f"{first.reason}; nothing is written: mend them, or add --allow-loss (Choices(allow_loss=True))"
            )


@dataclass
class Merged:
    """A collection as it will be written.

    documents: id -> (title, text); queries: id -> text; metadata: id -> fields; qrels: split -> query -> document ->
    grade; origins: split -> (query, document) -> where the judgment comes from, if files say it; clicks: likewise, the
    clicks behind the grade; runs: name -> query -> document -> score; notes: sentences about the whole.
    """

    documents: DocumentSpill
    queries: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    qrels: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    origins: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    clicks: dict[str, dict[tuple[str, str], ClickShare]] = field(default_factory=dict)
    runs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unanswerable: set[str] = field(default_factory=set)


def keep_document(item: Document, name: str, counts: FileCounts, spill: DocumentSpill) -> None:
    """Put a document of a file into the spill under its name; one with another text than before is refused."""
    outcome = spill.add(name, item)
    if outcome == "other":
        counts.refuse(item.where, f"document '{name[:60]}' has another text elsewhere; the first is kept")
    else:
        counts.counts["documents" if outcome == "new" else "repeated documents"] += 1
        counts.counts["documents without a text"] += outcome == "new" and not item.key.text.strip()
        counts.counts["documents without text and title"] += (
            outcome == "new" and not (item.key.text + item.title).strip()
        )


def merge_files(files: Sequence[ImportedFile], spill: DocumentSpill, choices: Choices) -> Merged:
    """Join files; spill: their documents that have identifiers, and what the user gave beside them.

    Raises BadValue where one identifier has two texts of a query, for grades beyond ±16384, and where queries,
    judgments and runs have nothing in common.
    """
    merged = Merged(spill)
    queries = Identifiers("query", _query_keys(files))
    judged_docs = (item.doc for file in files for item in file.items if isinstance(item, Judgment))
    docs = Identifiers("document", ((doc, "") for doc in judged_docs), spill)
    for file in files:
        for item in file.items:
            if isinstance(item, Document):
                try:
                    keep_document(item, docs.of(item.key), file.counts, spill)
                except ValueError as error:
                    file.counts.refuse(item.where, str(error))
        _merge_queries(file, queries, merged)
    _merge_judgments(files, merged, queries, docs, choices)
    for file in files:
        _merge_rankings(file, queries, docs, merged)
    judgments = [(query, row) for split in merged.qrels.values() for query, row in split.items()]
    judged = {doc for _, row in judgments for doc in row}
    judged_queries = {query for query, _ in judgments}
    absent = sum(name not in merged.documents for name in judged) if merged.documents else 0
    if not choices.allow_disjoint:
        others = {f"run {name}: it answers none": set(rankings) for name, rankings in merged.runs.items()}
        others |= {"queries: there is a text for none": set(merged.queries)}
        advice = "so they do not belong together; import them apart, or add --allow-disjoint"
        for what, names in others.items():
            if judged_queries and names and not judged_queries & names:
                raise BadValue(
                    f"{what} of the {len(judged_queries):,} judged queries, such as '{min(judged_queries)[:60]}' "
                    f"(its own are such as '{min(names)[:60]}'), {advice}"
                )
        if judged and absent == len(judged):
            raise BadValue(
                f"documents: none of the {len(judged):,} judged documents, such as '{min(judged)[:60]}', "
                f"is among them, {advice}"
            )
    merged.notes += queries.notes() + docs.notes()
    if dropped := sum(bool(fields) for name, fields in merged.metadata.items() if name not in merged.queries):
        merged.notes.append(f"{dropped} queries without a text have metadata, which was dropped")
    if judgments and max(max(row.values()) for _, row in judgments) <= 0:
        merged.notes.append("every grade is 0 or less: nothing is relevant")
    if absent:
        merged.notes.append(f"{absent} of {len(judged)} judged documents are not among the documents")
    if merged.queries and (without_text := judged_queries - set(merged.queries)):
        merged.notes.append(f"{len(without_text)} of {len(judged_queries)} judged queries have no text")
    return merged


def _query_keys(files: Sequence[ImportedFile]) -> Iterator[tuple[ItemKey, str]]:
    for file in files:
        for item in file.items:
            if isinstance(item, FoundQuery):
                yield item.key, f"{file.name}, {item.where}"
            elif isinstance(item, (Judgment, ByWords, Ranking)):
                yield item.query, f"{file.name}, {item.where}"


def _merge_queries(file: ImportedFile, queries: Identifiers, merged: Merged) -> None:
    names: set[str] = set()
    for item in file.items:
        if not isinstance(item, FoundQuery):
            continue
        try:
            name = queries.of(item.key)
        except ValueError as error:
            file.counts.refuse(item.where, str(error))
            continue
        names.add(name)
        if item.key.text:
            merged.queries.setdefault(name, item.key.text)
        metadata = merged.metadata.setdefault(name, {})
        for key, value in item.metadata.items():
            if key in _JOINED and key in metadata:
                metadata[key] = list(dict.fromkeys([*metadata[key], *value]))
            else:
                metadata.setdefault(key, value)
        if item.unanswerable:
            merged.unanswerable.add(name)
    file.counts.counts["queries"] = len(names)


@dataclass
class _Pair:
    """The judgments of one pair."""

    grades: list[float]
    file: ImportedFile
    where: str
    origins: dict[str, None] = field(default_factory=dict)
    clicks: ClickShare | None = None


def _merge_judgments(
    files: Sequence[ImportedFile], merged: Merged, queries: Identifiers, docs: Identifiers, choices: Choices
) -> None:
    pairs: dict[tuple[str, str, str], _Pair] = {}
    matcher, matches = Matcher(merged.documents, choices.words), MatchCounts()
    matcher.refuse_endless(item for file in files for item in file.items)
    for file in files:
        counts = file.counts
        for item in _judgments(file, matcher, matches):
            grade, split = number(item.grade), file.split if item.split == "test" else item.split
            try:
                if grade is None:
                    raise ValueError(f"the grade {str(item.grade)[:40]!r} is no finite number")
                if not re.fullmatch(r"[\w.-]{1,64}", split) or split.startswith("."):
                    raise ValueError(f"the split '{split[:40]}'; expected a name of letters, digits, - and _")
                place = (split, queries.of(item.query), docs.of(item.doc))
            except ValueError as error:
                counts.refuse(item.where, str(error))
                continue
            pair = pairs.setdefault(place, _Pair([], file, item.where))
            if grade in pair.grades:
                counts.counts["repeated judgments"] += 1
            pair.grades.append(grade)
            pair.origins[item.origin] = None
            pair.clicks = item.clicks or pair.clicks
        by_words = sum(isinstance(item, ByWords) for item in file.items)
        if by_words and merged.documents:
            counts.counts["judgments by words"] = by_words
    if matches.judgments and merged.documents:
        merged.notes.append(matches.sentence())
    changed = fractions = 0
    for (split, query, doc), pair in pairs.items():
        counts = pair.file.counts
        grade = agreed(pair.grades, choices)
        if grade is None:
            grades = ", ".join(f"{one:g}" for one in pair.grades[:5])
            counts.refuse(
                pair.where,
                f"grades {grades} for query '{query[:40]}', document '{doc[:40]}'; --judges max, min, mean or majority",
            )
            continue
        final = chosen_grade(grade, choices, f"{pair.file.name}, {pair.where}")
        changed += final != grade
        fractions += isinstance(final, float)
        merged.qrels.setdefault(split, {}).setdefault(query, {})[doc] = final
        if any(pair.origins):
            merged.origins.setdefault(split, {})[query, doc] = ", ".join(filter(None, pair.origins))
        if pair.clicks is not None:
            merged.clicks.setdefault(split, {})[query, doc] = pair.clicks
        counts.counts["judgments"] += 1
    if fractions:
        total = sum(file.counts.counts["judgments"] for file in files)
        merged.notes.append(
            f"grades: {fractions} of {total} have fractions and are kept; --grades round, scale=N or threshold=X "
            "make them whole"
        )
    if choices.grades:
        merged.notes.append(f"grades: {choices.grades}, which changed {changed} of {len(pairs)}")
    if choices.words and any(file.counts.counts["judgments by words"] for file in files):
        merged.notes.append(f"words: a document counts where it holds {choices.words} of several")
    several = sum(len(set(pair.grades)) > 1 for pair in pairs.values())
    if choices.judges and several:
        merged.notes.append(f"judges: the {choices.judges} of the grades of {several} pairs with several")
    split_rows = (split.items() for split in merged.qrels.values())
    answered = {query for rows in split_rows for query, row in rows if max(row.values()) > 0}
    merged.unanswerable -= answered  # a flag beside relevant documents is about something else


def _judgments(file: ImportedFile, matcher: Matcher, matches: MatchCounts) -> Iterator[Judgment]:
    """The judgments of a file, those by words resolved and counted, or refused."""
    for item in file.items:
        if isinstance(item, Judgment):
            yield item
        elif isinstance(item, ByWords):
            matches.judgments += 1
            matches.by_tokens += item.tokens
            try:
                names = matcher.documents_with(item)
            except ValueError as error:
                file.counts.refuse(item.where, str(error))
                continue
            if not names:
                reason = f"no document holds the words in '{item.field}' ({item.words[0][:40]})"
                file.counts.refuse(item.where, reason, lost=False)
                continue
            matches.matched += 1
            matches.documents.update(names)
            for name in names:
                yield Judgment(item.query, ItemKey(name), item.grade, item.where)


def _merge_rankings(file: ImportedFile, queries: Identifiers, docs: Identifiers, merged: Merged) -> None:
    rankings: dict[str, list[tuple[Ranking, str, list[str]]]] = {}
    for item in file.items:
        if isinstance(item, Ranking):
            try:
                names = [docs.of(doc) for doc in item.docs]
                rankings.setdefault(item.run or file.stem, []).append((item, queries.of(item.query), names))
            except ValueError as error:
                file.counts.refuse(item.where, str(error))
    for run, answers in rankings.items():
        # Ranks stand for scores where a file has none, or orders ties by itself.
        by_rank = any(
            item.ordered
            and not (len(item.scores) == len(names) and all(a > b for a, b in pairwise(item.scores)))
            for item, _, names in answers
        )
        order = reduce(add, (order_of(item) for item, _, _ in answers))
        rows = _rows_of_run(answers, by_rank, file.counts)
        plain = re.sub(r"[^\w.@+-]+", "-", run).strip("-.")[:100] or "run"
        plain = f"_{plain}" if UNPORTABLE.search(plain) else plain
        name, n = plain, 1
        while fold(name) in map(fold, merged.runs):
            n += 1
            name = f"{plain}-{n}"
        doubts = "; ".join(order.doubts())
        if by_rank:
            by_ranks = all(item.ranks for item, _, _ in answers)
            kept = (
                "ranks of the file are kept, equal ones as ties,"
                if by_ranks
                else "order of the file is kept,"
            )
            own = doubts or "its own do not fall from each to the next"
            own = f" ({own})" if any(item.scores for item, _, _ in answers) else ""
            merged.notes.append(f"run {name}: the {kept} as scores that fall by 1{own}")
        elif doubts:
            merged.notes.append(f"run {name}: {doubts}; its scores are kept, the highest the best")
        merged.runs[name] = rows
        file.counts.counts["rankings"] += len(rows)
        file.counts.counts["runs"] += 1


def order_of(item: Item) -> OrderCounts:
    """How the order of a ranking and its scores agree: that of its ranks, or else of the file; none of other items."""
    if not isinstance(item, Ranking) or not item.docs or len(item.scores) != len(item.docs):
        return OrderCounts()
    ranks = (
        np.array(item.ranks) if item.ranks else np.arange(1.0, len(item.docs) + 1) if item.ordered else None
    )
    return order_counts(np.array([0, len(item.docs)]), np.array(item.scores), ranks)


def _places_as_scores(item: Ranking) -> list[float]:
    """Scores that rank as the ranks do, equal where they are, or else as the order: n, n - 1 ... of n documents."""
    count = len(item.docs)
    if not item.ranks or any(map(math.isnan, item.ranks)):
        return [float(n) for n in range(count, 0, -1)]
    better = sorted(item.ranks)
    return [float(count - bisect_left(better, rank)) for rank in item.ranks]


def _rows_of_run(
    answers: Sequence[tuple[Ranking, str, list[str]]], by_rank: bool, counts: FileCounts
) -> dict[str, dict[str, float]]:
    """query -> document -> score of (ranking, query, documents)."""
    rows: dict[str, dict[str, float]] = {}
    for item, query, names in answers:
        scores = _places_as_scores(item) if by_rank else list(item.scores)
        row: dict[str, float] = {}
        for doc, score in zip(names, scores, strict=True):
            if doc not in row:
                row[doc] = score
            elif item.ordered:
                counts.counts["repeated documents in a ranking"] += 1
            else:
                counts.refuse(item.where, f"document '{doc[:60]}' twice in the ranking; the first is kept")
        if rows.setdefault(query, row) != row:
            counts.refuse(item.where, f"query '{query[:60]}' has another answer before; the first is kept")
    return rows
