"""What made a stage: code, packages, machine and time, as its record keeps them."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import unicodedata
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from weir.settings import settings

__all__ = ["code_digest", "made_now"]

PACKAGES = {
    "numpy": "numpy",
    "numba": "numba",
    "llvmlite": "llvmlite",
    "Stemmer": "PyStemmer",
    "pyarrow": "pyarrow",
    "orjson": "orjson",
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
    "openvino": "openvino",
    "nncf": "nncf",
    "onnxruntime": "onnxruntime",
    "ctranslate2": "ctranslate2",
    "faiss": "faiss-cpu",
    "usearch": "usearch",
    "scipy": "scipy",
}
"""Module -> distribution of what can take part in making a number."""
CPU_FLAGS = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")
"""What of the processor's abilities decides which instructions run."""


def made_now() -> dict[str, object]:
    """What is at work in this process: the packages are those that it has imported, or whose code it runs."""
    jit = sys.modules.get("weir.kernels.jit")
    compiled = (
        {"numba", "llvmlite"} if jit is not None and jit.spent() > 0 else set()
    )  # kept code is theirs too
    taken_part = compiled | set(sys.modules)
    return {
        "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "weir": _version("weir-ir"),
        "code": code_digest(),
        "packages": {name: _version(name) for module, name in PACKAGES.items() if module in taken_part},
        "python": platform.python_version(),
        "unicode": unicodedata.unidata_version,
        "system": f"{platform.system()} {platform.machine()}",
        **_processor(),
        "cores": os.cpu_count(),
        "threads": settings().threads,
    }


@cache
def code_digest() -> str:
    """A hash of Weir's own source files."""
    digest, root = hashlib.blake2b(digest_size=8), Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _processor() -> dict[str, str]:
    """The processor's name and its instruction sets, as far as the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return {"processor": platform.processor(), "instructions": "unknown"}
    pairs = (line.partition(":") for line in lines)
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    flags = set(facts.get("flags", facts.get("Features", "")).split())
    found = " ".join(flag for flag in CPU_FLAGS if flag in flags)
    return {"processor": facts.get("model name", platform.processor()), "instructions": found}
