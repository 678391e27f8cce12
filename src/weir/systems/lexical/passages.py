"""Search in passages of long documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.run import Named, Run
from weir.core.strings import Ids, Int32, Int64, Strings
from weir.errors import BadValue
from weir.registry import changed_settings, check_whole
from weir.systems.compose import system_text, then
from weir.systems.composite import open_parts, renumbered, shelf_of
from weir.systems.lexical.analyzer import WHITE_SPACE, spaces
from weir.systems.lexical.bm25 import BM25
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    SYSTEMS,
    Component,
    Context,
    Costs,
    Retriever,
    Searcher,
    called,
    check_k,
    index_repr,
)
from weir.systems.restricted import permitted_only, unrestricted

# ----------
# Passages as a corpus: places are stored, texts and names are made when they are read.


BATCH_BYTES = 1 << 20
"""Bytes of documents cut at once."""
BATCH_PASSAGES = 1 << 14
"""Passages made at once when iterating over all."""
WHOLE = -1
"""Value of `stop` for a passage that is its whole document."""

SPACED = bytes(ord(" ") if chr(byte) in WHITE_SPACE[:10] else byte for byte in range(256))
"""Translation table of ASCII white space to spaces."""

Whole: TypeAlias = NDArray[np.signedinteger[Any]]
Places: TypeAlias = tuple[Whole, Whole, Whole, Whole]
"""Document, start byte, stop byte and size of each passage."""


@dataclass(frozen=True, eq=False)
class PassageSpans:
    """Where each passage lies in its document, in bytes."""

    owner: Int32
    """int32: document of each passage, ascending."""
    start: NDArray[np.integer]
    """Byte offset in the document's text."""
    stop: NDArray[np.integer]
    """Byte offset; WHOLE, with start 0, for the whole text."""
    size: NDArray[np.integer]
    """Bytes of the passage once its words are separated by single spaces."""

    def __len__(self) -> int:
        return len(self.owner)


def cut(corpus: Corpus, words: int, overlap: int, first: bool = False) -> PassageSpans:
    """Return the spans of passages of at most `words` words in documents' texts, split at white space; a
    shorter text is one passage, unchanged.

    overlap: words shared with the passage before.
    first: only each document's first passage.
    """
    parts: list[Places] = [_cut(Strings.of([]), 0, words, overlap, first)]
    for number, texts in corpus.batches("text", BATCH_BYTES):
        places = _cut(texts, number, words, overlap, first)
        largest = max(int(column.max(initial=0)) for column in places)
        # Half the memory, unless a document is larger than 2 GB.
        kind: type[np.signedinteger[Any]] = np.int32 if largest < 2**31 else np.int64
        owner, start, stop, size = (column.astype(kind) for column in places)
        parts.append((owner, start, stop, size))
    owner, start, stop, size = (np.concatenate(column) for column in zip(*parts[1:] or parts, strict=True))
    return PassageSpans(owner.astype(np.int32, copy=False), start, stop, size)


def passages_of(corpus: Corpus, words: int, overlap: int, first: bool = False) -> tuple[Corpus, Int32]:
    """Return (corpus of the passages of `cut`, named "d1:0", "d1:1", ..., with documents' titles; int32
    document number of each passage)."""
    cuts, title = cut(corpus, words, overlap, first), None
    owner = cuts.owner
    shape = f"{corpus.fingerprint} {words} {overlap} {first}"
    key = hashlib.blake2b(shape.encode("utf-8"), digest_size=16).hexdigest()
    if corpus.title is not None:
        titles = corpus.title
        title = _Column(len(cuts), lambda codes: titles.take(owner[codes]), lambda: titles.lengths()[owner])

    def texts_of(codes: NDArray[np.integer]) -> Strings:
        docs, which = np.unique(owner[codes], return_inverse=True)
        near = len(docs) and int(docs[-1]) - int(docs[0]) == len(docs) - 1
        of_docs = corpus.text.slice(int(docs[0]), int(docs[-1]) + 1) if near else corpus.text.take(docs)
        places = (column[codes].astype(np.int64) for column in (cuts.start, cuts.stop, cuts.size))
        return _passage_texts(of_docs, which, *places)

    def passage_names(codes: NDArray[np.integer]) -> Strings:
        parts = []
        for start in range(0, len(codes), BATCH_PASSAGES):
            some = codes[start : start + BATCH_PASSAGES]
            docs = owner[some]
            numbers = some - np.searchsorted(owner, docs)
            parts.append(Strings.of(f"{d}:{n}" for d, n in zip(docs.tolist(), numbers.tolist(), strict=True)))
        return Strings.concatenated(parts)

    name = _Column(len(cuts), passage_names, lambda: passage_names(np.arange(len(cuts))).lengths())
    text = _Column(len(cuts), texts_of, lambda: cuts.size.astype(np.int64))
    return Corpus(Ids(name), text, title, key if corpus.fingerprint else ""), owner


