"""weir labels estimate: scores from few human judgments and many of a model."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, say, say_notes, show

__all__ = ["command"]


@click.command("estimate")
@click.argument("human", type=click.Path(path_type=Path))
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-m", "--measure", shell_complete=measure_names, default="P@10", show_default=True,
              help="P@k, Success@k, RR@k, DCG@k, SDCG@k, ERR@k, RBP@k, ContextPrecision@k.")  # fmt: skip
@click.option(
    "--strata", help="People's queries were drawn within these: a file of queries and strata, or a column."
)
@click.option("--weights", help="A file of queries and weights, one over the probability of being drawn.")
@click.option("--pairs", is_flag=True, help="People judged a random part of each query's first documents.")
@click.option("--sheet", "sheets", multiple=True, type=click.Path(path_type=Path),
              help="A filled sheet of --next or weir labels pool: people's judgments, too. Repeatable.")  # fmt: skip
@click.option("--next", "more", type=int, help="Draw so many queries that people should judge next.")
@click.option(
    "--width", type=float, help="Half an interval that is asked for: say how many queries it takes."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The folder of the sheet of --next.")
@click.option(
    "--collection",
    help="The collection of the runs, a name or a path: its rules hold (self-matches, candidates), its columns may be "
    "strata, its texts stand on the sheet.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per system, at full precision.")
def command(
    human: Path,
    model: Path,
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
    from weir.api.estimating import estimate, next_queries
    from weir.report.estimate import estimate_json, estimate_text, plan_text

    planned = more is not None or width is not None
    if planned and (weights or pairs):
        raise click.UsageError("--next and --width are of whole queries, at random or by --strata")
    if out is not None and not planned:
        raise click.UsageError("-o takes --next or --width, which say what to draw")
    found = estimate(
        human, model, *runs, measure=measure, strata=strata, weights=weights, pairs=pairs, sheets=sheets,
        collection=collection,
    )  # fmt: skip
    drawn = (
        next_queries(
            human, model, *runs, measure=measure, count=more, width=width, strata=strata, sheets=sheets, out=out,
            collection=collection,
        )
        if planned
        else ()
    )  # fmt: skip
    say_notes(found.notes)
    if as_json:
        show(estimate_json([*found, *drawn]))
        return
    parts = [estimate_text(list(found), output_width())]
    show("\n\n".join([*parts, *(plan_text(one, output_width()) for one in drawn)]))
    if out is not None:
        say(f"{out}: {sum(one.pairs for one in drawn):,} pairs to judge")
