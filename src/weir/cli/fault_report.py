"""Report an unexpected error in a file, without secrets."""

from __future__ import annotations

import platform
import re
import time
import traceback
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from weir.errors import printable_text
from weir.files.atomic import write_text
from weir.files.masks import without_secrets
from weir.settings import settings

REPORTS = 20
"""Number of reports kept; older ones are removed."""
REPORT_CHARACTERS = 32_768
"""Most characters of a traceback; a longer one loses its middle."""
MESSAGE_CHARACTERS = 2_000
"""Most characters of an error's message."""
VALUE_CHARACTERS = 4
"""Length from which an argument is masked if an error repeats it."""
LIKE_A_KEY = re.compile(
    r"(?P<before>\b(?:Bearer|Basic) +|://(?=[^/\s]*@)|\b[\w-]*(?:key|token|secret|password)\w*[\"']? ?[=:] ?[\"']?)"
    r"[^\s@\"',;)]+|\b(?:sk|pk|hf|gh[a-z]|xox[a-z])[-_][\w-]{6,}|\b(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{24,}",
    re.IGNORECASE,
)
"""Texts that look like keys: after a word such as "token", with a provider's prefix, or mixed letters and digits."""
HOW_TO_SEND = """\
How to send this report: read it, then attach it to an issue of the project from which you have Weir (SECURITY.md, where
it concerns security). It names the command and its options, versions, and places in the code. Values of options, what
was typed, and what looks like a key are left out.
"""


def write_report(error: BaseException, command: str, arguments: Sequence[str], known: Container[str]) -> Path:
    """Write a report of an unexpected error, return its path, and delete all but the newest REPORTS.

    command, arguments: the typed command line.
    known: names of the command's options; all other arguments are masked.

    Raises StoreError if it cannot be written, BadValue for unreadable settings.
    """
    from importlib.metadata import version  # reading the installed metadata takes 20 ms

    pairs = [word.partition("=") for word in arguments]
    options = [option for option, _, _ in pairs if option in known]
    values = {value if option in known else option + mark + value for option, mark, value in pairs}
    values -= {"", *options, *command.split()}
    text = without_secrets("\n".join(_masked_trace(error, values)))
    if len(home := str(Path.home())) > 1:
        text = text.replace(home, "~")
    half = REPORT_CHARACTERS // 2
    if len(text) > REPORT_CHARACTERS:
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    lines = [
        f"weir {version('weir-ir')}, {platform.python_implementation()} {platform.python_version()}",
        platform.platform(),
        " ".join(["weir", *command.split(), *options]),
        "",
        HOW_TO_SEND,
        printable_text(text),
    ]
    folder = settings().home / "reports"
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)  # of one clock: names are in the order of reports
    moment = f"{time.strftime('%Y%m%dT%H%M%S', time.localtime(seconds))}-{nanoseconds:09d}"
    path = folder / f"{moment}-{command.replace(' ', '-') or 'weir'}.txt"
    write_text(path, "\n".join(lines) + "\n")
    with suppress(OSError):
        for old in sorted(folder.glob("*.txt"))[:-REPORTS]:
            old.unlink(missing_ok=True)
    return path


def _masked_trace(error: BaseException, values: Iterable[str]) -> Iterator[str]:
    typed = {form for value in values for form in (value, repr(value)[1:-1]) if len(form) >= VALUE_CHARACTERS}
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _masked_trace(cause, values)
        yield "which led to"
    frames = (
        f"  {f.filename}, line {f.lineno}, in {f.name}" for f in traceback.extract_tb(error.__traceback__)
    )
    for frame, same in groupby(frames):
        times = sum(1 for _ in same)
        yield frame + (f" ({times} times)" if times > 1 else "")
    message = "".join(traceback.format_exception_only(error)).strip()[:MESSAGE_CHARACTERS]
    for value in sorted(typed, key=len, reverse=True):
        message = message.replace(value, "***")
    yield LIKE_A_KEY.sub(lambda match: (match["before"] or "") + "***", message)
