"""weir labels relabel: every system before and after new judgments."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import collections_option, measure_names
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("relabel")
@click.argument("judged", type=click.Path(path_type=Path))
@click.argument("targets", nargs=-1, required=True)
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="A measure such as nDCG@10.")  # fmt: skip
@click.option("--origin", default="new", show_default=True, help="What the new judgments are called.")
@collections_option
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write the judgments together, with origins."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per system, at full precision.")
def command(
    judged: Path,
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
    from weir.audit.judging_pool import read_sheet
    from weir.audit.relabel import judged_anew, relabelled
    from weir.experiment.audit_subjects import subjects_of
    from weir.io.runs.write import write_qrels
    from weir.measures.measure import parse_measure
    from weir.report.relabel import relabel_json, relabel_text

    new, empty = read_sheet(judged)
    if empty:
        say(f"{judged}: {empty:,} lines have no grade yet and stay unjudged")
    subjects = judged_anew(subjects_of(targets, collections), new)
    if out is not None and len(subjects) != 1:
        raise click.UsageError(f"-o takes one collection; found {len(subjects)}")
    rows = []
    for subject in subjects:
        found, both = relabelled(subject, new, parse_measure(measure), origin)
        rows += found
        if out is not None:
            write_qrels(both, out)
    show(relabel_json(rows) if as_json else relabel_text(rows, output_width()))
