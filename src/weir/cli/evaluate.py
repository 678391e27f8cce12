"""weir eval: score a run file against judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weir.core.order import Ties
    from weir.core.row import Row
    from weir.core.scores import Scores

__all__ = ["command"]


@click.command("eval")
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
@click.option("-m", "--measure", "measures", multiple=True, help="A measure such as nDCG@10; repeatable.")
@click.option("--per-query", is_flag=True, help="One line for each query and measure instead of the means.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
@click.option("--ties", type=click.Choice(["trec", "trec9"]), default="trec", show_default=True,
              help="Scores compare as doubles, or as floats as in trec_eval 9.")  # fmt: skip
def command(
    qrels: Path, run: Path, measures: tuple[str, ...], per_query: bool, as_json: bool, ties: Ties
) -> None:
    """Score a run file against judgments.

    QRELS: judgments, TREC (query 0 document grade) or BEIR's TSV. RUN: a ranking, TREC or JSON, plain or
    compressed. Every judged query counts; one that the run does not answer scores 0.
    """
    from weir.io.trec import judge_file, read_qrels
    from weir.measures import DEFAULT_MEASURES, measures_of, scores_of
    from weir.stats.summary import rows

    wanted = measures_of(measures or DEFAULT_MEASURES)
    scores = scores_of(judge_file(run, read_qrels(qrels), ties), wanted)
    if per_query:
        _per_query(scores, as_json)
    else:
        _means(rows(scores, qrels.name, run.name), as_json)
    _warn(scores)


def _per_query(scores: Scores, as_json: bool) -> None:
    from weir.io.scores import score_lines

    if as_json:
        click.echo("\n".join(score_lines(scores)))
        return
    for measure, row in zip(scores.measures, scores.values.tolist(), strict=True):
        for query, value in zip(scores.queries.tolist(), row, strict=True):
            click.echo(f"{measure}\t{query}\t{value!r}")


def _means(found: list[Row], as_json: bool) -> None:
    from weir.report.table import json_lines, text_table

    click.echo(json_lines(found) if as_json else text_table(found))


def _warn(scores: Scores) -> None:
    from weir.report.format import share

    missing = int((~scores.answered).sum())
    if missing:
        click.echo(
            f"note: {missing} of {len(scores.answered)} judged queries are not answered and score 0", err=True
        )
    if scores.ignored:
        click.echo(f"note: {scores.ignored} queries of the run have no judgments and are ignored", err=True)
    if scores.tied:
        click.echo(
            f"note: {share(scores.tied)} of the documents returned share their score with another", err=True
        )
