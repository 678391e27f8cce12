"""Errors and warnings of Weir.

- WeirError: FormatError, UnknownName, UnknownAttribute, NotIndexed, CallError, BadValue, BadRanking,
  DownloadError, ServiceError, PluginError, StoreError, UnusableText, MissingExtra.
- Warnings: RankingWarning, LossWarning, DownloadWarning, StoreWarning, NameNote.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, ModuleType

_SHOWN = 80  # characters of a name in a message
_LISTED = 30  # names that a message lists where none of them is near
_CUT = re.compile(r"([\n\t])")
_DELETE = 0x7F
_HOME = os.path.join(os.path.dirname(__file__), "")  # noqa: PTH118, PTH120 - pathlib takes a tenth of the start
_INSIDE = re.compile(
    "|".join(re.escape(os.path.dirname(file)) + r"\W(?!site-packages\W)" for file in (__file__, os.__file__))  # noqa: PTH120 - as above
    + r"|.*\WIPython\W|<(string|frozen [\w.]+)>$"
)
"""Files of Weir, of Python itself, of code that a program wrote, and of what runs the cells of notebooks."""


def printable(text: str) -> str:
    r"""Return the text with control characters and other unprintable ones escaped: \x1b, \u202e."""
    if text.isprintable():
        return text
    from unicodedata import category  # blanks of every width stay as they are

    shown = (c if c.isprintable() or category(c) == "Zs" else _code(c) for c in text)
    return "".join(shown)


def printable_text(text: str) -> str:
    """Return a text escaped as by `printable`, except line ends and tabs."""
    return "".join(piece if piece in "\n\t" else printable(piece) for piece in _CUT.split(text))


def _code(character: str) -> str:
    if ord(character) < _DELETE:  # JSON never leaves one of these as it is
        return character.encode("unicode_escape").decode("ascii")
    pairs = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))


NEAR = 0.6
"""Least similarity of a suggested name, as difflib's ratio: 2 x letters in common / letters of both names."""
_PART = 3  # letters of a name that is suggested for its part


