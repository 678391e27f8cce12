"""Kinds of results: the class, tables and plain fields of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from weir.core.frames import json_value
from weir.core.tables import Table, notebook_html, tables_as_text

TablesOf: TypeAlias = Callable[..., tuple[Table, ...]]
Outcome: TypeAlias = Literal["pass", "fail", "undecided"]
Records: TypeAlias = Callable[[Any], Iterable[Mapping[str, object]]]
T = TypeVar("T")


def _one_record(value: object) -> tuple[Mapping[str, object], ...]:
    return (json_value(value),)


class Result(Protocol):
    """A result of a public function, shown as tables and notes."""

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that show the result."""

    def notes(self) -> tuple[object, ...]:
        """Return the notes below the tables."""


def result_text(result: Result) -> str:
    """Return a result's tables and notes as plain text."""
    return tables_as_text(result.tables(), "text", notes=result.notes())


def result_html(result: Result) -> str:
    """Return a result's tables and notes as HTML."""
    return notebook_html(result.tables(), result.notes())


LEADING = (
    *("dataset", "group", "measure", "system", "first", "second", "query", "mean", "before", "after"),
    *("difference", "low", "high", "p", "adjusted", "verdict", "outcome"),
)
"""First columns of a frame, in this order."""


@dataclass(frozen=True)
class ResultKind(Generic[T]):
    """How results of one class are printed and exported."""

    name: str
    """Name in saved results, for which an entry point in the group `weir.results` names the kind."""
    of: type[T]
    tables: TablesOf
    """Tables of several results, for a terminal; keyword arguments beyond the results are display options."""
    page: TablesOf | None = None
    """Tables for Markdown and LaTeX; None for those of a terminal."""
    explained: bool = False
    """True if `tables` takes the option `explain`, to say how the numbers were made; pages set it."""
    html: TablesOf | None = None
    """Tables for a notebook or a page; None for those of `page`."""
    parts: str = ""
    """Field whose members are the rows of a data frame; "" for the result itself."""
    outcome: Callable[[T], Outcome] | None = None
    """Outcome of one result; None if results cannot fail."""
    records: Records = _one_record
    """JSON objects of one result."""
    csv: Records | None = None
    """CSV rows of one result; None for the plain fields."""
    columns: tuple[str, ...] = LEADING
    """First columns of CSV, in this order."""

    def __post_init__(self) -> None:
        _KIND_OF.setdefault(self.of, self)


_KIND_OF: dict[type, ResultKind[Any]] = {}


def member_text(one: object) -> str:
    """Return a result's tables as text; the default repr for a class without ResultKind."""
    kind = _KIND_OF.get(type(one))
    return object.__repr__(one) if kind is None else tables_as_text(kind.tables((one,)), "text")


def member_html(one: object) -> str:
    """Return one result as HTML."""
    kind = _KIND_OF[type(one)]
    return notebook_html((kind.html or kind.page or kind.tables)((one,)), ())


def json_lines(records: Iterable[Mapping[str, object]]) -> str:
    """Return records as JSON lines at full precision; NaN becomes null."""
    return "\n".join(json.dumps(json_value(record), ensure_ascii=False) for record in records)
