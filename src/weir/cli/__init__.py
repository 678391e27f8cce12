"""The command line: one module per command, imported only when that command is called."""

from __future__ import annotations

import sys

from weir.cli.main import main

__all__ = ["entry", "main"]


def entry() -> None:
    """The console script."""
    sys.exit(main())
