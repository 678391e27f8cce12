"""Progress on standard error: a line that moves in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time

__all__ = ["Progress"]


class Progress:
    """Shows what is being done; call it with (what, done, total).

    In a terminal one line is redrawn at most ten times a second; elsewhere a line is printed when a stage
    begins and every thirty seconds after.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._stage = ""
        self._next = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say that `done` of `total` of a stage is done."""
        now = time.monotonic()
        fresh = stage != self._stage
        if self._quiet or not (fresh or now >= self._next or (self._live and done == total)):
            return
        self._stage, self._next = stage, now + (0.1 if self._live else 30.0)
        share = f"{done:,}/{total:,}" if total > 1 else ""
        if self._live:
            filled = int(20 * done / total) if total else 0
            bar = "#" * filled + "." * (20 - filled)
            print(f"\r\x1b[K{stage}  [{bar}] {share}", end="", file=sys.stderr, flush=True)
        else:
            print(f"{stage}  {share}".rstrip(), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the moving line."""
        if self._live and self._stage and not self._quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
