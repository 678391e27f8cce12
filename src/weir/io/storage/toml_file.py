"""TOML files, whatever they hold."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from weir.errors import FormatError

__all__ = ["read_toml"]

_MOST_BYTES = 1 << 24


def read_toml(path: Path, expected: str) -> dict[str, Any]:
    """What a TOML file says; expected: what it should hold, for messages.

    Raises FormatError for no such file, one of more than 16 MiB, and what is no TOML, nested however deeply.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise FormatError(path, f"more than {_MOST_BYTES:,} bytes", expected)
        return tomllib.loads(data.decode("utf-8"))
    except FileNotFoundError:
        raise FormatError(path, "no such file", expected) from None
    except IsADirectoryError:
        raise FormatError(path, "a folder", expected) from None
    except RecursionError:
        raise FormatError(path, "not TOML (nested too deeply)", expected) from None
    except ValueError as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise FormatError(path, f"not TOML ({error})", expected) from None
