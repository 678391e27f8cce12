"""weir compare: which of several systems is better, and is that certain?"""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("compare")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-m", "--measure", "measures", multiple=True, help="A measure such as nDCG@10; repeatable.")
@click.option("--baseline", help="The system that the others are compared with, instead of each with each.")
@click.option("--test", default="permutation", show_default=True,
              help="permutation, t, tukey (randomised HSD), bootstrap-shift, wilcoxon or sign.")  # fmt: skip
@click.option("--correct", default="holm", show_default=True, help="holm, bonferroni, bh or none.")
@click.option("--interval", default="t", show_default=True,
              help="Of a difference: t, percentile, bca, studentised; two-level for datasets.")  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True,
              help="Level of the intervals; tests use 1 minus it.")  # fmt: skip
@click.option(
    "--margin", type=float, help="A difference that counts as none: systems within it are equivalent."
)
@click.option("--draws", type=int, help="Draws of a test that draws.  [default: 100000]")
@click.option("--seed", type=int, help="Seed of the draws.")
@click.option("--ties", type=click.Choice(["trec", "trec9", "expected"]), default="trec", show_default=True,
              help="Equal scores: by identifier, so compared as floats, or the mean over their orders.")  # fmt: skip
@click.option("--missing", type=click.Choice(["zero", "answered-only"]), default="zero", show_default=True,
              help="Queries that a run does not answer score 0, or leave the comparison.")  # fmt: skip
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--json", "form", flag_value="json", help="One JSON object per comparison, at full precision.")
@click.option("--csv", "form", flag_value="csv", help="One line per pair, at full precision.")
@click.option("--latex", "form", flag_value="latex", help="A LaTeX table with the markers papers use.")
@click.option("--markdown", "form", flag_value="markdown", help="The same as a Markdown table.")
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option, as click passes them
    paths: tuple[Path, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    test: str,
    correct: str,
    interval: str,
    level: float,
    margin: float | None,
    draws: int | None,
    seed: int | None,
    ties: str,
    missing: str,
    drop_self: bool,
    form: str | None,
) -> None:
    """Compare systems, with a verdict on each pair.

    PATHS: judgments and two or more runs; or a results folder, whose systems are compared on each dataset and
    across datasets. A difference is the second system minus the first: the later given minus the earlier, or each
    minus the baseline, as in weir diff, weir gate and weir power. Each verdict is better, worse or not separable, with
    the smallest difference that the queries could have shown. Tables are sorted by value; systems that share a letter
    cannot be told apart.
    """
    from weir.errors import BadValue
    from weir.measures.conventions import DEFAULT, Conventions
    from weir.measures.files import scores_of_files
    from weir.report import compare as report
    from weir.stats.bootstrap import SEED
    from weir.stats.compare import compare_scores
    from weir.stats.comparison import ComparisonMethod
    from weir.stats.significance import DRAWS

    method = ComparisonMethod(test, correct, interval, level, margin=margin,
                    draws=DRAWS if draws is None else draws, seed=SEED if seed is None else seed)  # fmt: skip
    conventions = Conventions(ties, missing, self_matches="drop" if drop_self else "keep")
    if len(paths) == 1 and paths[0].is_dir():
        if conventions != DEFAULT:
            raise BadValue(
                f"{conventions}: a results folder holds scores already; pass judgments and runs instead"
            )
        from weir.experiment.compare import compare_results

        found = compare_results(paths[0], measures, baseline, method)
    elif len(paths) < 3:
        raise BadValue("expected judgments and two or more runs, or one results folder")
    else:
        scores = scores_of_files(paths[0], paths[1:], measures, conventions)
        found = compare_scores(scores, paths[0].name, baseline, method)
        for note in report.answer_notes(scores):
            click.echo(note, err=True)
    shown = {
        "json": report.compare_json,
        "csv": report.compare_csv,
        "latex": report.compare_latex,
        "markdown": report.compare_markdown,
    }
    click.echo(shown.get(form or "", report.compare_text)(found))
