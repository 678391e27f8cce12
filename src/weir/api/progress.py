"""Show progress on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from importlib import import_module
from typing import Any

from weir.core.tables import html_escaped
from weir.errors import printable


def redraws() -> bool:
    """Return True if progress is redrawn in place, as in a terminal or notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    return type(sys.stderr).__module__.partition(".")[0] == "ipykernel"


class Progress:
    """A progress display on standard error, called with (stage, done, total) and cleared at the end of its `with`
    block.

    Redrawn in a terminal or notebook; elsewhere a line at most every thirty seconds for a stage.
    """

    def __init__(self, quiet: bool = False, after: float = 0.0) -> None:
        self._quiet, self._from = quiet, time.monotonic() + after if after else 0.0
        self._live, self._notebook = redraws(), _in_notebook()
        self._display: Any = None  # of IPython, once a bar is shown
        self._stage = ""
        self._next = 0.0
        self._begun = (0.0, 0)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show that `done` of `total` of a stage is done; without a total, print the stage as a line."""
        if not total:
            self.close()
            _put(printable(stage) + "\n")
            return
        now = time.monotonic()
        fresh = stage != self._stage
        if (
            self._quiet
            or now < self._from
            or not (fresh or now >= self._next or (self._live and done == total))
        ):
            return
        if fresh:
            self._begun = (now, done)
        self._stage, self._next = stage, now + (0.1 if self._live else 30.0)
        share = f"{done:,}/{total:,}{self._pace(now, done, total)}" if total > 1 else ""
        if self._notebook:
            words = html_escaped(printable(f"{stage}  {share}"))
            self._show_html(f'<progress max="{total}" value="{done}"></progress> <small>{words}</small>')
        elif self._live:
            filled = int(20 * done / total)
            bar = "#" * filled + "." * (20 - filled)
            columns = shutil.get_terminal_size().columns
            line = printable(f"{stage}  [{bar}] {share}")[: columns - 1]  # a longer line would not be redrawn
            _put(f"\r\x1b[K{line}")
        else:
            _put(printable(f"{stage}  {share}".rstrip()) + "\n")

    def _pace(self, now: float, done: int, total: int) -> str:
        seconds, count = now - self._begun[0], done - self._begun[1]
        if seconds < 1 or count <= 0 or done >= total:
            return ""
        left = round((total - done) * seconds / count)
        return f"  {count / seconds:,.3g}/s, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"

    def close(self) -> None:
        if self._notebook:
            if self._display is not None:
                self._show_html("")
        elif self._live and self._stage and not self._quiet:
            _put("\r\x1b[K")

    def _show_html(self, text: str) -> None:
        ipython = import_module("IPython.display")
        if self._display is None:
            self._display = ipython.display(ipython.HTML(text), display_id=True)
        else:
            self._display.update(ipython.HTML(text))


def _put(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
