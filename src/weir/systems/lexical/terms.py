"""Turn texts into term numbers."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.strings import Bytes, Float64, Int32, Int64, Strings
from weir.errors import BadValue
from weir.kernels import words as tokenize
from weir.systems.lexical.analyzer import Analyzer, WordTokenizer, analyzers, tokenizer

# ----------
# The tables of a tokenizer for the compiled scanner.


SIMPLE, BEGINS, STOP, MIDDLE = 1, 2, 4, 8  # as in weir.kernels.words
LETTERS_AND_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PRINTABLE = bytes(range(0x21, 0x7F))


@cache
def word_automaton(tokenizer: WordTokenizer, fold_ascii: bool) -> tokenize.WordAutomaton:
    """Return a tokenizer's tables in the layout of the compiled scanner.

    fold_ascii: merge words that differ only in ASCII case.
    """
    order = np.lexsort((np.arange(len(tokenizer.accept)), tokenizer.accept))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    width = tokenizer.table.shape[1]
    table = (rank[tokenizer.table[order]] * width).astype(np.int32)
    fold = np.arange(256, dtype=np.uint8)
    if fold_ascii:
        fold[ord("A") : ord("Z") + 1] += 32
    # Plain words are printable bytes where a run of these is always part of one word.
    letters = fold_ascii or any(0 in states for states in _runs(tokenizer, PRINTABLE))
    kinds, least = _kinds(tokenizer, LETTERS_AND_DIGITS if letters else PRINTABLE)
    accept = int(np.count_nonzero(~tokenizer.accept)) * width
    shape = [int(rank[1]) * width, accept, tokenizer.limit, least, int(fold_ascii), int(letters)]
    arrays = (tokenizer.classes, kinds, fold, table.ravel(), np.array(shape, np.int64))
    for array in arrays:
        array.flags.writeable = False
    return tokenize.WordAutomaton(*arrays)


def _steps(tokenizer: WordTokenizer) -> NDArray[np.uint16]:
    return tokenizer.table[:, tokenizer.classes[:128]]


def _runs(tokenizer: WordTokenizer, simple: bytes) -> list[set[int]]:
    step, columns = _steps(tokenizer), list(simple)
    runs: list[set[int]] = []
    states = {1}
    while not runs or states not in runs:
        if runs or states != {1}:
            runs.append(states)
        states = set(step[np.ix_(sorted(states), columns)].ravel().tolist())
    return runs


def _kinds(tokenizer: WordTokenizer, simple: bytes) -> tuple[Bytes, int]:
    # STOP: a plain word always ends before the byte. MIDDLE: it ends there if STOP or MIDDLE follows.
    step = _steps(tokenizer)
    kinds = np.zeros(256, np.uint8)
    kinds[128:] = BEGINS
    kinds[:128][step[1] != 0] = BEGINS
    runs = _runs(tokenizer, simple)
    whole = [all(tokenizer.accept[s] for s in states) for states in runs]
    none = [not any(tokenizer.accept[s] for s in states) for states in runs]
    least = whole.index(True) + 1 if True in whole else 0
    if not least or 0 in set().union(*runs) or not (all(whole[least - 1 :]) and all(none[: least - 1])):
        return kinds, 1  # no run of simple bytes is sure to be a word: the automaton reads everything
    inside = sorted(set().union(*runs))
    after = step[inside]
    stops = (after == 0).all(axis=0)
    waits = ~stops & ~tokenizer.accept[after].any(axis=0)
    while True:  # a byte waits if the word ends before it whenever a byte that stops or waits follows
        ends = stops | waits
        holds = [not step[np.ix_(after[:, b], np.flatnonzero(ends))].any() for b in np.flatnonzero(waits)]
        if all(holds):
            break
        waits[np.flatnonzero(waits)[~np.array(holds)]] = False
    kinds[:128][stops] |= STOP
    kinds[:128][waits] |= MIDDLE
    kinds[list(simple)] |= SIMPLE
    return kinds, least


# ----------
# The table of distinct words, filled by the compiled scanner.


FIRST_SLOTS = 1 << 12
FIRST_BYTES = 1 << 15
PADDING = 8  # the kernel reads eight bytes at a time
NEWLINE = 0x0A
T = TypeVar("T", bound=np.generic)


class _WordTable:
    def __init__(self, expected: int = 0) -> None:
        slots = FIRST_SLOTS
        while slots < 2 * expected + 4:
            slots *= 2
        self._slots: Int64 = np.full(2 * slots, -1, np.int64)
        self._ptr: Int64 = np.zeros(slots // 2 + 2, np.int64)
        self._arena: Bytes = np.zeros(FIRST_BYTES, np.uint8)
        self._state: Int64 = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return int(self._state[0])

    def scan(
        self, texts: Strings, scanner: tokenize.WordAutomaton, insert: bool = True
    ) -> tuple[Int64, Int32]:
        out = np.empty(int(texts.ptr[-1] - texts.ptr[0]), np.int32)
        ptr = np.zeros(len(texts) + 1, np.int64)
        self.scan_into(texts, scanner, insert, ptr, out)
        return ptr, out[: int(ptr[-1])]

    def scan_into(
        self, texts: Strings, scanner: tokenize.WordAutomaton, insert: bool, ptr: Int64, out: Int32
    ) -> None:
        # `out` needs room for a word per byte.
        data, n, at = _read_only(texts.data), len(texts), 0
        given = tokenize.TextBytes(data, _eights(data), _read_only(texts.ptr))
        while True:
            words = tokenize.WordSlots(self._slots, self._arena, _eights(self._arena), self._ptr, self._state)
            at = tokenize.scan_words(given, at, scanner, insert, words, out, ptr)
            if at == n:
                return
            self._grow()

    def all_words(self) -> Strings:
        ptr = self._ptr[: len(self) + 1]
        return Strings(_read_only(self._arena[: int(ptr[-1])]), _read_only(ptr))

    def word_lines(self, start: int) -> str:
        ptr = self._ptr[start : len(self) + 1]
        if len(ptr) < 2:
            return ""
        lengths = np.diff(ptr)
        filled = np.full(int(ptr[-1] - ptr[0]) + len(lengths), NEWLINE, np.uint8)
        keep = np.ones(len(filled), np.bool_)
        keep[np.cumsum(lengths + 1) - 1] = False
        filled[keep] = self._arena[int(ptr[0]) : int(ptr[-1])]
        return filled[:-1].tobytes().decode("utf-8", "replace")

    def _grow(self) -> None:
        count, needed = int(self._state[0]), int(self._state[1]) + PADDING
        if needed > len(self._arena):
            self._arena = _enlarged(self._arena, max(needed, 2 * len(self._arena)))
        if 4 * (count + 1) >= len(self._slots) - 2:
            larger = np.full(2 * len(self._slots), -1, np.int64)
            tokenize.regrow(self._slots, larger, np.empty(count, np.int64))
            self._slots = larger
            self._ptr = _enlarged(self._ptr, len(larger) // 4 + 2)


def _enlarged(array: NDArray[T], size: int) -> NDArray[T]:
    larger = np.zeros(size, array.dtype)
    larger[: len(array)] = array
    return larger


def _read_only(array: NDArray[T]) -> NDArray[T]:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _eights(data: Bytes) -> NDArray[np.uint64]:
    if len(data) <= PADDING:
        padded = np.zeros(2 * PADDING, np.uint8)
        padded[: len(data)] = data
        data = _read_only(padded)
    return np.ndarray((len(data) - PADDING + 1,), np.dtype("<u8"), data, strides=(1,))


# ----------
# The table of terms: Python runs once for each distinct word.


UNKNOWN = -1
DROPPED = -2
PIECE_BYTES = 1 << 21  # of text between two looks at the new words: what was written is still in the cache
FIRST_SCRATCH = 1 << 12
KEPT_STRETCHES = 1 << 16
# U+0130 lowercases to two characters and U+03A3 by its neighbours: such texts are lowercased before they are cut.
NEEDS_LOWER = re.compile("\u0130|\u03a3".encode())


class TermTable:
    """Numbers terms in order of first occurrence, without stop words; thread-safe.

    terms: an existing vocabulary, whose numbers stay.
    """

    def __init__(self, analyzer: Analyzer, terms: Strings | None = None) -> None:
        self.analyzer = analyzer
        self._given = terms
        self._words = _WordTable()
        self._terms: _WordTable | None = None
        self._term_of: Int32 = np.empty(0, np.int32)
        self._unknown = False  # whether a looked-up word has no number: it gets one when it is added
        self._scratch: Int32 = np.empty(0, np.int32)
        self._lock = threading.Lock()
        self._scanner = word_automaton(
            tokenizer(analyzer.tokenizer), analyzer.lower_text or analyzer.lower_words
        )
        self._lines = word_automaton(tokenizer("lines"), False)
        cut = tokenizer(analyzer.tokenizer)
        self._cut_by_spaces = not cut.table[:, cut.classes[ord(" ")]].any()  # no word goes on with a space
        self._kept: dict[str, list[int]] = {}  # of `known`

    def __len__(self) -> int:
        if self._terms is None:
            return 0 if self._given is None else len(self._given)
        return len(self._terms)

    def add(self, texts: Strings) -> tuple[Int64, Int32]:
        """Add new terms of n texts, and return all their terms, with repetitions: (ptr int64[n + 1], numbers
        int32)."""
        self._kept.clear()
        return self._analyse(texts, grow=True)

    def lookup(self, texts: Strings) -> tuple[Int64, Int32]:
        """Return the terms of n texts, with repetitions: (ptr int64[n + 1], numbers int32, -1 if unknown)."""
        return self._analyse(texts, grow=False)

    def known(self, text: str) -> list[int]:
        """Return the numbers of a text's known terms, in order, with repetitions."""
        if not (self._cut_by_spaces and text.isascii()):
            return self._known([text])[0]
        stretches = text.split(" ")
        numbers = [self._kept.get(stretch) for stretch in stretches]
        if None in numbers:
            pairs = zip(stretches, numbers, strict=True)
            new = list(dict.fromkeys(stretch for stretch, terms in pairs if terms is None))
            looked_up = dict(zip(new, self._known(new), strict=True))
            if len(self._kept) >= KEPT_STRETCHES:
                self._kept.clear()
            self._kept.update(looked_up)
            pairs = zip(stretches, numbers, strict=True)
            numbers = [looked_up[stretch] if terms is None else terms for stretch, terms in pairs]
        return [number for terms in numbers if terms for number in terms]

    def _known(self, texts: list[str]) -> list[list[int]]:
        ptr, terms = self.lookup(Strings.of(texts))
        cuts, numbers = ptr.tolist(), terms.tolist()
        return [[n for n in numbers[a:b] if n >= 0] for a, b in pairwise(cuts)]

    def terms(self) -> Strings:
        """Return all terms, in order of numbers."""
        if self._terms is None:
            return self._given if self._given is not None else Strings.of(())
        return self._terms.all_words()

    def _analyse(self, texts: Strings, grow: bool) -> tuple[Int64, Int32]:
        pieces = []
        with self._lock:
            for piece in _pieces(texts):
                some = self._prepared(piece)
                most = int(some.ptr[-1] - some.ptr[0])  # a word takes a byte at least
                if most > len(self._scratch):
                    self._scratch = np.empty(max(most, FIRST_SCRATCH), np.int32)
                ptr = np.zeros(len(some) + 1, np.int64)
                self._words.scan_into(some, self._scanner, True, ptr, self._scratch)
                self._learn(grow)
                tokenize.renumber(ptr, self._scratch, self._term_of)
                pieces.append((ptr, self._scratch[: int(ptr[-1])].copy()))
        if len(pieces) == 1:
            return pieces[0]
        starts = np.cumsum([0, *(len(numbers) for _, numbers in pieces)])
        ends = [ptr[1:] + start for (ptr, _), start in zip(pieces, starts[:-1], strict=True)]
        numbers = np.concatenate([numbers for _, numbers in pieces])
        return np.concatenate([np.zeros(1, np.int64), *ends]), numbers

    def _learn(self, grow: bool) -> None:
        first_new = len(self._term_of)
        if grow and self._unknown:
            first_new = int(np.argmax(self._term_of == UNKNOWN))
        if first_new == len(self._words):
            return
        terms = self.analyzer.normalise_lines(self._words.word_lines(first_new))
        if self._terms is None:
            table = _WordTable(0 if self._given is None else len(self._given))
            if self._given is not None:
                table.scan(self._given, self._lines)
                if len(table) != len(self._given):
                    raise BadValue("the vocabulary holds a term twice, or an empty one")
            self._terms = table
        _, numbers = self._terms.scan(Strings.of(["\n".join(terms)]), self._lines, grow)
        if len(numbers) < len(terms):  # "" is dropped
            every = np.full(len(terms), DROPPED, np.int32)
            every[np.fromiter(map(bool, terms), np.bool_, len(terms))] = numbers
            numbers = every
        self._unknown = not grow and (self._unknown or bool((numbers == UNKNOWN).any()))
        self._term_of = np.concatenate([self._term_of[:first_new], numbers])

    def _prepared(self, texts: Strings) -> Strings:
        if self.analyzer.cut is not None:
            return Strings.of(["\n".join(self.analyzer.words(text)) for text in texts.tolist()])
        if not self.analyzer.lower_text:
            return texts
        raw = texts.data[int(texts.ptr[0]) : int(texts.ptr[-1])].tobytes()
        return Strings.of([t.lower() for t in texts.tolist()]) if NEEDS_LOWER.search(raw) else texts


