"""Standard output as whoever reads it may be shown it: its width, its colours, and nothing that moves a cursor.

All that a command prints passes here, whatever writes it: tables, CSV, JSON, lines by query. Control characters and
marks that turn text around come from data, and are escaped: in a terminal always, in a pipe or a file unless raw data
is asked for. What Weir writes as data, such as runs and judgments, keeps identifiers byte for byte.
"""

from __future__ import annotations

import io
import os
import re
import select
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from weir.errors import printable, printable_text

if TYPE_CHECKING:
    from weir.api.listings import Listing
    from weir.api.result_set import ResultSet
    from weir.api.rows import Display
    from weir.core.scores import Note
    from weir.core.tables import Table


_STYLE = re.compile(r"(\x1b\[[0-9;]{0,16}m)")


class _Shown(io.TextIOBase):
    """An output that gets lines and printable characters; raw: what is written, as it is.

    of_file: whether standard output belongs to a file that a command writes there, and all else goes elsewhere.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.raw = self.of_file = False

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a constant
        """That of all characters: what the output cannot write, it escapes."""
        return "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        """Where bytes go: the scripts of shells by Click, and a file that is written to standard output."""
        return self.out.buffer

    def fileno(self) -> int:
        """The output's own."""
        return self.out.fileno()

    def isatty(self) -> bool:
        """Whether the output is a terminal."""
        return self.out.isatty()

    def flush(self) -> None:
        """Let what was written reach whoever reads it."""
        self.out.flush()

    def write(self, text: str) -> int:
        """Write the text with control characters escaped; raises TypeError for bytes."""
        if not isinstance(text, str):
            raise TypeError(f"found {type(text).__name__}; expected a text")
        out = sys.stderr if self.of_file else self.out
        out.write(text if self.raw else printable_text(text))
        return len(text)

    def write_styled(self, text: str) -> None:
        """Write a text whose colours and weights are Weir's own; all other control characters are escaped."""
        for number, piece in enumerate(_STYLE.split(text)):
            if number % 2:
                (sys.stderr if self.of_file else self.out).write(piece)
            else:
                self.write(piece)


@contextmanager
def protected_output() -> Iterator[None]:
    """Let standard output, as long as the block, show what it cannot encode and what is not printable as escapes."""
    before = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8", newline="\n") as nobody:
        out, sys.stderr = before[0] or nobody, before[1] or nobody  # a stream that was closed is None
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="backslashreplace")
        sys.stdout = _Shown(out)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def outputs_are_read() -> bool:
    """Whether nobody has closed the other end of standard output or standard error; on Windows never known."""
    if sys.platform == "win32":
        return False
    ends = select.poll()
    for number in (1, 2):
        ends.register(number, 0)
    return not any(event & select.POLLERR for _, event in ends.poll(0))


def show_raw() -> None:
    """Write data as it is from here on, where standard output is no terminal."""
    out = sys.stdout
    if isinstance(out, _Shown):
        out.raw = not out.isatty()


def give_output_to_file() -> None:
    """Leave standard output to a file that is written there (`-o -`): what is shown goes to standard error."""
    if isinstance(sys.stdout, _Shown):
        sys.stdout.of_file = True


def as_cell(text: str) -> str:
    """A text as a cell between tabs: it ends neither the cell nor the line, unless raw data was asked for."""
    out = sys.stdout
    return text if isinstance(out, _Shown) and out.raw else printable(text)


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


def show(text: str, styled: bool = True) -> None:
    """Print a text; styled: one of `core.tables`, whose colours are its own, as its cells are printable."""
    out = sys.stdout
    if styled and isinstance(out, _Shown) and out.isatty():
        out.write_styled(text + "\n")
    else:
        print(text)


def show_result(
    results: ResultSet[Any], form: str | None = None, tables: Sequence[Table] | None = None
) -> None:
    """Print results in a form, text by default; tables: others than those of the results, but for json and csv."""
    form = form or "text"
    show(results.shown(form, output_width(), shows_colours(), tables), form == "text")


def show_tables(tables: Sequence[Table]) -> None:
    """Print tables as text."""
    from weir.core.tables import written

    show(written(tables, "text", output_width(), shows_colours()))


def show_listing(listing: Listing, as_json: bool = False) -> None:
    """Print what there is of something: its tables as text, or a JSON object for each entry."""
    from weir.core.results import json_lines

    if as_json:
        show(json_lines(listing.records), styled=False)
    else:
        show_tables(listing.tables())


def say(line: str) -> None:
    """Print a line on standard error, whatever identifiers and names of files stand in it."""
    print(printable(line), file=sys.stderr)


def say_left_out(notes: Iterable[Note]) -> None:
    """Print a line on standard error for each run file that was left out, with which the exit code is 2."""
    for note in notes:
        say(f"weir: {note.text}")


def say_notes(notes: Iterable[Note], details: bool = False) -> None:
    """Print each note once on standard error; details: with what explains it."""
    for note in dict.fromkeys(notes):
        say(note.whole if details else str(note))


def display_of(form: str | None, long: bool, labels: Sequence[str], systems: Iterable[str]) -> Display:
    """The form, for this terminal; raises as `labels_of`."""
    from weir.api.rows import Display, labels_of

    return Display(form or "text", long, output_width(), shows_colours(), labels_of(labels, systems))
