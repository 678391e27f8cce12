"""Run the command line; a command's module is imported only when it is called."""

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
    """Run the command `weir` and end the process with its exit code."""
    # Idle threads of OpenBLAS spin for 2**26 cycles before they sleep, a fifth of the work of a short command.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
    sys.exit(main())
