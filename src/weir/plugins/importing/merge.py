"""From what readers found in several files to one collection."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from weir.core.strings import IDENTIFIER_BYTES
from weir.errors import BadValue, StoreError
from weir.plugins.importing.click_models import ClickShare
from weir.plugins.importing.contents import fold
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
    number,
)

# ----------
# Judgments by words that documents hold, as characters or as whole tokens.


LARGEST_SEARCH = 10**12
"""Characters looked at in all, words times texts: some ten minutes."""


@dataclass
class MatchCounts:
    """What came of the judgments by words of a file. asked, answered: queries; documents: those that hold the words of
    any; tokens: how many of `asked` were matched by whole tokens."""

    asked: int = 0
    answered: int = 0
    tokens: int = 0
    documents: set[str] = field(default_factory=set)

    def sentence(self) -> str:
        """What was matched, how, and with what success."""
        by_characters = "as characters, whatever their case and white space"
        by_tokens = "as whole tokens of the text, after Unicode's NFD and in lower case, as DPR does"
        ways = [by_characters] * (self.asked > self.tokens) + [by_tokens] * (self.tokens > 0)
        return (
            f"words: {len(self.documents):,} documents hold those of {self.answered:,} of {self.asked:,} judgments by "
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
        held = sum(len(title) + len(text) for title, text in self._documents.values())
        if words * held > LARGEST_SEARCH:
            raise BadValue(
                f"{words:,} words to be looked for in {held:,} characters of documents, which takes hours; give fewer "
                "queries at a time, or a smaller --corpus"
            )

    def found(self, by: ByWords) -> list[str]:
        """The identifiers of documents that hold the words; raises ValueError, with the reason, where that is open."""
        if not self._documents:
            raise ValueError(
                f"judged by words ({by.field}), which takes documents: give them, or --corpus FOLDER"
            )
        how = by.how or self._how
        if len(by.words) > 1 and not how:
            raise ValueError(f"{len(by.words)} words in '{by.field}': say --words all or --words any")
        test = any if how == "any" else all
        fold = _tokens if by.tokens else _characters
        words = [folded for word in by.words if (folded := fold(word)).strip()]
        if not words:
            raise ValueError(f"no word in '{by.field}'")
        if (by.within, by.tokens) not in self._folded:
            chosen: dict[str, Callable[[str, str, str], str]] = {
                "id": lambda name, _title, _text: name,
                "title": lambda _name, title, _text: title,
                "text": lambda _name, title, text: text if by.tokens else f"{title} {text}",
            }
            part, folding = chosen[by.within], _tokens if by.tokens else _characters
            self._folded[by.within, by.tokens] = [
                (name, folding(part(name, *held))) for name, held in self._documents.items()
            ]
        names = [
            name for name, text in self._folded[by.within, by.tokens] if test(word in text for word in words)
        ]
        if not names:
            raise ValueError(f"no document holds the words in '{by.field}' ({by.words[0][:40]})")
        return names


def _characters(text: str) -> str:
    return " ".join(text.casefold().split())


def _tokens(text: str) -> str:
    """The tokens with a blank before and behind each, so that a run of them is a part of the text."""
    normal = unicodedata.normalize("NFD", text)
    tokens = (
        token
        for token in _token_pattern().findall(normal)
        if not (len(token) == 1 and unicodedata.category(token)[0] in "ZC")
    )
    return f" {' '.join(tokens)} ".lower()


@cache
def _token_pattern() -> re.Pattern[str]:
    """Letters, digits and marks in a row, or one other character; `\\w` alone has no marks."""
    marks = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    return re.compile(rf"(?:[^\W_]|[{''.join(marks)}])+|\S")


def as_judgments(
    items: Iterable[Item], match: Matcher, refuse: Callable[[str, str], None], counts: MatchCounts
) -> Iterator[Judgment]:
    """The judgments among items, those by words resolved and counted; refuse: told place and reason where they cannot
    be."""
    for item in items:
        if isinstance(item, Judgment):
            yield item
        elif isinstance(item, ByWords):
            counts.asked += 1
            counts.tokens += item.tokens
            try:
                names = match.found(item)
            except ValueError as error:
                refuse(item.where, str(error))
                continue
            counts.answered += 1
            counts.documents.update(names)
            for name in names:
                yield Judgment(item.query, ItemKey(name), item.grade, item.where)


# ----------
# Documents on disk, so that a corpus of millions needs little memory.


_CACHE_KIB = 64 << 10  # of the database that is held in memory; the rest is in a file that goes with it
_BATCH_ROWS = 4096

_TABLE = """create table documents (n integer primary key, id blob unique not null, title blob not null,
    text blob not null, metadata blob not null, hash integer not null)"""


class DocumentSpill(Mapping[str, tuple[str, str]]):
    """Documents by identifier, (title, text) of each, in the order in which they came.

    They lie in a temporary database that is gone with the process, however that ends. Raises StoreError where the disk
    refuses.
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
        """Put a document there under its identifier.

        "same" where one of this identifier and text is there, "other" where it has another text; both leave it.
        """
        text, packed = (
            _bytes(document.key.text),
            json.dumps(document.metadata, default=str).encode() if document.metadata else b"",
        )
        row = (_bytes(name), _bytes(document.title), text, packed, _hash(document.key.text))
        added = self._database.execute(
            "insert or ignore into documents (id, title, text, metadata, hash) values (?, ?, ?, ?, ?)", row
        )
        if added.rowcount:
            return "new"
        known = self._one("text", name)
        return "same" if known is not None and known[0] == text else "other"

    def ids_of(self, text: str) -> set[str]:
        """The identifiers of the documents that have this text."""
        if not self._indexed:
            self._database.execute("create index by_text on documents (hash)")
            self._indexed = True
        rows = self._database.execute("select id, text from documents where hash = ?", (_hash(text),))
        wanted = _bytes(text)
        return {_text(name) for name, held in rows if held == wanted}

    def lines(self) -> Iterator[str]:
        """The documents as lines of corpus.jsonl."""
        for name, title, text, metadata in self._rows("id, title, text, metadata"):
            row = {"_id": _text(name), "title": _text(title), "text": _text(text)}
            line = json.dumps(row)
            yield f'{line[:-1]}, "metadata": {metadata.decode()}}}' if metadata else line

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """What was added in the block leaves again where it ends in an error."""
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


