"""The command `weir study funnel`."""

from __future__ import annotations

from pathlib import Path

import click

import weir
from weir import api
from weir.cli.options import (
    FOLDER,
    NAME,
    PATH,
    Given,
    budget_option,
    device_option,
    forms,
    options,
    quiet_option,
)
from weir.cli.terminal import present


@click.command("funnel")
@click.argument("qrels", metavar="[QRELS RUN...]", required=False, type=NAME)
@click.argument("rankings", nargs=-1, type=PATH, metavar="")
@options("weir.plugins.questions.system_stages.funnel", "dataset system spans results",
         dataset={"required": False}, system={"required": False}, results={"type": FOLDER})  # fmt: skip
@options("weir.plugins.questions.funnel.FunnelRules", "k measure rel depth", "rules")
@click.option("--collection", type=NAME, help="Of the rankings: its rules hold and its texts are shown.")
@click.option("--show", type=click.IntRange(0), default=5, show_default=True,
              help="Documents that are named of each stage; JSON has all.")  # fmt: skip
@device_option
@budget_option
@forms("json", "csv", "markdown")
@quiet_option
def funnel_command(
    qrels: str | None,
    rankings: tuple[Path, ...],
    given: Given,
    rules: Given,
    collection: str | None,
    show: int,
    form: str | None,
    quiet: bool,
) -> int:
    """Report at which stage a system loses relevant documents.

    With -d and -s: for each search, fusion, filter, cut and re-ranker of a system, the relevant documents
    left and lost, and what a perfect re-ranker could make of the rest. QRELS RUN...: judgments and the
    rankings of a pipeline's stages, first to last.
    """
    asked = weir.FunnelRules(**rules)
    if qrels is not None:
        if given or not rankings:
            raise click.UsageError(
                "give judgments and rankings, or a collection with -d and a system with -s"
            )
        funnels = weir.funnel_of_rankings(qrels, *rankings, rules=asked, collection=collection)
    else:
        if not {"dataset", "system"} <= set(given) or collection is not None:
            raise click.UsageError(
                "give a collection with -d and a system with -s, or judgments and rankings"
            )
        with api.progress.Progress(quiet) as progress:
            funnels = weir.funnel(rules=asked, progress=progress, **given)
    return present(funnels, form, options={"show": show} if form is None else None)
