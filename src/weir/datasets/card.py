"""Count a collection's documents, queries and judgments."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.filters import DocumentLists
from weir.core.qrels import Qrels, plain_grades
from weir.core.results import ResultKind
from weir.core.rounding import count
from weir.core.strings import Int64, StringColumn, Strings, hash_strings
from weir.core.tables import Table, table_of
from weir.datasets.catalogue import Entry
from weir.files.corpus_store import CorpusStore

# ----------
# Documents or queries of the same text, as written or normalised.


BATCH_ROWS = 1 << 15
Form = Callable[[str], str]


@dataclass(frozen=True, eq=False)
class DuplicateGroups:
    """Groups of rows with equal texts."""

    number: Int64
    """int64[n]: group of each row, in order of first rows; -1 for a unique text."""

    @property
    def rows(self) -> int:
        """Number of rows that share their text with another row."""
        return int(np.count_nonzero(self.number >= 0))

    @property
    def surplus(self) -> int:
        """Number of rows whose text an earlier row has."""
        return self.rows - int(self.number.max(initial=-1) + 1)

    def members(self) -> list[Int64]:
        """Return the ascending row numbers of each group, int64 arrays."""
        rows = np.flatnonzero(self.number >= 0)
        order = rows[np.argsort(self.number[rows], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.number[order])) + 1
        return np.split(order, cuts) if len(order) else []


def normalised(text: str) -> str:
    """Return the text in Unicode form NFKC, case-folded, with single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def title_and_text(corpus: Corpus) -> tuple[StringColumn, ...]:
    """Return (titles, texts) of a corpus, or (texts,) without titles."""
    return (corpus.text,) if corpus.title is None else (corpus.title, corpus.text)


def duplicate_groups(columns: Sequence[StringColumn], form: Form | None = None) -> DuplicateGroups:
    """Return groups of rows whose texts are equal in every column; empty texts equal each other.

    form: maps a text to the form to compare; None compares texts as they are.
    """
    # Exact: 64-bit hashes find candidates, texts decide. Takes 8 bytes for each row, and a batch of texts.
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        for start in range(0, len(column), BATCH_ROWS):
            batch = column.slice(start, min(start + BATCH_ROWS, len(column)))
            if form is not None:
                batch = Strings.of(map(form, batch))
            part = hashes[start : start + BATCH_ROWS]
            part *= np.uint64(0x9E3779B97F4A7C15)
            part ^= hash_strings(batch.data, batch.ptr[:-1], batch.lengths())
    order = np.argsort(hashes, kind="stable")
    opens = np.append(True, np.diff(hashes[order]) != 0) if len(order) else np.zeros(0, np.bool_)
    starts = np.flatnonzero(opens)
    lengths = np.diff(np.append(starts, len(order)))
    groups: list[list[int]] = []
    for start, length in zip(starts[lengths > 1].tolist(), lengths[lengths > 1].tolist(), strict=True):
        kinds: dict[tuple[str, ...], list[int]] = {}
        for row in order[start : start + length].tolist():
            texts = (column[row] for column in columns)
            kinds.setdefault(tuple(texts if form is None else map(form, texts)), []).append(row)
        groups += [rows for rows in kinds.values() if len(rows) > 1]
    number = np.full(len(order), -1, np.int64)
    for group, rows in enumerate(sorted(groups)):
        number[rows] = group
    return DuplicateGroups(number)


# ----------
# Counts of the metadata of queries.


@dataclass(frozen=True)
class ListsCard:
    """Counts of documents that a collection lists for its queries, such as candidates."""

    queries: int = 0
    """Queries with a list."""
    documents: int = 0
    """Listed documents, summed over queries."""
    longest: int = 0
    absent: int = 0
    """Listed documents that the collection lacks."""


@dataclass(frozen=True)
class MetadataCard:
    """Counts of the metadata of queries."""

    queries: int = 0
    """All queries."""
    candidates: ListsCard = field(default_factory=ListsCard)
    excluded: ListsCard = field(default_factory=ListsCard)
    instructions: int = 0
    """Queries with an instruction."""
    unanswerable: int = 0
    """Queries that nothing answers."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Number of distinct labels of each column."""


