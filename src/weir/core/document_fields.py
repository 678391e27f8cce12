"""Metadata of documents as fields: one column for each name, of texts, numbers, or lists of texts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import numpy as np

from weir.core.strings import Float64, StringColumn, Strings
from weir.errors import UnknownName

__all__ = [
    "LIST_SEPARATOR",
    "NO_FIELDS",
    "DocumentFields",
    "FieldColumn",
    "FieldKind",
    "HeldFields",
    "KindsSeen",
    "cells",
    "flattened",
    "records",
    "unknown_field",
    "written_value",
]

FieldKind: TypeAlias = Literal["text", "number", "list"]
Scalar: TypeAlias = str | int | float

LIST_SEPARATOR = "\x1f"
"""Between the values of a list in its text: Unicode's unit separator, which no value keeps."""
EXACT_INTEGER = 1 << 53
"""From here on a double does not hold every whole number: such numbers are kept as texts."""
SHOWN_FIELDS = 30
BLOCK_DOCUMENTS = 4096


@dataclass(frozen=True, eq=False)
class FieldColumn:
    """A field of every document.

    text: n texts, "" where a document has none; a number as it prints, the values of a list between LIST_SEPARATORs;
    number: float64[n], NaN where a document has none, or None where not all values are numbers (true is 1);
    many: whether a document may have several values; digest: of the contents, which stands for them in keys.
    """

    text: StringColumn
    number: Float64 | None = None
    many: bool = False
    digest: str = ""

    @property
    def kind(self) -> FieldKind:
        """Of what its values are."""
        return "list" if self.many else "text" if self.number is None else "number"


class DocumentFields(Protocol):
    """The metadata of a corpus, read when a field is asked for."""

    def names(self) -> tuple[str, ...]:
        """The fields that some document has, sorted; keys within keys are joined by dots."""
        ...

    def column(self, name: str) -> FieldColumn:
        """A field; raises UnknownName, naming those that there are, for one that no document has."""
        ...


def unknown_field(name: str, known: Sequence[str]) -> UnknownName:
    """The error for a field that no document has; it names the fields that there are."""
    return UnknownName("field of these documents", name, known[:SHOWN_FIELDS], all_known=True)


def flattened(record: Mapping[str, object]) -> dict[str, tuple[list[Scalar], bool]]:
    """{name: (values, whether they stand in a list)} of a document's metadata.

    {"author": {"name": "Ada"}} has the field author.name; null, "" and numbers that are not finite are no values.
    """
    found: dict[str, tuple[list[Scalar], bool]] = {}
    waiting: list[tuple[str, object, bool]] = []
    for key, value in record.items():  # most are plain, and are many
        if isinstance(value, (str, int, float)):
            if _is_value(value):
                found[str(key)] = [value], False
        elif value is not None:
            waiting.append((str(key), value, False))
    waiting.reverse()
    while waiting:
        name, value, many = waiting.pop()
        if isinstance(value, (str, int, float)):
            if _is_value(value):
                values, before = found.get(name, ([], False))
                found[name] = [*values, value], many or before or bool(values)
        else:
            waiting += _within(name, value, many)
    return found


def _within(name: str, value: object, many: bool) -> list[tuple[str, object, bool]]:
    """What a list or an object holds, under the names of fields, the last first."""
    if isinstance(value, (list, tuple, Sequence)):  # the quick answers first
        return [(name, inner, True) for inner in reversed(value)]
    if isinstance(value, (dict, Mapping)):
        return [(f"{name}.{key}", inner, many) for key, inner in reversed(list(value.items()))]
    return []


def _is_value(value: Scalar) -> bool:
    return value != "" and not (isinstance(value, float) and not math.isfinite(value))


@dataclass(frozen=True, eq=False)
class KindsSeen:
    """What kinds of values each field has had so far: whether lists, whether anything but numbers."""

    lists: dict[str, bool] = field(default_factory=dict)
    texts: dict[str, bool] = field(default_factory=dict)

    def add(self, document: Mapping[str, tuple[list[Scalar], bool]]) -> None:
        """Take the fields of one more document into account."""
        for name, (values, many) in document.items():
            self.lists[name] = self.lists.get(name, False) or many
            self.texts[name] = self.texts.get(name, False) or not all(map(_exact, values))

    def kinds(self) -> dict[str, FieldKind]:
        """The kind of each field, by name in order."""
        return {
            name: "list" if self.lists[name] else "text" if self.texts[name] else "number"
            for name in sorted(self.lists)
        }


def _exact(value: Scalar) -> bool:
    """Whether a double holds the value."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < EXACT_INTEGER)


def cells(
    documents: Iterable[Mapping[str, tuple[list[Scalar], bool]]], name: str, kind: FieldKind
) -> tuple[Strings, Float64]:
    """(texts, numbers) of a field of some documents; numbers are NaN unless the kind is "number"."""
    texts: list[str] = []
    numbers: list[float] = []
    for document in documents:
        values, _ = document.get(name, ([], False))
        texts.append(LIST_SEPARATOR.join(map(written_value, values)))
        numbers.append(float(values[0]) if values and kind == "number" else math.nan)
    return Strings.of(texts), np.array(numbers, np.float64)


def records(fields: DocumentFields, documents: int) -> Iterator[dict[str, object]]:
    """The metadata of each of so many documents, as it may be written: {name: a text, a number or a list of texts}."""
    columns = [(name, fields.column(name)) for name in fields.names()]
    for start in range(0, documents, BLOCK_DOCUMENTS):
        stop = min(start + BLOCK_DOCUMENTS, documents)
        held = [(name, column.kind, column.text.slice(start, stop).tolist()) for name, column in columns]
        for number in range(stop - start):
            found = ((name, kind, texts[number]) for name, kind, texts in held)
            yield {name: _read(text, kind) for name, kind, text in found if text}


def _read(text: str, kind: FieldKind) -> object:
    return text.split(LIST_SEPARATOR) if kind == "list" else json.loads(text) if kind == "number" else text


def written_value(value: Scalar) -> str:
    """A value as text: 2020, 0.5, true."""
    if isinstance(value, str):
        return value.replace(LIST_SEPARATOR, " ")
    return str(value).lower() if isinstance(value, bool) else repr(value)


@dataclass(frozen=True, eq=False)
class HeldFields:
    """Metadata of documents in memory, in the order of the corpus."""

    documents: Sequence[Mapping[str, tuple[list[Scalar], bool]]]
    kinds: Mapping[str, FieldKind]

    @staticmethod
    def of(records: Sequence[Mapping[str, object]]) -> HeldFields:
        """The fields of some documents; raises BadValue, when a field is read, for half of a surrogate pair."""
        documents, seen = [flattened(record) for record in records], KindsSeen()
        for document in documents:
            seen.add(document)
        return HeldFields(documents, seen.kinds())

    def names(self) -> tuple[str, ...]:
        """See DocumentFields."""
        return tuple(self.kinds)

    def column(self, name: str) -> FieldColumn:
        """See DocumentFields."""
        if name not in self.kinds:
            raise unknown_field(name, self.names())
        kind = self.kinds[name]
        texts, numbers = cells(self.documents, name, kind)
        digest = hashlib.sha256(kind.encode() + texts.ptr.tobytes() + texts.data.tobytes()).hexdigest()[:32]
        return FieldColumn(texts, numbers if kind == "number" else None, kind == "list", digest)


NO_FIELDS = HeldFields((), {})
"""Of documents without metadata."""
