"""What software and hardware a number was made with."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from weir.settings import settings
from weir.stats.bootstrap import LEVEL, RESAMPLES, SEED

__all__ = ["environment"]

PACKAGES = ("weir-ir", "numpy", "numba", "llvmlite", "PyStemmer", "pyarrow", "orjson")


@cache
def environment() -> dict[str, object]:
    """Versions, seeds and hardware of this process."""
    return {
        "packages": {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": settings().threads,
        "interval": {"method": "percentile bootstrap", "level": LEVEL, "resamples": RESAMPLES, "seed": SEED},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
