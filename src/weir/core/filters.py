"""Lists of documents for queries, and filters on document fields."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.expressions import syntax_tree
from weir.core.strings import Bytes, Float64, Ids, Int32, Int64, StringColumn, Strings, offsets, stretches
from weir.errors import BadValue, UnknownName

# Some documents for each query: those that alone may be ranked, or those that may not.


@dataclass(frozen=True, eq=False, repr=False)
class DocumentLists:
    """A list of distinct documents for each query, such as its candidates, in the given order."""

    docs: Ids
    ptr: Int64
    """int64[Q + 1]: row offsets of each query."""
    doc: Int32
    """int32[n]: codes into `docs`."""

    @staticmethod
    def of(lists: Iterable[Iterable[object]]) -> DocumentLists:
        """Return the lists of all queries, without repetitions. Raises BadValue for an invalid identifier."""
        number: dict[str, int] = {}
        doc: list[int] = []
        ends = [0]
        for listed in lists:
            doc += [number.setdefault(name, len(number)) for name in dict.fromkeys(map(str, listed))]
            ends.append(len(doc))
        return DocumentLists(Ids.of(number), np.array(ends, np.int64), np.array(doc, np.int32))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __repr__(self) -> str:
        return f"<DocumentLists: {len(self.doc):,} documents listed for {self.listed():,} of {len(self):,} queries>"

    def listed(self) -> int:
        """Return the number of queries with a nonempty list."""
        return int(np.count_nonzero(np.diff(self.ptr)))

    def lengths(self) -> Int64:
        return np.diff(self.ptr)

    def query_of_row(self) -> Int32:
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.ptr))

    def tolist(self) -> list[list[str]]:
        names = self.docs.tolist()
        return [[names[code] for code in self.doc[a:b].tolist()] for a, b in pairwise(self.ptr.tolist())]

    def take(self, codes: NDArray[np.integer]) -> DocumentLists:
        """Return the lists of the queries at these positions; -1 gives an empty list."""
        starts, lengths = np.append(self.ptr[:-1], 0)[codes], np.append(np.diff(self.ptr), 0)[codes]
        rows, _ = stretches(starts, starts + lengths)
        return DocumentLists(self.docs, offsets(lengths), self.doc[rows])

    def codes_in(self, ids: Ids) -> Int32:
        """Return the position in `ids` of each listed document, int32[n]; -1 if absent."""
        codes: Any = ids.codes(self.docs.strings)
        return codes[self.doc] if len(self.doc) else np.zeros(0, np.int32)


# Metadata of documents as fields: one column for each name, of texts, numbers, or lists of texts.

FieldKind: TypeAlias = Literal["text", "number", "list"]
Scalar: TypeAlias = str | int | float

LIST_SEPARATOR = "\x1f"
"""Separates the values of a list in its text (Unicode's unit separator); in values it becomes a blank."""
EXACT_INTEGER = 1 << 53
"""From here on a double does not hold every whole number; fields with such numbers are stored as texts."""
SHOWN_FIELDS = 30
FIELD_BLOCK_DOCUMENTS = 4096


@dataclass(frozen=True, eq=False)
class FieldColumn:
    """The values of one field for every document."""

    text: StringColumn
    """n texts, "" for no value; numbers as text, the values of a list joined by LIST_SEPARATOR."""
    number: Float64 | None = None
    """float64[n], NaN for no value; None unless all values are numbers (true is 1)."""
    many: bool = False
    """True if a document may have several values."""
    digest: str = ""
    """Hash of the values, part of the keys of stored results."""

    @property
    def kind(self) -> FieldKind:
        """ "text", "number" or "list"."""
        return "list" if self.many else "text" if self.number is None else "number"


class DocumentFields(Protocol):
    """Metadata of documents: one column of values for each field."""

    def names(self) -> tuple[str, ...]:
        """Return the sorted names of all fields; nested keys are joined by dots."""

    def column(self, name: str) -> FieldColumn:
        """Return a field's value for every document. Raises UnknownName if no document has it."""


def unknown_field(name: str, names: Sequence[str]) -> UnknownName:
    """Return the error for a field that no document has."""
    return UnknownName("field of these documents", name, names[:SHOWN_FIELDS], all_known=True)


def flattened(record: Mapping[str, object]) -> dict[str, tuple[list[Scalar], bool]]:
    """Return {field: (values, True if from a list)} of one document's metadata, without null, "" and infinite values.

    {"author": {"name": "Ada"}} becomes author.name.
    """
    fields: dict[str, tuple[list[Scalar], bool]] = {}
    waiting: list[tuple[str, object, bool]] = []
    for key, value in record.items():  # most are plain, and are many
        if isinstance(value, (str, int, float)):
            if _is_value(value):
                fields[str(key)] = [value], False
        elif value is not None:
            waiting.append((str(key), value, False))
    waiting.reverse()
    while waiting:
        name, value, many = waiting.pop()
        if isinstance(value, (str, int, float)):
            if _is_value(value):
                values, before = fields.get(name, ([], False))
                fields[name] = [*values, value], many or before or bool(values)
        else:
            waiting += _inner_values(name, value, many)
    return fields


def _inner_values(name: str, value: object, many: bool) -> list[tuple[str, object, bool]]:
    if isinstance(value, (list, tuple, Sequence)):  # the quick answers first
        return [(name, inner, True) for inner in reversed(value)]
    if isinstance(value, (dict, Mapping)):
        return [(f"{name}.{key}", inner, many) for key, inner in reversed(list(value.items()))]
    return []


def _is_value(value: Scalar) -> bool:
    return value != "" and not (isinstance(value, float) and not math.isfinite(value))


@dataclass(frozen=True, eq=False)
class KindsSeen:
    """The kinds of values seen so far in each field."""

    lists: dict[str, bool] = field(default_factory=dict)
    """{field: True if a document had a list}."""
    texts: dict[str, bool] = field(default_factory=dict)
    """{field: True if a value was not an exact number}."""

    def add(self, document: Mapping[str, tuple[list[Scalar], bool]]) -> None:
        for name, (values, many) in document.items():
            self.lists[name] = self.lists.get(name, False) or many
            self.texts[name] = self.texts.get(name, False) or not all(map(_exact, values))

    def kinds(self) -> dict[str, FieldKind]:
        """Return {field: "list", "number" or "text"}, sorted by field."""
        return {
            name: "list" if self.lists[name] else "text" if self.texts[name] else "number"
            for name in sorted(self.lists)
        }


def _exact(value: Scalar) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < EXACT_INTEGER)


