"""The commands `weir study migrate` and `weir study canary`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

import weir
from weir import api, experiment
from weir.cli.options import (
    FOLDER,
    NAME,
    OUTPUT,
    PATH,
    Given,
    budget_option,
    device_option,
    forms,
    options,
    quiet_option,
    system_names,
)
from weir.cli.terminal import present, say
from weir.files.atomic import temporary_folder

DEPTH = 100
"""Number of documents that systems return for each query."""


@click.command("migrate")
@click.argument("rankings", metavar="[OLD NEW]", nargs=-1, type=NAME)
@click.option("-s", "--system", "systems", multiple=True, shell_complete=system_names,
              help="The old system, then the new one, to run on the collection.")  # fmt: skip
@options("weir.plugins.questions.migrating.migrate", "collection labelled thresholds labels out by",
         collection={"flags": "-d --dataset"}, labelled={"type": NAME, "metavar": "LABELS"},
         labels={"flags": "--labels", "metavar": "N"}, thresholds={"flags": "--threshold", "type": float},
         out={"flags": "-o --out", "type": FOLDER})  # fmt: skip
@options("weir.plugins.questions.migration.MigrationRules", "measure rel level seed", "rules")
@click.option("--results", type=FOLDER, help="Where the rankings of -s are kept; by default nowhere.")
@click.option("--show", type=click.IntRange(0), default=10, show_default=True,
              help="Queries that are named; JSON has all.")  # fmt: skip
@device_option
@budget_option
@forms("json", "csv", "markdown")
@quiet_option
def migrate_command(
    rankings: tuple[str, ...],
    systems: tuple[str, ...],
    given: Given,
    rules: Given,
    results: Path | None,
    show: int,
    form: str | None,
    quiet: bool,
) -> int:
    """Report what changes from an old system to a new one, without judgments.

    OLD, NEW: rankings as weir compare takes them, or -s OLD -s NEW with -d, a collection that needs no judgments: how
    many queries change their first documents, which and where. -o writes a sheet of the documents whose labels decide
    which system is better for these queries; with --labelled the verdict, and how likely it is wrong, valid however
    often one looks. --threshold carries a score over which answers are shown from the old scores to the new ones.
    """
    if len(rankings or systems) != 2 or (rankings and systems) or (systems and "collection" not in given):
        raise click.UsageError("give two rankings, or two systems with -s and a collection with -d")
    with ExitStack() as stack:
        both: list[object] = [*rankings]
        if systems:
            folder = results or stack.enter_context(temporary_folder("migrate"))
            progress = stack.enter_context(api.progress.Progress(quiet))
            grid = weir.Experiment((given["collection"],), systems, k=DEPTH)
            api.results_folder.run_grid(grid, folder, progress)
            cells = experiment.results.finished_cells(
                folder, unjudged=True
            )  # and results that were there before
            name = grid.loaded_datasets()[0].name
            runs = {cell.system: cell.run for cell in cells if cell.dataset == name and cell.depth == DEPTH}
            named = map(str, grid.parsed_systems())
            both = [replace(weir.Run.load(runs[system]), name=system) for system in named]
        found = weir.migrate(both[0], both[1], rules=weir.MigrationRules(**rules), **given)
        code = present(found, form, options={"show": show} if form is None else None)
    if "out" in given:
        say(f"{given['out']}: documents to label; then the same with --labelled {given['out']}/to_judge.tsv")
    return code


@click.command("canary")
@click.argument("canary", required=False, type=PATH)
@options("weir.plugins.questions.canary.check_canary", "allowed", "checking")
@options("weir.plugins.questions.canary.make_canary", "system dataset documents queries k out", "making",
         system={"required": False}, dataset={"required": False},
         out={"flags": "-o --out", "type": OUTPUT, "required": False})  # fmt: skip
@device_option
@forms("json")
def canary_command(canary: Path | None, checking: Given, making: Given, form: str | None) -> int:
    """See whether the model with a name is still the one it was.

    With -s, -d and -o a file is written: some documents and queries of the collection, and what the system answers.
    CANARY: such a file; the system is asked again, kept answers and vectors aside, and exit code 1 says that it
    answers otherwise or with other scores.
    """
    if canary is not None and not making:
        return present(weir.check_canary(canary, **checking), form)
    if canary is not None or checking or not {"system", "dataset", "out"} <= set(making):
        raise click.UsageError(
            "give a canary file, or a system with -s, a collection with -d and a file with -o"
        )
    path = weir.make_canary(**making)
    say(f"{path}: weir study canary {path} asks again")
    return 0