def conversion(value: object) -> str:
    """Return advice to convert a str that holds a number, "; float('0.5') is one"; "" for other values."""
    if not isinstance(value, (str, bytes)):
        return ""
    try:
        number = float(value)
    except ValueError:
        return ""
    return f"; float({value!r}) is one" if math.isfinite(number) else ""


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` known names that a mistyped name may mean, likeliest first."""
    # The same letters in another order, a similarity of at least NEAR, one letter replaced (k1, k2), and names
    # that contain the mistyped one.
    text, folded = name.lower(), dict[str, list[str]]()
    for one in sorted(known, key=lambda one: one[:1] != name[:1]):
        folded.setdefault(one.lower(), []).append(one)
    near = [n for n in folded if sorted(n) == sorted(text)]
    near += difflib.get_close_matches(text, folded, n=count, cutoff=NEAR)
    near += [n for n in folded if len(n) == len(text) > 1 and sum(map(str.__ne__, n, text)) == 1]
    near += [n for n in folded if len(text) >= _PART and text in n]
    return [one for n in dict.fromkeys(near) for one in folded[n]][:count]


class NameNote(UserWarning):
    """A name was taken as a collection of the catalogue although a file or folder has it too."""

    def __init__(self, name: str) -> None:
        super().__init__(printable(f"{name} is the catalogue's; the folder is ./{name}"))


class WeirError(Exception):
    """An error that the user can act on, with a message of one printable line; the command line exits with 2."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))

    def _render_traceback_(self) -> list[str]:
        import traceback

        parts = [f"{type(self).__name__}: {self}"]
        error: BaseException | None = self
        while error is not None:
            frames = [
                traceback.FrameSummary(_cell(one.filename), one.lineno, one.name, line=one.line)
                for one in traceback.extract_tb(error.__traceback__)
                if not _INSIDE.match(one.filename)
            ]
            if frames and error is not self:
                parts = [f"{type(error).__name__}: {error}", "", *parts]
            parts = [*traceback.format_list(frames), *parts]
            error = error.__cause__
        return "\n".join(part.rstrip("\n") for part in parts).split("\n")


def _cell(file: str) -> str:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(named) if named else file


class FormatError(WeirError):
    """A file has invalid content; the message names file, line, what was found and what was expected."""

    def __init__(self, path: object, found: str, expected: str, line: int | None = None) -> None:
        self.expected, self.line = expected, line
        where = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{where}: found {found}; expected {expected}")


class UnknownName(WeirError):
    """A name is unknown; the message suggests the nearest known names."""

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        here: str | None = None,
        all_known: bool = False,
        listed_by: str = "",
        remedy: str = "",
    ) -> None:
        """Build the message from the nearest known names, else from known names.

        here: a better suggestion than the nearest name.
        all_known: list the known names beside the suggestion.
        listed_by: the command that lists all names.
        remedy: how the name becomes known.
        """
        names, name = sorted(known), name if len(name) <= _SHOWN else name[: _SHOWN - 3] + "..."
        near = nearest_names(name, names) if here is None else [here]
        if near:
            hint = f"did you mean {' or '.join(near)}?"
            hint += f" known: {', '.join(names)}" if all_known else ""
        else:
            shown = names if len(names) <= _LISTED else [*names[:5], "..."]
            hint = f"known: {', '.join(shown)}" if names else "none is known"
            hint += f"; {listed_by} shows all" if listed_by and len(names) > _LISTED else ""
        remedied = f" ({remedy})" if remedy else ""
        super().__init__(f"no {kind} named '{name}'{remedied}; {hint}")


class UnknownAttribute(UnknownName, AttributeError):
    """A module has no attribute of that name."""

    def __init__(self, module: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"attribute of {module}", name, known)
        self.name = self.obj = None  # else Python adds a suggestion of its own


class NotIndexed(WeirError, AttributeError):
    """A system was searched before it indexed documents."""


class CallError(WeirError, TypeError):
    """A function got an unknown argument, or lacks a required one."""


class BadValue(WeirError):
    """An argument is out of range, or arguments contradict each other."""


class UnusableText(BadValue):
    """A model computes no usable numbers from a text."""

    def __init__(self, what: str, number: int, fault: str, words: str = "") -> None:
        """Build the message from the text's beginning `words`, else its `number` (from 0)."""
        super().__init__(f"{what} of {repr(words) if words else f'text {number + 1}'} {fault}")
        self.what, self.number, self.fault = what, number, fault

    def of(self, name: str) -> BadValue:
        """Return this fault as a BadValue that calls the text by its identifier `name`."""
        return BadValue(f"{self.what} of '{name}' {self.fault}")


class BadRanking(WeirError):
    """A ranking cannot be scored, for example for duplicate documents."""


class RankingWarning(UserWarning):
    """A ranking can be scored but is suspicious."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def give_warning(warning: Warning | str) -> None:
    """Issue a warning at the user's line that called Weir; a str becomes a UserWarning."""
    level, outermost = 0, 1
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        level += 1
        if frame.f_code.co_filename.startswith(_HOME):
            outermost = level
        frame = frame.f_back
    warnings.warn(warning, stacklevel=outermost + 1)


_held: ContextVar[dict[str, None] | None] = ContextVar("held", default=None)


def warn_of_ranking(said: str) -> None:
    """Issue a RankingWarning; within `held_warnings`, delay it until that block ends."""
    if (held := _held.get()) is None:
        give_warning(RankingWarning(said))
    else:
        held[said] = None


@contextmanager
def held_warnings() -> Iterator[Mapping[str, None]]:
    """Yield the growing texts of `warn_of_ranking`, which are issued at the block's end, each once; drop them if it
    raises."""
    # By context: warnings.catch_warnings changes the filters of all threads.
    token = _held.set(held := dict[str, None]())
    try:
        yield held
    finally:
        _held.reset(token)
    for said in held:
        warn_of_ranking(said)


class LossWarning(UserWarning):
    """Rows or columns of a file, or files of a folder, are left out."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class DownloadWarning(UserWarning):
    """A collection came from another source, or a source is tried again; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class StoreWarning(UserWarning):
    """Stored data was damaged and is rebuilt."""


UNKNOWN_SERVER = "the name of the server is not known here"
"""Reason of a DownloadError on a machine without a network."""


class DownloadError(WeirError):
    """A file could not be downloaded, or differs from the published one."""


class ServiceError(WeirError):
    """A network service refused, failed, or would cost more than allowed."""


class PluginError(WeirError):
    """A system, re-ranker or plug-in failed or returned no ranking."""


class StoreError(WeirError):
    """Data on disk is damaged, unwritable, or made by another version."""


class MissingExtra(WeirError):
    """An optional package is not installed; the message has the install command."""

    def __init__(self, module: str, extra: str = "", package: str = "") -> None:
        how = install_command(extra) if extra else f"pip install {package or module}"
        super().__init__(f"this needs '{module}', which is not installed; {how}")


def install_command(extra: str) -> str:
    """Return the pip command that installs an extra from the source of the installed Weir."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        came_from = json.loads(distribution("weir-ir").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        came_from = {}
    address = urlsplit(came_from.get("url", ""))
    path = url2pathname(address.path) if address.scheme == "file" else ""
    editable = "-e " if came_from.get("dir_info", {}).get("editable") else ""
    if not path or not os.path.exists(path):  # noqa: PTH110 - pathlib takes longer to import than the rest
        return f"pip install 'weir-ir[{extra}]'"
    return f"pip install {editable}'{path}[{extra}]'"


def is_shortage(error: BaseException) -> bool:
    """Return True for lack of memory, disk space, open files or permission, or an interrupted call."""
    scarce = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EINTR}
    scarce |= {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in scarce)


def require(module: str, extra: str = "", package: str = "") -> ModuleType:
    """Import and return an optional module; raise MissingExtra if it is absent.

    extra: the extra of Weir that contains it.
    package: the distribution to install if no extra does.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(module.partition(".")[0], extra, package) from error