@dataclass(frozen=True, eq=False)
class _Column:
    count: int
    strings: Callable[[NDArray[np.integer]], Strings]
    """Returns the strings at these positions."""
    sizes: Callable[[], Int64]
    """Returns the bytes of each."""

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> str:
        return self.take(np.array([range(self.count)[i]]))[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self.count, BATCH_PASSAGES):
            yield from self.slice(start, start + BATCH_PASSAGES)

    def lengths(self) -> Int64:
        return self.sizes()

    def slice(self, start: int, stop: int) -> Strings:
        return self.take(np.arange(*slice(start, stop).indices(self.count)))

    def take(self, codes: NDArray[np.integer]) -> Strings:
        return self.strings(codes)

    def tolist(self) -> list[str]:
        return list(self)


def _cut(texts: Strings, number: int, words: int, overlap: int, first: bool) -> Places:
    base = int(texts.ptr[0])
    data, ptr = texts.data[base : int(texts.ptr[-1])], texts.ptr - base
    white = spaces(data)
    before, behind = np.ones(len(data) + 1, np.bool_), np.ones(len(data) + 1, np.bool_)
    before[1:] = behind[:-1] = white
    before[ptr] = behind[ptr] = True  # a text begins and ends a word; behind[i]: what follows byte i - 1
    begin, end = np.flatnonzero(~white & before[:-1]), np.flatnonzero(~white & behind[1:]) + 1
    word = np.searchsorted(begin, ptr)
    count = np.diff(word)
    pieces = np.where(count <= words, 1, 1 if first else -(-(count - overlap) // (words - overlap)))
    doc = np.repeat(np.arange(len(texts)), pieces)
    piece = np.arange(len(doc)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start, stop, size = np.zeros(len(doc), np.int64), np.full(len(doc), WHOLE), texts.lengths()[doc]
    some = np.flatnonzero(count[doc] > words)
    low = word[doc[some]] + piece[some] * (words - overlap)
    high = np.minimum(low + words, word[doc[some] + 1])
    start[some], stop[some] = begin[low] - ptr[doc[some]], end[high - 1] - ptr[doc[some]]
    letters = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - begin)])
    size[some] = letters[high] - letters[low] + (high - low - 1)
    return doc + number, start, stop, size


def _passage_texts(texts: Strings, which: Int64, start: Int64, stop: Int64, size: Int64) -> Strings:
    base = texts.ptr - texts.ptr[0]
    low, whole = base[which] + start, stop == WHOLE
    high = np.where(whole, base[which + 1], base[which] + stop)
    raw = texts.data[int(texts.ptr[0]) : int(texts.ptr[-1])].tobytes()
    # A passage as long as its words and a space between each has no white space but single bytes.
    plain, unchanged = memoryview(raw.translate(SPACED)), memoryview(raw)
    kinds = np.where(whole, 0, np.where(high - low == size, 1, 2))
    pieces: list[bytes | memoryview] = []
    for first, last, kind in zip(low.tolist(), high.tolist(), kinds.tolist(), strict=True):
        if kind == 2:
            pieces.append(" ".join(raw[first:last].decode("utf-8", "replace").split()).encode("utf-8"))
        else:
            pieces.append((plain if kind else unchanged)[first:last])
    return Strings.packed(pieces)


# ----------
# The system: chunked(bm25, words=150) finds passages and answers with their documents.


COLLAPSES = ("max", "first", "sum")
OVERLAP = 50
MAX_WORDS = 1_000_000
"""Most words of a passage."""
PASSAGES_PER_DOCUMENT = 3
"""Passages requested at first for each of the k documents."""


