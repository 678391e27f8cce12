"""weir audit: whether a collection, its judgments and the runs on it are fit to measure with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weir.cli.completion import collections_option, dataset_names

if TYPE_CHECKING:
    from weir.audit import Subject

__all__ = ["command"]


@click.command("audit")
@click.argument("targets", nargs=-1)
@click.option("--only", "names", multiple=True, help="Run this check alone; repeatable.")
@collections_option
@click.option("--training", multiple=True, shell_complete=dataset_names,
              help="A collection that systems may have been trained on; repeatable.")  # fmt: skip
@click.option(
    "--encoder", help="A model, as dense takes it, that tells what queries mean, and where it cuts documents."
)
@click.option("--regression-queries", "regression", type=click.Path(path_type=Path),
              help="Write some queries that stand for all, as a file of groups for --by of weir gate.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the checks and what each needs.")
@click.option(
    "--expand", is_flag=True, help="Write judgments that copies of a judged document share, with -o."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where --expand writes the judgments.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each finding.")
def command(
    targets: tuple[str, ...],
    names: tuple[str, ...],
    collections: tuple[str, ...],
    training: tuple[str, ...],
    encoder: str | None,
    regression: Path | None,
    listed: bool,
    expand: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Report what is wrong with collections, judgments and runs.

    TARGETS: collections by name or path, a results folder of weir run, or QRELS RUN... as weir eval takes them.
    Findings come worst first: "wrong" (a number is not what it says), "serious" (conclusions may turn), "caution",
    "note". A check runs where what it needs is there.
    """
    from weir.audit import audited_all
    from weir.cli.terminal import output_width, show
    from weir.experiment.audit_subjects import subjects_of
    from weir.report.audit import audit_json, audit_text, checks_text
    from weir.report.progress import Progress

    if listed:
        show(checks_text(output_width()))
        return
    if expand != (out is not None):
        raise click.UsageError("--expand and -o go together: weir audit COLLECTION --expand -o QRELS")
    subjects = subjects_of(targets, collections, training, encoder)
    if out is not None or regression is not None:
        _write(_alone(subjects), out, regression)
        return
    progress = Progress()
    try:
        audits = audited_all(subjects, names, progress)
    finally:
        progress.close()
    show(audit_json(audits) if as_json else audit_text(audits, output_width()))


def _alone(subjects: Sequence[Subject]) -> Subject:
    if len(subjects) != 1:
        raise click.UsageError(f"files are written of one collection; found {len(subjects)}")
    return subjects[0]


def _write(subject: Subject, expanded: Path | None, regression: Path | None) -> None:
    """Write judgments with grades given to copies, and queries that stand for all."""
    if expanded is not None:
        _expand(subject, expanded)
    if regression is not None:
        from weir.audit.regression_queries import regression_queries, write_regression_queries

        chosen = regression_queries(subject)
        write_regression_queries(chosen, regression)
        click.echo(f"{regression}: {len(chosen):,} queries; weir gate ... --by {regression}", err=True)


def _expand(subject: Subject, out: Path) -> None:
    """Write the judgments of one subject with grades given to copies."""
    from weir.audit.duplicates import copies, expanded
    from weir.datasets.same_text import normalised, title_and_text
    from weir.io.runs.write import write_qrels

    corpus = subject.need_corpus()
    wider, added = expanded(subject.need_qrels(), corpus, copies(title_and_text(corpus), normalised))
    write_qrels(wider, out)
    click.echo(f"{out}: {added:,} judgments added to {len(subject.need_qrels().grade):,}", err=True)
