"""Documents and queries."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core import frames, mapping_views
from weir.core.filters import (
    LIST_SEPARATOR,
    NO_FIELDS,
    DocumentFields,
    FieldColumn,
    HeldFields,
    unknown_field,
)
from weir.core.hooks import Hook
from weir.core.query_metadata import MetadataError, QueryMetadata
from weir.core.strings import Ids, StringColumn, Strings, offsets
from weir.core.tables import FIRST, Table, first_rows
from weir.errors import BadValue

ID, TITLE, TEXT = "_id", "title", "text"
"""Fields of every document; all other fields are metadata."""
RECORDS: Hook[[object, Literal["documents", "queries"]], Mapping[str, object] | None] = Hook(
    "reading tables of texts"
)


def check_view(view: object) -> None:
    """Raise BadValue unless `view` is a text naming at least one field; fields need not exist."""
    if not isinstance(view, str) or not view.split():
        raise BadValue(f"view is {view!r}; expected names of fields, such as 'title text'")


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents as a mapping {identifier: {"title", "text"}}, often memory-mapped."""

    ids: Ids
    text: StringColumn
    title: StringColumn | None = None
    """None if the collection has no titles."""
    fingerprint: str = ""
    """Hash of ids, titles and texts; "" for a corpus made in memory."""
    metadata: DocumentFields = NO_FIELDS
    """All other fields."""

    @staticmethod
    @named_arguments
    def of(documents: object) -> Corpus:
        """Return a corpus from {id: text}, {id: {"title", "text", metadata}}, a list of dicts, a data frame or a
        Series of texts.

        Raises BadValue for another form and for an invalid or repeated identifier.
        """
        documents = _by_identifier(
            documents, "documents", "{identifier: text, or a dict with title and text}"
        )
        if not documents:
            return NO_DOCUMENTS
        titles, texts, others = list[str](), list[str](), list[dict[str, object]]()
        for name, document in documents.items():
            title, text, other = _parts_of(name, document)
            titles.append(title)
            texts.append(text)
            others.append(other)
        return Corpus(
            Ids.of(documents),
            Strings.of(texts),
            Strings.of(titles) if any(titles) else None,
            metadata=HeldFields.of(others) if any(others) else NO_FIELDS,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, doc: str) -> dict[str, str]:
        code = self.ids.code(doc, "document of this corpus")
        return {TITLE: "" if self.title is None else self.title[code], TEXT: self.text[code]}

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __contains__(self, doc: object) -> bool:
        return isinstance(doc, str) and bool(self.ids.codes([doc])[0] >= 0)

    keys, values, items = mapping_views.keys, mapping_views.values, mapping_views.items
    get = mapping_views.get

    def __repr__(self) -> str:
        return self._beginning().text()

    def _repr_html_(self) -> str:
        return self._beginning().html()

    def _beginning(self) -> Table:
        title = f"Corpus: {len(self):,} documents{', with titles' if self.title is not None else ''}"
        return first_rows(self._first(FIRST), title, len(self))

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[str]]:
        """Return {"doc", "title", "text": a value for each document}; without "title" if no document has one."""
        return self._first(len(self))

    def _first(self, documents: int) -> dict[str, list[str]]:
        columns = {"doc": self.ids.column, TITLE: self.title, TEXT: self.text}
        return {k: v.slice(0, documents).tolist() for k, v in columns.items() if v is not None}

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the searchable fields: title (if any), text, then metadata."""
        own = (TEXT,) if self.title is None else (TITLE, TEXT)
        return (*own, *(name for name in self.metadata.names() if name not in (ID, TITLE, TEXT)))

    def field(self, name: str) -> FieldColumn:
        """Return a field's value for every document: `_id`, `title`, `text` or metadata. Raises UnknownName if no
        document has the field.
        """
        plain = {ID: self.ids.column, TITLE: self.title, TEXT: self.text}.get(name)
        if plain is not None:
            return FieldColumn(plain)
        if name not in self.field_names:
            raise unknown_field(name, self.field_names)
        return self.metadata.column(name)

    def view(self, fields: str, start: int = 0, stop: int | None = None, separator: str = " ") -> Strings:
        """Return the texts of documents start to stop - 1: their fields joined by `separator`, without empty values.

        fields: names between blanks, in the order of joining, such as "title text", which alone keeps the separator
            before an empty text.

        Raises UnknownName for a field that no document has, BadValue for no field.
        """
        stop = len(self) if stop is None else stop
        return _joined_all(
            [(name, column.slice(start, stop)) for name, column in self._columns(fields)], separator
        )

    def view_of(self, fields: str, codes: NDArray[np.integer], separator: str = " ") -> Strings:
        """Return the texts of the documents at these positions, in this order, joined as by `view`."""
        return _joined_all([(name, column.take(codes)) for name, column in self._columns(fields)], separator)

    def batches(self, fields: str, size: int, start: int = 0) -> Iterator[tuple[int, Strings]]:
        """Yield (position of the first document, texts as from `view`) for blocks of about `size` bytes."""
        ends = self.text.lengths()
        ends.cumsum(out=ends)
        while start < len(self):
            base = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, base + size, side="right")))
            yield start, self.view(fields, start, stop)
            start = stop

    def fingerprint_with(self, fields: Iterable[str]) -> str:
        """Return a hash of ids, titles, texts and the metadata named in `fields`; "" for a corpus in memory."""
        digests = self.metadata_digests(fields)
        if not digests or not self.fingerprint:
            return self.fingerprint
        lines = [self.fingerprint, *(f"{name} {digest}" for name, digest in digests.items())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]

    def metadata_digests(self, fields: Iterable[str]) -> dict[str, str]:
        """Return {metadata field: hash of its values}, sorted, for the metadata named in `fields`."""
        read = {name for view in fields for name in self._names(view)} - {ID, TITLE, TEXT}
        return {name: self.metadata.column(name).digest for name in sorted(read)}

    def _names(self, view: str) -> tuple[str, ...]:
        check_view(view)
        others = self.metadata.names() if set(view.split()) - {ID, TITLE, TEXT} else ()
        names = (view,) if view in others else tuple(view.split())  # the name of a field may have blanks
        for name in names:
            if name not in (ID, TITLE, TEXT, *others):
                raise unknown_field(name, self.field_names)
        return names

    def _columns(self, view: str) -> list[tuple[str, _Sliced]]:
        names = self._names(view)
        if self.title is None and len(names) > 1:
            names = tuple(name for name in names if name != TITLE)
        return [(name, self._column(name)) for name in names]

    def _column(self, name: str) -> _Sliced:
        if name == TEXT:
            return self.text
        if name == TITLE:
            empty = Strings(np.empty(0, np.uint8), np.zeros(len(self) + 1, np.int64))
            return empty if self.title is None else self.title
        return _Readable(self.field(name).text)


NO_DOCUMENTS = Corpus(Ids.of([]), Strings.of([]), fingerprint="no documents")
"""The corpus of a collection without a file of documents: any identifier in a stored ranking is allowed."""


@dataclass(frozen=True, eq=False, repr=False)
class Queries:
    """Queries with identifiers, texts and, if any, metadata."""

    ids: Ids
    text: Strings
    metadata: QueryMetadata | None = None

    @staticmethod
    @named_arguments
    def of(queries: object) -> Queries:
        """Return queries from {id: text}, {id: {"text", metadata}}, a list of dicts, a data frame or a Series of
        texts.

        Metadata are instruction, filter, candidates, excluded, unanswerable and group labels. Raises BadValue for
        another form and for an invalid or repeated identifier.
        """
        queries = _by_identifier(queries, "queries", "{identifier: text, or a dict with text}")
        if set(map(type, queries.values())) == {str}:
            return Queries(Ids.of(queries), Strings.of(queries.values()))  # type: ignore[arg-type]  # texts
        for name, query in queries.items():
            if not isinstance(query, (str, Mapping)):
                raise BadValue(
                    f"query '{name}' is {type(query).__name__}; expected a text or a dict with text"
                )
        records = [dict(q) if isinstance(q, Mapping) else {TEXT: q} for q in queries.values()]
        texts = [_text_of(row.pop(TEXT, None)) for row in records]
        try:
            metadata = QueryMetadata.of(records)
        except MetadataError as error:
            raise BadValue(f"query '{list(queries)[error.row]}': {error}") from None
        return Queries(Ids.of(queries), Strings.of(texts), metadata)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: str) -> str:
        return self.text[self.ids.code(query, "query of this collection")]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __contains__(self, query: object) -> bool:
        return isinstance(query, str) and bool(self.ids.codes([query])[0] >= 0)

    keys, values, items = mapping_views.keys, mapping_views.values, mapping_views.items
    get = mapping_views.get

    def __repr__(self) -> str:
        return self._beginning().text()

    def _repr_html_(self) -> str:
        return self._beginning().html()

    def _beginning(self) -> Table:
        columns = {"query": self.ids[:FIRST], TEXT: self.text.slice(0, FIRST).tolist()}
        return first_rows(columns, f"Queries: {len(self):,}", len(self))

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[str]]:
        """Return {"query": identifiers, "text": texts}."""
        return {"query": self.ids.tolist(), TEXT: self.text.tolist()}

    def to_dict(self) -> dict[str, str]:
        """Return {query id: text}."""
        return dict(zip(self.ids.tolist(), self.text.tolist(), strict=True))

    def take(self, codes: NDArray[np.integer]) -> Queries:
        """Return the queries at these positions, in this order."""
        metadata = None if self.metadata is None else self.metadata.take(codes)
        return Queries(self.ids.take(codes), self.text.take(codes), metadata)


class _Sliced(Protocol):
    def slice(self, start: int, stop: int) -> Strings: ...

    def take(self, codes: NDArray[np.integer]) -> Strings: ...


@dataclass(frozen=True, eq=False)
class _Readable:
    column: StringColumn

    def slice(self, start: int, stop: int) -> Strings:
        return _without_marks(self.column.slice(start, stop))

    def take(self, codes: NDArray[np.integer]) -> Strings:
        return _without_marks(self.column.take(codes))


def _without_marks(texts: Strings) -> Strings:
    first = int(texts.ptr[0])
    data = np.array(texts.data[first : int(texts.ptr[-1])])
    data[data == ord(LIST_SEPARATOR)] = ord(" ")
    return Strings(data, texts.ptr - first)


def _joined_all(parts: list[tuple[str, Strings]], separator: str) -> Strings:
    _, texts = parts[0]
    for (before, _), (name, part) in itertools.pairwise(parts):
        texts = joined(texts, part, separator, dangling=(before, name) == (TITLE, TEXT))
    return texts


def joined(a: Strings, b: Strings, separator: str = " ", dangling: bool = True) -> Strings:
    """Return the texts a[i] + separator + b[i], or b[i] alone if a[i] is empty.

    dangling: keep the separator if b[i] is empty.
    """
    between = separator.encode("utf-8")
    la, lb = a.lengths(), b.lengths()
    apart = (la > 0) & (dangling | (lb > 0))
    ptr = offsets(la + len(between) * apart + lb)
    # One join of views moves each byte once; an index array would cost 16 bytes for each byte moved.
    pieces: list[bytes | memoryview] = [between] * (3 * len(a))
    pieces[0::3] = _views(a)
    pieces[2::3] = _views(b)
    for i in np.flatnonzero(~apart).tolist():
        pieces[3 * i + 1] = b""
    return Strings(np.frombuffer(b"".join(pieces), np.uint8), ptr)


def _views(strings: Strings) -> list[memoryview]:
    base = int(strings.ptr[0])
    view = np.ascontiguousarray(strings.data[base : int(strings.ptr[-1])]).data
    cuts = (strings.ptr - base).tolist()
    return [view[a:b] for a, b in itertools.pairwise(cuts)]


def _by_identifier(
    value: object, what: Literal["documents", "queries"], expected: str
) -> Mapping[str, object]:
    found = value if isinstance(value, Mapping) else RECORDS(value, what)
    if found is None:
        raise BadValue(f"found {type(value).__name__} as the {what}; expected {expected}, or a frame of them")
    return found


def _text_of(value: object) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _parts_of(name: object, document: object) -> tuple[str, str, dict[str, object]]:
    if isinstance(document, str):
        return "", document, {}
    if isinstance(document, Mapping):
        own = {str(k): v for k, v in document.items() if k not in (ID, TITLE, TEXT, "metadata")}
        inner = document.get("metadata")
        own |= inner if isinstance(inner, Mapping) else {} if inner is None else {"metadata": inner}
        return _text_of(document.get(TITLE)), _text_of(document.get(TEXT)), own
    raise BadValue(
        f"document '{name}' is {type(document).__name__}; expected a text or a dict with title and text"
    )
