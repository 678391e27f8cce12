"""Print the output of commands.

Control characters and marks that reorder text are escaped: in a terminal always, in a pipe or file unless raw
output is requested.
"""

from __future__ import annotations

import ast
import io
import os
import re
import select
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from weir.errors import printable, printable_text

if TYPE_CHECKING:
    from weir.api.result_set import ResultSet
    from weir.core.scores import Note
    from weir.core.tables import Table


_STYLE = re.compile(r"(\x1b\[[0-9;]{0,16}m)")
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]+))?`")


class _Shown(io.TextIOBase):
    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.raw = self.of_file = False  # of_file: a command writes a file to standard output

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a constant
        return "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        return self.out.buffer

    def fileno(self) -> int:
        return self.out.fileno()

    def isatty(self) -> bool:
        return self.out.isatty()

    def flush(self) -> None:
        self.out.flush()

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"found {type(text).__name__}; expected a text")
        out = sys.stderr if self.of_file else self.out
        out.write(text if self.raw else printable_text(text))
        return len(text)

    def write_styled(self, text: str) -> None:
        for number, piece in enumerate(_STYLE.split(text)):
            if number % 2:
                (sys.stderr if self.of_file else self.out).write(piece)
            else:
                self.write(piece)


@contextmanager
def protected_output() -> Iterator[None]:
    """Escape characters on standard output that cannot be printed or encoded, within the block."""
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
    """Return False if the reader of standard output or error has closed it; Windows: always False."""
    if sys.platform == "win32":
        return False
    ends = select.poll()
    for number in (1, 2):
        ends.register(number, 0)
    return not any(event & select.POLLERR for _, event in ends.poll(0))


def show_raw() -> None:
    """Write data unescaped from now on, unless standard output is a terminal."""
    out = sys.stdout
    if isinstance(out, _Shown):
        out.raw = not out.isatty()


def give_output_to_file() -> None:
    """Send all other output to standard error, so that standard output holds a file (`-o -`)."""
    if isinstance(sys.stdout, _Shown):
        sys.stdout.of_file = True


def as_options(message: str, command: click.Command | None = None, prefix: str = "") -> str:
    """Return a message with parameters in backquotes written as options: "`by='stem:-'`" becomes "--by stem:-".

    command: by default the running one; parameters that it lacks are left unchanged.
    prefix: the command's name before each option, if another one runs.
    """
    context = click.get_current_context(silent=True)
    taken = command.params if command is not None else [] if context is None else context.command.params
    # Options that are derived from a function end in the name of its parameter, after what they belong to.
    options = {(p.name or "").rpartition("__")[2]: p for p in taken if isinstance(p, click.Option)}

    def typed(parameter: re.Match[str]) -> str:
        name, value = parameter.groups()
        if name == "conventions" and name not in options and value:  # each is an option of its own
            name, _, word = value.strip("'\"").partition("=")
            value = repr(word)
        with suppress(ValueError, SyntaxError):  # as with NAME, which stands for a value
            value = None if value is None else ast.literal_eval(value)
        if name == "choices" and name not in options and isinstance(value, dict) and len(value) == 1:
            [(name, value)] = value.items()  # likewise
        if name not in options:
            return parameter[0]
        option, flag = options[name], options[name].opts[0]
        if value is None or option.is_flag:
            return prefix + flag
        several = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
        words = several if isinstance(several, list) else [several]
        return prefix + " ".join(f"{flag} {shlex.quote(str(word))}" for word in words)

    return _PARAMETER.sub(typed, message)


def as_cell(text: str) -> str:
    """Return a text without tabs and line ends, for a tab-separated line; unchanged if raw output is requested."""
    out = sys.stdout
    return text if isinstance(out, _Shown) and out.raw else printable(text)


def _output_width() -> int | None:
    if os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def _shows_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(text: str, styled: bool = True) -> None:
    """Print a text, if not empty, on standard output.

    styled: keep its colours in a terminal.
    """
    out = sys.stdout
    if not text:
        return
    if styled and isinstance(out, _Shown) and out.isatty():
        out.write_styled(text + "\n")
    else:
        print(text)


def show_results(
    results: ResultSet[Any], form: str | None = None, options: Mapping[str, object] | None = None
) -> None:
    """Print results without their notes.

    form: the output format, such as "json", by default text.
    options: of the tables, such as {"long": True}.
    """
    shown = results.shown(form or "text", _output_width(), _shows_colours(), options)
    show(shown if form else as_options(shown), form is None)


EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 3}
"""Exit codes by the outcome of results."""


def present(
    results: ResultSet[Any],
    form: str | None = None,
    details: bool = False,
    options: Mapping[str, object] | None = None,
) -> int:
    """Print results between their notes on standard error, decisive ones first; return the exit code by their
    outcome, 2 if data was left out.

    form: the output format, such as "json", by default text.
    details: print an explanation with each note.
    options: of the tables, such as {"long": True}.
    """
    notes = [note for note in results.notes() if note not in results.left_out]
    say_notes((note for note in notes if note.decisive), details)
    show_results(results, form, options)
    notes = [note for note in notes if not note.decisive]
    return tell(notes, results.left_out, details) or EXIT_CODES[results.outcome]


def tell(notes: Iterable[Note], left_out: Iterable[Note] = (), details: bool = False) -> int:
    """Print notes, then notes on omitted data, on standard error; return 2 if data was omitted, else 0.

    details: print an explanation with each of `notes`.
    """
    say_notes(notes, details)
    refused = list(left_out)
    for note in refused:
        say(f"weir: {note.text}")
    return 2 if refused else 0


def show_tables(shown: Sequence[Table]) -> None:
    """Print the tables on standard output as aligned text."""
    from weir.core.tables import tables_as_text

    show(as_options(tables_as_text(shown, "text", _output_width(), _shows_colours())))


def say(line: str) -> None:
    """Print a line on standard error, escaped, with parameters written as options."""
    print(printable(as_options(line)), file=sys.stderr)


@contextmanager
def warnings_shown() -> Iterator[list[str]]:
    """Show warnings within the block, and append their texts to the yielded list."""
    shown, show_warning = list[str](), warnings.showwarning

    def keep(message: Warning | str, *place: Any, **more: Any) -> None:  # noqa: ANN401  as Python calls it
        shown.append(str(message))
        show_warning(message, *place, **more)

    warnings.showwarning = keep
    try:
        yield shown
    finally:
        warnings.showwarning = show_warning


def say_notes(notes: Iterable[Note], details: bool = False) -> None:
    """Print the distinct notes on standard error.

    details: print each note's explanation.
    """
    for note in dict.fromkeys(notes):
        say(note.with_details if details else str(note))
