"""Which settings of two results differ, the likeliest cause first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["SettingDifference", "differences"]

UNKNOWN = (45.0, "a setting of the system")
ENVIRONMENT = (5.0, "where it ran")
NAMES = frozenset({"system", "reproduces"})  # settings that are composed of others


@dataclass(frozen=True)
class SettingDifference:
    """A setting that differs: its name, the two values, how likely it is to matter (100 most) and why."""

    setting: str
    first: str
    second: str
    weight: float
    why: str


def differences(
    first: Iterable[tuple[str, str]], second: Iterable[tuple[str, str]]
) -> tuple[SettingDifference, ...]:
    """The settings that differ, by likely effect; what only follows from another difference is left out.

    first, second: (dotted name, text). A setting that one side lacks counts where both are cells with one kind of
    system, or it is a setting of that system. The order is that of facts/effects.tsv: experience, not a measurement.
    """
    one, other = _with_kind(dict(first)), _with_kind(dict(second))
    same_kind = "system" in one and one["system"] == other.get("system")
    cells = "fingerprint" in one and "fingerprint" in other
    found = []
    for name in dict.fromkeys([*one, *other]):
        a, b = one.get(name), other.get(name)
        both = a is not None and b is not None
        if a != b and (both or (same_kind and (cells or name.startswith("system.")))):
            weight, why = _likely(name)
            found.append(
                SettingDifference(name, "-" if a is None else a, "-" if b is None else b, weight, why)
            )
    names = frozenset(d.setting for d in found)
    return tuple(sorted((d for d in found if not _follows(d.setting, names)), key=lambda d: -d.weight))


def _with_kind(settings: dict[str, str]) -> dict[str, str]:
    """The settings with the kind of system as one of its own: what stands before the bracket of its name."""
    name = settings.get("system.system")
    return settings if name is None else {"system": name.partition("(")[0].strip()} | settings


def _follows(name: str, names: frozenset[str]) -> bool:
    """Whether a difference only follows from another: a name from what it is made of, an analysis from its analyzer."""
    parent, _, leaf = name.rpartition(".")
    if name == "fingerprint":
        return not names.isdisjoint({"dataset", "split"})
    before, inside, _ = name.partition(".analysis.")
    if inside:
        return f"{before}.analyzer" in names
    if leaf not in NAMES or not parent.startswith("system"):
        return False
    return any(
        n == "system" or (n.startswith("system.") and n.rpartition(".")[2] not in NAMES) for n in names
    )


def _likely(name: str) -> tuple[float, str]:
    """How likely a setting is to matter, and why: by its whole name, then by its endings, then by its parts."""
    table, parts = _table(), name.split(".")
    endings = [".".join(parts[i:]) for i in range(1, len(parts) - 1)]
    inner = [p for p in reversed(parts[1:]) if p not in NAMES]
    known = next((table[key] for key in (name, *endings, *inner) if key in table), None)
    return known or (ENVIRONMENT if parts[0] == "environment" else UNKNOWN)


@cache
def _table() -> dict[str, tuple[float, str]]:
    text = (files("weir.experiment") / "facts" / "effects.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.rstrip("\n").split("\n")[1:])
    return {name: (float(weight), why) for name, weight, why in rows}
