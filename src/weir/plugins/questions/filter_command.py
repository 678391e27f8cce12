"""The command `weir study filters`."""

from __future__ import annotations

import click

import weir
from weir import api
from weir.cli.options import (
    FOLDER,
    Given,
    budget_option,
    device_option,
    forms,
    options,
    quiet_option,
    system_names,
)
from weir.cli.terminal import present
from weir.errors import BadValue


def _numbers(_: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) if "." in part else int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise BadValue(f"{option.opts[0]}: found '{text}'; expected numbers such as 1,4,16") from None


def _several(default: str, about: str) -> dict[str, object]:
    usual = {"multiple": False, "type": str, "default": default, "callback": _numbers, "metavar": "NUMBERS"}
    return {**usual, "help": f"{about}, between commas."}


@click.command("filters")
@click.option("-s", "--system", "systems", multiple=True, required=True, shell_complete=system_names,
              help="A vector search, such as 'dense(\"minilm\", index=\"HNSW32\")'; repeatable.")  # fmt: skip
@options("weir.plugins.questions.filtering.filters", "dataset filter exact results",
         exact={"metavar": "SYSTEM"}, filter={"metavar": "CONDITION"}, results={"type": FOLDER})  # fmt: skip
@options("weir.plugins.questions.filter_recall.FilterRules",
         "k selectivity overfetch effort target measure seed", "rules",
         selectivity=_several("1,0.5,0.1,0.01", "Shares of the documents that the made filters permit"),
         overfetch=_several("1,4,16,64", "Times k documents asked for where the filter is applied after the search"),
         effort=_several("", "Candidates (HNSW) or lists (IVF) that a query visits"))  # fmt: skip
@device_option
@budget_option
@forms("json", "csv", "markdown")
@quiet_option
def filters_command(
    systems: tuple[str, ...], given: Given, rules: Given, form: str | None, quiet: bool
) -> int:
    """Report how much recall a vector search loses under filters.

    During or after the search it applies the queries' own filters, --filter, and made ones that permit ever
    fewer documents (at random; near, about the query's topic; far, about another). It reports recall of the
    exact first documents, short answers, the loss of a measure, and the setting that reaches --target again.
    """
    with api.progress.Progress(quiet) as progress:
        studies = weir.filters(
            given.pop("dataset"), *systems, rules=weir.FilterRules(**rules), progress=progress, **given
        )
    return present(studies, form)
