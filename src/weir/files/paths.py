"""Interpret users' paths."""

from __future__ import annotations

import os
import re
from pathlib import Path

from weir.errors import BadValue, FormatError

STANDARD_OUTPUT = Path("-")
"""Path of standard output for files to write."""


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return a path with ~/ expanded; `-` stays a standard stream, `./-` becomes an absolute path.

    Raises BadValue for an empty name, FormatError for a NUL.
    """
    text = os.fspath(given)
    refuse_empty(text)
    if "\0" in text:
        raise FormatError(text, "a path with characters that no path has", "the path of a file")
    if text == "~" or text.startswith("~/"):
        text = os.path.expanduser(text)  # noqa: PTH111  Path.expanduser takes ~user too
    path = Path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != "-" else path


def refuse_empty(name: object) -> None:
    """Raise BadValue for an empty path, which would mean the current folder."""
    if name == "":
        raise BadValue("found an empty name; is a variable unset?")


def is_address(place: str | Path) -> bool:
    """Return True for the URL of a store, such as s3://...."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(place)) is not None


def subset_of(path: Path) -> tuple[Path, str]:
    """Return (folder, subset) for folder#subset if the folder exists, else (path, "")."""
    folder, mark, subset = str(path).rpartition("#")
    if mark and not path.exists() and Path(folder).exists():
        return Path(folder), subset
    return path, ""
