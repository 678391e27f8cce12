"""Choose, by fixed rules, the engine that computes a model's output from tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weir.core.strings import Float32, Int64
from weir.errors import BadValue, require
from weir.models.checkpoints import STATIC, Checkpoint
from weir.models.hardware import ComputePlace, declared_device, instructions, package_version
from weir.models.heads import AnyHead
from weir.models.tokens import Tokens
from weir.models.weights import supported
from weir.registry import Registry
from weir.settings import settings

# ----------
# Engines, which turn a batch of tokens into what a head makes of it, and the rule that chooses one.
#
# Nothing is measured: the rule looks at what is installed, the device and the instruction set, so that the same
# settings on the same machine always name the same engine. `weir list models NAME` prints its choice, and why.


DTYPES = ("fp32", "bf16", "fp16", "int8")
ENGINES = ("openvino", "torch", "transformers")
NEEDED = {
    "openvino": ("openvino", "safetensors", "tokenizers"),
    "torch": ("torch", "safetensors", "tokenizers"),
    "transformers": ("torch", "transformers", "tokenizers"),
    "static": ("safetensors", "tokenizers"),
}
"""Distributions that each engine needs."""


class EngineBuilder(Protocol):
    """A function that loads a checkpoint into an engine such as torch."""

    def __call__(self, checkpoint: Checkpoint, declared: Declared, head: AnyHead, /) -> Engine:
        """Return the loaded engine; raises BadValue for an unsupported checkpoint or device."""


ENGINE_BUILDERS = Registry[EngineBuilder]("engine")


class Engine(Protocol):
    """A loaded transformer with a head that turns its states into vectors or scores."""

    @property
    def padded(self) -> bool:
        """True if a batch costs as much as its texts padded to the longest."""

    @property
    def batch_independent(self) -> bool:
        """True if a text's output has the same bits in any batch."""

    def rows(self, batch: Tokens) -> Any:  # noqa: ANN401 - an array of the engine's own kind
        """Return the head's output on the device: a row per text, or per token for a TokenHead."""

    def array(self, parts: Sequence[Any]) -> Float32:
        """Return the rows of several batches as one float32 array in host memory."""

    def above(self, rows: Any, threshold: float) -> tuple[Int64, Int64, Float32]:  # noqa: ANN401 - as of `rows`
        """Return (rows, columns, values) of entries above a threshold or NaN: int64, int64, float32."""


@dataclass(frozen=True)
class Declared:
    """The engine, device and precision chosen for a model before it is loaded, and why."""

    engine: str
    place: ComputePlace
    why: str
    """The reason, in words."""

    @property
    def label(self) -> str | None:
        """Engine, device, precision and deciding versions, such as "torch cpu fp32, tokenizers 0.23"; None if a
        package is missing.
        """
        needed = [*NEEDED[self.engine], *(["nncf"] if self.place.dtype == "int8" else [])]
        if any(package_version(name) is None for name in needed):
            return None
        deciding = ["tokenizers", *(["openvino", "nncf"] if self.place.dtype == "int8" else [])]
        versions = [f"{name} {package_version(name)}" for name in deciding]
        return ", ".join([f"{self.engine} {self.place.kind} {self.place.dtype}", *versions])


def check_engine(engine: object, dtype: object) -> None:
    """Raise BadValue for an unknown engine or precision, or int8 with an engine that lacks it."""
    for name, value, allowed in (("dtype", dtype, DTYPES), ("engine", engine, ("auto", *ENGINES))):
        if value not in allowed:
            raise BadValue(f"{name} is {value!r}; expected {', '.join(allowed)}")
    if dtype == "int8" and engine in ("torch", "transformers"):
        raise BadValue(f"the engine '{engine}' does not compute in int8; take 'openvino', bf16 or fp32")


