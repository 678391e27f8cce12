"""Commands of plug-ins: entry points in the group `weir.commands`, each named by its group and its own name."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

import click

from weir.errors import PluginError


@cache
def plugin_commands() -> dict[str, EntryPoint]:
    """The entry point of each command by its whole name, such as "study sensitivity"; none of them is imported."""
    return {point.name: point for point in entry_points(group="weir.commands")}


def plugin_command(name: str) -> click.Command | None:
    """The command of a whole name, or of the last word of one; None where no plug-in brings it.

    Raises PluginError for one that cannot be loaded, or is no command.
    """
    points = plugin_commands()
    point = points.get(name) or next(
        (one for whole, one in points.items() if whole.split()[-1] == name), None
    )
    if point is None:
        return None
    try:
        command = point.load()
    except Exception as error:  # the code is anybody's
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"the command '{point.name}' ({point.value}) cannot be loaded: {reason}") from error
    if not isinstance(command, click.Command):
        raise PluginError(f"the command '{point.name}' ({point.value}) is no click command")
    return command
