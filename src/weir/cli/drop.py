"""weir data drop: take away from servers what was made there."""

from __future__ import annotations

import click

from weir.cli.completion import system_names
from weir.errors import BadValue

__all__ = ["command"]


@click.command("drop")
@click.argument("system", shell_complete=system_names)
def command(system: str) -> None:
    """Remove the tables and indexes that systems made on a server.

    SYSTEM: such as 'postgres("shop.toml")'; every table or index that Weir made on its server goes, whichever
    collection or setting it was made for. Nothing else there is touched; what was answered and scored stays.
    """
    from weir.systems import parse_system
    from weir.systems.composite import parts_of
    from weir.systems.protocol import Installed

    found = [part for part in parts_of(parse_system(system)) if isinstance(part, Installed)]
    if not found:
        raise BadValue(f"{system} makes nothing on a server")
    for part in found:
        for name in part.uninstall():
            click.echo(name)
