"""A tokenizer laid out for the compiled scanner, with what may be decided from single bytes worked out beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes, Int32, Int64
from weir.text.segment import WordTokenizer

__all__ = ["BEGINS", "MIDDLE", "SIMPLE", "STOP", "WordScanner"]

SIMPLE, BEGINS, STOP, MIDDLE = 1, 2, 4, 8  # as in weir.kernels.parse.words
LETTERS_AND_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PRINTABLE = bytes(range(0x21, 0x7F))


@dataclass(frozen=True, eq=False)
class WordScanner:
    """What the kernel `weir.kernels.parse.words.scan` needs to know of a tokenizer.

    classes uint8[0x110000]; table int32[states * classes], states as offsets into it, the dead end first, the
    accepting ones last; kinds and fold uint8[256]; shape int64[6]: start, first accepting state, limit, least length
    of a plain word, 1 if ASCII letters are folded, 1 if plain words are letters and digits (else 0x21 to 0x7E).
    """

    classes: Bytes
    kinds: Bytes
    fold: Bytes
    table: Int32
    shape: Int64

    @staticmethod
    @cache
    def of(tokenizer: WordTokenizer, fold_ascii: bool) -> WordScanner:
        """Lay out a tokenizer; with `fold_ascii`, words differing in ASCII case only are one word."""
        order = np.lexsort((np.arange(len(tokenizer.accept)), tokenizer.accept))
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        width = tokenizer.table.shape[1]
        table = (rank[tokenizer.table[order]] * width).astype(np.int32)
        fold = np.arange(256, dtype=np.uint8)
        if fold_ascii:
            fold[ord("A") : ord("Z") + 1] += 32
        letters = fold_ascii or not _plain(tokenizer, PRINTABLE)
        kinds, least = _kinds(tokenizer, LETTERS_AND_DIGITS if letters else PRINTABLE)
        accept = int(np.count_nonzero(~tokenizer.accept)) * width
        shape = [int(rank[1]) * width, accept, tokenizer.limit, least, int(fold_ascii), int(letters)]
        arrays = (tokenizer.classes, kinds, fold, table.ravel(), np.array(shape, np.int64))
        for array in arrays:
            array.flags.writeable = False
        return WordScanner(*arrays)


def _steps(tokenizer: WordTokenizer) -> NDArray[np.uint16]:
    """uint16[states, 128]: the next state by ASCII byte."""
    return tokenizer.table[:, tokenizer.classes[:128]]


def _runs(tokenizer: WordTokenizer, simple: bytes) -> list[set[int]]:
    """The states after one, two, ... simple bytes, until no new set of states appears."""
    step, columns = _steps(tokenizer), list(simple)
    found: list[set[int]] = []
    states = {1}
    while not found or states not in found:
        if found or states != {1}:
            found.append(states)
        states = set(step[np.ix_(sorted(states), columns)].ravel().tolist())
    return found


def _plain(tokenizer: WordTokenizer, simple: bytes) -> bool:
    """Whether a run of these bytes is always part of one word."""
    return not any(0 in states for states in _runs(tokenizer, simple))


def _kinds(tokenizer: WordTokenizer, simple: bytes) -> tuple[Bytes, int]:
    """uint8[256]: what each byte can be; and how many simple bytes are a word at least.

    STOP: whatever plain word stands before it, the word ends here. MIDDLE: it ends here if STOP or MIDDLE follows.
    Bytes above 127 begin and continue words: only the automaton knows.
    """
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
