"""The commands `weir report` and `weir study cite`."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

import weir
from weir import api
from weir.cli.options import (
    FOLDER,
    OUTPUT,
    PATH,
    Given,
    notes_option,
    option_of,
    options,
    published_as_option,
    quiet_option,
)
from weir.cli.terminal import as_options, say, say_notes, show_tables
from weir.errors import BadValue
from weir.files.atomic import write_text
from weir.plugins import report as pages


@click.command("report")
@click.argument("folder", type=PATH, default=Path("results"))
@click.argument("more", type=PATH, nargs=-1, metavar="")
@click.option("-o", "--out", type=OUTPUT, help="The page.  [default: report.html]")
@options(
    "weir.plugins.report.report.report",
    "baseline measures datasets systems labels audit collection",
    collection={"metavar": "[NAME=]COLLECTION"},
    audit={
        "flags": "--no-audit",
        "flag_value": False,
        "help": "Leave out the audit of the collections, which can take minutes.",
    },
)
@click.option("--figures", type=FOLDER, help="Write each chart into this folder.")
@click.option("--figure-form", "endings", multiple=True, type=click.Choice(["svg", "png", "pdf"]),
              help="How charts are written; repeatable.  [default: svg]")  # fmt: skip
@click.option("--figure-width", type=click.Choice(["page", "column"]), default="page", show_default=True,
              help="Of a figure: 7 inches, or a column of 3.33.")  # fmt: skip
@click.option("--tables", type=FOLDER,
              help="Write the tables into this folder: LaTeX, Markdown, CSV.")  # fmt: skip
@click.option("--published", metavar="NAME",
              help="Published scores, such as 'BEIR paper'; with those of FOLDER beside, if one is given. With -o a "
                   "section of the page, as weir results --published finds them.")  # fmt: skip
@published_as_option
@click.option("--markdown", is_flag=True, help="Print a short text, as for a pull request.")
@quiet_option
@notes_option
def command(
    folder: Path,
    more: tuple[Path, ...],
    out: Path | None,
    given: Given,
    figures: Path | None,
    endings: tuple[str, ...],
    figure_width: str,
    tables: Path | None,
    published: str | None,
    names: Given,
    markdown: bool,
    quiet: bool,
    notes: bool,
) -> None:
    """Write a report.

    FOLDER: a results folder of weir run. The report is one page with charts, verdicts and every query, which
    opens offline. It says what can be concluded and what cannot, shows scores, differences, costs, judged
    rates and the findings of the audit, and answers what a sceptical reviewer will ask. Sections without data
    are left out. --figures, --tables and --markdown write no page unless -o is given, too. --published
    without -o, --figures or --markdown prints published scores instead of a report.
    """
    if more and all(map(api.given.is_results_folder, (folder, *more))):
        raise BadValue(api.given.two_folders(folder, more[0]))
    context = click.get_current_context()
    if len(more) == 1 and option_of(str(more[0]), context.command):
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})", context)
    if more:
        raise BadValue(
            f"found {folder} and {len(more)} more paths; expected one results folder, which weir run makes of run "
            "files too: weir run -d JUDGMENTS/ -s 'run(\"x.trec\")' -o results/ (docs/tutorials/researcher.md)"
        )
    paged = out is not None or figures is not None or markdown
    if published is not None and not paged:
        typed = context.get_parameter_source("folder") is ParameterSource.COMMANDLINE
        given.pop("audit", None)
        given.pop("collection", None)
        beside = pages.published_tables(published, folder if typed else None, **given, **names)
        show_tables(beside)
        if tables is not None:
            say(f"tables: {len(pages.write_tables(beside, tables, 'published'))} files in {tables}")
        return
    with api.progress.Progress(quiet) as progress:
        made = weir.report(
            folder,
            progress=lambda task, done, total: progress(as_options(task), done, total),
            published=published,
            **given,
            **names,
        )
    if markdown:
        click.echo(made.to_markdown())
    if tables is not None:
        say(f"tables: {len(made.save_tables(tables))} files in {tables}")
    if figures is not None:
        written = made.save_figures(figures, endings or ("svg",), figure_width)
        say(f"figures: {len(written)} files in {figures}")
    if out is not None or not (markdown or tables or figures):
        path = out or Path("report.html")
        made.save(path)
        say(f"report: {path}")
    say_notes(made.notes(), notes)


@click.command("cite")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("-o", "--out", type=OUTPUT, help="A file to write.  [default: standard output]")
@options("weir.plugins.report.cite.cite", "measures datasets systems")
def cite_command(folder: Path, out: Path | None, given: Given) -> None:
    """Write the citations of results as BibTeX.

    FOLDER: a results folder of weir run. Each collection, system, model, measure and test that took part has
    an entry with the reason for citing it; collections and models without an entry are named.
    """
    cited = weir.cite(folder, **given)
    if out is None:
        click.echo(cited.bibtex())
    else:
        write_text(out, cited.bibtex() + "\n")
        say(f"citations: {len(cited.works)} in {out}")
    say_notes(cited.notes())
