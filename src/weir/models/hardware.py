"""Find this machine's computing devices from files, without importing or measuring anything."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from weir.errors import BadValue
from weir.settings import gpus_hidden

DRIVERS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"))
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}
INT8 = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"}


@dataclass(frozen=True)
class ComputePlace:
    """A device such as "cpu" or "cuda:1", and a precision of DTYPES."""

    device: str
    dtype: str

    @property
    def kind(self) -> str:
        """The device without its number, "cpu" or "cuda"."""
        return self.device.partition(":")[0]


def declared_kind(setting: str) -> str:
    """Return "cpu" or "cuda" for a device setting such as "cuda:1"; raises BadValue for another device."""
    return declared_device(setting).partition(":")[0]


def declared_device(setting: str) -> str:
    """Return the first device of a setting, such as "cpu", "cuda" or "cuda:1"; raises BadValue for another.

    "auto" is "cuda" if an NVIDIA driver runs, a GPU is visible and torch is built for CUDA, else "cpu".
    """
    device = setting.partition(",")[0].strip()
    if device == "auto":
        driver = not gpus_hidden() and any(path.exists() for path in DRIVERS)
        return "cuda" if driver and _torch_for_cuda() else "cpu"
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise BadValue(f"device is '{device}'; expected auto, cpu, cuda, or cuda:1")
    return device


@cache
def instructions() -> frozenset[str]:
    """Return which of "bf16" and "int8" this processor computes natively; empty if unknown."""
    flags: set[str] = set()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n"):
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                flags = set(value.split())
                break
    except OSError:  # macOS and Windows do not tell it in a file
        if platform.system() == "Darwin" and platform.machine() == "arm64":
            flags = {"asimddp"}  # every such machine
    return frozenset(name for name, units in (("bf16", BF16), ("int8", INT8)) if units & flags)


@cache
def package_version(name: str) -> str | None:
    """Return a Python package's version; None if not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _torch_for_cuda() -> bool:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^cuda\b[^=\n]*=\s*['\"]", text, re.MULTILINE) is not None
