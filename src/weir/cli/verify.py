"""weir verify: whether a results folder is what its records say."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.terminal import output_width, show

__all__ = ["command"]


@click.command("verify")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_context
def command(context: click.Context, folder: Path, as_json: bool, quiet: bool) -> None:
    """Check that a results folder is what its records say.

    Every file is hashed again and every ranking scored again by the judgments of its collection, where that is on
    this machine. One line for each cell: sound, or what does not match. Exit code 1 where something does not.
    """
    from weir.experiment.verify import verified
    from weir.report.progress import Progress
    from weir.report.verify import verify_json, verify_text

    progress = Progress(quiet)
    try:
        found = verified(folder, progress)
    finally:
        progress.close()
    show(verify_json(found) if as_json else verify_text(found, output_width()))
    if not all(one.sound for one in found):
        context.exit(1)
