"""Score rankings."""

from __future__ import annotations

from pathlib import Path

import click

from weir import api
from weir.cli.options import (
    NAME,
    PATH,
    Given,
    by_option,
    notes_option,
    options,
    refuse_beside,
    scorer_option,
    table_options,
)
from weir.cli.terminal import as_cell, present, show, tell
from weir.errors import BadValue


@click.command("eval")
@click.argument("qrels", type=NAME)
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...")
@options("weir.api.evaluation.evaluate", "measures collection labels least",
         collection={"help": "The collection of the run, by name or path: its rules hold (self-matches, candidates, "
                             "queries without an answer), what it makes of the scores is said, and --by may name its "
                             "columns."},
         labels={"flags": "--model-labels", "metavar": "LABELS", "multiple": False,
                 "help": "Labels of a model, which count where people judged nothing if they pass --min-agreement; "
                         "a folder of weir judge, or a file."},
         least={"flags": "--min-agreement", "metavar": "STATISTIC NUMBER"})  # fmt: skip
@options("weir.measures.evaluate.Conventions", "ties missing empty self_matches", "conventions")
@click.option(
    "--per-query",
    is_flag=True,
    help="One line for each query and measure instead of the means; with --csv under a header.",
)
@by_option
@click.option("--within", is_flag=True,
              help="With --by: mean, worst, best and spread within a group, not a line for each.")  # fmt: skip
@click.option("--p-mrr", "signs", metavar="ORIGINAL:CHANGED",
              help="Add p-MRR of queries under two instructions, by their ends, such as -og:-changed.")  # fmt: skip
@click.option("--label", multiple=True, metavar="NAME=SYSTEM",
              help="What tables and notes call a system; repeatable.")  # fmt: skip
@table_options
@click.option("--abstention", type=click.Choice(["max", "std", "diff1"]),
              help="Show what leaving out the least sure queries gains (nAUC), by this confidence.")  # fmt: skip
@scorer_option
@notes_option
def eval_command(
    qrels: str,
    runs: tuple[Path, ...],
    given: Given,
    conventions: Given,
    per_query: bool,
    by: str | None,
    within: bool,
    signs: str | None,
    label: tuple[str, ...],
    form: str | None,
    long: bool,
    explain: bool,
    abstention: str | None,
    scorer: str | None,
    notes: bool,
) -> int:
    """Score rankings against judgments.

    QRELS: judgments, RUN: one ranking or several, or a folder of them, each in TREC's format, JSON, CSV,
    TSV, Parquet or Arrow; texts also as .gz or .zst. Every judged query counts unless told otherwise. For
    a measure of diversity the second column of QRELS names the intent. Judged@10 is always reported too;
    use weir compare to tell which of several runs is better. Of several runs, one that cannot be scored
    is named and left out; the exit code is 2 then.
    """
    if per_query and form not in (None, "json", "csv"):
        raise BadValue(f"--per-query writes plain lines, --csv or --json; found --{form}")
    if scorer is not None and form not in (None, "json"):
        raise BadValue(f"--scorer writes plain lines, or --json; found --{form}")
    if within and signs is not None:
        raise BadValue(
            "--p-mrr has a value for each pair of queries, which are in no group; leave out --within"
        )
    if within and by is None:
        raise BadValue("--within needs groups; name them with --by, such as --by stem:-")
    for option, used in (("--scorer", scorer is not None), ("--p-mrr", signs is not None)):
        if used and "labels" in given:
            raise BadValue(f"{option} takes the judgments as they are; found --model-labels too")
    of_tables = {"--by": by is not None, "--long": long, "--explain": explain}
    if scorer is not None:
        refuse_beside("--scorer", of_tables | {"--per-query": per_query})
    elif per_query:
        refuse_beside("--per-query", of_tables)
    elif within:
        refuse_beside("--within", {"--long": long})
    if scorer is not None:
        return present(api.results_folder.birco_of_runs(qrels, runs), form, notes)
    files = api.scoring.score_files(qrels, runs, **given, conventions=conventions, signs=signs, titles=label)
    if within:
        code = present(files.within(by), form, notes, {"explain": explain})
    elif per_query:
        show(api.scoring.values_text(files.by_query(form), form, as_cell), styled=False)
        code = tell((*files.label_notes, *files.notes), files.left_out, notes)
    else:
        code = present(files.rows(by), form, notes, {"long": long, "explain": explain})
    for gains in files.abstentions(abstention) if abstention else ():
        if form != "json":
            click.echo()
        present(gains, "json" if form == "json" else None)
    return code
