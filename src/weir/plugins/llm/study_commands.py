"""The commands `weir study reranking` and `weir study sensitivity`."""

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
    forms,
    options,
    price_option,
    quiet_option,
)
from weir.cli.terminal import present, say
from weir.errors import BadValue
from weir.plugins import llm


@click.command("reranking")
@click.argument("first", type=PATH)
@click.argument("reranked", type=PATH, nargs=-1, required=True)
@options("weir.plugins.llm.rerankings.reranking", "qrels measure collection", qrels={"type": NAME})
@options("weir.plugins.llm.reordering.ReorderRules", "k depth rel block", "rules")
@options("weir.plugins.llm.reordering.WindowShape", "window step", "shape", step={"flags": "--window-step"})
@forms("json", "markdown")
def reranking_command(
    first: Path, reranked: tuple[Path, ...], given: Given, rules: Given, shape: Given, form: str | None
) -> int:
    """Report what re-rankers changed, from run files alone.

    FIRST: rankings of a first stage; RERANKED: re-rankings of their first documents. Reports unchanged
    orders, lost and new documents, how far documents moved, and signs that sliding windows re-ranked. With
    --qrels also the gain, the share of queries that it hurt, and how many relevant documents reached the first ranks,
    by their rank in FIRST.
    """
    asked = weir.ReorderRules(shape=llm.WindowShape(**shape), **rules)
    return present(weir.reranking(first, *reranked, rules=asked, **given), form)


def _depths(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if odd := [part for part in parts if not part.isdecimal()]:
        raise BadValue(f"--depths: found '{odd[0]}'; expected whole numbers such as 5,10,20")
    return tuple(map(int, parts))


@click.command("sensitivity")
@click.argument("folder", metavar="[RESULTS]", required=False, type=PATH)
@options("weir.plugins.llm.rerankings.sensitivity_of", "dataset system measure out",
         out={"flags": "-o --out", "type": FOLDER})  # fmt: skip
@options("weir.plugins.llm.studies.StudyRules", "orders samples depths queries", "rules",
         depths={"multiple": False, "type": str, "default": "5,10,20,50", "callback": _depths,
                 "help": "Candidates re-ranked; '': none."})  # fmt: skip
@budget_option
@price_option
@forms("json")
@quiet_option
def sensitivity_command(
    folder: Path | None, given: Given, rules: Given, form: str | None, quiet: bool
) -> int:
    """Report what re-ranking by a language model depends on.

    RESULTS: a results folder of weir run; its systems that end in a language model are studied, and -d and -s
    choose some. Without RESULTS, -d and -s name a collection and a system. The first stage's candidates are
    re-ranked in random orders (which should not matter), every prompt is asked again (chance), and fewer or
    more candidates are re-ranked (cost against quality). Preferred places in prompts, and pairs judged in
    both orders, are counted too. Answers are stored; the same command continues.
    """
    if folder is None and not {"dataset", "system"} <= set(given):
        raise click.UsageError("give a results folder, or a collection with -d and a system with -s")
    with api.progress.Progress(quiet) as progress:
        asked = weir.StudyRules(**rules)
        studies = weir.sensitivity_of(rules=asked, results=folder, progress=progress, **given)
    code = present(studies, form)
    if "out" in given:
        say(f"records: {given['out']}")
    return code
