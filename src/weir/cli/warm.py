"""weir warm: compile what Weir runs."""

from __future__ import annotations

import click

from weir.cli.terminal import say

__all__ = ["command"]


@click.command("warm")
@click.argument("groups", nargs=-1)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(groups: tuple[str, ...], quiet: bool) -> None:
    """Compile the kernels once, so that no first run waits for them.

    GROUPS: kinds of kernels such as "sparse search"; all of them where none is named. What is compiled is kept, and
    compiled again only where its source, the compiler or the processor is another.
    """
    from weir.kernels.jit.code_cache import places
    from weir.systems.warm import GROUPS, prepare

    for group in groups or tuple(GROUPS):
        seconds = prepare([group])
        if not quiet:
            say(f"{group}: {seconds:.1f} s")
    if not quiet:
        kept = next((place for place in places() if any(place.glob("*.kernel"))), None)
        say(f"kernels: {kept}" if kept else "kernels: nowhere to keep them")
