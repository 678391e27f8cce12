"""Documents and queries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.strings import StringColumn, Strings
from weir.errors import BadValue, UnknownName

__all__ = ["VIEWS", "Corpus", "Queries"]

VIEWS = ("title text", "text", "title")


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents: identifiers, titles and texts, usually views of a memory-mapped store.

    ids: Ids[n]; title: n strings, or None where the collection has no titles; text: n strings;
    fingerprint: hash of ids and texts, or "" for a corpus made in memory.
    """

    ids: Ids
    text: StringColumn
    title: StringColumn | None = None
    fingerprint: str = ""

    @staticmethod
    def of(documents: Mapping[str, object]) -> Corpus:
        """A corpus from {id: text} or {id: {"title": ..., "text": ...}}.

        Raises BadValue for a document that is neither.
        """
        titles, texts = [], []
        for name, document in documents.items():
            title, text = _fields(name, document)
            titles.append(title)
            texts.append(text)
        return Corpus(Ids.of(documents), Strings.of(texts), Strings.of(titles) if any(titles) else None)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Corpus: {len(self):,} documents{', with titles' if self.title is not None else ''}>"

    def view(self, fields: str, start: int = 0, stop: int | None = None, separator: str = " ") -> Strings:
        """What counts as "the text" of documents start..stop-1: the one home of that choice.

        fields: "title text" (title, separator, text; the text alone where there is no title), "text", or "title".
        Raises UnknownName for another view.
        """
        if fields not in VIEWS:
            raise UnknownName("view", fields, VIEWS)
        stop = len(self) if stop is None else stop
        text = self.text.slice(start, stop)
        if fields == "text":
            return text
        if self.title is None:
            return text if fields == "title text" else Strings.of([""] * len(text))
        title = self.title.slice(start, stop)
        return title if fields == "title" else joined(title, text, separator)

    def batches(self, fields: str, size: int) -> Iterator[tuple[int, Strings]]:
        """The view in blocks of about `size` bytes: (number of the first document, texts)."""
        ends = self.text.lengths()
        ends.cumsum(out=ends)
        start = 0
        while start < len(self):
            base = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, base + size, side="right")))
            yield start, self.view(fields, start, stop)
            start = stop


@dataclass(frozen=True, eq=False, repr=False)
class Queries:
    """Queries: identifiers and texts."""

    ids: Ids
    text: Strings

    @staticmethod
    def of(queries: Mapping[str, str]) -> Queries:
        """Queries from {id: text}."""
        return Queries(Ids.of(queries), Strings.of(str(t) for t in queries.values()))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Queries: {len(self):,}>"

    def to_dict(self) -> dict[str, str]:
        """{id: text}."""
        return dict(zip(self.ids.tolist(), self.text.tolist(), strict=True))

    def take(self, codes: NDArray[np.integer]) -> Queries:
        """These queries, renumbered from 0."""
        return Queries(self.ids.take(codes), self.text.take(codes))


def joined(a: Strings, b: Strings, separator: str = " ") -> Strings:
    """a[i] + separator + b[i] for every i; b[i] alone where a[i] is empty."""
    between = separator.encode("utf-8")
    la, lb = a.lengths(), b.lengths()
    ptr = np.zeros(len(a) + 1, np.int64)
    np.cumsum(la + len(between) * (la > 0) + lb, out=ptr[1:])
    # One join of views moves each byte once; an index array would cost 16 bytes for each byte moved.
    pieces: list[bytes | memoryview] = [between] * (3 * len(a))
    pieces[0::3] = _views(a)
    pieces[2::3] = _views(b)
    for i in np.flatnonzero(la == 0).tolist():
        pieces[3 * i + 1] = b""
    return Strings(np.frombuffer(b"".join(pieces), np.uint8), ptr)


def _views(strings: Strings) -> list[memoryview]:
    """The bytes of each string, not copied."""
    base = int(strings.ptr[0])
    view = np.ascontiguousarray(strings.data[base : int(strings.ptr[-1])]).data
    cuts = (strings.ptr - base).tolist()
    return [view[a:b] for a, b in itertools.pairwise(cuts)]


def _fields(name: object, document: object) -> tuple[str, str]:
    if isinstance(document, str):
        return "", document
    if isinstance(document, Mapping):
        return str(document.get("title") or ""), str(document.get("text") or "")
    raise BadValue(
        f"document '{name}' is {type(document).__name__}; expected a text or a dict with title and text"
    )
