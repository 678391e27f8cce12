"""Where words begin and end: tokenizers as automata over character classes.

A tokenizer is data, not code: a class for every code point, and an automaton whose longest match is the next word.
What no word begins with is skipped. The compiled kernel and the plain Python path walk the same tables.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Bytes
from weir.errors import UnknownName

__all__ = ["NO_LIMIT", "WordTokenizer", "tokenizer", "tokenizer_names", "tokenizer_tables"]

NO_LIMIT = 2**31 - 1
LUCENE_LIMIT = 255
UAX29_TABLES = ("uax29-automaton.txt", "uax29-classes.txt")
CODE_POINTS = 0x110000
NEWLINE = 0x0A


@dataclass(frozen=True, eq=False)
class WordTokenizer:
    """Splits text into words.

    classes: uint8[0x110000], the class of each code point; class 0 is in no word.
    table: uint16[states, classes], the next state; 0 is the dead end, 1 the start.
    accept: bool[states], whether a word may end in the state.
    limit: longest word in UTF-16 units; a longer one is cut, as Lucene's buffer of 255 does.
    """

    name: str
    describes: str
    classes: Bytes
    table: NDArray[np.uint16]
    accept: NDArray[np.bool_]
    limit: int = NO_LIMIT

    def words(self, text: str) -> list[str]:
        """The words of a text as they stand in it, in order; the plain path."""
        return [text[a:b] for a, b in self.spans(text)]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where each word begins and ends, in code points."""
        kinds = self.classes[[ord(c) for c in text]].tolist()
        table, accept = self.table.tolist(), self.accept.tolist()
        start = 0
        while start < len(text):
            state, at, end, units = 1, start, start, 0
            while at < len(text) and state:
                units += 1 + (text[at] > "\uffff")
                state = table[state][kinds[at]] if units <= self.limit else 0
                at += 1
                if accept[state]:
                    end = at
            if end > start:
                yield start, end
            start = max(end, start + 1)


def tokenizer_names() -> list[str]:
    """The tokenizers there are."""
    return ["lines", "uax29", "whitespace", "words"]


@cache
def tokenizer(name: str) -> WordTokenizer:
    """The tokenizer of that name; raises UnknownName."""
    if name == "uax29":
        return _uax29()
    if name == "whitespace":
        return _runs(name, "runs of anything but whitespace, as str.split cuts them", ~_matching(r"\s+"), 1)
    if name == "words":
        says = r"the regular expression (?u)\b\w\w+\b on lowercased text"
        return _runs(name, says, _matching(r"\w+"), 2)
    if name == "lines":
        return _runs(name, "one word a line", np.arange(CODE_POINTS) != NEWLINE, 1)
    raise UnknownName("tokenizer", name, tokenizer_names())


@cache
def tokenizer_tables(name: str) -> str:
    """The tokenizer's name, and where its tables are Weir's own a digest of them: cheap, nothing is built."""
    if name != "uax29":
        return name
    texts = [files("weir.text").joinpath("data", table).read_bytes() for table in UAX29_TABLES]
    return f"{name}, tables {hashlib.blake2b(b''.join(texts), digest_size=8).hexdigest()}"


def _uax29() -> WordTokenizer:
    rows = [[int(x) for x in line.split()] for line in _lines(UAX29_TABLES[0])]
    states = np.array(rows, np.uint16)
    classes = np.zeros(CODE_POINTS, np.uint8)
    for line in _lines(UAX29_TABLES[1]):
        first, last, kind = line.split()
        classes[int(first, 16) : int(last, 16) + 1] = int(kind)
    says = "UAX #29 words and UTS #51 emoji of Unicode 12.1 as Lucene 9 cuts them, at most 255 UTF-16 units"
    accept = states[:, 0].astype(np.bool_)
    return WordTokenizer("uax29", says, classes, np.ascontiguousarray(states[:, 1:]), accept, LUCENE_LIMIT)


def _lines(name: str) -> list[str]:
    text = files("weir.text").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def _runs(name: str, describes: str, member: NDArray[np.bool_], at_least: int) -> WordTokenizer:
    """Maximal runs of member characters, at least one or two of them."""
    states = at_least + 2
    table = np.zeros((states, 2), np.uint16)
    table[1:, 1] = np.minimum(np.arange(2, states + 1), states - 1)
    accept = np.zeros(states, np.bool_)
    accept[-1] = True
    return WordTokenizer(name, describes, member.astype(np.uint8), table, accept)


def _matching(pattern: str) -> NDArray[np.bool_]:
    """Which code points the running Python's `re` puts into a class; planes above the third have no words."""
    member = np.zeros(CODE_POINTS, np.bool_)
    codes = np.arange(0x40000, dtype=np.uint32)
    every = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for found in re.finditer(pattern, every):
        member[found.start() : found.end()] = True
    return member
