"""The commands `weir study migrate` and `weir study canary`."""

from __future__ import annotations

import json
import shutil
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
from weir.errors import FormatError
from weir.files.atomic import temporary_folder, write_text

DEPTH = 100
"""Number of documents that systems return for each query."""


@click.command("migrate")
@click.argument("given_files", metavar="[OLD NEW | QUERIES]", nargs=-1, type=NAME)
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
    given_files: tuple[str, ...],
    systems: tuple[str, ...],
    given: Given,
    rules: Given,
    results: Path | None,
    show: int,
    form: str | None,
    quiet: bool,
) -> int:
    """Report the changes from an old system to a new one, without judgments.

    OLD, NEW: rankings as weir compare takes them, or -s OLD -s NEW with -d, a collection that needs no
    judgments. QUERIES in its place: a file of queries for systems with documents of their own, such as
    servers; a text a line, or .jsonl or .tsv as in a collection. It shows which queries change their first
    documents, and where. -o writes a sheet of the documents whose labels can decide which system is better;
    --labelled adds the verdict, and how likely it is wrong, valid however often one looks. --threshold
    converts a threshold on the old system's scores to the new system's.
    """
    one_collection = len(given_files) + ("collection" in given) == 1
    if not (one_collection if len(systems) == 2 else len(given_files) == 2 and not systems):
        raise click.UsageError(
            "give two rankings, or two systems with -s and a collection with -d, or a file of queries"
        )
    with ExitStack() as stack:
        both: list[object] = [*given_files]
        if systems:
            if given_files:
                place = stack.enter_context(temporary_folder("queries"))
                given["collection"] = _of_queries(Path(given_files[0]), place)
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
    if "out" in given and found[0].labels.verdict == "undecided":
        sheet = given["out"] / "to_judge.tsv"
        say(f"{sheet}: documents to label; then the same with --labelled {sheet} and another folder for -o")
    return code


def _of_queries(path: Path, folder: Path) -> Path:
    from weir.files.layouts import CollectionPart  # these three import NumPy, and help is shown without it
    from weir.files.records import read_queries
    from weir.files.text_files import read_text

    part, collection = CollectionPart(path), folder / path.name.partition(".")[0]
    collection.mkdir()
    if part.name.endswith((".jsonl", ".tsv")):
        read_queries(part)  # raises by this name
        packed = ".gz" if path.name.endswith(".gz") else ""
        shutil.copyfile(path, collection / f"queries{Path(part.name).suffix}{packed}")
        return collection
    rows = list[str]()
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if "\t" in text:
            raise FormatError(path, "a tab", "a query's text on each line; .tsv has identifiers too", number)
        if text.strip():
            rows.append(json.dumps({"_id": str(number), "text": text.strip()}) + "\n")
    if not rows:
        raise FormatError(path, "no query", "a query's text on each line")
    write_text(collection / "queries.jsonl", "".join(rows), durable=False)
    return collection


@click.command("canary")
@click.argument("canary", required=False, type=PATH)
@options("weir.plugins.questions.canary.check_canary", "allowed", "checking")
@options("weir.plugins.questions.canary.make_canary", "system dataset documents queries k out", "making",
         system={"required": False}, dataset={"required": False},
         out={"flags": "-o --out", "type": OUTPUT, "required": False})  # fmt: skip
@device_option
@forms("json")
def canary_command(canary: Path | None, checking: Given, making: Given, form: str | None) -> int:
    """See whether the model with a name is still the same.

    With -s, -d and -o: write some documents and queries of the collection, and the system's answers, to a
    file. CANARY: such a file, whose queries the system answers again, without stored answers and vectors;
    exit code 1 means other answers or scores.
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
