"""The commands of `weir labels`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weir.cli.options import FOLDER, NAME, OUTPUT, PATH, collection_option, collections_option, measure_names
from weir.cli.terminal import say, say_notes, show, show_result, show_tables

if TYPE_CHECKING:
    from weir.api.result_set import ResultSet


@click.command("pool")
@click.argument("targets", type=NAME, nargs=-1, required=True)
@click.option("-k", default=10, show_default=True, help="Ranks of each system that are looked at.")
@click.option("--limit", type=int, help="Pairs at most, those that narrow scores most.")
@collections_option
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder to write.")
def pool_command(
    targets: tuple[str, ...], k: int, limit: int | None, collections: tuple[str, ...], out: Path
) -> None:
    """Write a sheet of the documents to judge next.

    TARGETS: a results folder of weir run, or QRELS RUN... as weir eval takes them. The sheet, to_judge.tsv, holds each
    unjudged document among the first k of any system, blind: which system returned it, and where, is not said. Queries
    whose judging narrows scores most come first, documents of a query are shuffled. Fill in the column "grade", then:
    weir labels relabel FOLDER/to_judge.tsv TARGETS
    Texts stand on the sheet where the collection is known: for run files by --collection.
    """
    from weir.api.auditing import judging_pool

    pools = judging_pool(*targets, out=out, k=k, limit=limit, collection=collections)
    say(f"{out}: {sum(map(len, pools)):,} pairs to judge")
    say_notes(pools.notes())


@click.command("agree")
@click.argument("first", type=NAME)
@click.argument("others", type=NAME, nargs=-1)
@click.option("--run", "runs", type=NAME, multiple=True, metavar="RUN",
              help="A ranking, to see whether the order of systems survives; repeatable.")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="What systems are ordered by.")  # fmt: skip
@click.option(
    "--per-query", "by_query", is_flag=True, help="A line for each query too, the worst kappa first."
)
@click.option("--label-grade", "words", multiple=True, metavar="LABEL=GRADE",
              help="What a label means that is no number, such as 'partly relevant=1'; repeatable.")  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per pair of labels, at full precision."
)
def agree_command(
    first: str,
    others: tuple[str, ...],
    runs: tuple[str, ...],
    measure: str,
    by_query: bool,
    words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Report how well labels of people, or of models, agree.

    FIRST: judgments, usually those of people; OTHERS: labels of the same pairs, of a model or other people. Each is a
    file of judgments, a folder of weir judge, or another judge's table, FILE#COLUMN where several columns are labels.
    Of one file alone its raters are compared, by the column origin or by columns.
    Cohen's kappa of all grades, weighted, and from each grade on with the shares of relevant pairs; Krippendorff's
    alpha, of more than two raters also of all together; AC1, mean error and bias; intervals by resampling queries.
    With --run, the order of systems under both.
    """
    from weir.api.labels import agree, labels_by_name, rank_agreement, rater_agreement
    from weir.core.frames import plain
    from weir.core.results import json_lines
    from weir.stats.label_agreement import query_agreement_tables

    labels = labels_by_name((first, *others), words) if len(others) != 1 else {}
    pairs = agree(first, *others, words=words)
    more: list[ResultSet[Any]] = []
    if len(labels) > 2:
        more.append(rater_agreement(first, *others, words=words))
    if runs:
        more.append(rank_agreement(first, *others, runs=runs, measure=measure, words=words))
    if as_json:
        show(json_lines(map(plain, pairs)) if by_query else pairs.shown("json"))
        for results in more:
            show_result(results, "json")
    else:
        by_queries = query_agreement_tables(pairs) if by_query else ()
        show_tables(
            [*pairs.tables(), *by_queries, *(table for results in more for table in results.tables())]
        )


@click.command("estimate")
@click.argument("human", type=NAME)
@click.argument("model", type=NAME)
@click.argument("runs", type=PATH, nargs=-1, required=True)
@click.option("-m", "--measure", shell_complete=measure_names, default="P@10", show_default=True,
              help="P@k, Success@k, RR@k, DCG@k, SDCG@k, ERR@k, RBP@k, ContextPrecision@k.")  # fmt: skip
@click.option(
    "--strata", help="People's queries were drawn within these: a file of queries and strata, or a column."
)
@click.option("--weights", help="A file of queries and weights, one over the probability of being drawn.")
@click.option("--pairs", is_flag=True, help="People judged a random part of each query's first documents.")
@click.option("--sheet", "sheets", multiple=True, type=PATH,
              help="A filled sheet of --next or weir labels pool: people's judgments, too. Repeatable.")  # fmt: skip
