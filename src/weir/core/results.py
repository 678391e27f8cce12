"""Kinds of results: for each the class of its values, the tables that show them, and their plain fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from weir.core.frames import plain
from weir.core.tables import Table, notebook_html, written
from weir.errors import BadValue

TablesOf: TypeAlias = Callable[[Sequence[Any]], tuple[Table, ...]]
Records: TypeAlias = Callable[[Any], Iterable[Mapping[str, object]]]
F = TypeVar("F", bound=TablesOf)


def _one_record(value: object) -> tuple[Mapping[str, object], ...]:
    return (plain(value),)


class Result(Protocol):
    """What functions of the face return: tables, and what has to be said beside them."""

    def tables(self) -> tuple[Table, ...]:
        """The tables that show it."""
        ...

    def notes(self) -> tuple[object, ...]:
        """The notes below them."""
        ...


def result_text(result: Result) -> str:
    """A result as it prints: the method `__repr__` of every class of results."""
    return written(result.tables(), "text", notes=result.notes())


def result_html(result: Result) -> str:
    """A result as notebooks show it: the method `_repr_html_` of every class of results."""
    return notebook_html(result.tables(), result.notes())


@dataclass(frozen=True)
class ResultKind:
    """How results of one kind are shown.

    of: their class; tables: of several of them, for a terminal; page: the same for Markdown and LaTeX; html: the same
    for a notebook or a page; parts: the field whose members are the lines of a frame, "" for the result itself; passed:
    the field or property that must hold, "" where no result can fail; records: the JSON objects of one result; csv: the
    lines of one result in CSV, None for the plain fields that a frame has.
    """

    of: type
    tables: TablesOf
    page: TablesOf
    html: TablesOf
    parts: str = ""
    passed: str = ""
    records: Records = _one_record
    csv: Records | None = None


RESULTS: dict[str, ResultKind] = {}
"""The kinds by name. Each is registered when the module of its tables is imported."""


def result(
    kind: str,
    of: type,
    *,
    page: TablesOf | None = None,
    html: TablesOf | None = None,
    parts: str = "",
    passed: str = "",
    records: Records = _one_record,
    csv: Records | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as the tables of a kind of results; other arguments as in `ResultKind`.

    Raises BadValue for a kind that another class has.
    """

    def registered(tables: F) -> F:
        if kind in RESULTS:
            raise BadValue(f"two classes are results of the kind '{kind}'")
        RESULTS[kind] = ResultKind(
            of, tables, page or tables, html or page or tables, parts, passed, records, csv
        )
        return tables

    return registered


def json_lines(records: Iterable[Mapping[str, object]]) -> str:
    """One JSON object for each record, at full precision; a number that is undefined is null."""
    return "\n".join(json.dumps(plain(record), ensure_ascii=False) for record in records)
