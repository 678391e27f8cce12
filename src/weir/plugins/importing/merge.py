"""Merge the items of several files into one collection."""

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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from itertools import chain, pairwise
from operator import add
from pathlib import Path
from typing import Any, Literal

import numpy as np

from weir.core.query_metadata import MetadataError, QueryMetadata
from weir.core.rank_order import OrderCounts, order_counts
from weir.core.rounding import counted
from weir.errors import BadValue, StoreError
from weir.files.atomic import UNPORTABLE
from weir.files.column_names import fold
from weir.files.label_files import BINARY_WORDS
from weir.files.layouts import naming_path
from weir.files.records import holds_text, text_elsewhere
from weir.plugins.importing.cells import grade_value, grade_word, has_value, number, plain_text
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
from weir.plugins.importing.quotations import folded, quotations, without_hop
from weir.settings import IDENTIFIER_BYTES

# ----------
# Judgments by words that documents hold, as characters or as whole tokens.


LARGEST_SEARCH = 10**12
"""Most characters searched, words times texts: some ten minutes."""


@dataclass
class _MatchCounts:
    """Counts of judgments by words, and the documents that contain the words."""

    judgments: int = 0
    by_tokens: int = 0
    matched: int = 0
    """Judgments that found documents."""
    documents: set[str] = field(default_factory=set)

    def sentence(self) -> str:
        by_characters = "as characters, whatever their case and white space"
        by_tokens = "as whole tokens of the text, after Unicode's NFD and in lower case, as DPR does"
        ways = [by_characters] * (self.judgments > self.by_tokens) + [by_tokens] * (self.by_tokens > 0)
        return (
            f"words: {len(self.documents):,} documents match {self.matched:,} of {self.judgments:,} judgments by "
            f"words, {' or '.join(ways)}"
        )


class _Matcher:
    """A search for documents that contain words, ignoring case, as characters of title and text or tokens of the
    text.

    documents: {identifier: (title, text)}.
    how: "all" or "any" of several words; "" refuses several.
    """

    # Tokens as in Karpukhin et al. 2020, whose code matches the answers of DPR's topics so.

    def __init__(self, documents: Mapping[str, tuple[str, str]], how: str) -> None:
        self._documents, self._how = documents, how
        self._folded: dict[tuple[str, bool], list[tuple[str, str]]] = {}

    def refuse_endless(self, items: Iterable[Item]) -> None:
        """Raise BadValue if searching for the words of these items would take hours."""
        words = sum(len(item.words) for item in items if isinstance(item, ByWords))
        characters = sum(len(title) + len(text) for title, text in self._documents.values())
        _refuse_endless(words, "words", characters)

    def documents_with(self, by: ByWords) -> list[str]:
        """Return the identifiers of documents that contain a judgment's words, in order of arrival.

        Raises ValueError without documents or words, and for several words without a choice of all or any.
        """
        if not self._documents:
            raise ValueError(
                f"judged by words ({by.field}), which needs documents: give them, or `corpus=FOLDER`"
            )
        how = by.how or self._how
        if len(by.words) > 1 and not how:
            raise ValueError(
                f"{len(by.words)} words in '{by.field}': add `choices={{'words': 'all'}}`, or 'any'"
            )
        fold = _tokens if by.tokens else folded
        words = [sought for word in by.words if (sought := fold(word)).strip()]
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


def _refuse_endless(count: int, what: str, characters: int) -> None:
    if count * characters > LARGEST_SEARCH:
        raise BadValue(
            f"looking for {count:,} {what} in {characters:,} characters of documents takes hours; give fewer "
            "queries at a time, or a smaller `corpus`"
        )


def _tokens(text: str) -> str:
    tokens = (
        token
        for token in _token_pattern().findall(unicodedata.normalize("NFD", text))
        if not (len(token) == 1 and unicodedata.category(token)[0] in "ZC")
    )
    return f" {' '.join(tokens)} ".lower()


@cache
def _token_pattern() -> re.Pattern[str]:
    marks = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    return re.compile(rf"(?:[^\W_]|[{''.join(marks)}])+|\S")


# ----------
# Documents on disk, so that a corpus of millions needs little memory.


_CACHE_KIB = 64 << 10  # of the database that is held in memory; the rest is in a file that goes with it
_BATCH_ROWS = 4096

_TABLE = """create table documents (n integer primary key, id blob unique not null, title blob not null,
    text blob not null, metadata blob not null, hash integer not null)"""


