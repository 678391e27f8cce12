"""Engines, which turn tokens into vectors, weights and scores, and how one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weir.core.strings import Float32, Int64
from weir.errors import BadValue, require
from weir.models.checkpoints import STATIC, Checkpoint
from weir.models.hardware import ComputePlace, declared_device, instructions, package_version
from weir.models.heads import AnyHead, OwnHead
from weir.models.tokens import Tokens
from weir.models.weights import read_weights, supported
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
"""Distributions without which an engine cannot run."""


class Engine(Protocol):
    """A model with its head, ready to compute: the seam between batching and whatever multiplies the matrices."""

    @property
    def padded(self) -> bool:
        """Whether a batch costs its texts times the longest of them."""
        ...

    @property
    def alone(self) -> bool:
        """Whether a text's rows are the same bits whatever else is in the batch."""
        ...

    def rows(self, batch: Tokens) -> Any:  # noqa: ANN401 - an array of the engine's own kind
        """What the head makes of a batch: rows for its texts or for its tokens, where they were computed."""
        ...

    def array(self, parts: Sequence[Any]) -> Float32:
        """The rows of several batches, one behind the other, in the processor's memory."""
        ...

    def above(self, rows: Any, threshold: float) -> tuple[Int64, Int64, Float32]:  # noqa: ANN401 - as of `rows`
        """(row, column, number) of what is above a threshold in a batch's rows, and of what is not a number."""
        ...


@dataclass(frozen=True)
class Declared:
    """The engine that settings come to on this machine, before anything is loaded; why: the reason, for people."""

    engine: str
    place: ComputePlace
    why: str

    @property
    def label(self) -> str | None:
        """What stands under "engine" in a description, such as "torch cpu fp32, tokenizers 0.23"; None where a package
        that it needs is not installed.

        It holds what can move a number beyond its last bits and is not in the checkpoint: the engine, the kind of
        device, what it computes in, the version of the tokenizer's library, and for int8 of what chose the bytes.
        """
        needed = [*NEEDED[self.engine], *(["nncf"] if self.place.dtype == "int8" else [])]
        if any(package_version(name) is None for name in needed):
            return None
        deciding = ["tokenizers", *(["openvino", "nncf"] if self.place.dtype == "int8" else [])]
        versions = [f"{name} {package_version(name)}" for name in deciding]
        return ", ".join([f"{self.engine} {self.place.kind} {self.place.dtype}", *versions])


def check_engine(engine: object, dtype: object, engines: tuple[str, ...] = ENGINES) -> None:
    """Raise BadValue for an engine or a dtype that is not known, and for two that do not go together."""
    for name, value, allowed in (("dtype", dtype, DTYPES), ("engine", engine, ("auto", *engines))):
        if value not in allowed:
            raise BadValue(f"{name} is {value!r}; expected {', '.join(allowed)}")
    if dtype == "int8" and engine in ("torch", "transformers"):
        raise BadValue(f"the engine '{engine}' does not compute in int8; take 'openvino', bf16 or fp32")


def declare(
    checkpoint: Checkpoint, engine: str, dtype: str, device: str, own: bool | None = None
) -> Declared:
    """The engine that these settings come to here, by a fixed rule.

    engine: a name of ENGINES, which then is taken, or auto; dtype: the least precision to compute in; device: auto,
    cpu, cuda or cuda:1; own: whether Weir's own engines serve the model, None for what `supported` says. On a GPU it is
    torch without padding, on a processor openvino, or torch where only that is installed; transformers where Weir does
    not know the architecture. On a processor bf16 is computed where there are instructions for it, int8 where nncf and
    the instructions are there, and fp32, which is then no slower, in all other cases. Raises BadValue for int8 on a
    GPU.
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
    """As `declare`, for a model that Weir's own engines serve, or for one that they do not, with the reason.

    Raises BadValue as it does.
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
    """The engine of a processor, and why."""
    if lacking is not None:
        return "transformers", lacking
    if package_version("openvino") is None and package_version("torch") is not None:
        return "torch", "openvino is not installed; torch without padding"
    return "openvino", "the fastest on a processor"


def prepare(device: str) -> None:
    """Let torch compute on a device with the threads of the settings; raises BadValue where it does not have it."""
    torch = require("torch", extra="torch")
    kind, _, number = device.partition(":")
    if kind == "cpu":
        torch.set_num_threads(settings().threads)
    elif not (torch.cuda.is_available() and int(number or 0) < torch.cuda.device_count()):
        raise BadValue(f"device is '{device}', which torch {torch.__version__} does not find here; take cpu")


def build(checkpoint: Checkpoint, declared: Declared, head: AnyHead, segments: bool = False) -> Engine:
    """The declared engine with a head, loaded; raises BadValue where it cannot serve this checkpoint or device.

    segments: whether batches will say which of two texts a token belongs to. Raises MissingExtra where a package is not
    installed.
    """
    place, engine = declared.place, declared.engine
    if engine == "static":
        from weir.models.static_engine import static_engine

        return static_engine(checkpoint, head)
    if engine == "openvino":
        from weir.models.openvino_engine import openvino_engine

        return openvino_engine(checkpoint, place, head, segments)
    prepare(place.device)
    from weir.models.torch_engine import TorchModel, torch_engine, torch_head

    if engine == "transformers":
        from weir.models.transformers_engine import CLASSES, OwnModel, transformers_engine

        own = CLASSES[head.kind] if isinstance(head, OwnHead) else ""
        body = transformers_engine(checkpoint, place.device, place.dtype, own)
        if isinstance(head, OwnHead):
            return OwnModel(body, head)
        return TorchModel(body, torch_head(head, place.device, place.dtype))
    if isinstance(head, OwnHead) or not supported(checkpoint):
        raise BadValue(
            f"{checkpoint.folder}: the engine 'torch' does not know '{checkpoint.architecture}'; take 'transformers'"
        )
    engine_of_torch = torch_engine(read_weights(checkpoint), place.device, place.dtype)
    return TorchModel(engine_of_torch, torch_head(head, place.device, place.dtype))
