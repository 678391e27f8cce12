"""weir data convert: rankings or judgments from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.run import Run

__all__ = ["command"]


@click.command("convert")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(["run", "qrels"]),
              help="What IN holds; otherwise its columns say.")  # fmt: skip
@click.option(
    "--lists",
    is_flag=True,
    help="Of a run, lists of documents in rank order without scores, as BIRCO reads them; .json or .pickle.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(source: Path, target: Path, kind: str | None, lists: bool, quiet: bool) -> None:
    """Convert rankings or judgments between formats.

    The formats are those of the names: .trec (.txt, .run, .qrels), .json, .csv, .tsv, .parquet, .arrow (.feather,
    .ipc), .pickle; .gz or .zst behind any but tables packs the file. Of a pickle nothing is run. Every number survives
    in full. OUT appears whole or not at all; what its format cannot hold is refused, but for a column of origins of
    judgments, whose loss is said.
    """
    from weir.errors import BadValue
    from weir.io.runs.formats import kind_of_file
    from weir.io.runs.read import read_qrels_counted, read_run
    from weir.io.runs.write import refuse_unknown, write_qrels, write_run
    from weir.report.progress import Progress

    refuse_unknown(target, source)
    progress = Progress(quiet)
    found = kind or kind_of_file(source)
    if lists and found == "qrels":
        raise BadValue(f"{source} holds judgments; --lists is about runs")
    progress(f"reading {source.name}", 0, 1)
    stage = f"writing {target.name}"

    def told(done: int, total: int) -> None:
        progress(stage, done, total)

    try:
        if found == "run":
            run = read_run(source)
            write_run(run, target, told, lists=lists)
            note = _run_note(run) + ("; without their scores" if lists else "")
        else:
            qrels, repeated = read_qrels_counted(source)
            write_qrels(qrels, target, told)
            note = _qrels_note(qrels, repeated) + _loss(qrels, target)
    finally:
        progress.close()
    click.echo(f"{target}: {note}")


def _run_note(run: Run) -> str:
    return f"a run of {len(run.queries):,} queries and {len(run.doc):,} documents returned"


def _loss(qrels: Qrels, target: Path) -> str:
    """What the format of a file has no place for."""
    from weir.io.runs.formats import named_format

    form = named_format(target)
    lost = qrels.origin is not None and form is not None and (form.name == "trec" or not form.rows)
    return f"; where they come from is left out, as {form.name} has no place for it" if lost and form else ""


def _qrels_note(qrels: Qrels, repeated: int) -> str:
    left = f"; {repeated:,} repeated judgments left out" if repeated else ""
    return f"{len(qrels.doc):,} judgments of {len(qrels.queries):,} queries{left}"
