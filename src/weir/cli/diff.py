"""weir diff: which queries won, which lost, and what moved."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import dataset_names, measure_names
from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("diff")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-m",
    "--measure",
    shell_complete=measure_names,
    help="A measure.  [default: nDCG@10, or the first that both folders have]",
)
@click.option(
    "--collection",
    shell_complete=dataset_names,
    help="The collection, a name or a path: its texts are shown, and its rules hold for run files.",
)
@click.option(
    "--top", type=click.IntRange(min=0), default=10, show_default=True, help="Moves shown each way."
)
@click.option("--drop-self", is_flag=True,
              help="Leave out documents with the identifier of their query (ArguAna, Quora).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def command(
    paths: tuple[Path, ...],
    measure: str | None,
    collection: str | None,
    top: int,
    drop_self: bool,
    as_json: bool,
) -> None:
    """List queries won and lost.

    One run is set against another. PATHS: judgments and two runs, or two folders such as
    results/scifact/bm25-fa19b4d424; differences are the second minus the first. Each of the largest moves names the
    relevant documents whose ranks moved most. Texts are shown where the collection is given or, for folders, on this
    machine; nothing is downloaded.
    """
    from weir.datasets.scoring_rules import ScoringRules, judged_collection
    from weir.errors import BadValue
    from weir.experiment.diff import diff_cells, diff_files
    from weir.measures.conventions import Conventions
    from weir.report.diff import diff_json, diff_text

    match paths:
        case (one, other):
            if drop_self:
                raise BadValue("--drop-self is for run files; weir run has left out what its collection says")
            found = diff_cells(one, other, measure, collection, top)
        case (qrels, one, other):
            qrels, collection = judged_collection(qrels, collection)
            rules = ScoringRules.of(collection, Conventions(self_matches="drop" if drop_self else "keep"))
            found = diff_files(qrels, (one, other), measure or "nDCG@10", rules, top)
        case _:
            raise BadValue(
                f"found {len(paths)} paths; expected judgments and two runs, or two result folders"
            )
    show(diff_json(found) if as_json else diff_text(found, output_width()))
