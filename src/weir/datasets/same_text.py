"""Rows of one text: which documents or queries are the same, as they are written or after normalising."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus
from weir.core.hashing import hash_strings
from weir.core.strings import Int64, StringColumn, Strings

__all__ = ["DuplicateGroups", "duplicate_groups", "normalised", "title_and_text"]

BATCH_ROWS = 1 << 15
Form = Callable[[str], str]


@dataclass(frozen=True, eq=False)
class DuplicateGroups:
    """Rows that share a text.

    number: int64[n], the group of each row, groups in the order of their first rows; -1 where no other has its text.
    """

    number: Int64

    @property
    def rows(self) -> int:
        """Rows that share their text with another."""
        return int(np.count_nonzero(self.number >= 0))

    @property
    def surplus(self) -> int:
        """Rows beyond the first of each group."""
        return self.rows - int(self.number.max(initial=-1) + 1)

    def members(self) -> list[Int64]:
        """The rows of each group, ascending."""
        rows = np.flatnonzero(self.number >= 0)
        order = rows[np.argsort(self.number[rows], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.number[order])) + 1
        return np.split(order, cuts) if len(order) else []


def normalised(text: str) -> str:
    """A text without differences of form: Unicode NFKC, lower case, each run of white space one blank."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def title_and_text(corpus: Corpus) -> tuple[StringColumn, ...]:
    """The columns of title and text, or of text alone where there are no titles."""
    return (corpus.text,) if corpus.title is None else (corpus.title, corpus.text)


def duplicate_groups(columns: Sequence[StringColumn], form: Form | None = None) -> DuplicateGroups:
    """Rows whose texts are the same in every column, after `form` where one is given; the empty text is a text too.

    Exact: hashes of 64 bits find candidates, texts decide. Memory: 8 bytes for each row, and a batch of texts.
    """
    hashes = _row_hashes(columns, form)
    order = np.argsort(hashes, kind="stable")
    opens = np.append(True, np.diff(hashes[order]) != 0) if len(order) else np.zeros(0, np.bool_)
    starts = np.flatnonzero(opens)
    lengths = np.diff(np.append(starts, len(order)))
    found: list[list[int]] = []
    for start, length in zip(starts[lengths > 1].tolist(), lengths[lengths > 1].tolist(), strict=True):
        kinds: dict[tuple[str, ...], list[int]] = {}
        for row in order[start : start + length].tolist():
            texts = (column[row] for column in columns)
            kinds.setdefault(tuple(texts if form is None else map(form, texts)), []).append(row)
        found += [rows for rows in kinds.values() if len(rows) > 1]
    number = np.full(len(order), -1, np.int64)
    for group, rows in enumerate(sorted(found)):
        number[rows] = group
    return DuplicateGroups(number)


def _row_hashes(columns: Sequence[StringColumn], form: Form | None) -> NDArray[np.uint64]:
    whole = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        for start in range(0, len(column), BATCH_ROWS):
            texts = column.slice(start, min(start + BATCH_ROWS, len(column)))
            if form is not None:
                texts = Strings.of(map(form, texts))
            part = whole[start : start + BATCH_ROWS]
            part *= np.uint64(0x9E3779B97F4A7C15)
            part ^= hash_strings(texts.data, texts.ptr[:-1], texts.lengths())
    return whole