def cells(
    documents: Iterable[Mapping[str, tuple[list[Scalar], bool]]], name: str, kind: FieldKind
) -> tuple[Strings, Float64]:
    """Return (texts, numbers float64) of one field for each document; "" and NaN if it lacks the field.

    All numbers are NaN unless `kind` is "number".
    """
    texts: list[str] = []
    numbers: list[float] = []
    for document in documents:
        values, _ = document.get(name, ([], False))
        texts.append(LIST_SEPARATOR.join(map(_written_value, values)))
        numbers.append(float(values[0]) if values and kind == "number" else math.nan)
    return Strings.of(texts), np.array(numbers, np.float64)


def records(fields: DocumentFields, documents: int) -> Iterator[dict[str, object]]:
    """Yield {field: text, number or list of texts} for each document, without fields that it lacks."""
    columns = [(name, fields.column(name)) for name in fields.names()]
    for start in range(0, documents, FIELD_BLOCK_DOCUMENTS):
        stop = min(start + FIELD_BLOCK_DOCUMENTS, documents)
        held = [(name, column.kind, column.text.slice(start, stop).tolist()) for name, column in columns]
        for number in range(stop - start):
            found = ((name, kind, texts[number]) for name, kind, texts in held)
            yield {name: _field_value(text, kind) for name, kind, text in found if text}


def _field_value(text: str, kind: FieldKind) -> object:
    return text.split(LIST_SEPARATOR) if kind == "list" else json.loads(text) if kind == "number" else text


def _written_value(value: Scalar) -> str:
    if isinstance(value, str):
        return value.replace(LIST_SEPARATOR, " ")
    return str(value).lower() if isinstance(value, bool) else repr(value)


@dataclass(frozen=True, eq=False)
class HeldFields:
    """Metadata of documents in memory, in corpus order."""

    documents: Sequence[Mapping[str, tuple[list[Scalar], bool]]]
    kinds: Mapping[str, FieldKind]

    @staticmethod
    def of(records: Sequence[Mapping[str, object]]) -> HeldFields:
        """Return the metadata of documents in memory; invalid Unicode raises BadValue only once its field is read."""
        documents, kinds = [flattened(record) for record in records], KindsSeen()
        for document in documents:
            kinds.add(document)
        return HeldFields(documents, kinds.kinds())

    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    def column(self, name: str) -> FieldColumn:
        if name not in self.kinds:
            raise unknown_field(name, self.names())
        kind = self.kinds[name]
        texts, numbers = cells(self.documents, name, kind)
        digest = hashlib.sha256(kind.encode() + texts.ptr.tobytes() + texts.data.tobytes()).hexdigest()[:32]
        return FieldColumn(texts, numbers if kind == "number" else None, kind == "list", digest)


