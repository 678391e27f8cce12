"""weir estimate: scores from few human judgments and many of a model."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("estimate")
@click.argument("human", type=click.Path(path_type=Path))
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-m", "--measure", shell_complete=measure_names, default="P@10", show_default=True,
              help="P@k, Success@k, RR@k, DCG@k or RBP@k.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object per system, at full precision.")
def command(human: Path, model: Path, runs: tuple[Path, ...], measure: str, as_json: bool) -> None:
    """Estimate scores from few human judgments and many of a model.

    HUMAN: judgments of people, of some queries drawn at random; MODEL: a model's judgments of these and of others.
    Prediction-powered inference (PPI++) takes the model's error, measured where people judged too, out of its scores,
    and is never much wider than people alone. Measures whose ideal ranking depends on the labels, as nDCG, are refused.
    """
    from weir.io.runs.read import read_qrels, read_run
    from weir.measures.files import names_of_runs
    from weir.measures.measure import parse_measure
    from weir.report.estimate import estimate_json, estimate_text
    from weir.stats.corrected_scores import corrected_score

    labels, asked = (read_qrels(human), read_qrels(model)), parse_measure(measure)
    names = names_of_runs(list(runs))
    found = [
        corrected_score(name, read_run(path), *labels, asked) for name, path in zip(names, runs, strict=True)
    ]
    show(estimate_json(found) if as_json else estimate_text(found, output_width()))
