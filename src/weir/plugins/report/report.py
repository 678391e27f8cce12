"""Reports of results folders, as a page, tables, figures or Markdown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from weir.api.auditing import Places, places_of
from weir.api.benchmark import Benchmark
from weir.api.charts import NOTEBOOK_CSS, figure_px, notebook_chart, write_figure
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS
from weir.argument_types import checked
from weir.audit import Audit, audited_all
from weir.core import frames
from weir.core.charts import Chart, sheets
from weir.core.rounding import score
from weir.core.scores import Note
from weir.core.tables import (
    Table,
    excerpt,
    folded_html,
    html_escaped,
    markdown_escaped,
    notebook_html,
    tables_as_text,
)
from weir.errors import BadValue, WeirError
from weir.experiment.audit_subjects import subjects_of
from weir.files.atomic import make_folder, own_file, write_text
from weir.files.paths import path_of
from weir.plugins.report.page import caption, page, statement
from weir.plugins.report.page import notes as page_notes
from weir.plugins.report.paper import study_tables
from weir.plugins.report.sections import (
    Question,
    Section,
    published_scores,
    questions,
    ranges_differ,
    sections,
    tally,
)
from weir.plugins.report.study import Study
from weir.stats.compare import rank_text

MARKDOWN_LINES = 30
"""Lines of the short text for a pull request."""
SHOWN_IN_NOTEBOOKS = ("leaderboard", "collections", "baseline", "published", "cost")
"""Sections that a notebook shows at once, the others behind a click."""
ENDINGS = {"latex": "tex", "markdown": "md"}


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The report of a results folder."""

    study: Study
    sections: tuple[Section, ...]
    questions: tuple[Question, ...]
    audits: tuple[Audit, ...] = ()
    lacking: tuple[Note, ...] = ()
    """Notes on audits that could not be made."""

    def tables(self) -> tuple[Table, ...]:
        return tuple(table for section in self.sections for table in section.tables)

    def notes(self) -> tuple[Note, ...]:
        return (*self.study.notes, *self.lacking)

    def charts(self) -> tuple[Chart, ...]:
        """All charts, in the report's order."""
        return tuple(chart for section in self.sections for chart in section.charts)

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        return ResultSet(ROWS, tuple(self.study.rows)).columns()

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        head, *others = self.sections
        parts = [f"<style>{NOTEBOOK_CSS}</style><h3>{html_escaped(head.title)}</h3>"]
        parts.append(f"<p>{html_escaped(head.lead)}</p>")
        for heading, statements in head.lists:
            parts += [f"<h4>{html_escaped(heading)}</h4>", *map(statement, statements)]
        for one in others:
            drawn = "".join(notebook_chart(chart, caption(chart)) for chart in one.charts)
            tables = "".join(table.html_body() for table in one.tables)
            numbers = folded_html("The numbers as a table", tables) if drawn and tables else tables
            inside = f"<p>{html_escaped(one.lead)}</p>{drawn}{page_notes(one)}{numbers}"
            shown = one.name in SHOWN_IN_NOTEBOOKS
            title = html_escaped(one.title)
            parts.append(f"<h4>{title}</h4>{inside}" if shown else folded_html(one.title, inside))
        return "\n".join([*parts, notebook_html((), self.notes())])

    def to_html(self) -> str:
        """Return the report as one HTML page that loads nothing."""
        return page(self.study, self.sections, self.questions, self.audits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one HTML file."""
        write_text(path_of(path), self.to_html())

    def to_markdown(self) -> str:
        """Return conclusions, the leaderboard's first ten and serious questions as Markdown, at most 30
        lines."""
        study = self.study
        head, *_ = self.sections
        lines = [f"### {markdown_escaped(head.title)}", "", markdown_escaped(head.lead), ""]
        for title, (_, statements) in zip(("can be concluded", "cannot"), head.lists, strict=True):
            lines += [
                f"- {title}: **{markdown_escaped(s.head)}** {markdown_escaped(s.text)}"
                for s in statements[:3]
            ]
        measure = study.measures[0]
        whole = study.ranking_comparison(measure)
        if whole is not None:
            ranked = ranges_differ(whole)
            head_line = f"| system | {measure} | 95% interval | better/not separable/worse |"
            lines += ["", "| rank " * ranked + head_line, "|---" * ranked + "|---|---:|---|---|"]
            for one in whole.standings[:10]:
                known = one.low is not None and one.high is not None
                ends = f"{score(one.low or 0)}–{score(one.high or 0)}" if known else ""
                tallied = map(str, tally(study, measure, one.system))
                counts = "baseline" if one.system == study.baseline else "/".join(tallied)
                name, rank = markdown_escaped(study.short_name(one.system)), rank_text(one, "–")
                row = f"| {name} | {score(one.mean)} | {ends} | {counts} |"
                lines.append(f"| {rank} " * ranked + row)
        serious = [one for one in self.questions if one.severity == "serious"]
        lines += [""] * bool(serious)
        room = MARKDOWN_LINES - len(lines) - 1
        lines += [
            f"- **{markdown_escaped(one.question)}** {markdown_escaped(excerpt(str(one.answer), 300))}"
            for one in serious[:room]
        ]
        return "\n".join(lines[:MARKDOWN_LINES])

    def save_tables(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the tables as LaTeX, Markdown and unrounded CSV to a folder; return the paths.

        `scores` has datasets x systems with averages against the baseline.
        """
        place = path_of(folder)
        paths = write_tables(study_tables(self.study), place, "scores")
        for section in self.sections:
            if tables := [one for one in section.tables if one.header]:
                plain = [one.to_csv() for one in section.records] or [one.csv() for one in section.plain]
                paths += write_tables(tables, place, section.name, plain)
        return paths

    def save_figures(
        self, folder: str | os.PathLike[str], endings: Iterable[str] = ("svg",), width: str = "page"
    ) -> list[Path]:
        """Write each chart to a folder as svg, png or pdf, a tall one in several files; return the paths.

        width: "page" or "column".

        Raises UnknownName for another ending or width, MissingExtra for png or pdf without vl-convert-python.
        """
        wanted = list(endings)
        px, paths, place = figure_px(width, wanted), [], path_of(folder)
        make_folder(place)
        for section in self.sections:
            for number, chart in enumerate(section.charts):
                words = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")[:50]
                parts = sheets(chart, px)
                for part, ending in product(range(len(parts)), wanted):
                    name = f"{section.name}-{number + 1}-{words}{f'-{part + 1}' * (len(parts) > 1)}.{ending}"
                    write_figure(parts[part], own_file(place / name), width)
                    paths.append(place / name)
        return paths


def write_tables(tables: Sequence[Table], folder: Path, name: str, csv: Sequence[str] = ()) -> list[Path]:
    """Write tables as NAME.tex, NAME.md and CSV to a folder, made if missing; return the paths.

    csv: texts to write instead of the tables' own CSV.

    Raises StoreError if a file cannot be written.
    """
    make_folder(folder)
    values = csv or [one.csv() for one in tables]
    texts = {f"{name}.{ending}": tables_as_text(tables, form) for form, ending in ENDINGS.items()}
    texts |= {
        f"{name}.csv" if len(values) == 1 else f"{name}-{number}.csv": text
        for number, text in enumerate(values, 1)
    }
    for file, text in texts.items():
        write_text(own_file(folder / file), text.rstrip("\n") + "\n")
    return [folder / file for file in texts]


@checked
def report(
    folder: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    measures: Iterable[str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str] = (),
    labels: Sequence[str] = (),
    audit: bool = True,
    collection: Places = None,
    published: str | Path | None = None,
    published_as: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Return the report of a results folder, as `weir report` writes it.

    folder: a results folder, or a benchmark; its names of systems are shown.
    baseline: compare with this system, by default bm25, else the first.
    measures: only these measures, by default all.
    datasets: only these datasets, by default all. A group means its members.
    systems: only these systems, by default all.
    labels: names to show for systems, such as "tuned=bm25(k1=1.2)".
    audit: also audit the collections on this machine, which can take minutes.
    collection: where audited collections lie now, by name, if not where they were.
    published: lay published scores beside, as `results_beside` does: a publisher, such as "BEIR paper", words in
        names of published models, or a file or folder of MTEB's results.
    published_as: systems, collections, and models of MTEB's results by their published names, as in `results_beside`.
    progress: called with (task, steps done, all steps).

    A note names collections that are not here. Raises FormatError for a folder without results, UnknownName for an
    absent name, BadValue if nothing of `published` is on these collections and measures, and for a
    `collection` other than the measured one.
    """
    if isinstance(folder, Benchmark) and not labels:
        labels = [f"{title}={system}" for system, title in folder.titles.items()]
    study = Study.of(path_of(folder), baseline, measures, datasets, systems, labels)
    if published_as and published is None:
        raise BadValue("`published_as` names what `published` lays beside; give both")
    beside = None if published is None else published_scores(study, published, published_as)
    audits, lacking = _audits_of(study, places_of(collection), progress) if audit else ([], ())
    answered = questions(study, audits)
    options = [] if published is None else ["--published", str(published)]
    options += [word for text in published_as for word in ("--published-as", text)]
    parts = sections(study, audits, answered, beside, options)
    return Report(study, parts, answered, tuple(audits), lacking)


def _named_option(progress: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    return lambda task, done, total: progress(f"{task} (`audit=False` leaves it out)", done, total)


def _audits_of(
    study: Study, places: Sequence[str | Path], progress: Callable[[str, int, int], None] | None = None
) -> tuple[list[Audit], tuple[Note, ...]]:
    names = {cell.called: study.short_name(cell.label) for cell in study.cells}
    try:
        subjects = [
            replace(
                one,
                runs={names[called]: run for called, run in one.runs.items() if called in names},
                unscored={
                    names[called]: counts for called, counts in one.unscored.items() if called in names
                },
            )
            for one in subjects_of([study.folder], places)
            if any(one.name == name or one.name.startswith(f"{name} ") for name in study.datasets)
        ]
        return audited_all(subjects, (), progress and _named_option(progress)), ()
    except WeirError as error:
        if places:
            raise
        return [], (Note(f"the audit is left out: {error}"),)
