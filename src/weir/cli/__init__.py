"""The command line: one module per command, imported only when that command is called."""

from __future__ import annotations

import os
import sys

try:
    from weir.cli.main import main
except KeyboardInterrupt:  # nothing is begun while click is imported
    print("\nweir: interrupted", file=sys.stderr)
    sys.exit(130)

__all__ = ["entry", "main"]


def entry() -> None:
    """Run the command `weir`, as its console script does."""
    # Idle threads of OpenBLAS spin for 2**26 cycles before they sleep, a fifth of the work of a short command.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
    sys.exit(main())
