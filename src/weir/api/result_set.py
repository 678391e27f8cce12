"""Results of API functions, to print, save and turn into frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from weir.argument_types import checked, named_arguments
from weir.core import frames, results
from weir.core.frames import json_value, rebuilt
from weir.core.results import Outcome, ResultKind, TablesOf, json_lines
from weir.core.scores import Note, decisive_first
from weir.core.tables import Table, csv_text, notebook_html, tables_as_text
from weir.errors import BadValue, FormatError, UnknownName, WeirError, printable_text
from weir.files.atomic import write_text
from weir.files.json_record import parse_json
from weir.files.paths import path_of
from weir.files.text_files import read_bytes
from weir.measures.measure import canonical_name
from weir.registry import Registry

if TYPE_CHECKING:
    import os

    from weir.api.charts import Figure
    from weir.core.charts import Chart


T = TypeVar("T")
SAVED_FORMS = {".json": None, "": None, ".csv": "csv", ".tex": "latex", ".md": "markdown", ".html": "html"}
"""The form of results in a file, by the file's ending; None is JSON, which `ResultSet.load` reads."""


KINDS: Registry[ResultKind[Any]] = Registry("result")
"""Kinds of results, by their names in saved results."""


@dataclass(frozen=True, repr=False)
class ResultSet(Sequence[T], Generic[T]):
    """A sequence of results of one kind, which prints like the output of its command.

    Indexed by number, or by a measure. True if nothing failed or is undecided, as in `assert weir.gate(...)`; for
    kinds that cannot fail, if there is any result.
    """

    kind: ResultKind[T]
    items: tuple[T, ...]
    remarks: tuple[Note, ...] = ()
    left_out: tuple[Note, ...] = ()
    """A note for each input that could not be read or scored."""
    maker: TablesOf | None = field(default=None, compare=False)
    """Makes the tables from more than the items, with the options of the kind; None if the items suffice."""
    pages: tuple[Table, ...] = field(default=(), compare=False)
    """The tables of a notebook or a page, where they differ from those of a terminal."""

    @overload
    def __getitem__(self, which: int | str) -> T: ...
    @overload
    def __getitem__(self, which: slice) -> ResultSet[T]: ...
    def __getitem__(self, which: object) -> T | ResultSet[T]:
        """Return a result by number or measure, or several by a slice; raises UnknownName for a measure without a
        result.
        """
        if isinstance(which, slice):
            return ResultSet(self.kind, self.items[which], self.remarks, self.left_out)
        if isinstance(which, int):
            return self.items[which]
        return self._of_measure(str(which))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return self.outcome == "pass" if self.kind.outcome else len(self.items) > 0

    @property
    def outcome(self) -> Outcome:
        """Return "fail" if a result failed, else "undecided" if one is undecided, else "pass"."""
        of = self.kind.outcome
        outcomes = {of(one) for one in self.items} if of else set[Outcome]()
        return "fail" if "fail" in outcomes else "undecided" if "undecided" in outcomes else "pass"

    __repr__ = results.result_text

    def _repr_html_(self) -> str:
        return notebook_html(self.tables("html"), self.notes())

    def to_dict(self) -> dict[str, Any]:
        """Return {"weir": kind, "results": plain dicts}, and "notes" if there are any."""
        values = {"weir": self.kind.name, "results": [json_value(one) for one in self.items]}
        return values | {"notes": [json_value(note) for note in self.notes()]} if self.notes() else values

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """Return {field: values}, with a row for each result or each of its parts (pair, effect, query)."""
        names, lines = self._fields(results.LEADING)
        columns = frames.columns_of(lines)
        return {name: columns[name] for name in names}

    def tables(self, form: str = "text", options: Mapping[str, object] | None = None) -> tuple[Table, ...]:
        """Return the tables for a form: text, markdown, latex or html; () without results.

        options: settings of these tables, such as {"long": True}; ignored if a form has its own tables.
        """
        if form == "html" and self.pages:
            return self.pages
        if self.kind.explained and form != "text":
            options = {**(options or {}), "explain": True}
        if self.maker is not None:
            return self.maker(**options or {})
        page = self.kind.page if form != "html" else self.kind.html or self.kind.page
        if not self.items:
            return ()
        return (
            self.kind.tables(self.items, **options or {})
            if form == "text" or page is None
            else page(self.items)
        )

    def notes(self) -> tuple[Note, ...]:
        """Return the notes printed with the results, decisive ones first, notes on omitted inputs last."""
        return (*decisive_first(self.remarks), *self.left_out)

    def charts(self) -> tuple[Chart, ...]:
        """Return the charts; raises BadValue for a kind without charts, and if there is nothing to draw."""
        from weir.api.charts import charts

        return charts(self.kind.name, self.items)

    def plot(self) -> Figure:
        """Return the charts as a figure for notebooks and files; raises the errors of `charts`."""
        from weir.api.charts import Figure

        return Figure(self.charts())

    def shown(
        self,
        form: str = "text",
        width: int | None = None,
        colour: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> str:
        """Return the results as text, json, csv, latex, markdown or an html page, with decisive notes in latex
        and markdown, the others as comments in latex.

        width, colour: the terminal's width and whether it has colours, for text.
        options: of the tables, such as {"long": True}.

        Raises UnknownName for another form.
        """
        if form == "json":
            return json_lines(record for one in self.items for record in self.kind.records(one))
        if form == "csv":
            names, lines = self._fields(self.kind.columns)
            return csv_text([names, *([_cell(line.get(name)) for name in names] for line in lines)])
        tables = self.tables(form, options)
        said = {line for table in tables for line in table.notes}
        below = [note for note in self.notes() if form == "latex" or (form == "markdown" and note.decisive)]
        notes = [note for note in below if note.text not in said]
        if form == "latex" and (decisive := [str(note) for note in notes if note.decisive]):
            tables = (*tables, Table("", (), (), tuple(decisive)))
            notes = [note for note in notes if not note.decisive]
        return tables_as_text(tables, form, width, colour, self.kind.name, notes)

    @named_arguments
    def to_latex(self) -> str:
        """Return the tables as LaTeX."""
        return self.shown("latex")

    @named_arguments
    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return self.shown("markdown")

    @named_arguments
    def to_csv(self, *, raw: bool = False) -> str:
        """Return comma-separated values at full precision.

        raw: keep control characters and marks of text direction in data.
        """
        text = self.shown("csv")
        return text if raw else printable_text(text)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results as JSON at full precision, or as .csv, .tex, .md or .html, by the ending.

        Raises BadValue for another ending, StoreError if the file cannot be written.
        """
        target = path_of(path)
        ending = target.suffix.lower()
        if ending not in SAVED_FORMS:
            raise BadValue(f"{path}: results are saved as {', '.join(filter(None, SAVED_FORMS))}")
        form = SAVED_FORMS[ending]
        text = json.dumps(self.to_dict(), ensure_ascii=False) if form is None else self.shown(form)
        write_text(target, printable_text(text).rstrip("\n") + "\n")

    @staticmethod
    @checked
    def load(path: str | os.PathLike[str]) -> ResultSet[Any]:
        """Return the results that `save` wrote as JSON; raises FormatError for a missing or other file."""
        path = path_of(path)
        content = read_bytes(path)
        try:
            values = parse_json(content, path)
            kind = KINDS.get(values["weir"])
            notes = tuple(rebuilt(Note, one) for one in values.get("notes", ()))
            return ResultSet(kind, tuple(rebuilt(kind.of, one) for one in values["results"]), notes)
        except (ValueError, KeyError, TypeError, RecursionError, WeirError) as error:
            found = f"something else ({error})"
            raise FormatError(path, found, "results as ResultSet.save writes them") from None

    def _of_measure(self, name: str) -> T:
        measures = [getattr(one, "measure", None) for one in self.items]
        try:
            measure_name = name if name in measures else canonical_name(name)
        except WeirError:
            measure_name = name
        matching = [one for one, measure in zip(self.items, measures, strict=True) if measure == measure_name]
        if not matching:
            raise UnknownName("measure among these results", name, {m for m in measures if m is not None})
        if len(matching) > 1:
            raise BadValue(f"{len(matching)} of these results are of {measure_name}; take one by its number")
        return matching[0]

    def _fields(self, first: Sequence[str]) -> tuple[list[str], list[Mapping[str, object]]]:
        kind = self.kind
        lines = [line for one in self.items for line in (kind.csv or partial(_lines, parts=kind.parts))(one)]
        names = dict.fromkeys(name for line in lines for name in line)
        return sorted(names, key=lambda name: first.index(name) if name in first else len(first)), lines


def _cell(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _lines(one: object, parts: str) -> Iterable[Mapping[str, object]]:
    own = _scalars(one)
    if not parts:
        return [own]
    members = [_scalars(member) for member in getattr(one, parts)]
    return [own | {f"{parts}.{k}" if k in own else k: v for k, v in member.items()} for member in members]


def _scalars(one: object) -> dict[str, object]:
    values = {field.name: getattr(one, field.name) for field in fields(one)}  # type: ignore[arg-type]  # one is a dataclass
    scalars = {
        name: v for name, v in values.items() if not (is_dataclass(v) or isinstance(v, (list, tuple, dict)))
    }
    for value in values.values():
        if is_dataclass(value):
            scalars = scalars | {k: v for k, v in _scalars(value).items() if k not in scalars}
    return scalars