NO_FIELDS = HeldFields((), {})

# Which documents count, said by their fields: lang == "en" and year >= 2020.
#
# A filter is read as a syntax tree of bounded size and never evaluated. It holds
#
#     field == value, !=, <, <=, >, >=     2018 <= year < 2021 too; texts compare by their characters, as ISO dates do
#     field in [value, ...], not in        one of these values
#     value in field, not in               a list that holds it, a text that contains it
#     field                                a document that has it, and not false or 0
#     and, or, not, ( )
#
# A value is a text in quotes, a number, true or false. Of a list, one value that fits is enough. A document without
# the field fits no comparison, so that != and not take it in. A name that is no identifier is written field("its
# name").

MOST_CHARACTERS = 16_384
MOST_LEVELS = 64
LARGEST = 1 << 63  # no number of a filter reaches it
FILTER_BLOCK_DOCUMENTS = 1 << 14
"""Documents tested at a time."""

LiteralValue: TypeAlias = str | int | float | bool
Mask: TypeAlias = NDArray[np.bool_]
Test: TypeAlias = Callable[["_Block"], Mask]
"""A function that returns, for a block of documents, which of them pass."""

ORDERED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


class FieldSource(Protocol):
    """Documents with fields to filter by, such as a Corpus."""

    @property
    def ids(self) -> Ids:
        """Identifiers of all documents, in the order of field values."""

    def field(self, name: str) -> FieldColumn:
        """Return a field's value for every document. Raises UnknownName if no document has it."""


@dataclass(frozen=True)
class DocumentFilter:
    """A parsed filter on document fields."""

    text: str
    """Normal form, which parses back to an equal filter."""
    fields: tuple[str, ...]
    """Fields that it reads, sorted."""

    def __str__(self) -> str:
        return self.text

    def mask(self, documents: FieldSource) -> Mask:
        """Return True for each document that passes, bool[documents]; without a field it passes only `!=` on it.

        Raises UnknownName for a field that no document has, BadValue for a value of another kind than its field.
        """
        columns = {name: documents.field(name) for name in self.fields}
        reader = _Reader(self.text)
        fits = reader.test(_tree(self.text), 0)
        fits(_Block(columns, 0, 0))  # kinds of fields and values are compared first
        fitting = np.zeros(len(documents.ids), np.bool_)
        for start in range(0, len(fitting), FILTER_BLOCK_DOCUMENTS):
            stop = min(start + FILTER_BLOCK_DOCUMENTS, len(fitting))
            fitting[start:stop] = fits(_Block(columns, start, stop))
        return fitting


def parse_filter(text: str) -> DocumentFilter:
    """Return the filter in a text such as 'lang == "en" and year >= 2020' (docs/collections.md).

    Raises BadValue for an invalid, empty or too long text.
    """
    if not isinstance(text, str) or not text.strip():
        raise BadValue(f"""filter is {text!r}; expected such as 'lang == "en" and year >= 2020'""")
    if len(text) > MOST_CHARACTERS:
        raise BadValue(f"a filter of {len(text):,} characters; expected at most {MOST_CHARACTERS:,}")
    tree = _tree(text)
    reader = _Reader(text)
    reader.test(tree, 0)
    return DocumentFilter(ast.unparse(tree), tuple(sorted(reader.fields)))


def _tree(text: str) -> ast.expr:
    try:
        return syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_filter(text) from None


def _no_filter(text: str, what: str = "") -> BadValue:
    excerpt = text if len(text) <= 80 else text[:77] + "..."
    return BadValue(
        f"""filter '{excerpt}' {what or "cannot be read"}; expected such as lang == "en" and year >= 2020"""
    )


