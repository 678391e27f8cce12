"""What making a stage takes: seconds of its own, peak memory, what services were asked, and which stages it used."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Making", "Stopwatch"]

COUNTED = ("seconds", "compile_seconds", "requests", "texts", "tokens", "answer_tokens")


@dataclass
class Making:
    """A stage being made.

    own: its counts, those of stages made within it left out; elsewhere: theirs; prepared: seconds in which its kernels
    were compiled or loaded before it began; peak_mb: resident memory of the
    process at most; inputs: the stages it used, (kind, folder).
    """

    own: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0.0))
    elsewhere: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0.0))
    prepared: float = 0.0
    peak_mb: float = 0.0
    inputs: dict[tuple[str, str], None] = field(default_factory=dict)

    def cost(self) -> dict[str, object]:
        """The figures as a record keeps them: compiling kernels is told apart from the work."""
        within, compiled = self.own["compile_seconds"], self.prepared + self.own["compile_seconds"]
        found: dict[str, object] = {
            "seconds": max(self.own["seconds"] - within, 0.0),
            "peak_mb": self.peak_mb,
        }
        found |= {"compile_seconds": compiled} if compiled else {}
        if self.own["requests"]:
            asked = {name: self.own[name] for name in ("requests", "texts", "tokens")}
            said = self.own["answer_tokens"]
            dollars = _dollars(int(asked["tokens"]), int(said))
            asked |= {"answer_tokens": said} if said else {}
            found["api"] = asked | ({} if dollars is None else {"dollars": dollars})
        return found


@dataclass(frozen=True, eq=False)
class Stopwatch:
    """The stages being made at this moment, each within the one before."""

    at_work: list[Making] = field(default_factory=list)

    def used(self, kind: str, folder: str) -> None:
        """A stage is used by the one being made, if there is one."""
        if self.at_work:
            self.at_work[-1].inputs[kind, folder] = None

    @contextmanager
    def making(self) -> Iterator[Making]:
        """Make a stage in the block; what of it counts stands within `timed`."""
        one, begun = Making(), _counts()
        self.at_work.append(one)
        try:
            yield one
        finally:
            self.at_work.pop()
            if self.at_work:
                _add(self.at_work[-1].elsewhere, begun)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what happens in the block for the stage being made, apart from stages made within it."""
        one, begun = self.at_work[-1], _counts()
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before = dict(one.elsewhere)
        try:
            yield
        finally:
            _add(one.own, begun)
            for name in COUNTED:
                one.own[name] -= one.elsewhere[name] - before[name]
            one.peak_mb = max(one.peak_mb, _peak_mb())

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What happens in the block, such as reading what was made before, does not count for the stage being made."""
        with self.making() as one:
            yield
        for kind, folder in one.inputs:
            self.used(kind, folder)


def _counts() -> dict[str, float]:
    """What this process has spent so far."""
    return {"seconds": time.perf_counter(), "compile_seconds": _compile_seconds(), **_asked()}


def _add(total: dict[str, float], begun: dict[str, float]) -> None:
    for name, now in _counts().items():
        total[name] += now - begun.get(name, 0.0)


def _compile_seconds() -> float:
    """Seconds spent compiling kernels, or loading them; nothing where no kernel was imported."""
    jit = sys.modules.get("weir.kernels.jit")
    return 0.0 if jit is None else float(jit.spent())


def _asked() -> dict[str, float]:
    """What services that are paid for were asked; nothing where no part that asks any was imported."""
    limits = sys.modules.get("weir.services.limits")
    if limits is None:
        return {}
    spent = limits.paid()
    return {name: getattr(spent, name) for name in ("requests", "texts", "tokens", "answer_tokens")}


def _dollars(tokens: int, answers: int) -> float | None:
    from weir.services.limits import Limits
    from weir.settings import settings

    return Limits.of(settings()).cost(tokens, answers)


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
