"""Who watches an import: told (what is read, how much of it is done, of how much); of 0 in all it is a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Watch", "unwatched"]

Watch: TypeAlias = Callable[[str, int, int], None]


def unwatched(what: str, done: int, total: int) -> None:
    """Watch nothing."""