class _Block:
    def __init__(self, columns: dict[str, FieldColumn], start: int, stop: int) -> None:
        self.columns, self.start, self.stop = columns, start, stop
        self._texts: dict[str, list[str]] = {}

    def values_of(self, name: str) -> list[str]:
        if name not in self._texts:
            self._texts[name] = self.columns[name].text.slice(self.start, self.stop).tolist()
        return self._texts[name]

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        number = self.columns[name].number
        return None if number is None else number[self.start : self.stop]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: set[str] = set()

    def test(self, node: ast.expr, level: int) -> Test:
        if level > MOST_LEVELS:
            raise _no_filter(self.text, f"has more than {MOST_LEVELS} levels")
        if isinstance(node, ast.BoolOp):
            parts = [self.test(one, level + 1) for one in node.values]
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return lambda block: join.reduce([part(block) for part in parts])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            part = self.test(node.operand, level + 1)
            return lambda block: ~part(block)
        if isinstance(node, ast.Compare):
            ends = [node.left, *node.comparators]
            links = [self._link(a, op, b) for a, op, b in zip(ends, node.ops, ends[1:], strict=False)]
            return lambda block: np.logical_and.reduce([link(block) for link in links])
        name = self._field(node)
        if name is None:
            raise _no_filter(self.text, f"holds {ast.unparse(node)[:40]}, which says nothing of a document")
        return lambda block: _present(block, name)

    def _link(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Test:
        names = self._field(left), self._field(right)
        if (names[0] is None) == (names[1] is None):
            pair = ast.unparse(ast.Compare(left, [op], [right]))[:60]
            raise _no_filter(self.text, f"compares {pair}: a field with a value is wanted")
        name, value = names[0] or names[1] or "", self._value(right if names[0] else left)
        within = isinstance(op, (ast.In, ast.NotIn))
        if within == isinstance(value, list) if names[0] else not isinstance(value, list):
            test = self._compared(name, op, value, names[0] is None)
            if test is not None:
                return test
        raise _no_filter(self.text, f"compares {ast.unparse(ast.Compare(left, [op], [right]))[:60]}")

    def _compared(
        self, name: str, op: ast.cmpop, value: LiteralValue | list[LiteralValue], mirrored: bool
    ) -> Test | None:
        if isinstance(op, (ast.In, ast.NotIn)):
            values = value if isinstance(value, list) else [value]
            holds: Test = (
                (lambda block: _holds(block, name, values[0]))
                if mirrored
                else lambda block: np.logical_or.reduce([_fits(block, name, operator.eq, v) for v in values])
            )
            return holds if isinstance(op, ast.In) else lambda block: ~holds(block)
        kind = MIRRORED.get(type(op), type(op)) if mirrored else type(op)
        if kind not in ORDERED or isinstance(value, list):
            return None
        if kind is ast.NotEq:
            return lambda block: ~_fits(block, name, operator.eq, value)
        return lambda block: _fits(block, name, ORDERED[kind], value)

    def _field(self, node: ast.expr) -> str | None:
        name = None
        if isinstance(node, ast.Name) and node.id not in ("true", "false"):
            name = node.id
        elif isinstance(node, ast.Attribute):
            before = self._field(node.value)
            name = None if before is None else f"{before}.{node.attr}"
            self.fields.discard(before or "")
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "field"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            name = node.args[0].value
        if name is not None:
            self.fields.add(name)
        return name

    def _value(self, node: ast.expr) -> LiteralValue | list[LiteralValue]:
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            return [one for one in map(self._value, node.elts) if not isinstance(one, list)]
        if isinstance(node, ast.Name):
            return node.id == "true"
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError):
            value = None
        endless = isinstance(value, (int, float)) and not abs(value) < LARGEST
        if endless or not isinstance(value, (str, int, float)):
            raise _no_filter(self.text, f"holds {ast.unparse(node)[:40]}, which is no text and no number")
        return value


def _present(block: _Block, name: str) -> Mask:
    number = block.numbers(name)
    if number is not None:
        present: Mask = (number != 0) & ~np.isnan(number)
        return present
    return np.array([bool(text) for text in block.values_of(name)], np.bool_)


def _holds(block: _Block, name: str, value: LiteralValue) -> Mask:
    column = block.columns[name]
    if column.many:
        return _fits(block, name, operator.eq, value)
    if column.number is not None or not isinstance(value, str):
        raise BadValue(f"filter: {value!r} in {name} asks for a text in a text; {name} is a {column.kind}")
    return np.array([value in text for text in block.values_of(name)], np.bool_)


