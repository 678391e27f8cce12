"""Where the machine code of kernels is kept, and what it is kept under.

A file is named by the kernel, by a digest of the sources that can change what it computes (its own file and those of
the kernels it imports, directly or not) and by one of what it was compiled for: the types of its arguments, the
processor, the versions of the compiler. Files of another digest of sources are of no use any more and go.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from weir.errors import require
from weir.kernels.jit.loader import Code
from weir.settings import settings

ENDING = ".kernel"
SILENT = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
"""Variables of numba that leave the code as it is."""
KERNELS = Path(__file__).parents[1]
COMPILER_FILES = ("__init__.py", "compiler.py", "loader.py", "code_cache.py")
"""What every kernel depends on: the files of this package."""
IMPORTED = re.compile(rb"^\s*from weir\.kernels\.([\w.]+) import ([\w, ]*)", re.MULTILINE)


@dataclass(frozen=True)
class CodeCache:
    """The place of one kernel's code for arguments of some types. kernel, sources, target: parts of the name."""

    kernel: str
    sources: str
    target: str

    @staticmethod
    def of(function: Callable[..., Any], types: str) -> CodeCache:
        """The place of a function's code; types: of its arguments."""
        module = function.__module__.rpartition(".")[2]
        return CodeCache(
            f"{module}.{function.__name__}",
            _sources(Path(function.__code__.co_filename)),
            _digest([_target().encode(), types.encode()]),
        )

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.kernel}-{self.target}-{self.sources}{ENDING}"

    def read(self) -> Code | None:
        """The code that is kept, None where there is none or it is damaged."""
        for place in places():
            with suppress(OSError, ValueError, KeyError, TypeError):
                return _decoded((place / self.name).read_bytes())
        return None

    def write(self, code: Code) -> None:
        """Keep code in the first place that can be written to; where none can, it is made again by each process."""
        for place in places():
            with suppress(OSError):
                place.mkdir(parents=True, exist_ok=True)
                _replace(place / self.name, _encoded(code))
                for old in place.glob(f"{self.kernel}-{self.target}-*{ENDING}"):
                    if old.name != self.name:
                        old.unlink(missing_ok=True)
                return


def places() -> tuple[Path, ...]:
    """The folders that are looked through, and written to, in this order.

    NUMBA_CACHE_DIR where that is set; else beside Python's own compiled files of this package, and, where the
    package may not be written to, in the user's folder (WEIR_HOME).
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return (Path(os.environ["NUMBA_CACHE_DIR"]) / "weir",)
    return KERNELS / "__pycache__", settings().home / "kernels"


def is_compiled(module: str) -> bool:
    """Whether code of some kernel of a module is stored, as its source is now: then it is loaded and not compiled.

    module: its name below `weir.kernels`, such as "lines". Raises FileNotFoundError for one that does not exist.
    """
    path = KERNELS / f"{module.replace('.', '/')}.py"
    if not path.is_file():
        raise FileNotFoundError(path)
    ending = f"-{_sources(path)}{ENDING}"
    return any(next(place.glob(f"{path.stem}.*{ending}"), None) is not None for place in places())


def _digest(parts: list[bytes]) -> str:
    found = hashlib.blake2b(digest_size=6)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


@functools.cache
def _sources(path: Path) -> str:
    """A digest of the files on which what is compiled from a kernel's file depends."""
    return _digest([p.name.encode() + p.read_bytes() for p in sorted(_depending(path))])


def _depending(path: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = [path, *(KERNELS / "jit" / name for name in COMPILER_FILES)]
    while waiting:
        one = waiting.pop()
        if one not in found and one.is_file():
            found.add(one)
            waiting += [KERNELS / f"{name.replace('.', '/')}.py" for name in _imported(one)]
    return found


@functools.cache
def _imported(path: Path) -> tuple[str, ...]:
    """The modules of kernels that a file imports."""
    return tuple(_names(path.read_bytes()))


def _names(source: bytes) -> Iterator[str]:
    for module, names in IMPORTED.findall(source):
        yield module.decode()
        yield from (f"{module.decode()}.{name.strip().decode()}" for name in names.split(b","))


@functools.cache
def _target() -> str:
    """What code is compiled for and by: processor, compiler, and what its environment variables say."""
    llvm = require("llvmlite.binding", extra="run")
    said = {
        k: v
        for k, v in os.environ.items()
        if k.startswith("NUMBA_") and k not in ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
    }
    spec = find_spec("numba")
    version = Path(spec.origin or "").with_name("_version.py") if spec is not None else Path()
    files = [f.read_text(encoding="utf-8") for f in (version, Path(".numba_config.yaml")) if f.is_file()]
    processor = [llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    versions = [llvm.__name__, require("llvmlite", extra="run").__version__, np.__version__.partition(".")[0]]
    return json.dumps([sys.implementation.cache_tag, *processor, *versions, *files, sorted(said.items())])


def _encoded(code: Code) -> bytes:
    """A line of JSON, then the objects; a digest of both first, since damaged code would end the process."""
    sizes = [len(part) for part in code.parts]
    head = {"arguments": code.arguments, "result": code.result, "outside": code.outside, "sizes": sizes}
    body = json.dumps(head).encode() + b"\n" + b"".join(code.parts)
    return _digest([body]).encode() + b"\n" + body


def _decoded(data: bytes) -> Code:
    """Raises ValueError, KeyError or TypeError for what `_encoded` did not write."""
    digest, _, body = data.partition(b"\n")
    if digest != _digest([body]).encode():
        raise ValueError("damaged")
    line, _, rest = body.partition(b"\n")
    head = json.loads(line)
    cuts = np.cumsum([0, *head["sizes"]]).tolist()
    parts = tuple(rest[a:b] for a, b in itertools.pairwise(cuts))
    return Code(head["arguments"], head["result"], tuple(head["outside"]), parts)


def _replace(path: Path, data: bytes) -> None:
    """Write a file that appears when it is whole."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=ENDING, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
