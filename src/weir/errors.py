"""Everything Weir raises on purpose.

WeirError                   the command line prints it in one line and exits with 2
├── FormatError             a file does not hold what it should: names file, line, what was found, what to do
├── UnknownName             no dataset, system, measure ... of that name; suggests the nearest
├── BadValue                an argument outside its range, or arguments that contradict each other
├── BadRanking              a ranking that cannot be scored: duplicate documents, scores that are not numbers
├── DownloadError           a collection could not be fetched or did not have the published hash
├── ServiceError            a service asked over the network refused, failed, or would cost more than allowed
├── PluginError             a system, re-ranker or plug-in failed, or answered with something that is no ranking
├── StoreError              something on disk is damaged, unwritable, or made by another version
└── MissingExtra            an optional part is not installed; names the extra

RankingWarning              a warning: a ranking looks as if something had gone wrong in making it
LossWarning                 a warning: rows of a file that a collection was read from are not in it
DownloadWarning             a warning: a collection came from another source than the first
StoreWarning                a warning: something on disk was damaged and is made again
NameNote                    a warning: a name is the catalogue's, and a folder of that name is here too
"""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import re
from collections.abc import Iterable
from types import ModuleType

_SHOWN = 80  # characters of a name in a message
_CUT = re.compile(r"([\n\t])")
_DELETE = 0x7F


def printable(text: str) -> str:
    """Text that a terminal shows as it is: what would move its cursor, colour it or turn it around is escaped.

    A control character becomes such as \\x1b, half a surrogate \\udc80, a line or direction mark \\u202e: what JSON
    leaves as it is becomes what JSON too may write for it, so that escaped JSON says the same.
    """
    if text.isprintable():
        return text
    from unicodedata import category  # blanks of every width stay as they are

    shown = (c if c.isprintable() or category(c) == "Zs" else _code(c) for c in text)
    return "".join(shown)


def printable_text(text: str) -> str:
    """Text of several lines, each as `printable` has it; tabs between columns stay."""
    return "".join(piece if piece in "\n\t" else printable(piece) for piece in _CUT.split(text))


def _code(character: str) -> str:
    if ord(character) < _DELETE:  # JSON never leaves one of these as it is
        return character.encode("unicode_escape").decode("ascii")
    pairs = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))


class NameNote(UserWarning):
    """A bare name stands for a collection of the catalogue, though a file or folder of that name is here."""

    def __init__(self, name: str) -> None:
        super().__init__(printable(f"{name} is the catalogue's; the folder is ./{name}"))


class WeirError(Exception):
    """Anything that went wrong for a reason the user can act on; its message is one printable line."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class FormatError(WeirError):
    """A file does not hold what it should."""

    def __init__(self, path: object, found: str, expected: str, line: int | None = None) -> None:
        self.expected, self.line = expected, line
        where = f"{path}, line {line}" if line is not None else str(path)
        super().__init__(f"{where}: found {found}; expected {expected}")


class UnknownName(WeirError):
    """No thing of that kind has that name."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], here: str | None = None, all_known: bool = False
    ) -> None:
        """A name of that kind among the known ones; here: what is called so elsewhere, where that is known.

        all_known: name the known ones beside the nearest, as where they differ from user to user.
        """
        names, name = sorted(known), name if len(name) <= _SHOWN else name[: _SHOWN - 3] + "..."
        folded = {n.lower(): n for n in names}
        near = [folded[n] for n in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
        near = [here] if here is not None else near
        if near:
            hint = f"did you mean {' or '.join(near)}?"
            hint += f" known: {', '.join(names)}" if all_known else ""
        else:
            hint = f"known: {', '.join(names)}" if names else "none is known"
        super().__init__(f"no {kind} named '{name}'; {hint}")


class BadValue(WeirError):
    """An argument is outside its range, or arguments contradict each other."""


class BadRanking(WeirError):
    """A ranking cannot be scored as it stands."""


class RankingWarning(UserWarning):
    """A ranking can be scored, but looks as if something had gone wrong in making it."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class LossWarning(UserWarning):
    """Rows of a file that a collection was read from are not in it."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class DownloadWarning(UserWarning):
    """A collection came from another source than the first, which is named with the reason."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class StoreWarning(UserWarning):
    """Something on disk was damaged, was noticed before it decided anything, and is made again."""


class DownloadError(WeirError):
    """A file could not be fetched, or is not the published one."""


class ServiceError(WeirError):
    """A service asked over the network refused, failed, or would cost more than allowed."""


class PluginError(WeirError):
    """A system, re-ranker or plug-in failed, or answered with something that is no ranking."""


class StoreError(WeirError):
    """Something on disk is damaged, unwritable, or made by another version."""


class MissingExtra(WeirError):
    """An optional part of Weir is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"this needs '{module}', which is not installed; {install_command(extra)}")


def install_command(extra: str) -> str:
    """The command that installs an extra of Weir: from the folder or wheel that Weir came from, else from the index."""
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
    """Whether a system ran out of something (open files, memory, room, permission), which says nothing about a file."""
    scarce = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EINTR}
    scarce |= {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in scarce)


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Raises MissingExtra when the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(module.partition(".")[0], extra) from error
