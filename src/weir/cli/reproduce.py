"""weir reproduce: are these the published numbers?"""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("reproduce")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "--published", "model", help="Take the systems to be this published model, such as 'baseline bm25s'."
)
@click.option(
    "--tolerance", type=int, metavar="DECIMALS", help="Compare so many decimals, where more are printed."
)
@click.option("--all", "nearest", is_flag=True, help="Also the nearest published scores of other systems.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, at full precision.")
def command(folder: Path, model: str | None, tolerance: int | None, nearest: bool, as_json: bool) -> None:
    """Check published scores.

    Results are compared with published scores. FOLDER: a results folder. Each mean is compared with the published
    scores that its system claims to be, on the same collection and split; it is reproduced when the two agree to the
    last printed decimal, and explained when they do after scoring by a rule that the publisher documents, such as
    another order of ties. The exit code is 0 when all that is claimed is reproduced or explained or nothing is
    published, 1 when something is off, 2 for bad input.
    """
    from weir.experiment.published.reproduce import reproduce
    from weir.report.reproduce import reproduce_json, reproduce_text

    found = reproduce(folder, model, tolerance, nearest)
    show(reproduce_json(found) if as_json else reproduce_text(found, output_width()))
    click.get_current_context().exit(1 if any(c.outcome == "off" for c in found) else 0)
