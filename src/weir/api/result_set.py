"""What functions of the face return: results in order that print, show in notebooks, save and become frames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from weir.argument_types import checked
from weir.core import frames, results
from weir.core.frames import plain, rebuilt
from weir.core.results import RESULTS, ResultKind, json_lines
from weir.core.scores import Note
from weir.core.tables import Table, csv_text, notebook_html, written
from weir.errors import BadValue, FormatError, UnknownName, WeirError, printable_text
from weir.files.atomic import write_text
from weir.files.json_record import parse_json
from weir.files.paths import path_of
from weir.files.text_files import read_bytes
from weir.measures.measure import canonical_name

if TYPE_CHECKING:
    import os

    from weir.api.charts import Figure
    from weir.core.charts import Chart


T = TypeVar("T")
SAVED_FORMS = {".json": None, "": None, ".csv": "csv", ".tex": "latex", ".md": "markdown", ".html": "html"}
"""The form of results in a file, by its ending; None is what `ResultSet.load` reads."""


@dataclass(frozen=True, repr=False)
class ResultSet(Sequence[T], Generic[T]):
    """Results of one kind, in order; it prints as the command line prints them.

    By number, or by the name of a measure where one result is of it. It is true where nothing failed, so that
    `assert weir.gate(...)` does what it says. kind: as `core.results` has it; items: the results; remarks: what
    `notes()` returns.
    """

    kind: str
    items: tuple[T, ...]
    remarks: tuple[Note, ...] = ()

    @overload
    def __getitem__(self, which: int | str) -> T: ...
    @overload
    def __getitem__(self, which: slice) -> ResultSet[T]: ...
    def __getitem__(self, which: object) -> T | ResultSet[T]:
        """A result by its number or measure, or several; raises UnknownName for a measure that none has."""
        if isinstance(which, slice):
            return ResultSet(self.kind, self.items[which], self.remarks)
        if isinstance(which, int):
            return self.items[which]
        return self._of_measure(str(which))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __bool__(self) -> bool:
        """Whether nothing failed; of kinds that cannot fail, whether there is a result."""
        passed = _kind(self.kind).passed
        return all(getattr(one, passed) for one in self.items) if passed else len(self.items) > 0

    __repr__ = results.result_text

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return notebook_html(self.tables("html"), self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """{"weir": kind, "results": the results as plain dicts, "notes": where there are such}, as `save` writes it."""
        values = {"weir": self.kind, "results": [plain(one) for one in self.items]}
        return values | {"notes": [plain(note) for note in self.remarks]} if self.remarks else values

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """A column for each plain field, with a line for each result, or each pair, effect ... of them."""
        names, lines = self._fields()
        return {name: [line.get(name) for line in lines] for name in names}

    def tables(self, form: str = "text") -> tuple[Table, ...]:
        """The tables of these results in a form: text, markdown, latex or html."""
        kind = _kind(self.kind)
        tables = {"text": kind.tables, "html": kind.html}.get(form, kind.page)
        return tables(self.items) if self.items else ()

    def notes(self) -> tuple[Note, ...]:
        """What has to be said beside the results, as the command says it."""
        return self.remarks

    def charts(self) -> tuple[Chart, ...]:
        """The charts of these results; raises BadValue for a kind without, and for nothing to draw."""
        from weir.api.charts import charts

        return charts(self.kind, self.items)

    def plot(self) -> Figure:
        """The charts as a figure: a notebook shows it, `save` writes .svg, .png or .pdf; raises as `charts`."""
        from weir.api.charts import Figure

        return Figure(self.charts())

    def shown(
        self,
        form: str = "text",
        width: int | None = None,
        colour: bool = False,
        tables: Sequence[Table] | None = None,
    ) -> str:
        """The results as text, json, csv, latex, markdown or a whole page of html, without their notes.

        width, colour: of a terminal, for text; tables: others than those of the results, for all forms but json and
        csv. Raises UnknownName for another form.
        """
        kind = _kind(self.kind)
        if form == "json":
            return json_lines(record for one in self.items for record in kind.records(one))
        if form == "csv":
            if kind.csv is None:
                names, lines = self._fields()
            else:
                lines = [line for one in self.items for line in kind.csv(one)]
                names = list(dict.fromkeys(name for line in lines for name in line))
            return csv_text([names, *([_cell(line.get(name)) for name in names] for line in lines)])
        return written(self.tables(form) if tables is None else tables, form, width, colour, self.kind)

    def to_latex(self) -> str:
        """The results as LaTeX tables."""
        return self.shown("latex")

    def to_markdown(self) -> str:
        """The results as Markdown tables."""
        return self.shown("markdown")

    def to_csv(self, raw: bool = False) -> str:
        """Comma-separated values at full precision; of kinds without a table of their own, of their plain fields.

        raw: leave control characters and marks that turn text around, which come from data, as they are.
        """
        text = self.shown("csv")
        return text if raw else printable_text(text)

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results: JSON at full precision, or as the ending says .csv, .tex, .md or .html.

        Raises BadValue for another ending, StoreError when the disk refuses.
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
        """The results that `save` wrote; raises FormatError for another file."""
        path = path_of(path)
        try:
            values = parse_json(read_bytes(path), path)
            of = _kind(values["weir"]).of
            notes = tuple(rebuilt(Note, one) for one in values.get("notes", ()))
            return ResultSet(values["weir"], tuple(rebuilt(of, one) for one in values["results"]), notes)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, WeirError) as error:
            problem = "no such file" if isinstance(error, FileNotFoundError) else f"something else ({error})"
            raise FormatError(path, problem, "results as ResultSet.save writes them") from None

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

    def _fields(self) -> tuple[list[str], list[Mapping[str, object]]]:
        """The names of the plain fields, and their values on the lines of a frame."""
        parts = _kind(self.kind).parts
        lines = [line for one in self.items for line in _lines(one, parts)]
        return list(dict.fromkeys(name for line in lines for name in line)), lines


def _kind(name: str) -> ResultKind:
    """A kind of results; the modules of all kinds are imported where its own is not yet, and of plug-ins its own."""
    if name not in RESULTS:
        import weir.api.rows
        import weir.audit.check
        import weir.audit.subsets
        import weir.datasets.card
        import weir.experiment.alignment
        import weir.experiment.beside
        import weir.experiment.efficiency
        import weir.experiment.llm_answers
        import weir.experiment.plan
        import weir.experiment.published
        import weir.experiment.reproduce
        import weir.experiment.verify
        import weir.experiment.why
        import weir.experiment.why_engine
        import weir.labels.estimates
        import weir.labels.hole_study
        import weir.labels.judge_report
        import weir.labels.pools
        import weir.stats.birco
        import weir.stats.compare
        import weir.stats.factors
        import weir.stats.gate
        import weir.stats.label_agreement
        import weir.stats.order_agreement
        import weir.stats.paired_sets
        import weir.stats.power
        import weir.stats.query_differences
        import weir.stats.threshold  # noqa: F401  all of these register kinds
    if name not in RESULTS:
        from importlib.metadata import entry_points

        for point in entry_points(group="weir.results", name=name):
            point.load()
    return RESULTS[name]


def _cell(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _lines(one: object, parts: str) -> Iterable[Mapping[str, object]]:
    """The plain fields of a result, on a line for each of its parts where it has such."""
    own = _scalars(one)
    if not parts:
        return [own]
    members = [_scalars(member) for member in getattr(one, parts)]
    return [own | {f"{parts}.{k}" if k in own else k: v for k, v in member.items()} for member in members]


def _scalars(one: object) -> dict[str, object]:
    """The plain fields of a dataclass, then those of its dataclasses under names that are not taken."""
    values = {field.name: getattr(one, field.name) for field in fields(one)}  # type: ignore[arg-type]  # one is a dataclass
    scalars = {
        name: v for name, v in values.items() if not (is_dataclass(v) or isinstance(v, (list, tuple, dict)))
    }
    for value in values.values():
        if is_dataclass(value):
            scalars = _scalars(value) | scalars
    return scalars
