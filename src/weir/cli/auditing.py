"""The command `weir audit`."""

from __future__ import annotations

from pathlib import Path

import click

from weir import api
from weir.cli.options import NAME, OUTPUT, Given, dataset_names, forms, max_ram_option, options
from weir.cli.terminal import present, say


@click.command("audit")
@click.argument("targets", type=NAME, nargs=-1)
@options("weir.api.auditing.audits", "only collection training encoder",
         only={"flags": "--only", "shell_complete": None}, collection={"metavar": "[NAME=]COLLECTION"},
         training={"type": NAME, "shell_complete": dataset_names})  # fmt: skip
@max_ram_option
@click.option("--regression-queries", "regression", type=OUTPUT,
              help="Write some queries that stand for all, as a file of groups for --by of weir gate.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the checks and what each needs.")
@click.option(
    "--expand", is_flag=True, help="Write judgments that copies of a judged document share, with -o."
)
@click.option("-o", "--out", type=OUTPUT, help="Where --expand writes the judgments.")
@forms("json")
def audit_command(
    targets: tuple[str, ...],
    given: Given,
    regression: Path | None,
    listed: bool,
    expand: bool,
    out: Path | None,
    form: str | None,
) -> int:
    """Report what is wrong with collections, judgments and runs.

    TARGETS: collections by name or path, a results folder of weir run, or judgments and run files (QRELS
    RUN...). Findings come worst first: "wrong" (a number is not what it says), "serious" (conclusions may
    change), "caution", "note". A check runs if everything that it needs is there. Findings leave the exit
    code at 0. With --expand or --regression-queries a file is written instead, and nothing is audited.
    """
    if listed:
        return present(api.listings.checks())
    if expand != (out is not None):
        raise click.UsageError("--expand and -o go together: weir audit COLLECTION --expand -o QRELS")
    collection = given.get("collection")
    if out is not None:
        added, before = api.auditing.expand_judgments(*targets, out=out, collection=collection)
        say(f"{out}: {added:,} judgments added to {before:,}")
    if regression is not None:
        queries = api.auditing.regression_queries(*targets, out=regression, collection=collection)
        say(f"{regression}: {queries:,} queries; weir gate ... --by {regression}")
    if out is not None or regression is not None:
        return 0
    with api.progress.Progress() as progress:
        findings = api.auditing.audits(*targets, **given, progress=progress)
    return present(findings, form)