def metadata_card(queries: Queries, corpus: Corpus | None) -> MetadataCard:
    """Return counts of queries' metadata; without a corpus, absent documents are not counted."""
    metadata = queries.metadata
    if metadata is None:
        return MetadataCard(len(queries))
    return MetadataCard(
        len(queries),
        _lists(metadata.candidates, corpus),
        _lists(metadata.excluded, corpus),
        0 if metadata.instruction is None else int(np.count_nonzero(metadata.instruction.lengths())),
        0 if metadata.unanswerable is None else int(metadata.unanswerable.sum()),
        {name: len(set(labels.tolist()) - {""}) for name, labels in metadata.groups.items()},
    )


def _lists(lists: DocumentLists | None, corpus: Corpus | None) -> ListsCard:
    if lists is None:
        return ListsCard()
    absent = 0 if corpus is None else int(np.count_nonzero(lists.codes_in(corpus.ids) < 0))
    return ListsCard(lists.listed(), len(lists.doc), int(lists.lengths().max(initial=0)), absent)


# ----------
# The card of a collection, counted from its files.


@dataclass(frozen=True)
class CollectionCard:
    """Counts and facts about a split of a collection."""

    name: str
    title: str
    task: str
    domain: str
    licence: str
    relevance: str
    split: str
    documents: int
    queries: dict[str, int]
    """Judged queries by split; "not judged" counts queries that no split judges."""
    pairs: dict[float, int]
    """Judged pairs of this split by grade."""
    positive: int
    """Pairs with a grade above 0; `zero` and `negative` likewise."""
    zero: int
    negative: int
    judged_per_query: float
    """Mean over judged queries, 0 without any; the three means below likewise."""
    relevant_per_query: float
    words_per_query: float
    """Mean number of words separated by white space."""
    words_per_document: float
    """Mean number of words in title and text."""
    copies_of_text: int
    """Documents beyond the first with the same text."""
    copies: int
    """Documents beyond the first with the same title and text."""
    having_copies: int
    """Documents with another of the same title and text."""
    empty: int
    """Documents without a word."""
    without_text: int
    without_title: int
    null_texts: int
    """Documents whose text was null, NaN or missing."""
    absent_documents: int
    """Judged pairs whose document the collection lacks; `absent_queries` likewise."""
    absent_queries: int
    metadata: MetadataCard = field(default_factory=MetadataCard)
    lacks: tuple[str, ...] = ()
    """Missing parts, among "documents", "queries" and "judgments"; their counts mean nothing."""


@dataclass(frozen=True)
class JudgmentsCard:
    """Counts of judgments without a collection."""

    name: str
    relevance: str
    queries: int
    """Judged queries."""
    documents: int
    """Documents judged for any query."""
    pairs: dict[float, int]
    """Judged pairs by grade."""
    judged_per_query: float
    """Mean over judged queries; `relevant_per_query` likewise."""
    relevant_per_query: float
    without_relevant: int
    """Queries without a positive grade."""