@SYSTEMS.register("chunked")
@named_arguments
@dataclass(frozen=True)
class Chunked:
    """Search passages of documents with a system, and rank the documents.

    Passages are requested until further ones cannot change the k best documents. Source: Dai and Callan 2019. Raises
    BadValue for settings out of range.
    """

    system: Retriever = BM25()  # noqa: RUF009 - a frozen value
    """Finds the passages, which are named d1:0, d1:1, ... for document d1."""
    words: int = 150
    """Words of a passage at most, split at white space; each has its document's title."""
    overlap: int = OVERLAP
    """Words shared with the passage before."""
    collapse: str = "max"
    """A document's score: "max" of its passages (MaxP), of its "first" passage, or "sum" of all passages found."""

    def __post_init__(self) -> None:
        if not isinstance(self.system, Retriever):
            raise BadValue(f"chunked takes a system, such as chunked(bm25); {self.system!r} is not a system")
        check_whole("chunked: words", self.words, 1, MAX_WORDS)
        if self.overlap == OVERLAP >= self.words:
            such = f"such as chunked(words={self.words}, overlap={self.words // 3})"
            found = f"words is {self.words}, and overlap is {OVERLAP}, its default"
            raise BadValue(f"chunked: {found}; expected an overlap from 0 to {self.words - 1}, {such}")
        check_whole("chunked: overlap", self.overlap, 0, self.words - 1)
        if self.collapse not in COLLAPSES:
            raise BadValue(f"chunked: collapse is {self.collapse!r}; expected {', '.join(COLLAPSES)}")

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        first: list[object] = [] if self.system == BM25() else [self.system]
        return called("chunked", first, changed_settings(self, leave_out=("system",)))

    def describe(self) -> dict[str, object]:
        own = {"words": self.words, "overlap": self.overlap, "collapse": self.collapse}
        about = {"system": str(self), "algorithm": algorithm("passages"), "passages": own}
        return about | {"of": self.system.describe()}

    def components(self) -> tuple[Component, ...]:
        passages = f"passages of {self.words} words, {self.overlap} shared"
        return (Component(self.system, "index", passages),)

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ChunkedSearcher:
        passages, owner = passages_of(corpus, self.words, self.overlap, self.collapse == "first")
        searcher = shelf_of(context).index(self.system, passages, context)
        return ChunkedSearcher(self, corpus, passages, owner, searcher)

    open = open_parts


@dataclass(frozen=True, eq=False)
class ChunkedSearcher:
    """Ranks documents by the passages that an inner searcher finds."""

    system: Chunked
    corpus: Corpus
    passages: Corpus
    owner: Int32
    """int32: document of each passage."""
    searcher: Searcher

    __repr__ = index_repr

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        check_k(k)
        every = max(len(self.passages), 1)
        depth = every if self.system.collapse == "sum" else min(every, PASSAGES_PER_DOCUMENT * k + 1)
        free = unrestricted(queries)  # what may be ranked are documents, not passages
        waiting, parts = (
            np.arange(len(queries)),
            [(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0))],
        )
        while len(waiting):
            run = renumbered(self.searcher.search(free.take(waiting), depth, context), self.passages)
            key = run.query_of_row().astype(np.int64) * max(len(self.corpus), 1) + self.owner[run.doc]
            order = np.argsort(key, kind="stable")
            fresh = np.flatnonzero(np.diff(key[order], prepend=-1))
            collapse = np.add if self.system.collapse == "sum" else np.maximum
            score = collapse.reduceat(run.score[order], fresh) if len(fresh) else np.empty(0)
            query, doc = np.divmod(key[order][fresh], max(len(self.corpus), 1))
            count = np.diff(run.ptr)
            last = np.full(len(run), np.inf)
            filled = count > 0
            last[filled] = run.score[run.ptr[1:][filled] - 1]
            above = np.bincount(query[score > last[query]], minlength=len(run))
            # A query needs no more passages where all were found, or k documents score above any other passage.
            settled = np.asarray((count < depth) | (depth >= len(self.passages)) | (above >= k))
            rows = np.flatnonzero(settled[query])
            parts.append((waiting[query[rows]], doc[rows].astype(np.int32), score[rows]))
            waiting, depth = waiting[~settled], min(every, 4 * depth)
        query, doc, score = (np.concatenate(column) for column in zip(*parts, strict=True))
        columns = query, doc.astype(np.int32), score
        run = Run.from_columns(queries.ids, self.corpus.ids, *columns, Named(str(self.system)))
        return run.top(k)

    def costs(self) -> Costs:
        return self.searcher.costs()