@click.option("--next", "more", type=int, help="Draw so many queries that people should judge next.")
@click.option(
    "--width", type=float, help="Half an interval that is asked for: say how many queries it takes."
)
@click.option("-o", "--out", type=FOLDER, help="The folder of the sheet of --next.")
@click.option(
    "--collection",
    type=NAME,
    help="The collection of the runs, a name or a path: its rules hold (self-matches, candidates), its columns may be "
    "strata, its texts stand on the sheet.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per system, at full precision.")
def estimate_command(
    human: str,
    model: str,
    runs: tuple[Path, ...],
    measure: str,
    strata: str | None,
    weights: str | None,
    pairs: bool,
    sheets: tuple[Path, ...],
    more: int | None,
    width: float | None,
    out: Path | None,
    collection: str | None,
    as_json: bool,
) -> None:
    """Estimate scores from few human judgments and many of a model.

    HUMAN: judgments of people, of some queries drawn at random; MODEL: a model's judgments of these and of others, or
    a folder of weir judge. Prediction-powered inference (PPI++) takes the model's error, measured where people judged
    too, out of its scores and of the differences of systems, and is never much wider than people alone. --next draws
    the queries that people should judge next. Measures whose ideal ranking depends on the labels, as nDCG, are refused.
    """
    from weir.api.labels import estimate, next_queries

    planned = more is not None or width is not None
    if planned and (weights or pairs):
        raise click.UsageError("--next and --width are of whole queries, at random or by --strata")
    if out is not None and not planned:
        raise click.UsageError("-o takes --next or --width, which say what to draw")
    estimates = estimate(
        human, model, *runs, measure=measure, strata=strata, weights=weights, pairs=pairs, sheets=sheets,
        collection=collection,
    )  # fmt: skip
    drawn = (
        next_queries(
            human, model, *runs, measure=measure, count=more, width=width, strata=strata, sheets=sheets, out=out,
            collection=collection,
        )
        if planned
        else None
    )  # fmt: skip
    say_notes(estimates.notes())
    if as_json:
        for results in (estimates,) if drawn is None else (estimates, drawn):
            show_result(results, "json")
        return
    show_tables([*estimates.tables(), *(() if drawn is None else drawn.tables())])
    if out is not None and drawn is not None:
        say(f"{out}: {sum(one.pairs for one in drawn):,} pairs to judge")


@click.command("holes")
@click.argument("qrels", type=NAME)
@click.argument("runs", type=NAME, nargs=-1, required=True, metavar="RUN...")
@click.option("--human-labels", "human", metavar="LABELS",
              help="What people say of them: a sheet of weir labels pool, filled in, or a file of labels.")  # fmt: skip
@click.option("--model-labels", "model", metavar="LABELS",
              help="What a model says of them: a folder of weir judge, or a file of labels. One or both.")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="What systems are ordered by; its cut-off says how deep holes are looked for.")  # fmt: skip
@click.option("--rel", default=1.0, show_default=True, help="The grade from which a document is relevant.")
@collection_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def holes_command(
    qrels: str,
    runs: tuple[str, ...],
    human: str | None,
    model: str | None,
    measure: str,
    rel: float,
    collection: str | None,
    as_json: bool,
) -> None:
    """Report how many unjudged documents are relevant.

    QRELS: judgments, RUN: rankings, as weir eval takes them. The documents among the first of each ranking that QRELS
    does not judge are holes, which count as not relevant. Of those that people, a model, or both judged: how many are
    relevant (false negatives), how far both agree, each system's score with the holes judged, and whether the order of
    systems changes; intervals by resampling queries. A sheet to judge comes from: weir labels pool QRELS RUN... -o
    pool/
    """
    from weir.api.labels import holes

    study = holes(qrels, *runs, human=human, model=model, measure=measure, rel=rel, collection=collection)
    say_notes(study.notes())
    show_result(study, "json" if as_json else None)


@click.command("relabel")
@click.argument("judged", type=NAME)
@click.argument("targets", type=NAME, nargs=-1, required=True)
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="A measure such as nDCG@10.")  # fmt: skip
@click.option("--origin", default="new", show_default=True, help="What the new judgments are called.")
@collections_option
@click.option("-o", "--out", type=OUTPUT, help="Write the judgments together, with origins.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per system, at full precision.")
def relabel_command(
    judged: str,
    targets: tuple[str, ...],
    measure: str,
    origin: str,
    collections: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Score every system again with new judgments.

    JUDGED: a sheet of weir labels pool with grades filled in, or any file of judgments. TARGETS: a results folder of
    weir run, or QRELS RUN... as weir eval takes them. Where both judge a pair, the new judgment counts.
    """
    from weir.api.auditing import relabel

    rows = relabel(judged, *targets, measure=measure, origin=origin, collection=collections, out=out)
    for note in rows.notes():
        say(note.text)
    show_result(rows, "json" if as_json else None)