def card_of(
    name: str,
    entry: Entry | None,
    store: CorpusStore | None,
    queries: Queries | None,
    qrels: Mapping[str, Qrels],
    split: str,
) -> CollectionCard:
    """Return the counts of a collection, reading every document once.

    entry: its facts in the catalogue, or None.
    qrels: judgments by split.
    split: split whose judgments are counted.

    Missing parts (None, {}) count as empty and are named in `lacks`.
    """
    parts = {"documents": store is not None, "queries": queries is not None, "judgments": bool(qrels)}
    corpus = Corpus.of({}) if store is None else store.corpus
    queries = Queries.of({}) if queries is None else queries
    judged = qrels.get(split, Qrels.of({}))
    words = empty = without_text = without_title = 0
    for start in range(0, len(corpus), BATCH_ROWS):
        stop = min(start + BATCH_ROWS, len(corpus))
        text = _words(corpus.text.slice(start, stop))
        title = np.zeros_like(text) if corpus.title is None else _words(corpus.title.slice(start, stop))
        words += int(text.sum() + title.sum())
        empty += int(((text == 0) & (title == 0)).sum())
        without_text += int((text == 0).sum())
        without_title += int((title == 0).sum())
    by_text, whole = duplicate_groups((corpus.text,)), duplicate_groups(title_and_text(corpus))
    pairs = _pairs(judged)
    unjudged = len(without_judgment(queries, qrels.values()))
    counted = judged.queries.codes(queries.ids.strings) >= 0
    counted_queries = queries.take(np.flatnonzero(counted)) if qrels else queries
    present = queries.ids.codes(judged.queries.strings) >= 0
    absent = corpus.ids.codes(judged.docs.strings) < 0
    positive = sum(n for grade, n in pairs.items() if grade > 0)
    return CollectionCard(
        name=name,
        title=entry.title if entry else name,
        task=entry.task if entry else "",
        domain=entry.domain if entry else "",
        licence=entry.licence if entry else "",
        relevance=_levels(pairs),
        split=split,
        documents=len(corpus),
        queries={s: len(q) for s, q in qrels.items()} | ({"not judged": unjudged} if unjudged else {}),
        pairs=pairs,
        positive=positive,
        zero=pairs.get(0, 0),
        negative=sum(n for grade, n in pairs.items() if grade < 0),
        judged_per_query=_mean(len(judged.grade), len(judged)),
        relevant_per_query=_mean(positive, len(judged)),
        words_per_query=_mean(int(_words(counted_queries.text).sum()), len(counted_queries)),
        words_per_document=_mean(words, len(corpus)),
        copies_of_text=by_text.surplus,
        copies=whole.surplus,
        having_copies=whole.rows,
        empty=empty,
        without_text=without_text,
        without_title=without_title,
        null_texts=0 if store is None else store.null_texts,
        absent_documents=int(absent[judged.doc].sum()) if parts["documents"] else 0,
        absent_queries=int(np.diff(judged.ptr)[~present].sum()) if parts["queries"] else 0,
        lacks=tuple(part for part, here in parts.items() if not here),
    )


def without_judgment(queries: Queries, splits: Iterable[Qrels]) -> list[str]:
    """Return the ids of queries that no split judges, in their order."""
    judged = {name for qrels in splits for name in qrels.queries.tolist()}
    return [name for name in queries.ids.tolist() if name not in judged]


def judgments_card(name: str, qrels: Qrels) -> JudgmentsCard:
    """Return counts of judgments without a collection."""
    pairs = _pairs(qrels)
    relevant = qrels.grade > 0
    query = np.repeat(np.arange(len(qrels)), np.diff(qrels.ptr))
    return JudgmentsCard(
        name,
        _levels(pairs),
        len(qrels),
        len(np.unique(qrels.doc)),
        pairs,
        _mean(len(qrels.grade), len(qrels)),
        _mean(int(relevant.sum()), len(qrels)),
        len(qrels) - len(np.unique(query[relevant])),
    )


def _pairs(qrels: Qrels) -> dict[float, int]:
    grades, counts = np.unique(qrels.grade, return_counts=True)
    return dict(zip(plain_grades(grades), counts.tolist(), strict=True))


def _mean(total: int, n: int) -> float:
    return total / n if n else 0.0


def _levels(pairs: dict[float, int]) -> str:
    highest = max(pairs, default=0)
    if any(isinstance(grade, float) for grade in pairs):
        return f"with fractions, up to {highest}"
    return "none" if highest < 1 else "binary" if highest == 1 else f"{highest + 1}-level"


def _words(texts: Strings) -> Int64:
    return np.array([len(text.split()) for text in texts], np.int64)


# ----------
# Tables.

_GRADES_LISTED = 12  # different grades with fractions that are listed one by one


def _card_tables(cards: Sequence[CollectionCard]) -> tuple[Table, ...]:
    return tuple(table_of([[card.name, card.title], *_card_lines(card)]) for card in cards)


