"""What this machine could compute with, told from files alone: nothing is imported, nothing is measured."""

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
    """Where and how exactly to compute: a device such as "cpu" or "cuda:1", and a dtype of DTYPES."""

    device: str
    dtype: str

    @property
    def kind(self) -> str:
        """The kind of device: cpu or cuda."""
        return self.device.partition(":")[0]


def declared_kind(setting: str) -> str:
    """The kind of the device that a setting stands for: cpu or cuda. Raises as `declared_device`."""
    return declared_device(setting).partition(":")[0]


def declared_device(setting: str) -> str:
    """The device that a setting stands for: cpu, cuda or cuda:1; of several the first.

    auto is a GPU where a driver of NVIDIA's runs, CUDA_VISIBLE_DEVICES hides not all of them, and the installed torch
    was built for CUDA; else the processor. Raises BadValue for another setting.
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
    """Of "bf16" and "int8", the numbers that this processor has instructions for, as far as the system tells."""
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
    """The version of an installed distribution, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _torch_for_cuda() -> bool:
    """Whether the installed torch says in its version.py that it was built for CUDA."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^cuda\b[^=\n]*=\s*['\"]", text, re.MULTILINE) is not None
