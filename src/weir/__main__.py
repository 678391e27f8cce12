"""`python -m weir` is the command `weir`."""

from weir.cli import entry

entry()
