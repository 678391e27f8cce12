"""Entry point of `python -m weir`, which is the command `weir`."""

from weir.cli import entry

entry()
