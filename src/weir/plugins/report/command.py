"""The command `weir report`."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from weir.cli.options import (
    FOLDER,
    OUTPUT,
    PATH,
    datasets_option,
    label_option,
    measures_option,
    notes_option,
    systems_option,
)
from weir.cli.terminal import say, say_notes, show_tables


@click.command("report")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("-o", "--out", type=OUTPUT, help="The page.  [default: report.html]")
@click.option("--baseline", help="Compare with this system.  [default: bm25, or the first]")
@measures_option("Report this measure; repeatable.")
@datasets_option("Report this dataset or group; repeatable.")
@systems_option("Report this system; repeatable.")
@label_option
@click.option("--figures", type=FOLDER, help="Write each chart into this folder.")
@click.option("--figure-form", "endings", multiple=True, type=click.Choice(["svg", "png", "pdf"]),
              help="How charts are written; repeatable.  [default: svg]")  # fmt: skip
@click.option("--figure-width", type=click.Choice(["page", "column"]), default="page", show_default=True,
              help="Of a figure: 7 inches, or a column of 3.33.")  # fmt: skip
@click.option("--tables", type=FOLDER,
              help="Write the tables into this folder: LaTeX, Markdown, CSV.")  # fmt: skip
@click.option("--published", "publisher", metavar="NAME",
              help="Published scores, such as 'BEIR paper'; with those of FOLDER beside, if one is given.")  # fmt: skip
@click.option("--markdown", is_flag=True, help="Print a short text, as for a pull request.")
@click.option("--no-audit", is_flag=True, help="Leave out the audit of the collections.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@notes_option
def command(
    folder: Path,
    out: Path | None,
    baseline: str | None,
    measures: tuple[str, ...],
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    labels: tuple[str, ...],
    figures: Path | None,
    endings: tuple[str, ...],
    figure_width: str,
    tables: Path | None,
    publisher: str | None,
    markdown: bool,
    no_audit: bool,
    quiet: bool,
    notes: bool,
) -> None:
    """Write a report.

    One page with charts, verdicts and every query. FOLDER: a results folder of weir run. The page opens offline and
    asks for nothing. It says what can be concluded and what cannot, shows scores, differences, costs, judged rates and
    the findings of the audit, and answers what a sceptical reviewer will ask. Sections appear where their data are.
    """
    from weir.api.progress import Progress
    from weir.plugins.report.report import report

    if publisher is not None:
        from weir.plugins.report.paper import published_table
        from weir.plugins.report.report import write_tables
        from weir.plugins.report.study import Study

        given = click.get_current_context().get_parameter_source("folder") is ParameterSource.COMMANDLINE
        study = Study.of(folder, None, (), labels=labels) if given else None
        of = [
            published_table(publisher, name, baseline, datasets, systems, study)
            for name in measures or ("nDCG@10",)
        ]
        show_tables(of)
        if tables is not None:
            say(f"tables: {len(write_tables(of, tables, 'published'))} files in {tables}")
        return
    with Progress(quiet) as progress:
        made = report(
            folder,
            baseline=baseline,
            measures=measures,
            datasets=datasets,
            systems=systems,
            labels=labels,
            audit=not no_audit,
            progress=progress,
        )
    if markdown:
        click.echo(made.to_markdown())
    if tables is not None:
        say(f"tables: {len(made.save_tables(tables))} files in {tables}")
    if figures is not None:
        say(
            f"figures: {len(made.save_figures(figures, endings or ('svg',), figure_width))} files in {figures}"
        )
    if out is not None or not (markdown or tables or figures):
        path = out or Path("report.html")
        made.save(path)
        say(f"report: {path}")
    say_notes(made.notes(), notes)


@click.command("cite")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("-o", "--out", type=OUTPUT, help="A file to write.  [default: standard output]")
@measures_option("Cite this measure; repeatable.")
@datasets_option("Cite this dataset or group; repeatable.")
@systems_option("Cite this system; repeatable.")
def cite_command(
    folder: Path,
    out: Path | None,
    measures: tuple[str, ...],
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
) -> None:
    """Write the citations of results as BibTeX.

    FOLDER: a results folder of weir run. Entries of the collections, systems, models, measures and tests that took
    part, each with what it is cited for; collections and models without an entry are named.
    """
    from weir.files.atomic import write_text
    from weir.plugins.report.cite import cite

    cited = cite(folder, measures=measures, datasets=datasets, systems=systems)
    if out is None:
        click.echo(cited.bibtex())
    else:
        write_text(out, cited.bibtex() + "\n")
        say(f"citations: {len(cited.works)} in {out}")
    say_notes(cited.notes())
