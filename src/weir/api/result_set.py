"""What functions of the face return: results in order that print, show in notebooks, save and become frames."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from weir.core.frames import ArrowTable, FrameLibrary, PandasFrame, PolarsFrame, frame_of, plain, rebuilt
from weir.core.results import RESULTS
from weir.core.rounding import count, score
from weir.core.scores import Note
from weir.core.tables import Cell, Table, csv_text, html_escaped, notes_html
from weir.errors import BadValue, FormatError, UnknownName, WeirError, printable_text
from weir.files.atomic import atomic_file
from weir.measures.measure import canonical_name

if TYPE_CHECKING:
    import os


T = TypeVar("T")


@dataclass(frozen=True)
class ResultKind:
    """How results of one kind are shown: the place of their class, and of functions of `report`, as "module:name".

    text: of all, or with `each` of one at a time; latex, markdown, csv, html: of all, "" where there is none; passed:
    the field or property that must hold for all, "" where no result can fail; parts: the field whose members are the
    lines of a frame, "" for the results themselves.
    """

    holds: str
    text: str
    each: bool = False
    latex: str = ""
    markdown: str = ""
    csv: str = ""
    html: str = ""
    passed: str = ""
    parts: str = ""


_REPORT = "weir.report."
KINDS = {
    "agree": ResultKind("weir.stats.label_agreement:Agreement", _REPORT + "agree:agree_text", parts="values"),
    "align": ResultKind(
        "weir.experiment.alignment:Alignment", _REPORT + "align:align_text", each=True, parts="systems"
    ),
    "audit": ResultKind(
        "weir.audit.check:Audit",
        _REPORT + "audit:audit_text",
        html=_REPORT + "audit:audit_html",
        parts="findings",
    ),
    "card": ResultKind("weir.datasets.card:CollectionCard", _REPORT + "collection:card_text", each=True),
    "compare": ResultKind(
        "weir.stats.compare:Comparison",
        _REPORT + "compare:compare_text",
        latex=_REPORT + "compare:compare_latex",
        markdown=_REPORT + "compare:compare_markdown",
        csv=_REPORT + "compare:compare_csv",
        html=_REPORT + "compare:compare_html",
        parts="pairs",
    ),
    "diff": ResultKind(
        "weir.stats.query_differences:QueryDifferences", _REPORT + "diff:diff_text", each=True
    ),
    "efficiency": ResultKind(
        "weir.experiment.efficiency:Efficiency",
        _REPORT + "efficiency:efficiency_text",
        latex=_REPORT + "efficiency:efficiency_latex",
        markdown=_REPORT + "efficiency:efficiency_markdown",
        csv=_REPORT + "efficiency:efficiency_csv",
        html=_REPORT + "efficiency:efficiency_html",
    ),
    "estimate": ResultKind("weir.labels.estimates:CorrectedScore", _REPORT + "estimate:estimate_text"),
    "factors": ResultKind(
        "weir.stats.factors:FactorStudy",
        _REPORT + "factors:factors_text",
        latex=_REPORT + "factors:factors_latex",
        markdown=_REPORT + "factors:factors_markdown",
        csv=_REPORT + "factors:factors_csv",
        html=_REPORT + "factors:factors_html",
        parts="effects",
    ),
    "gate": ResultKind(
        "weir.stats.gate:Gate",
        _REPORT + "gate:gate_text",
        markdown=_REPORT + "gate:gate_markdown",
        passed="harmless",
    ),
    "llm_trace": ResultKind(
        "weir.experiment.llm_answers:QueryTrace", _REPORT + "llm:trace_text", each=True, parts="exchanges"
    ),
    "llm_use": ResultKind("weir.experiment.llm_answers:ModelUse", _REPORT + "llm:use_text"),
    "judge": ResultKind("weir.labels.judge_report:JudgeReport", _REPORT + "judge:judge_text", parts="probes"),
    "holes": ResultKind("weir.labels.hole_study:HoleStudy", _REPORT + "holes:holes_text", parts="found"),
    "orders": ResultKind(
        "weir.stats.order_agreement:OrderAgreement", _REPORT + "agree:orders_text", parts="intervals"
    ),
    "official": ResultKind("weir.stats.birco:BircoScore", _REPORT + "birco:birco_text"),
    "next queries": ResultKind(
        "weir.labels.estimates:QueryPlan", _REPORT + "estimate:plan_text", each=True, parts="strata"
    ),
    "plan": ResultKind("weir.experiment.plan:Planned", _REPORT + "plan:plan_text"),
    "power": ResultKind(
        "weir.stats.power:PowerPlan",
        _REPORT + "power:power_text",
        each=True,
        html=_REPORT + "power:power_html",
        parts="needs",
    ),
    "raters": ResultKind(
        "weir.stats.label_agreement:ManyRaters", _REPORT + "agree:raters_text", parts="values"
    ),
    "relabel": ResultKind("weir.labels.pools:Relabelled", _REPORT + "relabel:relabel_text"),
    "reproduce": ResultKind("weir.experiment.reproduce:PublishedCheck", _REPORT + "reproduce:reproduce_text"),
    "reranking": ResultKind(
        "weir.plugins.sensitivity.reordering:Reordering",
        "weir.plugins.sensitivity.tables:reranking_text",
        markdown="weir.plugins.sensitivity.tables:reranking_markdown",
        parts="means",
    ),
    "results": ResultKind(
        "weir.core.scores:Row",
        _REPORT + "results_table:results_text",
        latex=_REPORT + "results_table:results_latex",
        markdown=_REPORT + "results_table:results_markdown",
        csv=_REPORT + "table:csv_table",
        html=_REPORT + "results_table:results_html",
    ),
    "sensitivity": ResultKind(
        "weir.plugins.sensitivity.studies:Sensitivity",
        "weir.plugins.sensitivity.tables:sensitivity_text",
        each=True,
        parts="depths",
    ),
    "subset": ResultKind("weir.audit.subsets:SubsetProof", _REPORT + "subset:subset_text", each=True),
    "threshold": ResultKind(
        "weir.stats.threshold:Threshold", _REPORT + "threshold:threshold_text", parts="curve"
    ),
    "verify": ResultKind(
        "weir.experiment.verify:Verdict", _REPORT + "verify:verify_text", passed="confirmed"
    ),
    "within": ResultKind("weir.stats.paired_sets:WithinGroups", _REPORT + "within_groups:measures_text"),
    "why": ResultKind("weir.experiment.why:Why", _REPORT + "why:why_text", each=True, parts="effects"),
}


@dataclass(frozen=True, repr=False)
class ResultSet(Sequence[T], Generic[T]):
    """Results of one kind, in order; it prints as the command line prints them.

    By number, or by the name of a measure where one result is of it. It is true where nothing failed, so that
    `assert weir.gate(...)` does what it says. kind: see KINDS; items: the results; notes: what has to be said beside
    them, as the command says it.
    """

    kind: str
    items: tuple[T, ...]
    notes: tuple[Note, ...] = ()

    @overload
    def __getitem__(self, which: int | str) -> T: ...
    @overload
    def __getitem__(self, which: slice) -> ResultSet[T]: ...
    def __getitem__(self, which: object) -> T | ResultSet[T]:
        """A result by its number or measure, or several; raises UnknownName for a measure that none has."""
        if isinstance(which, slice):
            return ResultSet(self.kind, self.items[which], self.notes)
        if isinstance(which, int):
            return self.items[which]
        return self._of_measure(str(which))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __bool__(self) -> bool:
        """Whether nothing failed; of kinds that cannot fail, whether there is a result."""
        passed = KINDS[self.kind].passed if self.kind in KINDS else ""
        return all(getattr(one, passed) for one in self.items) if passed else len(self.items) > 0

    def __repr__(self) -> str:
        if self.kind in RESULTS:
            body = "\n\n".join(table.text() for table in self.tables())
        else:
            kind = KINDS[self.kind]
            show = _opened(kind.text)
            shown = [show(one).strip("\n") for one in self.items] if kind.each else [str(show(self.items))]
            body = "\n\n".join(shown)
        below = "\n".join(map(str, self.notes))
        return f"{body.rstrip()}\n\n{below}" if below else body

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        if self.kind in RESULTS:
            return "\n".join(table.html() for table in self.tables()) + notes_html(map(str, self.notes))
        if place := KINDS[self.kind].html:
            html: str = _opened(place)(self.items)
            return html + notes_html(map(str, self.notes))
        lines = "\n".join(map(html_escaped, repr(self).split("\n")))
        return f'<pre style="line-height:1.35;white-space:pre-wrap">{lines}</pre>'

    def to_dict(self) -> dict[str, Any]:
        """{"weir": kind, "results": the results as plain dicts, "notes": where there are such}, as `save` writes it."""
        found = {"weir": self.kind, "results": [plain(one) for one in self.items]}
        return found | {"notes": [plain(note) for note in self.notes]} if self.notes else found

    @overload
    def to_frame(self, library: Literal["pandas"] = "pandas") -> PandasFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"]) -> PolarsFrame: ...
    @overload
    def to_frame(self, library: Literal["arrow"]) -> ArrowTable: ...
    def to_frame(self, library: FrameLibrary = "pandas") -> PandasFrame | PolarsFrame | ArrowTable:
        """A frame with a line for each result, or each pair, effect ... of them, and a column for each plain field.

        library: "pandas", "polars" or "arrow". Raises UnknownName for another, MissingExtra where it is not installed.
        """
        names, lines = self._fields()
        return frame_of({name: [line.get(name) for line in lines] for name in names}, library)

    def tables(self) -> tuple[Table, ...]:
        """The tables of these results; of kinds that have none of their own, one of their plain fields."""
        if self.kind in RESULTS:
            return RESULTS[self.kind].of.tables_of(self.items)
        names, lines = self._fields()
        texts = {name for name in names if any(isinstance(line.get(name), str) for line in lines)}
        header = sorted(names, key=lambda name: name not in texts)
        rows = tuple(tuple(Cell(_shown(line.get(name))) for name in header) for line in lines)
        return (Table("", tuple(header), rows, keys=len(texts)),)

    def to_latex(self) -> str:
        """The results as LaTeX tables."""
        return self._written("latex")

    def to_markdown(self) -> str:
        """The results as Markdown tables."""
        return self._written("markdown")

    def to_csv(self, raw: bool = False) -> str:
        """Comma-separated values at full precision; of kinds without a table of their own, of their plain fields.

        raw: leave control characters and marks that turn text around, which come from data, as they are.
        """
        text = self._written("csv")
        return text if raw else printable_text(text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results as JSON at full precision; raises StoreError when the disk refuses."""
        with atomic_file(Path(path)) as temporary:
            text = json.dumps(self.to_dict(), ensure_ascii=False)
            temporary.write_text(printable_text(text) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> ResultSet[Any]:
        """The results that `save` wrote; raises FormatError for another file."""
        try:
            given = json.loads(Path(path).read_text(encoding="utf-8"))
            holds = _class_of(given["weir"])
            notes = tuple(rebuilt(Note, one) for one in given.get("notes", ()))
            return ResultSet(given["weir"], tuple(rebuilt(holds, one) for one in given["results"]), notes)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, WeirError) as error:
            found = "no such file" if isinstance(error, FileNotFoundError) else f"something else ({error})"
            raise FormatError(path, found, "results as ResultSet.save writes them") from None

    def _of_measure(self, name: str) -> T:
        measures = [getattr(one, "measure", None) for one in self.items]
        try:
            wanted = name if name in measures else canonical_name(name)
        except WeirError:
            wanted = name
        found = [one for one, measure in zip(self.items, measures, strict=True) if measure == wanted]
        if not found:
            raise UnknownName("measure among these results", name, {m for m in measures if m is not None})
        if len(found) > 1:
            raise BadValue(f"{len(found)} of these results are of {wanted}; take one by its number")
        return found[0]

    def _written(self, form: str) -> str:
        place = getattr(KINDS[self.kind], form) if self.kind in KINDS else ""
        if place:
            text: str = _opened(place)(self.items)
            return text
        if form == "csv":
            names, lines = self._fields()
            return csv_text([names, *([line.get(name) for name in names] for line in lines)])
        return "\n\n".join(table.latex() if form == "latex" else table.markdown() for table in self.tables())

    def _fields(self) -> tuple[list[str], list[Mapping[str, object]]]:
        """The names of the plain fields, and their values on the lines of a frame."""
        parts = RESULTS[self.kind].parts if self.kind in RESULTS else KINDS[self.kind].parts
        lines = [line for one in self.items for line in _lines(one, parts)]
        return list(dict.fromkeys(name for line in lines for name in line)), lines


def _class_of(kind: str) -> Any:  # noqa: ANN401  a class of results, which `rebuilt` takes
    """The class of a kind of results; imports what registers it."""
    from weir.stats import threshold as abstention  # noqa: F401  registers its results

    return RESULTS[kind].of if kind in RESULTS else _opened(KINDS[kind].holds)


def _shown(value: object) -> str:
    """A plain field as a cell shows it."""
    if isinstance(value, float):
        return score(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    return "" if value is None else str(value)


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
    found = {
        name: v for name, v in values.items() if not (is_dataclass(v) or isinstance(v, (list, tuple, dict)))
    }
    for value in values.values():
        if is_dataclass(value):
            found = _scalars(value) | found
    return found


def _opened(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