def _card_lines(card: CollectionCard) -> list[list[str]]:
    grades = _grades(card.pairs)
    judged = f"{card.positive:,} positive, {card.zero:,} zero, {card.negative:,} negative ({grades})"
    empty = f"{card.empty:,} without a word, {card.without_text:,} without text"
    groups = ", ".join(f"{name} ({n:,})" for name, n in card.metadata.groups.items())
    lines = [
        ("", "task", card.task),
        ("", "domain", card.domain),
        ("", "licence", card.licence),
        ("judgments", "relevance", card.relevance),
        ("documents", "documents", f"{card.documents:,}"),
        ("", "queries", ", ".join(f"{n:,} {split}" for split, n in card.queries.items())),
        ("judgments", f"judgments ({card.split})", judged),
        ("judgments", "mean per query", _per_query(card)),
        ("", "mean words", ", ".join(_mean_words(card))),
        (
            "documents",
            "exact duplicates",
            f"{card.copies_of_text:,} by text, {card.copies:,} by title and text",
        ),
        ("documents", "empty documents", f"{empty}, {card.without_title:,} without title"),
        ("judgments", "dangling judgments", ", ".join(_dangling_counts(card))),
        ("", "candidates", lists_shown(card.metadata.candidates, card.metadata.queries)),
        ("", "excluded documents", lists_shown(card.metadata.excluded, card.metadata.queries)),
        ("", "instructions", queries_shown(card.metadata.instructions) if card.metadata.instructions else ""),
        (
            "",
            "without an answer",
            queries_shown(card.metadata.unanswerable) if card.metadata.unanswerable else "",
        ),
        ("", "groups of queries", groups),
        ("", "not there", ", ".join(card.lacks)),
    ]
    return [[name, fact] for part, name, fact in lines if fact and part not in card.lacks]


def _mean_words(card: CollectionCard) -> list[str]:
    means = (
        ("query", "queries", card.words_per_query),
        ("document", "documents", card.words_per_document),
    )
    return [f"{count(mean, 2)} per {what}" for what, part, mean in means if part not in card.lacks]


def _dangling_counts(card: CollectionCard) -> list[str]:
    pairs = "" if "documents" not in card.lacks else "pairs name "
    counts = (
        ("documents", card.absent_documents, "pairs name absent documents"),
        ("queries", card.absent_queries, f"{pairs}absent queries"),
    )
    return [f"{number:,} {what}" for part, number, what in counts if part not in card.lacks]


CARDS = ResultKind("card", CollectionCard, _card_tables)
JUDGMENTS_CARDS = ResultKind(
    "judgments", JudgmentsCard, lambda cards: tuple(judgments_table(card) for card in cards)
)


def judgments_table(card: JudgmentsCard) -> Table:
    """Return a table of the counts of judgments without a collection."""
    irrelevant = "a relevant document" if _above(card) == "relevant" else "a document above 0"
    lines = [
        [card.name, "judgments alone"],
        ["relevance", card.relevance],
        ["queries", f"{card.queries:,}, {card.without_relevant:,} without {irrelevant}"],
        [
            "judgments",
            f"{sum(card.pairs.values()):,} of {card.documents:,} documents ({_grades(card.pairs)})",
        ],
        ["mean per query", _per_query(card)],
    ]
    return table_of(lines)


def queries_shown(number: int) -> str:
    """Return a number of queries as words, such as "300 queries"."""
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def lists_shown(card: ListsCard, queries: int) -> str:
    """Return a phrase with the mean length of lists and the number of queries that have one; "" without lists.

    queries: number of all queries.
    """
    if not card.queries:
        return ""
    mean = count(card.documents / card.queries, 1)
    absent = f", {card.absent:,} of them no documents of the collection" if card.absent else ""
    return f"{mean} on average for {card.queries:,} of {queries:,} queries{absent}"


def _per_query(card: CollectionCard | JudgmentsCard) -> str:
    return f"{count(card.judged_per_query, 2)} judged, {count(card.relevant_per_query, 2)} {_above(card)}"


def _above(card: CollectionCard | JudgmentsCard) -> str:
    return "above 0" if any(not float(grade).is_integer() for grade in card.pairs) else "relevant"


def _grades(pairs: Mapping[float, int]) -> str:
    bands: dict[str, int] = {}
    for grade, n in sorted(pairs.items(), reverse=True):
        below = math.floor(grade)
        whole = float(grade).is_integer() or len(pairs) <= _GRADES_LISTED
        band = f"of grade {grade:g}" if whole else f"between {below} and {below + 1}"
        bands[band] = bands.get(band, 0) + n
    return ", ".join(f"{n:,} {band}" for band, n in bands.items())