class DocumentSpill(Mapping[str, tuple[str, str]]):
    """A temporary database of documents, as a mapping {identifier: (title, text)} in order of arrival."""

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
        """Add a document and return "new"; if `name` exists, return "same" for an equal text, and fill in the title and
        metadata that are missing there, else "other"."""
        text = _bytes(document.key.text)
        metadata = json.dumps(document.metadata, default=str).encode() if document.metadata else b""
        row = (_bytes(name), _bytes(document.title), text, metadata, hash(folded(document.key.text)))
        added = self._database.execute(
            "insert or ignore into documents (id, title, text, metadata, hash) values (?, ?, ?, ?, ?)", row
        )
        if added.rowcount:
            return "new"
        if self._one("text", name) != (text,):
            return "other"
        stored, given = self._fields(name), _fields_of(document)
        if missing := {key: value for key, value in given.items() if not has_value(stored.get(key))}:
            filled = {**stored, **missing}
            title = _bytes(filled.pop(""))
            metadata = json.dumps(filled).encode() if filled else b""
            self._database.execute(
                "update documents set title = ?, metadata = ? where id = ?", (title, metadata, _bytes(name))
            )
        return "same"

    def _fields(self, name: str) -> dict[str, Any]:
        title, metadata = self._one("title, metadata", name) or (b"", b"")
        return {"": _text(title), **(json.loads(metadata) if metadata else {})}

    def _unlike(self, name: str, document: Document) -> list[str]:
        """Return the fields, title and metadata, in which a document differs from the stored one; its empty fields do
        not count."""
        kept = self._fields(name)
        return [key or "title" for key, value in _fields_of(document).items() if kept.get(key) != value]

    def _ids_of(self, text: str) -> set[str]:
        """Return the identifiers of documents of this text; without one, of documents of its words in any case."""
        if not self._indexed:
            self._database.execute("create index by_text on documents (hash)")
            self._indexed = True
        rows = self._database.execute("select id, text from documents where hash = ?", (hash(folded(text)),))
        found = {_text(name): _text(stored) for name, stored in rows}
        exact = {name for name, stored in found.items() if stored == text}
        return exact or {name for name, stored in found.items() if folded(stored) == folded(text)}

    def texts(self) -> Iterator[list[tuple[ItemKey, str, str]]]:
        """Yield (identifier as key, title, text) of the documents, in batches."""
        cursor = self._database.execute("select id, title, text from documents order by n")
        while batch := cursor.fetchmany(_BATCH_ROWS):
            yield [(ItemKey(_text(name)), _text(title), _text(text)) for name, title, text in batch]

    def metadata(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (identifier, metadata) of the documents with metadata."""
        rows = self._rows("id, metadata")
        yield from ((_text(name), json.loads(metadata)) for name, metadata in rows if metadata)

    def characters(self) -> int:
        """Return the number of bytes of all titles and texts."""
        (count,) = self._database.execute(
            "select sum(length(title) + length(text)) from documents"
        ).fetchone()
        return int(count or 0)

    def corpus_lines(self) -> Iterator[str]:
        """Yield each document as a line of corpus.jsonl, without line end."""
        for name, title, text, metadata in self._rows("id, title, text, metadata"):
            line = json.dumps({"_id": _text(name), "title": _text(title), "text": _text(text)})
            yield f'{line[:-1]}, "metadata": {metadata.decode()}}}' if metadata else line

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Undo the additions made in the `with` block if it raises."""
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
    """Yield an empty temporary database of documents; raises StoreError if it cannot be written."""
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


def _fields_of(document: Document) -> dict[str, Any]:
    """Return {field: value, as JSON holds it} of a document's metadata, the title under "", without empty values."""
    given = {"": document.title, **json.loads(json.dumps(document.metadata, default=str))}
    return {key: value for key, value in given.items() if has_value(value)}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


# ----------
# Identifiers of queries and documents that files name by identifier, by text, or by both.


class _Identifiers:
    """Identifiers of queries or documents; a text without identifier gets that of an equal text, or a hash.

    keys: (key, file and row for messages) of each query or document of all files.
    spill: documents stored on disk, which also have identifiers; None for queries.

    Raises BadValue for a query identifier with two texts.
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
        self._near: set[str] = set()
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
                    "if one of them is an identifier, name its column query_id (`columns`); else go by the text alone "
                    "(leave out query_id), or import different query sets into different folders"
                )
            self._text[key.id] = text or key.text
            self._place.setdefault(key.id, place)
            self._of_text.setdefault(key.text, set()).add(key.id)

    def of(self, key: ItemKey) -> str:
        """Return a key's identifier, or for a text alone that of an equal text, the text if it is an identifier, else
        one made from it.

        Raises ValueError for an empty key, a text with several identifiers, and one above IDENTIFIER_BYTES.
        """
        if key == ItemKey():
            raise ValueError(f"no {self._what}")
        text, name = key.text, key.id
        if not name:
            same = self._of_text.get(text, set())
            if self._spill is not None:
                same = same | self._spill._ids_of(text)
            if len(same) > 1:
                raise ValueError(
                    f"its text is that of {len(same)} {self._what} identifiers, {' and '.join(sorted(same)[:2])}"
                )
            if same:
                name = next(iter(same))
                if name not in self._made:
                    self._joined.add(text)
                if self._spill is not None and self._spill[name][1] != text:
                    self._near.add(text)
            elif text in self._text or (self._spill is not None and text in self._spill):
                name = text
            else:
                name = made_id(text, self._what)
                self._made.add(name)
        if len(name.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
            raise ValueError(f"the identifier of the {self._what} has more than {IDENTIFIER_BYTES:,} bytes")
        return name

    def notes(self) -> list[str]:
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
        if self._near:
            sentences.append(
                f"{several} known by a text that differs in case and white space alone from that of another, and are "
                f"taken for it: {len(self._near)}"
            )
        return sentences


def made_id(text: str, what: str) -> str:
    """Return an identifier made from a text, such as "text-3f0c12ab94de": a word part and 12 hex digits of a hash.

    what: "query", whose word part is its first words of a-z and 0-9 ("q" without any), or "document", with "text".
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    words = re.findall(r"[a-z0-9]+", text.casefold()) if what == "query" else []
    slug = "-".join(words)[:32].rstrip("-") or ("q" if what == "query" else "text")
    return f"{slug}-{digest}"


# ----------
# One collection from the items of several files.


_JOINED = {"candidates", "excluded"}  # metadata that several files may list
LARGEST_LOSS = 0.1
"""Largest share of a file's rows that may be refused without the user's consent."""
_REPORTED = 100  # refused rows of a file that are reported one by one


@dataclass
class FileCounts:
    """Counts of a file's items by kind, its refused rows, and its unused fields."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    """The first 100 refused rows."""
    left_out: int = 0
    """Number of all refused rows."""
    rows: int = 0
    trimmed: int = 0
    """Rows whose texts lost blanks around them."""
    places: set[str] = field(default_factory=set)
    """Places of rows lost to the collection."""
    given: Counter[str] = field(default_factory=Counter)
    """Number of judgments with a grade, of all judges, and of rankings, each of one row or of many."""
    lost: Counter[str] = field(default_factory=Counter)
    """How many of them were refused: judgments on which judges disagree, and rankings."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Field -> documents without a text in which it holds one."""
    cells_left: Counter[str] = field(default_factory=Counter)
    """Field -> records with a value that is not imported."""

    def _count_refused(self, where: str, reason: str, lost: bool = True) -> None:
        """Count a refused row, and keep the first 100.

        lost: False if the collection is complete without the row.
        """
        self.left_out += 1
        if lost:
            self.places.add(where)
        if len(self.refused) < _REPORTED:
            self.refused.append(Refused(where, reason))


@dataclass(frozen=True)
class ImportedFile:
    """The items read from a file; its documents with an identifier are in a `DocumentSpill` instead."""

    name: str
    """The path as the user gave it."""
    stem: str
    """The name of its runs."""
    items: tuple[Item, ...]
    counts: FileCounts
    """Counts of the documents in the spill, and of merging."""
    record: Mapping[str, Any]
    """The file's part of the report."""
    split: str = "test"
    """The split of judgments that name none."""

    def refused(self) -> list[Refused]:
        """Return the rows refused in reading, and the first 100 refused in merging."""
        return [item for item in self.items if isinstance(item, Refused)] + self.counts.refused

    def refuse_silence(self) -> None:
        """Raise BadValue if the file has documents but none has a text or title."""
        empty = self.counts.counts["documents without text and title"]
        if empty and empty == self.counts.counts["documents"]:
            columns = self.record["columns"]
            used = ", ".join(f"{role}={column}" for role, column in columns.items()) or "no field"
            raise BadValue(
                f"{self.name}: none of its {empty:,} documents has a text; say which field holds it, as in "
                f"`as_kind='corpus'` and `columns='doc=NAME,text=NAME'` (used: {used})"
            )
        silent, every = self.counts.counts["documents without a text"], self.counts.counts["documents"]
        if field := text_elsewhere(every, silent, self.counts.elsewhere):
            raise BadValue(
                f"{self.name}: {silent:,} of {every:,} documents have no text, and '{field}' holds texts; say "
                f"`columns='text={field}'`, or `columns='text=title'` if the titles are all"
            )

    def refuse_loss(self) -> None:
        """Raise BadValue if more than a tenth of the file is lost: the shares of its rows, of its judgments on which
        judges disagree, and of its rankings, added."""
        kept = (FoundQuery, Judgment, ByWords, Ranking)
        lost = {item.where for item in self.items if isinstance(item, Refused)} | self.counts.places
        places = {item.where for item in self.items if isinstance(item, kept)} | lost
        documents = self.counts.counts["documents"] + self.counts.counts["repeated documents"]
        by_topic = all(where.startswith("topic ") for where in lost)  # each of several lines
        # A row may hold a document and its judgment; a file of one object has places within it.
        rows = 0 if by_topic else self.counts.rows
        total = rows if rows > 1 and rows >= len(places) else max(len(places) + documents, rows)
        parts = [(len(lost), total, "rows")] if lost else []
        parts += [(count, self.counts.given[what], what) for what, count in self.counts.lost.items()]
        if sum(count / of for count, of, _ in parts) > LARGEST_LOSS:
            shares = " and ".join(f"{count:,} of {of:,} {what}" for count, of, what in parts)
            why = reasons((one.where, one.reason) for one in self.refused())
            raise BadValue(
                f"{self.name}: {shares} cannot be imported, the first: {why}; nothing is "
                "written: mend them, or add `choices={'allow_loss': True}`"
            )


SPLITS = ("train", "dev", "valid", "validation", "val", "test")
"""Usual names of splits, which files write in any case."""
_VALUES = re.compile(r"'[^']*'|\d+(, -?[\d.]+)*(, \.\.\.)?")
_WORDS_SHOWN = 8  # of grades
_GRADES_SHOWN = 5  # of a pair
REASONS_SHOWN = 3
"""Reasons of refused rows that a message names."""


def reasons(refused: Iterable[tuple[str, str]]) -> str:
    """Return up to three different reasons as a text, each with its first place, and the number of others.

    refused: (place, reason); reasons that differ only in values and numbers count as one.
    """
    first_of: dict[str, str] = {}
    for where, reason in refused:
        first_of.setdefault(_VALUES.sub("", reason), f"{where}: {reason}")
    shown = list(first_of.values())
    more = f"; and {len(shown) - REASONS_SHOWN} more reasons" * (len(shown) > REASONS_SHOWN)
    return "; another: ".join(shown[:REASONS_SHOWN]) + more


@dataclass
class Merged:
    """A collection merged from imported files, ready to be written."""

    documents: DocumentSpill
    queries: dict[str, str] = field(default_factory=dict)
    """id -> text."""
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Query id -> fields."""
    qrels: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    """split -> query -> document -> grade."""
    origins: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    """split -> (query, document) -> source of the judgment, if a file names it."""
    clicks: dict[str, dict[tuple[str, str], ClickShare]] = field(default_factory=dict)
    """split -> (query, document) -> the clicks that the grade was made of."""
    runs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    """name -> query -> document -> score."""
    notes: list[str] = field(default_factory=list)
    """Remarks about the collection, a sentence each."""
    unanswerable: set[str] = field(default_factory=set)


def keep_document(item: Document, name: str, counts: FileCounts, spill: DocumentSpill) -> None:
    """Add a document under the identifier `name` to the database, and count it as new, repeated or refused.

    It is refused if the identifier has another text there.
    """
    outcome = spill.add(name, item)
    if outcome == "other" and item.key.id:  # else it is known by its text, whatever its case and white space
        counts._count_refused(
            item.where, f"document '{name[:60]}' has another text elsewhere; the first is kept"
        )
    else:
        if outcome == "same":
            counts.cells_left.update(spill._unlike(name, item))
        counts.counts["documents" if outcome == "new" else "repeated documents"] += 1
        if outcome == "new" and not item.key.text.strip():
            counts.counts["documents without a text"] += 1
            counts.elsewhere.update(one for one, value in item.metadata.items() if holds_text(value))
        counts.counts["documents without text and title"] += (
            outcome == "new" and not (item.key.text + item.title).strip()
        )


def merge_files(files: Sequence[ImportedFile], spill: DocumentSpill, choices: Choices) -> Merged:
    """Merge imported files and the documents in `spill` into one collection.

    Adds the files' documents to `spill`, and refused rows to the files' counts. Raises BadValue for parts with
    nothing in common, unless `choices` allows them.
    """
    merged = Merged(spill)
    if not choices.allow_disjoint:
        _refuse_two_collections(files)
    files = _known_by_identifier(files)
    files = _with_sources(files, spill, choices, merged.notes)
    queries = _Identifiers("query", _query_keys(files))
    judged_docs = (item.doc for file in files for item in file.items if isinstance(item, Judgment))
    docs = _Identifiers("document", ((doc, "") for doc in judged_docs), spill)
    for file in files:
        for item in file.items:
            if isinstance(item, Document):
                try:
                    keep_document(item, docs.of(item.key), file.counts, spill)
                except ValueError as error:
                    file.counts._count_refused(item.where, str(error))
        _merge_queries(file, queries, merged)
    _settle_metadata(merged)
    _merge_judgments(files, merged, queries, docs, choices)
    for file in files:
        _merge_rankings(file, queries, docs, merged)
    judgments = [(query, row) for split in merged.qrels.values() for query, row in split.items()]
    judged = {doc for _, row in judgments for doc in row}
    judged_queries = {query for query, _ in judgments}
    absent = sum(name not in merged.documents for name in judged) if merged.documents else 0
    if not choices.allow_disjoint:
        _refuse_unrelated(merged, judged, judged_queries, absent)
    merged.notes += queries.notes() + docs.notes()
    for file in files:
        queries_found = (item for item in file.items if isinstance(item, FoundQuery))
        silent = (item for item in queries_found if not item.key.text and item.key.id not in merged.queries)
        for item in silent:
            file.counts.cells_left.update({name: item.rows.get(name, 1) for name in item.metadata})
    merged.notes += _judgment_notes(judgments, merged)
    if absent:
        merged.notes.append(f"{absent} of {len(judged)} judged documents are not among the documents")
    if merged.queries and (without_text := judged_queries - set(merged.queries)):
        merged.notes.append(f"{len(without_text)} of {len(judged_queries)} judged queries have no text")
    return merged


def _refuse_unrelated(merged: Merged, judged: set[str], judged_queries: set[str], absent: int) -> None:
    others = {f"run {name}: it answers none": set(rankings) for name, rankings in merged.runs.items()}
    others |= {"queries: there is a text for none": set(merged.queries)}
    advice = "so they do not belong together; import them apart, or add `choices={'allow_disjoint': True}`"
    for what, names in others.items():
        if judged_queries and names and not judged_queries & names:
            raise BadValue(
                f"{what} of the {len(judged_queries):,} judged queries, such as '{min(judged_queries)[:60]}' "
                f"(its own are such as '{min(names)[:60]}'), {advice}"
            )
    if judged and absent == len(judged):
        raise BadValue(
            f"documents: none of the {len(judged):,} judged documents, such as '{min(judged)[:60]}', "
            f"is among them, {_named_elsewhere(merged.documents, judged) or advice}"
        )


_NAMED_SHARE = 0.5  # of the judged documents, by which a field of metadata is taken to name documents


def _named_elsewhere(documents: DocumentSpill, judged: set[str]) -> str:
    """Return the advice where a field of the documents' metadata names the judged documents; "" if none does."""
    named, held, marks = dict[str, set[str]](), Counter[str](), dict[str, set[str]]()
    for name, metadata in documents.metadata():
        for column, value in metadata.items():
            if (of := plain_text(value)) in judged:
                held[column] += 1
                named.setdefault(column, set()).add(of)
                rest = name.removeprefix(of)
                between = re.match(r"[\W_]+", rest) if rest != name else None
                marks.setdefault(column, set()).add(between[0] if between else "")
    column = max(named, key=lambda one: len(named[one]), default="")
    if not column or len(named[column]) < _NAMED_SHARE * len(judged):
        return ""
    found = f"but {len(named[column]):,} of them are values of '{column}'"
    if held[column] == len(named[column]):
        return f"{found}: say `columns='doc={column}'`"
    mark = next(iter(marks[column])) if len(marks[column]) == 1 else ""
    ways = f"weir data convert RUN OUT --collapse '{mark}'" if mark else "`weir.Run.collapsed` in Python"
    return (
        f"{found}, of which they are parts: import judgments and parts apart, rank the parts for the same queries, "
        f"and make documents of the ranking with {ways} (docs/tutorials/rag-engineer.md)"
    )


def _judgment_notes(judgments: Sequence[tuple[str, Mapping[str, float]]], merged: Merged) -> Iterator[str]:
    if judgments and max(max(row.values()) for _, row in judgments) <= 0:
        yield "every grade is 0 or less: nothing is relevant"
    barred = [
        (query, doc)
        for query, row in judgments
        for doc in merged.metadata.get(query, {}).get("excluded", ())
        if row.get(doc, 0) > 0
    ]
    if barred:
        query, doc = barred[0]
        both = counted(len(barred), "document is", "documents are")
        yield f"{both} both relevant and excluded, the first '{doc[:60]}' for query '{query[:60]}'; no ranking has them"


def _refuse_two_collections(files: Sequence[ImportedFile]) -> None:
    first_of: dict[tuple[str, str], ImportedFile] = {}
    for file in files:
        counts = file.counts.counts
        held = {"documents"} if counts["documents"] + counts["repeated documents"] else set[str]()
        held |= {"queries" for item in file.items if isinstance(item, FoundQuery) and item.key.text}
        held |= {f"judgments of {_split_of(item, file)}" for item in file.items if isinstance(item, Judgment)}
        if any(isinstance(item, Ranking) for item in file.items):
            continue  # results of two systems are often files of one name
        for part in sorted(held):
            named = naming_path(Path(file.name))
            first = first_of.setdefault((named.name, part), file)
            if naming_path(Path(first.name)).parent != named.parent:
                raise BadValue(
                    f"{first.name} and {file.name} both hold {part} under one name, as two collections do; import them "
                    "apart, or, if they are one, add `choices={'allow_disjoint': True}`"
                )


def _split_of(item: Judgment, file: ImportedFile) -> str:
    own = item.split.lower() if item.split.lower() in SPLITS else item.split
    return file.split if own == "test" else own


def _known_by_identifier(files: Sequence[ImportedFile]) -> list[ImportedFile]:
    named = [
        {item.key.id for item in file.items if isinstance(item, FoundQuery) and item.key.id != item.key.text}
        for file in files
    ]
    read = list[ImportedFile]()
    for file, own in zip(files, named, strict=True):
        known = {name for names in named if names is not own for name in names}
        keys = [key for key, _ in _query_keys([file])]
        if keys and all(key.text in known and key.id in ("", key.text) for key in keys):
            read.append(replace(file, items=tuple(map(_with_identifier, file.items))))
        else:
            read.append(file)
    return read


def _with_identifier(item: Item) -> Item:
    if isinstance(item, FoundQuery):
        return replace(item, key=ItemKey(item.key.text))
    return (
        replace(item, query=ItemKey(item.query.text))
        if isinstance(item, (Judgment, ByWords, Ranking))
        else item
    )


def _with_sources(
    files: Sequence[ImportedFile], spill: DocumentSpill, choices: Choices, notes: list[str]
) -> Sequence[ImportedFile]:
    """Return the files with the documents that judged or returned texts quote in place of these texts.

    A judged text that several documents hold is refused, and one that no document of a corpus holds is judged but no
    document. Raises BadValue if most texts are in no document of a corpus, unless `choices` allows it, which makes a
    document of each.
    """
    judged, others = _texts_alone(files)
    hops = {
        text: [ItemKey(text=bare)]
        for text in judged
        if text not in others and (bare := without_hop(text)) != text
    }
    if hops:
        files = [replace(file, items=tuple(_with_keys(file, hops, {}))) for file in files]
        judged, others = _texts_alone(files)
        notes.append(f"marks of Ragas, such as <1-hop>, taken off reference texts: {len(hops):,}")
    named = {doc.id for file in files for item in file.items for doc in docs_of(item)}
    corpus = any(name not in named for name in spill)  # else it holds only what was judged or returned
    sought = judged | others if corpus else judged
    pool = {} if corpus else {folded(text): text for text in others}
    rest = [
        text
        for text in sought
        if not (folded(text) in pool or text in named or text in spill or spill._ids_of(text))
    ]
    if not rest or not (spill or pool):
        return files
    _refuse_endless(len(rest), "texts", spill.characters() + sum(map(len, pool)))
    returned = [(ItemKey(text=text), "", text) for text in pool.values()]
    keys, several, without = dict[str, Sequence[ItemKey]](), dict[str, str](), list[str]()
    for text, quotation in quotations(rest, chain(spill.texts(), [returned])).items():
        sources = quotation.sources()
        if len(sources) == 1 or (sources and not quotation.holders and text not in others):
            keys[text] = sources
        elif len(sources) > 1 and text not in others:
            first = " and ".join(f"'{key.id or key.text[:40]}'" for key in sources[:2])
            several[text] = f"'{text[:40]}' stands in {len(sources):,} documents, such as {first}"
        else:
            without.append(text)
    of = f"of {len(sought):,}"
    if corpus and 2 * len(without) > len(sought) and not choices.allow_disjoint:
        raise BadValue(
            f"documents: {len(without):,} {of} texts of documents, such as '{without[0][:60]}', stand in none of the "
            f"{len(spill):,} documents, nor consist of any, so they may be of other documents; name documents by "
            "identifiers, or add `choices={'allow_disjoint': True}`, which makes a document of each"
        )
    strange = (
        {text for text in without if text not in others} if corpus and not choices.allow_disjoint else set()
    )
    whole = sum(len(sources) == 1 for sources in keys.values())
    counts = {
        "texts that stand within one document, which is taken for them": whole,
        "texts that consist of several documents, which are taken for them": len(keys) - whole,
        "texts that stand in no document, and became documents themselves"
        if corpus
        else "reference texts that stand in no text returned, and count as not found": len(without)
        - len(strange),
    }
    if strange:
        first = next(text for text in without if text in strange)
        what = f"reference texts, such as '{first[:60]}', that stand in no document: judged, and never found"
        counts[what] = len(strange)
    notes += [f"{what}: {count:,} {of}" for what, count in counts.items() if count]
    return [replace(file, items=tuple(_with_keys(file, keys, several, strange))) for file in files]


def _texts_alone(files: Sequence[ImportedFile]) -> tuple[dict[str, None], dict[str, None]]:
    """Return (texts of judged documents without identifiers, texts of others without identifiers)."""
    judged, others = dict[str, None](), dict[str, None]()
    for file in files:
        own = {(item.where, item.doc.text) for item in file.items if isinstance(item, Judgment)}
        for item in file.items:
            docs = [item.key] if isinstance(item, Document) and (item.where, item.key.text) not in own else []
            texts = [doc.text for doc in (*docs, *docs_of(item)) if doc.text and not doc.id]
            (judged if isinstance(item, Judgment) else others).update(dict.fromkeys(texts))
    return judged, others


def docs_of(item: Item) -> tuple[ItemKey, ...]:
    """Return the documents that an item judges or ranks."""
    return (item.doc,) if isinstance(item, Judgment) else item.docs if isinstance(item, Ranking) else ()


def _with_keys(
    file: ImportedFile,
    keys: Mapping[str, Sequence[ItemKey]],
    several: Mapping[str, str],
    strange: Collection[str] = (),
) -> Iterator[Item]:
    """Yield the items of a file, of which documents known by these texts have these keys.

    several: {text: why it is refused as a judged document}.
    strange: judged texts that are no documents.
    """

    def found(key: ItemKey) -> Sequence[ItemKey]:
        return keys.get(key.text, (key,)) if not key.id else (key,)

    no_documents = {*several, *strange}
    for item in file.items:
        if isinstance(item, Judgment) and not item.doc.id and item.doc.text in several:
            file.counts._count_refused(item.where, several[item.doc.text])
        elif isinstance(item, Judgment):
            yield from (replace(item, doc=key) for key in found(item.doc))
        elif isinstance(item, Document) and (item.key.id or item.key.text not in no_documents):
            yield from (replace(item, key=key) for key in found(item.key) if key == item.key or not key.id)
        elif isinstance(item, Ranking):
            yield replace(item, docs=tuple(found(doc)[0] for doc in item.docs))
        elif not isinstance(item, Document):
            yield item


def _query_keys(files: Sequence[ImportedFile]) -> Iterator[tuple[ItemKey, str]]:
    for file in files:
        for item in file.items:
            if isinstance(item, FoundQuery):
                yield item.key, f"{file.name}, {item.where}"
            elif isinstance(item, (Judgment, ByWords, Ranking)):
                yield item.query, f"{file.name}, {item.where}"


def _merge_queries(file: ImportedFile, queries: _Identifiers, merged: Merged) -> None:
    names: set[str] = set()
    for item in file.items:
        if not isinstance(item, FoundQuery):
            continue
        try:
            name = queries.of(item.key)
        except ValueError as error:
            file.counts._count_refused(item.where, str(error))
            continue
        names.add(name)
        if item.key.text:
            merged.queries.setdefault(name, item.key.text)
        metadata = merged.metadata.setdefault(name, {})
        for key, value in item.metadata.items():
            if key in _JOINED and key in metadata:
                metadata[key] = list(dict.fromkeys([*metadata[key], *value]))
            elif metadata.setdefault(key, value) != value:
                file.counts.cells_left[key] += item.rows.get(key, 1)
        if item.unanswerable:
            merged.unanswerable.add(name)
    file.counts.counts["queries"] = len(names)


def _settle_metadata(merged: Merged) -> None:
    for name, metadata in merged.metadata.items():
        for key in metadata.keys() & {"instruction", "filter"}:
            metadata[key] = plain_text(metadata[key])
        if "unanswerable" in metadata:
            flag = number(grade_value(given := metadata.pop("unanswerable")))
            if flag is None:
                raise BadValue(f"query '{name[:60]}': unanswerable is '{given}'; expected yes or no")
            if flag:
                merged.unanswerable.add(name)
    try:
        QueryMetadata.of(list(merged.metadata.values()))
    except MetadataError as error:
        raise BadValue(f"query '{list(merged.metadata)[error.row][:60]}': {error}") from None
    if filtered := sum("filter" in metadata for metadata in merged.metadata.values()):
        have = counted(filtered, "query has", "queries have")
        meant = "only documents whose fields fit it may be ranked; rename the field if it is none"
        merged.notes.append(f"{have} a filter: {meant}")


@dataclass
class _Pair:
    grades: list[float] = field(default_factory=list)
    places: list[tuple[ImportedFile, str]] = field(default_factory=list)
    """(file, place in it) of each grade."""
    origins: dict[str, None] = field(default_factory=dict)
    clicks: ClickShare | None = None


def _judged_pairs(
    files: Sequence[ImportedFile], merged: Merged, queries: _Identifiers, docs: _Identifiers, choices: Choices
) -> dict[tuple[str, str, str], _Pair]:
    pairs: dict[tuple[str, str, str], _Pair] = {}
    matcher, matches = _Matcher(merged.documents, choices.words), _MatchCounts()
    matcher.refuse_endless(item for file in files for item in file.items)
    words, numbered = {**BINARY_WORDS, **choices.grade_words()}, set[str]()
    unknown = _unknown_words(files, words)
    for file in files:
        counts = file.counts
        for item in _judgments(file, matcher, matches):
            given = grade_value(item.grade, words)
            grade, split = number(given), _split_of(item, file)
            numbered.add(grade_word(item.grade))
            try:
                if grade is None:
                    word = str(item.grade)[:40]
                    named = ""
                    if re.search(r"\d,\d", word):
                        named = "; write one decimal mark, and none between thousands"
                    elif unknown and grade_word(word) not in ("", "nan"):
                        named = f"; `choices={{'grades': {unknown!r}}}` gives each word its number"
                    raise ValueError(f"the grade {word!r} is no finite number{named}")
                if not re.fullmatch(r"[\w.-]{1,64}", split) or split.startswith("."):
                    raise ValueError(f"the split '{split[:40]}'; expected a name of letters, digits, - and _")
                place = (split, queries.of(item.query), docs.of(item.doc))
            except ValueError as error:
                counts._count_refused(item.where, str(error))
                continue
            pair = pairs.setdefault(place, _Pair())
            pair.grades.append(grade)
            pair.places.append((file, item.where))
            counts.given["judgments"] += 1
            pair.origins[item.origin] = None
            pair.clicks = item.clicks or pair.clicks
        by_words = sum(isinstance(item, ByWords) for item in file.items)
        if by_words and merged.documents:
            counts.counts["judgments by words"] = by_words
    if unused := sorted(choices.grade_words().keys() - numbered):
        merged.notes.append(f"grades: no judgment has the grade '{unused[0]}'")
    if matches.judgments and merged.documents:
        merged.notes.append(matches.sentence())
    return pairs


def _unknown_words(files: Sequence[ImportedFile], words: Mapping[str, float]) -> str:
    """Return the words used as grades without a known number, as a choice such as "Exact=?,Partial=?"; at most
    _WORDS_SHOWN.
    """
    grades = (item.grade for file in files for item in file.items if isinstance(item, (Judgment, ByWords)))
    found = dict.fromkeys(
        str(grade)[:40]
        for grade in grades
        if isinstance(grade, str)
        and number(grade_value(grade, words)) is None
        and grade_word(grade) not in ("", "nan")
    )
    return ",".join(
        [f"{word}=?" for word in list(found)[:_WORDS_SHOWN]] + ["..."] * (len(found) > _WORDS_SHOWN)
    )


def _merge_judgments(
    files: Sequence[ImportedFile], merged: Merged, queries: _Identifiers, docs: _Identifiers, choices: Choices
) -> None:
    pairs = _judged_pairs(files, merged, queries, docs, choices)
    changed = fractions = 0
    for (split, query, doc), pair in pairs.items():
        first, where = pair.places[0]
        grade = agreed(pair.grades, choices)
        if grade is None:
            some = [f"{one:g}" for one in pair.grades[:_GRADES_SHOWN]]
            grades = ", ".join([*some, *["..."] * (len(pair.grades) > _GRADES_SHOWN)])
            reason = (
                f"grades {grades} for query '{query[:40]}', document '{doc[:40]}'; "
                "`choices={'judges': 'max'}`, min, mean or majority"
            )
            for file, where in pair.places:
                file.counts.lost["judgments"] += 1
                file.counts._count_refused(where, reason, lost=False)
            continue
        seen = set[float]()
        for one, (file, _) in zip(pair.grades, pair.places, strict=True):
            file.counts.counts["repeated judgments"] += one in seen
            seen.add(one)
        final = chosen_grade(grade, choices, f"{first.name}, {where}")
        changed += final != grade
        fractions += isinstance(final, float)
        merged.qrels.setdefault(split, {}).setdefault(query, {})[doc] = final
        if any(pair.origins):
            merged.origins.setdefault(split, {})[query, doc] = ", ".join(filter(None, pair.origins))
        if pair.clicks is not None:
            merged.clicks.setdefault(split, {})[query, doc] = pair.clicks
        first.counts.counts["judgments"] += 1
    if fractions:
        total = sum(file.counts.counts["judgments"] for file in files)
        merged.notes.append(
            f"grades: {fractions} of {total} have fractions and are kept; "
            "`choices={'grades': 'round'}`, scale=N or threshold=X make them whole"
        )
    if choices.grades and not choices.grade_words():
        merged.notes.append(f"grades: {choices.grades}, which changed {changed} of {len(pairs)}")
    if choices.words and any(file.counts.counts["judgments by words"] for file in files):
        merged.notes.append(f"words: a document counts where it holds {choices.words} of several")
    several = sum(len(set(pair.grades)) > 1 for pair in pairs.values())
    if choices.judges and several:
        merged.notes.append(
            f"judges: the {choices.judges} of the grades of "
            + counted(several, "pair whose grades differ", "pairs whose grades differ")
        )
    split_rows = (split.items() for split in merged.qrels.values())
    answered = {query for rows in split_rows for query, row in rows if max(row.values()) > 0}
    merged.unanswerable -= answered  # a flag beside relevant documents is about something else


def _judgments(file: ImportedFile, matcher: _Matcher, matches: _MatchCounts) -> Iterator[Judgment]:
    for item in file.items:
        if isinstance(item, Judgment):
            yield item
        elif isinstance(item, ByWords):
            matches.judgments += 1
            matches.by_tokens += item.tokens
            try:
                names = matcher.documents_with(item)
            except ValueError as error:
                file.counts._count_refused(item.where, str(error))
                continue
            if not names:
                reason = f"no document holds the words in '{item.field}' ({item.words[0][:40]})"
                file.counts._count_refused(item.where, reason, lost=False)
                continue
            matches.matched += 1
            matches.documents.update(names)
            for name in names:
                yield Judgment(item.query, ItemKey(name), item.grade, item.where)


def _merge_rankings(file: ImportedFile, queries: _Identifiers, docs: _Identifiers, merged: Merged) -> None:
    rankings: dict[str, list[tuple[Ranking, str, list[str]]]] = {}
    for item in file.items:
        if isinstance(item, Ranking):
            if item.unused:
                file.counts.cells_left["scores in rankings of which documents have none"] += item.unused
            _refuse_odd_ranks(file.name, item)
            file.counts.given["rankings"] += 1
            try:
                names = [docs.of(doc) for doc in item.docs]
                rankings.setdefault(item.run or file.stem, []).append((item, queries.of(item.query), names))
            except ValueError as error:
                file.counts.lost["rankings"] += 1
                file.counts._count_refused(item.where, str(error), lost=False)
    for run, answers in rankings.items():
        # Ranks replace scores if a file has none, or orders ties by itself.
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


def _refuse_odd_ranks(name: str, item: Ranking) -> None:
    odd = None if item.scores else next((rank for rank in item.ranks if not _is_rank(rank)), None)
    if odd is not None:
        raise BadValue(
            f"{name}, {item.where}: the rank {odd:g}; expected whole numbers from 0, or halves for equal ranks; "
            "if these are scores, say `as_kind='run-scores'` or `columns='score=NAME'`"
        )


def _is_rank(number: float) -> bool:
    return math.isnan(number) or (
        number >= 0 and (number.is_integer() or (number > 1 and (2 * number).is_integer()))
    )


def order_of(item: Item) -> OrderCounts:
    """Return counts of how the scores of a ranking agree with its ranks or order; all 0 for other items."""
    if not isinstance(item, Ranking) or not item.docs or len(item.scores) != len(item.docs):
        return OrderCounts()
    ranks = (
        np.array(item.ranks) if item.ranks else np.arange(1.0, len(item.docs) + 1) if item.ordered else None
    )
    return order_counts(np.array([0, len(item.docs)]), np.array(item.scores), ranks)


def _places_as_scores(item: Ranking) -> list[float]:
    count = len(item.docs)
    if not item.ranks or any(map(math.isnan, item.ranks)):
        return [float(n) for n in range(count, 0, -1)]
    better = sorted(item.ranks)
    return [float(count - bisect_left(better, rank)) for rank in item.ranks]


def _rows_of_run(
    answers: Sequence[tuple[Ranking, str, list[str]]], by_rank: bool, counts: FileCounts
) -> dict[str, dict[str, float]]:
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
                counts._count_refused(
                    item.where, f"document '{doc[:60]}' twice in the ranking; the first is kept"
                )
        if rows.setdefault(query, row) != row:
            counts.lost["rankings"] += 1
            counts._count_refused(
                item.where, f"query '{query[:60]}' has another answer before; the first is kept", lost=False
            )
    return rows
