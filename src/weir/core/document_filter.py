"""Which documents count, said by their fields: lang == "en" and year >= 2020.

A filter is read as a syntax tree of bounded size and never evaluated. It holds

    field == value, !=, <, <=, >, >=     2018 <= year < 2021 too; texts compare by their characters, as ISO dates do
    field in [value, ...], not in        one of these values
    value in field, not in               a list that holds it, a text that contains it
    field                                a document that has it, and not false or 0
    and, or, not, ( )

A value is a text in quotes, a number, true or false. Of a list, one value that fits is enough. A document without the
field fits no comparison, so that != and not take it in. A name that is no identifier is written field("its name").
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.document_fields import LIST_SEPARATOR, FieldColumn, written_value
from weir.core.ids import Ids
from weir.errors import BadValue

__all__ = ["DocumentFilter", "FieldSource", "parse_filter"]

MOST_CHARACTERS = 16_384
MOST_LEVELS = 64
LARGEST = 1 << 63  # no number of a filter reaches it
BLOCK_DOCUMENTS = 1 << 14
"""Documents that are looked at together."""

Literal: TypeAlias = str | int | float | bool
Mask: TypeAlias = NDArray[np.bool_]
Test: TypeAlias = Callable[["_Block"], Mask]
"""Which documents of a block fit."""

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
    """Documents that have fields: a Corpus."""

    @property
    def ids(self) -> Ids:
        """Their identifiers."""
        ...

    def field(self, name: str) -> FieldColumn:
        """A field of each of them; raises UnknownName for one that none has."""
        ...


@dataclass(frozen=True)
class DocumentFilter:
    """A filter, ready to be asked of documents; text: as it prints and parses back; fields: those it reads."""

    text: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def mask(self, documents: FieldSource) -> Mask:
        """Which documents fit: bool[N].

        Raises UnknownName for a field that no document has, BadValue where a value is of another kind than the field.
        """
        columns = {name: documents.field(name) for name in self.fields}
        reader = _Reader(self.text)
        fits = reader.test(_tree(self.text), 0)
        fits(_Block(columns, 0, 0))  # kinds of fields and values are compared first
        found = np.zeros(len(documents.ids), np.bool_)
        for start in range(0, len(found), BLOCK_DOCUMENTS):
            stop = min(start + BLOCK_DOCUMENTS, len(found))
            found[start:stop] = fits(_Block(columns, start, stop))
        return found


def parse_filter(text: str) -> DocumentFilter:
    """A filter from its text; raises BadValue for what is none."""
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
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_filter(text) from None


def _no_filter(text: str, what: str = "") -> BadValue:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return BadValue(
        f"""filter '{shown}' {what or "cannot be read"}; expected such as lang == "en" and year >= 2020"""
    )


class _Block:
    """Some documents' values of the fields that a filter reads, each read once."""

    def __init__(self, columns: dict[str, FieldColumn], start: int, stop: int) -> None:
        self.columns, self.start, self.stop = columns, start, stop
        self._texts: dict[str, list[str]] = {}

    def texts(self, name: str) -> list[str]:
        """The field as texts, "" where there is none."""
        if name not in self._texts:
            self._texts[name] = self.columns[name].text.slice(self.start, self.stop).tolist()
        return self._texts[name]

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        """The field as numbers, NaN where there is none; None for a field of texts."""
        number = self.columns[name].number
        return None if number is None else number[self.start : self.stop]


class _Reader:
    """Reads a syntax tree as a test of documents; fields: those it names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: set[str] = set()

    def test(self, node: ast.expr, level: int) -> Test:
        """The test that a node stands for; raises BadValue for a node that stands for none."""
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
        """The test of `left op right`, one of which is a field and the other a value."""
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
        self, name: str, op: ast.cmpop, value: Literal | list[Literal], mirrored: bool
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
        """The field that a node names, None for a value."""
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

    def _value(self, node: ast.expr) -> Literal | list[Literal]:
        """A literal, or a list of them; raises BadValue for anything else."""
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
    """Documents that have a field, and not 0 or false in it."""
    number = block.numbers(name)
    if number is not None:
        found: Mask = (number != 0) & ~np.isnan(number)
        return found
    return np.array([bool(text) for text in block.texts(name)], np.bool_)


def _holds(block: _Block, name: str, value: Literal) -> Mask:
    """Documents whose list holds a value, or whose text contains it."""
    column = block.columns[name]
    if column.many:
        return _fits(block, name, operator.eq, value)
    if column.number is not None or not isinstance(value, str):
        raise BadValue(f"filter: {value!r} in {name} asks for a text in a text; {name} is a {column.kind}")
    return np.array([value in text for text in block.texts(name)], np.bool_)


def _fits(block: _Block, name: str, compare: Callable[[Any, Any], Any], value: Literal) -> Mask:
    """Documents of which a value compares so with another."""
    number, column = block.numbers(name), block.columns[name]
    if number is not None and not isinstance(value, str):
        with np.errstate(invalid="ignore"):
            found: Mask = compare(number, float(value))
            return found
    if column.many and compare is operator.eq:
        value = written_value(value)
    if number is not None or not isinstance(value, str):
        kind = "a text" if isinstance(value, str) else "a number"
        raise BadValue(f"filter: {name} is a {column.kind} in these documents; {value!r} is {kind}")
    texts = block.texts(name)
    if column.many:
        return np.array(
            [any(compare(v, value) for v in t.split(LIST_SEPARATOR) if v) for t in texts], np.bool_
        )
    return np.array([bool(text) and compare(text, value) for text in texts], np.bool_)
