"""Texts to term numbers: the compiled scanner per word, Python once per distinct word."""

from __future__ import annotations

import re
import threading
from itertools import pairwise

import numpy as np

from weir.core.strings import Int32, Int64, Strings
from weir.errors import BadValue
from weir.text.analyzer import Analyzer
from weir.text.scanner import WordScanner
from weir.text.segment import tokenizer
from weir.text.word_table import WordTable

__all__ = ["TermTable"]

UNKNOWN = -1
DROPPED = -2
PIECE_BYTES = (
    1 << 21
)  # bytes of text between two looks at the new words: what was written is still in the cache
FIRST_SCRATCH = 1 << 12
KEPT_STRETCHES = 1 << 16
# U+0130 lowercases to two characters and U+03A3 by its neighbours: such texts are lowercased before they are cut.
NEEDS_LOWER = re.compile("\u0130|\u03a3".encode())


class TermTable:
    """Turns texts into term numbers; each distinct word is normalised and stemmed once.

    analyzer: what the terms are. terms: an existing vocabulary, whose numbers are kept.
    Terms are numbered in the order in which their first word came, however the texts were batched.
    Words the analyzer drops (stopwords) are left out of the result, as Lucene leaves them out of document lengths.
    One call at a time runs; others wait.
    """

    def __init__(self, analyzer: Analyzer, terms: Strings | None = None) -> None:
        self.analyzer = analyzer
        self._given = terms
        self._words = WordTable()
        self._terms: WordTable | None = None
        self._term_of: Int32 = np.empty(0, np.int32)
        self._unknown = False  # whether a looked-up word has no number: it gets one when it is added
        self._scratch: Int32 = np.empty(0, np.int32)
        self._lock = threading.Lock()
        self._scanner = WordScanner.of(
            tokenizer(analyzer.tokenizer), analyzer.lower_text or analyzer.lower_words
        )
        self._lines = WordScanner.of(tokenizer("lines"), False)
        cut = tokenizer(analyzer.tokenizer)
        self._cut_by_spaces = not cut.table[:, cut.classes[ord(" ")]].any()  # no word goes on with a space
        self._kept: dict[str, list[int]] = {}  # of `known`

    def __len__(self) -> int:
        if self._terms is None:
            return 0 if self._given is None else len(self._given)
        return len(self._terms)

    def add(self, texts: Strings) -> tuple[Int64, Int32]:
        """ptr int64[n + 1], term int32[]: the terms of each text in order; new ones get the next numbers."""
        self._kept.clear()
        return self._analyse(texts, grow=True)

    def lookup(self, texts: Strings) -> tuple[Int64, Int32]:
        """As `add`, but the vocabulary stays as it is: a term that is not in it is -1."""
        return self._analyse(texts, grow=False)

    def known(self, text: str) -> list[int]:
        """The terms of a text that are in the vocabulary, in order: those of `lookup` from 0 on.

        What stands between spaces is looked up once and kept, where a space ends every word and begins none.
        """
        if not (self._cut_by_spaces and text.isascii()):
            return self._known([text])[0]
        stretches = text.split(" ")
        numbers = [self._kept.get(one) for one in stretches]
        if None in numbers:
            new = list(
                dict.fromkeys(one for one, known in zip(stretches, numbers, strict=True) if known is None)
            )
            looked_up = dict(zip(new, self._known(new), strict=True))
            if len(self._kept) >= KEPT_STRETCHES:
                self._kept.clear()
            self._kept.update(looked_up)
            numbers = [
                looked_up[one] if known is None else known
                for one, known in zip(stretches, numbers, strict=True)
            ]
        return [number for some in numbers if some for number in some]

    def _known(self, texts: list[str]) -> list[list[int]]:
        """The terms of each text that are in the vocabulary."""
        ptr, found = self.lookup(Strings.of(texts))
        cuts, numbers = ptr.tolist(), found.tolist()
        return [[n for n in numbers[a:b] if n >= 0] for a, b in pairwise(cuts)]

    def terms(self) -> Strings:
        """The vocabulary: term number -> term; a view that later growth leaves as it is."""
        if self._terms is None:
            return self._given if self._given is not None else Strings.of(())
        return self._terms.words()

    def _analyse(self, texts: Strings, grow: bool) -> tuple[Int64, Int32]:
        with self._lock:
            pieces = [self._piece(piece, grow) for piece in _pieces(texts, PIECE_BYTES)]
        if len(pieces) == 1:
            return pieces[0]
        starts = np.cumsum([0, *(len(numbers) for _, numbers in pieces)])
        ends = [ptr[1:] + start for (ptr, _), start in zip(pieces, starts[:-1], strict=True)]
        numbers = np.concatenate([numbers for _, numbers in pieces])
        return np.concatenate([np.zeros(1, np.int64), *ends]), numbers

    def _piece(self, texts: Strings, grow: bool) -> tuple[Int64, Int32]:
        from weir.kernels.parse import words as tokenize

        texts = self._lowered(texts)
        most = int(texts.ptr[-1] - texts.ptr[0])  # a word takes a byte at least
        if most > len(self._scratch):
            self._scratch = np.empty(max(most, FIRST_SCRATCH), np.int32)
        ptr = np.zeros(len(texts) + 1, np.int64)
        self._words.scan_into(texts, self._scanner, True, ptr, self._scratch)
        self._learn(grow)
        tokenize.renumber(ptr, self._scratch, self._term_of)
        return ptr, self._scratch[: int(ptr[-1])].copy()

    def _learn(self, grow: bool) -> None:
        """Find the terms of words that have none yet; when the vocabulary grows, of the unknown ones too."""
        known = len(self._term_of)
        if grow and self._unknown:
            known = int(np.argmax(self._term_of == UNKNOWN))
        if known == len(self._words):
            return
        numbers = self._numbers(self.analyzer.normalise_lines(self._words.lines(known)), grow)
        self._unknown = not grow and (self._unknown or bool((numbers == UNKNOWN).any()))
        self._term_of = np.concatenate([self._term_of[:known], numbers])

    def _numbers(self, found: list[str], grow: bool) -> Int32:
        """Term numbers; "" is DROPPED."""
        if self._terms is None:
            self._terms = self._vocabulary()
        _, numbers = self._terms.scan(Strings.of(["\n".join(found)]), self._lines, grow)
        if len(numbers) == len(found):
            return numbers
        out = np.full(len(found), DROPPED, np.int32)
        out[np.fromiter(map(bool, found), np.bool_, len(found))] = numbers
        return out

    def _vocabulary(self) -> WordTable:
        table = WordTable(0 if self._given is None else len(self._given))
        if self._given is not None:
            table.scan(self._given, self._lines)
            if len(table) != len(self._given):
                raise BadValue("the vocabulary holds a term twice, or an empty one")
        return table

    def _lowered(self, texts: Strings) -> Strings:
        """Texts whose lowercase depends on more than one character, lowercased; the others as they are."""
        if not self.analyzer.lower_text or not len(texts):
            return texts
        raw = texts.data[int(texts.ptr[0]) : int(texts.ptr[-1])].tobytes()
        if not NEEDS_LOWER.search(raw):
            return texts
        return Strings.of([t.lower() for t in texts.tolist()])


def _pieces(texts: Strings, size: int) -> list[Strings]:
    """Consecutive texts of at most about `size` bytes together; one piece at least."""
    ptr, n = texts.ptr, len(texts)
    if ptr[-1] - ptr[0] <= size:
        return [texts]
    out, at = [], 0
    while at < n:
        end = int(np.searchsorted(ptr, ptr[at] + size, side="right")) - 1
        end = min(max(end, at + 1), n)
        out.append(texts.slice(at, end))
        at = end
    return out
