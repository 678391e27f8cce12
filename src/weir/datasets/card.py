"""The card of a collection: what it holds, counted from its files rather than quoted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels, plain_grades
from weir.core.strings import Int64, Strings
from weir.datasets.catalogue import Entry
from weir.datasets.metadata_card import MetadataCard
from weir.datasets.same_text import duplicate_groups, title_and_text
from weir.io.collections.corpus_store import CorpusStore

__all__ = ["CollectionCard", "JudgmentsCard", "card_of", "judgments_card"]

_BATCH = 1 << 15  # documents looked at together


@dataclass(frozen=True)
class CollectionCard:
    """What `weir stats` shows about one split of a collection.

    queries: judged queries by split. pairs: judged pairs of this split by grade; positive, zero, negative:
    the same, summed. judged_per_query, relevant_per_query: means over the judged queries. words_per_query,
    words_per_document: separated by white space, of title and text. copies_of_text, copies: documents beyond
    the first with the same text, or with the same title and text; having_copies: documents with at least one
    other of the same title and text. empty: documents without any word; without_text, without_title: without
    any there; null_texts: their text was null, NaN or not given. absent_documents, absent_queries: judged
    pairs that name one the collection does not have. said: what the metadata of queries says. lacks: of "documents",
    "queries" and "judgments" those that are not there, of which nothing is counted.
    """

    name: str
    title: str
    task: str
    domain: str
    licence: str
    relevance: str
    split: str
    documents: int
    queries: dict[str, int]
    pairs: dict[float, int]
    positive: int
    zero: int
    negative: int
    judged_per_query: float
    relevant_per_query: float
    words_per_query: float
    words_per_document: float
    copies_of_text: int
    copies: int
    having_copies: int
    empty: int
    without_text: int
    without_title: int
    null_texts: int
    absent_documents: int
    absent_queries: int
    said: MetadataCard = field(default_factory=MetadataCard)
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgmentsCard:
    """What `weir stats` shows about judgments without documents.

    queries: judged; documents: judged for any query; pairs: judged pairs by grade; judged_per_query,
    relevant_per_query: means over the judged queries; without_relevant: queries without a positive grade.
    """

    name: str
    relevance: str
    queries: int
    documents: int
    pairs: dict[float, int]
    judged_per_query: float
    relevant_per_query: float
    without_relevant: int


@dataclass(frozen=True)
class _Texts:
    """What is counted over the documents."""

    words: int
    empty: int
    without_text: int
    without_title: int


def card_of(
    name: str,
    entry: Entry | None,
    store: CorpusStore | None,
    queries: Queries | None,
    qrels: Mapping[str, Qrels],
    split: str,
) -> CollectionCard:
    """Count what is there; queries: those of all splits, qrels: the judgments of each split.

    Reads every document once, in batches.
    """
    there = {"documents": store is not None, "queries": queries is not None, "judgments": bool(qrels)}
    corpus = Corpus.of({}) if store is None else store.corpus
    queries = Queries.of({}) if queries is None else queries
    judged = qrels.get(split, Qrels.of({}))
    texts = _texts(corpus)
    by_text, whole = duplicate_groups((corpus.text,)), duplicate_groups(title_and_text(corpus))
    pairs = _pairs(judged)
    asked_of_none = {"not judged": len(queries)} if there["queries"] else {}
    known = judged.queries.codes(queries.ids.strings) >= 0
    asked = queries.take(np.flatnonzero(known)) if qrels else queries
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
        queries={s: len(q) for s, q in qrels.items()} if qrels else asked_of_none,
        pairs=pairs,
        positive=positive,
        zero=pairs.get(0, 0),
        negative=sum(n for grade, n in pairs.items() if grade < 0),
        judged_per_query=_mean(len(judged.grade), len(judged)),
        relevant_per_query=_mean(positive, len(judged)),
        words_per_query=_mean(int(_words(asked.text).sum()), len(asked)),
        words_per_document=_mean(texts.words, len(corpus)),
        copies_of_text=by_text.surplus,
        copies=whole.surplus,
        having_copies=whole.rows,
        empty=texts.empty,
        without_text=texts.without_text,
        without_title=texts.without_title,
        null_texts=0 if store is None else store.null_texts,
        absent_documents=int(absent[judged.doc].sum()) if there["documents"] else 0,
        absent_queries=int(np.diff(judged.ptr)[~present].sum()) if there["queries"] else 0,
        lacks=tuple(part for part, here in there.items() if not here),
    )


def judgments_card(name: str, qrels: Qrels) -> JudgmentsCard:
    """Count judgments that stand alone."""
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
    """How many levels the grades have, counting "not relevant" as one, as BEIR's table does."""
    highest = max(pairs, default=0)
    if any(isinstance(grade, float) for grade in pairs):
        return f"with fractions, up to {highest}"
    return "none" if highest < 1 else "binary" if highest == 1 else f"{highest + 1}-level"


def _texts(corpus: Corpus) -> _Texts:
    words = empty = without_text = without_title = 0
    for start in range(0, len(corpus), _BATCH):
        stop = min(start + _BATCH, len(corpus))
        text = _words(corpus.text.slice(start, stop))
        title = np.zeros_like(text) if corpus.title is None else _words(corpus.title.slice(start, stop))
        words += int(text.sum() + title.sum())
        empty += int(((text == 0) & (title == 0)).sum())
        without_text += int((text == 0).sum())
        without_title += int((title == 0).sum())
    return _Texts(words, empty, without_text, without_title)


def _words(texts: Strings) -> Int64:
    return np.array([len(text.split()) for text in texts], np.int64)
