"""weir audit: whether a collection, its judgments and the runs on it are fit to measure with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weir.audit import Subject

__all__ = ["command"]


@click.command("audit")
@click.argument("targets", nargs=-1)
@click.option("--only", "names", multiple=True, help="Run this check alone; repeatable.")
@click.option("--collection", help="Documents and queries that run files are about: a name or a path.")
@click.option("--list", "listed", is_flag=True, help="List the checks and what each needs.")
@click.option(
    "--expand", is_flag=True, help="Write judgments that copies of a judged document share, with -o."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where --expand writes the judgments.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each finding.")
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option, as click passes them
    targets: tuple[str, ...],
    names: tuple[str, ...],
    collection: str | None,
    listed: bool,
    expand: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Audit collections, judgments and runs: what is wrong with them, and what that does to scores.

    TARGETS: collections by name or path, a results folder of weir run, or QRELS RUN... as weir eval takes them.
    Findings come worst first: "wrong" (a number is not what it says), "serious" (conclusions may turn), "caution",
    "note". A check runs where what it needs is there.
    """
    from weir.audit import audited
    from weir.cli.terminal import output_width, show
    from weir.experiment.audit_subjects import subjects_of
    from weir.report.audit import audit_json, audit_text, checks_text

    if listed:
        show(checks_text(output_width()))
        return
    if expand != (out is not None):
        raise click.UsageError("--expand and -o go together: weir audit COLLECTION --expand -o QRELS")
    subjects = subjects_of(targets, collection)
    if out is not None:
        _expand(subjects, out)
        return
    audits = [audited(subject, names) for subject in subjects]
    show(audit_json(audits) if as_json else audit_text(audits, output_width()))


def _expand(subjects: Sequence[Subject], out: Path) -> None:
    """Write the judgments of one subject with grades given to copies."""
    from weir.audit.duplicates import copies, expanded
    from weir.datasets.same_text import normalised, title_and_text
    from weir.io.runs.write import write_qrels

    if len(subjects) != 1:
        raise click.UsageError(f"--expand takes one collection; found {len(subjects)}")
    [subject] = subjects
    corpus = subject.need_corpus()
    wider, added = expanded(subject.need_qrels(), corpus, copies(title_and_text(corpus), normalised))
    write_qrels(wider, out)
    click.echo(f"{out}: {added:,} judgments added to {len(subject.need_qrels().grade):,}", err=True)
