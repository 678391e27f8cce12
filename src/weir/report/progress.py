"""Progress on standard error: a line that moves in a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time

from weir.errors import printable

__all__ = ["Progress"]


class Progress:
    """Shows what is being done; call it with (what, done, total).

    In a terminal one line is redrawn at most ten times a second; elsewhere a line is printed when a stage
    begins and every thirty seconds after. What has a total of 0 is a note: it stands on a line of its own, always.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._stage = ""
        self._next = 0.0
        self._begun = (0.0, 0)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say that `done` of `total` of a stage is done; of 0 in all, a note."""
        if total == 0:
            self.close()
            _put(printable(stage) + "\n")
            return
        now = time.monotonic()
        fresh = stage != self._stage
        if self._quiet or not (fresh or now >= self._next or (self._live and done == total)):
            return
        if fresh:
            self._begun = (now, done)
        self._stage, self._next = stage, now + (0.1 if self._live else 30.0)
        share = f"{done:,}/{total:,}{self._pace(now, done, total)}" if total > 1 else ""
        if self._live:
            filled = int(20 * done / total) if total else 0
            bar = "#" * filled + "." * (20 - filled)
            line = printable(f"{stage}  [{bar}] {share}")[: shutil.get_terminal_size().columns - 1]
            _put(f"\r\x1b[K{line}")  # a longer line would not be redrawn
        else:
            _put(printable(f"{stage}  {share}".rstrip()) + "\n")

    def _pace(self, now: float, done: int, total: int) -> str:
        """The rate since the stage began and the time left at it, once both can be told."""
        seconds, count = now - self._begun[0], done - self._begun[1]
        if seconds < 1 or count <= 0 or done >= total:
            return ""
        left = round((total - done) * seconds / count)
        return f"  {count / seconds:,.3g}/s, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"

    def close(self) -> None:
        """Clear the moving line."""
        if self._live and self._stage and not self._quiet:
            _put("\r\x1b[K")


def _put(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