def _fits(block: _Block, name: str, compare: Callable[[Any, Any], Any], value: LiteralValue) -> Mask:
    number, column = block.numbers(name), block.columns[name]
    if number is not None and not isinstance(value, str):
        with np.errstate(invalid="ignore"):
            fitting: Mask = compare(number, float(value))
            return fitting
    if column.many and compare is operator.eq:  # a list's numbers stand as texts, 5 and 5.0
        texts, spelled = block.values_of(name), {_written_value(value)}
        if not isinstance(value, (str, bool)):
            spelled |= {repr(one) for one in (int(value), float(value), -float(value)) if one == value}
        return np.array(
            [bool(t) and not spelled.isdisjoint(t.split(LIST_SEPARATOR)) for t in texts], np.bool_
        )
    if number is not None or not isinstance(value, str):
        kind = "a text" if isinstance(value, str) else "a number"
        raise BadValue(f"filter: {name} is a {column.kind} in these documents; {value!r} is {kind}")
    texts = block.values_of(name)
    if column.many:
        return np.array(
            [any(compare(v, value) for v in t.split(LIST_SEPARATOR) if v) for t in texts], np.bool_
        )
    return np.array([bool(text) and compare(text, value) for text in texts], np.bool_)


# For each query which of all documents may be ranked, where many documents may and many queries agree.


def filter_fields(filters: Iterable[str]) -> tuple[str, ...]:
    """Return the sorted names of the fields that these filters read; "" is no filter. Raises BadValue for an invalid
    filter.
    """
    return tuple(sorted({name for text in set(filters) if text for name in parse_filter(text).fields}))


@dataclass(frozen=True, eq=False, repr=False)
class DocumentMasks:
    """The documents that each query may rank, as a bit mask for each distinct filter."""

    docs: Ids
    """All N documents."""
    bits: tuple[Bytes, ...]
    """uint8[ceil(N / 8)] for each filter, from np.packbits."""
    of_query: Int32
    """int32[Q]: number of each query's filter; -1 permits all documents."""

    @staticmethod
    def every(docs: Ids, queries: int) -> DocumentMasks:
        """Return masks that permit all documents to each query."""
        return DocumentMasks(docs, (), np.full(queries, -1, np.int32))

    @staticmethod
    def of(filters: Sequence[str], documents: FieldSource) -> DocumentMasks:
        """Return the masks of documents that pass each query's filter; "" permits all.

        Raises BadValue for an invalid filter, UnknownName for an unknown field.
        """
        texts = [str(parse_filter(text)) if text else "" for text in filters]
        number = {text: at for at, text in enumerate(dict.fromkeys(filter(None, texts)))}
        bits = tuple(np.packbits(parse_filter(text).mask(documents)) for text in number)
        return DocumentMasks(documents.ids, bits, np.array([number.get(t, -1) for t in texts], np.int32))

    def __len__(self) -> int:
        return len(self.of_query)

    def __repr__(self) -> str:
        return (
            f"<DocumentMasks: {len(self.bits)} over {len(self.docs):,} documents for {len(self):,} queries>"
        )

    def lengths(self) -> Int64:
        """Return the number of documents permitted to each query, int64[Q]."""
        every = [int(np.unpackbits(row).sum(dtype=np.int64)) for row in self.bits]
        return np.array([*every, len(self.docs)], np.int64)[self.of_query]

    def take(self, codes: NDArray[np.integer]) -> DocumentMasks:
        """Return the masks of the queries at these positions; -1 permits all documents."""
        return replace(self, of_query=np.append(self.of_query, np.int32(-1))[codes])

    def restricted_to(self, mask: NDArray[np.bool_]) -> DocumentMasks:
        """Return masks that also forbid the documents marked False in `mask`, bool[N]."""
        bits = np.packbits(mask)
        of_query = np.where(self.of_query < 0, len(self.bits), self.of_query).astype(np.int32)
        return replace(self, bits=(*(row & bits for row in self.bits), bits), of_query=of_query)

    def allow(self, query: NDArray[np.integer], doc: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return True for each permitted pair (query[i], doc[i]), bool[n].

        doc: positions in `docs`; -1, an unknown document, passes only without a filter.
        """
        allowed = np.ones(len(doc), np.bool_)
        rule = self.of_query[query]
        for number, row in enumerate(self.bits):
            at = np.flatnonzero(rule == number)
            allowed[at] = (row[doc[at] >> 3] >> (7 - (doc[at] & 7)) & 1).astype(np.bool_) & (doc[at] >= 0)
        return allowed