def declare(
    checkpoint: Checkpoint, engine: str, dtype: str, device: str, own: bool | None = None
) -> Declared:
    """Return the engine, device and precision that compute a checkpoint on this machine, without loading it.

    engine: one of ENGINES, of which auto takes torch on a GPU, else openvino, or torch if only that is installed, and
        transformers for architectures that Weir's own engines lack.
    dtype: lowest precision allowed, one of DTYPES. A processor without native instructions for it computes in
        bf16 or fp32 (int8 also needs nncf).
    device: auto, cpu, cuda or cuda:1.
    own: True if Weir's own engines support the model; None asks `supported`.

    Raises BadValue for int8 on a GPU, and an engine that cannot compute the checkpoint.
    """
    if checkpoint.architecture == STATIC:
        if engine != "auto":
            raise BadValue(
                f"{checkpoint.folder} is a table of vectors by token; no engine computes it: leave out engine"
            )
        return Declared("static", ComputePlace("cpu", "fp32"), "a table of vectors by token")
    if checkpoint.graph is not None:
        if engine not in ("auto", "openvino"):
            raise BadValue(
                f"{checkpoint.graph.name} is an ONNX graph, which the engine '{engine}' does not read"
            )
        ruling = ruled(
            "auto" if dtype != "int8" else "openvino", dtype, "cpu" if device == "auto" else device
        )
        if ruling.place.kind != "cpu":
            raise BadValue("an ONNX graph runs on the processor here; take device cpu")
        return Declared("openvino", ruling.place, "an ONNX graph")
    served = supported(checkpoint) if own is None else own
    lacking = None if served else f"Weir's own engines do not know '{checkpoint.architecture}'"
    return ruled(engine, dtype, device, lacking)


def ruled(engine: str, dtype: str, device: str, lacking: str | None = None) -> Declared:
    """Return the engine, device and precision that `declare` chooses for a checkpoint of transformers.

    lacking: why Weir's own engines do not support the model; None if they do.

    Raises BadValue for openvino or int8 on a GPU.
    """
    place = ComputePlace(declared_device(device), dtype)
    if engine == "openvino" and device == "auto":
        place = ComputePlace("cpu", dtype)
    if place.kind != "cpu" and (dtype == "int8" or engine == "openvino"):
        raise BadValue(
            "int8 and the engine 'openvino' are for the processor; on a GPU take torch in bf16 or fp16"
        )
    if engine != "auto":
        return Declared(engine, place, f"engine={engine!r} was asked for")
    if place.kind != "cpu":
        default, why = ("torch", "without padding") if lacking is None else ("transformers", lacking)
        return Declared(default, place, f"a GPU is there; {why}")
    default, why = _on_processor(lacking)
    if dtype == "int8" and lacking is None:
        missing = [name for name in ("openvino", "nncf") if package_version(name) is None]
        if not missing and "int8" in instructions():
            return Declared("openvino", place, "openvino, nncf and instructions for int8 are there")
        reason = f"{missing[0]} is not installed" if missing else "no instructions for int8 here"
        why = f"{reason}; {why}"
    if dtype in ("bf16", "int8") and "bf16" in instructions():
        return Declared(default, ComputePlace("cpu", "bf16"), why)
    if dtype != "fp32":
        why = f"no instructions for {dtype} here, so that fp32 is no slower; {why}"
    return Declared(default, ComputePlace("cpu", "fp32"), why)


def _on_processor(lacking: str | None) -> tuple[str, str]:
    if lacking is not None:
        return "transformers", lacking
    if package_version("openvino") is None and package_version("torch") is not None:
        return "torch", "openvino is not installed; torch without padding"
    return "openvino", "the fastest on a processor"


def prepare(device: str) -> None:
    """Set torch's number of threads for a cpu; raises BadValue for an absent GPU, MissingExtra without torch."""
    torch = require("torch", extra="torch")
    kind, _, number = device.partition(":")
    if kind == "cpu":
        torch.set_num_threads(settings().threads)
    elif not (torch.cuda.is_available() and int(number or 0) < torch.cuda.device_count()):
        raise BadValue(f"device is '{device}', which torch {torch.__version__} does not find here; take cpu")


def build(checkpoint: Checkpoint, declared: Declared, head: AnyHead, segments: bool = False) -> Engine:
    """Return an engine of the declared kind, loaded with a checkpoint's weights and a head.

    segments: batches distinguish the two texts of a pair.

    Raises BadValue for an unsupported checkpoint or device, StoreError for damaged files.
    """
    place, engine = declared.place, declared.engine
    if engine == "static":
        from weir.models.static_engine import static_engine

        return static_engine(checkpoint, head)
    if engine == "openvino":
        from weir.models.openvino_engine import openvino_engine

        return openvino_engine(checkpoint, place, head, segments)
    return ENGINE_BUILDERS.get(engine)(checkpoint, declared, head)