def _hash(text: str) -> int:
    return hash(text)  # of one process, as the spill is


# ----------
# Identifiers of queries and documents that files name by identifier, by text, or by both.


class MadeNames:
    """Identifiers of queries or documents; what is known by its text alone gets that of the same text, or a new one.

    keys: what names them, and where; spill: documents that have identifiers.
    """

    def __init__(
        self, what: str, keys: Iterable[tuple[ItemKey, str]], spill: DocumentSpill | None = None
    ) -> None:
        self._what, self._spill = what, spill
        self._of_text: dict[str, set[str]] = {}
        self._text: dict[str, str] = {}
        self._place: dict[str, str] = {}
        self.made: set[str] = set()
        self.joined: set[str] = set()
        for key, place in keys:
            self._learn(key, place)

    def _learn(self, key: ItemKey, place: str) -> None:
        if not key.id:
            return
        known = self._text.get(key.id, "")
        if (
            self._what == "query"
            and key.text
            and known
            and " ".join(known.split()) != " ".join(key.text.split())
        ):
            raise BadValue(
                f"query '{key.id[:60]}' is '{known[:60]}' in {self._place[key.id]} and '{key.text[:60]}' in {place}; "
                "go by the text alone (leave out query_id), or import different query sets into different folders"
            )
        if key.text:
            self._text.setdefault(key.id, key.text)
            self._place.setdefault(key.id, place)
            self._of_text.setdefault(key.text, set()).add(key.id)
        else:
            self._text.setdefault(key.id, "")

    def of(self, key: ItemKey) -> str:
        """The identifier of a query or document; raises ValueError, with the reason, where there is none."""
        if key.id:
            name = key.id
        elif not key.text:
            raise ValueError(f"no {self._what}")
        else:
            name = self._by_text(key.text)
        if len(name.encode("utf-8", "surrogatepass")) > IDENTIFIER_BYTES:
            raise ValueError(f"an identifier of the {self._what} of more than {IDENTIFIER_BYTES:,} bytes")
        return name

    def _by_text(self, text: str) -> str:
        same = self._of_text.get(text, set())
        if self._spill is not None:
            same = same | self._spill.ids_of(text)
        if len(same) > 1:
            raise ValueError(
                f"its text is that of {len(same)} {self._what} identifiers, {' and '.join(sorted(same)[:2])}"
            )
        if same:
            self.joined.add(text)
            return next(iter(same))
        if text in self._text or (self._spill is not None and text in self._spill):
            return text
        name = made_id(text, self._what)
        self.made.add(name)
        return name

    def notes(self) -> list[str]:
        """What was done for want of identifiers."""
        several = {"query": "queries", "document": "documents"}[self._what]
        sentences = []
        if self.made:
            sentences.append(
                f"{several} without an identifier, which got one made from a hash of their text: {len(self.made)}"
            )
        if self.joined:
            sentences.append(
                f"{several} known by their text, which got the identifier of the same text: {len(self.joined)}"
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


_JOINED = {"candidates", "excluded"}
_KEPT = 100  # refused rows of a file that are told one by one


@dataclass
class FileCounts:
    """What became of a file's items. refused: the first rows, with the reasons; left_out: how many in all."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    left_out: int = 0

    def refuse(self, where: str, reason: str) -> None:
        """Leave out a row."""
        self.left_out += 1
        if len(self.refused) < _KEPT:
            self.refused.append(Refused(where, reason))


@dataclass(frozen=True)
class FileFound:
    """What a reader found in a file.

    name: as the user gave it; stem: what its runs are called; items: but for documents with an identifier, which are
    shelved while they are read; counts: what became of those; split: where its judgments go that name no other.
    """

    name: str
    stem: str
    items: tuple[Item, ...]
    counts: FileCounts
    split: str = "test"


@dataclass
class Imported:
    """A collection as it will be written.

    documents: id -> (title, text); queries: id -> text; metadata: id -> fields; qrels: split -> query -> document ->
    grade; origins: split -> (query, document) -> where the judgment comes from, if files say it; clicks: likewise, what
    a model of clicks made the grade of; runs: name -> query ->
    document -> score; notes: sentences about the whole; files: in the order given.
    """

    documents: DocumentSpill
    queries: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    qrels: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    origins: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    clicks: dict[str, dict[tuple[str, str], ClickShare]] = field(default_factory=dict)
    runs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    files: list[FileCounts] = field(default_factory=list)
    unanswerable: set[str] = field(default_factory=set)


def keep_document(item: Document, name: str, told: FileCounts, spill: DocumentSpill) -> None:
    """Put a document of a file in the spill under its name; one that is there with another text is refused."""
    known = spill.add(name, item)
    if known == "other":
        told.refuse(item.where, f"document '{name[:60]}' has another text elsewhere; the first is kept")
    else:
        told.counts["documents" if known == "new" else "repeated documents"] += 1


def merged(found: Sequence[FileFound], spill: DocumentSpill, choices: Choices) -> Imported:
    """Join what was found; spill: the documents of the files that have identifiers, and what the user gave beside them.

    Raises BadValue where one identifier has two texts of a query, for grades beyond ±16384, and where queries,
    judgments and runs have nothing in common.
    """
    whole_of = Imported(spill, files=[file.counts for file in found])
    queries = MadeNames("query", _query_keys(found))
    docs = MadeNames("document", _document_keys(found), spill)
    for file in found:
        for item in file.items:
            if isinstance(item, Document):
                try:
                    keep_document(item, docs.of(item.key), file.counts, spill)
                except ValueError as error:
                    file.counts.refuse(item.where, str(error))
        _take_queries(file, file.counts, queries, whole_of)
    _take_judgments(found, whole_of, (queries, docs), choices)
    for file, counts in zip(found, whole_of.files, strict=True):
        _take_rankings(file, counts, (queries, docs), whole_of)
    if not choices.allow_disjoint:
        with_judgments = {query for split in whole_of.qrels.values() for query in split}
        judged = {doc for split in whole_of.qrels.values() for row in split.values() for doc in row}
        others = {f"run {name}: it answers none": set(rankings) for name, rankings in whole_of.runs.items()}
        others |= {"queries: there is a text for none": set(whole_of.queries)}
        advice = "so that they cannot belong together; import them apart, or say --allow-disjoint"
        for what, names in others.items():
            if with_judgments and names and not with_judgments & names:
                raise BadValue(
                    f"{what} of the {len(with_judgments):,} judged queries, such as '{min(with_judgments)[:60]}' "
                    f"(its own are such as '{min(names)[:60]}'), {advice}"
                )
        if judged and whole_of.documents and not any(doc in whole_of.documents for doc in judged):
            raise BadValue(
                f"documents: none of the {len(judged):,} judged documents, such as '{min(judged)[:60]}', "
                f"is among them, {advice}"
            )
    sentences = []
    if nameless := set(whole_of.metadata) - set(whole_of.queries):
        dropped = sum(bool(whole_of.metadata[name]) for name in nameless)
        sentences += [f"{dropped} queries without a text have metadata, which was dropped"] if dropped else []
    grades = [grade for split in whole_of.qrels.values() for row in split.values() for grade in row.values()]
    if grades and max(grades) <= 0:
        sentences.append("every grade is 0 or less: nothing is relevant")
    judged_documents = {doc for split in whole_of.qrels.values() for row in split.values() for doc in row}
    if whole_of.documents and (absent := sum(name not in whole_of.documents for name in judged_documents)):
        sentences.append(f"{absent} of {len(judged_documents)} judged documents are not among the documents")
    judged_queries = {query for split in whole_of.qrels.values() for query in split}
    if whole_of.queries and (away := judged_queries - set(whole_of.queries)):
        sentences.append(f"{len(away)} of {len(judged_queries)} judged queries have no text")
    whole_of.notes += queries.notes() + docs.notes() + sentences
    return whole_of


def _query_keys(found: Sequence[FileFound]) -> Iterator[tuple[ItemKey, str]]:
    for file in found:
        for item in file.items:
            if isinstance(item, FoundQuery):
                yield item.key, f"{file.name}, {item.where}"
            elif isinstance(item, (Judgment, ByWords, Ranking)):
                yield item.query, f"{file.name}, {item.where}"


def _document_keys(found: Sequence[FileFound]) -> Iterator[tuple[ItemKey, str]]:
    for file in found:
        for item in file.items:
            if isinstance(item, Judgment) and item.doc.id:
                yield item.doc, ""


def _take_queries(file: FileFound, told: FileCounts, queries: MadeNames, whole_of: Imported) -> None:
    seen: set[str] = set()
    for item in file.items:
        if not isinstance(item, FoundQuery):
            continue
        try:
            name = queries.of(item.key)
        except ValueError as error:
            told.refuse(item.where, str(error))
            continue
        seen.add(name)
        if item.key.text:
            whole_of.queries.setdefault(name, item.key.text)
        known = whole_of.metadata.setdefault(name, {})
        for field_name, value in item.metadata.items():
            if field_name in _JOINED and field_name in known:  # several files may list them
                known[field_name] = list(dict.fromkeys([*known[field_name], *value]))
            else:
                known.setdefault(field_name, value)
        if item.unanswerable:
            whole_of.unanswerable.add(name)
    told.counts["queries"] = len(seen)


@dataclass
class _Pair:
    """The judgments of one pair."""

    grades: list[float]
    where: str
    told: FileCounts
    origins: dict[str, None] = field(default_factory=dict)
    clicks: ClickShare | None = None


def _take_judgments(
    found: Sequence[FileFound], whole_of: Imported, named: tuple[MadeNames, MadeNames], choices: Choices
) -> None:
    pairs: dict[tuple[str, str, str], _Pair] = {}
    match, matched = Matcher(whole_of.documents, choices.words), MatchCounts()
    match.refuse_endless(item for file in found for item in file.items)
    for file, counts in zip(found, whole_of.files, strict=True):
        words = Counter(item.field for item in file.items if isinstance(item, ByWords))
        for item in as_judgments(file.items, match, counts.refuse, matched):
            _add_pair(
                item if item.split != "test" else replace(item, split=file.split),
                file.name,
                counts,
                named,
                pairs,
            )
        if words and whole_of.documents:
            counts.counts["judgments by words"] = sum(words.values())
    if matched.asked and whole_of.documents:
        whole_of.notes.append(matched.sentence())
    changed = 0
    for (split, query, doc), pair in pairs.items():
        grade = agreed(pair.grades, choices)
        if grade is None:
            shown = ", ".join(f"{one:g}" for one in pair.grades[:5])
            pair.told.refuse(
                pair.where.partition(": ")[2],
                f"grades {shown} for query '{query[:40]}', document '{doc[:40]}'; --judges max, min, mean or majority",
            )
            continue
        made = chosen_grade(grade, choices, pair.where.replace(": ", ", ", 1))
        changed += made != grade
        whole_of.qrels.setdefault(split, {}).setdefault(query, {})[doc] = made
        if any(pair.origins):
            whole_of.origins.setdefault(split, {})[query, doc] = ", ".join(filter(None, pair.origins))
        if pair.clicks is not None:
            whole_of.clicks.setdefault(split, {})[query, doc] = pair.clicks
        pair.told.counts["judgments"] += 1
    several = sum(len(set(pair.grades)) > 1 for pair in pairs.values())
    grades = [g for split in whole_of.qrels.values() for row in split.values() for g in row.values()]
    if fractions := sum(isinstance(grade, float) for grade in grades):
        whole_of.notes.append(
            f"grades: {fractions} of {len(grades)} have fractions and are kept; --grades round, scale=N or threshold=X "
            "would make them whole"
        )
    if choices.grades:
        whole_of.notes.append(f"grades: {choices.grades}, which changed {changed} of {len(pairs)}")
    if choices.words and any(counts.counts["judgments by words"] for counts in whole_of.files):
        whole_of.notes.append(f"words: a document counts where it holds {choices.words} of several")
    if choices.judges and several:
        whole_of.notes.append(f"judges: the {choices.judges} of the grades of {several} pairs with several")
    split_rows = (split.items() for split in whole_of.qrels.values())
    answered = {query for rows in split_rows for query, row in rows if max(row.values()) > 0}
    whole_of.unanswerable -= answered  # a flag beside relevant documents is about something else


def _add_pair(
    item: Judgment,
    name: str,
    told: FileCounts,
    named: tuple[MadeNames, MadeNames],
    pairs: dict[tuple[str, str, str], _Pair],
) -> None:
    grade = number(item.grade)
    try:
        if grade is None:
            raise ValueError(f"the grade {str(item.grade)[:40]!r} is no finite number")
        if not re.fullmatch(r"[\w.-]{1,64}", item.split) or item.split.startswith("."):
            raise ValueError(f"the split '{item.split[:40]}'; expected a name of letters, digits, - and _")
        place = (item.split, named[0].of(item.query), named[1].of(item.doc))
    except ValueError as error:
        told.refuse(item.where, str(error))
        return
    pair = pairs.setdefault(place, _Pair([], f"{name}: {item.where}", told))
    if grade in pair.grades:
        told.counts["repeated judgments"] += 1
    pair.grades.append(grade)
    pair.origins[item.origin] = None
    pair.clicks = item.clicks or pair.clicks


def _take_rankings(
    file: FileFound, told: FileCounts, named: tuple[MadeNames, MadeNames], whole_of: Imported
) -> None:
    rankings: dict[str, list[tuple[Ranking, str, list[str]]]] = {}
    for item in file.items:
        if isinstance(item, Ranking):
            try:
                docs = [named[1].of(doc) for doc in item.docs]
                rankings.setdefault(item.run or file.stem, []).append((item, named[0].of(item.query), docs))
            except ValueError as error:
                told.refuse(item.where, str(error))
    for run, listed in rankings.items():
        made, ordered = _one_run(listed, told)
        plain = re.sub(r"[^\w.@+-]+", "-", run).strip("-.")[:100] or "run"
        name, n = plain, 1
        while fold(name) in map(fold, whole_of.runs):
            n += 1
            name = f"{plain}-{n}"
        if ordered and made:
            whole_of.notes.append(
                f"run {name}: the order of the file is kept, as scores that fall by 1 (none, or ties, in it)"
            )
        if made:
            whole_of.runs[name] = made
            told.counts["rankings"] += len(made)
            told.counts["runs"] += 1


def _one_run(
    listed: Sequence[tuple[Ranking, str, list[str]]], told: FileCounts
) -> tuple[dict[str, dict[str, float]], bool]:
    """The rankings of a run, and whether ranks stand for scores: where a file has none, or orders ties by itself."""
    by_rank = any(
        item.ordered and not (len(item.scores) == len(docs) and all(a > b for a, b in pairwise(item.scores)))
        for item, _, docs in listed
    )
    made: dict[str, dict[str, float]] = {}
    for item, query, docs in listed:
        scores = [float(len(docs) - at) for at in range(len(docs))] if by_rank else list(item.scores)
        row: dict[str, float] = {}
        for doc, score in zip(docs, scores, strict=True):
            if doc not in row:
                row[doc] = score
            elif item.ordered:
                told.counts["repeated documents in a ranking"] += 1
            else:
                told.refuse(item.where, f"document '{doc[:60]}' twice in the ranking; the first is kept")
        if query in made and made[query] != row:
            told.refuse(
                item.where, f"query '{query[:60]}' was answered before, and otherwise; the first is kept"
            )
        else:
            made.setdefault(query, row)
    return made, by_rank
