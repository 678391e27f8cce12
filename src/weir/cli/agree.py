"""weir agree: how well do two sets of labels agree?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("agree")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("others", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--run", "runs", type=click.Path(path_type=Path), multiple=True,
              help="A ranking, to see whether the order of systems survives; repeatable.")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="What systems are ordered by.")  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per pair of labels, at full precision."
)
def command(
    first: Path, others: tuple[Path, ...], runs: tuple[Path, ...], measure: str, as_json: bool
) -> None:
    """Say how well labels of people, or of models, agree.

    FIRST: judgments, usually those of people; OTHERS: judgments of the same pairs, of a model or other people.
    Cohen's kappa of all grades, weighted, and from each grade on with the shares of relevant pairs; Krippendorff's
    alpha, AC1, mean error and bias; intervals by resampling queries. With --run, the order
    of systems under both.
    """
    from weir.io.runs.read import read_qrels, read_run
    from weir.measures.files import names_of_runs
    from weir.measures.measure import parse_measure
    from weir.report.agree import agree_json, agree_text, orders_text
    from weir.stats.label_agreement import agreement
    from weir.stats.order_agreement import order_agreement

    names = names_of_runs([first, *others])
    labels = [read_qrels(path) for path in (first, *others)]
    found = [
        agreement(labels[0], other, (names[0], name))
        for name, other in zip(names[1:], labels[1:], strict=True)
    ]
    systems = {name: read_run(path) for name, path in zip(names_of_runs(list(runs)), runs, strict=True)}
    asked = parse_measure(measure)
    orders = [order_agreement(systems, labels[0], other, asked) for other in labels[1:]] if systems else []
    if as_json:
        show(agree_json(found, orders))
        return
    parts = [agree_text(found, output_width())]
    parts += [
        orders_text(one, (names[0], name), output_width())
        for one, name in zip(orders, names[1:], strict=False)
    ]
    show("\n\n".join(parts))
