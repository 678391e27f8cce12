"""Reports of results folders: a value with sections, which is written as a page, as tables and figures, as Markdown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.api.charts import write_figure
from weir.argument_types import checked
from weir.audit import Audit, audited_all
from weir.core.charts import MIDDLE_PX, Chart, css, svg
from weir.core.rounding import short_score
from weir.core.scores import Note
from weir.core.tables import (
    Table,
    excerpt,
    folded_html,
    html_escaped,
    markdown_escaped,
    notebook_html,
    written,
)
from weir.errors import WeirError
from weir.experiment.audit_subjects import subjects_of
from weir.files.atomic import make_folder, own_file, write_text
from weir.files.paths import path_of
from weir.plugins.report.page import caption, page, statement
from weir.plugins.report.page import notes as page_notes
from weir.plugins.report.paper import study_tables
from weir.plugins.report.sections import (
    Question,
    Section,
    questions,
    sections,
    tally,
)
from weir.plugins.report.study import Study
from weir.stats.compare import rank_text

MARKDOWN_LINES = 30
"""Lines of the short text for a pull request."""
SHOWN_IN_NOTEBOOKS = ("leaderboard", "collections", "baseline", "cost")
"""Sections that a notebook shows at once, the others behind a click."""
ENDINGS = {"latex": "tex", "markdown": "md"}


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What a results folder says: sections with charts and tables, and the questions of a sceptical reviewer."""

    study: Study
    sections: tuple[Section, ...]
    questions: tuple[Question, ...]

    def tables(self) -> tuple[Table, ...]:
        """The tables of all sections."""
        return tuple(table for section in self.sections for table in section.tables)

    def notes(self) -> tuple[Note, ...]:
        """What has to be said beside the scores."""
        return self.study.notes

    def charts(self) -> tuple[Chart, ...]:
        """The charts of all sections."""
        return tuple(chart for section in self.sections for chart in section.charts)

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        """The conclusions and the charts for a notebook, the numbers of each section behind a click."""
        head, *others = self.sections
        parts = [f"<style>{css()}</style><h3>{html_escaped(head.title)}</h3><p>{html_escaped(head.lead)}</p>"]
        for heading, statements in head.lists:
            parts += [f"<h4>{html_escaped(heading)}</h4>", *map(statement, statements)]
        for one in others:
            drawn = "".join(
                f"<p><strong>{html_escaped(caption(chart))}</strong></p>{svg(chart, MIDDLE_PX, classes=True, key=True)}"
                for chart in one.charts
            )
            tables = "".join(table.html_body() for table in one.tables)
            numbers = folded_html("The numbers as a table", tables) if drawn and tables else tables
            inside = f"<p>{html_escaped(one.lead)}</p>{drawn}{page_notes(one)}{numbers}"
            shown = one.name in SHOWN_IN_NOTEBOOKS
            title = html_escaped(one.title)
            parts.append(f"<h4>{title}</h4>{inside}" if shown else folded_html(one.title, inside))
        return "\n".join([*parts, notebook_html((), self.notes())])

    def to_html(self) -> str:
        """The whole report as one page that asks for nothing from elsewhere."""
        return page(self.study, self.sections, self.questions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; raises StoreError when the disk refuses."""
        write_text(path_of(path), self.to_html())

    def to_markdown(self) -> str:
        """The report in MARKDOWN_LINES lines at most: conclusions, the leaderboard, what is serious."""
        study = self.study
        head, *_ = self.sections
        lines = [f"### {markdown_escaped(head.title)}", "", markdown_escaped(head.lead), ""]
        for title, (_, statements) in zip(("can be concluded", "cannot"), head.lists, strict=True):
            lines += [
                f"- {title}: **{markdown_escaped(s.head)}** {markdown_escaped(s.text)}"
                for s in statements[:3]
            ]
        measure = study.measures[0]
        whole = study.whole(measure)
        if whole is not None:
            head_line = f"| rank | system | {measure} | 95% interval | better/not separable/worse |"
            lines += ["", head_line, "|---|---|---:|---|---|"]
            for one in whole.standings[:10]:
                known = one.low is not None and one.high is not None
                ends = f"{short_score(one.low or 0)}–{short_score(one.high or 0)}" if known else ""
                tallied = map(str, tally(study, measure, one.system))
                counts = "baseline" if one.system == study.baseline else "/".join(tallied)
                name, rank = markdown_escaped(study.label(one.system)), rank_text(one, "–")
                lines.append(f"| {rank} | {name} | {short_score(one.mean)} | {ends} | {counts} |")
        serious = [one for one in self.questions if one.severity == "serious"]
        lines += [""] * bool(serious)
        room = MARKDOWN_LINES - len(lines) - 1
        lines += [
            f"- **{markdown_escaped(one.question)}** {markdown_escaped(excerpt(str(one.answer), 300))}"
            for one in serious[:room]
        ]
        return "\n".join(lines[:MARKDOWN_LINES])

    def save_tables(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the tables of a paper and each section's as LaTeX and Markdown, and as CSV unrounded, a file each.

        `scores` holds datasets x systems with averages against the baseline. Raises StoreError when the disk refuses.
        """
        place = path_of(folder)
        paths = write_tables(study_tables(self.study), place, "scores")
        for section in self.sections:
            if tables := [one for one in section.tables if one.header]:
                paths += write_tables(tables, place, section.name, [one.to_csv() for one in section.records])
        return paths

    def save_figures(
        self, folder: str | os.PathLike[str], endings: Iterable[str] = ("svg",), width: str = "page"
    ) -> list[Path]:
        """Write each chart in files of these endings, of svg, png and pdf; width and errors as `Figure.save`."""
        paths, place = [], path_of(folder)
        make_folder(place)
        for section in self.sections:
            for number, chart in enumerate(section.charts):
                words = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")[:50]
                for ending in endings:
                    path = place / f"{section.name}-{number + 1}-{words}.{ending}"
                    write_figure(chart, own_file(path), width)
                    paths.append(path)
        return paths


def write_tables(tables: Sequence[Table], folder: Path, name: str, csv: Sequence[str] = ()) -> list[Path]:
    """Write tables into files of this name as LaTeX, Markdown and CSV; raises StoreError when the disk refuses.

    Of several tables in CSV each is a file, whose name ends in its number. csv: their texts, by default the tables'.
    """
    make_folder(folder)
    values = csv or [one.csv() for one in tables]
    texts = {f"{name}.{ending}": written(tables, form) for form, ending in ENDINGS.items()}
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
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """What a results folder says, as `weir report` shows it.

    baseline: the system that others are compared with, by default bm25 or the first; measures, datasets, systems: these
    alone; labels: names of systems, such as "tuned=bm25(k1=1.2)"; audit: also audit the collections that are here;
    progress: is called with what is being done, how much of it, of how much. Raises FormatError for a folder without
    results, UnknownName for a name that is not there.
    """
    study = Study.of(path_of(folder), baseline, measures, datasets, systems, labels)
    audits = audits_of(study, progress) if audit else []
    answered = questions(study, audits)
    return Report(study, sections(study, audits, answered), answered)


def audits_of(study: Study, progress: Callable[[str, int, int], None] | None = None) -> list[Audit]:
    """The audits of the collections of a study and of its systems, by their labels; [] where no collection is here."""
    try:
        subjects = [
            replace(
                one,
                runs={study.label(name): run for name, run in one.runs.items() if name in study.systems},
                unscored={study.label(name): counts for name, counts in one.unscored.items()},
            )
            for one in subjects_of([study.folder])
            if any(one.name == name or one.name.startswith(f"{name} ") for name in study.datasets)
        ]
        return audited_all(subjects, (), progress)
    except WeirError:  # the section is named among those left out
        return []
