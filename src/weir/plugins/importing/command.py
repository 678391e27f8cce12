"""weir data import: files of other tools and golden sets, as a collection in Weir's own layout."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import FOLDER, PATH


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("-o", "--out", "output", required=True, type=FOLDER,
              help="The folder to write; an older import there is replaced, anything else is refused.")  # fmt: skip
@click.option("--columns", default="", metavar="ROLE=COLUMN,...",
              help="Which column is which, as in query=q,doc=url,grade=ctr; a column by name or number.")  # fmt: skip
@click.option("--as", "kinds", multiple=True, metavar="[FILE=]KIND",
              help="What a file is, or all of them; docs/import.md lists the kinds. Repeatable.")  # fmt: skip
@click.option("--corpus", type=PATH,
              help="A collection whose documents resolve judgments by words; written too.")  # fmt: skip
@click.option("--grades", default="", metavar="round|scale=N|threshold=X",
              help="Make grades whole; otherwise they are kept as they are.")  # fmt: skip
@click.option("--judges", type=click.Choice(["max", "min", "mean", "majority"]),
              help="The grade of a pair that has several; otherwise it is refused.")  # fmt: skip
@click.option("--words", type=click.Choice(["all", "any"]),
              help="How many of several words a relevant document holds.")  # fmt: skip
@click.option("--clicks", default="", metavar="ctr|coec|pbm[=E1,E2,...]",
              help="The model that makes grades of clicks; by default coec, or ctr without positions.")  # fmt: skip
@click.option("--impressions", type=int, default=10, show_default=True,
              help="How often a document must have been shown for a query to be judged by clicks.")  # fmt: skip
@click.option("--allow-disjoint", is_flag=True,
              help="Write what has nothing in common: runs, judgments, queries, documents.")  # fmt: skip
@click.option("--allow-loss", is_flag=True,
              help="Write what is left of a file of which more than a tenth of the rows are refused.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Write nothing where any file is refused.")
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    output: Path,
    columns: str,
    kinds: tuple[str, ...],
    corpus: Path | None,
    grades: str,
    judges: str | None,
    words: str | None,
    clicks: str,
    impressions: int,
    allow_disjoint: bool,
    allow_loss: bool,
    strict: bool,
) -> None:
    """Import files of other tools and golden sets as a collection.

    For each FILE it prints the kind and the evidence, what was read, and what was refused and why; import.json holds
    the same. Nothing is guessed: where a file leaves something open, an error asks for it. Exit code 2 where a file is
    refused, although the others are written. A TOML file that describes a collection may stand for its files.
    """
    from weir.api.progress import Progress
    from weir.plugins.importing.contents import parse_columns
    from weir.plugins.importing.importer import import_request, request_for
    from weir.plugins.importing.items import Choices
    from weir.plugins.importing.references.reference import request_of

    if len(files) == 1 and files[0].suffix == ".toml":
        request = request_of(files[0])
    else:
        choices = Choices(
            grades, judges or "", words or "", strict, clicks, impressions, allow_disjoint, allow_loss
        )
        kinds_by_file = {file: kind for file, _, kind in (one.rpartition("=") for one in kinds)}
        request = request_for(files, parse_columns(columns), kinds_by_file, corpus, choices)
    with Progress() as progress:
        report = import_request(request, output, progress)
    for line in report.lines():
        click.echo(line)
    if report.refused:
        ctx.exit(2)
