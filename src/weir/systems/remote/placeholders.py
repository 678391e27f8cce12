"""How a request is filled in, and an answer taken apart: values go into a tree or an address, never into its syntax."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from weir.errors import BadValue, UnknownName

__all__ = ["ABSENT", "ESCAPES", "JsonPath", "filled", "filled_path", "filled_text", "names_in"]

Json: TypeAlias = Any
Values: TypeAlias = Mapping[str, Json]

_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(?:\|([a-z]+))?\}")
_STEP = re.compile(r"\.?(?:([^.\[\]']+)|\['([^']+)'\]|\[(-?\d+)\])")
_OPERATORS = re.compile(r"\b(AND|OR|NOT|TO)\b")
_SPECIAL = re.compile(r'([+\-&|!(){}\[\]^"~*?:\\/<>=])')


class _Absent:
    """What is not there."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()
"""In place of a value that a request leaves out, or an answer does not have."""


def _lucene(value: Json) -> str:
    return _OPERATORS.sub(r"\\\1", _SPECIAL.sub(r"\\\1", str(value)))


ESCAPES: Mapping[str, Callable[[Json], str]] = {
    "json": lambda value: json.dumps(value, ensure_ascii=False),
    "lucene": _lucene,
}
"""How a value is written within a text of another language: as a JSON literal, or as words of Lucene's syntax."""


def names_in(tree: Json) -> Iterator[tuple[str, str | None]]:
    """(name, escape) of every placeholder in the texts of a tree."""
    if isinstance(tree, str):
        yield from ((match[1], match[2]) for match in _PLACE.finditer(tree))
    elif isinstance(tree, (dict, list)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from names_in(part)


def filled(tree: Json, values: Values) -> Json:
    """A tree of JSON with its placeholders filled in; keys stay as they are.

    A text that is a placeholder alone becomes its value, whatever its type, and is left out where that is ABSENT;
    within a longer text a value is written as text. Raises UnknownName as `filled_text`.
    """
    if isinstance(tree, dict):
        found = {key: filled(part, values) for key, part in tree.items()}
        return {key: part for key, part in found.items() if part is not ABSENT}
    if isinstance(tree, list):
        return [part for part in (filled(part, values) for part in tree) if part is not ABSENT]
    if not isinstance(tree, str):
        return tree
    alone = _PLACE.fullmatch(tree)
    if alone is not None and alone[2] is None:
        return _known(alone[1], values)
    return filled_text(tree, values)


def filled_text(text: str, values: Values) -> str:
    """A text with its placeholders filled in.

    {name|json} writes a value as a JSON literal, {name|lucene} without the special characters of Lucene's query syntax.
    Raises UnknownName for a value or an escape that does not exist.
    """

    def one(match: re.Match[str]) -> str:
        value, escape = _known(match[1], values), match[2]
        if escape is None:
            return "" if value is ABSENT else str(value)
        if escape not in ESCAPES:
            raise UnknownName("escape of a placeholder", escape, ESCAPES)
        return ESCAPES[escape](value)

    return _PLACE.sub(one, text)


def filled_path(text: str, values: Values) -> str:
    """The path of an address, each value percent-encoded whole; raises UnknownName as `filled_text`."""
    return _PLACE.sub(lambda match: quote(str(_known(match[1], values)), safe=""), text)


def _known(name: str, values: Values) -> Json:
    if name not in values:
        raise UnknownName("placeholder", name, values)
    return values[name]


@dataclass(frozen=True)
class JsonPath:
    """A place in an answer, such as `hits.hits`, `_source['doc.id']` or `hits[-1].sort`."""

    text: str
    steps: tuple[str | int, ...]

    @staticmethod
    def of(text: str) -> JsonPath:
        """Read a path; raises BadValue for what is none."""
        steps: list[str | int] = []
        at = 0
        while at < len(text):
            match = _STEP.match(text, at)
            if match is None:
                raise BadValue(f"'{text}' is no path of an answer; expected such as hits.hits or hits[0].id")
            steps.append(int(match[3]) if match[3] is not None else match[1] or match[2])
            at = match.end()
        return JsonPath(text, tuple(steps))

    def find(self, value: Json) -> Json:
        """What stands there, ABSENT where nothing does."""
        for step in self.steps:
            if isinstance(step, str):
                value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
            else:
                there = isinstance(value, list) and -len(value) <= step < len(value)
                value = value[step] if there else ABSENT
        return value

    def column(self, values: list[Json]) -> list[Json]:
        """What stands there in each of some values."""
        if len(self.steps) == 1 and isinstance(self.steps[0], str) and set(map(type, values)) <= {dict}:
            step = self.steps[0]
            return [value.get(step, ABSENT) for value in values]
        return [self.find(value) for value in values]
