"""weir verify: whether a results folder is what its records say."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import fetch_option
from weir.cli.terminal import output_width, show

__all__ = ["command"]

NOT_WHOLE = 3
"""Exit code where nothing was found that does not match, and not all could be checked."""


@click.command("verify")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@fetch_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_context
def command(context: click.Context, folder: Path, as_json: bool, fetch: bool, quiet: bool) -> None:
    """Check a results folder.

    Every file is hashed again, every mean held against the values beside it, every name against what was declared, and
    every ranking scored again by the judgments of its collection, where that is on this machine with the same
    documents, queries and judgments. One line for each cell: sound, or what does not match. The folder may be somebody
    else's: nothing is asked of the network and nothing is written. Exit code 1 where something does not match, 3 where
    not all could be checked.
    """
    from weir.experiment.verify import verified
    from weir.report.progress import Progress
    from weir.report.verify import verify_json, verify_text

    progress = Progress(quiet)
    try:
        found = verified(folder, progress, fetch)
    finally:
        progress.close()
    show(verify_json(found) if as_json else verify_text(found, output_width()))
    if not all(one.sound for one in found):
        context.exit(1)
    if not all(one.whole for one in found):
        context.exit(NOT_WHOLE)
