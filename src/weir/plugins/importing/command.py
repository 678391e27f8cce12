"""The command `weir data import`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from weir import api
from weir.cli.options import FOLDER, PATH, Given, options
from weir.cli.terminal import as_options
from weir.plugins import importing


def _joined(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str:
    return ",".join(given)


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("-o", "--out", "output", required=True, type=FOLDER,
              help="The folder to write; an older import there is replaced, anything else is refused.")  # fmt: skip
@click.option("--columns", multiple=True, callback=_joined, metavar="ROLE=COLUMN,...",
              help="Which column is which, as in query=q,doc=url,grade=ctr, by name or number; each file takes "
                   "those that it has. Repeatable.")  # fmt: skip
@click.option("--as", "as_kind", multiple=True, metavar="[FILE=]KIND",
              help="What a file is, or all of them; docs/import.md lists the kinds. Repeatable.")  # fmt: skip
@options("weir.plugins.importing.importer.import_files", "corpus", corpus={"type": PATH})
@options(
    "weir.plugins.importing.items.Choices",
    "grades judges words between clicks impressions allow_disjoint allow_loss strict",
    "choices",
    grades={"metavar": "round|scale=N|threshold=X|WORD=N,...", "multiple": True, "callback": _joined},
    judges={"type": click.Choice(["max", "min", "mean", "majority"])},
    words={"type": click.Choice(["all", "any"])},
    between={"metavar": "MARK"},
    clicks={"metavar": "ctr|coec|pbm[=E1,E2,...]"},
)
def command(
    files: tuple[Path, ...],
    output: Path,
    columns: str,
    as_kind: tuple[str, ...],
    given: Given,
    choices: Given,
) -> int:
    """Import files of other tools and golden sets as a collection.

    For each FILE it prints the kind with its evidence, what was read, and what was refused and why, as in
    import.json. Nothing is guessed: if a file leaves something open, an error asks for it. The exit code is 2
    if a file is refused, although the others are written. A TOML file that describes a collection stands
    for its files and says how they are read, without options.
    """
    asked = importing.Choices(**choices)
    if len(files) == 1 and files[0].suffix == ".toml":
        allowed = {name: getattr(asked, name) for name in ("allow_disjoint", "allow_loss")}
        others = replace(asked, strict=False, allow_disjoint=False, allow_loss=False)
        if columns or as_kind or any(given.values()) or others != importing.Choices():
            raise click.UsageError(
                f"{files[0]} says how its files are read: write columns, kinds and choices there, not as options"
            )
        request = importing.request_of(files[0])
        request = replace(request, choices=replace(request.choices, **allowed))
    else:
        kinds = {file: kind for file, _, kind in (one.rpartition("=") for one in as_kind)}
        request = importing.request_for(files, columns, kinds, choices=asked, **given)
    with api.progress.Progress() as progress:
        report = importing.import_request(request, output, progress)
    for line in report.lines():
        click.echo(as_options(line))
    return 2 if report.refused else 0