def _pieces(texts: Strings) -> list[Strings]:
    ptr, n = texts.ptr, len(texts)
    if ptr[-1] - ptr[0] <= PIECE_BYTES:
        return [texts]
    out, at = [], 0
    while at < n:
        end = int(np.searchsorted(ptr, ptr[at] + PIECE_BYTES, side="right")) - 1
        end = min(max(end, at + 1), n)
        out.append(texts.slice(at, end))
        at = end
    return out


# ----------
# Counts of words in collections, and how alike they are.


ANALYZER = "lucene-standard"
BATCH_BYTES = 1 << 22
WORDS_SHOWN = 5
ROUNDS = 300


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Counts of words in several collections."""

    words: list[str]
    counts: tuple[Int64, ...]
    """int64[words] for each collection."""

    def shares(self, which: int) -> Float64:
        """Return each word's share of all words in collection number `which`, float64[words]."""
        counts = self.counts[which]
        return counts / max(1, int(counts.sum()))

    def typical(self, of: int, against: int) -> list[str]:
        """Return up to 5 words, most typical first, with a larger share in collection `of` than in `against`
        (numbers)."""
        surplus = self.shares(of) - self.shares(against)
        return [self.words[i] for i in np.argsort(-surplus, kind="stable")[:WORDS_SHOWN] if surplus[i] > 0]


