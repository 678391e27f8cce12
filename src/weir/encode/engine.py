"""What turns a batch of tokens into hidden states, and how one is chosen: by what is installed, and measured."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weir.core.strings import Int64
from weir.encode.checkpoint import Checkpoint
from weir.encode.tokens import Tokens
from weir.encode.weights import Tensor, read_weights, supported
from weir.errors import BadValue, StoreError, require
from weir.io.atomic import write_json
from weir.settings import settings

__all__ = ["DTYPES", "ENGINES", "Engine", "Place", "at_once", "best_device", "build", "choose"]

DTYPES = ("fp32", "bf16", "fp16", "int8")
ENGINES = ("packed", "openvino", "transformers")
PROBE_LENGTHS = (230, 190, 150, 110, 90, 70, 50, 30)
"""Tokens of the texts an engine is measured on."""


class Engine(Protocol):
    """A model ready to compute: the seam between batching and whatever multiplies the matrices."""

    @property
    def name(self) -> str:
        """What the engine is called in manifests."""
        ...

    @property
    def padded(self) -> bool:
        """Whether a batch costs its texts times the longest of them."""
        ...

    def hidden(self, batch: Tokens) -> Tensor:
        """The last hidden states of the tokens of a batch: a torch tensor [T, H], without padding."""
        ...

    def describe(self) -> dict[str, object]:
        """What can move a number: the engine, what it computes in, versions."""
        ...


@dataclass(frozen=True)
class Place:
    """Where and how exactly to compute: a device such as "cpu" or "cuda:1", and a dtype of DTYPES."""

    device: str
    dtype: str


def best_device(device: str) -> str:
    """The device that "auto" stands for: the first GPU torch can use, else the processor; of several the first.

    Raises BadValue for a device that torch does not have.
    """
    torch = require("torch", extra="neural")
    there, device = torch.cuda.is_available(), device.partition(",")[0].strip()
    if device == "auto":
        return "cuda" if there else "cpu"
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise BadValue(f"device is '{device}'; expected auto, cpu, cuda, or cuda:1")
    if kind == "cuda" and not (there and int(number or 0) < torch.cuda.device_count()):
        raise BadValue(f"device is '{device}', which torch {torch.__version__} does not find here")
    return device


def choose(checkpoint: Checkpoint, place: Place, revision: str) -> tuple[str, str]:
    """(engine, dtype) that encode fastest here and at least as exactly as asked.

    What can be taken is measured once for each checkpoint, machine and version, and remembered in Weir's home.
    """
    able = _able(checkpoint, place)
    if len(able) == 1:
        return able[0]
    path = settings().home / "engines" / f"{_machine(place, revision, able)}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_text(encoding="utf-8"))
        if (known["engine"], known["dtype"]) in able:
            return known["engine"], known["dtype"]
    first = build(checkpoint, Place(place.device, able[0][1]), able[0][0])
    seconds = {able[0]: _measured(checkpoint, first)}
    # Weir's own kernels are only built where their products keep up with torch's; nothing else has outrun them then
    # (benchmarks/encode_bench.py).
    for name, exactness in () if first.name == "packed (tiles)" else able[1:]:
        with suppress(Exception):  # what cannot serve this checkpoint is not taken; the first one must
            ready = build(checkpoint, Place(place.device, exactness), name)
            seconds[name, exactness] = _measured(checkpoint, ready)
    engine, dtype = min(seconds, key=lambda pair: seconds[pair])
    table = [{"engine": e, "dtype": d, "seconds": s} for (e, d), s in seconds.items()]
    with suppress(StoreError):  # a home that cannot be written to means measuring again
        write_json(path, {"engine": engine, "dtype": dtype, "measured": table}, durable=False)
    return engine, dtype


def at_once(engine: Engine, tokens: int) -> int:
    """Tokens to hand to an engine together, where `tokens` suit one thread: twice as many for each of several.

    Texts differ in length, and a thread that is done waits for the others.
    """
    threads = getattr(engine, "threads", 1)
    return tokens * (2 * threads if threads > 1 else 1)


def build(checkpoint: Checkpoint, place: Place, engine: str) -> Engine:
    """The engine of that name, loaded; raises BadValue where it cannot serve this checkpoint or device."""
    if engine == "transformers":
        from weir.encode.reference import transformers_engine

        return transformers_engine(checkpoint, place.device, place.dtype)
    if engine == "openvino":
        from weir.encode.vino import openvino_engine

        return openvino_engine(checkpoint, place.device, place.dtype)
    if not supported(checkpoint):
        raise BadValue(f"{checkpoint.folder}: the engine 'packed' does not know '{checkpoint.architecture}'")
    return _packed(checkpoint, place)


def _packed(checkpoint: Checkpoint, place: Place) -> Engine:
    """Weir's own forward pass: with its own kernels where they serve here, else with torch's."""
    from weir.encode.tiled import tiled_engine

    weights = read_weights(checkpoint)
    own = tiled_engine(weights, place.dtype) if place.device == "cpu" else None
    if own is not None:
        return own
    if place.dtype == "int8":
        from weir.encode.eight import pack_int8

        return pack_int8(weights)
    from weir.encode.packed import pack

    return pack(weights, place.device, place.dtype)


def _able(checkpoint: Checkpoint, place: Place) -> list[tuple[str, str]]:
    """The engines, with what they compute in, that are exact enough and can run here."""
    own = supported(checkpoint)
    if place.device != "cpu":
        if place.dtype == "int8":
            raise BadValue("dtype int8 is for the processor; on a GPU take bf16 or fp16")
        return [("packed" if own else "transformers", place.dtype)]
    if not own:
        return [("transformers", "fp32" if place.dtype == "int8" else place.dtype)]
    vino = find_spec("openvino") is not None and (place.dtype != "int8" or find_spec("nncf") is not None)
    engines = ("packed", "openvino") if vino else ("packed",)
    # Less precision is only faster where the processor has units for it: what computes in fp32 may serve too.
    dtypes = dict.fromkeys((place.dtype, "fp32"))
    return [(engine, dtype) for dtype in dtypes for engine in engines]


def _measured(checkpoint: Checkpoint, ready: Engine) -> float:
    """Seconds for a batch of about a thousand tokens of random words."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(np.array(PROBE_LENGTHS, np.int64), checkpoint.limit)
    ptr: Int64 = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    words = int(checkpoint.config.get("vocab_size", 1000))
    probe = Tokens(rng.integers(min(999, words - 1), words, int(ptr[-1])).astype(np.int32), ptr)
    return _quickest(lambda: ready.hidden(probe))


def _quickest(action: Callable[[], object], repetitions: int = 7) -> float:
    """Seconds of the best of some repetitions: other work on the machine only ever adds."""
    action()
    taken = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def _machine(place: Place, revision: str, able: list[tuple[str, str]]) -> str:
    """A hash of what decides which engine is fastest."""
    facts: list[Any] = [place.device, place.dtype, revision, able, settings().threads, _processor()]
    for name in ("torch", "openvino", "nncf", "numba", "weir-ir"):
        with suppress(PackageNotFoundError):
            facts.append((name, version(name)))
    return hashlib.blake2b(json.dumps(facts).encode("utf-8"), digest_size=8).hexdigest()


def _processor() -> str:
    """The processor's name and abilities, as far as the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        import platform

        return platform.processor()
    return "".join(next((x for x in lines if x.startswith(key)), "") for key in ("model name", "flags"))
