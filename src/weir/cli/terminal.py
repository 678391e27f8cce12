"""Standard output as a terminal may show it: its width, its colours, and nothing that moves its cursor."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from weir.errors import printable

if TYPE_CHECKING:
    from weir.core.notes import Note

__all__ = ["output_width", "protect_terminal", "say", "say_notes", "show", "shows_colours"]

_CUT = re.compile(r"([\n\t])")
_STYLE = re.compile(r"(\x1b\[[0-9;]{0,16}m)")


class _Shown(io.TextIOWrapper):
    """A terminal that gets lines and printable characters; a pipe or file gets what is written, byte for byte."""

    def write(self, text: str) -> int:
        """Write the text with control characters escaped."""
        super().write("".join(piece if piece in "\n\t" else printable(piece) for piece in _CUT.split(text)))
        return len(text)

    def write_styled(self, text: str) -> None:
        """Write a text whose colours and weights are Weir's own; all other control characters are escaped."""
        for number, piece in enumerate(_STYLE.split(text)):
            if number % 2:
                super().write(piece)
            else:
                self.write(piece)


def protect_terminal() -> None:
    """Let standard output show what it cannot encode as escapes, and control characters too where it is a terminal."""
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper) or isinstance(out, _Shown):
        return
    if out.isatty():
        out.flush()
        raw = open(out.fileno(), "wb", closefd=False)  # noqa: SIM115  it ends with the process
        sys.stdout = _Shown(raw, out.encoding, "backslashreplace", line_buffering=True)
    else:
        out.reconfigure(errors="backslashreplace")


def output_width() -> int | None:
    """How many columns tables may take: COLUMNS where that is set, else the terminal's; None, boundless, elsewhere.

    So a pipe or a file gets whole rows, whatever reads them.
    """
    if os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def shows_colours() -> bool:
    """Whether standard output is a terminal that shows colours, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(text: str) -> None:
    """Print a table that may hold colours of `report.terminal_layout`; its cells have been made printable there."""
    out = sys.stdout
    if isinstance(out, _Shown):
        out.write_styled(text + "\n")
    else:
        print(text)


def say(line: str) -> None:
    """Print a line on standard error, whatever identifiers and names of files stand in it."""
    print(printable(line), file=sys.stderr)


def say_notes(notes: Iterable[Note], details: bool = False) -> None:
    """Print each note once on standard error; details: with what explains it."""
    for note in dict.fromkeys(notes):
        say(note.whole if details else str(note))
