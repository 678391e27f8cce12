"""weir labels agree: how well do two sets of labels, or more, agree?"""

from __future__ import annotations

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("agree")
@click.argument("first")
@click.argument("others", nargs=-1)
@click.option("--run", "runs", multiple=True, metavar="RUN",
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
def command(
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
    from weir.api.labelling import agree, labels_by_name, rank_agreement, rater_agreement
    from weir.report.agree import agree_json, agree_text, by_query_text, orders_text, raters_text

    named = labels_by_name((first, *others), words) if len(others) != 1 else {}
    several = rater_agreement(first, *others, words=words) if len(named) > 2 else ()
    found = agree(first, *others, words=words)
    ordered = rank_agreement(first, *others, runs=runs, measure=measure, words=words) if runs else ()
    if as_json:
        show(agree_json(found, several, ordered, by_query))
        return
    width = output_width()
    parts = [agree_text(found, width), *([by_query_text(found, width)] if by_query else [])]
    parts += [raters_text(several, width)] if several else []
    parts += [orders_text(ordered, width)] if ordered else []
    show("\n\n".join(parts))