def word_counts(corpora: Sequence[Corpus]) -> WordCounts:
    """Return counts of lowercased words (Lucene's StandardAnalyzer) in each corpus's titles and texts."""
    table = TermTable(analyzers.get(ANALYZER))
    counts = []
    for corpus in corpora:
        total = np.zeros(0, np.int64)
        for _, texts in corpus.batches("title text", BATCH_BYTES):
            _, terms = table.add(texts)
            some = np.bincount(terms, minlength=len(total))
            some[: len(total)] += total
            total = some
        counts.append(total)
    filled = tuple(np.pad(one, (0, len(table) - len(one))) for one in counts)
    return WordCounts(table.terms().tolist(), filled)


def weighted_jaccard(a: Float64, b: Float64) -> float:
    """Return the weighted Jaccard index of two vectors of shares (sum of minima / sum of maxima); NaN without
    words."""
    # Ioffe 2010, as in Thakur et al. 2021, appendix F.
    larger = float(np.maximum(a, b).sum())
    return float(np.minimum(a, b).sum()) / larger if larger else float("nan")


def layout(alike: Float64) -> Float64:
    """Return centred points in the plane, float64[n, 2], whose distances approximate 1 - alike.

    alike: float64[n, n], symmetric, 0 to 1.
    """
    count = len(alike)
    angle = 2 * np.pi * np.arange(count) / max(1, count)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    distances = 1 - alike
    for _ in range(ROUNDS if count > 1 else 0):
        apart = places[:, None] - places[None]
        distance = np.sqrt((apart**2).sum(axis=2))
        pull = np.divide(distances, distance, out=np.zeros_like(distance), where=distance > 0)
        places = (pull[:, :, None] * apart).sum(axis=1) / count
    centred: Float64 = places - places.mean(axis=0)
    return centred
