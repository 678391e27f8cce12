"""The commands of `weir labels`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weir import labels
from weir.cli.options import FOLDER, NAME, OUTPUT, PATH, Given, forms, options
from weir.cli.terminal import present, say, say_notes, show_results, show_tables

if TYPE_CHECKING:
    from weir.api.result_set import ResultSet

WORDS = {"flags": "--label-grade", "metavar": "LABEL=GRADE"}
COLLECTIONS = {"metavar": "[NAME=]COLLECTION"}


@click.command("pool")
@click.argument("targets", type=NAME, nargs=-1, required=True)
@options("weir.plugins.labels.api.judging_pool", "k limit by_lot collection", collection=COLLECTIONS)
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder to write.")
def pool_command(targets: tuple[str, ...], given: Given, out: Path) -> None:
    """Write a sheet of the documents to judge next.

    TARGETS: a results folder of weir run, or judgments and run files (QRELS RUN...). QRELS may be a
    collection without judgments. The sheet, to_judge.tsv, holds each unjudged document among the
    first k of any system, but not which system returned it, or at which rank. Queries whose judging narrows
    scores most come first; the documents of a query are shuffled. Fill in the column "grade", then: weir
    labels relabel FOLDER/to_judge.tsv TARGETS

    The sheet has texts if the collection is known: for run files by --collection.
    """
    pools = labels.judging_pool(*targets, out=out, **given)
    say(f"{out}: {sum(map(len, pools)):,} pairs to judge")
    sheet = f"{out}/{'' if len(pools) == 1 else 'COLLECTION/'}to_judge.tsv"
    say(
        f"next: fill in its column grade, or weir open {out}; then, with -o judged.tsv for what other commands read:"
    )
    say(f"  weir labels relabel {sheet} {' '.join(targets)}")
    say_notes(pools.notes())


@click.command("agree")
@click.argument("first", type=NAME)
@click.argument("others", type=NAME, nargs=-1)
@options("weir.plugins.labels.api.rank_agreement", "runs measure", "order",
         runs={"flags": "--run", "type": NAME, "metavar": "RUN", "multiple": True, "required": False})  # fmt: skip
@options("weir.plugins.labels.api.agree", "words", "words", words=WORDS)
@options("weir.plugins.labels.api.agree", "by_query", by_query={"flags": "--per-query"})
@forms("json")
def agree_command(
    first: str, others: tuple[str, ...], order: Given, words: Given, given: Given, form: str | None
) -> None:
    """Report how well labels of people, or of models, agree.

    FIRST: judgments, usually by people; OTHERS: labels of the same pairs, by a model or other people. Each is a file
    of judgments, a folder of weir judge, or a table, FILE#NAME for one of several columns of labels, or one of the
    raters in its rows. A single file is split by a column that names raters (rater, assessor, annotator, origin
    ...), or by its columns of labels. Reports Cohen's kappa (also weighted, and for each
    grade as the lowest relevant one), Krippendorff's alpha (of more than two raters also together), AC1, mean
    error and bias, with intervals by resampling queries. With --run, also compares the orders of systems.
    """
    found: list[ResultSet[Any]] = [labels.agree(first, *others, **words, **given)]
    if len(found[0]) > 1:
        found.append(labels.rater_agreement(first, *others, **words))
    if "runs" in order:
        found.append(labels.rank_agreement(first, *others, **order, **words))
    _show_all(found, form)


def _show_all(found: Sequence[ResultSet[Any]], form: str | None) -> None:
    if form is None:
        show_tables([table for results in found for table in results.tables()])
    for results in found if form is not None else ():
        show_results(results, form)
    say_notes(note for results in found for note in results.notes())


@click.command("estimate")
@click.argument("human", type=NAME)
@click.argument("model", type=NAME)
@click.argument("runs", type=PATH, nargs=-1, required=True)
@options("weir.plugins.labels.api.estimate", "measure strata weights pairs sheets collection",
         sheets={"flags": "--sheet", "type": PATH})  # fmt: skip
@options("weir.plugins.labels.api.next_queries", "count width out", "next_ones",
         count={"flags": "--next"}, out={"flags": "-o --out", "type": FOLDER})  # fmt: skip
@forms("json")
def estimate_command(
    human: str, model: str, runs: tuple[Path, ...], given: Given, next_ones: Given, form: str | None
) -> None:
    """Estimate scores from few human judgments and many of a model.

    HUMAN: people's judgments of some queries drawn at random; MODEL: a model's judgments of these and other
    queries, or a folder of weir judge. Prediction-powered inference (PPI++) measures the model's error where
    people judged too, and removes it from scores and differences of systems. Its intervals are never much
    wider than from people's judgments alone. --next draws the queries that people should judge next. Measures
    whose ideal ranking depends on the labels, such as nDCG, are refused.
    """
    planned = "count" in next_ones or "width" in next_ones
    if planned and ("weights" in given or "pairs" in given):
        raise click.UsageError("--next and --width are of whole queries, at random or by --strata")
    if "out" in next_ones and not planned:
        raise click.UsageError("-o takes --next or --width, which say what to draw")
    estimates = labels.estimate(human, model, *runs, **given)
    drawn = [labels.next_queries(human, model, *runs, **given, **next_ones)] if planned else []
    _show_all([estimates, *drawn], form)
    if "out" in next_ones:
        say(f"{next_ones['out']}: {sum(one.pairs for plans in drawn for one in plans):,} pairs to judge")


@click.command("holes")
@click.argument("qrels", type=NAME)
@click.argument("runs", type=NAME, nargs=-1, required=True, metavar="RUN...")
@options("weir.plugins.labels.api.holes", "human model measure rel collection",
         human={"flags": "--human-labels", "metavar": "LABELS"},
         model={"flags": "--model-labels", "metavar": "LABELS"})  # fmt: skip
@forms("json")
def holes_command(qrels: str, runs: tuple[str, ...], given: Given, form: str | None) -> int:
    """Report how many unjudged documents are relevant.

    QRELS: judgments, RUN: rankings. Holes are unjudged documents among the first of each ranking; they count
    as not relevant. For the holes that people, a model, or both judged, reports how many are relevant (false
    negatives), how far people and model agree, each system's score with the holes judged, and whether the
    order of systems changes; intervals by resampling queries. A sheet to judge comes from: weir labels pool
    QRELS RUN... -o pool/
    """
    return present(labels.holes(qrels, *runs, **given), form)


@click.command("people")
@click.argument("first", metavar="LABELS", type=NAME)
@click.argument("others", type=NAME, nargs=-1)
@options("weir.plugins.labels.api.people", "measure words", words=WORDS)
@forms("json")
def people_command(first: str, others: tuple[str, ...], given: Given, form: str | None) -> int:
    """Report how sure people are of their judgments.

    LABELS: the judgments.sqlite of weir open --judge, or labels of several people as in weir labels agree.
    Reports kappa of each two people, alpha of all, and each person's kappa with their own second grades. The
    human ceiling of a measure is the score of a ranking by one person's grades under another's labels; above
    it, no system can be told to be better. Compared rankings give win rates and the order of Bradley and
    Terry.
    """
    return present(labels.people(first, *others, **given), form)


@click.command("relabel")
@click.argument("judged", type=NAME)
@click.argument("targets", type=NAME, nargs=-1, required=True)
@options("weir.plugins.labels.api.relabel", "measure origin collection out", collection=COLLECTIONS,
         out={"flags": "-o --out", "type": OUTPUT})  # fmt: skip
@forms("json")
def relabel_command(judged: str, targets: tuple[str, ...], given: Given, form: str | None) -> int:
    """Score every system again with new judgments.

    JUDGED: a sheet of weir labels pool with grades filled in, or any file of judgments. TARGETS: a results
    folder of weir run, or judgments and run files (QRELS RUN...). If both judge a pair, the new judgment
    counts.
    """
    return present(labels.relabel(judged, *targets, **given), form)
