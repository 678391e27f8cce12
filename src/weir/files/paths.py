"""What is meant by a path that somebody writes: one reading for every command and function."""

from __future__ import annotations

import os
from pathlib import Path

from weir.errors import BadValue, FormatError

STANDARD_OUTPUT = Path("-")
"""What stands for standard output where a file is written."""
_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


def path_of(given: str | os.PathLike[str]) -> Path:
    """The path that is written, with the home folder for a leading ~/; `./-` is a file, `-` alone is none.

    Raises BadValue for an empty name, which an unset variable leaves, FormatError for one with a NUL character.
    """
    text = os.fspath(given)
    refuse_empty(text)
    if "\0" in text:
        raise FormatError(text, "a path with characters that no path has", "the path of a file")
    if text == "~" or text.startswith("~/"):
        text = os.path.expanduser(text)  # noqa: PTH111  Path.expanduser takes ~user too
    path = Path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != "-" else path


def is_path(given: object) -> bool:
    """Whether it can only be a path, and no bare name: a path object, or a text with a separator, ~ or . ahead."""
    if isinstance(given, os.PathLike):
        return True
    return isinstance(given, str) and (given.startswith((".", "~")) or any(s in given for s in _SEPARATORS))


def refuse_empty(name: object) -> None:
    """Raise BadValue for an empty name, which would stand for the current folder."""
    if name == "":
        raise BadValue("found an empty name; is a variable unset?")
