"""weir eval: score a run file against judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weir.core.result_row import Row
    from weir.core.scores import Scores

__all__ = ["command"]


@click.command("eval")
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-m", "--measure", "measures", multiple=True, help="A measure such as nDCG@10; repeatable.")
@click.option("--per-query", is_flag=True, help="One line for each query and measure instead of the means.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@click.option("--ties", type=click.Choice(["trec", "trec9", "expected", "bounds"]), default="trec", show_default=True,
              help="Equal scores stand by identifier, compared as doubles or (trec9) as floats; or the exact mean over "
                   "all their orders; or trec with the worst and the best order.")  # fmt: skip
@click.option("--missing", type=click.Choice(["zero", "answered-only"]), default="zero", show_default=True,
              help="Judged queries that the run does not answer score 0, or leave the mean.")  # fmt: skip
@click.option("--empty", type=click.Choice(["zero", "left-out"]), default="zero", show_default=True,
              help="Queries without a relevant document score 0, or leave the mean.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option(
    "--collection", help="The collection of the run, a name or a path, to say what it makes of the scores."
)
@click.option("--abstention", type=click.Choice(["max", "std", "diff1"]),
              help="Show what leaving out the least sure queries gains (nAUC), by this confidence.")  # fmt: skip
def command(  # noqa: PLR0913, PLR0917 - click passes each option as an argument
    qrels: Path,
    run: Path,
    measures: tuple[str, ...],
    per_query: bool,
    as_json: bool,
    ties: str,
    missing: str,
    empty: str,
    drop_self: bool,
    collection: str | None,
    abstention: str | None,
) -> None:
    """Score a run file against judgments.

    QRELS: judgments, RUN: a ranking, each in TREC's format, JSON, CSV, TSV, Parquet or Arrow; texts also as .gz
    or .zst. Every judged query counts unless told otherwise. For a measure of diversity the
    second column of QRELS names the intent.
    """
    from dataclasses import replace

    from weir.io.runs.read import run_name
    from weir.measures import DEFAULT_MEASURES, measures_of, scores_of
    from weir.measures.conventions import Conventions
    from weir.measures.files import judge, judgments_for
    from weir.report.notes import float_tie_notes, score_notes
    from weir.stats.score_rows import rows

    wanted = measures_of(measures or DEFAULT_MEASURES)
    conventions = Conventions(ties, missing, empty, "drop" if drop_self else "keep")
    judgments = judgments_for(qrels, wanted)
    judged = judge(run, judgments, conventions)
    scores = scores_of(judged, wanted, conventions)
    if per_query:
        _per_query(scores, as_json)
    else:
        _means(rows(scores, qrels.name, run_name(run)), as_json)
    if abstention:
        _abstention(run, scores, abstention, as_json)
    notes = score_notes(scores)
    if judged.close and ties == "trec":  # else trec_eval 9 puts every ranking in the same order
        nine = replace(conventions, ties="trec9")
        notes += float_tie_notes(scores, scores_of(judge(run, judgments, nine), wanted, nine))
    if collection is not None:
        from weir.datasets.load import load
        from weir.report.collection import collection_notes

        notes += collection_notes(load(collection), scores.measures, drop_self)
    for note in notes:
        click.echo(note, err=True)


def _per_query(scores: Scores, as_json: bool) -> None:
    from weir.io.runs.scores_file import score_lines

    if as_json:
        click.echo("\n".join(score_lines(scores)))
        return
    ends = [scores.values]
    if "ties=bounds" in scores.conventions and scores.low is not None and scores.high is not None:
        ends += [scores.low, scores.high]
    for measure, *rows in zip(scores.measures, *(end.tolist() for end in ends), strict=True):
        for query, *values in zip(scores.queries.tolist(), *rows, strict=True):
            click.echo("\t".join([measure, query, *map(repr, values)]))


def _means(found: list[Row], as_json: bool) -> None:
    from weir.report.table import json_lines, text_table

    click.echo(json_lines(found) if as_json else text_table(found))


def _abstention(run: Path, scores: Scores, confidence: str, as_json: bool) -> None:
    import json

    from weir.io.runs.read import read_run
    from weir.report.abstention import abstention_text
    from weir.stats.abstention import abstention

    found = abstention(read_run(run), scores, confidence)
    if as_json:
        click.echo("\n".join(json.dumps(one.to_dict()) for one in found))
    else:
        click.echo("\n" + abstention_text(found))
