"""Settings of a server from a TOML file: frozen values, each wrong one in a line that names the file and the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from weir.errors import BadValue, FormatError, UnknownName

__all__ = ["check_choice", "check_number", "check_text", "check_whole", "settings_value"]

T = TypeVar("T")
EXPECTED = "what docs/servers.md says"


def settings_value(kind: Callable[..., T], path: Path, where: str, given: object) -> T:
    """A frozen dataclass of settings from a table of a file; where: what the table is called.

    Raises UnknownName for a key that it does not have, FormatError, naming file and table, for whatever else is wrong.
    """
    if not isinstance(given, Mapping):
        raise FormatError(path, f"{where} is {type(given).__name__}", "a table")
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]  # each is a dataclass
    for key in given:
        if key not in known:
            raise UnknownName(f"setting in {where} of {path}", key, known)
    try:
        return kind(**given)
    except BadValue as error:
        raise FormatError(path, f"in {where}: {error}", EXPECTED) from None
    except TypeError as error:
        missing = str(error).partition("argument")[2] or str(error)
        found = missing.removeprefix("s").removeprefix(":")
        raise FormatError(path, f"{where} without{found}", EXPECTED) from None


def check_choice(name: str, value: object, known: Collection[str]) -> None:
    """Raise BadValue for a setting that is none of the known words."""
    if not (isinstance(value, str) and value in known):
        raise BadValue(f"{name} is {value!r}; expected {', '.join(known)}")


def check_text(name: str, value: object) -> None:
    """Raise BadValue for a setting that is no text."""
    if not (isinstance(value, str) and value.strip() and "\0" not in value):
        raise BadValue(f"{name} is {value!r}; expected a text")


def check_number(name: str, value: object, most: float) -> None:
    """Raise BadValue for a setting that is no number above 0, or 0, up to that."""
    if isinstance(value, bool) or not (isinstance(value, (int, float)) and 0 <= value <= most):
        raise BadValue(f"{name} is {value!r}; expected a number from 0 to {most:g}")


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raise BadValue for a setting that is no whole number of that range."""
    if not (type(value) is int and least <= value <= most):
        raise BadValue(f"{name} is {value!r}; expected a whole number from {least} to {most}")
