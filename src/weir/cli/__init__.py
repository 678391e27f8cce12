"""The command line: one module per command, imported only when that command is called."""

from __future__ import annotations

import sys

try:
    from weir.cli.main import main
except KeyboardInterrupt:  # nothing is begun while click is imported
    print("\nweir: interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["entry", "main"]


def entry() -> None:
    """Run the command `weir`, as its console script does."""
    sys.exit(main())
