"""What a stage costs: seconds and memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Cost", "charged", "metered"]


@dataclass
class Cost:
    """Filled when the stage ends: wall seconds, and the process's peak resident memory in MB."""

    seconds: float = 0.0
    peak_mb: float = 0.0


@contextmanager
def metered() -> Iterator[Cost]:
    """Measure the block; the peak is that of the block where the system can say so, else of the process."""
    cost = Cost()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    start = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - start
        cost.peak_mb = _peak_mb()


@contextmanager
def charged() -> Iterator[dict[str, float]]:
    """What embedding APIs were asked within the block: requests, texts, tokens, dollars; nothing where none was."""
    from weir.encode.api.hosted import purse
    from weir.encode.api.limits import Limits
    from weir.settings import settings

    asked: dict[str, float] = {}
    before = asdict(purse().spent)
    try:
        yield asked
    finally:
        after = asdict(purse().spent)
        if after["requests"] > before["requests"]:
            asked.update({name: after[name] - before[name] for name in ("requests", "texts", "tokens")})
            dollars = Limits.of(settings()).cost(int(asked["tokens"]))
            asked.update({} if dollars is None else {"dollars": dollars})


def _peak_mb() -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").split("\n"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
