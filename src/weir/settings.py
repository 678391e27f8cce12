"""What the environment says, read once, in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weir.errors import BadValue

__all__ = ["Settings", "settings"]


@dataclass(frozen=True)
class Settings:
    """Where Weir keeps collections, how many threads it takes, where it may download from.

    home: folder of downloaded collections and their stores (WEIR_HOME, else ~/.cache/weir).
    threads: worker threads of search and indexing (WEIR_THREADS, else the cores this process may use).
    mirror: address tried before the published ones, same layout (WEIR_MIRROR, else none).
    """

    home: Path
    threads: int
    mirror: str | None


@cache
def settings() -> Settings:
    """The settings of this process."""
    home = os.environ.get("WEIR_HOME")
    threads = os.environ.get("WEIR_THREADS")
    if threads is not None and not (threads.isdecimal() and int(threads) > 0):
        raise BadValue(f"WEIR_THREADS is '{threads}'; expected a whole number from 1")
    return Settings(
        home=Path(home) if home else Path.home() / ".cache" / "weir",
        threads=int(threads) if threads else available_cores(),
        mirror=os.environ.get("WEIR_MIRROR") or None,
    )


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
